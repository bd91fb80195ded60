"""Cards as a client gets them: kept, asked for by condition, refused when they are too much, never with our secrets."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from a2a_stubs import v1
from aiohttp import web

from a2a_grpc import errors
from a2a_grpc.client import Client
from a2a_grpc.client_cards import MOST_BYTES, CardCache
from tests.peers import card_of, entry, listening

TAG = '"one"'


class Desk:
    """Serves one card with the headers that the test wants, and notes what it was asked."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.card = card_of(entry("JSONRPC", "http://127.0.0.1:1/one"))
        self.headers: dict[str, str] = {"etag": TAG, "cache-control": "max-age=60"}
        self.moved = ""
        self.url = ""

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(request.headers)
        if self.moved:
            return web.Response(status=302, headers={"location": self.moved})
        if request.headers.get("if-none-match") == self.headers.get("etag", "none"):
            return web.Response(status=304, headers=self.headers)
        return web.Response(text=json.dumps(self.card), content_type="application/json", headers=self.headers)


@asynccontextmanager
async def desk() -> AsyncIterator[Desk]:
    made = Desk()
    async with listening(made.answer) as address:
        made.url = f"http://{address}"
        yield made


@pytest.mark.requirement("CARD-18")
async def test_a_card_is_asked_for_again_only_when_it_is_stale_and_then_by_condition() -> None:
    async with desk() as here, Client(here.url) as client:
        first = client.card
        assert await client.refresh_card() is first and len(here.asked) == 1
        assert await client.refresh_card(force=True) is first and len(here.asked) == 2
        assert here.asked[1]["if-none-match"] == TAG and here.asked[1]["cache-control"] == "no-cache"
        here.headers["cache-control"] = "no-cache"
        await client.refresh_card(force=True)
        await client.refresh_card()
        assert len(here.asked) == 4
        here.card["supportedInterfaces"][0]["url"] = "http://127.0.0.1:1/two"
        here.headers["etag"] = '"two"'
        changed = await client.refresh_card()
        assert changed is not None and changed is client.card
        assert client.interface.url == "http://127.0.0.1:1/two"


@pytest.mark.requirement("CARD-18")
@pytest.mark.parametrize(
    ("headers", "asked"),
    [
        ({"cache-control": "no-store"}, 2),
        ({"cache-control": "public, max-age=60", "age": "61"}, 2),
        ({"cache-control": "max-age=60", "age": "1"}, 1),
        ({}, 1),
    ],
)
async def test_how_long_a_card_is_good_is_up_to_its_server(headers: dict[str, str], asked: int) -> None:
    async with desk() as here:
        here.headers = headers
        shared = CardCache()
        for _ in range(2):
            await (await Client.connect(here.url, cards=shared)).close()
        assert len(here.asked) == asked
        assert all("if-none-match" not in headers for headers in here.asked)


async def test_a_card_that_was_judged_is_judged_again_only_when_it_has_changed() -> None:
    judged: list[str] = []

    def verify(document: Any, url: str) -> v1.AgentCard | None:
        judged.append(document["version"])
        return None

    async with desk() as here, Client(here.url, verify=verify) as client:
        await client.refresh_card(force=True)
        here.card["version"], here.headers["etag"] = "10", '"ten"'
        await client.refresh_card(force=True)
    assert judged == ["9", "10"]


@pytest.mark.requirement("SEC-05")
async def test_credentials_do_not_follow_a_card_to_another_server() -> None:
    async with desk() as here, desk() as there:
        here.moved = there.url + "/card.json"
        async with Client(here.url, headers={"x-key": "secret"}, auth="token") as client:
            assert client.card is not None and client.card.name == "Peer"
        assert here.asked[0]["x-key"] == "secret" and here.asked[0]["authorization"] == "Bearer token"
        assert not {"x-key", "authorization"} & {name.lower() for name in there.asked[0]}
        here.moved = here.url + "/again.json"
        with pytest.raises(errors.UnavailableError, match="circles"):
            await Client.connect(here.url)
        here.moved = "ftp://127.0.0.1/card.json"
        with pytest.raises(errors.UnavailableError, match="redirects"):
            await Client.connect(here.url)


async def test_what_is_too_large_for_a_card_is_not_read() -> None:
    async with desk() as here:
        here.card["description"] = "x" * (MOST_BYTES + 1)
        with pytest.raises(errors.InvalidAgentResponseError, match="larger") as told:
            await Client.connect(here.url + "/card.json?key=hush")
        assert "hush" not in str(told.value)


@pytest.mark.requirement("CARD-07", "VER-08")
async def test_the_newest_version_is_taken_unless_one_is_pinned_and_bindings_in_the_order_wished() -> None:
    card = v1.AgentCard(name="Many")
    for binding, version in (("JSONRPC", "0.3"), ("HTTP+JSON", "1.0"), ("GRPC", "1.0"), ("GRPC", "0.3.0")):
        url = "127.0.0.1:1" if binding == "GRPC" else "http://127.0.0.1:1"
        card.supported_interfaces.add(url=url, protocol_binding=binding, protocol_version=version)
    for settings, expected in (
        ({"version": None}, ("HTTP+JSON", "1.0")),
        ({"version": "0.3"}, ("JSONRPC", "0.3")),
        ({"version": None, "binding": ("GRPC", "JSONRPC")}, ("GRPC", "1.0")),
        ({"version": "0.3", "binding": "GRPC"}, ("GRPC", "0.3.0")),
    ):
        async with Client(card, **settings) as client:
            assert (client.interface.protocol_binding, client.interface.protocol_version) == expected
    with pytest.raises(errors.VersionNotSupportedError):
        await Client.connect(card, binding="JSONRPC")
