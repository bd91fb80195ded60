"""A server of servers.py as a process of its own, on a core of its own where the system lets one choose."""

import json
import os
import subprocess
import sys

from a2a_grpc.call import GRPC


class Process:
    """A server of servers.py. core: the one it may use, None for any. pid: its process; hosts: its addresses."""

    def __init__(self, core: int | None, *words: str) -> None:
        command = [sys.executable, "-m", "tests.bench.servers", *words]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._process.stdin and self._process.stdout
        self._in, self._out = self._process.stdin, self._process.stdout
        self.pid = self._process.pid
        if core is not None:
            os.sched_setaffinity(self.pid, {core})
        self.hosts: dict[str, str] = json.loads(self._out.readline())

    def cpu(self) -> float:
        """CPU seconds so far, of all threads."""
        self._in.write(b"\n")
        self._in.flush()
        return float(self._out.readline())

    def host(self, wire: str) -> str:
        """The address of a wire."""
        return self.hosts["grpc" if wire == GRPC else "http"]

    def stop(self) -> None:
        """End it."""
        self._in.close()
        self._process.wait(30)
        self._out.close()


def cores() -> tuple[int | None, int | None]:
    """The core of the servers and that of the client."""
    if not hasattr(os, "sched_setaffinity") or len(free := sorted(os.sched_getaffinity(0))) < 2:
        return None, None
    return free[0], free[-1]
