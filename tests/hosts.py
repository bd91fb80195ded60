"""ASGI servers for tests, in the loop of the test: hypercorn, which gives trailers over HTTP/2, and uvicorn.

Laws: free ports of this machine; nothing here checks anything.
"""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import uvicorn
from hypercorn.asyncio import serve
from hypercorn.config import Config

from a2a_grpc.server import Server


@asynccontextmanager
async def on_hypercorn(application: Any) -> AsyncIterator[str]:
    """`host:port` of an application."""
    bound = socket.create_server(("127.0.0.1", 0))
    address = "{}:{}".format(*bound.getsockname())
    config, over, running = Config(), asyncio.Event(), asyncio.Event()
    config.bind = [f"fd://{bound.detach()}"]
    config.accesslog, config.loglevel = None, "ERROR"
    config.keep_alive_max_requests = 1_000_000
    config.keep_alive_timeout = config.shutdown_timeout = 600
    config.graceful_timeout = 0.2

    async def watched(scope: Any, receive: Any, send: Any) -> None:
        async def told(message: Any) -> None:
            await send(message)
            if message["type"].startswith("lifespan.startup"):
                running.set()

        await application(scope, receive, told if scope["type"] == "lifespan" else send)

    task = asyncio.ensure_future(serve(watched, config, shutdown_trigger=over.wait))
    async with asyncio.timeout(60):
        await asyncio.wait((task, waiting := asyncio.ensure_future(running.wait())), return_when="FIRST_COMPLETED")
    waiting.cancel()
    try:
        yield address
    finally:
        over.set()
        await task


@asynccontextmanager
async def on_uvicorn(application: Any, **settings: Any) -> AsyncIterator[str]:
    """`host:port` of an application."""
    bound = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(application, log_level="error", timeout_graceful_shutdown=1, **settings)
    server = uvicorn.Server(config)
    task = asyncio.ensure_future(server._serve([bound]))
    async with asyncio.timeout(60):
        while not server.started:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    try:
        yield "{}:{}".format(*bound.getsockname())
    finally:
        server.should_exit = True
        await task
        bound.close()


@asynccontextmanager
async def served(server: Server) -> AsyncIterator[Server]:
    """A server whose every wire is carried by hypercorn."""
    async with on_hypercorn(server.asgi()) as server.served_at:
        yield server


def _envoy() -> bool:
    try:
        import find_libpython
        import pyvoy  # noqa: F401
    except ImportError:
        return False
    return find_libpython.find_libpython() is not None


ENVOY = _envoy()
"""Whether Envoy can run Python here."""
NEEDS_ENVOY = "needs pyvoy and a Python with a shared library"
