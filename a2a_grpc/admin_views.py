"""What operators see of a running server: views as JSON, and measures that are read when somebody looks.

Laws: a view or a measure is one row of its table. Everything is read from public parts of a server; nothing is changed,
and no credential and nothing that was said is shown.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import datetime, timezone
from typing import Any, Final, NamedTuple

from a2a_grpc.content import opened
from a2a_grpc.push import host_of
from a2a_grpc.push_secrets import Seal, Sealed
from a2a_grpc.tasks.state import state_name
from a2a_grpc.tasks.store import NEVER, Backlog, Counts

SHOWN: Final = 1000
"""Most entries of one view."""

Server = Any
"""A Server, which is made of this module."""


async def _turns(server: Server) -> list[dict[str, Any]]:
    now, shown = server.store.now_ms(), server.telemetry.shown
    return [
        {
            "taskId": turn.task_id,
            "contextId": turn.context_id,
            "agent": turn.agent.name,
            "tenant": turn.scope.tenant,
            "owner": shown(turn.scope.owner),
            "attempt": turn.attempt,
            "state": state_name(turn.fold.state).removeprefix("TASK_STATE_"),
            "seconds": max(now - turn.began_ms, 0) / 1000,
            "events": turn.durable,
            "waiting": turn.sequence - turn.durable,
            "canceling": turn.cancel_request is not None,
        }
        for turn in list(server.engine.turns)[:SHOWN]
    ]


async def _leases(server: Server) -> dict[str, Any]:
    counts = await server.store.counts(server.store.now_ms())
    return {
        "holder": server.engine.holder,
        "seconds": server.options.lease,
        "here": sum(turn.token > 0 for turn in server.engine.turns),
        "everywhere": counts.leases,
        "expired": counts.expired,
        "taken_over": server.engine.upkeep.taken_over,
    }


async def _streams(server: Server) -> dict[str, Any]:
    waiting = server.streams.waiting()
    shown = [{"path": label, "waiting_seconds": round(seconds, 3)} for label, seconds in waiting[:SHOWN]]
    streams = server.streams
    return {"open": len(waiting), "dropped": streams.dropped, "refused": streams.refused, "streams": shown}


def webhook(found: Backlog, seal: Seal, now_ms: int) -> dict[str, Any]:
    """A webhook that is behind; of its address only the host, None where the key of the secrets is not here."""
    (agent, tenant, owner), kept, cursor, due, attempts, _, failing_ms = found.delivery
    try:
        host = host_of(opened(kept, seal).url)
    except Sealed:
        host = None
    waits = now_ms < found.next_ms
    return {
        "taskId": kept.task_id,
        "configId": kept.config_id,
        "agent": agent,
        "tenant": tenant,
        "owner": owner,
        "host": host,
        "version": kept.version,
        "state": "given up" if found.given_up_ms else "waiting" if waits else "due",
        "sent": cursor,
        "reached": due,
        "attempts": attempts,
        "said": found.said,
        "failing": _time(failing_ms) if failing_ms else None,
        "next": _time(found.next_ms) if waits and found.next_ms < NEVER else None,
        "givenUp": _time(found.given_up_ms) if found.given_up_ms else None,
    }


def _time(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


async def _webhooks(server: Server, given_up: bool) -> list[dict[str, Any]]:
    rows, now = await server.store.backlog(("", ""), SHOWN, given_up), server.store.now_ms()
    lines = [webhook(row, server.engine.push.seal, now) for row in rows if given_up or not row.given_up_ms]
    return [line | {"owner": server.telemetry.shown(line["owner"])} for line in lines]


async def _outbox(server: Server) -> dict[str, Any]:
    counts = await server.store.counts(server.store.now_ms())
    webhooks = await _webhooks(server, False)
    push = server.engine.push
    resting = [{"host": host, "seconds": round(seconds, 3)} for host, seconds in push.hosts.resting().items()]
    return {"behind": counts.behind, "sending": push.sending, "resting": resting[:SHOWN], "webhooks": webhooks}


async def _dead_letters(server: Server) -> list[dict[str, Any]]:
    return await _webhooks(server, True)


async def _limits(server: Server) -> dict[str, Any]:
    return {name: {"used": used(server), "limit": getattr(server.options, name)} for name, used in LIMITS.items()}


LIMITS: Final[Mapping[str, Callable[[Server], int]]] = {
    "max_turns": lambda server: server.engine.running + server.engine.strays,
    "max_streams": lambda server: len(server.streams),
    "push_concurrency": lambda server: server.engine.push.sending,
}
"""Options that are limits of the whole server, and how much of each is used."""

VIEWS: Final[Mapping[str, Callable[[Server], Awaitable[Any]]]] = {
    "turns": _turns,
    "leases": _leases,
    "streams": _streams,
    "outbox": _outbox,
    "dead-letters": _dead_letters,
    "limits": _limits,
}
"""Everything that there is to see, by the path where it is."""

Found = Iterable[tuple[float, Mapping[str, str]]]


class Measure(NamedTuple):
    """A measure that is read when somebody looks. unit: of what it counts; read: its values by label, from a server and
    what its store counted last; grows: it only ever becomes more; labels: of the values."""

    name: str
    unit: str
    meaning: str
    read: Callable[[Server, Counts], Found]
    grows: bool = False
    labels: tuple[str, ...] = ()


def _limit_values(server: Server, _: Counts) -> Found:
    return [(getattr(server.options, name), {"a2a.limit": name}) for name in LIMITS]


def _waiting(server: Server, _: Counts) -> Found:
    return [(sum(turn.sequence - turn.durable for turn in list(server.engine.turns)), {})]


def _taken_over(server: Server, _: Counts) -> Found:
    return [(number, {"a2a.result": what}) for what, number in server.engine.upkeep.taken_over.items()]


MEASURES: Final = (
    Measure("a2a.turns.running", "{turn}", "Turns at work", lambda server, _: [(server.engine.running, {})]),
    Measure(
        "a2a.turns.strays", "{turn}", "Functions that go on after their cancel", lambda s, _: [(s.engine.strays, {})]
    ),
    Measure("a2a.turns.taken_over", "{turn}", "Lost turns that were settled here", _taken_over, True, ("a2a.result",)),
    Measure("a2a.streams.open", "{stream}", "Open streams", lambda server, _: [(len(server.streams), {})]),
    Measure(
        "a2a.streams.dropped",
        "{stream}",
        "Streams cut off because nothing was read",
        lambda server, _: [(server.streams.dropped, {})],
        grows=True,
    ),
    Measure(
        "a2a.streams.refused",
        "{stream}",
        "Streams not opened because the limit was reached",
        lambda server, _: [(server.streams.refused, {})],
        grows=True,
    ),
    Measure(
        "a2a.readers", "{reader}", "Readers of tasks, streams among them", lambda s, _: [(s.engine.feeds.readers, {})]
    ),
    Measure("a2a.store.waiting", "{event}", "Events of turns that are not stored yet", _waiting),
    Measure("a2a.leases.held", "{lease}", "Tasks in a turn, in the whole store", lambda _, c: [(c.leases, {})]),
    Measure("a2a.leases.expired", "{lease}", "Tasks whose turn was lost", lambda _, counts: [(counts.expired, {})]),
    Measure("a2a.push.behind", "{webhook}", "Webhooks with events to come", lambda _, counts: [(counts.behind, {})]),
    Measure("a2a.push.given_up", "{webhook}", "Webhooks that were given up", lambda _, counts: [(counts.given_up, {})]),
    Measure(
        "a2a.push.sending",
        "{webhook}",
        "Webhooks served just now",
        lambda server, _: [(server.engine.push.sending, {})],
    ),
    Measure("a2a.limit", "{item}", "Limits of this server", _limit_values, labels=("a2a.limit",)),
)
"""What is measured by looking; what happens is measured where it happens, see telemetry.KINDS and COUNTERS."""
