"""A thousand readers of one task: what an open stream holds of memory, and what an event costs that goes to all.

Laws: a server of its own for each wire, since a heap that has been big hides the memory of new streams. Linux only.
"""

import asyncio
import resource
import time
from pathlib import Path
from typing import Any, Final

from a2a_stubs import v1, v1_grpc

from a2a_grpc.bindings import jsonrpc
from a2a_grpc.call import GRPC, JSONRPC
from tests.bench.connections import Http1, Http2, grpc_request, http1
from tests.bench.process import Process, cores

READERS: Final = 1000
CHUNKS: Final = 20
CALLS_PER_CONNECTION: Final = 50


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


async def said(host: str, text: str) -> Any:
    """The answer to a message, as soon as there is one."""
    request = v1.SendMessageRequest(message=v1.Message(message_id="m", role=v1.ROLE_USER, parts=[v1.Part(text=text)]))
    request.configuration.return_immediately = True
    connection = await connect(Http1, host)
    body = await started(connection, http1("POST", host, "/", *jsonrpc.request("SendMessage", request, 1)))
    connection.transport.abort()
    return jsonrpc.result("SendMessage", body)


async def readers_of(server: Process, wire: str, task_id: str) -> tuple[list[Any], list["asyncio.Future[bytes]"]]:
    """Connections on which a thousand streams are open."""
    asked = v1.SubscribeToTaskRequest(id=task_id)
    host = server.host(wire)
    if wire == GRPC:
        path = next(row.path for row in v1_grpc.METHODS if row.name == "SubscribeToTask")
        made = [await connect(Http2, host) for _ in range(READERS // CALLS_PER_CONNECTION)]
        request: Any = grpc_request(host, path, {"a2a-version": "1.0"}, asked.SerializeToString())
    else:
        made = [await connect(Http1, host) for _ in range(READERS)]
        request = http1("POST", host, "/", *jsonrpc.request("SubscribeToTask", asked, 1))
    ends = [started(made[number % len(made)], request) for number in range(READERS)]
    while sum(connection.answering for connection in made) < READERS:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    return made, ends


async def about_readers() -> list[dict[str, Any]]:
    """Measure; prints a row for each wire."""
    found = []
    print("", "| readers | wire | KiB a stream | events/s | CPU us |", "| --- | --- | ---: | ---: | ---: |", sep="\n")
    for wire in (GRPC, JSONRPC):
        server = Process(cores()[0], "memory")
        try:
            task_id = (await said(server.host(JSONRPC), f"hold {CHUNKS}")).task.id
            before = memory_of(server.pid)
            made, ends = await readers_of(server, wire, task_id)
            each = (memory_of(server.pid) - before) / READERS / 1024
            cpu, begun = server.cpu(), time.perf_counter()
            await said(server.host(JSONRPC), f"go {task_id}")
            await asyncio.gather(*ends)
            events = READERS * (CHUNKS + 1)
            rate, cost = events / (time.perf_counter() - begun), (server.cpu() - cpu) * 1e6 / events
            for connection in made:
                connection.transport.abort()
        finally:
            server.stop()
        found.append({"wire": wire, "readers": READERS, "kib": each, "rate": rate, "server_us": cost})
        print(f"| {READERS} | {wire} | {each:.1f} | {rate:.0f} | {cost:.1f} |", flush=True)
    return found
