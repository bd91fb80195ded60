"""Servers in processes of their own, and short ways to talk to one over any binding.

Laws: a test waits for conditions with `until` or for ends with `within`, never for luck; limits are generous, because
they bound hangs and are no goals. Every process is one that was started here and is ended by its own id.
"""

import asyncio
import os
import random
import resource
import socket
import sys
import uuid
from collections.abc import AsyncIterator, Awaitable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from urllib.parse import urlsplit

import grpc.aio
from a2a_stubs import google, v1

from a2a_grpc.bindings import jsonrpc, rest
from a2a_grpc.call import GRPC, JSONRPC, REST, RESUME_EXTENSION, V1
from a2a_grpc.client import Client, Events
from a2a_grpc.errors import A2AError
from a2a_grpc.python310_asyncio import timeout
from a2a_grpc.server import Server

T = TypeVar("T")

PATIENCE = 60.0
"""Seconds after which something hangs."""
BINDINGS = (JSONRPC, REST, GRPC)
ROOT = Path(__file__).parents[2]
ENVIRONMENT = {
    **{name: value for name, value in os.environ.items() if not name.startswith("A2A_GRPC_")},
    "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "generated"))),
    "PYTHONUNBUFFERED": "1",
}
ENDED = {v1.TASK_STATE_COMPLETED, v1.TASK_STATE_FAILED, v1.TASK_STATE_CANCELED, v1.TASK_STATE_REJECTED}


async def within(work: Awaitable[T], seconds: float = PATIENCE) -> T:
    return await asyncio.wait_for(work, seconds)


def seeded() -> random.Random:
    """Chance that can be had again: the seed is printed, and taken from A2A_SEED when that is set."""
    seed = int(os.environ.get("A2A_SEED") or random.SystemRandom().randrange(1 << 32))
    print(f"A2A_SEED={seed}")
    return random.Random(seed)


class Serving(NamedTuple):
    """A serving process: its base URL, its gRPC address `host:port`, and the file with what it logs."""

    process: asyncio.subprocess.Process
    url: str
    grpc: str
    logged: Path

    @property
    def log(self) -> str:
        return self.logged.read_text()

    async def exit_code(self) -> int:
        return await within(self.process.wait())


async def launch(
    folder: Path, *words: str, agent: str = "worker", gateway: str = "", **environment: str
) -> tuple[asyncio.subprocess.Process, Path]:
    """A `serve` on free ports, told where to keep tasks; its log goes to a file of its own. agent: one of workers.py,
    or with its module. gateway: the address of an agent that is served in its place."""
    path = folder / f"log-{uuid.uuid4().hex}"
    served = ("serve", agent if ":" in agent else f"tests.faults.workers:{agent}")
    with path.open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "a2a_grpc", *(("gateway", "--upstream", gateway) if gateway else served)),
            *("--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0", "--store", f"sqlite:{folder / 'a2a.db'}", *words),
            cwd=folder,
            env=ENVIRONMENT | environment,
            stdout=asyncio.subprocess.PIPE,
            stderr=log,
        )
    return process, path


@asynccontextmanager
async def serving(folder: Path, *words: str, **more: str) -> AsyncIterator[Serving]:
    """A serving process that is ready, as of `launch`; killed at the end if it still runs."""
    process, log = await launch(folder, *words, **more)
    assert process.stdout is not None
    try:
        told: dict[str, str] = {}
        while "or" not in told:
            line = (await within(process.stdout.readline())).decode()
            assert line, log.read_text()
            name, value = line.split(maxsplit=1)
            told[name] = value.strip()
        yield Serving(process, told["HTTP+JSON"], told["GRPC"], log)
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


def catches(pid: int, number: int) -> bool:
    """Whether a process has a handler of its own for a signal."""
    [mask] = [line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("SigCgt:")]
    return bool(int(mask.split()[1], 16) >> (number - 1) & 1)


def limit_files(pid: int, most: int) -> None:
    """Let no file of a process grow past `most` bytes; -1 takes that back."""
    _, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (most if most >= 0 else hard, hard))


def stored(folder: Path) -> int:
    """Bytes in the files of the store."""
    return sum(path.stat().st_size for path in folder.glob("a2a.db*"))


async def client(url: str, binding: str, **settings: Any) -> Client:
    """A client that is told the number of each event and gives up when nothing comes for PATIENCE seconds."""
    return await Client.connect(
        url, binding=binding, extensions=[RESUME_EXTENSION], timeout=PATIENCE, retries=None, **settings
    )


@asynccontextmanager
async def clients(server: Serving | Server, version: str = V1) -> AsyncIterator[dict[str, Client]]:
    """A client of a server for each binding, by binding."""
    url = server.http_url if isinstance(server, Server) else server.url
    async with AsyncExitStack() as stack:
        yield {
            binding: await stack.enter_async_context(await client(url, binding, version=version))
            for binding in BINDINGS
        }


@asynccontextmanager
async def channel_to(address: str, **options: int) -> AsyncIterator[grpc.aio.Channel]:
    """A gRPC channel with a connection of its own, which goes when the channel does."""
    pairs = [("grpc.use_local_subchannel_pool", 1), *options.items()]
    async with grpc.aio.insecure_channel(address, options=pairs) as channel:
        yield channel


def message(text: str, task_id: str = "", now: bool = False) -> v1.SendMessageRequest:
    request = v1.SendMessageRequest()
    request.message.message_id, request.message.role = uuid.uuid4().hex, v1.ROLE_USER
    request.message.task_id = task_id
    request.message.parts.add(text=text)
    request.configuration.return_immediately = now
    return request


def number(event: v1.StreamResponse) -> int:
    """The number of an event in its task's log."""
    body = getattr(event, str(event.WhichOneof("payload")))
    return int(body.metadata[RESUME_EXTENSION]["sequence"])


async def numbered(events: Events) -> tuple[dict[int, v1.StreamResponse], A2AError | None]:
    """What a stream gives until it ends, by number, and the error it ends with; numbers must grow one by one."""
    found: dict[int, v1.StreamResponse] = {}
    try:
        async for event in events:
            assert not found or number(event) == max(found) + 1
            found[number(event)] = event
    except A2AError as fault:
        return found, fault
    return found, None


async def ended(agent: Client, task_id: str) -> v1.Task:
    """The task, once it has ended."""

    async def ask() -> v1.Task:
        while (task := await agent.get(task_id)).status.state not in ENDED:  # noqa: ASYNC110 - asked over the wire
            await asyncio.sleep(0.05)
        return task

    return await within(ask())


async def at_work(agents: dict[str, Client], working: int, ended: int = 0) -> None:
    """Wait until so many tasks are at work, and so many have ended well."""
    async with timeout(PATIENCE):
        while True:
            states = [task.status.state for task in (await agents[GRPC].list()).tasks]
            if (states.count(v1.TASK_STATE_WORKING), states.count(v1.TASK_STATE_COMPLETED)) == (working, ended):
                return
            await asyncio.sleep(0.05)


def texts(task: v1.Task) -> list[str]:
    """The text of each artifact."""
    return ["".join(part.text for part in artifact.parts) for artifact in task.artifacts]


class Dialed(NamedTuple):
    """A bare HTTP connection on which a request was sent."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    def drop(self) -> None:
        """Go without a word."""
        self.writer.transport.abort()

    async def close(self) -> None:
        self.writer.close()
        with suppress(OSError):
            await self.writer.wait_closed()


async def dial(
    base: str, binding: str, operation: str, request: Any, *, window: int = 0, most: int = 1 << 30, **headers: str
) -> Dialed:
    """Send a request over JSON-RPC or REST on a connection of its own. base: `http://host:port`; window: bytes that
    this side takes unread, default as the system likes; most: bytes of the request that are sent, default all."""
    if binding == REST:
        verb, path, own, body = rest.request(operation, request)
    else:
        verb, path, (own, body) = "POST", "/", jsonrpc.request(operation, request, 1, V1)
    place = urlsplit(base)
    lines = {"host": place.netloc, "content-length": str(len(body)), **own, **headers}
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    connection = socket.socket()
    if window:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, window)
    connection.setblocking(False)
    await asyncio.get_running_loop().sock_connect(connection, (place.hostname, place.port))
    reader, writer = await asyncio.open_connection(sock=connection, limit=max(window, 1 << 16))
    writer.write((f"{verb} {path} HTTP/1.1\r\n{head}\r\n".encode() + body)[:most])
    return Dialed(reader, writer)


def joined(body: bytes) -> bytes:
    """What a chunked body holds; it must have its end."""
    assert body.endswith(b"\r\n0\r\n\r\n"), body[-300:]
    chunks = []
    while body:
        size, _, body = body.partition(b"\r\n")
        chunks.append(body[: int(size, 16)])
        body = body[int(size, 16) + 2 :]
    return b"".join(chunks)


async def fetch(base: str, path: str) -> int:
    """The status of a GET on a connection of its own, 0 when nobody answers; the body is read to its end."""
    place = urlsplit(base)
    try:
        reader, writer = await asyncio.open_connection(place.hostname, place.port)
        writer.write(f"GET {path} HTTP/1.1\r\nhost: {place.netloc}\r\nconnection: close\r\n\r\n".encode())
        answer = await within(reader.read())
        writer.close()
    except OSError:
        return 0
    return int(answer.split()[1]) if answer else 0


async def read_grpc(call: Any) -> tuple[list[v1.StreamResponse], grpc.aio.AioRpcError | None]:
    """The rest of a stream read with `read`, and the error it ends with."""
    found: list[v1.StreamResponse] = []
    try:
        while (event := await within(call.read())) is not grpc.aio.EOF:
            found.append(event)
    except grpc.aio.AioRpcError as fault:
        return found, fault
    return found, None


def reason_of(fault: grpc.aio.AioRpcError) -> str:
    """The A2A reason in the details of a status, "" without."""
    trailers: dict[str, Any] = dict(fault.trailing_metadata() or ())
    info = google.ErrorInfo()
    for packed in google.Status.FromString(trailers.get("grpc-status-details-bin", b"")).details:
        packed.Unpack(info)
    return info.reason
