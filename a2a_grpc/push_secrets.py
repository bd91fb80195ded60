"""Push notification configs sealed for the store: what a webhook's address, token and credentials are, only keys tell.

Laws: a config is sealed before the store sees it and opened when it is shown or used, so that no file, backup or
database holds a secret (PUSH-23, SEC-05). A sealed config is bound to its task and id: moved to another row it opens no
more. What was kept before there was a key stays readable. Without keys nothing is loaded and nothing is changed. No
error or log line holds a key or what was sealed.
"""

import importlib
import os
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from typing import Any, Final

from a2a_grpc.config import OptionError

KEY_BYTES: Final = 32
_NONCE: Final = 12
_MARK: Final = b"\x00"  # no protobuf message begins with it, so a config that is not sealed is known as such


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

    def close(self, config: bytes, task_id: str, config_id: str) -> bytes:
        """The form in which a config is kept."""
        if not self._ciphers:
            return config
        nonce = os.urandom(_NONCE)
        sealed: bytes = self._ciphers[0].encrypt(nonce, config, _place(task_id, config_id))
        return _MARK + nonce + sealed

    def open(self, kept: bytes, task_id: str, config_id: str) -> bytes:
        """The config that was kept. Raises Sealed."""
        if not kept.startswith(_MARK):
            return kept
        nonce, sealed = kept[1 : 1 + _NONCE], kept[1 + _NONCE :]
        for cipher in self._ciphers:
            try:
                config: bytes = cipher.decrypt(nonce, sealed, _place(task_id, config_id))
                return config
            except Exception:  # the library's InvalidTag, or what it says of something too short
                continue
        raise Sealed("none of the secret_keys opens this push notification config")


def _place(task_id: str, config_id: str) -> bytes:
    return f"{len(task_id)} {task_id} {config_id}".encode()
