"""Chains of agents: two of ours, one of them at 0.3, then a gateway and an agent on an official SDK; and with an agent
on the SDK of another language between them, so that each of four agents is called on another wire."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from a2a_stubs import v1

from a2a_grpc import Agent, RemoteAgent, TaskHandle
from a2a_grpc.call import Call
from a2a_grpc.client import Client
from a2a_grpc.testing import serve
from tests.fronts import gateway
from tests.interop.test_sdk_servers import place

RUNS, AT_ONCE = 100, 5


class Chain(NamedTuple):
    """The agent at the top, the address of the one at the bottom, and the traces that the agents between have seen."""

    top: RemoteAgent
    bottom: str
    traces: list[str]


@asynccontextmanager
async def passing(below: RemoteAgent, traces: list[str]) -> AsyncIterator[str]:
    """The address of an agent of ours that lets another one work."""
    agent = Agent(name="Middle", description="Passes on.", version="1", skills=[])

    @agent.handle
    async def work(task: TaskHandle) -> Any:
        traces.append(task.call.metadata.get("traceparent", ""))
        return (await task.delegate(below)).checked().text

    async with serve(agent) as server, below:
        yield server.http_url


@asynccontextmanager
async def relayed(below: str, folder: Path) -> AsyncIterator[RemoteAgent]:
    """An agent on the official Python SDK that lets another one work."""
    found = place("sdk1", folder)
    with found._replace(command=[*found.command, below]).running():
        yield RemoteAgent(found.url, binding="HTTP+JSON", version="1.0")


@pytest.fixture(params=["sdk1", "node1"])
async def chain(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Chain]:
    where, traces = place(request.param, tmp_path), []

    @asynccontextmanager
    async def seen(call: Call, message: Any) -> AsyncIterator[None]:
        if isinstance(message, v1.SendMessageRequest):
            traces.append(call.metadata.get("traceparent", ""))
        yield

    with where.running():
        async with AsyncExitStack() as stack:
            more = {"interceptors": [seen]}
            front = await stack.enter_async_context(gateway(where.url, binding="JSONRPC", version="1.0", server=more))
            if request.param == "node1":
                below = await stack.enter_async_context(relayed(front.http_url, tmp_path))
            else:
                below = RemoteAgent(front.http_url, binding="HTTP+JSON", version="0.3")
            lower = await stack.enter_async_context(passing(below, traces))
            upper = await stack.enter_async_context(passing(RemoteAgent(lower, binding="GRPC", version="0.3"), traces))
            yield Chain(await stack.enter_async_context(RemoteAgent(upper, timeout=120)), where.url, traces)


@pytest.mark.requirement("OP-CANCEL-03", "AUTH-11", "EQ-02")
async def test_work_questions_and_cancel_go_through_a_chain_of_four(chain: Chain) -> None:
    room = asyncio.Semaphore(AT_ONCE)

    async def once(number: int) -> str:
        trace = f"00-{number + 1:032x}-{number + 1:016x}-01"
        async with room:
            return (await chain.top.generate(f"n{number}", headers={"traceparent": trace})).text

    texts = await asyncio.gather(*map(once, range(RUNS)))
    assert texts == [f"echo n{number}" for number in range(RUNS)]
    seen = [re.fullmatch("00-([0-9a-f]{32})-[0-9a-f]{16}-0[01]", trace) for trace in chain.traces]
    ids = sorted(found[1] for found in seen if found)
    assert ids == sorted([f"{number + 1:032x}" for number in range(RUNS)] * 3), "one trace for each run, all the way"

    asked = await chain.top.generate("ask")
    assert asked.suspended is not None and asked.suspended.prompt == "Which?"
    assert (await chain.top.resume("this", run_id=asked.run_id)).text == "echo this"

    run = chain.top.stream("wait")
    assert await anext(run)
    async with Client(chain.bottom) as bottom:
        working = v1.ListTasksRequest(status=v1.TASK_STATE_WORKING)
        async with asyncio.timeout(60):
            while not (waiting := [task.id async for task in bottom.tasks(working)]):  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        assert (await chain.top.abort(run.run_id)).finish_reason == "canceled"
        async with asyncio.timeout(60):
            assert (await bottom.wait(waiting[0])).status.state == v1.TASK_STATE_CANCELED
