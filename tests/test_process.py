"""A program as an agent: what goes in, what comes out while it works, and how it ends."""

import asyncio
import contextlib
import json
import logging
import os
import shlex
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
from a2a_stubs import v1

from a2a_grpc.adapters.process import process
from a2a_grpc.agent import Agent
from a2a_grpc.cli import main
from a2a_grpc.remote import RemoteAgent
from a2a_grpc.testing import connect, until
from tests.test_cli import run, serving


@contextlib.asynccontextmanager
async def running(command: Any, **settings: Any) -> Any:
    agent = Agent(name="Program", description="Is one.", version="1", skills=[])
    agent.handle(process(command, **settings))
    async with connect(agent) as client:
        yield RemoteAgent(client)


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"


async def test_text_goes_in_and_comes_out_as_it_is_printed() -> None:
    async with running("cat") as agent:
        text = "grüß dich\nzwei; $(touch x) `y`\n" * 20_000
        assert (await agent.generate(text)).text == text
    async with running(["sh", "-c", "echo one; read line; echo $line; sleep 600"]) as agent:
        run = agent.stream("two\n", cancel_on_abort=True)
        heard = ""
        async for update in run:
            heard += update.text if update.kind == "text" else ""
            if heard == "one\ntwo\n":
                break
        await run.aclose()
    async with running("sh -c 'printf $A2A_TASK_ID/$COLOUR'", env={"COLOUR": "red"}) as agent:
        result = await agent.generate("x")
        assert result.text == f"{result.run_id}/red"
    async with running("true") as agent:
        result = await agent.generate("x" * 1_000_000)  # which it does not read
        assert (result.finish_reason, result.artifacts) == ("stop", [])


async def test_a_canceled_task_ends_the_program_and_what_it_started(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    stubborn = f"trap '' TERM; echo begun; sleep 600 & echo $$ $! > {shlex.quote(str(pids))}; echo ready; wait; wait"
    async with running(["sh", "-c", stubborn]) as agent:
        async for update in agent.stream("go"):
            if "ready" in update.text:
                break
        ours = [int(word) for word in pids.read_text().split()]
        assert all(map(alive, ours))
        (run_id,) = [task.id async for task in (await agent.client()).tasks()]
        assert (await agent.abort(run_id)).finish_reason == "canceled"
        await until(lambda: not any(map(alive, ours)), 60)


LEAVES = """
import signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)  # as does what it starts now
nothing = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
print(subprocess.Popen(["sleep", "600"], **nothing).pid, flush=True)
signal.signal(signal.SIGTERM, signal.SIG_DFL)
if input() == "stay": time.sleep(600)
"""


@pytest.mark.parametrize(("text", "reason"), [("stay\n", "canceled"), ("go\n", "stop")])
async def test_nobody_whom_a_program_started_outlives_its_turn(text: str, reason: str) -> None:
    async with running([sys.executable, "-c", LEAVES]) as agent:
        run, heard = agent.stream(text), ""
        async for update in run:
            heard += update.text
            if heard.endswith("\n"):
                break
        if reason == "canceled":
            assert alive(int(heard))
            await agent.abort(run.run_id)
        assert (await run.result()).finish_reason == reason
        await until(lambda: not alive(int(heard)), 60)


async def test_a_turn_does_not_wait_for_who_left_the_group_and_holds_a_pipe() -> None:
    async with running(["sh", "-c", "setsid sh -c 'echo $$; exec sleep 600 >&-' & exit 3"]) as agent:
        result = await asyncio.wait_for(agent.generate("x"), 60)
        assert result.finish_reason == "failed"
        os.kill(int(result.artifacts[0].parts[0].text), signal.SIGKILL)


async def test_a_program_that_fails_fails_the_task_and_tells_nobody_why(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "a2a_grpc.process")
    async with running(["sh", "-c", "echo half; echo 'secret: 7' >&2; exit 3"]) as agent:
        result = await agent.generate("x")
        assert result.finish_reason == "failed"
        assert result.task.status.message.parts[0].text == "The agent's program ended with code 3"
        assert "secret" not in str(result.task) and "sh: secret: 7" in caplog.messages
    async with running("/no/such/program") as agent:
        result = await agent.generate("x")
        assert (result.finish_reason, result.text) == ("failed", "The agent's program cannot be started")
    with pytest.raises(ValueError, match="must name a program"):
        process("")


@pytest.mark.parametrize(("command", "lines"), [(["yes"], False), (["yes", '{"text": "y"}'], True)])
async def test_a_program_without_end_fails_the_task_at_a_limit_and_is_ended(command: Any, lines: bool) -> None:
    async with running(command, lines=lines, most_bytes=100_000) as agent:
        result = await agent.generate("x")
        assert result.finish_reason == "failed"
        said = result.task.status.message.parts[0].text
        assert said == "The agent's program printed more than the 100000 bytes that it may"
        assert 0 < len(result.text) <= 100_000
    async with running(["sh", "-c", "yes | head -c 100000"], most_bytes=100_000) as agent:
        assert (await agent.generate("x")).finish_reason == "stop"


async def test_a_program_that_takes_too_long_fails_the_task_and_is_ended() -> None:
    async with running(["sh", "-c", "echo $$; exec sleep 600"], most_seconds=0.5) as agent:
        result = await agent.generate("x")
        said = result.task.status.message.parts[0].text
        assert said == "The agent's program took longer than the 0.5 seconds that it has"
        assert result.finish_reason == "failed" and not alive(int(result.text))
    async with running("cat", most_seconds=60) as agent:
        assert (await agent.generate("x")).text == "x"


async def test_what_a_program_complains_of_without_end_is_logged_up_to_the_limit(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "a2a_grpc.process")
    async with running(["sh", "-c", "yes | head -c 1000000 >&2; echo done"], most_bytes=50_000) as agent:
        assert (await agent.generate("x")).text == "done\n"
    await until(lambda: "sh: what it says after 50000 bytes is not logged" in caplog.messages)
    assert caplog.messages.count("sh: y") < 100_000


TALK = """
import json, sys
told = json.loads(sys.stdin.readline())
def say(**what): print(json.dumps(what), flush=True)
if "answer" in told:
    say(text="You said "); say(text=told["answer"]["size"]); say(data={"of": told["taskId"]})
elif told["text"] == "ask":
    say(text="well"); say(ask="Which size?", schema={"type": "object"}); sys.stdin.read(); import time; time.sleep(600)
elif told["text"] in ("fail", "reject"):
    say(**{told["text"]: "No."})
elif told["text"] == "bad":
    print("[1]")
elif told["text"] == "odd":
    say(smoke=1)
elif told["text"] == "nonsense":
    print("{")
elif told["text"] == "deep":
    print("[" * 200_000)
elif told["text"] == "nested":
    print('{"data":' + "[" * 200 + "]" * 200 + "}")
elif told["text"] == "infinite":
    print('{"data": NaN}')
else:
    say(status="looking"); print(); say(text=json.dumps(told["data"]))
"""


async def test_json_lines_say_more_than_text() -> None:
    async with running([sys.executable, "-c", TALK], lines=True) as agent:
        news = []
        message = v1.Message(parts=[v1.Part(text="hi")])
        message.parts.add().data.struct_value.update({"a": 1})
        run = agent.stream(message)
        async for update in run:
            news.append(update.text)
        assert "looking" in news and json.loads((await run.result()).text) == {"a": 1}
        asked = await agent.generate("ask")
        assert (asked.suspended.prompt, asked.suspended.schema) == ("Which size?", {"type": "object"})
        done = await agent.resume({"size": "L"}, run_id=asked.run_id)
        assert done.text.endswith("You said L") and done.data == {"of": asked.run_id}
        for word, reason in (("fail", "failed"), ("reject", "rejected")):
            result = await agent.generate(word)
            assert (result.finish_reason, result.text) == (reason, "No.")
        for word in ("bad", "odd", "nonsense", "deep", "nested", "infinite"):
            result = await agent.generate(word)
            assert (result.finish_reason, result.text) == (
                "failed",
                "The agent's program said something that cannot be read",
            )


async def test_serve_runs_a_program(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async with serving("--exec", "tr a-z A-Z", "--store", "memory:", cwd=tmp_path) as server:
        assert server.lines[0] == "tr 1.0.0 is ready"
        told = await run("call", "send", server.url, "hello", "--output", "text", cwd=tmp_path)
        assert (told.code, told.out) == (0, "HELLO\n")
    leaves = """setsid -f sh -c 'echo $$; exec sleep 600 >/dev/null 2>&1 </dev/null'"""
    async with serving("--exec", leaves, "--store", "memory:", cwd=tmp_path) as server:
        told = await run("call", "send", server.url, "hello", "--output", "text", cwd=tmp_path)
        assert told.code == 0 and alive(int(told.out))
        os.kill(int(told.out), signal.SIGKILL)
    bound = ("--exec", "yes", "--exec-output", "1", "--exec-seconds", "60", "--store", "memory:")
    async with serving(*bound, cwd=tmp_path) as server:
        told = await run("call", "send", server.url, "hello", "--output", "text", cwd=tmp_path)
        *_, last = told.out.splitlines()
        assert last == "failed: The agent's program printed more than the 1048576 bytes that it may"
    for words, said in (
        (["--exec", "cat", "--exec-output", "-1"], "'-1' is not a whole number"),
        (["--exec", "cat", "--exec-seconds", "x"], "'x' is not a number of seconds"),
        (["--exec", "no-such-program x"], "--exec: there is no program 'no-such-program'"),
        (["--exec", "'"], "--exec: No closing quotation"),
        (["--exec", "cat", "a:b"], "--exec stands in place of MODULE:AGENT"),
    ):
        assert await asyncio.to_thread(main, ["serve", "--http", "127.0.0.1:0", "--grpc", "", *words]) == 2
        assert said in capsys.readouterr().err
