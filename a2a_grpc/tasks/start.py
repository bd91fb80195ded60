"""What a turn begins with, and the three things that everything around turns needs: the time, a new id, and a name for
a fault.

Laws: no decisions; a Start is made by the engine and read by its turn.
"""

import logging
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from a2a_stubs import v1

from a2a_grpc.call import Call
from a2a_grpc.tasks.state import Fold
from a2a_grpc.tasks.store import Change, Scope

log: Final = logging.getLogger("a2a_grpc")


def now_ms() -> int:
    """The time in ms since 1970."""
    return time.time_ns() // 1_000_000


_VARIANT: Final = {digit: "89ab"[int(digit, 16) & 3] for digit in "0123456789abcdef"}


def new_id() -> str:
    """A random UUID of version 4 (CTX-01, CTX-06). The standard library takes four times as long for the same text."""
    text = os.urandom(16).hex()
    return f"{text[:8]}-{text[8:12]}-4{text[13:16]}-{_VARIANT[text[16]]}{text[17:20]}-{text[20:]}"


def failure(what: str, fault: BaseException) -> str:
    """Log a fault with its traceback under a new reference, which is all that callers may see of it (BL-28)."""
    reference = os.urandom(6).hex()
    log.error("%s [reference %s]", what, reference, exc_info=fault)
    return reference


@dataclass(slots=True)
class Start:
    """What a turn begins with.

    scope, task_id, context_id: which task. call, request: what started it, ids of the message set. fold: the task
    before the opening. opening: the turn's first commit, whose events are `payloads`. answering: the message answers a
    question. author_state: `task.state` as stored. attempt: 1, or more when the turn is run again.
    earlier: the trace context of the task's turn before this one, see call.trace_of.
    """

    scope: Scope
    call: Call
    request: v1.SendMessageRequest
    task_id: str
    context_id: str
    fold: Fold
    opening: Change
    payloads: Sequence[v1.StreamResponse]
    answering: bool = False
    author_state: bytes = b""
    attempt: int = 1
    earlier: str = ""
