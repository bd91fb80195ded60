"""The cells: every binding, version and place; a running server with clients for each; and refusals as bytes.

A place is a store; or the gateway: then what the clients talk to has the agents behind a second server; or an ASGI
server that carries all wires on one port; or three replicas on PostgreSQL with a bus: then each call is taken by one of
them by chance.

Laws: a scenario is written once and takes the fixture `cell`; what a version cannot say is a row of LACKS, never a
branch of a scenario. Servers are shared by the scenarios of a module, so every scenario makes its own tasks and looks
at nothing else. Refusals are read here from the bytes on the wire, not with the client under test. With PostgreSQL at
hand (`make services`) it is a store like the others.
"""

import asyncio
import os
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
import grpc.aio
import orjson
from a2a_stubs import google, v03_grpc, v1, v1_grpc
from google.protobuf.message import Message
from yarl import URL

from a2a_grpc import v03
from a2a_grpc.bindings import jsonrpc, rest
from a2a_grpc.call import GRPC, JSONRPC, REST, V03, V1, VERSIONS, Call, Caller
from a2a_grpc.client import Client, Events
from a2a_grpc.config import Options
from a2a_grpc.errors import A2AError
from a2a_grpc.gateway import Upstream
from a2a_grpc.protojson_values import json_of
from a2a_grpc.server import Server
from a2a_grpc.tasks.memory import MemoryStore
from a2a_grpc.testing import operations
from a2a_grpc.v03_names import METHOD_NAMES
from tests.contract.agents import AGENTS, gates
from tests.hosts import served
from tests.replicas import BUSES, fronted
from tests.stores import STORES as OPENERS

HERE = {"grpc": "127.0.0.1:0", "http": "127.0.0.1:0", "grace": 0.0, "cancel_grace": 0.3}
BINDINGS = {"grpc": GRPC, "jsonrpc": JSONRPC, "rest": REST}
STORES = ("memory", "sqlite", *(("postgresql",) if "A2A_POSTGRES_URL" in os.environ else ()))
REPLICAS = (
    {f"replicas-{bus}": bus for bus in BUSES} if {"A2A_POSTGRES_URL", "A2A_NATS_URL"} <= os.environ.keys() else {}
)
PLACES = (*STORES, "gateway", "asgi", *REPLICAS)
WIRES = [(binding, version) for version in VERSIONS for binding in BINDINGS]
SPREAD = set(zip(BINDINGS, [V1] * len(BINDINGS), REPLICAS, strict=False))
"""The cells of replicas: a binding for each bus; the door of v0.3 knows nothing of either."""
OLD = frozenset((binding, V03) for binding in BINDINGS)
PROTO_OLD = OLD - {("jsonrpc", V03)}

LACKS: dict[str, tuple[frozenset[tuple[str, str]], str]] = {
    "ListTasks": (OLD, "v0.3 cannot list tasks (I-46)"),
    "tenant": (OLD, "v0.3 has no tenant (L-13)"),
    "no history": (PROTO_OLD, "the v0.3 proto reads historyLength 0 as unset (L-26)"),
    "cancel metadata": (PROTO_OLD, "the v0.3 proto has no metadata on a cancel (part 7)"),
    "references": (PROTO_OLD, "the v0.3 proto has no referenceTaskIds (L-27)"),
    "pages of configs": (frozenset({("jsonrpc", V03)}), "v0.3 JSON-RPC lists all configs at once (L-29)"),
    "empty id": (frozenset({("rest", V1), *PROTO_OLD}), "a resource name has no empty segment"),
    "config without id": (OLD, "v0.3 gives it the id of the task (L-20)"),
    "refused subscription": (OLD, "v0.3 answers with the task, and closes (V03-29)"),
    "several agents": (frozenset({("grpc", V03)}), "agents share a gRPC port by tenant, which v0.3 has not (L-13)"),
    "event numbers": (frozenset({("grpc", V1), ("grpc", V03)}), "gRPC has no event ids beside the messages"),
    "malformed messages": (OLD, "the way down to v0.3 refuses them, they are never sent (L-12)"),
    "bytes like base64": (PROTO_OLD, "file bytes of the v0.3 proto that are base64 text count as such (part 4)"),
}
"""What some wires cannot say, and why; scenarios ask by `needs`. Rows and cells may be taken away, never added."""

ALONE = {
    "test_too_many_tasks_at_a_time_are_told_to_come_back": "each process has its own limit of turns",
}
"""Scenarios that do not hold for replicas, and why. Rows may be taken away, never added."""

TERMINAL = (v1.TASK_STATE_COMPLETED, v1.TASK_STATE_FAILED, v1.TASK_STATE_CANCELED, v1.TASK_STATE_REJECTED)


def fresh(kind: str = "n") -> str:
    """A name that nobody else has."""
    return f"{kind}-{uuid.uuid4().hex[:12]}"


def said(text: str = "echo hi", **more: Any) -> v1.SendMessageRequest:
    """A message to send. Keywords are fields of the message (task_id, context_id, ...), or `now`, `history`, `modes`,
    `push`, `metadata` and `tenant` of the request."""
    request = v1.SendMessageRequest(tenant=more.pop("tenant", ""))
    configuration = request.configuration
    configuration.return_immediately = more.pop("now", False)
    configuration.accepted_output_modes.extend(more.pop("modes", ()))
    if (history := more.pop("history", None)) is not None:
        configuration.history_length = history
    if push := more.pop("push", None):
        configuration.task_push_notification_config.CopyFrom(push)
    if metadata := more.pop("metadata", None):
        request.metadata.update(metadata)
    parts = more.pop("parts", None) or [v1.Part(text=text)]
    request.message.CopyFrom(
        v1.Message(**{"message_id": fresh("m"), "role": v1.ROLE_USER, "parts": parts, **more}),
    )
    return request


HOOK = "https://hooks.example/in"
"""An address for push notifications at which nobody is."""


def requests(task_id: str, tenant: str = "") -> Iterator[tuple[str, Message]]:
    """Each operation with a request about a task."""
    about = {"task_id": task_id, "id": "hook", "tenant": tenant}
    made = {
        "SendMessage": said("go on", task_id=task_id, tenant=tenant),
        "SendStreamingMessage": said("go on", task_id=task_id, tenant=tenant),
        "GetTask": v1.GetTaskRequest(id=task_id, tenant=tenant),
        "ListTasks": v1.ListTasksRequest(tenant=tenant),
        "CancelTask": v1.CancelTaskRequest(id=task_id, tenant=tenant),
        "SubscribeToTask": v1.SubscribeToTaskRequest(id=task_id, tenant=tenant),
        "CreateTaskPushNotificationConfig": v1.TaskPushNotificationConfig(url=HOOK, **about),
        "GetTaskPushNotificationConfig": v1.GetTaskPushNotificationConfigRequest(**about),
        "ListTaskPushNotificationConfigs": v1.ListTaskPushNotificationConfigsRequest(task_id=task_id, tenant=tenant),
        "DeleteTaskPushNotificationConfig": v1.DeleteTaskPushNotificationConfigRequest(**about),
        "GetExtendedAgentCard": v1.GetExtendedAgentCardRequest(tenant=tenant),
    }
    assert tuple(sorted(made)) == tuple(sorted(operations()))
    return iter(made.items())


def texts(task: v1.Task) -> list[str]:
    """The text of each artifact."""
    return ["".join(part.text for part in artifact.parts) for artifact in task.artifacts]


def data(task: v1.Task) -> Any:
    """The value of the data part of the first artifact."""
    return json_of(task.artifacts[0].parts[0].data)


def spoken(task: v1.Task) -> list[str]:
    """The text of each message of the history."""
    return [entry.parts[0].text for entry in task.history]


async def eventually(look: Callable[[], Awaitable[Any]]) -> Any:
    """What `look` finds, asked until it is something."""
    async with asyncio.timeout(60):
        while not (found := await look()):  # noqa: ASYNC110 - what is waited for is at the other end of a wire
            await asyncio.sleep(0.01)
    return found


class Refusal(NamedTuple):
    """An error as it was on the wire. status: HTTP status or gRPC code; code: of JSON-RPC and v0.3, else 0."""

    status: int
    code: int
    reason: str
    domain: str
    fields: tuple[str, ...]
    text: str
    headers: Mapping[str, str]


class Site:
    """A running server and one client for each wire."""

    def __init__(self, server: Server, http: aiohttp.ClientSession, channel: grpc.aio.Channel, stack: Any) -> None:
        self.server, self.http, self.channel = server, http, channel
        self._stack = stack
        self._clients: dict[tuple[Any, ...], Client] = {}

    async def client(self, binding: str, version: str, path: str = "", **settings: Any) -> Client:
        """A client for one wire, made when first asked for. path: of the agent below the server's address."""
        key = (binding, version, path, repr(settings))
        if key not in self._clients:
            told = {"binding": BINDINGS[binding], "version": version, "timeout": 30, "retries": None, **settings}
            made = Client(self.server.http_url + path, **told)
            self._clients[key] = await self._stack.enter_async_context(made)
        return self._clients[key]


class Sites:
    """The servers of a module, started when first asked for."""

    def __init__(self, folder: Path, stack: AsyncExitStack) -> None:
        self._folder, self._stack = folder, stack
        self._sites: dict[str, Site] = {}

    async def site(self, store: str, agent: str = "scenes", own: bool = False, **options: Any) -> Site:
        """A server of one of AGENTS, or of `agents` given; own: not shared with any other scenario."""
        key = fresh() if own else repr((store, agent, sorted(options.items(), key=str)))
        if key not in self._sites:
            settings = Options(**{**HERE, **options})
            behind = replace(settings, public_url="", public_grpc="") if store == "gateway" else settings
            if store == "asgi":
                behind = replace(settings, grpc="", http="")
            made = await self._server(store, agent, behind)
            server = await self._stack.enter_async_context(served(made) if store == "asgi" else made)
            if store == "gateway":
                front = Server(
                    upstreams(server, "own" if settings.push_notifications else "pass"), settings, store=MemoryStore()
                )
                server = await self._stack.enter_async_context(front)
            http = await self._stack.enter_async_context(aiohttp.ClientSession())
            channel = await self._stack.enter_async_context(grpc.aio.insecure_channel(server.grpc_address))
            self._sites[key] = Site(server, http, channel, self._stack)
        return self._sites[key]

    async def _server(self, store: str, agent: str, options: Options) -> Server:
        def agents() -> Any:
            return {name: AGENTS[name]() for name in agent.split()} if " " in agent else AGENTS[agent]()

        if store in REPLICAS:
            return await fronted(self._stack, REPLICAS[store], agents, options, interceptors=(as_told,))
        folder = self._folder / fresh("store")
        folder.mkdir()
        kept = await self._stack.enter_async_context(OPENERS[store if store in STORES else "memory"](folder))
        return Server(agents(), options, store=kept, interceptors=(as_told,))


def upstreams(server: Server, push: str) -> Any:
    """The agents of a server as a gateway has them, called over gRPC; push: who delivers push notifications."""
    names = list(server.agents)
    several = len(names) > 1
    found = {
        name: Upstream(
            f"{server.http_url}/{name}" if several else server.http_url,
            binding=GRPC,
            forward=("x-caller",),
            tenants=agent.tenants,
            push=push,
        )
        for name, agent in server.agents.items()
    }
    return found if several else found[names[0]]


@asynccontextmanager
async def as_told(call: Call, request: Message) -> AsyncIterator[None]:
    """An interceptor that believes what the header `x-caller` says; without it nobody is known."""
    if subject := call.metadata.get("x-caller"):
        call.caller = Caller(subject, authenticated=True)
    yield


class Cell:
    """One binding, version and store, and a server to talk to."""

    def __init__(self, binding: str, version: str, store: str, site: Site, client: Client) -> None:
        self.binding, self.version, self.store = binding, version, store
        self.site, self.client = site, client

    def __str__(self) -> str:
        return f"{self.binding}-{self.version}-{self.store}"

    # -- short ways through the client

    async def connect(self, **settings: Any) -> Client:
        """A client of the same cell with other settings; it is closed with the server."""
        return await self.site.client(self.binding, self.version, **settings)

    async def caller(self, subject: str) -> "Cell":
        """The same cell as somebody who is known."""
        client = await self.connect(headers={"x-caller": subject})
        return Cell(self.binding, self.version, self.store, self.site, client)

    async def over(self, binding: str, version: str) -> "Cell":
        """Another wire to the same server."""
        return Cell(binding, version, self.store, self.site, await self.site.client(binding, version))

    async def task(self, text: str = "echo hi", **more: Any) -> v1.Task:
        """Send, and the task that came of it."""
        answer = await self.client.send(said(text, **more))
        assert answer.WhichOneof("payload") == "task", answer
        return answer.task

    async def held(self, scene: str = "hold", **more: Any) -> tuple[v1.Task, str]:
        """A task that works until its gate, whose name is given too, is opened."""
        name = fresh("gate")
        task = await self.task(f"{scene} {name}", now=True, **more)
        await self.reach(task.id, v1.TASK_STATE_WORKING)
        return task, name

    def stream(self, text: str = "echo hi", **more: Any) -> Events:
        return self.client.stream(said(text, **more))

    async def reach(self, task_id: str, *states: int) -> v1.Task:
        """The task once it is in one of some states, terminal ones by default."""

        async def look() -> v1.Task | None:
            task = await self.client.get(task_id)
            return task if task.status.state in (states or TERMINAL) else None

        found: v1.Task = await eventually(look)
        return found

    async def release(self, task: v1.Task, gate: str) -> v1.Task:
        """Open the gate and wait for the end."""
        gates[gate].set()
        return await self.reach(task.id)

    # -- refusals

    async def refuses(
        self, error: type[A2AError], operation: str, request: Any, *fields: str, **headers: str
    ) -> Refusal:
        """Check that a call is refused as its wire and version say it (ERR-01 to ERR-06); fields: those to be named."""
        found = await self.refusal(operation, request, headers)
        reason, code, grpc_code, http = ERRORS[error.__name__]
        assert (found.reason, found.domain) == (reason, "a2a-protocol.org"), found
        assert found.text
        plain = 200 if self.binding == "jsonrpc" and http not in HTTP_LEVEL else http
        assert found.status == (grpc_code if self.binding == "grpc" else plain), found
        if self.binding == "jsonrpc" or (self.binding, self.version) == ("rest", V03):
            assert found.code == code, found
        assert set(fields) <= set(found.fields), found
        return found

    async def refusal(self, operation: str, request: Any, headers: Mapping[str, str] | None = None) -> Refusal:
        """The error that the wire carries."""
        told = {name.replace("_", "-").lower(): value for name, value in (headers or {}).items()}
        told.setdefault("a2a-version", self.version)
        if self.binding == "grpc":
            return await self._grpc_refusal(operation, request, told)
        verb, url, sent, body = self.http_request(operation, request)
        async with self.site.http.request(verb, URL(url, encoded=True), headers=sent | told, data=body) as reply:
            body = await reply.read()
            # Only old JSON-RPC clients need a stream around an error that came before the first event.
            streamed = operation in STREAMING and (self.binding, self.version) == ("jsonrpc", V03)
            if reply.status == 200 and streamed:
                assert reply.content_type == "text/event-stream"
                assert body.startswith(b"data: ") and body.count(b"data: ") == 1, body
                body = body.removeprefix(b"data: ")
        return http_refusal(reply.status, orjson.loads(body), reply.headers)

    async def fetch(
        self, verb: str, url: str, headers: Mapping[str, str] | None = None, body: bytes | None = None
    ) -> tuple[int, Any, Mapping[str, str]]:
        """Status, loaded JSON body (None for none) and headers of an answer to any HTTP request."""
        if url.startswith("/"):
            url = self.site.server.http_url + url
        async with self.site.http.request(verb, URL(url, encoded=True), headers=headers, data=body) as reply:
            content = await reply.read()
            return reply.status, orjson.loads(content) if content else None, reply.headers

    async def post(self, operation: str, request: Any, **headers: str) -> tuple[int, Any, Mapping[str, str]]:
        """The answer to a call over HTTP."""
        verb, url, sent, body = self.http_request(operation, request)
        told = {name.replace("_", "-").lower(): value for name, value in headers.items()}
        return await self.fetch(verb, url, sent | told, body)

    async def sent_as(self, version: str) -> str:
        """What comes of a send under a version header of one's own, as text."""
        if self.binding == "grpc":
            return str(await (await self.connect(headers={"a2a-version": version})).send(said()))
        return str((await self.post("SendMessage", said(), a2a_version=version))[1])

    async def json(self, operation: str, request: Any) -> Any:
        """The JSON of a good answer over HTTP, out of its JSON-RPC envelope."""
        status, value, _ = await self.post(operation, request)
        assert status == 200, value
        return value["result"] if self.binding == "jsonrpc" else value

    def http_request(self, operation: str, request: Any) -> tuple[str, str, dict[str, str], bytes]:
        """Verb, address, headers and body of a call over HTTP."""
        base = self.site.server.http_url
        if self.binding == "jsonrpc":
            return "POST", base, *jsonrpc.request(operation, request, 7, self.version)
        verb, path, headers, body = rest.request(operation, request, "", self.version)
        return verb, base + path, headers, body

    async def _grpc_refusal(self, operation: str, request: Any, headers: Mapping[str, str]) -> Refusal:
        name, stubs = operation, v1_grpc
        if self.version == V03:
            name, request, stubs = METHOD_NAMES[operation], v03.down_request(request), v03_grpc
        call = getattr(stubs.A2AServiceStub(self.site.channel), name)(request, metadata=tuple(headers.items()))
        try:
            await (call.read() if operation in STREAMING else call)
        except grpc.aio.AioRpcError as fault:
            return grpc_refusal(fault)
        raise AssertionError(f"{operation} was not refused")


ERRORS = {
    "TaskNotFoundError": ("TASK_NOT_FOUND", -32001, 5, 404),
    "TaskNotCancelableError": ("TASK_NOT_CANCELABLE", -32002, 9, 400),
    "PushNotificationNotSupportedError": ("PUSH_NOTIFICATION_NOT_SUPPORTED", -32003, 9, 400),
    "UnsupportedOperationError": ("UNSUPPORTED_OPERATION", -32004, 9, 400),
    "ContentTypeNotSupportedError": ("CONTENT_TYPE_NOT_SUPPORTED", -32005, 3, 400),
    "ExtendedAgentCardNotConfiguredError": ("EXTENDED_AGENT_CARD_NOT_CONFIGURED", -32007, 9, 400),
    "ExtensionSupportRequiredError": ("EXTENSION_SUPPORT_REQUIRED", -32008, 9, 400),
    "VersionNotSupportedError": ("VERSION_NOT_SUPPORTED", -32009, 9, 400),
    "InvalidParamsError": ("INVALID_PARAMS", -32602, 3, 400),
    "NotFoundError": ("NOT_FOUND", -32602, 5, 404),
    "UnauthenticatedError": ("UNAUTHENTICATED", -32098, 16, 401),
    "PermissionDeniedError": ("PERMISSION_DENIED", -32099, 7, 403),
    "ResourceExhaustedError": ("RESOURCE_EXHAUSTED", -32097, 8, 429),
    "PayloadTooLargeError": ("PAYLOAD_TOO_LARGE", -32600, 8, 413),
}
"""Reason, JSON-RPC code, gRPC status and HTTP status of each error, written down again (tables 0.4 and 0.5)."""

HTTP_LEVEL = frozenset({401, 403, 405, 413, 415, 429, 503})
"""Failures that keep their status over JSON-RPC too (RPC-12, I-37, I-38)."""

STREAMING = frozenset(row.name for row in v1_grpc.METHODS if row.server_streaming)


def http_refusal(status: int, body: Any, headers: Mapping[str, str]) -> Refusal:
    """The error of a JSON-RPC response, of a v1.0 REST body or of a v0.3 REST body."""
    error = body.get("error", body)
    code = body.get("code", error["code"] if error["code"] < 0 else 0)
    details = error.get("details") or error.get("data") or []
    by_type = {detail["@type"].rpartition(".")[2]: detail for detail in details}
    info = by_type.get("ErrorInfo", {})
    fields = tuple(entry["field"] for entry in by_type.get("BadRequest", {}).get("fieldViolations", ()))
    if "status" in error:
        assert error["code"] == status or status == 200
    return Refusal(status, code, info.get("reason"), info.get("domain"), fields, error["message"], headers)


def grpc_refusal(fault: grpc.aio.AioRpcError) -> Refusal:
    """The error of a gRPC status; the status inside agrees with the one outside (GRPC-07)."""
    trailers: dict[str, Any] = dict(fault.trailing_metadata() or ())
    status = google.Status.FromString(trailers["grpc-status-details-bin"])
    assert status.code == fault.code().value[0]
    info, bad = google.ErrorInfo(), google.BadRequest()
    for detail in status.details:
        for target in (info, bad):
            if detail.type_url.endswith(target.DESCRIPTOR.full_name):
                target.ParseFromString(detail.value)
    fields = tuple(violation.field for violation in bad.field_violations)
    return Refusal(status.code, 0, info.reason, info.domain, fields, fault.details() or "", trailers)
