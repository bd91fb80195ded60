"""What a server costs before anybody asks it anything. Linux only.

Laws: each figure is the best of a few tries, for what disturbs a start only makes it slower.
"""

import resource
import subprocess
import sys
import time
from typing import Any, Final

from tests.bench.process import Process, cores
from tests.bench.readers import memory_of

TRIES: Final = 3


def importing() -> float:
    """CPU seconds of `import a2a_grpc`, that of the interpreter left out."""

    def cost(code: str) -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", code], check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    return min(cost("import a2a_grpc") for _ in range(TRIES)) - min(cost("pass") for _ in range(TRIES))


def about_idle() -> dict[str, Any]:
    """Measure; prints a table."""
    ready, memory = [], []
    for _ in range(TRIES):
        begun = time.perf_counter()
        server = Process(cores()[0], "memory")
        ready.append(time.perf_counter() - begun)
        memory.append(memory_of(server) / 1024 / 1024)
        server.stop()
    found = {"idle MiB": min(memory), "import, CPU s": importing(), "ready, s": min(ready)}
    goals = {"idle MiB": 90, "import, CPU s": 0.35, "ready, s": 1}
    print("", "| what | value | goal |", "| --- | ---: | ---: |", sep="\n")
    print(*(f"| {name} | {value:.2f} | {goals[name]} |" for name, value in found.items()), sep="\n", flush=True)
    return found
