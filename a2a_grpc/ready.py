"""Answers that are bytes before anybody asks for them, and what keeps bytes that were made once.

Laws: what is kept is found by what it was made of and by nothing else, so it can be forgotten but never be out of date;
every store of it is bounded in bytes. Nothing here knows an operation, a wire or a task.
"""

from collections.abc import Callable
from typing import Any, Final, Generic, NamedTuple, TypeVar

from google.protobuf.message import Message

MOST_KEPT: Final = 4 * 1024 * 1024
"""Bytes that one `Kept` holds, then it forgets all of them."""

LARGEST_KEPT: Final = 16 * 1024
"""Bytes of the largest thing that is kept."""

_V = TypeVar("_V")


class Kept(Generic[_V]):
    """What was made of bytes. find: what was made of some, None if that is not kept."""

    __slots__ = ("_known", "_size", "find")

    def __init__(self) -> None:
        self._known: dict[bytes, _V] = {}
        self._size = 0
        self.find: Callable[[bytes], _V | None] = self._known.get

    def keep(self, of: bytes, made: _V, size: int) -> _V:
        """What was made, `size` bytes, which is kept unless it is large."""
        if len(of) <= LARGEST_KEPT:
            self._size += len(of) + size
            if self._size > MOST_KEPT:
                self._known.clear()
                self._size = len(of) + size
            self._known[of] = made
        return made


class Ready(NamedTuple):
    """An answer that is a list, without the cost of making its message.

    kind: the type of the answer; field: the repeated field that holds the entries. entries: for each the serialised
    answer of it alone. rest: the answer without them. Given to callers that say so, see `Call.takes_ready`.
    """

    kind: type[Message]
    field: str
    entries: list[bytes]
    rest: Message

    def body(self) -> bytes:
        """The serialised answer."""
        return b"".join(self.entries) + self.rest.SerializeToString()

    def message(self) -> Any:
        """The answer as a message."""
        return self.kind.FromString(self.body())
