"""From a message to its JSON value, and what of a message has no JSON value.

Laws: what is written beyond the set fields comes from the table of REQUIRED fields and from the caller, never from a
switch for all defaults (JSON-09); no descriptor is asked once a type is compiled. `protojson` has the public forms.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Final

import orjson
from google.protobuf.descriptor import Descriptor
from google.protobuf.message import Message

from a2a_grpc.errors import InvalidAgentResponseError, Violation
from a2a_grpc.protojson_fields import MANY, MAP, ONE, REQUIRED, fields
from a2a_grpc.protojson_values import (
    FILL_MESSAGE,
    MAX_DEPTH,
    WRITE,
    WRITE_MESSAGE,
    UnfitError,
    enum_writer,
    join,
    more,
    not_of,
)
from a2a_grpc.ready import Bounded, Kept, Ready, Stored

_Found = list[tuple[str, str]]
_Find = Callable[[Any], _Found | None]


@dataclass(frozen=True, eq=False, slots=True)
class Dialect:
    """How another kind of JSON says the same messages. Enums, types and fields by their full names.

    enums: what writes the numbers of an enum. last: makes what is written of a type's members, which it may change.
    names: of fields that have another name. bare: whether REQUIRED fields are left out at their default.
    """

    enums: Mapping[str, Callable[[int], Any]]
    last: Mapping[str, Callable[[dict[str, Any]], Any]]
    names: Mapping[str, str]
    bare: bool


PROTOJSON: Final = Dialect({}, {}, {}, bare=False)
"""The JSON that the descriptors say."""


@cache
def writer(
    descriptor: Descriptor,
    always: frozenset[str],
    kept: frozenset[str] = frozenset(),
    dialect: Dialect = PROTOJSON,
) -> Callable[[Message | Ready | Stored], Any]:
    """The compiled `encode` of a type, for one set of fields that are always written. kept: full names of types whose
    JSON is kept by what the message says, for readers of the same; it stands in the value as ready bytes."""
    write = _writer(descriptor, always, kept, dialect)
    entries = _entries_writer(descriptor, always)
    own = descriptor.full_name in kept

    def encoded(message: Message | Ready | Stored) -> Any:
        try:
            if type(message) is Ready:
                return entries(message)
            return write(message if own or type(message) is not Stored else message.message())
        except UnfitError:
            wrong = unfit(message.message() if isinstance(message, Ready | Stored) else message)
        raise InvalidAgentResponseError(f"{wrong[0].field} {wrong[0].description}", violations=wrong)

    return encoded


def _keeping(write: Callable[[Any], Any]) -> Callable[[Any], Any]:
    known = Kept[orjson.Fragment]()

    def written(message: Any) -> Any:
        if type(message) is not Stored:
            body = message.SerializeToString()
            return known.find(body) or _keep(known, body, write(message))
        return known.find(message.told) or _keep(known, message.told, write(message.message()))

    return written


def _keep(known: Kept[orjson.Fragment], body: bytes, value: Any) -> orjson.Fragment:
    text = orjson.dumps(value)
    return known.keep(body, orjson.Fragment(text), len(text))


def _entries_writer(descriptor: Descriptor, always: frozenset[str]) -> Callable[[Ready], Any]:
    """What writes a `Ready`: each entry once for each content, and then as it stands; and so the whole, where the same
    entries are likely to be given again."""
    write = _writer(descriptor, always)
    known = Kept[orjson.Fragment]()
    wholes = Bounded[tuple[bytes, Sequence[bytes]], orjson.Fragment]()

    def written(answer: Ready) -> Any:
        if type(answer.entries) is not tuple:
            return assembled(answer)
        of = answer.rest.SerializeToString(), answer.entries
        whole = wholes.find(of)
        if whole is None:
            text = orjson.dumps(assembled(answer))
            whole = orjson.Fragment(text)
            wholes.put(of, whole, len(of[0]) + sum(map(len, of[1])) + len(text))
        return whole

    def assembled(answer: Ready) -> Any:
        find, name = known.find, descriptor.fields_by_name[answer.field].json_name

        def made(entry: bytes) -> orjson.Fragment:
            return _keep(known, entry, write(answer.kind.FromString(entry))[name][0])

        return write(answer.rest) | {name: [find(entry) or made(entry) for entry in answer.entries]}

    return written


@cache
def _writer(
    descriptor: Descriptor,
    always: frozenset[str],
    kept: frozenset[str] = frozenset(),
    dialect: Dialect = PROTOJSON,
) -> Callable[[Any], Any]:
    own = WRITE_MESSAGE.get(descriptor.full_name)
    if own is not None:
        return own
    if descriptor.full_name in kept:
        return _keeping(_writer(descriptor, always, kept - {descriptor.full_name}, dialect))
    rows: dict[Any, tuple[str, Callable[[Any], Any] | None]] = {}
    empties: list[tuple[str, Callable[[], Any]]] = []
    last = dialect.last.get(descriptor.full_name)

    def write(message: Any) -> Any:
        members: dict[str, Any] = {}
        for field, value in message.ListFields():
            json, convert = rows[field]
            members[json] = value if convert is None else convert(value)
        for json, make in empties:
            if json not in members:
                members[json] = make()
        return members if last is None else last(members)

    required = () if dialect.bare else REQUIRED.get(descriptor.full_name, ())
    for field, shape, item in fields(descriptor):
        name = dialect.names.get(field.full_name, field.json_name)
        rows[field] = (name, _shaped(shape, _converter(item, always, kept, dialect)))
        if field.name in required or field.full_name in always:
            make = _default(field, shape, dialect)
            empties += [(name, make)] if make else []
    return write


def _shaped(shape: int, convert: Callable[[Any], Any] | None) -> Callable[[Any], Any] | None:
    """The converter of a whole field, from that of one of its values."""
    if shape == ONE:
        return convert
    if shape == MANY:  # A slice is a plain list, which is much quicker to walk.
        return _plain if convert is None else lambda values: [convert(value) for value in values[:]]
    return lambda values: {_map_key(key): convert(values[key]) if convert else values[key] for key in values}


def _plain(values: Any) -> Any:
    return values[:]


def _map_key(key: Any) -> str:
    return key if type(key) is str else str(key).lower()


def _converter(
    field: Any, always: frozenset[str], kept: frozenset[str], dialect: Dialect
) -> Callable[[Any], Any] | None:
    if field.message_type is not None:
        return _writer(field.message_type, always, kept, dialect)
    if field.enum_type is None:
        return WRITE.get(field.type)
    return dialect.enums.get(field.enum_type.full_name) or enum_writer(field.enum_type)


def _default(field: Any, shape: int, dialect: Dialect) -> Callable[[], Any] | None:
    """What makes the value of a field that is not set; None for a message, which then is left out."""
    if shape != ONE:
        return dict if shape == MAP else list
    if field.message_type is not None:
        return None
    convert = _converter(field, frozenset(), frozenset(), dialect)
    value = field.default_value if convert is None else convert(field.default_value)
    return lambda: value


def unfit(message: Message, path: str = "", depth: int = MAX_DEPTH) -> list[Violation]:
    """What in a message from a binary wire has no JSON form: numbers that are not finite, free JSON nested too deep,
    timestamps out of range, numbers that their enum does not have (BL-26, JSON-04, JSON-18). Empty for every message
    that `decode` gave.

    path: what the violations' paths start with; default "". depth: levels of objects that free JSON may have, at most
    and by default `MAX_DEPTH`.
    """
    find = _finder(message.DESCRIPTOR, depth)
    found = find(message) if find else None
    return [Violation(join(path, where) or "body", what) for where, what in found] if found else []


@cache
def _finder(descriptor: Descriptor, depth: int) -> _Find | None:
    """The function that finds unfit values in a message, None for types that cannot hold any."""
    if descriptor.full_name in WRITE_MESSAGE:
        return partial(_unfit_value, depth)
    rows: list[tuple[str, str, int, bool, _Find]] = []
    for field, shape, item in fields(descriptor):
        if item.enum_type is not None:
            below: _Find | None = _unknown_finder(item.enum_type)
        else:
            below = _finder(item.message_type, depth) if item.message_type is not None else None
        if below is not None:
            rows.append((field.name, field.json_name, shape, item.message_type is None, below))

    def find(message: Any) -> _Found | None:
        wrong: _Found | None = None
        for name, json, shape, scalar, below in rows:
            if shape == ONE:
                if (scalar or message.HasField(name)) and (found := below(getattr(message, name))):
                    wrong = more(wrong, json, found)
            elif values := getattr(message, name):
                many = shape == MANY
                for key, value in enumerate(values[:]) if many else values.items():
                    if found := below(value):
                        wrong = more(wrong, f"{json}[{key}]" if many else f"{json}.{key}", found)
        return wrong

    return find if rows else None


def _unknown_finder(enum: Any) -> _Find:
    known, text = frozenset(value.number for value in enum.values), not_of(enum)

    def find(number: Any) -> _Found | None:
        return None if number in known else [("", text)]

    return find


def _unfit_value(depth: int, value: Any) -> _Found:
    full_name = value.DESCRIPTOR.full_name
    try:
        plain = WRITE_MESSAGE[full_name](value)
        if type(plain) in (dict, list):  # only the way back counts the depth
            FILL_MESSAGE[full_name](type(value)(), plain)
    except UnfitError as error:
        return [(error.path, str(error))]
    return [("", f"is nested deeper than {depth} levels")] if depth < MAX_DEPTH and _deeper(plain, depth) else []


def _deeper(plain: Any, levels: int) -> bool:
    if type(plain) is dict:
        return levels == 0 or any(_deeper(value, levels - 1) for value in plain.values())
    return type(plain) is list and any(_deeper(value, levels) for value in plain)
