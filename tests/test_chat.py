"""`a2a-grpc chat` and the text that `a2a-grpc call` tells people, as they see them."""

import asyncio
import io
import json
import signal
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from a2a_stubs import v1
from aiohttp import web

from a2a_grpc.agent import Agent
from a2a_grpc.cli import main
from a2a_grpc.client import Client
from a2a_grpc.commands.telling import Teller
from a2a_grpc.protojson_values import json_of
from a2a_grpc.testing import serve
from tests.peers import card_of, entry, peer
from tests.test_cli import ENVIRONMENT, PATIENCE

BINDINGS = ["jsonrpc", "rest", "grpc"]


def shop(**settings: Any) -> Agent:
    agent = Agent(name="Shop", description="Sells tea.", version="1", skills=[], **settings)

    @agent.handle
    async def work(task: Any) -> Any:
        if task.answer is not None:
            return f"One {task.answer} pot."
        if task.text == "order":
            return await task.ask("Which size?")
        if task.text == "wait":
            await task.working("brewing")
            await asyncio.Event().wait()
        if task.text == "fail":
            return await task.fail("No tea.")
        seen = await task.context.memory.get("seen", 0)
        await task.context.memory.set("seen", seen + 1)
        await task.working("boiling")
        files = "".join(f" with {part.filename} of {len(part.raw)}" for part in task.files)
        return f"{task.text or task.data}{files}, {seen} before"

    return agent


async def chat(url: str, lines: str, *words: str, cwd: Path | None = None) -> tuple[int, list[str], str]:
    """Code, the lines of the answers, and what was said beside them."""
    command = [sys.executable, "-m", "a2a_grpc", "chat", url, *words]
    pipes: Any = dict.fromkeys(("stdin", "stdout", "stderr"), asyncio.subprocess.PIPE)
    process = await asyncio.create_subprocess_exec(*command, env=ENVIRONMENT, cwd=cwd, **pipes)
    out, err = await asyncio.wait_for(process.communicate(lines.encode(errors="surrogateescape")), PATIENCE)
    assert process.returncode is not None
    return process.returncode, out.decode().splitlines(), err.decode()


async def call(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = await asyncio.to_thread(main, ["call", *words])
    said = capsys.readouterr()
    return code, said.out, said.err


@pytest.mark.parametrize("binding", BINDINGS)
@pytest.mark.parametrize("streaming", [True, False])
async def test_a_conversation_goes_on_and_questions_are_answered(binding: str, streaming: bool, tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("hi")
    lines = 'one\n\ntwo\norder\nlarge\n/new\nthree\n/file note.txt\nfour\n/data {"a": 1}\n'
    async with serve(shop(streaming=streaming)) as server:
        code, out, err = await chat(server.http_url, lines, "--binding", binding, cwd=tmp_path)
    assert (code, out) == (
        0,
        [
            "one, 0 before",
            "two, 1 before",
            "? Which size?",
            "One large pot.",
            "three, 0 before",
            "four with note.txt of 2, 1 before",
            "{'a': 1}, 2 before",
        ],
    )
    assert ("… boiling" in err) == streaming


async def test_orders_of_the_conversation_and_their_mistakes() -> None:
    async with serve(shop()) as server:
        lines = "/dance\n/cancel\n/file nowhere.txt\n/data {\norder\n/cancel\nhi\nfail\n/ids\n/help\n/quit\nnever\n"
        code, out, err = await chat(server.http_url, lines)
        assert code == 1 and out[:4] == ["? Which size?", "canceled", "hi, 0 before", "failed: No tea."]
        assert out[4].startswith("context ") and out[4].endswith("task none") and "/new" in out[5]
        for words in ("/dance is nothing", "nothing waits for an answer", "cannot read 'nowhere.txt'", "not JSON"):
            assert words in err
        context = out[4].split()[1]
        assert (await chat(server.http_url, "more\n", "--context", context))[1] == ["more, 1 before"]
        code, out, err = await chat(server.http_url, "\udcff\nhello\n")
        assert (code, out, err.splitlines()[0]) == (1, ["hello, 0 before"], "the line is not text in UTF-8")
    assert (await chat("http://127.0.0.1:1", "hi\n"))[0] == 1


async def test_a_question_that_nobody_has_answered_is_told_at_the_end_with_its_task(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async with serve(shop()) as server:
        code, out, err = await chat(server.http_url, "order\n")
        assert (code, out) == (0, ["? Which size?"])
        *_, last = err.splitlines()
        assert last.startswith("… task ") and last.endswith(" waits for an answer")
        answered = await call(capsys, "send", server.http_url, "large", "--task", last.split()[2], "--output", "text")
        assert answered[:2] == (0, "One large pot.\n")


async def test_an_interrupt_cancels_the_run_at_the_agent() -> None:
    async with serve(shop()) as server:
        command = [sys.executable, "-m", "a2a_grpc", "chat", server.http_url]
        pipes: Any = dict.fromkeys(("stdin", "stdout", "stderr"), asyncio.subprocess.PIPE)
        heeds: Any = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)  # whatever started the tests may not
        process = await asyncio.create_subprocess_exec(*command, env=ENVIRONMENT, preexec_fn=heeds, **pipes)
        assert process.stdin and process.stderr
        process.stdin.write(b"wait\n")
        heard = [b""]
        while b"brewing" not in heard[-1]:
            heard.append(await asyncio.wait_for(process.stderr.readline(), PATIENCE))
            assert heard[-1], heard
        process.send_signal(signal.SIGINT)
        await asyncio.wait_for(process.wait(), PATIENCE)
        assert process.returncode == 130
        async with Client(server.http_url) as client:
            assert [task.status.state async for task in client.tasks()] == [v1.TASK_STATE_CANCELED]


async def test_text_for_people_and_codes_for_scripts(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "note.txt"
    file.write_text("hi")
    async with serve(shop()) as server:
        url, text = server.http_url, ("--output", "text")
        for action in ("send", "stream"):
            code, out, _ = await call(capsys, action, url, "hello", *text, "--outcome", "--follow")
            assert (code, out) == (0, "hello, 0 before\n")
        code, out, err = await call(capsys, "send", url, "order", *text, "--outcome")
        assert (code, out) == (4, "? Which size?\n") and err.startswith("… task ")
        asked = err.split()[-1]
        assert await call(capsys, "stream", url, "fail", *text, "--outcome") == (3, "failed: No tea.\n", "")
        assert (await call(capsys, "send", url, "fail", *text))[0] == 0
        code, out, _ = await call(capsys, "send", url, "see", "--file", str(file), *text)
        assert out == "see with note.txt of 2, 0 before\n"
        code, out, _ = await call(capsys, "list", url, "--page-size", "2", *text)
        assert len(out.splitlines()) == 3 and asked not in out
        token = out.split()[-1]
        code, out, _ = await call(capsys, "list", url, "--page-size", "2", "--page-token", token)
        assert asked in {task["id"] for task in json.loads(out)["tasks"]}
        code, out, _ = await call(capsys, "card", url, *text)
        assert out.startswith("Shop 1: Sells tea.\n  JSONRPC   1.0  http://")
        code, out, _ = await call(capsys, "send", url, "once", "--no-wait", "--follow", *text)
        assert (code, out) == (0, "once, 0 before\n")
        grpc = server.grpc_address
        assert (await call(capsys, "send", url, "hi", "--interface", grpc, *text))[1] == "hi, 0 before\n"
        code, _, err = await call(capsys, "send", url, "hi", "--interface", "http://elsewhere/")
        assert code == 2 and f"it has: {url}/" in err


@pytest.mark.parametrize("action", ["send", "stream"])
async def test_a_question_is_told_with_its_task_and_answered(capsys: pytest.CaptureFixture[str], action: str) -> None:
    async with serve(shop()) as server:
        url, text = server.http_url, ("--output", "text")
        code, out, err = await call(capsys, action, url, "order", *text, "--outcome")
        assert (code, out) == (4, "? Which size?\n") and err.startswith("… task ") and len(err.splitlines()) == 1
        answered = await call(capsys, action, url, "large", "--task", err.split()[-1], *text)
        assert answered[:2] == (0, "One large pot.\n")


@pytest.mark.parametrize("action", ["send", "stream"])
async def test_null_and_texts_are_json_values_too(capsys: pytest.CaptureFixture[str], action: str) -> None:
    agent = Agent(name="Values", description="Tells what came.", version="1", skills=[])
    agent.handle(lambda task: str([json_of(part.data) for part in task.parts if part.HasField("data")]))
    async with serve(agent) as server:
        for given, seen in (("null", "[None]"), ('"tea"', "['tea']"), ("[]", "[[]]")):
            code, out, err = await call(capsys, action, server.http_url, "--data", given, "--output", "text")
            assert (code, out, err) == (0, f"{seen}\n", "")
        assert (await chat(server.http_url, '/data null\n/data "tea"\n/data 1\n'))[1] == ["[None]", "['tea']", "[1]"]
        code, _, err = await call(capsys, action, server.http_url)
        assert code == 2 and "nothing to send" in err


def test_on_a_terminal_the_task_that_waits_for_an_answer_stays_to_be_read() -> None:
    out, notes = io.StringIO(), io.StringIO()
    teller = Teller(out, notes, live=True)
    for state, text in (("TASK_STATE_WORKING", "boiling"), ("TASK_STATE_INPUT_REQUIRED", "Which size?")):
        status = v1.TaskStatus(state=state, message=v1.Message(parts=[v1.Part(text=text)]))
        teller.event(v1.StreamResponse(status_update=v1.TaskStatusUpdateEvent(status=status, task_id="t1\x1b[2J")))
    teller.end()
    assert out.getvalue() == "? Which size?\n" and notes.getvalue() == "\r\x1b[K… boiling\r\x1b[K… task t1\n"


async def test_what_an_agent_refuses_with_moves_no_cursor(capsys: pytest.CaptureFixture[str]) -> None:
    async def answer(_: web.BaseRequest) -> web.StreamResponse:
        return web.json_response({"error": {"message": "no\x1b[2J way\x07"}}, status=400)

    async with peer(card_of(entry("HTTP+JSON", "URL")), answer) as url:
        code, _, err = await call(capsys, "send", url, "hi")
        assert code == 1 and err.endswith(": no way\n")
        code, _, err = await chat(url, "hi\n")
        assert code == 1 and err.endswith(": no way\n")


def test_what_an_agent_says_moves_no_cursor() -> None:
    out, notes = io.StringIO(), io.StringIO()
    teller = Teller(out, notes, live=True)
    status = v1.TaskStatus(state="TASK_STATE_WORKING", message=v1.Message(parts=[v1.Part(text="a\x1b[2Jb\nc")]))
    teller.event(v1.StreamResponse(status_update=v1.TaskStatusUpdateEvent(status=status)))
    assert notes.getvalue() == "\r\x1b[K… ab"
    artifact = v1.Artifact(parts=[v1.Part(text="x\x1b]0;t\x07y\tz\r")])
    teller.event(v1.StreamResponse(artifact_update=v1.TaskArtifactUpdateEvent(artifact=artifact)))
    teller.end()
    assert notes.getvalue().endswith("\r\x1b[K") and out.getvalue() == "x]0;ty\tz\n"
