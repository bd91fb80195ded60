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

from a2a_grpc.call import REST
from tests.bench.connections import Http1, Http2, grpc_messages
from tests.bench.load import Battery, request_for
from tests.bench.plan import SCENARIOS, WIRES, Load, groups, loads

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
    assert all(ratio.subject.wire == ratio.base.wire for ratios in planned for ratio in ratios)


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
    assert [row["wire"] for row in rows if row["subject"] == "get, memory"] == list(WIRES)
    assert all(row["rate"] > 0 and row["server_us"] > 0 for row in rows)
    assert done.stdout.count("| get, memory | get, bare |") == len(WIRES)
