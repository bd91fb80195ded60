"""HTTP Basic: user names and passwords.

Laws: passwords are kept under scrypt, which is run in a thread, for few callers at a time, and with equal work for
unknown users; who has just been found right is remembered for a short time, under a key of this process.
"""

import asyncio
import base64
import hashlib
import hmac
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from a2a_stubs import v1

from a2a_grpc.auth import REALM, authorization_header
from a2a_grpc.call import Caller, Credentials
from a2a_grpc.config import OptionError
from a2a_grpc.errors import ResourceExhaustedError, UnauthenticatedError

COST: Final = 2**14
"""The work of scrypt for one password: about 50 ms and 16 MiB."""

REMEMBERED: Final = 300.0
"""Seconds for which a password that was right need not be worked on again."""

WAITING: Final = 50
"""Callers whose password may be worked on or wait for that; more are asked to come back."""

_KEPT: Final = 10_000


def hash_password(password: str) -> str:
    """A password as `Basic` keeps it: `scrypt:salt:key`, both in hexadecimal."""
    salt = secrets.token_bytes(16)
    return f"scrypt:{salt.hex()}:{_derived(password, salt).hex()}"


def _derived(password: str, salt: bytes) -> bytes:
    return hashlib.scrypt(password.encode("utf-8", "surrogatepass"), salt=salt, n=COST, r=8, p=1, dklen=32)


class _Work:
    """What is under way and what was found right."""

    def __init__(self) -> None:
        self.pepper = secrets.token_bytes(32)
        self.right: dict[bytes, float] = {}
        self.busy = 0
        self.turns = asyncio.Semaphore(2)


@dataclass(frozen=True)
class Basic:
    """A user name and a password: `Authorization: Basic ...`.

    users: by name, what `hash_password` gave. callers: what is known of some of them beside their name, by name;
    default nothing. scopes: required, default none. scheme_name, description: for the card. Raises OptionError.
    """

    users: Mapping[str, str] = field(repr=False)
    callers: Mapping[str, Caller] = field(default_factory=dict)
    scopes: tuple[str, ...] = ()
    scheme_name: str = "basic"
    description: str = ""
    challenge: str = field(default=f'Basic realm="{REALM}", charset="UTF-8"', init=False, repr=False)
    _kept: dict[str, tuple[bytes, bytes]] = field(init=False, repr=False, compare=False)
    _work: _Work = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        kept = {}
        for name, text in self.users.items():
            try:
                kind, salt, key = text.split(":")
                kept[name] = bytes.fromhex(salt), bytes.fromhex(key)
            except ValueError:
                kind = ""
            if kind != "scrypt" or not name:
                raise OptionError("a password is not kept as hash_password gives it")
        object.__setattr__(self, "_kept", kept)
        object.__setattr__(self, "_work", _Work())

    @property
    def scheme(self) -> v1.SecurityScheme:
        """An httpAuthSecurityScheme."""
        about = v1.HTTPAuthSecurityScheme(scheme="Basic", description=self.description)
        return v1.SecurityScheme(http_auth_security_scheme=about)

    async def authenticate(self, credentials: Credentials) -> Caller | None:
        """The user whose password it is. Raises ResourceExhaustedError when too many are asking."""
        shown = authorization_header(credentials, "basic")
        if shown is None:
            return None
        try:
            name, mark, password = base64.b64decode(shown, validate=True).decode().partition(":")
        except ValueError:
            raise UnauthenticatedError("the header cannot be read") from None
        if not mark or not await self._right(name, password):
            raise UnauthenticatedError("user or password is wrong")
        known = self.callers.get(name, Caller())
        return replace(known, subject=known.subject or name, authenticated=True)

    async def _right(self, name: str, password: str) -> bool:
        work, now = self._work, time.monotonic()
        token = hashlib.blake2b(f"{name}:{password}".encode(), key=work.pepper).digest()
        if work.right.get(token, 0) > now:
            return True
        if work.busy >= WAITING:
            raise ResourceExhaustedError("Too many sign-ins at once", retry_after=1)
        work.busy += 1
        try:
            async with work.turns:
                salt, key = self._kept.get(name, (work.pepper[:16], b""))
                derived = await asyncio.to_thread(_derived, password, salt)
        finally:
            work.busy -= 1
        if not hmac.compare_digest(derived, key):
            return False
        while len(work.right) >= _KEPT:
            del work.right[next(iter(work.right))]
        work.right[token] = now + REMEMBERED
        return True
