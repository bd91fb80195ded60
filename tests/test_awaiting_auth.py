"""Functions that wait, while they go on, for what their caller authorises somewhere else (AUTH-10)."""

import asyncio
import threading
from typing import Any

import pytest
from a2a_stubs import v1

from a2a_grpc.agent import TaskHandle, TurnEnded
from a2a_grpc.errors import UnsupportedOperationError
from a2a_grpc.tasks.memory import MemoryStore
from a2a_grpc.tasks.store import Store
from tests.stores import STORES, every_store  # noqa: F401
from tests.turns import (
    ALICE,
    AUTH,
    CANCELED,
    COMPLETED,
    FAILED,
    WORKING,
    agent,
    begin,
    engine,
    read,
    said,
    send,
    states,
    texts,
    until,
)


class Desk:
    """Where a caller authorises something, out of the protocol's sight."""

    def __init__(self) -> None:
        self.signed = asyncio.Event()
        self.heard: list[str] = []

    async def works(self, task: TaskHandle) -> str:
        async with task.awaiting_auth("Sign in at the desk"):
            await self.signed.wait()
        return "signed in"


@pytest.mark.requirement("AUTH-08", "AUTH-09", "AUTH-10", "OP-SEND-02", "OP-STREAM-06")
async def test_work_goes_on_without_a_message_once_the_caller_has_authorised_it(store: Store) -> None:
    desk = Desk()
    async with engine(store, desk.works) as made:
        asked = await send(made)  # which is answered while the function goes on
        task_id = asked.task.id
        assert asked.task.status.state == AUTH
        assert asked.task.status.message.parts[0].text == "Sign in at the desk"
        assert (await made.settled(ALICE, task_id)).task == asked.task == (await made.view(ALICE, task_id)).task
        stream = asyncio.ensure_future(read(made, task_id))
        await asyncio.sleep(0.05)
        assert not stream.done()
        desk.signed.set()
        assert states(await stream)[-3:] == [AUTH, WORKING, COMPLETED]
        done = (await made.settled(ALICE, task_id)).task
        assert (done.status.state, texts(done)) == (COMPLETED, ["signed in"])
        assert said(done) == ["hi", "Sign in at the desk"]


@pytest.mark.requirement("OP-SEND-16", "OP-SEND-17")
async def test_what_the_caller_says_meanwhile_is_taken_and_afterwards_refused_by_who_does_not_listen(
    store: Store,
) -> None:
    desk, go_on = Desk(), asyncio.Event()

    async def works(task: TaskHandle) -> str:
        said = await desk.works(task)
        await go_on.wait()
        return said

    async with engine(store, works) as made:
        task_id = (await send(made)).task.id
        answered = await send(made, "where is the desk?", task_id, message_id="m2")
        assert answered.task.status.state == AUTH and said(answered.task) == ["hi", "where is the desk?"]
        desk.signed.set()
        await until(lambda: not made._runtime.turns[task_id].waits)
        with pytest.raises(UnsupportedOperationError, match="being worked on"):
            await begin(made, "thanks", task_id, message_id="m3")
        go_on.set()
        assert texts((await made.settled(ALICE, task_id)).task) == ["signed in"]


@pytest.mark.requirement("OP-CANCEL-01", "OP-SEND-16")
async def test_the_wait_ends_with_a_cancel_with_an_error_and_with_what_the_caller_says(store: Store) -> None:
    async def listens(task: TaskHandle) -> Any:
        async with task.awaiting_auth("May I?", data={"scope": "all"}):
            word = (await anext(task.inbox)).parts[0].text
            if word == "fail":
                raise ValueError(word)
            if word == "no":
                await task.reject("then not")
            if word == "ask":
                with pytest.raises(TurnEnded, match="cannot become TASK_STATE_INPUT_REQUIRED"):
                    await task.ask("really?")
        return word

    async with engine(store, listens) as made:
        for word, end in (("fail", FAILED), ("no", v1.TASK_STATE_REJECTED), ("ask", COMPLETED), ("yes", COMPLETED)):
            asked = (await send(made)).task
            assert len(asked.status.message.parts) == 2
            await begin(made, word, asked.id, message_id=word)
            await read(made, asked.id)
            assert (await made.view(ALICE, asked.id)).task.status.state == end
        asked = (await send(made)).task
        canceled = await made.cancel(ALICE, asked.id, v1.CancelTaskRequest(id=asked.id))
        assert canceled.status.state == CANCELED


async def test_a_plain_function_waits_as_well() -> None:
    signed = threading.Event()

    def works(task: Any) -> str:
        with task.awaiting_auth("Sign in"):
            signed.wait()
        return "signed in"

    async with engine(MemoryStore(), works) as made:
        asked = (await send(made)).task
        assert asked.status.state == AUTH
        signed.set()
        assert states(await read(made, asked.id))[-2:] == [WORKING, COMPLETED]


@pytest.mark.requirement("BL-08")
async def test_a_turn_that_is_run_again_has_its_own_message_whatever_came_after_a_wait(store: Store) -> None:
    heard = asyncio.Event()

    async def works(task: TaskHandle) -> str:
        inbox = task.inbox
        if task.attempt == 1:
            async with task.awaiting_auth("Sign in"):
                await anext(inbox)
            heard.set()
            await asyncio.Event().wait()
        more = [(await anext(inbox)).parts[0].text for _ in range(2)]
        return f"{task.text}, then {more}, {task.answer}"

    again = agent(works, rerun_lost_turns=True)
    async with engine(store, again) as made:
        task_id = (await send(made)).task.id
        await begin(made, "one", task_id, message_id="m2")
        await heard.wait()
        await begin(made, "two", task_id, message_id="m3")
    async with engine(store, again) as made:
        assert texts((await made.settled(ALICE, task_id)).task) == ["hi, then ['one', 'two'], None"]


@pytest.mark.requirement("BL-08")
async def test_a_wait_lasts_no_longer_than_its_process(store: Store) -> None:
    desk = Desk()
    async with engine(store, desk.works) as made:
        task_id = (await send(made)).task.id
    async with engine(store, desk.works) as made:
        assert (await made.view(ALICE, task_id)).task.status.state == FAILED
