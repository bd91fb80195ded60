"""ProtoJSON both ways, compiled from the descriptors once per message type.

Laws: this is the only door between JSON bytes and protocol messages; behind it are `protojson_text`, `protojson_read`,
`protojson_write` and the single values in `protojson_values`. None of them knows a message of the protocol by name, a
wire, or I/O. Between bytes and messages there are the plain dictionaries of the bytes library. What is compiled is kept
for the life of the process; there are as many entries as message types in use.
"""

import os
from collections.abc import Callable
from functools import cache
from typing import Any, Final, TypeVar, cast

import orjson
from google.protobuf.message import Message

from a2a_grpc.errors import InvalidAgentResponseError, InvalidParamsError
from a2a_grpc.protojson_fields import REQUIRED
from a2a_grpc.protojson_read import MAX_VIOLATIONS, decode_query, explain, filler
from a2a_grpc.protojson_text import loads
from a2a_grpc.protojson_values import MAX_DEPTH, join, json_of, struct_of, timestamp_text, value_of
from a2a_grpc.protojson_write import PROTOJSON, Dialect, unfit, writer
from a2a_grpc.ready import Ready, Stored

__all__ = [
    "MAX_DEPTH",
    "MAX_VIOLATIONS",
    "REQUIRED",
    "Dialect",
    "Mould",
    "decode",
    "decode_query",
    "decoder",
    "dumps",
    "encode",
    "encoder",
    "join",
    "json_of",
    "loads",
    "struct_of",
    "timestamp_text",
    "to_json",
    "unfit",
    "value_of",
]

_M = TypeVar("_M", bound=Message)


def dumps(value: Any) -> bytes:
    """A JSON value as one line. Raises InvalidAgentResponseError for what is not JSON."""
    try:
        return orjson.dumps(value)
    except TypeError as error:
        raise InvalidAgentResponseError(f"not a JSON value: {error}") from None


def decoder(cls: type[_M]) -> Callable[..., _M]:
    """The compiled `decode` of one message type: called with the loaded value and, optionally, its path."""
    return cast("Callable[..., _M]", _decoder(cast(Any, cls)))  # a text, as a type is made anew at each call


@cache
def _decoder(cls: Any) -> Callable[..., Message]:
    fill = filler(cls.DESCRIPTOR)

    def read(value: Any, path: str = "") -> Message:
        message: Message = cls()
        try:
            wrong = fill(message, value)
        except ValueError as error:
            wrong = [explain(error)]
        if wrong:
            found = [(join(path, where) or "body", what) for where, what in wrong[:MAX_VIOLATIONS]]
            raise InvalidParamsError(violations=found)
        return message

    return read


def decode(cls: type[_M], value: Any, path: str = "") -> _M:
    """The message of a loaded JSON value, by the rules JSON-02 to JSON-22.

    path: what the violations' paths start with; default "", and then a value that is no object is called `body`.
    Raises InvalidParamsError with up to `MAX_VIOLATIONS` violations.
    """
    return decoder(cls)(value, path)


def encoder(
    cls: type[Message], always: frozenset[str] = frozenset(), kept: frozenset[str] = frozenset()
) -> Callable[[Message | Ready | Stored], Any]:
    """The compiled `encode` of one message type and one set of fields that are always written.

    kept: full names of message types, default none, whose JSON is kept while there is room, for who reads the same
    again; values with them are for `dumps` only. A `Ready` is encoded, too, and kept; so is a `Stored`.
    """
    return writer(cls.DESCRIPTOR, always, kept)


def encode(
    message: Message,
    always: frozenset[str] = frozenset(),
    kept: frozenset[str] = frozenset(),
    dialect: Dialect = PROTOJSON,
) -> Any:
    """The JSON value of a message: a dict, except for the well-known types that have another form.

    REQUIRED fields and the `always` ones (full names such as `lf.a2a.v1.Task.artifacts`, for LIST-10) are written even
    at their default, other fields when they are set or not default (JSON-09); a message that is not there is left out.
    kept: see `encoder`, default none. dialect: another JSON of the same messages, default ProtoJSON.
    Raises InvalidAgentResponseError with the path of a number that is not finite or a timestamp out of range.
    """
    return writer(message.DESCRIPTOR, always, kept, dialect)(message)


def to_json(message: Message, always: frozenset[str] = frozenset()) -> bytes:
    """The message as one line of JSON; see `encode`."""
    return orjson.dumps(writer(message.DESCRIPTOR, always)(message))


class Mould:
    """The JSON of messages that differ in one text alone, which costs what the text costs.

    encode: of their type; example: one of them, with `HOLE` for the text.
    """

    HOLE: Final = os.urandom(16).hex()
    """A text that stands nowhere else."""

    __slots__ = ("_after", "_before")

    def __init__(self, encode: Callable[[Any], Any], example: Message) -> None:
        self._before, _, self._after = orjson.dumps(encode(example)).partition(orjson.dumps(self.HOLE))

    def filled(self, text: str) -> Any:
        """The value of the message that has this text, for `dumps` only."""
        return orjson.Fragment(b"".join((self._before, orjson.dumps(text), self._after)))
