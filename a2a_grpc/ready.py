"""Answers that are bytes before anybody asks for them, and what keeps bytes that were made once.

Laws: what is kept is found by what it was made of and by nothing else, so it can be forgotten but never be out of date;
every store of it is bounded in bytes. Nothing here knows an operation, a wire or a task.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, Generic, NamedTuple, TypeVar

from google.protobuf.message import Message

MOST_KEPT: Final = 4 * 1024 * 1024
"""Bytes that one `Bounded` holds, then it forgets all of them."""

LARGEST_KEPT: Final = 16 * 1024
"""Bytes of the largest thing that is kept."""

_K = TypeVar("_K")
_V = TypeVar("_V")


class Bounded(Generic[_K, _V]):
    """What was made of things that do not change. find: what was made of one, None if that is not kept."""

    __slots__ = ("_known", "_size", "find")

    def __init__(self) -> None:
        self._known: dict[_K, _V] = {}
        self._size = 0
        self.find: Callable[[_K], _V | None] = self._known.get

    def put(self, of: _K, made: _V, size: int) -> None:
        """Keep what was made. size: in bytes, of both; more than there is room for is not kept."""
        if size <= MOST_KEPT:
            self._size += size
            if self._size > MOST_KEPT:
                self._known.clear()
                self._size = size
            self._known[of] = made


class Kept(Bounded[bytes, _V]):
    """What was made of bytes."""

    __slots__ = ()

    def keep(self, of: bytes, made: _V, size: int) -> _V:
        """What was made, `size` bytes, which is kept unless it is large."""
        if len(of) <= LARGEST_KEPT:
            self.put(of, made, len(of) + size)
        return made


class Ready(NamedTuple):
    """An answer that is a list, without the cost of making its message.

    kind: the type of the answer; field: the repeated field that holds the entries. entries: for each the serialised
    answer of it alone; a tuple where the same ones are likely to be given again. rest: the answer without them. Given
    to callers that say so, see `Call.takes_ready`.
    """

    kind: type[Message]
    field: str
    entries: Sequence[bytes]
    rest: Message

    def body(self) -> bytes:
        """The serialised answer."""
        return b"".join(self.entries) + self.rest.SerializeToString()

    def message(self) -> Any:
        """The answer as a message."""
        return self.kind.FromString(self.body())


class Stored:
    """An answer that was made before, without the cost of making its message again. kind: its type; told: serialised.
    Given to whom a `Ready` is given."""

    __slots__ = ("kind", "told")

    def __init__(self, kind: type[Message], told: bytes) -> None:
        self.kind, self.told = kind, told

    def body(self) -> bytes:
        """The serialised answer."""
        return self.told

    def message(self) -> Any:
        """The answer as a message."""
        return self.kind.FromString(self.told)
