"""The agents of the scenarios: one function whose first word says what it does, so that a scenario reads as one line.

Laws: a scene is a function of this table, `(task, *words of the first message)`; what a scene waits for, a test opens
by name. Nothing here knows a wire, a version or a store.
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from a2a_stubs import v1

from a2a_grpc.agent import Agent, Extension, Failed, Rejected, Skill, TaskHandle
from a2a_grpc.call import Call

SECRET = "dsn=db://user:pw@host"
TENANTS = ("acme", "globex")
OPTIONAL, REQUIRED = "https://ext.example/optional/v1", "https://ext.example/required/v1"

gates: dict[str, asyncio.Event] = defaultdict(asyncio.Event)
"""What a scene waits for, by name."""
notes: dict[str, list[Any]] = defaultdict(list)
"""What a scene has seen, by name."""


async def echo(task: TaskHandle, *words: str) -> None:
    await task.add_artifact(" ".join(words), name="echo")


async def reply(task: TaskHandle, *words: str) -> None:
    await task.reply(" ".join(words))


async def chunks(task: TaskHandle, count: str) -> None:
    async with task.artifact(name="out") as out:
        for number in range(int(count)):
            await out.write(f"{number} ")


async def states(task: TaskHandle) -> None:
    await task.working("one")
    await task.add_artifact("found", name="result")
    await task.working("two")
    await task.complete("done")


async def ask(task: TaskHandle, times: str = "1") -> None:
    answers = task.state.setdefault("answers", [])
    if task.answer is not None:
        answers.append(task.answer)
    if len(answers) < int(times):
        await task.ask(f"question {len(answers) + 1}")
    else:
        await task.add_artifact(answers, name="answers")


async def auth(task: TaskHandle) -> None:
    if task.answer is None:
        await task.ask_auth("sign in")
    else:
        await task.add_artifact("signed in")


async def sign_in(task: TaskHandle, name: str) -> None:
    async with task.awaiting_auth("sign in"):
        await gates[name].wait()
    await task.add_artifact("signed in")


async def fail(task: TaskHandle, *words: str) -> None:
    raise Failed(" ".join(words))


async def reject(task: TaskHandle, *words: str) -> None:
    raise Rejected(" ".join(words))


async def crash(task: TaskHandle) -> None:
    raise RuntimeError(SECRET)


async def crash_late(task: TaskHandle) -> None:
    await task.add_artifact("first")
    await task.add_artifact("second")
    raise RuntimeError(SECRET)


async def crash_inside(task: TaskHandle) -> None:
    inner = asyncio.ensure_future(asyncio.sleep(3600))
    inner.cancel()
    await inner


async def hold(task: TaskHandle, name: str) -> None:
    await task.working("holding")
    await gates[name].wait()
    await task.add_artifact("released")


async def steps(task: TaskHandle, name: str) -> None:
    async with task.artifact(name="out") as out:
        for number in range(3):
            await out.write(f"{number} ")
            await gates[f"{name}-{number}"].wait()


async def stubborn(task: TaskHandle, name: str) -> None:
    await task.working("holding")
    try:
        await gates[name].wait()
    except asyncio.CancelledError:
        notes[name].append(task.cancel_metadata)
        await task.complete("too late")


async def give_parts(task: TaskHandle) -> None:
    await task.add_artifact(list(task.parts), name="parts")


async def give_data(task: TaskHandle) -> Any:
    return {"whole": 1, "half": 0.5, "nothing": None, "list": [1, [2, {"deep": True}]], "text": "ü€𝄞"}


async def facts(task: TaskHandle) -> Any:
    return {
        "metadata": task.metadata,
        "extensions": list(task.extensions),
        "tenant": task.tenant,
        "modes": task.accepted_output_modes,
        "history": [entry.parts[0].text for entry in task.history],
    }


async def around(task: TaskHandle) -> Any:
    return {
        "tasks": [other.id for other in await task.context.tasks()],
        "messages": [entry.parts[0].text for entry in await task.context.messages()],
        "referenced": [other.id for other in await task.context.referenced()],
    }


async def listen(task: TaskHandle) -> None:
    inbox = task.inbox
    await task.working("listening")
    async with task.artifact(name="heard") as out:
        async for message in inbox:
            if message.parts[0].text == "stop":
                return
            await out.write(message.parts[0].text + " ")


async def remember(task: TaskHandle, key: str, value: str) -> None:
    await task.context.memory.set(key, value)


async def recall(task: TaskHandle, key: str) -> Any:
    return {"value": await task.context.memory.get(key)}


async def silent(task: TaskHandle) -> None:
    """Completes without a word."""


async def misbehave(task: TaskHandle) -> None:
    await task.add_artifact([v1.Part()])


async def big(task: TaskHandle, size: str) -> None:
    await task.add_artifact(b"\x00" * int(size), name="big")


SCENES: dict[str, Callable[..., Awaitable[Any]]] = {
    scene.__name__: scene
    for scene in (
        *(echo, reply, chunks, states, ask, auth, sign_in, fail, reject, crash, crash_late, crash_inside),
        *(hold, steps, stubborn, give_parts, give_data, facts, around, listen, remember, recall, silent),
        *(misbehave, big),
    )
}


async def play(task: TaskHandle) -> Any:
    first = task.history[0]
    name, *words = first.parts[0].text.split() or ["give_parts"]
    return await SCENES[name](task, *words)


def _agent(**more: Any) -> Agent:
    about = {"name": "Scenes", "description": "Does what the first word says.", "version": "1.0.0"}
    return Agent(**{"skills": [Skill(id="scenes", name="Scenes")], "default_input_modes": ("*/*",), **about, **more})


def scenes(**more: Any) -> Agent:
    """Makes a task of every message."""
    made = _agent(tenants=TENANTS, extensions=[Extension(OPTIONAL)], **more)
    made.handle(replies=False)(play)
    return made


def talker() -> Agent:
    """The same scenes, and may answer without a task."""
    made = _agent()
    made.handle(replies=True)(play)
    return made


def mute() -> Agent:
    """Does not stream."""
    return scenes(streaming=False)


def picky() -> Agent:
    """Reads plain text only."""
    return scenes(default_input_modes=("text/plain",))


def demanding() -> Agent:
    """Wants an extension."""
    made = _agent(extensions=[Extension(REQUIRED, required=True)])
    made.handle(replies=False)(play)
    return made


def plain() -> Agent:
    """A plain function, which runs in a thread."""
    made = _agent()

    @made.handle
    def work(task: Any) -> str:
        task.working("in a thread")
        with task.artifact(name="written") as out:
            out.write("a ")
            out.write(task.text)
        return "returned"

    return made


def generator() -> Agent:
    """An async generator."""
    made = _agent()

    @made.handle
    async def work(task: TaskHandle) -> AsyncIterator[str]:
        for word in task.text.split():
            yield word + " "

    return made


def known() -> Agent:
    """Has an extended card, for whom it has proof of."""

    async def card(call: Call) -> v1.AgentCard | None:
        if call.caller.subject == "nobody":
            return None
        return v1.AgentCard(description=f"extended for {call.caller.subject}")

    return scenes(extended_card=card)


AGENTS: dict[str, Callable[[], Agent]] = {
    made.__name__: made for made in (scenes, talker, mute, picky, demanding, plain, generator, known)
}
