"""What callers saw of tasks at several replicas, held against what the store has kept.

Laws: one checker for every fault. A caller asks whichever replica it is given; one that fails it is left for another,
and it goes on from the event that it has. What the function did is known from a file that it writes to itself.
"""

import asyncio
import sqlite3
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Container
from contextlib import aclosing, asynccontextmanager, closing
from pathlib import Path
from typing import Any, NamedTuple

import asyncpg
from a2a_stubs import v1

from a2a_grpc.call import RESUME_EXTENSION
from a2a_grpc.client import Client
from a2a_grpc.errors import InternalError, UnavailableError
from a2a_grpc.python310_asyncio import timeout
from a2a_grpc.tasks.state import Fold, state_of
from a2a_grpc.tasks.store import Event
from a2a_grpc.tasks.upkeep import ATTEMPTS
from tests.faults.processes import ENDED, PATIENCE, message, number

GIVEN_UP = (UnavailableError, InternalError)
"""What a replica answers that stops, has lost its store, or has lost the task."""
PAUSE = 0.05


class Kept(NamedTuple):
    """A task as the store has it: whose, its last state, how often it was run, its log."""

    agent: str
    task_id: str
    state: int
    attempt: int
    log: list[Event]

    def folded(self) -> v1.Task:
        fold = Fold()
        for event in self.log:
            fold.apply(event)
        return fold.task()

    def text(self) -> str:
        """What the last artifact says."""
        artifacts = self.folded().artifacts
        return "".join(part.text for part in artifacts[-1].parts) if artifacts else ""


class History:
    """Calls made on replicas that `pick` gives, one of those that live, over any wire; and what came back.

    sent: the task of each message that was answered, by message id. seen: what each reader of a task got, by number.
    """

    def __init__(self, pick: Callable[[], Client]) -> None:
        self.pick = pick
        self.sent: dict[str, str] = {}
        self.seen: list[tuple[str, dict[int, v1.StreamResponse]]] = []

    async def send(self, text: str, tenant: str, task_id: str = "") -> str:
        """Send one message until somebody answers; the id of its task. Raises what is refused."""
        request = message(text, task_id, now=True)
        request.tenant = tenant
        while True:
            try:
                found = (await self.pick().send(request)).task.id
            except GIVEN_UP:
                await asyncio.sleep(PAUSE)
                continue
            self.sent[request.message.message_id] = found
            return found

    async def read(self, task_id: str, tenant: str) -> None:
        """Follow a task from its first event to its end, wherever that is told."""
        seen: dict[int, v1.StreamResponse] = {}
        self.seen.append((task_id, seen))
        request = v1.SubscribeToTaskRequest(id=task_id, tenant=tenant)
        while True:
            events = self.pick().events("SubscribeToTask", request, last_event_id=str(max(seen, default=0)))
            try:
                async with aclosing(events):
                    async for event in events:
                        if event.HasField("task") and number(event) == max(seen, default=0):
                            continue  # there was nothing new: the task as it stands opens the stream
                        assert number(event) > max(seen, default=0), (task_id, sorted(seen), event)
                        seen[number(event)] = unnumbered(event)
                        if state_of(event) in ENDED:
                            return
            except GIVEN_UP:
                pass
            await asyncio.sleep(PAUSE)

    def states(self, task_id: str) -> set[int]:
        """The states that readers have seen a task in."""
        return {state_of(event) for found, seen in self.seen if found == task_id for event in seen.values()}

    async def check(self, url: str, ran: Path) -> list[Kept]:
        """No task lost or doubled, each reader told each event once and in order, one end, one run of each turn for
        agents that want no other, nothing left over. ran: a line `task turn attempt pid` for each run; answers the
        tasks that are kept."""
        tasks = await kept(url)
        assert {task.task_id for task in tasks} == set(self.sent.values())
        runs: dict[str, list[tuple[str, int]]] = defaultdict(list)
        for line in ran.read_text().splitlines():  # noqa: ASYNC240
            task_id, turn, attempt, _ = line.split()
            runs[task_id].append((turn, int(attempt)))
        said: Counter[str] = Counter()
        for task in tasks:
            _check_log(task)
            said.update(entry.message_id for entry in task.folded().history if entry.role == v1.ROLE_USER)
            _check_runs(task, runs[task.task_id])
        sent = Counter(self.sent.keys())
        assert said == sent, (_told(tasks, said - sent), sent - said)
        logs = {task.task_id: task.log for task in tasks}
        for task_id, seen in self.seen:
            told = {event.sequence: event.payload for event in logs[task_id] if not event.payload.HasField("message")}
            assert list(seen) == list(told), (task_id, list(seen), list(told))
            assert seen == told, task_id
        return tasks


def _told(tasks: list[Kept], messages: Container[str]) -> list[tuple[str, int, int, str]]:
    """Where messages were said: task, its state, its attempt, text."""
    return [
        (task.task_id, task.state, task.attempt, entry.parts[0].text)
        for task in tasks
        for entry in task.folded().history
        if entry.message_id in messages
    ]


def _check_log(task: Kept) -> None:
    assert [event.sequence for event in task.log] == [*range(1, len(task.log) + 1)], task
    ends = [event.sequence for event in task.log if state_of(event.payload) in ENDED]
    assert ends == [len(task.log)], task
    assert state_of(task.log[-1].payload) == task.state, task


def _check_runs(task: Kept, runs: list[tuple[str, int]]) -> None:
    assert len(runs) == len(set(runs)), (task.task_id, runs)
    if not runs:  # the owner was lost before the function began
        assert task.state == v1.TASK_STATE_FAILED, task.task_id
        return
    most = ATTEMPTS if task.agent == "again" else 1
    assert max(attempt for _, attempt in runs) <= most, (task.agent, runs)
    last = [attempt for turn, attempt in runs if turn == runs[-1][0]]
    assert max(last) <= task.attempt, (task.agent, task.attempt, runs)


@asynccontextmanager
async def tables(url: str) -> AsyncIterator[Callable[[str], Awaitable[list[Any]]]]:
    """A way to ask the store's tables, beside whoever serves from them."""
    if url.startswith("sqlite:"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:"))) as file:

            async def ask(statement: str) -> list[Any]:
                return file.execute(statement).fetchall()

            assert await ask("PRAGMA integrity_check") == [("ok",)]
            yield ask
        return
    connection = await asyncpg.connect(url)
    try:
        yield connection.fetch
    finally:
        await connection.close()


async def kept(url: str) -> list[Kept]:
    """Every task in the store. Nothing may be left of a turn, and nothing that was to be sent: a message whose sender
    was killed a while longer."""
    async with tables(url) as ask:
        async with timeout(PATIENCE):
            while await ask("SELECT * FROM posts"):  # noqa: ASYNC110 - another server
                await asyncio.sleep(PAUSE)
        assert not await ask("SELECT * FROM tasks WHERE holder <> ''")
        assert not await ask("SELECT * FROM push_configs WHERE cursor < due OR holder <> ''")
        tasks = await ask("SELECT id, agent, task_id, state, attempt, sequence FROM tasks ORDER BY id")
        logs: dict[int, list[Event]] = {row[0]: [] for row in tasks}
        for task, sequence, payload in await ask("SELECT task, sequence, payload FROM events ORDER BY task, sequence"):
            logs[task].append(Event(sequence, v1.StreamResponse.FromString(payload)))
        assert all(len(logs[row[0]]) == row[5] for row in tasks)
        return [Kept(*row[1:5], logs[row[0]]) for row in tasks]


def unnumbered(event: v1.StreamResponse) -> v1.StreamResponse:
    """The event without what the resume extension added."""
    plain = v1.StreamResponse()
    plain.CopyFrom(event)
    body: Any = getattr(plain, str(plain.WhichOneof("payload")))
    del body.metadata[RESUME_EXTENSION]
    if not body.metadata.fields:
        body.ClearField("metadata")
    return plain
