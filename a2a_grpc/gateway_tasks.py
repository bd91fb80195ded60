"""What a gateway keeps of tasks that its upstream works on: their events, and push notification configs of its own.

Laws: no operation is named here. Who may see a task, and what it is, the upstream says each time; what is kept here is
its log, told by one subscription for each task, whatever wire and version the upstream speaks, and taken up again when
that breaks, by another process if need be. Webhooks are push.py's, and what configs mean is service.py's: here is only
that there is a task for them. Credentials of callers are kept for a restart only where they can be sealed (SEC-05).
"""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import orjson
from a2a_stubs import v1, v1_grpc
from google.protobuf.message import Message

from a2a_grpc.call import GRPC, RESUME_EXTENSION, Call
from a2a_grpc.client import Client
from a2a_grpc.client_retries import Retries
from a2a_grpc.client_streams import LOOK_SECONDS, Events, Told, number_of
from a2a_grpc.config import Options
from a2a_grpc.errors import A2AError, TaskNotFoundError, UnavailableError
from a2a_grpc.push_secrets import Sealed
from a2a_grpc.python310_asyncio import timeout
from a2a_grpc.service import A2AService
from a2a_grpc.tasks.engine import Engine
from a2a_grpc.tasks.relay import Relay
from a2a_grpc.tasks.state import ENDS, TERMINAL, state_of
from a2a_grpc.tasks.store import Scope, TaskRow

log: Final = logging.getLogger("a2a_grpc.gateway")

Source = AsyncGenerator[v1.StreamResponse, None]

AGAIN: Final = Retries(first=0.25, most=60.0)
"""Pauses before a subscription that has ended is made anew, while there is no news."""

READ: Final = next(row.name for row in v1_grpc.METHODS if row.input is v1.GetTaskRequest)
SUBSCRIBE: Final = next(row.name for row in v1_grpc.METHODS if row.input is v1.SubscribeToTaskRequest)

CONFIGS: Final = tuple(row.input for row in v1_grpc.METHODS if "PushNotificationConfig" in row.input.DESCRIPTOR.name)
"""Requests about push notification configs."""

_INLINE: Final = "configuration.taskPushNotificationConfig."


class Asking(NamedTuple):
    """A call on its way: the client of the upstream, the call, the headers and extensions beside its message, and that
    if it is one to send, with its push notification config."""

    client: Client
    call: Call
    told: Mapping[str, Any]
    message: v1.SendMessageRequest = v1.SendMessageRequest()

    async def task(self, task_id: str, **more: Any) -> v1.Task:
        """A task as its caller may see it."""
        request = v1.GetTaskRequest(id=task_id, tenant=self.call.tenant, **more)
        found: v1.Task = await self.client.call(READ, request, **self.told)
        return found


async def _no_card(_: Call) -> None:
    """The configs' service shows no card."""


class _Configs(A2AService):
    """Of the service of an agent that is somewhere else, what is about push notification configs."""

    def _scope(self, call: Call, unknown: Any = TaskNotFoundError) -> Scope:
        return self.scope(call)

    def scope(self, call: Call) -> Scope:
        """The upstream says whose a task is, so no owner is told apart here."""
        return Scope(self._name, call.tenant, "")

    def check(self, config: v1.TaskPushNotificationConfig, path: str = "") -> None:
        """Refuse what no webhook may be. Raises InvalidParamsError."""
        self._content.check_webhook(config, path)


class Keeper:
    """The tasks of one upstream, as they are kept.

    name: of the upstream in its server; engine: of the server, with the store; connected: gives the client; fleeting:
    names of headers that are of one call alone, and are not used for others; own: whether push notification configs are
    kept here; most: bytes of the log of one task, 0 where only push notifications need it. Raises what the upstream
    answers.
    """

    def __init__(
        self,
        name: str,
        engine: Engine,
        options: Options,
        connected: Callable[[], Awaitable[Client]],
        fleeting: Sequence[str],
        own: bool,
        most: int,
    ) -> None:
        self._engine, self._options = engine, options
        self._connected, self._fleeting, self._own = connected, frozenset(fleeting), own
        agent = engine.relays.add(name, self._follow, most)
        self._configs = _Configs(name, agent, engine, options, _no_card)
        self._scope = self._configs.scope
        self._headers: dict[str, dict[str, str]] = {}
        self._sources: dict[str, _Chained] = {}
        self._resting: dict[str, asyncio.Event] = {}

    # -- what callers ask

    async def configs(self, operation: str, request: Any, asking: Asking, empty: Callable[[], Message]) -> Any:
        """An operation on the push notification configs of a task. empty: makes the answer for a task without any."""
        if request.task_id:
            task = await asking.task(request.task_id)
            if isinstance(request, v1.TaskPushNotificationConfig):
                self._configs.check(request)
                await self._begin(asking, task)
            elif empty is not v1.TaskPushNotificationConfig and not await self._row(asking, task.id):
                return empty()
        return await getattr(self._configs, operation)(request, asking.call)

    async def _row(self, asking: Asking, task_id: str) -> TaskRow | None:
        return await self._engine.store.task(self._scope(asking.call), task_id)

    async def send(self, operation: str, asking: Asking) -> v1.SendMessageResponse:
        """A message with a push notification config, which hears of everything from the first event on: the upstream is
        asked to answer at once, and who wants to wait for the end waits here."""
        request = asking.message
        row = await self._row(asking, request.message.task_id)
        async with self._inline(asking) as asked:
            asked.configuration.return_immediately = True
            answer: v1.SendMessageResponse = await asking.client.call(operation, asked, **asking.told)
        if not answer.HasField("task"):
            return answer
        await self._begin(asking, answer.task)
        if not request.configuration.return_immediately and answer.task.status.state not in ENDS:
            answer.task.CopyFrom(await self._settled(asking, answer.task.id, row.sequence if row else 0))
        return answer

    async def stream(self, asking: Asking, way: Callable[[v1.SendMessageRequest], Source], logged: bool) -> Source:
        """A stream that a message begins, which `way` makes. logged: its events come out of the log, with their numbers
        in `call.position`; else they are passed on, and what is kept is a push notification config."""
        async with AsyncExitStack() as stack:
            async with self._inline(asking) as asked:
                events = await stack.enter_async_context(aclosing(way(asked)))
                first = await anext(events, None)
            task = None if first is None else await self._task_of(asking, first)
            if task is None or first is None or not logged:
                if task is not None and not logged:
                    await self._begin(asking, task)
                if first is not None:
                    yield first
                async for event in events:
                    yield event
                return
            stack.pop_all()
        await self._begin(asking, task, _Chained(first, events))
        closes = self._options.close_on_input_required
        async with aclosing(self._read(asking, task.id, None if asking.message.message.task_id else 0)) as events:
            async for event in events:
                yield event
                if closes and event.HasField("status_update") and state_of(event) == v1.TASK_STATE_INPUT_REQUIRED:
                    return

    async def subscribe(self, asking: Asking, task_id: str, way: Callable[[], Source]) -> Source:
        """The events of a task, out of the log, from after `call.resume` if that is known; of one that has ended and is
        not kept, what `way` gives, which the upstream says."""
        task, after = await asking.task(task_id), asking.call.resume
        row = await self._row(asking, task_id)
        if task.status.state in TERMINAL and (after is None or row is None):
            asking.call.position = 0
            if after is not None:
                yield v1.StreamResponse(task=task)
                return
            async with aclosing(way()) as events:
                async for event in events:
                    yield event
            return
        await self._begin(asking, task)
        if after is not None and not await self._has(asking, task_id, after):
            after = None
        async with aclosing(self._read(asking, task_id, after)) as events:
            async for event in events:
                yield event

    async def _has(self, asking: Asking, task_id: str, after: int) -> bool:
        """Whether everything after a number is kept."""
        row = await self._row(asking, task_id)
        found = await self._engine.store.events(self._scope(asking.call), task_id, after, 1)
        return row is not None and (found[0].sequence == after + 1 if found else row.sequence == after)

    async def _read(self, asking: Asking, task_id: str, after: int | None) -> Source:
        """The log of a task after a number, or the task as it is and what follows; the number of each in
        `call.position`. Raises UnavailableError when what comes next is no longer kept."""
        call, scope = asking.call, self._scope(asking.call)
        if after is None:
            view = await self._engine.view(scope, task_id)
            after = call.position = view.sequence
            yield v1.StreamResponse(task=view.task)
            if view.task.status.state in TERMINAL:
                return
        async with aclosing(self._engine.batches(scope, task_id, after)) as batches:
            async for events in batches:
                for event in events:
                    if event.sequence != after + 1:
                        raise UnavailableError(f"events up to {event.sequence - 1} are no longer kept")
                    after = call.position = event.sequence
                    yield event.payload

    async def _task_of(self, asking: Asking, event: v1.StreamResponse) -> v1.Task | None:
        """The task that an event is about, None for a message."""
        if event.HasField("task"):
            return event.task
        task_id = getattr(getattr(event, str(event.WhichOneof("payload")), None), "task_id", "")
        return None if event.HasField("message") or not task_id else await asking.task(task_id)

    @asynccontextmanager
    async def _inline(self, asking: Asking) -> AsyncIterator[v1.SendMessageRequest]:
        """Around a message: as it goes on, without its push notification config. Where there is a task already, that is
        made first, and gone again if the message is refused."""
        request = asking.message
        if not (self._own and request.configuration.HasField("task_push_notification_config")):
            yield request
            return
        config = request.configuration.task_push_notification_config
        self._configs.check(config, _INLINE)
        asked = v1.SendMessageRequest()
        asked.CopyFrom(request)
        asked.configuration.ClearField("task_push_notification_config")
        scope, task_id, before = self._scope(asking.call), request.message.task_id, None
        name, push = config.id or task_id, self._engine.push
        if task_id:
            await push.check_room(scope, task_id, name)
            await self._begin(asking, await asking.task(task_id))
            before = await self._engine.store.push_config(scope, task_id, name)
            for made in self._engine.push_configs(asking.call, request, task_id):
                await push.put(scope, made)
        try:
            yield asked
        except A2AError:
            if task_id and before is None:
                await push.drop(scope, task_id, name)
            raise

    async def _settled(self, asking: Asking, task_id: str, after: int) -> v1.Task:
        """The task once it has ended or waits for its caller."""
        more, asked = {}, asking.message.configuration
        if asked.HasField("history_length"):
            more["history_length"] = asked.history_length
        async with aclosing(self._engine.batches(self._scope(asking.call), task_id, after)) as batches:
            async for events in batches:
                if any(state_of(event.payload) in ENDS for event in events):
                    task = await asking.task(task_id, **more)
                    if task.status.state in ENDS:
                        return task
        return await asking.task(task_id, **more)

    async def _begin(self, asking: Asking, task: v1.Task, source: "_Chained | None" = None) -> None:
        """See to it that a task is kept and followed, with the push notification config of the message that made it.
        source: tells what happens to it, and is closed if nobody needs it."""
        scope, relays, message = self._scope(asking.call), self._engine.relays, asking.message
        if task.status.state not in TERMINAL and not relays.running(scope, task.id):
            self._engine.check_room(asking.call)
        brings = self._own and not message.message.task_id
        configs = self._engine.push_configs(asking.call, message, task.id) if brings else ()
        headers = {name: value for name, value in asking.told["headers"].items() if name not in self._fleeting}
        seal = self._engine.push.seal
        kept = seal.close(orjson.dumps(headers), task.id, "") if seal.keyed and headers else b""
        self._headers[task.id] = headers
        if source is not None:
            self._sources[task.id] = source
        made = False
        try:
            made = await relays.begin(asking.call, scope, task, configs, kept)
        finally:
            if not relays.running(scope, task.id):
                self._headers.pop(task.id, None)
            needed = (made and task.status.state not in TERMINAL) or task.id in self._resting
            self.stir(task.id)
            if source is not None and not needed and self._sources.get(task.id) is source:
                await self._sources.pop(task.id).aclose()
        for config in () if made else configs:
            await self._engine.push.put(scope, config)

    # -- what the upstream says

    async def _follow(self, relay: Relay) -> None:
        """Tell a relay what the upstream says of its task (see Follow)."""
        if relay.kept and relay.task_id not in self._headers:
            with suppress(Sealed):  # then it is followed with the gateway's own credentials
                self._headers[relay.task_id] = orjson.loads(self._engine.push.seal.open(relay.kept, relay.task_id, ""))
        place, failures, heard = _Place(relay.sequence), 0, time.monotonic()
        try:
            while time.monotonic() < heard + self._options.retain_stuck:
                silent = False
                for step in (self._subscribed, self._looked):
                    try:
                        await step(relay, place)
                    except TimeoutError:
                        silent = True
                    except A2AError as fault:
                        # Agents may say so of a subscription, too, where they have the task and no stream of it.
                        if isinstance(fault, TaskNotFoundError) and step == self._looked:
                            log.warning("task %s: the upstream knows it no more", relay.task_id)
                            return
                        log.info("task %s: following it broke off: %s", relay.task_id, fault.message)
                        place.last = place.last if isinstance(fault, UnavailableError) else ""
                    if relay.ending:
                        return
                if relay.sequence > place.seen:
                    place.seen, failures, heard = relay.sequence, 0, time.monotonic()
                if not silent:  # else it is subscribed to again at once, so that news are told when they come
                    failures = 0 if await self._rested(relay.task_id, AGAIN.growing(failures)) else failures + 1
        finally:
            self._headers.pop(relay.task_id, None)

    def stir(self, task_id: str) -> None:
        """Somebody has something to say about a task: it may be about to go on."""
        if (resting := self._resting.get(task_id)) is not None:
            resting.set()

    async def _rested(self, task_id: str, seconds: float) -> bool:
        """Wait before a task is followed again; whether it was stirred meanwhile."""
        resting = self._resting[task_id] = asyncio.Event()
        try:
            async with timeout(seconds):
                return await resting.wait()
        except TimeoutError:
            return False
        finally:
            del self._resting[task_id]

    async def _told(self, relay: Relay) -> tuple[Client, str, dict[str, Any]]:
        """The client, the tenant, and what goes beside the messages of who follows."""
        client = await self._connected()
        return client, relay.scope.tenant, {"headers": self._headers.get(relay.task_id, {})}

    async def _subscribed(self, relay: Relay, place: "_Place") -> None:
        """One subscription, to its end, after the last event whose number is known, or the stream that began the task.
        Raises TimeoutError when it is silent: agents may hold streams of tasks that have ended."""
        clock = asyncio.get_running_loop().time
        async with AsyncExitStack() as stack:
            silence = await stack.enter_async_context(timeout(LOOK_SECONDS))
            source: Any = self._sources.pop(relay.task_id, None) or await self._subscription(relay, place)
            async for event in await stack.enter_async_context(aclosing(source)):
                number = number_of(event, keep=False)
                await self._tell(relay, event)
                place.last = str(number or "") or getattr(source, "last_event_id", "")
                silence.reschedule(clock() + LOOK_SECONDS)
                if relay.ending:
                    return

    async def _subscription(self, relay: Relay, place: "_Place") -> Events:
        client, tenant, told = await self._told(relay)
        extensions = (RESUME_EXTENSION,) if client.interface.protocol_binding == GRPC else ()
        request = v1.SubscribeToTaskRequest(id=relay.task_id, tenant=tenant)
        return client.events(SUBSCRIBE, request, last_event_id=place.last, extensions=extensions, **told)

    async def _looked(self, relay: Relay, _: "_Place") -> None:
        """A look at the task, for what no subscription has told."""
        client, tenant, told = await self._told(relay)
        task = await client.call(READ, v1.GetTaskRequest(id=relay.task_id, tenant=tenant), extensions=(), **told)
        await self._tell(relay, v1.StreamResponse(task=task))

    async def _tell(self, relay: Relay, event: v1.StreamResponse) -> None:
        """Tell an event; of a whole task, what was not told before."""
        kind = event.WhichOneof("payload")
        if kind == "task" and event.task.id == relay.task_id:
            told, status = Told(), event.task.status
            told.take(v1.StreamResponse(task=await relay.known()), whole=True)
            news = told.news(event.task)
            if status.state in TERMINAL and not any(each.HasField("status_update") for each in news):
                about: dict[str, Any] = {"task_id": relay.task_id, "context_id": relay.context_id}
                news.append(v1.StreamResponse(status_update=v1.TaskStatusUpdateEvent(**about, status=status)))
            for each in news:
                await relay.tell(each)
        elif kind in ("status_update", "artifact_update") and getattr(event, kind).task_id == relay.task_id:
            await relay.tell(event)


class _Chained:
    """An event, and the stream that it was taken from."""

    def __init__(self, first: v1.StreamResponse, rest: Source) -> None:
        self._first, self._rest = first, rest
        self.aclose = rest.aclose

    async def __aiter__(self) -> Source:
        yield self._first
        async for event in self._rest:
            yield event


@dataclass(slots=True)
class _Place:
    """How far a task was followed. seen: number of the last event here when there was news; last: of the last event of
    the upstream, "" if it has none."""

    seen: int
    last: str = ""
