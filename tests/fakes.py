"""A servicer without an engine, for tests of bindings: it keeps the calls it gets and answers what it is told to."""

from collections.abc import AsyncIterator
from functools import partial
from typing import Any

from a2a_stubs import v1, v1_grpc

from a2a_grpc.call import Call


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
