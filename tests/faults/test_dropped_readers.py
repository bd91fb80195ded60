"""Readers that go away, at any moment and on any wire: nothing of them stays, and no task minds."""

import asyncio
import logging
import random
from contextlib import suppress

import grpc.aio
import pytest
from a2a_stubs import v1, v1_grpc

from a2a_grpc.call import GRPC, JSONRPC, REST
from a2a_grpc.server import Server
from a2a_grpc.testing import serve, until
from tests.faults import workers
from tests.faults.processes import (
    BINDINGS,
    PATIENCE,
    channel_to,
    client,
    clients,
    dial,
    ended,
    message,
    seeded,
    texts,
    within,
)

DROPS = 1000
AT_A_TIME = 40


def left_behind(server: Server) -> dict[str, int]:
    """What a reader could leave in a server, by name; zeros are left out."""
    http, wire = server._http_host, server._grpc
    assert http is not None
    found = {
        "readers": server.engine.feeds.readers,
        "feeds": len(server.engine.feeds),
        "streams": len(server.streams),
        "HTTP calls": len(http.running),
        "gRPC calls": len(wire.rpcs.running),
        "stream tasks": sum("_pump" in str(task.get_coro()) for task in asyncio.all_tasks()),
    }
    return {name: count for name, count in found.items() if count}


async def drop_http(server: Server, chance: random.Random, operation: str, request: object) -> None:
    dialed = await dial(server.http_url, chance.choice((JSONRPC, REST)), operation, request)
    await asyncio.sleep(chance.random() * 0.03)
    if chance.random() < 0.5:
        with suppress(OSError):
            await within(dialed.reader.readline())
    dialed.drop()


async def drop_grpc(server: Server, chance: random.Random, operation: str, request: object) -> None:
    async with channel_to(server.grpc_address) as channel:
        call = getattr(v1_grpc.A2AServiceStub(channel), operation)(request)
        await asyncio.sleep(chance.random() * 0.03)
        if chance.random() < 0.5:
            await within(call.read())
        if chance.random() < 0.5:
            call.cancel()


@pytest.mark.requirement("BL-35", "SSE-06", "STREAM-04", "STREAM-05")
async def test_a_thousand_dropped_readers_leave_nothing_behind(caplog: pytest.LogCaptureFixture) -> None:
    chance = seeded()
    async with serve(workers.worker, block_warning=0) as server:  # a pause of the machine is no fault
        async with await client(server.http_url, JSONRPC) as agent:
            idle = (await agent.send(message("ask"))).task.id
            busy = (await agent.send(message("sleep 600", now=True))).task.id
        subscriptions = [v1.SubscribeToTaskRequest(id=name) for name in (idle, busy)]

        async def drop() -> None:
            reader = chance.choice((drop_http, drop_grpc))
            if chance.random() < 0.1:
                await reader(server, chance, "SendStreamingMessage", message("count 20 0.005"))
            else:
                await reader(server, chance, "SubscribeToTask", chance.choice(subscriptions))

        most = 0
        for _ in range(0, DROPS, AT_A_TIME):
            await asyncio.gather(*(drop() for _ in range(AT_A_TIME)))
            most = max(most, server.engine.feeds.readers)
        assert most, "no reader was there when its connection was dropped"
        await until(lambda: not left_behind(server) and server.engine.running == 1, PATIENCE)
        async with await client(server.http_url, GRPC) as agent:
            tasks = await agent.list()
            assert {task.status.state for task in tasks.tasks if task.id not in (idle, busy)} <= {
                v1.TASK_STATE_COMPLETED
            }
            assert (await agent.cancel(busy)).status.state == v1.TASK_STATE_CANCELED
    assert not [record for record in caplog.records if record.exc_info or record.levelno >= logging.WARNING]


@pytest.mark.requirement("BL-01", "OP-SEND-21", "GRPC-11", "STREAM-05", "STREAM-04")
@pytest.mark.parametrize("operation", ["SendMessage", "SendStreamingMessage"])
@pytest.mark.parametrize("binding", BINDINGS)
async def test_the_work_goes_on_without_its_caller(binding: str, operation: str) -> None:
    async with serve(workers.worker) as server, clients(server) as agents:
        request = message("parts 5 0.1")
        if binding == GRPC:
            async with channel_to(server.grpc_address) as channel:
                call = getattr(v1_grpc.A2AServiceStub(channel), operation)(request)
                await until(lambda: server.engine.running, PATIENCE)
                if operation == "SendStreamingMessage":
                    assert (await within(call.read())).task.id
        else:
            dialed = await dial(server.http_url, binding, operation, request)
            await until(lambda: server.engine.running, PATIENCE)
            if operation == "SendStreamingMessage":
                await within(dialed.reader.readuntil(b"data: "))
            dialed.drop()
        await until(lambda: not left_behind(server), PATIENCE)
        [task] = (await agents[binding].list()).tasks
        task = await ended(agents[binding], task.id)
        assert task.status.state == v1.TASK_STATE_COMPLETED
        assert texts(task) == [f"part {index}" for index in range(5)]


@pytest.mark.requirement("GRPC-11", "BL-01")
@pytest.mark.parametrize("operation", ["SendMessage", "SendStreamingMessage"])
async def test_a_deadline_ends_the_call_and_not_the_work(operation: str) -> None:
    async with serve(workers.worker) as server, clients(server) as agents, channel_to(server.grpc_address) as channel:
        await within(channel.channel_ready())
        call = getattr(v1_grpc.A2AServiceStub(channel), operation)(message("parts 3 0.7"), timeout=1.5)
        assert await within(call.code()) == grpc.StatusCode.DEADLINE_EXCEEDED
        [task] = (await agents[GRPC].list()).tasks
        assert texts(await ended(agents[GRPC], task.id)) == ["part 0", "part 1", "part 2"]
        await until(lambda: not left_behind(server), PATIENCE)
