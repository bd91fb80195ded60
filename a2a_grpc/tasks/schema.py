"""The tables of the SQL stores and every statement on them.

Laws: SQL text lives here and in schema_postgres.py, nowhere else; statements take named parameters, and keep to what
SQLite and PostgreSQL both know. A migration that was released is never changed, only followed by another. What a
running turn writes per event is small: a row of `events` and the number in `tasks`; whatever may be large (the folded
task, the author's state) lies in `snapshots`, which is written at the end of a turn. Rows that belong to a task or a
context go with it.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence, Set
from dataclasses import MISSING, fields
from typing import Any, Final

from a2a_grpc.tasks.state import TERMINAL
from a2a_grpc.tasks.store import NEVER, Backlog, Change, Delivery, PushConfig, Retention, Scope, TaskRow

MIGRATIONS: Final[tuple[tuple[str, ...], ...]] = (
    (
        """CREATE TABLE tasks (
            id INTEGER PRIMARY KEY, task_id TEXT NOT NULL UNIQUE,
            agent TEXT NOT NULL, tenant TEXT NOT NULL, owner TEXT NOT NULL, context_id TEXT NOT NULL,
            state INTEGER NOT NULL, status_ms BIGINT NOT NULL, created_ms BIGINT NOT NULL,
            sequence BIGINT NOT NULL, folded BIGINT NOT NULL,
            holder TEXT NOT NULL, token BIGINT NOT NULL, lease_until_ms BIGINT NOT NULL, attempt INTEGER NOT NULL,
            cancel BLOB)""",
        # The state at the end lets counts and the state filter stay within the index.
        "CREATE INDEX tasks_of_scope ON tasks (agent, tenant, owner, status_ms, task_id, state)",
        "CREATE INDEX tasks_of_context ON tasks (agent, tenant, owner, context_id, status_ms, task_id, state)",
        "CREATE INDEX tasks_by_age ON tasks (status_ms)",
        "CREATE INDEX tasks_held ON tasks (lease_until_ms) WHERE holder <> ''",
        """CREATE TABLE snapshots (
            task INTEGER PRIMARY KEY REFERENCES tasks (id) ON DELETE CASCADE,
            author_state BLOB NOT NULL, head BLOB NOT NULL, artifacts BLOB NOT NULL)""",
        """CREATE TABLE events (
            task INTEGER NOT NULL REFERENCES tasks (id) ON DELETE CASCADE,
            sequence BIGINT NOT NULL, payload BLOB NOT NULL, PRIMARY KEY (task, sequence)) WITHOUT ROWID""",
        """CREATE TABLE push_configs (
            task INTEGER NOT NULL REFERENCES tasks (id) ON DELETE CASCADE, config_id TEXT NOT NULL,
            config BLOB NOT NULL, version TEXT NOT NULL, extra BLOB NOT NULL,
            cursor BIGINT NOT NULL, due BIGINT NOT NULL, attempts INTEGER NOT NULL DEFAULT 0,
            next_ms BIGINT NOT NULL DEFAULT 0, holder TEXT NOT NULL DEFAULT '', PRIMARY KEY (task, config_id))""",
        "CREATE INDEX push_configs_due ON push_configs (next_ms) WHERE cursor < due",
        """CREATE TABLE dedupe (
            agent TEXT NOT NULL, tenant TEXT NOT NULL, owner TEXT NOT NULL, message_id TEXT NOT NULL,
            digest BLOB NOT NULL, expires_ms BIGINT NOT NULL, task_id TEXT NOT NULL, reply BLOB NOT NULL,
            PRIMARY KEY (agent, tenant, owner, message_id))""",
        "CREATE INDEX dedupe_by_age ON dedupe (expires_ms)",
        "CREATE INDEX dedupe_of_task ON dedupe (task_id) WHERE task_id <> ''",
        """CREATE TABLE contexts (
            id INTEGER PRIMARY KEY,
            agent TEXT NOT NULL, tenant TEXT NOT NULL, owner TEXT NOT NULL, context_id TEXT NOT NULL,
            used_ms BIGINT NOT NULL, UNIQUE (agent, tenant, owner, context_id))""",
        "CREATE INDEX contexts_by_age ON contexts (used_ms)",
        """CREATE TABLE messages (
            id INTEGER PRIMARY KEY, context INTEGER NOT NULL REFERENCES contexts (id) ON DELETE CASCADE,
            at_ms BIGINT NOT NULL, message BLOB NOT NULL)""",
        "CREATE INDEX messages_of_context ON messages (context, id)",
        "CREATE INDEX messages_by_age ON messages (at_ms)",
        """CREATE TABLE memory (
            context INTEGER NOT NULL REFERENCES contexts (id) ON DELETE CASCADE,
            key TEXT NOT NULL, value BLOB NOT NULL, PRIMARY KEY (context, key)) WITHOUT ROWID""",
    ),
    (
        "ALTER TABLE tasks ADD COLUMN trace TEXT NOT NULL DEFAULT ''",
        # Dead letters: a config that was given up, with all of its task's log that it has not got.
        "ALTER TABLE push_configs ADD COLUMN said TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE push_configs ADD COLUMN given_up_ms BIGINT NOT NULL DEFAULT 0",
        f"UPDATE push_configs SET given_up_ms = 1 WHERE next_ms >= {NEVER}",
        "CREATE INDEX push_configs_given_up ON push_configs (given_up_ms) WHERE given_up_ms > 0",
    ),
    (
        # Of each way to write, its last transaction; only PostgreSQL needs it.
        """CREATE TABLE marks (
            slot TEXT PRIMARY KEY, mark BIGINT NOT NULL, at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP)""",
        "CREATE INDEX tasks_to_cancel ON tasks (holder) WHERE cancel IS NOT NULL",
    ),
    ("ALTER TABLE push_configs ADD COLUMN failing_ms BIGINT NOT NULL DEFAULT 0",),
    (
        # Messages for turns at work, from processes that do not run them; `at_ms` is when they may be deleted.
        """CREATE TABLE posts (
            id INTEGER PRIMARY KEY, task INTEGER NOT NULL REFERENCES tasks (id) ON DELETE CASCADE,
            token BIGINT NOT NULL, message BLOB NOT NULL, digest BLOB NOT NULL, at_ms BIGINT NOT NULL,
            taken BIGINT NOT NULL DEFAULT 0)""",
        "CREATE INDEX posts_of_task ON posts (task)",
        "CREATE INDEX posts_waiting ON posts (id) WHERE taken = 0",
        "CREATE INDEX posts_by_age ON posts (at_ms)",
    ),
    (
        # How many tasks there are, kept by triggers: whatever writes tasks, another release too, is counted.
        """CREATE TABLE tallies (
            agent TEXT NOT NULL, tenant TEXT NOT NULL, owner TEXT NOT NULL, state INTEGER NOT NULL,
            tasks BIGINT NOT NULL, PRIMARY KEY (agent, tenant, owner, state))""",
    ),
    (
        # How much direct exchanges take is read within the index, whatever lies in their messages.
        "ALTER TABLE messages ADD COLUMN size BIGINT NOT NULL DEFAULT 0",
        "UPDATE messages SET size = length(message)",
        "DROP INDEX messages_of_context",
        "CREATE INDEX messages_of_context ON messages (context, id, size)",
    ),
)
"""Statements that lead from schema n to n + 1, from the empty database on."""

FILL_TALLIES: Final = """INSERT INTO tallies (agent, tenant, owner, state, tasks)
    SELECT agent, tenant, owner, state, count(*) FROM tasks GROUP BY agent, tenant, owner, state"""
_COUNT_NEW: Final = """INSERT INTO tallies (agent, tenant, owner, state, tasks)
    VALUES (NEW.agent, NEW.tenant, NEW.owner, NEW.state, 1)
    ON CONFLICT (agent, tenant, owner, state) DO UPDATE SET tasks = tasks + 1;"""
_COUNT_OLD: Final = """UPDATE tallies SET tasks = tasks - 1
    WHERE agent = OLD.agent AND tenant = OLD.tenant AND owner = OLD.owner AND state = OLD.state;
    DELETE FROM tallies WHERE tasks = 0
    AND agent = OLD.agent AND tenant = OLD.tenant AND owner = OLD.owner AND state = OLD.state;"""
SQLITE_ALSO: Final[Mapping[int, Sequence[str]]] = {
    6: (
        FILL_TALLIES,
        f"CREATE TRIGGER tally_added AFTER INSERT ON tasks BEGIN {_COUNT_NEW} END",
        f"CREATE TRIGGER tally_dropped AFTER DELETE ON tasks BEGIN {_COUNT_OLD} END",
        f"""CREATE TRIGGER tally_moved AFTER UPDATE OF state ON tasks WHEN OLD.state <> NEW.state
            BEGIN {_COUNT_OLD} {_COUNT_NEW} END""",
    )
}
"""What only SQLite is given, by the number of the schema that it belongs to."""

Read = Callable[[str, dict[str, Any]], Awaitable[Sequence[Any]]]
Drop = Callable[[list[dict[str, Any]]], Awaitable[object]]

VERSION_TABLE: Final = "CREATE TABLE IF NOT EXISTS schema (version INTEGER NOT NULL)"
VERSION: Final = "SELECT version FROM schema"
VERSION_CLEAR: Final = "DELETE FROM schema"
VERSION_SET: Final = "INSERT INTO schema (version) VALUES (:version)"

MINE: Final = "agent = :agent AND tenant = :tenant AND owner = :owner"
_TASK: Final = f"(SELECT id FROM tasks WHERE task_id = :task_id AND {MINE})"
_CONTEXT: Final = f"(SELECT id FROM contexts WHERE {MINE} AND context_id = :context_id)"
_ENDED: Final = f"state IN ({', '.join(map(str, sorted(TERMINAL)))})"
# In the order of TaskRow's fields, behind the three of its scope.
_ROW: Final = """SELECT agent, tenant, owner, task_id, context_id, state, status_ms, created_ms, sequence, folded, head,
    {artifacts}, author_state, holder, token, lease_until_ms, attempt, cancel, trace
    FROM tasks JOIN snapshots ON task = id"""
_FULL_ROW: Final = _ROW.format(artifacts="artifacts")

# -- a commit
GUARD: Final = """SELECT id, agent, tenant, owner, context_id, sequence, holder, token, lease_until_ms
    FROM tasks WHERE task_id = :task_id"""
TASK_COLUMNS: Final = (
    *("task_id", "context_id", "state", "status_ms", "created_ms", "sequence", "folded"),
    *("holder", "token", "lease_until_ms", "attempt", "cancel", "trace"),
)
SNAPSHOT_COLUMNS: Final = ("author_state", "head", "artifacts")
ADD_TASK: Final = f"""INSERT INTO tasks (agent, tenant, owner, {", ".join(TASK_COLUMNS)})
    VALUES (:agent, :tenant, :owner, {", ".join(f":{name}" for name in TASK_COLUMNS)}) RETURNING id"""
ADD_SNAPSHOT: Final = f"""INSERT INTO snapshots (task, {", ".join(SNAPSHOT_COLUMNS)})
    VALUES (:task, {", ".join(f":{name}" for name in SNAPSHOT_COLUMNS)})"""
EVENTS_AT_ONCE: Final = 16
ADD_EVENTS: Final = tuple(
    f"INSERT INTO events (task, sequence, payload) VALUES {', '.join(['(?, ?, ?)'] * count)}"
    for count in range(EVENTS_AT_ONCE + 1)
)
"""By number of events, for SQLite: one that is added alone costs it more than twice what one among sixteen does."""
MOVE_DUE: Final = "UPDATE push_configs SET due = :notify WHERE task = :task AND due < :notify"


def set_task(columns: Set[str]) -> str:
    """Change these columns of the task `:task`."""
    return f"UPDATE tasks SET {', '.join(f'{name} = :{name}' for name in sorted(columns))} WHERE id = :task"


def set_snapshot(columns: Set[str]) -> str:
    """Change these columns of the snapshot of the task `:task`."""
    return f"UPDATE snapshots SET {', '.join(f'{name} = :{name}' for name in sorted(columns))} WHERE task = :task"


def exchange(context: int, messages: Sequence[bytes], now_ms: int) -> list[dict[str, Any]]:
    """Values of `ADD_MESSAGE` for the messages of a direct exchange."""
    return [{"context": context, "now_ms": now_ms, "message": each, "size": len(each)} for each in messages]


def values_of(scope: Scope, **values: Any) -> dict[str, Any]:
    """Values of a statement on what belongs to a scope."""
    return {"agent": scope.agent, "tenant": scope.tenant, "owner": scope.owner, **values}


_UNSAID: Final[dict[str, Any]] = {
    field.name: field.default for field in fields(TaskRow) if field.default is not MISSING
}
"""What is in a new row where the change says nothing."""


def new_task(change: Change, columns: Mapping[str, Any]) -> dict[str, Any]:
    """Values of `ADD_TASK` and `ADD_SNAPSHOT` for a change that was admitted with these columns."""
    told: dict[str, Any] = {"task_id": change.task_id, "context_id": change.context_id, "created_ms": change.now_ms}
    return {**values_of(change.scope), **_UNSAID, **told, **columns}


# -- tasks and events
TASK: Final = f"{_FULL_ROW} WHERE task_id = :task_id AND {MINE}"
EVENTS: Final = f"""SELECT sequence, payload FROM events WHERE task = {_TASK} AND sequence > :after
    ORDER BY sequence LIMIT :limit"""

SHORTEN: Final = f"""DELETE FROM events WHERE task = {_TASK} AND sequence <= :upto
    AND sequence <= (SELECT folded FROM tasks WHERE id = events.task)
    AND NOT EXISTS (SELECT 1 FROM push_configs WHERE push_configs.task = events.task)"""


def page(filters: Set[str]) -> str:
    """Rows of a page, newest first. filters: of `context_id`, `state`, `since_ms`, `before`."""
    light = _ROW.format(artifacts="CASE WHEN :artifacts THEN artifacts ELSE :nothing END")
    return f"{light} WHERE {_where(filters)} ORDER BY status_ms DESC, task_id DESC LIMIT :limit"


def total(filters: Set[str], tallies: str = "tallies") -> str:
    """How many tasks match, on whatever page. tallies: what is summed up where they tell."""
    narrow = filters - {"before"}
    what = "count(*) FROM tasks" if narrow - {"state"} else f"CAST(coalesce(sum(tasks), 0) AS BIGINT) FROM {tallies}"
    return f"SELECT {what} WHERE {_where(narrow)}"


FILTERS: Final = {
    "context_id": "context_id = :context_id",
    "state": "state = :state",
    "since_ms": "status_ms >= :since_ms",
    "before": "(status_ms, task_id) < (:before_ms, :before_id)",
}
"""Conditions of a page by field of TaskQuery; a field that is empty adds none."""


def _where(filters: Set[str]) -> str:
    return " AND ".join((MINE, *(text for name, text in FILTERS.items() if name in filters)))


# -- leases and cancel
RENEW: Final = """UPDATE tasks SET lease_until_ms = :until_ms WHERE task_id = :task_id AND holder = :holder
    AND token = :token RETURNING task_id"""
PLACE: Final = "SELECT task_id, agent, tenant, owner, sequence FROM tasks WHERE task_id = :task_id"
CANCELS: Final = "SELECT task_id, cancel FROM tasks WHERE holder = :holder AND cancel IS NOT NULL"
LOST_TO_OTHERS: Final = f"""{_FULL_ROW} WHERE holder <> '' AND (holder <> :holder OR lease_until_ms <= :now_ms)
    ORDER BY lease_until_ms LIMIT :limit"""
LOST: Final = f"{_FULL_ROW} WHERE holder <> '' AND lease_until_ms <= :now_ms ORDER BY lease_until_ms LIMIT :limit"
REQUEST_CANCEL: Final = f"UPDATE tasks SET cancel = :cancel WHERE task_id = :task_id AND {MINE} AND holder <> ''"

# -- messages for turns at work
_ITS_TURN: Final = "SELECT 1 FROM tasks WHERE tasks.id = posts.task AND tasks.token = posts.token AND holder"
ADD_POST: Final = f"""INSERT INTO posts (task, token, message, digest, at_ms)
    SELECT id, token, :message, :digest, :until_ms FROM tasks
    WHERE task_id = :task_id AND {MINE} AND token = :token AND holder <> '' RETURNING id"""
POSTS: Final = """SELECT posts.id, task_id, posts.token, message, digest FROM posts JOIN tasks ON tasks.id = task
    WHERE holder = :holder AND taken = 0 AND posts.token = tasks.token ORDER BY posts.id"""
TAKE_POST: Final = "UPDATE posts SET taken = :taken WHERE id = :number"
REFUSE_POST: Final = f"UPDATE posts SET taken = -1 WHERE id = :number AND taken = 0 AND EXISTS ({_ITS_TURN} = :holder)"
# What is settled, or never will be: only the holder of the token takes, in the commit that it is guarded by.
DROP_POST: Final = f"""DELETE FROM posts WHERE id = :number AND (taken <> 0 OR NOT EXISTS ({_ITS_TURN} <> ''))
    RETURNING taken"""
POST: Final = "SELECT id FROM posts WHERE id = :number"

# -- repeated sends
SEEN: Final = f"""SELECT message_id, digest, expires_ms, task_id, reply FROM dedupe
    WHERE {MINE} AND message_id = :message_id AND expires_ms > :now_ms"""
ADD_DEDUPE: Final = """INSERT INTO dedupe (agent, tenant, owner, message_id, digest, expires_ms, task_id, reply)
    VALUES (:agent, :tenant, :owner, :message_id, :digest, :expires_ms, :task_id, :reply)
    ON CONFLICT (agent, tenant, owner, message_id) DO UPDATE SET digest = excluded.digest,
    expires_ms = excluded.expires_ms, task_id = excluded.task_id, reply = excluded.reply"""

# -- contexts
USE_CONTEXT: Final = f"UPDATE contexts SET used_ms = :now_ms WHERE {MINE} AND context_id = :context_id"
ADD_CONTEXT: Final = """INSERT INTO contexts (agent, tenant, owner, context_id, used_ms)
    VALUES (:agent, :tenant, :owner, :context_id, :now_ms)
    ON CONFLICT (agent, tenant, owner, context_id) DO UPDATE SET used_ms = excluded.used_ms RETURNING id"""
ADD_MESSAGE: Final = """INSERT INTO messages (context, at_ms, message, size)
    VALUES (:context, :now_ms, :message, :size)"""
MESSAGES: Final = f"SELECT message FROM messages WHERE context = {_CONTEXT} ORDER BY id DESC LIMIT :limit"
SET_MEMORY: Final = """INSERT INTO memory (context, key, value) VALUES (:context, :key, :value)
    ON CONFLICT (context, key) DO UPDATE SET value = excluded.value"""
DROP_MEMORY: Final = "DELETE FROM memory WHERE context = :context AND key = :key"
MEMORY: Final = f"SELECT key, value FROM memory WHERE context = {_CONTEXT}"

# -- push notification configs
TASK_NUMBER: Final = f"SELECT id, sequence FROM tasks WHERE task_id = :task_id AND {MINE}"
# One that is there already goes on from where it is, and whoever is at work on the very same one stays at it.
_AT_WORK: Final = "push_configs.holder <> '' AND push_configs.config = excluded.config"
PUT_CONFIG: Final = f"""INSERT INTO push_configs (task, config_id, config, version, extra, cursor, due)
    VALUES (:task, :config_id, :config, :version, :extra, :cursor, :cursor)
    ON CONFLICT (task, config_id) DO UPDATE SET config = excluded.config, version = excluded.version,
    extra = excluded.extra, attempts = 0, said = '', failing_ms = 0, given_up_ms = 0,
    next_ms = CASE WHEN {_AT_WORK} THEN push_configs.next_ms ELSE 0 END,
    holder = CASE WHEN {_AT_WORK} THEN push_configs.holder ELSE '' END"""
OTHER_CONFIGS: Final = "SELECT count(*) FROM push_configs WHERE task = :task AND config_id <> :config_id"
# A task without such configs gives one row of nothing, a missing task none.
CONFIGS: Final = f"""SELECT task_id, config_id, config, version, extra
    FROM tasks LEFT JOIN push_configs ON task = id AND config_id > :after
    WHERE task_id = :task_id AND {MINE} ORDER BY config_id LIMIT :limit"""
CONFIG: Final = f"""SELECT task_id, config_id, config, version, extra FROM push_configs JOIN tasks ON id = task
    WHERE task_id = :task_id AND {MINE} AND config_id = :config_id"""
DROP_CONFIG: Final = "DELETE FROM push_configs WHERE task = :task AND config_id = :config_id"
# A scope, a config, and the rest of a Delivery.
_DELIVERY: Final = (
    "agent, tenant, owner, task_id, config_id, config, version, extra, cursor, due, attempts, trace, failing_ms"
)
DUE: Final = f"""SELECT {_DELIVERY}, task FROM push_configs JOIN tasks ON id = task
    WHERE cursor < due AND next_ms <= :now_ms ORDER BY next_ms LIMIT :limit"""
CLAIM: Final = """UPDATE push_configs SET holder = :holder, next_ms = :until_ms
    WHERE task = :task AND config_id = :config_id"""
FREE_CLAIMS: Final = "UPDATE push_configs SET holder = '', next_ms = 0 WHERE holder <> ''"
# A report that knows less than is stored comes from a claim that ran out, or speaks of a replaced config.
DELIVERED: Final = f"""UPDATE push_configs SET cursor = :cursor, attempts = :attempts, next_ms = :next_ms, holder = '',
    said = :said, failing_ms = :failing_ms, given_up_ms = :given_up_ms
    WHERE task = {_TASK} AND config_id = :config_id AND config = :config AND cursor <= :cursor"""
REVIVE: Final = """UPDATE push_configs SET attempts = 0, next_ms = 0, said = '', failing_ms = 0, given_up_ms = 0
    WHERE task = (SELECT id FROM tasks WHERE task_id = :task_id) AND config_id = :config_id AND config = :config
    AND given_up_ms > 0 RETURNING config_id"""

EVERY_CONFIG: Final = """SELECT task_id, config_id, config, version, extra FROM push_configs JOIN tasks ON id = task
    WHERE (task_id, config_id) > (:task_id, :after) ORDER BY task_id, config_id LIMIT :limit"""
SWAP_CONFIG: Final = """UPDATE push_configs SET config = :anew
    WHERE task = (SELECT id FROM tasks WHERE task_id = :task_id) AND config_id = :config_id AND config = :config
    AND (holder = '' OR next_ms <= :now_ms) RETURNING config_id"""


def backlog(given_up: bool) -> str:
    """Configs that are behind, or only those that were given up."""
    which = "given_up_ms > 0" if given_up else "cursor < due"
    return f"""SELECT {_DELIVERY}, next_ms, given_up_ms, said FROM push_configs JOIN tasks ON id = task
        WHERE {which} AND (task_id, config_id) > (:task_id, :config_id) ORDER BY task_id, config_id LIMIT :limit"""


def delivery_of(row: Sequence[Any]) -> Delivery:
    """The Delivery that a row of `DUE` or `backlog` begins with."""
    return Delivery(Scope(*row[:3]), PushConfig(*row[3:8]), *row[8:13])


def backlog_of(row: Sequence[Any]) -> Backlog:
    """A row of `backlog`."""
    return Backlog(delivery_of(row), *row[13:])


# -- for operators
COUNTS: Final = """SELECT (SELECT count(*) FROM push_configs WHERE cursor < due AND given_up_ms = 0),
    (SELECT count(*) FROM push_configs WHERE given_up_ms > 0), (SELECT count(*) FROM tasks WHERE holder <> ''),
    (SELECT count(*) FROM tasks WHERE holder <> '' AND lease_until_ms <= :now_ms)"""


# -- retention
def kept(retention: Retention) -> dict[str, int]:
    """Values of the statements on what retention no longer keeps."""
    return {
        "now_ms": retention.now_ms,
        "ended_ms": retention.now_ms - retention.terminal_ms,
        "stuck_ms": retention.now_ms - retention.stuck_ms,
        "count": retention.count,
        "limit": retention.batch,
    }


_VICTIM: Final = "SELECT id, sequence, token FROM tasks WHERE"
AGED: Final = f"{_VICTIM} {_ENDED} AND status_ms < :ended_ms ORDER BY status_ms LIMIT :limit"
STUCK: Final = f"""{_VICTIM} NOT {_ENDED} AND status_ms < :stuck_ms AND (holder = '' OR lease_until_ms <= :now_ms)
    ORDER BY status_ms LIMIT :limit"""
CROWDED: Final = f"""SELECT agent, tenant, owner, count(*) - :count FROM tasks WHERE {_ENDED}
    GROUP BY agent, tenant, owner HAVING count(*) > :count"""
OLDEST: Final = f"{_VICTIM} {MINE} AND {_ENDED} ORDER BY status_ms, task_id LIMIT :limit"
# Guarded: a task that was taken up again since it was chosen stays.
DROP_TASK: Final = """DELETE FROM tasks WHERE id = :task AND sequence = :sequence AND token = :token
    RETURNING task_id"""
DROP_SENT: Final = "DELETE FROM dedupe WHERE task_id = :task_id AND task_id <> ''"
_EXCHANGES: Final = "messages JOIN contexts ON contexts.id = context"
WEIGHTS: Final = f"""SELECT agent, tenant, owner, CAST(sum(size) AS BIGINT) FROM {_EXCHANGES}
    GROUP BY agent, tenant, owner"""
SAID_FIRST: Final = f"SELECT messages.id, size FROM {_EXCHANGES} WHERE {MINE} ORDER BY messages.id LIMIT :limit"
# SQLite finds the length of a value in the head of its row, and what lies behind it by reading it all.
SAID_FIRST_OF_ALL: Final = "SELECT id, length(message) FROM messages ORDER BY id LIMIT :limit"
DROP_MESSAGE: Final = "DELETE FROM messages WHERE id = :message"
DROP_EXPIRED: Final = (
    """DELETE FROM dedupe WHERE (agent, tenant, owner, message_id) IN (SELECT agent, tenant, owner, message_id
    FROM dedupe WHERE expires_ms <= :now_ms LIMIT :limit)""",
    "DELETE FROM messages WHERE id IN (SELECT id FROM messages WHERE at_ms < :ended_ms LIMIT :limit)",
    "DELETE FROM contexts WHERE id IN (SELECT id FROM contexts WHERE used_ms < :ended_ms LIMIT :limit)",
    "DELETE FROM posts WHERE id IN (SELECT id FROM posts WHERE at_ms < :now_ms LIMIT :limit)",
)


async def shed(retention: Retention, read: Read, drop: Drop) -> None:
    """Delete messages of direct exchanges that are too many, the oldest first. read: the rows of a statement; drop:
    deletes by `DROP_MESSAGE`."""
    most, total = retention.reply_bytes, 0
    excess: list[tuple[str, dict[str, Any], int]] = []
    for *scope, size in await read(WEIGHTS, {}):
        excess.append((SAID_FIRST, values_of(Scope(*scope)), size - most))
        total += min(size, most)
    excess.append((SAID_FIRST_OF_ALL, {}, total - retention.reply_bytes_all))
    for statement, values, over in excess:
        while over > 0 and (found := await read(statement, values | {"limit": retention.batch})):
            gone: list[dict[str, Any]] = []
            for number, size in found:
                if over > 0:
                    gone.append({"message": number})
                    over -= size
            await drop(gone)
