"""Field paths of v1.0 requests in the names that a v0.3 caller used, for errors found below the door (ERR-06).

Laws: text in, text out; the plain operations follow the tables by which their requests are translated, only what is
nested has rows of its own. No messages, no I/O.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from a2a_stubs import v1

from a2a_grpc.v03_json import old_path
from a2a_grpc.v03_params import PARAMS, REQUESTS
from a2a_grpc.v03_proto import NAMED
from a2a_grpc.v03_results import P03

_PROTO_PATHS: Final = (
    (re.compile(r"^message\.parts\b"), "message.content"),
    (re.compile(r"^(message\.content\[\d+\]\.file)\.bytes\b"), r"\1.fileWithBytes"),
    (re.compile(r"^(message\.content\[\d+\]\.file)\.uri\b"), r"\1.fileWithUri"),
    (re.compile(r"\bconfiguration\.pushNotificationConfig\b"), "configuration.pushNotification"),
)
"""What the v0.3 proto calls otherwise than the JSON of v0.3."""

_RESOURCES: Final[Mapping[Any, Mapping[str, str]]] = {
    row.twin: {row.twin.DESCRIPTOR.fields_by_name[name].json_name: row.field for name in row.ids}
    for row in NAMED.values()
}
"""By v1.0 request type: the field with the resource name that each id is part of in the v0.3 proto."""


def renamed(operation: str, path: str, dialect: str) -> str:
    """A field path of an operation's v1.0 request, in the names of a v0.3 dialect, `J03` or `P03`."""
    request = REQUESTS[operation]
    return (_in_proto if dialect == P03 else _in_json)(request, path)


def _in_json(request: Any, path: str) -> str:
    if request is v1.SendMessageRequest:
        return old_path(path)
    if request is v1.TaskPushNotificationConfig:
        return path if path == "taskId" else f"pushNotificationConfig.{old_path(path)}"
    return next((old for old, new in PARAMS[request] if new == path), path)


def _in_proto(request: Any, path: str) -> str:
    if request in _RESOURCES:
        return _RESOURCES[request].get(path, path)
    if request is v1.TaskPushNotificationConfig and path in ("taskId", "id"):
        return "parent" if path == "taskId" else "configId"
    path = old_path(path)
    for pattern, replacement in _PROTO_PATHS:
        path = pattern.sub(replacement, path)
    return f"config.pushNotificationConfig.{path}" if request is v1.TaskPushNotificationConfig else path
