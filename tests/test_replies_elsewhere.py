"""Two servers on one PostgreSQL, and a function that may answer without a task: the same message sent to both.

Laws: nothing but the store is between the servers; a function works until the test opens its gate.
"""

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any, NamedTuple

import pytest
from a2a_stubs import v1

from a2a_grpc.agent import Agent, Failed, TaskHandle
from a2a_grpc.config import Options
from a2a_grpc.errors import InternalError, InvalidParamsError, UnavailableError
from a2a_grpc.server import Server
from a2a_grpc.tasks.store import CLAIM, Dedupe
from tests.replicas import BUSES, vanish
from tests.stores import postgres_url
from tests.turns import ALICE, COMPLETED, FAILED, begin, texts, until

LEASE = 3.0
"""Seconds that no pause of the machine lasts: a claim is lost where a server vanishes."""


class Pair(NamedTuple):
    one: Server
    two: Server
    runs: list[str]
    gate: asyncio.Event


@pytest.fixture
async def pair() -> AsyncIterator[Pair]:
    """Two servers with one agent; the first word of a message says what its function does once the gate is open."""
    runs, gate = list[str](), asyncio.Event()

    async def works(task: TaskHandle) -> Any:
        runs.append(task.text)
        await gate.wait()
        if task.text == "fail":
            raise Failed("no")
        if task.text == "task":
            return "made a task"
        return await task.reply(f"run {len(runs)}")

    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(postgres_url())
        servers = []
        for _ in range(2):
            agent = Agent(name="Tester", description="d", version="1", skills=[])
            agent.handle(replies=True)(works)
            options = Options(store=url, grpc="", http="", lease=LEASE, grace=0.0, store_connections=4, store_retry=1.0)
            server = Server(agent, options, bus=BUSES["deaf"](url))
            await server.start()
            stack.push_async_callback(server.stop)
            servers.append(server)
        yield Pair(*servers, runs, gate)


async def outcome(server: Server, text: str, name: str) -> v1.Message | v1.Task:
    """What a message is answered with in the end."""
    found = await (await begin(server.engine, text, message_id=name)).outcome()
    return found if isinstance(found, v1.Message) else (await server.engine.settled(ALICE, found)).task


async def at_work(pair: Pair, text: str, name: str) -> "tuple[asyncio.Task[Any], asyncio.Task[Any]]":
    """The message sent to the first server, whose function is at work on it, and then to the second."""
    first = asyncio.create_task(outcome(pair.one, text, name))
    await until(lambda: pair.runs)
    second = asyncio.create_task(outcome(pair.two, text, name))
    await until(lambda: pair.two.engine._sends)
    return first, second


async def known(server: Server, name: str) -> Dedupe | None:
    return await server.store.seen(ALICE, name, server.store.now_ms())


@pytest.mark.requirement("BL-10", "BL-51", "OP-SEND-14")
async def test_a_message_that_reaches_two_servers_at_once_is_answered_by_one_run(pair: Pair) -> None:
    pair.gate.set()
    for number in range(1, 11):
        name = uuid.uuid4().hex
        found = await asyncio.gather(*(outcome(server, "hi", name) for server in (pair.one, pair.two, pair.two)))
        assert len(pair.runs) == number and found[0].parts[0].text == f"run {number}"
        assert found[1] == found[2] == found[0]
    assert not pair.one.engine._sends and not pair.two.engine._sends


@pytest.mark.requirement("BL-51", "OP-SEND-14")
@pytest.mark.parametrize(("text", "state"), [("task", COMPLETED), ("fail", FAILED)])
async def test_whoever_sends_a_message_elsewhere_gets_the_task_that_it_has_become(
    pair: Pair, text: str, state: int
) -> None:
    first, second = await at_work(pair, text, "m")
    pair.gate.set()
    task = await first
    assert task == await second and task.status.state == state and pair.runs == [text]
    assert texts(task) == (["made a task"] if state == COMPLETED else [])


@pytest.mark.requirement("BL-51", "OP-SEND-14")
async def test_a_function_that_works_for_longer_than_a_lease_is_still_the_only_one(pair: Pair) -> None:
    first, second = await at_work(pair, "hi", "m")
    claimed = await known(pair.two, "m")
    assert claimed is not None
    now: Dedupe | None = claimed
    while now is not None and now.expires_ms < claimed.expires_ms + LEASE * 1000:
        await asyncio.sleep(0.05)
        now = await known(pair.two, "m")
    with pytest.raises(InvalidParamsError) as refused:
        await outcome(pair.two, "other content", "m")
    assert refused.value.violations[0].field == "message.messageId"
    assert now is not None and now.claims and not second.done()
    pair.gate.set()
    assert await first == await second and pair.runs == ["hi"]


@pytest.mark.requirement("BL-08", "BL-51", "OP-SEND-14")
async def test_another_server_answers_when_the_first_has_vanished_and_its_answer_is_none(pair: Pair) -> None:
    first, second = await at_work(pair, "hi", "m")
    await vanish(pair.one)
    await until(lambda: len(pair.runs) == 2)
    pair.gate.set()
    assert (await second).parts[0].text == "run 2"
    with pytest.raises((UnavailableError, InternalError)):
        await first


@pytest.mark.requirement("BL-08", "BL-51", "OP-SEND-14")
async def test_a_function_stops_whose_server_cannot_say_any_more_that_it_is_at_work(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = await at_work(pair, "hi", "m")

    async def never(*given: Any) -> Any:
        await asyncio.Event().wait()

    monkeypatch.setattr(pair.one.store, "claim_messages", never)
    with pytest.raises(UnavailableError):
        await first
    await until(lambda: len(pair.runs) == 2)
    pair.gate.set()
    assert (await second).parts[0].text == "run 2"


@pytest.mark.requirement("BL-51", "OP-SEND-14")
async def test_a_function_goes_on_that_has_made_its_task_while_its_claim_was_renewed(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = await at_work(pair, "task", "m")

    async def made(claims: Any, now_ms: int) -> Any:
        """The task is stored, which the function does not know yet."""
        return {
            (scope, claim.message_id): claim._replace(task_id=claim.reply.removeprefix(CLAIM).decode(), reply=b"")
            for scope, claim in claims
        }

    monkeypatch.setattr(pair.one.store, "claim_messages", made)
    await pair.one.engine._sends.renew()
    pair.gate.set()
    assert await first == await second and pair.runs == ["task"]


@pytest.mark.requirement("BL-34", "BL-51", "OP-SEND-14")
async def test_another_server_answers_at_once_when_the_first_is_stopped(pair: Pair) -> None:
    first, second = await at_work(pair, "hi", "m")
    claimed = await known(pair.two, "m")
    await pair.one.engine.drain(0)
    await until(lambda: len(pair.runs) == 2)
    assert claimed is not None and pair.two.store.now_ms() < claimed.expires_ms
    pair.gate.set()
    assert (await second).parts[0].text == "run 2"
    with pytest.raises(UnavailableError):
        await first


@pytest.mark.requirement("BL-34")
async def test_who_waits_for_an_answer_elsewhere_is_told_when_his_server_stops(pair: Pair) -> None:
    first, second = await at_work(pair, "hi", "m")
    await pair.two.engine.drain(0)
    with pytest.raises(UnavailableError):
        await second
    pair.gate.set()
    assert (await first).parts[0].text == "run 1"


@pytest.mark.requirement("BL-51", "OP-SEND-14")
async def test_a_caller_who_leaves_too_early_keeps_nobody_from_the_message(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    claims, claimed = pair.one.store.claim_messages, asyncio.Event()

    async def slow(*given: Any) -> Any:
        found = await claims(*given)
        claimed.set()
        await asyncio.sleep(0)
        return found

    monkeypatch.setattr(pair.one.store, "claim_messages", slow)
    first = asyncio.create_task(outcome(pair.one, "hi", "m"))
    await claimed.wait()
    first.cancel()
    row = await known(pair.two, "m")
    pair.gate.set()
    assert (await outcome(pair.two, "hi", "m")).parts[0].text == "run 1"
    assert row is None or pair.two.store.now_ms() < row.expires_ms
