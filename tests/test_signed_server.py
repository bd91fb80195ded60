"""A server that signs its cards: which forms are signed, for whom, and where the keys are."""

import json
import socket
from base64 import urlsafe_b64decode as b64decode
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from a2a_stubs import v1
from joserfc.jwk import ECKey

from a2a_grpc import errors
from a2a_grpc.agent import Agent, Extension, Skill, TaskHandle
from a2a_grpc.auth import ApiKey, hashed
from a2a_grpc.auth_keys import FixedKeys, keys_of
from a2a_grpc.call import Call, Caller
from a2a_grpc.client import Client
from a2a_grpc.config import OptionError, Options
from a2a_grpc.gateway import Upstream
from a2a_grpc.protojson import encode
from a2a_grpc.server import Server
from a2a_grpc.signing import Signer
from a2a_grpc.verification import DOCUMENT, SPEC, Verifier

KEY = ECKey.generate_key("P-256", {"kid": "first"})
CARD, JWKS = "/.well-known/agent-card.json", "/.well-known/jwks.json"
PUBLIC = "https://agent.example"
WIRES = ("JSONRPC", "HTTP+JSON", "GRPC")


def agent() -> Agent:
    async def fuller(call: Call) -> v1.AgentCard:
        return v1.AgentCard(description=f"For {call.caller.subject}.")

    made = Agent(
        name="Signér",
        description="Signs.",
        version="1",
        skills=[Skill(id="s", name="S")],
        extensions=[Extension("urn:x", required=True, params={"é": [1.5, "", None]})],
        extended_card=fuller,
    )

    @made.handle
    async def work(task: TaskHandle) -> str:
        return "done"

    return made


@pytest.fixture
def key_file(tmp_path: Path) -> str:
    file = tmp_path / "key.json"
    file.write_text(json.dumps(KEY.as_dict(private=True)))
    return str(file)


def options(key_file: str, **more: Any) -> Options:
    given: dict[str, Any] = {"grpc": "127.0.0.1:0", "http": "127.0.0.1:0", "store": "memory:", "grace": 0.0}
    return Options(**given | {"card_keys": (key_file,), "public_url": PUBLIC, "serve_jwks": True} | more)


@pytest.fixture
async def server(key_file: str) -> AsyncIterator[Server]:
    keys = ApiKey({hashed("a"): "ann", hashed("b"): "bob"})
    with socket.socket() as held:  # so that the address is known beforehand, and nobody else's
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        held.bind(("127.0.0.1", 0))
        place = f"127.0.0.1:{held.getsockname()[1]}"
        told = options(key_file, http=place, public_url=f"http://{place}", reuse_port=True, allowed_hosts=("*",))
        async with Server(agent(), told, authenticators=keys) as running:
            yield running


async def fetched(url: str, **headers: str) -> Any:
    async with aiohttp.ClientSession() as session, session.get(url, headers=headers) as reply:
        assert reply.status == 200, await reply.text()
        return await reply.json(content_type=None)


def verifier(**settings: Any) -> Verifier:
    return Verifier(FixedKeys([KEY]), **settings)


@pytest.mark.requirement("SIGN-01", "SIGN-10")
async def test_a_client_believes_the_card_by_the_published_keys(server: Server):
    found = FixedKeys(await fetched(server.http_url + JWKS))
    async with Client(server.http_url, verify=Verifier(found)) as client:
        assert client.card is not None and client.card.name == "Signér"
    stranger = FixedKeys([ECKey.generate_key("P-256", {"kid": "first"})])
    with pytest.raises(errors.InvalidAgentResponseError, match="does not fit what the card says"):
        await Client.connect(server.http_url, verify=Verifier(stranger))


@pytest.mark.requirement("SIGN-06", "SIGN-11")
async def test_only_public_parts_are_published(server: Server):
    async with aiohttp.ClientSession() as session:
        async with session.get(server.http_url + JWKS) as reply:
            assert (reply.status, reply.content_type) == (200, "application/jwk-set+json")
            [key] = (await reply.json(content_type=None))["keys"]
            assert reply.headers["cache-control"] == "public, max-age=300"
        async with session.head(server.http_url + JWKS) as reply:
            assert (reply.status, await reply.read()) == (200, b"")
        async with session.post(server.http_url + JWKS) as reply:
            assert reply.status == 405
    shown = KEY.as_dict(private=False)
    assert key == {**shown, "use": "sig", "alg": "ES256"}
    document = await fetched(server.http_url + CARD)
    found = await verifier().verify(document, "")
    assert found is not None and (found.kid, found.jku) == ("first", server.http_url + JWKS)


@pytest.mark.requirement("SIGN-12", "I-58", "I-10", "L-22")
async def test_each_form_has_the_signatures_that_hold_for_it(server: Server):
    pure = await fetched(server.http_url + CARD, **{"A2A-Version": "1.0"})
    both = await fetched(server.http_url + CARD)
    old = await fetched(server.http_url + CARD, **{"A2A-Version": "0.3"})
    assert "signatures" not in old and old["protocolVersion"] == "0.3.0"
    assert "protocolVersion" not in pure and both["protocolVersion"] == "0.3.0"
    for document, forms in ((pure, [SPEC, DOCUMENT]), (both, [SPEC, DOCUMENT])):
        for form in forms:
            found = await verifier(forms=[form]).verify(document, "")
            assert found is not None and found.form == form
    http = await fetched(server.http_url + CARD + "?bindings=http", **{"A2A-Version": "1.0"})
    assert len(http["supportedInterfaces"]) < len(pure["supportedInterfaces"])
    assert await verifier().verify(http, "") is not None


@pytest.mark.requirement("SIGN-01", "SIGN-12", "CARD-24")
@pytest.mark.parametrize("binding", WIRES)
async def test_the_extended_card_is_signed_for_each_caller(server: Server, binding: str):
    for key, name in (("a", "ann"), ("b", "bob")):
        headers = {"x-api-key": key}
        async with Client(server.http_url, verify=verifier(), headers=headers, binding=binding) as client:
            card = await client.extended_card()
        assert card.description == f"For {name}." and card.signatures


@pytest.mark.requirement("EXT-05", "I-65")
async def test_the_extended_card_needs_no_extension_and_names_those_in_force(server: Server):
    headers = {"A2A-Version": "1.0", "x-api-key": "a", "A2A-Extensions": "urn:x, urn:unknown"}
    async with (
        aiohttp.ClientSession() as session,
        session.get(server.http_url + "/extendedAgentCard", headers=headers) as reply,
    ):
        assert (reply.status, reply.headers["A2A-Extensions"]) == (200, "urn:x")
    async with Client(server.http_url, headers={"x-api-key": "a"}) as client:
        assert client.card is not None and client.card.capabilities.extensions[0].required
        assert (await client.extended_card()).description == "For ann."


@pytest.mark.requirement("SIGN-12", "L-22")
async def test_the_extended_card_of_an_old_client_is_not_signed(server: Server):
    call = {"jsonrpc": "2.0", "id": 1, "method": "agent/getAuthenticatedExtendedCard", "params": {}}
    headers = {"A2A-Version": "0.3", "x-api-key": "a"}
    async with (
        aiohttp.ClientSession() as session,
        session.post(server.http_url, json=call, headers=headers) as reply,
    ):
        result = (await reply.json(content_type=None))["result"]
    assert result["description"] == "For ann." and "signatures" not in result


@pytest.mark.requirement("SIGN-12")
async def test_an_extended_card_that_is_filled_in_loses_the_signatures_of_its_author(key_file: str):
    mine = agent()
    mine.extended_card = v1.AgentCard(description="More.", signatures=[v1.AgentCardSignature(protected="p")])
    keys = ApiKey({hashed("a"): "ann"})
    here = {"grpc": "", "http": "127.0.0.1:0", "store": "memory:", "grace": 0.0}
    async with (
        Server(mine, Options(**here), authenticators=keys) as running,
        Client(running.http_url, headers={"x-api-key": "a"}) as client,
    ):
        assert not (await client.extended_card()).signatures


@pytest.mark.requirement("SIGN-02", "CARD-17")
async def test_replicas_agree_on_the_mark_of_a_card(server: Server, key_file: str):
    told = options(key_file, public_url=server.http_url)
    async with Server(agent(), told, authenticators=ApiKey({hashed("a"): "ann"})) as other:
        found = []
        for each in (server, other):
            async with (
                aiohttp.ClientSession() as session,
                session.get(each.http_url + CARD + "?bindings=http") as reply,
            ):
                found.append((reply.headers["etag"], (await reply.json(content_type=None))["signatures"]))
    assert found[0][0] == found[1][0] and found[0][1] != found[1][1]


@pytest.mark.requirement("SIGN-12")
async def test_a_gateway_signs_the_card_that_it_shows(server: Server, key_file: str, tmp_path: Path):
    other = ECKey.generate_key("P-384", {"kid": "gate"})
    file = tmp_path / "gate.pem"
    file.write_bytes(other.as_pem(private=True))
    assert (await fetched(server.http_url + CARD))["signatures"]
    async with Server(Upstream(server.http_url), options(str(file))) as gate:
        document = await fetched(gate.http_url + CARD, **{"A2A-Version": "1.0"})
    assert await Verifier(FixedKeys(keys_of(file))).verify(document, "") is not None
    with pytest.raises(errors.InvalidAgentResponseError):
        await verifier().verify(document, "")


@pytest.mark.requirement("SIGN-07", "SIGN-09")
async def test_keys_are_changed_without_a_restart(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("a2a_grpc.key_files.LOOK", 0.0)
    old, new = (ECKey.generate_key("P-256", {"kid": kid}) for kid in ("old", "new"))
    file = tmp_path / "keys.json"

    def write(*keys: ECKey) -> None:
        (tmp_path / "next").write_text(json.dumps({"keys": [key.as_dict(private=True) for key in keys]}))
        (tmp_path / "next").replace(file)

    async def names() -> list[set[str]]:
        """Of the keys that sign the public and the extended card, and of those that are published."""
        call = Call("GetExtendedAgentCard", caller=Caller("ann", authenticated=True))
        extended = encode(await server.service.GetExtendedAgentCard(v1.GetExtendedAgentCardRequest(), call))
        cards = (await fetched(server.http_url + CARD, **{"A2A-Version": "1.0"}), extended)
        signed = [{json.loads(b64decode(s["protected"] + "=="))["kid"] for s in card["signatures"]} for card in cards]
        return [*signed, {key["kid"] for key in (await fetched(server.http_url + JWKS))["keys"]}]

    write(old)
    keys = ApiKey({hashed("a"): "ann"})
    async with Server(agent(), options(str(file)), authenticators=keys) as server:
        for listed, told in (((old,), {"old"}), ((old, new), {"old", "new"}), ((new,), {"new"})):
            write(*listed)
            assert await names() == [told] * 3
        file.write_text("{}")
        assert await names() == [{"new"}] * 3 and "keys stay as they were" in caplog.text
        file.unlink()
        assert await names() == [{"new"}] * 3
        write(old)
        assert await names() == [{"old"}] * 3


@pytest.mark.requirement("BL-45", "SIGN-01")
async def test_no_address_that_a_caller_made_up_is_signed(server: Server, key_file: str):
    evil = {"Host": "evil.example", "X-Forwarded-Host": "evil.example", "X-Forwarded-Prefix": "/evil"}
    shown = await fetched(server.http_url + CARD, **evil, **{"A2A-Version": "1.0"})
    assert "evil" not in json.dumps(shown)
    with pytest.raises(OptionError, match="card_keys needs public_url"):
        options(key_file, public_url="")
    for settings in ({"serve_jwks": True}, {"card_jku": "https://keys.example"}):
        with pytest.raises(OptionError, match="need card_keys"):
            Options(**settings)
    with pytest.raises(OptionError, match="holds no key"):
        Server(agent(), options(__file__))
    with pytest.raises(OSError):
        Server(agent(), options(key_file + ".gone"))


@pytest.mark.requirement("SIGN-07", "SIGN-09")
async def test_a_key_signs_in_its_time_alone_and_the_log_tells_of_it_before(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    day, now = 86_400.0, [1_000_000_000.0]
    old, new = (
        ECKey.generate_key("P-256", {"kid": kid, **times})
        for kid, times in (
            ("old", {"exp": now[0] + 10 * day}),
            ("new", {"nbf": now[0] + 9 * day, "exp": now[0] + 30 * day}),
        )
    )
    server._cards._signer = Signer([old, new], clock=lambda: now[0])

    async def names() -> list[set[str]]:
        """Of the keys that sign the public and the extended card."""
        call = Call("GetExtendedAgentCard", caller=Caller("ann", authenticated=True))
        extended = encode(await server.service.GetExtendedAgentCard(v1.GetExtendedAgentCardRequest(), call))
        cards = (await fetched(server.http_url + CARD, **{"A2A-Version": "1.0"}), extended)
        signed = [card.get("signatures", []) for card in cards]
        return [{json.loads(b64decode(each["protected"] + "=="))["kid"] for each in one} for one in signed]

    told = []
    for days, kids in ((0, {"old"}), (4, {"old"}), (9, {"old", "new"}), (10, {"new"}), (29.5, {"new"}), (30, set())):
        now[0] = 1_000_000_000.0 + days * day
        assert await names() == [kids] * 2
        told.append([record.getMessage() for record in caplog.records])
        caplog.clear()
    assert told == [
        [],
        ["the key old signs cards only until 2001-09-19 01:46 UTC"],
        ["the key old signs cards only until 2001-09-19 01:46 UTC"],
        ["the key old has expired and signs cards no more"],
        ["the key new signs cards only until 2001-10-09 01:46 UTC"],
        [
            "the key new has expired and signs cards no more",
            "no key is left to sign cards with: they are shown without signatures",
        ],
    ]


@pytest.mark.requirement("SIGN-09", "SIGN-11")
def test_a_server_does_not_start_without_a_key_that_may_sign_now(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    gone, later = (
        ECKey.generate_key("P-256", {"kid": kid, **told}) for kid, told in (("a", {"exp": 1}), ("b", {"nbf": 9e9}))
    )
    file = tmp_path / "keys.json"
    for keys, starts in (((gone, later), False), ((gone,), False), ((gone, later, KEY), True)):
        file.write_text(json.dumps({"keys": [key.as_dict(private=True) for key in keys]}))
        if starts:
            assert Server(agent(), options(str(file)))
            assert "the key a has expired and signs cards no more" in caplog.text
        else:
            with pytest.raises(OptionError, match="no private key to sign cards with: a has expired"):
                Server(agent(), options(str(file)))
