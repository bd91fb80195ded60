"""A certified OpenID provider in a process of its own: discovery, keys that rotate, tokens by client credentials."""

import asyncio
import base64
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
import pytest

from a2a_grpc.auth_jwt import JWT
from a2a_grpc.auth_keys import RemoteKeys
from a2a_grpc.call import Call
from a2a_grpc.client import Client
from a2a_grpc.client_auth import ClientCredentials
from a2a_grpc.errors import PermissionDeniedError, UnauthenticatedError
from a2a_grpc.server import Server
from a2a_grpc.testing import serve
from scripts.services import free_port
from tests.contract.agents import AGENTS
from tests.contract.cells import BINDINGS, WIRES, said, texts
from tests.interop.conftest import made

PROGRAM = Path(__file__).parent / "oidc" / "provider.mjs"
AUDIENCE = "http://agent.example"


class Provider(NamedTuple):
    """The provider's issuer and process."""

    issuer: str
    process: asyncio.subprocess.Process

    async def rotate(self) -> None:
        """A new key signs; the one before is still published, those before that are gone."""
        assert self.process.stdin is not None
        self.process.stdin.write(b"rotate\n")
        await self.says(b"rotated\n")

    async def says(self, word: bytes) -> None:
        """Wait for a line; the provider has more to say."""
        assert self.process.stdout is not None
        async with asyncio.timeout(120):
            while (line := await self.process.stdout.readline()) != word:
                assert line, "the provider is gone"

    def credentials(self, scope: str = "a2a", **more: Any) -> ClientCredentials:
        """Tokens of its one client."""
        return ClientCredentials(f"{self.issuer}/token", "orders", "not-a-secret", scope=scope, **more)

    async def token(self, scope: str = "a2a") -> str:
        """A fresh token."""
        return (await self.credentials(scope).headers())["authorization"].removeprefix("Bearer ")


@asynccontextmanager
async def provider(**environment: str) -> AsyncIterator[Provider]:
    """A provider of its own; environment: TOKEN_SECONDS, how long its tokens are good."""
    made("A2A_OIDC_MODULES")
    port = free_port()
    pipes = {"stdin": asyncio.subprocess.PIPE, "stdout": asyncio.subprocess.PIPE, "stderr": asyncio.subprocess.DEVNULL}
    told = {**os.environ, **environment}
    process = await asyncio.create_subprocess_exec("node", str(PROGRAM), str(port), AUDIENCE, env=told, **pipes)
    try:
        made_it = Provider(f"http://127.0.0.1:{port}", process)
        await made_it.says(b"ready\n")
        yield made_it
    finally:
        process.terminate()
        await process.wait()


def jwt(issuer: str, **more: Any) -> JWT:
    return JWT(issuer, AUDIENCE, scopes=("a2a",), **more)


@pytest.mark.requirement("AUTH-01", "EQ-04", "GRPC-13", "CARD-12", "CARD-13", "ERR-08", "ERR-09")
async def test_tokens_of_the_provider_open_every_wire() -> None:
    async with provider() as issuing, serve(AGENTS["scenes"](), authenticators=jwt(issuing.issuer)) as server:
        good, poor = issuing.credentials(), issuing.credentials("other")
        for binding, version in WIRES:
            told = {"binding": BINDINGS[binding], "version": version, "retries": None}
            async with Client(server.http_url, auth=good, **told) as client:
                scheme = client.card.security_schemes["jwt"].open_id_connect_security_scheme
                assert scheme.open_id_connect_url == f"{issuing.issuer}/.well-known/openid-configuration"
                assert texts((await client.send(said())).task) == ["hi"]
            async with Client(server.http_url, auth=poor, **told) as client:
                with pytest.raises(PermissionDeniedError, match="a2a"):
                    await client.send(said())
            async with Client(server.http_url, **told) as client:
                with pytest.raises(UnauthenticatedError) as refused:
                    await client.send(said())
                assert "Bearer" in refused.value.challenge


def forged(token: str) -> str:
    """A token with other claims under the same signature."""
    head, body, signature = token.split(".")
    claims = json.loads(base64.urlsafe_b64decode(body + "=="))
    changed = base64.urlsafe_b64encode(json.dumps({**claims, "sub": "admin"}).encode()).rstrip(b"=").decode()
    return f"{head}.{changed}.{signature}"


@pytest.mark.requirement("AUTH-01", "AUTH-03", "ERR-08")
async def test_the_keys_of_the_provider_may_rotate() -> None:
    async with provider() as issuing:
        way = jwt(issuing.issuer, keys=RemoteKeys(issuer=issuing.issuer, pause=0))
        async with serve(AGENTS["scenes"](), authenticators=way) as server, aiohttp.ClientSession() as session:

            async def status(token: str) -> int:
                headers = {"authorization": f"Bearer {token}", "a2a-version": "1.0"}
                async with session.get(f"{server.http_url}/tasks", headers=headers) as reply:
                    return reply.status

            old = await issuing.token()
            assert [await status(old), await status(forged(old))] == [200, 401]
            await issuing.rotate()
            new = await issuing.token()
            assert [await status(new), await status(old)] == [200, 200]
            await issuing.rotate()
            newest = await issuing.token()
            assert [await status(newest), await status(new), await status(old)] == [200, 200, 401]


@pytest.mark.requirement("AUTH-02", "AUTH-03")
@pytest.mark.parametrize("binding", BINDINGS.values())
async def test_a_client_renews_its_token_before_its_end_and_when_it_is_refused(binding: str) -> None:
    shown: set[str] = set()

    @asynccontextmanager
    async def watch(call: Call, _: Any) -> AsyncIterator[None]:
        shown.add(call.metadata["authorization"])
        yield

    async def renewed(issuing: Provider, server: Server, **more: Any) -> None:
        """Call without a fault until another token is shown."""
        told: dict[str, Any] = {"binding": binding, "interceptors": [watch], "retries": None}
        async with Client(server.http_url, auth=issuing.credentials(**more), **told) as client:
            shown.clear()
            await client.list()
            (first,) = shown
            if not more:  # nobody knows the key any more that has signed the first, once a newer one was seen
                for _ in range(2):
                    await issuing.rotate()
                async with Client(server.http_url, auth=issuing.credentials()) as other:
                    await other.list()
            async with asyncio.timeout(120):
                while shown == {first}:
                    await asyncio.sleep(0.05)
                    assert texts((await client.send(said())).task) == ["hi"]

    for environment, more in (({"TOKEN_SECONDS": "3"}, {"early": 1.0}), ({}, {})):
        async with provider(**environment) as issuing:
            way = jwt(issuing.issuer, keys=RemoteKeys(issuer=issuing.issuer, pause=0))
            async with serve(AGENTS["scenes"](), authenticators=way) as server:
                await renewed(issuing, server, **more)


@pytest.mark.requirement("AUTH-01")
async def test_a_server_finds_the_provider_by_its_options_alone() -> None:
    async with provider() as issuing:
        options = {"jwt_issuer": issuing.issuer, "jwt_audience": AUDIENCE}
        async with (
            serve(AGENTS["scenes"](), **options) as server,
            Client(server.http_url, auth=issuing.credentials()) as client,
        ):
            assert texts((await client.send(said())).task) == ["hi"]
