"""Files with keys, read again when they change, so that no rotation needs a restart.

Laws: what the keys are for and what is made of them is said by whoever asks. A file that cannot be used any more leaves
in force what was made before, and is told to the log. No log line holds a key.
"""

import logging
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, Generic, TypeVar

from a2a_grpc.config import OptionError

LOOK: Final = 1.0
"""Seconds after which files are looked at again."""

log: Final = logging.getLogger("a2a_grpc.auth")

_T = TypeVar("_T")


class Reread(Generic[_T]):
    """What `make` makes of some files, made again when they change. Files that are replaced one after the other may not
    fit together for a while; then they are looked at again a second later.

    clock: seconds that never go back. Raises what `make` does from the start: OSError, OptionError.
    """

    def __init__(
        self, files: Sequence[str | Path], make: Callable[[], _T], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._files, self._make, self._clock = [Path(file) for file in files], make, clock
        self._next, self._stamp = clock() + LOOK, self._stamps()
        self._told = ""
        self._made = make()

    def _stamps(self) -> list[tuple[int, int, int]]:
        return [(found.st_mtime_ns, found.st_size, found.st_ino) for found in (file.stat() for file in self._files)]

    def __call__(self) -> _T:
        """What there is now: the same object as long as nothing has changed."""
        if (now := self._clock()) >= self._next:
            self._next = now + LOOK
            try:
                if (stamp := self._stamps()) != self._stamp:
                    self._made, self._stamp, self._told = self._make(), stamp, ""
                    log.info("the keys of %s have changed", ", ".join(map(str, self._files)))
            except (OSError, OptionError) as fault:
                if self._told != str(fault):
                    log.warning("keys stay as they were: %s", fault)
                self._told = str(fault)
        return self._made
