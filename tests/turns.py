"""Engines under test and short ways to talk to one.

Laws: a test says what the agent's function does and what the caller then sees; the store is whichever `store` gives.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from a2a_stubs import v1

from a2a_grpc.agent import Agent, TaskHandle
from a2a_grpc.call import Call, Caller
from a2a_grpc.config import Options
from a2a_grpc.tasks.bus import LocalBus
from a2a_grpc.tasks.engine import Engine
from a2a_grpc.tasks.run import Started
from a2a_grpc.tasks.state import state_of
from a2a_grpc.tasks.store import Event, Scope, Store
from a2a_grpc.tasks.views import View

ALICE, BOB = Scope("", "", "alice"), Scope("", "", "bob")
COMPLETED, FAILED, CANCELED = v1.TASK_STATE_COMPLETED, v1.TASK_STATE_FAILED, v1.TASK_STATE_CANCELED
SUBMITTED, WORKING, REJECTED = v1.TASK_STATE_SUBMITTED, v1.TASK_STATE_WORKING, v1.TASK_STATE_REJECTED
INPUT, AUTH = v1.TASK_STATE_INPUT_REQUIRED, v1.TASK_STATE_AUTH_REQUIRED


async def ask(task: TaskHandle) -> Any:
    if task.answer is None:
        return await task.ask("which?")
    return f"got {task.answer}"


async def forever(task: TaskHandle) -> None:
    await task.working("at it")
    await asyncio.Event().wait()


def agent(function: Callable[..., Any] | None = None, *, replies: bool | None = None, **more: Any) -> Agent:
    made = Agent(**{"name": "Tester", "description": "d", "version": "1", "skills": [], **more})
    if function is not None:
        made.handle(replies=replies)(function)
    return made


def message(text: str = "hi", task_id: str = "", message_id: str = "m", context_id: str = "") -> v1.SendMessageRequest:
    request = v1.SendMessageRequest()
    request.message.message_id, request.message.role = message_id, v1.ROLE_USER
    request.message.task_id, request.message.context_id = task_id, context_id
    request.message.parts.add(text=text)
    return request


def call(scope: Scope = ALICE) -> Call:
    return Call("send", caller=Caller(scope.owner, authenticated=True))


@asynccontextmanager
async def engine(store: Store, function: Any, **options: Any) -> AsyncIterator[Engine]:
    """An engine for one function (or Agent); repeated message ids are new messages unless an option says otherwise."""
    settings = Options(**{"store": "memory:", "deduplicate": "off", "cancel_grace": 0.2, **options})
    made = Engine(store, LocalBus(), {"": function if isinstance(function, Agent) else agent(function)}, settings)
    await made.start()
    try:
        yield made
    finally:
        await made.drain(0)


async def until(condition: Callable[[], Any]) -> None:
    """Wait until a condition holds; the test's own limit ends a wait in vain."""
    while not condition():  # noqa: ASYNC110
        await asyncio.sleep(0.001)


async def begin(engine: Engine, text: str = "hi", task_id: str = "", scope: Scope = ALICE, **more: Any) -> Started:
    return await engine.begin(call(scope), scope, message(text, task_id, **more))


async def send(engine: Engine, text: str = "hi", task_id: str = "", scope: Scope = ALICE, **more: Any) -> View:
    """Send and wait for the end of the turn."""
    started = await begin(engine, text, task_id, scope, **more)
    return await engine.settled(scope, str(await started.outcome()))


async def read(engine: Engine, task_id: str, after: int = 0, scope: Scope = ALICE) -> list[Event]:
    """Every event after a number up to the end of the task; checks that they are in order, without gap or double."""
    found = [event async for event in engine.follow(scope, task_id, after)]
    numbers = [event.sequence for event in found]
    assert numbers == sorted(set(numbers))
    return found


def states(events: list[Event]) -> list[int]:
    return [state for event in events if (state := state_of(event.payload))]


def texts(task: v1.Task) -> list[str]:
    """The text of each artifact."""
    return ["".join(part.text for part in artifact.parts) for artifact in task.artifacts]


def said(task: v1.Task) -> list[str]:
    """The text of each message of the history."""
    return [entry.parts[0].text for entry in task.history]
