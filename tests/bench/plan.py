"""What is measured, and against what: one table.

Laws: a row is a scenario on a server, said once for every wire; rows for single wires are computed. Goals are shares of
the base measured in the same run, never absolute numbers: they mean the same on every machine.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from a2a_grpc.call import GRPC, JSONRPC, REST, V03, V1

WIRES: Final = (GRPC, JSONRPC, REST)

SEND: Final = "SendMessage"
STREAM: Final = "SendStreamingMessage"
GET: Final = "GetTask"
LIST: Final = "ListTasks"

MIB: Final = 1024 * 1024


class Scenario(NamedTuple):
    """One kind of call. text: what is sent, empty for a call about stored tasks; at_once: calls in flight; events:
    whether events are counted instead of calls; raw: bytes of a file in the message; wires: those that it is sent over.
    """

    operation: str
    text: str
    at_once: int
    events: bool = False
    raw: int = 0
    wires: tuple[str, ...] = WIRES


SCENARIOS: Final[Mapping[str, Scenario]] = {
    "echo": Scenario(SEND, "echo hello", 32),
    "reply": Scenario(SEND, "reply hello", 32),
    "get": Scenario(GET, "", 32),
    "list 50": Scenario(LIST, "", 32),
    "one echo": Scenario(SEND, "echo hello", 1),
    "one get": Scenario(GET, "", 1),
    "1 MiB": Scenario(SEND, "reply hello", 8, raw=MIB, wires=(JSONRPC, REST)),
    "one event": Scenario(STREAM, "chunks 1", 1),
    "stream 200": Scenario(STREAM, "chunks 200", 16, events=True),
    "paced 200": Scenario(STREAM, "paced 200", 16, events=True),
    "artifact 10000": Scenario(STREAM, "chunks 10000", 1, events=True),
    "artifact 100": Scenario(STREAM, "chunks 100", 1, events=True),
}
"""The words are those that the agent in servers.py obeys. Paced chunks come one by one, as from a model; the others
as fast as the agent can write. `list 50` is a page of `STORED` tasks; the client of HTTP/2 sends no large messages."""

STORED: Final = 10_000
"""Tasks on the server `listed`."""


class Load(NamedTuple):
    """A scenario sent to one server over one wire. server: one of `PREPARED`, `memory`, `sqlite`, `watched` (`memory`
    with every span and measure recorded), `asyncio` (`memory` without uvloop), `unaided` (without pybase64 either),
    `listed` (`memory` with many tasks), `gateway` (one in front of `memory`, which it calls over gRPC), `apart` (that
    on another core, beside the client), `over-http` (a gateway that calls it over JSON-RPC), or `sdk1` and
    `node1`, the official SDKs, which are measured in full runs where they are installed. program: whether the caller is
    a program of grpcio or aiohttp instead of the light client."""

    server: str
    scenario: str
    wire: str = ""
    version: str = V1
    program: bool = False

    def __str__(self) -> str:
        old = "" if self.version == V1 else " v0.3"
        return f"{self.scenario}, {self.server}{old}{', program' * self.program}"


PREPARED: Final = ("bare", "lowest")
"""The servers with prepared answers: the libraries as they are set up by whoever uses them, and the lowest level of
aiohttp that there is."""

BELOW: Final[Mapping[str, Mapping[str, str]]] = {name: {JSONRPC: "/rpc", REST: "/rest"} for name in ("sdk1", "node1")}
"""Where the wires of a server begin, unless that is at the root."""


class Ratio(NamedTuple):
    """What is compared. goal: the least share of the base's rate that is aimed at, None for no goal. unit: where not
    rates count but how much longer a call takes than at the base, in latencies of this; goal is the most then."""

    subject: Load
    base: Load
    goal: float | None
    unit: Load | None = None


def _http(goal: float) -> dict[str, float]:
    return {JSONRPC: goal, REST: goal}


_DIRECT: Final = ("memory", "bare")

_LOWEST: Final = tuple((Load("memory", name), Load("lowest", name), {}) for name in ("echo", "reply", "get", "1 MiB"))

_ROWS: Final[tuple[tuple[Load, Load, Mapping[str, float]], ...]] = (
    (Load("memory", "echo"), Load("bare", "echo"), {GRPC: 0.75} | _http(0.35)),
    (Load("memory", "echo", version=V03), Load("memory", "echo"), {JSONRPC: 0.8}),
    (Load("sqlite", "echo"), Load("memory", "echo"), {GRPC: 0.6} | _http(0.6)),
    (Load("watched", "echo"), Load("memory", "echo"), {}),
    (Load("asyncio", "echo"), Load("memory", "echo"), {}),
    (Load("memory", "echo"), Load("sdk1", "echo"), {GRPC: 4} | _http(6)),
    (Load("memory", "echo"), Load("node1", "echo"), {GRPC: 1.5} | _http(2.5)),
    (Load("memory", "reply"), Load("bare", "reply"), _http(0.5)),
    (Load("memory", "get"), Load("bare", "get"), {GRPC: 0.95} | _http(0.75)),
    (Load("memory", "get"), Load("sdk1", "get"), {GRPC: 1.3} | _http(3)),
    (Load("memory", "get"), Load("node1", "get"), _http(4)),
    (Load("listed", "list 50"), Load("bare", "list 50"), {GRPC: 0.8, REST: 0.6}),
    (Load("memory", "1 MiB"), Load("bare", "1 MiB"), {JSONRPC: 0.75}),
    (Load("unaided", "1 MiB"), Load("memory", "1 MiB"), {}),
    (Load("memory", "one event"), Load("bare", "one event"), {}),
    (Load("memory", "stream 200"), Load("bare", "stream 200"), {GRPC: 0.8} | _http(0.25)),
    (Load("memory", "paced 200"), Load("bare", "stream 200"), {}),
    (Load("gateway", "echo"), Load("memory", "echo"), {}),
    (Load("gateway", "get"), Load("memory", "get"), {}),
    (Load("gateway", "one event"), Load("memory", "one event"), {}),
    (Load("gateway", "stream 200"), Load("memory", "stream 200"), {GRPC: 0.5} | _http(0.5)),
    (Load("apart", "stream 200"), Load("memory", "stream 200"), {GRPC: 0.5} | _http(0.5)),
    (Load("gateway", "stream 200"), Load("memory", "stream 200", GRPC), {GRPC: 0.5} | _http(0.5)),
    (Load("apart", "stream 200"), Load("memory", "stream 200", GRPC), {GRPC: 0.5} | _http(0.5)),
    (Load("over-http", "stream 200"), Load("memory", "stream 200"), {GRPC: 0.5} | _http(0.5)),
    (Load("envoy", "echo"), Load("memory", "echo"), {GRPC: 3.0}),
    (Load("envoy", "get"), Load("memory", "get"), {GRPC: 3.0}),
    (Load("envoy", "stream 200"), Load("memory", "stream 200"), {GRPC: 2.5}),
    (Load("sqlite", "artifact 10000"), Load("bare", "artifact 10000"), {}),
    (Load("sqlite", "artifact 10000"), Load("memory", "artifact 10000"), {GRPC: 0.5} | _http(0.5)),
    (Load("sqlite", "artifact 10000"), Load("sqlite", "artifact 100"), {GRPC: 0.8} | _http(0.8)),
)
"""A wire of a base that is named here stays: an agent that speaks gRPC alone can be called in no other way, so that is
what callers of a gateway before it would do without it."""

_ADDED: Final = tuple(
    (Load("gateway", name, program=program), *(Load(base, name, GRPC * program, program=program) for base in _DIRECT))
    for name in ("one echo", "one get")
    for program in (False, True)
)
"""What takes longer than what, in latencies of the last."""

MOST_ADDED: Final = 1.5


def groups(only: str = "") -> list[list[Ratio]]:
    """The ratios of each scenario and wire; what is in one list is measured in turns. only: a part of the name of the
    scenarios wanted; default all."""
    found: dict[tuple[str, str], list[Ratio]] = {}
    rows = [(subject, base, None, goals) for subject, base, goals in (*_ROWS, *_LOWEST)]
    for subject, base, unit, goals in (*rows, *((*loads, dict.fromkeys(WIRES, MOST_ADDED)) for loads in _ADDED)):
        for wire in SCENARIOS[subject.scenario].wires:
            if wire == GRPC and base.server == "lowest":
                continue
            over = [load and load._replace(wire=load.wire or wire) for load in (subject, base, unit)]
            ratio = Ratio(over[0], over[1], goals.get(wire), over[2])
            group = subject.scenario.replace("paced", "stream"), wire
            if only in subject.scenario and ratio not in found.setdefault(group, []):
                found[group].append(ratio)
    return [ratios for ratios in found.values() if ratios]


def loads(ratios: list[Ratio]) -> list[Load]:
    """What has to be measured for some ratios, each once, bases first."""
    every = {load for ratio in ratios for load in (ratio.subject, ratio.base, ratio.unit) if load is not None}
    return sorted(every, key=lambda load: load.server)
