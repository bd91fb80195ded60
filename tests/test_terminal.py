"""`a2a-grpc chat` and `a2a-grpc call` on a terminal, as a person uses them."""

import asyncio

import pytest
from a2a_stubs import v1

from a2a_grpc.client import Client
from a2a_grpc.testing import serve
from tests.fronts import eventually
from tests.terminals import CTRL_C, CTRL_D, Terminal, terminal
from tests.test_chat import BINDINGS, shop


async def states(url: str) -> list[int]:
    """Of the agent's tasks, the latest first."""
    async with Client(url) as client:
        return [task.status.state async for task in client.tasks()]


async def said(screen: Terminal, words: str, answer: str, prompt: str = "> ") -> None:
    """Type a line, and see its answer and the next prompt."""
    screen.press(f"{words}\r")
    await screen.shows(answer)
    await screen.shows(prompt)


@pytest.mark.parametrize("binding", BINDINGS)
async def test_a_conversation_at_a_terminal(binding: str) -> None:
    async with serve(shop()) as server, terminal("chat", server.http_url, "--binding", binding) as screen:
        await screen.shows("Shop 1: Sells tea.")
        await screen.shows("> ")
        await said(screen, "hello", "hello, 0 before")
        assert "… boiling" in screen.seen
        await said(screen, "order", "? Which size?", "answer> ")
        await said(screen, "large", "One large pot.")
        await said(screen, "/dance", "/dance is nothing that can be done")
        screen.press("wait\r")
        await screen.shows("… brewing")
        screen.press(CTRL_C)
        await screen.shows("canceled")
        await screen.shows("> ")
        assert (await states(server.http_url))[0] == v1.TASK_STATE_CANCELED
        await said(screen, "again", "again, 1 before")
        screen.press(CTRL_D)
        assert await screen.ended() == 0
        seen = [line for line in screen.lines if line]
        assert seen[-2:] == ["> again", "again, 1 before"] or seen[-3:-1] == ["> again", "again, 1 before"]
        assert not [line for line in seen if line.startswith("…")]


async def test_an_interrupt_between_runs_ends_the_conversation() -> None:
    async with serve(shop()) as server, terminal("chat", server.http_url) as screen:
        await screen.shows("> ")
        while screen.process.returncode is None:  # a signal that comes before `input` listens is seen with the next
            screen.press(CTRL_C)
            await asyncio.wait((asyncio.create_task(screen.ended()),), timeout=5.0)
        assert screen.process.returncode == 130
        assert "Traceback" not in screen.seen


@pytest.mark.parametrize("action", ["stream", "send"])
async def test_a_call_at_a_terminal_tells_of_its_work_and_is_left_by_an_interrupt(action: str) -> None:
    async with serve(shop()) as server:
        async with terminal("call", action, server.http_url, "hello") as screen:
            assert await screen.ended() == 0
            await screen.shows("hello, 0 before")
            assert ("… boiling" in screen.seen) == (action == "stream")
            assert [line for line in screen.lines if line] == ["hello, 0 before"]
        async with terminal("call", action, server.http_url, "wait") as screen:
            if action == "stream":
                await screen.shows("… brewing")

            async def works() -> bool:
                return v1.TASK_STATE_WORKING in await states(server.http_url)

            await eventually(works)
            screen.press(CTRL_C)
            assert await screen.ended() == 130
            assert "Traceback" not in screen.seen
        assert v1.TASK_STATE_WORKING in await states(server.http_url)  # a call that is left leaves its task alone
