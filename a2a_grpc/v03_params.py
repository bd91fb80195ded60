"""v0.3 JSON-RPC params to and from v1.0 request messages.

Laws: an operation is understood by its v1.0 request type. Wrong params are refused with paths in v0.3 names. Scheme
lists of push configs leave upwards beside the message, under `PUSH_EXTRAS` (L-04).
"""

from collections.abc import Mapping
from typing import Any, Final

from a2a_stubs import v03, v1, v1_grpc
from google.protobuf.message import Message

from a2a_grpc.call import PUSH_EXTRAS
from a2a_grpc.errors import InvalidParamsError
from a2a_grpc.protojson import decode, encode
from a2a_grpc.v03_json import Json, message_up, object_of, old_path, wrong
from a2a_grpc.v03_proto import HOW, How, create_down, down, push_up, schemes_of
from a2a_grpc.v03_write import as_json

REQUESTS: Final[Mapping[str, type[Message]]] = {row.name: row.input for row in v1_grpc.METHODS}
"""The v1.0 request type of an operation."""

PUSH_ALWAYS: Final = frozenset(("a2a.v1.PushNotificationConfig.url", "a2a.v1.AuthenticationInfo.schemes"))
"""Members of a push config that v0.3 requires, by full name."""

PARAMS: Final[Mapping[type[Message], tuple[tuple[str, str], ...]]] = {
    v1.GetTaskRequest: (("id", "id"), ("historyLength", "historyLength")),
    v1.CancelTaskRequest: (("id", "id"), ("metadata", "metadata")),
    v1.SubscribeToTaskRequest: (("id", "id"),),
    v1.GetTaskPushNotificationConfigRequest: (("id", "taskId"), ("pushNotificationConfigId", "id")),
    v1.DeleteTaskPushNotificationConfigRequest: (("id", "taskId"), ("pushNotificationConfigId", "id")),
    v1.ListTaskPushNotificationConfigsRequest: (("id", "taskId"),),
    v1.GetExtendedAgentCardRequest: (),
}
"""v0.3 JSON params of the plain operations: (v0.3 member, v1.0 member), the first one required (part 7). The `id` of
a push operation is the task's in v0.3 and the config's in v1.0 (V03-10)."""


def up_params(operation: str, params: Any) -> tuple[Any, dict[str, Any]]:
    """The v1.0 request of some v0.3 JSON-RPC params, and the request metadata without a place in it (L-14).

    params: the loaded JSON value, None for none. Raises InvalidParamsError with paths in v0.3 names, and
    ContentTypeNotSupportedError for an unknown kind of part (L-33).
    """
    params = object_of({} if params is None else params, "params")
    request = REQUESTS[operation]
    if request is v1.SendMessageRequest:
        return _send_up(params)
    metadata = params.get("metadata")
    extra = {} if metadata is None else dict(object_of(metadata, "metadata"))
    extra.pop(PUSH_EXTRAS, None)
    if request is v1.TaskPushNotificationConfig:
        made, found = config_up(params)
        return made, extra | found
    members = PARAMS[request]
    value = {new: params[old] for old, new in members if params.get(old) is not None}
    for old, new in members:
        if new in value and old.lower().endswith("id") and not isinstance(value[new], str):
            raise wrong(old, "must be a string")
    if members and not value.get(members[0][1]):
        raise wrong(members[0][0], "is required")
    return decode(request, value), {} if "metadata" in value else extra


def _send_up(params: Json) -> tuple[v1.SendMessageRequest, dict[str, Any]]:
    if params.get("message") is None:
        raise wrong("message", "is required")
    value = {"message": message_up(params["message"], "message"), "metadata": params.get("metadata")}
    given = params.get("configuration")
    if given is None:
        return _decode_up(v1.SendMessageRequest, value), {}
    blocking = object_of(given, "configuration").get("blocking")
    if not (blocking is None or isinstance(blocking, bool)):
        raise wrong("configuration.blocking", "must be true or false")
    value["configuration"] = {
        "acceptedOutputModes": given.get("acceptedOutputModes"),
        "historyLength": given.get("historyLength"),
        "returnImmediately": blocking is False,
    }
    request = _decode_up(v1.SendMessageRequest, value)
    if given.get("pushNotificationConfig") is None:
        return request, {}
    path = "configuration.pushNotificationConfig"
    config = decode(v03.PushNotificationConfig, given["pushNotificationConfig"], path)
    push_up(config, request.configuration.task_push_notification_config, path)
    return request, extras_of(config)


def config_up(params: Json) -> tuple[v1.TaskPushNotificationConfig, dict[str, Any]]:
    """The v1.0 config of a v0.3 JSON one, and its scheme list as request metadata.

    Without an id it takes the task's, so that setting it again replaces it (L-20, V03-09).
    """
    task_id = params.get("taskId")
    if not task_id or not isinstance(task_id, str):
        raise wrong("taskId", "must be a string, not empty")
    path = "pushNotificationConfig"
    config = decode(v03.PushNotificationConfig, object_of(params.get(path), path), path)
    made = v1.TaskPushNotificationConfig(task_id=task_id)
    push_up(config, made, path)
    made.id = made.id or task_id
    return made, extras_of(config)


def extras_of(message: Message) -> dict[str, Any]:
    """The request metadata of a v0.3 request message: what v1.0 has no place for (L-04)."""
    schemes = schemes_of(message)
    return {PUSH_EXTRAS: schemes} if schemes else {}


def _decode_up(cls: type[Any], value: Any) -> Any:
    try:
        return decode(cls, value)
    except InvalidParamsError as error:
        raise InvalidParamsError(violations=[(old_path(path), text) for path, text in error.violations]) from None


def down_params(request: Message) -> Json:
    """The v0.3 JSON-RPC params of a v1.0 request; `blocking` is always said (I-54)."""
    if isinstance(request, v1.SendMessageRequest):
        return _send_down(request, as_json(request))
    if isinstance(request, v1.TaskPushNotificationConfig):
        return config_down(request, HOW)
    value: Json = encode(request)
    return {old: value[new] for old, new in PARAMS[type(request)] if new in value}


def _send_down(request: v1.SendMessageRequest, value: Json) -> Json:
    given = value.get("configuration", {})
    made = {name: given[name] for name in ("acceptedOutputModes", "historyLength") if name in given}
    made["blocking"] = not request.configuration.return_immediately
    if "taskPushNotificationConfig" in given:
        config = config_down(request.configuration.task_push_notification_config, HOW)
        made["pushNotificationConfig"] = config["pushNotificationConfig"]
    params = {"message": value["message"], "configuration": made}
    return params | {"metadata": value["metadata"]} if "metadata" in value else params


def config_down(message: v1.TaskPushNotificationConfig, how: How) -> Json:
    """A push config as v0.3 JSON, with all its schemes where `how` knows them (L-04)."""
    config = encode(down(message, how).push_notification_config, PUSH_ALWAYS)
    return {"taskId": message.task_id, "pushNotificationConfig": config}


def down_request(request: Message, base64_bytes: bool = False) -> Any:
    """The v0.3 request message of a v1.0 request, for gRPC and for the bodies of REST."""
    if isinstance(request, v1.TaskPushNotificationConfig):
        return create_down(request)
    return down(request, How(base64_bytes))
