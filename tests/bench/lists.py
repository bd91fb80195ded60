"""ListTasks in a PostgreSQL store of a million tasks: filled in bulk, then read page by page through the service.

Laws: rows are what the store itself writes for a small task that has ended or asks; tasks of an owner lie apart in the
tables, as when many owners work at a time. What is measured is the service's method: store, engine and answer, no wire.
"""

import time
from collections.abc import Mapping
from math import ceil
from random import Random
from statistics import median
from typing import Any, Final

import asyncpg
from a2a_stubs import v1

from a2a_grpc import Options, Server
from a2a_grpc.call import Call, Caller
from a2a_grpc.tasks import schema, schema_postgres
from tests.bench.servers import agent

AGE: Final = 86_400_000 * 7
"""Milliseconds over which the tasks of a store are spread."""

CONTEXTS: Final = 50
"""Conversations of an owner."""

HISTORY, RESULT = "What became of order %d, please? " * 4, "Order %d left the warehouse in Lyon this morning. " * 20

FILL: Final = """INSERT INTO tasks (agent, tenant, owner, {columns})
    SELECT '', '', 'owner ' || number % CAST($2 AS BIGINT), md5('task' || number),
        'context ' || number / $2 % {contexts}, CASE WHEN number / $2 % 20 = 0 THEN 6 ELSE 3 END, made, made, 5, 5,
        '', 1, 0, 1, NULL, ''
    FROM generate_series(0, CAST($1 AS BIGINT) - 1) AS number,
        LATERAL (SELECT CAST($3 AS BIGINT) + number * CAST($4 AS BIGINT) / $1) AS at (made)"""

FILL_SNAPSHOTS: Final = """INSERT INTO snapshots (task, author_state, head, artifacts)
    SELECT id, '', $1 || '\\x0a20'::bytea || convert_to(task_id, 'UTF8'), $2 FROM tasks"""

Case = Mapping[str, Any]
CASES: Final[Mapping[str, Case]] = {
    "no filter": {},
    "with artifacts": {"include_artifacts": True},
    "one context": {"context_id": "context 7"},
    "one state of 5 %": {"status": v1.TASK_STATE_INPUT_REQUIRED},
    "the last tenth": {"since": 0.9},
    "100 a page": {"page_size": 100},
}
"""What is asked for, besides a page size of 50."""


async def fill(url: str, tasks: int, owners: int) -> float:
    """Put so many tasks into the empty store at `url`, owner after owner in turns; answers the seconds it took."""
    async with Server(agent, _options(url)):
        pass
    begun = time.perf_counter()
    head = v1.Task(status={"state": v1.TASK_STATE_COMPLETED}, context_id="context 7")
    head.status.timestamp.GetCurrentTime()
    for role in (v1.ROLE_USER, v1.ROLE_AGENT):
        head.history.add(message_id="0" * 32, role=role).parts.add(text=HISTORY)
    found = v1.Task()
    found.artifacts.add(artifact_id="0" * 32, name="text").parts.add(text=RESULT)
    connection = await asyncpg.connect(url)
    try:
        now = time.time_ns() // 1_000_000
        columns = ", ".join(schema.TASK_COLUMNS)
        await connection.execute(FILL.format(columns=columns, contexts=CONTEXTS), tasks, owners, now - AGE, AGE)
        await connection.execute(FILL_SNAPSHOTS, head.SerializeToString(), found.SerializeToString())
        await connection.execute(schema_postgres.SUM_TALLIES)
        for table in ("tasks", "snapshots", "tallies", "tally_changes"):
            await connection.execute(f"VACUUM ANALYZE {table}")
    finally:
        await connection.close()
    return time.perf_counter() - begun


async def measure(url: str, owners: int, pages: int, seed: int) -> list[dict[str, Any]]:
    """Times of first and of deep pages, in ms, for each of CASES. pages: how many of either are read."""
    rows = []
    async with Server(agent, _options(url)) as server:
        for name, case in CASES.items():
            for depth in ("first", "deep"):
                chance, times, total = Random(seed), list[float](), 0
                while len(times) < pages:
                    taken, total = await _walk(server, f"owner {chance.randrange(owners)}", case, depth == "deep")
                    times += taken
                rows.append({"case": name, "page": depth, "total": total, **spread(times)})
        return rows
    return rows


async def _walk(server: Server, owner: str, case: Case, deep: bool) -> tuple[list[float], int]:
    """Seconds for the first page of an owner, or for all others up to the twentieth, and the total size."""
    request = v1.ListTasksRequest(**{"page_size": 50} | {key: case[key] for key in case if key != "since"})
    if "since" in case:
        since = time.time_ns() // 1_000_000 - int(AGE * (1 - case["since"]))
        request.status_timestamp_after.FromMilliseconds(since)
    call, times = Call("ListTasks", caller=Caller(owner, authenticated=True)), []
    while True:
        begun = time.perf_counter()
        answer = await server.service.ListTasks(request, call)
        times.append(time.perf_counter() - begun)
        assert answer.total_size, (owner, case)
        request.page_token = answer.next_page_token
        if not deep:
            return times, answer.total_size
        if not request.page_token or len(times) > 20:
            return times[1:] or times, answer.total_size


def spread(times: list[float]) -> dict[str, float]:
    """Median, 99th of a hundred and largest of some times, in ms."""
    ordered = sorted(1000 * seconds for seconds in times)
    return {"p50": median(ordered), "p99": ordered[ceil(0.99 * len(ordered)) - 1], "most": ordered[-1]}


def _options(url: str) -> Options:
    return Options(grpc="", http="", store=url, retain=86_400.0 * 365, retain_count=1_000_000_000, log_level="error")
