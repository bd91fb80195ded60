"""The client: discovery, the choice of an interface, every operation on every wire, and the errors of peers."""

import asyncio
import json
import socket
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

import aiohttp
import grpc
import grpc.aio
import pytest
from a2a_stubs import v1
from aiohttp import web

from a2a_grpc import errors
from a2a_grpc.agent import Agent, Skill, TaskHandle
from a2a_grpc.bindings.grpc import GrpcBinding
from a2a_grpc.bindings.streams import Streams
from a2a_grpc.client import Client
from a2a_grpc.client_wires import JsonRpcWire
from a2a_grpc.config import Options
from a2a_grpc.server import Server
from tests.fakes import FakeService
from tests.peers import card_of, entry, peer

WIRES = [("JSONRPC", "1.0"), ("HTTP+JSON", "1.0"), ("GRPC", "1.0"), ("JSONRPC", "0.3"), ("GRPC", "0.3")]
PATIENCE = 60.0


def asking(text: str, **members: Any) -> v1.SendMessageRequest:
    message = v1.Message(message_id=f"m-{text}", role="ROLE_USER", parts=[v1.Part(text=text)], **members)
    return v1.SendMessageRequest(message=message)


def make_agent() -> Agent:
    agent = Agent(
        name="Echo",
        description="Says what it is told.",
        version="1",
        skills=[Skill(id="echo", name="Echo", tags=["echo"])],
    )

    @agent.handle
    async def echo(task: TaskHandle) -> None:
        if task.text == "ask":
            await task.ask("What?")
            return
        await task.working("Listening...")
        if task.text == "hold":
            await asyncio.sleep(PATIENCE)
        async with task.artifact(name="answer") as out:
            for word in task.text.split():
                await out.write(word)
        await task.complete()

    return agent


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    options = Options(grpc="127.0.0.1:0", http="127.0.0.1:0", store="memory:", push_notifications=True, grace=0.1)
    async with Server(make_agent(), options) as running:
        yield running


# -- every operation on every wire


async def test_a_card_is_judged_before_it_is_believed(server: Server) -> None:
    seen: list[tuple[str, str]] = []

    async def verify(document: Any, url: str) -> v1.AgentCard | None:
        seen.append((document["name"], url))
        return v1.AgentCard(name="Trusted", supported_interfaces=[entry])

    async def refuse(document: Any, url: str) -> None:
        raise errors.InvalidAgentResponseError("not signed")

    entry = v1.AgentInterface(url=server.http_url, protocol_binding="HTTP+JSON", protocol_version="1.0")
    async with Client(server.http_url, verify=verify) as client:
        assert client.card is not None and client.card.name == "Trusted"
        assert client.interface == entry
    assert seen == [("Echo", server.http_url + "/.well-known/agent-card.json")]
    with pytest.raises(errors.InvalidAgentResponseError, match="not signed"):
        await Client.connect(server.http_url, verify=refuse)


@pytest.mark.requirement("CARD-07", "VER-01", "VER-08", "EQ-02")
@pytest.mark.parametrize(("binding", "version"), WIRES)
async def test_an_agent_is_called_alike_on_every_wire(server: Server, binding: str, version: str) -> None:
    async with Client(server.http_url, binding=binding, version=version, timeout=PATIENCE) as client:
        assert client.card is not None and client.card.name == "Echo"
        assert (client.interface.protocol_binding, client.interface.protocol_version) == (binding, version)
        answer = await client.send(asking("to be or not"))
        assert answer.task.status.state == v1.TASK_STATE_COMPLETED
        assert "".join(part.text for part in answer.task.artifacts[0].parts) == "tobeornot"
        assert (await client.get(answer.task.id, history_length=1)).id == answer.task.id
        kinds = [event.WhichOneof("payload") async for event in client.stream(asking("one two"))]
        assert kinds[0] == "task" and kinds[-1] == "status_update" and "artifact_update" in kinds


@pytest.mark.requirement("ERR-15", "EQ-03")
@pytest.mark.parametrize(("binding", "version"), WIRES)
async def test_errors_are_the_same_classes_on_every_wire(server: Server, binding: str, version: str) -> None:
    async with Client(server.http_url, binding=binding, version=version, timeout=PATIENCE) as client:
        with pytest.raises(errors.TaskNotFoundError):
            await client.get("nowhere")
        done = (await client.send(asking("done"))).task
        with pytest.raises(errors.TaskNotCancelableError):
            await client.cancel(done.id)
        with pytest.raises(errors.TaskNotFoundError):
            await anext(client.subscribe("nowhere"))
        with pytest.raises(errors.InvalidParamsError):
            await client.send(v1.SendMessageRequest(message=v1.Message(message_id="x", role="ROLE_USER")))


@pytest.mark.requirement("EQ-03", "SEC-05")
@pytest.mark.parametrize(("binding", "version"), WIRES)
async def test_a_header_that_not_every_wire_can_carry_is_named(server: Server, binding: str, version: str) -> None:
    settings: Any = {"binding": binding, "version": version, "timeout": PATIENCE}
    odd: list[tuple[str, Any]] = [("X-Name", "Zo\xeb"), ("x-name", "Zo\r\ny: e"), ("x-name", 7), ("x name", "Zo")]
    async with Client(server.http_url, **settings) as client:
        with pytest.raises(errors.TaskNotFoundError):
            await client.get("nowhere", headers={"X-Name": "Zoe", "x-trace-bin": "AAEC"})
        for name, value in odd:
            headers = {name: value}
            for call in (client.get("t", headers=headers), anext(client.stream(asking("hi"), headers=headers))):
                with pytest.raises(ValueError, match=r"x.name") as caught:
                    await call
                assert "Zo" not in str(caught.value)
        with pytest.raises(ValueError, match="a2a-extensions"):
            await client.get("t", extensions=["urn:\xfc"])
    ways: list[dict[str, Any]] = [{"headers": dict(odd[:1])}, {"auth": "Zo\xeb"}, {"auth": lambda: "Zo\xeb"}]
    for told in ways:
        with pytest.raises(ValueError, match=r"x-name|authorization") as caught:
            await Client.connect(server.http_url, **settings, **told)
        assert "Zo" not in str(caught.value)


@pytest.mark.parametrize(("binding", "version"), WIRES)
async def test_a_question_is_canceled_and_a_running_task_is_followed(
    server: Server, binding: str, version: str
) -> None:
    async with Client(server.http_url, binding=binding, version=version, timeout=PATIENCE) as client:
        question = (await client.send(asking("ask"))).task
        assert question.status.state == v1.TASK_STATE_INPUT_REQUIRED
        followed = client.subscribe(question.id)
        assert (await anext(followed)).task.id == question.id
        assert (await client.cancel(question.id)).status.state == v1.TASK_STATE_CANCELED
        states = [event.status_update.status.state async for event in followed]
        assert states[-1] == v1.TASK_STATE_CANCELED


@pytest.mark.parametrize("binding", ["JSONRPC", "HTTP+JSON", "GRPC"])
async def test_tasks_are_listed_and_webhooks_kept(server: Server, binding: str) -> None:
    async with Client(server.http_url, binding=binding, timeout=PATIENCE) as client:
        task = (await client.send(asking("ask"))).task
        listed = await client.list(v1.ListTasksRequest(context_id=task.context_id, page_size=5))
        assert [found.id for found in listed.tasks] == [task.id]
        config = v1.TaskPushNotificationConfig(task_id=task.id, url="https://example.org/hook")
        made = await client.create_push_config(config)
        assert (await client.get_push_config(task.id, made.id)).url == config.url
        assert [found.id for found in (await client.list_push_configs(task.id)).configs] == [made.id]
        await client.delete_push_config(task.id, made.id)
        assert not (await client.list_push_configs(task.id)).configs
        with pytest.raises(errors.UnsupportedOperationError):
            await client.extended_card()


async def test_a_stream_goes_on_after_the_last_event_that_was_seen(server: Server) -> None:
    async with Client(server.http_url, timeout=PATIENCE) as client:
        events = client.stream(asking("hold"))
        task_id = (await anext(events)).task.id
        await anext(events)
        seen = events.last_event_id
        assert seen
        await events.aclose()
        again = client.subscribe(task_id, last_event_id=seen)
        await client.cancel(task_id)
        rest = [event.status_update.status.state async for event in again]
        assert rest == [v1.TASK_STATE_CANCELED]


@pytest.mark.requirement("CARD-09")
async def test_grpc_is_dialled_without_a_card(server: Server) -> None:
    async with Client(f"grpc://{server.grpc_address}", timeout=PATIENCE) as client:
        assert client.card is None
        assert (await client.send(asking("hi"))).task.status.state == v1.TASK_STATE_COMPLETED


async def test_a_silent_agent_is_given_up_after_the_time_asked_for(server: Server) -> None:
    for binding in ("JSONRPC", "HTTP+JSON", "GRPC"):
        async with Client(server.http_url, binding=binding, timeout=0.3) as client:
            with pytest.raises(TimeoutError):
                await client.send(asking("hold"))


class Recorder:
    """A wire that answers by itself and keeps what it was given."""

    def __init__(self) -> None:
        self.given: list[tuple[str, Any, dict[str, str]]] = []

    async def unary(self, operation: str, request: Any, headers: Any) -> Any:
        self.given.append((operation, request, dict(headers)))
        return v1.Task(id="t")

    async def stream(self, operation: str, request: Any, headers: Any) -> AsyncGenerator[Any, None]:
        self.given.append((operation, request, dict(headers)))
        yield "7", v1.StreamResponse(task=v1.Task(id="t"))


@pytest.mark.requirement("TENANT-01", "VER-01")
async def test_a_wire_of_ones_own_gets_what_any_other_gets() -> None:
    carrier, interface = Recorder(), v1.AgentInterface(url="x:", protocol_version="1.0", tenant="blue")
    async with Client.over(carrier, interface, extensions=["urn:a"], retries=None) as client:
        request = v1.GetTaskRequest(id="t")
        assert (await client.call("GetTask", request)).id == "t"
        events = client.subscribe("t", last_event_id="3")
        assert [event.task.id async for event in events] == ["t"] and events.last_event_id == "7"
    assert not request.tenant, "the caller's own message stays as it was"
    headers = {"a2a-version": "1.0", "a2a-extensions": "urn:a"}
    assert carrier.given == [
        ("GetTask", v1.GetTaskRequest(id="t", tenant="blue"), headers),
        ("SubscribeToTask", v1.SubscribeToTaskRequest(id="t", tenant="blue"), headers | {"last-event-id": "3"}),
    ]
    with pytest.raises(RuntimeError, match="not connected"):
        await client.get("t")


# -- peers that are not ours


async def unwanted(request: web.Request) -> web.StreamResponse:
    raise AssertionError(f"nobody should ask for {request.path}")


@pytest.mark.requirement("TENANT-01", "VER-01", "EXT-02", "AUTH-02", "RPC-16")
async def test_each_request_says_version_tenant_extensions_and_credentials() -> None:
    seen: list[Any] = []

    async def handler(request: web.Request) -> web.StreamResponse:
        body = await request.json()
        seen.append((request.path, request.headers, body))
        return web.json_response({"jsonrpc": "2.0", "id": body["id"], "result": {"id": "t", "status": {}}})

    card = card_of(entry("JSONRPC", tenant="blue"))
    async with (
        peer(card, handler) as url,
        Client(url, headers={"Authorization": "Bearer x"}, extensions=["urn:a", "urn:b"]) as client,
    ):
        assert (await client.get("t")).id == "t"
    path, headers, body = seen[0]
    assert path == "/rpc" and body["method"] == "GetTask"
    assert body["params"] == {"id": "t", "tenant": "blue"}
    assert headers["A2A-Version"] == "1.0" and headers["Authorization"] == "Bearer x"
    assert headers["A2A-Extensions"] == "urn:a, urn:b"


@pytest.mark.requirement("I-10", "I-29", "BL-46")
async def test_an_old_card_is_understood_and_its_agent_called_the_old_way() -> None:
    seen: list[Any] = []

    async def handler(request: web.Request) -> web.StreamResponse:
        body = await request.json()
        seen.append((request.headers["A2A-Version"], body["method"]))
        task = {"kind": "task", "id": "t", "contextId": "c", "status": {"state": "completed"}}
        return web.json_response({"jsonrpc": "2.0", "id": body["id"], "result": task})

    card = card_of()
    del card["supportedInterfaces"]
    card |= {"url": "URL/old", "protocolVersion": "0.3.0", "preferredTransport": "JSONRPC"}
    async with peer(card, handler) as url:
        async with Client(url, version=None) as client:
            assert (await client.get("t")).status.state == v1.TASK_STATE_COMPLETED
        with pytest.raises(errors.VersionNotSupportedError, match=r"JSONRPC 0\.3"):
            await Client.connect(url)
    assert seen == [("0.3", "tasks/get")]


@pytest.mark.requirement("CARD-08")
async def test_an_interface_that_cannot_be_reached_is_given_up_for_the_next() -> None:
    async def handler(request: web.Request) -> web.StreamResponse:
        return web.json_response({"id": "t", "status": {}})

    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        dead = f"127.0.0.1:{unused.getsockname()[1]}"
        odd = [entry("JSONRPC", url) for url in ("http://127.0.0.1:99999", "http://[bad", "/rpc", "")]
        nowhere = entry("JSONRPC", f"http://{dead}"), *odd
        entries = entry("GRPC", dead), *nowhere, entry("HTTP+JSON", "URL/rest/")
        async with peer(card_of(*entries), handler) as url:
            async with Client(url, timeout=PATIENCE) as client:
                assert (await client.get("t")).id == "t"
                assert client.interface.protocol_binding == "HTTP+JSON"
            async with Client(url, binding="JSONRPC", timeout=PATIENCE) as client:
                with pytest.raises(errors.UnavailableError, match="cannot connect"):
                    await client.get("t")
                with pytest.raises(errors.UnavailableError, match="cannot connect"):
                    await anext(client.subscribe("t"))
            async with Client(url, timeout=PATIENCE) as client:
                found = await asyncio.gather(*(client.get("t") for _ in range(5)))
                assert {task.id for task in found} == {"t"}


@pytest.mark.requirement("CARD-08")
async def test_a_connection_that_never_comes_about_has_sent_nothing() -> None:
    class Silent:
        def request(self, *_: Any, **__: Any) -> Any:
            raise aiohttp.ConnectionTimeoutError("no answer")

    nowhere: Any = Silent()
    carrier = JsonRpcWire(nowhere, v1.AgentInterface(url="http://192.0.2.1"), "1.0")
    with pytest.raises(ConnectionError, match="cannot connect to http"):
        await carrier.unary("GetTask", v1.GetTaskRequest(id="t"), {})


@pytest.mark.requirement("I-01")
async def test_subscribing_falls_back_to_get_where_post_is_unknown() -> None:
    verbs: list[str] = []

    async def handler(request: web.Request) -> web.StreamResponse:
        verbs.append(request.method)
        if request.method == "POST":
            return web.Response(status=405, text="no")
        return web.Response(text='data: {"task":{"id":"t","status":{}}}\n\n', content_type="text/event-stream")

    async with peer(card_of(entry("HTTP+JSON", "URL")), handler) as url, Client(url, retries=None) as client:
        for _ in range(2):
            assert [event.task.id async for event in client.subscribe("t")] == ["t"]
    assert verbs == ["POST", "GET", "GET"]


NOT_CANCELABLE = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "TASK_NOT_CANCELABLE"}


@pytest.mark.requirement("ERR-15", "ERR-16", "I-04", "STREAM-11")
@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (409, {"error": {"message": "m", "details": [NOT_CANCELABLE]}}, errors.TaskNotCancelableError),
        (404, {"code": -32001, "message": "m"}, errors.TaskNotFoundError),
        (401, "go away", errors.UnauthenticatedError),
        (418, {"error": {"message": "m", "details": [{"reason": "TEAPOT"}, 7]}}, errors.InternalError),
        (200, "not JSON", errors.InvalidAgentResponseError),
        (200, {"id": 7}, errors.InvalidAgentResponseError),
    ],
)
async def test_whatever_a_rest_peer_answers_becomes_a_typed_error(
    status: int, body: Any, kind: type[errors.A2AError]
) -> None:
    async def handler(request: web.Request) -> web.StreamResponse:
        return web.Response(status=status, text=body if isinstance(body, str) else json.dumps(body))

    async with peer(card_of(entry("HTTP+JSON", "URL")), handler) as url, Client(url) as client:
        with pytest.raises(kind) as caught:
            await client.get("t")
        assert type(caught.value) is kind


@pytest.mark.requirement("ERR-08")
async def test_how_to_log_in_is_told_on_grpc_too() -> None:
    service, server = FakeService(), grpc.aio.server()
    service.fault = errors.UnauthenticatedError(challenge="Basic")
    GrpcBinding(service, Options(), Streams(1)).add_to_server(server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with Client(f"grpc://127.0.0.1:{port}", timeout=PATIENCE) as client:
        with pytest.raises(errors.UnauthenticatedError) as caught:
            await client.get("t")
    await server.stop(None)
    assert caught.value.challenge == "Basic"


async def test_a_stream_that_breaks_off_is_unavailable() -> None:
    async def handler(request: web.Request) -> web.StreamResponse:
        reply = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await reply.prepare(request)
        await reply.write(b'data: {"task":{"id":"t","status":{}}}\n\n')
        assert request.transport is not None
        request.transport.abort()
        return reply

    async with peer(card_of(entry("HTTP+JSON", "URL")), handler) as url, Client(url, retries=None) as client:
        events = client.stream(asking("hi"))
        assert (await anext(events)).task.id == "t"
        with pytest.raises(errors.UnavailableError):
            await anext(events)


@pytest.mark.parametrize(
    ("url", "fault"), [("ftp://example.org", ValueError), ("http://127.0.0.1:1", errors.UnavailableError)]
)
async def test_an_address_that_leads_nowhere_is_told_at_once(url: str, fault: type[Exception]) -> None:
    with pytest.raises(fault):
        await Client.connect(url)


async def test_a_missing_or_broken_card_is_told() -> None:
    async with peer(None, unwanted) as url:
        with pytest.raises(errors.NotFoundError, match="no card"):
            await Client.connect(url)
    async with peer({"name": 3}, unwanted) as url:
        with pytest.raises(errors.InvalidAgentResponseError):
            await Client.connect(url + "/.well-known/agent-card.json")


@pytest.mark.requirement("I-18")
async def test_a_delete_that_is_answered_without_a_result_is_done() -> None:
    async def handler(request: web.Request) -> web.StreamResponse:
        return web.json_response({"jsonrpc": "2.0", "id": (await request.json())["id"]})

    async with peer(card_of(entry("JSONRPC")), handler) as url, Client(url) as client:
        await client.delete_push_config("t", "c")
        with pytest.raises(errors.InvalidAgentResponseError):
            await client.get("t")
