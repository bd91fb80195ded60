"""One trace from a program in TypeScript through a gateway, an agent and the agent that it asks, to the webhook."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests import test_cli
from tests.interop.conftest import made, output, steps
from tests.receivers import Receiver, receiver
from tests.test_telemetry import HEADERS, PARENT, TRACE
from tests.test_telemetry_export import collecting, spans

WATCHED = ("--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0", "--telemetry")
PUSH = ("--push-notifications", "--push-allow", "127.0.0.1/32")
FRONT = """
from a2a_grpc import Agent, RemoteAgent

shop = RemoteAgent({url!r})
agent = Agent(name="Front", description="Asks the shop.", version="1", skills=[])


@agent.handle
async def work(task):
    return (await task.delegate(shop)).checked().text
"""


@asynccontextmanager
async def started(*words: str, cwd: Path) -> AsyncIterator[str]:
    """A watched command; where it listens."""
    process = await test_cli.start(*words, *WATCHED, cwd=cwd)
    try:
        yield (await test_cli.announced(process)).url
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


def whole(there: Receiver, *names: str) -> bool:
    """Whether these spans are there, and every span of the trace is below another one but the first, which is below
    the caller's."""
    found = {span.span_id.hex(): span for span in spans(there) if span.trace_id.hex() == TRACE}
    outside = [span.parent_span_id.hex() for span in found.values() if span.parent_span_id.hex() not in found]
    return set(names) <= {span.name for span in found.values()} and outside == [PARENT]


@pytest.mark.requirement("SEC-07", "BL-53")
async def test_a_call_from_typescript_is_one_trace_up_to_the_webhook(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    compiler = made("A2A_TS_FOLDER") / "node_modules" / ".bin" / "tsc"
    source = Path(__file__).with_name("trace.mts")
    flags = ("--strict", "--target", "es2022", "--module", "nodenext", "--outDir", tmp_path)
    await asyncio.to_thread(output, compiler, *flags, source, cwd=tmp_path)
    async with (
        collecting(monkeypatch) as there,
        receiver() as hook,
        started("serve", "--store", "memory:", cwd=tmp_path) as shop,
    ):
        (tmp_path / "front.py").write_text(FRONT.format(url=shop))
        async with (
            started("serve", "front:agent", "--store", "memory:", *PUSH, cwd=tmp_path) as front,
            started("gateway", "--upstream", front, cwd=tmp_path) as gateway,
        ):
            command = ("node", tmp_path / "trace.mjs", gateway, hook.url, HEADERS["traceparent"])
            assert (await asyncio.to_thread(steps, *command))["send"] == {"state": "TASK_STATE_COMPLETED"}
            await hook.until(lambda: any(b"COMPLETED" in got.body for got in hook.got))
            await there.until(lambda: whole(there, "turn Front", "turn Order Lookup", "push"))
    assert {got.headers["traceparent"].split("-")[1] for got in hook.got} == {TRACE}
    assert {span.trace_id.hex() for span in spans(there) if span.name.startswith("turn ")} == {TRACE}
