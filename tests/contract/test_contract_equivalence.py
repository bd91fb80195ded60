"""The same on every wire: one script of calls, one set of answers; one task, seen from everywhere."""

import re
from collections.abc import Mapping
from typing import Any

import pytest
from a2a_stubs import v1

from a2a_grpc import protojson
from a2a_grpc.errors import A2AError, UnsupportedOperationError
from a2a_grpc.protojson_values import value_of
from tests.contract.cells import BINDINGS, OLD, STORES, WIRES, Cell, Sites, fresh, said, texts

STAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
NAME = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[a-z]+-[0-9a-f]{12}")


class Names:
    """Ids and times as they are met: the same place in two scripts gives the same word."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    def plain(self, value: Any) -> Any:
        if isinstance(value, Mapping):
            return {key: self.plain(value[key]) for key in sorted(value)}
        if isinstance(value, list):
            return [self.plain(entry) for entry in value]
        if not isinstance(value, str):
            return value
        value = STAMP.sub("(time)", value)
        return NAME.sub(lambda found: self._known.setdefault(found[0], f"({len(self._known)})"), value)


class Script:
    """Calls with their answers and errors, in order, as plain values."""

    def __init__(self, cell: Cell) -> None:
        self.cell = cell
        self.lines: list[Any] = []
        self._names = Names()

    def note(self, label: str, message: Any) -> None:
        self.lines.append((label, self._names.plain(protojson.encode(message))))

    async def call(self, operation: str, request: Any) -> Any:
        """The answer, None when the call is refused."""
        try:
            answer = await self.cell.client.call(operation, request)
        except A2AError as refused:
            self.lines.append((operation, type(refused).__name__, refused.message))
            return None
        self.note(operation, answer)
        return answer

    async def stream(self, operation: str, request: Any) -> list[Any]:
        seen = []
        try:
            async for event in self.cell.client.events(operation, request):
                seen.append(event)
                self.note(operation, event)
        except A2AError as refused:
            self.lines.append((operation, type(refused).__name__, refused.message))
        return seen


async def conversation(cell: Cell) -> list[Any]:
    """A bit of everything that all versions have."""
    script, client, context = Script(cell), cell.client, fresh("ctx")
    parts = [v1.Part(text="give_parts"), v1.Part(data=value_of({"n": 1})), v1.Part(raw=b"\x00\xff", filename="f")]
    for text in ("echo x", "states", "fail it", "reject it", "crash_late", "silent", "give_data", "misbehave"):
        answer = await client.send(said(text, context_id=context))
        answer.task.status.message.ClearField("parts")  # holds a reference id when the agent crashed
        script.note(text, answer)
    await script.call("SendMessage", said(parts=parts))
    asked = (await script.call("SendMessage", said("ask 2", metadata={"a": 1}))).task
    await script.call("GetTask", v1.GetTaskRequest(id=asked.id, history_length=1))
    await script.call("SendMessage", said("one", task_id=asked.id, history=2))
    await script.stream("SendStreamingMessage", said("two", task_id=asked.id))
    await script.call("SendMessage", said("three", task_id=asked.id))
    await script.call("CancelTask", v1.CancelTaskRequest(id=asked.id))
    await script.stream("SendStreamingMessage", said("states"))
    await script.stream("SendStreamingMessage", said("ask"))
    await script.stream("SendStreamingMessage", said("echo", task_id=fresh("task")))
    waiting = (await script.call("SendMessage", said("auth"))).task
    hook = v1.TaskPushNotificationConfig(task_id=waiting.id, id="c", url="https://hooks.example/1", token="t")
    await script.call("CreateTaskPushNotificationConfig", hook)
    about: dict[str, Any] = {"task_id": waiting.id, "id": "c"}
    await script.call("GetTaskPushNotificationConfig", v1.GetTaskPushNotificationConfigRequest(**about))
    listing = v1.ListTaskPushNotificationConfigsRequest(task_id=waiting.id)
    await script.call("ListTaskPushNotificationConfigs", listing)
    await script.call("DeleteTaskPushNotificationConfig", v1.DeleteTaskPushNotificationConfigRequest(**about))
    await script.call("GetTaskPushNotificationConfig", v1.GetTaskPushNotificationConfigRequest(**about))
    await script.call("CancelTask", v1.CancelTaskRequest(id=waiting.id))
    await script.call("CancelTask", v1.CancelTaskRequest(id=waiting.id))
    await script.call("GetTask", v1.GetTaskRequest(id=fresh("task")))
    await script.call("SendMessage", said("x", message_id=""))
    return script.lines


async def cell_of(sites: Sites, binding: str, version: str, store: str, **settings: Any) -> Cell:
    site = await sites.site(store, **settings)
    return Cell(binding, version, store, site, await site.client(binding, version))


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("wire", WIRES[1:], ids="-".join)
@pytest.mark.requirement("EQ-01", "EQ-02", "EQ-03", "V03-40", "VER-06")
async def test_the_same_calls_have_the_same_answers(sites: Sites, wire: tuple[str, str], store: str) -> None:
    settings = {"agent": "scenes", "push_notifications": True}
    expected = await conversation(await cell_of(sites, *WIRES[0], store, **settings))
    found = await conversation(await cell_of(sites, *wire, store, **settings))
    for number, (one, other) in enumerate(zip(expected, found, strict=True)):
        if wire in OLD and len(one) == 3:  # each version has error texts of its own
            one, other = one[:2], other[:2]
        assert one == other, number


@pytest.mark.requirement("EQ-02")
async def test_all_stores_give_the_same_answers(sites: Sites) -> None:
    settings = {"agent": "scenes", "push_notifications": True}
    answers = [await conversation(await cell_of(sites, *WIRES[0], store, **settings)) for store in STORES]
    assert all(found == answers[0] for found in answers)


@pytest.mark.requirement("EQ-05", "EQ-01", "EQ-02", "VER-07", "L-37")
async def test_a_task_made_on_one_wire_is_the_same_on_all(cell: Cell) -> None:
    context = fresh("ctx")
    task = await cell.task("ask 9", context_id=context)
    for wire in WIRES:
        other = await cell.over(*wire)
        assert await other.client.get(task.id) == task
        events = other.client.subscribe(task.id)
        assert (await anext(events)).task == task
        answered = await other.task(f"from {wire}", task_id=task.id)
        assert (await anext(events)).status_update.status.state == v1.TASK_STATE_WORKING
        await events.aclose()
        assert answered.status.message.parts[0].text == "question " + str(WIRES.index(wire) + 2)
        task = answered
        if wire not in OLD:
            listed = await other.client.list(v1.ListTasksRequest(context_id=context))
            assert [entry.id for entry in listed.tasks] == [task.id]
    assert await cell.client.get(task.id) == task


@pytest.mark.requirement("EQ-05", "OP-CANCEL-06", "STREAM-03")
async def test_a_task_made_on_one_wire_can_be_canceled_on_any_other(cell: Cell) -> None:
    for wire in WIRES:
        task, _ = await cell.held()
        other = await cell.over(*wire)
        events = cell.client.subscribe(task.id)
        await anext(events)
        canceled = await other.client.cancel(task.id)
        assert [event.status_update.status async for event in events] == [canceled.status]


@pytest.mark.requirement("EQ-05", "STREAM-02", "STREAM-03", "BL-15")
async def test_a_task_made_on_one_wire_streams_the_same_to_all(cell: Cell) -> None:
    task, gate = await cell.held()
    readers = [(await cell.over(*wire)).client.subscribe(task.id) for wire in WIRES]
    for reader in readers:
        assert (await anext(reader)).task.id == task.id
    done = await cell.release(task, gate)
    seen: list[Any] = []
    for reader in readers:
        seen.append([event async for event in reader])
    assert all(one == seen[0] for one in seen)
    assert seen[0][-1].status_update.status == done.status and texts(done) == ["released"]


@pytest.mark.requirement("EQ-05", "OP-SEND-06", "V03-30")
async def test_a_task_that_ended_on_one_wire_has_ended_on_all(cell: Cell) -> None:
    task = await cell.task()
    for binding, version in WIRES:
        other = await cell.over(binding, version)
        await other.refuses(UnsupportedOperationError, "SendMessage", said("more", task_id=task.id))
        assert BINDINGS[binding] == other.client.interface.protocol_binding
