"""What only PostgreSQL is given: its types, its parameters, its locks, and statements on many rows at once.

Laws: as in schema.py, whose tables and statements these are. Statements that lock several rows do so in one order.
"""

import re
from collections.abc import Mapping, Sequence, Set
from functools import cache
from typing import Final

from a2a_grpc.tasks.schema import ADD_DEDUPE, DUE, FILL_TALLIES, MINE, TASK_NUMBER, page, total

_TYPES: Final = (
    (" id INTEGER PRIMARY KEY", " id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY"),
    ("INTEGER", "BIGINT"),
    ("BLOB", "BYTEA"),
    ("TEXT", 'TEXT COLLATE "C"'),  # the order of code points, whatever the database sorts by
    (" WITHOUT ROWID", ""),
)
_PARAMETER: Final = re.compile(r"(?<!:):([a-z_]+)")


def for_postgres(definition: str) -> str:
    """A statement of `MIGRATIONS` or `VERSION_TABLE` in PostgreSQL's types."""
    for ours, theirs in _TYPES:
        definition = definition.replace(ours, theirs)
    return definition


@cache
def numbered(statement: str) -> tuple[str, tuple[str, ...]]:
    """A statement with numbered parameters, and their names in that order."""
    names = tuple(dict.fromkeys(_PARAMETER.findall(statement)))
    return _PARAMETER.sub(lambda found: f"${names.index(found[1]) + 1}", statement), names


VERSION_FOUND: Final = "SELECT to_regclass('schema') IS NOT NULL"
# Locks of this schema alone: 1 for migrations, 2 for retention.
MIGRATE_ALONE: Final = "SELECT pg_advisory_xact_lock(1, hashtext(current_schema()))"
TRIM_ALONE: Final = "SELECT pg_try_advisory_xact_lock(2, hashtext(current_schema()))"
TRIM_TURN: Final = """INSERT INTO marks (slot, mark) VALUES ('trim', :mark)
    ON CONFLICT (slot) DO UPDATE SET mark = excluded.mark, at = excluded.at
    WHERE marks.mark = excluded.mark OR marks.at < now() - :turn_ms * INTERVAL '1 millisecond' RETURNING slot"""
TASK_LOCKED: Final = f"{TASK_NUMBER} FOR UPDATE"
CLOCK: Final = "SELECT CAST(1000 * extract(epoch FROM clock_timestamp()) AS BIGINT)"
# What became of a transaction is told by a row that it wrote itself. Its number would not tell: a server that crashed
# gives the numbers of transactions that it has lost to others. Who asks settles it: a transaction that was not
# committed then never will be, though its end may still be on its way to the server.
OUTCOME: Final = """INSERT INTO marks (slot, mark) VALUES (:slot, -CAST(:mark AS BIGINT))
    ON CONFLICT (slot) DO UPDATE SET at = excluded.at,
        mark = CASE marks.mark WHEN -excluded.mark THEN marks.mark ELSE excluded.mark END RETURNING mark"""
DROP_MARKS: Final = "DELETE FROM marks WHERE at < now() - INTERVAL '1 day'"

CHANNEL: Final = "SELECT 'a2a_' || left(md5(current_schema()), 16)"
NOTIFY: Final = "SELECT pg_notify(:channel, :message)"

# Tallies are kept in two tables: changes are only ever added, so that no two transactions wait for each other, and are
# summed up now and then.
_CHANGE: Final = "INSERT INTO tally_changes VALUES ({0}.agent, {0}.tenant, {0}.owner, {0}.state, {1})"
ALSO: Final[Mapping[int, Sequence[str]]] = {
    6: (
        "LOCK TABLE tasks IN SHARE ROW EXCLUSIVE MODE",
        FILL_TALLIES,
        "CREATE TABLE tally_changes (LIKE tallies)",
        "CREATE INDEX tally_changes_of_scope ON tally_changes (agent, tenant, owner, state)",
        f"""CREATE FUNCTION a2a_tally() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            IF TG_OP <> 'INSERT' THEN {_CHANGE.format("OLD", -1)}; END IF;
            IF TG_OP <> 'DELETE' THEN {_CHANGE.format("NEW", 1)}; END IF;
            RETURN NULL; END $$""",
        "CREATE TRIGGER tally AFTER INSERT OR DELETE ON tasks FOR EACH ROW EXECUTE FUNCTION a2a_tally()",
        """CREATE TRIGGER tally_moved AFTER UPDATE OF state ON tasks FOR EACH ROW
            WHEN (OLD.state <> NEW.state) EXECUTE FUNCTION a2a_tally()""",
    )
}
"""What only PostgreSQL is given, by the number of the schema that it belongs to."""
SUM_TALLIES: Final = """WITH gone AS (DELETE FROM tally_changes RETURNING *)
    INSERT INTO tallies (agent, tenant, owner, state, tasks)
    SELECT agent, tenant, owner, state, sum(tasks) FROM gone GROUP BY agent, tenant, owner, state
    HAVING sum(tasks) <> 0 ORDER BY agent, tenant, owner, state
    ON CONFLICT (agent, tenant, owner, state) DO UPDATE SET tasks = tallies.tasks + excluded.tasks"""
DROP_TALLIES: Final = "DELETE FROM tallies WHERE tasks = 0"
_TALLIES: Final = "(SELECT * FROM tallies UNION ALL SELECT * FROM tally_changes) AS tallies"

# In order of task ids, as every statement that locks several tasks, so that no two wait for each other.
GUARDS: Final = """SELECT id, agent, tenant, owner, task_id, context_id, sequence, holder, token, lease_until_ms
    FROM tasks WHERE task_id = ANY (:task_ids) ORDER BY task_id FOR UPDATE"""
ADD_EVENT: Final = "INSERT INTO events (task, sequence, payload) VALUES (:task, :sequence, :payload)"
CLAIM_DEDUPE: Final = f"""{ADD_DEDUPE} WHERE dedupe.expires_ms <= :now_ms OR dedupe.reply = :claim
    RETURNING agent, tenant, owner, message_id"""
DROP_DEDUPE: Final = f"DELETE FROM dedupe WHERE {MINE} AND message_id = :message_id"
# Changes that only add events, by the holder of the lease: those that fit, at once; answers their task ids.
APPEND: Final = """WITH change AS (
        SELECT * FROM unnest(CAST(:task_ids AS TEXT[]), CAST(:agents AS TEXT[]), CAST(:tenants AS TEXT[]),
            CAST(:owners AS TEXT[]), CAST(:tokens AS BIGINT[]), CAST(:expected AS BIGINT[]), CAST(:reached AS BIGINT[]),
            CAST(:notify AS BIGINT[])) AS change (task_id, agent, tenant, owner, token, expected, reached, notify)),
    held AS MATERIALIZED (
        SELECT id, task_id, change.reached, change.notify FROM tasks JOIN change USING (task_id, agent, tenant, owner)
        WHERE sequence = expected AND tasks.token = change.token ORDER BY task_id FOR UPDATE OF tasks),
    moved AS (
        UPDATE tasks SET sequence = held.reached FROM held WHERE tasks.id = held.id),
    due AS (
        UPDATE push_configs SET due = held.notify FROM held WHERE task = held.id AND due < held.notify),
    added AS (
        INSERT INTO events (task, sequence, payload) SELECT held.id, event.sequence, event.payload
        FROM held JOIN unnest(CAST(:of_tasks AS TEXT[]), CAST(:sequences AS BIGINT[]), CAST(:payloads AS BYTEA[]))
            AS event (task_id, sequence, payload) USING (task_id))
    SELECT task_id FROM held"""
# The logs of several tasks, each in order, behind the number that it was asked by.
EVENTS_OF_MANY: Final = """SELECT asked.number, event.sequence, event.payload
    FROM unnest(CAST(:task_ids AS TEXT[]), CAST(:agents AS TEXT[]), CAST(:tenants AS TEXT[]), CAST(:owners AS TEXT[]),
        CAST(:after AS BIGINT[]), CAST(:limits AS BIGINT[]))
        WITH ORDINALITY AS asked (task_id, agent, tenant, owner, after, most, number)
    JOIN tasks USING (task_id, agent, tenant, owner)
    CROSS JOIN LATERAL (SELECT sequence, payload FROM events WHERE task = tasks.id AND sequence > asked.after
        ORDER BY sequence LIMIT asked.most) AS event
    ORDER BY asked.number, event.sequence"""
PLACES: Final = "SELECT task_id, agent, tenant, owner, sequence FROM tasks WHERE task_id = ANY (:task_ids)"
_RENEW: Final = """WITH held AS MATERIALIZED (
        SELECT id FROM tasks JOIN unnest(CAST(:task_ids AS TEXT[]), CAST(:tokens AS BIGINT[]))
            AS mine (task_id, token) USING (task_id, token)
        WHERE holder = :holder ORDER BY task_id FOR NO KEY UPDATE OF tasks{unless})
    UPDATE tasks SET lease_until_ms = :until_ms FROM held WHERE tasks.id = held.id RETURNING task_id"""
RENEW_ALL: Final = _RENEW.format(unless="")
RENEW_FREE: Final = _RENEW.format(unless=" SKIP LOCKED")
PATIENCE: Final = "SELECT set_config('lock_timeout', :patience, TRUE)"
DUE_TO_NOBODY: Final = f"{DUE} FOR UPDATE OF push_configs SKIP LOCKED"


def commit(slot: str, mark: int) -> str:
    """End a transaction and leave word of it; one round trip. Fails, by a division by zero, after somebody has asked
    for its outcome. slot: letters and digits."""
    return f"""INSERT INTO marks (slot, mark) VALUES ('{slot}', {mark})
        ON CONFLICT (slot) DO UPDATE SET mark = excluded.mark / CAST(marks.mark <> -excluded.mark AS INTEGER),
        at = excluded.at; COMMIT"""


def counted(statement: str) -> str:
    """A deleting statement that answers how many rows went."""
    return f"WITH gone AS ({statement} RETURNING 1) SELECT count(*) FROM gone"


def page_and_total(filters: Set[str]) -> str:
    """Rows of `page`, each behind the number of `total`, of one moment; one row of nothing for an empty page."""
    return f"""WITH page AS ({page(filters)}) SELECT ({total(filters, _TALLIES)}), page.*
        FROM (SELECT 1) AS once LEFT JOIN page ON TRUE ORDER BY status_ms DESC, task_id DESC"""
