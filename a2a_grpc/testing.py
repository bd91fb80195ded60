"""For tests of agents: a client and a server in one process, joined in memory or over loopback; a webhook.

Laws: public, and used by this project's own tests. Nothing here is faked: `connect` runs the same wires, service and
engine as a server does, only without sockets; `serve` is a whole server on free loopback ports; `webhook` receives.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final
from urllib.parse import urlsplit

from a2a_stubs import v1
from aiohttp import web
from google.protobuf.message import Message

from a2a_grpc.agent import Agent
from a2a_grpc.auth import Authorizer, Policy
from a2a_grpc.bindings import wire
from a2a_grpc.bindings.jsonrpc import JsonRpc
from a2a_grpc.bindings.rest import Rest
from a2a_grpc.call import GRPC, JSONRPC, REST, V1, Call
from a2a_grpc.client import Client
from a2a_grpc.client_wires import HTTP_WIRES, Wire
from a2a_grpc.config import Options
from a2a_grpc.methods import METHODS
from a2a_grpc.push_receiver import Notification, PushReceiver
from a2a_grpc.python310_asyncio import timeout
from a2a_grpc.server import Server

ORIGIN: Final = "http://memory"
"""Base URL of the interfaces of `connect`; nothing listens there."""


@asynccontextmanager
async def serve(
    agents: Agent | Mapping[str, Agent],
    *,
    store: str = "memory:",
    authenticators: Policy | None = None,
    authorizer: Authorizer | None = None,
    **options: Any,
) -> AsyncIterator[Server]:
    """A running server on free loopback ports; keywords are options of config.Options. Default store: memory.

    authenticators, authorizer: as those of Server; default: as the options say, which is nothing.
    """
    given = {"grpc": "127.0.0.1:0", "http": "127.0.0.1:0", "grace": 0.0, **options}
    settings = Options(store=store, **given)
    async with Server(agents, settings, authenticators=authenticators, authorizer=authorizer) as server:
        yield server


@asynccontextmanager
async def connect(
    agents: Agent | Mapping[str, Agent], *, binding: str = JSONRPC, version: str = V1, tenant: str = "", **options: Any
) -> AsyncIterator[Client]:
    """A client of the agent, without sockets: JSON-RPC (default) and REST go through their wires as bytes, gRPC hands
    the messages to the service. Keywords are options of config.Options; default store: memory."""
    settings = Options(**{"grpc": "", "http": "", "store": "memory:", "grace": 0.0, **options})
    async with Server(agents, settings) as server:
        interface = v1.AgentInterface(url=ORIGIN, protocol_binding=binding, protocol_version=version, tenant=tenant)
        async with Client.over(_wire(server, interface, version), interface, retries=None) as client:
            yield client


def _wire(server: Server, interface: v1.AgentInterface, version: str) -> Wire:
    if interface.protocol_binding == GRPC:
        return ServiceWire(server.service, version)
    ends: Mapping[str, type[JsonRpc | Rest]] = {JSONRPC: JsonRpc, REST: Rest}
    session: Any = _Session(ends[interface.protocol_binding](server.service, server.options).answer)
    return HTTP_WIRES[interface.protocol_binding](session, interface, version)


class ServiceWire:
    """A client's way straight to a service object, messages in and out."""

    def __init__(self, service: Any, version: str) -> None:
        self._service, self._version = service, version

    def _call(self, operation: str, request: Any, headers: Mapping[str, str]) -> Call:
        carrier = wire.HttpRequest("", "", headers={name.lower(): value for name, value in headers.items()})
        call = wire.make_call(carrier, operation, GRPC, self._version, request, {})
        call.gives_request = False  # it is the caller's own, who may send it again
        call.takes_ready = False
        return call

    async def unary(self, operation: str, request: Message, headers: Mapping[str, str]) -> Any:
        """One call, one answer."""
        return await getattr(self._service, operation)(request, self._call(operation, request, headers))

    async def stream(
        self, operation: str, request: Message, headers: Mapping[str, str]
    ) -> AsyncGenerator[tuple[str, v1.StreamResponse], None]:
        """The events of a call with their numbers."""
        call = self._call(operation, request, headers)
        events = getattr(self._service, operation)(request, call)
        try:
            async for event in events:
                own = v1.StreamResponse()  # an event's message is that of its other readers, too
                own.CopyFrom(event)
                yield str(call.position), own
        finally:
            await events.aclose()


class _Session:
    """As much of an HTTP session as a client's wire uses, with a server's wire behind it instead of a socket."""

    def __init__(self, answer: Any) -> None:
        self._answer = answer

    @asynccontextmanager
    async def request(
        self, verb: str, url: Any, *, headers: Mapping[str, str], data: bytes, **_: Any
    ) -> AsyncIterator["_Reply"]:
        place = urlsplit(str(url))
        lower = {name.lower(): value for name, value in headers.items()}
        answer = await self._answer(wire.HttpRequest(verb, place.path, place.query, lower, data or b""))
        try:
            yield _Reply(answer)
        finally:
            if isinstance(answer, wire.HttpStream):
                await answer.chunks.aclose()


class _Reply:
    def __init__(self, answer: wire.Answer) -> None:
        self._answer = answer
        self.status = answer.status
        self.headers = answer.headers
        self.content_type = answer.headers.get("content-type", "").partition(";")[0]
        self.content = self
        self.content_length = len(answer.body) if isinstance(answer, wire.HttpReply) else None

    def close(self) -> None:
        """There is nothing to close."""

    async def read(self) -> bytes:
        answer = self._answer
        if isinstance(answer, wire.HttpReply):
            return answer.body
        return b"".join([chunk async for chunk in answer.chunks])

    async def iter_any(self) -> AsyncIterator[bytes]:
        if isinstance(self._answer, wire.HttpStream):
            async for chunk in self._answer.chunks:
                yield chunk


class Webhook:
    """A receiver of push notifications, see `webhook`.

    url: its address. notifications: what has come, in order, each once. status: what requests are answered with while
    it is not 0; then nothing is taken, and the server sends again. requests: how many there were, of whatever outcome.
    receiver: what judges them.
    """

    def __init__(self) -> None:
        self.url = ""
        self.notifications: list[Notification] = []
        self.status = self.requests = 0
        self.receiver = PushReceiver(self._take)
        self._news = asyncio.Condition()

    def config(self, task_id: str = "", config_id: str = "", *, scheme: str = "") -> v1.TaskPushNotificationConfig:
        """A config for this webhook, with a token of its own; see PushReceiver.config."""
        return self.receiver.config(self.url, task_id, config_id, scheme=scheme)

    async def until(self, condition: Callable[[], bool], seconds: float = 30.0) -> None:
        """Wait until `condition()` is true, looking at it after each request. Raises TimeoutError."""
        async with timeout(seconds), self._news:
            await self._news.wait_for(condition)

    def _take(self, notification: Notification) -> None:
        self.notifications.append(notification)

    async def _answer(self, request: web.BaseRequest) -> web.Response:
        answer = web.Response(status=self.status) if self.status else await self.receiver.handle(request)
        async with self._news:
            self.requests += 1
            self._news.notify_all()
        return answer


@asynccontextmanager
async def webhook() -> AsyncIterator[Webhook]:
    """A webhook on a free loopback port. The server must be let there: `serve(..., push_notifications=True,
    push_allow=("127.0.0.1",))`."""
    made = Webhook()
    runner = web.ServerRunner(web.Server(made._answer, access_log=None), shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    made.url = f"http://127.0.0.1:{runner.addresses[0][1]}/"
    try:
        yield made
    finally:
        await runner.cleanup()


def operations() -> tuple[str, ...]:
    """The names of the eleven operations, for tests that walk through all of them."""
    return tuple(METHODS[V1])


async def until(condition: Any, seconds: float = 30.0) -> None:
    """Wait until `condition()` is true; raises TimeoutError after `seconds`. For what has no event to wait for."""
    async with timeout(seconds):
        while not condition():  # noqa: ASYNC110 - what it waits for has no event
            await asyncio.sleep(0.005)
