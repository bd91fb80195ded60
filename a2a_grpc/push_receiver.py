"""The other end of push notifications: who sent this, is it for a task of ours, have we had it, and what does it say.

Laws: a notification is looked at only when its secret is one that was given out, whole and in equal time; that secret
stands for one task (PUSH-25, PUSH-27). What is repeated is thanked for and dropped (PUSH-26). What the handler fails at
is not acknowledged, so it comes again (PUSH-24). Both versions' payloads come out as v1.0 events. The core takes
headers and bytes, from whatever HTTP library; `handle` is for aiohttp. Memory is bounded; no secret is logged, or kept
in clear.
"""

import asyncio
import hashlib
import inspect
import logging
import math
import secrets
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from a2a_stubs import v1
from aiohttp import web

from a2a_grpc.auth_rates import Rates
from a2a_grpc.call import V03, V1, told_version
from a2a_grpc.errors import A2AError, InvalidParamsError, ResourceExhaustedError
from a2a_grpc.protojson import decode, loads
from a2a_grpc.push import NUMBER_HEADER, TOKEN_HEADER
from a2a_grpc.v03 import up_event

log: Final = logging.getLogger("a2a_grpc")

MOST_BYTES: Final = 16 * 1024 * 1024
"""Largest body of a notification."""
REMEMBERED: Final = 1000
"""Ids of notifications that are remembered of a webhook whose sender numbers them in a way of its own."""


MEMBERS: Final = frozenset(field.json_name for field in v1.StreamResponse.DESCRIPTOR.fields)
"""The names of what a v1.0 payload holds one of."""


class Notification(NamedTuple):
    """task_id: of a task that is ours. event: what happened to it; from v0.3 senders usually the whole task. id: the
    sender's, the same when it is sent again, "" where senders have none. version: of the payload, "1.0" or "0.3"."""

    task_id: str
    event: v1.StreamResponse
    id: str = ""
    version: str = V1


class Reply(NamedTuple):
    """What to answer. status: of HTTP, 204 when all is well. text: why not. retry_after: seconds, 0 for none."""

    status: int
    text: str = ""
    retry_after: float = 0.0


Take = Callable[[Notification], Awaitable[Any] | Any]
"""The handler: a function or coroutine function. When it raises, the sender is told to send again."""


@dataclass(slots=True)
class _Expected:
    """A webhook that was given out. name: for its rate; token, credentials: digests of its secrets, None for one that
    it has not; task_id: "" until it is known; last, seen: what came; turn: held while something is handed on."""

    name: str
    token: bytes | None
    credentials: bytes | None
    task_id: str
    last: int = 0
    seen: OrderedDict[str, None] = field(default_factory=OrderedDict)
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)


class PushReceiver:
    """Takes the notifications of the webhooks that it expects, see `config` and `expect`.

    take: called with each Notification once, one at a time and in order for each webhook. rate: requests a second that
    one webhook may make, and all senders without a known secret together; default 1000; 0: any number. kept: webhooks
    that are expected at a time, default 100 000; past it the one that was given out first is forgotten.
    """

    def __init__(self, take: Take, *, rate: float = 1000.0, kept: int = 100_000) -> None:
        self._take, self._kept = take, kept
        self._rates = Rates(rate, max(1, int(rate))) if rate else None
        self._expected: OrderedDict[bytes, _Expected] = OrderedDict()

    # -- what is expected

    def config(
        self, url: str, task_id: str = "", config_id: str = "", *, scheme: str = ""
    ) -> v1.TaskPushNotificationConfig:
        """A config to send to an agent, with a token of its own that no other has (PUSH-27), which is expected from now
        on. url: where the receiver is reached. task_id: default the task of the first notification. scheme: such as
        Bearer, for credentials beside the token; default none."""
        made = v1.TaskPushNotificationConfig(url=url, task_id=task_id, id=config_id, token=secrets.token_urlsafe(32))
        if scheme:
            made.authentication.scheme, made.authentication.credentials = scheme, secrets.token_urlsafe(32)
        self.expect(made)
        return made

    def expect(self, config: v1.TaskPushNotificationConfig) -> None:
        """Expect the notifications of a config that was made elsewhere. Raises ValueError: it has neither a token nor
        credentials, so nothing tells who sends."""
        told = config.authentication
        token = _digest(config.token) if config.token else None
        credentials = _digest(_authorization(f"{told.scheme} {told.credentials}")) if told.credentials else None
        if (key := token or credentials) is None:
            raise ValueError("a config that is to be received needs a token or credentials")
        self._expected[key] = _Expected(key.hex(), token, credentials, config.task_id)
        if len(self._expected) > self._kept:
            self._expected.popitem(last=False)

    def forget(self, config: v1.TaskPushNotificationConfig) -> None:
        """Expect nothing more of a config: its secrets are refused from now on."""
        told = config.authentication
        key = _digest(config.token or _authorization(f"{told.scheme} {told.credentials}"))
        self._expected.pop(key, None)

    # -- what comes

    async def receive(self, headers: Mapping[str, str], body: bytes) -> Reply:
        """What to answer to a POST. headers: names in lower case."""
        expected = self._known(headers)
        try:
            if self._rates is not None:
                self._rates.take("" if expected is None else expected.name)
        except ResourceExhaustedError as error:
            return Reply(429, error.message, error.retry_after or 1.0)
        if expected is None:
            return Reply(401, "the token or the credentials are not valid")
        if len(body) > MOST_BYTES:
            return Reply(413, f"the limit is {MOST_BYTES} bytes")
        try:
            found = _read(headers, body)
        except A2AError as error:
            return Reply(400, error.message)
        if found.task_id != (expected.task_id or found.task_id):
            return Reply(403, "the webhook is one of another task")
        async with expected.turn:  # a sender that gave up waiting sends again while the first is at work
            return await self._hand_on(expected, found)

    async def _hand_on(self, expected: _Expected, found: Notification) -> Reply:
        if found.task_id != (expected.task_id or found.task_id):
            return Reply(403, "the webhook is one of another task")
        number = _number(found)
        if found.id and (number <= expected.last if number else found.id in expected.seen):
            return Reply(204)
        try:
            made = self._take(found)
            if inspect.isawaitable(made):
                await made
        except Exception:
            log.exception("task %s: a notification could not be taken; its sender is to send it again", found.task_id)
            return Reply(500, "the notification could not be taken")
        expected.task_id = found.task_id
        if number:
            expected.last = number
        elif found.id:
            expected.seen[found.id] = None
            if len(expected.seen) > REMEMBERED:
                expected.seen.popitem(last=False)
        return Reply(204)

    def _known(self, headers: Mapping[str, str]) -> _Expected | None:
        """The webhook whose secrets these are, all of them."""
        token = _digest(headers.get(TOKEN_HEADER.lower(), ""))
        credentials = _digest(_authorization(headers.get("authorization", "")))
        expected = self._expected.get(token) or self._expected.get(credentials)
        if expected is None or expected.token not in (None, token) or expected.credentials not in (None, credentials):
            return None
        return expected

    async def handle(self, request: web.BaseRequest) -> web.Response:
        """A handler of aiohttp, such as for `web.post("/hook", receiver.handle)`."""
        if request.method != "POST":
            return web.Response(status=405, headers={"Allow": "POST"})
        headers, body = {name.lower(): value for name, value in request.headers.items()}, bytearray()
        if self._known(headers) is not None:  # of others nothing is read
            async for chunk in request.content.iter_any():
                body += chunk
                if len(body) > MOST_BYTES:
                    break
        reply = await self.receive(headers, bytes(body))
        after = {"Retry-After": str(math.ceil(reply.retry_after))} if reply.retry_after else None
        return web.Response(status=reply.status, text=reply.text or None, headers=after)


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()


def _authorization(line: str) -> str:
    """Scheme and credentials, the scheme in lower case (PUSH-12)."""
    scheme, _, rest = line.strip().partition(" ")
    return f"{scheme.lower()} {rest.strip()}"


def _read(headers: Mapping[str, str], body: bytes) -> Notification:
    """What a request says. Raises A2AError for what is no notification of either version."""
    value = loads(body)
    if not isinstance(value, dict):
        raise InvalidParamsError(violations=[("body", "must be an object")])
    # Old senders name no version, and wrap nothing.
    old = told_version(headers.get("a2a-version", "")) == V03 or MEMBERS.isdisjoint(value)
    event = up_event(value) if old else decode(v1.StreamResponse, value)
    kind = event.WhichOneof("payload")
    if kind is None:
        raise InvalidParamsError(violations=[("body", "holds no task, message, statusUpdate or artifactUpdate")])
    payload = getattr(event, kind)
    task_id: str = payload.id if kind == "task" else payload.task_id
    return Notification(task_id, event, headers.get(NUMBER_HEADER.lower(), ""), V03 if old else V1)


def _number(found: Notification) -> int:
    """The number of the event in the id of a notification, as this project's servers make it; 0 for any other."""
    task_id, mark, number = found.id.rpartition(".")
    ours = mark and task_id == found.task_id and number.isascii() and number.isdecimal() and len(number) < 19
    return int(number) if ours else 0
