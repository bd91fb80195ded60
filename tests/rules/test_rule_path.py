"""Law 2: a call reaches the author's function by a short way, on every wire and version."""

import asyncio
import gc
import json
import re
import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from types import FrameType
from typing import Any

import grpc.aio
import pytest
from a2a_stubs import v03, v03_grpc, v1, v1_grpc

from a2a_grpc.agent import Agent
from a2a_grpc.bindings.jsonrpc import JsonRpc
from a2a_grpc.bindings.rest import Rest
from a2a_grpc.bindings.wire import HttpReply, HttpRequest
from a2a_grpc.call import GRPC, JSONRPC, REST, V03, V1
from a2a_grpc.server import Server
from a2a_grpc.testing import serve
from tests.rules.floors import floor_of
from tests.rules.sources import PACKAGE

PARTS = {
    "bindings/.*": "binding",
    "service.py": "service",
    "tasks/(engine|start).py": "engine",
    "tasks/(run|commits|invoke).py": "run",
}
"""The parts that a call passes through, as the design names them, and their files; another file is a part by itself."""
MOST_HAND_OVERS = 4
"""From part to part, the last to the author's function."""
MOST_FILES = 12
"""Files that act on the way: neither vocabulary (floor 1) nor what is handed in."""
PYTHON = {"python310.py", "python310_asyncio.py"}
"""They stand for the standard library, where that is older."""
WAITING = ("tasks/run.py", "tasks/start.py")
"""Where a call waits for its turn, which has a step of its own before Python 3.12: this is not on the way there."""
HANDED_IN = {
    "tasks/memory.py",
    "tasks/fence.py",
    "tasks/bus.py",
    "bindings/streams.py",
    "bindings/grpc.py",
    "server.py",
}
"""Behind the protocols Store and Bus; the host of gRPC, as those of HTTP are left out here; and the host's answer to
whether it takes another call."""
MOST_FILES_IN_ALL = 24
"""Files in which any function runs; may only be lowered."""
NEW = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "hello"}]}
OLD = {"kind": "message", "messageId": "m", "role": "user", "parts": [{"kind": "text", "text": "hello"}]}
HTTP = {
    (JSONRPC, V1): ("/", {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": NEW}}),
    (JSONRPC, V03): ("/", {"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": {"message": OLD}}),
    (REST, V1): ("/message:send", {"message": NEW}),
    (REST, V03): ("/v1/message:send", {"message": OLD}),
}


def own_file(code_file: str) -> str:
    """The name of a file of the package below it, "" for others."""
    path = Path(code_file)
    return str(path.relative_to(PACKAGE)) if path.is_relative_to(PACKAGE) else ""


def awaited(coroutine: Any) -> Iterator[str]:
    """Files of the frames that a suspended coroutine consists of, outermost first."""
    while coroutine is not None:
        if hasattr(coroutine, "cr_frame"):
            if coroutine.cr_frame:
                yield own_file(coroutine.cr_frame.f_code.co_filename)
            coroutine = coroutine.cr_await
        else:  # what `__await__` of a coroutine gives hides it from everything but the collector
            held = gc.get_referents(coroutine) if "coroutine_wrapper" in type(coroutine).__name__ else ()
            coroutine = next((each for each in held if hasattr(each, "cr_frame")), None)


def part_of(file: str) -> str:
    """The part that a file belongs to."""
    return next((part for pattern, part in PARTS.items() if re.fullmatch(pattern, file)), file)


def calling(frame: FrameType | None) -> Iterator[str]:
    """Files of the frames that lead to a running function, outermost first."""
    files = []
    while frame:
        files.append(own_file(frame.f_code.co_filename))
        frame = frame.f_back
    return reversed(files)


class Trip:
    """What is seen of one call until the author's function begins."""

    def __init__(self) -> None:
        self.files: set[str] = set()
        self.way: list[str] = []

    def _see(self, frame: FrameType, event: str, _: object) -> None:
        if event == "call" and (name := own_file(frame.f_code.co_filename)):
            self.files.add(name)

    def begin(self) -> None:
        self.files.clear()
        sys.setprofile(self._see)

    def arrive(self) -> None:
        sys.setprofile(None)
        chains = [list(awaited(task.get_coro())) for task in asyncio.all_tasks()]
        outer = next((chain for chain in chains if any(name.startswith("bindings/") for name in chain)), [])
        while outer and outer[-1] in WAITING:
            outer.pop()
        parts = [part_of(name) for name in (*outer, *calling(sys._getframe(2))) if name]
        self.way = [*(part for part, _ in groupby(parts)), "function"]


async def send(server: Server, binding: str, version: str) -> str:
    """Send "hello" by the way given; answers the bytes that came back, as text."""
    if binding != GRPC:
        path, body = HTTP[binding, version]
        headers = {"content-type": "application/json", "a2a-version": version}
        wire = {JSONRPC: JsonRpc, REST: Rest}[binding](server.service, server.options)
        answer = await wire.answer(HttpRequest("POST", path, "", headers, json.dumps(body).encode()))
        assert isinstance(answer, HttpReply)
        return answer.body.decode()
    async with grpc.aio.insecure_channel(server.grpc_address) as channel:
        if version == V1:
            message = v1.Message(message_id="m", role=v1.ROLE_USER, parts=[v1.Part(text="hello")])
            stub: Any = v1_grpc.A2AServiceStub(channel)
            return str(await stub.SendMessage(v1.SendMessageRequest(message=message), metadata=[("a2a-version", V1)]))
        old = v03.Message(message_id="m", role=v03.ROLE_USER, content=[v03.Part(text="hello")])
        request = v03.SendMessageRequest(request=old, configuration=v03.SendMessageConfiguration(blocking=True))
        return str(await v03_grpc.A2AServiceStub(channel).SendMessage(request))


@pytest.mark.parametrize("version", [V1, V03])
@pytest.mark.parametrize("binding", [JSONRPC, REST, GRPC])
async def test_a_call_reaches_the_function_by_a_short_way(binding: str, version: str) -> None:
    trip = Trip()
    agent = Agent(name="Near", description="Tells how it was reached.", version="1.0.0", skills=[])

    @agent.handle
    async def answer(task: Any) -> str:
        trip.arrive()
        return "reached"

    async with serve(agent, deduplicate="off") as server:
        await send(server, binding, version)  # what is made once is made now
        trip.begin()
        try:
            assert "reached" in await send(server, binding, version)
        finally:
            sys.setprofile(None)
    assert trip.way[:2] == ["binding", "service"], trip.way
    assert len(trip.way) - 1 <= MOST_HAND_OVERS, " > ".join(trip.way)
    names = {file: file.removesuffix(".py").replace("/", ".") for file in trip.files - PYTHON}
    acting = [file for file, name in names.items() if (floor_of(name) or 5) > 1 and file not in HANDED_IN]
    assert len(acting) <= MOST_FILES, "\n  ".join(["", *sorted(acting)])
    assert len(names) <= MOST_FILES_IN_ALL, "\n  ".join(["", *sorted(names)])
