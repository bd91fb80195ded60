"""How deployed clients speak: their headers, bodies and paths as recorded, in tables, and a server to say them to.

Laws: requests are made by hand, never by this project's own client, with the headers of the row and no others; nothing
here checks what an answer means beyond its framing.
"""

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
from a2a_stubs import v1
from yarl import URL

from a2a_grpc.agent import Agent, Skill, TaskHandle
from a2a_grpc.testing import serve

HTTPX, NODE = "python-httpx/0.28.1", "node"
JSON, STREAM, CARD = "application/json", "text/event-stream", "/.well-known/agent-card.json"
FILE = b"\x00\xff"
Lines = list[tuple[str, str]]
Headers = tuple[tuple[str, str], ...]


def make_agent(gate: asyncio.Event) -> Agent:
    """Does what the text says; `hold` lasts until the gate opens."""
    agent = Agent(name="Echo", description="Echoes.", version="1", skills=[Skill(id="echo", name="Echo", tags=["e"])])
    agent.extended_card = v1.AgentCard(name="Echo for you")

    @agent.handle
    async def echo(task: TaskHandle) -> None:
        await task.working("Listening...")
        if task.text == "ask":
            await task.ask("What?")
        elif task.text == "hold":
            await gate.wait()
        else:
            async with task.artifact(name="answer") as out:
                await out.write(FILE if task.text == "file" else "heard")

    return agent


class Said(NamedTuple):
    """An answer: status, headers with names in lower case, body."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def events(self) -> list[Any]:
        """The JSON of each event, read as fasta2a reads: only lines that start with `data: `, one for an event."""
        assert (self.status, self.headers["content-type"]) == (200, STREAM), self
        blocks = self.body.decode().split("\n\n")
        assert blocks.pop() == "" and "\r" not in self.body.decode()
        told = [[line[6:] for line in block.split("\n") if line.startswith("data: ")] for block in blocks]
        assert all(len(lines) == 1 for lines in told), self.body
        return [json.loads(lines[0]) for lines in told]


class Site:
    """A running server and a session that adds no header of its own."""

    def __init__(self, server: Any, session: aiohttp.ClientSession, gate: asyncio.Event) -> None:
        self.server, self.session, self.gate, self.base = server, session, gate, server.http_url

    async def ask(self, verb: str, path: str, headers: Any = (), body: Any = None) -> Said:
        raw = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        lines, url = [*headers], URL(path if "://" in path else self.base + path, encoded=True)
        async with self.session.request(verb, url, headers=lines, data=raw) as reply:
            told = {name.lower(): value for name, value in reply.headers.items()}
            return Said(reply.status, told, await reply.read())

    async def task(self, text: str = "hi", **configuration: Any) -> str:
        message = {"messageId": f"made-{text}", "role": "ROLE_USER", "parts": [{"text": text}]}
        body = {"message": message, "configuration": configuration}
        said = await self.ask("POST", "/message:send", [("A2A-Version", "1.0"), ("Content-Type", JSON)], body)
        return str(said.json["task"]["id"])


@asynccontextmanager
async def served(**options: Any) -> AsyncIterator[Site]:
    silent = ("Accept", "Accept-Encoding", "User-Agent", "Content-Type")
    agent, allowed = make_agent(gate := asyncio.Event()), {"push_notifications": True, "push_allow": ("127.0.0.1/32",)}
    async with (
        serve(agent, **allowed, **options) as server,
        aiohttp.ClientSession(skip_auto_headers=silent) as session,
    ):
        yield Site(server, session, gate)


KEY: Headers = (("X-API-Key", "secret"),)


@asynccontextmanager
async def keyed(folder: Path) -> AsyncIterator[Site]:
    """A server that asks for `KEY`, as an extended card needs."""
    file = folder / "keys"
    file.write_text(f"me:{hashlib.sha256(b'secret').hexdigest()}\n")
    async with served(api_key_file=str(file)) as made:
        yield made


# -- JSON-RPC


class Rpc(NamedTuple):
    """How a client speaks JSON-RPC. kinds: whether messages and parts carry `kind`; plain, stream: its headers."""

    new: bool
    ident: Any
    plain: Headers
    stream: Headers
    path: str = ""
    kinds: bool = True

    def message(self, text: str) -> dict[str, Any]:
        part, kind = {"text": text}, {"kind": "message"} if self.kinds and not self.new else {}
        part |= {"kind": "text"} if kind else {}
        role = "ROLE_USER" if self.new else "user"
        return {"messageId": f"m-{text}", "role": role, "parts": [part], **kind}

    def lines(self, stream: bool = False) -> Lines:
        return [*(self.stream if stream else self.plain), ("Content-Type", JSON)]


def accepts(*media: str, **more: str) -> Headers:
    named = ((name.replace("_", "-"), text) for name, text in more.items())
    return (*(("Accept", one) for one in media), *named)


RPC = {
    "python 1.3.0": Rpc(
        True,
        "5e2f",
        accepts("*/*", A2A_Version="1.0", User_Agent=HTTPX),
        accepts(STREAM, A2A_Version="1.0", User_Agent=HTTPX, Cache_Control="no-store"),
    ),
    "python 1.3.0 at 0.3": Rpc(
        False,
        "5e2f",
        accepts("*/*", a2a_version="0.3", User_Agent=HTTPX),
        accepts(STREAM, a2a_version="0.3", User_Agent=HTTPX, Cache_Control="no-store"),
    ),
    "python 0.3.26": Rpc(False, "5e2f", accepts("*/*", User_Agent=HTTPX), accepts("*/*", STREAM, User_Agent=HTTPX)),
    "js 1.3.0": Rpc(True, 1, accepts(JSON, A2A_Version="1.0"), accepts(STREAM, A2A_Version="1.0")),
    "js 1.3.0 at 0.3": Rpc(False, 1, accepts(JSON, A2A_Version="0.3"), accepts(STREAM, A2A_Version="0.3")),
    "js 0.3.14": Rpc(False, 1, accepts(JSON), accepts(STREAM)),
    "mastra agent at 1.0": Rpc(True, "a-1", accepts(JSON, A2A_Version="1.0"), accepts(STREAM, A2A_Version="1.0")),
    "mastra agent at 0.3": Rpc(False, "a-1", accepts(JSON), accepts(STREAM)),
    "mastra client": Rpc(False, "a-1", accepts("*/*"), accepts("*/*")),
    "fasta2a": Rpc(False, None, accepts("*/*"), accepts("*/*"), "/", kinds=False),
    "google-adk": Rpc(True, "adk", accepts("*/*", A2A_Version="1.0"), accepts(STREAM, A2A_Version="1.0")),
    "a2aops": Rpc(False, 1, accepts(), accepts()),
    "a2a-lint": Rpc(False, "lint", accepts(JSON), accepts(STREAM)),
}
METHODS = {  # what the recorded clients write, by what their user does: at 1.0 and at 0.3
    "send": ("SendMessage", "message/send"),
    "stream": ("SendStreamingMessage", "message/stream"),
    "get": ("GetTask", "tasks/get"),
    "cancel": ("CancelTask", "tasks/cancel"),
    "subscribe": ("SubscribeToTask", "tasks/resubscribe"),
    "set": ("CreateTaskPushNotificationConfig", "tasks/pushNotificationConfig/set"),
    "delete": ("DeleteTaskPushNotificationConfig", "tasks/pushNotificationConfig/delete"),
    "card": ("GetExtendedAgentCard", "agent/getAuthenticatedExtendedCard"),
}

# -- REST


class Rest(NamedTuple):
    """How a client speaks REST. get: headers without a body, post: with one; verb: that of subscribe;
    cancel: the body, with the task's id for ID."""

    root: str
    get: Headers
    post: Headers
    message: dict[str, Any]
    cancel: Any
    verb: str
    push: Any
    field: str = "message"


NEW_MESSAGE = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "hi"}]}
OLD_MESSAGE = {"messageId": "m", "role": "ROLE_USER", "content": [{"text": "hi"}]}
SNAKE_MESSAGE = {"message_id": "m", "role": "ROLE_USER", "content": [{"text": "hi"}]}
URL_ONLY = {"url": "https://93.184.216.34/h"}
HOOK = {"id": "p", **URL_ONLY}
NAME = "tasks/ID/pushNotificationConfigs/p"
TYPE = ("Content-Type", JSON)
PYTHON1, PYTHON3 = accepts("*/*", A2A_Version="1.0", User_Agent=HTTPX), accepts("*/*", User_Agent=HTTPX)
PYTHON13 = accepts("*/*", a2a_version="0.3", User_Agent=HTTPX)
JS1 = (*accepts("application/a2a+json, application/json", A2A_Version="1.0", User_Agent=NODE), TYPE)
JS13 = (*accepts("application/a2a+json, application/json", A2A_Version="0.3", User_Agent=NODE), TYPE)
JS3 = (*accepts(JSON, User_Agent=NODE), TYPE)
BARE_CONFIG = {"name": NAME, "pushNotificationConfig": HOOK}
SNAKE_PUSH = {"parent": "tasks/ID", "config_id": "p", "config": {"push_notification_config": URL_ONLY}}
CAMEL_PUSH = {"parent": "tasks/ID", "configId": "p", "config": {"pushNotificationConfig": URL_ONLY}}
REST = {
    "python 1.3.0": Rest("", PYTHON1, (*PYTHON1, TYPE), NEW_MESSAGE, {"id": "ID"}, "POST", {"taskId": "ID", **HOOK}),
    "python 1.3.0 at 0.3": Rest(
        "/v1", PYTHON13, (*PYTHON13, TYPE), SNAKE_MESSAGE, {"name": "tasks/ID"}, "POST", SNAKE_PUSH, "request"
    ),
    "python 0.3.26": Rest(
        "/v1", PYTHON3, (*PYTHON3, TYPE), OLD_MESSAGE, {"name": "tasks/ID"}, "GET", CAMEL_PUSH, "request"
    ),
    "js 1.3.0": Rest("", JS1, JS1, NEW_MESSAGE, None, "POST", {"taskId": "ID", **HOOK}),
    "js 1.3.0 at 0.3": Rest("/v1", JS13, JS13, OLD_MESSAGE, None, "GET", BARE_CONFIG),
    "js 0.3.14": Rest("/v1", JS3, JS3, OLD_MESSAGE, None, "POST", BARE_CONFIG),
}

# -- cards and gRPC

CARD_READERS = {  # client: its headers, the versions in the form it gets
    "python": (accepts("*/*", A2A_Version="1.0"), "1.0"),
    "python 0.3.26, a2a-handler, a2a-proof, fasta2a, a2a-lint": (accepts("*/*"), "both"),
    "js": (accepts(JSON, A2A_Version="1.0"), "1.0"),
    "mastra": (accepts(JSON, A2A_Version="1.0"), "1.0"),
    "google-adk": (accepts("*/*", A2A_Version="1.0"), "1.0"),
    "js 1.3.0 at 0.3": (accepts(JSON, A2A_Version="0.3"), "0.3"),
}

Metadata = tuple[tuple[str, str], ...]
GRPC: dict[str, tuple[bool, Metadata]] = {
    "python 1.3.0": (True, (("a2a-version", "1.0"),)),
    "js 1.3.0": (True, (("a2a-version", "1.0"), ("a2a-extensions", "urn:x"))),
    "grpcurl": (True, ()),
    "buf curl": (True, (("accept-encoding", "identity"), ("content-length", "40"))),
    "python 1.3.0 at 0.3": (False, (("a2a-version", "0.3"),)),
    "python 0.3.26": (False, (("x-a2a-extensions", "urn:x"),)),
    "js 0.3.14": (False, ()),
}

# -- event streams

EVENT = b'{"a":1}'
STYLES = {  # what other servers send: the bytes of two events
    "ids, names and retry": b"id: 1\nevent: message\nretry: 9\ndata: %b\n\nevent: own\ndata: %b\n\n",
    "carriage returns": b"data: %b\r\n\r\ndata: %b\r\n\r\n",
    "no space": b"data:%b\n\ndata:%b\n\n",
    "a comment in a block": b":\ndata: %b\n\n: x\ndata: %b\n\n",
    "a comment as a block": b":\n\ndata: %b\n\n:\n\ndata: %b\n\n:\n\n",
}
