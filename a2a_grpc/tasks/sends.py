"""Messages that may be answered without a task: the same message sent again waits for the first, wherever that is at
work.

Laws: of an answer that is not stored yet only the process at work on it knows. In a store that others share it leaves
a claim there before the function runs: renewed while that works, taken back when it breaks off, replaced by the
outcome, and run out like a lease where the process dies. So nobody who is not lost has his function run twice. What an
outcome is, is said in run.py.
"""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from a2a_grpc.errors import STOPPING, UnavailableError
from a2a_grpc.python310_asyncio import timeout
from a2a_grpc.tasks.run import Runtime, Started, Turn
from a2a_grpc.tasks.store import Claimed, Dedupe, Scope

log: Final = logging.getLogger("a2a_grpc")

PAUSES: Final = (0.02, 0.05, 0.1, 0.2)
"""Seconds between looks for what became of a message that is being answered elsewhere; the last goes on."""


@dataclass(slots=True)
class _Send:
    """The first send of a message: its turn, what will be known of it, and since when its claim is that long, by the
    monotonic clock."""

    turn: Turn
    sent: Dedupe
    since: float

    @property
    def at_work(self) -> bool:
        """Whether the function works on an outcome, and nothing of it is stored."""
        return not (self.turn.stored or self.turn.ending or self.turn.over.done())


class Sends:
    """The sends of an engine, by whose they are and messageId, while they may be answered without a task."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._known: dict[Claimed, _Send] = {}
        self._asking: Counter[Claimed] = Counter()  # who asks the store what became of a message
        self._closed = False

    def __len__(self) -> int:
        return len(self._known) + len(self._asking)

    def open(self) -> None:
        """Take messages again after a `close`."""
        self._closed = False

    def close(self) -> None:
        """Let all who wait for a message elsewhere end with UnavailableError."""
        self._closed = True

    async def earlier(self, scope: Scope, sent: Dedupe) -> Started | None:
        """The first send of the same message, or of other content under its id, which has no outcome for this one; None
        if there is none, and then it is claimed for this one. sent: what will be known of this one. Raises
        UnavailableError when this process stops."""
        key = scope, sent.message_id
        self._asking[key] += 1
        try:
            looks = 0
            while True:
                known = None if key in self._known else await self._ask(key, sent)
                first = self._known.get(key)
                if first or known is None or not known.claims or known.digest != sent.digest:
                    break
                if self._closed:
                    raise UnavailableError(STOPPING)
                await asyncio.sleep(PAUSES[min(looks, len(PAUSES) - 1)])
                looks += 1
        finally:
            self._asking[key] -= 1
            self._forget(key)
        if first and first.sent.digest == sent.digest and (known is None or known.claims):
            return Started(first.turn.task_id, first.turn, digest=sent.digest)
        known = known or (first.sent if first else None)
        return None if known is None else Started(known.task_id, known=known, digest=sent.digest)

    def remember(self, scope: Scope, sent: Dedupe, turn: Turn) -> None:
        """This turn is that of the first send of a message; sent: as for `earlier`."""
        key = scope, sent.message_id
        self._known[key] = _Send(turn, sent, time.monotonic())
        turn.over.add_done_callback(lambda _: self._over(key, sent, turn))

    def _over(self, key: Claimed, sent: Dedupe, turn: Turn) -> None:
        if turn.stopped is not None and not turn.stored:
            self.give_up(key[0], sent)
        self._forget(key)

    def _forget(self, key: Claimed) -> None:
        """Forget a send that is over, unless somebody asks the store, which may have looked before it was over."""
        if self._asking[key]:
            return
        del self._asking[key]
        if (known := self._known.get(key)) and known.turn.over.done():
            del self._known[key]

    # -- where others share the store

    async def _ask(self, key: Claimed, sent: Dedupe) -> Dedupe | None:
        """What the store knows of a message, None for nothing: then it has a claim from now on, if it is shared."""
        store = self._runtime.store
        if store.exclusive:
            return await store.seen(*key, store.now_ms())
        work = self._runtime.spawn(self._claim([(key[0], sent)]), f"claim of {sent.message_id}")
        try:
            known: Mapping[Claimed, Dedupe] = await asyncio.shield(work)
            return known.get(key)
        except asyncio.CancelledError:
            work.add_done_callback(partial(self._unwanted, key[0], sent))
            raise

    async def _claim(
        self, sends: Iterable[tuple[Scope, Dedupe]], seconds: float | None = None
    ) -> Mapping[Claimed, Dedupe]:
        """Claim messages for so many seconds, default those of a lease; what else is known of them."""
        store = self._runtime.store
        now = store.now_ms()
        until = now + int((self._runtime.options.lease if seconds is None else seconds) * 1000)
        claims = [(scope, sent._replace(expires_ms=until, task_id="", reply=sent.claim)) for scope, sent in sends]
        return await store.claim_messages(claims, now)

    def _unwanted(self, scope: Scope, sent: Dedupe, work: "asyncio.Task[Any]") -> None:
        if not (work.cancelled() or work.exception()):
            self.give_up(scope, sent)

    def give_up(self, scope: Scope, sent: Dedupe) -> None:
        """Take a claim back, so that nobody waits for an outcome that will not come."""
        if not (self._runtime.store.exclusive or self._closed):
            self._runtime.spawn(self._given_up(scope, sent), f"end of the claim of {sent.message_id}")

    async def _given_up(self, scope: Scope, sent: Dedupe) -> None:
        with suppress(Exception):  # then it runs out by itself
            await self._claim([(scope, sent)], 0)

    async def renew(self) -> None:
        """Lengthen the claims of all functions at work. One whose claim is lost stops, as somebody else may be at work
        on the message; so does one whose claim could not be lengthened in time."""
        held = {key: send for key, send in self._known.items() if send.at_work}
        if not held:
            return
        asked, lease = time.monotonic(), self._runtime.options.lease
        enough = lease * 5 / 6  # the last sixth is left to stop in
        first = min(send.since for send in held.values())
        try:
            async with timeout(max(first + enough - asked, lease / 12)):
                known = await self._claim([(key[0], send.sent) for key, send in held.items()])
            # What is known may be the task that the function has just made.
            lost = {key for key, row in known.items() if row.task_id != held[key].sent.task_id}
        except Exception:
            log.exception("claims of messages could not be renewed")
            lost = {key for key, send in held.items() if time.monotonic() >= send.since + enough}
        else:
            for send in held.values():
                send.since = asked
        for key in lost:
            if (send := held[key]).at_work:
                send.turn.stop(UnavailableError())
