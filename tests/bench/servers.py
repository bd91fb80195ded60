"""The servers that are measured, each a process of its own: ours with a store, and a bare one with prepared answers.

Laws: `python -m tests.bench.servers KIND [FILE]`, see `main`, prints its addresses as a line of JSON, then its CPU
seconds for every line that it reads, and ends with its input. The bare server does what no server can leave out: gRPC
messages are parsed and serialised, HTTP bodies are read, every event is written by itself, through the same libraries
and on the same event loop.
"""

import asyncio
import base64
import json
import os
import sys
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

import grpc
import grpc.aio
import uvloop
from a2a_stubs import v1_grpc
from aiohttp import web
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

from a2a_grpc import Agent, Options, Server, TaskHandle, Upstream, protojson_text
from a2a_grpc.call import JSONRPC
from a2a_grpc.commands.serve import spare_collector
from a2a_grpc.telemetry_otel import OpenTelemetry
from a2a_grpc.telemetry_parts import Off, Telemetry
from a2a_grpc.telemetry_sums import Sums
from scripts.services import free_port

RELEASE: Final = "/release"
"""Where the bare server is told to go on with what is held."""

CHUNK: Final = "a chunk of text, "

agent: Final = Agent(name="Bench", description="Does what the first word says.", version="1", skills=[])


_held: Final[dict[str, asyncio.Event]] = {}


async def _write(task: TaskHandle, count: int, paced: bool) -> None:
    out = task.artifact(name="text")
    for number in range(1, count + 1):
        if paced:
            await asyncio.sleep(0)
        await out.write(CHUNK, last=number == count)


@agent.handle
async def obey(task: TaskHandle) -> None:
    """`reply ...`, `chunks N`, `paced N`, `ticks N PAUSE`, `hold N` (chunks once `go ID` releases them), `many N` for
    as many artifacts, `ask` for a question, or anything else for an artifact with the same text."""
    word, _, rest = task.text.partition(" ")
    if word == "reply":
        await task.reply(task.text)
    elif word == "go":
        _held.pop(rest).set()
        await task.reply("gone")
    elif word == "hold":
        released = _held[task.id] = asyncio.Event()
        await task.working()
        await released.wait()
        await _write(task, int(rest), paced=True)
    elif word == "many":
        for number in range(int(rest)):
            await task.add_artifact(CHUNK, name=str(number))
    elif word == "ask":
        await task.ask("what else?")
    elif word in ("chunks", "paced"):
        await _write(task, int(rest), paced=word == "paced")
    elif word == "ticks":
        amount, pause = rest.split()
        out = task.artifact(name="times")
        for _ in range(int(amount)):
            await asyncio.sleep(float(pause))
            await out.write(str(time.monotonic()))
    else:
        await task.add_artifact(task.text)


@asynccontextmanager
async def ours(store: str, telemetry: Off | None = None) -> AsyncIterator[dict[str, str]]:
    """The product; the store as in its option."""
    options = Options(grpc="127.0.0.1:0", http="127.0.0.1:0", store=store)
    async with Server(agent, options, telemetry=telemetry) as server:
        yield {"grpc": server.grpc_address, "http": server.http_address}


@asynccontextmanager
async def before(address: str) -> AsyncIterator[dict[str, str]]:
    """A gateway to what answers at an address: on gRPC, or over JSON-RPC at a URL."""
    options = Options(grpc="127.0.0.1:0", http="127.0.0.1:0", store="memory:")
    upstream = Upstream(address, binding=JSONRPC) if "://" in address else Upstream(address)
    async with Server(upstream, options) as server:
        yield {"grpc": server.grpc_address, "http": server.http_address}


ENVOY: Final = ("serve", f"{__package__}.servers:agent", "--engine=envoy", "--http=127.0.0.1:0", "--store=memory:")


@asynccontextmanager
async def on_envoy() -> AsyncIterator[dict[str, str]]:
    """The product in Envoy, as the command line starts it."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(sys.executable, "-m", "a2a_grpc", *ENVOY, stdout=pipe)
    assert process.stdout is not None
    address = ""
    while not address:
        words = (await process.stdout.readline()).decode().split()
        address = words[1] if words[0] == "GRPC" else ""
    try:
        yield {"grpc": address, "http": address, "pid": child_of(process.pid)}
    finally:
        process.terminate()
        await process.wait()


OFFICIAL: Final = {
    "sdk1": ("A2A_SDK1_PYTHON", "", "sdk1/server.py", [""]),
    "node1": ("A2A_NODE1_MODULES", "node", "node1/server.mjs", []),
}
"""The official SDKs as the interoperability tests set them up, with their tasks in memory: the variable that tells of
the environment, the interpreter ("" for the environment itself), the program, what comes after the ports."""


@asynccontextmanager
async def official(name: str) -> AsyncIterator[dict[str, str]]:
    """A server on an official SDK."""
    variable, interpreter, program, more = OFFICIAL[name]
    ports = [str(free_port()), str(free_port())]
    own = Path(__file__).parents[1] / "interop" / program
    command = [interpreter or os.environ[variable], str(own), *ports, *more]
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None and await process.stdout.readline() == b"ready\n"
    try:
        http, grpc = (f"127.0.0.1:{port}" for port in ports)
        yield {"grpc": grpc, "http": http, "pid": str(process.pid)}
    finally:
        process.kill()
        await process.wait()


def child_of(pid: int) -> str:
    """The only child of a process."""
    (child,) = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return child


def cpu_of(pid: str) -> float:
    """CPU seconds of another process, of this one for ""."""
    if not pid:
        return time.process_time()
    threads = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads) / 1e9


def watching() -> Off:
    """What records every span and measure, and sends them nowhere."""
    tracers = TracerProvider()
    tracers.add_span_processor(BatchSpanProcessor(Nowhere()))
    return Telemetry(OpenTelemetry(tracers, MeterProvider([InMemoryMetricReader()]), Sums()))


class Nowhere(SpanExporter):
    """Takes spans, as a collector that answers at once would."""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        return SpanExportResult.SUCCESS


@asynccontextmanager
async def bare(known: dict[str, Any], lowest: bool = False) -> AsyncIterator[dict[str, str]]:
    """grpc.aio and aiohttp alone. known: path -> operation ("" on HTTP), whether it streams, whether all but its first
    answer is `held` until somebody asks for `RELEASE` over HTTP, media type, answers. lowest: aiohttp without
    application, routes and limits."""
    released = asyncio.Event()
    for row in known.values():
        row["answers"] = [base64.b64decode(text) for text in row["answers"]]
        row["pause"] = released.wait if row.get("held") else None
    port = grpc.aio.server()
    rpcs = {path: _rpc(row) for path, row in known.items() if row["operation"]}
    port.add_generic_rpc_handlers((_Rpcs(rpcs),))
    address = f"127.0.0.1:{port.add_insecure_port('127.0.0.1:0')}"
    await port.start()
    pages = {path: _page(row) for path, row in known.items() if not row["operation"]}

    async def release(request: web.BaseRequest) -> web.StreamResponse:
        released.set()
        return web.Response()

    runner = (_lowest if lowest else _application)({RELEASE: release, **pages})
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield {"grpc": address, "http": "127.0.0.1:{1}".format(*runner.addresses[0])}
    await runner.cleanup()
    await port.stop(0)


def _application(pages: dict[str, Any]) -> "web.BaseRunner[Any]":
    application = web.Application(client_max_size=Options().max_request_bytes)
    for path, page in pages.items():
        application.router.add_route("*", path, page)
    return web.AppRunner(application, access_log=None)


def _lowest(pages: dict[str, Any]) -> "web.BaseRunner[Any]":
    async def serve(request: web.BaseRequest) -> web.StreamResponse:
        return await pages[request.path](request)  # type: ignore[no-any-return]

    return web.ServerRunner(web.Server(serve, access_log=None))


class _Rpcs(grpc.GenericRpcHandler):  # type: ignore[misc]
    def __init__(self, rpcs: dict[str, Any]) -> None:
        self._rpcs = rpcs

    def service(self, details: Any) -> Any:
        return self._rpcs.get(details.method)


def _rpc(row: dict[str, Any]) -> Any:
    method = next(method for method in v1_grpc.METHODS if method.name == row["operation"])
    answers, pause = [method.output.FromString(answer) for answer in row["answers"]], row["pause"]
    forms = {
        "request_deserializer": method.input.FromString,
        "response_serializer": method.output.SerializeToString,
    }

    async def unary(request: Any, context: Any) -> Any:
        return answers[0]

    async def stream(request: Any, context: Any) -> None:
        for answer in answers:
            await context.write(answer)
            if pause is not None:
                await pause()

    if row["stream"]:
        return grpc.unary_stream_rpc_method_handler(stream, **forms)
    return grpc.unary_unary_rpc_method_handler(unary, **forms)


def _page(row: dict[str, Any]) -> Callable[[web.BaseRequest], Any]:
    answers, headers, pause = row["answers"], {"content-type": row["media"]}, row["pause"]

    async def unary(request: web.BaseRequest) -> web.StreamResponse:
        await (request.read() if isinstance(request, web.Request) else request.content.read())
        return web.Response(body=answers[0], headers=headers)

    async def stream(request: web.BaseRequest) -> web.StreamResponse:
        await request.read()
        response = web.StreamResponse(headers=headers)
        await response.prepare(request)
        for answer in answers:
            await response.write(answer)
            if pause is not None:
                await pause()
        await response.write_eof()
        return response

    return stream if row["stream"] else unary


async def run(server: AbstractAsyncContextManager[dict[str, str]]) -> None:
    """Serve until the input ends."""
    over = asyncio.Event()

    def told() -> None:
        if os.read(0, 64):
            print(cpu_of(addresses.get("pid", "")), flush=True)
        else:
            asyncio.get_running_loop().remove_reader(0)
            over.set()

    async with server as addresses:
        print(json.dumps(addresses), flush=True)
        asyncio.get_running_loop().add_reader(0, told)
        await over.wait()


def main(kind: str, file: str = "") -> None:
    """The command."""
    spare_collector()
    makes: dict[str, Callable[[], AbstractAsyncContextManager[dict[str, str]]]] = {
        "bare": lambda: bare(json.loads(Path(file).read_bytes())),
        "lowest": lambda: bare(json.loads(Path(file).read_bytes()), lowest=True),
        "envoy": on_envoy,
        "gateway": lambda: before(file),
        **{name: partial(official, name) for name in OFFICIAL},
        "asyncio": lambda: ours("memory:"),
        "unaided": lambda: ours("memory:"),
        "watched": lambda: ours("memory:", watching()),
    }
    if kind == "unaided":
        protojson_text.pybase64 = None
    runner = asyncio.run if kind in ("asyncio", "unaided") else uvloop.run
    runner(run(makes.get(kind, lambda: ours(f"{kind}:{file}"))()))


if __name__ == "__main__":
    main(*sys.argv[1:])
