"""What a server refuses when it is made, and what it says of itself when its ports are somebody else's."""

import aiohttp
import grpc.aio
import pytest
from a2a_stubs import v1, v1_grpc
from aiohttp import web
from aiohttp.test_utils import TestServer

from a2a_grpc import Agent, OptionError, Options, Server
from a2a_grpc.bindings.grpc import GrpcBinding
from a2a_grpc.bindings.streams import Streams

OPTIONS = {"grpc": "", "http": "", "store": "memory:"}


def made(**settings):
    agent = Agent(name="Echo", description="Says it again.", version="1.0.0", skills=[], **settings)

    @agent.handle
    async def echo(task):
        return task.text

    return agent


@pytest.mark.requirement("REST-05", "TENANT-09", "I-12")
@pytest.mark.parametrize(
    ("agents", "said"),
    [
        ({}, "at least one agent"),
        (Agent(name="Mute", description="Does nothing.", version="1", skills=[]), "no function"),
        (made(tenants=["tasks"]), "no tenant may be named tasks"),
        (made(tenants=["v1"]), "no tenant may be named v1"),
        (made(tenants=["a/b"]), "not fit as a name in paths: 'a/b'"),
        ({"": made(), "b": made()}, "need a name each"),
        ({"extendedAgentCard": made(), "b": made()}, "no tenant may be named extendedAgentCard"),
    ],
)
def test_a_server_that_could_not_work_is_refused_when_it_is_made(agents, said):
    with pytest.raises(OptionError, match=said):
        Server(agents, Options(**OPTIONS))


@pytest.mark.requirement("I-12")
def test_a_tenant_named_v1_is_fine_without_v03():
    Server(made(tenants=["v1"]), Options(**OPTIONS, versions=("1.0",)))


def test_a_store_of_an_unknown_kind_is_refused_by_name():
    with pytest.raises(OptionError, match="store must start with one of memory:, sqlite:"):
        Server(made(), Options(grpc="", http="", store="mysql://x"))


@pytest.mark.requirement("BL-45", "CARD-05")
async def test_a_mounted_server_lists_the_grpc_address_that_it_was_told():
    server = Server(made(), Options(**OPTIONS, public_grpc="agents.example:443"))
    outer = web.Application()
    outer.add_subapp("/bots", server.application())
    async with TestServer(outer) as site, aiohttp.ClientSession() as session:
        async with session.get(site.make_url("/bots/.well-known/agent-card.json")) as reply:
            card = await reply.json()
        found = {entry["protocolBinding"]: entry["url"] for entry in card["supportedInterfaces"]}
        assert found["GRPC"] == "agents.example:443"
        body = {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "hi"}]}}
        async with session.post(found["HTTP+JSON"] + "/message:send", json=body) as reply:
            assert (await reply.json())["task"]["artifacts"][0]["parts"] == [{"text": "hi"}]


@pytest.mark.requirement("GRPC-01", "OP-STREAM-08")
async def test_a_server_of_the_users_own_streams_and_lists_by_the_stubs_alone():
    agent = Agent(name="Counts", description="Counts.", version="1", skills=[])

    @agent.handle
    async def count(task):
        async with task.artifact() as out:
            for number in range(3):
                await out.write(str(number))

    async with Server(agent, Options(**OPTIONS | {"http": "127.0.0.1:0"})) as served:
        hello = v1.Message(message_id="m", role=v1.ROLE_USER, parts=[v1.Part(text="hi")])
        server = grpc.aio.server()
        binding = GrpcBinding(served.service, Options(), Streams(10))
        v1_grpc.add_A2AServiceServicer_to_server(binding.services["1.0"], server)
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            stub = v1_grpc.A2AServiceStub(channel)
            told = [event async for event in stub.SendStreamingMessage(v1.SendMessageRequest(message=hello))]
            texts = [
                event.artifact_update.artifact.parts[0].text for event in told if event.HasField("artifact_update")
            ]
            assert texts == ["0", "1", "2", ""]
            assert [task.id for task in (await stub.ListTasks(v1.ListTasksRequest())).tasks] == [told[0].task.id]
        await server.stop(None)
