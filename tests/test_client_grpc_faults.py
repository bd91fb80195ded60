"""Servers that lie over gRPC, in both versions: each gives a typed error in bounded time, and never a hang."""

import asyncio
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import grpc.aio
import pytest
from a2a_stubs import v1
from aiohttp import web

from a2a_grpc import errors
from a2a_grpc.bindings import sse
from a2a_grpc.call import V03, V1
from a2a_grpc.client import Client
from a2a_grpc.client_auth import STREAMS as STREAMS_BY
from a2a_grpc.client_auth import Channel, Tls
from a2a_grpc.client_dial import RECONNECT_MS
from a2a_grpc.client_retries import Retries
from tests.fakes import status
from tests.fronts import PATIENCE, asking, failure
from tests.peers import listening
from tests.proxies import card_at

VERSIONS = pytest.mark.parametrize("version", [V1, V03])
STREAMS = pytest.mark.parametrize("streams", STREAMS_BY)
GARBAGE = b"\x0a\xff\xff\xff\x7fno message"
UNSTREAMED = ("SendStreamingMessage", "SubscribeToTask", "TaskSubscription")


class Liar(grpc.GenericRpcHandler):
    """Answers every method with the bytes that it is told to: one message, or as many as the reader takes."""

    def __init__(self, answer: bytes, most: int = 1) -> None:
        self._answer, self._most, self.sent = answer, most, 0

    def service(self, details: grpc.HandlerCallDetails) -> Any:
        async def one(*_: Any) -> bytes:
            return self._answer

        async def many(*_: Any) -> AsyncIterator[bytes]:
            for _each in range(self._most):
                yield self._answer
                self.sent += 1

        if details.method.endswith(UNSTREAMED):
            return grpc.unary_stream_rpc_method_handler(many)
        return grpc.unary_unary_rpc_method_handler(one)


@asynccontextmanager
async def lying(liar: Liar, version: str, **settings: Any) -> AsyncIterator[Client]:
    server = grpc.aio.server(options=[("grpc.max_send_message_length", -1)])
    server.add_generic_rpc_handlers((liar,))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    card = card_at("GRPC", version, f"127.0.0.1:{port}")
    try:
        async with Client(card, version=version, retries=None, **{"timeout": PATIENCE, **settings}) as client:
            yield client
    finally:
        await server.stop(None)


def asked(client: Client) -> list[Callable[[], Any]]:
    return [lambda: client.get("t"), lambda: client.send(asking("x")), lambda: anext(client.stream(asking("x")))]


@STREAMS
@VERSIONS
async def test_bytes_that_are_no_message_are_an_invalid_response(version: str, streams: str) -> None:
    async with lying(Liar(GARBAGE), version, channel=Channel(streams=streams)) as client:
        for call in asked(client):
            assert type(await failure(call())) is errors.InvalidAgentResponseError


@STREAMS
@VERSIONS
async def test_an_answer_or_an_event_that_is_too_large_is_refused(version: str, streams: str, monkeypatch: Any) -> None:
    monkeypatch.setattr(sse, "LIMIT", 1 << 16)
    async with lying(Liar(b"x" * (1 << 17)), version, channel=Channel(streams=streams)) as client:
        for call in asked(client):
            fault = await failure(call())
            assert type(fault) is errors.InvalidAgentResponseError and "larger" in fault.message


@STREAMS
async def test_a_stream_without_end_is_read_no_faster_than_its_reader_wants_and_left_in_time(streams: str) -> None:
    liar = Liar(status(v1.TASK_STATE_WORKING).SerializeToString() + b"\x0a\x00" * 30_000, most=100_000)
    async with lying(liar, V1, channel=Channel(streams=streams)) as client:
        events = client.stream(asking("x"))
        for _ in range(20):
            await anext(events)
        assert liar.sent < 2_000
        await events.aclose()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1.0):
                async for _ in client.stream(asking("x")):
                    pass


async def test_a_connection_that_is_lost_is_tried_again_within_the_time_of_one_call_however_long_it_was_away() -> None:
    tried: list[float] = []
    clock = asyncio.get_running_loop().time

    async def away(_: Any, writer: asyncio.StreamWriter) -> None:
        tried.append(clock())
        writer.transport.abort()

    server = await asyncio.start_server(away, "127.0.0.1", 0)
    address = "{}:{}".format(*server.sockets[0].getsockname())
    async with server, Client(f"grpc://{address}", timeout=PATIENCE, retries=None) as client:
        while len(tried) < 9:
            assert type(await failure(client.get("t"))) is errors.UnavailableError
            await asyncio.sleep(0.01)  # calls fail at once meanwhile
    pauses = [after - before for before, after in pairwise(tried)]
    assert min(pauses[-3:]) < 2 * RECONNECT_MS / 1000, pauses
    told = Retries()
    assert sum(told.first * 2**failures for failures in range(told.attempts - 1)) >= RECONNECT_MS / 1000


@STREAMS
@VERSIONS
@pytest.mark.parametrize("code", [200, 307])
async def test_a_server_that_speaks_no_grpc_is_unavailable(version: str, code: int, streams: str) -> None:
    async def answer(_: Any) -> web.Response:
        return web.Response(status=code, headers={"location": "http://127.0.0.1:1/"})

    settings: dict[str, Any] = {"version": version, "timeout": PATIENCE, "retries": None}
    settings["channel"] = Channel(streams=streams)
    async with listening(answer) as address, Client(card_at("GRPC", version, address), **settings) as client:
        for call in asked(client):
            assert type(await failure(call())) is errors.UnavailableError


async def test_a_certificate_that_nobody_vouches_for_is_no_connection(tmp_path: Path) -> None:
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=elsewhere.example"]
    await asyncio.to_thread(subprocess.run, [*made, "-keyout", key, "-out", cert], check=True, capture_output=True)
    server = grpc.aio.server()
    pair = [(key.read_bytes(), cert.read_bytes())]
    port = server.add_secure_port("127.0.0.1:0", grpc.ssl_server_credentials(pair))
    await server.start()
    try:
        for tls in (None, Tls(ca=str(cert))):  # nobody vouches for it; it is somebody else's
            async with Client(f"grpcs://127.0.0.1:{port}", tls=tls, timeout=PATIENCE, retries=None) as client:
                assert type(await failure(client.get("t"))) is errors.UnavailableError
    finally:
        await server.stop(None)
