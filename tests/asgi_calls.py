"""Calls of an ASGI application without a server: messages of the specification in and out.

Laws: what a server would have to keep is checked here (the order of messages); what answers mean, is not.
"""

import asyncio
import base64
import struct
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

TRAILERS = {"http.response.trailers": {}}


class Told(NamedTuple):
    """What an application answered. trailers: of gRPC, of a last frame of gRPC-Web, or those among the headers."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    trailers: Mapping[str, str]

    @property
    def messages(self) -> list[bytes]:
        """The messages of a gRPC body."""
        return [data for flag, data in frames(self.body) if not flag]


def frame(data: bytes, flag: int = 0) -> bytes:
    return struct.pack(">BI", flag, len(data)) + data


def frames(body: bytes) -> list[tuple[int, bytes]]:
    found = []
    while body:
        flag, size = struct.unpack(">BI", body[:5])
        found.append((flag, body[5 : 5 + size]))
        body = body[5 + size :]
    return found


class Visit:
    """One request on its way. pieces: of the body; open: whether it is not over with them. `left` makes the caller
    leave; `sent` is what the application has sent so far."""

    def __init__(
        self,
        application: Any,
        path: str,
        pieces: Iterable[bytes] = (b"",),
        *,
        verb: str = "POST",
        headers: Mapping[str, str] | None = None,
        extensions: Mapping[str, Any] = TRAILERS,
        open: bool = False,
        **scope: Any,
    ) -> None:
        self.sent: list[Any] = []
        self.left = asyncio.Event()
        self.blocked: asyncio.Event | None = None
        self._pieces = list(pieces)
        self._open = open
        path, _, query = path.partition("?")
        told = [
            (name.lower().encode(), value.encode()) for name, value in {"host": "there:1", **(headers or {})}.items()
        ]
        self._scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "2",
            "method": verb,
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "root_path": "",
            "headers": told,
            "extensions": extensions,
            **scope,
        }
        self.task = asyncio.ensure_future(application(self._scope, self._receive, self._send))

    async def _receive(self) -> Any:
        if self._pieces:
            piece = self._pieces.pop(0)
            return {"type": "http.request", "body": piece, "more_body": bool(self._pieces) or self._open}
        await self.left.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Any) -> None:
        if self.blocked is not None:
            await self.blocked.wait()
        if self.left.is_set():
            raise OSError("the caller has left")
        self.sent.append(message)

    async def answer(self) -> Told:
        """The whole answer, which must be one that a server could send."""
        async with asyncio.timeout(60):
            await self.task
        start, *parts = self.sent
        trailers: dict[str, str] = {}
        if start.get("trailers"):
            last = parts.pop()
            assert last["type"] == "http.response.trailers"
            trailers = _text(last["headers"])
        assert start["type"] == "http.response.start"
        assert [part["more_body"] for part in parts] == [True] * (len(parts) - 1) + [False]
        headers = _text(start["headers"])
        body = b"".join(part["body"] for part in parts)
        if "grpc-web" in headers["content-type"]:
            if "text" in headers["content-type"]:
                body = b"".join(base64.b64decode(part["body"], validate=True) for part in parts)
            flag, lines = frames(body)[-1]
            assert flag == 0x80
            trailers = dict(line.split(": ", 1) for line in lines.decode().splitlines())
            body = body[: -5 - len(lines)]
        return Told(start["status"], headers, body, trailers or headers)


def _text(pairs: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    return {name.decode(): value.decode() for name, value in pairs}


async def call(application: Any, path: str, data: bytes = b"", media: str = "application/grpc", **more: Any) -> Told:
    """The answer to a gRPC call with one message."""
    headers = {"content-type": media, "te": "trailers", **more.pop("headers", {})}
    body = more.pop("body", frame(data))
    return await Visit(application, path, [body], headers=headers, **more).answer()
