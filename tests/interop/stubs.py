"""The programs on stubs that the stock tools of other languages make from the protos here: a client and an agent each.

Laws: a table and its look-up; what the programs do is said in their own folders.
"""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from tests.interop.conftest import made

Command = tuple[str | Path, ...]


class Programs(NamedTuple):
    """How the client and the agent of a language are run, by the folder that they were built in."""

    client: Callable[[Path], Command]
    agent: Callable[[Path], Command]


def _java(name: str) -> Callable[[Path], Command]:
    # A short life is over before the better compiler has paid for itself.
    return lambda folder: ("java", "-XX:TieredStopAtLevel=1", "-cp", f"{folder / 'classes'}:{folder / 'jars'}/*", name)


LANGUAGES = {
    "TS": Programs(lambda folder: ("node", folder / "client.js"), lambda folder: ("node", folder / "server.js")),
    "GO": Programs(lambda folder: (folder / "bin" / "client",), lambda folder: (folder / "bin" / "agent",)),
    "JAVA": Programs(_java("Main"), _java("Agent")),
}


def client(language: str) -> Command:
    """The client of a language; its argument is an address."""
    return LANGUAGES[language].client(made(f"A2A_{language}_FOLDER"))


def agent(language: str) -> Command:
    """The agent of a language, which prints its address."""
    return LANGUAGES[language].agent(made(f"A2A_{language}_FOLDER"))
