"""Push notification configs that are kept in memory: how far the delivery of each has come, and what is due.

Laws: as in memory.py, no method awaits. What is behind is in one place, so a look for what is due does not depend on
how many configs have nothing to send. Of a task only its row is known here.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from a2a_grpc.tasks.store import Backlog, Delivery, PushConfig, Report, Scope, TaskRow, TooMany


@dataclass(slots=True)
class Push:
    """A config and its delivery. config, cursor, due, attempts, failing_ms: see Delivery; said, given_up_ms: see
    Report. next_ms: when it is tried again, also the end of a claim: claims of an earlier process died with it."""

    config: PushConfig
    cursor: int
    due: int
    attempts: int = 0
    next_ms: int = 0
    said: str = ""
    failing_ms: int = 0
    given_up_ms: int = 0


@dataclass(slots=True)
class Pushed:
    """A task. row: of the store; push: its configs by their ids."""

    row: TaskRow
    push: dict[str, Push] = field(default_factory=dict)


class MemoryPush(ABC):
    """The part of a MemoryStore that keeps configs; see Store for what each method does."""

    _tasks: Mapping[str, Pushed]

    def __init__(self) -> None:
        self._pending: dict[tuple[str, str], Push] = {}  # those that are behind, by task and config

    @abstractmethod
    def _find(self, scope: Scope, task_id: str) -> Pushed | None:
        """A task of the scope."""

    def _register(self, entry: Pushed, config: PushConfig, cursor: int) -> None:
        old = entry.push.get(config.config_id)
        if old and old.config == config and not old.attempts:
            return  # whoever is sending as it says stays at it
        made = entry.push[config.config_id] = Push(config, old.cursor, old.due) if old else Push(config, cursor, cursor)
        self._queue(made)

    def _notify(self, entry: Pushed, number: int) -> None:
        for push in entry.push.values():
            push.due = max(push.due, number)
            self._queue(push)

    def _forget(self, entry: Pushed) -> None:
        for config_id in entry.push:
            self._pending.pop((entry.row.task_id, config_id), None)

    def _queue(self, push: Push) -> None:
        if push.cursor < push.due:
            self._pending[push.config.task_id, push.config.config_id] = push

    async def put_push_config(self, scope: Scope, config: PushConfig, most: int) -> bool:
        """Create or replace a config (see Store.put_push_config)."""
        if entry := self._find(scope, config.task_id):
            if len(entry.push.keys() - {config.config_id}) >= most:
                raise TooMany
            self._register(entry, config, entry.row.sequence)
        return entry is not None

    async def push_configs(self, scope: Scope, task_id: str, after: str, limit: int) -> list[PushConfig] | None:
        """Configs of a task (see Store.push_configs)."""
        entry = self._find(scope, task_id)
        if entry is None:
            return None
        return [entry.push[name].config for name in sorted(name for name in entry.push if name > after)[:limit]]

    async def push_config(self, scope: Scope, task_id: str, config_id: str) -> PushConfig | None:
        """One config (see Store.push_config)."""
        entry = self._find(scope, task_id)
        push = entry and entry.push.get(config_id)
        return push.config if push else None

    async def delete_push_config(self, scope: Scope, task_id: str, config_id: str) -> bool:
        """Remove a config (see Store.delete_push_config)."""
        if entry := self._find(scope, task_id):
            entry.push.pop(config_id, None)
            self._pending.pop((task_id, config_id), None)
        return entry is not None

    async def due(self, holder: str, now_ms: int, until_ms: int, limit: int) -> list[Delivery]:
        """Claim configs that have something to send (see Store.due)."""
        ready = list(islice((push for push in self._pending.values() if push.next_ms <= now_ms), limit))
        for push in ready:
            push.next_ms = until_ms
        return [self._delivery(push) for push in ready]

    def _delivery(self, push: Push) -> Delivery:
        row = self._tasks[push.config.task_id].row
        return Delivery(row.scope, push.config, push.cursor, push.due, push.attempts, row.trace, push.failing_ms)

    async def delivered(self, delivery: Delivery, report: Report) -> None:
        """Report on a claimed delivery (see Store.delivered)."""
        task_id, config_id = delivery.config.task_id, delivery.config.config_id
        entry = self._find(delivery.scope, task_id)
        push = entry and entry.push.get(config_id)
        # A report that knows less than is stored comes from a claim that ran out, or speaks of a replaced config.
        if push and push.config == delivery.config and push.cursor <= report.cursor:
            for name, value in report._asdict().items():
                setattr(push, name, value)
            self._pending.pop((task_id, config_id), None)
            self._queue(push)

    async def backlog(self, after: tuple[str, str], limit: int, given_up: bool) -> list[Backlog]:
        """Configs that are behind (see Store.backlog)."""
        found = (
            push for key, push in sorted(self._pending.items()) if key > after and (push.given_up_ms or not given_up)
        )
        return [
            Backlog(self._delivery(push), push.next_ms, push.given_up_ms, push.said) for push in islice(found, limit)
        ]

    async def revive(self, configs: Sequence[PushConfig]) -> int:
        """Take configs up again (see Store.revive)."""
        found = [self._pending.get((config.task_id, config.config_id)) for config in configs]
        dead = [push for push, config in zip(found, configs, strict=True) if push and push.config == config]
        dead = [push for push in dead if push.given_up_ms]
        for push in dead:
            push.attempts, push.next_ms, push.said, push.failing_ms, push.given_up_ms = 0, 0, "", 0, 0
        return len(dead)
