"""Agents for tests under fault, told by the message's text what to do; served in processes of their own, or here.

Laws: a deed is a row of DEEDS, called with the task and the numbers after its name. What a deed makes says who made
it, so that a test can tell one attempt from another.
"""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from a2a_grpc.agent import Agent, Skill, TaskHandle

SECRET = "dsn=db://user:pw@host"
"""Stands in the text of exceptions, and must never reach a caller."""


async def count(task: TaskHandle, amount: float, pause: float = 0, size: float = 0) -> None:
    """Stream chunks "0 ", "1 ", ... of one artifact, padded to `size` characters."""
    async with task.artifact(name=f"attempt {task.attempt}") as out:
        for number in range(int(amount)):
            await out.write(f"{number} ".ljust(int(size)))
            await asyncio.sleep(pause)


async def parts(task: TaskHandle, amount: float, pause: float) -> None:
    """Add whole artifacts, one at a time."""
    for number in range(int(amount)):
        await task.add_artifact(f"part {number}")
        await asyncio.sleep(pause)


async def ask(task: TaskHandle) -> None:
    """Ask a question; the answer ends the task (see `work`)."""
    await task.ask("Which one?")


async def listen(task: TaskHandle, amount: float) -> None:
    """Repeat what is sent while it works, until so many messages have come."""
    inbox = task.inbox
    await task.working("listening")
    async with task.artifact(name=f"attempt {task.attempt}") as out:
        for _ in range(int(amount)):
            await out.write(f"{(await anext(inbox)).parts[0].text} ")


async def sleep(task: TaskHandle, seconds: float) -> str:
    """Say nothing for a while."""
    await asyncio.sleep(seconds)
    return "slept"


async def crash(task: TaskHandle) -> None:
    """Fail with a text that is nobody's business."""
    raise RuntimeError(SECRET)


DEEDS: dict[str, Callable[..., Any]] = {deed.__name__: deed for deed in (count, parts, ask, listen, sleep, crash)}


async def work(task: TaskHandle) -> Any:
    """Do what the text says; an answer to a question that is nothing to do is repeated."""
    name, *numbers = task.text.split()
    if task.answer is not None and name not in DEEDS:
        return f"you said {task.answer}"
    return await DEEDS[name](task, *map(float, numbers))


async def hog(task: TaskHandle) -> str:
    """Hold the event loop for a while, which no author should."""
    time.sleep(float(task.text))  # noqa: ASYNC251 - that is the fault
    return "held"


def block(task: TaskHandle) -> str:
    """Hold a thread for a while."""
    time.sleep(float(task.text))
    return "held"


async def ignore(task: TaskHandle) -> None:
    """Hear nothing of a cancel for a while."""
    end = time.monotonic() + float(task.text)
    while time.monotonic() < end:
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(1)


async def lend(task: TaskHandle) -> None:
    """Hold a thread of the event loop's own pool for a while."""
    await asyncio.to_thread(time.sleep, float(task.text))


def made(function: Callable[..., Any], **more: Any) -> Agent:
    """An agent with this function."""
    skills = [Skill(id="s", name="S", tags=["s"])]
    agent = Agent(name="Worker", description="Does as told.", version="1", skills=skills, **more)
    agent.handle(function)
    return agent


worker = made(work)
stubborn = made(work, rerun_lost_turns=True)
blocker = made(block)
hogger = made(hog)
deaf = made(ignore)
pooler = made(lend)
