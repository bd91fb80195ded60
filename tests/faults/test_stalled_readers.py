"""Readers that never read, beside many tasks at work: each is cut off alone, and nobody else waits (BL-02)."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import grpc.aio
import pytest
from a2a_stubs import v1, v1_grpc

from a2a_grpc.call import GRPC, JSONRPC, REST
from a2a_grpc.cards import WELL_KNOWN
from a2a_grpc.errors import ResourceExhaustedError
from tests.faults.processes import (
    PATIENCE,
    Serving,
    channel_to,
    clients,
    dial,
    ended,
    fetch,
    message,
    read_grpc,
    reason_of,
    serving,
    within,
)

SENDS, EVENTS, BYTES = 40, 300, 20_000
WINDOW = 4096
CARD_SECONDS = 5.0
"""Longer than any hiccup of a busy machine, shorter than a wedged server: that one never answers."""


async def watch_card(server: Serving, stop: asyncio.Event) -> float:
    """The longest time that the card took, asked for all the while."""
    loop, longest = asyncio.get_running_loop(), 0.0
    while not stop.is_set():
        begun = loop.time()
        assert await fetch(server.url, WELL_KNOWN) == 200
        longest = max(longest, loop.time() - begun)
        await asyncio.sleep(0.05)
    return longest


@pytest.mark.requirement("BL-02", "STREAM-06", "STREAM-04", "STREAM-05")
@pytest.mark.limit(240)
async def test_readers_that_never_read_are_cut_off_alone(tmp_path: Path) -> None:
    words = "--stall-timeout", "2", "--store", "memory:"
    async with serving(tmp_path, *words) as server, clients(server) as agents, AsyncExitStack() as stack:
        stop = asyncio.Event()
        card = asyncio.create_task(watch_card(server, stop))
        text = f"count {EVENTS} 0 {BYTES}"
        sent = [agents[GRPC].send(message(text, now=True)) for _ in range(SENDS // 2)]
        stalled = [
            await dial(server.url, binding, "SendStreamingMessage", message(text), window=WINDOW)
            for binding in (JSONRPC, REST)
            for _ in range(SENDS // 8)
        ]
        fixed = {"grpc.http2.bdp_probe": 0}  # else what may be on its way grows with the time that answers take
        channel = await stack.enter_async_context(channel_to(server.grpc, **fixed))
        stub = v1_grpc.A2AServiceStub(channel)
        calls = [stub.SendStreamingMessage(message(text)) for _ in range(SENDS // 4)]
        for call in calls:
            assert (await within(call.read())).HasField("task")
        for started in await within(asyncio.gather(*sent)):
            assert (await ended(agents[REST], started.task.id)).status.state == v1.TASK_STATE_COMPLETED

        async with asyncio.timeout(PATIENCE):
            while server.log.count("cut off") < len(stalled) + len(calls):  # noqa: ASYNC110 - another process's log
                await asyncio.sleep(0.1)
        stop.set()
        assert await card < CARD_SECONDS
        everything = await agents[JSONRPC].list(v1.ListTasksRequest(page_size=100))
        assert len(everything.tasks) == SENDS
        assert {task.status.state for task in everything.tasks} == {v1.TASK_STATE_COMPLETED}

        for dialed in stalled:
            dialed.drop()
        for call in calls:
            _, fault = await read_grpc(call)
            assert fault is not None and fault.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
            assert reason_of(fault) == ResourceExhaustedError.reason
        assert "Traceback" not in server.log
