"""The tables of a run on stores and replicas as `docs/scaling.md` has them.

Laws: as in page.py. A goal stands beside what it is for; what is reckoned from a table stands in no other place.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from tests.bench.page import Found, table

PAGE: Final = Path(__file__).parents[2] / "docs" / "scaling.md"

RATES: Final[Mapping[str, int]] = {"sqlite": 5_000, "postgresql": 3_000}
"""Events a second of one stream that a store is to take, at the least."""
LAGS: Final = "p50 under 10 ms, p99 under 50 ms"
PAGES: Final = "p99 under 20 ms"

Row = Mapping[str, Any]


def _about(found: Found) -> str:
    about = found["about"]
    libraries = ", ".join(f"{name} {number}" for name, number in about["libraries"].items())
    return (
        f"Taken on {about['date']}, medians of {about['rounds']} rounds of {about['seconds']:g} s: {about['system']},\n"
        f"{about['cores']} cores, Python {about['python']}, {libraries}.\n"
        f"{about['services']}. Load average at the start: {about['load'][0]}.\n"
    )


def _events(found: Found) -> str:
    heads = (">streams", "each writes", "store", ">events/s", ">goal", ">CPU us", ">database CPU us")
    rows = (
        (
            *(row["streams"], _writes(row["each"]), _name(row["store"]), f"{row['per s']:.0f}"),
            *(RATES.get(row["store"], "") if row["streams"] == 1 else "", *_cpu(row)),
        )
        for row in found["events"]
    )
    return table(heads, rows)


def _sends(found: Found) -> str:
    rows = (
        (_name(row["store"]), f"{row['per s']:.0f}", *_cpu(row), f"{row['of memory']:.2f}") for row in found["sends"]
    )
    return table(("SendMessage, 32 at a time", ">calls/s", ">CPU us", ">database CPU us", ">of memory"), rows)


def _weight(found: Found) -> str:
    rows = found["weight"]
    kinds = [name for name in rows[0] if name != "store"]
    heads = ("bytes written for each chunk", *(f">{_lanes(kind)}" for kind in kinds))
    return table(heads, ((_name(row["store"]), *(f"{row[kind]:.0f}" for kind in kinds)) for row in rows))


def _lags(found: Found) -> str:
    rows = found["lags"]
    pairs = zip(_at(rows, "the same replica"), _at(rows, "another replica"), strict=True)
    more = [f"{far['p50'] - near['p50']:.1f} ms more by {far['hints by']}" for near, far in pairs]
    told = ((row["hints by"], row["read at"], *(f"{row[name]:.1f}" for name in ("p50", "p99", "most"))) for row in rows)
    heads = ("hints by", "read at", ">p50 ms", ">p99 ms", ">most ms")
    return f"{table(heads, told)}\nThe goal is {LAGS}. Another replica costs {', '.join(more)} in the median.\n"


def _at(rows: Iterable[Row], place: str) -> list[Row]:
    return [row for row in rows if row["read at"] == place]


def _takeover(found: Found) -> str:
    [row] = found["takeover"]
    return (
        f"A replica that is killed in the middle of a turn with a lease of {row['lease s']:g} s: its task was settled"
        f" by another\nafter {row['median s']:.1f} s in the median and {row['most s']:.1f} s at most.\n"
    )


def _listed(rows: Sequence[Row]) -> str:
    times = [(page, name) for page in ("first", "deep") for name in ("p50", "p99")]
    by_case: dict[str, dict[str, Row]] = {}
    for row in rows:
        by_case.setdefault(row["case"], {})[row["page"]] = row
    return table(
        ("50 a page", ">matching", *(f">{page} {name}" for page, name in times)),
        (
            (case, f"{found['first']['total']:,}", *(_ms(found[page][name]) for page, name in times))
            for case, found in by_case.items()
        ),
    )


def _lists(found: Found) -> str:
    """Of many owners, as the goal speaks of them."""
    rows = [row for row in found["lists"] if row["owners"] > 1]
    return (
        f"{rows[0]['tasks']:,} tasks of {rows[0]['owners']:,} owners, filled in bulk; milliseconds in the service. The"
        f" goal is {PAGES}.\n\n{_listed(rows)}"
    )


def _owner(found: Found) -> str:
    """Of one who has everything."""
    most = max(row["tasks"] for row in found["lists"])
    rows = [row for row in found["lists"] if row["owners"] == 1 and row["tasks"] == most]
    return f"As many as one owner's:\n\n{_listed(rows)}"


def _sizing(found: Found) -> str:
    [stored] = [row for row in found["sends"] if row["store"] == "postgresql"]
    [streamed] = [row for row in found["events"] if row["store"] == "postgresql" and row["streams"] > 1]
    [weight] = [row for row in found["weight"] if row["store"] == "postgresql"]
    each = next(value for name, value in weight.items() if name.endswith(streamed["each"]))
    send, event = stored["CPU us"] / 1000, streamed["CPU us"] / 1000
    send_there, event_there = stored["database CPU us"] / 1000, streamed["database CPU us"] / 1000
    return (
        f"- **Replicas**: cores = SendMessage/s x {send:.2f} ms + events/s x {event:.3f} ms, and what the agents"
        f" themselves need.\n  A core carries some {_round(1000 / event)} events a second, which is"
        f" {_round(1000 / event / 50)} models at 50 tokens a second, each read by\n  one caller.\n"
        f"- **Database**: cores = SendMessage/s x {send_there:.2f} ms + events/s x {event_there:.3f} ms. A core carries"
        f" some {_round(1000 / event_there)}\n  events a second.\n"
        f"- **Log of the database**: {_round(each)} bytes for an event of the size of a token: 10,000 events/s are"
        f" {each / 100:.1f} MB/s,\n  {_round(10_000 * each * 86_400 / 1e9)} GB a day.\n"
    )


def _round(value: float) -> str:
    """Two digits of a number, as more would not be true."""
    digits = max(len(str(int(value))) - 2, 0)
    return f"{round(value / 10**digits) * 10**digits:,}"


def _cpu(row: Row) -> tuple[str, str]:
    return f"{row['CPU us']:.0f}", f"{row['database CPU us']:.0f}" if row["database CPU us"] else ""


def _ms(value: float) -> str:
    return f"{value:.0f}" if value >= 10 else f"{value:.1f}"


def _name(store: str) -> str:
    return {"sqlite": "SQLite", "postgresql": "PostgreSQL"}.get(store, store)


def _writes(text: str) -> str:
    kind, amount = text.split()
    return f"{int(amount):,} chunks{', one by one' if kind == 'paced' else ''}"


def _lanes(kind: str) -> str:
    """The head of a column of what was weighed, which is called `bytes, LANES x TEXT`."""
    lanes, _, text = kind.removeprefix("bytes, ").partition(" x ")
    return f"{lanes} x {_writes(text)}"


PARTS: Final[Mapping[str, Callable[[Found], str]]] = {
    "about": _about,
    "events": _events,
    "weight": _weight,
    "sends": _sends,
    "lags": _lags,
    "takeover": _takeover,
    "lists": _lists,
    "owner": _owner,
    "sizing": _sizing,
}
"""What makes each part of the page."""

NEEDS: Final[Mapping[str, Sequence[str]]] = {
    "about": ("events", "weight", "sends", "lags", "takeover", "lists"),
    "owner": ("lists",),
    "sizing": ("events", "weight", "sends"),
}
"""What must have been measured for a part; default what is called as it is."""
