"""The command line `a2a-grpc`: which commands there are, and how each ends.

Laws: a table of commands, each a module below commands/ that is loaded when it is asked for. A user's mistake ends with
one line on stderr and code 2, an A2A error with its reason and code 1; neither shows a traceback. Documents go to
stdout, one JSON line each, everything else to stderr.
"""

import argparse
import errno
import importlib
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from importlib import metadata
from typing import Final

# Read by grpc once, when it is imported: its own lines about a taken port would stand before ours.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")

from a2a_grpc.commands.words import Parser, UsageError

COMMANDS: Final[Mapping[str, str]] = {
    "serve": "serve an agent on every wire",
    "gateway": "serve an agent that runs elsewhere on every wire",
    "call": "call an agent and print its answers",
    "chat": "talk with an agent",
    "mcp": "offer agents as tools of an MCP host",
    "card": "sign or verify a card",
    "doctor": "say what is wrong with an agent",
    "completion": "print what completes these words in a shell",
    "top": "show what goes on in running servers",
    "db": "check or upgrade the tables of a store",
    "push": "list webhooks that are behind, replay those that were given up",
}
"""What there is to do; each is a module below commands/ with `parser()` and `run(words)`, which gives the exit code."""


UNWRITTEN: Final = frozenset({errno.EPIPE, errno.ENOSPC, errno.EDQUOT})
"""Faults of who takes our lines, which are no faults of ours."""


def _version() -> str:
    try:
        return metadata.version("a2a-grpc")
    except metadata.PackageNotFoundError:
        return "(not installed)"


def main(words: Sequence[str] | None = None) -> int:
    """Run one command; words: the arguments, default those of the process. The result is the exit code."""
    parser = Parser(
        prog="a2a-grpc",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="commands:\n" + "\n".join(f"  {name:11}{meaning}" for name, meaning in COMMANDS.items()),
    )
    parser.add_argument("--version", action="version", version=f"a2a-grpc {_version()}")
    parser.add_argument("command", choices=COMMANDS, metavar="COMMAND")
    parser.add_argument("rest", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115 - it was closed by who started us
    try:
        given = sys.argv[1:] if words is None else words
        if not given:
            parser.print_help(sys.stderr)
            return 2
        arguments = parser.parse_args(given)
        command = importlib.import_module(f"a2a_grpc.commands.{arguments.command}")
        code = int(command.run(arguments.rest))
        sys.stdout.flush()
        return code
    except OSError as fault:
        if fault.errno not in UNWRITTEN:
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # else it is tried once more at the end
        if isinstance(fault, BrokenPipeError):  # whoever reads our lines has seen enough
            return 0
        print(f"a2a-grpc: cannot write: {fault.strerror}", file=sys.stderr)
        return 1
    except UsageError as fault:
        print(f"a2a-grpc: {fault}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
