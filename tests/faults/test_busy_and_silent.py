"""Agents that hold their thread, and agents that say nothing for long: the server answers and its streams stay open."""

import asyncio
import json
import time
from typing import Any

import grpc.aio
import pytest
from a2a_stubs import google, v1, v1_grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from a2a_grpc.agent import TaskHandle
from a2a_grpc.bindings import sse
from a2a_grpc.bindings.mounts import HEALTH
from a2a_grpc.call import GRPC, JSONRPC, REST
from a2a_grpc.cards import WELL_KNOWN
from a2a_grpc.errors import ResourceExhaustedError
from a2a_grpc.testing import serve, until
from tests.faults import workers
from tests.faults.processes import (
    PATIENCE,
    channel_to,
    clients,
    dial,
    fetch,
    joined,
    message,
    read_grpc,
    reason_of,
    texts,
    within,
)

HELD = 3.0
"""Seconds that a function holds its thread; a server that it held up would answer once in that time."""


@pytest.mark.requirement("BL-17")
async def test_functions_that_block_hold_up_nobody_else() -> None:
    asked = 0
    async with serve(workers.blocker) as server, clients(server) as agents:
        work = [asyncio.create_task(agents[GRPC].send(message(f"{HELD}"))) for _ in range(5)]
        await until(lambda: server.engine.running == 5, PATIENCE)
        async with channel_to(server.grpc_address) as channel:
            while server.engine.running == 5:
                assert await fetch(server.http_url, WELL_KNOWN) == 200
                assert await fetch(server.http_url, HEALTH) == 200
                health = await health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest())
                assert health.status == health_pb2.HealthCheckResponse.SERVING
                asked += 1
                await asyncio.sleep(0.1)
        assert {text for answer in await within(asyncio.gather(*work)) for text in texts(answer.task)} == {"held"}
    assert asked > 3


@pytest.mark.requirement("BL-17")
async def test_a_coroutine_that_holds_the_loop_is_named(caplog: pytest.LogCaptureFixture) -> None:
    async def selfish(task: TaskHandle) -> str:
        time.sleep(1.0)  # noqa: ASYNC251 - that is the fault
        return "held"

    async with serve(workers.made(selfish), block_warning=0.1) as server, clients(server) as agents:
        assert texts((await agents[JSONRPC].send(message("go"))).task) == ["held"]
    assert "Worker" in caplog.text and "use a plain function" in caplog.text


@pytest.mark.requirement("ERR-10", "SEC-04")
async def test_past_the_limit_of_turns_every_wire_says_when_to_come_back() -> None:
    async with serve(workers.worker, max_turns=2) as server, clients(server) as agents:
        busy = [(await agents[REST].send(message("sleep 600", now=True))).task.id for _ in range(2)]
        for binding in (JSONRPC, REST):
            for operation in ("SendMessage", "SendStreamingMessage"):
                dialed = await dial(server.http_url, binding, operation, message("count 1"), connection="close")
                head, _, body = (await within(dialed.reader.read())).decode().partition("\r\n\r\n")
                dialed.drop()
                assert head.startswith("HTTP/1.1 429 ")
                assert "retry-after: 1" in head.lower()
                error = json.loads(body)["error"]
                details = {
                    detail["@type"].rpartition(".")[2]: detail for detail in error.get("details") or error["data"]
                }
                assert details["ErrorInfo"]["reason"] == ResourceExhaustedError.reason
                assert details["RetryInfo"]["retryDelay"] == "1s"
        async with channel_to(server.grpc_address) as channel:
            with pytest.raises(grpc.aio.AioRpcError) as told:
                await v1_grpc.A2AServiceStub(channel).SendMessage(message("count 1"))
            events, streamed = await read_grpc(v1_grpc.A2AServiceStub(channel).SendStreamingMessage(message("count 1")))
        assert not events
        for fault in (told.value, streamed):
            assert fault is not None and fault.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
            assert reason_of(fault) == ResourceExhaustedError.reason
            assert retry_seconds(fault) == 1.0
        await agents[GRPC].cancel(busy[0])
        answer = await agents[GRPC].send(message("parts 1 0"))
        assert texts(answer.task) == ["part 0"]


def retry_seconds(fault: grpc.aio.AioRpcError) -> float:
    """The delay in the details of a status."""
    trailers: dict[str, Any] = dict(fault.trailing_metadata() or ())
    retry = google.RetryInfo()
    for packed in google.Status.FromString(trailers["grpc-status-details-bin"]).details:
        packed.Unpack(retry)
    return float(retry.retry_delay.ToTimedelta().total_seconds())


@pytest.mark.requirement("BL-36", "SSE-04", "SSE-01", "OP-STREAM-02")
@pytest.mark.parametrize("replies", [False, True])
@pytest.mark.parametrize("binding", [JSONRPC, REST])
async def test_a_silent_stream_carries_comments(binding: str, replies: bool) -> None:
    heard = asyncio.Event()

    async def slept(task: TaskHandle) -> str:
        await heard.wait()
        return "slept"

    async def replied(task: TaskHandle) -> None:
        await heard.wait()
        await task.reply("here I am")

    async with serve(workers.made(replied if replies else slept), heartbeat=0.2) as server:
        dialed = await dial(server.http_url, binding, "SendStreamingMessage", message("go"), connection="close")
        raw = b""
        while raw.count(b"\n:\n") < 2:
            raw += await within(dialed.reader.readuntil(b"\n"))  # which raises at the end
        heard.set()
        raw += await within(dialed.reader.read())
        dialed.drop()
    head, _, body = raw.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 ") and b"text/event-stream" in head
    plain = joined(body)
    lines = plain.split(b"\n")
    assert lines.count(b":") >= 2, plain
    # A comment never stands in a block of its own: old readers take such a block for a broken event.
    assert all(lines[place + 1] for place, line in enumerate(lines) if line == b":"), plain
    assert lines[0] == b":" if replies else lines[0].startswith(b"id: ")
    events = [json.loads(event.data) for event in sse.Parser().feed(plain)]
    last = events[-1].get("result", events[-1])
    if replies:
        assert len(events) == 1 and last["message"]["parts"][0]["text"] == "here I am"
    else:
        assert last["statusUpdate"]["status"]["state"] == "TASK_STATE_COMPLETED"


@pytest.mark.requirement("BL-36", "STREAM-11", "BL-21")
@pytest.mark.parametrize("binding", [JSONRPC, REST])
async def test_a_failure_after_a_comment_is_told_in_band(binding: str) -> None:
    async def broken(task: TaskHandle) -> None:
        await asyncio.sleep(0.7)
        raise RuntimeError(workers.SECRET)

    made = workers.made(broken)
    async with serve(made, heartbeat=0.2) as server:
        dialed = await dial(server.http_url, binding, "SendStreamingMessage", message("go"), connection="close")
        raw = await within(dialed.reader.read())
        dialed.drop()
    assert b"TASK_STATE_FAILED" in raw and raw.endswith(b"0\r\n\r\n") and b"user:pw" not in raw


@pytest.mark.requirement("BL-38", "BL-36")
async def test_pings_on_a_silent_stream_throw_nobody_off() -> None:
    options = {
        "grpc.keepalive_time_ms": 200,
        "grpc.keepalive_permit_without_calls": 1,
        "grpc.http2.max_pings_without_data": 0,
    }
    async with (
        serve(workers.worker, keepalive=0.2, heartbeat=0.2) as server,
        channel_to(server.grpc_address, **options) as channel,
    ):
        stub = v1_grpc.A2AServiceStub(channel)
        events, fault = await read_grpc(stub.SendStreamingMessage(message("sleep 4")))
    assert fault is None
    assert events[-1].status_update.status.state == v1.TASK_STATE_COMPLETED
