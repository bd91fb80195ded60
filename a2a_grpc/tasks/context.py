"""What a turn may know of its conversation: memory, earlier tasks and messages, referenced tasks.

Laws: everything is read through the turn's own Scope and context, so nothing of another caller is ever seen (CTX-12).
Memory written by a turn is stored with the turn's next commit, never on its own.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

import orjson
from a2a_stubs import v1

from a2a_grpc.errors import InvalidAgentResponseError
from a2a_grpc.protojson_values import json_of, value_of
from a2a_grpc.tasks.store import Scope, Store, TaskQuery
from a2a_grpc.tasks.views import shown

MEMORY_VALUE_BYTES: Final = 64 * 1024
"""Largest JSON value in the memory of a context."""


Check = Callable[[int], Awaitable[None]]
"""Raises TurnEnded when the turn takes nothing more; given 0, or the state that it is to bring the task into."""


def to_json(value: Any, what: str, limit: int) -> bytes:
    """The author's value as JSON; raises InvalidAgentResponseError if it is not JSON or larger than `limit` bytes."""
    body = orjson.dumps(json_of(value_of(value)))
    if len(body) > limit:
        raise InvalidAgentResponseError(f"{what} takes {len(body)} bytes as JSON; the limit is {limit}")
    return body


class Memory:
    """JSON values by key that outlive the task: one memory for each caller and contextId (CTX-12).

    A value may take 64 KiB. What is set is stored with the next event of the turn, at its end at the latest; of two
    tasks that set the same key the later wins. Numbers above 2^53 lose digits. Setting and deleting raise TurnEnded
    after the end of the turn.
    """

    def __init__(self, store: Store, scope: Scope, context_id: str, check: Check) -> None:
        self._store = store
        self._scope = scope
        self._context_id = context_id
        self._check = check
        self._stored: dict[str, bytes] | None = None
        self._written: dict[str, bytes | None] = {}
        self._unsaved: dict[str, bytes | None] = {}

    async def get(self, key: str, default: Any = None) -> Any:
        """The value of a key, `default` if there is none."""
        body = self._written[key] if key in self._written else (await self._load()).get(key)
        return default if body is None else orjson.loads(body)

    async def set(self, key: str, value: Any) -> None:
        """Set a key; raises InvalidAgentResponseError for what is not JSON or larger than 64 KiB."""
        await self._check(0)
        self._written[key] = self._unsaved[key] = to_json(value, f"memory {key!r}", MEMORY_VALUE_BYTES)

    async def delete(self, key: str) -> None:
        """Forget a key; one that is not there is no error."""
        await self._check(0)
        self._written[key] = self._unsaved[key] = None

    async def all(self) -> dict[str, Any]:
        """Every key with its value."""
        bodies = {**await self._load(), **self._written}
        return {key: orjson.loads(body) for key, body in bodies.items() if body is not None}

    async def _load(self) -> dict[str, bytes]:
        if self._stored is None:
            self._stored = await self._store.memory(self._scope, self._context_id)
        return self._stored

    def take_unsaved(self) -> dict[str, bytes | None]:
        """What is to be stored with the next commit; from then on it counts as stored."""
        unsaved, self._unsaved = self._unsaved, {}
        return unsaved


class Context:
    """The conversation that a turn is part of, as its own caller may see it."""

    def __init__(
        self,
        store: Store,
        scope: Scope,
        context_id: str,
        task_id: str,
        references: Sequence[str],
        keep: bool,
        check: Check,
    ) -> None:
        self._store = store
        self._scope = scope
        self._task_id = task_id
        self._references = tuple(dict.fromkeys(references))
        self._keep = keep
        self.id = context_id
        self.memory = Memory(store, scope, context_id, check)
        """Values that outlive the task; see Memory."""

    async def tasks(self, limit: int = 10) -> list[v1.Task]:
        """Up to `limit` (at most 99) other tasks of the context, the newest first."""
        page = await self._store.tasks(self._scope, TaskQuery(self.id, limit=min(limit, 99) + 1))
        others = [row for row in page.rows if row.task_id != self._task_id][:limit]
        return [(await shown(self._store, row, self._keep)).task for row in others]

    async def messages(self, limit: int = 100) -> list[v1.Message]:
        """Up to `limit` earlier messages of the context, oldest first: first those of direct exchanges, then those
        of other tasks, task by task. What a task produced is in its artifacts (OP-SEND-18)."""
        direct = await self._store.messages(self._scope, self.id, limit)
        found = [v1.Message.FromString(body) for body in direct]
        for task in reversed(await self.tasks(99)):
            found += task.history
            if task.status.HasField("message"):
                found.append(task.status.message)
        return found[-limit:] if limit > 0 else []

    async def referenced(self) -> list[v1.Task]:
        """The tasks that the message refers to; those the caller may not see are left out (CTX-10)."""
        rows = [await self._store.task(self._scope, name) for name in self._references]
        return [(await shown(self._store, row, self._keep)).task for row in rows if row is not None]
