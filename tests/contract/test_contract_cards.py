"""The card, and whether every interface and capability that it lists is there, in every cell."""

import getpass
import platform
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from a2a_stubs import v1
from aiohttp import ClientSession, web

from a2a_grpc import testing
from a2a_grpc.call import GRPC, V03
from a2a_grpc.client import Client
from a2a_grpc.errors import (
    A2AError,
    ExtendedAgentCardNotConfiguredError,
    PushNotificationNotSupportedError,
    TaskNotFoundError,
    UnauthenticatedError,
    UnsupportedOperationError,
)
from a2a_grpc.v03_names import METHOD_NAMES
from tests.contract.cells import BINDINGS, Cell, Sites, fresh, said

EXTENDED = "GetExtendedAgentCard", v1.GetExtendedAgentCardRequest()
CARD = "/.well-known/agent-card.json"


def requests(task_id: str) -> dict[str, Any]:
    """A request for each operation, about one waiting task."""
    return {
        "GetTask": v1.GetTaskRequest(id=task_id),
        "ListTasks": v1.ListTasksRequest(),
        "CreateTaskPushNotificationConfig": v1.TaskPushNotificationConfig(
            task_id=task_id, id="c", url="https://hooks.example/1"
        ),
        "GetTaskPushNotificationConfig": v1.GetTaskPushNotificationConfigRequest(task_id=task_id, id="c"),
        "ListTaskPushNotificationConfigs": v1.ListTaskPushNotificationConfigsRequest(task_id=task_id),
        "DeleteTaskPushNotificationConfig": v1.DeleteTaskPushNotificationConfigRequest(task_id=task_id, id="c"),
        "GetExtendedAgentCard": v1.GetExtendedAgentCardRequest(),
        "SubscribeToTask": v1.SubscribeToTaskRequest(id=task_id),
        "SendMessage": said("one", task_id=task_id),
        "SendStreamingMessage": said("two", task_id=task_id),
        "CancelTask": v1.CancelTaskRequest(id=task_id),
    }


@pytest.mark.site(agent="known", push_notifications=True)
@pytest.mark.requirement("CARD-26", "CARD-03", "CARD-04", "EQ-01", "BL-45", "V03-02", "V03-34", "GRPC-01")
async def test_every_listed_interface_answers_every_operation(cell: Cell) -> None:
    cell = await cell.caller("ann")
    card = cell.client.card
    assert card is not None and cell.client.interface in card.supported_interfaces
    assert (cell.client.interface.protocol_binding, cell.client.interface.protocol_version) == (
        BINDINGS[cell.binding],
        cell.version,
    )
    waiting = await cell.task("ask 9")
    calls = requests(waiting.id)
    assert set(calls) == set(testing.operations())
    for operation, request in calls.items():
        if operation not in METHOD_NAMES and cell.version == "0.3":
            continue
        if operation in ("SendStreamingMessage", "SubscribeToTask"):
            events = cell.client.events(operation, request)
            assert (await anext(events)).task.id == waiting.id
            await events.aclose()
        else:
            await cell.client.call(operation, request)
    assert (await cell.client.get(waiting.id)).status.state == v1.TASK_STATE_CANCELED


@pytest.mark.site(agent="mute")
@pytest.mark.requirement("CARD-26", "CARD-10", "ERR-12", "ERR-13", "BL-19", "EQ-01")
async def test_what_the_card_does_not_declare_is_refused(cell: Cell) -> None:
    card = cell.client.card or v1.AgentCard()
    capabilities = card.capabilities
    assert not (capabilities.streaming or capabilities.push_notifications or capabilities.extended_agent_card)
    for operation, request in requests(fresh("task")).items():
        if "Push" in operation:
            await cell.refuses(PushNotificationNotSupportedError, operation, request)
    await cell.refuses(UnsupportedOperationError, "SubscribeToTask", v1.SubscribeToTaskRequest(id=fresh("task")))


# -- the extended card


@pytest.mark.site(agent="known")
@pytest.mark.requirement("CARD-22", "CARD-23", "CARD-24", "ERR-08", "ERR-14", "V03-13")
async def test_the_extended_card_is_for_callers_who_are_known(cell: Cell) -> None:
    found = await cell.refuses(UnauthenticatedError, *EXTENDED)
    assert "bearer" in str(found.headers).lower()
    for name in ("ann", "bob"):
        card = await (await cell.caller(name)).client.extended_card()
        assert (card.description, card.name) == (f"extended for {name}", "Scenes")
        assert card.supported_interfaces


@pytest.mark.site(agent="scenes known", public_url="https://agents.example/base")
@pytest.mark.wires("rest")
@pytest.mark.requirement("CARD-24", "BL-45", "BL-52", "V03-13", "V03-34")
async def test_the_extended_card_lists_the_interfaces_of_the_public_one(cell: Cell) -> None:
    told = {"a2a-version": cell.version, "x-caller": "ann"}
    _, public, _ = await cell.fetch("GET", "/known/.well-known/agent-card.json", told)
    status, card, headers = await cell.fetch(
        "GET", "/known/v1/card" if cell.version == V03 else "/known/extendedAgentCard", told
    )
    assert status == 200 and card["description"] == "extended for ann"
    assert "private" in headers["cache-control"]
    for member in ("url", "additionalInterfaces") if cell.version == V03 else ("supportedInterfaces",):
        assert card[member] == public[member] and "https://agents.example/base/known" in str(public[member])


@pytest.mark.site(agent="known")
@pytest.mark.requirement("CARD-23", "ERR-14", "I-35")
async def test_a_declared_card_that_is_not_there_is_not_configured(cell: Cell) -> None:
    await cell.refuses(ExtendedAgentCardNotConfiguredError, *EXTENDED, x_caller="nobody")


@pytest.mark.requirement("CARD-23", "ERR-14", "I-35")
async def test_without_the_capability_there_is_no_extended_card(cell: Cell) -> None:
    error: type[A2AError] = UnsupportedOperationError if cell.version == "1.0" else ExtendedAgentCardNotConfiguredError
    await cell.refuses(error, *EXTENDED)


# -- the card over HTTP, once for each store's server


@pytest_asyncio.fixture(loop_scope="module")
async def page(sites: Sites) -> Any:
    site = await sites.site("memory")

    async def fetch(path: str = CARD, **headers: str) -> tuple[int, Any, Any]:
        told = {name.replace("_", "-"): value for name, value in headers.items()}
        async with site.http.get(site.server.http_url + path, headers=told) as reply:
            body = await reply.read()
            return reply.status, (await reply.json() if body else None), reply.headers

    return fetch


@pytest.mark.requirement("CARD-01", "CARD-02", "CARD-06", "CARD-21", "I-10", "V03-32", "BL-46")
async def test_the_card_has_the_form_of_the_version_asked_for(page: Any) -> None:
    _, new, new_headers = await page(a2a_version="1.0")
    _, old, old_headers = await page(a2a_version="0.3")
    _, both, _ = await page()
    assert {entry["protocolVersion"] for entry in new["supportedInterfaces"]} == {"1.0", "0.3"}
    assert "url" not in new and "preferredTransport" not in new
    assert "supportedInterfaces" not in old
    assert old["url"] and old["preferredTransport"] == "JSONRPC" and old["protocolVersion"].startswith("0.3")
    assert {*new} | {"url", "preferredTransport", "protocolVersion"} <= {*both}
    for entry in old["additionalInterfaces"]:
        assert entry["transport"] in ("JSONRPC", "GRPC", "HTTP+JSON") and entry["url"]
    assert new_headers["etag"] != old_headers["etag"]
    for headers in (new_headers, old_headers):
        assert headers["content-type"].startswith("application/json") and headers["vary"] == "A2A-Version"
        assert "max-age" in headers["cache-control"]


@pytest.mark.requirement("CARD-16", "CARD-17")
async def test_a_card_that_is_known_is_not_sent_again(page: Any) -> None:
    status, _, headers = await page()
    assert status == 200
    status, body, _ = await page(if_none_match=headers["etag"])
    assert (status, body) == (304, None)


@pytest.mark.stores("sqlite")
@pytest.mark.requirement("CARD-19", "BL-28")
async def test_a_card_tells_nothing_of_the_machine(cell: Cell) -> None:
    text = str(cell.client.card)
    for inside in ("sqlite", "a2a.db", str(Path.cwd()), platform.node(), getpass.getuser(), platform.python_version()):
        assert inside not in text


@pytest.mark.requirement("I-57", "REST-24")
async def test_other_addresses_of_a_card_are_not_found(page: Any) -> None:
    status, body, _ = await page("/.well-known/agent.json")
    assert status == 404 and body["error"]["code"] == 404


@asynccontextmanager
async def proxy(target: str, prefix: str) -> AsyncIterator[str]:
    """A reverse proxy in front of a server, which adds a path; its base URL."""
    async with ClientSession(auto_decompress=False) as session:

        async def forward(request: web.Request) -> web.StreamResponse:
            headers = {**request.headers, "X-Forwarded-Host": request.host, "X-Forwarded-Proto": "http"}
            headers["X-Forwarded-Prefix"] = prefix
            url = target + request.path_qs.removeprefix(prefix)
            async with session.request(request.method, url, headers=headers, data=await request.read()) as reply:
                answer = web.StreamResponse(
                    status=reply.status, headers={"content-type": reply.headers["content-type"]}
                )
                await answer.prepare(request)
                async for chunk in reply.content.iter_any():
                    await answer.write(chunk)
                return answer

        application = web.Application()
        application.router.add_route("*", prefix + "/{rest:.*}", forward)
        runner = web.AppRunner(application)
        await runner.setup()
        place = web.TCPSite(runner, "127.0.0.1", 0)
        await place.start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}{prefix}"
        await runner.cleanup()


@pytest.mark.requirement("BL-45", "CARD-05", "REST-01")
async def test_every_interface_of_a_card_answers_behind_a_proxy(sites: Sites) -> None:
    site = await sites.site("memory", trust_forwarded=True)
    async with proxy(site.server.http_url, "/deep/down") as base:
        for binding, name in BINDINGS.items():
            for version in ("1.0", "0.3"):
                async with Client(base, binding=name, version=version) as client:
                    if name != GRPC:
                        assert client.interface.url.startswith(base), binding
                    task = (await client.send(said("echo through"))).task
                    events = [event async for event in client.stream(said("states"))]
                    assert (task.status.state, len(events)) == (v1.TASK_STATE_COMPLETED, 5)
                    with pytest.raises(TaskNotFoundError):
                        await client.get(fresh("task"))
