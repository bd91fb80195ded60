"""The inspector: a page on which an agent is looked at and tried out in a browser.

Laws: plain modules, no build, no outside request. The page knows the wires and nothing of this server: it speaks to
any A2A agent that lets it. Here it is only read from disk, once, and answered; what may run on it is told by a policy.
"""

import hashlib
from collections.abc import Awaitable, Callable
from functools import cache
from importlib import resources
from typing import Final

from a2a_grpc.bindings.wire import HttpReply, HttpRequest
from a2a_grpc.cards import check_reading, is_known

PLACE: Final = "/inspector"
"""Where the page is, below the prefix of an agent."""

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self' http: https:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""What the page may do: run its own modules, and call agents wherever they are."""

TYPES: Final = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}

Page = Callable[[HttpRequest, str], Awaitable[HttpReply]]


def pages(prefix: str) -> dict[str, Page]:
    """Everything of the page by whole path, for an agent below a prefix, "" for the root."""
    here = prefix + PLACE
    found = {f"{here}/{name}": _shown(body, kind) for name, (body, kind) in _files().items()}
    return {here: _moved, **found, f"{here}/": found[f"{here}/index.html"]}


@cache
def _files() -> dict[str, tuple[bytes, str]]:
    folder = resources.files(__name__)
    kinds = {file: TYPES.get("." + file.name.rpartition(".")[2]) for file in folder.iterdir()}
    return {file.name: (file.read_bytes(), kind) for file, kind in kinds.items() if kind}


def _shown(body: bytes, kind: str) -> Page:
    headers = {
        "content-type": kind,
        "content-security-policy": POLICY,
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        "cache-control": "no-cache",
        "etag": f'"{hashlib.sha256(body).hexdigest()[:32]}"',
    }

    async def page(asked: HttpRequest, _: str) -> HttpReply:
        check_reading(asked.verb)
        if is_known(asked.headers.get("if-none-match", ""), headers["etag"]):
            return HttpReply(304, dict(headers), b"")
        return HttpReply(200, dict(headers), body if asked.verb == "GET" else b"")

    return page


async def _moved(asked: HttpRequest, _: str) -> HttpReply:
    check_reading(asked.verb)
    return HttpReply(308, {"location": asked.path.rpartition("/")[2] + "/"}, b"")
