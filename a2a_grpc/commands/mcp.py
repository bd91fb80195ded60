"""`a2a-grpc mcp`: agents as tools of a coding assistant, or any other host of the Model Context Protocol.

Laws: standard output belongs to the protocol; what is to be said goes to stderr. Only mcp.py needs the `mcp` package.
"""

import argparse
import asyncio
import sys
from collections.abc import Sequence

from a2a_grpc.commands.reaching import interface_flags, settings
from a2a_grpc.commands.words import Parser, UsageError, url_word
from a2a_grpc.config import OptionError
from a2a_grpc.errors import A2AError
from a2a_grpc.opening import part


def parser() -> argparse.ArgumentParser:
    """What follows `a2a-grpc mcp`."""
    made = Parser(
        prog="a2a-grpc mcp",
        description="Offers agents as MCP tools on standard input and output: one for each skill.",
    )
    add = made.add_argument
    add("urls", nargs="+", type=url_word, metavar="URL", help="base URL, card URL, or grpc://host:port")
    add("--ask", action="store_true", help="one tool for each agent in place of one for each skill")
    interface_flags(made)
    return made


def run(words: Sequence[str]) -> int:
    """Serve until the host leaves; code 1 if an agent cannot be reached."""
    arguments = parser().parse_args(words)
    try:
        asyncio.run(part("mcp", "mcp").serve_stdio(arguments.urls, ask=arguments.ask, **settings(arguments)))
    except OptionError as fault:
        raise UsageError(str(fault)) from None
    except (A2AError, TimeoutError) as fault:
        told = f"{fault.reason}: {fault.message}" if isinstance(fault, A2AError) else "an agent did not answer in time"
        print(told, file=sys.stderr)
        return 1
    return 0
