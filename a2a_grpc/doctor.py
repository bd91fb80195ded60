"""What is wrong with an agent, seen from a client's side, in plain words: its card, and each interface in it.

Laws: two tables of checks, for a card and for an interface; each says what it found and mends nothing. An agent is
asked for a task that nobody can have, which does no work; a message is sent only if the user gave its text. What is
found wrong is told as what to do about it.
"""

import asyncio
import socket
import ssl
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import aclosing, suppress
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import aiohttp
import grpc
import grpc.aio
from a2a_stubs import v1
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from a2a_grpc import cards, protojson, python310_asyncio
from a2a_grpc.bindings import wire
from a2a_grpc.call import GRPC, JSONRPC, REST, V1, VERSIONS, major_minor
from a2a_grpc.client import Client
from a2a_grpc.client_auth import LOOPBACK, Tls, http_tls
from a2a_grpc.client_cards import card_url, fetch
from a2a_grpc.client_dial import Dialer, spoken
from a2a_grpc.client_wires import CALLABLE
from a2a_grpc.errors import (
    A2AError,
    InvalidAgentResponseError,
    PermissionDeniedError,
    TaskNotFoundError,
    UnauthenticatedError,
    UnavailableError,
    VersionNotSupportedError,
)
from a2a_grpc.methods import missing
from a2a_grpc.protojson_fields import MANY, REQUIRED, fields
from a2a_grpc.tasks.start import new_id
from a2a_grpc.tasks.state import ENDS, state_of
from a2a_grpc.v03_cards import card_up

OK: Final = "ok"
NOTE: Final = "note"
WARNING: Final = "warning"
FAULT: Final = "fault"

QUICK: Final = 0.15
"""Seconds: in the work of a shorter stream nobody can tell whether something on the way collected it."""

Said = tuple[str, str]
"""A level, and what was found."""


class Finding(NamedTuple):
    """What a check found. check: its name; place: "card", or binding, version and address of an interface; level: "ok",
    "note", "warning" (some clients will have trouble) or "fault" (calls fail); text: in plain words."""

    check: str
    place: str
    level: str
    text: str


class Settings(NamedTuple):
    """How an agent is looked at. headers, auth, tls: as of Client. message: a text to send to each interface, to see
    whether streams stream; default: none is sent. timeout: seconds for each answer."""

    headers: Mapping[str, str] = {}
    auth: Any = None
    tls: Tls | None = None
    message: str = ""
    timeout: float = 10.0


class Seen(NamedTuple):
    """A card that was found: where, its headers (names in lower case), its JSON object, and what that means."""

    url: str
    headers: Mapping[str, str]
    document: Any
    card: v1.AgentCard


class Visit:
    """One interface that is looked at. last: the latest HTTP reply; open: whether it may be asked more; version: the
    version to name in calls, "" for that of the interface."""

    def __init__(self, entry: v1.AgentInterface, card: v1.AgentCard | None, secure: bool, settings: Settings) -> None:
        self.entry, self.card, self.settings, self.secure = entry, card, settings, secure
        self.dialer = Dialer(secure, settings.tls, None)
        self.client: Any = None
        self.last: aiohttp.ClientResponse | None = None
        self.open, self.version = True, ""

    async def begin(self) -> None:
        """Make the way there; nothing is sent."""
        watch = aiohttp.TraceConfig()
        watch.on_request_start.append(self._asks)
        watch.on_request_end.append(self._replied)
        watch.freeze()
        (await self.dialer.session()).trace_configs.append(watch)
        entry, way = await self.dialer.offer([self.entry])
        told = self.settings
        self.client = Client.over(way, entry, headers=told.headers, auth=told.auth, timeout=told.timeout, retries=None)

    async def _asks(self, *given: Any) -> None:
        if self.version:
            given[2].headers[wire.VERSION_HEADER] = self.version

    async def _replied(self, *given: Any) -> None:
        self.last = given[2].response


# -- the card


def empty_lists(card: v1.AgentCard) -> Iterator[str]:
    """The lists that a card must have and that are empty: of missing ones, that is all that protobuf shows."""
    places = [("", card), *((f"skills[{index}].", skill) for index, skill in enumerate(card.skills))]
    for path, place in places:
        descriptor: Any = place.DESCRIPTOR
        for field, shape, _ in fields(descriptor):
            if shape == MANY and field.name in REQUIRED[descriptor.full_name] and not getattr(place, field.name):
                yield path + field.json_name


def _fields(seen: Seen) -> Iterator[Said]:
    wrong = [f"{each.field} {each.description}" for each in missing(seen.card)]
    bare = [path for path in empty_lists(seen.card) if not any(each.startswith(f"{path} ") for each in wrong)]
    yield from ((FAULT, each) for each in wrong)
    yield from ((WARNING, f"{path} is missing or empty") for path in bare)
    if not wrong and not bare:
        yield OK, "everything is there that a card must have"


def _card_type(seen: Seen) -> Iterator[Said]:
    told = seen.headers.get("content-type", "").partition(";")[0].strip().lower()
    good = told == wire.JSON or told.endswith("+json")
    yield (OK, told) if good else (WARNING, f"the card comes as {told or 'nothing'}: it should be {wire.JSON}")


def _caching(seen: Seen) -> Iterator[Said]:
    rules = seen.headers.get("cache-control", "")
    marks = [name for name in ("etag", "last-modified") if name in seen.headers]
    if rules:
        yield OK, f"cache-control: {rules}"
    else:
        yield WARNING, "no Cache-Control: clients guess how long the card is good"
    if not marks:
        yield NOTE, "no ETag: clients fetch the whole card each time they ask whether it has changed"


def _versions(seen: Seen) -> Iterator[Said]:
    offered = [
        (entry.protocol_binding, major_minor(entry.protocol_version)) for entry in seen.card.supported_interfaces
    ]
    known = sorted({version for binding, version in offered if (binding, version) in CALLABLE}, reverse=True)
    if not known:
        yield FAULT, f"no interface of a known binding and version: {offered or 'the card lists none'}"
        return
    yield OK, f"speaks {' and '.join(known)}"
    if V1 not in known:
        yield WARNING, f"only {known[0]} is offered: clients of {V1} cannot call it"
    absent = [version for version in VERSIONS if version not in known and version != V1]
    yield from ((NOTE, f"{version} is not offered: older clients cannot call it") for version in absent)


def _signature(seen: Seen) -> Iterator[Said]:
    count = len(seen.document.get("signatures") or ())
    told = f"{count} signatures; `a2a-grpc card verify` says whether they hold" if count else "the card is not signed"
    yield (OK if count else NOTE), told


def _clear(seen: Seen) -> Iterator[Said]:
    for entry in seen.card.supported_interfaces:
        host, _, secure = endpoint(entry, seen.url.startswith("https:"))
        if not secure and host not in LOOPBACK:
            yield WARNING, f"{entry.url} is in clear text: everybody on the way can read and change what is said"


CARD_CHECKS: Final[Mapping[str, Callable[[Seen], Iterator[Said]]]] = {
    "fields": _fields,
    "media type": _card_type,
    "caching": _caching,
    "versions": _versions,
    "signature": _signature,
    "clear text": _clear,
}
"""What is looked at in a card, in order."""


# -- an interface


def endpoint(entry: v1.AgentInterface, secure_card: bool) -> tuple[str, int, bool]:
    """Host, port, and whether TLS is meant; port 0 for an address of which that cannot be told."""
    url, secure = entry.url, entry.url.startswith("https:")
    if entry.protocol_binding == GRPC:
        target, secure = cards.grpc_target(entry.url, secure_card)
        url = f"//{target.removeprefix('dns:///')}"
    try:
        parts = urlsplit(url)
        return parts.hostname or "", parts.port or (443 if secure else 80), secure
    except ValueError:
        return "", 0, secure


_UNREACHABLE: Final[tuple[tuple[type[BaseException], Callable[[Any], str]], ...]] = (
    (ssl.SSLCertVerificationError, lambda fault: f"its certificate is not to be trusted: {fault.verify_message}"),
    (ssl.SSLError, lambda fault: f"TLS is meant, and what answers does not speak it ({fault.reason})"),
    (socket.gaierror, lambda _: "no host of that name is known"),
    (ConnectionRefusedError, lambda _: "nobody listens there"),
    (TimeoutError, lambda _: "nobody answers"),
    (OSError, lambda fault: f"it cannot be reached: {fault.strerror or fault}"),
)
"""Why no connection could be made, by what was raised; the first that fits."""


async def _connect(host: str, port: int, context: ssl.SSLContext | bool | None, timeout: float) -> str:
    """Why no connection can be made, "" when one can."""
    context = ssl.create_default_context() if context is True else context
    try:
        async with python310_asyncio.timeout(timeout):
            _, writer = await asyncio.open_connection(host, port, ssl=context or None)
    except OSError as fault:
        return next(words(fault) for kind, words in _UNREACHABLE if isinstance(fault, kind))
    writer.transport.abort()
    return ""


async def _address(visit: Visit) -> AsyncIterator[Said]:
    host, port, secure = endpoint(visit.entry, visit.secure)
    context = http_tls(visit.settings.tls) if secure else None
    if not (host and port):
        visit.open = False
        yield FAULT, "this is not an address that can be called"
    elif why := await _connect(host, port, context, visit.settings.timeout):
        visit.open = False
        yield FAULT, f"{host}:{port}: {why}"
    else:
        yield OK, f"{host}:{port} takes connections{' with TLS' if secure else ''}"


async def _answers(visit: Visit) -> AsyncIterator[Said]:
    """Whether the error of a task that cannot be there comes as it must."""
    try:
        await visit.client.get(f"doctor-{new_id()}")
        yield FAULT, "a task that nobody made was found: it is not told that a task is unknown"
    except TaskNotFoundError:
        yield OK, "answers, and tells errors as it must"
    except (UnauthenticatedError, PermissionDeniedError) as fault:
        visit.open = False
        yield WARNING, f"wants other credentials ({fault.reason}): give --token or --header to see more"
    except VersionNotSupportedError:
        visit.open = False
        yield FAULT, f"does not speak version {spoken(visit.entry)}, which the card promises"
    except (UnavailableError, TimeoutError) as fault:
        visit.open = False
        yield FAULT, await _silent(visit, fault)
    except A2AError as fault:
        yield FAULT, f"an unknown task gives {fault.reason} ({fault.message}) in place of {TaskNotFoundError.reason}"


async def _silent(visit: Visit, fault: Exception) -> str:
    host, port, secure = endpoint(visit.entry, visit.secure)
    if not secure:
        blind = ssl.create_default_context()
        blind.check_hostname, blind.verify_mode = False, ssl.CERT_NONE
        if not await _connect(host, port, blind, visit.settings.timeout):
            return "it speaks TLS: its address in the card must begin with https (grpcs)"
    if isinstance(fault, TimeoutError):
        return f"no answer within {visit.settings.timeout:g} seconds"
    return f"takes connections and does not answer calls: {fault}"


MEDIA_TYPES: Final[Mapping[str, tuple[str, ...]]] = {JSONRPC: (wire.JSON,), REST: (wire.A2A_JSON, wire.JSON)}
"""What answers may come as."""


async def _media_type(visit: Visit) -> AsyncIterator[Said]:
    if visit.last is None or visit.entry.protocol_binding not in MEDIA_TYPES:
        return
    good, told = MEDIA_TYPES[visit.entry.protocol_binding], visit.last.content_type
    yield (OK, told) if told in good else (WARNING, f"answers come as {told}: it should be {' or '.join(good)}")


async def _version_header(visit: Visit) -> AsyncIterator[Said]:
    if spoken(visit.entry) != V1:
        return
    visit.version = "99.0"
    try:
        await visit.client.get(f"doctor-{new_id()}", headers={wire.VERSION_HEADER: visit.version})
    except VersionNotSupportedError:
        yield OK, "refuses versions that it does not speak"
        return
    except (A2AError, TimeoutError):
        pass
    finally:
        visit.version = ""
    yield WARNING, "takes a call of version 99.0: A2A-Version is not looked at, or is lost on the way"


async def _reflection(visit: Visit) -> AsyncIterator[Said]:
    if visit.entry.protocol_binding != GRPC:
        return
    target, secure = cards.grpc_target(visit.entry.url, visit.secure)
    tls = visit.settings.tls or Tls()
    channel = grpc.aio.secure_channel(target, tls.credentials(None)) if secure else grpc.aio.insecure_channel(target)
    async with channel:
        stub = reflection_pb2_grpc.ServerReflectionStub(channel)
        asked = reflection_pb2.ServerReflectionRequest(list_services="")
        try:
            answers = stub.ServerReflectionInfo(iter((asked,)), timeout=visit.settings.timeout)
            found = [each.name async for answer in answers for each in answer.list_services_response.service]
            yield OK, f"reflection lists {', '.join(found)}"
        except grpc.aio.AioRpcError as fault:
            yield NOTE, f"no reflection ({fault.code().name}): tools such as grpcurl need the .proto file"


async def _streaming(visit: Visit) -> AsyncIterator[Said]:
    if not visit.settings.message or (visit.card is not None and not visit.card.capabilities.streaming):
        return
    message = v1.Message(message_id=new_id(), role=v1.ROLE_USER, parts=[v1.Part(text=visit.settings.message)])
    came: list[tuple[float, float]] = []
    task_id, state, begun = "", 0, time.monotonic()
    try:
        async with aclosing(visit.client.stream(v1.SendMessageRequest(message=message))) as events:
            async for event in events:
                body: Any = getattr(event, event.WhichOneof("payload") or "", None)
                task_id = getattr(body, "id", "") or getattr(body, "task_id", "") or task_id
                state = state_of(event) or state
                stamp = body.status.timestamp if hasattr(body, "status") else None
                made = stamp.seconds + stamp.nanos / 1e9 if stamp and stamp.seconds else 0.0
                came.append((time.monotonic(), made))
        yield _streamed(begun, came)
    except InvalidAgentResponseError as fault:
        yield FAULT, f"does not stream: {fault.message}"
    except A2AError as fault:
        yield FAULT, f"the stream broke after {len(came)} events: {fault}"
    except TimeoutError:
        after = f"{visit.settings.timeout:g} seconds"
        more = f"{len(came)} events, then none for {after}: give more --timeout to see the rest"
        yield (NOTE, more) if came else (FAULT, f"a stream without an event in {after}")
    if task_id and state and state not in ENDS:
        with suppress(A2AError, TimeoutError):
            await visit.client.cancel(task_id)


def _streamed(begun: float, came: list[tuple[float, float]]) -> Said:
    """Whether events came as they were made. came: when each came and was made, 0 for not known, in seconds of two
    clocks that are not compared."""
    stamped = [pair for pair in came if pair[1]]
    if not came:
        return FAULT, "a stream without an event"
    made = stamped[-1][1] - stamped[0][1] if stamped else 0.0
    taken = stamped[-1][0] - stamped[0][0] if stamped else 0.0
    waited, rest = came[0][0] - begun, came[-1][0] - came[0][0]
    remedy = "something on the way collects the stream (a proxy: nginx needs `proxy_buffering off`)"
    if made >= QUICK and taken < made / 4:
        return FAULT, f"events of {made:.2f} seconds came within {taken:.2f}: {remedy}"
    if made < QUICK and len(came) > 2 and waited > 2.0 and rest < waited / 20:
        return WARNING, f"nothing came for {waited:.1f} seconds, then everything at once: perhaps {remedy}"
    if made < QUICK:
        return OK, f"{len(came)} events, too quick to tell whether something collected them"
    return OK, f"{len(came)} events in {rest:.2f} seconds, as they were made"


INTERFACE_CHECKS: Final[Mapping[str, Callable[[Visit], AsyncIterator[Said]]]] = {
    "connection": _address,
    "answer": _answers,
    "media type": _media_type,
    "version": _version_header,
    "stream": _streaming,
    "reflection": _reflection,
}
"""What is looked at in an interface, in order, as long as it is open to more."""


# -- all of it


async def examine(url: str, settings: Settings = Settings()) -> AsyncIterator[Finding]:  # noqa: B008
    """What there is to say of the agent at an address (base URL, card URL, or `grpc://host:port`), as it is found."""
    if urlsplit(url).scheme.startswith("grpc"):
        entry = v1.AgentInterface(url=url, protocol_binding=GRPC, protocol_version=V1)
        async for finding in _visited(Visit(entry, None, False, settings)):
            yield finding
        return
    seen, why = await _found(card_url(url), settings)
    if seen is None:
        yield Finding("card", "card", FAULT, why)
        return
    yield Finding("card", "card", OK, f"{seen.card.name} {seen.card.version} at {seen.url}")
    for name, check in CARD_CHECKS.items():
        for said in check(seen):
            yield Finding(name, "card", *said)
    for entry in seen.card.supported_interfaces:
        async for finding in _visited(Visit(entry, seen.card, seen.url.startswith("https:"), settings)):
            yield finding


async def _found(url: str, settings: Settings) -> tuple[Seen | None, str]:
    """The card, or why there is none."""
    parts, dialer = urlsplit(url), Dialer(False, settings.tls, None)
    asked = {
        "accept": wire.JSON,
        wire.VERSION_HEADER: V1,
        **{key.lower(): each for key, each in settings.headers.items()},
    }
    if settings.auth:
        asked["authorization"] = f"Bearer {settings.auth}"
    context = http_tls(settings.tls) if parts.scheme == "https" else None
    place = parts.hostname or "", parts.port or (443 if context else 80)
    if why := await _connect(*place, context, settings.timeout):
        return None, f"{place[0]}:{place[1]}: {why}"
    try:
        async with python310_asyncio.timeout(settings.timeout):
            status, headers, body = await fetch(await dialer.session(), url, asked)
        if status != 200:
            return None, f"HTTP status {status} at {url}: a card belongs there"
        document = protojson.loads(body)
        return Seen(url, {name.lower(): each for name, each in headers.items()}, document, card_up(document)), ""
    except UnavailableError as fault:
        return None, str(fault)
    except TimeoutError:
        return None, f"no card within {settings.timeout:g} seconds"
    except A2AError as fault:
        where = "; ".join(f"{each.field}: {each.description}" for each in fault.violations)
        return None, f"what is at {url} is not a card: {where or fault.message}"
    finally:
        await dialer.close()


async def _visited(visit: Visit) -> AsyncIterator[Finding]:
    entry = visit.entry
    place = f"{entry.protocol_binding} {entry.protocol_version} {entry.url}"
    if (entry.protocol_binding, major_minor(entry.protocol_version or V1)) not in CALLABLE:
        yield Finding("connection", place, NOTE, "not a binding and version that is known here: it is not looked at")
        return
    try:
        await visit.begin()
        for name, check in INTERFACE_CHECKS.items():
            async for said in check(visit):
                yield Finding(name, place, *said)
            if not visit.open:
                return
    finally:
        await visit.dialer.close()
