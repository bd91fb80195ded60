"""The client: one method for each operation of an agent, and streams that outlive their connections.

Laws: how an agent is reached and called is client_calls' affair, what is told of a stream that broke client_streams';
here is what the operations are to a caller, in v1.0 messages.
"""

import asyncio
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import aclosing
from typing import Any, TypedDict

from a2a_stubs import v1
from google.protobuf.message import Message

from a2a_grpc import python310_asyncio
from a2a_grpc.call import GRPC, RESUME_EXTENSION
from a2a_grpc.client_calls import SCHEMES, Calls
from a2a_grpc.client_cards import Found, trusted
from a2a_grpc.client_retries import NEVER, unsent
from a2a_grpc.client_streams import Events, Following, Source, Ways, number_of, settled
from a2a_grpc.errors import A2AError, InvalidAgentResponseError, UnavailableError
from a2a_grpc.protojson import encode
from a2a_grpc.python310 import Unpack
from a2a_grpc.tasks.state import ENDS, state_of

__all__ = ["SCHEMES", "Client", "Events"]


class Told(TypedDict, total=False):
    """What may be said of one call: headers and extensions."""

    headers: Mapping[str, str] | None
    extensions: Iterable[str] | None


class More(Told, total=False):
    """What may be said of a call with one answer: its time, too."""

    timeout: float | None


class Client(Calls):
    """One agent, called on one of its interfaces: `async with Client(url) as agent`, or `await Client.connect(url)`.

    url: base URL of the agent, URL of its card (ending in `.json`), `grpc://host:port` (`grpcs://` with TLS) for gRPC
    without a card, or a card. binding: "JSONRPC", "HTTP+JSON" or "GRPC", the only one to use, or several in order of
    preference; default: the card's order (CARD-07). version: "1.0" (default) or "0.3" pins the version, None takes the
    newest that the card offers (VER-08). headers: sent with each request, as metadata on gRPC; on every wire values are
    printable ASCII, and names letters, digits, `_`, `.` and `-`, else ValueError names the header. auth: credentials
    that change: a bearer token or headers, a function (plain or async) that gives them, or an object such as
    ClientCredentials; after a 401 they are asked for once more. extensions: URIs to ask for (EXT-02). tenant: default:
    the one that the interface names (TENANT-01). timeout: seconds to wait for an answer or the next event, default
    forever, then TimeoutError. silence: seconds after which a stream that has begun and carries nothing is taken for
    dead and opened again, default never. retries: see Retries; None never repeats anything. repeat_sends: whether the
    agent tells a repeated message by its id; default: only if its card says that it is served by this package. tls: a
    Tls, or a context for HTTP only; default: the system's trust. A gRPC address without a scheme is called with TLS if
    the card came by https, or names https; gRPC trusts its own list of authorities, or SSL_CERT_FILE. interceptors:
    surround each call, the first outermost: as on a server, but `call.metadata` are the headers to send. verify:
    judges the card, and the extended one, before anything in it is used (SIGN-10); default: it is believed. cards:
    cards that are kept, to be shared between clients; default: an own cache. channel: how connections are held.
    Every operation raises the A2AError that the agent answers with, and UnavailableError when nobody answers.
    """

    def _followed(
        self,
        operation: str,
        request: Any,
        last_event_id: str,
        headers: Mapping[str, str] | None = None,
        extensions: Iterable[str] | None = None,
    ) -> Events:
        """A streaming call that is followed over any number of connections."""
        if self._retries.patience <= 0:
            return self.events(operation, request, last_event_id=last_event_id, headers=headers, extensions=extensions)
        self._ready()
        asked = self._extensions if extensions is None else tuple(extensions)
        declared: bool | None = self._numbers() if self.card is not None else None
        if declared is None and self.interface.protocol_binding != GRPC:
            declared = False
        adds = declared is not False and RESUME_EXTENSION not in asked

        async def numbered(called: str, message: Message, last: str) -> Source:
            grpc = self.interface.protocol_binding == GRPC
            wanted = (*asked, RESUME_EXTENSION) if adds and grpc else asked
            async with aclosing(self._stream(called, message, last, headers, wanted)) as source:
                async for ident, event in source:
                    number = number_of(event, keep=not adds) if grpc else 0
                    yield str(number) if number else ident, event

        def resume(task_id: str, last: str) -> Source:
            again = v1.SubscribeToTaskRequest(id=task_id, tenant=request.tenant)
            return numbered("SubscribeToTask", again, last)

        async def task(task_id: str) -> v1.Task:
            again = v1.GetTaskRequest(id=task_id, tenant=request.tenant)
            found: v1.Task = await self.call("GetTask", again, headers=headers, extensions=extensions)
            return found

        ways = Ways(
            first=lambda: numbered(operation, request, last_event_id),
            resume=resume,
            task=task,
            repeatable=self._repeatable(operation, request),
            sends=isinstance(request, v1.SendMessageRequest),
            answers=isinstance(request, v1.SendMessageRequest) and bool(request.message.task_id),
            about=request.id if isinstance(request, v1.SubscribeToTaskRequest) else "",
        )
        return Events(Following(ways, self._retries, declared, last_event_id).events(), self._timeout)

    # -- the operations

    async def send(self, request: v1.SendMessageRequest, **more: Unpack[More]) -> v1.SendMessageResponse:
        """Send a message and wait for the answer: a message, or a task that ended or wants something. more: headers,
        extensions and timeout, as of `call`."""
        answer: v1.SendMessageResponse = await self.call("SendMessage", request, **more)
        return answer

    def stream(self, request: v1.SendMessageRequest, **more: Unpack[Told]) -> Events:
        """Send a message and follow what comes of it. A connection that breaks is made anew: each event is told once,
        and none is left out where the agent numbers them; of other agents, each piece of an artifact and the latest
        status (see docs/client.md). more: headers and extensions, as of `call`."""
        return self._followed("SendStreamingMessage", request, "", **more)

    async def get(self, task_id: str, history_length: int | None = None, **more: Unpack[More]) -> v1.Task:
        """A task; history_length: most messages of history, 0 for none, default: the agent decides. more: as `send`."""
        request = v1.GetTaskRequest(id=task_id, history_length=history_length)
        answer: v1.Task = await self.call("GetTask", request, **more)
        return answer

    async def list(self, request: v1.ListTasksRequest | None = None) -> v1.ListTasksResponse:
        """A page of tasks, latest first; default: the first page of all."""
        answer: v1.ListTasksResponse = await self.call("ListTasks", request or v1.ListTasksRequest())
        return answer

    async def tasks(self, request: v1.ListTasksRequest | None = None) -> AsyncGenerator[v1.Task, None]:
        """All tasks that a request means, latest first, page by page as they are needed; default: every one. Raises
        InvalidAgentResponseError when a page leads back to one before it, as it would for ever."""
        asked = v1.ListTasksRequest()
        asked.CopyFrom(request or asked)
        seen = {asked.page_token}
        while True:
            page = await self.list(asked)
            for task in page.tasks:
                yield task
            if not page.next_page_token:
                return
            if page.next_page_token in seen:
                raise InvalidAgentResponseError("nextPageToken leads back to a page that was read before")
            seen.add(page.next_page_token)
            asked.page_token = page.next_page_token

    async def cancel(self, task_id: str, **more: Unpack[More]) -> v1.Task:
        """Cancel a task; the task as it then is. When the answer was lost and the task has been canceled meanwhile, so
        it is. more: as `send`."""
        try:
            answer: v1.Task = await self.call("CancelTask", v1.CancelTaskRequest(id=task_id), **more)
        except UnavailableError as fault:
            if unsent(fault) or self._retries is NEVER:
                raise
            answer = await self.get(task_id, **more)
            if answer.status.state != v1.TASK_STATE_CANCELED:
                raise
        return answer

    def subscribe(self, task_id: str, last_event_id: str = "", **more: Unpack[Told]) -> Events:
        """Follow a task that has not ended, from its snapshot or from after a known event, over any number of
        connections as `stream` does. more: headers and extensions, as of `call`."""
        return self._followed("SubscribeToTask", v1.SubscribeToTaskRequest(id=task_id), last_event_id, **more)

    async def wait(self, task: v1.Task | str, *, timeout: float | None = None) -> v1.Task:
        """The task, or the task of an id, once it has ended or waits for its caller: by subscription where the agent
        streams, else by asking now and then (AUTH-11). timeout: seconds for all of it, then TimeoutError; default:
        as long as there is news now and then (`Retries.idle`)."""
        async with python310_asyncio.timeout(timeout):
            found = await self.get(task) if isinstance(task, str) else task
            streams, asked = self.card is None or self.card.capabilities.streaming, 0
            clock = asyncio.get_running_loop().time
            news = clock()
            while not settled(found):
                if streams:
                    try:
                        async with aclosing(self.subscribe(found.id)) as events:
                            async for event in events:
                                if state_of(event) in ENDS:
                                    break
                    # It ended just now, or its agent follows no task that it is not at work on, which one of the
                    # official servers tells by cutting the connection; whether there is an agent, the next look says.
                    except A2AError:
                        streams, news = False, clock()
                if not streams:
                    await asyncio.sleep(self._retries.growing(asked))
                    asked += 1
                known, found = found, await self.get(found.id)
                if found != known:
                    news = clock()
                if not streams and self._retries.tired(clock() - news):
                    raise self._retries.given_up(found.id)
            return found

    async def create_push_config(self, config: v1.TaskPushNotificationConfig) -> v1.TaskPushNotificationConfig:
        """Add a webhook to a task; the config as the agent keeps it, with its id."""
        answer: v1.TaskPushNotificationConfig = await self.call("CreateTaskPushNotificationConfig", config)
        return answer

    async def get_push_config(self, task_id: str, config_id: str) -> v1.TaskPushNotificationConfig:
        """One webhook of a task."""
        request = v1.GetTaskPushNotificationConfigRequest(task_id=task_id, id=config_id)
        answer: v1.TaskPushNotificationConfig = await self.call("GetTaskPushNotificationConfig", request)
        return answer

    async def list_push_configs(self, task_id: str) -> v1.ListTaskPushNotificationConfigsResponse:
        """The webhooks of a task, the first page."""
        request = v1.ListTaskPushNotificationConfigsRequest(task_id=task_id)
        answer: v1.ListTaskPushNotificationConfigsResponse = await self.call("ListTaskPushNotificationConfigs", request)
        return answer

    async def delete_push_config(self, task_id: str, config_id: str) -> None:
        """Take a webhook off a task."""
        request = v1.DeleteTaskPushNotificationConfigRequest(task_id=task_id, id=config_id)
        await self.call("DeleteTaskPushNotificationConfig", request)

    async def extended_card(self) -> v1.AgentCard:
        """The card for authenticated callers; from now on also this client's `card` (CARD-25)."""
        card: v1.AgentCard = await self.call("GetExtendedAgentCard", v1.GetExtendedAgentCardRequest())
        if self._verify is not None:
            card = await trusted(self._verify, Found(card, encode(card), self.interface.url))
        self.card = card
        return card
