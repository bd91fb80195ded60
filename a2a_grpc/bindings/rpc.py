"""gRPC without a gRPC library: which calls there are, how each is read, run, answered and refused.

Laws: the calls are computed from the method tables of the stubs, so no operation is named here, and no v0.3 field.
Metadata becomes a `Call`, an A2AError becomes a status whose trailers fit every client's limit; nothing else reaches a
caller (GRPC-01 to GRPC-16). A call ends with its connection or deadline; what it started does not (GRPC-11). What a
call looks like on its host is a `Context`; the hosts are `bindings.grpc` and `bindings.asgi_grpc`.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from contextvars import Context as Variables
from types import MappingProxyType, ModuleType
from typing import Any, Final, NamedTuple, Protocol
from urllib.parse import unquote

from a2a_stubs import descriptors, google, v03_grpc, v1_grpc
from google.protobuf.message import DecodeError, Message

from a2a_grpc import v03, v03_names
from a2a_grpc.bindings.streams import Running, Stream, Streams
from a2a_grpc.bindings.wire import (
    BASE64_READ,
    EXTENSION_HEADERS,
    KEPT_FOR,
    NOTHING,
    HttpRequest,
    asked_version,
    base64_bytes,
    make_call,
    offered,
    outcome,
)
from a2a_grpc.call import ANONYMOUS, GRPC, PUSH_EXTRAS, V03, V1, Call, Caller, Certificate, Credentials, Gate
from a2a_grpc.config import Options
from a2a_grpc.errors import (
    DOMAIN,
    A2AError,
    Code,
    InvalidParamsError,
    PermissionDeniedError,
    UnauthenticatedError,
    VersionNotSupportedError,
)
from a2a_grpc.methods import METHODS
from a2a_grpc.protojson import unfit
from a2a_grpc.python310_asyncio import uncancel
from a2a_grpc.ready import Ready, Stored
from a2a_grpc.tasks.store import Event

PACKAGES: Final[Mapping[str, ModuleType]] = {V1: v1_grpc, V03: v03_grpc}
"""The stubs of each protocol version; each version has its own package and service (I-09)."""

TEXT_LIMIT: Final = 1800
"""Bytes of a status text after percent-encoding, which triples what is not ASCII (BL-30)."""

DETAIL_LIMIT: Final = 3600
"""Bytes of `grpc-status-details-bin` before base64: with the text about 6.6 KiB, below the usual 8 KiB (BL-30)."""

CHALLENGE_LIMIT: Final = 500
"""Bytes of `www-authenticate`, which still fit beside the other two."""

MARK: Final = " [cut]"
"""What stands at the end of a text that was cut."""

STOPPED: Final = "_ServerStoppedError"
"""What reading from a caller raises, by name, when grpcio has stopped meanwhile; grpcio itself knows what to do."""

_READY: Final = frozenset({Ready, Stored})

NOT_A_REQUEST: Final = "The bytes are not the request message of this method"


class Context(Protocol):
    """One call on its host. What grpc.aio gives its handlers is one."""

    def invocation_metadata(self) -> dict[str, str] | Iterable[tuple[str, str | bytes]]:
        """Names in lower case and values, bytes for names in `-bin`; or names and values where each is one text."""

    def time_remaining(self) -> float | None:
        """Seconds until nobody waits any more, None for no end."""

    def peer(self) -> str:
        """The address of the other end, alone or as gRPC writes it, such as `ipv4:127.0.0.1:50000`."""

    async def send_initial_metadata(self, metadata: Any) -> None:
        """Send pairs ahead of the first message."""

    async def write(self, message: Any) -> None:
        """Send a message of a stream; returns when the reader can take more."""


Handler = Callable[[Any, Any], Awaitable[Any]]
"""Runs a call: request (None for bytes that are none) and `Context` in, the answer out; streams are written. Those of
A2A also take bytes for the request of a stream, which a host would keep as a message for as long as the stream goes
on."""


class Rpc(NamedTuple):
    """One call that is served.

    path: `/package.Service/Method`. read, write: between bytes and messages. handler: what runs it. streaming: many
    answers. asking: many requests, which the handler gets as an async iterator. Default for both: one.
    """

    path: str
    read: Callable[[bytes], Any]
    write: Callable[[Any], bytes]
    handler: Handler
    streaming: bool = False
    asking: bool = False


class Refusal(NamedTuple):
    """How a call ends that failed: status, text, and the other trailers."""

    code: Code
    text: str
    trailers: tuple[tuple[str, str | bytes], ...]


Refuse = Callable[[Any, Refusal], Awaitable[Any]]
"""Ends a call of a host, which is known by its context, with a refusal."""


def metadata_of(context: Any) -> Any:
    """The metadata of a call, see `Context`."""
    return context.invocation_metadata()


def nobody(context: Any) -> Certificate | None:
    """The certificate of callers on hosts that see none."""
    return None


class Rpcs:
    """The calls of a servicer.

    servicer: any object with the eleven v1.0 methods `(request, call)`; streaming ones are async generators.
    options: versions, limits, error profile. streams: where open streams are counted, shared with the other wires.
    gate: tells who is calling; default None: nobody is asked. refuse: ends a call on its host.
    certificate: what the caller of a call has shown of itself. metadata: what it has sent beside the request.
    ready: whether answers are written as `rows` say, so that they need not be messages; default True.
    handlers: for each offered version, the handlers by the names of their methods. running: the calls in hand.
    """

    def __init__(
        self,
        servicer: object,
        options: Options,
        streams: Streams,
        gate: Gate | None,
        refuse: Refuse,
        certificate: Callable[[Any], Certificate | None] = nobody,
        metadata: Callable[[Any], Any] = metadata_of,
        ready: bool = True,
    ) -> None:
        self._options = options
        self._streams = streams
        self._refuse = refuse
        self.running = Running()
        self.handlers: dict[str, dict[str, Handler]] = {}
        for version, package in PACKAGES.items():
            if version in options.versions:
                about = options, gate, certificate, metadata, ready
                doors = [_Door(version, row, *about) for row in package.METHODS]
                self.handlers[version] = {door.name: self._handler(servicer, door) for door in doors}

    @property
    def names(self) -> tuple[str, ...]:
        """The full names of the offered services."""
        return tuple(PACKAGES[version].SERVICE for version in self.handlers)

    def rows(self) -> list[Rpc]:
        """Every call of every offered version."""
        return [
            Rpc(row.path, _reader(row), _writer(row), handlers[row.name], row.server_streaming)
            for version, handlers in self.handlers.items()
            for row in PACKAGES[version].METHODS
        ]

    def plain(self, method: Handler) -> Handler:
        """The handler of a method outside of A2A, such as health, which may raise what A2A methods may."""

        async def handler(request: Any, context: Any) -> Any:
            try:
                if request is None:
                    raise InvalidParamsError(NOT_A_REQUEST)
                return await method(request, context)
            except (Exception, asyncio.CancelledError) as fault:
                if type(fault).__name__ == STOPPED:
                    raise
                return await self._refuse(context, refusal(outcome(fault), self._options))

        return handler

    def end(self, error: A2AError) -> None:
        """End every open stream, on whatever wire it is counted, with `error`."""
        self._streams.end(error)

    def _handler(self, servicer: object, door: "_Door") -> Handler:
        method = getattr(servicer, door.operation)

        async def handler(request: Any, context: Any) -> Any:
            self.running.enter()
            stream: Stream | None = None
            call: Call | None = None
            try:
                if type(request) is bytes:
                    request = door.parse(request)
                if door.gated:
                    message, call = await door.enter(request, context)
                else:
                    message, call = door.read(request, context, door.sent(context))
                if door.streaming:
                    stream = self._streams.open(door.path, self._options.stall_timeout)
                    events = method(message, call)
                    del request, message
                    await door.pump(events, call, context, stream)
                    return None
                answer = await method(message, call)
                if call.activated:
                    await door.announce(call, context)
                return door.answer(answer, call) if door.old else answer
            except (Exception, asyncio.CancelledError) as fault:
                return await self._refuse(context, door.refusal(cause(stream, fault), inside=call is not None))
            finally:
                # It was counted while its last status waited for a reader that has stalled.
                if stream is not None:
                    stream.close()
                self.running.leave()

        return handler


def reader(kind: type[Message]) -> Callable[[bytes], Message | None]:
    """Reads requests; None for bytes that are none, as a gRPC library would show the caller whatever is raised here."""

    def read(data: bytes) -> Message | None:
        try:
            return kind.FromString(data)
        except DecodeError:
            return None

    return read


def _reader(row: descriptors.Method) -> Callable[[bytes], Any]:
    return bytes if row.server_streaming else reader(row.input)


def _writer(row: descriptors.Method) -> Callable[[Any], bytes]:
    plain: Callable[[Any], bytes] = row.output.SerializeToString
    if row.server_streaming:
        return lambda event: event.body if type(event) is Event else plain(event)
    return lambda answer: answer.body() if type(answer) in _READY else plain(answer)


def cause(stream: Stream | None, fault: BaseException) -> A2AError:
    """Why a stream failed, for its reader: its end from this side comes first. Raises what cancels the call itself."""
    if stream is None or stream.error is None:
        return outcome(fault)
    task = asyncio.current_task()
    assert task is not None
    uncancel(task)
    return stream.error


def _address(peer: str) -> str:
    """The address in what gRPC calls a peer."""
    family, _, rest = peer.partition(":")
    return unquote(rest).rpartition(":")[0].strip("[]") if family in ("ipv4", "ipv6") else peer


class _Door:
    """What the handlers of one method share: the way in and the way out.

    name: the method's own; operation: the v1.0 name; version: of the package; path: full gRPC path; streaming: many
    answers; old: whether messages are translated; gated: whether callers are asked who they are. parse: reads requests.
    """

    __slots__ = (
        "_carrier",
        "_certificate",
        "_gate",
        "_known",
        "_metadata",
        "_options",
        "_reads",
        "_ready",
        "_told",
        "gated",
        "name",
        "old",
        "operation",
        "parse",
        "path",
        "streaming",
        "version",
    )

    def __init__(
        self,
        version: str,
        row: descriptors.Method,
        options: Options,
        gate: Gate | None,
        certificate: Callable[[Any], Certificate | None],
        metadata: Callable[[Any], Any],
        ready: bool,
    ) -> None:
        self.old = version == V03
        self.operation = v03_names.BY_METHOD[row.name] if self.old else row.name
        self.name, self.version, self.path, self.streaming = row.name, version, row.path, row.server_streaming
        self.parse = reader(row.input)
        self._reads = METHODS[V1][self.operation].reads
        self._options = options
        self._gate = gate
        self.gated = gate is not None
        self._certificate = certificate
        self._metadata, self._ready = metadata, ready
        # Callers mostly repeat themselves: the last metadata, and what they say.
        self._told: Any = None
        self._carrier = HttpRequest("", "")
        self._known = frozenset({version} if options.strict_version and not self.old else {version, ""})

    async def enter(self, request: Any, context: Context) -> tuple[Any, Call]:
        """`read`, for whoever the gate lets in (GRPC-06)."""
        assert self._gate is not None
        sent = self.sent(context)
        certificate = self._certificate(context) if self._options.tls_client_ca else None
        peer = _address(context.peer()) if self._options.failure_rate else ""
        told = Credentials(GRPC, sent.headers, sent.headers.items(), certificate, peer)
        return self.read(request, context, sent, await self._gate(told))

    def sent(self, context: Context) -> HttpRequest:
        """The metadata of a call."""
        told = self._metadata(context)
        if type(told) is not tuple:
            return HttpRequest("", "", headers=told if isinstance(told, dict) else _joined(told))
        if told != self._told:
            if self._told is None:
                asyncio.get_running_loop().call_later(KEPT_FOR, self.forget, context=Variables())
            # Calls share it, so nobody may write to it.
            self._told, self._carrier = told, HttpRequest("", "", headers=MappingProxyType(_joined(told)))
        return self._carrier

    def forget(self) -> None:
        """Keep nothing of the calls so far."""
        self._told, self._carrier = None, HttpRequest("", "")

    def read(self, request: Any, context: Context, sent: HttpRequest, caller: Caller = ANONYMOUS) -> tuple[Any, Call]:
        """The v1.0 message and the `Call` of a request (GRPC-04, GRPC-05, TENANT-04). request: None if the bytes could
        not be read. sent: its metadata."""
        if request is None:
            raise InvalidParamsError(NOT_A_REQUEST)
        # The JSON bindings refuse such values when they read.
        if violations := unfit(request):
            raise InvalidParamsError(violations=violations)
        if sent.told.version not in self._known:
            self._check_version(asked_version(sent, ()) or V03)
        extra: Mapping[str, Any] = NOTHING
        if self.old:
            request, extra = v03.up_message(request, BASE64_READ[self._options.v03_file_bytes])
        call = make_call(sent, self.operation, GRPC, self.version, request, extra, caller)
        call.takes_ready = call.takes_ready and self._ready
        remaining = context.time_remaining()
        if remaining is not None:
            call.deadline = time.monotonic() + remaining
        return request, call

    def _check_version(self, asked: str) -> None:
        """The package fixes the version; metadata may only agree (VER-04, VER-05, I-09)."""
        if offered(asked, self._options) != self.version:
            text = f"This service speaks protocol version {self.version}, not {asked}"
            raise VersionNotSupportedError(text, metadata={"supportedVersions": self.version})

    async def announce(self, call: Call, context: Context) -> None:
        """Name the extensions in force, ahead of the first message (GRPC-14)."""
        await context.send_initial_metadata(((EXTENSION_HEADERS[self.version].lower(), ", ".join(call.activated)),))

    def answer(self, message: Any, call: Call) -> Any:
        """The v0.3 message of an answer."""
        schemes = call.attributes.get(PUSH_EXTRAS)
        return v03.down_message(message, base64_bytes(call, self._options), schemes, self._reads)

    def _stream_down(self, call: Call) -> v03.StreamDown:
        closes, base64 = self._options.close_on_input_required, base64_bytes(call, self._options)
        return v03.StreamDown(self.operation, v03.P03, closes_on_input=closes, base64_bytes=base64)

    async def pump(self, events: AsyncGenerator[Any, None], call: Call, context: Context, stream: Stream) -> None:
        """Write every event; the generator is closed however this ends (GRPC-11, BL-35)."""
        down = self._stream_down(call) if self.old else None
        begun = False
        try:
            async for event in events:
                if not begun:
                    begun = True
                    if call.activated:
                        await self.announce(call, context)
                if down is None:
                    stream.waiting_since = time.monotonic()
                    await context.write(event)
                    stream.waiting_since = 0.0
                    del event  # the next one may be long in coming
                    continue
                for shown in down.event(event):
                    await stream.write(context.write(shown))
            for shown in down.finish() if down else ():
                await stream.write(context.write(shown))
        finally:
            await events.aclose()

    def refusal(self, error: A2AError, inside: bool) -> Refusal:
        """How a call ends with an error (GRPC-07, GRPC-10, ERR-04). inside: whether the request had come through the
        door, so that a v0.3 one was refused as the v1.0 one that it stands for."""
        if not self.old:
            return refusal(error, self._options)
        error = v03.as_v03(error, self.operation, v03.P03 if inside else "")
        return refusal(error, self._options, v03.grpc_text(error))


def refusal(error: A2AError, options: Options, text: str = "") -> Refusal:
    """The status, text and details of an error. text: default the error's own."""
    code = error.status(options.error_profile)[0]
    text = cut(text or error.message, TEXT_LIMIT, 3)
    trailers: list[tuple[str, str | bytes]] = [("grpc-status-details-bin", status_details(error, code, text))]
    challenge = error.challenge if isinstance(error, UnauthenticatedError | PermissionDeniedError) else ""
    if challenge and challenge.isascii() and challenge.isprintable():
        trailers.append(("www-authenticate", challenge[:CHALLENGE_LIMIT]))
    return Refusal(code, text, tuple(trailers))


def _joined(pairs: Iterable[tuple[str, str | bytes]]) -> dict[str, str]:
    found: dict[str, str] = {}
    for key, value in pairs:
        if isinstance(value, str):
            found[key] = f"{found[key]}, {value}" if key in found else value
    return found


def cut(text: str, limit: int, weight: int = 1) -> str:
    """The text, or as many of its characters as fit into `limit` bytes with a mark at the end (BL-30).

    weight: what each byte outside printable ASCII counts; 3 for a text that will be percent-encoded. Default 1.
    """
    if not text.isascii():
        text = text.encode("utf-8", "replace").decode()
    if len(text) * 4 * weight <= limit:
        return text
    spent = fits = 0
    for count, character in enumerate(text, 1):
        plain = " " <= character <= "~" and character != "%"
        spent += 1 if plain else weight * len(character.encode())
        if spent > limit:
            return text[:fits] + MARK
        if spent <= limit - len(MARK):
            fits = count
    return text


def status_details(error: A2AError, code: int, text: str) -> bytes:
    """The google.rpc.Status of an error, serialised, in at most `DETAIL_LIMIT` bytes: ErrorInfo, RetryInfo, then as
    many field violations as fit and a last one that counts the rest (ERR-03 to ERR-06)."""
    status = google.Status(code=code, message=text)
    info = google.ErrorInfo(reason=error.reason, domain=DOMAIN)
    for key, value in error.metadata.items():
        if info.ByteSize() < DETAIL_LIMIT // 4:
            info.metadata[cut(key, 64)] = cut(value, 256)
    status.details.add().Pack(info)
    if error.retry_after is not None:
        retry = google.RetryInfo()
        retry.retry_delay.FromNanoseconds(int(error.retry_after * 1e9))
        status.details.add().Pack(retry)
    if error.violations:
        bad, room = google.BadRequest(), DETAIL_LIMIT - status.ByteSize() - 160
        for done, violation in enumerate(error.violations):
            entry = bad.field_violations.add(
                field=cut(violation.field, 200), description=cut(violation.description, 400)
            )
            if bad.ByteSize() > room:
                entry.field, entry.description = "", f"{len(error.violations) - done} more{MARK}"
                break
        status.details.add().Pack(bad)
    return status.SerializeToString()
