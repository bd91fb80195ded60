"""One request of an ASGI 3 server: what was asked, the body as it comes, the answer as it goes, and the end of both.

Laws: no wire, no gRPC, no HTTP library; types are those of the ASGI specification. A reader that leaves is noticed by a
listener that is made only for calls that last, by the server's own error where something is sent, and by `Gone` where
the body is read; the first two cancel the running task (GRPC-11, SSE-06, BL-35).
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from contextlib import suppress
from typing import Any, Final
from urllib.parse import quote

from a2a_grpc.call import Certificate
from a2a_grpc.errors import ParseError

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

_PATH: Final = "/:@!$&'()*+,;=~-._%"


class Gone(ConnectionError):
    """The caller has left."""


class Exchange:
    """A request and its answer. patience: seconds that the body may stand still.

    path: below the place where the application is mounted, percent-encoded; root: that place, "" for none.
    begun: whether the answer has.
    """

    __slots__ = (
        "_listener",
        "_over",
        "_patience",
        "_receive",
        "_send",
        "_task",
        "begun",
        "gone",
        "path",
        "root",
        "scope",
    )

    def __init__(self, scope: Scope, receive: Receive, send: Send, patience: float) -> None:
        self.scope = scope
        self._receive, self._send = receive, send
        self._patience = patience
        self._task: asyncio.Task[Any] | None = asyncio.current_task()
        self._listener: asyncio.TimerHandle | asyncio.Task[None] | None = None
        self._over = self.begun = self.gone = False
        raw = scope.get("raw_path")
        self.path = raw.decode("latin-1") if raw else quote(scope["path"], safe=_PATH.removesuffix("%"))
        self.root = quote(scope.get("root_path") or "", safe=_PATH).rstrip("/")
        if self.root and f"{self.path}/".startswith(f"{self.root}/"):
            self.path = self.path[len(self.root) :]

    def headers(self) -> dict[str, str]:
        """Names in lower case; repeated ones are joined with ", "."""
        found: dict[str, str] = {}
        for name, value in self.scope["headers"]:
            key, text = name.decode("latin-1").lower(), value.decode("utf-8", "replace")
            found[key] = f"{found[key]}, {text}" if key in found else text
        return found

    def certificate(self) -> Certificate | None:
        """What the caller has shown, of servers that tell: the name of the subject alone."""
        shown = (self.scope.get("extensions") or {}).get("tls", {}).get("client_cert_name")
        if not shown:
            return None
        pairs = [part.partition("=") for part in shown.split(",")]
        return Certificate(next((value for key, _, value in pairs if key.strip().upper() == "CN"), ""))

    @property
    def trailers(self) -> bool:
        """Whether the answer may end with trailers."""
        return TRAILERS in (self.scope.get("extensions") or ())

    # -- in

    async def piece(self) -> bytes | None:
        """What has come of the body, None when it is over. Raises Gone, ParseError: it stands still."""
        if self._over:
            return None
        try:
            async with asyncio.timeout(self._patience):
                message = await self._receive()
        except TimeoutError:
            raise ParseError("The rest of the body did not come") from None
        if message["type"] == "http.disconnect":
            raise Gone
        self._over = not message.get("more_body", False)
        return message.get("body") or b""

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
        self._listener = asyncio.get_running_loop().call_later(PATIENCE, self._begin)

    def _begin(self) -> None:
        self._listener = asyncio.get_running_loop().create_task(self._listen())

    async def _listen(self) -> None:
        with suppress(OSError):
            while (await self._receive())["type"] != "http.disconnect":  # noqa: ASYNC110 - the server has no event for it
                await asyncio.sleep(LOOK)
        self._leave()

    def close(self) -> None:
        """Listen no more."""
        if self._listener is not None:
            self._listener.cancel()
            self._listener = None

    # -- out

    async def start(self, status: int, headers: Headers, trailers: bool = False) -> None:
        """Send status and headers. trailers: whether they will follow."""
        self.begun = True
        told: Message = {"type": "http.response.start", "status": status, "headers": headers}
        if trailers:
            told["trailers"] = True
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
