"""What is known of one call besides its message, and the shape of an interceptor.

Laws: a `Call` is made once, at the door, by the binding that took the call; below the door it is the only carrier of
caller, tenant, version, extensions and metadata. It knows no wire object and does no I/O.
"""

import re
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, Final

from google.protobuf.message import Message

from a2a_grpc.errors import InvalidParamsError

JSONRPC: Final = "JSONRPC"
GRPC: Final = "GRPC"
REST: Final = "HTTP+JSON"
V1: Final = "1.0"
V03: Final = "0.3"
VERSIONS: Final = (V1, V03)
"""Protocol versions that the package can speak, newest first (VER-07)."""

RESUME_EXTENSION: Final = "urn:a2a-grpc:extension:resume:v1"
"""URI of the resume extension: when activated, each streamed event carries `{"sequence": n}` in its metadata under
this URI; n is what `Last-Event-ID` (HTTP header or gRPC metadata `last-event-id`) takes to start from there."""

PUSH_EXTRAS: Final = "push.extras"
"""Key under which facts about push configs travel that v1.0 cannot say (L-04): in `Call.request_metadata` what the
binding read, in `Call.attributes` what belongs to an answer, as a mapping (task id, config id) -> the same value."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks.

    subject: a stable identity, made by the authenticator, never taken from a payload (AUTH-06); "" is anonymous.
    authenticated: whether a credential proved it; default False.
    scopes: granted scopes; default none.
    claims: whatever else the authenticator learnt; default empty.
    tenants: those that the caller may address, "" for none named; None (default) is every one (TENANT-07).
    """

    subject: str = ""
    authenticated: bool = False
    scopes: frozenset[str] = frozenset()
    claims: Mapping[str, Any] = field(default_factory=dict, repr=False)
    tenants: frozenset[str] | None = None


ANONYMOUS: Final = Caller()


@dataclass(frozen=True, slots=True)
class Certificate:
    """What is said of a client by the certificate that it has shown and the TLS library has checked.

    common_name: of the subject, "" for none. names: the alternative names, of whatever kind.
    """

    common_name: str = ""
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Credentials:
    """What a request shows of its sender, before anything else of it is looked at. Its repr holds no secret (SEC-05).

    binding: `JSONRPC`, `GRPC` or `REST`. metadata: headers, keys in lower case, repeated ones joined by ", ".
    query: names and values of the query; on gRPC, which has neither query nor cookies, the metadata again.
    certificate: the client's, None without one. peer: address of the other end, without its port; "" when nobody asked
    for it, as only the option `failure_rate` does.
    """

    binding: str
    metadata: Mapping[str, str] = field(repr=False)
    query: Collection[tuple[str, str]] = field(default=(), repr=False)
    certificate: Certificate | None = None
    peer: str = ""


Gate = Callable[[Credentials], Awaitable[Caller]]
"""What each wire asks first: who sent this? Raises the A2AError that refuses the request (AUTH-01, AUTH-05)."""


@dataclass(slots=True)
class Call:
    """One call as the layers below the door see it.

    operation: v1.0 method name, the same on every wire and version.
    binding: `JSONRPC`, `GRPC` or `REST`; version: "1.0" or "0.3", which fixes shapes and closing rules (VER-06).
    tenant: the addressed tenant, "" for none (TENANT-03, TENANT-04). agent: the one of several agents that the address
    stands for, "" where the tenant says it.
    metadata: request headers or gRPC metadata, keys in lower case, repeated ones joined by ", ".
    caller: who asks; an interceptor may replace it.
    extensions: requested extension URIs, in order, without doubles (EXT-02); activated: those in force (EXT-05).
    deadline: `time.monotonic()` value after which nobody waits, or None.
    resume: event number after which a stream is to start, from `Last-Event-ID`, or None.
    position: number of the event that a streaming method yielded last; the binding prints it as the SSE id.
    request_metadata: v0.3 request metadata without a place in v1.0 (L-14); empty in v1.0.
    attributes: room for interceptors to pass something on; empty by default.
    takes_ready: whether the caller also takes a `Ready` or a `Stored` for an answer, and `Event`s of a task for those
    of a stream; default False.
    path: of the HTTP request, still percent-encoded, below the place where the agent is; "" on gRPC.
    gives_request: whether nobody has a use for the request any more, so that whoever answers may keep it, which spares
    a copy of what may be large, and set the ids in its message; default False.
    """

    operation: str
    binding: str = GRPC
    version: str = V1
    tenant: str = ""
    agent: str = ""
    metadata: Mapping[str, str] = field(default_factory=dict, repr=False)
    caller: Caller = ANONYMOUS
    extensions: tuple[str, ...] = ()
    activated: tuple[str, ...] = ()
    deadline: float | None = None
    resume: int | None = None
    position: int = 0
    request_metadata: Mapping[str, Any] = field(default_factory=dict)
    attributes: dict[str, Any] = field(default_factory=dict)
    takes_ready: bool = False
    path: str = field(default="", repr=False)
    gives_request: bool = False


Interceptor = Callable[[Call, Message], AbstractAsyncContextManager[None]]
"""Something that surrounds a call: given the call and the v1.0 request message, an async context manager that is
entered before the service method and left after its answer (for streams: after the last event). It may change the
call, raise an A2AError to refuse it, or see the error that ended it. Composed once, when the server is made."""


_TRACE_PARENT: Final = re.compile(
    r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(-[!-~]{0,256})?"
)
_TRACE_STATE: Final = re.compile(r"[\x20-\x7e]{1,512}")


def trace_of(metadata: Mapping[str, str]) -> str:
    """The W3C trace context of a call in one line, as it is kept with a task: `traceparent`, and after a space
    `tracestate`, if there is one; "" for none, or none that is well-formed (SEC-07)."""
    parent = metadata.get("traceparent", "")
    if not parent or not _TRACE_PARENT.fullmatch(parent):
        return ""
    state = metadata.get("tracestate", "")
    return f"{parent} {state}" if _TRACE_STATE.fullmatch(state) else parent


def trace_headers(trace: str) -> dict[str, str]:
    """The headers that carry on what `trace_of` gave."""
    pairs = zip(("traceparent", "tracestate"), trace.split(" ", 1), strict=False)
    return {name: value for name, value in pairs if value}


_NUMBER: Final = re.compile(r"([0-9]+\.[0-9]+)(?:\.[0-9A-Za-z.+-]+)?")


def major_minor(version: str) -> str:
    """A version without its patch part (VER-05); text that is no version stays as it is."""
    found = _NUMBER.fullmatch(version)
    return found[1] if found else version


def told_version(*told: str) -> str:
    """The Major.Minor that the values of headers and query parameters name, "" when they name none.

    Raises InvalidParamsError when they differ (VER-10). The answer need not be a version that is spoken.
    """
    found = {major_minor(part.strip()) for text in told for part in text.split(",") if part.strip()}
    if len(found) > 1:
        raise InvalidParamsError(violations=[("A2A-Version", f"is given as {' and as '.join(sorted(found))}")])
    return found.pop() if found else ""


def extension_uris(*lines: str) -> tuple[str, ...]:
    """The extension URIs of some header lines: split at commas, trimmed, first mention kept (EXT-02, BL-33)."""
    found = [uri.strip() for line in lines if line for uri in line.split(",")]
    return tuple(dict.fromkeys(uri for uri in found if uri)) if found else ()
