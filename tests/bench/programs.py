"""Calls as programs make them, through grpcio and aiohttp: what those who use a server see, their own cost included.

Laws: each class stands in the place of one of connections.py: `call(request, done)`, and a `transport` to be aborted.
Bodies are those that the other class would give, so that nothing else of the bench differs.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any, Final, NamedTuple

import aiohttp
import grpc
import grpc.aio
from google.protobuf.message import Message

from tests.bench.connections import Done, framed


class Asked(NamedTuple):
    """A request. place: path or URL; message: of gRPC; verb, body: of HTTP; output: what a gRPC answer is."""

    place: str
    headers: dict[str, str]
    message: Message | None = None
    output: type[Message] = Message
    streaming: bool = False
    verb: str = ""
    body: bytes = b""


class _Program:
    """A client that calls; it is its own transport."""

    def __init__(self) -> None:
        self.transport = self
        self._tasks: set[asyncio.Task[None]] = set()

    def is_closing(self) -> bool:
        """Whether it can call no more."""
        return False

    def abort(self) -> None:
        """Let the connections go."""
        self._spawn(self._close())

    def call(self, request: Asked, done: Done) -> None:
        """Send a request."""
        self._spawn(self._called(request, done))

    async def _called(self, request: Asked, done: Done) -> None:
        try:
            good, body = await self._answer(request)
        except (grpc.aio.AioRpcError, aiohttp.ClientError) as fault:
            good, body = False, str(fault).encode()
        done(good, body)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _close(self) -> None:
        raise NotImplementedError

    async def _answer(self, request: Asked) -> tuple[bool, bytes]:
        raise NotImplementedError


class GrpcProgram(_Program):
    """A channel of grpcio, with methods as its generated stubs have them."""

    def __init__(self, host: str) -> None:
        super().__init__()
        self._channel = grpc.aio.insecure_channel(host)
        self._methods: dict[str, Any] = {}

    def _method(self, asked: Asked) -> Any:
        if asked.place not in self._methods:
            make = self._channel.unary_stream if asked.streaming else self._channel.unary_unary
            forms = {"request_serializer": type(asked.message).SerializeToString}
            self._methods[asked.place] = make(asked.place, **forms, response_deserializer=asked.output.FromString)
        return self._methods[asked.place]

    async def _answer(self, request: Asked) -> tuple[bool, bytes]:
        call = self._method(request)(request.message, metadata=tuple(request.headers.items()))
        answers = [answer async for answer in call] if request.streaming else [await call]
        return True, b"".join([framed(answer.SerializeToString()) for answer in answers])

    async def _close(self) -> None:
        await self._channel.close()


class HttpProgram(_Program):
    """A session of aiohttp."""

    def __init__(self, host: str) -> None:
        super().__init__()
        self._session = aiohttp.ClientSession(f"http://{host}")

    async def _answer(self, request: Asked) -> tuple[bool, bytes]:
        told = {"headers": request.headers, "data": request.body or None}
        async with self._session.request(request.verb, request.place, **told) as reply:
            return reply.status == 200, await reply.read()

    async def _close(self) -> None:
        await self._session.close()


PROGRAMS: Final = {True: GrpcProgram, False: HttpProgram}
"""By whether the wire is gRPC."""
