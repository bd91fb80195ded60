"""JSON text to plain values: what the bytes library does not look at, and files that it is spared.

Laws: a value read here is the value of the text, or ParseError. Members that hold bytes are known by their name alone,
so what was spared must be taken for text wherever no bytes are wanted. No descriptor, no message of the protocol.
"""

import os
import re
from binascii import b2a_base64
from typing import Any, Final

import orjson

from a2a_grpc.errors import ParseError

pybase64: Any
try:
    import pybase64
except ImportError:  # where it has no wheel; the standard library says the same, a large part takes it 30 times as long
    pybase64 = None

LONG: Final = 1024
"""Bytes of base64 past which pybase64 is worth its call."""

LARGE: Final = 64 * 1024
"""Bytes of base64 from which on it is spared, and of text in which it is looked for."""

SMALL: Final = 4096
"""Bytes of a text up to which it is quicker to write its value again: if that is the same, nothing was given twice."""

_HOPS: Final = 256
"""Quotation marks that are looked at for it."""

_MEMBER: Final = re.compile(rb'"raw"[ \t\r\n]*:[ \t\r\n]*"')
_MARK: Final = os.urandom(16).hex()
_FEW: Final = 256
"""Bytes for each member from which on colons are looked for rather than counted."""


class Held:
    """Base64 that was never made a text. content: the bytes that it says."""

    __slots__ = ("_from", "content")

    def __init__(self, source: memoryview, content: bytes) -> None:
        self._from = source
        self.content = content

    @property
    def text(self) -> str:
        """The base64."""
        return str(self._from, "ascii")


def quick_base64(text: str | memoryview) -> bytes | None:
    """What long base64 of the standard alphabet, with its padding, says; None if it is not that, or is better read by
    the standard library."""
    if pybase64 is None or len(text) <= LONG:
        return None
    try:
        return bytes(pybase64.b64decode(text, validate=True))
    except ValueError:
        return None


def to_base64(value: bytes) -> str:
    """The base64 of some bytes."""
    if pybase64 is not None and len(value) > LONG:
        return str(pybase64.b64encode_as_string(value))
    return b2a_base64(value, newline=False).decode()


def loads(body: bytes | bytearray | str, *, spare: bool = False) -> Any:
    """The JSON value of a body. Raises ParseError for what is not JSON, not UTF-8, holds an unpaired surrogate, NaN, an
    infinite number or a member twice, or is nested deeper than 1024 levels (RPC-09, JSON-19, JSON-22, BL-26, BL-27).

    spare: whether large base64 in members called `raw` may be left out as `Held`, as `decode` takes it; default False.
    """
    held: list[Held] = []
    if spare and not isinstance(body, str) and len(body) > LARGE and pybase64 is not None:
        body = _spared(body, held)
    try:
        value = orjson.loads(body)
    except (orjson.JSONDecodeError, RecursionError):
        raise ParseError from None
    kind = type(value)
    if (kind is dict or kind is list) and not (len(body) <= SMALL and not held and _is_plain(value, body)):
        raw = body.encode() if isinstance(body, str) else body
        members = _members(value, held)
        # Every member has a colon. If there are more colons than members, those in strings may explain it.
        if not _has_colons(raw, members) and _colons(raw) != members:
            raise ParseError("Invalid JSON payload: a member is given twice")
    return value


def _is_plain(value: Any, body: bytes | bytearray | str) -> bool:
    """Whether a text is its value as it is written here, or as others may space it, and so has no member twice: then
    both have the same colons, those of members and those in strings. Only an escaped one would not be counted."""
    if isinstance(body, str):
        return False
    try:
        text = orjson.dumps(value)
    except TypeError:  # it is nested deeper than that can be written
        return False
    return text == body or (text.count(b":") == body.count(b":") and b"\\u003" not in body)


def _spared(body: bytes | bytearray, held: list[Held]) -> bytes | bytearray:
    """The body with marks instead of large base64, which is `held`. A quotation mark after a brace or a comma that is
    not the beginning of a member's name is no JSON, with the mark or without."""
    pieces: list[bytes | bytearray] = []
    source, done, at = memoryview(body), 0, body.find(b'"')
    for _ in range(_HOPS):
        if at < 0:
            break
        found = _MEMBER.match(body, at)
        if found is not None and body[max(0, at - 64) : at].rstrip(b" \t\r\n")[-1:] in (b"{", b","):
            start, at = found.end(), body.find(b'"', found.end())
            if at - start >= LARGE and (content := quick_base64(source[start:at])) is not None:
                pieces += body[done:start], f"{_MARK}{len(held)}".encode()
                held.append(Held(source[start:at], content))
                done = at
        at = body.find(b'"', at + 1) if at >= 0 else at
    return b"".join((*pieces, body[done:])) if held else body


def _members(value: Any, held: list[Held]) -> int:
    """How many members all objects inside have together; without recursion, for the depth is the sender's choice. Puts
    what is held into its place."""
    count, stack = 0, [value]
    while stack:
        items = stack.pop()
        if type(items) is dict:
            count += len(items)
            if held and type(mark := items.get("raw")) is str and mark.startswith(_MARK):
                items["raw"] = held[int(mark.removeprefix(_MARK))]
            items = items.values()
        for item in items:
            kind = type(item)
            if kind is dict or kind is list:
                stack.append(item)
    return count


def _has_colons(raw: bytes | bytearray, number: int) -> bool:
    """Whether a text has just so many colons. Looking for few in a long one is much quicker than counting."""
    if number * _FEW > len(raw):
        return raw.count(b":") == number
    at = -1
    for _ in range(number):
        at = raw.find(b":", at + 1)
    return raw.find(b":", at + 1) < 0


def _colons(raw: bytes | bytearray) -> int:
    """How many colons of valid JSON are outside of strings: every second piece between unescaped quotes is outside."""
    if b"\\" in raw:
        raw = raw.replace(b"\\\\", b"").replace(b'\\"', b"")
    return b"".join(raw.split(b'"')[::2]).count(b":")
