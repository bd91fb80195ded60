"""One request of an ASGI 3 server: what was asked, the body as it comes, the answer as it goes, and the end of both.

Laws: no wire, no gRPC, no HTTP library; types are those of the ASGI specification. A reader that leaves is noticed by a
listener that is made only for calls that last, by the server's own error where something is sent, and by `Gone` where
the body is read; the first two cancel the running task (GRPC-11, SSE-06, BL-35).
"""

import asyncio
import math
import re
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from contextlib import suppress
from typing import Any, Final
from urllib.parse import quote

from a2a_grpc.call import Certificate
from a2a_grpc.errors import ParseError
from a2a_grpc.python310_asyncio import uncancel

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Headers = Iterable[tuple[bytes, bytes]]

TRAILERS: Final = "http.response.trailers"
"""The extension of servers that can end an answer with trailers."""

PATIENCE: Final = 0.05
"""Seconds that a call runs before anybody listens for its reader's leaving."""

LOOK: Final = 0.5
"""Seconds between two looks at a server that says at once that there is nothing new, instead of waiting."""

_PART: Final = re.compile(r"(?:\\.|[^,+\\])+")
"""A name and its value; what separates them may be a part of a value after a backslash."""

_PATH: Final = "/:@!$&'()*+,;=~-._%"


class Gone(ConnectionError):
    """The caller has left."""


class Watch:
    """Looks after the exchanges of an application with one timer, so that a call that is soon over costs none.

    patience: seconds that a body may stand still, counted in steps of `PATIENCE`.
    """

    def __init__(self, patience: float) -> None:
        self.looks = math.ceil(patience / PATIENCE)
        self._exchanges: set[Exchange] = set()
        self._timer: asyncio.TimerHandle | None = None

    def add(self, exchange: "Exchange") -> None:
        """Look at an exchange now and then."""
        self._exchanges.add(exchange)
        if self._timer is None:
            self._timer = exchange.loop.call_later(PATIENCE, self._look, exchange.loop)

    def discard(self, exchange: "Exchange") -> None:
        """Look at it no more."""
        self._exchanges.discard(exchange)

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        for exchange in [*self._exchanges]:
            exchange.look()
        self._timer = loop.call_later(PATIENCE, self._look, loop) if self._exchanges else None


class Exchange:
    """A request and its answer. watch: looks after it.

    path: below the place where the application is mounted, percent-encoded; root: that place, "" for none.
    begun: whether the answer has. trailers: whether it may end with some. gone: whether the caller has left.
    """

    __slots__ = (
        "_late",
        "_left_alone",
        "_listening",
        "_looks",
        "_over",
        "_pause",
        "_reading",
        "_receive",
        "_send",
        "_task",
        "_watch",
        "begun",
        "gone",
        "loop",
        "path",
        "root",
        "scope",
        "trailers",
    )

    def __init__(self, scope: Scope, receive: Receive, send: Send, watch: Watch) -> None:
        self.scope = scope
        self._receive, self._send = receive, send
        self._watch = watch
        self.loop = asyncio.get_running_loop()
        self._task: asyncio.Task[Any] | None = asyncio.current_task(self.loop)
        self._pause: asyncio.Future[None] | None = None
        self._looks = 0
        self._reading = self._listening = self._left_alone = False
        self._over = self._late = self.begun = self.gone = False
        raw = scope.get("raw_path")
        self.path = raw.decode("latin-1") if raw else quote(scope["path"], safe=_PATH.removesuffix("%"))
        self.root = ""
        if root := scope.get("root_path"):
            self.root = quote(root, safe=_PATH).rstrip("/")
            if f"{self.path}/".startswith(f"{self.root}/"):
                self.path = self.path[len(self.root) :]
        watch.add(self)
        extensions = scope.get("extensions")
        self.trailers: bool = extensions is not None and TRAILERS in extensions

    def headers(self) -> dict[str, str]:
        """Names in lower case; repeated ones are joined with ", "."""
        pairs = [(name.decode("latin-1"), value.decode("utf-8", "replace")) for name, value in self.scope["headers"]]
        found = dict(pairs)
        if len(found) < len(pairs):
            found.clear()
            for key, text in pairs:
                found[key] = f"{found[key]}, {text}" if key in found else text
        return found

    def certificate(self) -> Certificate | None:
        """What the caller has shown, of servers that tell (extension `tls`): the common name alone."""
        shown = (self.scope.get("extensions") or {}).get("tls", {}).get("client_cert_name")
        return Certificate(_common_name(shown)) if shown else None

    def peer(self) -> str:
        """The address of the other end, "" of servers that do not tell."""
        return str((self.scope.get("client") or ("",))[0])

    # -- in

    async def piece(self) -> bytes | None:
        """What has come of the body, None when it is over. Raises Gone, ParseError: it stands still."""
        if self._over:
            return None
        self._looks, self._reading = 0, True
        try:
            message = await self._receive()
        except asyncio.CancelledError:
            if self._task is None or not self._late:
                raise
            uncancel(self._task)
            raise ParseError("The rest of the body did not come") from None
        finally:
            self._reading = False
        if message["type"] == "http.disconnect":
            raise Gone
        self._over = not message.get("more_body")
        return message.get("body") or b""

    def look(self) -> None:
        """End what has stood still for too long, and listen for the leaving of a caller who waits."""
        self._looks += 1
        if self._reading:
            if self._looks >= self._watch.looks and self._task is not None:
                self._late = True
                self._task.cancel()
        elif self._listening and self._looks > 1:
            self._watch.discard(self)
            self.loop.create_task(self._listen())

    async def body(self, limit: int) -> bytes:
        """The body, or as much of it as shows that it is longer than `limit`. Raises as `piece`."""
        whole = await self.piece() or b""
        if self._over:
            return whole
        pieces, size = [whole], len(whole)
        while size <= limit and (more := await self.piece()) is not None:
            pieces.append(more)
            size += len(more)
        return b"".join(pieces)

    def listen(self) -> None:
        """Cancel the current task, with `gone` true, when the caller leaves; from a moment on, and until `close`. The
        body must be over."""
        self._looks, self._listening = 0, True

    async def _listen(self) -> None:
        """Wait for the end. Nobody cancels this: not every server bears that while it is asked."""
        with suppress(OSError):
            while (await self._receive())["type"] != "http.disconnect" and not self._left_alone:
                self._pause = self.loop.create_future()
                timer = self.loop.call_later(LOOK, self._wake)
                await self._pause
                timer.cancel()
        if not self._left_alone:
            self._leave()

    def _wake(self) -> None:
        if self._pause is not None and not self._pause.done():
            self._pause.set_result(None)

    def close(self) -> None:
        """Listen no more."""
        self._left_alone = True
        self._watch.discard(self)
        self._wake()

    # -- out

    async def start(self, status: int, headers: Headers, trailers: bool = False) -> None:
        """Send status and headers. trailers: whether they will follow."""
        self.begun = True
        told = {"type": "http.response.start", "status": status, "headers": headers, "trailers": trailers}
        await self._out(told)

    async def write(self, body: bytes, more: bool = True) -> None:
        """Send a part of the body; returns when the caller can take more."""
        await self._out({"type": "http.response.body", "body": body, "more_body": more})

    async def end(self, trailers: Headers) -> None:
        """Send the trailers, which were announced at the start, after the last part of the body."""
        await self._out({"type": TRAILERS, "headers": trailers, "more_trailers": False})

    async def _out(self, message: Message) -> None:
        try:
            await self._send(message)
        except OSError:
            self._leave()
            await asyncio.sleep(0)

    def _leave(self) -> None:
        if not self.gone and self._task is not None:
            self.gone = True
            self._task.cancel()


def _common_name(subject: str) -> str:
    """The first CN of a distinguished name as RFC 4514 writes it, "" without one."""
    for part in _PART.findall(subject):
        key, _, value = part.partition("=")
        if key.strip().upper() == "CN":
            return re.sub(r"\\([0-9A-Fa-f]{2})", lambda found: chr(int(found[1], 16)), value).replace("\\", "")
    return ""
