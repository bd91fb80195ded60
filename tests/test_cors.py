"""What browsers are told: pages of other origins, and TLS from now on."""

from typing import Any

import aiohttp
import pytest
from a2a_stubs import v1

from a2a_grpc.agent import Agent
from a2a_grpc.auth import ApiKey, hashed
from a2a_grpc.bindings import jsonrpc
from a2a_grpc.client import Client
from a2a_grpc.config import Options
from a2a_grpc.errors import UnavailableError
from a2a_grpc.server import Server
from tests.test_tls import files  # noqa: F401

APP = "https://app.example"
HERE: dict[str, Any] = {"grpc": "", "http": "127.0.0.1:0", "grace": 0.0, "store": "memory:"}
PATHS = ["/", "/tasks", "/message:stream", "/v1/message:stream", "/.well-known/agent-card.json", "/nowhere"]


def server(**options: Any) -> Server:
    agent = Agent(name="Open", description="Answers web pages.", version="1.0.0", skills=[])

    @agent.handle
    async def answer(task: Any) -> str:
        return "hello"

    return Server(agent, Options(**HERE, **options), authenticators=ApiKey({hashed("k"): "ann"}))


async def asked(verb: str, url: str, body: bytes = b"", **headers: str) -> aiohttp.ClientResponse:
    told = {name.replace("_", "-"): value for name, value in headers.items()}
    async with aiohttp.ClientSession() as session, session.request(verb, url, headers=told, data=body) as reply:
        await reply.read()
        return reply


def preflight(origin: str) -> dict[str, str]:
    return {
        "origin": origin,
        "access_control_request_method": "POST",
        "access_control_request_headers": "x-api-key, a2a-version",
    }


async def test_a_listed_origin_may_call_every_path_without_a_credential_first():
    async with server(cors_origins=(APP,)) as made:
        for path in (*PATHS, "/healthz", "/openapi.json"):
            reply = await asked("OPTIONS", made.http_url + path, **preflight(APP))
            assert reply.status == 204
            assert reply.headers["access-control-allow-origin"] == APP
            assert reply.headers["access-control-allow-headers"] == "x-api-key, a2a-version"
            assert "POST" in reply.headers["access-control-allow-methods"]
            assert "access-control-allow-credentials" not in reply.headers
            reply = await asked("OPTIONS", made.http_url + path, **preflight("https://evil.example"))
            assert not [name for name in reply.headers if name.lower().startswith("access-control-allow")]


@pytest.mark.requirement("AUTH-03")
async def test_a_page_may_read_answers_streams_and_refusals():
    parts = [v1.Part(text="hi")]
    message = v1.SendMessageRequest(message=v1.Message(message_id="m", role=v1.ROLE_USER, parts=parts))
    headers, body = jsonrpc.request("SendStreamingMessage", message, 7)
    async with server(cors_origins=(APP,)) as made:
        for key, status, kind in (("k", 200, "text/event-stream"), ("wrong", 401, "application/json")):
            reply = await asked("POST", made.http_url, body, origin=APP, x_api_key=key, **headers)
            assert (reply.status, reply.content_type) == (status, kind)
            assert reply.headers.getall("access-control-allow-origin") == [APP]
            assert "WWW-Authenticate" in reply.headers["access-control-expose-headers"]
        reply = await asked("GET", made.http_url + "/.well-known/agent-card.json", origin=APP)
        assert reply.headers["vary"] == "A2A-Version, Origin"
        reply = await asked("POST", made.http_url, body, origin="https://app.example.evil", x_api_key="k", **headers)
        assert reply.status == 403 and "access-control-allow-origin" not in reply.headers


async def test_an_asterisk_is_every_origin_and_nothing_is_the_default():
    async with server(cors_origins=("*",)) as made:
        reply = await asked("OPTIONS", made.http_url, **preflight("http://localhost:3000"))
        assert reply.headers["access-control-allow-origin"] == "http://localhost:3000"
        reply = await asked("OPTIONS", made.http_url, **preflight(APP) | {"access_control_request_headers": "a\tb("})
        assert "access-control-allow-headers" not in reply.headers
        reply = await asked("OPTIONS", made.http_url, origin=APP)  # no preflight: as without a list
        assert reply.status == 401
    async with server() as made:
        reply = await asked("OPTIONS", made.http_url, **preflight(APP))
        assert reply.status == 401 and "vary" not in reply.headers


@pytest.mark.requirement("SEC-03", "REST-08")
@pytest.mark.parametrize("path", ["", "/message:send", "/v1/message:send"])
async def test_a_page_of_another_origin_is_refused_whatever_it_leaves_out(path: str):
    async with server() as made, aiohttp.ClientSession(skip_auto_headers=["Content-Type"]) as session:
        for origin, refused in (({"Origin": "https://evil.example"}, True), ({}, False)):
            async with session.post(made.http_url + path, data=b"{}", headers={"X-API-Key": "k", **origin}) as reply:
                assert (reply.status == 403) == refused


@pytest.mark.requirement("SEC-02")
async def test_a_client_calls_nobody_whose_certificate_it_cannot_trust(files):  # noqa: F811
    async with server(**files) as made:
        with pytest.raises(UnavailableError, match="certificate"):
            await Client.connect(made.http_url)


@pytest.mark.requirement("SEC-06", "SEC-01")
async def test_tls_is_asked_for_from_now_on(files):  # noqa: F811
    async with server(**files) as made, aiohttp.ClientSession() as session:
        for path in (*PATHS, "/healthz", "/openapi.json"):
            async with session.get(made.http_url + path, ssl=False) as reply:
                assert reply.headers.getall("strict-transport-security") == ["max-age=31536000"]
    async with server() as made:
        reply = await asked("GET", made.http_url + PATHS[-2])
        assert "strict-transport-security" not in reply.headers
