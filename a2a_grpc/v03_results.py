"""v1.0 answers and stream events in the shapes of v0.3, and back.

Laws: an answer is understood by its type. `StreamDown` alone knows what `final` means; upwards it is dropped, for a
stream ends when its server closes it.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

from a2a_stubs import google, v03, v03_grpc, v1, v1_grpc
from google.protobuf.message import Message

from a2a_grpc import v03_json
from a2a_grpc.errors import (
    ContentTypeNotSupportedError,
    InvalidAgentResponseError,
    InvalidParamsError,
    VersionNotSupportedError,
)
from a2a_grpc.protojson import decode, encode
from a2a_grpc.ready import Kept
from a2a_grpc.v03_cards import card_down, card_message, card_up
from a2a_grpc.v03_json import Json, kind_of, list_of, object_of
from a2a_grpc.v03_names import BY_METHOD
from a2a_grpc.v03_params import REQUESTS, config_down, config_up
from a2a_grpc.v03_proto import How, down, up
from a2a_grpc.v03_write import as_json, as_proto_json, end

J03: Final = "J03"
"""Dialect: v0.3 JSON, with `kind`."""
P03: Final = "P03"
"""Dialect: the v0.3 proto."""

Schemes = Mapping[tuple[str, str], Sequence[str]]
"""Scheme lists of push configs by (task id, config id) (L-04)."""

_ANSWERS: Final[Mapping[str, type[Message]]] = {row.name: row.output for row in v1_grpc.METHODS}
_OLD_ANSWERS: Final[Mapping[str, type[Message]]] = {BY_METHOD[row.name]: row.output for row in v03_grpc.METHODS}
_Card = TypeVar("_Card")
_TERMINAL: Final = frozenset(
    (v1.TASK_STATE_COMPLETED, v1.TASK_STATE_FAILED, v1.TASK_STATE_CANCELED, v1.TASK_STATE_REJECTED)
)


def down_result(message: Message, schemes: Schemes | None = None, reads: bool = False) -> Any:
    """A v1.0 answer as a v0.3 JSON-RPC result: bare Task or Message, array of configs, None for a delete, card.

    schemes: scheme lists of the push configs in it (L-04). reads: see `as_json`, default False. Raises
    VersionNotSupportedError for a card that has no v0.3 form, and InternalError or InvalidAgentResponseError for what
    an agent must not produce (L-12).
    """
    if isinstance(message, v1.Task):
        return as_json(message, reads)
    if isinstance(message, v1.SendMessageResponse):
        return as_json(getattr(message, str(message.WhichOneof("payload"))))
    return _RESULTS[type(message)](message, How(schemes=schemes or {}))


def _spoken(card: _Card | None) -> _Card:
    if card is None:
        raise VersionNotSupportedError("The agent has no interface of version 0.3")
    return card


_RESULTS: Final[Mapping[type[Message], Callable[[Any, How], Any]]] = {
    v1.TaskPushNotificationConfig: config_down,
    v1.ListTaskPushNotificationConfigsResponse: lambda found, how: [config_down(one, how) for one in found.configs],
    google.Empty: lambda nothing, how: None,
    v1.AgentCard: lambda card, how: _spoken(card_down(card)),
}


def down_message(
    message: Message, base64_bytes: bool = False, schemes: Schemes | None = None, reads: bool = False
) -> Any:
    """The v0.3 message of a v1.0 answer; base64_bytes: write file bytes as base64 text, default raw. reads: the
    operation only reads, and tasks are kept for whoever reads the same again, default False.

    Raises as `down_result`. For streams use `StreamDown`, which alone knows `final`.
    """
    if reads and isinstance(message, v1.Task):
        return _read_again(message, base64_bytes)
    if isinstance(message, v1.AgentCard):
        return _spoken(card_message(message))
    return down(message, How(base64_bytes, schemes or {}))


def _read_again(task: v1.Task, base64_bytes: bool) -> v03.Task:
    body, known = task.SerializeToString(), _KEPT[base64_bytes]
    found = known.find(body)
    if found is not None:
        return v03.Task.FromString(found)
    made: v03.Task = down(task, How(base64_bytes))
    found = made.SerializeToString()
    known.keep(body, found, len(found))
    return made


_KEPT: Final[Mapping[bool, Kept[bytes]]] = {False: Kept(), True: Kept()}
"""Tasks of the v0.3 proto by what they were made of, with file bytes as they are or as base64 text."""


class StreamDown:
    """Turns the events of one v1.0 stream into v0.3 ones, with `final` (V03-06, V03-07, part 6).

    operation: which one streams; dialect: `J03` or `P03`. closes_on_input: whether a sending stream closes on
    INPUT_REQUIRED, default True; one that follows a task never does. rest: give JSON values as REST sends them,
    instead of JSON-RPC results or messages. base64_bytes as in `down_message`.
    `final` is true on a terminal state, and on INPUT_REQUIRED where the stream closes there; so not on AUTH_REQUIRED.
    A stream that ends in order without such an event is given one by `finish` (L-31), unless it was a direct message,
    or followed a task that was terminal already (V03-29). After an error `finish` is not called.
    """

    def __init__(
        self,
        operation: str,
        dialect: str = J03,
        closes_on_input: bool = True,
        *,
        rest: bool = False,
        base64_bytes: bool = False,
    ) -> None:
        sends = REQUESTS[operation] is v1.SendMessageRequest
        self._final_states = _TERMINAL | {v1.TASK_STATE_INPUT_REQUIRED} if sends and closes_on_input else _TERMINAL
        self._sends = sends
        self._dialect = dialect
        self._rest = rest
        self._how = How(base64_bytes)
        self._last: tuple[str, str, v1.TaskStatus] | None = None
        self._closed = False

    def event(self, event: v1.StreamResponse) -> list[Any]:
        """What to send for one v1.0 event. Raises InternalError or InvalidAgentResponseError for what an agent must
        not produce (L-12)."""
        kind = event.WhichOneof("payload")
        final = False
        if kind == "status_update":
            update = event.status_update
            final = self._closed = update.status.state in self._final_states
            self._last = update.task_id, update.context_id, update.status
        elif kind == "task":
            task = event.task
            self._closed = not self._sends and self._last is None and task.status.state in _TERMINAL
            self._last = task.id, task.context_id or task.id, task.status
        return [self._shape(str(kind), event, final)]

    def finish(self) -> list[Any]:
        """What to send at the regular end of the stream: nothing, or the closing status event."""
        if self._last is None or self._closed:
            return []
        self._closed = True
        task_id, context_id, status = self._last
        update = v1.TaskStatusUpdateEvent(task_id=task_id, context_id=context_id, status=status)
        return [self._shape("status_update", v1.StreamResponse(status_update=update), True)]

    def _shape(self, kind: str, event: v1.StreamResponse, final: bool) -> Any:
        if self._dialect == P03:
            if self._rest:
                shown = as_proto_json(event, bool(self._how.base64_bytes))
                return end(shown) if final else shown
            made = down(event, self._how)
            if final:
                made.status_update.final = True
            return made
        value = as_json(getattr(event, kind))
        if final:
            value["final"] = True
        return {_MEMBERS[kind]: value} if self._rest else value


def down_event(event: v1.StreamResponse) -> Json:
    """One v1.0 event as a bare v0.3 object outside of any stream, with `final` on a state that ends its task (I-50)."""
    kind = str(event.WhichOneof("payload"))
    value: Json = as_json(getattr(event, kind))
    if kind == "status_update":
        value["final"] = event.status_update.status.state in _TERMINAL
    return value


_MEMBERS: Final[Mapping[str, str]] = {field.name: field.json_name for field in v1.StreamResponse.DESCRIPTOR.fields}


def up_result(operation: str, value: Any) -> Any:
    """The v1.0 answer of a v0.3 one: a JSON-RPC result, a REST body in either dialect, or a message.

    Raises InvalidAgentResponseError for an answer that is none.
    """
    try:
        return _message_up(value) if isinstance(value, Message) else _result_up(operation, value)
    except (InvalidParamsError, ContentTypeNotSupportedError) as error:
        raise InvalidAgentResponseError(violations=error.violations) from None


def _message_up(message: Message) -> Any:
    return card_up(encode(message)) if isinstance(message, v03.AgentCard) else up(message)


def _result_up(operation: str, value: Any) -> Any:
    answer = _ANSWERS[operation]
    if answer is google.Empty:
        return google.Empty()
    if answer is v1.AgentCard:
        return card_up(value)
    if answer is v1.SendMessageResponse:
        return decode(answer, _event_up(object_of(value, "result")))
    if answer is v1.ListTaskPushNotificationConfigsResponse:
        found = value if isinstance(value, list) else object_of(value, "result").get("configs")
        configs = [_config_up(one) for one in list_of(found, "configs")]
        token = "" if isinstance(value, list) else value.get("nextPageToken") or ""
        return v1.ListTaskPushNotificationConfigsResponse(configs=configs, next_page_token=token)
    if answer is v1.TaskPushNotificationConfig:
        return _config_up(object_of(value, "result"))
    if _is_old_json(object_of(value, "result")):
        return decode(answer, v03_json.task_up(value))
    return up(decode(_OLD_ANSWERS[operation], value))


def _config_up(value: Any) -> v1.TaskPushNotificationConfig:
    if "taskId" in object_of(value, "config"):
        return config_up(value)[0]
    made: v1.TaskPushNotificationConfig = up(decode(v03.TaskPushNotificationConfig, value))
    return made


def up_event(value: Any, context_id: str = "") -> v1.StreamResponse:
    """The v1.0 event of a v0.3 one: a JSON-RPC result, a REST event in either dialect, or a message.

    context_id: fills an event of an old server that leaves its own out (L-17). Raises InvalidAgentResponseError.
    """
    try:
        if isinstance(value, Message):
            made: v1.StreamResponse = up(value)
        else:
            made = decode(v1.StreamResponse, _event_up(object_of(value, "result")))
    except (InvalidParamsError, ContentTypeNotSupportedError) as error:
        raise InvalidAgentResponseError(violations=error.violations) from None
    payload = getattr(made, made.WhichOneof("payload") or "message")
    if made.HasField("status_update") or made.HasField("artifact_update"):
        payload.context_id = payload.context_id or context_id
    return made


def _event_up(value: Json) -> Json:
    """A v0.3 JSON object, bare or wrapped, or ProtoJSON of the v0.3 proto, as v1.0 JSON of a stream response."""
    member = next((name for name in _MEMBERS.values() if isinstance(value.get(name), dict)), None)
    if "kind" not in value and member is not None:
        if not _is_old_json(value[member]):
            wrapped: Json = encode(up(decode(v03.StreamResponse, value)))
            return wrapped
        value = {**value[member], "kind": _KINDS[member]}
    member, translate = v03_json.PAYLOADS_UP[kind_of(value)]
    return {member: translate(value)}


_KINDS: Final[Mapping[str, str]] = {member: kind for kind, (member, _) in v03_json.PAYLOADS_UP.items()}


def _is_old_json(value: Json) -> bool:
    """Whether a task, message or event is v0.3 JSON, going by `kind` or by the spelling of its state or role."""
    status = value.get("status")
    told = (status.get("state") if isinstance(status, dict) else None) or value.get("role") or ""
    return "kind" in value or (isinstance(told, str) and told != "" and told == told.lower())
