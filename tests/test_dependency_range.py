"""Stubs, server and client work with the lowest and the highest releases of all that the project and its extras need.

Each Python named in A2A_RANGE_PYTHONS (separated as in PATH) has one set of releases installed. What an extra is for is
tried with them by its page: `make release-check` reads the documentation with each set, see docs/development.md.
"""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.stores import nats_url, postgres_url

ROOT = Path(__file__).resolve().parent.parent
SCRIPT = """
import asyncio, sys, warnings

warnings.simplefilter("error")
from a2a_stubs import google, v1, v03

assert "grpc" not in sys.modules, "messages alone need no grpc"
for stubs in (v1, v03):
    task = stubs.Task(id="t", status=stubs.TaskStatus(state=stubs.TASK_STATE_WORKING))
    task.status.timestamp.FromSeconds(1700000000)
    task.metadata.update({"k": [1.5, None, {"deep": True}]})
    again = stubs.Task.FromString(task.SerializeToString())
    assert again == task and again.metadata["k"][2]["deep"] is True and type(again.metadata) is google.Struct

import grpc
from a2a_stubs import v1_grpc, v03_grpc


class Agent(v1_grpc.A2AServiceServicer):
    async def GetTask(self, request, context):
        return v1.Task(id=request.id)

    async def SubscribeToTask(self, request, context):
        for state in (v1.TASK_STATE_WORKING, v1.TASK_STATE_COMPLETED):
            yield v1.StreamResponse(task=v1.Task(id=request.id, status=v1.TaskStatus(state=state)))


async def asynchronous(target):
    async with grpc.aio.insecure_channel(target) as channel:
        stub = v1_grpc.A2AServiceStub(channel)
        assert (await stub.GetTask(v1.GetTaskRequest(id="x"), timeout=30)).id == "x"
        events = stub.SubscribeToTask(v1.SubscribeToTaskRequest(id="x"))
        states = [event.task.status.state async for event in events]
        assert states == [v1.TASK_STATE_WORKING, v1.TASK_STATE_COMPLETED]
        for call in (stub.CancelTask(v1.CancelTaskRequest(id="x")), old_card(channel)):
            try:
                await call
                raise SystemExit("a method that nobody wrote has answered")
            except grpc.aio.AioRpcError as error:
                assert error.code() == grpc.StatusCode.UNIMPLEMENTED, error
        try:
            async for _ in stub.SendStreamingMessage(v1.SendMessageRequest()):
                raise SystemExit("a stream that nobody wrote has answered")
        except grpc.aio.AioRpcError as error:
            assert error.code() == grpc.StatusCode.UNIMPLEMENTED, error


def old_card(channel):
    return v03_grpc.A2AServiceStub(channel).GetAgentCard(v03.GetAgentCardRequest())


def blocking(target):
    with grpc.insecure_channel(target) as channel:
        stub = v1_grpc.A2AServiceStub(channel)
        assert stub.GetTask(v1.GetTaskRequest(id="y"), timeout=30).id == "y"
        assert len(list(stub.SubscribeToTask(v1.SubscribeToTaskRequest(id="y")))) == 2


async def main():
    server = grpc.aio.server()
    v1_grpc.add_A2AServiceServicer_to_server(Agent(), server)
    v03_grpc.add_A2AServiceServicer_to_server(v03_grpc.A2AServiceServicer(), server)
    target = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    await server.start()
    await asynchronous(target)
    await asyncio.to_thread(blocking, target)
    await server.stop(None)


asyncio.run(main())
print("round trips done")
"""

PRODUCT = """
import asyncio, os

from a2a_grpc import Agent, Client, Options, Server
from a2a_grpc.errors import TaskNotFoundError
from a2a_stubs import v1

agent = Agent(name="Echo", description="Says it again.", version="1", skills=[])


@agent.handle
async def answer(task):
    return task.text


async def missing(call):
    try:
        await call
    except TaskNotFoundError:
        return
    raise SystemExit("a task that is not there was found")


async def main():
    message = v1.Message(message_id="m", role=v1.ROLE_USER, parts=[v1.Part(text="hello")])
    kept = {"store": os.environ.get("RANGE_STORE", "memory:"), "bus": os.environ.get("RANGE_BUS", "")}
    async with Server(agent, Options(grpc="127.0.0.1:0", http="127.0.0.1:0", deduplicate="off", **kept)) as server:
        for binding in ("GRPC", "JSONRPC", "HTTP+JSON"):
            async with Client(server.http_url, binding=binding) as client:
                task = (await client.send(v1.SendMessageRequest(message=message))).task
                assert task.artifacts[0].parts[0].text == "hello", task
                await missing(client.get("none"))
                await missing(anext(aiter(client.subscribe("none"))))


asyncio.run(main())
print("round trips done")
"""
SCRIPTS = pytest.mark.parametrize("script", [SCRIPT, PRODUCT], ids=["stubs", "product"])


def pythons() -> list[str]:
    """Those with a set of releases each."""
    found = [python for python in os.environ.get("A2A_RANGE_PYTHONS", "").split(os.pathsep) if python]
    if not found:
        pytest.skip("needs A2A_RANGE_PYTHONS, the Pythons with the lowest and the highest releases")
    return found


def check(python: str, script: str, **environment: str) -> None:
    path = os.pathsep.join((str(ROOT), str(ROOT / "generated")))
    done = subprocess.run(
        [python, "-c", script],
        env={**os.environ, **environment, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, done.stdout) == (0, "round trips done\n"), f"{python}: {done.stderr}"


@SCRIPTS
def test_all_works_with_the_installed_releases(script: str) -> None:
    check(sys.executable, script)


@SCRIPTS
def test_all_works_with_every_allowed_set_of_releases(script: str) -> None:
    for python in pythons():
        check(python, script)


async def test_replicas_are_joined_with_every_allowed_set_of_releases() -> None:
    for python in pythons():
        async with postgres_url() as url:
            for bus in (url, nats_url(url)):
                await asyncio.to_thread(check, python, PRODUCT, RANGE_STORE=url, RANGE_BUS=bus)
