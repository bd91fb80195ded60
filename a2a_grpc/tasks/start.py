"""What a turn begins with, and the things that everything around turns needs: the time, a new id, a name for a fault.

Laws: no decisions; a Start is made by the engine and read by its turn.
"""

import asyncio
import logging
import os
import struct
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from a2a_stubs import v1

from a2a_grpc.call import Call
from a2a_grpc.tasks.state import Fold
from a2a_grpc.tasks.store import Change, Event, Scope

log: Final = logging.getLogger("a2a_grpc")

_T = TypeVar("_T")


def now_ms() -> int:
    """The time in ms since 1970."""
    return time.time_ns() // 1_000_000


_IDS_AT_ONCE: Final = 64
_RANDOM: Final = int("ffffffffffff0fff3fffffffffffffff" * _IDS_AT_ONCE, 16)
_FIXED: Final = int("00000000000040008000000000000000" * _IDS_AT_ONCE, 16)
"""Which bits of those ids are random, and which others are one: version and variant."""
_GROUPS: Final = struct.Struct("8s4s4s4s12s")
_ids: deque[str] = deque()
os.register_at_fork(after_in_child=_ids.clear)


def new_id() -> str:
    """A random UUID of version 4 (CTX-01, CTX-06). The standard library takes many times as long for the same text;
    here a few are made at once. From any thread."""
    while True:
        try:
            return _ids.popleft()
        except IndexError:
            size = 16 * _IDS_AT_ONCE
            bits = int.from_bytes(os.urandom(size), "big") & _RANDOM | _FIXED
            digits = bits.to_bytes(size, "big").hex().encode()
            _ids.extend(b" ".join(map(b"-".join, _GROUPS.iter_unpack(digits))).decode().split())


async def joined(future: "asyncio.Future[_T]") -> _T:
    """What a future of others ends with. Who stops waiting does not cancel it; as asyncio.shield, at a third of the
    cost, and for nothing when it is done."""
    if not future.done():
        waiter = future.get_loop().create_future()

        def wake(_: object) -> None:
            if not waiter.done():
                waiter.set_result(None)

        future.add_done_callback(wake)
        try:
            await waiter
        except BaseException:
            future.remove_done_callback(wake)
            raise
    return future.result()


def with_ids(call: Call, request: v1.SendMessageRequest, task_id: str, context_id: str) -> v1.SendMessageRequest:
    """The request, or a copy of one that others have, whose message names its task and context."""
    own = request
    if not call.gives_request:
        own = v1.SendMessageRequest()
        own.CopyFrom(request)
    message = own.message
    message.task_id, message.context_id = task_id, context_id
    return own


def without_task(message: v1.Message) -> bytes:
    """The message serialised as one that names no task. It is not copied for that, since it may be large, and is as it
    was when this returns or raises."""
    task_id = message.task_id
    message.task_id = ""
    try:
        return message.SerializeToString()
    finally:
        message.task_id = task_id


def failure(what: str, fault: BaseException) -> str:
    """Log a fault with its traceback under a new reference, which is all that callers may see of it (BL-28)."""
    reference = os.urandom(6).hex()
    log.error("%s [reference %s]", what, reference, exc_info=fault)
    return reference


@dataclass(slots=True)
class Start:
    """What a turn begins with.

    scope, task_id, context_id: which task. call, request: what started it, ids of the message set. fold: the task
    before the opening. opening: the turn's first commit; says: makes its events, given that fold, which then may have
    them, and the ids as in state.ids_of; None for none. answering: the message answers a question. trace: the trace
    context of the call, see call.trace_of. author_state: `task.state` as stored. attempt: 1, or more when the turn is
    run again. earlier: the trace context of the task's turn before this one. heard: messages that earlier attempts of
    the turn took while they worked, which this one gets again.
    """

    scope: Scope
    call: Call
    request: v1.SendMessageRequest
    task_id: str
    context_id: str
    fold: Fold
    opening: Change
    says: Callable[[Fold, bytes], Sequence[Event]] | None
    answering: bool = False
    trace: str = ""
    author_state: bytes = b""
    attempt: int = 1
    earlier: str = ""
    heard: Sequence[v1.Message] = ()
