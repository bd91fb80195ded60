"""Single values of ProtoJSON: scalars, enums, base64, timestamps, durations and free JSON (Struct, Value, ListValue).

Laws: every reader takes a loaded JSON value and gives what the protobuf field takes, or raises ValueError with words
for the caller; free JSON raises `UnfitError`, which also knows where. Writers do the reverse. Nothing here knows a
message of the protocol; `protojson_read` and `protojson_write` use these rows. What user code calls is at the end.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta, timezone
from functools import lru_cache
from typing import Any, Final, TypeVar

from a2a_stubs import google
from google.protobuf.descriptor import EnumDescriptor, FieldDescriptor
from google.protobuf.message import Message

from a2a_grpc.errors import InvalidAgentResponseError, Violation
from a2a_grpc.protojson_text import Held, quick_base64, to_base64
from a2a_grpc.python310 import strict_base64

MAX_DEPTH: Final = 30
"""Levels of objects inside one Struct or Value; lists are cheaper and may be half as deep again (JSON-18)."""

_OBJECT_COST, _LIST_COST = 3, 2  # message levels: Struct, map entry, Value; ListValue, Value
_BUDGET: Final = MAX_DEPTH * _OBJECT_COST  # of the 100 levels that protobuf reads; the rest is for what is around
_EXACT: Final = 2**53
_T = TypeVar("_T")
_FIRST_SECOND, _LAST_SECOND = -62135596800, 253402300799  # the years 1 to 9999
_LONGEST_DURATION: Final = 315576000000
_EPOCH: Final = datetime(1970, 1, 1)
_DECIMAL: Final = re.compile(r"-?(?:0|[1-9][0-9]{0,19})")
_TIMESTAMP: Final = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.([0-9]{1,9}))?"
    r"(?:(Z)|([+-])([01][0-9]|2[0-3]):([0-5][0-9]))?"
)
_DURATION: Final = re.compile(r"(-?)([0-9]{1,12})(?:\.([0-9]{1,9}))?s")


class UnfitError(ValueError):
    """A free JSON value that cannot be carried; `path` leads to it from where the reading or writing began."""

    def __init__(self, description: str) -> None:
        super().__init__(description)
        self.path = ""

    def under(self, parent: str) -> "UnfitError":
        """The same, seen from one level up."""
        self.path = join(parent[:64], self.path)
        return self


def join(parent: str, child: str) -> str:
    """The path of `child`, a path relative to `parent`: `message` and `parts[0]` give `message.parts[0]`."""
    return parent + child if not child or child[0] == "[" or not parent else f"{parent}.{child}"


def more(wrong: list[tuple[str, str]] | None, place: str, below: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """What was found wrong, None for nothing, and what is wrong below a place; both as pairs of path and text."""
    return [*(wrong or ()), *((join(place, where), what) for where, what in below)]


# Scalars


def _string(value: Any) -> str:
    if type(value) is not str:
        raise ValueError("must be a string")
    return value


def _bool(value: Any) -> bool:
    if type(value) is not bool:
        raise ValueError("must be true or false")
    return value


def _integer(low: int, high: int) -> Callable[[Any], int]:
    def read(value: Any) -> int:
        kind = type(value)
        if (kind is str and _DECIMAL.fullmatch(value)) or (kind is float and value.is_integer()):
            value = int(value)
        elif kind is not int:
            raise ValueError("must be a whole number")
        if not low <= value <= high:
            raise ValueError(f"must be from {low} to {high}")
        return int(value)

    return read


def _number(value: Any) -> float:
    try:
        number = float(value) if type(value) in (int, float, str) else None
    except (ValueError, OverflowError):
        number = None
    if number is None or number - number != 0:
        raise ValueError("must be a finite number")
    return number


def _base64(value: Any) -> bytes:
    if type(value) is Held:
        return value.content
    text = _string(value)
    if (content := quick_base64(text)) is not None:
        return content
    if "-" in text or "_" in text:
        text = text.replace("-", "+").replace("_", "/")
    if len(text) % 4 and text[-1] != "=":
        text += "=" * (-len(text) % 4)
    if (content := quick_base64(text)) is not None:
        return content
    try:
        return strict_base64(text)
    except ValueError:
        raise ValueError("must be base64") from None


def _finite(value: float) -> float:
    if value - value != 0:
        raise UnfitError("is not a finite number")
    return value


_INT32, _UINT32 = _integer(-(2**31), 2**31 - 1), _integer(0, 2**32 - 1)
_INT64, _UINT64 = _integer(-(2**63), 2**63 - 1), _integer(0, 2**64 - 1)
_F = FieldDescriptor

READ: Final[Mapping[int, Callable[[Any], Any]]] = {
    _F.TYPE_STRING: _string,
    _F.TYPE_BOOL: _bool,
    _F.TYPE_BYTES: _base64,
    **dict.fromkeys((_F.TYPE_INT32, _F.TYPE_SINT32, _F.TYPE_SFIXED32), _INT32),
    **dict.fromkeys((_F.TYPE_UINT32, _F.TYPE_FIXED32), _UINT32),
    **dict.fromkeys((_F.TYPE_INT64, _F.TYPE_SINT64, _F.TYPE_SFIXED64), _INT64),
    **dict.fromkeys((_F.TYPE_UINT64, _F.TYPE_FIXED64), _UINT64),
    **dict.fromkeys((_F.TYPE_DOUBLE, _F.TYPE_FLOAT), _number),
}
"""The reader of each scalar field type (JSON-13, JSON-15, JSON-16)."""

_LONG = (_F.TYPE_INT64, _F.TYPE_SINT64, _F.TYPE_SFIXED64, _F.TYPE_UINT64, _F.TYPE_FIXED64)
WRITE: Final[Mapping[int, Callable[[Any], Any]]] = {
    _F.TYPE_BYTES: to_base64,
    **dict.fromkeys(_LONG, str),
    **dict.fromkeys((_F.TYPE_DOUBLE, _F.TYPE_FLOAT), _finite),
}
"""The writer of each scalar field type whose Python value is not yet its JSON value."""

ENUM_SPELLINGS: Final[Mapping[str, Mapping[str, str]]] = {
    "a2a.v1.TaskState": {"TASK_STATE_CANCELED": "TASK_STATE_CANCELLED"},
}
"""Further spellings that are read for a value of an enum, by its full name (V03-22)."""


def not_of(enum: EnumDescriptor) -> str:
    """What to say of a value that is none of the enum's."""
    return f"must be a value of {enum.name}"


def enum_reader(enum: EnumDescriptor) -> Callable[[Any], int]:
    """Reads a name or a number of the enum and refuses others (JSON-03, JSON-04, JSON-05)."""
    numbers = {value.name: value.number for value in enum.values}
    numbers |= {other: numbers[name] for other, name in ENUM_SPELLINGS.get(enum.full_name, {}).items()}
    known = frozenset(numbers.values())

    def read(value: Any) -> int:
        number = numbers.get(value) if type(value) is str else value if type(value) is int else None
        if number is None or number not in known:
            raise ValueError(not_of(enum))
        return number

    return read


def enum_writer(enum: EnumDescriptor) -> Callable[[int], str | int]:
    """Writes the name of a number, or the number where the enum has none (JSON-03)."""
    names = {value.number: value.name for value in reversed(enum.values)}

    def write(number: int) -> str | int:
        return names.get(number, number)

    return write


# Timestamp and Duration


def fill_timestamp(target: Any, value: Any) -> None:
    """Fills a Timestamp from RFC 3339 text with a zone and at most nine fraction digits (JSON-12)."""
    _fill_timestamp(target, value, False)


def fill_timestamp_or_utc(target: Any, value: Any) -> None:
    """The same, where no zone means UTC (V03-31)."""
    _fill_timestamp(target, value, True)


def _fill_timestamp(target: Any, value: Any, zoneless: bool) -> None:
    found = _TIMESTAMP.fullmatch(value) if type(value) is str else None
    if found is None or not (zoneless or found[3] or found[4]):
        raise ValueError("must be a timestamp such as 2025-01-31T12:00:00.000Z")
    try:
        seconds = (datetime.fromisoformat(found[1]) - _EPOCH) // timedelta(seconds=1)
    except ValueError:
        raise ValueError("must be a date and time that exist") from None
    if found[4]:
        offset = int(found[5]) * 3600 + int(found[6]) * 60
        seconds += offset if found[4] == "-" else -offset
        if not _FIRST_SECOND <= seconds <= _LAST_SECOND:
            raise ValueError("must be in the years 1 to 9999")
    target.seconds = seconds
    target.nanos = int(found[2].ljust(9, "0")) if found[2] else 0


def _fraction(nanos: int) -> str:
    if not nanos:
        return ""
    if nanos % 1_000_000 == 0:
        return f".{nanos // 1_000_000:03}"
    return f".{nanos // 1000:06}" if nanos % 1000 == 0 else f".{nanos:09}"


def timestamp_text(stamp: Any) -> str:
    """A Timestamp of either pool as text: UTC, `Z`, 0, 3, 6 or 9 fraction digits (JSON-10, JSON-11, I-23)."""
    seconds, nanos = stamp.seconds, stamp.nanos
    if not (_FIRST_SECOND <= seconds <= _LAST_SECOND and 0 <= nanos < 1_000_000_000):
        raise UnfitError("is no timestamp of the years 1 to 9999")
    return _second(seconds) + _fraction(nanos) + "Z"


@lru_cache(1024)
def _second(seconds: int) -> str:
    return (_EPOCH + timedelta(seconds=seconds)).isoformat()


def _fill_duration(target: Any, value: Any) -> None:
    found = _DURATION.fullmatch(value) if type(value) is str else None
    if found is None or int(found[2]) > _LONGEST_DURATION:
        raise ValueError("must be a duration such as 1.5s")
    sign = -1 if found[1] else 1
    target.seconds = sign * int(found[2])
    target.nanos = sign * int((found[3] or "").ljust(9, "0"))


def _duration_text(duration: Any) -> str:
    seconds, nanos = duration.seconds, duration.nanos
    if abs(seconds) > _LONGEST_DURATION or abs(nanos) >= 1_000_000_000 or seconds * nanos < 0:
        raise UnfitError("is no duration")
    return f"{'-' if seconds < 0 or nanos < 0 else ''}{abs(seconds)}{_fraction(abs(nanos))}s"


# Free JSON


def _fill_value(target: Any, value: Any, budget: int = _BUDGET) -> None:
    kind = type(value)
    if kind is str:
        target.string_value = value
    elif kind is int or kind is float:
        _fill_number(target, value)
    elif value is None:
        target.null_value = 0
    elif kind is bool:
        target.bool_value = value
    elif kind is dict:
        _fill_struct(target.struct_value, value, budget)
    elif kind is list:
        _fill_list(target.list_value, value, budget)
    else:
        _fill_value(target, _plain(value), budget)


def _fill_number(target: Any, value: float) -> None:
    try:
        target.number_value = value
    except OverflowError:
        raise UnfitError("is too large a number") from None
    if value - value != 0:
        raise UnfitError("is not a finite number")


def _fill_struct(target: Any, value: Any, budget: int = _BUDGET) -> None:
    if type(value) is not dict:
        raise ValueError("must be an object")
    if (budget := budget - _OBJECT_COST) < 0:
        raise UnfitError(f"is nested deeper than {MAX_DEPTH} levels")
    if not value:
        target.SetInParent()
    fields = target.fields
    key: Any = ""
    try:
        for key, item in value.items():
            if type(item) is str:
                fields[key].string_value = item
            else:
                _fill_value(fields[key], item, budget)
    except UnfitError as unfit:
        raise unfit.under(str(key)) from None
    except UnicodeEncodeError:
        raise UnfitError("holds an unpaired surrogate").under(ascii(key)[1:-1]) from None
    except TypeError:
        raise UnfitError("has a member name that is not a string") from None


def _fill_list(target: Any, value: Any, budget: int = _BUDGET) -> None:
    if type(value) is not list:
        raise ValueError("must be a list")
    if (budget := budget - _LIST_COST) < 0:
        raise UnfitError(f"is nested deeper than {_BUDGET // _LIST_COST} levels")
    if not value:
        target.SetInParent()
    values = target.values
    try:
        for item in value:
            _fill_value(values.add(), item, budget)
    except UnfitError as unfit:
        raise unfit.under(f"[{len(values) - 1}]") from None
    except UnicodeEncodeError:
        raise UnfitError("holds an unpaired surrogate").under(f"[{len(values) - 1}]") from None


def _plain(value: Any) -> Any:
    """What user code may also hand in, as a plain JSON value: subclasses, tuples, mappings, messages of any pool."""
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, Held):
        return value.text
    if isinstance(value, int | float):
        return int(value) if isinstance(value, int) else float(value)
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, list | tuple):
        return list(value)
    if isinstance(value, Message) and (write := WRITE_MESSAGE.get(value.DESCRIPTOR.full_name)):
        return write(value)
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise UnfitError("is a datetime without a time zone")
        return value.astimezone(timezone.utc).isoformat().replace("+00:00", "Z")
    raise UnfitError(f"is of the type {type(value).__name__}, which JSON does not have")


def _read_value(value: Any) -> Any:
    text = value.string_value
    if text:
        return text
    kind = value.WhichOneof("kind")
    if kind == "number_value":
        number = value.number_value
        if number.is_integer() and -_EXACT <= number <= _EXACT:
            return int(number) or (0 if str(number) == "0.0" else number)  # no whole number says -0.0
        return _finite(number)
    if kind == "struct_value":
        return _read_struct(value.struct_value)
    if kind == "list_value":
        return _read_list(value.list_value)
    if kind == "bool_value":
        return value.bool_value
    return text if kind == "string_value" else None


def _read_struct(struct: Any) -> dict[str, Any]:
    fields = struct.fields
    found = {}
    key = ""
    try:
        for key in fields:
            found[key] = _read_value(fields[key])
    except UnfitError as unfit:
        raise unfit.under(key) from None
    return found


def _read_list(values: Any) -> list[Any]:
    found: list[Any] = []
    try:
        for item in values.values[:]:
            found.append(_read_value(item))
    except UnfitError as unfit:
        raise unfit.under(f"[{len(found)}]") from None
    return found


def _no_form(*_: Any) -> None:
    raise UnfitError("is of a type that has no JSON form here")


FILL_MESSAGE: Final[Mapping[str, Callable[[Any, Any], None]]] = {
    "google.protobuf.Struct": _fill_struct,
    "google.protobuf.Value": _fill_value,
    "google.protobuf.ListValue": _fill_list,
    "google.protobuf.Timestamp": fill_timestamp,
    "google.protobuf.Duration": _fill_duration,
    "google.protobuf.Any": _no_form,
}
"""How the messages that have a JSON form of their own are filled from it."""

WRITE_MESSAGE: Final[Mapping[str, Callable[[Any], Any]]] = {
    "google.protobuf.Struct": _read_struct,
    "google.protobuf.Value": _read_value,
    "google.protobuf.ListValue": _read_list,
    "google.protobuf.Timestamp": timestamp_text,
    "google.protobuf.Duration": _duration_text,
    "google.protobuf.Any": _no_form,
}
"""The JSON form of such a message: whole numbers up to 2^53 as ints (BL-25); UnfitError for what JSON has not."""


# For user code


def value_of(obj: Any) -> google.Value:
    """A Value holding any JSON value: None, bool, numbers, str, dict, list, subclasses and tuples of these,
    Struct, Value, ListValue, Timestamp of any pool, and datetime with a time zone (as text in UTC). Numbers become
    doubles: above 2^53 whole ones lose digits.

    Raises InvalidAgentResponseError with the path of what is not JSON, not finite, or nested too deep (`MAX_DEPTH`).
    """
    return _made(google.Value(), _fill_value, obj)


def struct_of(obj: Any) -> google.Struct:
    """A Struct holding a mapping (or a Struct of any pool); else as `value_of` (DATA-10)."""
    return _made(google.Struct(), _fill_plain_struct, obj)


def json_of(value: Any) -> Any:
    """The JSON value in a Value, Struct, ListValue, Timestamp or Duration of any pool; whole numbers to 2^53 are ints.

    Raises InvalidAgentResponseError with the path of a number that is not finite, TypeError for other messages.
    """
    write = WRITE_MESSAGE.get(value.DESCRIPTOR.full_name)
    if write is None:
        raise TypeError(f"{value.DESCRIPTOR.full_name} is no JSON value")
    try:
        return write(value)
    except UnfitError as unfit:
        raise _refused(unfit) from None


def _fill_plain_struct(target: Any, obj: Any) -> None:
    plain = obj if type(obj) is dict else _plain(obj)
    if type(plain) is not dict:
        raise UnfitError("must be an object")
    _fill_struct(target, plain)


def _made(target: _T, fill: Callable[[Any, Any], None], obj: Any) -> _T:
    try:
        fill(target, obj)
    except UnfitError as unfit:
        raise _refused(unfit) from None
    except UnicodeEncodeError:
        raise _refused(UnfitError("holds an unpaired surrogate")) from None
    return target


def _refused(unfit: UnfitError) -> InvalidAgentResponseError:
    where = unfit.path or "value"
    return InvalidAgentResponseError(f"{where} {unfit}", violations=[Violation(where, str(unfit))])
