"""The keys that sign tokens: from a file or an object, or from an address that is asked now and then.

Laws: whoever asks for a key gets candidates and verifies with them; nothing here reads a token. A key server is asked
in the background, once at a time, at most every few seconds whatever tokens come, ever more rarely while it fails, and
known keys go on in use meanwhile, for a limited time. Only HTTPS, or HTTP of this host, and no redirect is followed.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

import aiohttp
import orjson

from a2a_grpc.config import OptionError
from a2a_grpc.errors import UnavailableError, scrubbed
from a2a_grpc.extras import needs
from a2a_grpc.key_files import Reread
from a2a_grpc.python310_asyncio import timeout

with needs("auth"):
    from joserfc.errors import JoseError
    from joserfc.jwk import Key, import_key

DISCOVERY: Final = "/.well-known/openid-configuration"
"""Where an issuer describes itself, below its own name."""

LIMIT: Final = 1024 * 1024
"""Largest document of a key server, in bytes."""

PATIENCE: Final = 5.0
"""Seconds that a key server has to answer."""

LONGEST_PAUSE: Final = 300.0
"""Seconds between two attempts while a key server fails, at most."""

log: Final = logging.getLogger("a2a_grpc.auth")


class KeySource(Protocol):
    """Where the keys of tokens come from."""

    async def keys(self, kid: str | None) -> Sequence[Key]:
        """The keys that may have signed a token with this key id, None: without one. Raises UnavailableError when
        none can be had for now."""


def _fitting(keys: Sequence[Key], kid: str | None) -> list[Key]:
    return [key for key in keys if (kid is None or key.kid in (None, kid)) and key.get("use", "sig") == "sig"]


class FixedKeys:
    """Keys that never change. jwks: the object of a JSON Web Key Set, or a list of keys. Raises OptionError when there
    is none in it."""

    def __init__(self, jwks: Any) -> None:
        self._keys = jwks if isinstance(jwks, list) and jwks else _read(jwks)

    @classmethod
    def from_file(cls, file: str | Path) -> "FixedKeys":
        """The keys of a file, see `keys_of`. Raises OSError, OptionError."""
        return cls(keys_of(file))

    async def keys(self, kid: str | None) -> Sequence[Key]:
        """See KeySource."""
        return _fitting(self._keys, kid)


class FileKeys:
    """The keys of a file, see `keys_of`, read again when it changes. Raises OSError, OptionError."""

    def __init__(self, file: str | Path) -> None:
        self._keys = Reread((file,), lambda: keys_of(file))

    async def keys(self, kid: str | None) -> Sequence[Key]:
        """See KeySource."""
        return _fitting(self._keys(), kid)


def keys_of(file: str | Path) -> list[Key]:
    """The keys of a file, private parts and all: a key set or key in JSON, or one key in PEM, which has no id.
    Raises OSError, OptionError."""
    data = Path(file).read_bytes()
    if data.lstrip().startswith(b"{"):
        try:
            return _read(orjson.loads(data))
        except ValueError as fault:
            raise OptionError(f"{file} holds no keys: {fault}") from None
    if b"ENCRYPTED" in data:
        raise OptionError(f"{file} is encrypted; keys are read without a pass phrase")
    for kind in ("RSA", "EC", "OKP"):
        with suppress(JoseError, ValueError, TypeError):
            key = import_key(data, kind)
            shown = key.as_dict(private=key.is_private)
            shown.pop("kid", None)  # made up from the key; tokens have the issuer's own, or none
            return [import_key(shown)]
    raise OptionError(f"{file} holds no key")


def _read(jwks: Any) -> list[Key]:
    """The keys of a set, or of a single one; those that cannot be used are left out (RFC 7517, 5)."""
    found = []
    listed = jwks.get("keys", [jwks]) if isinstance(jwks, dict) else None
    for data in listed if isinstance(listed, list) else ():
        with suppress(JoseError, ValueError, TypeError, KeyError, AttributeError):
            found.append(import_key(data))  # not as a KeySet, which makes up the ids that are not there
    if not found:
        raise OptionError("there are no keys in the key set")
    return found


class RemoteKeys:
    """Keys that a server publishes, cached, and asked for again when a token names an unknown one (rotation).

    url: of the key set; "": as the discovery document of `issuer` says. max_age: seconds after which keys are asked
    for anew, default 600. pause: least seconds between two attempts, default 5, doubled while they fail. stale: seconds
    that keys stay in use without word from the server, default one day. clock: default time.monotonic.
    Raises OptionError for an address that is not HTTPS, unless it is this host's.
    """

    def __init__(
        self,
        url: str = "",
        *,
        issuer: str = "",
        max_age: float = 600.0,
        pause: float = 5.0,
        stale: float = 86_400.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._url, self._issuer = url, issuer
        self._max_age, self._pause, self._stale, self._clock = max_age, pause, stale, clock
        self._keys: list[Key] = []
        self._since = self._next = -float("inf")
        self._delay = pause
        self._task: asyncio.Task[None] | None = None
        _check(url or issuer)

    async def keys(self, kid: str | None) -> Sequence[Key]:
        """See KeySource. Waits for the server only if nothing fits that is known."""
        found = self._known(kid)
        if not found or self._clock() - self._since > self._max_age:
            self._refresh()
        if not found and self._task is not None:
            await asyncio.shield(self._task)
            found = self._known(kid)
        if not self._keys:
            wait = max(self._next - self._clock(), 1.0)
            raise UnavailableError("The keys of the token issuer cannot be had", retry_after=wait)
        return found

    def _known(self, kid: str | None) -> list[Key]:
        if self._clock() - self._since > self._stale:
            self._keys = []
        return _fitting(self._keys, kid)

    def _refresh(self) -> None:
        if self._task is None and self._clock() >= self._next:
            self._task = asyncio.get_running_loop().create_task(self._fetch())

    async def _fetch(self) -> None:
        try:
            async with timeout(PATIENCE):
                url = self._url or await self._discovered()
                self._keys = _read(await _document(url))
            self._since, self._delay = self._clock(), self._pause
            self._next = self._since + self._pause
        except (
            aiohttp.ClientError,
            asyncio.TimeoutError,
            OSError,
            ValueError,
        ) as fault:  # ValueError: OptionError, too
            self._next = self._clock() + self._delay
            self._delay = min(LONGEST_PAUSE, max(self._delay, 0.1) * 2)
            log.warning(
                "no keys from %s: %s: %s", scrubbed(self._url or self._issuer), type(fault).__name__, scrubbed(fault)
            )
        finally:
            self._task = None

    async def _discovered(self) -> str:
        found = await _document(self._issuer.rstrip("/") + DISCOVERY)
        if not isinstance(found, Mapping) or found.get("issuer") != self._issuer:
            raise OptionError("the discovery document is of another issuer")
        url = str(found.get("jwks_uri", ""))
        _check(url)
        return url


def _check(url: str) -> None:
    place = urlsplit(url)
    local = place.hostname in ("localhost", "127.0.0.1", "::1")
    if not place.hostname or place.scheme not in (("https", "http") if local else ("https",)):
        raise OptionError(f"keys must come from an https address, not {url!r}")


async def _document(url: str) -> Any:
    async with aiohttp.ClientSession() as session, session.get(url, allow_redirects=False) as reply:
        if reply.status != 200:
            raise OSError(f"status {reply.status}")
        body = bytearray()
        async for chunk in reply.content.iter_any():
            body += chunk
            if len(body) > LIMIT:
                raise OSError("the document is too large")
    return orjson.loads(body)
