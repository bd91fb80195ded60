"""What web pages may send here: nothing that changes anything from other origins, nothing under names of their own.

Laws: it knows requests and headers, no wire and no operation. Only browsers are held up: what they say of themselves no
page can change, and whoever is no browser says nothing of it, or the truth. Asked on every HTTP wire before a body is
read and before anybody is asked for a credential, since certificates and cookies come from pages, too (SEC-03).
"""

from collections.abc import Mapping
from functools import lru_cache
from ipaddress import ip_address
from typing import Final

from a2a_grpc.bindings.cors import Cors
from a2a_grpc.cards import base_url
from a2a_grpc.config import Options
from a2a_grpc.errors import PermissionDeniedError

SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})
"""Verbs that change nothing."""

HERE: Final = frozenset({"same-origin", "none"})
"""What Sec-Fetch-Site says of pages of this origin, and of a person at the address bar."""

FOREIGN: Final = "Web pages of this origin may not call; the option cors_origins lists those that may"
RENAMED: Final = "The Host header names no host of this server; the option allowed_hosts lists those that it has"


def host_name(authority: str) -> str:
    """The host of a Host header, or of the authority of an address: in lower case, without port and last dot."""
    name = authority[: authority.find("]") + 1] if authority.startswith("[") else authority.partition(":")[0]
    return name.strip("[]").lower().removesuffix(".")


def is_address(name: str) -> bool:
    """Whether a host is an address, which no name server can turn elsewhere."""
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


class Browsers:
    """The rules of one host. own: the address `host:port` that it is bound to; "" where the port is somebody else's."""

    def __init__(self, options: Options, own: str = "") -> None:
        self._options = options
        self._cors = Cors(options.cors_origins)
        bound, public = host_name(own), host_name(options.public_url.partition("://")[2].partition("/")[0])
        loopback = bound == "localhost" or (is_address(bound) and ip_address(bound).is_loopback)
        self._strict = bool(options.allowed_hosts)
        self._names = {host_name(name) for name in options.allowed_hosts} | {public}
        if not self._strict and loopback and not options.trust_forwarded:
            self._names.add("localhost")
        elif not self._strict or "*" in options.allowed_hosts:
            self._names.clear()
        self._known = lru_cache(maxsize=64)(self._is_known)

    def check(self, verb: str, asked: Mapping[str, str]) -> None:
        """Raise PermissionDeniedError for a request that a page has no right to. asked: the headers of the request."""
        if self._names and not self._known(asked.get("host", "")):
            raise PermissionDeniedError(RENAMED)
        if ("origin" in asked or "sec-fetch-site" in asked) and verb not in SAFE and self._foreign(asked):
            raise PermissionDeniedError(FOREIGN)

    def _is_known(self, authority: str) -> bool:
        name = host_name(authority)
        plain = not self._strict and (not name or name.endswith(".localhost") or is_address(name))
        return plain or name in self._names

    def _foreign(self, asked: Mapping[str, str]) -> bool:
        site, origin = asked.get("sec-fetch-site", ""), asked.get("origin", "")
        if site in HERE or self._cors.lists(origin):
            return False
        if site or not origin:
            return bool(site)
        base = base_url(self._options, f"http://{asked.get('host', '')}", asked)
        here = (asked.get("host", ""), base.partition("://")[2].partition("/")[0])
        return origin.partition("://")[2].lower() not in [place.lower() for place in here if place]
