"""What a caller sees of tasks: sending, continuing, reading, canceling, whichever store is below."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from a2a_stubs import v1

from a2a_grpc.agent import TaskHandle
from a2a_grpc.errors import (
    InvalidParamsError,
    ResourceExhaustedError,
    TaskNotCancelableError,
    TaskNotFoundError,
    UnavailableError,
    UnsupportedOperationError,
)
from a2a_grpc.tasks.state import state_of
from a2a_grpc.tasks.store import Store, TaskQuery
from tests.stores import every_store  # noqa: F401
from tests.turns import (
    ALICE,
    AUTH,
    BOB,
    COMPLETED,
    FAILED,
    INPUT,
    SUBMITTED,
    WORKING,
    agent,
    ask,
    begin,
    call,
    engine,
    forever,
    message,
    read,
    said,
    send,
    states,
    texts,
    until,
)


async def echo(task: TaskHandle) -> str:
    return f"echo {task.text}"


@pytest.mark.requirement("OP-SEND-02", "OP-SEND-03", "OP-SEND-18", "CTX-01", "CTX-06", "CTX-13", "DATA-09", "LIST-18")
async def test_a_send_gives_the_finished_task(store: Store) -> None:
    async with engine(store, echo) as made:
        task = (await send(made)).task
        assert task.status.state == COMPLETED and task.status.timestamp.seconds
        assert texts(task) == ["echo hi"] and said(task) == ["hi"]
        assert task.context_id and not set(task.id) & set("/:?")
        assert task.history[0].task_id == task.id and task.history[0].context_id == task.context_id
        assert (await made.view(ALICE, task.id)).task == task
        assert made.running == len(made.feeds) == made.feeds.readers == 0


@pytest.mark.requirement(
    "OP-STREAM-03", "OP-STREAM-04", "OP-STREAM-08", "STREAM-01", "STREAM-08", "STREAM-10", "DATA-08"
)
async def test_a_stream_shows_the_task_then_every_step_then_ends(store: Store) -> None:
    async def steps(task: TaskHandle) -> None:
        await task.working("begin")
        async with task.artifact(name="answer") as out:
            for word in ["a", "b", "c"]:
                await out.write(word)
        await task.complete("done")

    async with engine(store, steps) as made:
        started = await begin(made)
        assert started.opening is not None and started.opening.task.status.state == SUBMITTED
        events = await read(made, started.task_id)
        kinds = [event.payload.WhichOneof("payload") for event in events]
        assert kinds == ["task", "status_update", *["artifact_update"] * 4, "status_update"]
        assert states(events) == [SUBMITTED, WORKING, COMPLETED]
        chunks = [event.payload.artifact_update for event in events[2:6]]
        assert [chunk.append for chunk in chunks] == [False, True, True, True]
        assert [chunk.last_chunk for chunk in chunks] == [False, False, False, True]
        assert len({chunk.artifact.artifact_id for chunk in chunks}) == 1
        assert all(chunk.task_id == started.task_id and chunk.context_id for chunk in chunks)
        task = (await made.view(ALICE, started.task_id)).task
        assert texts(task) == ["abc"] and len(task.artifacts[0].parts) == 1
        assert await read(made, started.task_id, events[3].sequence) == events[4:]
        assert await read(made, started.task_id, events[-1].sequence) == []
        assert await read(made, started.task_id, 1000) == []


@pytest.mark.requirement("I-67", "HIST-04", "OP-STREAM-08")
async def test_a_stream_begins_with_the_history_that_the_task_has(store: Store) -> None:
    async with engine(store, ask, keep_status_messages=False) as made:
        task = (await send(made)).task
        started = await begin(made, "blue", task.id)
        assert started.opening is not None and said(started.opening.task) == ["hi", "blue"]
        assert said((await made.settled(ALICE, task.id)).task) == ["hi", "blue"]


@pytest.mark.requirement("OP-SEND-06", "OP-SEND-15")
@pytest.mark.parametrize("given", [True, False], ids=["given", "kept"])
async def test_a_request_that_its_sender_keeps_stays_as_it_is(store: Store, given: bool) -> None:
    async def replies(task: TaskHandle) -> None:
        seen.append((task.message.task_id, task.message.context_id))
        await task.reply("hello")
        seen.append((task.message.task_id, task.message.context_id))

    seen: list[tuple[str, str]] = []
    for function in (ask, replies):
        async with engine(store, function) as made:
            sent, about = message("hi"), call()
            about.gives_request = given
            started = await made.begin(about, ALICE, sent)
            outcome = await started.outcome()
            assert given or sent == message("hi")
            if isinstance(outcome, v1.Message):
                assert seen[0] == seen[1] and all(seen[0]) and outcome.context_id == seen[0][1]
                kept = [v1.Message.FromString(body) for body in await store.messages(ALICE, outcome.context_id, 9)]
                assert [entry.task_id for entry in kept] == ["", ""] and kept[0].parts == sent.message.parts
            else:
                task = (await made.settled(ALICE, outcome)).task
                assert task.history[0].task_id == task.id == outcome and task.history[0].parts == sent.message.parts


@pytest.mark.requirement("HIST-01", "HIST-05")
async def test_a_history_that_nobody_asks_for_is_there_the_next_time(store: Store) -> None:
    async with engine(store, ask) as made:
        task_id = (await send(made)).task.id
        for number in range(3):
            started = await begin(made, str(number), task_id)
            bare = await made.settled(ALICE, task_id, started.turn, history=False)
            assert not bare.task.history and bare.task.context_id
            if bare.task.status.state != INPUT:
                break
        assert said((await made.view(ALICE, task_id)).task)[:3] == ["hi", "which?", "0"]


@pytest.mark.requirement("OP-SEND-15", "CTX-07", "CTX-09", "BL-11", "I-67")
async def test_an_answer_goes_on_with_the_task(store: Store) -> None:
    async with engine(store, ask) as made:
        task = (await send(made)).task
        assert task.status.state == INPUT and task.status.message.parts[0].text == "which?"
        started = await begin(made, "blue", task.id)
        assert started.opening is not None
        assert started.opening.task.status.state == WORKING and said(started.opening.task) == ["hi", "which?", "blue"]
        assert states(await read(made, task.id)) == [SUBMITTED, INPUT, WORKING, COMPLETED]
        assert await read(made, task.id, started.opening.sequence)
        after = (await made.settled(ALICE, task.id)).task
        assert (after.id, after.context_id) == (task.id, task.context_id)
        assert texts(after) == ["got blue"] and said(after) == ["hi", "which?", "blue"]


@pytest.mark.requirement("OP-SEND-16", "AUTH-08", "AUTH-12")
async def test_a_task_that_wants_authorisation_takes_a_message(store: Store) -> None:
    async def wants(task: TaskHandle) -> Any:
        return None if task.answer == "granted" else await task.ask_auth("Please log in")

    async with engine(store, wants) as made:
        task = (await send(made)).task
        assert task.status.state == AUTH and task.status.message.parts[0].text == "Please log in"
        assert (await send(made, "not yet", task.id)).task.status.state == AUTH
        assert (await send(made, "granted", task.id)).task.status.state == COMPLETED


@pytest.mark.requirement("OP-SEND-07", "OP-GET-02", "OP-CANCEL-03", "SUB-05", "BL-12", "BL-04", "AUTH-04", "CTX-12")
@pytest.mark.parametrize("function", [forever, ask, echo])
async def test_a_strangers_task_is_no_task_at_all(store: Store, function: Any) -> None:
    async with engine(store, function) as made:
        known = (await begin(made)).task_id
        for name in (known, "no-such-task"):
            for attempt in (
                lambda name=name: made.view(BOB, name),
                lambda name=name: made.settled(BOB, name),
                lambda name=name: read(made, name, scope=BOB),
                lambda name=name: made.cancel(BOB, name, v1.CancelTaskRequest(id=name)),
                lambda name=name: begin(made, "x", name, BOB),
            ):
                with pytest.raises(TaskNotFoundError):
                    await attempt()
        assert (await made.list(BOB, TaskQuery(), 0)).total == 0
        assert said((await made.view(ALICE, known)).task)[0] == "hi"
        assert len(made.feeds) <= 1 and made.feeds.readers == 0


@pytest.mark.requirement("CTX-08", "BL-13", "CTX-03")
async def test_another_context_than_the_tasks_is_refused_and_leaves_no_trace(store: Store) -> None:
    async with engine(store, ask) as made:
        task = (await send(made, context_id="mine")).task
        assert task.context_id == "mine"
        with pytest.raises(InvalidParamsError) as refused:
            await begin(made, "blue", task.id, context_id="other")
        assert refused.value.violations[0].field == "message.contextId"
        assert (await made.view(ALICE, task.id)).task == task
        assert (await send(made, "blue", task.id, context_id="mine")).task.status.state == COMPLETED


@pytest.mark.requirement("OP-SEND-06", "OP-CANCEL-02", "BL-14", "I-19")
@pytest.mark.parametrize("end", ["complete", "fail", "reject", "cancel"])
async def test_a_finished_task_takes_no_message_and_no_cancel(store: Store, end: str) -> None:
    async def ends(task: TaskHandle) -> None:
        if end == "cancel":
            await asyncio.Event().wait()
        await getattr(task, end)("so it is")

    async with engine(store, ends) as made:
        started = await begin(made)
        if end == "cancel":
            await made.cancel(ALICE, started.task_id, v1.CancelTaskRequest())
        before = await made.settled(ALICE, started.task_id)
        with pytest.raises(UnsupportedOperationError):
            await begin(made, "more", started.task_id)
        with pytest.raises(TaskNotCancelableError):
            await made.cancel(ALICE, started.task_id, v1.CancelTaskRequest())
        assert await made.view(ALICE, started.task_id) == before


@pytest.mark.requirement("OP-SEND-17", "BL-10")
async def test_a_message_for_a_task_at_work_is_refused(store: Store) -> None:
    async with engine(store, forever) as made:
        started = await begin(made)
        with pytest.raises(UnsupportedOperationError):
            await begin(made, "more", started.task_id)
        assert said((await made.view(ALICE, started.task_id)).task) == ["hi"]


@pytest.mark.requirement("OP-SEND-17", "I-08")
async def test_a_function_that_reads_its_inbox_gets_messages_while_it_works(store: Store) -> None:
    async def listens(task: TaskHandle) -> str:
        inbox = task.inbox
        await task.working("listening")
        return " ".join([(await anext(inbox)).parts[0].text for _ in range(2)])

    async with engine(store, listens) as made:
        started = await begin(made)
        for text in ("one", "two"):
            joined = await begin(made, text, started.task_id)
            assert await joined.outcome() == started.task_id and joined.opening is None
        task = (await made.settled(ALICE, started.task_id)).task
        assert texts(task) == ["one two"] and said(task) == ["hi", "listening", "one", "two"]
        events = await read(made, started.task_id)
        assert not any(event.payload.HasField("message") for event in events)


@pytest.mark.requirement("OP-SEND-01", "OP-SEND-05", "OP-SEND-19", "OP-STREAM-02", "CTX-02")
async def test_a_reply_is_a_message_and_no_task(store: Store) -> None:
    async def replies(task: TaskHandle) -> None:
        earlier = [entry.parts[0].text for entry in await task.context.messages()]
        await task.reply(f"{task.text} after {earlier}")

    async with engine(store, replies) as made:
        answer = await (await begin(made, context_id="c")).outcome()
        assert isinstance(answer, v1.Message)
        assert answer.parts[0].text == "hi after []" and answer.context_id == "c" and not answer.task_id
        assert answer.role == v1.ROLE_AGENT and answer.message_id
        again = await (await begin(made, "ho", context_id="c")).outcome()
        assert isinstance(again, v1.Message) and again.parts[0].text == "ho after ['hi', 'hi after []']"
        other = await (await begin(made, "ha", context_id="c", scope=BOB)).outcome()
        assert isinstance(other, v1.Message) and other.parts[0].text == "ha after []"
        assert (await made.list(ALICE, TaskQuery(), 0)).total == 0 == made.running == len(made.feeds)


@pytest.mark.requirement("OP-SEND-20", "I-08")
async def test_a_function_that_may_reply_can_make_a_task_instead(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    async def either(task: TaskHandle) -> Any:
        if task.text == "task":
            await task.working("at it")
            await task.reply("the end")
        elif task.text == "nothing":
            return
        elif task.text == "raise":
            raise ValueError("secret")
        else:
            await task.reply("direct")

    async with engine(store, either) as made:
        started = await begin(made, "task")
        task = (await made.settled(ALICE, str(await started.outcome()))).task
        assert task.status.state == COMPLETED and task.status.message.parts[0].text == "the end"
        assert said(task) == ["task", "at it"] and "replies=True" in caplog.text
        for text, state in (("nothing", COMPLETED), ("raise", FAILED)):
            started = await begin(made, text)
            assert (await made.settled(ALICE, str(await started.outcome()))).task.status.state == state
            assert states(await read(made, started.task_id)) == [SUBMITTED, state]
        assert isinstance(await (await begin(made)).outcome(), v1.Message)


@pytest.mark.requirement("SUB-07", "SUB-08", "SUB-09", "BL-06", "I-06", "STREAM-02", "STREAM-03")
async def test_readers_of_a_waiting_task_see_the_later_turns(store: Store) -> None:
    async with engine(store, ask) as made:
        task = (await send(made)).task
        readers = [asyncio.ensure_future(read(made, task.id, after)) for after in (0, 1, 2, 2)]
        await until(lambda: made.feeds.readers == 4)
        await send(made, "blue", task.id)
        found = await asyncio.gather(*readers)
        assert states(found[0]) == [SUBMITTED, INPUT, WORKING, COMPLETED]
        assert found[1] == found[0][1:] and found[2] == found[3] == found[0][2:]
        assert made.feeds.readers == len(made.feeds) == 0


@pytest.mark.requirement("OP-SEND-21", "STREAM-04", "STREAM-05", "BL-01")
async def test_a_task_runs_on_when_everybody_has_gone(store: Store) -> None:
    go = asyncio.Event()

    async def works(task: TaskHandle) -> AsyncIterator[str]:
        yield "a"
        await go.wait()
        yield "b"

    async with engine(store, works) as made:
        started = await begin(made)
        waiting = asyncio.ensure_future(made.settled(ALICE, started.task_id))
        events = made.follow(ALICE, started.task_id, 0)
        await anext(events)
        waiting.cancel()
        await events.aclose()  # type: ignore[attr-defined]
        go.set()
        task = (await made.settled(ALICE, started.task_id)).task
        assert task.status.state == COMPLETED and texts(task) == ["ab"]


@pytest.mark.requirement("OP-SEND-21", "BL-01")
async def test_a_send_that_is_given_up_at_once_still_makes_its_task(store: Store) -> None:
    async with engine(store, echo) as made:
        for pauses in range(6):
            sending = asyncio.ensure_future(begin(made))
            for _ in range(pauses):
                await asyncio.sleep(0)
            sending.cancel()
            await asyncio.wait((sending,))
        await until(lambda: not made.running)
        entries = (await made.list(ALICE, TaskQuery(), 0)).entries
        tasks = v1.ListTasksResponse.FromString(b"".join(entries)).tasks
        assert tasks and all(task.status.state == COMPLETED for task in tasks)


@pytest.mark.requirement("SEC-04", "DATA-15")
async def test_more_turns_than_allowed_are_refused_with_a_time_to_come_back(store: Store) -> None:
    async with engine(store, forever, max_turns=2) as made:
        first = await begin(made)
        await begin(made)
        with pytest.raises(ResourceExhaustedError) as refused:
            await begin(made)
        assert refused.value.retry_after
        await made.cancel(ALICE, first.task_id, v1.CancelTaskRequest())
        assert (await begin(made)).task_id


@pytest.mark.requirement("LIST-01", "LIST-02", "LIST-08", "LIST-09", "LIST-12", "CTX-14")
async def test_a_list_shows_running_and_finished_tasks(store: Store) -> None:
    async def either(task: TaskHandle) -> Any:
        await task.add_artifact("begun")
        if task.text == "go on":
            await asyncio.Event().wait()

    async with engine(store, either) as made:
        done = (await send(made, context_id="c")).task
        running = (await begin(made, "go on", context_id="c")).task_id
        async for event in made.follow(ALICE, running, 0):
            if state_of(event.payload) == WORKING:
                break

        async def listed(**query: Any) -> Sequence[v1.Task]:
            page = await made.list(ALICE, TaskQuery(**query), 100)
            assert not page.more and page.last is not None and page.total == len(page.entries)
            return v1.ListTasksResponse.FromString(b"".join(page.entries)).tasks

        tasks = await listed()
        assert [task.id for task in tasks] in ([running, done.id], [done.id, running])  # same ms: by id
        assert all(texts(task) == ["begun"] for task in tasks)
        assert not any(task.artifacts for task in await listed(artifacts=False))
        assert [task.id for task in await listed(state=WORKING)] == [running]


@pytest.mark.requirement("OP-SEND-11", "L-20", "PUSH-29")
async def test_a_push_config_in_a_send_is_kept_with_the_task(store: Store) -> None:
    async with engine(store, ask, push_notifications=True) as made:
        request = message()
        config = request.configuration.task_push_notification_config
        config.url = "https://agent.example/hook"
        started = await made.begin(call(), ALICE, request)
        view = await made.settled(ALICE, started.task_id)
        found = await store.push_config(ALICE, started.task_id, started.task_id)
        assert found is not None and found.version == "1.0"
        assert v1.TaskPushNotificationConfig.FromString(found.config).task_id == started.task_id
        (delivery,) = await store.due("me", 2**50, 2**50 + 1000, 10)
        assert (delivery.cursor, delivery.due) == (0, view.sequence)
        answer = message("blue", started.task_id)
        answer.configuration.CopyFrom(request.configuration)
        await made.settled(ALICE, (await made.begin(call(), ALICE, answer)).task_id)
        assert len(await store.push_configs(ALICE, started.task_id, "", 10) or ()) == 1


@pytest.mark.requirement("BL-34")
async def test_nothing_begins_while_the_server_stops(store: Store) -> None:
    async with engine(store, echo) as made:
        made.draining = True
        with pytest.raises(UnavailableError):
            await begin(made)


@pytest.mark.requirement("OP-GET-05")
async def test_an_agent_without_a_function_is_a_clear_error(store: Store) -> None:
    async with engine(store, agent()) as made:
        with pytest.raises(ValueError, match=r"@agent\.handle"):
            await begin(made)
