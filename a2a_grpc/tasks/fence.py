"""What a change makes of a task's row, or why it is refused: the compare-and-set rules that every store shares.

Laws: pure, no storage. A store reads the row, asks here, and writes exactly what the answer names, all in one
transaction. Whatever is refused is refused before anything is written. What an event says is never looked at.
"""

from collections.abc import Callable, Iterable
from typing import Any

from a2a_grpc.tasks.store import Change, Claimed, Conflict, Dedupe, LeaseLost, Scope, TaskRow


def admit(row: TaskRow | None, change: Change) -> dict[str, Any]:
    """The columns of the row that the change sets, by name of TaskRow's fields; `token` is always among them.

    row: the task as stored under this id in whatever scope, None if there is none; only `scope`, `sequence` and the
    lease's fields are read. Raises Conflict, LeaseLost (see Store.commit); ValueError for a change that no writer
    may make: events out of number, a new task without context or status.
    """
    if row is None:
        if change.expected:
            raise Conflict(f"task {change.task_id} does not exist")
        if not change.context_id or change.snapshot is None:
            raise ValueError(f"new task {change.task_id} needs a context id and a status")
        if change.token:
            raise LeaseLost(f"task {change.task_id} does not exist")
    else:
        _admit(row, change)
    for number, event in enumerate(change.events, change.expected + 1):
        if event.sequence != number:
            raise ValueError(f"events of task {change.task_id} are not numbered from {change.expected + 1}")
    columns = _lease(row.token if row is not None else 0, change)
    _add_content(columns, change)
    return columns


def _admit(row: TaskRow, change: Change) -> None:
    if not change.expected or row.scope != change.scope:
        # A foreign task is answered like a missing one; an id in use elsewhere cannot be made again.
        raise Conflict(f"task {change.task_id} is not one that this change may write")
    if change.token is not None and change.token != row.token:
        raise LeaseLost(f"task {change.task_id} is at token {row.token}, not {change.token}")
    if row.sequence != change.expected:
        raise Conflict(f"task {change.task_id} is at {row.sequence}, not {change.expected}")
    alive = row.holder != "" and change.now_ms < row.lease_until_ms
    if alive and not change.over and (change.take is not None or change.token is None):
        raise Conflict(f"task {change.task_id} is in a turn of {row.holder}")


def free(dedupe: Dedupe, stored: Dedupe, now_ms: int) -> bool:
    """Whether a row may come in the place of what is stored of its message."""
    return now_ms >= stored.expires_ms or stored.reply == dedupe.claim


def claimed(
    claims: Iterable[tuple[Scope, Dedupe]],
    stored: Callable[[Scope, Dedupe], Dedupe | None],
    keep: Callable[[Scope, Dedupe], object],
    now_ms: int,
) -> dict[Claimed, Dedupe]:
    """Keep each claim that may be; what is stored of the other messages."""
    known: dict[Claimed, Dedupe] = {}
    for scope, claim in claims:
        found = stored(scope, claim)
        if found is None or free(claim, found, now_ms):
            keep(scope, claim)
        else:
            known[scope, claim.message_id] = found
    return known


def _lease(token: int, change: Change) -> dict[str, Any]:
    if change.take is not None:
        holder, until_ms, attempt, trace = change.take
        return {"token": token + 1, "holder": holder, "lease_until_ms": until_ms, "attempt": attempt, "trace": trace}
    token += change.over
    if change.over or change.release:
        return {"token": token, "holder": "", "lease_until_ms": 0}
    return {"token": token}


def _add_content(columns: dict[str, Any], change: Change) -> None:
    if change.events:
        columns["sequence"] = change.expected + len(change.events)
    if (snapshot := change.snapshot) is not None:
        columns["state"], columns["status_ms"] = snapshot.state, snapshot.status_ms
        if snapshot.head is not None:
            columns["head"], columns["folded"] = snapshot.head, snapshot.folded
        if snapshot.artifacts is not None:
            columns["artifacts"] = snapshot.artifacts
    if change.author_state is not None:
        columns["author_state"] = change.author_state
    if change.trace is not None:
        columns["trace"] = change.trace
    if change.cancel is not None:
        columns["cancel"] = change.cancel or None
