"""`a2a-grpc top`: a running server as operators see it, live in the terminal.

Laws: reads the admin view of servers and draws it anew; what there is to see is said there. Nothing is changed. What
cannot be seen is told where it would be, and looked for again.
"""

import argparse
import asyncio
import shutil
import sys
import time
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import aiohttp

from a2a_grpc.admin_views import VIEWS
from a2a_grpc.commands.words import Parser, UsageError, seconds_word
from a2a_grpc.errors import A2AError
from a2a_grpc.protojson import loads

CLEAR: Final = "\x1b[H\x1b[2J"
PATIENCE: Final = 10.0
"""Seconds that one look may take."""

LONGEST: Final = 86_400.0
"""Most seconds between two looks."""

TURN_COLUMNS: Final = ("taskId", "agent", "state", "owner", "seconds", "events", "waiting", "attempt")
HOOK_COLUMNS: Final = ("taskId", "host", "state", "attempts", "sent", "reached", "said")

Views = Mapping[str, Any]
"""What there is to see of a server, by name; a view that cannot be shown is an object with its `error`."""


def parser() -> argparse.ArgumentParser:
    """What follows `a2a-grpc top`."""
    made = Parser("a2a-grpc top", description="Shows what goes on in servers, by their admin view.")
    made.add_argument("address", nargs="+", metavar="ADDRESS", help="host:port or unix:PATH, as in the option admin")
    every = "time between looks (default: 2)"
    made.add_argument("--every", type=seconds_word, default=2.0, metavar="SECONDS", help=every)
    made.add_argument("--once", action="store_true", help="look once and end")
    return made


def run(words: Sequence[str]) -> int:
    """Draw until interrupted. Raises UsageError when nothing is seen at the first look, or not all of it at the only
    one; what is lost later may come back."""
    arguments = parser().parse_args(words)
    begun = False
    while True:
        seen = asyncio.run(_looks(arguments.address))
        lost = [found for found in seen.values() if isinstance(found, str)]
        if len(lost) == len(seen) and not begun:
            raise UsageError(lost[0])
        size = shutil.get_terminal_size()
        room = max((size.lines - len(seen)) // len(seen), 1)  # an empty line behind each
        text = "\n\n".join(drawn(address, found, size.columns, room) for address, found in seen.items())
        if arguments.once:
            print(text)
            if lost:
                raise UsageError(lost[0])
            return 0
        sys.stdout.write(CLEAR + text + "\n")
        sys.stdout.flush()
        begun = True
        time.sleep(min(max(arguments.every, 0.1), LONGEST))


async def _looks(addresses: Sequence[str]) -> dict[str, Views | str]:
    """What is seen at each address; as text, why nothing is."""
    return dict(zip(addresses, await asyncio.gather(*map(_look, addresses)), strict=True))


async def _look(address: str) -> Views | str:
    path = address.removeprefix("unix:")
    connector = aiohttp.UnixConnector(path) if path != address else aiohttp.TCPConnector()
    url = "http://localhost/" if path != address else f"http://{address.removeprefix('http://').rstrip('/')}/"
    try:
        limit = aiohttp.ClientTimeout(PATIENCE)
        async with aiohttp.ClientSession(connector=connector, timeout=limit) as session, session.get(url) as reply:
            status, body = reply.status, await reply.read()
    except (aiohttp.ClientError, asyncio.TimeoutError, OSError, ValueError) as fault:
        return f"nothing can be seen at {address}: {fault or type(fault).__name__}"
    if status != 200:
        return f"{address} is no admin view: status {status}"
    try:
        found: Any = loads(body)
    except A2AError:
        found = None
    return found if isinstance(found, dict) and found.keys() >= VIEWS.keys() else f"{address} is no admin view"


def _limits(limits: Views) -> str:
    return "  ".join(f"{name} {row['used']}/{row['limit']}" for name, row in limits.items())


def _leases(leases: Views) -> str:
    taken = ", ".join(f"{number} {what}" for what, number in leases["taken_over"].items() if number) or "none"
    where = f"{leases['here']} here, {leases['everywhere']} in the store, {leases['expired']} expired"
    return f"{where}; taken over: {taken}"


def _streams(streams: Views) -> str:
    stalled = sum(row["waiting_seconds"] > 1 for row in streams["streams"])
    opened = f"{streams['open']} open, {streams['dropped']} dropped, {streams['refused']} refused"
    return f"{opened}; {stalled} do not read"


def _webhooks(outbox: Views, dead: Sequence[Any]) -> str:
    return f"{outbox['behind']} behind, {outbox['sending']} being served, {len(dead)} given up"


LINES: Final[Mapping[str, tuple[tuple[str, ...], Callable[..., str]]]] = {
    "leases": (("leases",), _leases),
    "streams": (("streams",), _streams),
    "webhooks": (("outbox", "dead-letters"), _webhooks),
}
"""The lines above the tables: what each begins with, the views that it is made from, and how."""


def _error(view: Any) -> str:
    return str(view["error"]) if isinstance(view, dict) and "error" in view else ""


def _made(seen: Views, names: Sequence[str], write: Callable[..., str]) -> str:
    views = [seen[name] for name in names]
    return next(filter(None, map(_error, views)), "") or write(*views)


def drawn(address: str, seen: Views | str, columns: int, lines: int) -> str:
    """A server's views as text that fits a terminal, or a part of one; seen: as text, why there are none."""
    if isinstance(seen, str):
        return _cut(seen if address in seen else f"{address}  {seen}", columns)
    head = [f"{address}  {_made(seen, ('limits',), _limits)}"]
    head += [f"{label:8} {_made(seen, names, write)}" for label, (names, write) in LINES.items()]
    head += [f"turns    {_error(seen['turns'])}"] * bool(_error(seen["turns"]))
    turns = [] if _error(seen["turns"]) else sorted(seen["turns"], key=lambda turn: -turn["seconds"])
    hooks = [] if _error(seen["outbox"]) else [*seen["outbox"]["webhooks"]]
    hooks += [] if _error(seen["dead-letters"]) else seen["dead-letters"]
    room = max(lines - len(head) - 1 - 3 * (bool(turns) + bool(hooks)), 1)  # a title, names, and how many more
    below = min(len(hooks), max(room // 3, room - len(turns)))
    rows = [*_table("TURNS", turns, TURN_COLUMNS, room - below)]
    rows += _table("WEBHOOKS BEHIND", hooks, HOOK_COLUMNS, below)
    return "\n".join(_cut(line, columns) for line in [*head, "", *rows][:lines])


def _table(title: str, rows: Sequence[Mapping[str, Any]], columns: Sequence[str], room: int) -> list[str]:
    if not rows:
        return []
    cells = [[_cell(row[name]) for name in columns] for row in rows[:room]]
    widths = [max(map(len, (name, *(row[place] for row in cells)))) for place, name in enumerate(columns)]
    shown = [[name.upper() for name in columns], *cells]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in shown]
    more = [f"... {len(rows) - room} more"] if len(rows) > room else []
    return [f"{title} ({len(rows)})", *lines, *more]


def _cell(value: Any) -> str:
    text = f"{value:.1f}" if isinstance(value, float) else str(value)
    return text.replace("\n", " ") if text.isprintable() else ascii(text)


def _cut(line: str, columns: int) -> str:
    """As much of a line as there is room for; some letters take two places, some none."""
    width = 0
    for place, letter in enumerate(line):
        width += 0 if unicodedata.combining(letter) else 1 + (unicodedata.east_asian_width(letter) in "WF")
        if width > columns:
            return line[:place]
    return line
