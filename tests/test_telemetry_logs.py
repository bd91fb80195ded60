"""Log lines: the ids of what they are about, nothing that was said and no credential, and their level changed."""

import asyncio
import hashlib
import json
import logging
import os
import re
import signal
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from a2a_stubs import v1
from aiohttp import web

from a2a_grpc import Agent, Client, Options, Server, TaskHandle
from a2a_grpc.auth import ApiKey
from a2a_grpc.call import GRPC, JSONRPC, REST, VERSIONS, Call
from a2a_grpc.errors import TaskNotFoundError, UnauthenticatedError
from a2a_grpc.gateway import Upstream
from a2a_grpc.telemetry_logs import SWITCH, Console, Json, begin
from tests.hosts import ENVOY, NEEDS_ENVOY
from tests.receivers import Got, receiver
from tests.test_cli import PATIENCE
from tests.test_cli import serving as serving_command
from tests.watched import Watch

SECRET, WORDS = "k3y-of-alice", "what nobody else may read"
TRACE = "0af7651916cd43dd8448eb211c80319c"
HEADERS = {"traceparent": f"00-{TRACE}-b7ad6b7169203331-01", "x-api-key": SECRET}

agent = Agent(name="Teller", description="Writes log lines.", version="1", skills=[])


@agent.handle
def work(task: TaskHandle) -> str:
    logging.getLogger("author").warning("at work")
    return "done"


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """What is written as JSON from now on."""
    found: list[str] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            found.append(self.format(record))

    handler = Keep()
    handler.setFormatter(Json())
    root = logging.getLogger()
    level = root.level
    root.addHandler(handler)
    yield found
    root.removeHandler(handler)
    root.setLevel(level)


def said(text: str) -> v1.SendMessageRequest:
    request = v1.SendMessageRequest()
    request.message.message_id, request.message.role = uuid.uuid4().hex, v1.ROLE_USER
    request.message.parts.add(text=text)
    return request


async def told(lines: list[str], binding: str, version: str, **more: Any) -> tuple[str, list[dict[str, Any]]]:
    """The id of a task that was worked on, and the lines written meanwhile."""
    options = Options(grpc="127.0.0.1:0", http="127.0.0.1:0", store="memory:", grace=0.1)
    gate, telemetry = ApiKey({hashlib.sha256(SECRET.encode()).hexdigest(): "alice"}), Watch(**more).telemetry
    async with (
        Server(agent, options, authenticators=gate, telemetry=telemetry) as server,
        Client(server.http_url, binding=binding, version=version, headers=HEADERS) as client,
    ):
        task = (await client.send(said(WORDS))).task
    return task.id, [json.loads(line) for line in lines]


@pytest.mark.parametrize("binding", [GRPC, JSONRPC, REST])
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.requirement("SEC-05", "SEC-07", "BL-53")
async def test_a_line_of_an_agent_has_task_context_caller_and_trace(
    lines: list[str], binding: str, version: str
) -> None:
    task_id, found = await told(lines, binding, version)
    [line] = [line for line in found if line["logger"] == "author"]
    assert line["task"] == task_id and line["caller"] == "alice" and line["trace_id"] == TRACE
    assert line["message"] == "at work" and line["level"] == "warning" and line["context"] and line["span_id"]
    assert SECRET not in "".join(lines) and WORDS not in "".join(lines)


@pytest.mark.requirement("SEC-05")
async def test_what_was_said_is_told_at_debug_level_only_and_callers_are_hashed(lines: list[str]) -> None:
    logging.getLogger().setLevel(logging.DEBUG)
    _, found = await told(lines, REST, "1.0", hash_callers=True)
    [line] = [line for line in found if line["logger"] == "a2a_grpc.calls"]
    assert re.fullmatch(rf"SendMessage over HTTP\+JSON 1.0: OK in [0-9.]+ ms; said: '{WORDS}'", line["message"])
    assert re.fullmatch("[0-9a-f]{12}", line["caller"])
    assert SECRET not in "".join(lines) and "alice" not in "".join(lines)


@pytest.mark.parametrize("level", [logging.DEBUG, logging.INFO])
@pytest.mark.requirement("SEC-05")
async def test_no_line_of_any_part_shows_a_secret_or_below_debug_what_was_said(lines: list[str], level: int) -> None:
    async def fails(_: Got) -> web.Response:
        raise RuntimeError("it is not for anybody to know")

    logging.getLogger().setLevel(level)
    here = {"grpc": "127.0.0.1:0", "http": "127.0.0.1:0", "store": "memory:", "grace": 0.1, "log_format": "json"}
    push = {"push_notifications": True, "push_allow": ("127.0.0.1/32",)}
    gate = ApiKey({hashlib.sha256(SECRET.encode()).hexdigest(): "alice"})
    async with receiver(fails) as there, Server(agent, Options(**here, **push), authenticators=gate) as server:
        for binding in (GRPC, JSONRPC, REST):
            for version in VERSIONS:
                upstream = Upstream(server.http_url, binding=binding, version=version, forward=["x-api-key"])
                async with Server(upstream, Options(**here)) as gateway:
                    for base in (server, gateway):
                        async with Client(base.http_url, binding=binding, version=version, headers=HEADERS) as client:
                            request = said(WORDS)
                            config = request.configuration.task_push_notification_config
                            config.url, config.token = f"{there.url}/{SECRET}?key={SECRET}", SECRET
                            config.authentication.scheme, config.authentication.credentials = "Bearer", SECRET
                            task = (await client.send(request)).task
                            assert [event async for event in client.stream(said(WORDS))]
                            await client.get(task.id)
                    async with Client(base.http_url, binding=binding, headers={"x-api-key": SECRET + "x"}) as client:
                        with pytest.raises(UnauthenticatedError):
                            await client.send(said(WORDS))
        await there.until(lambda: len(there.got) >= 6)
    every = "\n".join(lines)
    assert [line for line in lines if '"author"' in line] and SECRET not in every
    assert (WORDS in every) is (level == logging.DEBUG)


def test_lines_stand_alone_whatever_they_hold() -> None:
    odd = logging.LogRecord("a", logging.ERROR, "", 0, "%s", ('new\nline " \ud800',), None)
    try:
        raise ValueError("broken\nin two")
    except ValueError:
        odd.exc_info = sys.exc_info()
    line = Json().format(odd)
    assert "\n" not in line and json.loads(line)["fault"] == "ValueError" and "in two" in json.loads(line)["traceback"]
    assert re.fullmatch(
        r"[-0-9 :,]+ ERROR new\nline .*", Console().format(odd).split("Traceback")[0].strip(), re.DOTALL
    )


def test_a_line_that_begins_with_its_task_is_about_it() -> None:
    line = logging.LogRecord("a", logging.WARNING, "", 0, "task %s: its turn was %s", ("t-1", "lost"), None)
    assert json.loads(Json().format(line))["task"] == "t-1" and Console().format(line).endswith("lost [task=t-1]")
    other = logging.LogRecord("a", logging.WARNING, "", 0, "stream %s: cut off", ("/x",), None)
    assert "task" not in json.loads(Json().format(other))


@pytest.mark.requirement("SEC-05")
async def test_ids_that_callers_make_up_cannot_look_like_other_lines(
    monkeypatch: pytest.MonkeyPatch, lines: list[str]
) -> None:
    logging.getLogger().setLevel(logging.DEBUG)
    for handler in logging.getLogger().handlers:
        monkeypatch.setattr(handler, "formatter", Console())
    server = Server(agent, Options(store="memory:", log_format="json"))
    forged = "x\n2026-01-01 00:00:00,000 ERROR all is lost" + "." * 9000
    with pytest.raises(TaskNotFoundError):
        await server.service.GetTask(v1.GetTaskRequest(id=forged), Call("GetTask"))
    [line] = [line for line in lines if "GetTask over" in line]
    assert "\n" not in line and r"[task='x\n2026" in line and len(line) < 400


@pytest.mark.requirement("SEC-07")
async def test_lines_have_the_callers_trace_where_nothing_is_traced(lines: list[str]) -> None:
    options = Options(grpc="", http="127.0.0.1:0", store="memory:", log_format="json")
    async with Server(agent, options) as server, Client(server.http_url, headers=HEADERS) as client:
        await client.send(said(WORDS))
    [line] = [json.loads(line) for line in lines if '"author"' in line]
    assert line["trace_id"] == TRACE and "span_id" not in line


async def test_a_line_for_eyes_ends_with_its_ids(lines: list[str]) -> None:
    shown = Console()
    with Watch().telemetry.here():
        assert shown.format(logging.LogRecord("a", logging.INFO, "", 0, "plain", (), None)).endswith("INFO plain")


ENGINES = ["aio", pytest.param("envoy", marks=pytest.mark.skipif(not ENVOY, reason=NEEDS_ENVOY))]


@pytest.mark.parametrize("engine", ENGINES)
async def test_a_signal_switches_debug_lines_on_and_off(tmp_path: Path, engine: str) -> None:
    words = ("--store", "memory:", "--log-format", "json", "--engine", engine)
    async with serving_command(*words, cwd=tmp_path) as site:
        lines = site.process.stderr
        assert lines is not None
        found: list[str] = []

        async def until(logger: str) -> None:
            line = {"logger": ""}
            while line["logger"] != logger:
                line = json.loads(await asyncio.wait_for(lines.readline(), PATIENCE))
                found.extend([line["message"].partition("said: ")[2]] * (line["logger"] == "a2a_grpc.calls"))

        async with Client(site.url, binding=REST) as client:
            for text in ("first", "second", "third"):
                os.kill(site.process.pid, SWITCH)
                await until("a2a_grpc.telemetry_logs")
                await client.send(said(text))
            await until("a2a_grpc.calls")
    assert found == ["'first'", "'third'"]


@pytest.fixture
def usual() -> Iterator[None]:
    root, handler = logging.getLogger(), signal.getsignal(SWITCH)
    before, level = list(root.handlers), root.level
    yield
    root.handlers[:] = before
    root.setLevel(level)
    signal.signal(SWITCH, handler)


@pytest.mark.parametrize(("level", "after"), [("info", [10, 20, 10]), ("debug", [10, 10, 10]), ("error", [10, 40, 10])])
def test_the_switch_goes_back_to_the_level_of_the_options(usual: None, level: str, after: list[int]) -> None:
    before = list(logging.getLogger().handlers)
    begin(Options(log_level=level))
    seen = []
    for _ in range(3):
        signal.raise_signal(SWITCH)
        seen.append(logging.getLogger().level)
    logging.getLogger().handlers[:] = before
    assert seen == after
