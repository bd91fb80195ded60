"""How costs grow: the server's CPU time for one unit of work, as there is more and more of it.

Laws: a row is a kind of size, said once; each point is measured on the same server, the smallest first, and is the best
of a few tries, for what disturbs only makes it dearer. A cost that grows with what an answer holds is told for each
part of it. All over JSON-RPC, where the wire itself weighs least.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Final, NamedTuple

from a2a_stubs import v1

from a2a_grpc.bindings import jsonrpc
from a2a_grpc.call import JSONRPC
from tests.bench.connections import Http1, http1
from tests.bench.process import Process, cores
from tests.bench.readers import CHUNKS, connect, held, said, started

TRIES: Final = 3
BENT: Final = 1.5
"""A curve bends upwards when a unit costs so many times as much at the end as at its cheapest."""
AT_LEAST: Final = 200
"""Units that are measured at a time."""


class Curve(NamedTuple):
    """What grows, what the cost of one unit is, and how many of the first there are in turn; measure: CPU seconds and
    units of a server, given how many."""

    grows: str
    unit: str
    sizes: tuple[int, ...]
    measure: Callable[[Process, int], Awaitable[tuple[float, int]]]


async def _calls(server: Process, operation: str, request: Any, times: int, *, stream: bool = False) -> float:
    """CPU seconds of so many calls, one after the other."""
    host = server.host(JSONRPC)
    connection = await connect(Http1, host)
    sent = http1("POST", host, "/", *jsonrpc.request(operation, request, 1))
    body = await started(connection, sent)
    if not stream and b'"error"' in body[:200]:
        raise RuntimeError(f"{operation} was answered with {body[:300]!r}")
    before = server.cpu()
    for _ in range(times):
        await started(connection, sent)
    spent = server.cpu() - before
    connection.transport.abort()
    return spent


def _message(text: str, parts: int = 1) -> v1.SendMessageRequest:
    message = v1.Message(message_id="m", role=v1.ROLE_USER, parts=[v1.Part(text=text)] * parts)
    return v1.SendMessageRequest(message=message)


async def _parts(server: Process, size: int) -> tuple[float, int]:
    times = max(1, AT_LEAST // size)
    return await _calls(server, "SendMessage", _message("reply", size), times), times * size


async def _artifacts(server: Process, size: int) -> tuple[float, int]:
    times = max(1, AT_LEAST // size)
    return await _calls(server, "SendMessage", _message(f"many {size}"), times), times * size


async def _events(server: Process, size: int) -> tuple[float, int]:
    times = max(1, 1000 // size)
    spent = await _calls(server, "SendStreamingMessage", _message(f"chunks {size}"), times, stream=True)
    return spent, times * size


async def _history(server: Process, size: int) -> tuple[float, int]:
    """The turns of one task from the first up to that number, of which the last ones are measured."""
    host = server.host(JSONRPC)
    task_id = (await said(host, "ask")).task.id
    last = min(size, 50)
    before = 0.0
    for number in range(size):
        if number == size - last:
            before = server.cpu()
        await _answered(host, task_id)
    return server.cpu() - before, last


async def _answered(host: str, task_id: str) -> None:
    request = _message("ask")
    request.message.task_id = task_id
    request.configuration.history_length = 0
    connection = await connect(Http1, host)
    await started(connection, http1("POST", host, "/", *jsonrpc.request("SendMessage", request, 1)))
    connection.transport.abort()


def _stored(operation: str, request: Any) -> Callable[[Process, int], Awaitable[tuple[float, int]]]:
    async def measure(server: Process, size: int) -> tuple[float, int]:
        asked = v1.ListTasksRequest(page_size=1)
        host = server.host(JSONRPC)
        connection = await connect(Http1, host)
        body = await started(connection, http1("POST", host, "/", *jsonrpc.request("ListTasks", asked, 1)))
        connection.transport.abort()
        missing = size - jsonrpc.result("ListTasks", body).total_size  # type: ignore[attr-defined]
        if missing > 0:
            await _calls(server, "SendMessage", _message("echo"), missing - 1)
        return await _calls(server, operation, request, AT_LEAST), AT_LEAST

    return measure


async def _readers(server: Process, size: int) -> tuple[float, int]:
    found, _ = await held(server, JSONRPC, size)
    events = size * (CHUNKS + 1)
    return found["server_us"] * events / 1e6, events


CURVES: Final = (
    Curve("chunks of an artifact", "chunk", (100, 1000, 10_000), _events),
    Curve("parts of a message", "part", (10, 100, 1000), _parts),
    Curve("artifacts of a task", "artifact", (10, 100, 500), _artifacts),
    Curve("messages in a task's history", "turn", (50, 200, 800), _history),
    Curve("tasks stored", "echo", (100, 1000, 10_000), _stored("SendMessage", _message("echo"))),
    Curve("tasks stored", "page of 50", (100, 1000, 10_000), _stored("ListTasks", v1.ListTasksRequest(page_size=50))),
    Curve("readers of a task", "event for one", (10, 100, 1000), _readers),
)


async def about_curves() -> list[dict[str, Any]]:
    """Measure every curve: CPU us of a unit at each size, and by how much the last is dearer than the cheapest."""
    found = []
    for curve in CURVES:
        server = Process(cores()[0], "memory")
        try:
            costs = []
            for size in curve.sizes:
                tries = [await curve.measure(server, size) for _ in range(TRIES)]
                costs.append(min(spent / units for spent, units in tries) * 1e6)
        finally:
            server.stop()
        bend = costs[-1] / min(costs)
        found.append({"grows": curve.grows, "unit": curve.unit, "sizes": curve.sizes, "server_us": costs, "bend": bend})
    return found
