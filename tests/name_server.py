"""A name server that changes its mind, and a machine of its own for it: the program `python -m tests.name_server`.

Laws: the program lives in namespaces that `apart` makes, with a network that has the loopback alone and a resolver
configuration that names this server, so that names are looked up the way they are in production, and nothing of the
machine's own is touched. What it finds it prints as JSON.
"""

import asyncio
import fcntl
import ipaddress
import json
import shutil
import socket
import struct
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from aiohttp import web

from a2a_grpc.config import Options
from a2a_grpc.python310_asyncio import timeout
from a2a_grpc.server import Server
from tests.receivers import PATIENCE
from tests.test_push import hook, send, worker

PUBLIC, INSIDE, SERVER = "203.1.113.7", "127.0.0.1", "127.0.0.53"
ANSWERS: dict[str, Sequence[Sequence[str]]] = {
    "steady.example": [[PUBLIC]],
    "flips.example": [[PUBLIC], [INSIDE]],
    "mixed.example": [[INSIDE, PUBLIC]],
    "inside.example": [[INSIDE]],
    "mapped.example": [["::ffff:127.0.0.1", "::1"]],
}
"""What each name stands for, one time after the other; the last for ever."""


class NameServer(asyncio.DatagramProtocol):
    """Answers over UDP with a time to live of nothing. asked: how often each name was."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()

    def connection_made(self, transport: Any) -> None:
        """Begin."""
        self._transport = transport

    def datagram_received(self, data: bytes, address: Any) -> None:
        """Answer one question, for addresses of either family."""
        end = data.index(0, 12)
        question, (kind,) = data[12 : end + 5], struct.unpack_from(">H", data, end + 1)
        labels, at = [], 12
        while data[at]:
            labels.append(data[at + 1 : at + 1 + data[at]].decode())
            at += 1 + data[at]
        name = ".".join(labels).lower()
        known = ANSWERS.get(name, [[]])
        found = [ipaddress.ip_address(one) for one in known[min(self.asked[name, 1], len(known) - 1)]]
        records = [one.packed for one in found if kind == {4: 1, 6: 28}[one.version]]
        self.asked[name, kind] += 1
        head = data[:2] + struct.pack(">HHHHH", 0x8180 if name in ANSWERS else 0x8183, 1, len(records), 0, 0)
        body = b"".join(struct.pack(">HHHIH", 0xC00C, kind, 1, 0, len(one)) + one for one in records)
        self._transport.sendto(head + question + body, address)


async def outcomes() -> dict[str, Any]:
    """What became of webhooks at each name: the addresses at which they arrived, and what was said of those that did
    not; a second time by a server that was started again. asked: how often each name was looked up."""
    names, told = NameServer(), dict[str, Any]()
    arrived: list[str] = []

    async def take(request: web.BaseRequest) -> web.Response:
        assert request.transport is not None
        arrived.append(request.transport.get_extra_info("sockname")[0])
        return web.Response(headers={"Connection": "close"})

    loop = asyncio.get_running_loop()
    await loop.create_datagram_endpoint(lambda: names, (SERVER, 53))
    listener = await loop.create_server(web.Server(take), "0.0.0.0", 0)
    port = listener.sockets[0].getsockname()[1]
    options = Options(grpc="", http="", store="memory:", push_notifications=True, grace=0.0)
    for name in ANSWERS:
        told[name] = []
        for _ in range(2):
            arrived.clear()
            async with Server(worker, options) as server, timeout(PATIENCE):
                await send(server, "ask", hook(f"http://{name}:{port}/"))
                while (left := await server.store.backlog(("", ""), 9, False)) and not left[0].said:  # noqa: ASYNC110
                    await asyncio.sleep(0.02)
                told[name].append([sorted({*arrived}), left[0].said if left else ""])
    told["asked"] = {name: sum(times for (one, _), times in names.asked.items() if one == name) for name in ANSWERS}
    listener.close()
    return told


def _interface(name: bytes, address: str) -> None:
    """Give an interface an address, and switch it on."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as handle:
        place = struct.pack(">16sHH4s8x", name, 0, 0, socket.inet_aton(address))
        fcntl.ioctl(handle, 0x8916, place[:16] + struct.pack("=H", socket.AF_INET) + place[18:])  # SIOCSIFADDR
        fcntl.ioctl(handle, 0x8914, struct.pack("=16sH14x", name, 1))  # SIOCSIFFLAGS, IFF_UP


def apart(folder: Path) -> dict[str, Any] | None:
    """What `outcomes` finds, in namespaces of its own; None where there can be none."""
    if shutil.which("unshare") is None or subprocess.run(["unshare", "-rmn", "true"], capture_output=True).returncode:
        return None
    (folder / "resolv.conf").write_text(f"nameserver {SERVER}\noptions timeout:5 attempts:2\n")
    script = 'mount --bind "$1" /etc/resolv.conf && exec "$2" -m tests.name_server'
    words = ["unshare", "-rmn", "sh", "-c", script, "sh", str(folder / "resolv.conf"), sys.executable]
    done = subprocess.run(words, capture_output=True, text=True, timeout=2 * PATIENCE)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


if __name__ == "__main__":
    _interface(b"lo", INSIDE)
    _interface(b"lo:1", PUBLIC)
    print(json.dumps(asyncio.run(outcomes())))
