"""Law 9: the server and its client work with the lowest and the highest releases that the project allows."""

import os
import sys

import pytest

from tests.rules.sources import fresh_python

ROUND_TRIPS = """
import asyncio, tempfile
from a2a_stubs import v1
from a2a_grpc.agent import Agent
from a2a_grpc.client import Client
from a2a_grpc.testing import serve

agent = Agent(name="Echo", description="Says it again.", version="1.0.0", skills=[])


@agent.handle
async def echo(task):
    async with task.artifact(name="answer") as out:
        for word in task.text.split():
            await out.write(word)


def request(text):
    message = v1.Message(message_id=text, role=v1.ROLE_USER, parts=[v1.Part(text=text)])
    return v1.SendMessageRequest(message=message)


async def both_ways(client):
    task = (await client.send(request("one two"))).task
    assert task.status.state == v1.TASK_STATE_COMPLETED, task
    assert "".join(part.text for part in task.artifacts[0].parts) == "onetwo", task
    events = [event async for event in client.stream(request("three four"))]
    assert "".join(part.text for event in events for part in event.artifact_update.artifact.parts) == "threefour"


async def main():
    with tempfile.TemporaryDirectory() as folder:
        async with serve(agent, store=f"sqlite:{folder}/tasks.sqlite", deduplicate="off") as server:
            for binding in ("JSONRPC", "HTTP+JSON", "GRPC"):
                for version in ("1.0", "0.3"):
                    async with Client(server.http_url, binding=binding, version=version, timeout=60) as client:
                        await both_ways(client)


asyncio.run(main())
print("all answered")
"""


def check(python: str) -> None:
    done = fresh_python(ROUND_TRIPS, python=python)
    assert (done.returncode, done.stdout) == (0, "all answered\n"), f"{python}: {done.stderr}"


@pytest.mark.requirement("EQ-01", "EQ-02", "VER-07")
def test_the_server_answers_on_every_wire_and_version() -> None:
    check(sys.executable)


@pytest.mark.requirement("BL-41")
def test_the_server_answers_with_every_allowed_set_of_releases() -> None:
    pythons = [python for python in os.environ.get("A2A_RANGE_PYTHONS", "").split(os.pathsep) if python]
    if not pythons:
        pytest.skip("needs A2A_RANGE_PYTHONS, the Pythons with the lowest and the highest releases")
    for python in pythons:
        check(python)
