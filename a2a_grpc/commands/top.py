"""`a2a-grpc top`: a running server as operators see it, live in the terminal.

Laws: reads the admin view of servers and draws it anew; what there is to see is said there. Nothing is changed.
"""

import argparse
import asyncio
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

import aiohttp

from a2a_grpc.commands.words import Parser, UsageError
from a2a_grpc.protojson import loads

CLEAR: Final = "\x1b[H\x1b[2J"
PATIENCE: Final = 10.0
"""Seconds that one look may take."""

TURN_COLUMNS: Final = ("taskId", "agent", "state", "owner", "seconds", "events", "waiting", "attempt")
HOOK_COLUMNS: Final = ("taskId", "host", "state", "attempts", "sent", "reached", "said")


def parser() -> argparse.ArgumentParser:
    """What follows `a2a-grpc top`."""
    made = Parser("a2a-grpc top", description="Shows what goes on in servers, by their admin view.")
    made.add_argument("address", nargs="+", metavar="ADDRESS", help="host:port or unix:PATH, as in the option admin")
    made.add_argument("--every", type=float, default=2.0, metavar="SECONDS", help="time between looks (default: 2)")
    made.add_argument("--once", action="store_true", help="look once and end")
    return made


def run(words: Sequence[str]) -> int:
    """Draw until interrupted."""
    arguments = parser().parse_args(words)
    while True:
        seen = {address: asyncio.run(_look(address)) for address in arguments.address}
        size = shutil.get_terminal_size()
        text = "\n\n".join(drawn(address, found, size.columns, size.lines) for address, found in seen.items())
        if arguments.once:
            print(text)
            return 0
        sys.stdout.write(CLEAR + text + "\n")
        sys.stdout.flush()
        time.sleep(max(arguments.every, 0.1))


async def _look(address: str) -> Any:
    path = address.removeprefix("unix:")
    connector = aiohttp.UnixConnector(path) if path != address else aiohttp.TCPConnector()
    url = "http://localhost/" if path != address else f"http://{address.removeprefix('http://').rstrip('/')}/"
    try:
        limit = aiohttp.ClientTimeout(PATIENCE)
        async with aiohttp.ClientSession(connector=connector, timeout=limit) as session, session.get(url) as reply:
            if reply.status == 200:
                return loads(await reply.read())
    except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as fault:
        raise UsageError(f"nothing can be seen at {address}: {fault or type(fault).__name__}") from None
    raise UsageError(f"{address} is no admin view: status {reply.status}")


def drawn(address: str, seen: Mapping[str, Any], columns: int, lines: int) -> str:
    """A server's views as text that fits a terminal."""
    leases, streams, outbox, dead = (seen[name] for name in ("leases", "streams", "outbox", "dead-letters"))
    if broken := next((view for view in seen.values() if "error" in view), None):
        return f"{address}  {broken['error']}"
    limits = "  ".join(f"{name} {row['used']}/{row['limit']}" for name, row in seen["limits"].items())
    taken = ", ".join(f"{number} {what}" for what, number in leases["taken_over"].items() if number) or "none"
    head = [
        f"{address}  {limits}",
        f"leases   {leases['here']} here, {leases['everywhere']} in the store, {leases['expired']} expired; "
        f"taken over: {taken}",
        f"streams  {streams['open']} open, {streams['dropped']} dropped, {streams['refused']} refused; "
        f"{sum(row['waiting_seconds'] > 1 for row in streams['streams'])} do not read",
        f"webhooks {outbox['behind']} behind, {outbox['sending']} being served, {len(dead)} given up",
    ]
    turns = sorted(seen["turns"], key=lambda turn: -turn["seconds"])
    room = max(lines - len(head) - 6, 6)
    rows = [*_table("TURNS", turns, TURN_COLUMNS, room * 2 // 3)]
    rows += _table("WEBHOOKS BEHIND", [*outbox["webhooks"], *dead], HOOK_COLUMNS, room // 3)
    return "\n".join(line[:columns] for line in (*head, "", *rows))


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
