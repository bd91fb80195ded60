"""Measures as Prometheus reads them: a Recorder that adds up where things happen, and is read when somebody looks.

Laws: names, units and labels become Prometheus's here and nowhere else. To record costs little, since every call of a
server does it several times. Nothing is traced.
"""

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import accumulate
from typing import Any, Final, NamedTuple

from a2a_grpc.extras import needs
from a2a_grpc.telemetry import BUCKETS, COUNTERS, KINDS, Kind, Values
from a2a_grpc.telemetry_sums import Labels, Sums

with needs("telemetry"):
    from prometheus_client import CollectorRegistry, GCCollector, ProcessCollector
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
    from prometheus_client.exposition import choose_encoder
    from prometheus_client.utils import floatToGoString

log: Final = logging.getLogger("a2a_grpc")

SECONDS: Final = "s"
_BOUNDS: Final = (*map(floatToGoString, BUCKETS), "+Inf")


class _Observed(NamedTuple):
    """A measure that is read when somebody looks."""

    name: str
    meaning: str
    values: Values
    grows: bool


class Prometheus:
    """A Recorder of measures. service: what `target_info` calls this server; default a2a-grpc."""

    def __init__(self, service: str = "a2a-grpc") -> None:
        self._lock = threading.Lock()
        self._sums = Sums()
        # What has no labels is there from the start, so that rates are.
        self._counted: dict[str, dict[Labels, int]] = {
            name: {} if row[1] else {(): 0} for name, row in COUNTERS.items()
        }
        self._observed: list[_Observed] = []
        self._registry = CollectorRegistry(target_info={"service_name": service})
        ProcessCollector(registry=self._registry)
        GCCollector(registry=self._registry)
        self._registry.register(self)

    # -- spans, of which there are none

    def begin(self, *_: Any) -> None:
        """Nothing begins (see Recorder)."""

    def enter(self, span: Any) -> None:
        """Nothing is under way (see Recorder)."""

    def leave(self, token: Any) -> None:
        """Nothing was under way (see Recorder)."""

    def headers(self, span: Any) -> dict[str, str]:
        """Nothing is carried on (see Recorder)."""
        return {}

    def ids(self, span: Any) -> dict[str, str]:
        """There are no ids (see Recorder)."""
        return {}

    # -- measures

    def end(
        self, kind: Kind, span: Any, seconds: float, labels: Mapping[str, str], new: Mapping[str, Any], failed: bool
    ) -> None:
        """An act is over (see Recorder)."""
        self._sums.add(kind, seconds, labels)

    def count(self, name: str, amount: int, labels: Mapping[str, str]) -> None:
        """Add to a counter (see Recorder)."""
        counted, key = self._counted[name], tuple(map(labels.__getitem__, COUNTERS[name][1]))
        with self._lock:
            counted[key] = counted.get(key, 0) + amount

    def observe(self, name: str, unit: str, meaning: str, values: Values, *, grows: bool) -> None:
        """Have values read whenever measures are (see Recorder)."""
        self._observed.append(_Observed(_named(name, unit), meaning, values, grows))

    def flushes(self) -> Iterable[Callable[[], object]]:
        """Nothing waits to be sent (see Recorder)."""
        return ()

    @property
    def text(self) -> Callable[[str], tuple[str, bytes]]:
        """What Prometheus reads (see Recorder)."""
        return self._text

    def _text(self, accept: str) -> tuple[str, bytes]:
        encode, media = choose_encoder(accept)
        return media, encode(self._registry)

    # -- what is read

    def collect(self) -> Iterator[Metric]:
        """Everything there is, as the library wants it."""
        for kind in KINDS:
            yield self._histogram(kind)
        for name, counted in self._counted.items():
            meaning, labels = COUNTERS[name]
            with self._lock:
                found = list(counted.items())
            family = CounterMetricFamily(_named(name), meaning, labels=_labels(labels))
            for key, number in found:
                family.add_metric(key, number)
            yield family
        for row in self._observed:
            yield _read(row)

    def _histogram(self, kind: Kind) -> Metric:
        family = HistogramMetricFamily(
            _named(f"{kind.name}.duration", SECONDS), kind.meaning, labels=_labels(kind.labels)
        )
        for key, each in self._sums.read(kind):
            family.add_metric(key, list(zip(_BOUNDS, accumulate(each.counts), strict=True)), each.total)
        return family


def _read(row: _Observed) -> Metric:
    """A measure as it is now; without values, if they cannot be read, as the others are wanted most then."""
    try:
        found = list(row.values())
    except Exception:
        log.exception("the measure %s cannot be read", row.name)
        found = []
    labels = [*found[0][1]] if found else []
    family = (CounterMetricFamily if row.grows else GaugeMetricFamily)(row.name, row.meaning, labels=_labels(labels))
    for value, told in found:
        family.add_metric([told[label] for label in labels], value)
    return family


def _named(name: str, unit: str = "") -> str:
    return name.replace(".", "_") + "_seconds" * (unit == SECONDS)


def _labels(names: Iterable[str]) -> list[str]:
    return [_named(name) for name in names]
