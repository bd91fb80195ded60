"""Servers that lie, dawdle, flood and send elsewhere: each gives a typed error in bounded time, and never a hang."""

import asyncio
import gzip
import json
import ssl
import subprocess
from typing import Any

import pytest
from a2a_stubs import v1
from aiohttp import web

from a2a_grpc import Agent, errors
from a2a_grpc.bindings import sse
from a2a_grpc.call import GRPC
from a2a_grpc.client import Client
from a2a_grpc.client_retries import Retries
from a2a_grpc.remote import RemoteAgent
from a2a_grpc.testing import serve
from tests.fronts import WIRES, asking
from tests.peers import card_of, entry, peer

HTTP_WIRES = pytest.mark.parametrize(("binding", "version"), [wire for wire in WIRES if wire[0] != GRPC])
LIES: list[Any] = [
    [],
    7,
    None,
    {"task": []},
    {"task": {"id": 7}},
    {"task": {"id": "t", "status": "fine"}},
    {"task": {"id": "t", "status": {"state": "TASK_STATE_UNHEARD"}, "artifacts": {"a": 1}}},
    {"message": {"parts": [{"data": float("1e400")}]}},
    {"id": "t", "history": [[[[]]]]},
    {"kind": "nothing"},
    {"kind": "task", "id": 7},
    {"kind": "task", "id": "t", "contextId": "c", "status": "fine"},
    {"kind": "status-update", "taskId": "t", "status": []},
    {"kind": "message", "parts": [{"kind": "file", "file": 7}]},
]


def around(binding: str, ident: Any, value: Any) -> bytes:
    """A value as the answer of a binding."""
    told = {"jsonrpc": "2.0", "id": ident, "result": value} if binding == "JSONRPC" else value
    return json.dumps(told).encode()


async def ident_of(request: web.Request) -> Any:
    body = await request.read()
    return json.loads(body).get("id") if body else None


async def lied(request: web.Request, binding: str, lie: Any) -> web.Response:
    """A lie as the answer to a request, or as its only event."""
    body = around(binding, await ident_of(request), lie)
    if "text/event-stream" in request.headers["accept"]:
        return web.Response(body=b"data: " + body + b"\n\n", content_type="text/event-stream")
    return web.Response(body=body, content_type="application/json")


@pytest.mark.requirement("DATA-14", "STREAM-12")
@HTTP_WIRES
async def test_wrong_types_are_an_invalid_response_in_answers_and_in_streams(binding: str, version: str) -> None:
    lie: Any = None

    async def handler(request: web.Request) -> web.StreamResponse:
        return await lied(request, binding, lie)

    async with (
        peer(card_of(entry(binding, "URL", version)), handler) as url,
        Client(url, version=version, timeout=30, retries=Retries(first=0.01, patience=0.1)) as client,
    ):
        for lie in LIES:
            for call in (client.send(asking("x")), anext(client.stream(asking("x")))):
                (outcome,) = await asyncio.gather(call, return_exceptions=True)
                # Unknown members and states are no lie (STREAM-12).
                fair = v1.SendMessageResponse | v1.StreamResponse | errors.InvalidAgentResponseError
                assert isinstance(outcome, fair), (lie, outcome)


@HTTP_WIRES
async def test_a_reply_or_an_event_without_end_is_cut_off(
    binding: str, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sse, "LIMIT", 1 << 20)
    monkeypatch.setattr(sse.Parser.__init__, "__defaults__", (1 << 20,))
    sent = 0

    async def handler(request: web.Request) -> web.StreamResponse:
        nonlocal sent
        stream = "text/event-stream" in request.headers["accept"]
        packed = {} if stream else {"content-encoding": "gzip"}
        media = "text/event-stream" if stream else "application/json"
        reply = web.StreamResponse(headers={"content-type": media, **packed})
        await reply.prepare(request)
        piece = b"data: " + b"x" * 65_536 + b"\n" if stream else gzip.compress(b"[" * (1 << 22))
        for _ in range(400):
            await reply.write(piece)
            sent += 1
        return reply

    async with (
        peer(card_of(entry(binding, "URL", version)), handler) as url,
        Client(url, version=version, timeout=60, retries=None) as client,
    ):
        with pytest.raises(errors.InvalidAgentResponseError, match="larger"):
            await client.get("t")
        sent = 0
        with pytest.raises(errors.InvalidAgentResponseError, match="larger"):
            await anext(client.stream(asking("x")))
        assert sent < 200


async def test_a_server_that_dawdles_is_given_up_and_one_that_floods_is_left() -> None:
    over = asyncio.Event()

    async def handler(request: web.Request) -> web.StreamResponse:
        if request.method == "GET":
            await over.wait()
        reply = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await reply.prepare(request)
        number = 0
        while True:
            number += 1
            told = {"statusUpdate": {"taskId": "t", "contextId": "c", "status": {"state": "TASK_STATE_WORKING"}}}
            await reply.write(b"data: " + json.dumps(told).encode() + b"\n\n")
            await asyncio.sleep(0)

    async with peer(card_of(entry("HTTP+JSON", "URL")) | {"capabilities": {"streaming": True}}, handler) as url:
        async with Client(url, timeout=0.5, retries=None) as client:
            with pytest.raises(TimeoutError):
                await client.get("t")
            with pytest.raises(TimeoutError):
                await client.wait(v1.Task(id="t"), timeout=0.5)
        async with RemoteAgent(url, timeout=0.5, retries=None) as agent:
            with pytest.raises(TimeoutError):
                await agent.generate("x")
            with pytest.raises(TimeoutError):
                async for _ in agent.stream("x"):
                    pass
        over.set()


@pytest.mark.requirement("SEC-05")
@HTTP_WIRES
async def test_a_call_follows_a_redirect_on_its_server_only_and_only_as_it_is(binding: str, version: str) -> None:
    seen: list[tuple[str, str]] = []
    there = ""

    async def elsewhere(request: web.Request) -> web.StreamResponse:
        raise AssertionError("a call has gone to another server")

    async def handler(request: web.Request) -> web.StreamResponse:
        seen.append((request.method, request.path))
        if "/moved" not in request.path:
            return web.Response(status=status, headers={"location": there or f"/moved{request.path}"})
        task = {"id": "t", "status": {}}
        body = around(binding, await ident_of(request), {"task": task})
        return web.Response(body=body, content_type="application/json")

    async with (
        peer(None, elsewhere) as other,
        peer(card_of(entry(binding, "URL/a", version)), handler) as url,
        Client(url, version=version, auth="secret", timeout=30, retries=None) as client,
    ):
        for status in (307, 308):  # noqa: B007
            seen.clear()
            assert (await client.send(asking("x"))).task.id == "t"
            assert [verb for verb, _ in seen] == ["POST", "POST"]
        for status, there in ((302, ""), (307, other), (307, "/a/message:send"), (307, "http://[")):  # noqa: B007
            if binding == "JSONRPC" and there == "/a/message:send":
                there = "/a"
            with pytest.raises(errors.UnavailableError, match="redirects"):
                await client.send(asking("x"))


async def test_a_certificate_that_nobody_vouches_for_is_no_connection(tmp_path: Any) -> None:
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=elsewhere.example"]
    await asyncio.to_thread(subprocess.run, [*made, "-keyout", key, "-out", cert], check=True, capture_output=True)
    agent = Agent(name="Echo", description="Says it again.", version="1", skills=[])
    agent.handle(lambda task: task.text)
    context = ssl.create_default_context(cafile=str(cert))
    async with serve(agent, tls_cert=str(cert), tls_key=str(key)) as server:
        for tls in (None, context):  # nobody vouches for it; it is somebody else's
            with pytest.raises(errors.UnavailableError):
                await Client.connect(server.http_url, tls=tls, retries=None)
        plain = v1.AgentCard(name="Plain")
        for binding, address in (("JSONRPC", f"http://{server.http_address}/"), ("GRPC", server.grpc_address)):
            del plain.supported_interfaces[:]
            plain.supported_interfaces.add(url=address, protocol_binding=binding, protocol_version="1.0")
            async with Client(plain, timeout=30, retries=None) as client:
                with pytest.raises(errors.UnavailableError):
                    await client.get("t")


@pytest.mark.parametrize("tokens", [["a", "a"], ["a", "b", "a"]])
async def test_a_list_whose_pages_lead_in_circles_comes_to_an_end(tokens: list[str]) -> None:
    pages = iter(tokens)

    async def handler(request: web.Request) -> web.StreamResponse:
        return web.json_response({"tasks": [{"id": "t", "status": {}}], "nextPageToken": next(pages)})

    found = []
    async with peer(card_of(entry("HTTP+JSON", "URL")), handler) as url, Client(url, timeout=30) as client:
        with pytest.raises(errors.InvalidAgentResponseError, match="nextPageToken leads back"):
            async for task in client.tasks():
                found.append(task.id)
    assert found == ["t"] * len(tokens)


async def test_a_stream_that_says_nothing_of_its_task_ends_as_it_does() -> None:
    async def handler(request: web.Request) -> web.StreamResponse:
        return web.Response(text=": nothing\n\n", content_type="text/event-stream")

    async with peer(card_of(entry("HTTP+JSON", "URL")) | {"capabilities": {"streaming": True}}, handler) as url:
        async with Client(url, timeout=30) as client:
            assert [event async for event in client.stream(asking("x"))] == []
        async with RemoteAgent(url, timeout=30) as agent:
            with pytest.raises(errors.InvalidAgentResponseError, match="nothing"):
                await agent.generate("x")


@HTTP_WIRES
@pytest.mark.parametrize("status", [502, 503, 504])
async def test_a_stream_outlives_an_agent_that_is_away_from_its_proxy(binding: str, version: str, status: int) -> None:
    seen = 0

    def event(ident: Any, state: str) -> bytes:
        old = version == "0.3"
        task: dict[str, Any] = {"id": "t", "contextId": "c", "status": {"state": state}}
        if old and binding == "JSONRPC":
            task |= {"kind": "task", "status": {"state": state.removeprefix("TASK_STATE_").lower()}}
        else:
            task = {"task": task}
        return b"data: " + around(binding, ident, task) + b"\n\n"

    async def handler(request: web.Request) -> web.StreamResponse:
        nonlocal seen
        if "text/event-stream" not in request.headers["accept"]:  # a look at the task
            return web.Response(status=status, text="<html>")
        seen += 1
        if seen == 2:
            return web.Response(status=status, text="<html>")
        state = "TASK_STATE_WORKING" if seen == 1 else "TASK_STATE_COMPLETED"
        return web.Response(body=event(await ident_of(request), state), content_type="text/event-stream")

    card = card_of(entry(binding, "URL", version)) | {"capabilities": {"streaming": True}}
    told: dict[str, Any] = {"version": version, "timeout": 30, "retries": Retries(first=0.01, most=0.02)}
    async with peer(card, handler) as url, Client(url, **told) as client:
        assert [event async for event in client.stream(asking("x"))][-1]
        assert seen == 3
        seen = 1
        with pytest.raises(errors.UnavailableError, match=f"HTTP status {status}"):
            async for _ in client.stream(asking("x")):
                pass


@HTTP_WIRES
@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"HTTP/1.1 200 OK\r\ncontent-ty", "Server disconnected"),
        (b"SSH-2.0-OpenSSH_9.6\r\n", "Bad status line"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n", "Content-Length"),
        (b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n{}", "not completed"),
        (b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 2\r\n\r\n{}", "decode"),
        (b"HTTP/1.1 307 Moved\r\ncontent-length: 0\r\n\r\n", "HTTP status 307"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_what_is_no_answer_of_http_is_told_as_that(binding: str, version: str, answer: bytes, words: str) -> None:
    asked = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal asked
        asked += 1
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    place = v1.AgentInterface(
        protocol_binding=binding,
        protocol_version=version,
        url=f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}",
    )
    async with server, Client(v1.AgentCard(supported_interfaces=[place]), version=version, retries=None) as client:
        with pytest.raises(errors.UnavailableError) as found:
            await client.send(asking("x"))
    told = found.value.message
    assert words in told and not any(made_up in told for made_up in ("400,", "\n", "RawResponse")), told
    assert asked == 1


@pytest.mark.requirement("AUTH-11")
async def test_who_waits_sees_the_end_of_a_task_whose_agent_cuts_every_subscription() -> None:
    looks = iter(["TASK_STATE_WORKING", "TASK_STATE_CANCELED"])

    async def handler(request: web.Request) -> web.StreamResponse:
        if not request.path.endswith(":subscribe"):
            return web.json_response({"id": "t", "status": {"state": next(looks)}})
        reply = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await reply.prepare(request)
        assert request.transport is not None
        request.transport.abort()
        return reply

    card = card_of(entry("HTTP+JSON", "URL")) | {"capabilities": {"streaming": True}}
    async with (
        peer(card, handler) as url,
        Client(url, timeout=30, retries=Retries(first=0.01, most=0.02, patience=0.1)) as client,
    ):
        assert (await client.wait("t")).status.state == v1.TASK_STATE_CANCELED
