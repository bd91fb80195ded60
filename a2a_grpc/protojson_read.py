"""From a JSON value to a message: what is compiled of a type to fill one, and how query parameters become JSON.

Laws: unknown members are ignored, known ones with a wrong value are collected with their paths (JSON-02 to JSON-22);
no descriptor is asked once a type is compiled. Functions here fill messages and return what is wrong, as paths relative
to the message, or None; or raise ValueError where only one thing can be wrong. `protojson` has the public forms.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from re import compile as pattern
from typing import Any, Final

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from a2a_grpc.errors import InvalidParamsError, Violation
from a2a_grpc.protojson_fields import MANY, MAP, ONE, fields
from a2a_grpc.protojson_values import (
    FILL_MESSAGE,
    READ,
    UnfitError,
    enum_reader,
    fill_timestamp,
    fill_timestamp_or_utc,
    more,
)

MAX_VIOLATIONS: Final = 20
"""How many violations one error lists; what else is wrong is found on the next try."""

ZONELESS: Final = frozenset({"a2a.v1"})
"""Proto packages in whose timestamps a missing zone means UTC (V03-31)."""

Wrong = list[tuple[str, str]] | None
"""Paths relative to a message, with what is wrong there; None for nothing."""

Fill = Callable[[Any, Any], Wrong]
"""Fills a new message (or adds to one of its fields) from a JSON value."""

_TIMESTAMP, _VALUE = "google.protobuf.Timestamp", "google.protobuf.Value"


def explain(error: ValueError) -> tuple[str, str]:
    """The relative path and the description of what a reader raised."""
    if isinstance(error, UnicodeEncodeError):
        return "", "holds an unpaired surrogate"
    return (error.path if isinstance(error, UnfitError) else ""), str(error)


@cache
def filler(descriptor: Descriptor) -> Fill:
    """The compiled function that fills an empty message of a type."""
    own = FILL_MESSAGE.get(descriptor.full_name)
    if own is not None:
        return own
    rows: dict[str, _Row] = {}
    find = rows.get

    def fill(message: Any, members: Any) -> Wrong:
        if type(members) is not dict:
            return [("", "must be an object")]
        wrong: Wrong = None
        seen = 0
        for key, value in members.items():
            row = find(key)
            if row is None:
                continue
            name, json, nullable, bit, clash, read, put = row
            if value is None and not nullable:
                continue
            try:
                if seen & bit:
                    raise ValueError(clash)
                seen |= bit
                if put is None:
                    if read is not None:
                        value = read(value)
                    elif type(value) is not str:
                        raise ValueError("must be a string")
                    setattr(message, name, value)
                    continue
                below = put(message, value)
                if below is None:
                    continue
            except ValueError as error:
                below = [explain(error)]
            wrong = more(wrong, json, below)
            if len(wrong) >= MAX_VIOLATIONS:
                break
        return wrong

    for field, shape, item in fields(descriptor):
        rows[field.name] = rows[field.json_name] = _row(field, shape, item)
    return fill


_Row = tuple[str, str, bool, int, str, Callable[[Any], Any] | None, Fill | None]


def _row(field: Any, shape: int, item: Any) -> _Row:
    """Names; whether null is a value here; a bit that the members of one oneof share, and what to say when it is
    there twice (JSON-02, JSON-17); what reads a scalar, None for a string; what puts in anything else."""
    oneof = field.containing_oneof
    bit, clash = 1 << field.index, f"is given twice, as {field.json_name} and {field.name}"
    if oneof is not None and len(oneof.fields) > 1:
        bit = 1 << len(field.containing_type.fields) + oneof.index
        clash = f"only one of {', '.join(other.json_name for other in oneof.fields)} may be given"
    scalar = shape == ONE and field.message_type is None
    read = _reader(field) if scalar and field.type != FieldDescriptor.TYPE_STRING else None
    put = None if scalar else _putter(field, shape, item)
    return field.name, field.json_name, shape == ONE and _is(field, _VALUE), bit, clash, read, put


def _is(field: Any, full_name: str) -> bool:
    return field.message_type is not None and field.message_type.full_name == full_name


def _reader(field: Any) -> Callable[[Any], Any]:
    return enum_reader(field.enum_type) if field.enum_type is not None else READ[field.type]


def _filler_of(field: Any) -> Fill:
    if _is(field, _TIMESTAMP) and field.containing_type.file.package in ZONELESS:
        return fill_timestamp_or_utc
    return fill_timestamp if _is(field, _TIMESTAMP) else filler(field.message_type)


def _putter(field: Any, shape: int, item: Any) -> Fill:
    name = field.name
    if shape == MAP:
        return _map_putter(name, field.message_type.fields_by_name["key"], item)
    if shape == MANY:
        return _scalars_putter(name, _reader(item)) if item.message_type is None else _messages_putter(name, item)
    fill = _filler_of(field)

    def put(message: Any, value: Any) -> Wrong:
        child = getattr(message, name)
        child.SetInParent()
        return fill(child, value)

    return put


def _list(values: Any) -> list[Any]:
    if type(values) is not list:
        raise ValueError("must be a list")
    return values


def _scalars_putter(name: str, read: Callable[[Any], Any]) -> Fill:
    def put(message: Any, values: Any) -> Wrong:
        values = _list(values)
        try:
            getattr(message, name).extend([read(value) for value in values])
        except ValueError as error:
            # The slow way again, to tell which ones.
            add = getattr(message, name).append
            return _gather(lambda value: add(read(value)), enumerate(values), "[{}]") or [explain(error)]
        return None

    return put


def _messages_putter(name: str, item: Any) -> Fill:
    nullable, fill = _is(item, _VALUE), _filler_of(item)

    def put(message: Any, values: Any) -> Wrong:
        target = getattr(message, name)
        wrong: Wrong = None
        for index, value in enumerate(_list(values)):
            try:
                if value is None and not nullable:
                    raise ValueError("must not be null")
                below = fill(target.add(), value)
                if below is None:
                    continue
            except ValueError as error:
                below = [explain(error)]
            wrong = more(wrong, f"[{index}]", below)
            if len(wrong) >= MAX_VIOLATIONS:
                break
        return wrong

    return put


def _map_putter(name: str, key: Any, item: Any) -> Fill:
    nullable = _is(item, _VALUE)
    fill = None if item.message_type is None else _filler_of(item)
    read = _reader(item) if fill is None else None
    read_key = _query_bool if key.type == FieldDescriptor.TYPE_BOOL else READ[key.type]

    def put(message: Any, members: Any) -> Wrong:
        if type(members) is not dict:
            raise ValueError("must be an object")
        target = getattr(message, name)

        def add(member: tuple[str, Any]) -> Wrong:
            key, value = member
            if value is None and not nullable:
                raise ValueError("must not be null")
            if fill is not None:
                return fill(target[read_key(key)], value)
            target[read_key(key)] = read(value)  # type: ignore[misc]
            return None

        return _gather(add, ((pair[0], pair) for pair in members.items()), "{:.64}")

    return put


def _gather(add: Callable[[Any], Wrong], items: Iterable[tuple[Any, Any]], form: str) -> Wrong:
    wrong: Wrong = None
    for key, value in items:
        try:
            below = add(value)
        except ValueError as error:
            below = [explain(error)]
        if below is not None:
            wrong = more(wrong, form.format(key), below)
            if len(wrong) >= MAX_VIOLATIONS:
                break
    return wrong


# Query parameters

_SPACE_FOR_PLUS: Final = pattern(r" (?=[0-9]{2}:[0-9]{2}$)")


def decode_query(cls: type[Any], pairs: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """The JSON object, for `decode`, that decoded query parameters of a message type stand for.

    Names may be camelCase or proto names; unknown ones are ignored. Repeated fields are repeated or comma-separated
    (REST-13). A plus in a timestamp that arrived as a space is one again (REST-14). Raises InvalidParamsError naming
    each parameter with a bad or empty value (REST-12, BL-24), or with two different values.
    """
    rows = _query(cls.DESCRIPTOR)
    found: dict[str, Any] = {}
    wrong: list[Violation] = []
    for name, text in pairs:
        row = rows.get(name)
        if row is None:
            continue
        json, many, convert = row
        try:
            if many:
                found.setdefault(json, []).extend([convert(item) for item in text.split(",")])
                continue
            value = convert(text)
            if found.setdefault(json, value) != value:
                raise ValueError("is given twice with different values")
        except ValueError as error:
            wrong.append(Violation(json, explain(error)[1]))
    if wrong:
        raise InvalidParamsError(violations=wrong[:MAX_VIOLATIONS])
    return found


@cache
def _query(descriptor: Descriptor) -> Mapping[str, tuple[str, bool, Callable[[str], Any]]]:
    rows = {}
    for field, shape, item in fields(descriptor):
        convert = _query_converter(item)
        if convert is not None and shape != MAP:
            rows[field.name] = rows[field.json_name] = (field.json_name, shape == MANY, convert)
    return rows


def _query_converter(field: Any) -> Callable[[str], Any] | None:
    if field.message_type is not None:
        return _query_timestamp(field) if _is(field, _TIMESTAMP) else None
    if field.type == FieldDescriptor.TYPE_BOOL:
        return _query_bool
    if field.type == FieldDescriptor.TYPE_BYTES:
        return None  # no query of the protocol holds bytes
    read = _reader(field)
    if field.enum_type is not None:
        return lambda text: read(int(text) if text in _DIGITS else text)
    return read  # the readers of strings and numbers take text as it is


_DIGITS: Final = frozenset(map(str, range(100)))  # no enum of the protocol has larger numbers


def _query_bool(text: str) -> bool:
    if text not in ("true", "false"):
        raise ValueError("must be true or false")
    return text == "true"


def _query_timestamp(field: Any) -> Callable[[str], str]:
    fill, made = _filler_of(field), field.message_type._concrete_class

    def convert(text: str) -> str:
        text = _SPACE_FOR_PLUS.sub("+", text)
        fill(made(), text)
        return text

    return convert
