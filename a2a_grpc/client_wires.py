"""The ways of a client to one interface: JSON-RPC and REST over aiohttp, gRPC over grpcio.

Laws: v1.0 messages in and out, in whatever version the interface speaks. What a wire looks like is said by the client
ends of bindings/; here is only what carries it, and how failures of carrying are told. No operation is named here.
"""

import asyncio
import itertools
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from io import BytesIO
from typing import Any, Final, NamedTuple, Protocol

import aiohttp
import grpc
import grpc.aio
from a2a_stubs import google, v03_grpc, v1, v1_grpc
from google.protobuf.message import DecodeError, Message
from grpc_health.v1 import health_pb2
from yarl import URL

from a2a_grpc import errors, protojson, v03
from a2a_grpc.bindings import jsonrpc, rest, sse, wire
from a2a_grpc.bindings.rpc import PACKAGES, reader
from a2a_grpc.call import GRPC, JSONRPC, REST, V03, V1, VERSIONS
from a2a_grpc.client_cards import said
from a2a_grpc.client_silence import Silence
from a2a_grpc.errors import (
    A2AError,
    Code,
    InvalidAgentResponseError,
    InvalidParamsError,
    MethodNotAllowedError,
    MethodNotFoundError,
    NotFoundError,
    UnavailableError,
    scrubbed,
)
from a2a_grpc.methods import METHODS
from a2a_grpc.python310_asyncio import timeout_at
from a2a_grpc.v03_names import METHOD_NAMES

PIECE: Final = 1024 * 1024
"""Largest request body, in bytes, that is handed to the HTTP library in one."""

MOST_REDIRECTS: Final = 3
"""How often one call may be sent on to another path of the same server."""

_BY_CODE: Final[Mapping[int, type[A2AError]]] = {
    Code.INVALID_ARGUMENT: errors.InvalidParamsError,
    Code.NOT_FOUND: errors.NotFoundError,
    Code.PERMISSION_DENIED: errors.PermissionDeniedError,
    Code.RESOURCE_EXHAUSTED: errors.ResourceExhaustedError,
    Code.FAILED_PRECONDITION: errors.UnsupportedOperationError,
    Code.UNIMPLEMENTED: errors.MethodNotFoundError,
    Code.UNAVAILABLE: errors.UnavailableError,
    Code.UNAUTHENTICATED: errors.UnauthenticatedError,
}
"""What a gRPC status alone means, when the peer says nothing better (ERR-16)."""

DEADLINE: Final = "grpc-timeout"
"""Header that tells a wire for how many milliseconds the answer is waited for, such as `250m`; gRPC carries it on."""

BINARY: Final = "-bin"
"""How names of metadata end whose values gRPC takes as bytes."""

_A_DAY: Final = 86_400.0
_ASKING: Final = 1.0
"""Seconds in which a channel says why it is not connected."""

_TOO_LARGE: Final = "CLIENT: Received message larger than max"
"""What the library itself says, in the name of nobody, of a message that is not read."""

_HUNG_UP: Final = ("Socket closed", "Unwrap failed")
"""What gRPC says of a server that leaves after it has agreed on TLS, be there a reason or not."""

HEALTH: Final = "/grpc.health.v1.Health/Check"
"""What tells whether a gRPC server takes calls."""

_DETAILS: Final = {kind.DESCRIPTOR.full_name: kind for kind in (google.ErrorInfo, google.BadRequest, google.RetryInfo)}


class Wire(Protocol):
    """A way to one interface. Both methods raise ConnectionError while nothing has been sent, A2AError later on."""

    async def unary(self, operation: str, request: Message, headers: Mapping[str, str]) -> Any:
        """One call, one answer; headers: keys in lower case."""

    def stream(
        self, operation: str, request: Message, headers: Mapping[str, str]
    ) -> AsyncGenerator[tuple[str, v1.StreamResponse], None]:
        """The events of a call, each with its id, "" where the wire has none."""
        ...


class HttpWire:
    """A wire over an HTTP session that somebody else closes; subclasses say what goes over it. silence: seconds after
    which a stream without a byte is given up, None (default) for never."""

    def __init__(
        self, session: aiohttp.ClientSession, entry: v1.AgentInterface, version: str, silence: float | None = None
    ) -> None:
        self._session, self._url, self._version, self._silence = session, entry.url, version, silence

    async def unary(self, operation: str, request: Message, headers: Mapping[str, str]) -> Any:
        """One call, one answer."""
        asked = self._ask(operation, request)
        async with self._reply(asked, headers) as reply:
            return self._answer(operation, asked, reply, await _body(reply))

    async def stream(
        self, operation: str, request: Message, headers: Mapping[str, str]
    ) -> AsyncGenerator[tuple[str, v1.StreamResponse], None]:
        """The events of a call, each with its id."""
        asked = self._ask(operation, request)
        async with self._reply(asked, headers) as reply:
            if reply.content_type != sse.HEADERS["content-type"]:
                self._answer(operation, asked, reply, await _body(reply))
                raise InvalidAgentResponseError("The reply is not an event stream")
            parser, silence = sse.Parser(), Silence(self._silence, reply.close)
            try:
                async for chunk in reply.content.iter_any():
                    silence.heard()
                    for event in parser.feed(chunk):
                        yield event.id, self._event(operation, asked, event.data)
                    silence.awaits()
            except (aiohttp.ClientError, OSError):
                if not silence.broken:
                    raise
            finally:
                silence.close()
            if silence.broken:
                raise silence.fault(self._url)

    @asynccontextmanager
    async def _reply(self, asked: "Asked", headers: Mapping[str, str]) -> AsyncIterator[aiohttp.ClientResponse]:
        try:
            url = URL(asked.url, encoded=True)
            _ = url.port  # which is looked at late, and may be none
        except ValueError as fault:
            raise ConnectionError(scrubbed(f"cannot connect to {self._url}: {fault}")) from None
        told: dict[str, Any] = {"headers": {**headers, **asked.headers}, "allow_redirects": False}
        try:
            for _ in range(MOST_REDIRECTS + 1):
                # A body of a size that would hold the loop up is written in pieces, which a file is.
                body = BytesIO(asked.body) if len(asked.body) > PIECE else asked.body or None
                async with self._session.request(asked.verb, url, data=body, **told) as reply:
                    if not 300 <= reply.status < 400:
                        yield reply
                        return
                    url = self._moved(url, reply)
            raise UnavailableError(f"{self._url} redirects in circles")
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as fault:
            raise ConnectionError(
                scrubbed(f"cannot connect to {self._url}: {getattr(fault, 'strerror', None) or fault}")
            ) from fault
        except aiohttp.InvalidURL as fault:
            raise ConnectionError(scrubbed(f"cannot connect to {self._url!r}: this is no address")) from fault
        except aiohttp.ClientError as fault:
            raise UnavailableError(f"the connection to {self._url} broke: {said(fault)}") from fault

    def _moved(self, url: URL, reply: aiohttp.ClientResponse) -> URL:
        """Where else on the same server the request is wanted: nobody else is given what was meant for it."""
        with suppress(ValueError, KeyError):
            place = url.join(URL(reply.headers["location"]))
            if reply.status in (307, 308) and place.origin() == url.origin():
                return place
        raise UnavailableError(f"{self._url} redirects to another server or method: HTTP status {reply.status}")

    def _ask(self, operation: str, request: Message) -> "Asked":
        raise NotImplementedError

    def _answer(self, operation: str, asked: "Asked", reply: aiohttp.ClientResponse, body: bytes) -> Any:
        raise NotImplementedError

    def _event(self, operation: str, asked: "Asked", data: bytes) -> Any:
        raise NotImplementedError


async def _body(reply: aiohttp.ClientResponse) -> bytes:
    """The whole body; raises InvalidAgentResponseError when it is larger than an event may be."""
    if (
        reply.content_length is not None
        and reply.content_length <= sse.LIMIT
        and "content-encoding" not in reply.headers
    ):
        return await reply.read()
    body = bytearray()
    async for chunk in reply.content.iter_any():
        body += chunk
        if len(body) > sse.LIMIT:
            raise InvalidAgentResponseError(f"The reply is larger than {sse.LIMIT} bytes")
    return bytes(body)


class Asked(NamedTuple):
    """An HTTP request that is about to be sent; ident: its JSON-RPC id."""

    verb: str
    url: str
    headers: Mapping[str, str]
    body: bytes
    ident: int = 0


class JsonRpcWire(HttpWire):
    """JSON-RPC, in version 1.0 or 0.3 (RPC-01, RPC-13)."""

    _ids = itertools.count(1)

    def _ask(self, operation: str, request: Message) -> Asked:
        ident = next(self._ids)
        return Asked("POST", self._url, *jsonrpc.request(operation, request, ident, self._version), ident)

    def _answer(self, operation: str, asked: Asked, reply: aiohttp.ClientResponse, body: bytes) -> Any:
        told: dict[str, Any] = {"status": reply.status, "headers": _lower(reply.headers)}
        return jsonrpc.result(operation, body, self._version, ident=asked.ident, **told)

    def _event(self, operation: str, asked: Asked, data: bytes) -> Any:
        return jsonrpc.result(operation, data, self._version, ident=asked.ident)


class RestWire(HttpWire):
    """HTTP+JSON, in version 1.0 or 0.3 (REST-01, REST-19, V03-20)."""

    _verb, _part = "", False

    async def unary(self, operation: str, request: Message, headers: Mapping[str, str]) -> Any:
        """One call, one answer; where the whole request is not understood, the part of it that the rule of v0.3 names
        is tried and remembered (I-44)."""
        try:
            return await super().unary(operation, request, headers)
        except InvalidParamsError:
            if (
                self._part
                or self._version != V03
                or rest.request(operation, request, "", V03, part=True) == rest.request(operation, request, "", V03)
            ):
                raise
        self._part = True
        return await super().unary(operation, request, headers)

    async def stream(
        self, operation: str, request: Message, headers: Mapping[str, str]
    ) -> AsyncGenerator[tuple[str, v1.StreamResponse], None]:
        """The events of a call; where POST is not known, GET is tried and remembered (I-01)."""
        while True:
            try:
                async with aclosing(super().stream(operation, request, headers)) as source:
                    async for found in source:
                        yield found
                return
            except (MethodNotFoundError, MethodNotAllowedError, NotFoundError):
                if self._verb or rest.request(operation, request, "GET", self._version)[0] != "GET":
                    raise
                self._verb = "GET"

    def _ask(self, operation: str, request: Message) -> Asked:
        verb, path, headers, body = rest.request(operation, request, self._verb, self._version, part=self._part)
        return Asked(verb, self._url.rstrip("/") + path, headers, body)

    def _answer(self, operation: str, asked: Asked, reply: aiohttp.ClientResponse, body: bytes) -> Any:
        return rest.result(operation, reply.status, _lower(reply.headers), body, self._version)

    def _event(self, operation: str, asked: Asked, data: bytes) -> Any:
        return rest.event(operation, data, self._version)


HTTP_WIRES: Final = {JSONRPC: JsonRpcWire, REST: RestWire}

CALLABLE: Final = frozenset((binding, version) for binding in (JSONRPC, REST, GRPC) for version in VERSIONS)
"""The bindings and versions that the client can call."""


class Reading(Protocol):
    """The answers to a call, as they come. unseen: whether the server has said that it will not look at the call."""

    unseen: bool

    async def messages(self) -> list[bytes]:
        """What is there, or what comes next; nothing at the end. Raises AioRpcError."""

    def cut(self) -> None:
        """Give up the connection, too."""

    def close(self) -> None:
        """Read no more."""


Begin = Callable[[str, Sequence[tuple[str, str | bytes]], bytes, float | None], Awaitable[Reading]]
"""Calls a path with metadata, a message, and seconds until the deadline. Raises ConnectionError, AioRpcError."""

_ROWS: Final = {version: {row.name: row for row in package.METHODS} for version, package in PACKAGES.items()}


class GrpcWire:
    """gRPC over some channels, which take turns. dial: makes a channel, which its maker closes in the end. silence:
    seconds after which a stream without an event is given up, and its connection with it; None (default) for never: the
    heartbeats of HTTP/2 are not seen from here. count: of channels, default 1. begin: begins streams, over connections
    of its own; None (default) for the channels. secure: whether over TLS."""

    def __init__(
        self,
        dial: Callable[[], grpc.aio.Channel],
        url: str,
        version: str,
        silence: float | None = None,
        count: int = 1,
        begin: "Begin | None" = None,
        secure: bool = False,
    ) -> None:
        self._dial, self._url, self._version, self._silence = dial, url, version, silence
        self._begin, self._secure = begin, secure
        self._leaving: set[asyncio.Task[None]] = set()
        self._ways = [self._way() for _ in range(count)]
        self._turns = itertools.cycle(range(count))

    def _way(self) -> tuple[grpc.aio.Channel, Any]:
        channel = self._dial()
        return channel, (v03_grpc if self._version == V03 else v1_grpc).A2AServiceStub(channel)

    def _leave(self, way: tuple[grpc.aio.Channel, Any]) -> None:
        """Use another connection from now on; calls that the old one still carries may finish."""
        if way in self._ways:
            self._ways[self._ways.index(way)] = self._way()
            channel = way[0]
            task = asyncio.create_task(channel.close(_A_DAY))
            self._leaving.add(task)
            task.add_done_callback(self._leaving.discard)

    async def unary(self, operation: str, request: Message, headers: Mapping[str, str]) -> Any:
        """One call, one answer."""
        _, call = await self._call(operation, request, headers)
        try:
            return self._up(operation, await call)
        except grpc.aio.AioRpcError as fault:
            raise _grpc_error(fault) from None

    def stream(
        self, operation: str, request: Message, headers: Mapping[str, str]
    ) -> AsyncGenerator[tuple[str, v1.StreamResponse], None]:
        """The events of a call; gRPC has no ids for them."""
        if self._begin is None:
            return self._one_by_one(operation, request, headers)
        return self._together(self._begin, operation, request, headers)

    async def _one_by_one(
        self, operation: str, request: Message, headers: Mapping[str, str]
    ) -> AsyncGenerator[tuple[str, v1.StreamResponse], None]:
        way, call = await self._call(operation, request, headers)
        silence = Silence(self._silence, call.cancel)
        try:
            async for event in call:
                silence.heard()
                yield "", self._up(operation, event)
                silence.awaits()
        except grpc.aio.AioRpcError as fault:
            raise _grpc_error(fault) from None
        except asyncio.CancelledError:
            if not silence.broken:
                raise
            self._leave(way)
            raise silence.fault(self._url) from None
        finally:
            silence.close()
            call.cancel()

    async def _together(
        self, begin: "Begin", operation: str, request: Message, headers: Mapping[str, str]
    ) -> AsyncGenerator[tuple[str, v1.StreamResponse], None]:
        row = _ROWS[self._version][operation if self._version == V1 else METHOD_NAMES[operation]]
        body = (request if self._version == V1 else v03.down_request(request)).SerializeToString()
        read, up, again = reader(row.output), self._up, True
        sent, limit = _beside(headers)
        while True:
            try:
                reading = await begin(row.path, sent, body, limit)
            except ConnectionError as fault:
                raise self._away(str(fault)) from None
            except grpc.aio.AioRpcError as fault:
                raise _grpc_error(fault) from None
            silence = Silence(self._silence, reading.cut)
            try:
                while found := await reading.messages():
                    again = False
                    silence.heard()
                    for message in found:
                        yield "", up(operation, read(message))
                    silence.awaits()
                return
            except grpc.aio.AioRpcError as fault:
                if silence.broken:
                    raise silence.fault(self._url) from None
                if not (reading.unseen and again):
                    raise _grpc_error(fault) from None
                again = False
            finally:
                silence.close()
                reading.close()

    async def check(self) -> None:
        """Connect, unless that is done, and ask the server whether it takes calls, which not every server tells. Raises
        ConnectionError when it cannot be reached, UnavailableError when it says no."""
        channel, _ = await self._connected()
        asked, read = health_pb2.HealthCheckRequest(), health_pb2.HealthCheckResponse.FromString
        ask = channel.unary_unary(HEALTH, type(asked).SerializeToString, read)
        try:
            told = await ask(asked)
        except grpc.aio.AioRpcError as fault:
            if fault.code() is grpc.StatusCode.UNAVAILABLE:
                raise _grpc_error(fault) from None
        else:
            if told is not None and told.status == health_pb2.HealthCheckResponse.NOT_SERVING:  # None: no answer at all
                raise UnavailableError(f"{self._url} says that it takes no calls")

    async def _connected(self, until: float | None = None) -> tuple[grpc.aio.Channel, Any]:
        """The way of the next call, once it is connected; until: when the call is over, by the clock of the loop."""
        way = self._ways[next(self._turns)]
        channel = way[0]
        state = channel.get_state(try_to_connect=True)
        while state in (grpc.ChannelConnectivity.IDLE, grpc.ChannelConnectivity.CONNECTING):
            try:
                async with timeout_at(until):
                    await channel.wait_for_state_change(state)
            except TimeoutError:
                raise errors.InternalError("Deadline Exceeded") from None
            state = channel.get_state(try_to_connect=True)
        if state is not grpc.ChannelConnectivity.READY:
            raise self._away(await _why(channel))
        return way

    def _away(self, why: str) -> ConnectionError:
        if self._secure and any(words in why for words in _HUNG_UP):
            why += "; this is what servers do that want a certificate of the client, or another one"
        return ConnectionError(scrubbed(f"cannot connect to {self._url}: {why}"))

    async def _call(self, operation: str, request: Message, headers: Mapping[str, str]) -> tuple[Any, Any]:
        """The way of a call, and the call; the time to connect is part of its own."""
        metadata, seconds = _beside(headers)
        clock = asyncio.get_running_loop().time
        until = None if seconds is None else clock() + seconds
        way = await self._connected(until)
        told: dict[str, Any] = {"metadata": metadata, "timeout": None if until is None else max(0.001, until - clock())}
        if self._version == V1:
            return way, getattr(way[1], operation)(request, **told)
        return way, getattr(way[1], METHOD_NAMES[operation])(v03.down_request(request), **told)

    def _up(self, operation: str, answer: Message | None) -> Any:
        if answer is None:  # which is what the library makes of bytes that it cannot read
            raise InvalidAgentResponseError("The answer is not the message that it should be")
        if self._version == V1:
            return answer
        return v03.up_event(answer) if METHODS[V1][operation].streaming else v03.up_result(operation, answer)


async def _why(channel: grpc.aio.Channel) -> str:
    """Why a channel is not connected, which it tells to calls alone; those fail at once."""
    try:
        await channel.unary_unary(HEALTH)(b"", timeout=_ASKING)
    except grpc.aio.AioRpcError as fault:
        return str(fault.details() or fault.code().name)
    except grpc.aio.UsageError:
        return "it was closed"
    return "it was away a moment ago"


def _beside(headers: Mapping[str, str]) -> tuple[tuple[tuple[str, str | bytes], ...], float | None]:
    """What goes beside a request as gRPC has it: metadata, and seconds until the deadline."""
    limit = headers.get(DEADLINE)
    pairs = ((name, value) for name, value in headers.items() if name != DEADLINE)
    carried = tuple((name, value.encode() if name.endswith(BINARY) else value) for name, value in pairs)
    return carried, None if limit is None else int(limit[:-1]) / 1000


def _grpc_error(fault: grpc.aio.AioRpcError) -> A2AError:
    """The error in the details of a gRPC status, else the one that its code means (ERR-15, ERR-16)."""
    trailers: dict[str, Any] = dict(iter(fault.trailing_metadata() or ()))  # its keys() were pairs until lately
    details = []
    try:
        for packed in google.Status.FromString(trailers.get("grpc-status-details-bin", b"")).details:
            kind = _DETAILS.get(packed.type_url.rpartition("/")[2])
            if kind:
                details.append({"@type": packed.type_url} | protojson.encode(kind.FromString(packed.value)))
    except (ValueError, DecodeError):  # a peer's broken details are as good as none
        details.clear()
    text, number = fault.details() or "", fault.code().value[0]
    if _TOO_LARGE in text:
        return InvalidAgentResponseError(f"The reply is larger than {sse.LIMIT} bytes")
    name, _, said = text.partition(": ")  # as v0.3 servers write it (I-47)
    if name not in wire.BY_NAME:
        name, said = (wire.by_text(text) or _BY_CODE.get(number, errors.InternalError)).__name__, text
    return wire.received(said, None, details, name=name, headers=trailers)


def _lower(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}
