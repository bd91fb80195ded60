"""The ASGI application that Envoy loads: what a command serves, in Envoy's own process.

Laws: Envoy waits for this module and for nothing else, so it loads nothing of the package; what is served is made when
the parent says where. The parent is at the other end of a socket: it learns when everything answers or why it cannot,
and says when to stop, which Envoy itself would not wait for. When the parent is gone, the process ends.
"""

import asyncio
import contextlib
import importlib
import json
import logging
import os
import signal
from typing import Any, Final

ENVIRONMENT: Final = "A2A_GRPC_ENVOY"
"""Names the variable with the socket, the module of the command, and its words, as JSON."""

_FROM_OUTSIDE: Final = 2**20


class Served:
    """The application. Requests wait until what they are for has been made."""

    def __init__(self) -> None:
        self._made: asyncio.Event | None = None
        self._server: Any = None
        self.answer: Any = self._early
        """Takes one request, or the lifespan."""

    async def _early(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif self._made is not None:
            await self._made.wait()
            await self.answer(scope, receive, send)

    async def _live(self, receive: Any, send: Any) -> None:
        await receive()
        self._made = asyncio.Event()
        with contextlib.suppress(OSError):
            os.setsid()  # a signal of the terminal is the parent's business
        told = json.loads(os.environ[ENVIRONMENT])
        reader, writer = await asyncio.open_unix_connection(told["socket"], limit=_FROM_OUTSIDE)
        obeying = asyncio.ensure_future(self._obey(told, reader, writer))
        await send({"type": "lifespan.startup.complete"})
        await receive()
        obeying.cancel()
        await send({"type": "lifespan.shutdown.complete"})

    async def _obey(self, told: Any, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        def say(**words: Any) -> None:
            writer.write(json.dumps(words).encode() + b"\n")

        while line := await reader.readline():
            asked = json.loads(line)
            try:
                if "at" in asked:
                    say(report=await self._begin(told, asked["at"]))
                elif "switch" not in asked:
                    await self._server.stop()
                    say(stopped=True)
                elif self._server is not None:  # which is not answered
                    importlib.import_module("a2a_grpc.telemetry_logs").switch(self._server.options)
            except Exception as fault:
                if type(fault).__name__ != "UsageError":
                    logging.getLogger("a2a_grpc").exception("the server could not be started or stopped")
                say(failed=str(fault) or type(fault).__name__)
        if self._server is not None:
            await self._server.stop()
        os.kill(os.getpid(), signal.SIGTERM)

    async def _begin(self, told: Any, address: str) -> Any:
        """Make and start what is served at an address; gives what there is to say about it."""
        assert self._made is not None
        serve, command = map(importlib.import_module, ("a2a_grpc.commands.serve", told["command"]))
        with serve.mistakes():
            self._server = server = serve.made(command.ready(told["words"]))
            await server.start_engine()
        server.served_at = address
        server.ready = True
        self.answer = server.asgi()
        self._made.set()
        return serve.addresses(server)


_served: Final = Served()


async def application(scope: Any, receive: Any, send: Any) -> None:
    """What Envoy calls, which wants a function."""
    await _served.answer(scope, receive, send)
