"""gRPC: both packages on one port, for any servicer of v1.0 messages.

Laws: handlers are computed from the method tables of the stubs, so no operation is named here, and no v0.3 field.
Metadata becomes a `Call`, an A2AError becomes a status whose trailers fit every client's limit; nothing else reaches a
caller (GRPC-01 to GRPC-16). A call ends with its connection or deadline; what it started does not (GRPC-11). Nothing of
gRPC is made at import (BL-43).
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import ExitStack
from types import ModuleType, SimpleNamespace
from typing import Any, Final, NoReturn

import grpc
import grpc.aio
from a2a_stubs import descriptors, google, v03_grpc, v1_grpc
from google.protobuf.message import DecodeError, Message
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from a2a_grpc import v03, v03_names
from a2a_grpc.bindings import reflection
from a2a_grpc.bindings.streams import Running, Stream, Streams
from a2a_grpc.bindings.tls import of_context, server_credentials
from a2a_grpc.bindings.wire import (
    BASE64_READ,
    EXTENSION_HEADERS,
    VERSION_HEADER,
    HttpRequest,
    asked_version,
    base64_bytes,
    make_call,
    offered,
    outcome,
)
from a2a_grpc.call import ANONYMOUS, GRPC, PUSH_EXTRAS, V03, V1, Call, Caller, Credentials, Gate
from a2a_grpc.config import Options
from a2a_grpc.errors import (
    DOMAIN,
    A2AError,
    InvalidParamsError,
    PermissionDeniedError,
    UnauthenticatedError,
    UnavailableError,
    VersionNotSupportedError,
)
from a2a_grpc.protojson import unfit

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

_STATUS: Final = {code.value[0]: code for code in grpc.StatusCode}
_MIN_PING_INTERVAL_MS: Final = 5000
_PING_TIMEOUT_MS: Final = 20_000
_LAST_WORDS: Final = 0.25
"""Seconds that streams have, when the grace is over, to tell their readers so."""


class GrpcBinding:
    """The gRPC side of a servicer.

    servicer: any object with the eleven v1.0 methods `(request, call)`; streaming ones are async generators.
    options: versions, limits, error profile. streams: where open streams are counted, shared with the other wires.
    gate: tells who is calling; default None: nobody is asked.
    services: for each offered version, an object for the `add_A2AServiceServicer_to_server` of its stubs.
    running: the calls in hand.
    """

    def __init__(self, servicer: object, options: Options, streams: Streams, gate: Gate | None = None) -> None:
        self._options = options
        self._gate = gate
        self._streams = streams
        self.running = Running()
        self.services: dict[str, SimpleNamespace] = {}
        for version, package in PACKAGES.items():
            if version in options.versions:
                handlers = {row.name: self._handler(servicer, version, row) for row in package.METHODS}
                self.services[version] = SimpleNamespace(**handlers)

    @property
    def names(self) -> tuple[str, ...]:
        """The full names of the offered services."""
        return tuple(PACKAGES[version].SERVICE for version in self.services)

    def add_to_server(self, server: grpc.aio.Server) -> None:
        """Serve every offered version on a grpc.aio server that has not started. Bytes that are no request get
        INVALID_ARGUMENT, which the `add_A2AServiceServicer_to_server` of the stubs leaves to grpcio (BL-28)."""
        for version, service in self.services.items():
            handlers = {}
            for row in PACKAGES[version].METHODS:
                streams, single = grpc.unary_stream_rpc_method_handler, grpc.unary_unary_rpc_method_handler
                make = streams if row.server_streaming else single
                handlers[row.name] = make(getattr(service, row.name), _reader(row.input), row.output.SerializeToString)
            server.add_generic_rpc_handlers(
                (grpc.method_handlers_generic_handler(PACKAGES[version].SERVICE, handlers),)
            )

    def end(self, error: A2AError) -> None:
        """End every open stream, on whatever wire it is counted, with `error`."""
        self._streams.end(error)

    def _handler(self, servicer: object, version: str, row: descriptors.Method) -> Callable[[Any, Any], Awaitable[Any]]:
        operation = v03_names.BY_METHOD[row.name] if version == V03 else row.name
        door = _Door(operation, version, row.path, self._options, self._gate)
        make = self._stream if row.server_streaming else self._unary
        return make(door, getattr(servicer, operation))

    def _unary(
        self, door: "_Door", method: Callable[[Any, Call], Awaitable[Any]]
    ) -> Callable[[Any, Any], Awaitable[Any]]:
        async def handler(request: Message, context: Any) -> Any:
            self.running.enter()
            call: Call | None = None
            try:
                message, call = await door.enter(request, context)
                answer = await method(message, call)
                if call.activated:
                    await door.announce(call, context)
                return door.answer(answer, call) if door.old else answer
            except (Exception, asyncio.CancelledError) as fault:
                await door.abort(context, outcome(fault), inside=call is not None)
            finally:
                self.running.leave()

        return handler

    def _stream(
        self, door: "_Door", method: Callable[[Any, Call], AsyncGenerator[Any, None]]
    ) -> Callable[[Any, Any], Awaitable[None]]:
        async def handler(request: Message, context: Any) -> None:
            self.running.enter()
            stream: Stream | None = None
            call: Call | None = None
            # The stream stays counted while its last status waits for a reader that has stalled.
            with ExitStack() as stack:
                try:
                    stream = stack.enter_context(self._streams.open(door.path, self._options.stall_timeout))
                    message, call = await door.enter(request, context)
                    await door.pump(method(message, call), call, context, stream)
                except (Exception, asyncio.CancelledError) as fault:
                    await door.abort(context, _cause(stream, fault), inside=call is not None)
                finally:
                    self.running.leave()

        return handler


def _reader(kind: type[Message]) -> Callable[[bytes], Message | None]:
    """Reads requests; None for bytes that are none, as grpcio would show the caller whatever is raised here."""

    def read(data: bytes) -> Message | None:
        try:
            return kind.FromString(data)
        except DecodeError:
            return None

    return read


def _cause(stream: Stream | None, fault: BaseException) -> A2AError:
    """Why a stream failed, for its reader: its end from this side comes first. Raises what cancels the call itself."""
    if stream is None or stream.error is None:
        return outcome(fault)
    task = asyncio.current_task()
    assert task is not None
    task.uncancel()
    return stream.error


class _Door:
    """What the handlers of one method share: the way in and the way out.

    operation: the v1.0 name; version: of the package; path: full gRPC path; old: whether messages are translated;
    gate: as of the binding.
    """

    __slots__ = ("_gate", "_known", "_options", "old", "operation", "path", "version")

    def __init__(self, operation: str, version: str, path: str, options: Options, gate: Gate | None) -> None:
        self.operation, self.version, self.path = operation, version, path
        self.old = version == V03
        self._options = options
        self._gate = gate
        self._known = frozenset({version} if options.strict_version and not self.old else {version, ""})

    async def enter(self, request: Any, context: Any) -> tuple[Any, Call]:
        """The v1.0 message and the `Call` of a request (GRPC-04 to GRPC-06, TENANT-04). request: None if the bytes
        could not be read."""
        metadata: dict[str, str] = {}
        for key, value in context.invocation_metadata():
            if isinstance(value, str):
                metadata[key] = f"{metadata[key]}, {value}" if key in metadata else value
        caller = ANONYMOUS
        if self._gate is not None:
            certificate = of_context(context.auth_context()) if self._options.tls_client_ca else None
            caller = await self._gate(Credentials(GRPC, metadata, metadata.items(), certificate))
        return self._read(request, context, metadata, caller)

    def _read(self, request: Any, context: Any, metadata: dict[str, str], caller: Caller) -> tuple[Any, Call]:
        if request is None:
            raise InvalidParamsError("The bytes are not the request message of this method")
        # The JSON bindings refuse such values when they read.
        if violations := unfit(request):
            raise InvalidParamsError(violations=violations)
        carrier = HttpRequest("", "", headers=metadata)
        if metadata.get(VERSION_HEADER, "") not in self._known:
            self._check_version(asked_version(carrier, ()) or V03)
        extra: Mapping[str, Any] = {}
        if self.old:
            request, extra = v03.up_message(request, BASE64_READ[self._options.v03_file_bytes])
        call = make_call(carrier, self.operation, GRPC, self.version, request, extra, caller)
        remaining = context.time_remaining()
        if remaining is not None:
            call.deadline = time.monotonic() + remaining
        return request, call

    def _check_version(self, asked: str) -> None:
        """The package fixes the version; metadata may only agree (VER-04, VER-05, I-09)."""
        if offered(asked, self._options) != self.version:
            text = f"This service speaks protocol version {self.version}, not {asked}"
            raise VersionNotSupportedError(text, metadata={"supportedVersions": self.version})

    async def announce(self, call: Call, context: Any) -> None:
        """Name the extensions in force, ahead of the first message (GRPC-14)."""
        await context.send_initial_metadata(((EXTENSION_HEADERS[self.version].lower(), ", ".join(call.activated)),))

    def answer(self, message: Any, call: Call) -> Any:
        """The v0.3 message of an answer."""
        schemes = call.attributes.get(PUSH_EXTRAS)
        return v03.down_message(message, base64_bytes(call, self._options), schemes)

    def _stream_down(self, call: Call) -> v03.StreamDown:
        closes, base64 = self._options.close_on_input_required, base64_bytes(call, self._options)
        return v03.StreamDown(self.operation, v03.P03, closes_on_input=closes, base64_bytes=base64)

    async def pump(self, events: AsyncGenerator[Any, None], call: Call, context: Any, stream: Stream) -> None:
        """Write every event; the generator is closed however this ends (GRPC-11, BL-35)."""
        down = self._stream_down(call) if self.old else None
        begun = False
        try:
            async for event in events:
                if not begun:
                    begun = True
                    if call.activated:
                        await self.announce(call, context)
                for shown in down.event(event) if down else (event,):
                    await stream.write(context.write(shown))
            for shown in down.finish() if down else ():
                await stream.write(context.write(shown))
        finally:
            await events.aclose()

    async def abort(self, context: Any, error: A2AError, inside: bool) -> NoReturn:
        """End the call with the error's status, text and details (GRPC-07, GRPC-10, ERR-04). inside: whether the
        request had come through the door, so that a v0.3 one was refused as the v1.0 one that it stands for."""
        if self.old:
            error = v03.as_v03(error, self.operation, v03.P03 if inside else "")
        code = error.status(self._options.error_profile)[0]
        text = cut(v03.grpc_text(error) if self.old else error.message, TEXT_LIMIT, 3)
        trailers: list[tuple[str, str | bytes]] = [("grpc-status-details-bin", status_details(error, code, text))]
        challenge = error.challenge if isinstance(error, UnauthenticatedError | PermissionDeniedError) else ""
        if challenge and challenge.isascii() and challenge.isprintable():
            trailers.append(("www-authenticate", challenge[:CHALLENGE_LIMIT]))
        await context.abort(_STATUS[code], text, tuple(trailers))
        raise AssertionError("abort returns to nobody")


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


def server_options(options: Options) -> list[tuple[str, int]]:
    """The grpc server arguments that the options mean: size limits, and pings that throw nobody off (BL-38, BL-39)."""
    keepalive = [("grpc.keepalive_time_ms", int(options.keepalive * 1000))] if options.keepalive else []
    return [
        ("grpc.max_receive_message_length", options.max_request_bytes),
        ("grpc.max_send_message_length", -1),
        *keepalive,
        ("grpc.keepalive_timeout_ms", _PING_TIMEOUT_MS),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.min_recv_ping_interval_without_data_ms", _MIN_PING_INTERVAL_MS),
        ("grpc.http2.max_ping_strikes", 0),
        ("grpc.http2.max_pings_without_data", 0),
        ("grpc.so_reuseport", int(options.reuse_port)),
    ]


class GrpcHost:
    """A gRPC port of our own: the binding, health, and reflection when the option is on.

    address: `host:port` as bound, "" before `start`.
    """

    def __init__(self, binding: GrpcBinding, options: Options) -> None:
        self._binding = binding
        self._options = options
        self._server: grpc.aio.Server | None = None
        self._health: Any = None
        self.address = ""

    async def start(self) -> None:
        """Open the port and serve. Raises OSError when the address cannot be had or a TLS file cannot be read."""
        options = self._options
        server = grpc.aio.server(options=server_options(options))
        port = self._bind(server)
        self._binding.add_to_server(server)
        self._health = health.aio.HealthServicer()
        health_pb2_grpc.add_HealthServicer_to_server(self._health, server)
        for name in self._binding.names:
            await self._health.set(name, health_pb2.HealthCheckResponse.SERVING)
        if options.reflection:
            reflection.add_to_server(server, (*self._binding.names, health.SERVICE_NAME))
        await server.start()
        self._server = server
        self.address = f"{options.grpc.rpartition(':')[0]}:{port}"

    def _bind(self, server: grpc.aio.Server) -> int:
        options = self._options
        try:
            if not options.tls_cert:
                return int(server.add_insecure_port(options.grpc))
            return int(server.add_secure_port(options.grpc, server_credentials(options)))
        except RuntimeError:
            raise OSError(f"gRPC cannot listen on {options.grpc}: in use, or not an address of this host") from None

    async def drain(self) -> None:
        """Say NOT_SERVING to whoever asks for health, for good. Calls are served as before."""
        if self._health is not None:
            await self._health.enter_graceful_shutdown()

    async def stop(self, grace: float) -> None:
        """Take no new calls, let running ones end within `grace` seconds, tell the streams that are left that the
        server is unavailable, then close the port (BL-34). Health watchers are not waited for."""
        if self._server is None:
            return
        server, self._server = self._server, None
        await self.drain()
        closing = asyncio.create_task(server.stop(grace + 2 * _LAST_WORDS))
        await self._binding.running.idle(grace)
        if len(self._binding.running):
            self._binding.end(UnavailableError("The server is stopping"))
        await self._binding.running.idle(_LAST_WORDS)
        await server.stop(None)
        await closing
