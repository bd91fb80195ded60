"""The door of protocol v0.3: its requests as v1.0 messages, v1.0 answers in its shapes, and both the other way round.

Laws: below this door there is only v1.0, and outside the v03 modules nobody knows a v0.3 field. Three dialects exist:
v0.3 JSON (`J03`), the v0.3 proto (`P03`, as messages or as their ProtoJSON), and v1.0. An operation is named by its
v1.0 name and understood by its request type; names of v0.3 are in v03_names alone. Nothing here does I/O.

Scheme lists (L-04): v1.0 keeps one authentication scheme of a push config. The whole list leaves upwards in the
request metadata under `PUSH_EXTRAS`, whoever stores the config keeps it, and answers get it back as `schemes`, a
mapping (task id, config id) -> list.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from a2a_stubs import google, v03, v03_grpc, v1
from google.protobuf.message import Message

from a2a_grpc.call import PUSH_EXTRAS
from a2a_grpc.protojson import decode, decode_query, encode
from a2a_grpc.v03_errors import as_v03, down_error, grpc_text, rest_error
from a2a_grpc.v03_json import Json, object_of, wrong
from a2a_grpc.v03_names import BY_METHOD
from a2a_grpc.v03_params import PUSH_ALWAYS, down_params, down_request, extras_of, up_params
from a2a_grpc.v03_proto import How, down, up
from a2a_grpc.v03_results import (
    J03,
    P03,
    Schemes,
    StreamDown,
    down_event,
    down_message,
    down_result,
    up_event,
    up_result,
)
from a2a_grpc.v03_write import as_proto_json

__all__ = [
    "J03",
    "P03",
    "Schemes",
    "StreamDown",
    "Up",
    "as_v03",
    "down_error",
    "down_event",
    "down_message",
    "down_params",
    "down_request",
    "down_rest",
    "down_result",
    "grpc_text",
    "rest_error",
    "up_event",
    "up_message",
    "up_params",
    "up_rest",
    "up_result",
]

_REQUESTS: Final[Mapping[str, type[Message]]] = {BY_METHOD[row.name]: row.input for row in v03_grpc.METHODS}


class Up(NamedTuple):
    """A v0.3 request: the v1.0 message, the metadata that has no place in it (L-14, `PUSH_EXTRAS`), the dialect that
    the answer is to have (I-42)."""

    request: Any
    metadata: dict[str, Any]
    dialect: str = J03


def up_message(message: Message, base64_bytes: bool | None = None) -> tuple[Any, dict[str, Any]]:
    """The v1.0 request of a v0.3 request message, and the request metadata without a place in it (L-04).

    base64_bytes: file bytes that are strict base64 text are decoded, unless False (some peers write them so).
    Raises InvalidParamsError with v0.3 paths.
    """
    return up(message, How(base64_bytes)), extras_of(message)


# -- REST


def up_rest(
    operation: str,
    variables: Mapping[str, str],
    pairs: Iterable[tuple[str, str]],
    body: Any | None,
    base64_bytes: bool | None = None,
) -> Up:
    """The v1.0 request of a v0.3 REST call.

    variables: what the route template matched (`name` or `parent`); pairs: decoded query parameters; body: the loaded
    JSON value, None for none. Bodies are read as ProtoJSON of the v0.3 proto and as v0.3 JSON; ProtoJSON is also the
    answer's dialect where nothing tells (V03-21, I-42). base64_bytes as in `up_message`.
    Raises InvalidParamsError, also when path and body name different resources (part 7).
    """
    cls = _REQUESTS[operation]
    body = object_of({} if body is None else body, "body")
    if cls is v03.SendMessageRequest:
        return _rest_send(operation, body, How(base64_bytes))
    value = decode_query(cls, pairs)
    for name, text in variables.items():
        _agree(_canonical(text), value.get(name), name)
        value[name] = _canonical(text)
    if cls is v03.CreateTaskPushNotificationConfigRequest:
        value, dialect = _rest_set(value, body)
        request = decode(cls, value)
        return Up(up(request), extras_of(request), dialect)
    made = up(decode(cls, value))
    if not body or "id" not in made.DESCRIPTOR.fields_by_name:
        return Up(made, {}, P03)
    _agree(value.get("name"), body.get("name"), "name")
    _agree(made.id, body.get("id"), "id")
    metadata = body.get("metadata")
    metadata = {} if metadata is None else object_of(metadata, "metadata")
    if metadata and "metadata" in made.DESCRIPTOR.fields_by_name:
        made.metadata.CopyFrom(decode(google.Struct, metadata, "metadata"))
        metadata = {}
    return Up(made, {key: value for key, value in metadata.items() if key != PUSH_EXTRAS}, P03)


def _rest_send(operation: str, body: Json, how: How) -> Up:
    message = body.get("message") if body.get("message") is not None else body.get("request")
    if isinstance(message, dict) and _is_json(message):
        return Up(*up_params(operation, {**body, "message": message}), J03)
    request = decode(v03.SendMessageRequest, body)
    return Up(up(request, how), extras_of(request), P03)


def _is_json(message: Json) -> bool:
    """Whether a message is v0.3 JSON rather than ProtoJSON of the v0.3 proto (I-42)."""
    if "content" in message:
        return False
    return "kind" in message or "parts" in message or message.get("role") in ("user", "agent")


def _rest_set(value: Json, body: Json) -> tuple[Json, str]:
    """The request message, as JSON, of each form a body may have: whole request, its config, or the bare webhook."""
    _agree(value.get("parent"), body.get("parent"), "parent")
    config_id = body.get("configId", body.get("config_id", value.get("configId")))
    config = object_of(body.get("config", body), "config")
    webhook = config.get("pushNotificationConfig", config.get("push_notification_config"))
    if webhook is None and config.get("url") is not None:
        webhook, config = config, {}
    task_id = config.get("taskId", config.get("task_id"))
    if task_id is not None:
        _agree(value.get("parent"), f"tasks/{task_id}", "config.taskId")
    inner = {"name": config.get("name"), "pushNotificationConfig": webhook}
    made = {"parent": value.get("parent"), "configId": config_id, "config": inner}
    return made, P03 if task_id is None else J03


def _canonical(name: str) -> str:
    """The resource name in a path; the v0.3 proto misspells one of its routes (I-44)."""
    name = name.removesuffix("/pushNotificationConfigs") if name.count("/") == 2 else name
    return f"tasks/{name[5:]}" if name.startswith("task/") else name


def _agree(path: str | None, body: Any, field: str) -> None:
    if body not in (None, "", path):
        raise wrong(field, "must agree with the path")


def down_rest(
    message: Message,
    dialect: str = P03,
    *,
    base64_bytes: bool = False,
    schemes: Schemes | None = None,
    reads: bool = False,
) -> Any:
    """A v1.0 answer as the JSON value of a v0.3 REST body, in the request's dialect.

    Cards are always v0.3 JSON and a delete is `{}`, as deployed servers answer. ProtoJSON answers hold nothing that
    the v0.3 proto does not have. base64_bytes as in `down_message`, for ProtoJSON only; reads, errors as in
    `down_result`.
    """
    if isinstance(message, google.Empty):
        return {}
    if isinstance(message, v1.AgentCard) or dialect == J03:
        result = down_result(message, schemes, reads)
        return {str(message.WhichOneof("payload")): result} if isinstance(message, v1.SendMessageResponse) else result
    if isinstance(message, v1.Task | v1.SendMessageResponse):
        return as_proto_json(message, base64_bytes, reads)
    return encode(down(message, How(base64_bytes, schemes or {})), PUSH_ALWAYS)
