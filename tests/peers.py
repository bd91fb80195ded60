"""An agent of somebody else, for tests of clients: a card and a function that answers everything.

Laws: it knows nothing of A2A but where a card is; what it says stands in the tests.
"""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def peer(card: dict[str, Any] | None, handler: Handler) -> AsyncIterator[str]:
    """A small HTTP peer; `URL` in the card stands for its address."""
    url = ""

    async def serve(request: web.Request) -> web.StreamResponse:
        if request.path.endswith("agent-card.json"):
            if card is None:
                return web.Response(status=404)
            return web.Response(body=json.dumps(card).replace("URL", url), content_type="application/json")
        return await handler(request)

    application = web.Application()
    application.router.add_route("*", "/{path:.*}", serve)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    url = f"http://{host}:{port}"
    try:
        yield url
    finally:
        await runner.cleanup()


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
