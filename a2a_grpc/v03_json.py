"""v0.3 JSON (with `kind`) to the JSON form of v1.0 messages.

Laws: JSON objects in, JSON objects out; no message class is made here. A new object is made and the given one left
alone. Only members that differ between the versions are named: everything else passes through to the ProtoJSON codec,
which checks it. What v0.3 cannot say travels in metadata under `MARKER` and `COMPAT`, where `v03_write` puts it, and is
taken out again (L-05, L-06).
"""

import re
from typing import Any, Final

from a2a_grpc.errors import ContentTypeNotSupportedError, InvalidParamsError
from a2a_grpc.v03_names import CANCELLED, ROLES_UP, STATES_UP

Json = dict[str, Any]

MARKER: Final = "a2a_grpc.v1"
"""Metadata key of v1.0 members without a v0.3 place: `mediaType`, `filename` of text and data parts (L-06),
`referenceTaskIds` of a message in the v0.3 proto (L-27)."""

COMPAT: Final = "data_part_compat"
"""Part metadata key saying that `data` is `{"value": X}` for a v1.0 value X that is no object (L-05)."""

PLAIN_TYPES: Final = {"text": "text/plain", "data": "application/json"}
"""Media types that go without saying, by part kind; not worth a marker (L-06)."""

_KINDS: Final = ("text", "file", "data")
_BYTES: Final = ("bytes", "fileWithBytes")
_URI: Final = ("uri", "fileWithUri")
_TIME: Final = re.compile(r"(\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d)(\.\d+)?([Zz]|[+-]\d\d:\d\d)?")


def wrong(field: str, description: str) -> InvalidParamsError:
    """The error for one wrong field, by its path in the caller's own names (ERR-06)."""
    return InvalidParamsError(violations=[(field, description)])


def at(path: str, name: str) -> str:
    """The path of a member below a path, "" being the root or the place itself."""
    return f"{path}.{name}" if path and name else path or name


def object_of(value: Any, path: str) -> Json:
    """The value itself if it is a JSON object; raises InvalidParamsError naming `path` if not."""
    if not isinstance(value, dict):
        raise wrong(path, "must be an object")
    return value


def list_of(value: Any, path: str) -> list[Any]:
    """The value itself if it is a JSON array, [] for null; raises InvalidParamsError naming `path` if neither."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise wrong(path, "must be an array")
    return value


def _of_kind(value: Any, kind: str, path: str) -> Json:
    """An object whose `kind`, if it has one, is the expected (V03-17)."""
    if object_of(value, path).get("kind", kind) not in (kind, None):
        raise wrong(at(path, "kind"), f"must be {kind}")
    return value  # type: ignore[no-any-return]


def part_up(part: Any, path: str) -> Json:
    """A v0.3 JSON part as v1.0 JSON; a missing `kind` is inferred (V03-17).

    Raises ContentTypeNotSupportedError for an unknown kind (L-33), InvalidParamsError for a kind that contradicts
    the members, and for a file with both or neither of bytes and uri (L-34).
    """
    given = [kind for kind in _KINDS if object_of(part, path).get(kind) is not None]
    kind = part.get("kind")
    if kind is None:
        if len(given) != 1:
            raise wrong(path, "must hold exactly one of text, file, data")
        kind = given[0]
    elif kind not in _KINDS:
        if not isinstance(kind, str):
            raise wrong(f"{path}.kind", "must be a string")
        text = f"Part kind {kind[:40]!r} is not supported"
        raise ContentTypeNotSupportedError(text, violations=[(f"{path}.kind", text)])
    elif given != [kind]:
        raise wrong(path, f"a part of kind {kind} must hold {kind} and no other content")
    content = part[kind]
    if kind == "file":
        made = _file_up(content, f"{path}.file")
    elif kind == "data":
        made = {"data": object_of(content, f"{path}.data")}
    else:
        made = {"text": content}
    metadata = part.get("metadata")
    if metadata is not None:
        made["metadata"] = metadata
        if isinstance(metadata, dict) and kind != "file" and (MARKER in metadata or COMPAT in metadata):
            _unmark(made, metadata)
    return made


def _unmark(part: Json, metadata: Json) -> None:
    """Take out of the metadata what was put there on the way down."""
    metadata = dict(metadata)
    if "data" in part and metadata.get(COMPAT) is True and part["data"].keys() == {"value"}:
        part["data"] = part["data"]["value"]
        del metadata[COMPAT]
    markers = metadata.get(MARKER)
    if isinstance(markers, dict) and markers:
        del metadata[MARKER]
        part |= {name: markers[name] for name in ("mediaType", "filename") if isinstance(markers.get(name), str)}
    if metadata:
        part["metadata"] = metadata
    else:
        del part["metadata"]


def _file_up(file: Any, path: str) -> Json:
    held = [name for name in (*_BYTES, *_URI) if object_of(file, path).get(name) is not None]
    if len(held) != 1:
        raise wrong(path, "must hold exactly one of bytes, uri")
    content = file[held[0]]
    if held[0] in _URI and content == "":
        raise wrong(f"{path}.{held[0]}", "must not be empty")
    made = {"raw" if held[0] in _BYTES else "url": content}
    for old, new in (("mimeType", "mediaType"), ("name", "filename")):
        if file.get(old) is not None:
            made[new] = file[old]
    return made


def parts_up(parts: Any, path: str) -> list[Json]:
    """Some v0.3 JSON parts as v1.0 JSON."""
    return [part_up(part, f"{path}[{position}]") for position, part in enumerate(list_of(parts, path))]


def message_up(message: Any, path: str) -> Json:
    """A v0.3 JSON message as v1.0 JSON; required members are left to whoever reads the result."""
    made = dict(_of_kind(message, "message", path))
    role = message.get("role")
    if isinstance(role, str):
        made["role"] = ROLES_UP.get(role, role)
    made["parts"] = parts_up(message.get("parts"), at(path, "parts"))
    return made


def time_up(value: Any) -> Any:
    """A v0.3 timestamp as v1.0 reads it: no zone is UTC, more than nine digits are cut (L-10, V03-31)."""
    found = _TIME.fullmatch(value) if isinstance(value, str) else None
    return f"{found[1]}{(found[2] or '')[:10]}{found[3] or 'Z'}" if found else value


def _status_up(status: Any, path: str) -> Json:
    made = dict(object_of(status, path))
    state = made.get("state")
    if isinstance(state, str):
        made["state"] = "TASK_STATE_CANCELED" if state == CANCELLED else STATES_UP.get(state, state)
    made["timestamp"] = time_up(made.get("timestamp"))
    if made.get("message") is not None:
        made["message"] = message_up(made["message"], f"{path}.message")
    return made


def _artifact_up(artifact: Any, path: str) -> Json:
    return {**object_of(artifact, path), "parts": parts_up(artifact.get("parts"), f"{path}.parts")}


def task_up(task: Any) -> Json:
    """A v0.3 JSON task as v1.0 JSON."""
    made = dict(_of_kind(task, "task", ""))
    made["status"] = _status_up(task.get("status"), "status")
    for name, up in (("artifacts", _artifact_up), ("history", message_up)):
        items = list_of(task.get(name), name)
        made[name] = [up(item, f"{name}[{position}]") for position, item in enumerate(items)]
    return made


def status_update_up(event: Any) -> Json:
    """A v0.3 JSON status event as v1.0 JSON; `final` has no place there (L-15)."""
    return {**_of_kind(event, "status-update", ""), "status": _status_up(event.get("status"), "status")}


def artifact_update_up(event: Any) -> Json:
    """A v0.3 JSON artifact event as v1.0 JSON."""
    return {**_of_kind(event, "artifact-update", ""), "artifact": _artifact_up(event.get("artifact"), "artifact")}


PAYLOADS_UP: Final = {
    "task": ("task", task_up),
    "message": ("message", lambda value: message_up(value, "")),
    "status-update": ("statusUpdate", status_update_up),
    "artifact-update": ("artifactUpdate", artifact_update_up),
}
"""By the `kind` of a v0.3 JSON object: the member of a v1.0 stream response that holds it, and its translation."""


def kind_of(value: Json) -> str:
    """The `kind` of a v0.3 JSON result or event, inferred from its members when it has none (V03-17).

    Raises InvalidParamsError when it can be none of the four.
    """
    kind = value.get("kind")
    if kind is None:
        kind = next((kind for member, kind in _TELLING if member in value), None)
    if not isinstance(kind, str) or kind not in PAYLOADS_UP:
        raise wrong("kind", f"must be one of {', '.join(PAYLOADS_UP)}")
    return kind


_TELLING: Final = (
    ("artifact", "artifact-update"),
    ("final", "status-update"),
    ("messageId", "message"),
    ("role", "message"),
    ("id", "task"),
    ("status", "status-update"),
)

_PATHS: Final = (
    (re.compile(r"^(message\.parts\[\d+\])\.raw\b"), r"\1.file.bytes"),
    (re.compile(r"^(message\.parts\[\d+\])\.url\b"), r"\1.file.uri"),
    (re.compile(r"^(message\.parts\[\d+\])\.mediaType\b"), r"\1.file.mimeType"),
    (re.compile(r"^(message\.parts\[\d+\])\.filename\b"), r"\1.file.name"),
    (re.compile(r"\bconfiguration\.returnImmediately\b"), "configuration.blocking"),
    (re.compile(r"\bconfiguration\.taskPushNotificationConfig\b"), "configuration.pushNotificationConfig"),
    (re.compile(r"\bauthentication\.scheme\b"), "authentication.schemes"),
)


def old_path(path: str) -> str:
    """A v1.0 field path in the names of v0.3 JSON."""
    for pattern, replacement in _PATHS:
        path = pattern.sub(replacement, path)
    return path
