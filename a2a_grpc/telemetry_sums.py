"""Durations added up where they are measured: how many there were in each class, by kind of act and labels.

Laws: to add one costs little more than to add to two numbers, since every call of a server does it several times. Who
reads, and how that names things, is not known here.
"""

import threading
import time
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from a2a_grpc.telemetry import BUCKETS, KINDS, Kind

Labels = tuple[str, ...]
"""Values of the labels of a kind, in its order."""


class Seen(NamedTuple):
    """One duration, for an example of its class: how long, when in ns since 1970, and the ids of its span."""

    seconds: float
    at_ns: int
    trace_id: int
    span_id: int


class Sum:
    """Durations with the same labels. counts: by class, one more than `BUCKETS`; total, least, most: in seconds;
    seen: the latest with a span, by class."""

    __slots__ = ("counts", "least", "most", "seen", "total")

    def __init__(self) -> None:
        self.counts, self.total = [0] * (len(BUCKETS) + 1), 0.0
        self.least, self.most = float("inf"), float("-inf")
        self.seen: dict[int, Seen] = {}

    def copy(self) -> "Sum":
        """As it is now; what was seen goes with it and is seen no more."""
        made = Sum()
        made.counts, made.total, made.least, made.most = list(self.counts), self.total, self.least, self.most
        made.seen, self.seen = self.seen, {}
        return made


class Sums:
    """The durations of every kind of act, for any number of threads."""

    def __init__(self) -> None:
        self._lock: Final = threading.Lock()
        self._found: dict[Kind, dict[Labels, Sum]] = {kind: {} for kind in KINDS}

    def add(self, kind: Kind, seconds: float, labels: Mapping[str, str], span: tuple[int, int] | None = None) -> None:
        """One more. span: trace and span id of an example."""
        found, key = self._found[kind], tuple(map(labels.__getitem__, kind.labels))
        place = bisect_left(BUCKETS, seconds)
        with self._lock:
            known = found.get(key)
            if known is None:
                known = found[key] = Sum()
            known.counts[place] += 1
            known.total += seconds
            if seconds < known.least:
                known.least = seconds
            if seconds > known.most:
                known.most = seconds
            if span is not None:
                known.seen[place] = Seen(seconds, time.time_ns(), *span)

    def read(self, kind: Kind, *, anew: bool = False) -> Sequence[tuple[Labels, Sum]]:
        """All of a kind, as it is now. anew: begin from nothing."""
        with self._lock:
            found = [(key, each.copy()) for key, each in self._found[kind].items()]
            if anew:
                self._found[kind] = {}
        return found
