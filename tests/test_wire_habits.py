"""What deployed clients send and accept, byte for byte as it was recorded, against a whole server.

Laws: requests are made by hand, never by this project's own client; headers are those of the client and no others.
Each client is a row; what its user needs to see is asserted, not everything that is in an answer.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

import aiohttp
import grpc.aio
import pytest
from a2a_stubs import descriptors, google, v03, v03_grpc, v1, v1_grpc
from google.protobuf import json_format
from google.protobuf.message import Message
from grpc_reflection.v1alpha import reflection_pb2

from a2a_grpc.agent import Agent
from a2a_grpc.bindings import sse
from a2a_grpc.testing import serve, until
from tests.habits import (
    CARD,
    CARD_READERS,
    EVENT,
    FILE,
    GRPC,
    HOOK,
    HTTPX,
    JSON,
    KEY,
    METHODS,
    NEW_MESSAGE,
    NODE,
    OLD_MESSAGE,
    PYTHON1,
    PYTHON3,
    REST,
    RPC,
    STREAM,
    STYLES,
    TYPE,
    Headers,
    Metadata,
    Rest,
    Rpc,
    Said,
    Site,
    accepts,
    keyed,
    served,
)
from tests.receivers import receiver


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with served() as made:
        yield made


# -- JSON-RPC, client by client


every_rpc_client = pytest.mark.parametrize("client", RPC.values(), ids=RPC)


async def call(
    site: Site, client: Rpc, action: str, params: Any = None, *, stream: bool = False, more: Headers = ()
) -> Said:
    """One call as the client makes it; no `params` where it sends none."""
    request = {"jsonrpc": "2.0", "id": client.ident, "method": METHODS[action][not client.new]}
    request |= {} if params is None else {"params": params}
    return await site.ask("POST", client.path, [*client.lines(stream), *more], request)


def result(said: Said, client: Rpc) -> Any:
    """The result of a success, with the checks that clients make."""
    answer = said.json
    assert (said.status, said.headers["content-type"]) == (200, JSON)
    assert (answer["jsonrpc"], set(answer)) == ("2.0", {"jsonrpc", "id", "result"}), answer
    assert (answer["id"], type(answer["id"])) == (client.ident, type(client.ident))
    return answer["result"]


@every_rpc_client
@pytest.mark.requirement("RPC-07", "RPC-08", "V03-04", "V03-16", "V03-17", "I-09")
async def test_each_client_sends_a_message_and_finds_its_task_again_and_cancels(site: Site, client: Rpc) -> None:
    params: dict[str, Any] = {"message": client.message("hi")}
    for more in ({}, {"configuration": {}}):
        params["message"]["messageId"] += "x"
        told = result(await call(site, client, "send", {**params, **more}), client)
        task = told["task"] if client.new else told
        assert task["status"]["state"] == ("TASK_STATE_COMPLETED" if client.new else "completed")
        assert client.new or task["kind"] == "task"
    found = result(await call(site, client, "get", {"id": task["id"], "historyLength": 0}), client)
    assert found["id"] == task["id"] and not found.get("history")
    waiting = {"id": await site.task("ask")}
    state = result(await call(site, client, "cancel", waiting), client)["status"]["state"]
    assert state == ("TASK_STATE_CANCELED" if client.new else "canceled")


@every_rpc_client
@pytest.mark.requirement("I-37", "V03-18", "RPC-12", "V03-08")
async def test_each_client_is_told_of_an_unknown_task_with_status_200(site: Site, client: Rpc) -> None:
    said = await call(site, client, "get", {"id": "nothing"})
    answer = said.json
    assert (said.status, answer["id"], answer["error"]["code"]) == (200, client.ident, -32001)
    assert "result" not in answer and answer["error"]["message"] == "Task not found"


@every_rpc_client
@pytest.mark.requirement("SSE-01", "RPC-07", "V03-05", "V03-06", "BL-37", "SSE-02")
async def test_each_client_reads_a_stream_to_its_end(site: Site, client: Rpc) -> None:
    events = (await call(site, client, "stream", {"message": client.message("hi")}, stream=True)).events
    assert all((set(one), one["id"]) == ({"jsonrpc", "id", "result"}, client.ident) for one in events)
    last = events[-1]["result"]
    status = last["statusUpdate"]["status"] if client.new else last["status"]
    assert status["state"] == ("TASK_STATE_COMPLETED" if client.new else "completed")
    assert client.new or (last["kind"], last["final"]) == ("status-update", True)


@every_rpc_client
@pytest.mark.requirement("BL-20", "V03-29", "OP-STREAM-07")
async def test_each_client_can_read_why_its_stream_was_refused(site: Site, client: Rpc) -> None:
    said = await call(site, client, "subscribe", {"id": "nothing"}, stream=True)
    answers = [said.json] if client.new else said.events
    assert said.status == 200 and (said.headers["content-type"] == JSON) == client.new
    assert [(one["id"], one["error"]["code"]) for one in answers] == [(client.ident, -32001)]


@every_rpc_client
@pytest.mark.requirement("I-18", "V03-12", "RPC-15")
async def test_each_client_gets_a_result_for_a_delete(site: Site, client: Rpc) -> None:
    task, hook = await site.task("ask"), {"id": "p", "url": "https://93.184.216.34/h"}
    nested = {"taskId": task, "pushNotificationConfig": hook}
    assert result(await call(site, client, "set", {"taskId": task, **hook} if client.new else nested), client)
    named = {"taskId": task, "id": "p"} if client.new else {"id": task, "pushNotificationConfigId": "p"}
    assert result(await call(site, client, "delete", named), client) == ({} if client.new else None)


@every_rpc_client
@pytest.mark.requirement("V03-13", "CARD-22", "RPC-09")
async def test_each_client_gets_the_extended_card_with_empty_params_and_without(tmp_path: Path, client: Rpc) -> None:
    async with keyed(tmp_path) as site:
        for params in ({}, None):
            said = await call(site, client, "card", params, more=KEY)
            assert result(said, client)["name"] == "Echo for you"


@pytest.mark.parametrize("path", ["", "/", "/a2a/jsonrpc", "/a2a/jsonrpc/"])
@pytest.mark.parametrize(
    ("version", "method"), [((), "tasks/get"), ((("A2A-Version", "1.0.7"),), "GetTask"), ((), "GetTask")]
)
@pytest.mark.requirement("I-09", "VER-05", "RPC-18")
async def test_last_slashes_patch_parts_and_missing_versions_are_no_hindrance(
    site: Site, path: str, version: Headers, method: str
) -> None:
    task = await site.task()
    body = {"jsonrpc": "2.0", "id": None, "method": method, "params": {"id": task}}
    for target in (path, path + "?A2A-Version=" + ("0.3" if "/" in method else "1.0")):
        answer = (await site.ask("POST", target, [*version, ("Content-Type", JSON)], body)).json
        assert (answer["id"], answer["result"]["id"]) == (None, task)


@pytest.mark.requirement("DATA-07", "OP-STREAM-03")
async def test_google_adk_marks_its_parts_and_streams(site: Site) -> None:
    adk = RPC["google-adk"]
    message = adk.message("hi")
    message["parts"][0]["metadata"] = {"is_user_input": True}
    events = (await call(site, adk, "stream", {"message": message}, stream=True)).events
    assert events[0]["result"]["task"]["history"][0]["parts"][0]["metadata"] == {"is_user_input": True}


# -- REST, client by client


every_rest_client = pytest.mark.parametrize("client", REST.values(), ids=REST)


def of(task: str, body: Any) -> Any:
    return None if body is None else json.loads(json.dumps(body).replace("ID", task))


def strict(kind: type[Message], said: Said) -> Any:
    """The message in an answer; one member that the proto lacks fails it, as it fails the call of a v0.3 client."""
    assert said.status == 200, said
    return json_format.ParseDict(said.json, kind(), descriptor_pool=descriptors.pool)


@every_rest_client
@pytest.mark.requirement("REST-01", "V03-20", "V03-21", "V03-22", "I-42", "I-03", "REST-15")
async def test_each_rest_client_sends_gets_and_cancels(site: Site, client: Rest) -> None:
    types = (v03.SendMessageResponse, v03.Task) if client.root else (v1.SendMessageResponse, v1.Task)
    sent = await site.ask("POST", f"{client.root}/message:send", client.post, {client.field: client.message})
    done = strict(types[0], sent).task
    assert v1.TaskState.Name(done.status.state) == "TASK_STATE_COMPLETED"
    asked = f"{client.root}/tasks/{done.id}"
    for path in (asked, f"{asked}/", f"{asked}?historyLength=1", asked.replace("-", "%2D")):
        assert strict(types[1], await site.ask("GET", path, client.get)).id == done.id
    waiting = await site.task("ask")
    canceled = await site.ask("POST", f"{client.root}/tasks/{waiting}:cancel", client.post, of(waiting, client.cancel))
    assert strict(types[1], canceled).id == waiting
    assert canceled.json["status"]["state"] == f"TASK_STATE_CANCEL{'L' if client.root else ''}ED"


@every_rest_client
@pytest.mark.requirement("V03-21", "SSE-01", "SSE-02", "REST-09")
async def test_each_rest_client_reads_a_stream_to_its_end(site: Site, client: Rest) -> None:
    lines = [(name, STREAM if name == "Accept" else text) for name, text in client.post]
    said = await site.ask("POST", f"{client.root}/message:stream", lines, {client.field: client.message})
    shape, pool = v03.StreamResponse if client.root else v1.StreamResponse, descriptors.pool
    events = [json_format.ParseDict(event, shape(), descriptor_pool=pool) for event in said.events]
    assert events[0].task.id == events[-1].status_update.task_id != ""
    assert events[-1].status_update.status.state == v1.TASK_STATE_COMPLETED
    assert not client.root or events[-1].status_update.final


@every_rest_client
@pytest.mark.requirement("I-01", "V03-23", "BL-18", "SUB-02")
async def test_each_rest_client_subscribes_with_its_verb(site: Site, client: Rest) -> None:
    task = await site.task("hold", returnImmediately=True)
    target = f"{client.root}/tasks/{task}:subscribe"
    # What one client falls back to after a 405 must do as well, and a2aops posts a JSON body.
    other = "GET" if client.verb == "POST" else "POST"
    asked = [(client.verb, client.get, None), (other, client.get, None), ("POST", client.post, {})]
    readers = asyncio.gather(*(site.ask(verb, target, lines, body) for verb, lines, body in asked))
    await until(lambda: len(site.server.streams) == len(asked))
    site.gate.set()
    for reader in await readers:
        first, *_, last = reader.events
        assert first["task"]["id"] == last["statusUpdate"]["taskId"] == task
        assert last["statusUpdate"]["status"]["state"] == "TASK_STATE_COMPLETED"


@every_rest_client
@pytest.mark.requirement("I-44", "I-14", "V03-20", "V03-21")
async def test_each_rest_client_keeps_reads_and_deletes_its_webhook(site: Site, client: Rest) -> None:
    task = await site.task("ask")
    place = f"{client.root}/tasks/{task}/pushNotificationConfigs"
    made = await site.ask("POST", place, client.post, of(task, client.push))
    read = await site.ask("GET", f"{place}/p", client.get)
    kind = v03.TaskPushNotificationConfig if client.root else v1.TaskPushNotificationConfig
    for said in (made, read):
        config = strict(kind, said)
        assert (config.push_notification_config if client.root else config).url == HOOK["url"]
    gone = await site.ask("DELETE", f"{place}/p", client.get)
    assert (gone.status // 100, gone.body) == (2, b"{}")
    assert (await site.ask("GET", f"{place}/p", client.get)).status == 404


@every_rest_client
@pytest.mark.requirement("I-47", "V03-25", "I-04", "BL-20")
async def test_each_rest_client_can_tell_the_error_by_its_type(site: Site, client: Rest) -> None:
    for verb, path in (("GET", "/tasks/nothing"), (client.verb, "/tasks/nothing:subscribe")):
        said = await site.ask(verb, client.root + path, client.get)
        assert said.status == 404 and said.headers["content-type"].endswith("json")
        assert said.json["error"]["details"][0]["reason"] == "TASK_NOT_FOUND"
        if client.root:
            told = {name: said.json[name] for name in ("code", "type", "message")}
            assert told == {"code": -32001, "type": "TaskNotFoundError", "message": "Task not found"}


@pytest.mark.requirement("V03-13", "V03-32", "CARD-22")
async def test_python_reads_the_old_extended_card_over_rest_as_plain_v03_json(tmp_path: Path) -> None:
    async with keyed(tmp_path) as site:
        card = (await site.ask("GET", "/v1/card", [*PYTHON3, *KEY])).json
    assert (card["name"], card["protocolVersion"]) == ("Echo for you", "0.3.0")
    assert {"url", "preferredTransport", "skills", "capabilities"} <= set(card)


@pytest.mark.requirement("VER-11", "REST-04", "I-09")
async def test_a2aops_gets_a_task_without_a_version_and_odd_ids_are_only_unknown(site: Site) -> None:
    task = await site.task()
    assert (await site.ask("GET", f"/tasks/{task}")).json["id"] == task
    for ident in ("a%2Fb:c", "a%20b", "a+b", "a:b", "%E2%82%AC"):
        said = await site.ask("GET", f"/tasks/{ident}", PYTHON1)
        assert (said.status, said.json["error"]["details"][0]["reason"]) == (404, "TASK_NOT_FOUND")


@pytest.mark.parametrize(("agent", "shown"), [(HTTPX, b"AP8="), (NODE, FILE)])
@pytest.mark.requirement("L-09", "V03-21", "BL-50")
async def test_file_bytes_over_old_rest_fit_the_client(site: Site, agent: str, shown: bytes) -> None:
    task = await site.task("file")
    found = strict(v03.Task, await site.ask("GET", f"/v1/tasks/{task}", accepts("*/*", User_Agent=agent)))
    assert found.artifacts[0].parts[0].file.file_with_bytes == shown


@pytest.mark.requirement("V03-36", "I-33", "BL-33")
async def test_extensions_are_found_under_both_names(site: Site) -> None:
    uri = (await site.ask("GET", CARD)).json["capabilities"]["extensions"][0]["uri"]
    task = await site.task()
    for name, lines in (("A2A-Extensions", PYTHON1), ("X-A2A-Extensions", PYTHON3)):
        path = f"{'' if lines is PYTHON1 else '/v1'}/tasks/{task}"
        said = await site.ask("GET", path, [*lines, (name, uri)])
        assert uri in (said.headers.get("a2a-extensions", "") + said.headers.get("x-a2a-extensions", ""))


# -- the card


def place(base: str, client: str) -> str:
    """Where a client looks for the card of a base address."""
    return urljoin(base, CARD[1:]) if client == "js" else base.removesuffix("/") + CARD


@pytest.mark.parametrize("client", CARD_READERS)
@pytest.mark.requirement("I-10", "BL-46", "I-29", "I-49", "I-28", "V03-32", "V03-33")
async def test_each_client_finds_in_the_card_what_it_can_call(site: Site, client: str) -> None:
    lines, form = CARD_READERS[client]
    said = await site.ask("GET", place(site.base + "/", client), lines)
    card = said.json
    assert (said.status, said.headers["vary"]) == (200, "A2A-Version")
    assert all(skill["inputModes"] and skill["outputModes"] for skill in card["skills"])
    assert ("supportedInterfaces" in card) == (form != "0.3")
    assert ("url" in card, "preferredTransport" in card) == (form != "1.0",) * 2
    if form != "1.0":
        assert {"transport": "JSONRPC", "url": card["url"]} in card["additionalInterfaces"]
        assert (card["preferredTransport"], card["protocolVersion"]) == ("JSONRPC", "0.3.0")
    if form != "0.3":
        first, *_ = entries = card["supportedInterfaces"]
        assert (first["protocolBinding"], first["protocolVersion"]) == ("JSONRPC", "1.0")
        assert {entry["protocolVersion"] for entry in entries} == {"1.0", "0.3"}
        dialled = {entry["url"] for entry in entries if entry["protocolBinding"] == "GRPC"}
        assert dialled == {site.server.grpc_address}


@pytest.mark.requirement("BL-45", "CARD-01")
async def test_the_addresses_in_the_card_answer_as_they_stand_and_with_the_slashes_of_clients(site: Site) -> None:
    card, task = (await site.ask("GET", CARD)).json, await site.task()
    urls = {(one["protocolBinding"], one["protocolVersion"]): one["url"] for one in card["supportedInterfaces"]}
    body = {"jsonrpc": "2.0", "id": None, "method": "tasks/get", "params": {"id": task}}
    for url in (card["url"], urls["JSONRPC", "0.3"], card["supportedInterfaces"][0]["url"].rstrip("/") + "/"):
        assert (await site.ask("POST", url, [TYPE], body)).json["result"]["id"] == task
    for version, root in (("1.0", ""), ("0.3", "/v1")):
        path = f"{urls['HTTP+JSON', version].removesuffix('/')}{root}/tasks/{task}"
        assert (await site.ask("GET", path, [("A2A-Version", version)])).json["id"] == task


@pytest.mark.requirement("BL-52", "CARD-01")
async def test_a_base_with_a_last_slash_leads_every_client_to_the_agent_below_it() -> None:
    agents = {name: Agent(name=name, description="x", version="1", skills=[]) for name in ("one", "two")}
    for agent in agents.values():
        agent.handle(lambda task: "done")
    async with serve(agents) as server, aiohttp.ClientSession() as session:
        site = Site(server, session, asyncio.Event())
        for client in CARD_READERS:
            said = await site.ask("GET", place(f"{site.base}/two/", client))
            assert said.json["name"] == "two"


@pytest.mark.requirement("I-28", "BL-45")
async def test_google_adk_gets_a_card_of_one_origin_and_tools_an_absolute_grpc_address() -> None:
    async with served(grpc_url_style="absolute") as site:
        for lines in (accepts("*/*", A2A_Version="1.0"), ()):
            card = (await site.ask("GET", f"{CARD}?bindings=http", lines)).json
            urls = [entry["url"] for entry in card["supportedInterfaces"]]
            urls += [entry["url"] for entry in card.get("additionalInterfaces", ())]
            assert {urlsplit(url)[:2] for url in urls} == {urlsplit(site.base)[:2]}
        card = (await site.ask("GET", CARD)).json
        assert f"http://{site.server.grpc_address}" in [one["url"] for one in card["supportedInterfaces"]]


# -- gRPC, client by client

every_grpc_client = pytest.mark.parametrize(("new", "metadata"), GRPC.values(), ids=GRPC)


@asynccontextmanager
async def stub(site: Site, new: bool, scheme: str = "") -> AsyncIterator[Any]:
    async with grpc.aio.insecure_channel(scheme + site.server.grpc_address) as channel:
        yield (v1_grpc if new else v03_grpc).A2AServiceStub(channel)


def asked_get(new: bool, task: str) -> Any:
    return v1.GetTaskRequest(id=task) if new else v03.GetTaskRequest(name=f"tasks/{task}")


@every_grpc_client
@pytest.mark.requirement("V03-26", "BL-19", "I-09", "V03-22")
async def test_each_grpc_client_sends_and_streams_on_the_one_port(site: Site, new: bool, metadata: Metadata) -> None:
    shape, field, body = (v1, "message", NEW_MESSAGE) if new else (v03, "request", OLD_MESSAGE)
    request = json_format.ParseDict({field: body}, shape.SendMessageRequest(), descriptor_pool=descriptors.pool)
    async with stub(site, new) as service:
        assert (await service.SendMessage(request, metadata=metadata)).task.status.state == v1.TASK_STATE_COMPLETED
        events = [event async for event in service.SendStreamingMessage(request, metadata=metadata)]
    assert events[-1].status_update.status.state == v1.TASK_STATE_COMPLETED
    assert new or events[-1].status_update.final


@every_grpc_client
@pytest.mark.requirement("GRPC-07", "V03-18", "ERR-02")
async def test_each_grpc_client_can_tell_the_error(site: Site, new: bool, metadata: Metadata) -> None:
    waiting = await site.task()
    cancel = v1.CancelTaskRequest(id=waiting) if new else v03.CancelTaskRequest(name=f"tasks/{waiting}")
    async with stub(site, new) as service:
        for method, request, code, name, reason in (
            (service.GetTask, asked_get(new, "x"), "NOT_FOUND", "TaskNotFoundError", "TASK_NOT_FOUND"),
            (service.CancelTask, cancel, "FAILED_PRECONDITION", "TaskNotCancelableError", "TASK_NOT_CANCELABLE"),
        ):
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await method(request, metadata=metadata)
            fault = caught.value
            assert (fault.code().name, fault.details().startswith(f"{name}: ")) == (code, not new)
            status = google.Status.FromString(dict(fault.trailing_metadata())["grpc-status-details-bin"])
            info = google.ErrorInfo.FromString(status.details[0].value)
            assert (info.reason, info.domain) == (reason, "a2a-protocol.org")


@pytest.mark.parametrize("scheme", ["", "dns:", "dns:///", "ipv4:"])
@pytest.mark.requirement("L-09", "I-28", "V03-26")
async def test_old_python_reads_and_writes_file_bytes_as_base64_text(site: Site, scheme: str) -> None:
    async with stub(site, False, scheme) as service:
        found = await service.GetTask(asked_get(False, await site.task("file")))
        assert found.artifacts[0].parts[0].file.file_with_bytes == b"AP8="
        for message, data in (("m1", b"AP8="), ("m2", FILE)):
            request = v03.SendMessageRequest(request=v03.Message(message_id=message, role="ROLE_USER"))
            request.request.content.add(file=v03.FilePart(file_with_bytes=data, mime_type="text/plain"))
            task = (await service.SendMessage(request)).task.id
            kept = await site.ask("GET", f"/tasks/{task}", [("A2A-Version", "1.0")])
            assert kept.json["history"][0]["parts"][0]["raw"] == "AP8="


@pytest.mark.parametrize("version", ["v1", "v1alpha"])
@pytest.mark.requirement("BL-40", "GRPC-16")
async def test_grpcurl_and_buf_describe_a_method_of_either_service_with_their_headers(site: Site, version: str) -> None:
    shape = reflection_pb2.ServerReflectionRequest, reflection_pb2.ServerReflectionResponse
    async with grpc.aio.insecure_channel(site.server.grpc_address) as channel:
        describe = channel.stream_stream(
            f"/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo",
            request_serializer=shape[0].SerializeToString,
            response_deserializer=shape[1].FromString,
        )
        names = ("lf.a2a.v1.A2AService.SendMessage", "a2a.v1.A2AService.SendMessage")
        asked = [shape[0](file_containing_symbol=name) for name in names]
        answers = [one async for one in describe(iter(asked), metadata=(("a2a-version", "1.0"), ("x-mine", "y")))]
    assert [bool(one.file_descriptor_response.file_descriptor_proto) for one in answers] == [True, True]


# -- event streams and webhooks


@pytest.mark.parametrize("client", ["js 1.3.0", "mastra client"])
@pytest.mark.requirement("SSE-04", "BL-36", "SSE-01")
async def test_a_silent_stream_has_comment_lines_that_no_client_takes_for_an_event(client: str) -> None:
    speaker, got = RPC[client], b""
    body = {"jsonrpc": "2.0", "id": 1, "method": METHODS["stream"][not speaker.new]}
    body["params"] = {"message": speaker.message("hold")}
    async with (
        served(heartbeat=0.05) as site,
        site.session.post(site.base, headers=speaker.lines(stream=True), json=body) as reply,
    ):
        async for chunk in reply.content.iter_any():
            got += chunk
            if got.count(b"\n:") >= 2:
                site.gate.set()
    blocks = got.split(b"\n\n")
    assert blocks.pop() == b"" and any(block.startswith(b":\n:\n") for block in blocks)
    assert all(block.splitlines()[-1].startswith(b"data: {") for block in blocks), got


@pytest.mark.parametrize("style", STYLES.values(), ids=STYLES)
@pytest.mark.parametrize("step", [1, 3, 1000])
@pytest.mark.requirement("SSE-01", "SSE-02")
def test_our_client_reads_every_style_of_event_stream(style: bytes, step: int) -> None:
    raw, parser = style % (EVENT, EVENT), sse.Parser()
    found = [event for at in range(0, len(raw), step) for event in parser.feed(raw[at : at + step])]
    assert [event.data for event in found] == [EVENT, EVENT]


@pytest.mark.requirement("PUSH-29", "V03-37", "I-50")
async def test_a_webhook_hears_in_the_version_that_registered_it(site: Site) -> None:
    async with receiver() as there:
        task = await site.task("hold", returnImmediately=True)
        for root, version, body in (
            ("", "1.0", {"taskId": task, "id": "new", "url": f"{there.url}/new"}),
            ("/v1", "0.3", {"pushNotificationConfig": {"id": "old", "url": f"{there.url}/old"}}),
        ):
            lines = [("A2A-Version", version), TYPE]
            made = await site.ask("POST", f"{root}/tasks/{task}/pushNotificationConfigs", lines, body)
            assert made.status == 200, made
        site.gate.set()
        last = {"/new": b"_COMPLETED", "/old": b'"completed"'}
        await there.until(lambda: all(any(text in got.body for got in there.at(path)) for path, text in last.items()))
    assert all(len(got.json) == 1 and "kind" not in got.json for got in there.at("/new"))
    assert {got.json["kind"] for got in there.at("/old")} == {"task"}
