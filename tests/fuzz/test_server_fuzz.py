"""A whole server under mutants of valid calls and random bytes, on every wire, version and host, also of credentials.

Each gets an answer or an A2A error: nothing fails inside, nothing of the inside is shown, and memory stays flat.
"""

import asyncio
import gc
import io
import json.encoder
import logging
import os
import re
import time
import tracemalloc
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import aiohttp
import grpc.aio
import pytest
from a2a_stubs import v03_grpc, v1_grpc
from joserfc import jwt
from joserfc.jwk import ECKey
from yarl import URL

from a2a_grpc import v03
from a2a_grpc.auth import AnyOf, ApiKey, hashed
from a2a_grpc.auth_basic import Basic, hash_password
from a2a_grpc.auth_jwt import JWT
from a2a_grpc.auth_keys import FixedKeys
from a2a_grpc.bindings import jsonrpc, rest
from a2a_grpc.call import V1
from a2a_grpc.client import Client
from a2a_grpc.config import Options
from a2a_grpc.server import Server
from a2a_grpc.v03_names import METHOD_NAMES
from tests.contract.cells import HERE, WIRES, requests, said
from tests.fuzz import mutants
from tests.fuzz.mutants import mutated
from tests.hosts import served
from tests.interop.agent import agent

EFFORT = int(os.environ.get("A2A_FUZZ", "20" if os.environ.get("A2A_CI") else "1"))
"""How much longer than on a developer's machine: in continuous integration, and as `make fuzz` wants it."""
CALLS = 60 * EFFORT
"""Mutants of each wire and host."""
BLOCK = 20
"""Mutants of each wire that are about one task; then there is a new one."""
SEED = int(os.environ.get("A2A_SEED", "1"))
INSIDE = re.compile(
    rb"Traceback|a2a_grpc|site-packages|asyncio| at 0x|\.py\b|DecodeError|KeyError|TypeError|"
    + re.escape(str(Path.cwd()).encode())
)
"""What no answer may hold."""
FLAT = 3_000_000
"""Bytes that the last third of the calls may add to what there was before, however many they are."""
MOST = 200_000
"""Bytes of the largest request."""
KEPT: dict[str, Any] = {"retain_count": 50, "trim_interval": 0.2, "retain_stuck": 1.0, "dedupe_window": 1.0}
"""Options by which no more tasks are kept than before."""
BAD = {grpc.StatusCode.UNKNOWN, grpc.StatusCode.INTERNAL, grpc.StatusCode.DEADLINE_EXCEEDED}


SIGNS = ECKey.generate_key("P-256", {"kid": "one"})
ISSUER = "https://issuer.example"


def policy() -> AnyOf:
    """What a guarded host asks for: a token of the issuer, or a key, or a password."""
    token = JWT(ISSUER, "a2a", keys=FixedKeys([SIGNS]), scopes=("a2a",))
    return AnyOf(token, ApiKey({hashed("key"): "bob"}), Basic({"carol": hash_password("pw")}))


def token() -> dict[str, str]:
    """The header with a token that the guarded host takes, to be spoilt."""
    claims = {"iss": ISSUER, "aud": "a2a", "sub": "alice", "scope": "a2a", "exp": int(time.time()) + 36_000}
    return {"authorization": "Bearer " + jwt.encode({"alg": "ES256", "kid": "one"}, claims, SIGNS)}


class Bytes(NamedTuple):
    """A valid call, ready to be spoilt. path: with the query, or the gRPC path; verb: "" for gRPC."""

    verb: str
    path: str
    headers: dict[str, str]
    body: bytes
    streaming: bool


def calls(task_id: str, binding: str, version: str, **shown: str) -> list[Bytes]:
    """Every operation on a wire. shown: headers with a credential."""
    found = []
    for operation, request in requests(task_id):
        name = operation if version == V1 else METHOD_NAMES.get(operation)
        if name is None:
            continue
        stubs = {row.name: row for row in (v1_grpc if version == V1 else v03_grpc).METHODS}
        row = stubs[name]
        if binding == "grpc":
            body = (request if version == V1 else v03.down_request(request)).SerializeToString()
            found.append(Bytes("", row.path, {"a2a-version": version, **shown}, body, row.server_streaming))
        elif binding == "jsonrpc":
            headers, body = jsonrpc.request(operation, request, 7, version)
            found.append(Bytes("POST", "/", headers | shown, body, row.server_streaming))
        else:
            verb, path, headers, body = rest.request(operation, request, "", version)
            found.append(Bytes(verb, path, headers | shown, body, row.server_streaming))
    return found


def spoilt(random: Random, call: Bytes) -> Bytes:
    """A call with its body, path or headers changed."""
    head = dict(call.headers)
    path, body = call.path, call.body
    where = random.choice((0, 1, 2, 3) if call.verb else (1, 3, 3, 3))
    if where == 0:
        path = "/" + re.sub(r"[^!-~]|#", "%", mutated(random, path.encode()).decode("latin-1")).lstrip("/")
    elif where == 1:
        name = random.choice([*head, "last-event-id", "a2a-extensions", "x-a2a-extensions", "accept", "authorization"])
        head[name] = re.sub(r"[^ -~]", "~", mutated(random, head.get(name, name).encode()).decode("latin-1"))[:4000]
    else:
        body = mutated(random, body)
    return call._replace(path=path, headers=head, body=body)


class Target:
    """One host, by whatever it can be called with."""

    def __init__(self, server: Server, http: aiohttp.ClientSession, channel: grpc.aio.Channel) -> None:
        self.server, self.http, self.channel = server, http, channel

    async def outcome(self, call: Bytes) -> tuple[bool, bytes]:
        """Whether the answer is good or an A2A error, and what it shows."""
        if not call.verb:
            return await self._grpc(call)
        url = URL(self.server.http_url + call.path, encoded=True)
        sent = io.BytesIO(call.body) if len(call.body) > 1024 * 1024 else call.body
        try:
            async with self.http.request(call.verb, url, headers=call.headers, data=sent) as reply:
                body = await reply.read()
                return reply.status < 500 and b"-32603" not in body, repr(dict(reply.headers)).encode() + body
        except aiohttp.ClientOSError:  # a server may cut off what it does not read to its end; then it goes on
            async with self.http.get(self.server.http_url + "/healthz") as reply:
                return reply.status == 200, b""

    async def _grpc(self, call: Bytes) -> tuple[bool, bytes]:
        make: Any = self.channel.unary_stream if call.streaming else self.channel.unary_unary
        made = make(call.path)(call.body, metadata=tuple(call.headers.items()), timeout=60)
        try:
            shown = b"".join([part async for part in made]) if call.streaming else await made
        except grpc.aio.AioRpcError as fault:
            return fault.code() not in BAD, f"{fault.details()}{fault.trailing_metadata()}".encode()
        return True, shown


def held() -> int:
    """Bytes that are alive, but for the mutants themselves: whoever sent one may hold it until the next."""
    gc.collect()
    makers = (mutants.__file__, json.encoder.__file__)
    traces = tracemalloc.take_snapshot().filter_traces([tracemalloc.Filter(False, maker) for maker in makers]).traces
    return sum(trace.size for trace in traces)


@asynccontextmanager
async def target(host: str) -> AsyncIterator[Target]:
    async with AsyncExitStack() as stack:
        options = {**HERE, **({"grpc": "", "http": ""} if host == "asgi" else {}), "push_notifications": True}
        asks = policy() if host == "guarded" else None
        made = Server(agent, Options(store="memory:", max_request_bytes=MOST, **KEPT, **options), authenticators=asks)
        server = await stack.enter_async_context(served(made) if host == "asgi" else made)
        timeout = aiohttp.ClientTimeout(60)
        http = await stack.enter_async_context(aiohttp.ClientSession(timeout=timeout, auto_decompress=False))
        yield Target(server, http, await stack.enter_async_context(grpc.aio.insecure_channel(server.grpc_address)))


@pytest.mark.parametrize("host", ["own", "asgi", "guarded"])
@pytest.mark.limit(600)
@pytest.mark.requirement("ERR-11", "BL-22", "BL-28", "BL-32", "RPC-08", "REST-18", "GRPC-12")
async def test_nearly_valid_calls_are_answered_and_leave_nothing(
    host: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.ERROR)
    monkeypatch.setattr("a2a_grpc.ready.MOST_KEPT", 64 * 1024)  # what is kept of JSON has a bound, and reaches it soon
    random, sizes, shows = Random(SEED), list[int](), token() if host == "guarded" else {}
    async with target(host) as aim, Client(aim.server.http_url, headers=shows) as client:
        for _ in range(3):
            for number in range(CALLS // 3):
                if number % BLOCK == 0:
                    task_id = (await client.send(said())).task.id
                    valid = {wire: calls(task_id, *wire, **shows) for wire in WIRES}
                for wire, known in valid.items():
                    call = spoilt(random, known[number % len(known)])
                    good, shown = await aim.outcome(call)
                    assert good and not INSIDE.search(shown), (wire, call, shown[:2000])
            sizes.append(held() if tracemalloc.is_tracing() else 0)
            if not tracemalloc.is_tracing():
                tracemalloc.start()
    tracemalloc.stop()
    assert sizes[2] - sizes[1] < FLAT, sizes
    assert not [record for record in caplog.records if "reference" in record.getMessage()], caplog.text


@pytest.mark.parametrize("port", ["http", "grpc"])
@pytest.mark.requirement("ERR-11", "BL-32")
async def test_bytes_that_are_no_protocol_are_answered_or_cut_off(port: str) -> None:
    random = Random(SEED)
    line = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
    start = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(3) + b"\4" + bytes(5)
    async with target("own") as aim:
        address = getattr(aim.server, f"{port}_address")
        for _ in range(CALLS):
            sent = mutated(random, line if port == "http" else start)
            shown = await said_to(address, sent)
            assert not INSIDE.search(shown), (sent, shown)
            assert not re.match(rb"HTTP/1.1 5", shown), (sent, shown)
        assert (await aim.outcome(calls("x", "rest", V1)[2]))[0]


async def said_to(address: str, sent: bytes) -> bytes:
    """What a port answers to some bytes and the end of them."""
    host, _, number = address.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(number))
    try:
        writer.write(sent)
        writer.write_eof()
        async with asyncio.timeout(60):
            return await reader.read()
    except ConnectionError:
        return b""
    finally:
        writer.close()
