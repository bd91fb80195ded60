"""What a client shows of itself: credentials that change, tokens, certificates; and what surrounds its calls."""

import asyncio
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from a2a_stubs import v1
from aiohttp import web

from a2a_grpc import Agent, errors
from a2a_grpc.client import Client
from a2a_grpc.client_auth import ClientCredentials, Tls, auth_of
from a2a_grpc.client_retries import Retries
from a2a_grpc.testing import serve
from tests.fronts import asking
from tests.peers import card_of, entry, peer

SECRET = "s3cr3t"


class Guarded:
    """Answers GetTask over REST to who shows the token of the hour, and notes what was shown."""

    def __init__(self, good: str) -> None:
        self.good = good
        self.shown: list[str] = []

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.shown.append(request.headers.get("authorization", ""))
        if self.shown[-1] != f"Bearer {self.good}":
            return web.json_response({"error": {"message": "no"}}, status=401)
        if request.path.endswith(":subscribe"):
            return web.Response(text='data: {"task":{"id":"t","status":{}}}\n\n', content_type="text/event-stream")
        return web.json_response({"id": "t", "status": {}})


CARD = card_of(entry("HTTP+JSON", "URL"))


@pytest.mark.requirement("AUTH-02")
async def test_credentials_are_asked_for_before_each_call_and_once_more_after_a_401() -> None:
    guard, tokens = Guarded("two"), iter(["card", "one", "two", "two", "three", "three"])

    async def token() -> str:
        return next(tokens)

    async with peer(CARD, guard.answer) as url, Client(url, auth=token, retries=None) as client:
        assert (await client.get("t")).id == "t"
        assert guard.shown == ["Bearer one", "Bearer two"]
        guard.good = "four"
        with pytest.raises(errors.UnauthenticatedError):
            await client.get("t")
    for given in ("two", {"Authorization": "Bearer two"}, lambda: {"authorization": "Bearer two"}):
        guard = Guarded("two")
        async with peer(CARD, guard.answer) as url, Client(url, auth=given, retries=None) as client:
            assert [event.task.id async for event in client.subscribe("t")] == ["t"]
            guard.good = "other"
            with pytest.raises(errors.UnauthenticatedError):
                await client.get("t")
        assert guard.shown == ["Bearer two"] * 2, "the same credentials are not tried twice"
    with pytest.raises(TypeError, match="auth"):
        auth_of(7)  # type: ignore[arg-type]


@asynccontextmanager
async def issuer(replies: list[Any]) -> AsyncIterator[tuple[str, list[Any]]]:
    """A token endpoint that gives these replies in turn; its address, and what it was asked."""
    asked: list[Any] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        asked.append((request.headers.get("authorization", ""), dict(await request.post())))
        reply = replies.pop(0) if len(replies) > 1 else replies[0]
        return web.json_response(reply, status=200 if "access_token" in reply else 400)

    async with peer(None, answer) as url:
        yield url + "/token", asked


async def test_a_token_is_fetched_once_renewed_before_its_end_and_after_a_401() -> None:
    tokens = [{"access_token": f"t{number}", "token_type": "Bearer", "expires_in": 3600} for number in range(9)]
    async with issuer([*tokens]) as (url, asked):
        source = ClientCredentials(url, "me", SECRET, scope="agents", parameters={"audience": "shop"})
        guard = Guarded("t0")
        async with peer(CARD, guard.answer) as agent, Client(agent, auth=source, retries=None) as client:
            await asyncio.gather(*(client.get("t") for _ in range(5)))
            form = {"grant_type": "client_credentials", "scope": "agents", "audience": "shop"}
            assert asked == [("Basic bWU6czNjcjN0", form)]
            guard.good = "t1"
            assert (await client.get("t")).id == "t" and len(asked) == 2
            guard.good = "never"
            with pytest.raises(errors.UnauthenticatedError):
                await client.get("t")
            assert len(asked) == 3, "no more than one further token for one call"
    async with issuer([{"access_token": "short", "token_type": "bearer", "expires_in": 0}]) as (url, asked):
        source = ClientCredentials(url, "me", SECRET, in_form=True)
        for _ in range(2):
            assert await source.headers() == {"authorization": "Bearer short"}
        assert len(asked) == 2 and asked[0][0] == "" and asked[0][1]["client_secret"] == SECRET


@pytest.mark.requirement("SEC-05")
async def test_a_token_that_cannot_be_had_is_told_without_the_secret() -> None:
    for reply in ({"error": "invalid_client"}, {"access_token": 7}, {"access_token": "x", "token_type": "mac"}):
        async with issuer([reply]) as (url, _):
            with pytest.raises(errors.UnauthenticatedError) as caught:
                await ClientCredentials(url, "me", SECRET).headers()
            assert SECRET not in str(caught.value)
    with pytest.raises(errors.UnavailableError):
        await ClientCredentials("http://127.0.0.1:1/token", "me", SECRET).headers()
    with pytest.raises(ValueError, match="https"):
        ClientCredentials("http://login.example/token", "me", SECRET)
    assert SECRET not in repr(ClientCredentials("https://login.example/token", "me", SECRET))


# -- certificates


def run(*words: Any) -> None:
    subprocess.run([str(word) for word in words], check=True, capture_output=True)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An authority, and a certificate of its own for the server and for the client."""
    folder = tmp_path_factory.mktemp("tls")
    new = ("openssl", "req", "-newkey", "rsa:2048", "-nodes")
    ca = (*new, "-x509", "-days", "2", "-subj", "/CN=authority", "-addext", "keyUsage=critical,keyCertSign,cRLSign")
    run(*ca, "-keyout", folder / "ca-key.pem", "-out", folder / "ca.pem")
    (folder / "names").write_text("subjectAltName=IP:127.0.0.1,DNS:localhost\n")
    for name in ("server", "client"):
        key, asked, cert = (folder / f"{name}{end}" for end in ("-key.pem", ".csr", ".pem"))
        run(*new, "-subj", f"/CN={name}", "-keyout", key, "-out", asked)
        sign = ("openssl", "x509", "-req", "-days", "2", "-CA", folder / "ca.pem", "-CAkey", folder / "ca-key.pem")
        run(*sign, "-CAcreateserial", "-in", asked, "-out", cert, "-extfile", folder / "names")
    return folder


@pytest.mark.requirement("SEC-01", "SEC-02")
@pytest.mark.parametrize("binding", ["JSONRPC", "HTTP+JSON", "GRPC"])
async def test_an_own_authority_and_a_certificate_of_the_client_serve_every_wire(files: Path, binding: str) -> None:
    agent = Agent(name="Echo", description="Says it again.", version="1", skills=[])
    agent.handle(lambda task: task.text)
    told = {name: str(files / file) for name, file in (("tls_cert", "server.pem"), ("tls_key", "server-key.pem"))}
    tls = Tls(str(files / "ca.pem"), str(files / "client.pem"), str(files / "client-key.pem"))
    async with serve(agent, **told, tls_client_ca=str(files / "ca.pem")) as server:
        async with Client(server.http_url, binding=binding, tls=tls, timeout=60, retries=None) as client:
            assert (await client.send(asking("hi"))).task.artifacts[0].parts[0].text == "hi"
            card = client.card
        async with Client(card or "", binding=binding, tls=tls, timeout=60, retries=None) as client:
            assert (await client.send(asking("ho"))).task.artifacts[0].parts[0].text == "ho"
        for bad in (Tls(str(files / "ca.pem")), Tls()):
            with pytest.raises(errors.UnavailableError):
                async with Client(card or "", binding=binding, tls=bad, timeout=60, retries=None) as client:
                    await client.get("t")


async def test_what_was_to_go_over_tls_never_goes_in_the_clear() -> None:
    async def unwanted(request: web.Request) -> web.StreamResponse:
        raise AssertionError("a credential came in the clear")

    card = v1.AgentCard(name="Both")
    async with peer(CARD, unwanted) as url:
        card.supported_interfaces.add(url="https://127.0.0.1:1", protocol_binding="JSONRPC", protocol_version="1.0")
        card.supported_interfaces.add(url=url, protocol_binding="HTTP+JSON", protocol_version="1.0")
        async with Client(card, auth=SECRET, retries=None) as client:
            with pytest.raises(errors.UnavailableError):
                await client.get("t")


# -- around a call


async def test_interceptors_surround_each_call_and_set_its_headers() -> None:
    seen: list[str] = []
    guard = Guarded("given")

    def around(name: str, **headers: str) -> Any:
        @asynccontextmanager
        async def interceptor(call: Any, request: Any) -> AsyncIterator[None]:
            seen.append(f"{name} {call.operation} {call.binding}")
            call.metadata.update(headers)
            try:
                yield
            except errors.A2AError as fault:
                seen.append(f"{name} saw {fault.reason}")
                raise
            seen.append(f"{name} left")

        return interceptor

    both = [around("one"), around("two", authorization="Bearer given")]
    async with peer(CARD, guard.answer) as url, Client(url, interceptors=both, retries=None) as client:
        assert (await client.get("t")).id == "t"
        assert seen == ["one GetTask HTTP+JSON", "two GetTask HTTP+JSON", "two left", "one left"]
        seen.clear()
        assert [event.task.id async for event in client.events("SubscribeToTask", v1.SubscribeToTaskRequest(id="t"))]
        assert seen[0].startswith("one SubscribeToTask") and seen[-1] == "one left"
        guard.good = "other"
        with pytest.raises(errors.UnauthenticatedError):
            await client.get("t")
        assert seen[-1] == "one saw UNAUTHENTICATED"


@pytest.mark.requirement("ERR-10")
async def test_what_may_be_repeated_is_repeated_and_nothing_else() -> None:
    asked: list[str] = []
    replies: list[tuple[int, dict[str, str]]] = []

    async def handler(request: web.Request) -> web.StreamResponse:
        asked.append(request.path)
        status, headers = replies.pop(0) if replies else (200, {})
        told: Any = {"id": "t", "status": {}} if request.method == "GET" else {"task": {"id": "t", "status": {}}}
        return web.json_response(told if status == 200 else {}, status=status, headers=headers)

    async with peer(CARD, handler) as url:
        async with Client(url, retries=Retries(3, first=0.01, most=1.0)) as client:
            replies[:] = [(503, {}), (503, {})]
            assert (await client.get("t")).id == "t" and len(asked) == 3
            replies[:] = [(503, {})] * 3
            with pytest.raises(errors.UnavailableError):
                await client.get("t")
            asked.clear()
            now, then = "Thu, 01 Jan 2015 12:00:00 GMT", "Thu, 01 Jan 2015 12:00:09 GMT"
            for soon in ({"retry-after": "0"}, {"retry-after": now, "date": now}, {"retry-after": now}):
                asked.clear()
                replies[:] = [(429, soon)]
                assert (await client.send(asking("hi"))).task.id == "t" and len(asked) == 2
            late = {"retry-after": then, "date": now}
            for reply in ((503, {}), (429, {}), (429, {"retry-after": "9"}), (429, late), (500, {})):
                asked.clear()
                replies[:] = [reply]
                with pytest.raises(errors.A2AError):
                    await client.send(asking("hi"))
                assert len(asked) == 1, reply
        asked.clear()
        replies[:] = [(503, {})]
        async with Client(url, repeat_sends=True, retries=Retries(first=0.01)) as client:
            assert (await client.send(asking("hi"))).task.id == "t" and len(asked) == 2


async def test_the_time_of_a_call_is_for_all_its_attempts() -> None:
    async def handler(request: web.Request) -> web.StreamResponse:
        return web.json_response({}, status=503)

    async with peer(CARD, handler) as url, Client(url, retries=Retries(99, first=0.2, patience=99)) as client:
        with pytest.raises(TimeoutError):
            await client.get("t", timeout=0.5)


async def test_an_answer_to_a_cancel_that_was_lost_is_looked_for() -> None:
    async def handler(request: web.Request) -> web.StreamResponse:
        if request.method == "POST":
            return web.json_response({}, status=503)
        return web.json_response({"id": "t", "status": {"state": f"TASK_STATE_{state}"}})

    async with peer(CARD, handler) as url, Client(url, retries=Retries(2, first=0.01)) as client:
        state = "CANCELED"
        assert (await client.cancel("t")).status.state == v1.TASK_STATE_CANCELED
        state = "WORKING"
        with pytest.raises(errors.UnavailableError):
            await client.cancel("t")
