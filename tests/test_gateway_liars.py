"""A gateway whose agent lies, floods, dawdles or sends elsewhere, over each transport: its callers get a typed error on
their own wire that tells nothing of the way, in time, and the next call is served as if nothing had been."""

import asyncio
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import grpc.aio
import pytest
from a2a_stubs import v1
from aiohttp import web

from a2a_grpc import errors, v03
from a2a_grpc.bindings import sse
from a2a_grpc.call import GRPC, JSONRPC, REST, V03, V1
from a2a_grpc.client import Client
from a2a_grpc.client_auth import Tls
from a2a_grpc.gateway_way import UNREACHABLE
from a2a_grpc.protojson import encode
from a2a_grpc.server import Server
from a2a_grpc.testing import serve, until
from tests.fakes import status
from tests.fronts import PATIENCE, WIRES, asking, gateway, make_agent, stands_still, wire_of
from tests.peers import card_of, entry, listening
from tests.test_client_faults import LIES, around, ident_of, lied
from tests.test_client_grpc_faults import GARBAGE, Liar

HTTP_WAYS = [way for way in WIRES if way[0] != GRPC]
CALLERS = ((JSONRPC, V1), (REST, V03), (GRPC, V1))
"""Who calls the gateway."""
STREAMED = {"streaming": True}
EVENT = status(v1.TASK_STATE_WORKING)


def shown(binding: str, version: str, event: v1.StreamResponse) -> Any:
    """An event as JSON of a version."""
    if version == V1:
        return encode(event)
    (made,) = v03.StreamDown("SendStreamingMessage", rest=binding == REST).event(event)
    return made


@asynccontextmanager
async def liars(binding: str, version: str, answer: Callable[[Any], Any], **more: Any) -> AsyncIterator[str]:
    """A card, and an HTTP server at its interface that answers with a function; its base URL."""
    here = ""

    async def serve(request: Any) -> web.StreamResponse:
        if request.path.endswith("agent-card.json"):
            return web.json_response(card_of(entry(binding, here, version)) | {"capabilities": STREAMED})
        found: web.StreamResponse = await answer(request)
        return found

    async with listening(serve, handler_cancellation=True, **more) as address:
        here = f"http://{address}"
        yield here


@asynccontextmanager
async def answering(liar: Liar) -> AsyncIterator[str]:
    """A gRPC server that answers bytes; its address."""
    server = grpc.aio.server(options=[("grpc.max_send_message_length", -1)])
    server.add_generic_rpc_handlers((liar,))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        await server.stop(None)


@asynccontextmanager
async def callers(front: Server) -> AsyncIterator[list[Client]]:
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(wire_of(front, *wire)) for wire in CALLERS]


async def outcomes(front: Server) -> list[Any]:
    """What each caller gets for a message, and as the first event of a stream."""
    async with callers(front) as clients:
        calls = [call for client in clients for call in (client.send(asking("x")), anext(client.stream(asking("x"))))]
        return await asyncio.gather(*calls, return_exceptions=True)


async def is_ready(front: Server) -> bool:
    async with aiohttp.ClientSession() as http, http.get(front.http_url + "/readyz") as reply:
        return reply.status == 200


# -- wrong types


@pytest.mark.requirement("DATA-14", "STREAM-12")
@pytest.mark.parametrize(("binding", "version"), HTTP_WAYS)
async def test_wrong_types_are_told_as_an_invalid_response_and_the_next_call_is_served(
    binding: str, version: str
) -> None:
    lie: Any = None

    async def answer(request: web.Request) -> web.StreamResponse:
        return await lied(request, binding, lie)

    fair = v1.SendMessageResponse | v1.StreamResponse | errors.InvalidAgentResponseError
    async with liars(binding, version, answer) as url, gateway(url) as front:
        for lie in LIES:
            for outcome in await outcomes(front):
                assert isinstance(outcome, fair), (lie, outcome)
        assert await is_ready(front)


@pytest.mark.requirement("DATA-14", "STREAM-12")
async def test_bytes_that_are_no_message_are_told_as_an_invalid_response() -> None:
    async with answering(Liar(GARBAGE)) as address, gateway(address) as front:
        assert {type(outcome) for outcome in await outcomes(front)} == {errors.InvalidAgentResponseError}
        assert await is_ready(front)


# -- too much


@pytest.mark.requirement("BL-44")
@pytest.mark.parametrize(("binding", "version"), WIRES)
async def test_an_answer_or_an_event_that_is_too_large_is_refused(
    binding: str, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sse, "LIMIT", 1 << 18)
    monkeypatch.setattr(sse.Parser.__init__, "__defaults__", (1 << 18,))

    async def answer(request: web.Request) -> web.StreamResponse:
        stream = "text/event-stream" in request.headers["accept"]
        reply = web.StreamResponse(headers={"content-type": "text/event-stream" if stream else "application/json"})
        await reply.prepare(request)
        for _ in range(100):
            await reply.write(b"data: " * stream + b"x" * 65_536 + b"\n" * stream)
        return reply

    async with AsyncExitStack() as stack:
        if binding == GRPC:
            url = await stack.enter_async_context(answering(Liar(b"x" * (1 << 20))))
            front = await stack.enter_async_context(gateway(url, version=version))
        else:
            front = await stack.enter_async_context(
                gateway(await stack.enter_async_context(liars(binding, version, answer)))
            )
        for outcome in await outcomes(front):
            assert type(outcome) is errors.InvalidAgentResponseError and "larger" in outcome.message, outcome


@pytest.mark.parametrize("buffer", [0, 1 << 18])
@pytest.mark.parametrize(("binding", "version"), HTTP_WAYS)
async def test_a_stream_without_end_is_read_no_faster_than_its_reader_wants_and_left_with_it(
    binding: str, version: str, buffer: int
) -> None:
    """As over gRPC, where other tests see it."""
    sent, left = 0, asyncio.Event()
    event = v1.StreamResponse()
    event.CopyFrom(EVENT)
    event.status_update.status.message.message_id = "m"
    event.status_update.status.message.role = v1.ROLE_AGENT
    event.status_update.status.message.parts.add(text="x" * 50_000)

    async def answer(request: web.Request) -> web.StreamResponse:
        nonlocal sent
        body = b"data: " + around(binding, await ident_of(request), shown(binding, version, event)) + b"\n\n"
        reply = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await reply.prepare(request)
        try:
            while True:
                await reply.write(body)
                sent += 1
        finally:
            left.set()

    async with (
        liars(binding, version, answer) as url,
        gateway(url, buffer=buffer) as front,
        wire_of(front, GRPC, V1) as client,
    ):
        events = client.stream(asking("x"))
        for _ in range(5):
            await anext(events)
        assert await stands_still(lambda: sent) < 2_000
        await events.aclose()
        if not buffer:  # else it is read on for a while
            await asyncio.wait_for(left.wait(), PATIENCE)


# -- slow


@pytest.mark.requirement("BL-35", "GRPC-11")
@pytest.mark.parametrize(("binding", "version"), HTTP_WAYS)
async def test_who_waits_no_longer_for_an_agent_that_dawdles_ends_the_call_behind_the_gateway(
    binding: str, version: str
) -> None:
    asked = gone = 0

    async def answer(request: web.Request) -> web.StreamResponse:
        nonlocal asked, gone
        asked += 1
        try:
            await asyncio.Event().wait()
        finally:
            gone += 1
        raise AssertionError

    async with liars(binding, version, answer) as url, gateway(url) as front, callers(front) as clients:
        waiting = [asyncio.create_task(client.send(asking("x"))) for client in clients]
        waiting += [asyncio.ensure_future(anext(client.stream(asking("x")))) for client in clients]
        await until(lambda: asked == len(waiting))
        assert gone == 0 and await is_ready(front)
        for each in waiting:
            each.cancel()
        await until(lambda: gone == asked)
        await asyncio.gather(*waiting, return_exceptions=True)


# -- elsewhere, and nobody that could be believed


async def unreachable(front: Server, *secrets: str) -> None:
    """Every caller is told that the agent is not available, and no more."""
    for outcome in await outcomes(front):
        assert type(outcome) is errors.UnavailableError and outcome.message.endswith(UNREACHABLE), outcome
        assert not any(secret in outcome.message for secret in secrets)


@pytest.mark.requirement("SEC-05")
@pytest.mark.parametrize("code", [302, 307])
@pytest.mark.parametrize(("binding", "version"), WIRES)
async def test_a_call_that_is_sent_to_another_server_does_not_go_there(binding: str, version: str, code: int) -> None:
    async def elsewhere(_: Any) -> web.StreamResponse:
        raise AssertionError("a call has gone to another server")

    async with listening(elsewhere) as other:

        async def answer(_: Any) -> web.StreamResponse:
            return web.Response(status=code, headers={"location": f"http://{other}/"})

        async with AsyncExitStack() as stack:
            url = await stack.enter_async_context(liars(binding, version, answer))
            if binding == GRPC:  # nobody speaks gRPC there
                url = url.removeprefix("http://")
            front = await stack.enter_async_context(gateway(url, version=version if binding == GRPC else None))
            await unreachable(front, other, url)


@pytest.fixture(scope="module")
def forged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a certificate that nobody vouches for, of somebody else."""
    folder = tmp_path_factory.mktemp("forged")
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=elsewhere.example"]
    made += ["-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem")]
    subprocess.run(made, check=True, capture_output=True)
    return folder


@pytest.mark.requirement("SEC-01", "SEC-05")
@pytest.mark.parametrize(("binding", "version"), WIRES)
async def test_a_certificate_that_nobody_vouches_for_is_no_way_to_an_agent(
    binding: str, version: str, forged: Path
) -> None:
    files = {"tls_cert": str(forged / "cert.pem"), "tls_key": str(forged / "key.pem")}
    async with serve(make_agent(), **files) as back:
        url = f"grpcs://{back.grpc_address}" if binding == GRPC else f"https://{back.http_address}"

        async def page(_: Any) -> web.StreamResponse:
            return web.json_response(card_of(entry(binding, url, version)) | {"capabilities": STREAMED})

        async with listening(page) as place:
            for tls in (None, Tls(ca=files["tls_cert"])):  # nobody vouches for it; it is somebody else's
                async with gateway(f"http://{place}", tls=tls) as front:
                    await unreachable(front, back.http_address, back.grpc_address, "elsewhere.example")
                    assert binding != GRPC or not await is_ready(front)


@pytest.mark.requirement("CARD-08", "ERR-11")
@pytest.mark.parametrize(
    "address", ["", "http://[", "::::", "http://127.0.0.1:99999", "ftp://x", "/rel", "http://é .x/"]
)
@pytest.mark.parametrize("binding", [JSONRPC, REST, GRPC])
async def test_an_address_in_a_card_that_is_none_is_no_way_to_an_agent(binding: str, address: str) -> None:
    async def page(_: Any) -> web.StreamResponse:
        return web.json_response(card_of(entry(binding, address)) | {"capabilities": STREAMED})

    async with listening(page) as place, gateway(f"http://{place}") as front:
        await unreachable(front, place)
