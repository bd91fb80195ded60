"""A server that is killed without warning: what was told is kept, what was running is settled, readers go on."""

import asyncio
from pathlib import Path

import pytest
from a2a_stubs import v1

from a2a_grpc.call import GRPC, JSONRPC, REST
from a2a_grpc.client import Client, Events
from a2a_grpc.errors import UnavailableError
from a2a_grpc.tasks.sqlite import SQLiteStore
from a2a_grpc.tasks.state import Fold
from a2a_grpc.tasks.store import Event, Scope
from tests.faults.history import unnumbered
from tests.faults.processes import (
    BINDINGS,
    PATIENCE,
    Serving,
    clients,
    ended,
    launch,
    message,
    number,
    numbered,
    seeded,
    serving,
    texts,
    within,
)
from tests.faults.storms import FAULTS, Scene, database, replicas, suffered

NOBODY = Scope("", "", "")
AMOUNT = 200


async def logged(folder: Path, task_id: str) -> list[Event]:
    """The log of a task, read from the file while nobody serves from it."""
    store = SQLiteStore(folder / "a2a.db")
    await store.open()
    try:
        return await store.events(NOBODY, task_id, 0, 10_000)
    finally:
        await store.close()


async def read_until_killed(server: Serving, events: Events, after: int) -> dict[int, v1.StreamResponse]:
    """Everything a reader gets of a server that is killed as soon as event `after` has arrived."""
    seen: dict[int, v1.StreamResponse] = {}
    async for event in events:
        seen[number(event)] = event
        if len(seen) == after:
            server.process.kill()
            break
    rest, fault = await numbered(events)
    assert isinstance(fault, UnavailableError), (fault, server.log)
    await server.exit_code()
    return seen | rest


def check_log(log: list[Event], seen: dict[int, v1.StreamResponse]) -> None:
    """Nothing was told that is not kept, and the log has no hole."""
    assert [event.sequence for event in log] == [*range(1, len(log) + 1)]
    assert sorted(seen) == [*range(1, len(seen) + 1)]
    kept = {event.sequence: event.payload for event in log}
    for place, event in seen.items():
        assert unnumbered(event) == kept[place]


def folded(log: list[Event]) -> v1.Task:
    fold = Fold()
    for event in log:
        fold.apply(event)
    return fold.task()


@pytest.mark.requirement("BL-08", "STREAM-01", "STREAM-09", "SUB-03")
@pytest.mark.limit(240)
async def test_a_killed_server_has_kept_what_it_told_and_fails_what_it_ran(tmp_path: Path) -> None:
    chance, asking, lost = seeded(), "", ""
    seen: dict[int, v1.StreamResponse] = {}
    log: list[Event] = []
    for binding in (*BINDINGS, *BINDINGS, ""):
        async with serving(tmp_path) as server, clients(server) as agents:
            if lost:
                await check_lost(agents, lost, log, seen)
                answer = await agents[GRPC].send(message("this one", asking))
                assert texts(answer.task) == ["you said this one"]
                assert answer.task.status.state == v1.TASK_STATE_COMPLETED
            if not binding:
                break
            asking = (await agents[REST].send(message("ask"))).task.id
            events = agents[binding].stream(message(f"count {AMOUNT} 0.002"))
            seen = await read_until_killed(server, events, chance.randrange(1, AMOUNT - 5))
        lost = seen[1].task.id
        log = await logged(tmp_path, lost)
        check_log(log, seen)


async def check_lost(
    agents: dict[str, Client], task_id: str, log: list[Event], seen: dict[int, v1.StreamResponse]
) -> None:
    """The lost task is exactly as it was committed, then FAILED with a reason; every reader gets just the rest."""
    before = folded(log)
    for agent in agents.values():
        task = await agent.get(task_id)
        assert task.status.state == v1.TASK_STATE_FAILED
        assert "server stopped" in task.status.message.parts[0].text
        assert task.artifacts == before.artifacts
        rest, fault = await numbered(agent.subscribe(task_id, str(max(seen))))
        assert fault is None
        assert sorted(rest) == [*range(max(seen) + 1, len(log) + 2)]
        assert rest[len(log) + 1].status_update.status == task.status
        for event in log[max(seen) :]:
            assert unnumbered(rest[event.sequence]) == event.payload


@pytest.mark.requirement("BL-08")
async def test_a_turn_is_run_again_where_the_agent_wants_that_but_not_for_ever(tmp_path: Path) -> None:
    chance, task_id, last = seeded(), "", 0
    for attempt, binding in enumerate((JSONRPC, GRPC, REST), 1):
        async with serving(tmp_path, agent="stubborn") as server, clients(server) as agents:
            agent = agents[binding]
            if task_id:
                events = agent.subscribe(task_id, str(last))
            else:
                events = agent.stream(message(f"count {AMOUNT} 0.01"))
            seen = await read_until_killed(server, events, chance.randrange(5, 100))
            task_id = task_id or seen[1].task.id
            assert min(seen) == last + 1
            last = max(seen)
            names = {event.artifact_update.artifact.name for event in seen.values()}
            assert f"attempt {attempt}" in names
    async with serving(tmp_path, agent="stubborn") as server, clients(server) as agents:
        task = await agents[GRPC].get(task_id)
        assert task.status.state == v1.TASK_STATE_FAILED
        assert [artifact.name for artifact in task.artifacts] == ["attempt 1", "attempt 2", "attempt 3"]


@pytest.mark.requirement("BL-08", "SUB-03")
async def test_a_turn_that_is_run_again_is_followed_to_its_end(tmp_path: Path) -> None:
    async with serving(tmp_path, agent="stubborn") as server, clients(server) as agents:
        seen = await read_until_killed(server, agents[REST].stream(message("count 60 0.02")), seeded().randrange(3, 50))
    task_id = seen[1].task.id
    async with serving(tmp_path, agent="stubborn") as server, clients(server) as agents:
        readers = [numbered(agent.subscribe(task_id, str(max(seen)))) for agent in agents.values()]
        told = await within(asyncio.gather(*readers))
        task = await ended(agents[JSONRPC], task_id)
        assert task.status.state == v1.TASK_STATE_COMPLETED
        assert texts(task)[1] == "".join(f"{number} " for number in range(60))
    for rest, fault in told:
        assert fault is None and rest == told[0][0]
        assert min(rest) == max(seen) + 1
        assert rest[max(rest)].status_update.status.state == v1.TASK_STATE_COMPLETED


@pytest.mark.requirement("BL-08", "OP-SEND-15")
async def test_an_answer_whose_turn_was_lost_is_not_asked_for_again(tmp_path: Path) -> None:
    async with serving(tmp_path, agent="stubborn") as server, clients(server) as agents:
        asking = (await agents[REST].send(message("ask"))).task.id
        seen = await read_until_killed(server, agents[GRPC].stream(message("count 40 0.02", asking)), 20)
    async with serving(tmp_path, agent="stubborn") as server, clients(server) as agents:
        rest, fault = await numbered(agents[JSONRPC].subscribe(asking, str(max(seen))))
        assert fault is None and min(rest) == max(seen) + 1
        task = await agents[REST].get(asking)
        assert task.status.state == v1.TASK_STATE_COMPLETED
        assert [artifact.name for artifact in task.artifacts] == ["attempt 1", "attempt 2"]
        assert [entry.parts[0].text for entry in task.history].count("count 40 0.02") == 1


@pytest.mark.requirement("OP-SEND-14", "BL-51")
@pytest.mark.parametrize("binding", BINDINGS)
async def test_a_send_that_is_repeated_after_the_crash_makes_no_second_task(tmp_path: Path, binding: str) -> None:
    first, lost = message("parts 1 0"), message("count 100 0.02")
    async with serving(tmp_path, "--deduplicate", "always") as server, clients(server) as agents:
        answered = await agents[binding].send(first)
        seen = await read_until_killed(server, agents[binding].stream(lost), 10)
    async with serving(tmp_path, "--deduplicate", "always") as server, clients(server) as agents:
        assert (await agents[binding].send(first)).task == answered.task
        again = await agents[binding].send(lost)
        assert again.task.id == seen[1].task.id and again.task.status.state == v1.TASK_STATE_FAILED
        assert (await agents[binding].list()).total_size == 2


@pytest.mark.requirement("BL-08")
async def test_a_second_process_is_refused_and_the_file_stays_good(tmp_path: Path) -> None:
    async with serving(tmp_path) as server, clients(server) as agents:
        reader = asyncio.create_task(numbered(agents[GRPC].stream(message("count 100 0.02"))))
        second, log = await launch(tmp_path)
        await within(second.communicate())
        assert second.returncode == 2
        [line] = log.read_text().splitlines()
        assert f"in use by process {server.process.pid}" in line
        seen, fault = await within(reader)
        assert fault is None and len(seen) > 100
        task_id = seen[1].task.id
        server.process.kill()
        await server.exit_code()
    check_log(await logged(tmp_path, task_id), seen)


@pytest.mark.requirement("BL-08", "BL-48", "SUB-03", "STREAM-09")
@pytest.mark.parametrize("name", ["file kill", "file full"])
async def test_a_file_whose_server_is_killed_or_has_no_room_loses_and_doubles_nothing(
    tmp_path: Path, name: str
) -> None:
    fault, chance = FAULTS[name], seeded()
    async with database("", fault, tmp_path) as url, replicas(tmp_path, url, fault, chance) as fleet:
        found = await suffered(Scene(fleet, url, None), [fault] * 3)
        assert any(task.state == v1.TASK_STATE_FAILED or task.attempt > 1 for task in found)


@pytest.mark.requirement("BL-08")
async def test_clients_find_a_server_that_comes_back_at_its_place(tmp_path: Path) -> None:
    async with serving(tmp_path) as first, clients(first) as agents:
        place = "--http", first.url.removeprefix("http://"), "--grpc", first.grpc
        lost = [answer.task.id for answer in await asyncio.gather(*(agents[GRPC].send(sleep()) for _ in range(200)))]
        first.process.kill()
        await first.exit_code()
        for agent in agents.values():
            with pytest.raises(UnavailableError):
                await agent.get(lost[0])
        async with serving(tmp_path, *place):
            for agent in agents.values():
                async with asyncio.timeout(PATIENCE):  # a gRPC channel waits a little before it tries again
                    while True:
                        try:
                            page = await agent.list(v1.ListTasksRequest(page_size=100, status=v1.TASK_STATE_FAILED))
                            break
                        except UnavailableError:
                            await asyncio.sleep(0.1)
                assert page.total_size == len(lost)
                assert texts((await agent.send(message("parts 1 0"))).task) == ["part 0"]


def sleep() -> v1.SendMessageRequest:
    return message("sleep 600", now=True)
