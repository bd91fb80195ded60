"""Push notification configs sealed for the store: what a webhook's address, token and credentials are, only keys tell.

Laws: a config is sealed before the store sees it and opened when it is shown or used, so that no file, backup or
database holds a secret (PUSH-23, SEC-05). A sealed config is bound to its task and id: moved to another row it opens no
more. What was kept before there was a key stays readable. Without keys nothing is loaded and nothing is changed. What
another key has sealed is sealed anew beside the servers that call webhooks. No error or log line holds a key or what
was sealed.
"""

import asyncio
import importlib
import os
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from typing import Any, Final, Protocol

from a2a_grpc.config import OptionError
from a2a_grpc.tasks.store import NEVER, PushConfig

KEY_BYTES: Final = 32
_NONCE: Final = 12
_MARK: Final = b"\x00"  # no protobuf message begins with it, so a config that is not sealed is known as such

PAGE: Final = 200
"""Configs that are sealed anew in one transaction."""
PATIENCE: Final = 30.0
"""Seconds in which only configs are sealed anew that are not being sent to; after it the rest is, too."""


class Sealed(Exception):
    """A config is sealed, and none of the keys opens it."""


def new_key() -> str:
    """A key for the option `secret_keys`, made at random."""
    return urlsafe_b64encode(os.urandom(KEY_BYTES)).decode().rstrip("=")


def _key(text: str) -> bytes:
    try:
        key = urlsafe_b64decode(text.rstrip("=") + "=" * (-len(text.rstrip("=")) % 4))
    except ValueError:
        key = b""
    if len(key) != KEY_BYTES:
        raise OptionError(f"secret_keys must be {KEY_BYTES} bytes each in base64; `a2a-grpc push key` makes one")
    return key


class Seal:
    """Seals with the first of some keys and opens with any, so that keys can be changed one after the other (AES-256 in
    GCM). Without keys everything is left as it is. Raises OptionError: a key that is none, the library is missing."""

    def __init__(self, keys: Sequence[str] = ()) -> None:
        self._ciphers: list[Any] = []
        if keys:
            try:
                aead = importlib.import_module("cryptography.hazmat.primitives.ciphers.aead")
            except ModuleNotFoundError:
                raise OptionError("there is no cryptography: install a2a-grpc[secrets]") from None
            self._ciphers = [aead.AESGCM(_key(text)) for text in keys]

    @property
    def keyed(self) -> bool:
        """Whether anything is sealed at all."""
        return bool(self._ciphers)

    def close(self, config: bytes, task_id: str, config_id: str) -> bytes:
        """The form in which a config is kept."""
        if not self._ciphers:
            return config
        nonce = os.urandom(_NONCE)
        sealed: bytes = self._ciphers[0].encrypt(nonce, config, _place(task_id, config_id))
        return _MARK + nonce + sealed

    def open(self, kept: bytes, task_id: str, config_id: str) -> bytes:
        """The config that was kept. Raises Sealed."""
        return self._found(kept, task_id, config_id)[0]

    def anew(self, kept: bytes, task_id: str, config_id: str) -> bytes | None:
        """The form under the first key, None for what has it already. Raises Sealed."""
        config, number = self._found(kept, task_id, config_id)
        return self.close(config, task_id, config_id) if number else None

    def _found(self, kept: bytes, task_id: str, config_id: str) -> tuple[bytes, int]:
        """The config, and the number of the key that sealed it, -1 for none."""
        if not kept.startswith(_MARK):
            return kept, -1
        nonce, sealed = kept[1 : 1 + _NONCE], kept[1 + _NONCE :]
        for number, cipher in enumerate(self._ciphers):
            try:
                return cipher.decrypt(nonce, sealed, _place(task_id, config_id)), number
            except Exception:  # the library's InvalidTag, or what it says of something too short
                continue
        raise Sealed("none of the secret_keys opens this push notification config")


def _place(task_id: str, config_id: str) -> bytes:
    return f"{len(task_id)} {task_id} {config_id}".encode()


class Keeps(Protocol):
    """A store that lasts, for `reseal`."""

    def now_ms(self) -> int:
        """The time by which claims end."""

    async def every_config(self, after: tuple[str, str], limit: int) -> list[PushConfig]:
        """Configs of all scopes, in order of (task id, config id), those above `after`."""

    async def swap_configs(self, anew: Sequence[tuple[PushConfig, bytes]], now_ms: int) -> int:
        """Keep configs in another form, if they are as given and no claim on them is alive at `now_ms`; how many were.
        What has been sent of each, and when the rest is due, stays."""


async def reseal(store: Keeps, seal: Seal, patience: float = PATIENCE) -> tuple[int, list[PushConfig]]:
    """Seal with the first key whatever is not; how many configs were, and those that no key opens, which stay as they
    are. Servers that know the key may call webhooks meanwhile. One that is called without a pause for `patience`
    seconds may get its latest events twice."""
    done, end = 0, time.monotonic() + patience
    while True:
        busy, lost, after = 0, list[PushConfig](), ("", "")
        at = NEVER if time.monotonic() >= end else store.now_ms()
        while page := await store.every_config(after, PAGE):
            pairs = []
            for config in page:
                try:
                    form = seal.anew(config.config, config.task_id, config.config_id)
                except Sealed:
                    lost.append(config)
                else:
                    pairs += [(config, form)] if form else []
            swapped = await store.swap_configs(pairs, at) if pairs else 0
            done, busy = done + swapped, busy + len(pairs) - swapped
            after = page[-1].task_id, page[-1].config_id
        if not busy:
            return done, lost
        await asyncio.sleep(0.2)
