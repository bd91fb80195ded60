"""A command on a terminal of its own: keys are pressed, and what it shows is read.

Laws: it knows nothing of the command. The terminal is real (a pseudo-terminal that controls the process), so that keys
such as Ctrl-C are what they are to a person.
"""

import asyncio
import fcntl
import os
import re
import signal
import sys
import termios
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress

from tests.test_cli import ENVIRONMENT, PATIENCE

CTRL_C, CTRL_D = "\x03", "\x04"
COMMAND = sys.executable, "-m", "a2a_grpc"
ERASED = re.compile(r"[^\n]*\r\x1b\[K")
"""What stood in a line and was taken away."""
CODES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")


class Terminal:
    """A terminal and the process on it. seen: everything that came, codes and all."""

    def __init__(self, process: asyncio.subprocess.Process, keys: int) -> None:
        self.process, self.seen = process, ""
        self._keys, self._mark, self._news = keys, 0, asyncio.Event()
        asyncio.get_running_loop().add_reader(keys, self._read)

    def _read(self) -> None:
        try:
            came = os.read(self._keys, 65536)
        except OSError:  # the other end is closed
            came = b""
        if not came:
            self.close()
        self.seen += came.decode()
        self._news.set()

    def close(self) -> None:
        """Read no more."""
        asyncio.get_running_loop().remove_reader(self._keys)

    @property
    def lines(self) -> list[str]:
        """What a person sees in the end."""
        return CODES.sub("", ERASED.sub("", self.seen)).split("\n")

    async def shows(self, words: str) -> None:
        """Wait until something comes, after what was waited for before."""
        async with asyncio.timeout(PATIENCE):
            while (at := self.seen.find(words, self._mark)) < 0:
                self._news.clear()
                await self._news.wait()
        self._mark = at + len(words)

    def press(self, keys: str) -> None:
        """Type something, which may come too late."""
        with suppress(OSError):
            os.write(self._keys, keys.encode())

    async def ended(self) -> int:
        """The code that the process ends with."""
        return await asyncio.wait_for(self.process.wait(), PATIENCE)


def _owned() -> None:
    """The terminal on standard input is the process's own, and so are its signals."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # whatever started the tests may not heed it


@asynccontextmanager
async def terminal(*words: str, program: Sequence[str] = COMMAND) -> AsyncIterator[Terminal]:
    """`a2a-grpc`, or another program, with these words on a terminal."""
    keys, screen = os.openpty()
    try:
        command = *program, *words
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=screen,
            stdout=screen,
            stderr=screen,
            env={**ENVIRONMENT, "TERM": "xterm"},
            start_new_session=True,
            preexec_fn=_owned,
        )
    finally:
        os.close(screen)
    made = Terminal(process, keys)
    try:
        yield made
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        made.close()
        os.close(keys)
