"""Official servers behind TLS that wants certificates of its clients: a gateway that was given one shows it on each
wire; one without is not ready."""

import json
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from a2a_stubs import v1
from aiohttp import web

from a2a_grpc.call import GRPC, JSONRPC, REST, V1
from a2a_grpc.client import Client
from tests import test_auth_mtls
from tests.faults.processes import serving
from tests.fronts import PATIENCE, asking
from tests.interop.test_sdk_servers import place, words
from tests.peers import listening
from tests.proxies import proxy

certs = test_auth_mtls.certs
WORDS = {JSONRPC: "jsonrpc", REST: "rest", GRPC: "grpc"}
"""The wires, as the command names them."""


def asked(certs: Path, protocol: str) -> ssl.SSLContext:
    """TLS that takes clients of the authority only."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(certs / "authority.pem"))
    context.load_cert_chain(certs / "server.pem", certs / "server.key")
    context.verify_mode = ssl.CERT_REQUIRED
    context.set_alpn_protocols([protocol])
    return context


@asynccontextmanager
async def behind_tls(certs: Path, folder: Path, name: str) -> AsyncIterator[str]:
    """A server on an official SDK with all that it has behind TLS, its card, too; where the card is."""
    here = place(name, folder)
    _, http, grpc = (f"127.0.0.1:{port}" for port in ("0", *here.command[2:4]))
    async with AsyncExitStack() as stack:
        stack.enter_context(here.running())
        ways = {
            http: await stack.enter_async_context(proxy(http, asked(certs, "http/1.1"))),
            grpc: await stack.enter_async_context(proxy(grpc, asked(certs, "h2"))),
        }
        async with aiohttp.ClientSession() as session, session.get(f"{here.url}/.well-known/agent-card.json") as reply:
            text = await reply.text()
        text = text.replace(f'"{grpc}"', f'"grpcs://{ways[grpc].address}"')
        text = text.replace(f"http://{http}", f"https://{ways[http].address}")
        assert http not in text and grpc not in text

        async def page(_: Any) -> web.StreamResponse:
            return web.json_response(json.loads(text))

        yield await stack.enter_async_context(listening(page, context=asked(certs, "http/1.1")))


def shown(certs: Path, name: str) -> list[str]:
    files = {"ca": "authority.pem", **({"cert": f"{name}.pem", "key": f"{name}.key"} if name else {})}
    return [word for flag, file in files.items() for word in (f"--upstream-{flag}", str(certs / file))]


@pytest.mark.requirement("SEC-01", "AUTH-01", "EQ-02")
@pytest.mark.parametrize("name", ["sdk1", "node1"])
async def test_a_gateway_shows_its_certificate_to_an_official_server(certs: Path, tmp_path: Path, name: str) -> None:
    async with behind_tls(certs, tmp_path, name) as card:
        for way, word in WORDS.items():
            flags = ("--store", "memory:", "--upstream-binding", word)
            async with serving(tmp_path, *flags, *shown(certs, "alice"), gateway=f"https://{card}") as front:
                for binding in WORDS:
                    async with Client(front.url, binding=binding, timeout=PATIENCE, retries=None) as client:
                        done = (await client.send(asking("hello"))).task
                        assert words(*done.artifacts) == "echo hello", (way, binding)
                        states = [event.status_update.status.state async for event in client.stream(asking("hello"))]
                        assert states[-1] == v1.TASK_STATE_COMPLETED, (way, binding)


@pytest.mark.requirement("SEC-01", "AUTH-01")
@pytest.mark.parametrize("name", ["", "mallory"])
async def test_without_the_right_certificate_it_is_not_ready(certs: Path, tmp_path: Path, name: str) -> None:
    async with behind_tls(certs, tmp_path, "sdk1") as card:
        flags = ("--store", "memory:", *shown(certs, name))
        async with serving(tmp_path, *flags, gateway=f"https://{card}") as front, aiohttp.ClientSession() as http:
            async with http.get(f"{front.url}/readyz") as reply:
                assert reply.status == 503
            async with http.get(f"{front.url}/tasks/t", headers={"a2a-version": V1}) as reply:
                assert reply.status == 503 and card not in await reply.text()
