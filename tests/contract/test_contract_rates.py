"""How much one caller may ask for: refused alike on every wire and version, and nobody else's affair."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from typing import Any

import aiohttp
import grpc.aio
import pytest
from a2a_stubs import v1

from a2a_grpc.auth_rates import OperationRates
from a2a_grpc.config import OptionError, Options
from a2a_grpc.errors import A2AError, ResourceExhaustedError, UnauthenticatedError
from a2a_grpc.server import Server
from a2a_grpc.testing import operations
from tests.contract.agents import known
from tests.contract.cells import HERE, LACKS, WIRES, Cell, Refusal, Site, eventually, requests, said
from tests.contract.test_contract_auth import policy, seen
from tests.hosts import served

STREAM, SEND, ONE = "SendStreamingMessage", "SendMessage", v1.GetTaskRequest(id="x")


@asynccontextmanager
async def limited(carried: Any = None, **options: Any) -> AsyncIterator[Site]:
    """A server that holds its callers to some limits. carried: what serves its application; default its own ports."""
    async with AsyncExitStack() as stack:
        settings = {**HERE, "store": "memory:", **options, **({"grpc": "", "http": ""} if carried else {})}
        made = Server(known(), Options(**settings), authenticators=policy())
        server = await stack.enter_async_context(carried(made) if carried else made)
        http = await stack.enter_async_context(aiohttp.ClientSession())
        channel = await stack.enter_async_context(grpc.aio.insecure_channel(server.grpc_address))
        yield Site(server, http, channel, stack)


async def refused(cell: Cell, operation: str, request: Any) -> Refusal:
    """The refusal of one call too many: 429 or RESOURCE_EXHAUSTED, with the time of coming back."""
    found = await cell.refuses(ResourceExhaustedError, operation, request, x_api_key="alice")
    assert cell.binding == "grpc" or int(found.headers["retry-after"]) >= 1
    with pytest.raises(ResourceExhaustedError) as told:  # which reads the typed detail
        await ended(cell, operation, request)
    assert told.value.retry_after and told.value.retry_after > 0.5
    return found


def sayable(cell: Cell, operation: str) -> bool:
    return operation not in LACKS or (cell.binding, cell.version) not in LACKS[operation][0]


@pytest.mark.parametrize("operation", operations())
@pytest.mark.requirement("SEC-04", "ERR-10", "EQ-04")
async def test_each_operation_has_a_rate_of_its_own_for_each_caller(operation: str) -> None:
    request = dict(requests("no-such-task"))[operation]
    async with limited(operation_rates=(f"{operation}=0.001/1",), push_notifications=True) as site:
        cells = [cell for cell in [await seen(site, *wire, "alice") for wire in WIRES] if sayable(cell, operation)]
        # The one call that there is room for gets as far as it can, on whatever wire.
        with suppress(A2AError):
            await ended(cells[0], operation, request)
        for cell in cells:
            found = await refused(cell, operation, request)
            assert cell.binding == "grpc" or int(found.headers["retry-after"]) > 1
            await cell.refuses(UnauthenticatedError, operation, request)
            if operation != "GetTask":
                with pytest.raises(A2AError, match="not found"):
                    await cell.client.get("x")
        other = await seen(site, *WIRES[0], "bob")
        with suppress(A2AError):
            await ended(other, operation, request)
        await other.refuses(ResourceExhaustedError, operation, request, x_api_key="bob")


async def ended(cell: Cell, operation: str, request: Any) -> None:
    if operation in (STREAM, "SubscribeToTask"):
        async for _ in cell.client.events(operation, request):
            pass
    else:
        await cell.client.call(operation, request)


@pytest.mark.requirement("SEC-04", "ERR-10", "EQ-04")
async def test_each_caller_has_some_open_streams() -> None:
    async with limited(stream_limit=2) as site:
        for wire in WIRES:
            cell = await seen(site, *wire, "alice")
            task, gate = await cell.held()
            events = [cell.client.subscribe(task.id) for _ in range(2)]
            for one in events:
                await anext(one)
            for operation, request in ((STREAM, said()), ("SubscribeToTask", v1.SubscribeToTaskRequest(id=task.id))):
                assert "limit is 2" in (await refused(cell, operation, request)).text
            assert (await cell.task("echo hi")).id  # what is no stream has room
            assert [event async for event in (await seen(site, *wire, "bob")).stream("echo hi")]
            for one in events:
                await one.aclose()
            await eventually(partial(streams, cell))
            await cell.release(task, gate)


async def streams(cell: Cell) -> bool:
    """Whether the server has seen that streams are closed."""
    with suppress(ResourceExhaustedError):
        return bool([event async for event in cell.stream("echo hi")])
    return False


@pytest.mark.requirement("SEC-04", "ERR-10", "EQ-04", "BL-02")
async def test_each_caller_has_some_running_turns() -> None:
    async with limited(turn_limit=2) as site:
        for wire in WIRES:
            cell = await seen(site, *wire, "alice")
            waiting = await cell.task("ask")
            held = [await cell.held() for _ in range(2)]
            for request in (said(), said(task_id=waiting.id)):
                for operation in (SEND, STREAM):
                    assert "limit is 2" in (await refused(cell, operation, request)).text
            assert (await (await seen(site, *wire, "bob")).task("echo hi")).id
            assert (await cell.client.get(waiting.id)).status.state == v1.TASK_STATE_INPUT_REQUIRED
            await cell.release(*held[0])
            assert (await cell.task("one", task_id=waiting.id)).id
            await cell.release(*held[1])


@pytest.mark.parametrize(
    "row", ["GetTask", "GetTask=", "GetTask=0", "GetTask=1/0", "GetTask=-1", "gettask=1", "tasks/get=1"]
)
@pytest.mark.requirement("SEC-04")
def test_a_rate_that_is_none_is_refused_by_its_name(row: str) -> None:
    with pytest.raises(OptionError, match="operation_rates"):
        OperationRates([row])
    with pytest.raises(OptionError, match="once"):
        OperationRates(["GetTask=1", "GetTask=2/3"])


@pytest.mark.parametrize("host", ["own", "asgi"])
@pytest.mark.requirement("SEC-04", "ERR-10", "EQ-04", "AUTH-03")
async def test_who_guesses_keys_is_not_looked_at_for_a_while(host: str) -> None:
    carried = served if host == "asgi" else None
    for wire in WIRES:
        async with limited(carried, failure_rate=0.001, failure_burst=2) as site:
            cell = await seen(site, *wire, "alice")
            for _ in range(4):  # no credential is no guess
                await cell.refuses(UnauthenticatedError, "GetTask", ONE)
            for _ in range(2):
                await cell.refuses(UnauthenticatedError, "GetTask", ONE, x_api_key="guess")
            for headers in ({"x_api_key": "guess"}, {"x_api_key": "alice"}, {}):
                await cell.refuses(ResourceExhaustedError, "GetTask", ONE, **headers)
            failures = site.server.authentication.failures if site.server.authentication else {}
            assert failures["wrong"] == 2


@pytest.mark.requirement("SEC-04")
async def test_behind_a_proxy_the_address_is_the_one_that_the_proxy_saw() -> None:
    async with limited(failure_rate=0.001, failure_burst=1, trust_forwarded=True) as site:
        for wire in WIRES:
            cell = await seen(site, *wire, "alice")
            guess = {"x_api_key": "guess"}
            for wrong, same, other in (
                ("10.0.0.1", "1.1.1.1, 10.0.0.1", "10.0.0.2"),
                ("2001:db8:0:1::1", "2001:db8:0:1::2", "2001:db8:0:2::1"),
            ):
                wrong, same, other = (f"{wire[0]}.example, {one}" for one in (wrong, same, other))
                kind = UnauthenticatedError if wire == WIRES[0] else ResourceExhaustedError
                await cell.refuses(kind, "GetTask", ONE, **guess, x_forwarded_for=wrong)
                await cell.refuses(ResourceExhaustedError, "GetTask", ONE, **guess, x_forwarded_for=same)
                with pytest.raises(AssertionError, match="TASK_NOT_FOUND"):
                    await cell.refuses(UnauthenticatedError, "GetTask", ONE, x_api_key="alice", x_forwarded_for=other)


@pytest.mark.requirement("SEC-04", "AUTH-03")
async def test_who_has_a_right_credential_guesses_no_faster() -> None:
    right = {"authorization": "Bearer bob"}
    async with limited(failure_rate=0.001, failure_burst=2) as site:
        cell = await seen(site, *WIRES[0], "alice")
        for _ in range(2):
            with pytest.raises(AssertionError, match="TASK_NOT_FOUND"):
                await cell.refuses(UnauthenticatedError, "GetTask", ONE, x_api_key="guess", **right)
        for wire in WIRES:
            cell = await seen(site, *wire, "alice")
            await cell.refuses(ResourceExhaustedError, "GetTask", ONE, x_api_key="guess", **right)


@pytest.mark.requirement("SEC-04", "AUTH-05", "EQ-04")
async def test_who_shows_nothing_is_told_so_also_where_no_stream_is_left() -> None:
    async with limited(max_streams=1) as site:
        cell = await seen(site, *WIRES[0], "alice")
        task, gate = await cell.held()
        events = cell.client.subscribe(task.id)
        await anext(events)
        for wire in WIRES:
            cell = await seen(site, *wire, "alice")
            await refused(cell, STREAM, said())
            await cell.refuses(UnauthenticatedError, STREAM, said())
        await events.aclose()
        await cell.release(task, gate)
