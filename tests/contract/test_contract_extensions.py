"""Extensions: asked for, activated, required, in every cell."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import grpc.aio
import pytest
from a2a_stubs import v03_grpc, v1, v1_grpc
from google.protobuf.message import Message

from a2a_grpc import v03
from a2a_grpc.call import Call
from a2a_grpc.client import Client
from a2a_grpc.config import Options
from a2a_grpc.errors import ExtensionSupportRequiredError
from a2a_grpc.server import Server
from tests.contract.agents import AGENTS, OPTIONAL, REQUIRED
from tests.contract.cells import BINDINGS, HERE, WIRES, Cell, data, fresh, said

NAMES = {"1.0": "A2A-Extensions", "0.3": "X-A2A-Extensions"}
UNKNOWN = "https://ext.example/unknown/v1"


async def announced(cell: Cell, operation: str, **headers: str) -> dict[str, str]:
    """The headers of the answer to a send, keys in lower case."""
    request = said("facts")
    if cell.binding != "grpc":
        verb, url, sent, body = cell.http_request(operation, request)
        told = {name.replace("_", "-"): value for name, value in headers.items()}
        async with cell.site.http.request(verb, url, headers=sent | told, data=body) as reply:
            assert reply.status == 200
            return {name.lower(): value for name, value in reply.headers.items()}
    old = cell.version == "0.3"
    stub = (v03_grpc if old else v1_grpc).A2AServiceStub(cell.site.channel)
    metadata = tuple((name.replace("_", "-"), value) for name, value in headers.items())
    message = v03.down_request(request) if old else request
    call: grpc.aio.Call = getattr(stub, operation)(message, metadata=metadata)
    return {str(key): str(value) for key, value in await call.initial_metadata() or ()}


@pytest.mark.requirement("EXT-03", "EXT-04")
async def test_an_extension_is_in_force_only_for_who_asks(cell: Cell) -> None:
    asking = await cell.connect(extensions=[UNKNOWN, OPTIONAL])
    assert data((await asking.send(said("facts"))).task)["extensions"] == [OPTIONAL]
    assert data(await cell.task("facts"))["extensions"] == []


@pytest.mark.parametrize("operation", ["SendMessage", "SendStreamingMessage"])
@pytest.mark.requirement("EXT-05", "EXT-04", "EXT-14", "GRPC-04", "GRPC-14", "V03-36", "I-33")
async def test_the_answer_names_the_extensions_in_force(cell: Cell, operation: str) -> None:
    own, other = NAMES[cell.version].lower(), NAMES[{"1.0": "0.3", "0.3": "1.0"}[cell.version]].lower()
    found = await announced(cell, operation, a2a_extensions=f"{UNKNOWN}, {OPTIONAL}")
    assert found[own] == OPTIONAL and other not in found
    assert own not in await announced(cell, operation)


@pytest.mark.wires("jsonrpc", "rest")
@pytest.mark.parametrize("operation", ["SendMessage", "SendStreamingMessage"])
@pytest.mark.requirement("EXT-04", "EXT-05", "SEC-03")
async def test_what_is_no_uri_is_ignored_like_an_unknown_extension(cell: Cell, operation: str) -> None:
    found = await announced(cell, operation, a2a_extensions=f"urn:\xfcml\xe4ut, a\tb, , {OPTIONAL}")
    assert found[NAMES[cell.version].lower()] == OPTIONAL


@pytest.mark.requirement("EXT-02", "EXT-14", "GRPC-05", "BL-33", "I-33")
async def test_extensions_are_read_from_both_names_of_the_header(cell: Cell) -> None:
    for headers in (
        {"a2a_extensions": f"{UNKNOWN} ,  {OPTIONAL}"},
        {"x_a2a_extensions": OPTIONAL},
        {"a2a_extensions": UNKNOWN, "x_a2a_extensions": OPTIONAL},
    ):
        assert (await announced(cell, "SendMessage", **headers))[NAMES[cell.version].lower()] == OPTIONAL


@pytest.mark.site(agent="demanding")
@pytest.mark.requirement("EXT-06", "I-65", "I-34", "L-28", "BL-33")
async def test_a_required_extension_must_be_declared(cell: Cell) -> None:
    for operation, request in (
        ("SendMessage", said()),
        ("SendStreamingMessage", said()),
        ("GetTask", v1.GetTaskRequest(id=fresh("task"))),
        ("CancelTask", v1.CancelTaskRequest(id=fresh("task"))),
        ("SubscribeToTask", v1.SubscribeToTaskRequest(id=fresh("task"))),
    ):
        found = await cell.refuses(ExtensionSupportRequiredError, operation, request)
        assert REQUIRED in found.text
        other_version = REQUIRED.replace("v1", "v2")
        await cell.refuses(ExtensionSupportRequiredError, operation, request, a2a_extensions=other_version)
    willing = await cell.connect(extensions=[REQUIRED])
    assert (await willing.send(said())).task.status.state == v1.TASK_STATE_COMPLETED


@pytest.mark.site(agent="demanding")
@pytest.mark.requirement("EXT-01", "EXT-06", "I-65")
async def test_the_card_is_reachable_without_the_extension_and_tells_of_it(cell: Cell) -> None:
    card = cell.client.card or v1.AgentCard()
    assert [entry.uri for entry in card.capabilities.extensions if entry.required] == [REQUIRED]


@asynccontextmanager
async def stamped(call: Call, request: Message) -> AsyncIterator[None]:
    """An extension written as an interceptor: whoever asks for it gets a stamp on what the agent sees."""
    asked = OPTIONAL in call.extensions
    if asked and isinstance(request, v1.SendMessageRequest):
        request.metadata[OPTIONAL] = f"stamped on {call.binding}"
    before = request.SerializeToString(deterministic=True)
    yield
    assert (OPTIONAL in call.activated) == asked
    assert request.SerializeToString(deterministic=True) == before, "what was asked is as it was, the ids are not in it"


@pytest.mark.requirement("EXT-03", "EXT-04", "EXT-05")
async def test_an_extension_may_be_an_interceptor() -> None:
    options = Options(**HERE, store="memory:")
    async with Server(AGENTS["scenes"](), options, interceptors=[stamped]) as server:
        for binding, version in WIRES:
            told = {"binding": BINDINGS[binding], "version": version}
            async with Client(server.http_url, extensions=[OPTIONAL], **told) as client:
                found = data((await client.send(said("facts"))).task)
                assert found["metadata"] == {OPTIONAL: f"stamped on {BINDINGS[binding]}"}
            async with Client(server.http_url, **told) as client:
                assert data((await client.send(said("facts"))).task)["metadata"] == {}


@asynccontextmanager
async def scribbles(call: Call, request: Message) -> AsyncIterator[None]:
    """An interceptor that writes where it may only read."""
    assert "x-left" not in call.metadata
    with suppress(TypeError):
        call.metadata["x-left"] = "by an earlier call"  # type: ignore[index]
    yield


@pytest.mark.requirement("AUTH-05")
async def test_what_an_interceptor_writes_into_the_metadata_of_a_call_is_not_in_the_next() -> None:
    options = Options(**HERE, store="memory:")
    async with Server(AGENTS["scenes"](), options, interceptors=[scribbles]) as server:
        for binding, version in WIRES:
            async with Client(server.http_url, binding=BINDINGS[binding], version=version) as client:
                for _ in range(3):
                    assert (await client.send(said("facts"))).task.id


@pytest.mark.site(agent="demanding", own=True)
@pytest.mark.needs("ListTasks")
@pytest.mark.requirement("EXT-06", "BL-33")
async def test_without_a_required_extension_no_task_comes_to_be(cell: Cell) -> None:
    for operation in ("SendMessage", "SendStreamingMessage"):
        await cell.refuses(ExtensionSupportRequiredError, operation, said(now=True))
    willing = await cell.connect(extensions=[REQUIRED])
    assert (await willing.list()).total_size == 0
