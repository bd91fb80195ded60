"""Agents that move: a client that reaches nobody at the interfaces it knows looks into a fresh card, once."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from a2a_stubs import v1
from aiohttp import web

from a2a_grpc import errors
from a2a_grpc.call import GRPC
from a2a_grpc.client import Client
from a2a_grpc.client_retries import unsent
from a2a_grpc.remote import RemoteAgent
from a2a_grpc.server import Server
from a2a_grpc.testing import serve, until
from tests.fronts import PATIENCE, WIRES, asking, eventually, failure, gateway, make_agent, wire_of
from tests.peers import card_of, entry, listening


class Moving:
    """A card at an address that stays, and what it says. asked: how often it was asked for."""

    def __init__(self) -> None:
        self.card: Any = card_of()
        self.asked = 0

    def lead_to(self, *entries: dict[str, str]) -> None:
        self.card = card_of(*entries) | {"capabilities": {"streaming": True}}

    async def answer(self, _: Any) -> web.Response:
        self.asked += 1
        if self.card is None:
            return web.Response(status=404)
        return web.json_response(self.card, headers={"cache-control": "max-age=3600"})


@asynccontextmanager
async def moving() -> AsyncIterator[tuple[Moving, str]]:
    place = Moving()
    async with listening(place.answer) as address:
        yield place, f"http://{address}"


async def at(server: Server, binding: str, version: str) -> dict[str, str]:
    """Where a server is on a wire, as its card says it."""
    async with wire_of(server, binding, version) as client:
        return entry(binding, client.interface.url, version)


async def dead() -> str:
    """An address where nobody is any more."""
    async with listening(None) as address:  # type: ignore[arg-type]
        return address


@pytest.mark.requirement("CARD-08", "CARD-18")
@pytest.mark.parametrize(("binding", "version"), WIRES)
async def test_an_agent_that_has_moved_is_called_where_it_is_now(binding: str, version: str) -> None:
    async with moving() as (place, url):
        async with serve(make_agent()) as first:
            place.lead_to(await at(first, binding, version))
            agent = RemoteAgent(url, version=version, timeout=PATIENCE, retries=None)
            assert (await agent.generate("one")).text == "one"
        async with serve(make_agent()) as second:
            place.lead_to(await at(second, binding, version))
            assert (await agent.generate("two")).text == "two"
            assert (await (await agent.client()).send(asking("three"))).task.artifacts
            assert place.asked == 2
        await agent.close()


async def test_who_is_nowhere_is_looked_for_once_in_a_while_and_said_to_be_away() -> None:
    gone = await dead()
    async with moving() as (place, url):
        place.lead_to(entry("JSONRPC", f"http://{gone}/"), entry("HTTP+JSON", f"http://{gone}"))
        async with Client(url, timeout=PATIENCE, retries=None) as client:
            faults = await asyncio.gather(*(failure(client.get("t")) for _ in range(5)))
            faults.append(await failure(anext(client.stream(asking("x")))))
            assert all(type(fault) is errors.UnavailableError and unsent(fault) for fault in faults)
            assert place.asked == 2
            place.card = None
            assert unsent(await failure(client.get("t")))


async def test_a_card_that_leads_nowhere_else_or_cannot_be_had_changes_nothing() -> None:
    gone, gone_too = await dead(), await dead()
    async with moving() as (place, url):
        place.lead_to(entry("JSONRPC", f"http://{gone}/"))
        async with Client(url, timeout=PATIENCE, retries=None) as client:
            place.lead_to(entry("JSONRPC", f"http://{gone_too}/"))
            assert gone_too in (await failure(client.get("t"))).message
            assert place.asked == 2
        place.lead_to(entry("JSONRPC", f"http://{gone}/"))
        async with Client(url, timeout=PATIENCE, retries=None) as client:
            place.card = None
            assert gone in (await failure(client.get("t"))).message


@pytest.mark.requirement("SEC-05")
async def test_who_was_called_over_tls_is_not_called_in_clear_elsewhere() -> None:
    gone = await dead()
    async with moving() as (place, url), serve(make_agent()) as server:
        place.lead_to(entry("JSONRPC", f"https://{gone}/"))
        async with Client(url, timeout=PATIENCE, retries=None) as client:
            place.lead_to(await at(server, "JSONRPC", "1.0"))
            assert gone in (await failure(client.get("t"))).message
            assert place.asked == 2


async def test_a_card_that_was_given_by_hand_or_is_not_known_is_not_looked_for() -> None:
    gone = await dead()
    async with moving() as (place, url):
        by_hand = v1.AgentCard(name="Hand")
        by_hand.supported_interfaces.add(url=f"http://{gone}/", protocol_binding="JSONRPC", protocol_version="1.0")
        for known in (by_hand, f"grpc://{gone}"):
            async with Client(known, timeout=PATIENCE, retries=None) as client:
                assert gone in (await failure(client.get("t"))).message
        assert place.asked == 0


@pytest.mark.requirement("ERR-11")
async def test_a_gateway_follows_an_agent_that_has_moved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("a2a_grpc.gateway_way.LOOK_SECONDS", 0.2)
    async with moving() as (place, url), serve(make_agent()) as first, serve(make_agent()) as second:
        place.lead_to(await at(first, GRPC, "1.0"))
        async with gateway(url) as front, wire_of(front, "JSONRPC", "1.0") as client:
            assert (await client.send(asking("one"))).task.id
            place.lead_to(await at(second, GRPC, "1.0"))
            await first.stop()
            upstream = next(iter(front.agents.values()))
            await until(lambda: not upstream.up or place.asked > 5)

            async def answers() -> bool:
                return upstream.up and bool((await client.send(asking("two"))).task.id)

            await eventually(answers)


@pytest.mark.requirement("CARD-17", "VER-08")
async def test_a_gateway_follows_an_agent_that_now_speaks_another_version_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """There, back, and there again; a stream that was begun before goes on."""
    monkeypatch.setattr("a2a_grpc.gateway_way.LOOK_SECONDS", 0.2)
    async with moving() as (place, url), serve(make_agent()) as back:
        place.lead_to(await at(back, "JSONRPC", "1.0"))
        async with gateway(url) as front, wire_of(front, "JSONRPC", "1.0") as client:
            stream = client.stream(asking("hold"))
            began = (await anext(stream)).task.id
            for binding, version in ((GRPC, "0.3"), ("HTTP+JSON", "1.0"), ("JSONRPC", "0.3")):
                place.lead_to(await at(back, binding, version))
                way = next(iter(front.agents.values()))._way  # type: ignore[union-attr]

                async def follows() -> bool:
                    used = way._client.interface  # noqa: B023 - it is called here
                    return (used.protocol_binding, used.protocol_version) == (binding, version)  # noqa: B023

                await eventually(follows)
                assert way.up and (await client.send(asking("two"))).task.id
            assert (await client.cancel(began)).status.state == v1.TASK_STATE_CANCELED
            assert [event async for event in stream][-1].status_update.status.state == v1.TASK_STATE_CANCELED
            assert len(way._clients) == 2
