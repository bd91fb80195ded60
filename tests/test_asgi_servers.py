"""The application in FastAPI, and on servers with and without trailers, as clients see it."""

import asyncio
import os
from typing import Any

import aiohttp
import grpc.aio
import pytest
from a2a_stubs import v1, v1_grpc
from fastapi import FastAPI
from starlette.middleware.base import BaseHTTPMiddleware

from a2a_grpc import Agent, Options, Server
from a2a_grpc.call import JSONRPC, REST, V03, V1
from a2a_grpc.client import Client
from tests.asgi_calls import frame, frames
from tests.hosts import on_hypercorn, on_uvicorn

SEND = "/lf.a2a.v1.A2AService/SendMessage"


def said(text: str = "hi") -> v1.SendMessageRequest:
    message = v1.Message(message_id=os.urandom(6).hex(), role=v1.ROLE_USER, parts=[v1.Part(text=text)])
    return v1.SendMessageRequest(message=message)


def mounted(place: str, **options: Any) -> tuple[FastAPI, Server]:
    agent = Agent(name="Echo", description="Says it again.", version="1", skills=[])

    @agent.handle
    async def say(task: Any) -> str:
        if task.text == "wait":
            await task.working("on it")
            await asyncio.Event().wait()
        return str(task.text)

    server = Server(agent, Options(grpc="", http="", store="memory:", grace=0, cancel_grace=0, **options))
    site = FastAPI(lifespan=server.lifespan)
    if place != "/":  # it loses trailers
        site.add_middleware(BaseHTTPMiddleware, dispatch=lambda request, go_on: go_on(request))

    @site.get("/hello")
    async def hello() -> str:
        return "hello"

    site.mount(place, server.asgi())
    return site, server


@pytest.mark.parametrize("run", [on_uvicorn, on_hypercorn])
async def test_a_site_with_an_agent_in_it_answers_for_both(run: Any) -> None:
    site, server = mounted("/agents/echo")
    async with run(site) as address, aiohttp.ClientSession() as http:
        async with http.get(f"http://{address}/hello") as reply:
            assert await reply.json() == "hello"
        base = f"http://{address}/agents/echo"
        for binding in (JSONRPC, REST):
            for version in (V1, V03):
                async with Client(base, binding=binding, version=version, timeout=60) as client:
                    assert (await client.send(said())).task.status.state == v1.TASK_STATE_COMPLETED
                    assert [event async for event in client.stream(said())]
        headers = {"content-type": "application/grpc-web+proto"}
        async with http.post(base + SEND, headers=headers, data=frame(said().SerializeToString())) as reply:
            answer, end = frames(await reply.read())
        assert v1.SendMessageResponse.FromString(answer[1]).task.id
        assert end == (0x80, b"grpc-status: 0\r\n")
        async with Client(base, binding=REST, timeout=60) as client:
            events = client.stream(said("wait"))
            await anext(events)
            assert len(server.streams) == 1
            await events.aclose()
        async with asyncio.timeout(30):
            while len(server.streams):  # noqa: ASYNC110
                await asyncio.sleep(0.05)
    assert not server.ready


@pytest.mark.requirement("GRPC-11")
async def test_grpc_goes_through_a_site_whose_server_has_trailers() -> None:
    site, server = mounted("/")
    async with on_hypercorn(site) as address, grpc.aio.insecure_channel(address) as channel:
        server.served_at = address
        stub = v1_grpc.A2AServiceStub(channel)
        assert (await stub.SendMessage(said())).task.status.state == v1.TASK_STATE_COMPLETED
        call = stub.SendStreamingMessage(said("wait"))
        await call.read()
        call.cancel()
        async with asyncio.timeout(30):
            while len(server.streams):  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await stub.GetTask(v1.GetTaskRequest(id="nobody"))
        assert caught.value.code() == grpc.StatusCode.NOT_FOUND
        async with Client(f"http://{address}", timeout=60) as client:
            assert ("GRPC", address) in {
                (entry.protocol_binding, entry.url) for entry in client.card.supported_interfaces
            }
