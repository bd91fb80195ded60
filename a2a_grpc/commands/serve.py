"""`a2a-grpc serve`: an agent of a module, on every wire.

Laws: options and the agent's name become a server that runs until it is stopped; serving itself is server.py's. Another
command that serves gives `serving` what it serves.
"""

import argparse
import asyncio
import gc
import importlib
import importlib.util
import json
import os
import shlex
import shutil
import sys
import threading
import traceback
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, NamedTuple, cast

from a2a_grpc import cards, config, demo, telemetry_logs, workers
from a2a_grpc.adapters.process import MOST_BYTES, process
from a2a_grpc.agent import Agent
from a2a_grpc.call import GRPC, JSONRPC, V1
from a2a_grpc.commands.call import ACTIONS
from a2a_grpc.commands.words import UsageError, mebibytes_word, message_params, options_parser, time_word
from a2a_grpc.errors import scrubbed
from a2a_grpc.gateway import Upstream
from a2a_grpc.opening import part
from a2a_grpc.python310_asyncio import Runner
from a2a_grpc.server import Server
from a2a_grpc.tasks.store import StoreError

LAST_STEPS: Final = 0.5
"""Seconds that tasks and threads of an agent have to end when the server has stopped."""

EASE: Final = 10_000
"""By how many the objects that cycles are made of grow before Python looks for lost ones; its own default is 700."""


EXEC: Final = {"lines": "exec_lines", "most_bytes": "exec_output", "most_seconds": "exec_seconds"}
"""What flags say of the program of `--exec`, by the names that `process` has for it."""


def parser() -> argparse.ArgumentParser:
    """What follows `a2a-grpc serve`."""
    made = options_parser("a2a-grpc serve", "Serves an agent on every wire.")
    made.add_argument("target", nargs="?", metavar="MODULE:AGENT", help="the agent; default: a demo agent")
    add = made.add_argument
    add("--exec", metavar="COMMAND", help="serve a program: each message goes to its input, its output is the answer")
    add("--exec-lines", action="store_true", help="the program of --exec speaks JSON lines")
    add("--exec-output", type=mebibytes_word, default=MOST_BYTES, metavar="MIB",
        help="MiB that the program of --exec may print in one turn; 0: any number; default: 16")  # fmt: skip
    add("--exec-seconds", type=time_word, default=0.0, metavar="SECONDS",
        help="how long the program of --exec may run for one turn; default: 0, any time")  # fmt: skip
    return made


def program(command: str, **settings: Any) -> Agent:
    """An agent that is a program, named after it. settings: of `process`. Raises UsageError where there is no such
    program."""
    try:
        words = shlex.split(command)
    except ValueError as fault:
        raise UsageError(f"--exec: {fault}") from None
    if not words or shutil.which(words[0]) is None:
        raise UsageError(f"--exec: there is no program {words[0] if words else command!r}")
    name = os.path.basename(words[0])
    agent = Agent(name=name, description=f"Runs {name}.", version="1.0.0", skills=[])
    agent.handle(process(words, **settings))
    return agent


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
        raise UsageError(f"{module} cannot be imported: {type(fault).__name__}: {fault}{_place(fault)}") from None
    if not _served(found):
        there = [key for key, value in vars(sys.modules[module]).items() if _served(value)]
        raise UsageError(f"{target} is not an Agent; {module} has: {', '.join(there) or 'none'}")
    return cast(Agent | Mapping[str, Agent], found)


def _served(found: Any) -> bool:
    """Whether it is an agent, or a mapping of names to agents."""
    several = isinstance(found, Mapping) and found and all(isinstance(agent, Agent) for agent in found.values())
    return isinstance(found, Agent) or bool(several)


def _place(fault: Exception) -> str:
    """The last line of an imported module that led to a fault and is neither this package's nor the import's own; ""
    where there is none, as for a SyntaxError, whose text has its place."""
    own = (os.path.dirname(config.__file__), importlib.__file__, "<frozen importlib")
    theirs = [each for each in traceback.extract_tb(fault.__traceback__) if not each.filename.startswith(own)]
    return f" ({os.path.basename(theirs[-1].filename)}, line {theirs[-1].lineno})" if theirs else ""


def tell(text: str) -> None:
    """Print lines for the user at once."""
    print(text, flush=True)


class Ready(NamedTuple):
    """What the words of a command say. arguments: options as given; make: makes what is served; keeps: whether that
    keeps anything in the store."""

    arguments: dict[str, Any]
    make: Callable[[], Any]
    keeps: bool = True


def ready(words: Sequence[str]) -> Ready:
    """What is to be served."""
    arguments = vars(parser().parse_args(words))
    target, command = arguments.pop("target"), arguments.pop("exec")
    settings = {name: arguments.pop(flag) for name, flag in EXEC.items()}
    if target and command:
        raise UsageError("--exec stands in place of MODULE:AGENT")
    if command:
        return Ready(arguments, lambda: program(command, **settings))
    return Ready(arguments, lambda: load_target(target) if target else demo.agent)


def run(words: Sequence[str], report: workers.Report = tell) -> int:
    """Serve until stopped; report: takes the lines that say where everything is."""
    return serving(ready(words), report, (run, words))


def serving(found: Ready, report: workers.Report, command: tuple[Any, Sequence[str]]) -> int:
    """Run a server until it is stopped. report: takes the addresses; command: what a worker is to do, without being
    told that it is one."""
    with mistakes():
        options = _options(found.arguments)
        if not (options.grpc or options.http):
            raise UsageError("both grpc and http are switched off: there is nothing to serve on")
        if options.workers > 1:
            telemetry_logs.begin(options)
            workers.check(options, found.keeps)
            return workers.run(options.workers, _work, command, report)
        if options.engine == "envoy":
            return int(part("envoy", "envoy").run(options, command, report))
        server = made(found)
        _until_stopped(server.serve(lambda: report(addresses(server))))
    return 0


def made(found: Ready) -> Server:
    """The server, in a process that does nothing else."""
    options = _options(found.arguments)
    telemetry_logs.begin(options)
    server = Server(found.make(), options)
    spare_collector()
    return server


def _options(arguments: dict[str, Any]) -> config.Options:
    return config.read(arguments["config"], **{name: each for name, each in arguments.items() if name != "config"})


@contextmanager
def mistakes() -> Iterator[None]:
    """Tell as a UsageError what the user can mend."""
    try:
        yield
    except OSError as fault:
        told = fault.strerror or str(fault)
        raise UsageError(f"{told}: {fault.filename}" if fault.filename else told) from None
    except (config.OptionError, StoreError) as fault:
        raise UsageError(str(fault)) from None


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


def _until_stopped(main: Coroutine[Any, Any, None]) -> None:
    fast = importlib.import_module("uvloop") if importlib.util.find_spec("uvloop") else asyncio
    with Runner(loop_factory=fast.new_event_loop) as runner:
        runner.run(main)
        # Everything is stored; only what an agent left behind, and does not stop, could hold the process now (BL-34).
        last = threading.Timer(LAST_STEPS, os._exit, (0,))
        last.daemon = True
        last.start()
        runner.close()
        last.cancel()


def addresses(server: Server) -> str:
    """Where everything is, and something to try, in lines that can be copied."""
    agent, options = next(iter(server.agents.values())), server.options
    upstreams = [scrubbed(each.url) for each in server.agents.values() if isinstance(each, Upstream)]
    name, examples = f"The gateway to {', '.join(upstreams)}", ["Hello"]
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
    lines += [f"  admin     {place}" for place in server.admin.addresses]
    text = examples[0]
    direct = "" if base else f"grpc{'s' * bool(options.tls_cert)}://{cards.grpc_target(urls[GRPC])[0]}"
    lines.append(f"  try       a2a-grpc call stream {base or direct} {shlex.quote(text)}")
    if base and V1 in options.versions:
        params = message_params(text=text, message_id="1")
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": ACTIONS["send"].operation, "params": params})
        headers = "-H 'A2A-Version: 1.0' -H 'Content-Type: application/json'"
        lines.append(f"  or        curl {headers} -d {shlex.quote(body)} {urls[JSONRPC]}")
    return "\n".join(lines)
