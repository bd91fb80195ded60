"""The cards of agents as a client gets them: by HTTP, kept as long as they are good, asked for again by condition.

Laws: HTTP's caching rules are honoured (CARD-18): nobody is asked while a card is fresh, and what is stale is asked
for with the mark under which it was given. Headers of the client, which may be credentials, go to the address that its
user named and nowhere else, whereto ever that one redirects. What is too large to be a card is not read.
"""

import asyncio
import inspect
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit, urlunsplit

import aiohttp
from a2a_stubs import v1
from yarl import URL

from a2a_grpc import protojson, v03_cards
from a2a_grpc.bindings import wire
from a2a_grpc.cards import WELL_KNOWN
from a2a_grpc.errors import A2AError, InvalidAgentResponseError, UnavailableError, scrubbed

DEFAULT_SECONDS: Final = 300.0
"""How long a card is good when its server does not say."""

MOST_BYTES: Final = 4 * 1024 * 1024
"""Bytes of the largest card that is read."""

_MADE_UP: Final = re.compile(r"\b400, message[:=]\s*")

MOST_REDIRECTS: Final = 5

Verify = Callable[[Any, str], Awaitable[v1.AgentCard | None] | v1.AgentCard | None]
"""Judges a card before it is believed: gets its JSON object and where it came from; gives the card to use in its
place, or None to use it as it is; raises InvalidAgentResponseError to refuse it. A `verification.Verifier` is one."""


class Found(NamedTuple):
    """A card as it was found: what it means, its JSON object, and its URL, "" for one that was given by hand."""

    card: v1.AgentCard
    document: Any
    url: str


class _Kept(NamedTuple):
    found: Found
    conditions: Mapping[str, str]
    until: float


def card_url(url: str) -> str:
    """Where the card of an agent is: the address itself if it ends in `.json`, else the well-known one below it."""
    parts = urlsplit(url)
    if not parts.path.endswith(".json"):
        parts = parts._replace(path=parts.path.rstrip("/") + WELL_KNOWN)
    return urlunsplit(parts)


async def trusted(verify: Verify | None, found: Found) -> v1.AgentCard:
    """The card to use, after the user's own check if there is one; raises what that raises."""
    if verify is None:
        return found.card
    judged = verify(found.document, found.url)
    return (await judged if inspect.isawaitable(judged) else judged) or found.card


class CardCache:
    """Cards by address and by what was asked with. most: how many are kept, default 64. To be shared by the clients
    of one event loop."""

    def __init__(self, most: int = 64) -> None:
        self._most = most
        self._kept: dict[tuple[str, ...], _Kept] = {}

    async def card(
        self, session: aiohttp.ClientSession, url: str, headers: Mapping[str, str], *, fresh: bool = False
    ) -> Found:
        """The card at a URL, not to be changed; the same object as long as it is the same card. headers: sent with the
        request. fresh: ask whether it has changed, however good it should still be.

        Raises UnavailableError when nobody answers, the error that its HTTP status means when there is no card, and
        InvalidAgentResponseError for what is none.
        """
        key = (url, *(text for pair in sorted(headers.items()) for text in pair))
        kept = self._kept.get(key)
        if kept is not None and not fresh and time.monotonic() < kept.until:
            return kept.found
        asked = {"accept": wire.JSON, **headers, **(kept.conditions if kept else {})}
        if fresh:
            asked["cache-control"] = "no-cache"
        status, told, body = await fetch(session, url, asked)
        if status == 304 and kept is not None:
            found, conditions = kept.found, kept.conditions
        else:
            found, conditions = _read(status, url, body), _conditions(told)
            if kept is not None and kept.found == found:
                found = kept.found
        self._kept.pop(key, None)
        if (seconds := _seconds(told)) is not None:
            self._kept[key] = _Kept(found, conditions, time.monotonic() + seconds)
            while len(self._kept) > self._most:
                del self._kept[next(iter(self._kept))]
        return found


async def fetch(
    session: aiohttp.ClientSession, url: str, headers: Mapping[str, str]
) -> tuple[int, Mapping[str, str], bytes]:
    """Status, headers and body of what is at a URL, or where that redirects to. Raises UnavailableError."""
    place = URL(url, encoded=True)
    try:
        for _ in range(MOST_REDIRECTS + 1):
            async with session.get(place, headers=headers, allow_redirects=False) as reply:
                if reply.status not in (301, 302, 303, 307, 308) or "location" not in reply.headers:
                    return reply.status, reply.headers, await _limited(reply)
                moved = place.join(URL(reply.headers["location"]))
            if moved.scheme not in ("http", "https") or (place.scheme, moved.scheme) == ("https", "http"):
                raise UnavailableError(f"{scrubbed(url)} redirects to {scrubbed(moved)}, where nobody should follow")
            if moved.origin() != place.origin():
                headers = {name: headers[name] for name in ("accept", wire.VERSION_HEADER) if name in headers}
            place = moved
    except (aiohttp.ClientError, asyncio.TimeoutError, OSError, ValueError) as fault:
        raise UnavailableError(scrubbed(f"cannot fetch {url}: {said(fault)}")) from fault
    raise UnavailableError(f"{scrubbed(url)} redirects in circles")


def said(fault: Exception) -> str:
    """What went wrong over HTTP: without the HTTP status that the library makes up, which nobody has sent, and without
    an answer that is not whole."""
    if isinstance(fault, aiohttp.ServerDisconnectedError):
        return "Server disconnected"
    text = fault.message if isinstance(fault, aiohttp.ClientResponseError) else str(fault)
    return " ".join(_MADE_UP.sub("", text).split()).rstrip(" ^")


async def _limited(reply: aiohttp.ClientResponse) -> bytes:
    """The body; raises InvalidAgentResponseError when it is larger than a card may be."""
    body = bytearray()
    async for chunk in reply.content.iter_any():
        body += chunk
        if len(body) > MOST_BYTES:
            raise InvalidAgentResponseError(f"what is at {scrubbed(reply.url)} is larger than {MOST_BYTES} bytes")
    return bytes(body)


def _read(status: int, url: str, body: bytes) -> Found:
    if status != 200:
        kind = wire.BY_HTTP.get(status, UnavailableError)
        raise kind(f"there is no card at {scrubbed(url)}: HTTP status {status}")
    try:
        document = protojson.loads(body)
        return Found(v03_cards.card_up(document), document, url)
    except A2AError as fault:
        raise InvalidAgentResponseError(f"what is at {scrubbed(url)} is not a card: {fault.message}") from None


_CONDITIONS: Final = {"etag": "if-none-match", "last-modified": "if-modified-since"}
_MAX_AGE: Final = re.compile(r'(?:^|[\s,])max-age="?([0-9]{1,9})')


def _conditions(told: Mapping[str, str]) -> Mapping[str, str]:
    """The header that asks whether a card has changed: by its mark, else by its time."""
    return next(({asks: told[name]} for name, asks in _CONDITIONS.items() if name in told), {})


def _seconds(told: Mapping[str, str]) -> float | None:
    """For how long a card is good; None when it must not be kept."""
    rules = told.get("cache-control", "").lower()
    if "no-store" in rules:
        return None
    if "no-cache" in rules:
        return 0.0
    if (found := _MAX_AGE.search(rules)) is None:
        return DEFAULT_SECONDS
    age = told.get("age", "")
    return max(0.0, float(found[1]) - (float(age) if age.isascii() and age.isdigit() else 0.0))
