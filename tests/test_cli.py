"""The command line as its user sees it: what it prints, where, and the code it ends with."""

import asyncio
import contextlib
import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import pytest_asyncio

from a2a_grpc import cli
from a2a_grpc import demo as demo_shop
from a2a_grpc.commands.serve import addresses
from a2a_grpc.testing import serve

PATIENCE = 60.0
ROOT = Path(__file__).parent.parent
ENVIRONMENT = {
    **{name: value for name, value in os.environ.items() if not name.startswith("A2A_GRPC_")},
    "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "generated"))),
    "PYTHONUNBUFFERED": "1",
}
WIRES = ["jsonrpc", "rest", "grpc"]


class Ended(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def documents(self) -> list[Any]:
        return [json.loads(line) for line in self.out.splitlines()]


async def start(*words: str, cwd: Path) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "a2a_grpc",
        *words,
        cwd=cwd,
        env=ENVIRONMENT,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


async def run(*words: str, cwd: Path) -> Ended:
    process = await start(*words, cwd=cwd)
    out, err = await asyncio.wait_for(process.communicate(), PATIENCE)
    assert process.returncode is not None
    return Ended(process.returncode, out.decode(), err.decode())


class Serving(NamedTuple):
    """A running `serve`: its process, the lines it printed, and the addresses in them."""

    process: asyncio.subprocess.Process
    lines: list[str]
    url: str
    grpc: str


@contextlib.asynccontextmanager
async def serving(*words: str, cwd: Path) -> AsyncIterator[Serving]:
    process = await start("serve", "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0", *words, cwd=cwd)
    try:
        yield await announced(process)
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def announced(process: asyncio.subprocess.Process) -> Serving:
    assert process.stdout is not None
    lines: list[str] = []
    while not (lines and lines[-1].startswith("  or ")):
        line = (await asyncio.wait_for(process.stdout.readline(), PATIENCE)).decode()
        assert line, await process.stderr.read() if process.stderr else ""
        lines.append(line.rstrip("\n"))
    told = {line.split()[0]: line.split()[1] for line in lines[1:]}
    return Serving(process, lines, told["HTTP+JSON"], told["GRPC"])


SLOW_AGENT = """
import asyncio
from a2a_grpc.agent import Agent, Skill

agent = Agent(name="Slow", description="Takes its time.", version="1", skills=[Skill(id="s", name="S", tags=["s"])])

@agent.handle
async def slow(task):
    await task.working("begun")
    await asyncio.sleep(float(task.text))
    await task.complete("done")
"""


@pytest.fixture
def here(tmp_path: Path) -> Path:
    (tmp_path / "slow.py").write_text(SLOW_AGENT, "utf-8")
    (tmp_path / "broken.py").write_text("x = 1\nraise RuntimeError('no luck')\n", "utf-8")
    (tmp_path / "unread.py").write_text("x = 1\nagent = (\n", "utf-8")
    (tmp_path / "taken.py").write_text(
        "from slow import agent\n\nagents = {'slow': agent}\nagent.handle(print)\n", "utf-8"
    )
    (tmp_path / "several.py").write_text("import slow\n\nagents = {'slow': slow.agent}\n", "utf-8")
    return tmp_path


# -- serve


@pytest.mark.requirement("CARD-01", "BL-34")
async def test_serve_says_where_everything_is_and_stops_when_told(here: Path) -> None:
    async with serving("--store", "memory:", cwd=here) as server:
        assert server.lines[0] == "Order Lookup 1.0.0 is ready"
        card_url = next(line.split()[1] for line in server.lines if line.startswith("  card"))
        fetched = await asyncio.to_thread(lambda: urllib.request.urlopen(card_url).read())
        card = json.loads(fetched)
        assert server.url in card_url and server.grpc in {entry["url"] for entry in card["supportedInterfaces"]}
        curl = next(line for line in server.lines if line.startswith("  or "))
        assert re.search(r'"method": "SendMessage".* http://127\.0\.0\.1:\d+/$', curl)
        server.process.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(server.process.wait(), PATIENCE) == 0


@pytest.mark.requirement("BL-34")
async def test_a_second_signal_ends_the_server_at_once(here: Path) -> None:
    async with serving("slow:agent", "--store", "memory:", "--grace", "3600", cwd=here) as server:
        assert (await run("call", "send", server.url, "3600", "--no-wait", cwd=here)).code == 0
        server.process.send_signal(signal.SIGINT)
        while (await run("call", "send", server.url, "0", cwd=here)).code == 0:
            pass  # the first signal is taken once no new work is
        assert server.process.returncode is None
        server.process.send_signal(signal.SIGINT)
        assert await asyncio.wait_for(server.process.wait(), PATIENCE) != 0


async def end_well(server: Serving, folder: Path, *words: str) -> None:
    """Stop a server with a turn at work: that ends, its reader is told, and then the process is over."""
    caller = await start("call", "stream", server.url, "1", *words, cwd=folder)
    assert caller.stdout is not None
    await asyncio.wait_for(caller.stdout.readline(), PATIENCE)
    server.process.send_signal(signal.SIGTERM)
    out, _ = await asyncio.wait_for(caller.communicate(), PATIENCE)
    last = json.loads(out.splitlines()[-1])
    assert last["statusUpdate"]["status"]["state"] == "TASK_STATE_COMPLETED"
    assert await asyncio.wait_for(server.process.wait(), PATIENCE) == 0


async def test_running_turns_finish_before_the_server_ends(here: Path) -> None:
    async with serving("slow:agent", "--store", "memory:", cwd=here) as server:
        await end_well(server, here)


async def test_a_taken_port_or_store_is_told_in_one_line(here: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        for flags in (("--http", address, "--grpc", ""), ("--grpc", address, "--http", "")):
            ended = await run("serve", "--store", "memory:", *flags, cwd=here)
            assert (ended.code, ended.out) == (2, "")
            assert len(ended.err.splitlines()) == 1 and address.rpartition(":")[2] in ended.err
    async with serving("--store", "sqlite:tasks.db", cwd=here):
        ended = await run("serve", "--http", "127.0.0.1:0", "--grpc", "", "--store", "sqlite:tasks.db", cwd=here)
        assert ended.code == 2 and len(ended.err.splitlines()) == 1


# -- mistakes, without a process of their own


MISTYPED = (
    '{"mesage": 1, "message": {"message_id": "m", "parts": [{"text": "a", "metadata": {"b": {"c": 1}}}, {"txt": "a"}]},'
    ' "configuration": {"returnAtOnce": true}, "metadata": {"any": 1}}'
)
MISTYPES = ["mesage", "message.parts[1].txt", "configuration.returnAtOnce"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["serve", "orders"], "MODULE:AGENT"),
        (["serve", "orders.py:agent"], "orders:agent"),
        (["serve", "nowhere:agent"], "no module named nowhere"),
        (["serve", "broken:agent"], "RuntimeError: no luck (broken.py, line 2)"),
        (["serve", "unread:agent"], "SyntaxError: '(' was never closed (unread.py, line 2)\n"),
        (["serve", "taken:agents"], "already: slow (taken.py, line 4)\n"),
        (["serve", "slow:agnet"], "slow has: agent"),
        (["serve", "several:agent"], "several has: agents"),
        (["serve", "slow:asyncio"], "is not an Agent"),
        (["serve", "--max-parts", "many"], "max_parts cannot be read from 'many'"),
        (["serve", "--max-parts", "0"], "max_parts must be between 1"),
        (["serve", "--versions", "1.0,2.0"], "versions must be one of 1.0, 0.3"),
        (["serve", "--store", "floppy:a"], "store must start with"),
        (["serve", "--tls-cert", "cert.pem"], "tls_cert and tls_key go together"),
        (["serve", "--config", "missing.toml"], "missing.toml"),
        (["serve", "--grpc", "", "--http", ""], "nothing to serve on"),
        (["serve", "--no-such-flag"], "--no-such-flag"),
        (["call", "send"], "URL"),
        (["call", "dance", "http://127.0.0.1:1"], "dance"),
        (["call", "send", "http://127.0.0.1:1"], "nothing to send"),
        (["call", "send", "ftp://example.org", "hi"], "not an address"),
        (["call", "send", "http:///rpc", "hi"], "not an address"),
        (["call", "send", "http://127.0.0.1:99999", "hi"], "not an address"),
        (["call", "get", "http://127.0.0.1:1", "a", "b"], "unexpected: b"),
        (["call", "send", "http://127.0.0.1:1", "--data", "{"], "not JSON"),
        (["call", "send", "http://127.0.0.1:1", "hi", "--header", "nonsense"], "Name: value"),
        (["call", "send", "http://127.0.0.1:1", "hi", "--header", "X Y: z"], "'X Y' is not the name of a header"),
        (["call", "send", "http://127.0.0.1:1", "hi", "--header", "X: y\r\nZ: z"], "Name: value"),
        (["call", "send", "http://127.0.0.1:1", "hi", "--header", "X: \u00e9"], "no header may have"),
        (["call", "send", "http://127.0.0.1:1", "hi", "--token", "a\nb"], "no header may have"),
        (["call", "send", "http://127.0.0.1:1", "hi", "--extension", "a\nb"], "no header may have"),
        (["call", "subscribe", "http://127.0.0.1:1", "t", "--last-event-id", "a\nb"], "no header may have"),
        (["call", "card", "grpc://127.0.0.1:1"], "has no card"),
        (["call", "send", "http://127.0.0.1:1", "--json", "[]"], "--json must be an object"),
        (["call", "send", "http://127.0.0.1:1", "hi", "--json", MISTYPED], f"no member {', '.join(MISTYPES)}"),
        *(([command, "http://127.0.0.1:1", "--timeout", "0"], "above 0") for command in ("chat", "doctor", "mcp")),
        (["gateway", "--upstream", "http://127.0.0.1:1", "--forward", "X: Y"], "'X: Y' is not the name of a header"),
        (["card", "verify", "http://127.0.0.1:1", "--header", ": z"], "'' is not the name of a header"),
        (["dance"], "dance"),
    ],
)
def test_a_mistake_is_told_in_one_line(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: list[str], told: str
) -> None:
    monkeypatch.chdir(here)
    monkeypatch.syspath_prepend(str(here))
    assert cli.main(words) == 2
    shown = capsys.readouterr()
    assert shown.out == "" and len(shown.err.splitlines()) == 1
    assert told in shown.err and shown.err.startswith("a2a-grpc: ")


def test_help_lists_every_option_with_its_default(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["serve", "--help"])
    assert ended.value.code == 0
    shown = capsys.readouterr().out
    assert "--max-parts" in shown and "--no-reflection" in shown and "--versions" in shown
    assert not re.search(r"\([A-Z0-9-]+-\d+\)", shown), "IDs of requirements are for developers"
    with pytest.raises(SystemExit) as ended:
        cli.main(["--version"])
    assert ended.value.code == 0 and capsys.readouterr().out.startswith("a2a-grpc ")


@pytest.mark.requirement("BL-52")
async def test_each_of_several_agents_is_told_where_it_is() -> None:
    async with serve({"echo": demo_shop.agent, "clock": demo_shop.agent}) as server:
        told = [line.split() for line in addresses(server).splitlines()]
        assert ["agent", f"{server.http_url}/clock"] in told and ["agent", f"{server.http_url}/echo"] in told
    async with serve({"echo": demo_shop.agent, "clock": demo_shop.agent}, http="", grpc_url_style="absolute") as server:
        told = [line.split() for line in addresses(server).splitlines()]
        assert ["agent", "--tenant", "clock"] in told
        assert told[-1][:5] == ["try", "a2a-grpc", "call", "stream", f"grpc://{server.grpc_address}"]


def test_an_agent_that_is_not_there_is_an_error_with_a_reason(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["call", "get", "http://127.0.0.1:1", "t"]) == 1
    assert capsys.readouterr().err.startswith("UNAVAILABLE: ")


# -- call


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def demo(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Serving]:
    async with serving("--store", "memory:", cwd=tmp_path_factory.mktemp("demo")) as server:
        yield server


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("wire", WIRES)
async def test_the_demo_agent_is_asked_on_every_wire(demo: Serving, tmp_path: Path, wire: str) -> None:
    flags = "--binding", wire
    sent = await run("call", "send", demo.url, "Where is order 1001?", *flags, cwd=tmp_path)
    assert sent.code == 0, sent.err
    task = sent.documents[0]["task"]
    assert task["status"]["state"] == "TASK_STATE_COMPLETED"
    data, *texts = task["artifacts"][0]["parts"]
    assert data["data"]["item"] == "teapot" and "teapot" in "".join(part["text"] for part in texts)

    words = "call", "stream", demo.url, "When does it arrive?", "--context", task["contextId"], *flags
    streamed = (await run(*words, cwd=tmp_path)).documents
    assert streamed[0]["task"]["contextId"] == task["contextId"]
    assert "Checking the order..." in json.dumps(streamed)
    assert streamed[-1]["statusUpdate"]["status"]["state"] == "TASK_STATE_COMPLETED"

    got = await run("call", "get", demo.url, task["id"], *flags, "--history-length", "0", cwd=tmp_path)
    assert got.documents[0]["id"] == task["id"] and "history" not in got.documents[0]
    listed = await run("call", "list", demo.url, "--context", task["contextId"], *flags, cwd=tmp_path)
    assert len(listed.documents[0]["tasks"]) == 2


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("wire", WIRES)
async def test_the_demo_agent_asks_back_and_takes_data_or_a_cancel(demo: Serving, tmp_path: Path, wire: str) -> None:
    flags = "--binding", wire
    asked = (await run("call", "send", demo.url, "Where is my parcel?", *flags, cwd=tmp_path)).documents[0]["task"]
    assert asked["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
    answer = "--task", asked["id"], "--data", '{"order": "1003"}'
    answered = (await run("call", "send", demo.url, *answer, *flags, cwd=tmp_path)).documents[0]["task"]
    assert (answered["id"], answered["status"]["state"]) == (asked["id"], "TASK_STATE_COMPLETED")

    other = (await run("call", "send", demo.url, "Where is my order?", *flags, cwd=tmp_path)).documents[0]["task"]
    follower = await start("call", "subscribe", demo.url, other["id"], *flags, cwd=tmp_path)
    assert follower.stdout is not None
    assert json.loads(await asyncio.wait_for(follower.stdout.readline(), PATIENCE))["task"]["id"] == other["id"]
    canceled = (await run("call", "cancel", demo.url, other["id"], *flags, cwd=tmp_path)).documents[0]
    assert canceled["status"]["state"] == "TASK_STATE_CANCELED"
    out, _ = await asyncio.wait_for(follower.communicate(), PATIENCE)
    assert follower.returncode == 0
    assert json.loads(out.splitlines()[-1])["statusUpdate"]["status"]["state"] == "TASK_STATE_CANCELED"

    refused = await run("call", "cancel", demo.url, other["id"], *flags, cwd=tmp_path)
    assert (refused.code, refused.out) == (1, "") and refused.err.startswith("TASK_NOT_CANCELABLE: ")
    nonsense = (await run("call", "send", demo.url, "xyzzy", *flags, cwd=tmp_path)).documents[0]["task"]
    assert nonsense["status"]["state"] == "TASK_STATE_REJECTED"


@pytest.mark.asyncio(loop_scope="module")
async def test_card_version_and_direct_grpc(demo: Serving, tmp_path: Path) -> None:
    card = (await run("call", "card", demo.url, cwd=tmp_path)).documents[0]
    assert card["name"] == "Order Lookup"
    unknown = await run("call", "send", f"grpc://{demo.grpc}", "order 9999", cwd=tmp_path)
    assert unknown.documents[0]["task"]["status"]["state"] == "TASK_STATE_FAILED"
    for wire in ("jsonrpc", "grpc"):
        flags = "--version", "0.3", "--binding", wire
        old = await run("call", "send", demo.url, "order 1002", *flags, cwd=tmp_path)
        assert old.documents[0]["task"]["status"]["state"] == "TASK_STATE_COMPLETED"
        assert (await run("call", "list", demo.url, *flags, cwd=tmp_path)).err.startswith("UNSUPPORTED_OPERATION")
    invalid = await run("call", "send", demo.url, "--json", '{"message": {"messageId": "m", "parts": 3}}', cwd=tmp_path)
    assert invalid.code == 1 and "message.parts" in invalid.err


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("words", ["call list URL", "call card URL", "chat URL", "doctor URL", "completion bash"])
async def test_a_reader_who_has_seen_enough_is_no_error(demo: Serving, words: str) -> None:
    command = [sys.executable, "-m", "a2a_grpc", *words.replace("URL", demo.url).split()]
    ends, pipe = os.pipe(), asyncio.subprocess.PIPE
    os.close(ends[0])
    told = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=ends[1], stderr=pipe, env=ENVIRONMENT)
    os.close(ends[1])
    _, said = await asyncio.wait_for(told.communicate(b"Where is order 1001?\n/help\n"), PATIENCE)
    news = [line for line in said.decode().splitlines() if not line.startswith("\u2026 ")]
    assert (told.returncode, news) == (0, [])


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(
    ("where", "code", "said"),
    [(">&-", 0, ""), (">/dev/full", 1, "a2a-grpc: cannot write: No space left on device\n")],
)
async def test_lines_that_nobody_can_take_are_told_in_one(demo: Serving, where: str, code: int, said: str) -> None:
    command = f"{shlex.quote(sys.executable)} -m a2a_grpc call list {demo.url} {where}"
    told = await asyncio.create_subprocess_exec("sh", "-c", command, stderr=asyncio.subprocess.PIPE, env=ENVIRONMENT)
    _, err = await asyncio.wait_for(told.communicate(), PATIENCE)
    assert (told.returncode, err.decode()) == (code, said)


def test_a_serving_process_leaves_what_is_loaded_to_itself_and_looks_for_cycles_less_often() -> None:
    program = (
        "import gc; from a2a_grpc.commands import serve; before = gc.get_freeze_count(); serve.spare_collector();"
        "assert not before and gc.get_freeze_count() > 10_000 and gc.isenabled();"
        "assert gc.get_threshold()[0] == serve.EASE"
    )
    subprocess.run([sys.executable, "-c", program], check=True, env=ENVIRONMENT)
