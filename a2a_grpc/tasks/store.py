"""What a store is: the one transaction of a task, and the reads around it.

Laws: every name a store needs lives here; a store decides nothing about tasks, it keeps what it is given and refuses
what is out of date. Every read and write carries a Scope, so nothing can forget to ask whose task it is (AUTH-04,
TENANT-05). One number rules a task: the sequence of its events. It is the position of a reader, the SSE id, the
version for compare-and-set, and the cursor of push delivery. Times are whole milliseconds since 1970, UTC (JSON-11).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol

from a2a_stubs import v1


class Scope(NamedTuple):
    """Whose data: the agent's name in this server, the tenant ("" for none), the owner (the caller's subject)."""

    agent: str
    tenant: str
    owner: str


class Told(Protocol):
    """What whoever says an event knows of it, so that nobody has to read it. state: what it brings the task into, 0 if
    it leaves that alone; at_ms: when."""

    state: int
    at_ms: int


class Event:
    """One entry of a task's log: its number, and what it says as a message or as its bytes; the other is made when
    somebody looks, and neither is made twice. The payload must not be changed by anyone once it is committed. told: of
    events that were made here; None for others.

    `task` opens the log, `status_update` and `artifact_update` follow; a `message` is what the user said in a later
    turn: it goes into the history and is never delivered to readers (I-08).
    """

    __slots__ = ("_body", "_payload", "sequence", "told")

    def __init__(
        self,
        sequence: int,
        payload: v1.StreamResponse | None = None,
        body: bytes | None = None,
        told: Told | None = None,
    ) -> None:
        self.sequence = sequence
        self.told = told
        self._payload = payload
        self._body = body

    @property
    def payload(self) -> v1.StreamResponse:
        """What it says."""
        if self._payload is None:
            self._payload = v1.StreamResponse.FromString(self._body or b"")
        return self._payload

    @property
    def body(self) -> bytes:
        """What it says, serialised."""
        if self._body is None:
            self._body = self.payload.SerializeToString()
        return self._body

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Event):
            return NotImplemented
        return self.sequence == other.sequence and self.payload == other.payload

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Event({self.sequence}, {self.payload!r})"


@dataclass(slots=True)
class TaskRow:
    """A task as stored.

    scope, task_id, context_id: whose it is and what it is called. created_ms: when it was made.
    state, status_ms: the current status for filters and order (LIST-02).
    sequence: number of the last event. folded: number up to which `head` and `artifacts` speak; lower only while a
    turn runs, then the reader folds the events after it.
    head: serialised Task without artifacts; artifacts: serialised Task with nothing but artifacts. Their
    concatenation parses as the whole Task.
    author_state: the JSON object that the agent's author keeps between turns, b"" for none.
    holder, token, lease_until_ms: the lease of the running turn; holder "" when no turn runs. The token only grows.
    attempt: how often the current turn was started. cancel: serialised CancelTaskRequest that waits for the owner.
    trace: the trace context of the call that started the last turn, see call.trace_of.
    """

    scope: Scope
    task_id: str
    context_id: str
    state: int
    status_ms: int
    created_ms: int
    sequence: int = 0
    folded: int = 0
    head: bytes = b""
    artifacts: bytes = b""
    author_state: bytes = b""
    holder: str = ""
    token: int = 0
    lease_until_ms: int = 0
    attempt: int = 1
    cancel: bytes | None = None
    trace: str = ""


class Snapshot(NamedTuple):
    """The status and, at the end of a turn, the folded task. `head` None leaves the stored snapshot as it is."""

    state: int
    status_ms: int
    head: bytes | None = None
    artifacts: bytes | None = None
    folded: int = 0


class LeaseTaken(NamedTuple):
    """Take the lease: who holds it from now on, until when, the attempt number of the turn, and its trace context."""

    holder: str
    until_ms: int
    attempt: int = 1
    trace: str = ""


CLAIM: Final = b"\0"
"""What the reply of a claim begins with, and no serialised Message."""


class Dedupe(NamedTuple):
    """What makes a repeated send recognisable: same scope and messageId; `digest` tells whether the content is the
    same. `task_id` or `reply` (a serialised Message) is the first outcome (OP-SEND-14, BL-51); or the row is a claim:
    somebody is at work on an outcome, and says whom it is by the rest of `reply`. claim: the reply of the claim in
    whose place this row may come; default: of none. It is not stored."""

    message_id: str
    digest: bytes
    expires_ms: int
    task_id: str = ""
    reply: bytes = b""
    claim: bytes = CLAIM

    @property
    def claims(self) -> bool:
        """Whether there is no outcome yet."""
        return self.reply[:1] == CLAIM


Claimed = tuple[Scope, str]
"""Whose message, and its messageId."""


class Post(NamedTuple):
    """A message for a turn at work, left by a process that does not run it. number: its own; token: of the turn that it
    is for; message: serialised; digest: as in Dedupe, b"" where nobody looks."""

    number: int
    task_id: str
    token: int
    message: bytes
    digest: bytes


class PushConfig(NamedTuple):
    """A stored push notification config: the v1.0 message (serialised TaskPushNotificationConfig, task id and id set),
    the protocol version it was made with (PUSH-29), and what v1.0 cannot say of a v0.3 config (L-04), as JSON."""

    task_id: str
    config_id: str
    config: bytes
    version: str
    extra: bytes = b""


class Delivery(NamedTuple):
    """A config that has something to send: follow the task's log after `cursor` up to `due` (PUSH-14, PUSH-18).
    attempts: failures in a row so far. trace: as in TaskRow. failing_ms: since when it fails, 0 if it does not."""

    scope: Scope
    config: PushConfig
    cursor: int
    due: int
    attempts: int
    trace: str = ""
    failing_ms: int = 0


class Report(NamedTuple):
    """What became of a delivery. cursor: events up to it are done with. attempts, failing_ms: as in Delivery. next_ms:
    when it may be tried again; 0 with attempts 0: go on at once; NEVER with given_up_ms, the time when it was given up.
    said: what went wrong last, "" for nothing."""

    cursor: int
    attempts: int = 0
    next_ms: int = 0
    said: str = ""
    failing_ms: int = 0
    given_up_ms: int = 0


class Backlog(NamedTuple):
    """A config that is behind, as operators see it, whoever's it is.

    next_ms: when it is tried again, also the end of a claim. given_up_ms: when it was given up; 0 if it was not. said:
    what went wrong the last time, "" for nothing.
    """

    delivery: Delivery
    next_ms: int
    given_up_ms: int
    said: str


NEVER: Final = 1 << 62
"""The time of the next attempt, in ms, of a config that was given up."""


@dataclass(slots=True)
class Change:
    """One transaction on one task: all of it happens, or nothing.

    expected: sequence of the last event the writer knows; 0 makes the task, which then needs `context_id`.
    token: fencing token of the writing turn; None for a writer without a lease (cancel, recovery, claim).
    events: new events, numbered expected + 1 onwards. snapshot: only when the status changes.
    take: take the lease; granted only if nobody holds one that is alive (`now_ms` < until). The token grows by one.
    over: with `take` or on its own, also break a living lease (recovery, cancel): the token grows by one.
    release: give the lease up (holder becomes "").
    notify: number of the newest event that push configs are to hear of; 0 for none. The store moves `due` of every
    config of the task to it.
    cancel: None leaves a waiting cancel request alone, b"" clears it, anything else stores it.
    author_state: None leaves the author's object alone. dedupe: the row that makes a repetition of this send known.
    push_configs: configs to create, from `expected` on, or to replace, see put_push_config. memory: writes to the
    context's memory, None deletes. posts: messages that are taken, by their numbers those of their events. trace: as in
    TaskRow, of a turn that is over so soon that it takes no lease; None leaves it alone.
    """

    scope: Scope
    task_id: str
    expected: int
    now_ms: int
    context_id: str = ""
    token: int | None = None
    events: Sequence[Event] = ()
    snapshot: Snapshot | None = None
    author_state: bytes | None = None
    take: LeaseTaken | None = None
    over: bool = False
    release: bool = False
    notify: int = 0
    cancel: bytes | None = None
    dedupe: Dedupe | None = None
    push_configs: Sequence[PushConfig] = ()
    memory: Mapping[str, bytes | None] = field(default_factory=dict)
    posts: Mapping[int, int] = field(default_factory=dict)
    trace: str | None = None


class TaskQuery(NamedTuple):
    """A page of tasks: newest status first, ties by descending task id (LIST-02, LIST-03).

    context_id "" and state 0 do not filter; since_ms keeps statuses at or after it (LIST-13); before is the
    (status_ms, task_id) of the last task seen; limit is at most 100. artifacts False: nobody will look at `artifacts`
    of the rows, which may be empty, so that a list without artifacts does not cost what they weigh (LIST-09).
    """

    context_id: str = ""
    state: int = 0
    since_ms: int = 0
    before: tuple[int, str] | None = None
    limit: int = 50
    artifacts: bool = True


class TaskPage(NamedTuple):
    """Rows of a page, how many tasks match without paging, and whether more rows follow.

    The rows are a tuple if they were given before and will be given again, the very same tuple, until one of them
    changes: what is made of them can be kept.
    """

    rows: Sequence[TaskRow]
    total: int
    more: bool


class Counts(NamedTuple):
    """How much lies in a store, of all scopes: push configs that are behind and not given up, those given up, tasks in
    a turn, and those whose lease has run out."""

    behind: int
    given_up: int
    leases: int
    expired: int


@dataclass(frozen=True, slots=True)
class Retention:
    """What is kept: terminal tasks up to an age and a count per scope; unfinished tasks without a living lease up to
    `stuck_ms` after their last status; dedupe rows until they expire; contexts up to `terminal_ms` after their last
    use; messages for turns as long as their senders may ask for them. At most `batch` tasks go in one call (BL-44,
    SEC-08). turn_ms: how long the process that trims a shared store keeps the others from it, after each call.
    reply_bytes, reply_bytes_all: how many bytes the messages of direct exchanges may take of each scope, and of all
    together; the oldest go. What a repeated message is answered with is none of them."""

    now_ms: int
    terminal_ms: int
    stuck_ms: int
    count: int
    batch: int = 500
    turn_ms: int = 0
    reply_bytes: int = NEVER
    reply_bytes_all: int = NEVER


class StoreError(Exception):
    """Root of what a store may refuse; anything else that escapes a store is a fault of the store."""


class Conflict(StoreError):
    """The task has moved on: its sequence is not the expected one, or its lease is held and alive."""


class LeaseLost(StoreError):
    """The writer's fencing token is no longer the task's."""


class Duplicate(StoreError):
    """The dedupe row exists already; `dedupe` is the stored one."""

    def __init__(self, dedupe: Dedupe) -> None:
        super().__init__(dedupe.message_id)
        self.dedupe = dedupe


class Unreached(StoreError):
    """Some rows are being written, by who takes long; `left` are the ids of their tasks, and of those that are lost.
    With the others it is done."""

    def __init__(self, left: frozenset[str]) -> None:
        super().__init__(f"{len(left)} tasks are being written just now")
        self.left = left


class OtherSchema(StoreError):
    """The tables are not those of this release; `found` is their number, 0 for none."""

    def __init__(self, found: int, newest: int) -> None:
        advice = "run a2a-grpc db upgrade" if found < newest else "use a newer release of a2a-grpc"
        super().__init__(f"schema {found}, this release needs {newest}: {advice}")
        self.found = found


class TooMany(StoreError):
    """The task has as many push configs as it may."""


class StoreBusy(StoreError):
    """Another process serves from this store and it cannot be shared; the text says which and what to do."""


class Store(Protocol):
    """Keeps tasks, their events and everything beside them. Methods may be called concurrently.

    exclusive: True when only one process can serve from it: then every lease of another holder is dead.
    """

    exclusive: bool

    def now_ms(self) -> int:
        """The time, in ms since 1970, by which everything in the store is dated, whichever process asks."""

    async def open(self) -> None:
        """Make ready; raises StoreBusy when the store is taken, StoreError when its schema is newer than this code."""

    async def close(self) -> None:
        """Finish what was accepted and let go."""

    async def commit(self, change: Change) -> int:
        """Apply a change and answer with the task's token once it is durable.

        Raises Conflict (wrong `expected`, task missing or not in scope, lease alive), LeaseLost (wrong token),
        Duplicate (dedupe row there). Then nothing is written. Concurrent commits may share one disk write.
        """

    async def task(self, scope: Scope, task_id: str) -> TaskRow | None:
        """The task, or None if there is none in this scope."""

    async def events(self, scope: Scope, task_id: str, after: int, limit: int) -> list[Event]:
        """Up to `limit` events with numbers above `after`, in order; empty if the task is not in scope."""

    async def shorten(self, scope: Scope, task_id: str, upto: int) -> None:
        """Forget a task's events up to a number, as far as its snapshot speaks for them and no push config may need
        them."""

    async def tasks(self, scope: Scope, query: TaskQuery) -> TaskPage:
        """A page of the scope's tasks, without one page repeating or skipping a task of another."""

    async def renew(self, holder: str, until_ms: int, tokens: Mapping[str, int]) -> frozenset[str]:
        """Lengthen the holder's leases, given as task id -> token; answers the tasks whose lease is lost. Raises
        Unreached when some are being written for a third of the new lease: the others are lengthened then."""

    async def cancels(self, holder: str) -> Mapping[str, bytes]:
        """The cancel requests that wait for turns of the holder, by task id (see request_cancel)."""

    async def lost(self, holder: str, now_ms: int, limit: int) -> list[TaskRow]:
        """Tasks in a turn whose lease ran out; in an exclusive store every lease that is not the holder's."""

    async def places(self, task_ids: Sequence[str]) -> Mapping[str, tuple[Scope, int]]:
        """Whose each task is and the number of its last event, by task id, for those that there are. Cheap: who waits
        for events of other processes asks for many tasks at once, again and again."""

    async def request_cancel(self, scope: Scope, task_id: str, request: bytes) -> TaskRow | None:
        """Leave a cancel request for the owner of the running turn; answers the task, or None if not in scope."""

    async def post(self, scope: Scope, task_id: str, token: int, message: bytes, digest: bytes, until_ms: int) -> int:
        """Leave a message for the turn with this token; its number, 0 if that turn is over. Who leaves one asks with
        `posted` what becomes of it, until `until_ms` at the latest; after that it may be deleted (see trim)."""

    async def posts(self, holder: str) -> list[Post]:
        """The messages that wait for turns of the holder, in the order in which they were left."""

    async def refuse(self, holder: str, number: int) -> None:
        """Refuse a message that waits for a turn of the holder; nothing if it does not, any more."""

    async def posted(self, number: int) -> int | None:
        """What became of a message: 0 while it waits, then once, as it is forgotten, the number of its event, or -1 if
        it was refused; None: it never was and never will be taken, as its turn is over. Asked too late it is None, too
        (see post)."""

    async def seen(self, scope: Scope, message_id: str, now_ms: int) -> Dedupe | None:
        """The first outcome of a messageId in this scope, if it has not expired."""

    async def claim_messages(self, claims: Sequence[tuple[Scope, Dedupe]], now_ms: int) -> Mapping[Claimed, Dedupe]:
        """Store claims, or lengthen or shorten them, each where nothing else is known of its message; answers what is
        known of the others. Two of one message may not be given."""

    async def remember_reply(
        self,
        scope: Scope,
        context_id: str,
        messages: Sequence[bytes],
        memory: Mapping[str, bytes | None],
        dedupe: Dedupe | None,
        now_ms: int,
    ) -> None:
        """Keep a turn that ended in a direct Message: the serialised messages of both sides for the conversation,
        memory writes and the dedupe row. Raises Duplicate."""

    async def messages(self, scope: Scope, context_id: str, limit: int) -> list[bytes]:
        """The last `limit` serialised messages of direct exchanges in a context, oldest first."""

    async def memory(self, scope: Scope, context_id: str) -> dict[str, bytes]:
        """The key-value memory of a context: JSON values by key."""

    async def put_push_config(self, scope: Scope, config: PushConfig, most: int) -> bool:
        """Create or replace (PUSH-30); False if the task is not in scope. The cursor of a new one starts at the task's
        sequence; one that is replaced goes on from where it was, as if it had never failed (PUSH-14). Raises TooMany if
        the task has `most` others already."""

    async def push_configs(self, scope: Scope, task_id: str, after: str, limit: int) -> list[PushConfig] | None:
        """Configs of a task with ids above `after`, ordered by id; None if the task is not in scope."""

    async def push_config(self, scope: Scope, task_id: str, config_id: str) -> PushConfig | None:
        """One config, or None."""

    async def delete_push_config(self, scope: Scope, task_id: str, config_id: str) -> bool:
        """Remove for good (PUSH-06, PUSH-07); False if the task is not in scope, True also if there was no config."""

    async def due(self, holder: str, now_ms: int, until_ms: int, limit: int) -> list[Delivery]:
        """Claim configs that have something to send and whose time has come, until `until_ms`."""

    async def delivered(self, delivery: Delivery, report: Report) -> None:
        """Report on a claimed delivery; the claim ends. Nothing happens if the config was deleted or replaced
        meanwhile, or another report knows more."""

    async def backlog(self, after: tuple[str, str], limit: int, given_up: bool) -> list[Backlog]:
        """Configs of all scopes that are behind, or only those that were given up (the dead letters): in order of
        (task id, config id), those above `after`."""

    async def revive(self, configs: Sequence[PushConfig]) -> int:
        """Take configs up again that were given up, from where they are; how many still were (PUSH-15)."""

    async def counts(self, now_ms: int) -> Counts:
        """How much there is to look after, for operators."""

    async def trim(self, retention: Retention) -> list[str]:
        """Delete what retention no longer keeps, with everything beside it; answers the ids of the deleted tasks."""
