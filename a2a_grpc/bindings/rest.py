"""The HTTP+JSON wire, both ends: bytes and headers in, bytes and headers out (REST-01 to REST-24, V03-20 to V03-25).

Laws: routes come from the HTTP rules of both service descriptors, one table for each version, and the version picks
the table (VER-11, I-12); no operation is named here. Path variables, query and body are one request object, and where
two of them say the same field they must agree (REST-16, TENANT-03). Errors have their true status and the object of
REST-18, at v0.3 the object of I-47; before a stream's first event they are plain replies (REST-20), after it an event
of the name `error`, which is where deployed clients of both versions look (STREAM-11).
"""

import asyncio
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, Final
from urllib.parse import quote, urlencode

from google.protobuf.descriptor import Descriptor
from google.protobuf.message import Message

from a2a_grpc import v03, v03_names
from a2a_grpc.bindings import sse, wire
from a2a_grpc.bindings.wire import A2A_JSON, JSON, Answer, Form, HttpReply, HttpRequest, Operation
from a2a_grpc.call import ANONYMOUS, PUSH_EXTRAS, REST, V03, V1, Call, Caller, Credentials, Gate
from a2a_grpc.config import Options
from a2a_grpc.errors import (
    A2AError,
    InvalidAgentResponseError,
    InvalidParamsError,
    MediaTypeError,
    ParseError,
    UnsupportedOperationError,
)
from a2a_grpc.methods import METHODS, Router
from a2a_grpc.protojson import decode, decode_query, dumps, encode, loads

PREFIX: Final = "/v1"
"""First segment of every v0.3 route."""

BODILESS: Final = frozenset({"GET", "HEAD", "DELETE"})
"""Verbs whose body is ignored (REST-10)."""

_READS: Final = frozenset({"GET", "HEAD"})
"""Verbs whose answers a cache may keep when nothing says otherwise."""


@dataclass(slots=True)
class _Reading:
    """What is known of the request so far; an error at any point is answered with it."""

    version: str
    media: str
    profile: str
    operation: Operation | None = None
    dialect: str = ""

    def error(self, fault: A2AError) -> bytes:
        if self.version == V03:
            operation = self.operation.name if self.operation else ""
            return dumps(v03.rest_error(fault, operation, self.profile, self.dialect))
        code, status = fault.status(self.profile)
        body = {"code": status, "status": code.name, "message": fault.message, "details": fault.details()}
        return dumps({"error": body})


class Rest:
    """The server's end.

    servicer: any object with the eleven v1.0 methods `(request, call)`; options: the server's.
    room: raises ResourceExhaustedError when no more streams may be opened; default: there is always room.
    gate: tells who is calling; default None: nobody is asked.
    """

    def __init__(
        self,
        servicer: object,
        options: Options,
        room: Callable[[], None] = lambda: None,
        gate: Gate | None = None,
    ) -> None:
        self._options = options
        self._gate = gate
        rows = {name: Operation(servicer, method, room) for name, method in METHODS[V1].items()}
        self._rows = {
            V1: rows,
            V03: {name: rows[operation] for name, operation in v03_names.BY_METHOD.items()},
        }
        self._routers = {version: Router(methods.values()) for version, methods in METHODS.items()}

    async def answer(self, request: HttpRequest) -> Answer:
        """The answer to a request, whatever its bytes are. Raises nothing but the cancellation of the running task."""
        reading = self._reading(request)
        try:
            pairs = wire.query_pairs(request)
            try:
                version, path = self._version(request, pairs, reading)
            except A2AError:
                await self._caller(request, pairs)  # who is not known hears of nothing else
                raise
            caller = ANONYMOUS if self._gate is None else await self._caller(request, pairs)
            operation, message, call = self._read(request, reading, version, path, pairs, caller)
            if operation.streaming:
                return await wire.stream(operation, message, call, self._form(reading, message, call), self._options)
            answer = await operation.handler(message, call)
            return _private(
                request, wire.reply(dumps(self._shown(reading, message, call, answer)), call, reading.media)
            )
        except (Exception, asyncio.CancelledError) as fault:
            return _private(request, _plain(wire.outcome(fault), reading))

    def refuse(self, request: HttpRequest, error: A2AError) -> HttpReply:
        """The reply to a request that the host refuses, with its body or without, as too large for instance."""
        return _private(request, _plain(error, self._reading(request)))

    def _reading(self, request: HttpRequest) -> _Reading:
        """The form of errors as far as the path alone tells it (VER-09, VER-11)."""
        old = request.path == PREFIX or request.path.startswith(PREFIX + "/")
        return _Reading(V03 if old else V1, JSON if old else self._media(request), self._options.error_profile)

    def _media(self, request: HttpRequest) -> str:
        headers = request.headers
        told = headers.get("accept", ""), headers.get("content-type", "")
        return reply_type(*told, self._options.rest_media_type)

    async def _caller(self, request: HttpRequest, pairs: list[tuple[str, str]]) -> Caller:
        """Who is calling."""
        if self._gate is None:
            return ANONYMOUS
        return await self._gate(Credentials(REST, request.headers, pairs, request.certificate, request.peer))

    def _version(self, request: HttpRequest, pairs: list[tuple[str, str]], reading: _Reading) -> tuple[str, str]:
        """The version that is spoken, and the path in its table."""
        asked = wire.asked_version(request, pairs) or (V03 if self._options.strict_version else reading.version)
        path, old = request.path, reading.version == V03
        version = reading.version = wire.offered(asked, self._options)
        if old != (version == V03):
            reading.media = JSON if version == V03 else self._media(request)
            if version == V03:
                path = PREFIX + path
        return version, path

    def _read(
        self,
        request: HttpRequest,
        reading: _Reading,
        version: str,
        path: str,
        pairs: list[tuple[str, str]],
        caller: Caller,
    ) -> tuple[Operation, Message, Call]:
        match = self._routers[version].find(request.verb, path)
        operation = reading.operation = self._rows[version][match.method.name]
        body = _body(request, spare=version == V1)
        extra: Mapping[str, Any] = wire.NOTHING
        if version == V03:
            base64 = wire.BASE64_READ[self._options.v03_file_bytes]
            message, extra, reading.dialect = v03.up_rest(operation.name, match.variables, pairs, body, base64)
        else:
            message = operation.decode(_merged(match.method.request, body, pairs, match.variables), "")
        return operation, message, wire.make_call(request, operation.name, REST, version, message, extra, caller)

    def _shown(self, reading: _Reading, message: Message, call: Call, answer: Any) -> Any:
        """The JSON value of an answer; that of v0.3 is in the dialect of the request (V03-21)."""
        operation = reading.operation
        assert operation is not None
        if call.version == V1:
            return operation.printer(message)(answer)
        base64, schemes = wire.base64_bytes(call, self._options), call.attributes.get(PUSH_EXTRAS)
        return v03.down_rest(answer, reading.dialect, base64_bytes=base64, schemes=schemes, reads=operation.reads)

    def _form(self, reading: _Reading, message: Message, call: Call) -> Form:
        """The events of a stream."""
        down = None
        if call.version == V03:
            base64, closes = wire.base64_bytes(call, self._options), self._options.close_on_input_required
            down = v03.StreamDown(
                call.operation, reading.dialect, closes_on_input=closes, rest=True, base64_bytes=base64
            )
        assert reading.operation is not None
        return Form(reading.operation.printer(message), dumps, reading.error, sse.fault, down)


@lru_cache(maxsize=256)
def reply_type(accept: str, content_type: str, default: str) -> str:
    """The media type of a reply: what Accept likes best, else the request's own, else the default (I-03)."""
    best, found = 0.0, ""
    for entry in accept.split(","):
        name, *parameters = (part.strip().lower() for part in entry.split(";"))
        quality = next((part[2:] for part in parameters if part.startswith("q=")), "1")
        try:
            weight = float(quality)
        except ValueError:
            weight = 0.0
        if name in (JSON, A2A_JSON) and weight > best:
            best, found = weight, name
    own = content_type.partition(";")[0].strip().lower()
    return found or (own if own in (JSON, A2A_JSON) else default)


def _body(request: HttpRequest, spare: bool) -> Any:
    """The request's JSON body, None without one; the type of an empty body does not matter (REST-09, REST-15). spare:
    see `loads`."""
    if request.verb in BODILESS or not request.body or request.body.isspace():
        return None
    if not request.told.json:
        raise MediaTypeError
    return loads(request.body, spare=spare)


@cache
def _spellings(request: Descriptor) -> Mapping[str, tuple[str, str]]:
    """Both names of each field of a request, by either of them."""
    both = [(field.json_name, field.name) for field in request.fields]
    return {name: pair for pair in both for name in pair}


def _merged(
    request: type[Message], body: Any, pairs: list[tuple[str, str]], variables: Mapping[str, str]
) -> dict[str, Any]:
    """One JSON object out of body, query and path; raises InvalidParamsError naming fields that disagree (REST-16)."""
    if not isinstance(body, dict | None):
        raise InvalidParamsError(violations=[("body", "must be an object")])
    spellings = _spellings(request.DESCRIPTOR)
    if not (body or pairs):  # different variables are different fields
        return {spellings[name][0]: told for name, told in variables.items()}
    if not (variables or pairs):
        return body or {}
    if not (body or variables):
        return decode_query(request, pairs)
    value = dict(body or {})
    wrong = []
    for source in (decode_query(request, pairs) if pairs else {}, variables):
        for name, told in source.items():
            json_name, _ = pair = spellings[name]
            given = [value.pop(spelling, None) for spelling in dict.fromkeys(pair)]
            if any(other is not None and other != told for other in given):
                wrong.append((json_name, "is given twice, with different values"))
            value[json_name] = told
    if wrong:
        raise InvalidParamsError(violations=wrong)
    return value


def _plain(error: A2AError, reading: _Reading) -> HttpReply:
    _, status = error.status(reading.profile)
    return HttpReply(status, wire.error_headers(error, reading.media), reading.error(error))


def _private(request: HttpRequest, reply: HttpReply) -> HttpReply:
    """The reply, which to a read says that it is for this caller and this moment: to a cache on the way all callers of
    one address are the same, and a task is as it was (CARD-24, AUTH-04)."""
    if request.verb in _READS:
        reply.headers["cache-control"] = "private, no-cache"
    return reply


# -- the client's end

_VARIABLE: Final = re.compile(r"\{(\w+)(?:=([^}]*))?\}")


def request(
    operation: str, message: Message, verb: str = "", version: str = V1, *, part: bool = False
) -> tuple[str, str, dict[str, str], bytes]:
    """Verb, path with query (below the interface's address), headers and body of a call.

    operation: its v1.0 name; message: the v1.0 request, whatever the version spoken. A tenant goes into the path
    (I-11). verb: insists on one of several; default is POST for streaming operations (I-01), else the first rule's.
    part: where the rule says that the body is one field of the request, send just that; default is the whole request,
    its path's fields included, which servers of one SDK want (I-44).
    Raises InvalidParamsError when a field of the path is empty, A2AError when v0.3 cannot say the message.
    """
    name = v03_names.METHOD_NAMES.get(operation) if version == V03 else operation
    if name is None:
        raise UnsupportedOperationError("Protocol version 0.3 has no such operation")
    method = METHODS[version][name]
    value = encode(v03.down_request(message) if version == V03 else message)
    tenant = bool(value.get("tenant"))
    routes = [route for route in method.routes if ("{tenant}" in route.template) == tenant]
    wanted = verb or ("POST" if method.streaming else "")
    # Of several templates the last is the right one: v0.3 misspells its first (I-44).
    route = next((route for route in routes if route.verb == wanted), routes[-1])
    names = _spellings(method.request.DESCRIPTOR)

    whole = dict(value)

    def filled(found: re.Match[str]) -> str:
        json_name = names[found[1]][0]
        if not (text := value.pop(json_name, "")):
            raise InvalidParamsError(violations=[(json_name, "is required")])
        return quote(text, safe="/" if "/" in (found[2] or "") else "")

    path = _VARIABLE.sub(filled, route.template)
    media = A2A_JSON if version == V1 else JSON
    accept = sse.HEADERS["content-type"] if method.streaming else ", ".join(dict.fromkeys((media, JSON)))
    headers = {"accept": accept, wire.VERSION_HEADER: version}
    if route.body not in (None, "*"):
        value = whole[route.body] if part else whole
    if route.verb not in BODILESS:
        return route.verb, path, headers | {"content-type": media}, dumps(value)
    query = urlencode({name: _query_text(one) for name, one in value.items()}, doseq=True)
    return route.verb, f"{path}?{query}" if query else path, headers, b""


def _query_text(value: Any) -> Any:
    if isinstance(value, list):
        return [_query_text(one) for one in value]
    return str(value).lower() if isinstance(value, bool) else str(value)


def result(operation: str, status: int, headers: Mapping[str, str], body: bytes, version: str = V1) -> Message:
    """The v1.0 message in a reply. headers: of the reply, keys in lower case.

    Raises the A2AError that the peer sent, or InvalidAgentResponseError when the body is no answer.
    """
    if not 200 <= status < 300:
        raise fault(body, status, headers)
    if not body and not METHODS[V1][operation].response.DESCRIPTOR.fields:
        return _read(operation, {}, version)
    return _read(operation, _loaded(body), version)


def event(operation: str, data: bytes, version: str = V1) -> Message:
    """The v1.0 message in one event of a stream; raises the A2AError that the event holds (STREAM-11)."""
    value = _loaded(data)
    if isinstance(value, dict) and (isinstance(value.get("error"), dict) or "code" in value):
        raise _fault(value, 200, {})
    return _read(operation, value, version)


def _loaded(body: bytes) -> Any:
    try:
        return loads(body)
    except ParseError:
        raise InvalidAgentResponseError("The reply is not JSON") from None


def _read(operation: str, value: Any, version: str) -> Message:
    method = METHODS[V1][operation]
    try:
        if version == V1:
            return decode(method.response, value)
        return v03.up_event(value) if method.streaming else v03.up_result(operation, value)
    except InvalidParamsError as wrong:
        text = "The reply breaks the data model"
        raise InvalidAgentResponseError(text, violations=wrong.violations) from None


def fault(body: bytes, status: int, headers: Mapping[str, str]) -> A2AError:
    """The error in a reply: the object of REST-18, a bare Status, a v0.3 object or problem+json (I-04, I-47)."""
    try:
        value = loads(body)
    except ParseError:
        value = None
    return _fault(value if isinstance(value, dict) else {}, status, headers)


def _fault(value: Mapping[str, Any], status: int, headers: Mapping[str, str]) -> A2AError:
    inner = value["error"] if isinstance(value.get("error"), dict) else value
    # Only negative numbers are JSON-RPC codes; others repeat a status.
    code = next((c for c in (value.get("code"), inner.get("code")) if isinstance(c, int) and c < 0), None)
    text = inner.get("message") or inner.get("detail") or inner.get("title")
    told = inner.get("details") or inner.get("data")
    return wire.received(text, code, told, name=value.get("type", ""), status=status, headers=headers)
