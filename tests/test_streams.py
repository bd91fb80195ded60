"""Open streams and running calls, without any wire."""

import asyncio
import subprocess
import sys

import pytest

from a2a_grpc.bindings.streams import Running, Streams
from a2a_grpc.errors import ResourceExhaustedError, UnavailableError
from a2a_grpc.python310_asyncio import uncancel


async def run(streams, pending, timeout=0.1, gone=None):
    """A stream that writes once; gives what ended it."""
    with streams.open("test", timeout, gone) as stream:
        try:
            await stream.write(pending)
        except asyncio.CancelledError:
            uncancel(asyncio.current_task())
            return stream.error
    return None


@pytest.mark.requirement("STREAM-06")
async def test_a_write_that_waits_too_long_ends_its_stream_alone(caplog):
    streams = Streams(10)
    quick = asyncio.create_task(run(streams, asyncio.sleep(0.3), timeout=60))
    async with asyncio.timeout(10):
        error = await run(streams, asyncio.sleep(600))
    assert isinstance(error, ResourceExhaustedError)
    assert await quick is None
    assert [record.getMessage() for record in caplog.records] == ["stream test: nothing was read for 0.1 s, cut off"]


@pytest.mark.requirement("SSE-06", "BL-35")
async def test_a_reader_who_left_without_a_word_is_noticed():
    async with asyncio.timeout(10):
        assert isinstance(await run(Streams(10), asyncio.sleep(600), timeout=60, gone=lambda: True), UnavailableError)


@pytest.mark.requirement("BL-39", "SEC-04")
async def test_the_limit_counts_only_what_is_open():
    streams = Streams(1)
    for _ in range(3):
        with streams.open("a", 1):
            assert len(streams) == 1
            with pytest.raises(ResourceExhaustedError, match="limit of 1 open"), streams.open("b", 1):
                pass
        assert len(streams) == 0


@pytest.mark.requirement("BL-34")
async def test_all_streams_can_be_ended_and_the_first_reason_stays():
    streams = Streams(10)
    tasks = [asyncio.create_task(run(streams, asyncio.sleep(600), timeout=60)) for _ in range(3)]
    await asyncio.sleep(0)
    first = UnavailableError("first")
    streams.end(first)
    streams.end(UnavailableError("second"))
    assert await asyncio.gather(*tasks) == [first] * 3


async def test_waiting_for_the_last_call_ends_with_it_or_with_the_time():
    running = Running()
    await running.idle(60)
    running.enter()
    running.enter()
    await running.idle(0.01)
    assert len(running) == 2
    waiting = [asyncio.create_task(running.idle(60)) for _ in range(2)]
    await asyncio.sleep(0)
    running.leave()
    assert not any(task.done() for task in waiting)
    running.leave()
    async with asyncio.timeout(10):
        await asyncio.gather(*waiting)


@pytest.mark.requirement("BL-43")
def test_importing_the_hosts_starts_nothing():
    code = "import threading, a2a_grpc.bindings.grpc, a2a_grpc.bindings.http; print(threading.active_count())"
    environment = {"PYTHONPATH": ":".join(sys.path)}
    found = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert found.stdout == "1\n"
