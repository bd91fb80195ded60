"""The command line: `a2a-grpc serve`, `a2a-grpc gateway`, `a2a-grpc call` and `a2a-grpc db`.

Laws: words on the command line become options or a request message, both through tables; what they do is done by
server.py and client.py. A user's mistake ends with one line on stderr and code 2, an A2A error with its reason and
code 1; neither shows a traceback. Documents go to stdout, one JSON line each, everything else to stderr.
"""

import argparse
import asyncio
import gc
import importlib
import importlib.util
import json
import logging
import os
import re
import shlex
import signal
import sys
import threading
import traceback
import uuid
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import fields
from importlib import metadata
from pathlib import Path
from typing import Any, Final, NamedTuple, NoReturn, cast
from urllib.parse import urlsplit

# Read by grpc once, when it is imported: its own lines about a taken port would stand before ours.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")

from a2a_stubs import v1

from a2a_grpc import cards, config, demo, protojson, workers
from a2a_grpc.agent import Agent
from a2a_grpc.call import GRPC, JSONRPC, REST, V1, VERSIONS
from a2a_grpc.client import SCHEMES, Client
from a2a_grpc.errors import A2AError
from a2a_grpc.gateway import CREDENTIALS, FORWARDED, Upstream
from a2a_grpc.methods import METHODS
from a2a_grpc.server import Server, schema_of
from a2a_grpc.tasks.store import StoreError
from a2a_grpc.v03_cards import card_up

LAST_STEPS: Final = 0.5
"""Seconds that tasks and threads of an agent have to end when the server has stopped."""

EASE: Final = 10_000
"""By how many the objects that cycles are made of grow before Python looks for lost ones; its own default is 700."""

IDS: Final = re.compile(r" \([A-Z0-9]+(?:-[A-Z0-9]+)*-[0-9]+\)")
"""References to requirements, which say nothing to who asks for help."""

BINDING_WORDS: Final = {"jsonrpc": JSONRPC, "rest": REST, "http+json": REST, "grpc": GRPC}


class UsageError(Exception):
    """The user asked for something that cannot be; the text is the one line that is shown."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message} (see {self.prog} --help)")


# -- serve


def _options_parser(prog: str, description: str) -> argparse.ArgumentParser:
    """A parser of all the options of a server."""
    parser = _Parser(
        prog=prog,
        description=description,
        epilog="Each option is also read from the environment, such as A2A_GRPC_MAX_PARTS, and from --config.",
    )
    parser.add_argument("--config", metavar="FILE", help="TOML file with options")
    for row in fields(config.Options):
        flag, meaning = "--" + row.name.replace("_", "-"), IDS.sub("", row.metadata["meaning"]).replace("%", "%%")
        if row.type is bool:
            parser.add_argument(flag, action=argparse.BooleanOptionalAction, default=None, help=meaning)
        else:
            default = ",".join(row.default) if isinstance(row.default, tuple) else row.default
            parser.add_argument(flag, type=_reader(row.name), metavar="VALUE", help=f"{meaning} (default: {default})")
    return parser


def _serve_parser() -> argparse.ArgumentParser:
    parser = _options_parser("a2a-grpc serve", "Serves an agent on every wire.")
    parser.add_argument("target", nargs="?", metavar="MODULE:AGENT", help="the agent; default: a demo agent")
    return parser


def _reader(name: str) -> Callable[[str], Any]:
    def read(text: str) -> Any:
        try:
            return config.from_text(name, text)
        except config.OptionError as fault:
            raise argparse.ArgumentTypeError(str(fault)) from None

    return read


def load_target(target: str) -> Agent | Mapping[str, Agent]:
    """The agent, or mapping of names to agents, that `module:name` stands for; looks in the working directory first.

    Raises UsageError when there is none; code of the module that fails is told by its own file and line.
    """
    module, mark, name = target.partition(":")
    if not (mark and module and name) or module.endswith(".py") or "/" in module:
        raise UsageError(f"{target!r} is not of the form MODULE:AGENT, such as orders:agent for orders.py")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        found: Any = getattr(importlib.import_module(module), name, None)
    except ModuleNotFoundError as fault:
        if fault.name and (module + ".").startswith(fault.name + "."):
            raise UsageError(f"there is no module named {fault.name}") from None
        raise UsageError(f"{module} cannot be imported: {fault}") from None
    except Exception as fault:
        last = traceback.extract_tb(fault.__traceback__)[-1]
        where = f"{os.path.basename(last.filename)}, line {last.lineno}"
        raise UsageError(f"{module} cannot be imported: {type(fault).__name__}: {fault} ({where})") from None
    several = isinstance(found, Mapping) and found and all(isinstance(agent, Agent) for agent in found.values())
    if not (isinstance(found, Agent) or several):
        there = [key for key, value in vars(sys.modules[module]).items() if isinstance(value, Agent)]
        raise UsageError(f"{target} is not an Agent; {module} has: {', '.join(there) or 'none'}")
    return cast(Agent | Mapping[str, Agent], found)


def _tell(text: str) -> None:
    print(text, flush=True)


def _serve(words: Sequence[str], report: workers.Report = _tell) -> int:
    arguments = vars(_serve_parser().parse_args(words))
    target = arguments.pop("target")
    return _serving(arguments, lambda: load_target(target) if target else demo.agent, report, (_serve, words))


def _serving(
    arguments: dict[str, Any], made: Callable[[], Any], report: workers.Report, command: tuple[Any, Sequence[str]]
) -> int:
    """Run a server with the options among the arguments until it is stopped. made: gives what it serves; report: takes
    the addresses; command: what a worker is to do, without being told that it is one."""
    try:
        options = config.read(arguments.pop("config"), **arguments)
        if not (options.grpc or options.http):
            raise UsageError("both grpc and http are switched off: there is nothing to serve on")
        logging.basicConfig(
            level=options.log_level.upper(), format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr
        )
        if options.workers > 1:
            workers.check(options, stored=command[0] is _serve)
            return workers.run(options.workers, _work, command, report)
        server = Server(made(), options)
        spare_collector()
        _run(server.serve(lambda: report(_addresses(server))))
    except OSError as fault:
        told = fault.strerror or str(fault)
        raise UsageError(f"{told}: {fault.filename}" if fault.filename else told) from None
    except (config.OptionError, StoreError) as fault:
        raise UsageError(str(fault)) from None
    return 0


def spare_collector() -> None:
    """Let Python look for lost cycles less often, and not among what is loaded already: the search takes a tenth of a
    server's time, and all that it finds are five small objects that grpcio loses at each call. For a process that does
    nothing but serve; how often, is in `EASE`."""
    gc.freeze()
    gc.set_threshold(EASE, *gc.get_threshold()[1:])


def _work(command: Callable[..., int], words: Sequence[str], report: workers.Report) -> None:
    """What a worker does: the command, as one of several."""
    try:
        sys.exit(command((*words, "--workers=1", "--reuse-port"), report))
    except UsageError as fault:
        print(f"a2a-grpc: {fault}", file=sys.stderr)
        sys.exit(2)


def _run(main: Coroutine[Any, Any, None]) -> None:
    fast = importlib.import_module("uvloop") if importlib.util.find_spec("uvloop") else asyncio
    with asyncio.Runner(loop_factory=fast.new_event_loop) as runner:
        runner.run(main)
        # Everything is stored; only what an agent left behind, and does not stop, could hold the process now (BL-34).
        last = threading.Timer(LAST_STEPS, os._exit, (0,))
        last.daemon = True
        last.start()
        runner.close()
        last.cancel()


def _addresses(server: Server) -> str:
    """Where everything is, and something to try, in lines that can be copied."""
    agent, options = next(iter(server.agents.values())), server.options
    name, examples = f"The gateway to {getattr(agent, 'url', '')}", ["Hello"]
    if isinstance(agent, Agent):
        name = f"{agent.name} {agent.version}"
        examples = [example for skill in agent.skills for example in skill.examples] + examples
    base = cards.base_url(options, server.http_url, {}) if server.http_url else ""
    lines = [f"{name} is ready"]
    lines += [f"  card      {base}{cards.WELL_KNOWN}"] * bool(base)
    urls = {
        entry.protocol_binding: entry.url
        for entry in cards.interfaces(options, base, server.grpc_address)
        if entry.protocol_version == options.versions[0]
    }
    lines += [f"  {binding:9} {url}" for binding, url in urls.items()]
    if len(server.agents) > 1:
        lines += [f"  agent     {base}/{each}" if base else f"  agent     --tenant {each}" for each in server.agents]
    text = examples[0]
    direct = "" if base else f"grpc{'s' * bool(options.tls_cert)}://{cards.grpc_target(urls[GRPC])[0]}"
    lines.append(f"  try       a2a-grpc call stream {base or direct} {shlex.quote(text)}")
    if base and V1 in options.versions:
        params = _message(text=text, message_id="1")
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": params})
        headers = "-H 'A2A-Version: 1.0' -H 'Content-Type: application/json'"
        lines.append(f"  or        curl {headers} -d {shlex.quote(body)} {urls[JSONRPC]}")
    return "\n".join(lines)


# -- gateway


def _gateway_parser() -> argparse.ArgumentParser:
    parser = _options_parser("a2a-grpc gateway", "Serves an agent that runs somewhere else on every wire.")
    add = parser.add_argument
    add("--upstream", action="append", type=_upstream, required=True, metavar="[NAME=]URL",
        help="base URL, card URL, or host:port of gRPC; several need a name each")  # fmt: skip
    add("--upstream-binding", type=str.lower, choices=BINDING_WORDS, help="wire to use; default: the first in the card")
    add("--upstream-version", choices=VERSIONS, help="protocol version to use; default: the newest in the card")
    add("--upstream-header", action="append", type=_header, default=[], metavar="'NAME: VALUE'",
        help="sent upstream with each call")  # fmt: skip
    add("--upstream-card", metavar="FILE", help="the card, for an upstream that has none at its address")
    add("--forward", action="append", default=[], metavar="NAME",
        help=f"a header of callers that goes on, beside {', '.join(FORWARDED + CREDENTIALS)}")  # fmt: skip
    return parser


def _upstream(text: str) -> tuple[str, str]:
    """Name, "" for none, and address."""
    named = re.fullmatch(r"(?:([\w.-]+)=)?(.+)", text)
    name, url = named.groups() if named else ("", text)
    return name or "", _url(url if "://" in url else f"grpc://{url}")


def _gateway(words: Sequence[str], report: workers.Report = _tell) -> int:
    arguments = vars(_gateway_parser().parse_args(words))
    told = arguments.pop("upstream")
    card, forward = arguments.pop("upstream_card"), arguments.pop("forward")
    settings = {
        "binding": BINDING_WORDS.get(arguments.pop("upstream_binding")),
        "version": arguments.pop("upstream_version"),
        "headers": dict(arguments.pop("upstream_header")),
        "forward": (*FORWARDED, *forward),
    }
    if len({name for name, _ in told}) < len(told):
        raise UsageError("several upstreams need a name each, such as --upstream orders=URL")

    def made() -> Any:
        given = _card(card) if card else None
        found = {name: Upstream(url, card=given, **settings) for name, url in told}
        return found if len(found) > 1 or "" not in found else found[""]

    return _serving(arguments, made, report, (_gateway, words))


def _card(file: str) -> v1.AgentCard:
    """The card in a file. Raises OSError, and UsageError for a file that is none."""
    try:
        return card_up(protojson.loads(Path(file).read_bytes()))
    except A2AError as fault:
        raise UsageError(f"{file} is not a card: {fault.message}") from None


# -- call


class Action(NamedTuple):
    """A row of `ACTIONS`: the operation, the request fields that words fill in order, and those that flags fill."""

    operation: str
    words: tuple[str, ...] = ()
    flags: Mapping[str, str] = {}


_TASK: Final = {"id": "task"}
_HISTORY: Final = {"historyLength": "history_length"}

ACTIONS: Final[Mapping[str, Action]] = {
    "send": Action("SendMessage"),
    "stream": Action("SendStreamingMessage"),
    "get": Action("GetTask", ("id",), _TASK | _HISTORY),
    "list": Action("ListTasks", (), {"contextId": "context", "status": "status"} | _HISTORY),
    "cancel": Action("CancelTask", ("id",), _TASK),
    "subscribe": Action("SubscribeToTask", ("id",), _TASK),
    "push-create": Action("CreateTaskPushNotificationConfig", ("taskId", "url"), {"taskId": "task"}),
    "push-get": Action("GetTaskPushNotificationConfig", ("taskId", "id"), {"taskId": "task"}),
    "push-list": Action("ListTaskPushNotificationConfigs", ("taskId",), {"taskId": "task"}),
    "push-delete": Action("DeleteTaskPushNotificationConfig", ("taskId", "id"), {"taskId": "task"}),
    "extended-card": Action("GetExtendedAgentCard"),
}
"""What `call` can do besides `card`, which only shows the card."""


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as fault:
        raise argparse.ArgumentTypeError(f"not JSON: {fault}") from None


def _url(text: str) -> str:
    try:
        parts = urlsplit(text)
        usable = parts.scheme in SCHEMES and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise argparse.ArgumentTypeError(f"{text!r} is not an address with one of {', '.join(SCHEMES)}")
    return text


def _header(text: str) -> tuple[str, str]:
    name, mark, value = text.partition(":")
    if not (mark and name.strip()):
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form 'Name: value'")
    return name.strip(), value.strip()


def _call_parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="a2a-grpc call",
        description="Calls an agent; prints JSON, one document a line.",
        usage="%(prog)s ACTION URL [WORD ...] [options]",
    )
    add = parser.add_argument
    add("action", choices=("card", *ACTIONS), metavar="ACTION", help=", ".join(("card", *ACTIONS)))
    add("url", type=_url, metavar="URL", help="base URL, card URL, or grpc://host:port")
    add("words", nargs="*", metavar="WORD", help="the text to send, or a task id and what follows it")
    add("--binding", type=str.lower, choices=BINDING_WORDS, help="wire to use; default: the first in the card")
    add("--version", choices=VERSIONS, help="protocol version to use; default: the first in the card")
    add("--header", action="append", type=_header, default=[], metavar="'NAME: VALUE'", help="sent with each call")
    add("--extension", action="append", default=[], metavar="URI", help="extension to ask for")
    add("--task", metavar="ID", help="the task meant, or the task that the message belongs to")
    add("--context", metavar="ID", help="the context to continue or to list")
    add("--tenant", metavar="NAME", help="the tenant to address; default: as the card says")
    add("--data", type=_json, metavar="JSON", help="a data part for the message")
    add("--json", type=_json, default={}, metavar="JSON", help="request members, over those made from other flags")
    add("--status", metavar="STATE", help="list only tasks in this state, such as TASK_STATE_WORKING")
    add("--history-length", type=int, metavar="N", help="most messages of history in the answer")
    add("--no-wait", action="store_true", help="answer as soon as there is a task")
    add("--last-event-id", default="", metavar="N", help="subscribe: go on after this event")
    add("--timeout", type=float, metavar="SECONDS", help="give up on a silent agent; default: never")
    return parser


def _message(
    *, text: str = "", data: Any = None, message_id: str = "", task: str | None = None, context: str | None = None
) -> dict[str, Any]:
    parts = [{"text": text}] * bool(text) + [{"data": data}] * (data is not None)
    message = {"messageId": message_id or uuid.uuid4().hex, "role": "ROLE_USER", "parts": parts}
    return {"message": message | {k: v for k, v in (("taskId", task), ("contextId", context)) if v}}


def _request(arguments: argparse.Namespace) -> Any:
    """The request message that the words and flags describe."""
    action, words, given = ACTIONS[arguments.action], arguments.words, arguments.json
    if not isinstance(given, dict):
        raise UsageError("--json must be an object")
    if arguments.action in ("send", "stream"):
        made = _message(text=" ".join(words), data=arguments.data, task=arguments.task, context=arguments.context)
        if not (made["message"]["parts"] or given):
            raise UsageError("nothing to send: give a text, --data or --json")
        settings = {"historyLength": arguments.history_length, "returnImmediately": arguments.no_wait or None}
        made["configuration"] = {name: value for name, value in settings.items() if value is not None}
    elif len(words) > len(action.words):
        raise UsageError(f"unexpected: {' '.join(words[len(action.words) :])}")
    else:
        flags = {name: getattr(arguments, flag) for name, flag in action.flags.items()}
        made = {name: value for name, value in flags.items() if value is not None}
        made |= dict(zip([name for name in action.words if name not in made], words, strict=False))
    return protojson.decode(METHODS[V1][action.operation].request, made | given)


async def _calls(arguments: argparse.Namespace) -> None:
    request = None if arguments.action == "card" else _request(arguments)
    async with await Client.connect(
        arguments.url,
        binding=BINDING_WORDS.get(arguments.binding),
        version=arguments.version,
        headers=dict(arguments.header),
        extensions=arguments.extension,
        tenant=arguments.tenant,
        timeout=arguments.timeout,
    ) as client:
        if request is None:
            _show(client.card)
            return
        operation = ACTIONS[arguments.action].operation
        if METHODS[V1][operation].streaming:
            async for event in client.events(operation, request, last_event_id=arguments.last_event_id):
                _show(event)
        else:
            _show(await client.call(operation, request))


def _show(document: Any) -> None:
    sys.stdout.buffer.write(protojson.dumps(protojson.encode(document)) + b"\n")
    sys.stdout.buffer.flush()


def _call(words: Sequence[str]) -> int:
    arguments = _call_parser().parse_intermixed_args(words)
    try:
        asyncio.run(_calls(arguments))
    except A2AError as fault:
        print(f"{fault.reason}: {fault.message}", file=sys.stderr)
        for violation in fault.violations[1 if fault.message.startswith(f"{fault.text}: ") else 0 :]:
            print(f"  {violation.field}: {violation.description}", file=sys.stderr)
        return 1
    except TimeoutError:
        print(f"no answer within {arguments.timeout:g} seconds", file=sys.stderr)
        return 1
    except BrokenPipeError:  # whoever reads our lines has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


# -- db


def _db(words: Sequence[str]) -> int:
    """Code 0 when the schema is (now) the one of this release, 1 when it is not."""
    parser = _Parser(prog="a2a-grpc db", description="Looks after the tables of a store.")
    parser.add_argument("action", choices=("upgrade", "check"), help="bring the tables up to date, or only look")
    parser.add_argument("--store", metavar="URL", help="as for serve; default: from the environment")
    parser.add_argument("--config", metavar="FILE", help="TOML file with options")
    arguments = parser.parse_args(words)
    try:
        options = config.read(arguments.config, store=arguments.store)
        found, newest = asyncio.run(schema_of(options, upgrade=arguments.action == "upgrade"))
    except OSError as fault:
        raise UsageError(str(fault)) from None
    except (config.OptionError, StoreError) as fault:
        raise UsageError(str(fault)) from None
    advice = "up to date" if found == newest else "run a2a-grpc db upgrade" if found < newest else "use a newer release"
    print(f"schema {found}, this release needs {newest}: {advice}")
    return int(found != newest)


# -- all

COMMANDS: Final[Mapping[str, tuple[Callable[[Sequence[str]], int], str]]] = {
    "serve": (_serve, "serve an agent on every wire"),
    "gateway": (_gateway, "serve an agent that runs elsewhere on every wire"),
    "call": (_call, "call an agent and print its answers"),
    "db": (_db, "check or upgrade the tables of a store"),
}


def _version() -> str:
    try:
        return metadata.version("a2a-grpc")
    except metadata.PackageNotFoundError:
        return "(not installed)"


def main(words: Sequence[str] | None = None) -> int:
    """Run one command; words: the arguments, default those of the process. The result is the exit code."""
    parser = _Parser(
        prog="a2a-grpc",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="commands:\n" + "\n".join(f"  {name:8}{meaning}" for name, (_, meaning) in COMMANDS.items()),
    )
    parser.add_argument("--version", action="version", version=f"a2a-grpc {_version()}")
    parser.add_argument("command", choices=COMMANDS, metavar="COMMAND")
    parser.add_argument("rest", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    try:
        given = sys.argv[1:] if words is None else words
        if not given:
            parser.print_help(sys.stderr)
            return 2
        arguments = parser.parse_args(given)
        return COMMANDS[arguments.command][0](arguments.rest)
    except UsageError as fault:
        print(f"a2a-grpc: {fault}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
