"""`serve --engine envoy` as its user sees it: every wire on one port, stops, mistakes."""

import asyncio
import json
import os
import signal
import socket
import ssl
from contextlib import suppress
from pathlib import Path

import aiohttp
import grpc.aio
import pytest
from a2a_stubs import v1, v1_grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from a2a_grpc import OptionError, Options
from a2a_grpc.call import GRPC, JSONRPC, REST, V03, V1
from a2a_grpc.client import Client
from tests.asgi_calls import frame, frames
from tests.fronts import eventually
from tests.hosts import ENVOY, NEEDS_ENVOY
from tests.test_auth_mtls import certs
from tests.test_cli import PATIENCE, SLOW_AGENT, Serving, end_well, run, serving

pytestmark = pytest.mark.skipif(not ENVOY, reason=NEEDS_ENVOY)
__all__ = ["certs"]
WORDS = ("slow:agent", "--engine", "envoy", "--store", "memory:")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "slow.py").write_text(SLOW_AGENT, "utf-8")
    (tmp_path / "broken.py").write_text("x = 1\nraise RuntimeError('no luck')\n", "utf-8")
    return tmp_path


def said(text: str = "0") -> v1.SendMessageRequest:
    message = v1.Message(message_id=os.urandom(6).hex(), role=v1.ROLE_USER, parts=[v1.Part(text=text)])
    return v1.SendMessageRequest(message=message)


async def healthy(channel: grpc.aio.Channel) -> int:
    answer = await health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest())
    return int(answer.status)


async def over_web(server: Serving) -> dict[int, bytes]:
    """The frames of an answer to gRPC-Web, over HTTP/1.1."""
    path = next(row.path for row in v1_grpc.METHODS if row.name == "SendMessage")
    headers, body = {"content-type": "application/grpc-web+proto"}, frame(said().SerializeToString())
    async with aiohttp.ClientSession() as http, http.post(server.url + path, headers=headers, data=body) as reply:
        return dict(frames(await reply.read()))


async def leave(server: Serving) -> bool:
    """Read one event of a long stream over gRPC, and over HTTP, and leave; whether there was room for both."""
    async with grpc.aio.insecure_channel(server.grpc) as channel:
        call = v1_grpc.A2AServiceStub(channel).SendStreamingMessage(said("3600"))
        with suppress(grpc.aio.AioRpcError):
            await call.read()
        if not call.cancel():
            assert await call.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
            return False
    async with aiohttp.ClientSession() as http:
        headers = {"content-type": "application/json", "a2a-version": "1.0"}
        body = {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "3600"}]}}
        async with http.post(server.url + "/message:stream", headers=headers, data=json.dumps(body)) as reply:
            await reply.content.readline()
            return reply.status == 200


@pytest.mark.requirement("BL-34", "GRPC-11", "BL-39", "GRPC-16")
async def test_one_port_carries_every_wire_and_stops_when_told(folder: Path) -> None:
    async with serving(*WORDS, "--max-request-bytes", "100000", "--max-streams", "2", cwd=folder) as server:
        assert server.grpc == server.url.removeprefix("http://")
        for binding in (GRPC, JSONRPC, REST):
            for version in (V1, V03):
                async with Client(server.url, binding=binding, version=version, timeout=PATIENCE) as client:
                    assert (await client.send(said())).task.status.state == v1.TASK_STATE_COMPLETED
                    events = [event async for event in client.stream(said())]
                    assert events[-1].status_update.status.state == v1.TASK_STATE_COMPLETED
        web = await over_web(server)
        assert v1.SendMessageResponse.FromString(web[0]).task.id
        assert web[0x80] == b"grpc-status: 0\r\n"
        for _ in range(3):  # of more streams than there may be, who has left does not count
            await eventually(lambda: leave(server))
        async with grpc.aio.insecure_channel(server.grpc) as channel:
            assert await healthy(channel) == health_pb2.HealthCheckResponse.SERVING
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await v1_grpc.A2AServiceStub(channel).SendMessage(said("x" * 200_000))
            assert caught.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
        server.process.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(server.process.wait(), PATIENCE) == 0


@pytest.mark.requirement("BL-34")
async def test_running_turns_finish_and_their_readers_are_told_before_envoy_ends(folder: Path) -> None:
    async with serving(*WORDS, cwd=folder) as server:
        await end_well(server, folder, "--binding", "grpc")


@pytest.mark.requirement("BL-34")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
async def test_envoy_ends_at_once_with_a_second_signal_or_its_parent(folder: Path, number: int) -> None:
    async with serving(*WORDS, "--grace", "3600" if number == signal.SIGINT else "0", cwd=folder) as server:
        async with Client(server.url, timeout=PATIENCE) as client:
            request = said("3600")
            request.configuration.return_immediately = True
            await client.send(request)
            server.process.send_signal(number)
            if number == signal.SIGINT:
                while (await run("call", "send", server.url, "0", cwd=folder)).code == 0:
                    pass  # the first signal is taken once no new work is
                assert server.process.returncode is None
                server.process.send_signal(number)
        assert await asyncio.wait_for(server.process.wait(), PATIENCE) != 0
        await closed(server.grpc)


async def test_tls_is_for_every_wire_and_asks_clients_for_certificates(folder: Path, certs: Path) -> None:
    files = {"cert": "server.pem", "key": "server.key", "client-ca": "authority.pem"}
    words = [word for name, file in files.items() for word in (f"--tls-{name}", str(certs / file))]
    trust = ssl.create_default_context(cafile=str(certs / "authority.pem"))
    async with serving(*WORDS, *words, cwd=folder) as server:
        path = server.url + "/.well-known/agent-card.json"
        async with aiohttp.ClientSession() as http:
            with pytest.raises(aiohttp.ClientError):
                await http.get(path, ssl=trust)
            trust.load_cert_chain(certs / "alice.pem", certs / "alice.key")
            async with http.get(path, ssl=trust) as reply:
                assert reply.headers["strict-transport-security"]
                assert (await reply.json())["supportedInterfaces"][0]["url"] == server.url + "/"
        shown = [(certs / file).read_bytes() for file in ("authority.pem", "alice.key", "alice.pem")]
        async with grpc.aio.secure_channel(server.grpc, grpc.ssl_channel_credentials(*shown)) as channel:
            answer = await v1_grpc.A2AServiceStub(channel).SendMessage(said())
            assert answer.task.status.state == v1.TASK_STATE_COMPLETED


async def closed(address: str) -> None:
    """Wait until nobody listens any more."""
    host, _, port = address.rpartition(":")
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                _, writer = await asyncio.open_connection(host, int(port))
            except OSError:
                return
            writer.close()
            await asyncio.sleep(0.1)


def child(process: int) -> int:
    return int(Path(f"/proc/{process}/task/{process}/children").read_text("utf-8").split()[0])


@pytest.mark.requirement("BL-34")
async def test_envoy_that_dies_is_told(folder: Path) -> None:
    async with serving(*WORDS, cwd=folder) as server:
        os.kill(child(server.process.pid), signal.SIGKILL)
        _, said = await asyncio.wait_for(server.process.communicate(), PATIENCE)
        assert (server.process.returncode, said) == (1, b"a2a-grpc: Envoy has ended by itself\n")


async def test_what_cannot_be_served_is_told_in_one_line(folder: Path) -> None:
    async def fails(*words: str) -> str:
        ended = await run("serve", *words, "--engine", "envoy", cwd=folder)
        assert (ended.code, ended.out) == (2, "")
        (line,) = ended.err.splitlines()
        return line

    there = ("--http", "127.0.0.1:0")
    assert "no luck" in await fails("broken:agent", *there)
    assert "nowhere" in await fails("slow:agent", "--store", "sqlite:/nowhere/tasks.db", *there)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert "in use" in await fails("slow:agent", "--http", f"127.0.0.1:{taken.getsockname()[1]}")


def test_the_engine_needs_an_address() -> None:
    with pytest.raises(OptionError, match="http"):
        Options(engine="envoy", http="")
