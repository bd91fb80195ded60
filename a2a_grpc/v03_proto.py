"""Messages of the v0.3 proto to and from v1.0 messages.

Laws: messages in, messages out, field by field; one version's bytes are never read by the other's types (V03-27). A
field of the same name is copied; what differs is in the tables below: renamed fields, resource names, and the few
types with a translation of their own. Copiers are made once per type from its descriptor. No JSON here, no cards.
"""

import binascii
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Final, NamedTuple

from a2a_stubs import google, v03, v1
from google.protobuf.message import Message

from a2a_grpc.errors import InternalError, InvalidAgentResponseError, InvalidParamsError
from a2a_grpc.python310 import strict_base64
from a2a_grpc.v03_json import COMPAT, MARKER, PLAIN_TYPES, at, wrong


class How(NamedTuple):
    """How to translate.

    base64_bytes: down: file bytes as base64 text instead of raw; up: False takes them as they are, otherwise strict
    base64 text is decoded. schemes: down: the scheme lists of push configs by (task id, config id), where they are
    more than the one scheme that v1.0 keeps (L-04).
    """

    base64_bytes: bool | None = None
    schemes: Mapping[tuple[str, str], Sequence[str]] = {}


HOW: Final = How()

Copier = Callable[[Any, Any, How], None]

_RENAMED: Final = {
    "Message.content": "parts",
    "TaskStatus.update": "message",
    "SendMessageRequest.request": "message",
    "SendMessageResponse.msg": "message",
    "StreamResponse.msg": "message",
}
_RENAMED_DOWN: Final = {f"{path.partition('.')[0]}.{new}": path.partition(".")[2] for path, new in _RENAMED.items()}


class Named(NamedTuple):
    """A v0.3 request that names its resource: the field that does, the v1.0 type, the v1.0 fields of the ids."""

    field: str
    twin: type[Message]
    ids: tuple[str, ...]


NAMED: Final[Mapping[type[Message], Named]] = {
    v03.GetTaskRequest: Named("name", v1.GetTaskRequest, ("id",)),
    v03.CancelTaskRequest: Named("name", v1.CancelTaskRequest, ("id",)),
    v03.TaskSubscriptionRequest: Named("name", v1.SubscribeToTaskRequest, ("id",)),
    v03.GetTaskPushNotificationConfigRequest: Named("name", v1.GetTaskPushNotificationConfigRequest, ("task_id", "id")),
    v03.DeleteTaskPushNotificationConfigRequest: Named(
        "name", v1.DeleteTaskPushNotificationConfigRequest, ("task_id", "id")
    ),
    v03.ListTaskPushNotificationConfigRequest: Named("parent", v1.ListTaskPushNotificationConfigsRequest, ("task_id",)),
}

_TWINS: Final[Mapping[type[Message], type[Message]]] = {
    **{old: row.twin for old, row in NAMED.items()},
    v03.ListTaskPushNotificationConfigResponse: v1.ListTaskPushNotificationConfigsResponse,
    v03.CreateTaskPushNotificationConfigRequest: v1.TaskPushNotificationConfig,
    v03.GetAgentCardRequest: v1.GetExtendedAgentCardRequest,
    google.Empty: google.Empty,
}
_TWINS_DOWN: Final = {new: old for old, new in _TWINS.items() if old is not v03.CreateTaskPushNotificationConfigRequest}

_NAMES: Final = (
    re.compile(r"tasks/([^/]+)"),
    re.compile(r"tasks/([^/]+)/pushNotificationConfigs/(.+)", re.DOTALL),  # v1.0 callers may put slashes into an id
)
_FORMS: Final = ("tasks/{}", "tasks/{}/pushNotificationConfigs/{}")


def ids_of(name: str, count: int, field: str) -> tuple[str, ...]:
    """The `count` ids in a resource name: 1 for a task, 2 for a push config. Raises InvalidParamsError naming
    `field` for any other shape (V03-26)."""
    found = _NAMES[count - 1].fullmatch(name)
    if found is None:
        raise wrong(field, f"must be {_FORMS[count - 1].format('{id}', '{configId}')}")
    return found.groups()


def name_of(*ids: str) -> str:
    """The resource name of a task (one id) or of a push config (task id, config id)."""
    return _FORMS[len(ids) - 1].format(*ids)


def up(message: Message, how: How = HOW) -> Any:
    """A v0.3 message as a v1.0 one. Raises InvalidParamsError naming the v0.3 field."""
    source: Any = type(message)
    return _translation(source)(message, how)


def down(message: Message, how: How = HOW) -> Any:
    """A v1.0 message as a v0.3 one; a TaskPushNotificationConfig is taken as an answer."""
    source: Any = type(message)
    return _translation(source)(message, how)


@cache
def _translation(source: Any) -> Callable[[Message, How], Any]:
    made, copy = _twin(source), copier(source)

    def translate(message: Message, how: How) -> Any:
        target = made()
        copy(message, target, how)
        return target

    return translate


def _rises(source: Any) -> bool:
    return bool(source.DESCRIPTOR.file is v03.DESCRIPTOR)


def _twin(source: Any) -> Any:
    module, twins = (v1, _TWINS) if _rises(source) else (v03, _TWINS_DOWN)
    return twins.get(source) or getattr(module, source.DESCRIPTOR.name)


# -- the general copier


@cache
def copier(source: Any) -> Copier:
    """What copies a message of this type, of either version, into an empty one of the other."""
    return _OWN.get(source) or plain_copier(source)


@cache
def plain_copier(source: Any) -> Copier:
    """The copier that follows names alone: it looks at the fields that are set."""
    renamed, target = (_RENAMED if _rises(source) else _RENAMED_DOWN), _twin(source)
    rows: dict[Any, tuple[str, Step | None]] = {}
    for field in source.DESCRIPTOR.fields:
        name = renamed.get(f"{source.DESCRIPTOR.name}.{field.name}", field.name)
        if name in target.DESCRIPTOR.fields_by_name:
            rows[field] = name, _step(source, field)
    find = rows.get

    def copy(given: Any, made: Any, how: How) -> None:
        for field, value in given.ListFields():
            row = find(field)
            if row is None:
                continue
            name, step = row
            if step is None:
                setattr(made, name, value)
            else:
                step(value, getattr(made, name), how)

    return copy


Step = Copier
"""Copies the value of one field into that of another."""


def _step(source: Any, field: Any) -> Step | None:
    """None for a value that is set."""
    kind = field.message_type
    repeated = hasattr(getattr(source(), field.name), "extend")
    if kind is None:
        return _extend if repeated else None
    if kind.file.package.startswith("google."):
        return _same
    nested = copier(getattr(v03 if _rises(source) else v1, kind.name))
    return (_repeated if repeated else _single)(field.json_name, nested)


def _extend(given: Any, made: Any, how: How) -> None:
    made.extend(given)


def _same(given: Any, made: Any, how: How) -> None:
    made.CopyFrom(given)


def _single(label: str, nested: Copier) -> Step:
    def copy(given: Any, made: Any, how: How) -> None:
        made.SetInParent()
        try:
            nested(given, made, how)
        except InvalidParamsError as error:
            raise _below(label, error) from None

    return copy


def _repeated(label: str, nested: Copier) -> Step:
    def copy(given: Any, made: Any, how: How) -> None:
        add = made.add
        try:
            for item in given[:]:  # A slice is a plain list, which is much quicker to walk.
                nested(item, add(), how)
        except InvalidParamsError as error:
            raise _below(f"{label}[{len(made) - 1}]", error) from None

    return copy


def _below(label: str, error: InvalidParamsError) -> InvalidParamsError:
    """The error with its paths seen from one level further up."""
    return InvalidParamsError(violations=[(at(label, path), text) for path, text in error.violations])


# -- parts and messages


def _part_up(given: v03.Part, made: v1.Part, how: How) -> None:
    """L-05, L-06, L-07, L-34, L-35; a data part without data is as empty as a file without bytes or address."""
    marked = given.HasField("metadata")
    if marked:
        made.metadata.CopyFrom(given.metadata)
    kind = given.WhichOneof("part")
    if kind == "text":
        made.text = given.text
    elif kind == "data":
        if not given.data.HasField("data"):
            raise wrong("data.data", "is required")
        content = given.data.data
        if marked and _holds(made.metadata, COMPAT, "bool_value") and content.fields.keys() == {"value"}:
            made.data.CopyFrom(content.fields["value"])
            _unmark(made, COMPAT)
        else:
            made.data.struct_value.CopyFrom(content)
    elif kind == "file":
        _file_up(given.file, made, how)
        return
    else:
        raise wrong("", "must hold exactly one of text, file, data")
    if marked and _holds(made.metadata, MARKER, "struct_value"):
        markers = made.metadata.fields[MARKER].struct_value.fields
        made.media_type, made.filename = markers["mediaType"].string_value, markers["filename"].string_value
        _unmark(made, MARKER)


def _holds(metadata: google.Struct, key: str, kind: str) -> bool:
    """Whether a key is there with a value of that kind and not empty; a lookup alone would put it there."""
    return key in metadata.fields and bool(getattr(metadata.fields[key], kind))


def _unmark(made: Any, key: str) -> None:
    del made.metadata.fields[key]
    if not made.metadata.fields:
        made.ClearField("metadata")


def _file_up(given: v03.FilePart, made: v1.Part, how: How) -> None:
    held = given.WhichOneof("file")
    if held == "file_with_bytes":
        made.raw = given.file_with_bytes if how.base64_bytes is False else _decoded(given.file_with_bytes)
    elif given.file_with_uri:
        made.url = given.file_with_uri
    else:
        raise wrong("file", "must hold exactly one of fileWithBytes, fileWithUri, not empty")
    made.media_type = given.mime_type
    made.filename = given.name


def _decoded(content: bytes) -> bytes:
    """Some peers put base64 text where the proto wants bytes; what is strict base64 is taken for that."""
    if not content or len(content) % 4:
        return content
    try:
        return strict_base64(content)
    except ValueError:
        return content


def _part_down(given: v1.Part, made: v03.Part, how: How) -> None:
    if given.HasField("metadata"):
        made.metadata.CopyFrom(given.metadata)
    kind = given.WhichOneof("content")
    if kind == "text":
        made.text = given.text
    elif kind == "data":
        if given.data.WhichOneof("kind") == "struct_value":
            made.data.data.CopyFrom(given.data.struct_value)
        else:
            made.data.data.fields["value"].CopyFrom(given.data)
            made.metadata.fields[COMPAT].bool_value = True
    elif kind is None:
        raise InvalidAgentResponseError("A part has no content")
    else:
        if kind == "url":
            made.file.file_with_uri = given.url
        else:
            text = how.base64_bytes
            made.file.file_with_bytes = binascii.b2a_base64(given.raw, newline=False) if text else given.raw
        made.file.mime_type = given.media_type
        made.file.name = given.filename
        return
    media_type, filename = given.media_type, given.filename
    if media_type and media_type != PLAIN_TYPES[kind]:
        _mark(made, "mediaType", media_type)
    if filename:
        _mark(made, "filename", filename)


def _mark(made: v03.Part, name: str, value: str) -> None:
    made.metadata.fields[MARKER].struct_value.fields[name].string_value = value


def _message_up(given: v03.Message, made: v1.Message, how: How) -> None:
    """The plain copy, and the references out of the metadata (L-27)."""
    plain_copier(v03.Message)(given, made, how)
    if given.HasField("metadata") and _holds(made.metadata, MARKER, "struct_value"):
        marked = made.metadata.fields[MARKER].struct_value
        if _holds(marked, "referenceTaskIds", "list_value"):
            listed = marked.fields["referenceTaskIds"].list_value.values
            made.reference_task_ids.extend(value.string_value for value in listed if value.string_value)
            _unmark(made, MARKER)


def _message_down(given: v1.Message, made: v03.Message, how: How) -> None:
    """The plain copy, and the references into the metadata (L-27); a message without a role is a fault (L-12)."""
    if not given.role:
        raise InternalError("A message has no role")
    plain_copier(v1.Message)(given, made, how)
    if given.reference_task_ids:
        marked = made.metadata.fields[MARKER].struct_value.fields["referenceTaskIds"].list_value
        for task_id in given.reference_task_ids:
            marked.values.add().string_value = task_id


def _task_down(given: v1.Task, made: v03.Task, how: How) -> None:
    """The plain copy; a task without a context gets its own id as that (L-16)."""
    plain_copier(v1.Task)(given, made, how)
    if not made.context_id:
        made.context_id = given.id


# -- requests


def _configuration_up(given: v03.SendMessageConfiguration, made: v1.SendMessageConfiguration, how: How) -> None:
    """A configuration without presence: 0 sets no limit (L-26, V03-28), `blocking` is as it stands (I-54)."""
    plain_copier(v03.SendMessageConfiguration)(given, made, how)
    made.return_immediately = not given.blocking
    if given.HasField("push_notification"):
        push_up(given.push_notification, made.task_push_notification_config, "pushNotification")
        made.task_push_notification_config.SetInParent()


def _configuration_down(given: v1.SendMessageConfiguration, made: v03.SendMessageConfiguration, how: How) -> None:
    plain_copier(v1.SendMessageConfiguration)(given, made, how)
    made.blocking = not given.return_immediately
    if given.HasField("task_push_notification_config"):
        _push_down(given.task_push_notification_config, made.push_notification, how)
        made.push_notification.SetInParent()


def _send_down(given: v1.SendMessageRequest, made: v03.SendMessageRequest, how: How) -> None:
    """Always with a configuration, since an absent one and `blocking` false look alike to some peers (I-54)."""
    plain_copier(v1.SendMessageRequest)(given, made, how)
    made.configuration.blocking = not given.configuration.return_immediately


def _named_up(given: Any, made: Any, how: How) -> None:
    source: Any = type(given)
    row = NAMED[source]
    for attribute, value in zip(row.ids, ids_of(getattr(given, row.field), len(row.ids), row.field), strict=True):
        setattr(made, attribute, value)
    plain_copier(source)(given, made, how)


def _named_down(given: Any, made: Any, how: How) -> None:
    source: Any = type(given)
    row = NAMED[type(made)]
    setattr(made, row.field, name_of(*(getattr(given, attribute) for attribute in row.ids)))
    plain_copier(source)(given, made, how)


# -- push notification configs


def _scheme(schemes: Sequence[str], credentials: str, path: str) -> str:
    """The one scheme that is kept of several (L-04); "" for no authentication at all."""
    if not schemes:
        if credentials:
            raise wrong(f"{path}.authentication.schemes", "must not be empty where credentials are given")
        return ""
    return next((scheme for scheme in schemes if scheme.lower() in ("bearer", "basic")), schemes[0])


def push_up(given: v03.PushNotificationConfig, made: v1.TaskPushNotificationConfig, path: str) -> None:
    """Flatten a v0.3 config into a v1.0 one, whose task id is the caller's to set. An empty url is refused here,
    where `path` still says what the caller called it."""
    if not given.url:
        raise wrong(f"{path}.url", "is required")
    made.id, made.url, made.token = given.id, given.url, given.token
    if scheme := _scheme(given.authentication.schemes, given.authentication.credentials, path):
        made.authentication.scheme = scheme
        made.authentication.credentials = given.authentication.credentials


def _push_down(given: v1.TaskPushNotificationConfig, made: v03.PushNotificationConfig, how: How) -> None:
    made.id, made.url, made.token = given.id, given.url, given.token
    if given.HasField("authentication"):
        schemes = how.schemes.get((given.task_id, given.id)) or (given.authentication.scheme,)
        made.authentication.schemes.extend(scheme for scheme in schemes if scheme)
        made.authentication.credentials = given.authentication.credentials


def _config_up(given: v03.TaskPushNotificationConfig, made: v1.TaskPushNotificationConfig, how: How) -> None:
    """An answer: the name says whose config it is."""
    made.task_id, config_id = ids_of(given.name, 2, "name")
    push_up(given.push_notification_config, made, "pushNotificationConfig")
    made.id = made.id or config_id


def _config_down(given: v1.TaskPushNotificationConfig, made: v03.TaskPushNotificationConfig, how: How) -> None:
    made.name = name_of(given.task_id, given.id)
    _push_down(given, made.push_notification_config, how)
    made.push_notification_config.SetInParent()


def create_up(
    given: v03.CreateTaskPushNotificationConfigRequest, made: v1.TaskPushNotificationConfig, how: How
) -> None:
    """A set request. The id may be given in three places, which must agree; without one it is the task's (L-20).

    The id inside `config.name` counts only where no other is given, and not if it is the text `None`, which is how
    deployed clients write a missing id there.
    """
    (made.task_id,) = ids_of(given.parent, 1, "parent")
    push_up(given.config.push_notification_config, made, "config.pushNotificationConfig")
    if given.config_id and made.id not in ("", given.config_id):
        raise wrong("configId", "must agree with config.pushNotificationConfig.id")
    made.id = given.config_id or made.id
    task_name, _, named = given.config.name.partition("/pushNotificationConfigs/")
    if task_name not in ("", given.parent):
        raise wrong("config.name", "must agree with parent")
    made.id = made.id or ("" if named == "None" else named) or made.task_id


def create_down(given: v1.TaskPushNotificationConfig, how: How = HOW) -> v03.CreateTaskPushNotificationConfigRequest:
    """The v0.3 request that sets a config."""
    made = v03.CreateTaskPushNotificationConfigRequest(parent=name_of(given.task_id), config_id=given.id)
    _config_down(given, made.config, how)
    return made


def schemes_of(given: Message) -> list[str]:
    """The scheme list of the push config in a v0.3 request, [] where v1.0 keeps all there is (L-04)."""
    if isinstance(given, v03.SendMessageRequest):
        if not given.configuration.HasField("push_notification"):
            return []
        given = given.configuration.push_notification
    elif isinstance(given, v03.CreateTaskPushNotificationConfigRequest):
        given = given.config.push_notification_config
    if not isinstance(given, v03.PushNotificationConfig):
        return []
    schemes = list(given.authentication.schemes)
    return schemes if len(schemes) > 1 else []


_OWN: Final[Mapping[type[Message], Copier]] = {
    v03.Part: _part_up,
    v1.Part: _part_down,
    v03.Message: _message_up,
    v1.Message: _message_down,
    v1.Task: _task_down,
    v03.SendMessageConfiguration: _configuration_up,
    v1.SendMessageConfiguration: _configuration_down,
    v1.SendMessageRequest: _send_down,
    v03.TaskPushNotificationConfig: _config_up,
    v1.TaskPushNotificationConfig: _config_down,
    v03.CreateTaskPushNotificationConfigRequest: create_up,
    **dict.fromkeys(NAMED, _named_up),
    **dict.fromkeys((row.twin for row in NAMED.values()), _named_down),
}
