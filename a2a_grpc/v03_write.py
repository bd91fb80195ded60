"""v1.0 tasks, messages and events straight to the JSON of both v0.3 dialects, in the pass that writes their ProtoJSON.

Laws: a dialect is a table: the texts of enums, the names of fields, and what is done last with the members of a type,
which are fresh, those of v1.0 but for what is below them, and so may be changed in place. What v0.3 cannot say travels
in metadata (L-05, L-06, L-27). No message of v0.3 is made here; `v03_proto` makes them, and the two must agree.
"""

from binascii import b2a_base64
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from a2a_stubs import v03, v1
from google.protobuf.message import Message

from a2a_grpc.errors import InternalError, InvalidAgentResponseError
from a2a_grpc.protojson import Dialect, encode
from a2a_grpc.protojson_values import enum_writer
from a2a_grpc.v03_json import COMPAT, MARKER, PLAIN_TYPES, Json
from a2a_grpc.v03_names import ROLES, STATES
from a2a_grpc.v03_proto import How, down

KEPT: Final = frozenset({v1.Task.DESCRIPTOR.full_name})
"""The type whose v0.3 form is kept for the next reader of the same, in answers to operations that only read."""

_NONE: Final = frozenset[str]()


def as_json(message: Message, reads: bool = False) -> Any:
    """A v1.0 task, message or event as v0.3 JSON, bare; of a request, what is in it. A status event is not final.

    reads: the operation only reads, and JSON is kept for whoever reads the same again; it then is for `dumps` only.
    Raises InternalError for a message without a role (L-12), InvalidAgentResponseError for a part without content.
    """
    return encode(message, _NONE, KEPT if reads else _NONE, _J03)


def as_proto_json(message: Message, base64_bytes: bool = False, reads: bool = False) -> Any:
    """A v1.0 task, send answer or stream response as ProtoJSON of the v0.3 proto. A status event is not final.

    base64_bytes: see `How`; reads, errors: see `as_json`.
    """
    try:
        return encode(message, _NONE, KEPT if reads else _NONE, _P03_BASE64 if base64_bytes else _P03)
    except InvalidAgentResponseError:
        return encode(down(message, How(base64_bytes)))  # which says in the names of its proto what is wrong


def end(response: Json) -> Json:
    """Make the status event of a stream response in ProtoJSON the final one, in the order of the proto's fields."""
    update = response["statusUpdate"]
    metadata = update.pop("metadata", None)
    update["final"] = True
    if metadata is not None:
        update["metadata"] = metadata
    return response


def _has_role(message: Json) -> None:
    if not message.get("role"):
        raise InternalError("A message has no role")


# -- v0.3 JSON


def part_down(part: Json) -> Json:
    """A part as v0.3 JSON (V03-03, L-05 to L-07). Raises InvalidAgentResponseError for a part without content."""
    if "text" in part:
        part["kind"] = kind = "text"
    elif "data" in part:
        part["kind"] = kind = "data"
        if not isinstance(part["data"], dict):
            part["data"] = {"value": part["data"]}
            part.setdefault("metadata", {})[COMPAT] = True
    else:
        return _file_down(part)
    if "mediaType" in part or "filename" in part:
        markers = {name: part.pop(name) for name in ("mediaType", "filename") if name in part}
        if markers.get("mediaType") == PLAIN_TYPES[kind]:
            del markers["mediaType"]
        if markers:
            part.setdefault("metadata", {})[MARKER] = markers
    return part


def _file_down(part: Json) -> Json:
    file = {}
    for new, old in (("raw", "bytes"), ("url", "uri"), ("mediaType", "mimeType"), ("filename", "name")):
        if new in part:
            file[old] = part.pop(new)
    if "bytes" not in file and "uri" not in file:
        raise InvalidAgentResponseError("A part has no content")
    part["kind"] = "file"
    part["file"] = file
    return part


def _message_down(message: Json) -> Json:
    _has_role(message)
    message["kind"] = "message"
    return message


def _task_down(task: Json) -> Json:
    """One without a contextId gets its own id as that (L-16)."""
    task["kind"] = "task"
    if "contextId" not in task:
        task["contextId"] = task["id"]
    return task if "status" in task else _unknown(task)


def _status_update_down(event: Json) -> Json:
    """`final` is for whoever knows the stream (V03-06)."""
    event["kind"] = "status-update"
    event["final"] = False
    return event if "status" in event else _unknown(event)


def _unknown(holder: Json) -> Json:
    holder["status"] = {"state": "unknown"}
    return holder


def _artifact_update_down(event: Json) -> Json:
    """`append` and `lastChunk` are always written (part 6)."""
    event["kind"] = "artifact-update"
    event.setdefault("append", False)
    event.setdefault("lastChunk", False)
    if "artifact" not in event:
        raise InternalError("An event has no artifact")
    return event


_STATE_TEXTS: Final[Mapping[int, str]] = {v1.TaskState.Value(name): text for name, text in STATES.items()}
_ROLE_TEXTS: Final[Mapping[int, str]] = {v1.Role.Value(name): text for name, text in ROLES.items()}

_J03: Final = Dialect(
    enums={
        v1.TaskState.DESCRIPTOR.full_name: lambda number: _STATE_TEXTS.get(number, "unknown"),
        v1.Role.DESCRIPTOR.full_name: lambda number: _ROLE_TEXTS.get(number),
    },
    last={
        v1.Part.DESCRIPTOR.full_name: part_down,
        v1.Message.DESCRIPTOR.full_name: _message_down,
        v1.Task.DESCRIPTOR.full_name: _task_down,
        v1.TaskStatusUpdateEvent.DESCRIPTOR.full_name: _status_update_down,
        v1.TaskArtifactUpdateEvent.DESCRIPTOR.full_name: _artifact_update_down,
    },
    names={},
    bare=False,
)


# -- ProtoJSON of the v0.3 proto


def _proto_part(base64_bytes: bool, part: Json) -> Json:
    """L-05 to L-07: what has a place in the v0.3 proto, in the order of its fields."""
    made: Json
    if "text" in part:
        made, kind = {"text": part["text"]}, "text"
    elif "data" in part:
        data = part["data"]
        whole = isinstance(data, dict)
        made, kind = {"data": {"data": data if whole else {"value": data}}}, "data"
        if not whole:
            part.setdefault("metadata", {})[COMPAT] = True
    else:
        made, kind = {"file": _proto_file(base64_bytes, part)}, ""
    if "metadata" in part:
        made["metadata"] = part["metadata"]
    if kind:
        for name in ("mediaType", "filename"):
            if name in part and part[name] != PLAIN_TYPES.get(kind if name == "mediaType" else ""):
                _marked(made)[name] = part[name]
    return made


def _proto_file(base64_bytes: bool, part: Json) -> Json:
    if "url" in part:
        made = {"fileWithUri": part["url"]}
    elif "raw" in part:
        text = part["raw"]
        made = {"fileWithBytes": b2a_base64(text.encode(), newline=False).decode() if base64_bytes else text}
    else:
        raise InvalidAgentResponseError("A part has no content")
    for new, old in (("mediaType", "mimeType"), ("filename", "name")):
        if new in part:
            made[old] = part[new]
    return made


def _marked(made: Json) -> Json:
    """What travels in the metadata of a part or message."""
    metadata = made.setdefault("metadata", {})
    if not isinstance(metadata.get(MARKER), dict):
        metadata[MARKER] = {}
    marked: Json = metadata[MARKER]
    return marked


def _proto_message(message: Json) -> Json:
    """References go into the metadata (L-27), which is written before the extensions."""
    _has_role(message)
    if "referenceTaskIds" in message:
        references, extensions = message.pop("referenceTaskIds"), message.pop("extensions", None)
        marked = _marked(message)
        known = marked.get("referenceTaskIds")
        marked["referenceTaskIds"] = [*(known if isinstance(known, list) else ()), *references]
        if extensions:
            message["extensions"] = extensions
    return message


def _proto_task(task: Json) -> Json:
    """One without a contextId gets its own id as that (L-16)."""
    own = {"id": task["id"], "contextId": task["id"]} if "id" in task and "contextId" not in task else {}
    return own | task if own else task


def _proto(base64_bytes: bool) -> Dialect:
    return Dialect(
        enums={
            v1.TaskState.DESCRIPTOR.full_name: enum_writer(v03.TaskState.DESCRIPTOR),
            v1.Role.DESCRIPTOR.full_name: enum_writer(v03.Role.DESCRIPTOR),
        },
        last={
            v1.Part.DESCRIPTOR.full_name: partial(_proto_part, base64_bytes),
            v1.Message.DESCRIPTOR.full_name: _proto_message,
            v1.Task.DESCRIPTOR.full_name: _proto_task,
        },
        names={v1.Message.DESCRIPTOR.fields_by_name["parts"].full_name: "content"},
        bare=True,
    )


_P03, _P03_BASE64 = _proto(False), _proto(True)
