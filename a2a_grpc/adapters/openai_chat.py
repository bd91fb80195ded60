"""A model behind an OpenAI-compatible chat endpoint as an agent: its answer is streamed as it is written.

Laws: any server that speaks the chat completions of that API, local ones too; one request for each turn, which ends
with the turn. The conversation is what the context's memory holds. What the endpoint says of its faults goes to the
log; callers are told that the model did not answer. The key is sent to this endpoint and shown nowhere.
"""

import asyncio
import base64
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, Final, NamedTuple

import aiohttp
import orjson

from a2a_grpc.agent import Failed, TaskHandle
from a2a_grpc.bindings import sse
from a2a_grpc.errors import InvalidAgentResponseError
from a2a_grpc.protojson_values import json_of

MEMORY: Final = "openai.messages"
"""Where the memory of a conversation keeps its messages."""

MEMORY_BYTES: Final = 48 * 1024
"""Most bytes of the conversation that are kept; what is older is forgotten."""

SILENT: Final = "The model did not answer"

log: Final = logging.getLogger("a2a_grpc.openai_chat")

Work = Callable[[TaskHandle], Awaitable[None]]


def openai_chat(
    base_url: str,
    model: str,
    *,
    key: str | Callable[[], str] = "",
    system: str = "",
    timeout: float = 300.0,
    parameters: Mapping[str, Any] | None = None,
) -> Work:
    """The function of an agent that a model answers for: `agent.handle(openai_chat("http://127.0.0.1:8000/v1", "m"))`.

    base_url: what `/chat/completions` follows. model: its name there. key: of the API, or a function that gives it;
    default: none is sent. system: instructions for the model; default none. timeout: seconds in which the endpoint may
    say nothing. parameters: further members of the request, such as temperature. Text, data and images of a message
    are passed on, and texts are remembered. The task fails when the endpoint does not answer. Raises ValueError for a
    base_url that is none.
    """
    if not base_url.startswith(("http://", "https://")):
        raise ValueError(f"base_url must begin with http:// or https://, not {base_url!r}")
    url = base_url.rstrip("/") + "/chat/completions"

    async def work(task: TaskHandle) -> None:
        memory = task.context.memory
        past: list[Any] = await memory.get(MEMORY, [])
        asked = {"role": "user", "content": _content(task)}
        first = [{"role": "system", "content": system}] if system else []
        body = {**(parameters or {}), "model": model, "messages": [*first, *past, asked], "stream": True}
        shown = key() if callable(key) else key
        headers = {"authorization": f"Bearer {shown}"} if shown else {}
        said = []
        async with task.artifact(name="answer") as out:
            try:
                async for piece in _pieces(url, body, headers, timeout):
                    said.append(piece)
                    await out.write(piece)
            except (aiohttp.ClientError, asyncio.TimeoutError, OSError) as fault:
                log.error("no answer from %s: %s", url, fault or type(fault).__name__)
                raise Failed(SILENT) from None
        kept = {"role": "user", "content": task.text}
        await memory.set(MEMORY, _latest([*past, kept, {"role": "assistant", "content": "".join(said)}]))

    return work


def _content(task: TaskHandle) -> Any:
    """The message as the API takes it: text where that is all, else a list of its parts."""
    made: list[dict[str, Any]] = []
    for part in task.parts:
        kind = part.WhichOneof("content")
        if kind == "text":
            made.append({"type": "text", "text": part.text})
        elif kind == "data":
            made.append({"type": "text", "text": orjson.dumps(json_of(part.data)).decode()})
        elif kind == "raw" and part.media_type.startswith("image/"):
            raw = base64.b64encode(part.raw).decode()
            made.append({"type": "image_url", "image_url": {"url": f"data:{part.media_type};base64,{raw}"}})
        else:
            raise Failed("The model takes text, data and images only")
    return task.text if all(each["type"] == "text" for each in made) and len(made) == 1 and task.text else made


def _latest(messages: list[Any]) -> list[Any]:
    """The latest turns of a conversation that are not too much to keep; a turn is two messages."""
    while len(messages) > 2 and len(orjson.dumps(messages)) > MEMORY_BYTES:
        del messages[:2]
    return messages if len(orjson.dumps(messages)) <= MEMORY_BYTES else []


async def _pieces(url: str, body: Mapping[str, Any], headers: Mapping[str, str], timeout: float) -> AsyncIterator[str]:
    """The pieces of the model's answer. Raises what the HTTP library does, and Failed for an answer that is none."""
    limits = aiohttp.ClientTimeout(total=None, sock_connect=timeout, sock_read=timeout)
    told: dict[str, Any] = {"data": orjson.dumps(body), "headers": {"content-type": "application/json", **headers}}
    async with (
        aiohttp.ClientSession(timeout=limits) as session,
        session.post(url, allow_redirects=False, **told) as reply,
    ):
        if reply.status != 200:
            log.error("%s answers with HTTP status %d: %s", url, reply.status, (await reply.content.read(1000))[:1000])
            raise Failed(SILENT)
        if reply.content_type != sse.HEADERS["content-type"]:
            whole = bytearray()
            async for chunk in reply.content.iter_any():
                whole += chunk
                if len(whole) > sse.LIMIT:
                    raise _unreadable(f"it is larger than {sse.LIMIT} bytes")
            yield _piece(bytes(whole), "message").text
            return
        ended = False
        async for data in _events(reply):
            if data == b"[DONE]":
                return
            piece = _piece(data, "delta")
            ended = ended or piece.last
            if piece.text:
                yield piece.text
        if not ended:
            raise Failed("The model's answer broke off")


async def _events(reply: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    parser = sse.Parser()
    async for chunk in reply.content.iter_any():
        try:
            events = parser.feed(chunk)
        except InvalidAgentResponseError as fault:
            raise _unreadable(fault) from None
        for event in events:
            yield event.data.strip()


class Piece(NamedTuple):
    """What an answer, or an event of one, adds to the text, and whether the model says that it has ended."""

    text: str
    last: bool


def _piece(data: bytes, member: str) -> Piece:
    try:
        found = orjson.loads(data)
        if found.get("error"):
            raise ValueError(found["error"])
        choice: Any = next(iter(found["choices"]), {})
        said = (choice.get(member) or {}).get("content") or ""
        if not isinstance(said, str):
            said = "".join(block["text"] for block in said if block.get("type", "text") == "text")
        return Piece(said, bool(choice.get("finish_reason")))
    except (ValueError, KeyError, TypeError, AttributeError) as fault:
        raise _unreadable(f"{type(fault).__name__}: {fault}") from None


def _unreadable(why: object) -> Failed:
    log.error("an answer of the model cannot be read: %s", why)
    return Failed(SILENT)
