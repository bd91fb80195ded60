"""A servicer without an engine, for tests of bindings: it keeps the calls it gets and answers what it is told to.

And the ways to ask a REST wire around it, with bytes alone.
"""

import json
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

from a2a_stubs import v1, v1_grpc

from a2a_grpc.bindings import sse
from a2a_grpc.bindings.rest import Rest
from a2a_grpc.bindings.wire import Answer, HttpReply, HttpRequest, HttpStream
from a2a_grpc.call import Call
from a2a_grpc.config import Options


def task(ident: str = "t1", state: Any = v1.TASK_STATE_WORKING) -> v1.Task:
    """A small task of context c1."""
    return v1.Task(id=ident, context_id="c1", status=v1.TaskStatus(state=state))


def status(state: Any, ident: str = "t1") -> v1.StreamResponse:
    """A status event of that task."""
    update = v1.TaskStatusUpdateEvent(task_id=ident, context_id="c1", status=v1.TaskStatus(state=state))
    return v1.StreamResponse(status_update=update)


class FakeService:
    """The eleven methods, computed.

    calls: what came in, `(request, call)`. answers: by method name, else an empty message of the right type.
    events: what a stream yields, numbered from 1. fault: raised by unary methods at once, by streams after the events.
    wait: awaited after the events of a stream. closed: streams that have ended. Requested extensions are all activated.
    """

    def __init__(self) -> None:
        self.calls: list[tuple[Any, Call]] = []
        self.answers: dict[str, Any] = {
            "SendMessage": v1.SendMessageResponse(task=task()),
            "GetTask": task(),
            "CancelTask": task(state=v1.TASK_STATE_CANCELED),
            "ListTasks": v1.ListTasksResponse(tasks=[task()], page_size=50, total_size=1),
        }
        self.events = [v1.StreamResponse(task=task()), status(v1.TASK_STATE_COMPLETED)]
        self.fault: BaseException | None = None
        self.wait: Any = None
        self.closed = 0
        for method in v1_grpc.METHODS:
            setattr(self, method.name, partial(self._stream if method.server_streaming else self._one, method))

    def _seen(self, request: Any, call: Call) -> None:
        self.calls.append((request, call))
        call.activated = call.extensions

    async def _one(self, method: Any, request: Any, call: Call) -> Any:
        self._seen(request, call)
        if self.fault:
            raise self.fault
        return self.answers.get(method.name) or method.output()

    async def _stream(self, method: Any, request: Any, call: Call) -> AsyncIterator[Any]:
        self._seen(request, call)
        try:
            for call.position, event in enumerate(self.events, 1):
                yield event
            if self.wait is not None:
                await self.wait
            if self.fault:
                raise self.fault
        finally:
            self.closed += 1


async def ask_rest(
    service: FakeService,
    verb: str,
    target: str,
    body: Any = None,
    *,
    options: Options | None = None,
    **headers: str,
) -> Answer:
    """Send a request line and an object (or raw bytes) to a REST wire; headers with _ for -."""
    path, _, query = target.partition("?")
    raw = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    wire = Rest(service, options or Options())
    return await wire.answer(HttpRequest(verb, path, query, named, raw))


async def rest_value(*request: Any, status: int = 200, **more: Any) -> Any:
    """The JSON of a plain REST reply with that status."""
    reply = await ask_rest(*request, **more)
    assert isinstance(reply, HttpReply) and reply.status == status, reply
    return json.loads(reply.body)


async def rest_events(*request: Any, **more: Any) -> list[tuple[str, Any]]:
    """Id and JSON of each event of a REST stream, which is read to its end."""
    reply = await ask_rest(*request, **more)
    assert isinstance(reply, HttpStream) and reply.status == 200
    assert reply.headers["content-type"] == "text/event-stream"
    return [(event.id, json.loads(event.data)) for event in await events_of(reply)]


async def events_of(reply: HttpStream) -> list[sse.Event]:
    """The events of a stream, which is read to its end and closed."""
    parser = sse.Parser()
    events = [event for chunk in [chunk async for chunk in reply.chunks] for event in parser.feed(chunk)]
    await reply.chunks.aclose()
    return events


async def first_call(service: FakeService, reply: Answer) -> tuple[Any, Call]:
    """What the service was first called with; a stream is closed."""
    if isinstance(reply, HttpStream):
        await reply.chunks.aclose()
    return service.calls[0]
