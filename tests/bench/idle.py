"""What a server costs before anybody asks it anything. Linux only.

Laws: each figure is the best of a few tries, for what disturbs a start only makes it slower.
"""

import resource
import subprocess
import sys
import time
from typing import Any, Final

from tests.bench.readers import memory_of

TRIES: Final = 3
PORTS: Final = ("--grpc=127.0.0.1:0", "--http=127.0.0.1:0", "--store=memory:")
SERVE: Final = [sys.executable, "-m", "a2a_grpc", "serve", *PORTS]
GOALS: Final = {"memory of an idle server, MiB": 90, "import a2a_grpc, CPU s": 0.35, "ready after start, s": 1}


def importing() -> float:
    """CPU seconds of `import a2a_grpc`, that of the interpreter left out."""

    def cost(code: str) -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", code], check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    return min(cost("import a2a_grpc") for _ in range(TRIES)) - min(cost("pass") for _ in range(TRIES))


def started() -> tuple[float, float]:
    """Seconds until `a2a-grpc serve` has told its addresses, and the MiB that it then holds."""
    begun = time.perf_counter()
    with subprocess.Popen(SERVE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        while not (line := process.stdout.readline()).strip().startswith("GRPC"):
            assert line, "the server ended"
        ready = time.perf_counter() - begun
        held = memory_of(process.pid)
        process.terminate()
    return ready, held / 1024 / 1024


def about_idle() -> dict[str, Any]:
    """Measure."""
    tries = [started() for _ in range(TRIES)]
    values = min(memory for _, memory in tries), importing(), min(ready for ready, _ in tries)
    return dict(zip(GOALS, values, strict=True))
