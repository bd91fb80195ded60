"""Clients in scripts without asyncio."""

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from a2a_stubs import v1

from a2a_grpc import Agent, RemoteAgent, blocking, errors
from a2a_grpc.client import Client
from a2a_grpc.testing import serve


@pytest.fixture
def url() -> Iterator[str]:
    """An agent that runs in a thread of its own, as it would in another process."""
    agent = Agent(name="Echo", description="Says it again.", version="1", skills=[])
    agent.handle(lambda task: task.text)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    place = serve(agent)
    server = asyncio.run_coroutine_threadsafe(place.__aenter__(), loop).result()
    yield server.http_url
    asyncio.run_coroutine_threadsafe(place.__aexit__(None, None, None), loop).result()
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


def test_what_is_awaited_elsewhere_is_waited_for(url: str) -> None:
    with blocking(Client(url, timeout=60)) as client:
        message = v1.Message(message_id="m", role="ROLE_USER", parts=[v1.Part(text="hi")])
        task = client.send(v1.SendMessageRequest(message=message)).task
        assert client.get(task.id) == task and client.card.name == "Echo"
        assert [found.id for found in client.tasks()] == [task.id]
        message.message_id = "n"
        kinds = [event.WhichOneof("payload") for event in client.stream(v1.SendMessageRequest(message=message))]
        assert kinds[0] == "task" and kinds[-1] == "status_update"
        with pytest.raises(errors.TaskNotFoundError):
            client.get("nowhere")
    with blocking(RemoteAgent(url)) as agent:
        assert agent.generate("one").text == "one"
        run = agent.stream("two")
        assert "".join(update.text for update in run) == "two" and run.result().finish_reason == "stop"
    assert not [one for one in threading.enumerate() if one.name == "a2a-blocking"]


def test_threads_may_share_what_waits_until_its_block_ends(url: str) -> None:
    with blocking(RemoteAgent(url)) as agent, ThreadPoolExecutor(8) as threads:
        words = [f"word-{number}" for number in range(40)]
        assert [result.text for result in threads.map(agent.generate, words)] == words
        runs = [agent.stream(word) for word in words]
        assert list(threads.map(lambda run: "".join(update.text for update in run), runs)) == words
        run = agent.stream("late")
    for late in (lambda: agent.generate("late"), lambda: next(run)):
        with pytest.raises(RuntimeError, match="block has ended"):
            late()


async def test_where_a_loop_runs_nobody_may_wait() -> None:
    with pytest.raises(RuntimeError, match="async with"), blocking(Client("http://127.0.0.1:1")):
        pass
