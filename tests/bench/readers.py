"""A thousand readers of one task: what an open stream holds of memory, and what an event costs that goes to all.

Laws: a server of its own for each wire, since a heap that has been big hides the memory of new streams; the bare one
answers with what ours has said. Linux only.
"""

import asyncio
import base64
import json
import resource
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final, NamedTuple

from a2a_stubs import v1, v1_grpc

from a2a_grpc.bindings import jsonrpc
from a2a_grpc.call import GRPC, JSONRPC
from tests.bench.connections import Http1, Http2, grpc_request, http1
from tests.bench.load import answers_in
from tests.bench.plan import Load
from tests.bench.process import Process, cores
from tests.bench.servers import RELEASE

READERS: Final = 1000
CHUNKS: Final = 20
CALLS_PER_CONNECTION: Final = 50
FOLLOW: Final = "SubscribeToTask"
PLACE: Final = "/readers"


class Goal(NamedTuple):
    """The least share of the bare server's events in a second, and the most KiB that a stream may hold."""

    share: float
    kib: int


GOALS: Final = {GRPC: Goal(1.0, 25), JSONRPC: Goal(0.45, 16)}


def memory_of(pid: int) -> int:
    """Bytes that a process holds in memory."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize()


async def connect(kind: type[Any], host: str) -> Any:
    """A connection."""
    name, _, port = host.rpartition(":")
    return (await asyncio.get_running_loop().create_connection(kind, name, int(port)))[1]


def started(connection: Any, request: Any) -> "asyncio.Future[bytes]":
    """The end of a call that is begun now."""
    over: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    def done(good: bool, body: bytes) -> None:
        if not over.done():
            over.set_result(body) if good else over.set_exception(RuntimeError(f"a call failed: {body[:200]!r}"))

    connection.call(request, done)
    return over


async def asked(host: str, request: bytes) -> bytes:
    """The answer to a request, on a connection of its own."""
    connection = await connect(Http1, host)
    body = await started(connection, request)
    connection.transport.abort()
    return body


async def said(host: str, text: str, task_id: str = "") -> Any:
    """The answer to a message, as soon as there is one."""
    message = v1.Message(message_id="m", role=v1.ROLE_USER, parts=[v1.Part(text=text)], task_id=task_id)
    request = v1.SendMessageRequest(message=message)
    request.configuration.return_immediately = True
    body = await asked(host, http1("POST", host, "/", *jsonrpc.request("SendMessage", request, 1)))
    return jsonrpc.result("SendMessage", body)


async def readers_of(
    server: Process, wire: str, task_id: str, path: str = "", number: int = READERS
) -> tuple[list[Any], list["asyncio.Future[bytes]"]]:
    """Connections on which so many streams are open. path: instead of the operation's own."""
    wanted = v1.SubscribeToTaskRequest(id=task_id)
    host = server.host(wire)
    if wire == GRPC:
        own = next(row.path for row in v1_grpc.METHODS if row.name == FOLLOW)
        made = [await connect(Http2, host) for _ in range(-(-number // CALLS_PER_CONNECTION))]
        request: Any = grpc_request(host, path or own, {"a2a-version": "1.0"}, wanted.SerializeToString())
    else:
        made = [await connect(Http1, host) for _ in range(number)]
        request = http1("POST", host, path or "/", *jsonrpc.request(FOLLOW, wanted, 1))
    ends = [started(made[each % len(made)], request) for each in range(number)]
    while sum(connection.answering for connection in made) < number:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    return made, ends


async def measured(
    server: Process,
    wire: str,
    release: Callable[[], Awaitable[Any]],
    task_id: str,
    path: str = "",
    number: int = READERS,
) -> tuple[dict[str, Any], bytes]:
    """What readers of a held task cost, and what each was told. release: lets the task go on."""
    before = memory_of(server.pid)
    made, ends = await readers_of(server, wire, task_id, path, number)
    each = (memory_of(server.pid) - before) / number / 1024
    cpu, begun = server.cpu(), time.perf_counter()
    await release()
    told = await asyncio.gather(*ends)
    events = number * (CHUNKS + 1)
    rate, cost = events / (time.perf_counter() - begun), (server.cpu() - cpu) * 1e6 / events
    for connection in made:
        connection.transport.abort()
    return {"kib": each, "rate": rate, "server_us": cost}, told[0]


async def held(server: Process, wire: str, number: int = READERS) -> tuple[dict[str, Any], bytes]:
    """`measured`, on our own server."""
    host = server.host(JSONRPC)
    task_id = (await said(host, f"hold {CHUNKS}")).task.id
    return await measured(server, wire, lambda: said(host, f"go {task_id}"), task_id, number=number)


async def _bare(folder: Path, wire: str, told: bytes, number: int) -> dict[str, Any]:
    """`measured`, on a bare server that tells the same. folder: for a file that is not kept."""
    row = {
        "operation": FOLLOW if wire == GRPC else "",
        "stream": True,
        "held": True,
        "media": "text/event-stream",
        "answers": [base64.b64encode(answer).decode() for answer in answers_in(Load("", "stream 200", wire), told)],
    }
    (folder / "readers.json").write_text(json.dumps({PLACE: row}))
    server = Process(cores()[0], "bare", str(folder / "readers.json"))
    host = server.host(JSONRPC)
    try:
        release = http1("GET", host, RELEASE, {}, b"")
        return (await measured(server, wire, lambda: asked(host, release), "t", PLACE, number))[0]
    finally:
        server.stop()


async def about_readers(folder: Path, number: int = READERS) -> list[dict[str, Any]]:
    """Measure ours and the bare server on each wire. folder: for a file that is not kept."""
    found = []
    for wire, goal in GOALS.items():
        server = Process(cores()[0], "memory")
        try:
            ours, told = await held(server, wire, number)
        finally:
            server.stop()
        bare = await _bare(folder, wire, told, number)
        base = {f"base_{name}": value for name, value in bare.items()}
        share = {"ratio": ours["rate"] / bare["rate"], "goal": goal.share, "kib_goal": goal.kib}
        found.append({"wire": wire, "readers": number, **ours, **base, **share})
    return found
