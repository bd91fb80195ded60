"""What `a2a-grpc doctor` finds: nothing at a sound agent, and in plain words what is wrong with others."""

import asyncio
import hashlib
import json
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from a2a_stubs import v1
from aiohttp import web

from a2a_grpc.agent import Agent, Skill, TaskHandle
from a2a_grpc.cli import main
from a2a_grpc.client import Client
from a2a_grpc.client_auth import Tls
from a2a_grpc.doctor import FAULT, NOTE, OK, WARNING, Finding, Settings, examine
from a2a_grpc.testing import serve
from tests.peers import listening

agent = Agent(name="Slow", description="Says it slowly.", version="1", skills=[Skill(id="s", name="S", tags=["s"])])


@agent.handle
async def slowly(task: Any) -> None:
    await task.working("begun")
    await asyncio.sleep(0.5)
    await task.complete("done")


async def found(url: str, **settings: Any) -> list[Finding]:
    return [finding async for finding in examine(url, Settings(**{"timeout": 30.0, **settings}))]


def told(findings: list[Finding], level: str) -> list[str]:
    return [f"{finding.check}: {finding.text}" for finding in findings if finding.level == level]


def card(*interfaces: tuple[str, str, str], **members: Any) -> dict[str, Any]:
    names = ("url", "protocolBinding", "protocolVersion")
    made = {"name": "A", "description": "A.", "version": "1", "capabilities": {"streaming": True}, "skills": []}
    made |= {"defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"]}
    return made | {"supportedInterfaces": [dict(zip(names, each, strict=True)) for each in interfaces]} | members


@asynccontextmanager
async def carded(document: Any, **more: Any) -> AsyncIterator[str]:
    async def answer(_: web.BaseRequest) -> web.Response:
        return web.Response(**{"text": json.dumps(document), "content_type": "application/json", **more})

    async with listening(answer) as address:
        yield f"http://{address}"


@pytest.mark.requirement("CARD-01", "VER-02", "ERR-15")
async def test_nothing_is_wrong_with_an_agent_of_this_package() -> None:
    async with serve(agent) as server:
        findings = await found(server.http_url, message="hello")
        assert not told(findings, FAULT) + told(findings, WARNING)
        assert told(findings, NOTE) == ["signature: the card is not signed"]
        streams = [finding for finding in findings if finding.check == "stream"]
        assert len(streams) == 6 and all("as they were made" in finding.text for finding in streams)
        assert sum(finding.check == "reflection" for finding in findings) == 2
        direct = await found(f"grpc://{server.grpc_address}")
        assert {finding.level for finding in direct} == {OK}


async def test_work_that_takes_longer_than_is_waited_for_is_no_fault_and_is_canceled() -> None:
    slow = Agent(name="Slow", description="Takes its time.", version="1", skills=[])

    @slow.handle
    async def work(task: TaskHandle) -> None:
        async with task.artifact(name="answer") as out:
            await out.write("begun")
            await asyncio.Event().wait()

    async with serve(slow) as server:
        findings = await found(server.http_url, message="hello", timeout=2.0)
        assert not told(findings, FAULT)
        assert sum("then none for 2 seconds" in text for text in told(findings, NOTE)) == 6
        async with Client(server.http_url) as client:
            states = [(await client.wait(task)).status.state async for task in client.tasks()]
            assert states == [v1.TASK_STATE_CANCELED] * 6


@pytest.mark.requirement("CARD-02")
@pytest.mark.parametrize(
    ("document", "more", "words"),
    [
        ({"name": 3}, {}, "is not a card: name: must be"),
        ("hello", {}, "is not a card"),
        ({}, {"text": "<html>"}, "is not a card"),
        (card(("http://127.0.0.1:1/", "JSONRPC", "1.0"), name=""), {}, "fields: name is required"),
        (card(("http://127.0.0.1:1/", "JSONRPC", "2.0")), {}, "versions: no interface of a known binding"),
        (card(), {"status": 404}, "card: HTTP status 404"),
    ],
)
async def test_a_broken_card_is_told_by_its_fields(document: Any, more: Any, words: str) -> None:
    async with carded(document, **more) as url:
        assert any(words in text for text in told(await found(url), FAULT))


async def test_what_makes_a_card_hard_to_use_is_told() -> None:
    entries = ("http://agent.invalid/", "JSONRPC", "0.3"), ("x:y:z", "GRPC", "0.3"), ("http://a/", "SMOKE", "1.0")
    async with carded(card(*entries), content_type="text/html") as url:
        findings = await found(url)
    warnings = "\n".join(told(findings, WARNING))
    for words in ("comes as text/html", "no Cache-Control", "only 0.3 is offered", "is in clear text"):
        assert words in warnings
    assert "connection: not a binding and version that is known here: it is not looked at" in told(findings, NOTE)
    assert any("no host of that name" in text for text in told(findings, FAULT))


@pytest.mark.requirement("CARD-08")
async def test_interfaces_that_are_not_there_are_told() -> None:
    async with carded(card(("http://127.0.0.1:1/", "JSONRPC", "1.0"), ("127.0.0.1:1", "GRPC", "1.0"))) as url:
        faults = told(await found(url), FAULT)
    assert faults == ["connection: 127.0.0.1:1: nobody listens there"] * 2
    assert told(await found("http://127.0.0.1:1"), FAULT) == ["card: 127.0.0.1:1: nobody listens there"]


@pytest.mark.requirement("ERR-15")
async def test_a_server_that_speaks_something_else_is_told() -> None:
    async def answer(_: web.BaseRequest) -> web.Response:
        return web.json_response({"result": {}})

    async with listening(answer) as address, carded(card((f"http://{address}/", "JSONRPC", "1.0"))) as url:
        assert any(text.startswith("answer: an unknown task gives") for text in told(await found(url), FAULT))


async def test_missing_credentials_are_told_and_given(tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    keys.write_text(f"me:{hashlib.sha256(b'sesame').hexdigest()}\n")
    async with serve(agent, api_key_file=str(keys)) as server:
        warnings = told(await found(server.http_url), WARNING)
        assert len(warnings) == 6 and all("wants other credentials" in text for text in warnings)
        assert not told(await found(server.http_url, headers={"X-API-Key": "sesame"}), WARNING)


async def test_a_proxy_that_collects_a_stream_is_told() -> None:
    async with serve(agent, versions=("1.0",)) as server, aiohttp.ClientSession() as session:

        async def collect(request: web.BaseRequest) -> web.Response:
            sent = {name: value for name, value in request.headers.items() if name.lower() != "host"}
            told = {"headers": sent, "data": await request.read()}
            async with session.request(request.method, server.http_url + request.path_qs, **told) as reply:
                return web.Response(status=reply.status, body=await reply.read(), content_type=reply.content_type)

        async with listening(collect) as address:
            entries = (f"http://{address}/", "JSONRPC", "1.0"), (f"http://{address}/", "HTTP+JSON", "1.0")
            async with carded(card(*entries)) as url:
                faults = told(await found(url, message="hello"), FAULT)
    assert len(faults) == 2 and all("something on the way collects the stream" in text for text in faults)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The options that name a fresh certificate for this machine and its key."""
    folder = tmp_path_factory.mktemp("tls")
    cert, key = str(folder / "cert.pem"), str(folder / "key.pem")
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-keyout", key, "-out", cert]
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost"]
    subprocess.run([*made, *subject], check=True, capture_output=True)
    return {"tls_cert": cert, "tls_key": key}


@pytest.mark.requirement("SEC-01", "CARD-09")
async def test_wrong_tls_is_told(files: dict[str, str]) -> None:
    trusted = Tls(ca=files["tls_cert"])
    async with serve(agent, **files) as server:
        faults = told(await found(server.http_url), FAULT)
        assert len(faults) == 1 and "its certificate is not to be trusted" in faults[0]
        assert not told(await found(server.http_url, tls=trusted), FAULT)
        bare = server.http_url.removeprefix("https://")
        async with carded(card((f"http://{bare}/", "JSONRPC", "1.0"))) as url:
            assert any("it speaks TLS" in text for text in told(await found(url), FAULT))
    async with serve(agent) as server:
        entries = (server.http_url.replace("http:", "https:"), "JSONRPC", "1.0"), (
            f"grpcs://{server.grpc_address}", "GRPC", "1.0")  # fmt: skip
        async with carded(card(*entries)) as url:
            faults = told(await found(url), FAULT)
            assert len(faults) == 2 and all("TLS is meant" in text for text in faults)


async def test_the_command_prints_words_or_json_and_ends_with_a_code(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    async with serve(agent) as server:
        assert await asyncio.to_thread(main, ["doctor", server.http_url]) == 0
        said = capsys.readouterr().out
        assert said.startswith("card\n  ok    card: Slow 1 at ") and said.endswith("\n0 faults, 0 warnings\n")
    assert await asyncio.to_thread(main, ["doctor", "http://127.0.0.1:1", "--json"]) == 1
    finding = {"check": "card", "place": "card", "level": "fault", "text": "127.0.0.1:1: nobody listens there"}
    assert json.loads(capsys.readouterr().out) == finding
    async with carded(card(("x\x1b[2J://\x07", "JSONRPC", "1.0"), name="A\x1b[2J\x07B")) as url:
        assert await asyncio.to_thread(main, ["doctor", url]) == 1
        said = capsys.readouterr().out
        assert "card: AB 1 at " in said and said.replace("\n", "").isprintable()
    assert await asyncio.to_thread(main, ["doctor", "http://a", "--cert", str(tmp_path / "no.pem")]) == 2
    assert "--cert and --key go together" in capsys.readouterr().err
