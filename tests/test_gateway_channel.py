"""How a gateway holds its connections: shared among several servers, several to one, tried while they are silent."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import grpc.aio
import pytest
from a2a_stubs import v1, v1_grpc

from a2a_grpc import client_auth, errors
from a2a_grpc.call import GRPC, JSONRPC, REST, V1
from a2a_grpc.cards import grpc_target
from a2a_grpc.client_auth import Channel
from a2a_grpc.commands import gateway as command
from a2a_grpc.commands.words import UsageError
from a2a_grpc.gateway import Upstream
from a2a_grpc.testing import serve
from tests.fakes import FakeService
from tests.fronts import PATIENCE, asking, failure, faked, gateway, last_of, make_agent, wire_of


async def ask(client: Any, times: int) -> None:
    for _ in range(times):
        await client.get("t1")


async def test_calls_go_to_all_servers_in_turn_and_to_those_that_are_left_when_one_dies() -> None:
    services = [FakeService(), FakeService()]
    async with AsyncExitStack() as first:
        one = await first.enter_async_context(faked(services[0]))
        async with faked(services[1]) as two:
            channel = Channel(balance="round_robin")
            async with gateway(f"ipv4:{one},{two}", channel=channel) as front, wire_of(front, REST, V1) as client:
                async with asyncio.timeout(PATIENCE):
                    while not all(len(service.calls) > 3 for service in services):
                        await ask(client, 4)
                await first.aclose()
                before = len(services[1].calls)
                async with asyncio.timeout(PATIENCE):
                    while len(services[1].calls) < before + 10:
                        try:
                            await ask(client, 1)
                        except errors.UnavailableError:  # it was on its way to the one that died
                            await asyncio.sleep(0.05)
                await ask(client, 10)


@pytest.mark.parametrize("url", ["dns:///localhost:{}", "localhost:{}", "grpc://dns:///localhost:{}"])
async def test_the_resolver_of_grpc_finds_the_servers_of_a_name(url: str) -> None:
    service = FakeService()
    async with faked(service) as address:
        upstream = Upstream(url.format(address.rpartition(":")[2]), channel=Channel(balance="round_robin"))
        await upstream.open()
        assert upstream.up
        await upstream.close()


def test_names_for_the_resolver_are_dialed_as_they_are() -> None:
    assert grpc_target("grpcs://dns:///agents:443") == ("dns:///agents:443", True)
    assert grpc_target("grpc://ipv4:10.0.0.1:1,10.0.0.2:2") == ("ipv4:10.0.0.1:1,10.0.0.2:2", False)


class Peers(v1_grpc.A2AServiceServicer):
    """Knows from where it was called."""

    def __init__(self) -> None:
        self.seen: set[str] = set()

    async def GetTask(self, request: v1.GetTaskRequest, context: Any) -> v1.Task:
        self.seen.add(context.peer())
        return v1.Task(id=request.id)


@asynccontextmanager
async def peers() -> AsyncIterator[tuple[Peers, str]]:
    server, service = grpc.aio.server(), Peers()
    v1_grpc.add_A2AServiceServicer_to_server(service, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    yield service, f"127.0.0.1:{port}"
    await server.stop(None)


@pytest.mark.parametrize("count", [0, 1, 3])
async def test_so_many_connections_share_the_calls(count: int) -> None:
    async with peers() as (service, address):
        async with gateway(address, channel=Channel(connections=count)) as front, wire_of(front, GRPC, V1) as client:
            await ask(client, 7)
        assert len(service.seen) == (count or 1)


async def test_no_more_connections_are_made_over_http_than_may_be() -> None:
    async with (
        serve(make_agent()) as back,
        gateway(back.http_url, binding=JSONRPC, channel=Channel(connections=2)) as front,
        wire_of(front, REST, V1) as client,
    ):
        streams = [client.stream(asking("hold")) for _ in range(2)]
        tasks = [(await anext(stream)).task.id for stream in streams]
        waiting = asyncio.create_task(client.get(tasks[0]))
        done, _ = await asyncio.wait((waiting,), timeout=0.3)
        assert not done
        await streams[0].aclose()
        assert (await waiting).id == tasks[0]
        await streams[1].aclose()


class Hole:
    """Passes bytes on until it swallows them all without a word."""

    def __init__(self) -> None:
        self.open = True

    async def pipe(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        try:
            while chunk := await source.read(65536):
                if self.open:
                    sink.write(chunk)
        except (ConnectionError, asyncio.CancelledError):
            pass
        sink.close()


async def test_a_connection_that_died_without_a_word_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_auth, "PING_TIMEOUT_MS", 300)
    service, hole, pipes = FakeService(), Hole(), []
    service.wait = asyncio.Event().wait()
    async with faked(service) as address:

        async def join(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            there, back = await asyncio.open_connection(*address.split(":"))
            pipes.extend(asyncio.create_task(hole.pipe(*pair)) for pair in ((reader, back), (there, writer)))

        server = await asyncio.start_server(join, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        async with (
            gateway(f"127.0.0.1:{port}", channel=Channel(keepalive=0.3)) as front,
            wire_of(front, REST, V1) as client,
        ):
            events = client.stream(asking("x"))
            await anext(events)
            await anext(events)
            hole.open = False
            assert type(await asyncio.wait_for(last_of(events), PATIENCE)) is errors.UnavailableError
        server.close()
        for pipe in pipes:
            pipe.cancel()


def test_the_command_takes_them_and_refuses_what_cannot_be() -> None:
    words = ("--upstream", "agents=dns:///agents.example:50051", "--upstream-keepalive", "20")
    words += ("--upstream-balance", "round_robin", "--upstream-connections", "4")
    upstream = command.ready(words)[1]()["agents"]
    assert upstream.url == "grpc://dns:///agents.example:50051"
    assert upstream._way.settings["channel"] == Channel(20.0, "round_robin", 4)
    for wrong in (("--upstream-keepalive", "-1"), ("--upstream-balance", "x"), ("--upstream-connections", "x")):
        with pytest.raises(UsageError):
            command.ready((*words, *wrong))
    for settings in ({"keepalive": -1.0}, {"balance": "x"}, {"connections": -1}):
        with pytest.raises(ValueError, match="channel"):
            Channel(**settings)  # type: ignore[arg-type]


async def test_without_any_server_a_name_is_not_there() -> None:
    async with gateway("ipv4:127.0.0.1:9,127.0.0.1:10") as front, wire_of(front, REST, V1) as client:
        assert type(await failure(client.get("t"))) is errors.UnavailableError
