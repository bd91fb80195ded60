"""Web pages of other origins that may call: the answers that browsers ask for.

Laws: off unless origins are listed; it knows requests and headers, no wire and no operation. A preflight is answered
on every path and before anybody is asked for a credential, as browsers send none with it. Cookies of the browser are
not let in.
"""

import re
from collections.abc import Collection, Mapping
from typing import Final

from a2a_grpc.bindings.wire import HttpReply

EXPOSED: Final = (
    "A2A-Extensions, X-A2A-Extensions, Allow, ETag, Retry-After, WWW-Authenticate, "
    "Grpc-Status, Grpc-Message, Grpc-Status-Details-Bin"
)
"""Headers of answers that scripts may read."""

METHODS: Final = "GET, HEAD, POST, DELETE, PUT, OPTIONS"
"""Verbs that scripts may use."""

MAX_AGE: Final = 600
"""Seconds that a browser may remember the answer to a preflight."""

_NAMES: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+(?:\s*,\s*[!#$%&'*+.^_`|~0-9A-Za-z-]+)*")


class Cors:
    """The rules for one list of origins, such as `https://app.example`; `*` stands for all."""

    def __init__(self, origins: Collection[str]) -> None:
        self._origins = frozenset(origin.rstrip("/").lower() for origin in origins)

    def lists(self, origin: str) -> bool:
        """Whether pages of an origin may call."""
        return bool(origin) and not {"*", origin.lower()}.isdisjoint(self._origins)

    def headers(self, asked: Mapping[str, str]) -> dict[str, str]:
        """What is added to the answer of a request with these headers; `vary` must be joined to one that is there."""
        origin = asked.get("origin", "")
        if not self.lists(origin):
            return {"vary": "Origin"}
        return {
            "access-control-allow-origin": origin,
            "access-control-expose-headers": EXPOSED,
            "vary": "Origin",
        }

    def preflight(self, verb: str, asked: Mapping[str, str]) -> HttpReply | None:
        """The answer to a preflight, None for every other request."""
        if verb != "OPTIONS" or "access-control-request-method" not in asked:
            return None
        told = self.headers(asked)
        names = asked.get("access-control-request-headers", "")
        if "access-control-allow-origin" in told:
            told["access-control-allow-methods"] = METHODS
            told["access-control-max-age"] = str(MAX_AGE)
            if _NAMES.fullmatch(names):
                told["access-control-allow-headers"] = names
        return HttpReply(204, told, b"")
