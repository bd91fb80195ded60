"""Servicers around servicers, without a server."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest
from a2a_stubs import v1
from google.protobuf.message import Message

from a2a_grpc.call import Call
from a2a_grpc.errors import InternalError
from a2a_grpc.routing import surround
from tests.fakes import FakeService


@asynccontextmanager
async def hides_errors(call: Call, request: Message) -> AsyncIterator[None]:
    with suppress(InternalError):
        yield


async def test_an_error_that_an_interceptor_hides_is_never_taken_for_a_good_end() -> None:
    service = FakeService()
    service.fault = InternalError()
    surrounded = surround(service, (hides_errors,))
    with pytest.raises(AssertionError, match="swallowed"):
        await surrounded.GetTask(v1.GetTaskRequest(id="t1"), Call("GetTask"))
    with pytest.raises(AssertionError, match="swallowed"):
        _ = [event async for event in surrounded.SubscribeToTask(v1.SubscribeToTaskRequest(), Call("SubscribeToTask"))]
    assert service.closed == 1
