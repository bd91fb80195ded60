"""`a2a-grpc call`: one operation of an agent somewhere.

Laws: words become a request message through a table; the client does the rest. Answers go to stdout, one JSON document
a line; an A2A error goes to stderr with its reason, code 1.
"""

import argparse
import asyncio
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from a2a_grpc import protojson
from a2a_grpc.call import V1, VERSIONS
from a2a_grpc.client import Client
from a2a_grpc.commands.words import BINDING_WORDS, Parser, UsageError, header_word, json_word, message_params, url_word
from a2a_grpc.errors import A2AError
from a2a_grpc.methods import METHODS


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


def parser() -> argparse.ArgumentParser:
    """What follows `a2a-grpc call`."""
    made = Parser(
        prog="a2a-grpc call",
        description="Calls an agent; prints JSON, one document a line.",
        usage="%(prog)s ACTION URL [WORD ...] [options]",
    )
    add = made.add_argument
    add("action", choices=("card", *ACTIONS), metavar="ACTION", help=", ".join(("card", *ACTIONS)))
    add("url", type=url_word, metavar="URL", help="base URL, card URL, or grpc://host:port")
    add("words", nargs="*", metavar="WORD", help="the text to send, or a task id and what follows it")
    add("--binding", type=str.lower, choices=BINDING_WORDS, help="wire to use; default: the first in the card")
    add("--version", choices=VERSIONS, help="protocol version to use; default: the newest in the card")
    add("--header", action="append", type=header_word, default=[], metavar="'NAME: VALUE'", help="sent with each call")
    add("--extension", action="append", default=[], metavar="URI", help="extension to ask for")
    add("--task", metavar="ID", help="the task meant, or the task that the message belongs to")
    add("--context", metavar="ID", help="the context to continue or to list")
    add("--tenant", metavar="NAME", help="the tenant to address; default: as the card says")
    add("--data", type=json_word, metavar="JSON", help="a data part for the message")
    add("--json", type=json_word, default={}, metavar="JSON", help="request members, over those made from other flags")
    add("--status", metavar="STATE", help="list only tasks in this state, such as TASK_STATE_WORKING")
    add("--history-length", type=int, metavar="N", help="most messages of history in the answer")
    add("--no-wait", action="store_true", help="answer as soon as there is a task")
    add("--last-event-id", default="", metavar="N", help="subscribe: go on after this event")
    add("--timeout", type=float, metavar="SECONDS", help="give up on a silent agent; default: never")
    return made


def _request(arguments: argparse.Namespace) -> Any:
    """The request message that the words and flags describe."""
    action, words, given = ACTIONS[arguments.action], arguments.words, arguments.json
    if not isinstance(given, dict):
        raise UsageError("--json must be an object")
    if arguments.action in ("send", "stream"):
        made = message_params(text=" ".join(words), data=arguments.data, task=arguments.task, context=arguments.context)
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


def run(words: Sequence[str]) -> int:
    """Call once and print what comes."""
    arguments = parser().parse_intermixed_args(words)
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
