"""The bench itself: it reads answers however they are cut, refuses wrong ones, and measures every wire."""

import asyncio
import json
import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from a2a_stubs import v1

from a2a_grpc.call import GRPC, JSONRPC, REST
from tests.bench import page
from tests.bench.__main__ import machine
from tests.bench.connections import Http1, Http2, grpc_messages
from tests.bench.curves import CURVES
from tests.bench.load import Battery, request_for
from tests.bench.plan import SCENARIOS, WIRES, Load, groups, loads
from tests.bench.process import Process
from tests.bench.readers import about_readers

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"


class Writes(list[bytes]):
    """A transport that keeps what is written to it."""

    write = list.append


def fed(connection: Http1 | Http2, data: bytes, request: object) -> list[tuple[bool, bytes]]:
    """What one call ends with when its answer arrives byte by byte."""
    ends: list[tuple[bool, bytes]] = []
    connection.connection_made(Writes())
    connection.call(request, lambda good, body: ends.append((good, body)))  # type: ignore[arg-type]
    for at in range(len(data)):
        connection.data_received(data[at : at + 1])
    return ends


def frame(kind: int, flags: int, payload: bytes = b"") -> bytes:
    return struct.pack(">I", len(payload))[1:] + bytes((kind, flags)) + struct.pack(">I", 1) + payload


@pytest.mark.parametrize(
    ("answer", "body"),
    [
        (HEAD + b"Content-Length: 5\r\n\r\nhello", b"hello"),
        (HEAD + b"Content-Length: 0\r\n\r\n", b""),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", b"2\r\n{}\r\n0\r\n\r\n"),
    ],
)
def test_an_http_answer_ends_where_it_says(answer: bytes, body: bytes) -> None:
    assert fed(Http1(), answer, b"") == [(True, body)]


def test_another_status_than_200_is_no_good_answer() -> None:
    assert fed(Http1(), b"HTTP/1.1 503 No\r\nContent-Length: 2\r\n\r\nno", b"") == [(False, b"no")]


def test_a_grpc_answer_is_its_messages_and_an_error_has_none() -> None:
    message = b"\0" + struct.pack(">I", 3) + b"abc"
    pieces = frame(1, 4) + frame(0, 0, message) + frame(0, 0, message[:2]) + frame(0, 0, message[2:])
    assert fed(Http2(), frame(4, 0) + pieces + frame(1, 5), (b"", b"")) == [(True, message * 2)]
    assert grpc_messages(message * 2) == [b"abc", b"abc"]
    assert fed(Http2(), frame(1, 5), (b"", b"")) == [(False, b"")]


def test_every_scenario_is_measured_over_every_wire_beside_its_base() -> None:
    planned = groups()
    measured = {(load.scenario, load.wire) for ratios in planned for load in loads(ratios)}
    assert measured == {(name, wire) for name, scenario in SCENARIOS.items() for wire in scenario.wires}
    assert all(ratio.base.wire in (ratio.subject.wire, GRPC) for ratios in planned for ratio in ratios)
    assert all(len(set(ratios)) == len(ratios) for ratios in planned)


class Answers(asyncio.Protocol):
    """A server whose first answer is right and whose others are not; `left` tells when its last reader is gone."""

    bodies = [b"the right answer", b"an error"]
    readers = 0

    def __init__(self, left: asyncio.Event) -> None:
        self._left = left

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        Answers.readers += 1

    def connection_lost(self, fault: Exception | None) -> None:
        Answers.readers -= 1
        if not Answers.readers:
            self._left.set()

    def data_received(self, data: bytes) -> None:
        body = self.bodies.pop(0) if len(self.bodies) > 1 else self.bodies[0]
        self._transport.write(HEAD + b"Content-Length: %d\r\n\r\n%b" % (len(body), body))  # type: ignore[attr-defined]


async def test_a_wrong_answer_ends_the_run() -> None:
    load, left = Load("memory", "get", REST), asyncio.Event()
    server = await asyncio.get_running_loop().create_server(lambda: Answers(left), "127.0.0.1", 0)
    host = "127.0.0.1:{1}".format(*server.sockets[0].getsockname())
    battery = Battery(load, [request_for(load, v1.GetTaskRequest(id="t"), host)], lambda: 0.0)
    await battery.open(host)
    with pytest.raises(RuntimeError, match="an error"):
        await battery.fire(60)
    battery.close()
    await left.wait()
    server.close()


def test_a_short_run_prints_and_writes_a_row_for_each_wire(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.bench", "--only", "get", "--rounds", "1", "--seconds", "0.05"]
    root = Path(__file__).parents[2]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(("generated", "."))}
    done = subprocess.run(
        [*command, "--json", str(tmp_path / "out.json")], cwd=root, env=environment, capture_output=True, text=True
    )
    assert not done.returncode, done.stderr
    rows = json.loads((tmp_path / "out.json").read_text())["rows"]
    told = [(row["base"], row["wire"]) for row in rows if row["subject"] == "get, memory"]
    assert [wire for base, wire in told if base == "get, bare"] == list(WIRES)
    assert [wire for base, wire in told if base == "get, lowest"] == [JSONRPC, REST]
    assert all(row["rate"] > 0 and row["server_us"] > 0 for row in rows)
    assert done.stdout.count("| get, memory | get, bare |") == len(WIRES)


async def test_readers_are_measured_beside_a_bare_server_that_tells_as_much(tmp_path: Path) -> None:
    rows = await about_readers(tmp_path, 3)
    assert [row["wire"] for row in rows] == [GRPC, JSONRPC]
    assert all(row["ratio"] > 0 and row["base_server_us"] > 0 for row in rows)
    assert page.PARTS["readers"]({"readers": rows}).count("| 3 |") == 2


async def test_every_curve_is_measured() -> None:
    server = Process(None, "memory")
    try:
        for curve in CURVES:
            spent, units = await curve.measure(server, 3)
            assert spent > 0 and units >= 3, curve
    finally:
        server.stop()


def test_the_page_has_a_place_for_each_table_and_keeps_what_was_not_measured() -> None:
    text = page.PAGE.read_text()
    assert [name for name in page.PARTS if text.count(f"<!-- measured: {name} -->\n\n") != 1] == []
    cost = {"grows": "tasks", "unit": "echo", "sizes": (1, 1000), "server_us": [2.0, 4.0], "bend": 2.0}
    row = dict.fromkeys(("subject", "base", "wire"), "x") | {"goal": None, "client_busy": 0.5}
    row |= dict.fromkeys(
        ("rate", "ratio", "lowest", "highest", "server_us", "base_server_us", "middle_ms", "slow_ms"), 1.0
    )
    found = {"about": machine(), "rounds": 1, "seconds": 0.5, "rows": [row], "curves": [cost]}
    made = page.written(text, found)
    assert "| tasks | 1, 1,000 | echo | 2.0, 4.0 | 2.00 |" in made and "client used 0.50 of its core" in made
    assert "| x | x | x | 1 | 1.00 (1.00..1.00) |  | 1 | 1 | 1.0 | 1.0 |" in made
    assert page.written(made, found) == made and page.bent(found) == ["tasks: 2.00"]
    kept = text.partition("<!-- measured: idle -->")[2].partition("<!-- end -->")[0]
    assert kept.strip() and kept in made and page.written(text, {}) == text
