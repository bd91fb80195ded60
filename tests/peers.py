"""An agent of somebody else, for tests of clients: a card and a function that answers everything.

Laws: it knows nothing of A2A but where a card is; what it says stands in the tests.
"""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from ssl import SSLContext
from typing import Any

from aiohttp import web

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def listening(
    answer: Callable[[Any], Any], *, context: SSLContext | None = None, port: int = 0, **settings: Any
) -> AsyncIterator[str]:
    """`host:port` of a server on loopback, by default on a free port. settings: of aiohttp's server."""
    runner = web.ServerRunner(web.Server(answer, access_log=None, **settings), shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port, ssl_context=context).start()
    try:
        yield f"127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


@asynccontextmanager
async def peer(card: dict[str, Any] | None, handler: Handler) -> AsyncIterator[str]:
    """A small HTTP peer; `URL` in the card stands for its address."""
    url = ""

    async def serve(request: web.BaseRequest) -> web.StreamResponse:
        if request.path.endswith("agent-card.json"):
            if card is None:
                return web.Response(status=404)
            return web.Response(body=json.dumps(card).replace("URL", url), content_type="application/json")
        return await handler(request)

    async with listening(serve) as address:
        url = f"http://{address}"
        yield url


def entry(binding: str, url: str = "URL/rpc", version: str = "1.0", **more: str) -> dict[str, str]:
    return {"protocolBinding": binding, "url": url, "protocolVersion": version} | more


def card_of(*entries: dict[str, str]) -> dict[str, Any]:
    return {
        "name": "Peer",
        "description": "Somebody else's agent.",
        "version": "9",
        "capabilities": {},
        "defaultInputModes": ["text/plain"],
        "defaultOutputModes": ["text/plain"],
        "skills": [],
        "supportedInterfaces": list(entries),
    }
