"""Old gRPC clients on the port of the new ones."""

import grpc
import pytest
from a2a_stubs import v03, v03_grpc, v1

from a2a_grpc import errors
from tests.test_grpc_binding import Fake, collect, failure, serving, status_event


@pytest.mark.requirement("V03-26", "V03-27", "BL-19")
async def test_old_clients_are_served_on_the_same_port():
    async def events(request, call):
        yield v1.StreamResponse(task=v1.Task(id="t", context_id="c", status=v1.TaskStatus(state="TASK_STATE_WORKING")))
        yield status_event("TASK_STATE_COMPLETED")

    fake = Fake(events=events)
    request = v03.SendMessageRequest(
        request=v03.Message(message_id="m", role="ROLE_USER", content=[v03.Part(text="hi")])
    )
    async with serving(fake) as channel:
        stub = v03_grpc.A2AServiceStub(channel)
        assert (await stub.SendMessage(request)).task.id == "t"
        found = await collect(stub.SendStreamingMessage(request, metadata=(("a2a-version", "0.3"),)))
        assert [event.WhichOneof("payload") for event in found] == ["task", "status_update"]
        assert found[-1].status_update.final
        assert {call.version for call in fake.calls} == {"0.3"}
        fault = await failure(stub.SendMessage(request, metadata=(("a2a-version", "1.0"),)))
        assert fault.ErrorInfo.reason == "VERSION_NOT_SUPPORTED"


@pytest.mark.requirement("GRPC-07", "V03-18")
async def test_old_clients_find_the_error_name_at_the_front_of_the_text():
    async def answer(request, call):
        raise errors.TaskNotFoundError

    async with serving(Fake(answer)) as channel:
        stub = v03_grpc.A2AServiceStub(channel)
        fault = await failure(stub.GetTask(v03.GetTaskRequest(name="tasks/1")))
        assert fault.code() == grpc.StatusCode.NOT_FOUND
        assert fault.details() == "TaskNotFoundError: Task not found"
        assert fault.ErrorInfo.reason == "TASK_NOT_FOUND"
        fault = await failure(stub.GetTask(v03.GetTaskRequest(name="nonsense")))
        assert fault.code() == grpc.StatusCode.INVALID_ARGUMENT


@pytest.mark.requirement("I-51")
@pytest.mark.parametrize(
    ("form", "agent", "expected"),
    [
        ("auto", "grpc-node-js/1.14", b"\x00\xff"),
        ("raw", "grpc-python-asyncio/1.85", b"\x00\xff"),
        ("auto", "grpc-python-asyncio/1.85", b"AP8="),
        ("base64", "grpc-node-js/1.14", b"AP8="),
    ],
)
async def test_file_bytes_for_old_clients_follow_the_setting_or_the_user_agent(form, agent, expected):
    def answer(request, call):
        call.metadata = {**call.metadata, "user-agent": agent}
        artifact = v1.Artifact(artifact_id="a", parts=[v1.Part(raw=b"\x00\xff", media_type="image/png")])
        return v1.Task(id="t", context_id="c", status=v1.TaskStatus(state="TASK_STATE_COMPLETED"), artifacts=[artifact])

    async with serving(Fake(answer), v03_file_bytes=form) as channel:
        task = await v03_grpc.A2AServiceStub(channel).GetTask(v03.GetTaskRequest(name="tasks/t"))
    assert task.artifacts[0].parts[0].file.file_with_bytes == expected
