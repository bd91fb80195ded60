"""Whom a gateway believes, and to whom it shows itself: certificates of its own, signed cards, and upstreams that say
how they are."""

import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import grpc.aio
import pytest
from a2a_stubs import v1, v1_grpc
from aiohttp import web
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from a2a_grpc import auth, errors
from a2a_grpc.agent import Agent
from a2a_grpc.auth_keys import FixedKeys
from a2a_grpc.call import GRPC, JSONRPC, REST, V1, Call
from a2a_grpc.client import Client
from a2a_grpc.client_auth import Tls
from a2a_grpc.commands import gateway as command
from a2a_grpc.commands.serve import addresses
from a2a_grpc.commands.words import UsageError
from a2a_grpc.config import OptionError
from a2a_grpc.gateway import DOUBTED, Upstream
from a2a_grpc.gateway_way import UNREACHABLE
from a2a_grpc.server import Server
from a2a_grpc.signing import Signer
from a2a_grpc.testing import serve
from a2a_grpc.verification import Verifier
from tests import test_auth_mtls
from tests.fronts import eventually, failure, gateway, wire_of
from tests.peers import card_of, entry, listening
from tests.signed_cards import keys_for
from tests.test_auth_mtls import ALICE, SAID, certs

__all__ = ["certs"]


async def status_of(front: Server, path: str = "/readyz") -> int:
    async with aiohttp.ClientSession() as http, http.get(front.http_url + path) as reply:
        return reply.status


# -- certificates


def shown(certs: Path, name: str = "alice") -> Tls:
    cert, key = (str(certs / f"{name}.{end}") for end in ("pem", "key")) if name else (None, None)
    return Tls(str(certs / "authority.pem"), cert, key)


@pytest.mark.requirement("SEC-01", "AUTH-01")
@pytest.mark.parametrize("way", [GRPC, JSONRPC, REST, "no card"])
async def test_a_gateway_shows_its_certificate_to_an_agent_whose_authority_it_knows(certs: Path, way: str) -> None:
    async with test_auth_mtls.server(certs, auth.MutualTLS()) as back:
        to = back.grpc_address if way == "no card" else back.http_url
        chosen = {} if way == "no card" else {"binding": way}
        async with gateway(to, tls=shown(certs), **chosen) as front, wire_of(front, REST, V1) as client:
            assert await status_of(front) == 200
            assert (await client.send(SAID)).message.parts[0].text == f"hello {ALICE}"


@pytest.mark.requirement("SEC-01", "AUTH-01")
@pytest.mark.parametrize("name", ["", "mallory", "system"])
async def test_without_the_right_certificate_a_gateway_is_not_ready_and_tells_no_more(certs: Path, name: str) -> None:
    async with test_auth_mtls.server(certs, auth.MutualTLS()) as back:
        tls = None if name == "system" else shown(certs, name)
        for to in (back.http_url, f"grpcs://{back.grpc_address}"):
            async with gateway(to, tls=tls) as front:
                assert await status_of(front) == 503
                call = front.service.SendMessage(SAID, Call("SendMessage"))
                assert (await failure(call)).message == UNREACHABLE


def test_the_command_takes_certificates_and_finds_mistakes_before_it_serves(certs: Path, tmp_path: Path) -> None:
    def made(*words: str) -> Any:
        return command.ready(("--upstream", "agent.example:443", *words))[1]()

    files = {"ca": "authority.pem", "cert": "bob.pem", "key": "bob.key"}
    names = {flag: str(certs / name) for flag, name in files.items()}
    words = [word for flag, file in names.items() for word in (f"--upstream-{flag}", file)]
    assert made(*words).url == "grpcs://agent.example:443" and made().url == "grpc://agent.example:443"
    for wrong in (("--upstream-key", names["key"]), ("--upstream-cert", names["ca"])):
        with pytest.raises(UsageError):
            made(*wrong)
    with pytest.raises(OSError, match=r"none\.pem"):
        made("--upstream-ca", str(tmp_path / "none.pem"))


# -- signed cards

KEY = keys_for("ES256")


def key_file(tmp_path: Path) -> str:
    file = tmp_path / "key.jwk"
    file.write_text(json.dumps({**KEY.as_dict(private=True), "alg": "ES256", "kid": "k"}))
    return str(file)


@asynccontextmanager
async def signing(file: str) -> AsyncIterator[Server]:
    """An agent with a signed card."""
    agent = Agent(name="Signed", description="d", version="1", skills=[])
    agent.handle(lambda task: task.text)
    options = {"card_keys": (file,), "public_url": "http://127.0.0.1:1"}
    async with serve(agent, **options) as server:
        yield server


@pytest.mark.requirement("SIGN-10", "SIGN-12")
async def test_a_gateway_uses_no_card_but_one_that_is_signed_by_a_key_it_trusts(tmp_path: Path) -> None:
    file = key_file(tmp_path)
    other = FixedKeys({"keys": [{**keys_for("ES384").as_dict(private=False), "alg": "ES384", "kid": "o"}]})
    async with signing(file) as back:
        for keys, status in ((FixedKeys.from_file(file), 200), (other, 503)):
            async with gateway(back.http_url, verify=Verifier(keys)) as front:
                assert await status_of(front) == status == await status_of(front, "/.well-known/agent-card.json")
        words = ("--upstream", back.http_url, "--upstream-signed-by", file)
        async with Server(command.ready(words)[1](), front.options) as front:
            assert await status_of(front) == 200


@pytest.mark.requirement("SIGN-10", "CARD-25")
async def test_an_extended_card_is_judged_too(tmp_path: Path) -> None:
    file = key_file(tmp_path)
    signer = Signer.from_files([file])
    card = v1.AgentCard(name="x", description="d", version="1")
    card.supported_interfaces.add(url="http://127.0.0.1:1", protocol_binding=GRPC, protocol_version=V1)
    signer.sign(card)
    upstream = Upstream("http://127.0.0.1:1", verify=Verifier(FixedKeys.from_file(file)))
    assert (await upstream._judged(card)).name == "x"
    card.description = "changed"
    fault = await failure(upstream._judged(card))
    assert type(fault) is errors.InvalidAgentResponseError and fault.message == DOUBTED


def test_there_is_nothing_to_verify_without_a_card() -> None:
    with pytest.raises(OptionError, match="no card"):
        Upstream("127.0.0.1:1", verify=lambda document, url: None)


# -- how the upstream is


@pytest.mark.requirement("ERR-11")
async def test_an_upstream_that_takes_no_calls_makes_its_gateway_unready(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("a2a_grpc.gateway_way.LOOK_SECONDS", 0.2)
    server, told = grpc.aio.server(), health.aio.HealthServicer()
    health_pb2_grpc.add_HealthServicer_to_server(told, server)
    v1_grpc.add_A2AServiceServicer_to_server(v1_grpc.A2AServiceServicer(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with gateway(f"127.0.0.1:{port}") as front:
        for state, status in (("SERVING", 200), ("NOT_SERVING", 503), ("SERVING", 200)):
            await told.set("", health_pb2.HealthCheckResponse.ServingStatus.Value(state))

            async def seen(status: int = status) -> bool:
                return await status_of(front) == status

            await eventually(seen)
    await server.stop(None)


@pytest.mark.requirement("SEC-05")
async def test_what_is_secret_in_an_address_is_in_no_log_line_and_no_error(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    address = "http://user:hush-word@127.0.0.1:1/in?key=hush-key"
    several = {"one": Upstream(address), "two": Upstream("127.0.0.1:2")}
    async with (
        serve(several) as server,
        aiohttp.ClientSession() as http,
        http.get(server.http_url + "/tasks/1", headers={"A2A-Version": "1.0"}) as reply,
    ):
        assert reply.status == 503 and "hush" not in await reply.text()
        shown = addresses(server)
        assert "127.0.0.1:1/in" in shown and "grpc://127.0.0.1:2 is ready" in shown and "hush" not in shown
    with pytest.raises(errors.UnavailableError) as told:
        await Client.connect(address)
    assert "127.0.0.1:1/in" in str(told.value) and "127.0.0.1:1/in" in caplog.text
    assert "hush" not in str(told.value) + caplog.text


@pytest.mark.requirement("SEC-05")
async def test_a_cookie_that_an_agent_gives_to_one_caller_goes_with_the_call_of_no_other() -> None:
    shown: list[str] = []

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        if request.path.endswith("agent-card.json"):
            place = f"http://localhost:{request.url.port}"
            return web.json_response(card_of(entry(REST, place)))
        shown.append(request.headers.get("cookie", ""))
        reply = web.json_response({"id": "t1", "status": {"state": "TASK_STATE_WORKING"}})
        reply.set_cookie("session", request.headers["authorization"])
        return reply

    async with listening(answer) as address, gateway(f"http://localhost:{address.rpartition(':')[2]}") as front:
        for name in ("ann", "bob"):
            async with wire_of(front, REST, V1, headers={"authorization": name}) as client:
                assert (await client.get("t1")).id == "t1"
    assert shown == ["", ""]
