"""The client and server pair for tests of agents."""

import pytest
from a2a_stubs import v1
from fakes import FakeService

from a2a_grpc.testing import ServiceWire


@pytest.mark.requirement("EXT-02", "EXT-14")
@pytest.mark.parametrize(("version", "header"), [("1.0", "A2A-Extensions"), ("0.3", "X-A2A-Extensions")])
async def test_the_way_in_memory_carries_what_a_socket_would(version: str, header: str) -> None:
    service = FakeService()
    headers = {header: "urn:a, urn:b", "Last-Event-ID": "7"}
    await ServiceWire(service, version).unary("GetTask", v1.GetTaskRequest(id="t1", tenant="acme"), headers)
    ((_, call),) = service.calls
    assert (call.binding, call.version, call.tenant, call.resume) == ("GRPC", version, "acme", 7)
    assert call.extensions == ("urn:a", "urn:b")
