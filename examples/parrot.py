"""A server that speaks OpenAI's chat API and says back what it is told, word by word: for trying model.py where there
is no model. Serve it with `python parrot.py PORT`; its address is then http://127.0.0.1:PORT/v1.
"""

import asyncio
import json
import sys

from aiohttp import web


async def complete(request):
    """Streams the last message of the caller, as chat completions do."""
    asked = (await request.json())["messages"][-1]["content"]
    words = asked if isinstance(asked, str) else " ".join(part.get("text", "") for part in asked)
    reply = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await reply.prepare(request)
    for word in words.split():
        piece = {"choices": [{"delta": {"content": word + " "}}]}
        await reply.write(b"data: " + json.dumps(piece).encode() + b"\n\n")
        await asyncio.sleep(0.05)  # as a model takes its time
    await reply.write(b"data: [DONE]\n\n")
    return reply


if __name__ == "__main__":
    site = web.Application()
    site.router.add_post("/v1/chat/completions", complete)
    web.run_app(site, host="127.0.0.1", port=int(sys.argv[1]))
