"""The client and server pair for tests of agents."""

import pytest
from a2a_stubs import v1

from a2a_grpc.auth import ApiKey, hashed
from a2a_grpc.call import GRPC, JSONRPC, REST, VERSIONS
from a2a_grpc.client import Client
from a2a_grpc.errors import PermissionDeniedError, TaskNotFoundError, UnauthenticatedError
from a2a_grpc.testing import ServiceWire, connect, serve
from tests.contract.agents import AGENTS
from tests.fakes import FakeService


@pytest.mark.requirement("EXT-02", "EXT-14")
@pytest.mark.parametrize(("version", "header"), [("1.0", "A2A-Extensions"), ("0.3", "X-A2A-Extensions")])
async def test_the_way_in_memory_carries_what_a_socket_would(version: str, header: str) -> None:
    service = FakeService()
    headers = {header: "urn:a, urn:b", "Last-Event-ID": "7"}
    await ServiceWire(service, version).unary("GetTask", v1.GetTaskRequest(id="t1", tenant="acme"), headers)
    ((_, call),) = service.calls
    assert (call.binding, call.version, call.tenant, call.resume) == ("GRPC", version, "acme", 7)
    assert call.extensions == ("urn:a", "urn:b")


@pytest.mark.requirement("OP-SEND-06", "CTX-01")
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("binding", [JSONRPC, GRPC, REST])
async def test_a_request_that_was_sent_is_still_the_senders_own(binding: str, version: str) -> None:
    """So that it may be sent again, and begins another task then."""
    request = v1.SendMessageRequest(message={"message_id": "m1", "role": v1.ROLE_USER, "parts": [{"text": "hello"}]})
    sent = request.SerializeToString()
    async with connect(AGENTS["scenes"](), binding=binding, version=version) as client:
        tasks = [(await client.call("SendMessage", request)).task for _ in range(2)]
        events = [event async for event in client.events("SendStreamingMessage", request)]
        assert request.SerializeToString() == sent
    tasks.append(events[0].task)
    assert len({task.id for task in tasks}) == len({task.context_id for task in tasks}) == 3


@pytest.mark.parametrize("binding", [JSONRPC, GRPC])
async def test_whatever_comes_in_memory_is_a_message_and_the_callers_own(binding: str) -> None:
    """On each wire, as it would be behind a socket: who changes what was received changes it for nobody else."""
    request = v1.SendMessageRequest(message={"message_id": "m1", "role": v1.ROLE_USER, "parts": [{"text": "chunks 3"}]})
    async with connect(AGENTS["scenes"](), binding=binding) as client:
        texts = []
        async for event in client.events("SendStreamingMessage", request):
            for part in event.artifact_update.artifact.parts:
                texts.append(part.text)
                part.text = "changed"
        page = await client.call("ListTasks", v1.ListTasksRequest(include_artifacts=True))
        task = await client.get(page.tasks[0].id)
    assert texts == ["0 ", "1 ", "2 ", ""]
    assert [part.text for part in task.artifacts[0].parts] == ["0 1 2 "]
    assert list(page.tasks[0].artifacts) == list(task.artifacts)


@pytest.mark.requirement("AUTH-01", "AUTH-03")
async def test_a_server_for_tests_asks_for_what_it_is_told_to_ask_for() -> None:
    policy = ApiKey({hashed("key"): "alice"})
    async with serve(
        AGENTS["scenes"](), authenticators=policy, authorizer=lambda call, _: "Get" in call.operation
    ) as one:
        async with Client(one.http_url, headers={"x-api-key": "key"}, retries=None) as client:
            with pytest.raises(TaskNotFoundError):
                await client.get("nobody's")
            with pytest.raises(PermissionDeniedError):
                await client.cancel("nobody's")
        async with Client(one.http_url, retries=None) as client:
            with pytest.raises(UnauthenticatedError):
                await client.get("nobody's")
