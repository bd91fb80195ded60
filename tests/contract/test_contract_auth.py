"""Who may call what: every operation on every wire and version, for every kind of caller."""

import base64
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, suppress
from functools import partial
from typing import Any

import aiohttp
import grpc.aio
import pytest
import pytest_asyncio
from a2a_stubs import v1
from google.protobuf.message import Message
from joserfc import jwt
from joserfc.jwk import ECKey

from a2a_grpc.auth import AllOf, AnyOf, ApiKey, BearerKey, hashed, skill_of
from a2a_grpc.auth_basic import Basic, hash_password
from a2a_grpc.auth_jwt import JWT
from a2a_grpc.auth_keys import FixedKeys
from a2a_grpc.call import V03, V1, Call, Caller
from a2a_grpc.config import Options
from a2a_grpc.errors import (
    A2AError,
    InvalidParamsError,
    NotFoundError,
    PermissionDeniedError,
    ResourceExhaustedError,
    TaskNotFoundError,
    UnauthenticatedError,
)
from a2a_grpc.server import Server
from tests.contract.agents import TENANTS, gates, known
from tests.contract.cells import HERE, HOOK, STREAMING, WIRES, Cell, Refusal, Site, eventually, fresh, requests, said

pytestmark = pytest.mark.stores("memory")

SCOPES = frozenset({"a2a"})
ISSUER = "https://issuer.example"
SIGNS = ECKey.generate_key("P-256", {"kid": "one"})


def token(**claims: Any) -> dict[str, str]:
    """The header with a token of alice's."""
    made = {"iss": ISSUER, "aud": "a2a", "sub": "alice", "scope": "a2a", "exp": int(time.time()) + 3600, **claims}
    return {"authorization": "Bearer " + jwt.encode({"alg": "ES256", "kid": "one"}, made, SIGNS)}


def callers() -> dict[str, Caller]:
    """Who has a key; the key is the name."""
    return {
        "alice": Caller("alice", scopes=SCOPES),
        "bob": Caller("bob", scopes=SCOPES),
        "weak": Caller("weak"),
        "tied": Caller("alice", scopes=SCOPES, tenants=frozenset({"", "globex"})),
    }


def policy() -> AnyOf:
    """A key with a scope in a header, or a password, or a bearer key, or two keys together."""
    keys = {hashed(name): caller for name, caller in callers().items()}
    apart = {"query": ApiKey(keys, "api_key", "query", scheme_name="inQuery")}
    apart["cookie"] = ApiKey(keys, "session", "cookie", scheme_name="inCookie")
    return AnyOf(
        ApiKey(keys, scopes=("a2a",)),
        Basic({"alice": hash_password("pass:word")}),
        BearerKey(keys),
        JWT(ISSUER, "a2a", keys=FixedKeys([SIGNS]), scopes=("a2a",), subject=lambda claims: claims["sub"]),
        AllOf(apart["query"], apart["cookie"]),
    )


async def ruled(call: Call, request: Message) -> bool:
    """The authorizer: some callers may only read, and one rule fails."""
    if call.metadata.get("x-rule") == "broken":
        raise RuntimeError("the rule is broken")
    if skill_of(request) == "refunds":
        return call.caller.subject != "alice"
    return call.metadata.get("x-rule") != "read" or call.operation.startswith(("Get", "List"))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def site() -> AsyncIterator[Site]:
    async with AsyncExitStack() as stack:
        options = Options(**HERE, store="memory:", push_notifications=True)
        made = Server(known(), options, authenticators=policy(), authorizer=ruled)
        server = await stack.enter_async_context(made)
        http = await stack.enter_async_context(aiohttp.ClientSession())
        channel = await stack.enter_async_context(grpc.aio.insecure_channel(server.grpc_address))
        yield Site(server, http, channel, stack)


@pytest_asyncio.fixture(loop_scope="module", name="cell")
async def one_cell(request: pytest.FixtureRequest, site: Site) -> Cell:
    """The cell as alice sees it."""
    binding, version, _ = request.param
    return await seen(site, binding, version, "alice")


async def seen(site: Site, binding: str, version: str, key: str) -> Cell:
    client = await site.client(binding, version, headers={"x-api-key": key})
    return Cell(binding, version, "memory", site, client)


# -- the table


def can_say(cell: Cell, operation: str) -> bool:
    return cell.version == V1 or operation != "ListTasks"


TASKLESS = {"ListTasks", "GetExtendedAgentCard"}

WHO: Mapping[str, tuple[dict[str, str], type[A2AError] | None]] = {
    "no credential": ({}, UnauthenticatedError),
    "wrong": ({"x_api_key": "alicE"}, UnauthenticatedError),
    "expired": (token(exp=1), UnauthenticatedError),
    "for somebody else": (token(aud="others"), UnauthenticatedError),
    "lacking scope": ({"x_api_key": "weak"}, PermissionDeniedError),
    "lacking scope in a token": (token(scope="other"), PermissionDeniedError),
    "not allowed": ({"x_api_key": "alice", "x_rule": "read"}, PermissionDeniedError),
    "other owner": ({"x_api_key": "bob"}, TaskNotFoundError),
    "other owner with a token": (token(sub="bob"), TaskNotFoundError),
    "right": ({"x_api_key": "alice"}, None),
    "right with a token": (token(), None),
}
"""Headers of a caller, and the error that an operation on a task of alice's ends with."""


async def state(cell: Cell, task: v1.Task) -> tuple[v1.Task, list[str]]:
    """All that somebody else could have changed."""
    configs = (await cell.client.list_push_configs(task.id)).configs
    return await cell.client.get(task.id), sorted(config.id for config in configs)


@pytest_asyncio.fixture(loop_scope="module", params=["running", "ended"])
async def task(request: pytest.FixtureRequest, cell: Cell) -> AsyncIterator[v1.Task]:
    """A task of alice's with a webhook."""
    found, gate = await cell.held()
    await cell.client.create_push_config(v1.TaskPushNotificationConfig(task_id=found.id, id="hook", url=HOOK))
    if request.param == "ended":
        found = await cell.release(found, gate)
    yield found
    gates[gate].set()


@pytest.mark.parametrize("who", [name for name, row in WHO.items() if row[1]])
@pytest.mark.requirement("AUTH-01", "AUTH-03", "AUTH-04", "AUTH-05", "ERR-08", "ERR-09", "GRPC-13", "EQ-04", "BL-04")
@pytest.mark.requirement("I-38", "ERR-07")
async def test_who_may_not_is_refused_everywhere_and_changes_nothing(cell: Cell, task: v1.Task, who: str) -> None:
    headers, error = WHO[who]
    assert error is not None
    reads = ("Get", "List") if who == "not allowed" else ()
    await is_refused(cell, task, headers, error, reads)


@pytest.mark.parametrize("operation", ["SendMessage", "SendStreamingMessage"])
@pytest.mark.parametrize("where", ["message", "request"])
@pytest.mark.requirement("AUTH-04", "EQ-04")
async def test_the_skill_that_a_message_names_is_told_to_the_authorizer(cell: Cell, operation: str, where: str) -> None:
    for skill, caller, refused in (("refunds", "alice", True), ("refunds", "bob", False), ("other", "alice", False)):
        request = said("hello")
        (request.message if where == "message" else request).metadata["skillId"] = skill
        headers = {"x_api_key": caller}
        if refused:
            await cell.refuses(PermissionDeniedError, operation, request, **headers)
        else:
            client = await cell.site.client(cell.binding, cell.version, headers={"x-api-key": caller})
            assert await client.send(request)


@pytest.mark.requirement("AUTH-04", "EQ-04", "ERR-06")
async def test_a_message_names_one_skill(cell: Cell) -> None:
    request = said("hello", metadata={"skillId": "refunds"})
    request.message.metadata["skillId"] = "other"
    await cell.refuses(InvalidParamsError, "SendMessage", request, "metadata.skillId", x_api_key="bob")
    request.message.metadata["skillId"] = "refunds"
    await cell.refuses(PermissionDeniedError, "SendMessage", request, x_api_key="alice")


ELSEWHERE = {
    "another tenant of one's own": ({"x_api_key": "alice"}, "acme"),
    "a tenant that is not for the caller": ({"x_api_key": "tied"}, "acme"),
    "a tenant that nobody has": ({"x_api_key": "alice"}, "initech"),
    "a tenant that the caller has": ({"x_api_key": "tied"}, "globex"),
}


@pytest.mark.needs("tenant")
@pytest.mark.parametrize("where", ELSEWHERE)
@pytest.mark.requirement("TENANT-05", "TENANT-06", "TENANT-07", "AUTH-04", "ERR-07")
async def test_a_task_is_unknown_in_every_other_tenant(cell: Cell, task: v1.Task, where: str) -> None:
    headers, tenant = ELSEWHERE[where]
    await is_refused(cell, task, headers, TaskNotFoundError, (), tenant)


async def is_refused(
    cell: Cell,
    task: v1.Task,
    headers: dict[str, str],
    error: type[A2AError],
    allowed: tuple[str, ...],
    tenant: str = "",
) -> None:
    """Every operation on a task of alice's is refused with an error, and nothing changes. allowed: beginnings of names
    of operations that are not."""
    before = await state(cell, task)
    for operation, request in requests(task.id, tenant):
        passed = operation.startswith(allowed) if allowed else False
        if not can_say(cell, operation) or passed or (error is TaskNotFoundError and operation in TASKLESS):
            continue
        found = await cell.refuses(error, operation, request, **headers)
        if error is TaskNotFoundError:
            unknown = dict(requests(fresh("task"), tenant))[operation]
            assert answer(await cell.refuses(error, operation, unknown, **headers)) == answer(found)
        if error is UnauthenticatedError:
            assert 'ApiKey realm="a2a"' in found.headers["www-authenticate"]
        if error is PermissionDeniedError and not allowed:
            assert 'scope="a2a"' in found.headers["www-authenticate"]
    assert await state(cell, task) == before


def answer(refusal: Refusal) -> tuple[Any, ...]:
    """What of a refusal could tell one from another."""
    return (*refusal[:-1], sorted({name.lower() for name in refusal.headers} - {"date"}))


@pytest.mark.requirement("AUTH-04", "BL-04", "LIST-03", "CARD-22", "CARD-24")
async def test_others_see_their_own_list_and_card(cell: Cell, task: v1.Task) -> None:
    bob = await seen(cell.site, cell.binding, cell.version, "bob")
    assert (await bob.client.extended_card()).description == "extended for bob"
    if can_say(cell, "ListTasks"):
        assert task.id not in {found.id for found in (await bob.client.list()).tasks}
        assert task.id in {found.id for found in (await cell.client.list()).tasks}


@pytest.mark.parametrize("who", [name for name, row in WHO.items() if row[1] is None])
@pytest.mark.requirement("AUTH-01", "AUTH-04", "EQ-04", "GRPC-13")
async def test_who_may_can_do_everything(cell: Cell, task: v1.Task, who: str) -> None:
    client = await cell.connect(headers={name.replace("_", "-"): value for name, value in WHO[who][0].items()})
    cell = Cell(cell.binding, cell.version, cell.store, cell.site, client)
    ended = task.status.state == v1.TASK_STATE_COMPLETED
    done = []
    for operation, request in requests(task.id):
        if not can_say(cell, operation) or (operation in ("SendMessage", "SendStreamingMessage", "CancelTask")):
            continue
        if operation == "SubscribeToTask" and ended:
            continue
        if operation in STREAMING:
            events = cell.client.events(operation, request)
            assert (await anext(events)).task.id == task.id
            await events.aclose()
        else:
            await cell.client.call(operation, request)
        done.append(operation)
    assert len(done) >= 6
    assert (await cell.task("echo hi")).id
    assert [event async for event in cell.stream("echo hi")]
    if not ended:
        assert (await cell.client.cancel(task.id)).status.state == v1.TASK_STATE_CANCELED


# -- tenants


@pytest.mark.needs("tenant")
@pytest.mark.requirement("TENANT-07", "TENANT-05", "TENANT-06", "ERR-07")
async def test_a_tenant_of_others_is_like_one_that_is_not_there(cell: Cell) -> None:
    assert set(TENANTS) == {"acme", "globex"}
    client = await cell.site.client(cell.binding, cell.version, tenant="acme", headers={"x-api-key": "alice"})
    mine = (await client.send(said("ask"))).task
    for headers, tenant in (({"x_api_key": "tied"}, "acme"), ({"x_api_key": "alice"}, "globex")):
        for operation, request in requests(mine.id, tenant):
            if operation in TASKLESS:
                continue
            found = await cell.refuses(TaskNotFoundError, operation, request, **headers)
            absent = dict(requests(mine.id, "initech"))[operation]
            assert answer(await cell.refuses(TaskNotFoundError, operation, absent, **headers)) == answer(found)
    for operation in TASKLESS:
        refused = dict(requests("", "acme"))[operation]
        await cell.refuses(NotFoundError, operation, refused, x_api_key="tied")
    await cell.refuses(NotFoundError, "SendMessage", said(tenant="acme"), x_api_key="tied")
    assert (await client.get(mine.id)).status.state == v1.TASK_STATE_INPUT_REQUIRED
    own = await cell.site.client(cell.binding, cell.version, tenant="globex", headers={"x-api-key": "tied"})
    assert (await own.send(said("ask"))).task.id


# -- ways to prove it


def basic(text: str) -> dict[str, str]:
    return {"authorization": "Basic " + base64.b64encode(text.encode()).decode()}


SHOWN: Mapping[str, tuple[dict[str, str], str]] = {
    "key": ({"X-API-Key": "alice"}, "alice"),
    "password": (basic("alice:pass:word"), "alice"),
    "bearer": ({"Authorization": "bearer bob"}, "bob"),
    "a right one beside a wrong one": ({"x-api-key": "nobody", "authorization": "Bearer bob"}, "bob"),
}
REFUSED = {
    "another password": basic("alice:password"),
    "unknown user": basic("carol:pass:word"),
    "no base64": {"authorization": "Basic ***"},
    "no colon": basic("alice"),
    "another scheme": {"authorization": "Digest alice"},
    "an empty token": {"authorization": "Bearer"},
    "two at once": {"x-api-key": "alice, alice"},
    "half of a pair": {"cookie": "session=alice"},
}


@pytest.mark.parametrize("how", SHOWN)
@pytest.mark.requirement("EQ-04", "GRPC-13", "AUTH-01", "AUTH-06")
async def test_each_way_works_on_each_wire(cell: Cell, how: str) -> None:
    headers, who = SHOWN[how]
    client = await cell.connect(headers=headers)
    assert (await client.extended_card()).description == f"extended for {who}"


@pytest.mark.parametrize("how", REFUSED)
@pytest.mark.requirement("EQ-04", "GRPC-13", "AUTH-01", "AUTH-03")
async def test_a_wrong_credential_is_refused_on_each_wire(cell: Cell, how: str) -> None:
    found = await cell.refuses(UnauthenticatedError, "SendMessage", said(), **REFUSED[how])
    assert found.headers["www-authenticate"].count("realm=")


@pytest.mark.requirement("EQ-04", "GRPC-13", "CARD-14", "CARD-13")
async def test_credentials_that_belong_together_are_both_needed(cell: Cell) -> None:
    cookie = {"cookie": "theme=dark; session=alice"}
    if cell.binding == "grpc":
        client = await cell.connect(headers={**cookie, "api_key": "bob"})
        assert (await client.extended_card()).description == "extended for bob"
        return
    verb, url, headers, body = cell.http_request("GetExtendedAgentCard", v1.GetExtendedAgentCardRequest())
    for query, status in (("?api_key=bob", 200), ("", 401), ("?api_key=bob&api_key=alice", 401), ("?api_key=x", 401)):
        got, shown, _ = await cell.fetch(verb, url + query, headers | cookie, body)
        assert got == status, shown
        assert ("extended for bob" in str(shown)) == (status == 200)


@pytest.mark.needs("malformed messages")
@pytest.mark.requirement("AUTH-05", "ERR-08")
async def test_no_field_is_looked_at_before_the_caller_is_known(cell: Cell) -> None:
    for request in (v1.SendMessageRequest(), said(tenant="nowhere"), said(parts=[v1.Part()])):
        await cell.refuses(UnauthenticatedError, "SendMessage", request)


@pytest.mark.requirement("AUTH-05", "ERR-08", "EQ-04")
async def test_no_version_is_looked_at_before_the_caller_is_known(cell: Cell) -> None:
    for version in ("9.9", "1.0, 0.3"):
        await cell.refuses(UnauthenticatedError, "SendMessage", said(), a2a_version=version)


@pytest.mark.wires("jsonrpc", "rest")
@pytest.mark.requirement("AUTH-05", "ERR-08")
async def test_no_body_and_no_route_is_looked_at_before_the_caller_is_known(cell: Cell) -> None:
    headers = {"content-type": "application/json", "a2a-version": cell.version}
    for body in (b"{", b"[]", b"{}", b'{"jsonrpc":"2.0","id":1,"method":"None"}'):
        status, shown, told = await cell.fetch("POST", "/" if cell.binding == "jsonrpc" else "/x", headers, body)
        assert (status, "www-authenticate" in told) == (401, True), shown


@pytest.mark.wires("jsonrpc")
@pytest.mark.requirement("I-38", "RPC-07")
async def test_a_refusal_has_the_id_of_its_request(site: Site) -> None:
    headers = {"content-type": "application/json"}
    for name in ("GetTask", "tasks/get"):
        body = f'{{"jsonrpc":"2.0","id":"seven","method":"{name}","params":{{"id":"x"}}}}'.encode()
        async with site.http.post(site.server.http_url, headers=headers, data=body) as reply:
            shown = await reply.json()
        assert (reply.status, shown["id"], shown["error"]["code"]) == (401, "seven", -32098)


# -- what hangs on the caller


@pytest.mark.requirement("OP-SEND-14", "AUTH-04")
async def test_a_repeated_message_is_known_again_for_its_sender_only(cell: Cell) -> None:
    bob = await seen(cell.site, cell.binding, cell.version, "bob")
    name = fresh("m")
    first, again = [await cell.task("echo hi", message_id=name) for _ in range(2)]
    other = await bob.task("echo hi", message_id=name)
    assert first.id == again.id != other.id


@pytest.mark.requirement("CARD-22", "CARD-23", "V03-13", "AUTH-03")
async def test_the_extended_card_needs_a_credential(cell: Cell) -> None:
    request = v1.GetExtendedAgentCardRequest()
    assert (await cell.client.extended_card()).description == "extended for alice"
    found = await cell.refuses(UnauthenticatedError, "GetExtendedAgentCard", request)
    assert 'Basic realm="a2a"' in found.headers["www-authenticate"]
    found = await cell.refuses(PermissionDeniedError, "GetExtendedAgentCard", request, x_api_key="weak")
    assert 'error="insufficient_scope", scope="a2a"' in found.headers["www-authenticate"]


@pytest.mark.requirement("ERR-11", "AUTH-04")
async def test_a_rule_that_breaks_lets_nobody_through(cell: Cell) -> None:
    found = await cell.refusal("GetTask", v1.GetTaskRequest(id="x"), {"x-api-key": "alice", "x-rule": "broken"})
    assert found.reason == "INTERNAL_ERROR" and "broken" not in str(found)


@pytest.mark.parametrize("version", [V1, V03])
@pytest.mark.requirement("CARD-12", "CARD-13", "CARD-14", "V03-35", "I-27", "AUTH-01")
async def test_the_card_says_what_is_asked(site: Site, version: str) -> None:
    url = site.server.http_url + "/.well-known/agent-card.json"
    async with site.http.get(url, headers={"a2a-version": version}) as reply:
        card = await reply.json()
    schemes = card["securitySchemes"]
    assert set(schemes) == {"apiKey", "basic", "bearer", "inQuery", "inCookie", "jwt"}
    if version == V1:
        assert schemes["inCookie"] == {"apiKeySecurityScheme": {"name": "session", "location": "cookie"}}
        assert card["securityRequirements"][0] == {"schemes": {"apiKey": {"list": ["a2a"]}}}
        pair = card["securityRequirements"][-1]["schemes"]
    else:
        assert schemes["inCookie"] == {"type": "apiKey", "name": "session", "in": "cookie"}
        assert schemes["basic"] == {"type": "http", "scheme": "Basic"}
        assert card["security"][0] == {"apiKey": ["a2a"]}
        pair = card["security"][-1]
    assert set(pair) == {"inQuery", "inCookie"}


@pytest.mark.requirement("SEC-04", "ERR-10")
async def test_each_caller_has_some_calls_at_a_time(site: Site) -> None:
    options = Options(**HERE, store="memory:", call_limit=2)
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(Server(known(), options, authenticators=policy()))
        channel = await stack.enter_async_context(grpc.aio.insecure_channel(server.grpc_address))
        mine = Site(server, site.http, channel, stack)
        for wire in WIRES:
            cell = await seen(mine, *wire, "alice")
            task, gate = await cell.held()
            events = [cell.client.subscribe(task.id) for _ in range(2)]
            for one in events:
                await anext(one)
            for operation, request in (("GetTask", v1.GetTaskRequest(id="x")), ("SendStreamingMessage", said())):
                await cell.refuses(ResourceExhaustedError, operation, request, x_api_key="alice")
                await cell.refuses(UnauthenticatedError, operation, request)
            await (await seen(mine, *wire, "bob")).task("echo hi")
            await events[0].aclose()
            await events[1].aclose()
            await eventually(partial(room, cell, task))
            await cell.release(task, gate)


async def room(cell: Cell, task: v1.Task) -> bool:
    """Whether the server has seen that streams are closed."""
    with suppress(ResourceExhaustedError):
        return bool((await cell.client.get(task.id)).id)
    return False


@pytest.mark.requirement("SEC-04", "ERR-10")
async def test_each_caller_has_a_rate_of_its_own(site: Site) -> None:
    options = Options(**HERE, store="memory:", call_rate=0.001, call_burst=3)
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(Server(known(), options, authenticators=policy()))
        channel = await stack.enter_async_context(grpc.aio.insecure_channel(server.grpc_address))
        cells = [await seen(Site(server, site.http, channel, stack), *wire, "alice") for wire in WIRES]
        request = v1.GetTaskRequest(id="x")
        for cell in cells[:3]:
            await cell.refuses(TaskNotFoundError, "GetTask", request, x_api_key="alice")
        for cell in cells:
            found = await cell.refuses(ResourceExhaustedError, "GetTask", request, x_api_key="alice")
            assert cell.binding == "grpc" or int(found.headers["retry-after"]) > 1
            await cell.refuses(UnauthenticatedError, "GetTask", request)
        await cells[0].refuses(TaskNotFoundError, "GetTask", request, x_api_key="bob")
