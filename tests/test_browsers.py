"""Web pages that call on their own account: of other origins, and under names that lead here."""

import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
from a2a_stubs import v1, v1_grpc

from a2a_grpc import errors
from a2a_grpc.bindings import jsonrpc, rest
from a2a_grpc.bindings.browsers import Browsers, host_name
from a2a_grpc.call import V1, VERSIONS
from a2a_grpc.config import OptionError, Options
from a2a_grpc.server import Server
from tests.hosts import served
from tests.interop.agent import agent

EVIL = "https://evil.example"
HOSTS = ("own", "asgi")
WIRES = [*((binding, version) for binding in ("jsonrpc", "rest") for version in VERSIONS), ("grpc-web", V1)]
FOREIGN: list[dict[str, str]] = [
    {"Origin": EVIL},
    {"Origin": "null"},
    {"Origin": "http://127.0.0.1"},
    {"Origin": "http://127.0.0.1:1"},
    {"Origin": EVIL, "Sec-Fetch-Site": "cross-site"},
    {"Origin": "http://localhost:1", "Sec-Fetch-Site": "same-site"},
    {"Sec-Fetch-Site": "cross-site"},
]
OURS: list[dict[str, str]] = [{}, {"Origin": "http://HERE"}, {"Origin": EVIL, "Sec-Fetch-Site": "same-origin"}]


@asynccontextmanager
async def running(host: str, **more: Any) -> AsyncIterator[Server]:
    ports = dict.fromkeys(("grpc", "http"), "127.0.0.1:0" if host == "own" else "")
    made = Server(agent, Options(store="memory:", grace=0.0, **ports, **more))
    async with served(made) if host == "asgi" else made as server:
        yield server


def cancel(wire: tuple[str, str], task_id: str = "nobody's") -> tuple[str, dict[str, str], bytes]:
    """Path, headers and body of a call that needs none, and changes something."""
    binding, version = wire
    request = v1.CancelTaskRequest(id=task_id)
    if binding == "jsonrpc":
        return "/", *jsonrpc.request("CancelTask", request, 7, version)
    if binding == "rest":
        _, path, headers, body = rest.request("CancelTask", request, "", version)
        return path, {name: value for name, value in headers.items() if name != "content-type"}, body and b""
    path = next(row.path for row in v1_grpc.METHODS if row.name == "CancelTask")
    body = request.SerializeToString()
    return path, {"content-type": "application/grpc-web+proto"}, struct.pack(">BI", 0, len(body)) + body


async def said(session: aiohttp.ClientSession, url: str, wire: tuple[str, str], **head: str) -> tuple[int, str]:
    """Status and body of a call with these headers."""
    path, headers, body = cancel(wire)
    async with session.post(url + path, headers=headers | head, data=body) as reply:
        return reply.status, f"{(await reply.read()).decode('latin-1')} {reply.headers.get('grpc-status', '')}"


def refused(wire: tuple[str, str], status: int, text: str, why: str) -> bool:
    """Whether an answer is a refusal in the wire's own form."""
    if wire[0] == "grpc-web":
        return status == 200 and ("grpc-status:7" in text.replace(" ", "") or text.endswith(" 7")) and why[:20] in text
    return status == 403 and why in text and ("-32099" in text or wire[0] != "jsonrpc")


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.requirement("SEC-03", "EQ-04")
async def test_no_page_of_another_origin_changes_anything_and_nobody_else_is_held_up(host: str) -> None:
    async with running(host) as server, aiohttp.ClientSession(skip_auto_headers=["Content-Type"]) as session:
        here = server.http_url.partition("://")[2]
        for wire in [wire for wire in WIRES if host == "asgi" or wire[0] != "grpc-web"]:
            for head in FOREIGN:
                answer = await said(session, server.http_url, wire, **head)
                assert refused(wire, *answer, "Web pages of this origin may not call"), (wire, head, answer)
            for head in OURS:
                told = {name: value.replace("HERE", here) for name, value in head.items()}
                status, text = await said(session, server.http_url, wire, **told)
                assert status in (200, 404) and "Web pages" not in text, (wire, head, status, text)


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.requirement("SEC-03")
async def test_pages_of_listed_origins_may_and_pages_of_all_may_look_at_what_is_public(host: str) -> None:
    async with running(host, cors_origins=(EVIL,)) as server, aiohttp.ClientSession() as session:
        for wire in [wire for wire in WIRES if host == "asgi" or wire[0] != "grpc-web"]:
            _, text = await said(session, server.http_url, wire, Origin=EVIL, **{"Sec-Fetch-Site": "cross-site"})
            assert "Web pages" not in text
        for path in ("/.well-known/agent-card.json", "/healthz", "/tasks"):
            async with session.get(server.http_url + path, headers={"Origin": "https://other.example"}) as reply:
                assert reply.status == 200 and "access-control-allow-origin" not in reply.headers


NAMES = [
    ({}, ["127.0.0.1:80", "localhost", "LOCALHOST.:1", "a.localhost:80", "[::1]:80", "192.168.1.2"], ["evil.example"]),
    ({"public_url": "https://agent.example/x"}, ["agent.example", "AGENT.example:443"], ["evil.example:443"]),
    ({"allowed_hosts": ("a.example", "[::1]")}, ["a.example:1", "[::1]:2"], ["localhost", "127.0.0.1", "b.example"]),
    ({"allowed_hosts": ("*",)}, ["anything.example"], []),
    ({"trust_forwarded": True}, ["anything.example"], []),
]


@pytest.mark.parametrize(("options", "good", "bad"), NAMES, ids=[str(one[0]) for one in NAMES])
@pytest.mark.requirement("SEC-03", "EQ-04")
async def test_a_page_whose_name_leads_here_reads_and_changes_nothing(
    options: dict[str, Any], good: list[str], bad: list[str]
) -> None:
    paths = ("/.well-known/agent-card.json", "/tasks", "/inspector", "/openapi.json")
    async with running("own", **options) as server, aiohttp.ClientSession() as session:
        for name, wrong in [*((name, False) for name in good), *((name, True) for name in bad)]:
            for path in paths:
                async with session.get(server.http_url + path, headers={"Host": name}) as reply:
                    text = await reply.text()
                    assert (reply.status == 403) == wrong == ("allowed_hosts" in text), (name, path, text)
            for wire in WIRES[:-1]:
                head = {"Host": name, "Origin": f"http://{name}"}
                assert refused(wire, *await said(session, server.http_url, wire, **head), "The Host header") == wrong
            async with session.get(server.http_url + "/healthz", headers={"Host": name}) as reply:
                assert reply.status == 200  # probes come by whatever name


@pytest.mark.requirement("SEC-03")
async def test_hosts_are_kept_to_on_every_wire_of_an_asgi_server_too() -> None:
    async with running("asgi", allowed_hosts=("a.example",)) as server, aiohttp.ClientSession() as session:
        for wire in WIRES:
            assert refused(wire, *await said(session, server.http_url, wire), "The Host header"), wire
            _, text = await said(session, server.http_url, wire, Host="a.example")
            assert "The Host header" not in text
    async with running("asgi") as server, aiohttp.ClientSession() as session:  # the port is somebody else's
        _, text = await said(session, server.http_url, WIRES[0], Host="b.example")
        assert "The Host header" not in text


def test_behind_a_proxy_a_page_of_its_own_origin_is_known_without_word_of_the_browser() -> None:
    head = {"origin": "https://agent.example", "host": "backend:8080", "x-forwarded-host": "agent.example"}
    Browsers(Options(trust_forwarded=True)).check("POST", head)
    Browsers(Options(public_url="https://agent.example/path", allowed_hosts=("*",))).check("POST", head)
    with pytest.raises(errors.PermissionDeniedError):
        Browsers(Options()).check("POST", head)
    Browsers(Options(), "0.0.0.0:8080").check("POST", {"host": "whatever.example"})
    assert host_name("[::1]:80") == "::1" and host_name("A.example.:80") == "a.example"


@pytest.mark.parametrize("name", ["http://a", "a b", "a:80", ""])
def test_what_is_no_host_is_no_option(name: str) -> None:
    with pytest.raises(OptionError, match="allowed_hosts"):
        Options(allowed_hosts=(name,))


async def test_a_blind_form_does_not_end_the_task_of_a_reader() -> None:
    async with running("own") as server, aiohttp.ClientSession() as session:
        request = v1.SendMessageRequest(message=v1.Message(message_id="m", role=v1.ROLE_USER))
        request.message.parts.add(text="ask")
        _, path, headers, body = rest.request("SendMessage", request, "", V1)
        async with session.post(server.http_url + path, headers=headers, data=body) as reply:
            task = (await reply.json(content_type=None))["task"]
        form = {"Origin": EVIL, "Sec-Fetch-Site": "cross-site", "Content-Type": "text/plain"}
        async with session.post(f"{server.http_url}/tasks/{task['id']}:cancel", headers=form) as reply:
            assert reply.status == 403
        async with session.get(f"{server.http_url}/tasks/{task['id']}", headers={"A2A-Version": "1.0"}) as reply:
            assert (await reply.json(content_type=None))["status"]["state"] == task["status"]["state"]
