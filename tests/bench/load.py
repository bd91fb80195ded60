"""One load: its requests, its open connections, and how it is fired.

Laws: every request is made before the clock runs, and every answer is checked against one that was seen before it:
as many events, about as many bytes. A wrong answer ends the run.
"""

import asyncio
import re
import time
from collections.abc import Callable, Sequence
from itertools import cycle
from typing import Any, Final, NamedTuple

from a2a_stubs import v03_grpc, v1, v1_grpc
from google.protobuf.message import Message

from a2a_grpc import v03
from a2a_grpc.bindings import jsonrpc, rest
from a2a_grpc.call import GRPC, JSONRPC, V1
from a2a_grpc.v03_names import METHOD_NAMES
from tests.bench.connections import Http1, Http2, grpc_messages, grpc_request, http1
from tests.bench.plan import LIST, SCENARIOS, Load
from tests.bench.programs import PROGRAMS, Asked

CALLS_PER_CONNECTION: Final = 32
"""gRPC calls that share a connection; HTTP/1.1 has one connection for each."""

TOLERANCE: Final = 0.1
"""By what share the size of an answer may differ from that of the first one: times and numbers vary."""

_EVENT: Final = re.compile(rb"(?:id: \d+\n)?data: [^\n]*\n\n")


class Sample(NamedTuple):
    """What one firing showed. rate: calls or events in a second; server_us: CPU time of the server for each, in
    microseconds; client_busy: the client's share of its core; middle, slow: milliseconds until a call was answered to
    its end, of half the calls and of 99 in 100."""

    rate: float
    server_us: float
    client_busy: float
    middle: float
    slow: float


def message_for(load: Load, task_id: str = "") -> Message:
    """The v1.0 request of a load."""
    scenario = SCENARIOS[load.scenario]
    text, raw = scenario.text, scenario.raw
    if scenario.operation == LIST:
        return v1.ListTasksRequest(page_size=50)
    if not text:
        return v1.GetTaskRequest(id=task_id)
    parts = [v1.Part(text=text), v1.Part(raw=bytes(raw))] if raw else [v1.Part(text=text)]
    return v1.SendMessageRequest(message=v1.Message(message_id="m-1", role=v1.ROLE_USER, parts=parts))


def request_for(load: Load, message: Message, host: str, path: str = "", below: str = "") -> Any:
    """The bytes of a request. path: instead of the one that wire and operation have; below: what that begins with."""
    operation, old = SCENARIOS[load.scenario].operation, load.version != V1
    if load.wire == GRPC:
        name = METHOD_NAMES[operation] if old else operation
        row = next(row for row in (v03_grpc if old else v1_grpc).METHODS if row.name == name)
        sent = v03.down_request(message) if old else message
        told = {"a2a-version": load.version}
        if load.program:
            return Asked(path or row.path, told, sent, row.output, row.server_streaming)
        return grpc_request(host, path or row.path, told, sent.SerializeToString())
    if load.wire == JSONRPC:
        verb, own = "POST", below or "/"
        headers, body = jsonrpc.request(operation, message, 1, load.version)
    else:
        verb, own, headers, body = rest.request(operation, message, version=load.version)
        own = below + own
    if load.program:
        return Asked(path or own, dict(headers), verb=verb, body=body)
    return http1(verb, host, path or own, headers, body)


def answers_in(load: Load, body: bytes) -> list[bytes]:
    """The messages, the events or the one body of an answer."""
    if load.wire == GRPC:
        return grpc_messages(body)
    return _EVENT.findall(body) if SCENARIOS[load.scenario].events else [body]


class Battery:
    """A load with its connections open. requests: sent in turns; cpu: tells the CPU seconds of the server so far."""

    def __init__(self, load: Load, requests: Sequence[Any], cpu: Callable[[], float]) -> None:
        self._load = load
        self._requests = cycle(requests)
        self._cpu = cpu
        self._connections: list[Any] = []
        self.answers: list[bytes] = []
        """What the first call was answered with."""

    async def open(self, host: str) -> None:
        """Connect, and make one call to see a right answer."""
        self._host = host
        await self._connect()
        seen: asyncio.Future[tuple[bool, bytes]] = asyncio.get_running_loop().create_future()
        self._connections[0].call(next(self._requests), lambda good, body: seen.set_result((good, body)))
        good, body = await asyncio.wait_for(seen, 60)
        self.answers = answers_in(self._load, body)
        if not good or not self.answers:
            raise RuntimeError(f"{self._load} over {self._load.wire} was answered with {body[:500]!r}")
        self._size = len(body)

    async def _connect(self) -> None:
        """Have as many connections as are needed; some servers close those that were idle."""
        self._connections = [made for made in self._connections if not made.transport.is_closing()]
        name, _, port = self._host.rpartition(":")
        at_once, grpc = SCENARIOS[self._load.scenario].at_once, self._load.wire == GRPC
        if self._load.program:  # which holds as many as it needs
            self._connections = self._connections or [PROGRAMS[grpc](self._host)]
        while not self._load.program and len(self._connections) < (
            -(-at_once // CALLS_PER_CONNECTION) if grpc else at_once
        ):
            made = await asyncio.get_running_loop().create_connection(Http2 if grpc else Http1, name, int(port))
            self._connections.append(made[1])

    def close(self) -> None:
        """Disconnect."""
        for connection in self._connections:
            connection.transport.abort()

    async def fire(self, seconds: float, least: int = 0) -> Sample:
        """Keep as many calls in flight as the scenario says, for `seconds` and until the last one is answered; at least
        one call for each, and `least` in all."""
        await self._connect()
        scenario = SCENARIOS[self._load.scenario]
        over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        calls, flying, waits = 0, scenario.at_once, list[float]()
        cpu, own, begun = self._cpu(), time.process_time(), time.perf_counter()
        end = begun + seconds

        def lane(call: Callable[[Any, Any], None]) -> None:
            asked = time.perf_counter()

            def done(good: bool, body: bytes) -> None:
                nonlocal calls, flying, asked
                calls += 1
                now = time.perf_counter()
                waits.append(now - asked)
                asked = now
                if not good or not self._right(body):
                    if not over.done():
                        over.set_exception(RuntimeError(f"{self._load} over {self._load.wire}: {body[:500]!r}"))
                elif now < end or calls < least:
                    call(next(self._requests), done)
                else:
                    flying -= 1
                    if not flying and not over.done():
                        over.set_result(None)

            call(next(self._requests), done)

        for number in range(flying):
            lane(self._connections[number % len(self._connections)].call)
        await over
        wall, own = time.perf_counter() - begun, time.process_time() - own
        units = calls * (len(self.answers) if scenario.events else 1)
        waits.sort()
        middle, slow = (waits[int(len(waits) * share)] * 1e3 for share in (0.5, 0.99))
        return Sample(units / wall, (self._cpu() - cpu) * 1e6 / units, own / wall, middle, slow)

    def _right(self, body: bytes) -> bool:
        near = abs(len(body) - self._size) <= self._size * TOLERANCE
        return near and (len(self.answers) == 1 or len(answers_in(self._load, body)) == len(self.answers))
