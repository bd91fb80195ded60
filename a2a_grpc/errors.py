"""Every A2A error, once.

Laws: an error is a class, and the class is its row: reason, JSON-RPC code, gRPC status, HTTP status, v0.3 twin.
Code anywhere below a binding raises one of these and nothing else; each binding prints its own column.
This module knows no wire, no message type and no I/O. The values follow tables 0.4 and 0.5 of the requirements
(ERR-01 to ERR-18); the older statuses of protocol release 1.0.0 are the rows of `PROFILES` (I-02).
"""

import re
from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import Any, ClassVar, Final, NamedTuple

DOMAIN: Final = "a2a-protocol.org"
"""The ErrorInfo domain of every error (ERR-04)."""

TYPE_PREFIX: Final = "type.googleapis.com/"


STOPPING: Final = "The server is stopping"
"""What everybody is told whose call or stream a stopping server cannot go on with (BL-34)."""


class Code(IntEnum):
    """The gRPC status codes, by number and name."""

    CANCELLED = 1
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    ABORTED = 10
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14
    UNAUTHENTICATED = 16


class Violation(NamedTuple):
    """One wrong field: its camelCase path such as `message.parts[0].raw`, and what is wrong with it (ERR-06)."""

    field: str
    description: str


class A2AError(Exception):
    """The root of all errors that a caller may see. Never raised itself.

    message: human-readable text for the caller; default is the class's own `text` with the first violation. It never
    holds internals.
    violations: wrong fields, printed as google.rpc.BadRequest.
    metadata: string pairs for ErrorInfo, keys in camelCase (I-39).
    retry_after: seconds after which a repetition may succeed; None (default) says nothing about it (ERR-10).
    """

    reason: ClassVar[str]
    jsonrpc: ClassVar[int]
    grpc: ClassVar[Code]
    http: ClassVar[int]
    text: ClassVar[str]
    v03_name: ClassVar[str] = ""
    v03_text: ClassVar[str] = ""

    def __init__(
        self,
        message: str = "",
        *,
        violations: Iterable[Violation | tuple[str, str]] = (),
        metadata: Mapping[str, str] | None = None,
        retry_after: float | None = None,
    ) -> None:
        self.violations = tuple(Violation(*violation) for violation in violations)
        self.message = message or ": ".join([self.text, *map(" ".join, self.violations[:1])])
        self.metadata = dict(metadata or {})
        self.retry_after = retry_after
        super().__init__(self.message)

    @property
    def name(self) -> str:
        """The error's name in v0.3 answers (V03-18, L-28)."""
        return self.v03_name or type(self).__name__

    def status(self, profile: str = "1.0.1") -> tuple[Code, int]:
        """The gRPC status and the HTTP status under an error profile, a key of `PROFILES` (I-02)."""
        return PROFILES[profile].get(type(self), (self.grpc, self.http))

    def details(self) -> list[dict[str, Any]]:
        """The typed detail objects of the JSON bindings, ErrorInfo first (ERR-03 to ERR-06, JSON-21)."""
        info: dict[str, Any] = {
            "@type": TYPE_PREFIX + "google.rpc.ErrorInfo",
            "reason": self.reason,
            "domain": DOMAIN,
        }
        if self.metadata:
            info["metadata"] = self.metadata
        found = [info]
        if self.violations:
            found.append(
                {
                    "@type": TYPE_PREFIX + "google.rpc.BadRequest",
                    "fieldViolations": [violation._asdict() for violation in self.violations],
                }
            )
        if self.retry_after is not None:
            delay = f"{self.retry_after:.3f}".rstrip("0").rstrip(".")  # a duration knows no exponent
            found.append({"@type": TYPE_PREFIX + "google.rpc.RetryInfo", "retryDelay": f"{delay}s"})
        return found


class TaskNotFoundError(A2AError):
    """No such task, or not the caller's: the two are never told apart (OP-GET-02, ERR-07)."""

    reason, jsonrpc, grpc, http = "TASK_NOT_FOUND", -32001, Code.NOT_FOUND, 404
    text = v03_text = "Task not found"


class TaskNotCancelableError(A2AError):
    """The task is terminal already (OP-CANCEL-02)."""

    reason, jsonrpc, grpc, http = "TASK_NOT_CANCELABLE", -32002, Code.FAILED_PRECONDITION, 400
    text = v03_text = "Task cannot be canceled"


class PushNotificationNotSupportedError(A2AError):
    """The agent has no push notifications (PUSH-01, ERR-12)."""

    reason, jsonrpc, grpc, http = "PUSH_NOTIFICATION_NOT_SUPPORTED", -32003, Code.FAILED_PRECONDITION, 400
    text = v03_text = "Push Notification is not supported"


class UnsupportedOperationError(A2AError):
    """The operation does not apply here: terminal task, busy task, undeclared capability."""

    reason, jsonrpc, grpc, http = "UNSUPPORTED_OPERATION", -32004, Code.FAILED_PRECONDITION, 400
    text = v03_text = "This operation is not supported"


class ContentTypeNotSupportedError(A2AError):
    """A part's media type, or the body's, is not accepted (OP-SEND-08)."""

    reason, jsonrpc, grpc, http = "CONTENT_TYPE_NOT_SUPPORTED", -32005, Code.INVALID_ARGUMENT, 400
    text = v03_text = "Incompatible content types"


class InvalidAgentResponseError(A2AError):
    """The agent produced something that breaks the data model (DATA-14)."""

    reason, jsonrpc, grpc, http = "INVALID_AGENT_RESPONSE", -32006, Code.INTERNAL, 500
    text = v03_text = "Invalid agent response"


class ExtendedAgentCardNotConfiguredError(A2AError):
    """An extended card is declared but there is none (ERR-14)."""

    reason, jsonrpc, grpc, http = "EXTENDED_AGENT_CARD_NOT_CONFIGURED", -32007, Code.FAILED_PRECONDITION, 400
    text = "Extended Agent Card is not configured"
    v03_name = "AuthenticatedExtendedCardNotConfiguredError"
    v03_text = "Authenticated Extended Card is not configured"


class ExtensionSupportRequiredError(A2AError):
    """The agent requires an extension that the caller did not declare (EXT-06)."""

    reason, jsonrpc, grpc, http = "EXTENSION_SUPPORT_REQUIRED", -32008, Code.FAILED_PRECONDITION, 400
    text = v03_text = "Extension support is required"


class VersionNotSupportedError(A2AError):
    """The interface does not speak the protocol version asked for (VER-04, ERR-18)."""

    reason, jsonrpc, grpc, http = "VERSION_NOT_SUPPORTED", -32009, Code.FAILED_PRECONDITION, 400
    text = v03_text = "Protocol version is not supported"


class ParseError(A2AError):
    """The body is not JSON (RPC-09)."""

    reason, jsonrpc, grpc, http = "INVALID_JSON", -32700, Code.INVALID_ARGUMENT, 400
    text = v03_text = "Invalid JSON payload"


class InvalidRequestError(A2AError):
    """The body is JSON but not a request object of the binding (RPC-09)."""

    reason, jsonrpc, grpc, http = "INVALID_REQUEST", -32600, Code.INVALID_ARGUMENT, 400
    text = v03_text = "Request payload validation error"


class MethodNotFoundError(A2AError):
    """No such method, or no such route (RPC-10, REST-24)."""

    reason, jsonrpc, grpc, http = "METHOD_NOT_FOUND", -32601, Code.UNIMPLEMENTED, 404
    text = v03_text = "Method not found"


class MethodNotAllowedError(A2AError):
    """The route exists, but not for this HTTP verb; `allow` names those there are (REST-24)."""

    reason, jsonrpc, grpc, http = "METHOD_NOT_ALLOWED", -32601, Code.UNIMPLEMENTED, 405
    text = v03_text = "Method not allowed"

    def __init__(self, message: str = "", *, allow: Iterable[str] = ()) -> None:
        super().__init__(message)
        self.allow = tuple(allow)


class InvalidParamsError(A2AError):
    """A field is missing, of the wrong type, or out of range; `violations` names it (ERR-06)."""

    reason, jsonrpc, grpc, http = "INVALID_PARAMS", -32602, Code.INVALID_ARGUMENT, 400
    text = v03_text = "Invalid parameters"


class InternalError(A2AError):
    """Something failed inside; the log has the story under metadata `reference` (ERR-11, BL-28)."""

    reason, jsonrpc, grpc, http = "INTERNAL_ERROR", -32603, Code.INTERNAL, 500
    text = v03_text = "Internal error"


class UnavailableError(A2AError):
    """Not now: the server is stopping or a service it needs is away (ERR-10)."""

    reason, jsonrpc, grpc, http = "UNAVAILABLE", -32603, Code.UNAVAILABLE, 503
    text = v03_text = "Temporarily unavailable"


class NotFoundError(A2AError):
    """Something other than a task is not there, such as a tenant or a card (TENANT-06)."""

    reason, jsonrpc, grpc, http = "NOT_FOUND", -32602, Code.NOT_FOUND, 404
    text = v03_text = "Not found"


class UnauthenticatedError(A2AError):
    """Credentials are missing or wrong; `challenge` becomes WWW-Authenticate (ERR-08, I-38).

    wrong: whether some were shown. Default False; it is told to nobody.
    """

    reason, jsonrpc, grpc, http = "UNAUTHENTICATED", -32098, Code.UNAUTHENTICATED, 401
    text = v03_text = "Authentication is required"

    def __init__(self, message: str = "", *, challenge: str = "Bearer", wrong: bool = False) -> None:
        super().__init__(message)
        self.challenge = challenge
        self.wrong = wrong


class PermissionDeniedError(A2AError):
    """The caller is known but may not do this (ERR-09, I-38); `challenge` becomes WWW-Authenticate unless empty."""

    reason, jsonrpc, grpc, http = "PERMISSION_DENIED", -32099, Code.PERMISSION_DENIED, 403
    text = v03_text = "Permission denied"

    def __init__(self, message: str = "", *, challenge: str = "", metadata: Mapping[str, str] | None = None) -> None:
        super().__init__(message, metadata=metadata)
        self.challenge = challenge


class ResourceExhaustedError(A2AError):
    """A limit on rate, running turns or open streams is reached; `retry_after` says when to come back (SEC-04)."""

    reason, jsonrpc, grpc, http = "RESOURCE_EXHAUSTED", -32097, Code.RESOURCE_EXHAUSTED, 429
    text = v03_text = "Resource exhausted"


class PayloadTooLargeError(A2AError):
    """The request or the reply is larger than the limit, which the text names (BL-39, GRPC-15)."""

    reason, jsonrpc, grpc, http = "PAYLOAD_TOO_LARGE", -32600, Code.RESOURCE_EXHAUSTED, 413
    text = v03_text = "Payload too large"


class MediaTypeError(A2AError):
    """The HTTP body is of a media type that no wire reads: ContentTypeNotSupportedError with a status of its own
    (REST-09, I-62)."""

    reason, jsonrpc, grpc, http = "CONTENT_TYPE_NOT_SUPPORTED", -32005, Code.INVALID_ARGUMENT, 415
    text = v03_text = "Unsupported media type"
    v03_name = "ContentTypeNotSupportedError"


PROFILES: Final[Mapping[str, Mapping[type[A2AError], tuple[Code, int]]]] = {
    "1.0.1": {},
    "1.0.0": {
        TaskNotCancelableError: (Code.FAILED_PRECONDITION, 409),
        PushNotificationNotSupportedError: (Code.UNIMPLEMENTED, 400),
        UnsupportedOperationError: (Code.UNIMPLEMENTED, 400),
        VersionNotSupportedError: (Code.UNIMPLEMENTED, 400),
        ContentTypeNotSupportedError: (Code.INVALID_ARGUMENT, 415),
        InvalidAgentResponseError: (Code.INTERNAL, 502),
    },
}
"""Error profiles: statuses of a protocol patch release where they differ from the classes' own (I-02)."""


def _errors(root: type[A2AError]) -> Iterable[type[A2AError]]:
    for child in root.__subclasses__():
        yield child
        yield from _errors(child)


BY_REASON: Final[Mapping[str, type[A2AError]]] = {error.reason: error for error in reversed([*_errors(A2AError)])}
"""The error class of an ErrorInfo reason, for clients (ERR-15)."""

BY_CODE: Final[Mapping[int, type[A2AError]]] = {error.jsonrpc: error for error in reversed([*_errors(A2AError)])}
"""The error class of a JSON-RPC code, for clients (ERR-15); the first class in this file wins a shared code."""


_USER: Final = re.compile(r"(?<=://)[^\s/?#'\"]*@")
_QUERY: Final = re.compile(r"(://[^\s?#'\"]*\?)[^\s#'\",)]*[^\s#'\",):]")


def scrubbed(text: object) -> str:
    """A text whose addresses have lost what may be secret: user and password, and the query (SEC-05)."""
    return _QUERY.sub(r"\1...", _USER.sub("", str(text)))
