"""Page tokens: opaque, bound to the caller and to the filters they were issued under (LIST-04, LIST-15, LIST-16).

Laws: a token is a place in an order plus a mark of scope and filters; whoever changes either gets an error that names
`pageToken`. A token gives no rights: the store asks for the scope again. Nothing here does I/O.
"""

import base64
import binascii
import hashlib
from functools import lru_cache
from typing import Final, NoReturn

from a2a_stubs import v1

from a2a_grpc.errors import InvalidParamsError
from a2a_grpc.tasks.store import Scope

DEFAULT_PAGE: Final = 50
LARGEST_PAGE: Final = 100
_MARK: Final = 9
_TIME: Final = 8
_LAST_TIME: Final = 2**63 - 1

Filters = tuple[str | int, ...]


def list_size(request: v1.ListTasksRequest) -> int:
    """The page size asked for: 50 when unset, else 1 to 100 (LIST-05)."""
    if not request.HasField("page_size"):
        return DEFAULT_PAGE
    if not 1 <= request.page_size <= LARGEST_PAGE:
        raise InvalidParamsError(violations=[("pageSize", f"must be between 1 and {LARGEST_PAGE}")])
    return request.page_size


def list_since(request: v1.ListTasksRequest) -> int:
    """The earliest status time asked for, in ms; 0 when unset. Times are whole ms, so that a moment between two of them
    keeps the earlier one out (LIST-13)."""
    if not request.HasField("status_timestamp_after"):
        return 0
    return -(-request.status_timestamp_after.ToNanoseconds() // 1_000_000)


def write_place(place: tuple[int, str], scope: Scope, filters: Filters) -> str:
    """The token after a task, given as (status time in ms, task id)."""
    return _write(place[0].to_bytes(_TIME, "big") + place[1].encode(), scope, filters)


def read_place(token: str, scope: Scope, filters: Filters) -> tuple[int, str] | None:
    """The place of a token of `write_place`, None for an empty token. Raises InvalidParamsError."""
    if not token:
        return None
    place = _read(token, scope, filters)
    time, name = int.from_bytes(place[:_TIME], "big"), _text(place[_TIME:])
    if not name or time > _LAST_TIME:
        _refuse()
    return time, name


def write_name(name: str, scope: Scope, filters: Filters) -> str:
    """The token after an entry of a list in order of names."""
    return _write(name.encode(), scope, filters)


def read_name(token: str, scope: Scope, filters: Filters) -> str:
    """The name of a token of `write_name`, "" for an empty token. Raises InvalidParamsError."""
    return _text(_read(token, scope, filters)) if token else ""


@lru_cache(maxsize=256)
def _mark(scope: Scope, filters: Filters) -> bytes:
    return hashlib.blake2b(repr((*scope, *filters)).encode(), digest_size=_MARK).digest()


def _write(place: bytes, scope: Scope, filters: Filters) -> str:
    return base64.urlsafe_b64encode(_mark(scope, filters) + place).decode().rstrip("=")


def _read(token: str, scope: Scope, filters: Filters) -> bytes:
    try:
        content = base64.b64decode(token.encode() + b"=" * (-len(token) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        _refuse()
    if content[:_MARK] != _mark(scope, filters):
        _refuse()
    return content[_MARK:]


def _text(place: bytes) -> str:
    """The text of a place; a token is the caller's bytes, whatever mark is on it."""
    try:
        return place.decode()
    except UnicodeDecodeError:
        _refuse()


def _refuse() -> NoReturn:
    raise InvalidParamsError(violations=[("pageToken", "is not a token of this list with these filters")])
