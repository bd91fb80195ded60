"""The store that keeps everything in this process: for tests, demos and agents that may forget.

Laws: no method awaits, so each is one step of the event loop and every change is atomic. What is refused is refused
before anything is touched. Rows that were handed out stay as they are: who changes one first takes a copy into the
store. Each order that a list or retention needs is kept sorted as statuses change, so a page, its total and a trim cost
what they return, but for pages of one state within a context, which cost what that has; a page that is read again costs
next to nothing. What is kept of a task are few objects, and bytes rather than messages, because Python's search for
lost cycles visits each object again and again. Push notification configs are kept as memory_push.py says.
"""

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from heapq import heapify, heappop, heapreplace
from itertools import count, islice
from operator import attrgetter
from typing import Final

from a2a_grpc.tasks.fence import admit, claimed, free
from a2a_grpc.tasks.memory_push import MemoryPush, Pushed
from a2a_grpc.tasks.start import now_ms
from a2a_grpc.tasks.state import TERMINAL
from a2a_grpc.tasks.store import (
    CLAIM,
    Change,
    Claimed,
    Counts,
    Dedupe,
    Duplicate,
    Event,
    Post,
    Retention,
    Scope,
    TaskPage,
    TaskQuery,
    TaskRow,
)

MOST_PAGES: Final = 64
"""Pages that are kept for who reads the same again."""

_Key = tuple[int, str]  # (status_ms, task_id): the order of LIST-02 and LIST-03, oldest first


@dataclass(slots=True)
class _Entry(Pushed):
    lent: bool = False  # whether somebody has the row
    events: list[bytes] = field(default_factory=list)
    sent_as: tuple[str, ...] = ()
    dropped: int = 0  # events that are forgotten


@dataclass(slots=True)
class _Context:
    used_ms: int
    size: int = 0
    messages: deque[tuple[int, bytes]] = field(default_factory=deque)
    memory: dict[str, bytes] = field(default_factory=dict)

    def drop(self) -> int:
        """Forget the oldest message; how many bytes that were."""
        size = len(self.messages.popleft()[1])
        self.size -= size
        return size


class _Conversations:
    """The conversations of every scope; see Store for what each method does."""

    def __init__(self) -> None:
        self._contexts: dict[tuple[Scope, str], _Context] = {}

    def __len__(self) -> int:
        return len(self._contexts)

    def use(self, scope: Scope, context_id: str, memory: Mapping[str, bytes | None], now_ms: int) -> None:
        """Note that a conversation goes on, and what its agent wants to remember."""
        context = self._contexts.get((scope, context_id))
        if context is None:
            if not memory:
                return
            context = self._contexts[scope, context_id] = _Context(now_ms)
        context.used_ms = max(context.used_ms, now_ms)
        for key, value in memory.items():
            if value is None:
                context.memory.pop(key, None)
            else:
                context.memory[key] = value

    def say(self, scope: Scope, context_id: str, messages: Sequence[bytes], now_ms: int) -> None:
        """Keep the messages of a direct exchange."""
        context = self._contexts.setdefault((scope, context_id), _Context(now_ms))
        context.messages.extend((now_ms, message) for message in messages)
        context.size += sum(map(len, messages))

    def messages(self, scope: Scope, context_id: str, limit: int) -> list[bytes]:
        """The last messages of direct exchanges (see Store.messages)."""
        context = self._contexts.get((scope, context_id))
        return [message for _, message in list(context.messages)[-limit:]] if context and limit else []

    def memory(self, scope: Scope, context_id: str) -> dict[str, bytes]:
        """The memory of a context (see Store.memory)."""
        context = self._contexts.get((scope, context_id))
        return dict(context.memory) if context else {}

    def trim(self, retention: Retention) -> None:
        """Forget what is no longer kept (see Store.trim)."""
        oldest = retention.now_ms - retention.terminal_ms
        owned: dict[Scope, list[_Context]] = {}
        for name, context in list(self._contexts.items()):
            while context.messages and context.messages[0][0] < oldest:
                context.drop()
            if context.used_ms < oldest:
                del self._contexts[name]
            elif context.size:
                owned.setdefault(name[0], []).append(context)
        for contexts in owned.values():
            _shed(contexts, retention.reply_bytes)
        _shed([context for contexts in owned.values() for context in contexts], retention.reply_bytes_all)


def _shed(contexts: Iterable[_Context], most: int) -> None:
    """Forget messages, the oldest first, until no more than so many bytes are left."""
    excess = sum(context.size for context in contexts) - most
    if excess <= 0:
        return
    first = [(context.messages[0][0], number, context) for number, context in enumerate(contexts) if context.size]
    heapify(first)
    while excess > 0:
        _, number, context = first[0]
        excess -= context.drop()
        if context.messages:
            heapreplace(first, (context.messages[0][0], number, context))
        else:
            heappop(first)


class _Shelf:
    """Sorted lists of task keys by label; a label without tasks takes no room. pages: of some lists the last that was
    read, with its query, until the list or a row of it changes."""

    def __init__(self) -> None:
        self.lists: dict[object, list[_Key]] = {}
        self.pages: dict[object, tuple[TaskQuery, TaskPage]] = {}

    def changed(self, labels: Iterable[object]) -> None:
        if self.pages:
            for label in labels:
                self.pages.pop(label, None)

    def add(self, labels: Sequence[object], key: _Key) -> None:
        self.changed(labels)
        for label in labels:
            keys = self.lists.get(label)
            if keys is None:
                self.lists[label] = [key]
            elif key < keys[-1]:
                insort(keys, key)
            else:
                keys.append(key)

    def remove(self, labels: Sequence[object], key: _Key) -> None:
        self.changed(labels)
        for label in labels:
            keys = self.lists[label]
            del keys[bisect_left(keys, key)]
            if not keys:
                del self.lists[label]


_columns = attrgetter(*(field.name for field in fields(TaskRow)))


def _copy(row: TaskRow) -> TaskRow:
    return TaskRow(*_columns(row))  # dataclasses.replace takes several times as long


def _lent(entry: _Entry) -> TaskRow:
    entry.lent = True
    return entry.row


def _labels(row: TaskRow) -> tuple[object, ...]:
    return (row.scope,), (row.scope, row.context_id), (row.scope, row.state)


def _retire_label(row: TaskRow) -> tuple[object, ...]:
    return (row.scope if row.state in TERMINAL else None,)


class MemoryStore(MemoryPush):
    """A Store that is gone when the process ends; see Store for what each method does. It has no limits of its own:
    call `trim`. Used from one event loop; raises nothing but what Store names."""

    exclusive = True

    def __init__(self) -> None:
        super().__init__()
        self._tasks: dict[str, _Entry] = {}
        self._order = _Shelf()  # by scope, by context, by state
        self._retire = _Shelf()  # ended tasks by scope, all others under None
        self._held: dict[str, TaskRow] = {}
        self._dedupe: dict[tuple[Scope, str], Dedupe] = {}
        self._contexts = _Conversations()
        self._posts: dict[int, tuple[Post, int]] = {}
        self._taken: dict[int, int] = {}
        self._numbers = count(1)

    def now_ms(self) -> int:
        """This process's time (see Store.now_ms)."""
        return now_ms()

    async def open(self) -> None:
        """Nothing to do."""

    async def close(self) -> None:
        """Nothing to do; what is kept stays readable."""

    async def commit(self, change: Change) -> int:
        """Apply a change (see Store.commit)."""
        if change.dedupe is not None:
            self._refuse_duplicate(change.scope, change.dedupe, change.now_ms)
        entry = self._tasks.get(change.task_id)
        columns = admit(entry.row if entry else None, change)
        bodies = [event.body for event in change.events]
        if entry is None:
            row = TaskRow(change.scope, change.task_id, change.context_id, created_ms=change.now_ms, **columns)
            entry = self._tasks[change.task_id] = _Entry(row, events=bodies)
            self._place(row)
        else:
            row = self._own(entry)
            self._set(row, columns)
            entry.events += bodies
        if row.holder:
            self._held[row.task_id] = row
        else:
            self._held.pop(row.task_id, None)
        for config in change.push_configs:
            self._register(entry, config, change.expected)
        if change.notify and entry.push:
            self._notify(entry, change.notify)
        if change.dedupe is not None:
            self._remember_sent(change.scope, change.dedupe)
            entry.sent_as += (change.dedupe.message_id,)
        if change.posts:
            self._taken |= change.posts
        if change.memory or change.take is not None:
            self._contexts.use(change.scope, row.context_id, change.memory, change.now_ms)
        return row.token

    def _own(self, entry: _Entry) -> TaskRow:
        """The row of a task, to be changed."""
        if entry.lent:
            self._order.changed(_labels(entry.row))
            entry.row, entry.lent = _copy(entry.row), False
            if entry.row.holder:
                self._held[entry.row.task_id] = entry.row
        return entry.row

    def _refuse_duplicate(self, scope: Scope, dedupe: Dedupe | None, now_ms: int) -> None:
        if dedupe and (stored := self._sent(scope, dedupe)) and not free(dedupe, stored, now_ms):
            raise Duplicate(stored)

    def _sent(self, scope: Scope, dedupe: Dedupe) -> Dedupe | None:
        return self._dedupe.get((scope, dedupe.message_id))

    def _remember_sent(self, scope: Scope, dedupe: Dedupe) -> None:
        self._dedupe[scope, dedupe.message_id] = dedupe._replace(claim=CLAIM)

    def _set(self, row: TaskRow, columns: Mapping[str, object]) -> None:
        moves = "state" in columns
        if moves:
            self._displace(row)
        for name, value in columns.items():
            setattr(row, name, value)
        if moves:
            self._place(row)

    def _place(self, row: TaskRow) -> None:
        key = (row.status_ms, row.task_id)
        self._order.add(_labels(row), key)
        self._retire.add(_retire_label(row), key)

    def _displace(self, row: TaskRow) -> None:
        key = (row.status_ms, row.task_id)
        self._order.remove(_labels(row), key)
        self._retire.remove(_retire_label(row), key)

    def _find(self, scope: Scope, task_id: str) -> _Entry | None:
        entry = self._tasks.get(task_id)
        return entry if entry is not None and entry.row.scope == scope else None

    async def task(self, scope: Scope, task_id: str) -> TaskRow | None:
        """The task (see Store.task)."""
        entry = self._find(scope, task_id)
        return _lent(entry) if entry else None

    async def events(self, scope: Scope, task_id: str, after: int, limit: int) -> list[Event]:
        """Events after a number (see Store.events)."""
        entry = self._find(scope, task_id)
        if entry is None:
            return []
        start = max(after - entry.dropped, 0)
        found = entry.events[start : start + limit]
        return [Event(number, body=body) for number, body in enumerate(found, entry.dropped + start + 1)]

    async def shorten(self, scope: Scope, task_id: str, upto: int) -> None:
        """Forget events (see Store.shorten)."""
        entry = self._find(scope, task_id)
        if entry is not None and not entry.push:
            count = min(upto, entry.row.folded) - entry.dropped
            if count > 0:
                del entry.events[:count]
                entry.dropped += count

    async def tasks(self, scope: Scope, query: TaskQuery) -> TaskPage:
        """A page of tasks (see Store.tasks)."""
        filters = [value for value in (query.context_id, query.state) if value]
        label = scope, *filters[:1]
        if (read := self._order.pages.get(label)) is not None and read[0] == query:
            return read[1]
        keys = self._order.lists.get(label, [])
        start, tasks = bisect_left(keys, (query.since_ms, "")), self._tasks
        end = bisect_left(keys, query.before) if query.before else len(keys)
        if len(filters) == 2:
            keys = [key for key in keys[start:] if tasks[key[1]].row.state == query.state]
            start, end = 0, bisect_left(keys, query.before) if query.before else len(keys)
        first = max(start, end - query.limit)
        rows = [_lent(tasks[task_id]) for _, task_id in reversed(keys[first:end])]
        page = TaskPage(rows, len(keys) - start, first > start)
        if rows:
            if len(self._order.pages) >= MOST_PAGES:
                self._order.pages.clear()
            self._order.pages[label] = query, TaskPage(tuple(rows), page.total, page.more)
        return page

    async def renew(self, holder: str, until_ms: int, tokens: Mapping[str, int]) -> frozenset[str]:
        """Lengthen leases (see Store.renew)."""
        lost = set()
        for task_id, token in tokens.items():
            row = self._held.get(task_id)
            if row is None or (row.holder, row.token) != (holder, token):
                lost.add(task_id)
                continue
            self._own(self._tasks[task_id]).lease_until_ms = until_ms
        return frozenset(lost)

    async def cancels(self, holder: str) -> dict[str, bytes]:
        """Cancel requests that wait (see Store.cancels)."""
        held = self._held.items()
        return {name: row.cancel for name, row in held if row.holder == holder and row.cancel is not None}

    async def lost(self, holder: str, now_ms: int, limit: int) -> list[TaskRow]:
        """Tasks whose turn has no owner any more (see Store.lost)."""
        found = (row for row in self._held.values() if row.holder != holder or row.lease_until_ms <= now_ms)
        return [_lent(self._tasks[row.task_id]) for row in islice(found, limit)]

    async def places(self, task_ids: Sequence[str]) -> dict[str, tuple[Scope, int]]:
        """Where tasks are (see Store.places)."""
        found = (self._tasks.get(task_id) for task_id in task_ids)
        return {entry.row.task_id: (entry.row.scope, entry.row.sequence) for entry in found if entry is not None}

    async def request_cancel(self, scope: Scope, task_id: str, request: bytes) -> TaskRow | None:
        """Leave a cancel request if a turn is running (see Store.request_cancel)."""
        entry = self._find(scope, task_id)
        if entry is None:
            return None
        if entry.row.holder:
            self._own(entry).cancel = request
        return _lent(entry)

    async def post(self, scope: Scope, task_id: str, token: int, message: bytes, digest: bytes, until_ms: int) -> int:
        """Leave a message for a turn (see Store.post)."""
        post = Post(next(self._numbers), task_id, token, message, digest)
        if not self._find(scope, task_id) or not self._reader(post):
            return 0
        self._posts[post.number] = post, until_ms
        return post.number

    def _reader(self, post: Post) -> str:
        """Who holds the turn that a message is for, "" if it is over."""
        row = self._held.get(post.task_id)
        return row.holder if row is not None and row.token == post.token else ""

    async def posts(self, holder: str) -> list[Post]:
        """Messages that wait (see Store.posts)."""
        waiting = (post for number, (post, _) in self._posts.items() if number not in self._taken)
        return [post for post in waiting if self._reader(post) == holder]

    async def refuse(self, holder: str, number: int) -> None:
        """Refuse a message (see Store.refuse)."""
        if number in {post.number for post in await self.posts(holder)}:
            self._taken[number] = -1

    async def posted(self, number: int) -> int | None:
        """What became of a message (see Store.posted)."""
        found = self._posts.get(number)
        if found is not None and number not in self._taken and self._reader(found[0]):
            return 0
        self._posts.pop(number, None)
        return self._taken.pop(number, None)

    async def seen(self, scope: Scope, message_id: str, now_ms: int) -> Dedupe | None:
        """The first outcome of a messageId (see Store.seen)."""
        stored = self._dedupe.get((scope, message_id))
        return stored if stored and now_ms < stored.expires_ms else None

    async def claim_messages(self, claims: Sequence[tuple[Scope, Dedupe]], now_ms: int) -> Mapping[Claimed, Dedupe]:
        """Store claims (see Store.claim_messages)."""
        return claimed(claims, self._sent, self._remember_sent, now_ms)

    async def remember_reply(
        self,
        scope: Scope,
        context_id: str,
        messages: Sequence[bytes],
        memory: Mapping[str, bytes | None],
        dedupe: Dedupe | None,
        now_ms: int,
    ) -> None:
        """Keep a direct exchange (see Store.remember_reply)."""
        self._refuse_duplicate(scope, dedupe, now_ms)
        if dedupe is not None:
            self._remember_sent(scope, dedupe)
        self._contexts.say(scope, context_id, messages, now_ms)
        self._contexts.use(scope, context_id, memory, now_ms)

    async def messages(self, scope: Scope, context_id: str, limit: int) -> list[bytes]:
        """The last messages of direct exchanges (see Store.messages)."""
        return self._contexts.messages(scope, context_id, limit)

    async def memory(self, scope: Scope, context_id: str) -> dict[str, bytes]:
        """The memory of a context (see Store.memory)."""
        return self._contexts.memory(scope, context_id)

    async def counts(self, now_ms: int) -> Counts:
        """How much there is to look after (see Store.counts)."""
        given_up = sum(push.given_up_ms > 0 for push in self._pending.values())
        expired = sum(row.lease_until_ms <= now_ms for row in self._held.values())
        return Counts(len(self._pending) - given_up, given_up, len(self._held), expired)

    async def trim(self, retention: Retention) -> list[str]:
        """Delete what is no longer kept (see Store.trim)."""
        now = retention.now_ms
        gone = list(islice(self._expired(retention), retention.batch))
        for task_id in gone:
            entry = self._tasks.pop(task_id)
            self._displace(entry.row)
            self._held.pop(task_id, None)
            self._forget(entry)
            for sent in ((entry.row.scope, message_id) for message_id in entry.sent_as):
                if sent in self._dedupe and self._dedupe[sent].task_id == task_id:
                    del self._dedupe[sent]
        for sent in [sent for sent, dedupe in self._dedupe.items() if dedupe.expires_ms <= now]:
            del self._dedupe[sent]
        self._contexts.trim(retention)
        for number in [number for number, (_, until_ms) in self._posts.items() if until_ms < now]:
            del self._posts[number]
            self._taken.pop(number, None)
        return gone

    def _expired(self, retention: Retention) -> Iterator[str]:
        for label, keys in self._retire.lists.items():
            if label is not None:
                aged = bisect_left(keys, (retention.now_ms - retention.terminal_ms, ""))
                yield from (task_id for _, task_id in keys[: max(aged, len(keys) - retention.count)])
        unfinished = self._retire.lists.get(None, [])
        for _, task_id in unfinished[: bisect_left(unfinished, (retention.now_ms - retention.stuck_ms, ""))]:
            row = self._tasks[task_id].row
            if not row.holder or row.lease_until_ms <= retention.now_ms:
                yield task_id
