"""Agents on stock stubs of other languages behind a gateway: they speak gRPC 1.0 alone, and get every wire and version,
streams that resume, and their own errors with all details."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest
from a2a_stubs import v1

from a2a_grpc.call import REST, V1
from a2a_grpc.errors import ContentTypeNotSupportedError, TaskNotFoundError
from tests.fronts import PATIENCE, WIRES, asking, failure, gateway, wire_of
from tests.interop.conftest import made, steps

DONE = {"state": "TASK_STATE_COMPLETED", "text": "hello"}
UNKNOWN = {"status": 5, "reason": "TASK_NOT_FOUND", "domain": "a2a-protocol.org"}


@asynccontextmanager
async def stock() -> AsyncIterator[str]:
    """An agent in TypeScript, on the stubs of ts-proto; its address."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec("node", made("A2A_TS_FOLDER") / "server.js", stdout=pipe)
    try:
        assert process.stdout is not None
        yield (await asyncio.wait_for(process.stdout.readline(), PATIENCE)).decode().strip()
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


@pytest.mark.requirement("GRPC-01", "ERR-15", "EQ-02")
async def test_an_agent_on_stock_stubs_answers_on_every_wire_and_version() -> None:
    async with stock() as address, gateway(address) as front:
        for wire in WIRES:
            async with wire_of(front, *wire) as client:
                done = (await client.send(asking("one two"))).task
                assert done.artifacts[0].parts[0].text == "one two"
                assert (await client.get(done.id)).status.state == v1.TASK_STATE_COMPLETED
                events = [event async for event in client.stream(asking("one two"))]
                assert [event.artifact_update.artifact.parts[0].text for event in events[1:-1]] == ["one", " two"]
                assert events[-1].status_update.status.state == v1.TASK_STATE_COMPLETED
                assert type(await failure(client.get("nobody"))) is TaskNotFoundError
                refused = await failure(client.send(asking("refuse")))
                assert type(refused) is ContentTypeNotSupportedError
                if wire[1] == V1:
                    assert (refused.message, refused.metadata) == ("not that", {"at": "ts"})


@pytest.mark.requirement("GRPC-01", "GRPC-07", "V03-26")
async def test_a_client_on_stock_stubs_of_another_language_calls_it_through_the_gateway() -> None:
    program = made("A2A_GO_FOLDER") / "bin" / "client"
    async with stock() as address, gateway(address) as front:
        seen = await asyncio.to_thread(steps, program, front.grpc_address)
    old = {"send 0.3": DONE, "stream 0.3": {**DONE, "final": True}, "error 0.3": UNKNOWN}
    assert seen == {"send": DONE, "stream": DONE, "error": UNKNOWN} | old


async def test_its_streams_resume_at_the_gateway() -> None:
    async with stock() as address, gateway(address, buffer=1 << 20) as front, wire_of(front, REST, V1) as client:
        events = client.stream(asking("a b c"))
        task_id = (await anext(events)).task.id
        await anext(events)
        last = events.last_event_id
        await events.aclose()
        rest = [event async for event in client.subscribe(task_id, last_event_id=last)]
        assert [event.artifact_update.artifact.parts[0].text for event in rest[:-1]] == [" b", " c"]
        assert rest[-1].status_update.status.state == v1.TASK_STATE_COMPLETED
