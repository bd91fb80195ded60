"""Remote agents as local ones: runs, questions, the end of a run; and delegation from one agent to another."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
from a2a_stubs import v1

from a2a_grpc import Agent, Failed, Rejected, TaskHandle, errors
from a2a_grpc.client import Client
from a2a_grpc.remote import RemoteAgent, Result
from a2a_grpc.server import Server
from a2a_grpc.testing import serve
from tests.fronts import WIRES

SCHEMA = {"type": "object", "properties": {"size": {"type": "string"}}}
STARTED: dict[str, asyncio.Event] = {}
CANCELED: dict[str, asyncio.Event] = {}
PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def make(streaming: bool = True) -> Agent:
    agent = Agent(name="Back", description="Does as it is told.", version="1", skills=[], streaming=streaming)

    @agent.handle(replies=True)
    async def work(task: TaskHandle) -> Any:
        word, _, rest = task.text.partition(" ")
        if task.answer is not None:
            return {"answered": task.answer, "trace": task.call.metadata.get("traceparent", "")}
        if word == "reply":
            return await task.reply(rest)
        if word == "ask":
            return await task.ask("Which size?", data={"sizes": ["S", "L"]}, schema=SCHEMA)
        if word == "auth":
            return await task.ask_auth("Log in at the shop")
        if word == "fail":
            raise Failed("It broke")
        if word == "reject":
            raise Rejected("Not that")
        if word == "hold":
            return await hold(task, rest)
        if word == "context":
            return task.context_id
        await task.add_artifact({"n": 1}, name="numbers")
        async with task.artifact(name="words") as out:
            for piece in task.text.split():
                await out.write(piece + " ")
        return None

    return agent


async def hold(task: TaskHandle, name: str) -> None:
    """Work until canceled, and tell both."""
    await task.working("holding")
    STARTED.setdefault(name, asyncio.Event()).set()
    try:
        await asyncio.Event().wait()
    finally:
        CANCELED.setdefault(name, asyncio.Event()).set()


async def canceled(name: str) -> None:
    async with asyncio.timeout(30):
        await CANCELED.setdefault(name, asyncio.Event()).wait()


async def started(name: str) -> None:
    async with asyncio.timeout(30):
        await STARTED.setdefault(name, asyncio.Event()).wait()


@pytest.fixture
async def back() -> AsyncIterator[Server]:
    STARTED.clear()
    CANCELED.clear()
    async with serve(make()) as server:
        yield server


@pytest.mark.parametrize(("binding", "version"), WIRES)
async def test_a_run_is_the_same_on_every_wire(back: Server, binding: str, version: str) -> None:
    async with RemoteAgent(back.http_url, binding=binding, version=version, timeout=60) as agent:
        done = await agent.generate("one two")
        assert (done.finish_reason, done.text, done.data) == ("stop", "one two ", {"n": 1})
        assert done.run_id and done.context_id and done.task is not None and done.suspended is None
        run = agent.stream("one two", context_id=done.context_id)
        updates = [(update.kind, update.text, update.append) async for update in run]
        assert ("artifact", "", False) in updates and updates[-1][0] == "status"
        assert [text for kind, text, _ in updates if kind == "text" and text] == ["one ", "two "]
        assert run.context_id == done.context_id and run.run_id != done.run_id
        assert (await agent.result(run.run_id)).text == "one two "


@pytest.mark.requirement("AUTH-11")
@pytest.mark.parametrize(("binding", "version"), WIRES)
async def test_a_run_that_asks_goes_on_from_anywhere(back: Server, binding: str, version: str) -> None:
    settings = {"binding": binding, "version": version, "timeout": 60}
    async with RemoteAgent(back.http_url, **settings) as agent:
        asked = await agent.generate("ask")
        assert asked.finish_reason == "suspended" and asked.suspended is not None
        assert asked.suspended == ("input", "Which size?", {"sizes": ["S", "L"]}, SCHEMA)
        login = await agent.generate("auth", timeout=30)
        assert login.suspended is not None and login.suspended[:2] == ("auth", "Log in at the shop")
        assert (await agent.abort(login.run_id)).finish_reason == "canceled"
    async with RemoteAgent(back.http_url, **settings) as another:
        assert (await another.result(asked.run_id)).suspended == asked.suspended
        done = await another.resume({"size": "L"}, run_id=asked.run_id, headers={"traceparent": "00-a"})
        assert done.run_id == asked.run_id
        assert done.finish_reason == "stop" and done.data == {"answered": {"size": "L"}, "trace": "00-a"}


async def test_a_direct_message_and_an_end_without_work_are_results_too(back: Server) -> None:
    async with RemoteAgent(back.http_url) as agent:
        said = await agent.generate("reply hello")
        assert (said.finish_reason, said.text, said.run_id, said.task) == ("stop", "hello", "", None)
        for word, reason, text, fault in (
            ("fail", "failed", "It broke", Failed),
            ("reject", "rejected", "Not that", Rejected),
        ):
            ended = await agent.generate(word)
            assert (ended.finish_reason, ended.text) == (reason, text)
            with pytest.raises(fault, match=text):
                ended.checked()
        assert said.checked() is said
        with pytest.raises(errors.TaskNotFoundError):
            await agent.resume("x", run_id="nowhere")


@pytest.mark.requirement("CARD-11")
async def test_an_agent_that_does_not_stream_tells_all_at_the_end() -> None:
    async with serve(make(streaming=False)) as server, RemoteAgent(server.http_url, timeout=60) as agent:
        texts = [update.text async for update in agent.stream("one two") if update.kind == "text"]
        assert texts == ["one two "]
        assert (await agent.generate("reply hi")).text == "hi"
        assert (await agent.generate("ask")).finish_reason == "suspended"


@pytest.mark.parametrize("streaming", [True, False])
async def test_who_leaves_a_run_cancels_it_only_if_that_was_asked_for(streaming: bool) -> None:
    STARTED.clear()
    CANCELED.clear()
    async with serve(make(streaming)) as server, RemoteAgent(server.http_url) as agent:
        for name in ("early", "late"):
            running = asyncio.create_task(agent.generate(f"hold {name}", cancel_on_abort=True))
            if name == "late":
                await started(name)
            else:
                await asyncio.sleep(0)
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
            if name == "late":
                await canceled(name)
        running = asyncio.create_task(agent.generate("hold again", cancel_on_abort=True))
        await started("again")
        while not running.done():  # as the cancel scopes of anyio do
            running.cancel()
            await asyncio.sleep(0)
        await canceled("again")
        with pytest.raises(TimeoutError):
            await agent.generate("hold short", timeout=1.0, cancel_on_abort=True)
        await canceled("short")
        left = asyncio.create_task(agent.generate("hold left"))
        await started("left")
        left.cancel()
        await asyncio.gather(left, return_exceptions=True)
        assert "left" not in CANCELED
        run = agent.stream("hold stream", cancel_on_abort=True)
        assert await anext(run)
        await started("stream")
        await run.aclose()
        await canceled("stream")


async def test_a_client_of_ones_own_carries_it_and_the_card_is_looked_at_when_asked(back: Server) -> None:
    async with Client(back.http_url) as client:
        async with RemoteAgent(client) as agent:
            assert (await agent.generate("hi")).text == "hi "
            card = await agent.card(refresh=True)
            assert card is not None and card.name == "Back"
        assert (await client.send(v1.SendMessageRequest(message=said("one")))).task.id


def said(text: str) -> v1.Message:
    return v1.Message(message_id=f"m-{text}", role="ROLE_USER", parts=[v1.Part(text=text)])


class Recorder:
    """A wire that answers with a message and keeps what it was sent."""

    def __init__(self) -> None:
        self.sent: list[v1.Message] = []

    async def unary(self, operation: str, request: Any, headers: Any) -> Any:
        raise AssertionError("nothing is asked for")

    async def stream(self, operation: str, request: Any, headers: Any) -> AsyncGenerator[Any, None]:
        self.sent.append(request.message)
        yield "", v1.StreamResponse(message=v1.Message(message_id="a", context_id="theirs"))


@pytest.mark.requirement("CTX-05")
async def test_a_conversation_is_named_by_the_agent_alone() -> None:
    carrier = Recorder()
    agent = RemoteAgent(Client.over(carrier, v1.AgentInterface(url="x:", protocol_version="1.0")))
    first = await agent.generate("x")
    await agent.generate("y", context_id=first.context_id)
    assert [message.context_id for message in carrier.sent] == ["", "theirs"]
    assert carrier.sent[0].message_id != carrier.sent[1].message_id


# -- delegation


@asynccontextmanager
async def chain(back: Server, function: Any, **settings: Any) -> AsyncIterator[RemoteAgent]:
    """An agent whose function is given a remote agent to delegate to, as a remote agent."""
    front = Agent(name="Front", description="Lets others work.", version="1", skills=[])
    async with RemoteAgent(back.http_url, **settings) as remote:
        front.handle(lambda task: function(task, remote))
        async with serve(front) as server, RemoteAgent(server.http_url, timeout=60) as agent:
            yield agent


async def passes_on(task: TaskHandle, remote: RemoteAgent) -> Any:
    found: Result = await task.delegate(remote)
    return {"said": found.checked().text, "data": found.data}


@pytest.mark.requirement("AUTH-08", "AUTH-11")
@pytest.mark.parametrize(("binding", "version"), WIRES)
async def test_a_question_comes_up_through_an_agent_and_its_answer_goes_down(
    back: Server, binding: str, version: str
) -> None:
    async with chain(back, passes_on, binding=binding, version=version) as agent:
        assert (await agent.generate("one")).data == {"said": "one ", "data": {"n": 1}}
        asked = await agent.generate("ask")
        assert asked.suspended == ("input", "Which size?", {"sizes": ["S", "L"]}, SCHEMA)
        done = await agent.resume({"size": "L"}, run_id=asked.run_id, headers={"traceparent": PARENT})
        assert done.data["data"] == {"answered": {"size": "L"}, "trace": PARENT}
        login = await agent.generate("auth")
        assert login.suspended is not None and login.suspended[:2] == ("auth", "Log in at the shop")
        assert (await agent.resume("done", run_id=login.run_id)).data["data"]["answered"] == "done"
        failed = await agent.generate("fail")
        assert (failed.finish_reason, failed.text) == ("failed", "It broke")


async def test_each_conversation_has_one_of_its_own_with_the_other_agent(back: Server) -> None:
    async with chain(back, passes_on) as agent:
        first = await agent.generate("context")
        again = await agent.generate("context", context_id=first.context_id)
        other = await agent.generate("context")
        theirs = [result.data["said"] for result in (first, again, other)]
        assert theirs[0] == theirs[1] != theirs[2] and first.context_id not in theirs


async def test_what_was_done_before_a_question_is_not_done_again(back: Server) -> None:
    async def works(task: TaskHandle, remote: RemoteAgent) -> Any:
        first = await task.delegate(remote, "context")
        second = await task.delegate(remote, "ask")
        third = await task.delegate(remote, "context", context_id="")
        return [first.run_id, second.data["answered"], third.run_id]

    async with chain(back, works) as agent:
        asked = await agent.generate("go")
        async with Client(back.http_url) as client:
            before = [task.id async for task in client.tasks()]
            done = await agent.resume("L", run_id=asked.run_id)
            after = [task.id async for task in client.tasks(v1.ListTasksRequest(page_size=1))]
        first, answered, third = done.data
        assert answered == "L" and len(before) == 2 and first in before
        assert third not in before and len(after) == 3


async def test_an_answer_that_goes_to_no_delegation_is_told_in_the_log(
    back: Server, caplog: pytest.LogCaptureFixture
) -> None:
    async def changes(task: TaskHandle, remote: RemoteAgent) -> Any:
        return (await task.delegate(remote, "ask" if task.answer is None else f"again {task.answer}")).text

    async with chain(back, changes) as agent:
        asked = await agent.generate("go")
        assert "not answered" not in caplog.text
        await agent.resume("L", run_id=asked.run_id)
        assert f"task {asked.run_id}: what {back.http_url} asked is not answered" in caplog.text


async def test_a_pause_may_be_the_authors_own_affair(back: Server) -> None:
    async def works(task: TaskHandle, remote: RemoteAgent) -> Any:
        found = await task.delegate(remote, "ask", pause=False)
        return (await remote.resume("M", run_id=found.run_id)).data["answered"]

    async with chain(back, works) as agent:
        assert (await agent.generate("go")).text == "M"


@pytest.mark.requirement("OP-CANCEL-03")
async def test_a_cancel_reaches_the_agent_at_the_bottom(back: Server) -> None:
    async with chain(back, passes_on) as agent:
        run = agent.stream("hold deep")
        assert await anext(run)
        await started("deep")
        assert (await agent.abort(run.run_id)).finish_reason == "canceled"
        await canceled("deep")
        assert (await run.result()).finish_reason == "canceled"


async def test_a_trace_that_no_wire_can_carry_on_is_left_behind(back: Server) -> None:
    async with chain(back, passes_on, binding="GRPC") as agent, aiohttp.ClientSession() as session:
        message = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "one"}]}
        told: Any = {"A2A-Version": "1.0", "tracestate": "a=\xe9", "traceparent": f"00-{1:032x}-{1:016x}-01"}
        url = f"{agent.name}/message:send"
        async with session.post(url, json={"message": message}, headers=told) as reply:
            assert (await reply.json())["task"]["status"]["state"] == "TASK_STATE_COMPLETED"


async def test_the_deadline_of_who_waits_goes_on(back: Server) -> None:
    faults: list[Any] = []

    async def works(task: TaskHandle, remote: RemoteAgent) -> Any:
        try:
            return (await task.delegate(remote, "hold slow", timeout=0.5)).text
        except TimeoutError as fault:
            faults.append(fault)
            return "too slow"

    async with chain(back, works) as agent:
        assert (await agent.generate("go")).text == "too slow" and faults
        await canceled("slow")


async def test_plain_functions_delegate_without_await(back: Server) -> None:
    def works(task: Any, remote: RemoteAgent) -> Any:
        return task.delegate(remote, "one").text + "!"

    async with chain(back, works) as agent:
        assert (await agent.generate("go")).text == "one !"


@pytest.mark.requirement("SEC-07")
@pytest.mark.parametrize("streaming", [True, False])
async def test_the_trace_of_a_call_goes_on_with_what_is_delegated_though_nothing_is_watched(streaming: bool) -> None:
    sent = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "tracestate": "vendor=1"}
    heard: list[dict[str, str]] = []
    last = Agent(name="Last", description="Hears.", version="1", skills=[], streaming=streaming)

    @last.handle
    async def hear(task: TaskHandle) -> str:
        heard.append({name: value for name, value in task.call.metadata.items() if name in ("x-mine", *sent)})
        return "heard"

    async def works(task: TaskHandle, remote: RemoteAgent) -> str:
        return (await task.delegate(remote, "hear")).text

    async with serve(last) as server, chain(server, works) as agent:
        await agent.generate("go", headers={**sent, "x-mine": "stays"})
    assert heard == [sent]
