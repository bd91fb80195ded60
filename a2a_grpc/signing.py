"""Signatures of agent cards: what of a card is signed, the keys that sign, and the signing (SIGN-01 to SIGN-07).

Laws: what is signed is bytes made from a card by one of the forms here, on which signer and verifier agree; nothing
else of a card is covered. Canonical JSON is a library's affair, and so are keys and algorithms. A key signs in its time
alone: what no verifier would believe is not made. A private part of a key leaves this module in no text, log line or
published key set. Who may be believed is said in `verification`.
"""

import hashlib
import logging
import time
from base64 import b64decode, urlsafe_b64encode
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Final, NamedTuple

from a2a_stubs import v1

from a2a_grpc import protojson
from a2a_grpc.auth_keys import keys_of
from a2a_grpc.config import OptionError
from a2a_grpc.extras import needs
from a2a_grpc.key_files import Reread

with needs("auth"):
    import rfc8785
    from cryptography.x509 import load_der_x509_certificate
    from joserfc.errors import JoseError
    from joserfc.jwk import Key, RSAKey, import_key
    from joserfc.jws import JWSRegistry

ALGORITHMS: Final = (
    *("ES256", "ES384", "ES512", "RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    *("EdDSA", "Ed25519"),
)
"""The algorithms of signatures: those with a public key (SIGN-11)."""

USUAL: Final = {"P-256": "ES256", "P-384": "ES384", "P-521": "ES512", "RSA": "RS256"} | dict.fromkeys(
    ("Ed25519", "Ed448"), "EdDSA"
)
"""The algorithm of a key that names none, by curve or kind: the one that most verifiers know."""

LEAST_RSA_BITS: Final = 2048

EARLY: Final = "is not valid yet"
LATE: Final = "has expired"
"""Why a key must not be used that may be at another time."""

WARNED: Final = (7 * 86_400.0, 86_400.0)
"""Seconds before the end of a key at which the log tells of it."""

_KEPT_CARDS: Final = 256
_EXACT: Final = 2**53

log: Final = logging.getLogger("a2a_grpc.auth")


def canonical(value: Any) -> bytes:
    """A JSON value in the form of RFC 8785 (SIGN-05). Raises ValueError for what has none, RecursionError for what is
    nested too deep. Whole numbers that no double can hold become the nearest one, as in every reader of JSON."""
    try:
        return rfc8785.dumps(value)
    except rfc8785.IntegerDomainError:
        return rfc8785.dumps(_doubles(value))


def _doubles(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _doubles(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_doubles(inner) for inner in value]
    return float(value) if type(value) is int and abs(value) >= _EXACT else value


def unsigned(document: dict[str, Any]) -> dict[str, Any]:
    """A card's JSON object without its signatures (SIGN-02)."""
    return {name: value for name, value in document.items() if name != "signatures"}


def spec_form(document: dict[str, Any]) -> dict[str, Any]:
    """What the standard has signed of a card's JSON object: the members that it knows, required ones even when empty,
    optional ones as they were set, others unless they are empty (SIGN-03, SIGN-04). Raises InvalidParamsError."""
    found: dict[str, Any] = protojson.encode(protojson.decode(v1.AgentCard, unsigned(document)))
    return found


def filled_form(document: dict[str, Any]) -> dict[str, Any]:
    """What the official SDKs sign: the same without anything empty or null at any depth, required or free (I-58)."""
    found: dict[str, Any] = _filled(spec_form(document)) or {}
    return found


def _filled(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: kept for name, inner in value.items() if (kept := _filled(inner)) is not None} or None
    if isinstance(value, list):
        return [kept for inner in value if (kept := _filled(inner)) is not None] or None
    return None if value == "" else value


def encoded(data: bytes) -> str:
    """Base64 as signatures have it: for addresses, without padding."""
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def signing_input(protected: str, payload: bytes) -> bytes:
    """The bytes that a signature is made over (SIGN-07)."""
    return f"{protected}.{encoded(payload)}".encode()


def fits(key: Key, algorithm: str, now: float) -> str:
    """Why a key must not be used with an algorithm at a time in seconds since 1970, "" when it may (SIGN-09, SIGN-11).

    Its time is told by its members `nbf`, `exp` and `revoked`, or by its certificate, the first of `x5c`.
    """
    try:
        JWSRegistry.algorithms[algorithm].check_key(key)
    except JoseError:
        return f"is not for {algorithm}"
    if isinstance(key, RSAKey) and key.public_key.key_size < LEAST_RSA_BITS:
        return f"has fewer than {LEAST_RSA_BITS} bits"
    if key.get("revoked"):
        return "is revoked"
    for name in ("nbf", "exp"):
        told: Any = key.get(name)
        if told is not None and (isinstance(told, bool) or not isinstance(told, (int, float))):
            return f"has no number of seconds as {name}"
    begin, end = _times(key)
    return EARLY if now < begin else LATE if now >= end else ""


def _times(key: Key) -> tuple[float, float]:
    def told(name: str, absent: float) -> float:
        value: Any = key.get(name)
        return absent if value is None else float(value)

    begin, end = told("nbf", -float("inf")), told("exp", float("inf"))
    with suppress(ValueError, TypeError, IndexError):
        certificate = load_der_x509_certificate(b64decode((key.get("x5c") or [])[0]))
        begin = max(begin, certificate.not_valid_before_utc.timestamp())
        end = min(end, certificate.not_valid_after_utc.timestamp())
    return begin, end


def _algorithm(key: Key) -> str:
    kind = getattr(key, "curve_name", key.key_type)
    return key.alg or USUAL.get(kind, kind)


def _unable(key: Key, algorithm: str) -> str:
    try:
        JWSRegistry.algorithms[algorithm].sign(b"", key)
    except JoseError as fault:
        return f"does not sign: {fault.description}"
    return ""


class _Signing(NamedTuple):
    """A key that may sign: with what, and from when to when, in seconds since 1970."""

    key: Key
    algorithm: str
    begin: float
    end: float


class Signer:
    """Signs cards with each of its private keys, in the time of each.

    keys: those with a private part sign, the others are only published, as before and after a rotation. Each signs with
    its own `alg`, default `USUAL`, and is called by its `kid`, default its thumbprint (RFC 7638). One that reaches its
    end signs no more, one whose time begins joins in; the log tells of both, and of an end from `WARNED` on. Where none
    is left, cards have no signature.
    jku: address of the published keys, for the header of each signature; default "": none. clock: seconds since 1970,
    default time.time.
    Raises OptionError when there is no private key that may sign now, or one that never may, and for two keys with one
    name.
    """

    def __init__(self, keys: Iterable[Key], jku: str = "", clock: Callable[[], float] = time.time) -> None:
        self._jku, self._clock = jku, clock
        self._keys: list[_Signing] = []
        published: dict[str, Any] = {}
        for key in keys:
            key.ensure_kid()
            algorithm = _algorithm(key)
            if algorithm not in ALGORITHMS:
                raise OptionError(
                    f"the key {key.kid} cannot sign cards: {algorithm} is not one of {', '.join(ALGORITHMS)}"
                )
            shown = key.as_dict(private=False, use="sig", alg=algorithm)
            shown.pop("key_ops", None)  # those of the private part; `use` says what this one is for
            known = published.setdefault(str(key.kid), shown)
            if key.thumbprint() != import_key(known).thumbprint():
                raise OptionError(f"two keys that sign cards have the same name: {key.kid}")
            if not key.is_private:
                continue
            why = fits(key, algorithm, clock())
            if why := (why if why not in (EARLY, LATE) else "") or _unable(key, algorithm):
                raise OptionError(f"the key {key.kid} cannot sign cards: it {why}")
            self._keys.append(_Signing(key, algorithm, *_times(key)))
        if not self._keys:
            raise OptionError("there is no private key to sign cards with")
        self.jwks: dict[str, Any] = {"keys": list(published.values())}
        """The public parts of all keys, as a JSON Web Key Set."""
        self._known: dict[bytes, list[v1.AgentCardSignature]] = {}
        self._active = self._keys
        if not self._look():
            told = ", ".join(f"{one.key.kid} {LATE if one.end <= clock() else EARLY}" for one in self._keys)
            raise OptionError(f"there is no private key to sign cards with: {told}")

    def _look(self) -> list[_Signing]:
        """See which keys sign now and when that changes, and tell what the operator should know."""
        now, before = self._clock(), self._active
        found = [one for one in self._keys if one.begin <= now < one.end]
        if found != before:
            self._active, self._known = found, {}
        times = [when for one in self._keys for when in (one.begin, one.end, *(one.end - early for early in WARNED))]
        self._until = min((when for when in times if when > now), default=float("inf"))
        for one in self._keys:
            if one in before and one.end <= now:
                log.warning("the key %s has expired and signs cards no more", one.key.kid)
            elif one in found and one.end - now <= max(WARNED):
                end = datetime.fromtimestamp(one.end, timezone.utc)
                log.warning("the key %s signs cards only until %s", one.key.kid, f"{end:%Y-%m-%d %H:%M} UTC")
        return self._active

    def _signing(self) -> list[_Signing]:
        """The keys that sign just now."""
        if self._clock() >= self._until and not self._look():
            log.error("no key is left to sign cards with: they are shown without signatures")
        return self._active

    @property
    def now(self) -> object:
        """The keys that sign just now: another object when that are others."""
        return self._signing()

    @classmethod
    def from_files(cls, files: Iterable[str | Path], jku: str = "") -> "Signer":
        """With the keys of files, each a key in PEM, or a JSON Web Key or set of them. Raises OSError, OptionError."""
        return cls([key for file in files for key in keys_of(file)], jku)

    def signatures(self, document: dict[str, Any], *others: dict[str, Any]) -> list[dict[str, str]]:
        """The signatures of a card's JSON object, as JSON (SIGN-06, SIGN-07): over what the standard has signed, and
        where that is something else, over what the official SDKs sign, and over `others` as they stand.
        Raises InvalidParamsError for what is no card."""
        forms = (spec_form(document), filled_form(document), *map(unsigned, others))
        payloads = dict.fromkeys(map(canonical, forms))
        return [self._signature(one.key, one.algorithm, payload) for one in self._signing() for payload in payloads]

    def _signature(self, key: Key, algorithm: str, payload: bytes) -> dict[str, str]:
        header = {"alg": algorithm, "kid": key.kid, "typ": "JOSE"} | ({"jku": self._jku} if self._jku else {})
        protected = encoded(canonical(header))
        made = JWSRegistry.algorithms[algorithm].sign(signing_input(protected, payload), key)
        return {"protected": protected, "signature": encoded(made)}

    def sign(self, card: v1.AgentCard) -> None:
        """Put signatures into a card, in place of those that it has. What was signed lately is not signed again."""
        card.ClearField("signatures")
        mark = hashlib.sha256(card.SerializeToString(deterministic=True)).digest()
        if self._signing() and mark not in self._known:
            while len(self._known) >= _KEPT_CARDS:
                del self._known[next(iter(self._known))]
            made = self.signatures(protojson.encode(card))
            self._known[mark] = [protojson.decode(v1.AgentCardSignature, signature) for signature in made]
        card.signatures.extend(self._known.get(mark, ()))


class SignerFiles:
    """The Signer of files, see `Signer.from_files`, made anew when they change."""

    def __init__(self, files: Sequence[str | Path], jku: str = "") -> None:
        self._signer = Reread(files, lambda: Signer.from_files(files, jku))

    @property
    def now(self) -> object:
        """See Signer."""
        return self._signer().now

    @property
    def jwks(self) -> dict[str, Any]:
        """The public parts of all keys, as a JSON Web Key Set."""
        return self._signer().jwks

    def signatures(self, document: dict[str, Any], *others: dict[str, Any]) -> list[dict[str, str]]:
        """See Signer."""
        return self._signer().signatures(document, *others)

    def sign(self, card: v1.AgentCard) -> None:
        """See Signer."""
        self._signer().sign(card)
