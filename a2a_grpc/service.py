"""What the eleven operations mean: the one service object behind every wire and version.

Laws: an operation is said here and nowhere else; a v1.0 message and a `Call` come in, v1.0 messages go out, every
failure is an error of errors.py. It knows no transport, no JSON and no v0.3 shape; `call.version` only picks between
semantics where the versions differ (V03-29, L-20). Order of the checks: extensions, capability, required fields,
limits, then the tenant and the task (ERR-06, ERR-12, AUTH-05).
"""

import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from functools import lru_cache, partial
from typing import Any, Final

from a2a_stubs import google, v1, v1_grpc
from google.protobuf.message import Message

from a2a_grpc import content, paging
from a2a_grpc.agent import Agent
from a2a_grpc.call import RESUME_EXTENSION, V03, Call
from a2a_grpc.config import Options
from a2a_grpc.errors import (
    ExtendedAgentCardNotConfiguredError,
    ExtensionSupportRequiredError,
    InvalidParamsError,
    NotFoundError,
    PushNotificationNotSupportedError,
    TaskNotFoundError,
    UnauthenticatedError,
    UnsupportedOperationError,
)
from a2a_grpc.methods import missing
from a2a_grpc.protojson import MAX_DEPTH, unfit
from a2a_grpc.ready import Ready, Stored
from a2a_grpc.tasks.engine import Engine
from a2a_grpc.tasks.feed import Hold
from a2a_grpc.tasks.listing import cut
from a2a_grpc.tasks.run import Started
from a2a_grpc.tasks.state import STATUS_UPDATE, TERMINAL, state_after
from a2a_grpc.tasks.store import PushConfig, Scope, TaskQuery

_EVERY: Final = 1_000_000
"""More push configs than a task can have."""

_ASKS: Final = v1.TASK_STATE_INPUT_REQUIRED

ENDED: Final = "The task is terminal; there is nothing to subscribe to"
"""Why a task that has ended takes no subscriber in v1.0 (SUB-04)."""

ExtendedCard = Callable[[Call], Awaitable[v1.AgentCard | None]]

Owner = Callable[[Call], str]
"""Whose tasks a call is about."""


def subject(call: Call) -> str:
    """The owner by default: the caller's subject (AUTH-04)."""
    return call.caller.subject


class A2AService(v1_grpc.A2AServiceServicer):
    """The service of one agent.

    name: the agent's name in this server, part of every store scope. engine: runs and keeps its tasks.
    extended_card: gives the caller's extended card, None when there is none. owner: whose tasks a call is about.
    Each method takes the v1.0 request and the `Call`, and raises A2AError only.
    """

    def __init__(
        self,
        name: str,
        agent: Agent,
        engine: Engine,
        options: Options,
        extended_card: ExtendedCard,
        owner: Owner = subject,
    ) -> None:
        self._name = name
        self._agent = agent
        self._engine = engine
        self._options = options
        self._extended_card = extended_card
        self._owner = owner
        self._scopes: Callable[[str, str], Scope] = lru_cache(maxsize=1024)(partial(Scope, name))  # tasks share them
        self._content = content.Rules(agent, options)
        self._extensions = frozenset([*(extension.uri for extension in agent.extensions), RESUME_EXTENSION])
        self._required = frozenset(extension.uri for extension in agent.extensions if extension.required)

    # -- messages

    async def SendMessage(self, request: v1.SendMessageRequest, call: Call) -> v1.SendMessageResponse:
        """Send and wait for the end of the turn, or only for the task with `returnImmediately` (OP-SEND-*)."""
        scope, started = await self._begin(request, call)
        outcome = await started.outcome()
        answer, history, now = v1.SendMessageResponse(), self._options.default_history, False
        if isinstance(outcome, v1.Message):
            answer.message.CopyFrom(outcome)
            return answer
        if request.HasField("configuration"):
            history, now = self._history(request.configuration), request.configuration.return_immediately
        task = answer.task
        if now:
            await self._engine.view(scope, outcome, task, history=history > 0)
        else:
            await self._engine.settled(scope, outcome, started.turn, task, history=history > 0)
        cut(task, history)
        return answer

    async def SendStreamingMessage(self, request: v1.SendMessageRequest, call: Call) -> AsyncIterator[Any]:
        """Send and follow the turn to its end (OP-STREAM-*); closes on INPUT_REQUIRED, not on AUTH_REQUIRED (I-06). An
        `Event` for what follows the task, to callers that take one."""
        self._need_streaming()
        with self._engine.feeds.ahead() as hold:
            scope, started = await self._begin(request, call, hold)
            outcome = await started.outcome()
            if isinstance(outcome, v1.Message):
                yield v1.StreamResponse(message=outcome)
                return
            first = started.opening or await self._engine.view(scope, outcome)
            yield self._numbered(
                first.sequence, v1.StreamResponse(task=self._trimmed(first.task, request.configuration)), call
            )
            state = first.task.status.state
            if state in TERMINAL or (state == v1.TASK_STATE_INPUT_REQUIRED and self._options.close_on_input_required):
                return
            batches = self._engine.batches(scope, outcome, first.sequence)
            del first, started, request  # which are not held while the reader waits
            closes = self._options.close_on_input_required
            ready = call.takes_ready and RESUME_EXTENSION not in call.activated
            try:
                async for events in batches:
                    for event in events:
                        call.position = event.sequence
                        yield event if ready else self._numbered(event.sequence, event.payload, call)
                        if closes and event.body[:1] == STATUS_UPDATE and state_after(event) == _ASKS:
                            return
            finally:
                await batches.aclose()

    # -- tasks

    async def GetTask(self, request: v1.GetTaskRequest, call: Call) -> v1.Task:
        """The task as it is now (OP-GET-*, HIST-*); a `Stored` for callers that take one."""
        self._enter(request, call)
        content.check_history(request)
        found: Any = await self._engine.answer(self._scope(call), request.id, self._history(request))
        answer: v1.Task = found if call.takes_ready or type(found) is not Stored else found.message()
        return answer

    async def ListTasks(self, request: v1.ListTasksRequest, call: Call) -> v1.ListTasksResponse:
        """A page of the caller's tasks, newest status first (LIST-*); a `Ready` for callers that take one."""
        self._enter(request, call)
        size = paging.list_size(request)
        content.check_history(request)
        scope = self._scope(call, NotFoundError)
        filters = (request.context_id, request.status, paging.list_since(request))
        before = paging.read_place(request.page_token, scope, filters)
        query = TaskQuery(*filters, before=before, limit=size, artifacts=request.include_artifacts)
        found = await self._engine.list(scope, query, self._history(request))
        token = paging.write_place(found.last, scope, filters) if found.more and found.last else ""
        rest = v1.ListTasksResponse(page_size=size, total_size=found.total, next_page_token=token)
        ready: Any = Ready(v1.ListTasksResponse, "tasks", found.entries, rest)
        answer: v1.ListTasksResponse = ready if call.takes_ready else ready.message()
        return answer

    async def CancelTask(self, request: v1.CancelTaskRequest, call: Call) -> v1.Task:
        """Stop the task's turn and settle it (OP-CANCEL-*)."""
        self._enter(request, call)
        task = await self._engine.cancel(self._scope(call), request.id, request)
        return self._trimmed(task, None)

    async def SubscribeToTask(self, request: v1.SubscribeToTaskRequest, call: Call) -> AsyncIterator[Any]:
        """Snapshot, then everything after it until the task is terminal (SUB-*); or everything after `call.resume`. An
        `Event` for what follows the snapshot, to callers that take one."""
        self._enter(request, call)
        self._need_streaming()
        scope = self._scope(call)
        view = await self._engine.view(scope, request.id)
        after, ended = view.sequence, view.task.status.state in TERMINAL
        if call.resume is not None and call.resume > view.sequence:  # or others know more than a turn here
            _, reached = (await self._engine.store.places([request.id])).get(request.id, (None, 0))
            if call.resume > reached:
                text = f"the task has only reached event {view.sequence}"
                raise InvalidParamsError(violations=[("Last-Event-ID", text)])
        if call.resume is not None and (call.resume < after or not ended):
            after = call.resume  # the reader has the task as it was then: it gets events, and none twice
        elif ended and call.version != V03:
            raise UnsupportedOperationError(ENDED)
        else:
            yield self._numbered(view.sequence, v1.StreamResponse(task=self._trimmed(view.task, None)), call)
            if ended:
                return
        batches = self._engine.batches(scope, request.id, after)
        del view, request  # which are not held while the reader waits
        ready = call.takes_ready and RESUME_EXTENSION not in call.activated
        try:
            async for events in batches:
                for event in events:
                    call.position = event.sequence
                    yield event if ready else self._numbered(event.sequence, event.payload, call)
        finally:
            await batches.aclose()

    # -- push notification configs

    async def CreateTaskPushNotificationConfig(
        self, request: v1.TaskPushNotificationConfig, call: Call
    ) -> v1.TaskPushNotificationConfig:
        """Keep a config, under a new id when it has none (PUSH-02, PUSH-30; L-20 for v0.3)."""
        self._enter(request, call, push=True)
        if not request.task_id:
            raise InvalidParamsError(violations=[("taskId", "is required")])
        self._content.check_webhook(request)
        scope = self._scope(call)
        stored = v1.TaskPushNotificationConfig()
        stored.CopyFrom(request)
        stored.ClearField("tenant")
        stored.id = request.id or (request.task_id if call.version == V03 else str(uuid.uuid4()))
        config = content.push_config(stored, call, self._engine.push.seal)
        if not await self._engine.push.put(scope, config):
            raise TaskNotFoundError
        return self._shown(config, call)

    async def GetTaskPushNotificationConfig(
        self, request: v1.GetTaskPushNotificationConfigRequest, call: Call
    ) -> v1.TaskPushNotificationConfig:
        """One config; a missing one is TaskNotFound (PUSH-04, I-16). v0.3 may leave the id out (I-56)."""
        optional = ("id",) if call.version == V03 else ()
        self._enter(request, call, push=True, optional=optional)
        scope = self._scope(call)
        store = self._engine.store
        if request.id:
            config = await store.push_config(scope, request.task_id, request.id)
        else:
            configs = await store.push_configs(scope, request.task_id, "", _EVERY) or []
            config = next((entry for entry in configs if entry.config_id == request.task_id), None)
            config = config or (configs[-1] if configs else None)
        if config is None:
            metadata = {"taskId": request.task_id, "configId": request.id}
            raise TaskNotFoundError(metadata={key: value for key, value in metadata.items() if value})
        return self._shown(config, call)

    async def ListTaskPushNotificationConfigs(
        self, request: v1.ListTaskPushNotificationConfigsRequest, call: Call
    ) -> v1.ListTaskPushNotificationConfigsResponse:
        """The configs of a task, all at once unless a page size is asked for (PUSH-05, I-20)."""
        self._enter(request, call, push=True)
        if request.page_size < 0:
            raise InvalidParamsError(violations=[("pageSize", "must not be negative")])
        scope = self._scope(call)
        after = paging.read_name(request.page_token, scope, (request.task_id,))
        size = request.page_size or _EVERY
        found = await self._engine.store.push_configs(scope, request.task_id, after, size + 1)
        if found is None:
            raise TaskNotFoundError
        token = paging.write_name(found[size - 1].config_id, scope, (request.task_id,)) if len(found) > size else ""
        return v1.ListTaskPushNotificationConfigsResponse(
            configs=[self._shown(config, call) for config in found[:size]], next_page_token=token
        )

    async def DeleteTaskPushNotificationConfig(
        self, request: v1.DeleteTaskPushNotificationConfigRequest, call: Call
    ) -> google.Empty:
        """Remove a config for good; a missing one is no error (PUSH-06, I-17)."""
        self._enter(request, call, push=True)
        if not await self._engine.push.drop(self._scope(call), request.task_id, request.id):
            raise TaskNotFoundError
        return google.Empty()

    # -- card

    async def GetExtendedAgentCard(self, request: v1.GetExtendedAgentCardRequest, call: Call) -> v1.AgentCard:
        """The card for authenticated callers (CARD-22, CARD-23, ERR-14); no extension is needed (I-65)."""
        self._activate(call)
        if self._agent.extended_card is None:
            raise UnsupportedOperationError("The agent has no extended card")
        self._scope(call, NotFoundError)
        if not call.caller.authenticated:
            raise UnauthenticatedError
        card = await self._extended_card(call)
        if card is None:
            raise ExtendedAgentCardNotConfiguredError
        return card

    # -- what they share

    def _enter(self, request: Message, call: Call, *, push: bool = False, optional: Iterable[str] = ()) -> None:
        """The checks that need no task: extensions, push capability, required fields, depth."""
        if self._required and (absent := self._required.difference(call.extensions)):
            metadata = {"extensions": ", ".join(sorted(absent))}
            raise ExtensionSupportRequiredError(f"Required extensions: {metadata['extensions']}", metadata=metadata)
        self._activate(call)
        if push and not self._options.push_notifications:
            raise PushNotificationNotSupportedError
        lacking = missing(request)
        if lacking and (violations := [found for found in lacking if found.field not in optional]):
            raise InvalidParamsError(violations=violations)
        # The bindings hold the usual limit already.
        depth = self._options.max_depth
        if depth < MAX_DEPTH and (violations := unfit(request, depth=depth)):
            raise InvalidParamsError(violations=violations)

    def _activate(self, call: Call) -> None:
        asked = call.extensions
        call.activated = tuple([uri for uri in asked if uri in self._extensions]) if asked else ()

    def _need_streaming(self) -> None:
        if not self._agent.streaming:
            raise UnsupportedOperationError("The agent does not stream")

    def _scope(self, call: Call, unknown: type[TaskNotFoundError] | type[NotFoundError] = TaskNotFoundError) -> Scope:
        """Whose data the call is about. A tenant that is not served looks like a foreign resource (TENANT-06)."""
        if call.tenant and call.tenant not in self._agent.tenants:
            raise unknown
        return self._scopes(call.tenant, self._owner(call))

    async def _begin(
        self, request: v1.SendMessageRequest, call: Call, hold: Hold | None = None
    ) -> tuple[Scope, Started]:
        self._enter(request, call)
        self._content.check(request)
        known = TaskNotFoundError if request.message.task_id else NotFoundError
        scope = self._scope(call, known)
        return scope, await self._engine.begin(call, scope, request, hold)

    def _numbered(self, sequence: int, payload: v1.StreamResponse, call: Call) -> v1.StreamResponse:
        """Tell the binding the event's number, and the reader too if it activated the resume extension."""
        call.position = sequence
        if RESUME_EXTENSION not in call.activated:
            return payload
        shown = v1.StreamResponse()
        shown.CopyFrom(payload)
        body = getattr(shown, str(shown.WhichOneof("payload")))
        body.metadata.fields[RESUME_EXTENSION].struct_value.fields["sequence"].number_value = sequence
        return shown

    def _history(self, asked: v1.SendMessageConfiguration | v1.GetTaskRequest | v1.ListTasksRequest) -> int:
        """How much of the history is wanted: unset is the server's default, 0 is none (HIST-01 to HIST-05)."""
        return asked.history_length if asked.HasField("history_length") else self._options.default_history

    def _trimmed(self, task: v1.Task, asked: v1.SendMessageConfiguration | v1.GetTaskRequest | None) -> v1.Task:
        """Limit the history of an answer."""
        return cut(task, self._options.default_history if asked is None else self._history(asked))

    def _shown(self, config: PushConfig, call: Call) -> v1.TaskPushNotificationConfig:
        return content.shown_push_config(
            config, call, self._engine.push.seal, redact=self._options.redact_push_credentials
        )
