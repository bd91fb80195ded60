"""What is watched of a server, and where it goes: kinds of acts, their spans and measures, the ids of log lines.

Laws: no library of telemetry is named here: a Recorder is handed in, and what is put around the parts of a server is
made in telemetry_parts.py. Labels have few values; ids go into spans and log lines only (SEC-07, BL-53).
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from types import MappingProxyType, TracebackType
from typing import Any, Final, NamedTuple, Protocol

from a2a_stubs import v1

from a2a_grpc.errors import A2AError

OK: Final = "OK"


OPERATION, BINDING, VERSION, CODE = "a2a.operation", "a2a.binding", "a2a.version", "a2a.code"
AGENT, STATE, RESULT, AT_STORE = "a2a.agent", "a2a.state", "a2a.result", "a2a.store.operation"
TASK, CONTEXT = "a2a.task.id", "a2a.context.id"
HTTP_STATUS: Final = "http.response.status_code"


class Kind(NamedTuple):
    """A kind of act. name: of its measure, with `.duration` behind it, in seconds; role: SERVER, CLIENT or INTERNAL;
    meaning: for who reads the measure; labels: of the measure."""

    name: str
    role: str
    meaning: str
    labels: tuple[str, ...]


_OF_CALLS: Final = (OPERATION, BINDING, VERSION, CODE)
CALL: Final = Kind("a2a.server.call", "SERVER", "Calls that reached an operation", _OF_CALLS)
TURN: Final = Kind("a2a.turn", "INTERNAL", "Turns, by the state that they ended in", (AGENT, STATE))
STORE: Final = Kind("a2a.store", "CLIENT", "Reads and writes of the store", (AT_STORE, CODE))
PUSH: Final = Kind("a2a.push", "CLIENT", "Requests to webhooks", (RESULT,))
REMOTE: Final = Kind("a2a.client.call", "CLIENT", "Calls of other agents and of upstreams", _OF_CALLS)
KINDS: Final = (CALL, TURN, STORE, PUSH, REMOTE)
"""What happens and takes time."""

REQUESTS: Final = "a2a.server.requests"
TRIMMED: Final = "a2a.retention.deleted"
LEASES_LOST: Final = "a2a.leases.lost"
COUNTERS: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    REQUESTS: ("Requests at the door, by how it let them in", (BINDING, CODE)),
    TRIMMED: ("Tasks that retention has deleted", ()),
    LEASES_LOST: ("Turns here whose lease another process has taken", ()),
}
"""What is counted: what it means, and its labels."""

BUCKETS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)
"""Upper bounds of the classes of durations, in seconds."""

Values = Callable[[], Iterable[tuple[float, Mapping[str, str]]]]
"""Gives the values of a measure, each with its labels."""


class Recorder(Protocol):
    """Where spans and measures go. A span is whatever `begin` answers; headers: names in lower case."""

    def begin(
        self,
        kind: Kind,
        name: str,
        details: Mapping[str, Any],
        parent: Any,
        headers: Mapping[str, str],
        earlier: str,
        began: int | None = None,
    ) -> Any:
        """Begin a span. details: not to be changed later. parent: the span that it is part of; None: what the W3C
        headers say, or what is under way in this context. earlier: a trace context that it is linked to, see
        call.trace_of; "" for none. began: when, in ns since 1970; None: now."""

    def enter(self, span: Any) -> Any:
        """Make the span the one that is under way in this context; answers what `leave` takes."""

    def leave(self, token: Any) -> None:
        """Take back what `enter` did, in the same context."""

    def headers(self, span: Any) -> dict[str, str]:
        """The W3C headers that carry a span on."""

    def ids(self, span: Any) -> dict[str, str]:
        """`trace_id` and `span_id` of a span, for log lines; nothing when it is not recorded."""

    def end(
        self, kind: Kind, span: Any, seconds: float, labels: Mapping[str, str], new: Mapping[str, Any], failed: bool
    ) -> None:
        """The act is over. labels: of the measure; new: what the span does not have yet of labels and details."""

    def count(self, name: str, amount: int, labels: Mapping[str, str]) -> None:
        """Add to one of `COUNTERS`."""

    def observe(self, name: str, unit: str, meaning: str, values: Values, *, grows: bool) -> None:
        """Have values read whenever measures are. grows: they only ever become more."""

    def flushes(self) -> Iterable[Callable[[], object]]:
        """What sends what is not sent yet, each of which may block, and raise anything."""

    @property
    def text(self) -> Callable[[str], tuple[str, bytes]] | None:
        """What Prometheus reads, given an Accept header, as media type and bytes; None: nothing is read."""


class Watcher(Protocol):
    """What watches a server. recorder: where it records, None when only log lines get ids."""

    recorder: Recorder | None

    def through(self, wire: Any, entry: v1.AgentInterface) -> Any:
        """A client's wire to an interface, watched."""


class Both:
    """Two recorders as one. first: whose spans; other: records measures, too, and is what Prometheus reads."""

    def __init__(self, first: Recorder, other: Recorder) -> None:
        self._first, self._other = first, other
        self.begin, self.enter, self.leave = first.begin, first.enter, first.leave
        self.headers, self.ids, self.text = first.headers, first.ids, other.text

    def end(
        self, kind: Kind, span: Any, seconds: float, labels: Mapping[str, str], new: Mapping[str, Any], failed: bool
    ) -> None:
        """An act is over (see Recorder)."""
        self._first.end(kind, span, seconds, labels, new, failed)
        self._other.end(kind, None, seconds, labels, new, failed)

    def count(self, name: str, amount: int, labels: Mapping[str, str]) -> None:
        """Add to a counter (see Recorder)."""
        self._first.count(name, amount, labels)
        self._other.count(name, amount, labels)

    def observe(self, name: str, unit: str, meaning: str, values: Values, *, grows: bool) -> None:
        """Have values read whenever measures are (see Recorder)."""
        self._first.observe(name, unit, meaning, values, grows=grows)
        self._other.observe(name, unit, meaning, values, grows=grows)

    def flushes(self) -> Iterable[Callable[[], object]]:
        """What sends what is not sent yet (see Recorder)."""
        return (*self._first.flushes(), *self._other.flushes())


NO_HEADERS: Final[Mapping[str, str]] = MappingProxyType({})


class Here(NamedTuple):
    """What watches the code that runs, what that is about, and its span."""

    telemetry: "Watcher"
    about: Mapping[str, str]
    span: Any

    @property
    def fields(self) -> Mapping[str, str]:
        """What log lines are to show."""
        recorder = self.telemetry.recorder
        return self.about if recorder is None else {**self.about, **recorder.ids(self.span)}


HERE: ContextVar[Here | None] = ContextVar("a2a_telemetry", default=None)
"""Set within calls and turns that are watched, in threads of functions, too; None where nothing watches."""


def outgoing_headers() -> dict[str, str]:
    """The W3C headers that carry on what is under way here, names in lower case; none where nothing watches."""
    here = HERE.get()
    recorder = here and here.telemetry.recorder
    return recorder.headers(None) if recorder else {}


class Act:
    """Something that is watched from now until `end`; `with` it, what runs is part of it. Labels may be added.

    spanned: whether it makes a span; whole: the span is made at the end, with everything that is known then, since
    nothing is part of it.
    """

    __slots__ = (
        "_begun",
        "_entered",
        "_fields",
        "_here",
        "_kind",
        "_started",
        "_telemetry",
        "_whole",
        "labels",
        "more",
        "span",
    )

    def __init__(
        self,
        telemetry: "Watcher",
        kind: Kind,
        name: str,
        labels: dict[str, str],
        details: dict[str, Any] | None = None,
        *,
        parent: Any = None,
        headers: Mapping[str, str] = NO_HEADERS,
        earlier: str = "",
        fields: Mapping[str, str] | None = None,
        spanned: bool = True,
        whole: bool = False,
    ) -> None:
        self._kind, self._telemetry, self._fields = kind, telemetry, fields or NO_HEADERS
        self.labels, self.more = labels, details if details is not None else {}
        self.span: Any = None
        self._here: Here | None = None
        self._whole: tuple[str, Any, int] | None = None
        if spanned and (recorder := telemetry.recorder) is not None:
            if whole:
                self._whole = name, parent, time.time_ns()
            else:
                self._begun = labels | self.more
                self.span = recorder.begin(kind, name, self._begun, parent, headers, earlier)
        self._started = time.monotonic()

    def __enter__(self) -> None:
        recorder = self._telemetry.recorder
        if self._here is None:
            self._here = Here(self._telemetry, self._fields, self.span)
        self._entered = HERE.set(self._here), recorder and recorder.enter(self.span)

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        was, token = self._entered
        try:
            HERE.reset(was)
        except ValueError:  # its task was thrown away, and this is said from elsewhere: there is nothing to take back
            return
        if self._telemetry.recorder is not None:
            self._telemetry.recorder.leave(token)

    def headers(self) -> dict[str, str]:
        """The W3C headers that carry the act on; none where nothing is traced."""
        recorder = self._telemetry.recorder
        return recorder.headers(self.span) if recorder is not None and self.span is not None else {}

    def end(self, fault: BaseException | None = None, failed: bool = False) -> float:
        """The act is over, by a fault if one is given; answers how many seconds it took."""
        seconds = time.monotonic() - self._started
        if (recorder := self._telemetry.recorder) is not None:
            new: Mapping[str, Any] = NO_HEADERS
            if self.span is not None:
                begun = self._begun
                new = {name: value for name, value in self.labels.items() if name not in begun}
                if self.more:
                    new |= {name: value for name, value in self.more.items() if name not in begun}
            elif self._whole is not None:
                name, parent, began = self._whole
                self.span = recorder.begin(self._kind, name, self.labels | self.more, parent, NO_HEADERS, "", began)
            recorder.end(self._kind, self.span, seconds, self.labels, new, failed or fault is not None)
        return seconds


def code_of(fault: BaseException | None) -> str:
    """The label of how something ended: OK, the reason of an A2AError, CANCELED when nobody waits any more."""
    if fault is None:
        return OK
    if isinstance(fault, A2AError):
        return fault.reason
    return "CANCELED" if isinstance(fault, asyncio.CancelledError | GeneratorExit) else "INTERNAL_ERROR"


def through(wire: Any, entry: v1.AgentInterface) -> Any:
    """A client's wire, watched if what uses it is."""
    here = HERE.get()
    return wire if here is None else here.telemetry.through(wire, entry)
