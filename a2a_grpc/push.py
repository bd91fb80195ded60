"""Delivery of push notifications: every event of a task to every webhook of the task, beside everything else.

Laws: the log is the outbox. A config has a cursor in its task's log, which the store keeps, and moves when a receiver
has said 2xx; so nothing is lost by a crash, and what was in flight is sent again under the same number (PUSH-14). Who
sends for a config has claimed it for a while; one event at a time, in order (PUSH-18). No turn, no stream and no call
waits for a webhook (PUSH-19). The version that made a config decides what its receiver gets (PUSH-29).
"""

import asyncio
import logging
import random
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Final, NamedTuple

from a2a_stubs import v1
from yarl import URL

from a2a_grpc.call import V03, V1, trace_headers
from a2a_grpc.config import Options
from a2a_grpc.content import opened
from a2a_grpc.errors import A2AError, InvalidParamsError, TaskNotFoundError
from a2a_grpc.protojson import dumps, to_json
from a2a_grpc.push_hosts import LONGEST_REST, Hosts, Outcome, Poster
from a2a_grpc.push_secrets import Seal, Sealed
from a2a_grpc.python310_asyncio import timeout
from a2a_grpc.tasks.bus import Bus
from a2a_grpc.tasks.state import INTERRUPTED, Fold, state_of, status_of
from a2a_grpc.tasks.store import NEVER, Delivery, Event, PushConfig, Report, Scope, Store, TooMany
from a2a_grpc.v03 import down_event, down_result

log: Final = logging.getLogger("a2a_grpc")

POLL: Final = 1.0
"""Seconds between looks for configs that other replicas, earlier runs or failures have left something to send."""
GAP: Final = 0.02
"""Least seconds between two looks, so that a busy task costs the store little."""
PAGE: Final = 64
"""Events read at a time."""
FIRST_WAIT: Final = 1.0
LONGEST_WAIT: Final = 900.0
"""Seconds before the first and between late repetitions; each wait is twice the last, less up to a half (PUSH-15)."""
LEAST_BATCH: Final = 5.0
"""Seconds at least for which a claimed config is served before others have their turn."""
WATCHED: Final = 10_000
"""Tasks whose commits wake the delivery at once; of all others it learns by looking. Also webhooks of which it is known
here why they failed last."""
FEWEST: Final = 3
"""Attempts at least before a webhook is given up, if so many fit into the time: two single failures, with a server that
was stopped in between, are no reason."""
RESTS: Final = "its host fails and is left alone for a while"
BUSY: Final = "its host is busy with others"
LAST_STEPS: Final = 0.5
"""Seconds for what is being sent when the server stops."""
TOKEN_HEADER: Final = "X-A2A-Notification-Token"
NUMBER_HEADER: Final = "X-A2A-Notification-Id"
"""Header with `TASK.NUMBER`: a repetition has the number of what it repeats (PUSH-26)."""


class Form(NamedTuple):
    """What receivers of one protocol version get. wants: whether an event is sent. body: the event as it is sent; None:
    the whole task as of the event is sent instead."""

    media_type: str
    wants: Callable[[v1.StreamResponse], bool]
    body: Callable[[v1.StreamResponse], bytes] | None


def _heard(payload: v1.StreamResponse) -> bool:
    """Whether readers hear of an event at all: not of what the user said (I-08)."""
    return not payload.HasField("message")


FORMS: Final[Mapping[str, Form]] = {
    V1: Form("application/a2a+json", _heard, to_json),
    V03: Form("application/json", lambda payload: status_of(payload) is not None, None),
}
"""By the version that made the config (PUSH-10, PUSH-11, PUSH-29, V03-37)."""

OLD_EVENTS: Final = Form("application/json", _heard, lambda payload: dumps(down_event(payload)))
"""What v0.3 receivers get where the options say so (I-50)."""


@dataclass(slots=True)
class _Sending:
    """A claimed config at work. cursor: what is done with; attempts: failures so far, since failing_ms; said: what went
    wrong last; fold: the task as it was sent last, where whole tasks are sent."""

    poster: Poster
    delivery: Delivery
    config: v1.TaskPushNotificationConfig
    cursor: int
    attempts: int
    failing_ms: int
    said: str = ""
    fold: Fold | None = None


def attempts_within(seconds: float) -> int:
    """How many attempts fit into a time by the schedule of `FIRST_WAIT` and `LONGEST_WAIT`; at least 1."""
    attempts, passed = 1, 0.0
    while passed < seconds:
        passed += _nominal_wait(attempts)
        attempts += 1
    return attempts


def _nominal_wait(attempts: int) -> float:
    return min(LONGEST_WAIT, FIRST_WAIT * 2.0 ** min(attempts - 1, 30))


class Deliverer:
    """Sends what is due while it is started.

    store, bus: those of the engine; holder: this process's name in claims. poster: who calls; None: nothing is sent.
    Through `put` and `drop` configs are made and deleted, so that what is on its way stops first (PUSH-07). seal: in
    which configs are kept, by the option `secret_keys`. hosts: how those that are called are.
    """

    def __init__(self, store: Store, bus: Bus, options: Options, holder: str, poster: Poster | None) -> None:
        self._store, self._bus, self._options, self._holder = store, bus, options, holder
        self._poster = poster
        self.seal = Seal(options.secret_keys)
        self._forms = {**FORMS, V03: OLD_EVENTS} if options.v03_push == "event" else FORMS
        self.hosts = Hosts(max(1, options.push_concurrency // 4))
        self._fewest = min(FEWEST, attempts_within(options.push_give_up))
        # A claim outlives the batch and the one request that may be under way at its end.
        self._batch = max(options.push_timeout, LEAST_BATCH)
        self._claim_ms = int((self._batch + 2 * options.push_timeout + 2) * 1000)
        self._sending: dict[tuple[str, str], asyncio.Task[None]] = {}
        self._watched: dict[str, None] = {}
        self._causes: dict[tuple[str, str], str] = {}
        self._wake = asyncio.Event()
        self._running: asyncio.Task[None] | None = None
        self._listening = self._stopping = False

    # -- life

    def start(self) -> None:
        """Begin; the store and the bus must be open."""
        if self._poster is None or self._running is not None:
            return
        if not self._listening:
            self._bus.listen(self._hear)
            self._listening = True
        self._stopping = False
        self._poster.open()
        self._running = asyncio.create_task(self._run(self._poster), name="webhooks")

    async def stop(self) -> None:
        """End: what is being sent may end within `LAST_STEPS` seconds; the rest is left to the next start."""
        running, self._running = self._running, None
        if self._poster is None or running is None:
            return
        self._stopping = True
        self._wake.set()
        await asyncio.wait((running, *self._sending.values()), timeout=LAST_STEPS)
        left = [running, *self._sending.values()]
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        await self._poster.close()

    # -- configs

    def watch(self, task_id: str) -> None:
        """Have the task's commits in this process sent at once, without waiting for the next look."""
        self._watched.pop(task_id, None)
        self._watched[task_id] = None
        if len(self._watched) > WATCHED:
            del self._watched[next(iter(self._watched))]

    @property
    def sending(self) -> int:
        """Webhooks that are served just now."""
        return len(self._sending)

    async def put(self, scope: Scope, config: PushConfig) -> bool:
        """Create or replace a config (see Store.put_push_config): what is not sent yet is sent as the new one says, and
        nothing as the old one did. Raises InvalidParamsError if the task has `max_push_configs` others."""
        place = config.task_id, config.config_id
        old = await self._store.push_config(scope, *place)
        if changed := old is not None and old != config:
            await self._break_off(*place)  # so that it is known how far the old one has come
        try:
            found = await self._store.put_push_config(scope, config, self._options.max_push_configs)
        except TooMany:
            raise self._full("taskId") from None
        if found:
            self.watch(config.task_id)
            if changed:
                await self._break_off(*place)
        return found

    async def check_room(self, scope: Scope, task_id: str, config_id: str) -> None:
        """As for `put`, before a message with a config is taken."""
        most = self._options.max_push_configs
        found = await self._store.push_configs(scope, task_id, "", most + 1) or ()
        if sum(config.config_id != config_id for config in found) >= most:
            raise self._full("message.taskId")

    def _full(self, field: str) -> InvalidParamsError:
        text = f"has as many push notification configs as it may; the limit is {self._options.max_push_configs}"
        return InvalidParamsError(violations=[(field, text)])

    async def drop(self, scope: Scope, task_id: str, config_id: str) -> bool:
        """Delete a config (see Store.delete_push_config); nothing is sent for it after this has returned (PUSH-07)."""
        found = await self._store.delete_push_config(scope, task_id, config_id)
        if found:
            await self._break_off(task_id, config_id)
        return found

    async def _break_off(self, task_id: str, config_id: str) -> None:
        if (task := self._sending.get((task_id, config_id))) is not None:
            task.cancel()
            await asyncio.wait((task,))

    # -- the loop

    def _hear(self, task_id: str, sequence: int) -> None:
        if task_id in self._watched:
            self._wake.set()

    async def _run(self, poster: Poster) -> None:
        while not self._stopping:
            self._wake.clear()
            try:
                await self._claim(poster)
            except Exception:
                log.exception("webhooks: looking for what is due failed; it is tried again")
            with suppress(TimeoutError):
                async with timeout(POLL):
                    await self._wake.wait()
            await asyncio.sleep(GAP)

    async def _claim(self, poster: Poster) -> None:
        free = self._options.push_concurrency - len(self._sending)
        if free <= 0:
            return
        until, now = time.monotonic() + self._batch, self._store.now_ms()
        for delivery in await self._store.due(self._holder, now, now + self._claim_ms, free):
            key = delivery.config.task_id, delivery.config.config_id
            if key not in self._sending:
                self.watch(key[0])
                work = self._deliver(poster, delivery, until)
                task = self._sending[key] = asyncio.create_task(work, name=f"webhook of {key[0]}")
                task.add_done_callback(partial(self._left, key))

    def _left(self, key: tuple[str, str], _: object) -> None:
        del self._sending[key]
        self._wake.set()

    # -- one config

    async def _deliver(self, poster: Poster, delivery: Delivery, until: float) -> None:
        """Send what is due to one webhook, until there is no more, it fails, or others are to have their turn."""
        nobody = v1.TaskPushNotificationConfig(task_id=delivery.config.task_id, id=delivery.config.config_id)
        sending = _Sending(poster, delivery, nobody, delivery.cursor, delivery.attempts, delivery.failing_ms)
        try:
            await self._report(sending, await self._attempt(sending, until))
        except asyncio.CancelledError:
            await self._report(sending, 0)
            raise
        except Exception:
            log.exception("task %s: sending to a webhook broke off; it is tried again", delivery.config.task_id)

    async def _attempt(self, sending: _Sending, until: float) -> float:
        """Seconds after which there is to be another attempt, as for `_report`."""
        try:
            sending.config = opened(sending.delivery.config, self.seal)
        except Sealed as fault:
            return self._failed(sending, Outcome(False, str(fault)), loud=True)
        host = host_of(sending.config.url)
        if wait := await self.hosts.enter(host):
            ill, least = self.hosts.ill(host), max(self._options.push_give_up, LONGEST_REST)
            sending.said = RESTS if ill else BUSY
            return self._given_up(sending) if ill and self._fails_for(sending, least) else wait
        outcome = None
        try:
            outcome = await self._follow(sending, until)
        finally:
            self.hosts.leave(host, outcome and outcome.ill)
        return 0 if outcome.delivered else self._failed(sending, outcome)

    async def _follow(self, sending: _Sending, until: float) -> Outcome:
        delivery = sending.delivery
        task_id, form, waited = delivery.config.task_id, self._forms[delivery.config.version], False
        while events := await self._store.events(delivery.scope, task_id, sending.cursor, PAGE):
            for event in events:
                if form.wants(event.payload):
                    if waited or self._stopping or time.monotonic() > until or not await self._stands(delivery):
                        return Outcome()
                    outcome = await self._send(sending, form, event)
                    if not outcome.delivered:
                        return outcome
                    sending.attempts, sending.failing_ms, sending.said = 0, 0, ""
                    # The next turn is claimed anew: it may be of another trace.
                    waited = state_of(event.payload) in INTERRUPTED
                sending.cursor = event.sequence
        return Outcome()

    async def _stands(self, delivery: Delivery) -> bool:
        """Whether a config is still there as it was; another replica may have deleted or replaced it (PUSH-07)."""
        config = delivery.config
        return await self._store.push_config(delivery.scope, config.task_id, config.config_id) == config

    async def _send(self, sending: _Sending, form: Form, event: Event) -> Outcome:
        try:
            body = form.body(event.payload) if form.body else await self._whole(sending, event)
        except A2AError as fault:
            log.error(
                "task %s: event %d cannot be told to a webhook: %s", sending.config.task_id, event.sequence, fault
            )
            return Outcome()
        return await sending.poster.post(sending.config.url, _headers(sending, form, event), body)

    async def _whole(self, sending: _Sending, event: Event) -> bytes:
        """The task as of an event, in v0.3."""
        scope, task_id = sending.delivery.scope, sending.config.task_id
        fold = sending.fold
        if fold is None:
            row = await self._store.task(scope, task_id)
            keep = self._options.keep_status_messages
            fold = Fold.of(row, keep) if row is not None and row.folded <= event.sequence else Fold(keep)
        while fold.sequence < event.sequence:
            missing = min(PAGE, event.sequence - fold.sequence)
            events = await self._store.events(scope, task_id, fold.sequence, missing)
            if not events:
                raise TaskNotFoundError
            for earlier in events:
                fold.apply(earlier)
        sending.fold = fold
        return dumps(down_result(fold.task()))

    # -- reports

    def _failed(self, sending: _Sending, outcome: Outcome, *, loud: bool = False) -> float:
        """Count a failure; seconds to wait before the next attempt, infinite when there is to be none (PUSH-15). The
        log tells the first of a row, and each whose cause is another. loud: every one, as what only the operator can
        mend."""
        key = sending.config.task_id, sending.config.id
        before, self._causes[key] = self._causes.pop(key, ""), outcome.said
        if len(self._causes) > WATCHED:
            del self._causes[next(iter(self._causes))]
        sending.attempts += 1
        sending.said = outcome.said
        long = self._fails_for(sending, self._options.push_give_up)
        if outcome.gone or (long and sending.attempts >= self._fewest):
            return self._given_up(sending)
        if loud or sending.attempts == 1 or outcome.said != before:
            log.warning("task %s: webhook %s at %s failed and is tried again: %s", *_told(sending))
        return max(outcome.wait, _nominal_wait(sending.attempts) * random.uniform(0.5, 1.0))

    def _fails_for(self, sending: _Sending, seconds: float) -> bool:
        """Note that a webhook fails; whether it has done so for some time."""
        now = self._store.now_ms()
        sending.failing_ms = sending.failing_ms or now
        return now - sending.failing_ms >= seconds * 1000

    def _given_up(self, sending: _Sending) -> float:
        log.error("task %s: webhook %s at %s is given up: %s", *_told(sending))
        return float("inf")

    async def _report(self, sending: _Sending, wait: float) -> None:
        """Say how far a claimed config has come; the claim ends, and it is not to be tried again before `wait`."""
        now, dead = self._store.now_ms(), wait == float("inf")
        next_ms = NEVER if dead else now + int(wait * 1000) if wait else 0
        report = Report(sending.cursor, sending.attempts, next_ms, sending.said, sending.failing_ms, now if dead else 0)
        try:
            await self._store.delivered(sending.delivery, report)
        except Exception:
            log.exception(
                "task %s: the store did not note what a webhook has got; it may get it twice", sending.config.task_id
            )


def _told(sending: _Sending) -> tuple[str, str, str, str]:
    """What the log may say of a webhook: task, id, host, and what went wrong."""
    config = sending.config
    return config.task_id, config.id, host_of(config.url) or "a host that is not known", sending.said


def host_of(url: str) -> str:
    """Host and port of a webhook: all that a log may say of its address."""
    try:
        return URL(url).authority.rpartition("@")[2]
    except ValueError:
        return ""


def _headers(sending: _Sending, form: Form, event: Event) -> dict[str, str]:
    """The head of a request (PUSH-11 to PUSH-13, I-69, SEC-07)."""
    config = sending.config
    headers = {
        "Content-Type": form.media_type,
        "A2A-Version": sending.delivery.config.version,
        NUMBER_HEADER: f"{config.task_id}.{event.sequence}",
        **trace_headers(sending.delivery.trace),
    }
    if config.authentication.scheme and config.authentication.credentials:
        headers["Authorization"] = f"{config.authentication.scheme} {config.authentication.credentials}"
    if config.token:
        headers[TOKEN_HEADER] = config.token
    return headers
