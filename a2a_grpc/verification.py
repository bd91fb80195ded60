"""Whether an agent card may be believed: its signatures, the keys they are checked with, and what they cover.

Laws: a card is believed for the signature that holds, by a key that was trusted beforehand or lies where it was trusted
to lie, with an algorithm of the list (SIGN-08 to SIGN-11); nothing that the card says of itself widens that. What
comes out is the card as far as it was signed, and nothing that was added on the way.
"""

import inspect
import re
import time
from base64 import urlsafe_b64decode
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from a2a_stubs import v1

from a2a_grpc import protojson, v03_cards
from a2a_grpc.auth_keys import KeySource, RemoteKeys
from a2a_grpc.config import OptionError
from a2a_grpc.errors import A2AError, InvalidAgentResponseError, UnavailableError, scrubbed
from a2a_grpc.extras import needs
from a2a_grpc.signing import ALGORITHMS, canonical, filled_form, fits, signing_input, spec_form, unsigned

with needs("auth"):
    from joserfc.errors import JoseError
    from joserfc.jwk import Key
    from joserfc.jws import JWSRegistry

SPEC, DOCUMENT, FILLED = "spec", "document", "filled"

FORMS: Final[Mapping[str, Callable[[dict[str, Any]], dict[str, Any]]]] = {
    SPEC: spec_form,
    DOCUMENT: unsigned,
    FILLED: filled_form,
}
"""What of a card's JSON object a signature may cover: what the standard says; every member as it stands, known or not;
everything that is not empty, as the official SDKs sign."""

MOST_SIGNATURES: Final = 16
"""How many signatures of a card are looked at."""

KEYS_AGE: Final = 600.0
"""Seconds that keys from an address are used without a new look, since a key that is gone was taken back (SIGN-09)."""

_MOST_ADDRESSES: Final = 64
_BASE64: Final = re.compile(r"[A-Za-z0-9_-]+")

KeyProvider = Callable[[str, str], Awaitable[Sequence[Key]]]
"""Gives the keys that may have made a signature with this `kid` and `jku`, each "" when the signature has none."""


class Verified(NamedTuple):
    """A signature that holds: the card as far as it is signed, where it came from, the time in seconds since 1970, the
    form (a key of `FORMS`) that was signed, and what the signature's header says."""

    card: v1.AgentCard
    url: str
    time: float
    form: str
    alg: str
    kid: str
    jku: str


class Verifier:
    """Believes cards that a trusted key has signed; is itself what `Client` takes as `verify`.

    keys: where trusted keys come from, see auth_keys, or functions of `kid` and `jku`; any one is enough.
    trusted: hosts (`keys.example`, with a port unless it is the scheme's own) and whole addresses that `jku` may name;
    no other is ever asked; over HTTPS, without following redirects; default none.
    algorithms: accepted, default `ALGORITHMS`.
    forms: what a signature may cover; default what the standard says, or the whole document as it came; "filled" lets
    in what the official SDKs sign, which says nothing of empty members. must_be_signed: refuse cards without
    signatures, default True; one with signatures is believed only for one that holds. accept: last word, on a card
    that is verified; default every one. clock: default time.time.
    Raises OptionError for unknown algorithms or forms, and when no key could ever be found.
    """

    def __init__(
        self,
        *keys: KeySource | KeyProvider,
        trusted: Iterable[str] = (),
        algorithms: Iterable[str] = ALGORITHMS,
        forms: Iterable[str] = (SPEC, DOCUMENT),
        must_be_signed: bool = True,
        accept: Callable[[Verified], bool | Awaitable[bool]] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._keys = keys
        self._trusted = frozenset(entry if "://" in entry else entry.lower() for entry in trusted)
        self._algorithms, self._forms = tuple(algorithms), tuple(forms)
        self._must, self._accept, self._clock = must_be_signed, accept, clock
        self._remote: dict[str, RemoteKeys] = {}
        for what, given, known in (("an algorithm", self._algorithms, ALGORITHMS), ("a form", self._forms, FORMS)):
            if unknown := sorted({*given} - {*known}):
                raise OptionError(f"not {what} of signed cards: {', '.join(unknown)}")
        if not keys and not self._trusted:
            raise OptionError("no card can be verified without keys or trusted addresses of keys")

    async def __call__(self, document: Any, url: str) -> v1.AgentCard | None:
        """The card as far as it is signed, None for one without signatures that is let in. Raises as `verify`."""
        found = await self.verify(document, url)
        return found and found.card

    async def verify(self, document: Any, url: str) -> Verified | None:
        """The first signature of a card's JSON object that holds, None for a card without any that is let in.

        Raises InvalidAgentResponseError, which tells for each signature why it does not count, and UnavailableError
        when keys cannot be had that may yet prove one.
        """
        listed = document.get("signatures") if isinstance(document, dict) else None
        if not listed and not self._must:
            return None
        if not listed or not isinstance(listed, list):
            raise _refused(url, ["it is not signed"])
        faults: list[str] = []
        away: UnavailableError | None = None
        payloads = list(self._payloads(document, faults))
        for position, signature in enumerate(listed[:MOST_SIGNATURES]):
            try:
                found = await self._checked(signature, document, payloads, url)
                if self._accept is None or await _settled(self._accept(found)):
                    return found
                faults.append(f"signatures[{position}] is right, but refused here")
            except UnavailableError as fault:
                away = fault
            except (A2AError, ValueError) as fault:
                faults.append(f"signatures[{position}] {fault}")
        raise away or _refused(url, faults)

    def _payloads(self, document: dict[str, Any], faults: list[str]) -> Iterator[tuple[str, bytes]]:
        for form in self._forms:
            try:
                yield form, canonical(FORMS[form](document))
            except A2AError as fault:
                faults.append(f"it is not a card: {fault.message}")
            except (ValueError, RecursionError):
                faults.append("it has no canonical form")

    async def _checked(
        self, signature: Any, document: dict[str, Any], payloads: list[tuple[str, bytes]], url: str
    ) -> Verified:
        """The signature, if it holds. Raises ValueError with what is wrong with it, UnavailableError."""
        protected, made, header = _read(signature)
        algorithm, kid, jku = (_text(header, name) for name in ("alg", "kid", "jku"))
        if algorithm not in self._algorithms:
            raise ValueError(f"is made with {algorithm[:80]!r}, which is not accepted")
        now, faults = self._clock(), []
        for key in await self._candidates(kid, jku):
            if why := fits(key, algorithm, now):
                faults.append(f"names a key that {why}")
                continue
            for form, payload in payloads:
                if _holds(algorithm, signing_input(protected, payload), made, key):
                    card = v03_cards.card_up(document) if form == DOCUMENT else _decoded(document)
                    return Verified(card, url, now, form, algorithm, kid, jku)
            faults.append("does not fit what the card says")
        raise ValueError(faults[0] if faults else f"names no trusted key: {kid[:80]!r} at {jku[:200]!r}")

    async def _candidates(self, kid: str, jku: str) -> list[Key]:
        found: list[Key] = []
        away: UnavailableError | None = None
        for source in (*self._keys, *self._published(jku)):
            try:
                found += await (source(kid, jku) if callable(source) else source.keys(kid or None))
            except UnavailableError as fault:
                away = fault
        if away and not found:
            raise UnavailableError("The keys of the card's signature cannot be had", retry_after=away.retry_after)
        return found

    def _published(self, jku: str) -> list[RemoteKeys]:
        """The keys at an address, if that is one to be asked (SIGN-11)."""
        if not jku or not self._trusted & {jku, urlsplit(jku).netloc.lower()}:
            return []
        if jku not in self._remote:
            while len(self._remote) >= _MOST_ADDRESSES:
                del self._remote[next(iter(self._remote))]
            try:
                self._remote[jku] = RemoteKeys(jku, max_age=KEYS_AGE, stale=KEYS_AGE)
            except OptionError as fault:
                raise ValueError(f"has a bad address of keys: {fault}") from None
        return [self._remote[jku]]


def header_of(signature: Any) -> dict[str, Any]:
    """The protected header of a signature in JSON, empty when it cannot be read."""
    try:
        return _read(signature)[2]
    except ValueError:
        return {}


def _read(signature: Any) -> tuple[str, bytes, dict[str, Any]]:
    """The protected header as it is written, the signature's bytes, and the header read."""
    told = signature if isinstance(signature, dict) else {}
    protected, made = _text(told, "protected"), _text(told, "signature")
    try:
        header = protojson.loads(_plain(protected))
        made_bytes = _plain(made)
    except (A2AError, ValueError):
        raise ValueError("cannot be read") from None
    if not isinstance(header, dict):
        raise ValueError("cannot be read")
    if "crit" in header:
        raise ValueError("needs extensions that are not known here")
    return protected, made_bytes, header


def _plain(text: str) -> bytes:
    if not _BASE64.fullmatch(text):
        raise ValueError("is not base64")
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _text(members: Mapping[str, Any], name: str) -> str:
    value = members.get(name)
    return value if isinstance(value, str) else ""


def _holds(algorithm: str, message: bytes, made: bytes, key: Key) -> bool:
    try:
        return JWSRegistry.algorithms[algorithm].verify(message, made, key)
    except (JoseError, ValueError, TypeError):
        return False


def _decoded(document: dict[str, Any]) -> v1.AgentCard:
    """The card with its signatures, and nothing beside the members of a v1.0 card, which alone were signed."""
    return protojson.decode(v1.AgentCard, document)


async def _settled(answer: bool | Awaitable[bool]) -> bool:
    return await answer if inspect.isawaitable(answer) else bool(answer)


def _refused(url: str, faults: list[str]) -> InvalidAgentResponseError:
    told = "; ".join(dict.fromkeys(faults))
    return InvalidAgentResponseError(f"the card at {scrubbed(url)} is not to be trusted: {told}")
