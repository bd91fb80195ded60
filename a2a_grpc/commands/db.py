"""`a2a-grpc db`: the tables of a store, brought up to date or looked at.

Laws: words only; which schema a store has and needs is known below.
"""

import argparse
import asyncio
from collections.abc import Sequence

from a2a_grpc import config
from a2a_grpc.commands.words import Parser, UsageError, add_store
from a2a_grpc.opening import schema_of
from a2a_grpc.tasks.store import StoreError


def parser() -> argparse.ArgumentParser:
    """What follows `a2a-grpc db`."""
    made = Parser(prog="a2a-grpc db", description="Looks after the tables of a store.")
    made.add_argument("action", choices=("upgrade", "check"), help="bring the tables up to date, or only look")
    add_store(made)
    return made


def run(words: Sequence[str]) -> int:
    """Code 0 when the schema is (now) the one of this release, 1 when it is not."""
    arguments = parser().parse_args(words)
    try:
        options = config.read(arguments.config, store=arguments.store)
        found, newest = asyncio.run(schema_of(options, upgrade=arguments.action == "upgrade"))
    except (OSError, config.OptionError, StoreError) as fault:
        raise UsageError(str(fault)) from None
    advice = "up to date" if found == newest else "run a2a-grpc db upgrade" if found < newest else "use a newer release"
    print(f"schema {found}, this release needs {newest}: {advice}")
    return int(found != newest)
