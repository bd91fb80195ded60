"""The one table of v0.3 names: operations, task states, roles.

Laws: the only file besides service, clients and generated code that names an operation. A row is a fact; everything
that follows from it (methods of a wire, lookups both ways) is computed from the rows. No message, no translation.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple


class Name(NamedTuple):
    """What one operation is called: in v1.0, as a v0.3 JSON-RPC method, as a v0.3 gRPC and REST method, and further
    JSON-RPC spellings that are read but never written (I-43, I-45)."""

    operation: str
    jsonrpc: str
    method: str
    aliases: tuple[str, ...] = ()


NAMES: Final = (
    Name("SendMessage", "message/send", "SendMessage"),
    Name("SendStreamingMessage", "message/stream", "SendStreamingMessage"),
    Name("GetTask", "tasks/get", "GetTask"),
    Name("CancelTask", "tasks/cancel", "CancelTask"),
    Name("SubscribeToTask", "tasks/resubscribe", "TaskSubscription"),
    Name(
        "CreateTaskPushNotificationConfig",
        "tasks/pushNotificationConfig/set",
        "CreateTaskPushNotificationConfig",
    ),
    Name("GetTaskPushNotificationConfig", "tasks/pushNotificationConfig/get", "GetTaskPushNotificationConfig"),
    Name("ListTaskPushNotificationConfigs", "tasks/pushNotificationConfig/list", "ListTaskPushNotificationConfig"),
    Name(
        "DeleteTaskPushNotificationConfig",
        "tasks/pushNotificationConfig/delete",
        "DeleteTaskPushNotificationConfig",
    ),
    Name(
        "GetExtendedAgentCard",
        "agent/getAuthenticatedExtendedCard",
        "GetAgentCard",
        ("agent/authenticatedExtendedCard",),
    ),
)
"""Every operation that v0.3 has (V03-01, V03-26). Listing tasks is not among them (I-46)."""

BY_JSONRPC: Final[Mapping[str, str]] = {
    spelling: row.operation for row in NAMES for spelling in (row.jsonrpc, *row.aliases)
}
"""The operation of a v0.3 JSON-RPC method."""

BY_METHOD: Final[Mapping[str, str]] = {row.method: row.operation for row in NAMES}
"""The operation of a v0.3 gRPC or REST method."""

JSONRPC_NAMES: Final[Mapping[str, str]] = {row.operation: row.jsonrpc for row in NAMES}
"""The v0.3 JSON-RPC method of an operation."""

METHOD_NAMES: Final[Mapping[str, str]] = {row.operation: row.method for row in NAMES}
"""The v0.3 gRPC and REST method of an operation."""

STATES: Final[Mapping[str, str]] = {
    "TASK_STATE_UNSPECIFIED": "unknown",
    "TASK_STATE_SUBMITTED": "submitted",
    "TASK_STATE_WORKING": "working",
    "TASK_STATE_COMPLETED": "completed",
    "TASK_STATE_FAILED": "failed",
    "TASK_STATE_CANCELED": "canceled",
    "TASK_STATE_INPUT_REQUIRED": "input-required",
    "TASK_STATE_REJECTED": "rejected",
    "TASK_STATE_AUTH_REQUIRED": "auth-required",
}
"""v0.3 JSON spelling of a v1.0 task state (V03-16, L-11)."""

STATES_UP: Final[Mapping[str, str]] = {old: new for new, old in STATES.items()}

ROLES: Final[Mapping[str, str]] = {"ROLE_USER": "user", "ROLE_AGENT": "agent"}
"""v0.3 JSON spelling of a v1.0 role; there is none for an unspecified one (L-12)."""

ROLES_UP: Final[Mapping[str, str]] = {old: new for new, old in ROLES.items()}

CANCELLED: Final = "TASK_STATE_CANCELLED"
"""The v0.3 proto's name of v1.0 TASK_STATE_CANCELED (V03-22, I-41)."""
