"""`a2a-grpc doctor`: an agent is looked at from outside, and what is wrong is told in plain words.

Laws: what is looked at is doctor.py's affair; here it is printed. Code 0: nothing hinders calls; 1: something does.
"""

import argparse
import asyncio
from collections.abc import Sequence
from typing import Final

from a2a_grpc import doctor, protojson
from a2a_grpc.commands.reaching import credential_flags, credentials
from a2a_grpc.commands.telling import plain
from a2a_grpc.commands.words import Parser, seconds_word, url_word

MARKS: Final = {doctor.OK: "ok  ", doctor.NOTE: "note", doctor.WARNING: "WARN", doctor.FAULT: "FAIL"}
"""What stands before a finding, by its level."""


def parser() -> argparse.ArgumentParser:
    """What follows `a2a-grpc doctor`."""
    made = Parser(prog="a2a-grpc doctor", description="Looks at an agent's card and calls each interface in it.")
    add = made.add_argument
    add("url", type=url_word, metavar="URL", help="base URL, card URL, or grpc://host:port")
    add("--message", default="", metavar="TEXT", help="send this to each interface, to see whether streams stream")
    add("--json", action="store_true", help="one JSON document a line")
    add("--timeout", type=seconds_word, default=10.0, metavar="SECONDS", help="for each answer; default: 10")
    credential_flags(made)
    return made


async def _looks(arguments: argparse.Namespace) -> int:
    shown = credentials(arguments)
    settings = doctor.Settings(**shown, message=arguments.message, timeout=arguments.timeout)
    place, levels = "", []
    async for finding in doctor.examine(arguments.url, settings):
        levels.append(finding.level)
        if arguments.json:
            print(protojson.dumps(finding._asdict()).decode(), flush=True)
            continue
        if finding.place != place:
            place = finding.place
            print(plain(place))
        print(f"  {MARKS[finding.level]}  {finding.check}: {plain(finding.text)}", flush=True)
    if not arguments.json:
        faults, warnings = levels.count(doctor.FAULT), levels.count(doctor.WARNING)
        print(f"{faults} faults, {warnings} warnings")
    return int(doctor.FAULT in levels)


def run(words: Sequence[str]) -> int:
    """Look once, and print what is found."""
    return asyncio.run(_looks(parser().parse_args(words)))
