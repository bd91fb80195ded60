"""Tenants and several agents in one server: what belongs to one is unknown to the others."""

import pytest
from a2a_stubs import v1

from a2a_grpc.errors import InvalidParamsError, NotFoundError, TaskNotFoundError
from tests.contract.cells import BINDINGS, Cell, Site, Sites, data, fresh, said, spoken

TENANTS = pytest.mark.needs("tenant")
SEVERAL = pytest.mark.site(agent="scenes talker")


async def tenant(cell: Cell, name: str) -> Cell:
    """The same cell as seen from a tenant."""
    client = await cell.connect(tenant=name)
    return Cell(cell.binding, cell.version, cell.store, cell.site, client)


@TENANTS
@pytest.mark.requirement("TENANT-01", "TENANT-02", "TENANT-03", "TENANT-04", "REST-02", "DATA-09")
async def test_a_tenant_has_all_operations(cell: Cell) -> None:
    acme = await tenant(cell, "acme")
    task = await acme.task("ask")
    assert data(await acme.task("facts"))["tenant"] == "acme"
    assert (await acme.client.get(task.id)).id == task.id
    assert (await acme.client.list(v1.ListTasksRequest(context_id=task.context_id))).total_size == 1
    events = acme.client.subscribe(task.id)
    assert (await anext(events)).task.id == task.id
    assert (await acme.client.cancel(task.id)).status.state == v1.TASK_STATE_CANCELED
    await events.aclose()


@TENANTS
@pytest.mark.requirement("TENANT-05", "ERR-07", "CTX-12")
async def test_nothing_of_a_tenant_is_seen_by_another(cell: Cell) -> None:
    acme, globex = await tenant(cell, "acme"), await tenant(cell, "globex")
    context = fresh("ctx")
    task = await acme.task("ask", context_id=context)
    await acme.task("remember k v", context_id=context)
    for other in ("globex", ""):
        for operation, request in (
            ("GetTask", v1.GetTaskRequest(id=task.id, tenant=other)),
            ("CancelTask", v1.CancelTaskRequest(id=task.id, tenant=other)),
            ("SubscribeToTask", v1.SubscribeToTaskRequest(id=task.id, tenant=other)),
            ("SendMessage", said("blue", task_id=task.id, tenant=other)),
        ):
            await cell.refuses(TaskNotFoundError, operation, request)
    for stranger in (globex, cell):
        assert not (await stranger.client.list(v1.ListTasksRequest(context_id=context))).total_size
        assert data(await stranger.task("recall k", context_id=context)) == {"value": None}
    token = (await acme.client.list(v1.ListTasksRequest(context_id=context, page_size=1))).next_page_token
    query = v1.ListTasksRequest(context_id=context, page_size=1, page_token=token, tenant="globex")
    await cell.refuses(InvalidParamsError, "ListTasks", query, "pageToken")


@TENANTS
@pytest.mark.requirement("TENANT-06")
async def test_an_unknown_tenant_is_like_something_that_is_not_there(cell: Cell) -> None:
    task = await cell.task()
    await cell.refuses(TaskNotFoundError, "GetTask", v1.GetTaskRequest(id=task.id, tenant="initech"))
    await cell.refuses(TaskNotFoundError, "SendMessage", said(tenant="initech", task_id=task.id))
    await cell.refuses(NotFoundError, "SendMessage", said(tenant="initech"))
    await cell.refuses(NotFoundError, "ListTasks", v1.ListTasksRequest(tenant="initech"))


@pytest.mark.versions("1.0")
@pytest.mark.wires("rest")
@pytest.mark.requirement("TENANT-03", "REST-16", "I-11")
async def test_a_tenant_may_be_in_path_body_or_query_if_they_agree(cell: Cell) -> None:
    task = await (await tenant(cell, "acme")).task()
    for path in (f"/acme/tasks/{task.id}", f"/tasks/{task.id}?tenant=acme", f"/acme/tasks/{task.id}?tenant=acme"):
        status, body, _ = await cell.fetch("GET", path)
        assert (status, body["id"]) == (200, task.id)
    status, body, _ = await cell.fetch("GET", f"/acme/tasks/{task.id}?tenant=globex")
    assert (status, body["error"]["details"][1]["fieldViolations"][0]["field"]) == (400, "tenant")
    headers = {"content-type": "application/json", "a2a-version": "1.0"}
    status, _, _ = await cell.fetch("POST", f"/acme/tasks/{task.id}:cancel", headers, b'{"tenant": "globex"}')
    assert status == 400
    status, body, _ = await cell.fetch("POST", f"/tasks/{task.id}:cancel", headers, b'{"tenant": "acme"}')
    assert body["error"]["details"][0]["reason"] == "TASK_NOT_CANCELABLE"


@pytest.mark.versions("1.0")
@pytest.mark.wires("rest")
@pytest.mark.requirement("TENANT-09", "REST-05", "REST-06", "REST-10")
async def test_words_of_the_protocol_win_over_tenants_and_escapes_are_read_once(cell: Cell) -> None:
    task = await (await tenant(cell, "acme")).task()
    for path in (f"/%61cme/tasks/{task.id}", f"/acme/tasks/%{ord(task.id[0]):x}{task.id[1:]}"):
        status, body, _ = await cell.fetch("GET", path, {"content-type": "text/plain"}, b"not read")
        assert (status, body["id"]) == (200, task.id)
    for path in ("/tasks/extendedAgentCard", "/tasks/tasks", f"/%2561cme/tasks/{task.id}"):
        status, body, _ = await cell.fetch("GET", path)
        assert (status, body["error"]["details"][0]["reason"]) == (404, "TASK_NOT_FOUND")


# -- several agents


async def talker(cell: Cell) -> Cell:
    """The second agent of the server, found by its own card."""
    site = Site(cell.site.server, cell.site.http, cell.site.channel, cell.site._stack)
    client = await site.client(cell.binding, cell.version, path="/talker")
    return Cell(cell.binding, cell.version, cell.store, site, client)


@SEVERAL
@pytest.mark.needs("several agents")
@pytest.mark.requirement("BL-52", "TENANT-08", "CARD-20", "CARD-26")
async def test_each_of_several_agents_is_reached_by_its_own_card(cell: Cell) -> None:
    other = await talker(cell)
    assert (await other.client.send(said("reply I talk"))).message.parts[0].text == "I talk"
    assert (await cell.task("reply I work")).status.message.parts[0].text == "I work"


@SEVERAL
@pytest.mark.needs("several agents")
@pytest.mark.requirement("BL-52", "TENANT-05", "ERR-07")
async def test_several_agents_share_no_task_and_no_context(cell: Cell) -> None:
    other, context = await talker(cell), fresh("ctx")
    first, second = await cell.task("ask", context_id=context), await other.task("ask", context_id=context)
    for own, strange in ((cell, second), (other, first)):
        with pytest.raises(TaskNotFoundError):
            await own.client.get(strange.id)
        with pytest.raises(TaskNotFoundError):
            await own.client.cancel(strange.id)
        assert strange.id not in data(await own.task("around", context_id=context))["tasks"]
    done = await other.task("blue", task_id=second.id)
    assert spoken(done)[-1] == "blue"


@SEVERAL
@TENANTS
@pytest.mark.requirement("BL-52", "TENANT-06")
async def test_an_agent_that_is_not_there_is_like_an_unknown_tenant(cell: Cell) -> None:
    await cell.refuses(TaskNotFoundError, "GetTask", v1.GetTaskRequest(id=fresh("task"), tenant="nobody"))
    for operation in ("SendMessage", "SendStreamingMessage"):
        await cell.refuses(TaskNotFoundError, operation, said(task_id=fresh("task"), tenant="nobody"))
        await cell.refuses(NotFoundError, operation, said(tenant="nobody"))


@pytest.mark.parametrize("name", ["scenes", "talker"])
@pytest.mark.requirement("BL-52", "CARD-20", "CARD-04", "L-13")
async def test_an_agents_cards_list_its_own_addresses(sites: Sites, name: str) -> None:
    site = await sites.site("memory", "scenes talker")
    base = site.server.http_url
    found = {}
    for path in (f"/{name}/.well-known", f"/api/a2a/{name}/.well-known", f"/api/.well-known/{name}"):
        async with site.http.get(f"{base}{path}/agent-card.json", headers={"a2a-version": "1.0"}) as reply:
            found[path] = [
                (entry["protocolBinding"], entry["protocolVersion"], entry["url"], entry.get("tenant", ""))
                for entry in (await reply.json())["supportedInterfaces"]
            ]
    direct, below, alias = found.values()
    assert alias == below
    own = "" if name == "scenes" else name  # the first is who is meant without a tenant
    assert ("GRPC", "1.0", site.server.grpc_address, own) in direct
    for prefix, entries in ((f"/{name}", direct), (f"/api/a2a/{name}", below)):
        urls = {url for binding, _, url, _ in entries if binding != BINDINGS["grpc"]}
        assert urls == {f"{base}{prefix}", f"{base}{prefix}/"}
        assert not [entry for entry in entries if entry[1] == "0.3" and entry[3]]
