"""Who is calling: ways to prove it, the policy that combines them, and what a known caller may do.

Laws: identity comes from the transport and never from a message (AUTH-06); one policy is asked on every wire and
version before anything else of a request is read (AUTH-05, EQ-04), and the card's security is made from the same
objects, so that the two cannot disagree (AUTH-01). Secrets are kept as digests; no error, log line or repr holds one
(SEC-05). A failure of any kind refuses the call. It knows no wire, no store and no operation.
"""

import hashlib
import inspect
import logging
import re
import secrets
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Protocol

from a2a_stubs import v1
from google.protobuf.message import Message

from a2a_grpc.auth_rates import Rates
from a2a_grpc.call import ANONYMOUS, GRPC, Call, Caller, Credentials, Interceptor
from a2a_grpc.config import OptionError
from a2a_grpc.errors import (
    InvalidParamsError,
    PermissionDeniedError,
    ResourceExhaustedError,
    UnauthenticatedError,
    UnavailableError,
)
from a2a_grpc.key_files import Reread

REALM: Final = "a2a"
"""The realm that challenges name."""

LINES: Final = 20
"""Lines a second that refusals may add to the log."""

BARRED: Final = "\0"
"""The tenant that stands for one the caller may not address: no server has it, so both answer alike (TENANT-06)."""

log: Final = logging.getLogger("a2a_grpc.auth")


class Authenticator(Protocol):
    """One way to prove who is calling, as the card describes it.

    scheme_name: the key in the card's securitySchemes. scopes: what the caller must have been granted.
    """

    @property
    def scheme_name(self) -> str:
        """The key in the card's securitySchemes."""

    @property
    def scopes(self) -> Collection[str]:
        """Scopes that the caller must have been granted."""

    @property
    def scheme(self) -> v1.SecurityScheme:
        """How the card describes it (CARD-12, CARD-13)."""

    @property
    def challenge(self) -> str:
        """What WWW-Authenticate says when it is missing, such as `Bearer realm="a2a"` (AUTH-03)."""

    async def authenticate(self, credentials: Credentials) -> Caller | None:
        """The caller, with a subject; None when there is no credential of this kind. Raises UnauthenticatedError for
        a wrong one, whose text goes to the log and must not repeat it."""


class AllOf:
    """Credentials that a call must have together (CARD-14). The first says who the caller is; scopes and claims are
    those of all, tenants those that all allow. Without any, `AllOf()` lets callers in who show nothing at all."""

    def __init__(self, *members: Authenticator) -> None:
        self.members = members


class AnyOf:
    """Alternatives, of which one is enough (CARD-14). A wrong credential is no harm beside a right one, nor is one that
    cannot be judged for now, as by the keys of an issuer that is away."""

    def __init__(self, *alternatives: Authenticator | AllOf) -> None:
        self.alternatives = alternatives


Policy = Authenticator | AllOf | AnyOf
"""What a server asks of its callers."""


class Authentication:
    """The gate of a policy: tells who a request is from, and raises UnauthenticatedError with a challenge that names
    the schemes, or PermissionDeniedError that names the missing scopes (ERR-08, ERR-09).

    schemes, requirements: the card's securitySchemes and securityRequirements. challenge: of all schemes.
    failures: how many requests were refused since the start, by reason. Raises OptionError for a policy without
    alternatives, or with one name for different schemes.
    """

    def __init__(self, policy: Policy) -> None:
        given = policy.alternatives if isinstance(policy, AnyOf) else (policy,)
        self._alternatives = tuple(one.members if isinstance(one, AllOf) else (one,) for one in given)
        if not self._alternatives:
            raise OptionError("a policy needs at least one alternative")
        ways = [way for members in self._alternatives for way in members]
        self.schemes: dict[str, v1.SecurityScheme] = {}
        for way in ways:
            if self.schemes.setdefault(way.scheme_name, way.scheme) != way.scheme:
                raise OptionError(f"two security schemes have the name {way.scheme_name}")
        self.requirements = [
            v1.SecurityRequirement(schemes={way.scheme_name: v1.StringList(list=way.scopes) for way in members})
            for members in self._alternatives
        ]
        self.challenge = ", ".join(dict.fromkeys(way.challenge for way in ways))
        self.failures: Counter[str] = Counter()
        self._lines, self._untold = Rates(LINES, LINES), 0

    async def __call__(self, credentials: Credentials, wrong: list[Authenticator] | None = None) -> Caller:
        """Who the request is from. wrong: gets the ways whose credential was wrong, also beside a right one."""
        wrong = [] if wrong is None else wrong
        lacking: list[str] = []
        anybody, unable = False, None
        for members in self._alternatives:
            try:
                callers = await self._callers(members, credentials, wrong)
            except (UnavailableError, ResourceExhaustedError) as fault:  # it cannot tell now; another may
                callers, unable = None, unable or fault
            if callers is None:
                continue
            pairs = zip(members, callers, strict=True)
            missing = [scope for way, caller in pairs for scope in way.scopes if scope not in caller.scopes]
            if callers and not missing:
                return _together(callers)
            lacking = lacking or missing
            anybody = anybody or not callers
        if unable is not None:
            raise unable
        if anybody and not wrong and not lacking:
            return ANONYMOUS
        raise self._refusal(wrong, lacking)

    async def _callers(
        self, members: tuple[Authenticator, ...], credentials: Credentials, wrong: list[Authenticator]
    ) -> list[Caller] | None:
        """The callers that one alternative finds, None when a credential is missing or wrong."""
        callers = []
        for way in members:
            try:
                caller = await way.authenticate(credentials)
                if caller is not None and not caller.subject:
                    raise UnauthenticatedError("the credential names nobody")
            except UnauthenticatedError as fault:
                caller = None
                wrong.append(way)
                self._tell(f"{way.scheme_name}: credential refused on {credentials.binding}: {fault.message}")
            if caller is None:
                return None
            callers.append(caller)
        return callers

    def _refusal(self, wrong: list[Authenticator], lacking: list[str]) -> UnauthenticatedError | PermissionDeniedError:
        if lacking:
            self.failures["scope"] += 1
            scopes = " ".join(dict.fromkeys(lacking))
            self._tell(f"a call lacks a scope: {scopes}")
            challenge = f'Bearer realm="{REALM}", error="insufficient_scope", scope="{scopes}"'
            return PermissionDeniedError(f"Missing scope: {scopes}", challenge=challenge, metadata={"scopes": scopes})
        self.failures["wrong" if wrong else "missing"] += 1
        if not wrong:
            return UnauthenticatedError(challenge=self.challenge)
        told = self.challenge
        if any(way.challenge.startswith("Bearer ") for way in wrong):
            told = told.replace("Bearer ", 'Bearer error="invalid_token", ', 1)
        return UnauthenticatedError("The credentials are not valid", challenge=told, wrong=True)

    def _tell(self, line: str) -> None:
        """A line for the log, unless there have been many: whoever tries keys must not fill the disk."""
        try:
            self._lines.take("")
        except ResourceExhaustedError:
            self._untold += 1
            return
        log.warning("%s%s", line, f" ({self._untold} more before)" if self._untold else "")
        self._untold = 0


def _together(callers: list[Caller]) -> Caller:
    first = callers[0]
    if len(callers) == 1 and first.authenticated:
        return first
    limits = [caller.tenants for caller in callers if caller.tenants is not None]
    return Caller(
        first.subject,
        authenticated=True,
        scopes=frozenset().union(*(caller.scopes for caller in callers)),
        claims={name: value for caller in reversed(callers) for name, value in caller.claims.items()},
        tenants=frozenset.intersection(*limits) if limits else None,
    )


# -- what a caller may do

Authorizer = Callable[[Call, Message], bool | Awaitable[bool]]
"""Asked for each call once its caller is known: whether `call.caller` may do `call.operation` for `call.tenant`, or
`call.agent`, with this v1.0 request. False refuses with PermissionDeniedError; it may raise another A2AError itself."""

SKILL: Final = "skillId"
"""The member of a message's metadata, or of a request's, that names the skill that is meant."""


def skill_of(request: Message) -> str:
    """The skill that a request names by `SKILL`, "" for none; for an authorizer. The standard has no field for it: what
    is named is the caller's word, and whether the function does just that is the function's affair. Raises
    InvalidParamsError when message and request name two, of which the function could take the other."""
    holders = (getattr(part, "metadata", {}) for part in (getattr(request, "message", None), request))
    found = [metadata[SKILL] for metadata in holders if SKILL in metadata]
    if len(found) > 1 and found[0] != found[1]:
        raise InvalidParamsError(violations=[(f"metadata.{SKILL}", f"is not that of message.metadata.{SKILL}")])
    return found[0] if found and isinstance(found[0], str) else ""


def authorization(authorizer: Authorizer | None, challenge: str, agent: str = "") -> Interceptor:
    """The interceptor that asks the authorizer, if there is one, and holds callers to their tenants (AUTH-04,
    TENANT-07). agent: what the address stands for, see `Call`; it counts as the tenant of calls without one.
    challenge: what a caller without proof is told."""

    @asynccontextmanager
    async def authorized(call: Call, request: Message) -> AsyncIterator[None]:
        call.agent = agent
        if authorizer is not None:
            verdict = authorizer(call, request)
            if not (await verdict if inspect.isawaitable(verdict) else verdict):
                raise PermissionDeniedError
        tenants = call.caller.tenants
        if tenants is not None and (call.tenant or agent) not in tenants:
            call.tenant = BARRED
        try:
            yield
        except UnauthenticatedError as error:
            error.challenge = challenge or error.challenge
            raise

    return authorized


# -- keys

Keys = Mapping[str, str | Caller]
"""Callers, or their subjects alone, by the SHA-256 of their secret in hexadecimal, as `hashed` gives it."""


def hashed(secret: str) -> str:
    """The SHA-256 of a secret in hexadecimal. Only secrets that nobody can guess are safe under it, such as those of
    `secrets.token_urlsafe(32)`; for passwords there is auth_basic."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


_LINE: Final = re.compile(
    r"(?P<subject>[^#:\s][^:]*):(?P<hash>[0-9A-Fa-f]{64})(?::(?P<scopes>[^:]*)(?::(?P<tenants>.*))?)?"
)


def read_keys(file: str | Path) -> dict[str, Caller]:
    """The keys of a file with lines `subject:sha256`, `subject:sha256:scopes` or `subject:sha256:scopes:tenants`.

    Scopes and tenants are separated by blanks; empty lines and those that begin with # are left out.
    Raises OptionError that names the number of a wrong line, OSError when the file cannot be read.
    """
    keys: dict[str, Caller] = {}
    for number, line in enumerate(Path(file).read_text("utf-8").splitlines(), 1):
        if not (line := line.strip()) or line.startswith("#"):
            continue
        if (found := _LINE.fullmatch(line)) is None or found["hash"].lower() in keys:
            raise OptionError(f"{file}, line {number}: not of the form subject:sha256, or a key twice")
        tenants = None if found["tenants"] is None else frozenset(found["tenants"].split())
        scopes = frozenset((found["scopes"] or "").split())
        keys[found["hash"].lower()] = Caller(found["subject"], True, scopes, tenants=tenants)
    return keys


class _Known:
    """Finds callers by secret. What is looked up is a digest under a key of this process, so the time it takes is the
    same for wrong and unknown secrets, and tells nothing about those that are known."""

    def __init__(self, keys: Keys) -> None:
        self._pepper = secrets.token_bytes(32)
        self._callers: dict[bytes, Caller] = {}
        for digest, told in keys.items():
            caller = replace(told, authenticated=True) if isinstance(told, Caller) else Caller(told, authenticated=True)
            if not re.fullmatch("[0-9A-Fa-f]{64}", digest) or not caller.subject:
                raise OptionError("keys must be SHA-256 digests in hexadecimal, each with a subject")
            self._callers[self._mark(digest)] = caller

    def _mark(self, digest: str) -> bytes:
        return hashlib.blake2b(bytes.fromhex(digest), key=self._pepper).digest()

    def caller(self, secret: str) -> Caller:
        """Whose secret it is. Raises UnauthenticatedError when it is nobody's."""
        found = self._callers.get(self._mark(hashed(secret)))
        if found is None:
            raise UnauthenticatedError("the key is not known")
        return found


class KeyFile:
    """The keys of a file, see `read_keys`. A change is found within a second, so that a key can be taken back without
    a restart; a file that has become unreadable leaves the former keys in force and is told to the log.

    clock: seconds that never go back; default time.monotonic. Raises OptionError, OSError.
    """

    def __init__(self, file: str | Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._known = Reread((file,), lambda: _Known(read_keys(file)), clock)

    def caller(self, secret: str) -> Caller:
        """Whose secret it is. Raises UnauthenticatedError when it is nobody's."""
        return self._known().caller(secret)


def _source(keys: Keys | KeyFile) -> _Known | KeyFile:
    return keys if isinstance(keys, KeyFile) else _Known(keys)


@dataclass(frozen=True)
class ApiKey:
    """A key in a header, a query parameter or a cookie; on gRPC in the metadata of that name.

    keys: see `Keys`, or a `KeyFile`. name: of the header, parameter or cookie, default X-API-Key. location: `header`
    (default), `query` or `cookie`; addresses end up in logs on the way, so prefer headers. scopes: required, default
    none. scheme_name, description: for the card. Raises OptionError for a wrong location or digest.
    """

    keys: Keys | KeyFile = field(repr=False)
    name: str = "X-API-Key"
    location: str = "header"
    scopes: tuple[str, ...] = ()
    scheme_name: str = "apiKey"
    description: str = ""
    _known: _Known | KeyFile = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.location not in _SHOWN:
            raise OptionError(f"location must be one of {', '.join(_SHOWN)}, not {self.location!r}")
        object.__setattr__(self, "_known", _source(self.keys))

    @property
    def scheme(self) -> v1.SecurityScheme:
        """An apiKeySecurityScheme."""
        about = v1.APIKeySecurityScheme(name=self.name, location=self.location, description=self.description)
        return v1.SecurityScheme(api_key_security_scheme=about)

    @property
    def challenge(self) -> str:
        """Names the place of the key."""
        return f'ApiKey realm="{REALM}", {self.location}="{self.name}"'

    async def authenticate(self, credentials: Credentials) -> Caller | None:
        """The caller whose key it is."""
        shown = _SHOWN[self.location](credentials, self.name)
        if not shown:
            return None
        if len(shown) > 1:
            raise UnauthenticatedError("there are several keys")
        return self._known.caller(shown[0])


def _in_header(credentials: Credentials, name: str) -> list[str]:
    found = credentials.metadata.get(name.lower())
    return [] if found is None else [found]


def _in_query(credentials: Credentials, name: str) -> list[str]:
    if credentials.binding == GRPC:
        return _in_header(credentials, name)
    return [value for key, value in credentials.query if key == name]


def _in_cookie(credentials: Credentials, name: str) -> list[str]:
    pairs = (part.strip().partition("=") for part in re.split("[;,]", credentials.metadata.get("cookie", "")))
    found = [value.strip('"') for key, _, value in pairs if key == name]
    return found or (_in_header(credentials, name) if credentials.binding == GRPC else [])


_SHOWN: Final[Mapping[str, Callable[[Credentials, str], list[str]]]] = {
    "header": _in_header,
    "query": _in_query,
    "cookie": _in_cookie,
}


def authorization_header(credentials: Credentials, scheme: str) -> str | None:
    """What follows a scheme, such as "bearer", in the Authorization header; None when it is not there."""
    word, _, rest = credentials.metadata.get("authorization", "").strip().partition(" ")
    return rest.strip() if word.lower() == scheme else None


@dataclass(frozen=True)
class BearerKey:
    """A fixed key as a bearer token: `Authorization: Bearer KEY`.

    keys: see `Keys`, or a `KeyFile`. scopes: required, default none. scheme_name, description: for the card.
    """

    keys: Keys | KeyFile = field(repr=False)
    scopes: tuple[str, ...] = ()
    scheme_name: str = "bearer"
    description: str = ""
    challenge: str = field(default=f'Bearer realm="{REALM}"', init=False, repr=False)
    _known: _Known | KeyFile = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_known", _source(self.keys))

    @property
    def scheme(self) -> v1.SecurityScheme:
        """An httpAuthSecurityScheme."""
        about = v1.HTTPAuthSecurityScheme(scheme="Bearer", description=self.description)
        return v1.SecurityScheme(http_auth_security_scheme=about)

    async def authenticate(self, credentials: Credentials) -> Caller | None:
        """The caller whose key it is."""
        shown = authorization_header(credentials, "bearer")
        return None if shown is None else self._known.caller(shown)


@dataclass(frozen=True)
class MutualTLS:
    """The certificate that a client must show on a port with the option `tls_client_ca`.

    callers: who is known, by an alternative name of the certificate, or its common name if it has no others; default
    None: everybody with a certificate, under the first of these names. scopes: required, default none. scheme_name,
    description: for the card.
    """

    callers: Mapping[str, str | Caller] | None = None
    scopes: tuple[str, ...] = ()
    scheme_name: str = "mutualTLS"
    description: str = ""
    challenge: str = field(default=f'Mutual realm="{REALM}"', init=False, repr=False)

    @property
    def scheme(self) -> v1.SecurityScheme:
        """An mtlsSecurityScheme."""
        return v1.SecurityScheme(mtls_security_scheme=v1.MutualTlsSecurityScheme(description=self.description))

    async def authenticate(self, credentials: Credentials) -> Caller | None:
        """The caller that the certificate names."""
        shown = credentials.certificate
        if shown is None:
            return None
        names = shown.names or (shown.common_name,)
        if self.callers is None:
            return Caller(names[0], authenticated=True)
        found = next((self.callers[name] for name in names if name in self.callers), None)
        if found is None:
            raise UnauthenticatedError("the certificate is of nobody who is known")
        return Caller(found, authenticated=True) if isinstance(found, str) else found


@dataclass(frozen=True)
class Custom:
    """A way of one's own.

    check: given the `Credentials`, the `Caller`, None when there is no credential of this kind, or UnauthenticatedError
    raised for a wrong one; may be a coroutine function. scheme: how the card describes it. challenge: see
    `Authenticator`. scopes: required, default none. scheme_name: for the card.
    """

    check: Callable[[Credentials], Any]
    scheme: v1.SecurityScheme
    challenge: str
    scopes: tuple[str, ...] = ()
    scheme_name: str = "custom"

    async def authenticate(self, credentials: Credentials) -> Caller | None:
        """What `check` finds."""
        found = self.check(credentials)
        caller: Caller | None = await found if inspect.isawaitable(found) else found
        return caller
