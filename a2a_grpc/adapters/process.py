"""A program as an agent: the message goes to its standard input, what it prints is the answer, while it prints it.

Laws: no shell, and nothing that a caller wrote is an argument. A program lives no longer than its turn: what is left of
its process group is ended. What it says on standard error goes to the log, never to the caller. Who wants more than
text in and out speaks JSON lines, whose members are the table `ACTS`. A program without end has one all the same.
"""

import asyncio
import codecs
import json
import logging
import math
import os
import shlex
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from a2a_grpc.agent import Failed, Output, Rejected, TaskHandle
from a2a_grpc.errors import InvalidAgentResponseError
from a2a_grpc.python310_asyncio import timeout

GRACE: Final = 2.0
"""Seconds that a program has to end when its task was canceled, before it is killed."""

LOOK: Final = 0.02
"""Seconds between looks at what nobody tells: whether anybody of a program's group is left."""

PIECE: Final = 65_536

MOST_BYTES: Final = 16 * 1024 * 1024
"""Bytes that a program may print in one turn, unless something else is said."""

LONGEST_LINE: Final = 4 * 1024 * 1024
"""Bytes of the longest line of JSON that is read."""

log: Final = logging.getLogger("a2a_grpc.process")

Work = Callable[[TaskHandle], Awaitable[None]]


def process(
    command: str | Sequence[str],
    *,
    lines: bool = False,
    env: Mapping[str, str] | None = None,
    most_bytes: int = MOST_BYTES,
    most_seconds: float = 0.0,
) -> Work:
    """The function of an agent that runs a program for each turn: `agent.handle(process("wc -w"))`.

    command: words, or a text that is taken apart as a shell does, without a shell. lines: whether it speaks JSON lines
    (see `ACTS`) instead of text; default False. env: variables beside those of this process; A2A_TASK_ID and
    A2A_CONTEXT_ID are set. most_bytes: what it may print in one turn, default `MOST_BYTES`; most_seconds: how long it
    may run for one, default 0; 0 stands for any number. A program that goes on all the same is ended and fails the task
    in words that name the limit, and so does an exit code other than 0. Raises ValueError for an empty command.
    """
    words = shlex.split(command) if isinstance(command, str) else list(command)
    if not words:
        raise ValueError("command must name a program")

    async def work(task: TaskHandle) -> None:
        variables = {**os.environ, **(env or {}), "A2A_TASK_ID": task.id, "A2A_CONTEXT_ID": task.context_id}
        pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), asyncio.subprocess.PIPE)
        if not isinstance(asyncio.get_running_loop(), asyncio.BaseEventLoop):
            pipes["preexec_fn"] = _own_pipes_alone
        try:
            running = await asyncio.create_subprocess_exec(
                *words, env=variables, start_new_session=True, limit=LONGEST_LINE, **pipes
            )
        except OSError as fault:
            log.error("%s cannot be started: %s", words[0], fault.strerror or fault)
            raise Failed("The agent's program cannot be started") from None
        said = Said(running, most_bytes)
        beside = [
            asyncio.ensure_future(each)
            for each in (_fed(running, _given(task, lines)), _logged(running, words, most_bytes))
        ]
        timer = timeout(most_seconds or None)
        try:
            async with timer:
                ended = await (_lines if lines else _text)(task, said)
                code = 0 if ended else await _code(running)
            if code:
                raise Failed(f"The agent's program ended with code {code}")
        except TimeoutError:
            if not timer.expired():
                raise
            raise Failed(f"The agent's program took longer than the {most_seconds:g} seconds that it has") from None
        finally:
            beside[0].cancel()
            await _end(running)
            await asyncio.wait(beside, timeout=GRACE)
            for each in beside:
                each.cancel()
            transport: Any = running._transport  # type: ignore[attr-defined]
            transport.close()  # which nothing public does for pipes that others still hold

    return work


def _own_pipes_alone() -> None:
    """In the new process: leave nothing open but its three pipes. uvloop leaves them open under other numbers, too, so
    that whoever the program leaves behind would hold them however well it closes what it knows."""
    for name in os.listdir("/dev/fd"):
        if int(name) > 2:
            with suppress(OSError):
                os.set_inheritable(int(name), False)


def _given(task: TaskHandle, lines: bool) -> bytes:
    """What a program is told: the text, or one line of JSON with everything of the message but files."""
    if not lines:
        return task.text.encode()
    told = {"text": task.text, "data": task.data, "answer": task.answer, "state": task.state}
    told |= {"taskId": task.id, "contextId": task.context_id, "metadata": task.metadata}
    return json.dumps({name: value for name, value in told.items() if value is not None}).encode() + b"\n"


async def _fed(running: asyncio.subprocess.Process, given: bytes) -> None:
    assert running.stdin is not None
    with suppress(BrokenPipeError, ConnectionResetError):  # it may end without having read
        running.stdin.write(given)
        await running.stdin.drain()
    running.stdin.close()


async def _logged(running: asyncio.subprocess.Process, words: Sequence[str], most: int) -> None:
    assert running.stderr is not None
    left = most or math.inf
    while piece := await running.stderr.read(PIECE):
        if left <= 0:
            continue  # it is read all the same: else the program would stand still
        for line in piece.decode(errors="replace").splitlines():
            log.info("%s: %s", words[0], line)
        if (left := left - len(piece)) <= 0:
            log.warning("%s: what it says after %d bytes is not logged", words[0], most)


class Said:
    """What a program prints, as long as it is no more than so many bytes, 0 for any number. Raises Failed."""

    def __init__(self, running: asyncio.subprocess.Process, most: int) -> None:
        assert running.stdout is not None
        self._source, self._most, self._left = running.stdout, most, most or math.inf

    async def piece(self) -> bytes:
        """What comes next, nothing at the end."""
        return self._counted(await self._source.read(PIECE))

    async def line(self) -> bytes:
        """The next line, nothing at the end. Raises ValueError for one that is too long."""
        return self._counted(await self._source.readline())

    def _counted(self, piece: bytes) -> bytes:
        self._left -= len(piece)
        if self._left < 0:
            raise Failed(f"The agent's program printed more than the {self._most} bytes that it may")
        return piece


async def _text(task: TaskHandle, said: Said) -> bool:
    """Pass on what is printed, as it comes."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    async with task.artifact(name="answer") as out:
        while piece := await said.piece():
            if text := decoder.decode(piece):
                await out.write(text)
        if text := decoder.decode(b"", final=True):
            await out.write(text)
    return False


# -- JSON lines


async def _write(_: TaskHandle, out: Output, given: Mapping[str, Any]) -> None:
    await out.write(given["text"] if "text" in given else given["data"])


async def _working(task: TaskHandle, _: Output, given: Mapping[str, Any]) -> None:
    await task.working(str(given["status"]))


async def _ask(task: TaskHandle, _: Output, given: Mapping[str, Any]) -> None:
    await task.ask(str(given["ask"]), data=given.get("data"), schema=given.get("schema"))


async def _fail(_: TaskHandle, __: Output, given: Mapping[str, Any]) -> None:
    raise Failed(str(given["fail"]))


async def _reject(_: TaskHandle, __: Output, given: Mapping[str, Any]) -> None:
    raise Rejected(str(given["reject"]))


ACTS: Final[Mapping[str, Callable[[TaskHandle, Output, Mapping[str, Any]], Awaitable[None]]]] = {
    "ask": _ask,
    "fail": _fail,
    "reject": _reject,
    "status": _working,
    "text": _write,
    "data": _write,
}
"""What a line does, by the first of these members that it has: ask (with data and schema) ends the turn with a
question, fail and reject end it in these states, status tells how work goes on, text and data are pieces of the
answer."""

LAST: Final = frozenset({"ask"})
"""Acts after which a program is not listened to."""


async def _lines(task: TaskHandle, said: Said) -> bool:
    """Do what each line says; whether one of them ended the turn."""
    async with task.artifact(name="answer") as out:
        async for given in _objects(said):
            name = next((each for each in ACTS if each in given), None)
            if name is None:
                raise _unreadable(f"a line has none of {', '.join(ACTS)}")
            if name in LAST:
                await out.close()
            try:
                await ACTS[name](task, out, given)
            except InvalidAgentResponseError as fault:
                raise _unreadable(fault.message) from None
            if name in LAST:
                return True
    return False


async def _objects(said: Said) -> AsyncIterator[Mapping[str, Any]]:
    while True:
        try:
            line = await said.line()
            found = json.loads(line) if line.strip() else None
        except (ValueError, RecursionError) as fault:  # no JSON, longer than LONGEST_LINE, or nested too deeply
            raise _unreadable(str(fault)) from None
        if not line:
            return
        if found is not None and not isinstance(found, dict):
            raise _unreadable("a line is no JSON object")
        if found is not None:
            yield found


def _unreadable(why: str) -> Failed:
    log.error("what a program prints cannot be read as JSON lines: %s", why)
    return Failed("The agent's program said something that cannot be read")


async def _code(running: asyncio.subprocess.Process) -> int:
    """The exit code of a program, once it has one: `wait` alone would wait for whoever still holds its pipes, too."""
    waiting = asyncio.ensure_future(running.wait())
    try:
        while running.returncode is None:
            await asyncio.wait((waiting,), timeout=LOOK)
    finally:
        waiting.cancel()
    return running.returncode


async def _end(running: asyncio.subprocess.Process) -> None:
    """See that a program and what it started are gone, also what it left behind when it ended by itself."""
    if _signal(running, signal.SIGTERM):
        try:
            async with timeout(GRACE):
                await _code(running)
                while _signal(running, 0):  # noqa: ASYNC110 - nobody tells when a group is empty
                    await asyncio.sleep(LOOK)
        except TimeoutError:
            log.warning("a program did not end when it was told to, and is killed")
        finally:
            _signal(running, signal.SIGKILL)
    await _code(running)


def _signal(running: asyncio.subprocess.Process, number: int) -> bool:
    """Send a signal, 0 for none, to the group of a program, whose number nobody else has as long as one of it lives;
    whether there was anybody."""
    try:
        os.killpg(running.pid, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True
