"""Credentials that callers have shown are not kept in memory when their calls are over, whatever stays connected."""

import asyncio
import gc
import re
import secrets
from collections.abc import Iterator
from typing import Any

import grpc.aio
import pytest
from a2a_stubs import v1, v1_grpc

from a2a_grpc import Options, Server, TaskHandle
from a2a_grpc.bindings import http_plain, rpc
from a2a_grpc.testing import until
from tests.turns import agent

HALVES = [secrets.token_hex(8), secrets.token_hex(8)]
"""Of the credential, which is nowhere in one piece but where a call has left it."""


async def anything(task: TaskHandle) -> None:
    await task.reply("done")


def kept() -> list[object]:
    """What holds the credential, among everything that Python can find."""
    gc.collect()
    return [holder for holder in gc.get_objects() if any(map(is_secret, texts(holder)))]


def is_secret(text: str | bytes) -> bool:
    whole = text.decode("latin-1") if isinstance(text, bytes) else text
    return HALVES[0] in whole and HALVES[1] in whole


def texts(holder: object) -> Iterator[Any]:
    for found in gc.get_referents(holder):
        if type(found) in (str, bytes):
            yield found
        elif type(found) in (dict, tuple) and not gc.is_tracked(found):  # else it is found by itself
            yield from texts(found)


async def by_grpc(channel: Any) -> None:
    request = v1.SendMessageRequest(message=v1.Message(message_id="m", role="ROLE_USER", parts=[v1.Part(text="hi")]))
    await v1_grpc.A2AServiceStub(channel).SendMessage(request, metadata=(("authorization", "".join(HALVES)),))


async def by_http(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, where: str) -> None:
    line, header = (f"?key={''.join(HALVES)}", "x-a: b") if where == "query" else ("", f"x-api-key: {''.join(HALVES)}")
    writer.write(f"GET /tasks/t{line} HTTP/1.1\r\nhost: 127.0.0.1\r\na2a-version: 1.0\r\n{header}\r\n\r\n".encode())
    head = await reader.readuntil(b"\r\n\r\n")
    await reader.readexactly(int(re.findall(rb"content-length: (\d+)", head)[0]))


@pytest.mark.parametrize("where", ["metadata", "header", "query"])
@pytest.mark.requirement("SEC-05")
async def test_a_credential_is_forgotten_soon_after_the_call_that_brought_it(
    monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    for module in (rpc, http_plain):
        monkeypatch.setattr(module, "KEPT_FOR", 0.2)
    async with Server(agent(anything), Options(grpc="127.0.0.1:0", http="127.0.0.1:0", store="memory:")) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(server.http_address.rpartition(":")[2]))
        async with grpc.aio.insecure_channel(server.grpc_address) as channel:
            await (by_grpc(channel) if where == "metadata" else by_http(reader, writer, where))
            await until(lambda: not kept(), 20)
            # What was connected still is, and the same caller is known again.
            await (by_grpc(channel) if where == "metadata" else by_http(reader, writer, where))
        writer.close()
