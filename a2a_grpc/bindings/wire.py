"""What the HTTP wires share: requests and replies as plain data, the choice of the version, the making of a `Call`,
the run of one operation, and errors on their way out and in.

Laws: no HTTP library, no gRPC library, no version's field names. A wire gets an `HttpRequest` and gives an `Answer`;
hosts carry both. The version is decided from header and query before a route or a method name is looked at (VER-02 to
VER-10); only what an absent version means depends on the surface (I-09), which the wire says. Nothing is sent before
the first event of a stream or its early error is known (BL-20).
"""

import asyncio
import logging
import math
import re
import time
import uuid
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from functools import partial
from types import MappingProxyType
from typing import Any, Final, NamedTuple, Protocol
from urllib.parse import parse_qsl

from google.protobuf.message import Message

from a2a_grpc import errors, v03
from a2a_grpc.bindings import sse
from a2a_grpc.call import (
    ANONYMOUS,
    GRPC,
    REST,
    V03,
    V1,
    VERSIONS,
    Call,
    Caller,
    Certificate,
    extension_uris,
    told_version,
)
from a2a_grpc.config import Options
from a2a_grpc.errors import A2AError, InternalError, InvalidParamsError, VersionNotSupportedError, Violation
from a2a_grpc.methods import Method
from a2a_grpc.protojson import Mould, decoder, encoder
from a2a_grpc.python310_asyncio import cancelling
from a2a_grpc.tasks.store import Event
from a2a_grpc.tasks.told import Text

VERSION_HEADER: Final = "a2a-version"
"""Name of the version's header, and in any case of its query parameter (VER-03)."""

EXTENSION_HEADERS: Final[Mapping[str, str]] = {V1: "A2A-Extensions", V03: "X-A2A-Extensions"}
"""The extension header that replies of a version use; requests are read with both (EXT-14, BL-33)."""

NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})
"""Request metadata of calls that have none, which all of them share."""

JSON: Final = "application/json"
A2A_JSON: Final = "application/a2a+json"

ALWAYS: Final[Mapping[str, frozenset[str]]] = {"include_artifacts": frozenset({"lf.a2a.v1.Task.artifacts"})}
"""Deviations of the printed answer: written even when empty if the request field of that name is true (LIST-10)."""

KEPT: Final = frozenset({"lf.a2a.v1.Task", "lf.a2a.v1.StreamResponse"})
"""Types whose JSON is kept for the next reader of the same, in answers to operations that only read."""

HTTP_LEVEL: Final = frozenset({401, 403, 405, 413, 415, 429, 503})
"""Failures that keep their HTTP status on every wire and every kind of call (RPC-12, I-37)."""

KEPT_FOR: Final = 5.0
"""Seconds, about, that what a request says beside its body is kept for one that says the same: it holds credentials."""

log = logging.getLogger("a2a_grpc")


class Told(NamedTuple):
    """What headers or metadata say that is asked of every request: found out once for all requests that have the same.

    version: the text of the version's header, "" for none; extensions, resume: see Call. json: whether the body is JSON
    by the type's name or suffix; parameters are ignored, none at all is fine (REST-08).
    """

    version: str
    extensions: tuple[str, ...]
    resume: int | None
    json: bool

    @classmethod
    def by(cls, headers: Mapping[str, str]) -> "Told":
        """What these headers say, keys in lower case. Raises nothing."""
        get = headers.get
        last, kind = get("last-event-id", ""), get("content-type", "").partition(";")[0].strip().lower()
        return cls(
            get(VERSION_HEADER, ""),
            extension_uris(get("a2a-extensions", ""), get("x-a2a-extensions", "")),
            # A number that is not ours is no position; the stream then starts with the snapshot.
            int(last) if last.isascii() and last.isdigit() and len(last) < 19 else None,
            not kind or kind == JSON or kind.endswith("+json"),
        )


@dataclass(slots=True)
class HttpRequest:
    """An HTTP request as the wires see it.

    verb: in upper case. path: still percent-encoded, below the mount's prefix. query: raw, without `?`.
    headers: keys in lower case, repeated ones joined with ", ". body: complete and uncompressed.
    certificate: the client's, None without one. peer: see Credentials. facts: what the headers tell, if a host has kept
    that from an earlier request; default None.
    """

    verb: str
    path: str
    query: str = field(default="", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: bytes | bytearray = field(default=b"", repr=False)
    certificate: Certificate | None = None
    peer: str = ""
    facts: Told | None = field(default=None, repr=False)

    @property
    def told(self) -> Told:
        """What the headers tell."""
        found = self.facts
        if found is None:
            found = self.facts = Told.by(self.headers)
        return found


@dataclass(slots=True)
class HttpReply:
    """A complete reply: status, headers, body."""

    status: int
    headers: dict[str, str]
    body: bytes


class Chunks(Protocol):
    """The bytes of a streamed body, which are closed however they end."""

    def __aiter__(self) -> AsyncIterator[bytes]:
        """The chunks, in order."""

    async def aclose(self) -> None:
        """Ends what the bytes come from."""


@dataclass(slots=True)
class HttpStream:
    """A reply in chunks. The host sends status and headers with the first chunk, each chunk at once, never compressed,
    and calls `chunks.aclose()` however it ends."""

    status: int
    headers: dict[str, str]
    chunks: Chunks


Answer = HttpReply | HttpStream


# -- what a request asks for


def query_pairs(request: HttpRequest) -> list[tuple[str, str]]:
    """The query's names and values, percent-decoded, blanks kept. Raises InvalidParamsError when it is not UTF-8."""
    if not request.query:
        return []
    try:
        return parse_qsl(request.query, keep_blank_values=True, errors="strict")
    except ValueError:
        raise InvalidParamsError(violations=[("query", "is not percent-encoded UTF-8")]) from None


def asked_version(request: HttpRequest, pairs: Collection[tuple[str, str]]) -> str | None:
    """The Major.Minor that header or query ask for, None when neither says one (VER-05).

    Raises InvalidParamsError when they differ (VER-10). The answer need not be a version that is spoken: see `offered`.
    """
    header = request.told.version
    told = [value for name, value in pairs if name.lower() == VERSION_HEADER] if pairs else ()
    plain = not told and (not header or header in VERSIONS)
    return (header if plain else told_version(header, *told)) or None


def offered(version: str, options: Options) -> str:
    """The version itself if the server speaks it; else raises VersionNotSupportedError (VER-04, VER-09, ERR-18)."""
    if version in options.versions:
        return version
    supported = ", ".join(known for known in VERSIONS if known in options.versions)
    raise VersionNotSupportedError(
        f"Protocol version {version[:40]} is not supported; supported: {supported}",
        metadata={"supportedVersions": supported},
    )


def make_call(
    request: HttpRequest,
    operation: str,
    binding: str,
    version: str,
    message: Any,
    extra: Mapping[str, Any],
    caller: Caller = ANONYMOUS,
) -> Call:
    """The `Call` of a request. extra: v0.3 request metadata; caller: as the gate told."""
    _, extensions, resume, _ = request.told
    # By position, which is twice as quick as by name where a class has so many fields.
    return Call(
        operation,
        binding,
        version,
        message.tenant,
        "",
        request.headers,
        caller,
        extensions,
        (),
        None,
        resume,
        0,
        extra,
        {},
        version == V1,
        request.path,
        True,
    )


BASE64_READERS: Final[Mapping[str, str]] = {GRPC: "grpc-python", REST: "python-httpx"}
"""User agent of a much used v0.3 client, which takes file bytes for base64 text although the proto's type says raw."""

BASE64_READ: Final[Mapping[str, bool | None]] = {"raw": False, "base64": None, "auto": None}
"""By the option `v03_file_bytes`: False when the bytes that v0.3 callers send are never taken for base64 text."""


def base64_bytes(call: Call, options: Options) -> bool:
    """Whether file bytes in the answers to a v0.3 call over gRPC or REST are written as base64 text."""
    form = options.v03_file_bytes
    return form == "base64" or (form == "auto" and BASE64_READERS[call.binding] in call.metadata.get("user-agent", ""))


# -- the run of one operation


class Operation:
    """One operation of a servicer, ready to run: its v1.0 name, how its request is read and its answer printed, and
    whether it only reads.

    servicer: any object with the eleven v1.0 methods `(request, call)`; streaming ones are async generators.
    room: called before a stream is started; raises ResourceExhaustedError when there is none. Default: always room.
    """

    __slots__ = ("_always", "_encode", "decode", "handler", "name", "reads", "room", "streaming")

    def __init__(self, servicer: object, method: Method, room: Callable[[], None] = lambda: None) -> None:
        self.name = method.name
        self.room = room
        self.streaming = method.streaming
        self.handler = getattr(servicer, method.name)
        self.decode = decoder(method.request)
        self.reads = method.reads
        kept = KEPT if method.reads else frozenset[str]()
        self._encode = encoder(method.response, kept=kept)
        if method.streaming:
            self._encode = partial(_event, self._encode, encoder(method.response))
        known = method.request.DESCRIPTOR.fields_by_name
        self._always = [(name, encoder(method.response, more, kept)) for name, more in ALWAYS.items() if name in known]

    def printer(self, request: Message) -> Any:
        """The v1.0 encoder for the answer to this request."""
        for name, encode in self._always:
            if getattr(request, name):
                return encode
        return self._encode


def _event(encode: Callable[[Any], Any], anew: Callable[[Any], Any], event: Any) -> Any:
    """The JSON value of an event of a stream: a message, or an `Event` of a task. anew: encodes and keeps nothing."""
    if type(event) is not Event:
        return encode(event)
    text: Any = event.told
    if type(text) is not Text or text.last:
        return encode(event.payload)
    if text.json is None:
        to = text.to
        if to.json is None:
            to.json = Mould(anew, Event(0, None, Text(to, Mould.HOLE, False).body).payload)
        text.json = to.json.filled(text.text)
    return text.json


@dataclass(slots=True)
class Form:
    """How the events of one call look on its wire and in its version.

    show: the JSON value of an event, without `down`. write: a value as an event's data. error: the body of an error.
    failed: the event that ends a stream with that.
    down: what makes the events of v0.3 out of those of v1.0; default None: they are shown as they are.
    """

    show: Callable[[Any], Any]
    write: Callable[[Any], bytes]
    error: Callable[[A2AError], bytes]
    failed: Callable[[bytes], bytes]
    down: v03.StreamDown | None = None


def reply(body: bytes, call: Call, media: str) -> HttpReply:
    """The reply that holds an answer; media: its Content-Type."""
    headers = {"content-type": media}
    return HttpReply(200, headers | activated(call) if call.activated else headers, body)


async def stream(operation: Operation, message: Message, call: Call, form: Form, options: Options) -> HttpStream:
    """Run one streaming operation. Raises what came before the first event."""
    show, write, down = form.show, form.write, form.down
    operation.room()

    def frames(event: Any) -> bytes:
        if down is None:
            return sse.encode(write(show(event)), call.position or None)
        return b"".join([sse.encode(write(value), call.position or None) for value in down.event(event)])

    events = sse.EventStream(
        operation.handler(message, call),
        frames,
        lambda: b"".join([sse.encode(write(value)) for value in (down.finish() if down else ())]),
        lambda fault: form.failed(form.error(public(fault))),
        options.heartbeat,
    )
    await events.started()
    return HttpStream(200, {**sse.HEADERS, **activated(call)}, events)


def activated(call: Call) -> dict[str, str]:
    """The reply header that lists the extensions in force, if any are (EXT-05, EXT-14)."""
    return {EXTENSION_HEADERS[call.version]: ", ".join(call.activated)} if call.activated else {}


def public(fault: BaseException) -> A2AError:
    """What the caller may know of a failure: an A2AError as it is, anything else as InternalError with a reference id
    under which the log has the story (ERR-11, BL-28)."""
    if isinstance(fault, A2AError):
        return fault
    reference = uuid.uuid4().hex[:12]
    log.error("call failed, reference %s", reference, exc_info=fault)
    return InternalError(metadata={"reference": reference})


def outcome(fault: BaseException) -> A2AError:
    """`public` for the task that answers: its own cancellation is raised on, one from inside is a failure (BL-29)."""
    task = asyncio.current_task()
    if isinstance(fault, asyncio.CancelledError) and task is not None and cancelling(task):
        raise fault
    return public(fault)


def error_headers(error: A2AError, media: str) -> dict[str, str]:
    """The headers of an error reply: its type, and the hints that HTTP has a header for (ERR-08, ERR-10, REST-24)."""
    headers = {"content-type": media}
    if isinstance(error, errors.UnauthenticatedError | errors.PermissionDeniedError) and error.challenge:
        headers["www-authenticate"] = error.challenge
    if isinstance(error, errors.MethodNotAllowedError) and error.allow:
        headers["allow"] = ", ".join(error.allow)
    if error.retry_after is not None:
        headers["retry-after"] = str(max(0, math.ceil(error.retry_after)))
    return headers


# -- errors on their way in, for clients

BY_HTTP: Final[Mapping[int, type[A2AError]]] = {
    400: errors.InvalidParamsError,
    401: errors.UnauthenticatedError,
    403: errors.PermissionDeniedError,
    404: errors.NotFoundError,
    405: errors.MethodNotAllowedError,
    413: errors.PayloadTooLargeError,
    415: errors.MediaTypeError,
    429: errors.ResourceExhaustedError,
    **dict.fromkeys((502, 503, 504), errors.UnavailableError),
}
"""What an HTTP status alone means, when the peer says nothing better; the last are those of proxies, as gRPC has it."""

BY_NAME: Final[Mapping[str, type[A2AError]]] = {
    name: error for error in errors.BY_REASON.values() for name in (error.__name__, error.v03_name) if name
}
"""The error class of a v0.3 `type` name (I-47)."""


BY_TEXT: Final[Mapping[str, type[A2AError]]] = {
    "task not found": errors.TaskNotFoundError,
    "task not cancelable": errors.TaskNotCancelableError,
    "task cannot be canceled": errors.TaskNotCancelableError,
}
"""What an error means by the beginning of its text, where a deployed v0.3 server says nothing better."""


def by_text(message: object) -> type[A2AError] | None:
    """The error that a text is known for."""
    text = str(message).lower()
    return next((kind for start, kind in BY_TEXT.items() if text.startswith(start)), None)


def received(
    message: object,
    code: object,
    details: object,
    *,
    name: object = "",
    status: int = 200,
    headers: Mapping[str, str] | None = None,
) -> A2AError:
    """The error that a peer sent: by ErrorInfo reason, else JSON-RPC code, else v0.3 name, else HTTP status, else
    InternalError (ERR-15, ERR-16). Members of any type are taken; headers have keys in lower case."""
    parts = [part for part in details if isinstance(part, dict)] if isinstance(details, list) else []
    reason, metadata, violations, delay = _unfold(parts)
    kind = errors.BY_REASON.get(reason)
    if kind is None and isinstance(code, int):
        kind = errors.BY_CODE.get(code)
    kind = kind or BY_NAME.get(str(name)) or by_text(message) or BY_HTTP.get(status, InternalError)
    text = message if isinstance(message, str) else ""
    if not text and status != 200 and kind in (InternalError, errors.UnavailableError):
        text = f"the answer has the HTTP status {status}"
    error = kind(text)
    error.metadata = metadata
    error.violations = violations
    told = headers or {}
    error.retry_after = _wait(told) if delay is None else delay
    if isinstance(error, errors.UnauthenticatedError) and "www-authenticate" in told:
        error.challenge = told["www-authenticate"]
    return error


def _unfold(details: list[dict[str, Any]]) -> tuple[str, dict[str, str], tuple[Violation, ...], float | None]:
    """Reason, metadata, violations and delay of google.rpc detail objects, whatever else is among them."""
    reason, metadata, violations, delay = "", {}, [], None
    for detail in details:
        kind = str(detail.get("@type", "")).rpartition("/")[2]
        if kind == "google.rpc.ErrorInfo":
            reason = str(detail.get("reason", ""))
            if isinstance(pairs := detail.get("metadata"), dict):
                metadata = {str(key): str(value) for key, value in pairs.items()}
        elif kind == "google.rpc.BadRequest" and isinstance(listed := detail.get("fieldViolations"), list):
            violations += [
                Violation(str(one.get("field", "")), str(one.get("description", "")))
                for one in listed
                if isinstance(one, dict)
            ]
        elif kind == "google.rpc.RetryInfo" and (found := _SECONDS.fullmatch(str(detail.get("retryDelay", "")))):
            delay = float(found[1])
    return reason, metadata, tuple(violations), delay


def _wait(told: Mapping[str, str]) -> float | None:
    """Seconds that Retry-After asks for: a number, or a date by the peer's own clock where it tells that (ERR-10)."""
    after = told.get("retry-after", "")
    if _DIGITS.fullmatch(after):
        return float(after)
    until = _time(after)
    return None if until is None else max(0.0, until - (_time(told.get("date", "")) or time.time()))


def _time(text: str) -> float | None:
    try:
        return parsedate_to_datetime(text).timestamp()
    except (ValueError, OverflowError):
        return None


_DIGITS: Final = re.compile(r"[0-9]{1,9}")
_SECONDS: Final = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)s")
