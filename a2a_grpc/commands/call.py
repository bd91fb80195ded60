"""`a2a-grpc call`: one operation of an agent somewhere.

Laws: words become a request message through a table; the client does the rest. Answers go to stdout, to programs as one
JSON document a line, to a person at a terminal as text; an A2A error goes to stderr with its reason, code 1.
"""

import argparse
import asyncio
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import Any, Final, NamedTuple

from a2a_stubs import v1
from google.protobuf.message import Message

from a2a_grpc import protojson
from a2a_grpc.call import V1
from a2a_grpc.client import Client
from a2a_grpc.client_streams import settled
from a2a_grpc.commands.reaching import interface_flags, settings
from a2a_grpc.commands.telling import Teller, plain
from a2a_grpc.commands.words import (
    ABSENT,
    Parser,
    UsageError,
    file_word,
    json_word,
    message_params,
    unknown,
    url_word,
    value_word,
)
from a2a_grpc.errors import A2AError
from a2a_grpc.methods import METHODS
from a2a_grpc.tasks.state import state_of


class Action(NamedTuple):
    """A row of `ACTIONS`: the operation, the request fields that words fill in order, and those that flags fill."""

    operation: str
    words: tuple[str, ...] = ()
    flags: Mapping[str, str] = {}


_TASK: Final = {"id": "task"}
_HISTORY: Final = {"historyLength": "history_length"}
_LIST: Final = {"contextId": "context", "status": "status", "pageSize": "page_size", "pageToken": "page_token"}

ACTIONS: Final[Mapping[str, Action]] = {
    "send": Action("SendMessage"),
    "stream": Action("SendStreamingMessage"),
    "get": Action("GetTask", ("id",), _TASK | _HISTORY),
    "list": Action("ListTasks", (), _LIST | _HISTORY),
    "cancel": Action("CancelTask", ("id",), _TASK),
    "subscribe": Action("SubscribeToTask", ("id",), _TASK),
    "push-create": Action("CreateTaskPushNotificationConfig", ("taskId", "url"), {"taskId": "task"}),
    "push-get": Action("GetTaskPushNotificationConfig", ("taskId", "id"), {"taskId": "task"}),
    "push-list": Action("ListTaskPushNotificationConfigs", ("taskId",), {"taskId": "task"}),
    "push-delete": Action("DeleteTaskPushNotificationConfig", ("taskId", "id"), {"taskId": "task"}),
    "extended-card": Action("GetExtendedAgentCard"),
}
"""What `call` can do besides `card`, which only shows the card."""


OUTCOMES: Final[Mapping[int, int]] = {
    v1.TASK_STATE_FAILED: 3,
    v1.TASK_STATE_CANCELED: 3,
    v1.TASK_STATE_REJECTED: 3,
    v1.TASK_STATE_INPUT_REQUIRED: 4,
    v1.TASK_STATE_AUTH_REQUIRED: 4,
}
"""Exit codes by the last state of a task, for `--outcome`; others are 0."""


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
    add("--task", metavar="ID", help="the task meant, or the task that the message belongs to")
    add("--context", metavar="ID", help="the context to continue or to list")
    add("--data", type=json_word, default=ABSENT, metavar="JSON", help="a data part for the message")
    add("--file", action="append", type=file_word, default=[], metavar="PATH", help="a file to send in the message")
    add("--json", type=json_word, default={}, metavar="JSON", help="request members, over those made from other flags")
    add("--status", metavar="STATE", help="list only tasks in this state, such as TASK_STATE_WORKING")
    add("--page-size", type=int, metavar="N", help="list: most tasks in the answer")
    add("--page-token", metavar="TOKEN", help="list: go on from here, as the page before says")
    add("--history-length", type=int, metavar="N", help="most messages of history in the answer")
    add("--no-wait", action="store_true", help="answer as soon as there is a task")
    add("--last-event-id", type=value_word, default="", metavar="N", help="subscribe: go on after this event")
    add("--follow", action="store_true", help="until the task ends or asks, over any number of connections")
    add("--output", choices=("text", "json"), help="for people or programs; default: text on a terminal, else json")
    add("--outcome", action="store_true", help="end with code 3 if the task failed, and 4 if it waits for an answer")
    interface_flags(made)
    return made


def _request(arguments: argparse.Namespace) -> Any:
    """The request message that the words and flags describe."""
    action, words, given = ACTIONS[arguments.action], arguments.words, arguments.json
    if not isinstance(given, dict):
        raise UsageError("--json must be an object")
    if odd := list(unknown(METHODS[V1][action.operation].request.DESCRIPTOR, given)):
        raise UsageError(f"--json: the request has no member {', '.join(odd)}")
    if arguments.action in ("send", "stream"):
        made = message_params(
            text=" ".join(words),
            data=arguments.data,
            files=arguments.file,
            task=arguments.task,
            context=arguments.context,
        )
        if not (made["message"]["parts"] or given):
            raise UsageError("nothing to send: give a text, --data, --file or --json")
        settings = {"historyLength": arguments.history_length, "returnImmediately": arguments.no_wait or None}
        made["configuration"] = {name: value for name, value in settings.items() if value is not None}
    elif len(words) > len(action.words):
        raise UsageError(f"unexpected: {' '.join(words[len(action.words) :])}")
    else:
        flags = {name: getattr(arguments, flag) for name, flag in action.flags.items()}
        made = {name: value for name, value in flags.items() if value is not None}
        made |= dict(zip([name for name in action.words if name not in made], words, strict=False))
    return protojson.decode(METHODS[V1][action.operation].request, made | given)


async def _answers(client: Client, arguments: argparse.Namespace, request: Any) -> AsyncGenerator[Message, None]:
    """What the agent answers."""
    operation, last = ACTIONS[arguments.action].operation, arguments.last_event_id
    if not METHODS[V1][operation].streaming:
        answer = await client.call(operation, request)
        task = answer.task if isinstance(answer, v1.SendMessageResponse) and answer.HasField("task") else answer
        if arguments.follow and isinstance(task, v1.Task) and not settled(task):
            answer = await client.wait(task)
        yield answer
        return
    events = client.events(operation, request, last_event_id=last)
    if arguments.follow and isinstance(request, v1.SendMessageRequest):
        events = client.stream(request)
    elif arguments.follow:
        events = client.subscribe(request.id, last)
    async with aclosing(events):
        async for event in events:
            yield event


async def _calls(arguments: argparse.Namespace) -> int:
    """Call, show what comes, and say with which code to end."""
    request = None if arguments.action == "card" else _request(arguments)
    told = arguments.output or ("text" if sys.stdout.isatty() else "json")
    teller = Teller(sys.stdout, sys.stderr, live=sys.stdout.isatty() and sys.stderr.isatty())
    show, state = (teller.told if told == "text" else _show), 0
    async with await Client.connect(arguments.url, **settings(arguments)) as client:
        if request is None:
            if client.card is None:
                raise UsageError(f"{arguments.url} has no card: give an http address")
            show(client.card)
            return 0
        async with aclosing(_answers(client, arguments, request)) as answers:
            try:
                async for answer in answers:
                    show(answer)
                    state = _state(answer) or state
            finally:
                teller.end()
    return OUTCOMES.get(state, 0) if arguments.outcome else 0


def _state(answer: Any) -> int:
    """The state that an answer leaves its task in, 0 if it does not say."""
    if isinstance(answer, v1.SendMessageResponse):
        answer = answer.task
    return (
        answer.status.state
        if isinstance(answer, v1.Task)
        else (state_of(answer) if isinstance(answer, v1.StreamResponse) else 0)
    )


def _show(document: Any) -> None:
    sys.stdout.buffer.write(protojson.dumps(protojson.encode(document)) + b"\n")
    sys.stdout.buffer.flush()


def run(words: Sequence[str]) -> int:
    """Call once and print what comes."""
    arguments = parser().parse_intermixed_args(words)
    try:
        return asyncio.run(_calls(arguments))
    except A2AError as fault:
        print(plain(f"{fault.reason}: {fault.message}"), file=sys.stderr)
        for violation in fault.violations[1 if fault.message.startswith(f"{fault.text}: ") else 0 :]:
            print(plain(f"  {violation.field}: {violation.description}"), file=sys.stderr)
        return 1
    except TimeoutError as fault:
        print(str(fault) or f"no answer within {arguments.timeout:g} seconds", file=sys.stderr)
        return 1
