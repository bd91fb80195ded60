"""Several processes on one machine that serve the same on the same ports, and the one that looks after them.

Laws: the parent serves nothing and knows nothing of what is served. The first worker is ready before the others start,
so that what cannot be is told once. A worker that dies is replaced; one signal stops all of them gracefully, a second
at once, any other is passed on to them; when the parent dies, they stop by themselves.
"""

import asyncio
import logging
import multiprocessing
import os
import signal
import socket
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import Any, Final

from a2a_grpc.config import OptionError, Options
from a2a_grpc.opening import open_store
from a2a_grpc.server import STOP_SIGNALS

log: Final = logging.getLogger("a2a_grpc")

PAUSE: Final = 0.5
"""Seconds until a worker that died is replaced."""

Report = Callable[[str], None]
"""Called in the event loop of a worker that serves, with what there is to say about it."""


def check(options: Options, keeps: bool) -> None:
    """Whether several workers can have these options. keeps: they keep something in the store. Raises OptionError: a
    store that one process has for itself, a port that is not stated, a system without SO_REUSEPORT; OSError for a port
    in use."""
    if not hasattr(socket, "SO_REUSEPORT"):
        raise OptionError("workers: this system cannot share a port between processes")
    if keeps and open_store(options).exclusive:
        scheme = options.store.partition(":")[0]
        raise OptionError(f"workers: a store in {scheme}: cannot be shared by processes; use postgresql:")
    for name, address in (("grpc", options.grpc), ("http", options.http)):
        host, _, port = address.rpartition(":")
        if not address:
            continue
        if not int(port):
            raise OptionError(f"workers: {name} needs a port that all can share, not 0")
        host = host.strip("[]")
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        socket.create_server((host, int(port)), family=family).close()  # else a stranger's port might be shared


def run(count: int, work: Callable[..., None], words: tuple[Any, ...], show: Report) -> int:
    """Run `work(*words, report)` in `count` processes until a signal tells to stop; answers the exit code.

    work: a function of a module, which calls the Report that it is given once it serves. show: called with the first
    worker's report when all of them serve.
    """
    with _signals() as told:
        return _Family(count, work, words, show).live(told)


class _Family:
    def __init__(self, count: int, work: Callable[..., None], words: tuple[Any, ...], show: Report) -> None:
        self._count, self._work, self._words, self._show = count, work, words, show
        self._workers: dict[SpawnProcess, Connection] = {}
        self._silent: set[Connection] = set()
        self._report = ""
        self._stopping = self._shown = False
        self._code = 0

    def live(self, told: socket.socket) -> int:
        self._start()
        while self._workers:
            sentinels = {process.sentinel: process for process in self._workers}
            for found in wait([told, *self._silent, *sentinels]):
                if found is told:
                    numbers = told.recv(16)
                    self._pass_on(number for number in numbers if number not in STOP_SIGNALS)
                    self._stop(sum(number in STOP_SIGNALS for number in numbers))
                elif isinstance(found, Connection):
                    self._hear(found)
                elif isinstance(found, int):
                    self._bury(sentinels[found])
        return self._code

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=_serve, args=(self._work, self._words, theirs), name="worker")
        process.start()
        theirs.close()
        self._workers[process] = ours
        self._silent.add(ours)

    def _hear(self, pipe: Connection) -> None:
        """A worker serves, or will never."""
        self._silent.discard(pipe)
        try:
            self._report = pipe.recv() or self._report
        except (EOFError, OSError):  # it died, which its sentinel tells as well
            return
        if self._stopping:
            return
        while len(self._workers) < self._count:
            self._start()
        if not (self._silent or self._shown):
            self._shown = True
            self._show(self._report)

    def _pass_on(self, numbers: Iterable[int]) -> None:
        """Signals that are for those who serve."""
        for number in numbers:
            for process in self._workers:
                with suppress(ProcessLookupError):
                    os.kill(process.pid or os.getpid(), number)

    def _stop(self, times: int) -> None:
        for _ in range(times):
            for process in self._workers:
                (process.kill if self._stopping else process.terminate)()
            self._stopping = True

    def _bury(self, process: SpawnProcess) -> None:
        process.join()
        code, pipe = process.exitcode or 0, self._workers.pop(process)
        failed = not self._shown
        self._silent.discard(pipe)
        pipe.close()
        if self._stopping:
            if code != -signal.SIGTERM:  # it was told to before it could take it gracefully
                self._code = self._code or (code if code > 0 else 128 - code if code else 0)
        elif failed:
            self._code = code if code > 0 else 1
            self._stop(1)
        else:
            log.warning("worker %s ended with code %s; another one takes its place", process.pid, code)
            time.sleep(PAUSE)
            self._start()


@contextmanager
def _signals() -> Iterator[socket.socket]:
    """A socket that becomes readable with each signal that tells to stop."""
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    before = signal.set_wakeup_fd(theirs.fileno())
    handlers = {number: signal.signal(number, lambda *_: None) for number in STOP_SIGNALS}
    try:
        yield ours
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(before)
        ours.close()
        theirs.close()


def _serve(work: Callable[..., None], words: tuple[Any, ...], parent: Connection) -> None:
    """In a worker: do the work; a signal of the terminal is the parent's business, its death is the worker's."""
    os.setsid()

    def report(text: str) -> None:
        parent.send(text)
        loop = asyncio.get_running_loop()

        def alone() -> None:
            loop.remove_reader(parent.fileno())
            os.kill(os.getpid(), signal.SIGTERM)

        loop.add_reader(parent.fileno(), alone)

    work(*words, report)
