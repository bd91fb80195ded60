"""The agents of examples/, tried as their readers would."""

import asyncio
import importlib.util
import re
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from a2a_grpc.config import Options
from a2a_grpc.errors import UnsupportedOperationError
from a2a_grpc.remote import RemoteAgent
from a2a_grpc.server import Server
from a2a_grpc.testing import connect
from scripts.services import free_port
from tests.fronts import PATIENCE, WIRES, gateway, wire_of
from tests.fronts import asking as asking_words
from tests.rules.sources import files
from tests.test_docs import EXAMPLES, PAGES, steps
from tests.test_openai_chat import model

TRIED = {"agent.go"}
"""Examples that no page runs, but a test below."""


def example(name: str) -> Any:
    """The module of an example, loaded anew."""
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@asynccontextmanager
async def asking(name: str) -> AsyncIterator[RemoteAgent]:
    async with connect(example(name).agent) as client:
        yield RemoteAgent(client)


def test_every_example_is_tried_and_told_of() -> None:
    """Files beside the page are run by its commands, or here; those in calls, by the page that shows them."""
    commands = [step.text for page in PAGES for step in steps(page.read_text()) if step.kind != "file"]
    told = (EXAMPLES / "README.md").read_text()
    for path in files():
        if path.is_relative_to(EXAMPLES) and path.name != "README.md":
            words = re.compile(rf"\b({re.escape(path.name)}|{path.stem}:\w+)(?!\w)")
            assert path.name in TRIED or any(map(words.search, commands)), f"nothing runs {path.name}"
            assert path.parent != EXAMPLES or f"[{path.name}]({path.name})" in told, f"no page tells of {path.name}"


async def test_a_purchase_waits_for_a_decision() -> None:
    async with asking("approval") as agent:
        assert (await agent.generate("a pen for 3")).text == "Bought a pen."
        assert (await agent.generate("something")).finish_reason == "rejected"
        for decision, reason in (
            ({"approved": True}, "stop"),
            ({"approved": False, "note": "too dear"}, "failed"),
        ):
            asked = await agent.generate("a desk for 250")
            assert asked.finish_reason == "suspended" and "desk for 250" in asked.suspended.prompt
            assert "approved" in asked.suspended.schema["properties"]
            answered = await agent.resume(decision, run_id=asked.run_id)
            assert answered.finish_reason == reason
            assert answered.text == ("Bought a desk." if decision["approved"] else "Not bought: too dear.")


async def test_files_are_made_of_numbers() -> None:
    async with asking("files") as agent:
        result = await agent.generate("12, 7 and 30")
        table, chart = (artifact.parts[0] for artifact in result.artifacts)
        assert table.raw.split() == [b"place,number", b"1,12", b"2,7", b"3,30"]
        assert chart.media_type == "image/svg+xml" and chart.raw.count(b"<rect") == 3
        assert (await agent.generate("none")).finish_reason == "rejected"


async def test_a_desk_asks_its_neighbours() -> None:
    module = example("tenants")
    async with Server(module.agents, Options(grpc="", http="127.0.0.1:0", store="memory:")) as server:
        module.BASE = server.http_url
        async with RemoteAgent(f"{server.http_url}/desk") as agent:
            assert "sunny, the train leaves at 09:10" in (await agent.generate("Rome")).text


async def test_a_model_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    async with model() as local:
        monkeypatch.setenv("BASE_URL", local.url)
        monkeypatch.setenv("KEY", "k")
        async with asking("model") as agent:
            assert (await agent.generate("Hello")).text == "I know 2 messages"
        assert local.keys == ["Bearer k"]


async def test_an_agent_in_go_is_on_every_wire_behind_a_gateway(tmp_path: Path) -> None:
    if shutil.which("go") is None:
        pytest.skip("needs go")
    address, binary = f"127.0.0.1:{free_port()}", tmp_path / "agent"
    build = await asyncio.create_subprocess_exec("go", "build", "-o", binary, EXAMPLES / "agent.go")
    assert await asyncio.wait_for(build.wait(), 2 * PATIENCE) == 0
    agent = await asyncio.create_subprocess_exec(binary, address, stderr=asyncio.subprocess.PIPE)
    try:
        async with asyncio.timeout(PATIENCE):
            while not await answers(address):  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        async with gateway(f"http://{address}") as front:
            for binding, version in WIRES:
                async with wire_of(front, binding, version) as client:
                    assert (await client.send(asking_words("hello"))).message.parts[0].text == "hello!"
                    with pytest.raises(UnsupportedOperationError, match="does not stream"):
                        [event async for event in client.stream(asking_words("hello"))]
    finally:
        agent.kill()
        await agent.communicate()


async def answers(address: str) -> bool:
    """Whether somebody listens there."""
    host, _, port = address.partition(":")
    try:
        _, writer = await asyncio.open_connection(host, int(port))
    except OSError:
        return False
    writer.close()
    return True
