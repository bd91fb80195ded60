"""The JSON-RPC wire, both ends: bytes and headers in, bytes and headers out (RPC-01 to RPC-18, V03-01 to V03-19).

Laws: v1.0 and v0.3 share one address; the version and the method's name pick the row together, so a name of the other
version is an unknown method. No operation is named here: rows come from the method table and the v0.3 name table.
Decisions where sources differ: `params` that is a string or number is no request object (-32600, RPC-09 before BL-22),
a list is a bad parameter (-32602); batches and notifications are refused with -32600 (RPC-17); `params: null` is {}.
JSON-RPC level errors have HTTP status 200, those of `wire.HTTP_LEVEL` keep theirs (I-37). A streaming call that fails
early is answered by a plain error (BL-20), at v0.3 by a stream of that one error, which old clients need.
"""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from google.protobuf.message import Message

from a2a_grpc import v03, v03_names
from a2a_grpc.bindings import sse, wire
from a2a_grpc.bindings.wire import JSON, Answer, Form, HttpReply, HttpRequest, HttpStream, Operation
from a2a_grpc.call import ANONYMOUS, JSONRPC, PUSH_EXTRAS, V03, V1, Call, Caller, Credentials, Gate
from a2a_grpc.config import Options
from a2a_grpc.errors import (
    A2AError,
    InvalidAgentResponseError,
    InvalidParamsError,
    InvalidRequestError,
    MediaTypeError,
    MethodNotAllowedError,
    MethodNotFoundError,
    ParseError,
    UnsupportedOperationError,
)
from a2a_grpc.methods import METHODS
from a2a_grpc.protojson import decode, dumps, encode, loads

Ident = str | int | float | None


@dataclass(slots=True)
class _Envelope:
    """What is known of the request object so far; an error at any point is answered with it."""

    ident: Ident = None
    version: str = V1
    operation: Operation | None = None
    dialect: str = ""

    def result(self, value: Any) -> bytes:
        return dumps({"jsonrpc": "2.0", "id": self.ident, "result": value})

    def error(self, fault: A2AError) -> bytes:
        if self.version == V03:
            operation = self.operation.name if self.operation else ""
            told = v03.down_error(fault, operation, self.dialect)
        else:
            told = {"code": fault.jsonrpc, "message": fault.message, "data": fault.details()}
        return dumps({"jsonrpc": "2.0", "id": self.ident, "error": told})


class JsonRpc:
    """The server's end. servicer: any object with the eleven v1.0 methods `(request, call)`; options: the server's;
    room: raises ResourceExhaustedError when no more streams may be opened, default: there is always room;
    gate: tells who is calling, default None: nobody is asked."""

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
        self._rows = {name: (V1, row) for name, row in rows.items()}
        self._rows |= {name: (V03, rows[operation]) for name, operation in v03_names.BY_JSONRPC.items()}

    async def answer(self, request: HttpRequest) -> Answer:
        """The answer to a request, whatever its bytes are. Raises nothing but the cancellation of the running task."""
        envelope = _Envelope()
        try:
            pairs = wire.query_pairs(request)
            caller = ANONYMOUS if self._gate is None else await self._admit(self._gate, request, pairs, envelope)
            operation, message, call = self._read(request, envelope, pairs, caller)
            if operation.streaming:
                return await wire.stream(operation, message, call, self._form(envelope, message, call), self._options)
            answer = await operation.handler(message, call)
            return wire.reply(envelope.result(_shown(operation, message, call, answer)), call, JSON)
        except (Exception, asyncio.CancelledError) as fault:
            return _refusal(wire.outcome(fault), envelope)

    def refuse(self, request: HttpRequest, error: A2AError) -> HttpReply:
        """The reply to a request that the host refuses, with its body or without, as too large for instance."""
        envelope = _Envelope()
        _peek(request, envelope)
        return HttpReply(_status(error), wire.error_headers(error, JSON), envelope.error(error))

    def _read(
        self, request: HttpRequest, envelope: _Envelope, pairs: list[tuple[str, str]], caller: Caller
    ) -> tuple[Operation, Message, Call]:
        if request.verb != "POST":
            raise MethodNotAllowedError(allow=("POST",))
        if not request.told.json:
            raise MediaTypeError
        name, params = _open(request.body, envelope, request.told.version == V1)
        asked = wire.asked_version(request, pairs)
        version = wire.offered(asked, self._options) if asked else self._unasked(name, envelope.version)
        envelope.version = version
        row = self._rows.get(name)
        if row is None or row[0] != version:
            raise MethodNotFoundError
        operation = envelope.operation = row[1]
        if not isinstance(params, dict):
            raise InvalidParamsError(violations=[("params", "must be an object")])
        extra: Mapping[str, Any] = wire.NOTHING
        if version == V03:
            message, extra = v03.up_params(operation.name, params)
            envelope.dialect = v03.J03
        else:
            message = operation.decode(params, "")
        return operation, message, wire.make_call(request, operation.name, JSONRPC, version, message, extra, caller)

    def _form(self, envelope: _Envelope, message: Message, call: Call) -> Form:
        """The events of a stream; those of v0.3 are bare objects as `result`, then a final status (V03-04 to -07)."""
        down = None
        if call.version == V03:
            down = v03.StreamDown(call.operation, v03.J03, closes_on_input=self._options.close_on_input_required)
        assert envelope.operation is not None
        return Form(envelope.operation.printer(message), envelope.result, envelope.error, sse.encode, down)

    async def _admit(
        self, gate: Gate, request: HttpRequest, pairs: list[tuple[str, str]], envelope: _Envelope
    ) -> Caller:
        """Who is calling; the body is only read when that is known, or for the id of the refusal."""
        try:
            return await gate(Credentials(JSONRPC, request.headers, pairs, request.certificate, request.peer))
        except Exception:
            _peek(request, envelope)
            raise

    def _unasked(self, name: str, surface: str) -> str:
        """The version of a call that says none: by its method's name, literally 0.3 in strict mode (I-09)."""
        if name not in self._rows:
            raise MethodNotFoundError
        return wire.offered(V03 if self._options.strict_version else surface, self._options)


def _shown(operation: Operation, message: Message, call: Call, answer: Any) -> Any:
    """The JSON value of an answer."""
    if call.version == V03:
        return v03.down_result(answer, call.attributes.get(PUSH_EXTRAS), operation.reads)
    return operation.printer(message)(answer)


def _peek(request: HttpRequest, envelope: _Envelope) -> None:
    """Learn from the body, if there is any, how an error must be answered."""
    if request.body:
        with suppress(A2AError):
            _open(request.body, envelope)


def _open(body: bytes | bytearray, envelope: _Envelope, spare: bool = False) -> tuple[str, Any]:
    """Method name and params of a request object; what is learnt on the way goes into the envelope (RPC-07, RPC-09).
    spare: see `loads`."""
    value = loads(body, spare=spare)
    if not isinstance(value, dict):
        text = "batches are not supported" if isinstance(value, list) else "must be an object"
        raise InvalidRequestError(violations=[("request", text)])
    wrong = []
    ident = value.get("id")
    if isinstance(ident, bool | dict | list):
        wrong.append(("id", "must be a string, a number or null"))
    elif isinstance(ident, float) and abs(ident) >= 2**63:
        wrong.append(("id", "is a number too large to be repeated exactly"))
    elif "id" not in value:
        wrong.append(("id", "is missing; notifications are not supported"))
    else:
        envelope.ident = ident
    if value.get("jsonrpc") != "2.0":
        wrong.append(("jsonrpc", 'must be "2.0"'))
    name, params = value.get("method"), value.get("params")
    if not isinstance(name, str) or not name:
        name = ""
        wrong.append(("method", "must be a string that is not empty"))
    elif "/" in name:
        envelope.version = V03
    if params is None:
        params = {}
    elif not isinstance(params, dict | list):
        wrong.append(("params", "must be an object"))
    if wrong:
        raise InvalidRequestError(violations=wrong)
    return name, params


def _status(error: A2AError) -> int:
    return error.http if error.http in wire.HTTP_LEVEL else 200


def _refusal(error: A2AError, envelope: _Envelope) -> Answer:
    status, body = _status(error), envelope.error(error)
    if status == 200 and envelope.version == V03 and envelope.operation and envelope.operation.streaming:
        return HttpStream(200, dict(sse.HEADERS), sse.once(sse.encode(body)))
    return HttpReply(status, wire.error_headers(error, JSON), body)


# -- the client's end


def request(operation: str, message: Message, ident: Ident, version: str = V1) -> tuple[dict[str, str], bytes]:
    """Headers and body of a call. operation: its v1.0 name; message: the v1.0 request, whatever the version spoken.

    Raises A2AError when the message cannot be said in v0.3.
    """
    accept = sse.HEADERS["content-type"] if METHODS[V1][operation].streaming else JSON
    if version == V03:
        if operation not in v03_names.JSONRPC_NAMES:
            raise UnsupportedOperationError("Protocol version 0.3 has no such operation")
        name, params = v03_names.JSONRPC_NAMES[operation], v03.down_params(message)
    else:
        name, params = operation, encode(message)
    headers = {"content-type": JSON, "accept": accept, wire.VERSION_HEADER: version}
    return headers, dumps({"jsonrpc": "2.0", "id": ident, "method": name, "params": params})


_NO_HEADERS: Final[Mapping[str, str]] = {}


def result(
    operation: str,
    body: bytes,
    version: str = V1,
    *,
    ident: Ident = None,
    status: int = 200,
    headers: Mapping[str, str] = _NO_HEADERS,
) -> Message:
    """The v1.0 message in a reply or in one event of a stream.

    ident: the id that the reply must repeat, None for no check. status, headers: of the HTTP reply, keys in lower case.
    Raises the A2AError that the peer sent, or InvalidAgentResponseError when the body is no answer.
    """
    try:
        value = loads(body)
    except ParseError:
        value = None
    method = METHODS[V1][operation]
    if isinstance(value, dict) and "jsonrpc" in value and not method.response.DESCRIPTOR.fields:
        value.setdefault("result", None)  # which deployed servers leave out where there is nothing to say (I-18)
    if not isinstance(value, dict) or ("result" not in value and not isinstance(value.get("error"), dict)):
        if status >= 300:
            raise wire.received(None, None, None, status=status, headers=headers)
        raise InvalidAgentResponseError("The reply is not a JSON-RPC response")
    if isinstance(fault := value.get("error"), dict):
        told = fault.get("message"), fault.get("code"), fault.get("data")
        raise wire.received(*told, status=status, headers=headers)
    if ident is not None and value.get("id") != ident:
        raise InvalidAgentResponseError("The reply has another id than the request")
    try:
        if version == V1:
            return decode(method.response, {} if value["result"] is None else value["result"])
        return v03.up_event(value["result"]) if method.streaming else v03.up_result(operation, value["result"])
    except InvalidParamsError as fault:
        raise InvalidAgentResponseError("The reply breaks the data model", violations=fault.violations) from None
