"""Traces and measures: one trace from whoever calls to the webhook, on every wire; labels that say the same of each."""

import asyncio
import threading
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from contextvars import copy_context
from typing import Any

import pytest
from a2a_stubs import v1
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, sampling
from opentelemetry.trace import StatusCode

from a2a_grpc import Agent, Client, Options, Server, TaskHandle
from a2a_grpc.call import GRPC, JSONRPC, REST, V03, V1, VERSIONS, Call
from a2a_grpc.errors import A2AError, TaskNotFoundError
from a2a_grpc.gateway import Upstream
from a2a_grpc.remote import RemoteAgent
from a2a_grpc.tasks.memory import MemoryStore
from a2a_grpc.tasks.store import Scope, TaskQuery
from a2a_grpc.telemetry import outgoing_headers
from tests.receivers import receiver
from tests.test_upkeep import die
from tests.watched import Watch, ancestry

PARENT, TRACE = "b7ad6b7169203331", "0af7651916cd43dd8448eb211c80319c"
HEADERS = {"traceparent": f"00-{TRACE}-{PARENT}-01", "tracestate": "vendor=1"}
WIRES = [(binding, version) for binding in (GRPC, JSONRPC, REST) for version in VERSIONS]

agent = Agent(name="Seen", description="Is looked at.", version="1", skills=[])
peers: dict[str, Client] = {}
helpers: dict[str, RemoteAgent] = {}


@agent.handle
async def work(task: TaskHandle) -> None:
    word, _, rest = task.text.partition(" ")
    if word == "ask" and not task.answer:
        await task.ask("which?")
    elif word == "fail":
        raise RuntimeError("broken")
    elif word == "remote":
        await peers["there"].send(said(rest))
        await task.add_artifact("asked")
    else:
        await task.add_artifact(outgoing_headers().get("traceparent", "none"))


plain = Agent(name="Plain", description="Works in a thread.", version="1", skills=[])


@plain.handle
def work_in_thread(task: TaskHandle) -> str:
    here = trace.get_current_span().get_span_context()
    assert threading.current_thread() is not threading.main_thread()
    return f"{trace.format_trace_id(here.trace_id)} {outgoing_headers()['traceparent']}"


def said(text: str, task_id: str = "", url: str = "") -> v1.SendMessageRequest:
    request = v1.SendMessageRequest()
    request.message.message_id, request.message.role = uuid.uuid4().hex, v1.ROLE_USER
    request.message.task_id = task_id
    request.message.parts.add(text=text)
    if url:
        request.configuration.task_push_notification_config.url = url
    return request


@asynccontextmanager
async def serving(watch: Watch, agents: Any = agent, **more: Any) -> AsyncIterator[Server]:
    options = Options(**{"grpc": "127.0.0.1:0", "http": "127.0.0.1:0", "store": "memory:", "grace": 0.1, **more})
    async with Server(agents, options, telemetry=watch.telemetry) as server:
        yield server


def calling(server: Server, binding: str = GRPC, version: str = V1, **more: Any) -> Client:
    return Client(server.http_url, binding=binding, version=version, headers=HEADERS, **more)


def ids(span: ReadableSpan) -> tuple[str, str]:
    assert span.context
    return trace.format_trace_id(span.context.trace_id), trace.format_span_id(span.context.span_id)


def text_of(task: v1.Task) -> str:
    return task.artifacts[-1].parts[0].text


@pytest.mark.parametrize(("binding", "version"), WIRES)
@pytest.mark.requirement("SEC-07", "BL-53")
async def test_a_trace_goes_from_the_caller_through_the_agent_to_the_webhook(binding: str, version: str) -> None:
    watch = Watch()
    push = {"push_notifications": True, "push_allow": ("127.0.0.1/32",)}
    async with receiver() as there, serving(watch, **push) as server, calling(server, binding, version) as client:
        answer = await client.send(said("hello", url=there.url))
        await there.until(lambda: any(b"ompleted" in got.body or b"COMPLETED" in got.body for got in there.got))
        await watch.until(lambda: watch.named("push") and watch.named("turn Seen") and watch.named("SendMessage"))
    spans = watch.named("SendMessage", "turn Seen", "push", "store commit")
    assert {ids(span)[0] for span in spans} == {TRACE}
    [call], [turn] = watch.named("SendMessage"), watch.named("turn Seen")
    assert call.parent and trace.format_span_id(call.parent.span_id) == PARENT
    assert call.context and call.context.trace_state.get("vendor") == "1"
    above = ancestry(spans)
    assert above["turn Seen"] == above["push"] == "SendMessage"
    assert {above["store commit"]} <= {"SendMessage", "turn Seen"}
    # What the agent hands on is its turn, what the webhook hears is the request itself.
    assert text_of(answer.task).split("-")[1:3] == list(ids(turn))
    sent = {got.headers["traceparent"].split("-")[2] for got in there.got}
    assert sent <= {ids(span)[1] for span in watch.named("push")} and there.got[0].headers["tracestate"] == "vendor=1"
    assert (turn.attributes or {})["a2a.task.id"] == answer.task.id == (call.attributes or {})["a2a.task.id"]


@pytest.mark.requirement("SEC-07")
async def test_the_span_of_a_read_names_task_and_context_however_often_it_is_read() -> None:
    watch = Watch()
    async with serving(watch) as server, calling(server) as client:
        task = (await client.send(said("hello"))).task
        assert [await client.get(task.id) for _ in range(3)] == [task] * 3
        await watch.until(lambda: len(watch.named("GetTask")) == 3)
    told = [(span.attributes or {}) for span in watch.named("GetTask")]
    assert [(each["a2a.task.id"], each["a2a.context.id"]) for each in told] == [(task.id, task.context_id)] * 3


@pytest.mark.requirement("BL-53")
async def test_functions_in_threads_go_on_with_the_trace() -> None:
    watch = Watch()
    async with serving(watch, plain) as server, calling(server) as client:
        current, handed_on = text_of((await client.send(said("hi"))).task).split()
    assert current == TRACE and handed_on.split("-")[1] == TRACE


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.requirement("SEC-07", "BL-53")
async def test_calls_of_other_agents_and_through_a_gateway_are_of_the_same_trace(streamed: bool) -> None:
    front, middle, back = Watch(), Watch(), Watch()
    async with (
        serving(back) as last,
        Client(last.http_url, binding=REST) as peer,
        serving(middle) as upstream,
        serving(front, Upstream(upstream.http_url)) as gateway,
        calling(gateway, JSONRPC) as client,
    ):
        peers["there"] = peer
        if streamed:
            assert [event async for event in client.stream(said("remote hi"))]
        else:
            await client.send(said("remote hi"))
        await back.until(lambda: back.named("turn Seen"))
        await front.until(lambda: len(front.spans) >= 2)
    every = [*front.spans, *middle.spans, *back.spans]
    assert {ids(span)[0] for span in every if span.name != "store commit"} == {TRACE}
    by_id = {ids(span)[1]: span for span in every}
    chain, span = [], next(span for span in back.spans if span.name == "turn Seen")
    while span.parent and (above := by_id.get(trace.format_span_id(span.parent.span_id))):
        chain.append(f"{above.kind.name} {above.name}")
        span = above
    operation = "SendStreamingMessage" if streamed else "SendMessage"
    assert chain == [
        "SERVER SendMessage",
        "CLIENT SendMessage",
        "INTERNAL turn Seen",
        f"SERVER {operation}",
        f"CLIENT {operation}",
        f"SERVER {operation}",
    ]


lead = Agent(name="Lead", description="Lets others work.", version="1", skills=[])


@lead.handle
async def let_work(task: TaskHandle) -> str:
    return (await task.delegate(helpers["there"], "ask")).text


@pytest.mark.requirement("SEC-07", "BL-53")
async def test_what_a_turn_delegates_is_of_its_trace_up_to_the_webhook_of_the_other() -> None:
    front, back = Watch(), Watch()
    push = {"push_notifications": True, "push_allow": ("127.0.0.1/32",)}
    async with receiver() as there, serving(back, **push) as other, serving(front, lead) as server:
        async with RemoteAgent(other.http_url) as helpers["there"], calling(server, JSONRPC) as client:
            task = (await client.send(said("go"))).task
            assert task.status.state == v1.TASK_STATE_INPUT_REQUIRED
            [asked] = (await other.store.tasks(Scope("", "", ""), TaskQuery())).rows
            config = v1.TaskPushNotificationConfig(task_id=asked.task_id, url=there.url)
            call = Call("CreateTaskPushNotificationConfig")
            await other.service.CreateTaskPushNotificationConfig(config, call)
            await client.send(said("this one", task.id))
        await there.until(lambda: any(b"COMPLETED" in got.body for got in there.got))
        await back.until(lambda: len(back.named("turn Seen")) == 2)
    assert {ids(span)[0] for span in [*front.spans, *back.named("turn Seen", "push")]} == {TRACE}
    assert {got.headers["traceparent"].split("-")[1] for got in there.got} == {TRACE}


@pytest.mark.requirement("SEC-07")
async def test_the_next_turn_of_a_task_is_linked_to_the_one_before() -> None:
    watch = Watch()
    async with serving(watch) as server, calling(server) as client, Client(server.http_url, binding=GRPC) as other:
        asked = await client.send(said("ask me"))
        await other.send(said("this one", asked.task.id))
        await watch.until(lambda: len(watch.named("turn Seen")) == 2)
    first, second = watch.named("turn Seen")
    assert ids(first)[0] == TRACE != ids(second)[0]
    assert [trace.format_trace_id(link.context.trace_id) for link in second.links] == [TRACE]
    assert [trace.format_span_id(link.context.span_id) for link in second.links] == [
        ids(watch.named("SendMessage")[0])[1]
    ]


quick = Agent(name="Quick", description="Is over at once.", version="1", skills=[])


@quick.handle(replies=True)
async def end(task: TaskHandle) -> None:
    await task.complete()


@pytest.mark.parametrize("telemetry", [True, False])
@pytest.mark.requirement("SEC-07", "BL-53")
async def test_webhooks_hear_the_trace_of_a_task_that_is_over_with_its_first_commit(telemetry: bool) -> None:
    push = {"push_notifications": True, "push_allow": ("127.0.0.1/32",)}
    options = Options(grpc="127.0.0.1:0", http="", store="memory:", **push)
    async with (
        receiver() as there,
        Server(quick, options, telemetry=Watch().telemetry if telemetry else None) as server,
    ):
        async with Client(f"grpc://{server.grpc_address}", headers=HEADERS) as client:
            await client.send(said("hello", url=there.url))
        await there.until(lambda: there.got)
    parent = there.got[0].headers["traceparent"]
    assert parent.split("-")[1] == TRACE and (parent == HEADERS["traceparent"]) is not telemetry


patient = Agent(name="Patient", description="Is run again.", version="1", skills=[], rerun_lost_turns=True)


@patient.handle
async def wait_at_first(task: TaskHandle) -> str:
    if task.attempt == 1:
        await task.working()
        await asyncio.Event().wait()
    return "done"


@pytest.mark.requirement("SEC-07", "BL-53")
async def test_a_turn_that_another_replica_takes_over_is_linked_and_its_webhooks_stay_in_the_trace() -> None:
    first, second, store = Watch(), Watch(), MemoryStore()
    push = {"push_notifications": True, "push_allow": ("127.0.0.1/32",)}
    options = Options(grpc="127.0.0.1:0", http="", store="memory:", lease=0.3, grace=0.0, **push)
    async with receiver() as there:
        request = said("hello", url=there.url)
        request.configuration.return_immediately = True
        async with Server(patient, options, store=store, telemetry=first.telemetry) as server:
            async with Client(f"grpc://{server.grpc_address}", headers=HEADERS) as client:
                await client.send(request)
            await there.until(lambda: any(b"WORKING" in got.body for got in there.got))
            await die(server.engine)
            heard = len(there.got)
            async with Server(patient, options, store=store, telemetry=second.telemetry):
                await there.until(lambda: b"COMPLETED" in there.got[-1].body)
                await second.until(lambda: second.named("turn Patient"))
            taken = second.points("a2a.turns.taken_over")
    [turn], [call] = second.named("turn Patient"), first.named("SendMessage")
    assert ids(turn)[0] != TRACE and (turn.attributes or {})["a2a.attempt"] == "2"
    assert [trace.format_span_id(link.context.span_id) for link in turn.links] == [ids(call)[1]]
    assert {got.headers["traceparent"].split("-")[1] for got in there.got[heard:]} == {TRACE}
    assert ({"a2a.result": "rerun"}, 1) in taken


@pytest.mark.requirement("SEC-07")
async def test_spans_say_what_the_conventions_say() -> None:
    watch = Watch()
    async with serving(watch) as server:
        port = int(server.http_address.rpartition(":")[2])
        for binding, version in WIRES:
            async with calling(server, binding, version) as client:
                await client.get((await client.send(said("hello"))).task.id)
                with pytest.raises(TaskNotFoundError):
                    await client.get("nobody-knows")
        await watch.until(lambda: len(watch.named("GetTask")) == 2 * len(WIRES))
    shown, paths = [], []
    for span in watch.named("GetTask"):
        found = dict(span.attributes or {})
        names = ("a2a.binding", "a2a.version", "rpc.method", "http.route", "a2a.code")
        place = [found.get(name) for name in ("server.address", "server.port")]
        assert place == ([None, None] if found["a2a.binding"] == GRPC else ["127.0.0.1", port])
        paths.append(found.get("url.path", ""))
        statuses = ("rpc.response.status_code", "http.response.status_code")
        shown.append([found.get(name, "") for name in names] + [found.get(name, "") for name in statuses])
        assert span.status.status_code is StatusCode.UNSET  # who asks for what is not there is at fault
    assert shown == [
        ["GRPC", "1.0", "lf.a2a.v1.A2AService/GetTask", "", "OK", "OK", ""],
        ["GRPC", "1.0", "lf.a2a.v1.A2AService/GetTask", "", "TASK_NOT_FOUND", "NOT_FOUND", ""],
        ["GRPC", "0.3", "a2a.v1.A2AService/GetTask", "", "OK", "OK", ""],
        ["GRPC", "0.3", "a2a.v1.A2AService/GetTask", "", "TASK_NOT_FOUND", "NOT_FOUND", ""],
        ["JSONRPC", "1.0", "GetTask", "", "OK", "", ""],
        ["JSONRPC", "1.0", "GetTask", "", "TASK_NOT_FOUND", "-32001", ""],
        ["JSONRPC", "0.3", "tasks/get", "", "OK", "", ""],
        ["JSONRPC", "0.3", "tasks/get", "", "TASK_NOT_FOUND", "-32001", ""],
        ["HTTP+JSON", "1.0", "", "/tasks/{id=*}", "OK", "", 200],
        ["HTTP+JSON", "1.0", "", "/tasks/{id=*}", "TASK_NOT_FOUND", "", 404],
        ["HTTP+JSON", "0.3", "", "/v1/{name=tasks/*}", "OK", "", 200],
        ["HTTP+JSON", "0.3", "", "/v1/{name=tasks/*}", "TASK_NOT_FOUND", "", 404],
    ]
    assert paths[:8] == [""] * 4 + ["/"] * 4
    assert paths[9::2] == ["/tasks/nobody-knows", "/v1/tasks/nobody-knows"]


@pytest.mark.requirement("SEC-07")
async def test_every_wire_is_measured_with_the_same_labels() -> None:
    watch = Watch()
    async with serving(watch) as server:
        for binding, version in WIRES:
            async with calling(server, binding, version) as client:
                task = (await client.send(said("hello"))).task
                assert [event async for event in client.stream(said("hello"))]
                await client.get(task.id)
                with pytest.raises(A2AError):
                    await client.cancel(task.id)
        await watch.until(lambda: len(watch.named("CancelTask")) == len(WIRES))
        seen: dict[tuple[str, str], list[Any]] = {wire: [] for wire in WIRES}
        for labels, count in watch.points("a2a.server.call.duration"):
            wire = labels.pop("a2a.binding"), labels.pop("a2a.version")
            seen[wire].append((labels["a2a.operation"], labels["a2a.code"], count))
            assert labels.keys() == {"a2a.operation", "a2a.code"}
        assert {tuple(sorted(rows)) for rows in seen.values()} == {
            (
                ("CancelTask", "TASK_NOT_CANCELABLE", 1),
                ("GetTask", "OK", 1),
                ("SendMessage", "OK", 1),
                ("SendStreamingMessage", "OK", 1),
            )
        }
        requests = {labels["a2a.binding"]: count for labels, count in watch.points("a2a.server.requests")}
        assert requests == {GRPC: 8, JSONRPC: 8, REST: 8}
        turns = watch.points("a2a.turn.duration")
        assert turns == [({"a2a.agent": "Seen", "a2a.state": "COMPLETED"}, 12)]
        commits = [labels for labels, _ in watch.points("a2a.store.duration")]
        assert {"a2a.store.operation": "commit", "a2a.code": "OK"} in commits


async def test_a_call_is_part_of_what_an_instrumented_host_has_begun_and_else_begins_a_trace() -> None:
    watch = Watch()
    async with serving(watch) as server:
        call = Call("SendMessage", metadata=HEADERS)
        with trace.use_span(watch.tracers.get_tracer("host").start_span("elsewhere")) as other:
            await server.service.SendMessage(said("hello"), call)
        assert call.metadata["traceparent"].split("-")[1] == TRACE  # that was begun for something else
        outer = trace.NonRecordingSpan(
            trace.SpanContext(int(TRACE, 16), 0xABC, is_remote=False, trace_flags=trace.TraceFlags(1))
        )
        with trace.use_span(outer):
            await server.service.SendMessage(said("hello"), Call("SendMessage", metadata=HEADERS))
        await server.service.SendMessage(said("hello"), Call("SendMessage", metadata={"traceparent": "00-zz-1-01"}))
        await watch.until(lambda: len(watch.named("SendMessage")) == 3)
    first, second, third = watch.named("SendMessage")
    assert other.is_recording() and first.parent and trace.format_span_id(first.parent.span_id) == PARENT
    assert second.parent and second.parent.span_id == 0xABC and third.parent is None


@pytest.mark.requirement("SEC-07")
@pytest.mark.parametrize(
    "wrong",
    [{"traceparent": "x" * 600}, *({"tracestate": state} for state in ("x" * 600, "a=1,a=2", "A=,=1", "b=1," * 40))],
)
async def test_callers_write_no_warnings_by_what_they_say_of_their_trace(
    wrong: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(Watch()) as server:
        await server.service.SendMessage(said("hello"), Call("SendMessage", metadata=HEADERS | wrong))
    assert not [record for record in caplog.records if record.name.startswith("opentelemetry")]


@pytest.mark.requirement("SEC-07")
async def test_a_function_that_fails_is_an_error_of_its_turn_and_not_of_the_call() -> None:
    watch = Watch()
    async with serving(watch) as server, calling(server) as client:
        await client.send(said("fail"))
        await watch.until(lambda: watch.named("turn Seen"))
    [turn], [call] = watch.named("turn Seen"), watch.named("SendMessage")
    assert turn.status.status_code is StatusCode.ERROR and call.status.status_code is StatusCode.UNSET
    assert (turn.attributes or {})["a2a.state"] == "FAILED"


BELOW = {"turn Seen", "store commit"}


class AllButCalls(sampling.Sampler):
    """Leaves out what comes in, and nothing else."""

    def should_sample(self, parent_context: Any, trace_id: int, name: str, *more: Any, **other: Any) -> Any:
        chosen = sampling.ALWAYS_OFF if name == "SendMessage" else sampling.ALWAYS_ON
        return chosen.should_sample(parent_context, trace_id, name, *more, **other)

    def get_description(self) -> str:
        return "AllButCalls"


@pytest.mark.requirement("SEC-07", "BL-53")
@pytest.mark.parametrize(
    ("sampler", "shown"),
    [
        (sampling.ParentBased(sampling.ALWAYS_OFF), set()),
        (sampling.ParentBased(AllButCalls(), local_parent_not_sampled=sampling.ALWAYS_ON), BELOW),
        (AllButCalls(), BELOW),
    ],
)
async def test_what_is_part_of_a_call_that_is_not_sampled_is_as_the_sampler_says(sampler: Any, shown: set[str]) -> None:
    watch = Watch(sampler)
    async with serving(watch) as server, Client(server.http_url) as client:
        handed = text_of((await client.send(said("hello"))).task).split("-")
        await watch.until(lambda: {span.name for span in watch.spans} == shown)
        assert len(handed[1]) == 32 and int(handed[3]) & 1 == bool(shown)  # the trace goes on in any case
        await watch.until(lambda: watch.points("a2a.turn.duration"))


async def test_a_stream_whose_reader_leaves_is_no_error() -> None:
    watch = Watch()
    async with serving(watch) as server:
        events = server.service.SendStreamingMessage(said("hello"), Call("SendStreamingMessage", metadata=HEADERS))
        await anext(events)
        await asyncio.create_task(events.aclose())  # in another context than the one that it began in
        assert trace.get_current_span().get_span_context().trace_id == 0
    [call] = watch.named("SendStreamingMessage")
    assert (call.attributes or {})["a2a.code"] == "CANCELED" and call.status.status_code is StatusCode.UNSET


async def test_a_call_that_is_thrown_away_ends_without_noise(caplog: pytest.LogCaptureFixture) -> None:
    class Still:
        def __getattr__(self, name: str) -> Any:
            async def called(*_: Any) -> None:
                await asyncio.Event().wait()

            return called

    watch = Watch()
    work = watch.telemetry.service(Still()).GetTask(v1.GetTaskRequest(id="t"), Call("GetTask"))
    copy_context().run(work.send, None)  # begun in one context, closed in another
    work.close()
    assert [span.name for span in watch.spans] == ["GetTask"] and not caplog.records


@pytest.mark.requirement("SEC-05")
async def test_callers_are_hashed_on_request() -> None:
    for hashed in (False, True):
        assert (Watch(hash_callers=hashed).telemetry.shown("alice") == "alice") is not hashed
    assert len(Watch(hash_callers=True).telemetry.shown("alice")) == 12 and Watch().telemetry.shown("") == ""


@pytest.mark.requirement("SEC-07")
async def test_what_keeps_a_caller_out_is_counted_at_the_door() -> None:
    watch = Watch()
    async with serving(watch, call_rate=0.001, call_burst=1) as server:
        for _ in range(2):
            for binding in (GRPC, JSONRPC, REST):
                async with calling(server, binding) as client:
                    with suppress(A2AError):
                        await client.get("x")
        counted = {(each["a2a.binding"], each["a2a.code"]): n for each, n in watch.points("a2a.server.requests")}
    assert sum(counted.values()) == 6 and sum(n for (_, code), n in counted.items() if code == "OK") == 1


def test_nothing_is_put_around_a_server_that_is_not_watched() -> None:
    server = Server(agent, Options(store="memory:"))
    assert server.engine.store is server.store and type(server.service).__name__ == "A2AService"
    assert V03 in server.options.versions and server.telemetry.recorder is None
