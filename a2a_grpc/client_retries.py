"""When a client tries again, and how long it waits before.

Laws: a call is repeated only when that cannot do its work twice: it only reads, it surely never arrived, or the agent
tells repetitions apart. How long the agent asks to be left alone is respected, or the fault is raised at once. Pauses
grow and are never quite the same, so that clients which failed together do not come back together. No I/O.
"""

import random
from dataclasses import dataclass
from typing import Final

from a2a_grpc.call import V1
from a2a_grpc.errors import A2AError, ResourceExhaustedError, UnavailableError
from a2a_grpc.methods import METHODS

IDEMPOTENT: Final = frozenset(
    name for name, method in METHODS[V1].items() if method.routes and method.routes[0].verb in ("GET", "DELETE")
)
"""Operations that may be called again whatever became of the first call, read from their HTTP rules."""


@dataclass(frozen=True, slots=True)
class Retries:
    """How often and how patiently a client tries again.

    attempts: calls in all, default 3. first, most: seconds of the first pause, which doubles, and of the longest;
    default 0.25 and 5; an agent that asks for more gets no further call. patience: seconds for which a stream that
    broke is tried again without any news, default 60. idle: seconds in which something new must be told of
    a task that is asked for now and then, or subscribed to at an agent that does not number its events, which may hold
    the stream of a task that nobody works on any more; default 3600, None for ever. Then TimeoutError.
    """

    attempts: int = 3
    first: float = 0.25
    most: float = 5.0
    patience: float = 60.0
    idle: float | None = 3600.0

    def pause(self, fault: A2AError, failures: int, repeatable: bool) -> float | None:
        """Seconds to wait before the next call; None when there shall be none. failures: calls that failed before
        this one; repeatable: whether the call may be made twice."""
        if failures + 1 >= self.attempts:
            return None
        refused = isinstance(fault, ResourceExhaustedError) and fault.retry_after is not None
        if not (refused or unsent(fault) or (repeatable and isinstance(fault, UnavailableError))):
            return None
        if fault.retry_after is None:
            return self.growing(failures)
        return None if fault.retry_after > self.most else fault.retry_after * random.uniform(1.0, 1.1)

    def growing(self, failures: int) -> float:
        """Seconds of the pause after so many failures."""
        return min(self.most, self.first * 2.0 ** min(failures, 30)) * random.uniform(0.5, 1.0)

    def tired(self, seconds: float) -> bool:
        """Whether a task of which nothing new was told for so many seconds is given up."""
        return self.idle is not None and seconds >= self.idle

    def given_up(self, task_id: str) -> TimeoutError:
        """What is raised then."""
        about = f"task {task_id}" if task_id else "the task"
        return TimeoutError(f"nothing new of {about} for {self.idle:g} seconds: nobody may be at work on it")


NEVER: Final = Retries(attempts=1, patience=0.0)
"""For who tries again elsewhere, or not at all."""


def unsent(fault: A2AError) -> bool:
    """Whether nothing of the call has reached the agent."""
    return isinstance(fault, UnavailableError) and isinstance(fault.__cause__, ConnectionError)
