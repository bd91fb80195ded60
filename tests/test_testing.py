"""The client and server pair for tests of agents."""

import pytest
from a2a_stubs import v1

from a2a_grpc.auth import ApiKey, hashed
from a2a_grpc.client import Client
from a2a_grpc.errors import PermissionDeniedError, TaskNotFoundError, UnauthenticatedError
from a2a_grpc.testing import ServiceWire, serve
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
