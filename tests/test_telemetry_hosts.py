"""Telemetry wherever calls come in and go out: hosts, gateways, agents that ask others, webhooks, and with it off."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from a2a_stubs import v1, v1_grpc
from aiohttp import web
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import StatusCode

from a2a_grpc import Agent, Client, Options, RemoteAgent, Server, TaskHandle, auth
from a2a_grpc.call import GRPC, JSONRPC, REST
from a2a_grpc.errors import A2AError, UnavailableError
from a2a_grpc.gateway import Upstream
from a2a_grpc.tasks.memory import MemoryStore
from scripts.services import free_port
from tests import test_cli
from tests.asgi_calls import frame, frames
from tests.hosts import ENVOY, NEEDS_ENVOY, served
from tests.receivers import Got, receiver
from tests.test_telemetry import HEADERS, PARENT, TRACE, WIRES, agent, calling, ids, said, serving
from tests.test_telemetry_export import collecting, spans
from tests.watched import Watch

SECRET, WORDS = "k3y-of-alice", "what nobody else may read"
CHANGING = {"a2a.task.id", "a2a.context.id", "server.port", "url.path"}


@asynccontextmanager
async def on_asgi(watch: Watch, **more: Any) -> AsyncIterator[Server]:
    """A watched server without ports of its own, carried by an ASGI server."""
    options = Options(grpc="", http="", store="memory:", grace=0.1, **more)
    async with served(Server(agent, options, telemetry=watch.telemetry)) as server:
        yield server


async def seen(watch: Watch, host: Any) -> tuple[list[Any], dict[str, Any]]:
    """What is recorded of the same calls on every wire and version of a host: spans, and measures by name."""
    async with host(watch) as server:
        for binding, version in WIRES:
            async with calling(server, binding, version, timeout=60) as client:
                task = (await client.send(said("hello"))).task
                assert [event async for event in client.stream(said("hello"))]
                with pytest.raises(A2AError):
                    await client.cancel(task.id)
        await watch.until(lambda: len(watch.named("CancelTask")) == len(WIRES))
        measures = {
            name: sorted((sorted(labels.items()), count) for labels, count in watch.points(name))
            for name in ("a2a.server.call.duration", "a2a.server.requests", "a2a.turn.duration")
        }
    return sorted(map(told, watch.spans), key=str), measures


def told(span: ReadableSpan) -> Any:
    """A span without what is another one each time."""
    parent = span.parent and trace.format_span_id(span.parent.span_id) == PARENT
    found = {name: value for name, value in (span.attributes or {}).items() if name not in CHANGING}
    return span.name, span.kind.name, ids(span)[0], parent, span.status.status_code.name, sorted(found.items())


@pytest.mark.requirement("SEC-07", "BL-53")
async def test_an_asgi_application_is_watched_as_ports_of_ones_own_are() -> None:
    ports, asgi = await seen(Watch(), serving), await seen(Watch(), on_asgi)
    assert asgi == ports
    assert {each[0] for each in asgi[0]} >= {"SendMessage", "SendStreamingMessage", "CancelTask", "turn Seen"}
    assert {each[2] for each in asgi[0]} == {TRACE}


@pytest.mark.requirement("SEC-07", "BL-53")
async def test_grpc_web_is_traced_and_the_site_shows_its_measures() -> None:
    watch, method = Watch(), next(row for row in v1_grpc.METHODS if row.name == "SendMessage")
    async with on_asgi(watch) as server, aiohttp.ClientSession() as http:
        headers = {"content-type": "application/grpc-web+proto", **HEADERS}
        body = frame(said("hello").SerializeToString())
        async with http.post(server.http_url + method.path, headers=headers, data=body) as reply:
            assert dict(frames(await reply.read()))[0x80] == b"grpc-status: 0\r\n"
        await watch.until(lambda: watch.named("SendMessage"))
    [call] = watch.named("SendMessage")
    assert ids(call)[0] == TRACE and (call.attributes or {})["rpc.response.status_code"] == "OK"
    options = Options(grpc="", http="127.0.0.1:0", store="memory:", metrics="http", admin=("127.0.0.1:0",))
    shown = Server(agent, options)
    async with served(shown) as server, aiohttp.ClientSession() as http:
        async with Client(server.http_url, binding=GRPC, timeout=60) as client:
            await client.send(said("hello"))
        async with http.get(f"{server.http_url}/metrics") as reply:
            assert 'a2a_server_requests_total{a2a_binding="GRPC",a2a_code="OK"} 1.0' in await reply.text()
        async with http.get(f"http://{server.admin.addresses[0]}/turns") as reply:
            assert await reply.json() == []
        async with http.get(f"{server.http_url}/turns") as reply:
            assert reply.status == 404


@pytest.mark.skipif(not ENVOY, reason=NEEDS_ENVOY)
@pytest.mark.requirement("SEC-07", "BL-53")
async def test_everything_on_one_port_is_watched_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    words = ("--engine", "envoy", "--store", "memory:", "--telemetry", "--metrics", "admin", "--admin", "127.0.0.1:0")
    async with collecting(monkeypatch) as there, test_cli.serving(*words, cwd=tmp_path) as site:
        for binding, version in WIRES:
            async with Client(site.url, binding=binding, version=version, headers=HEADERS, timeout=60) as client:
                await client.send(said("Where is order 1001?"))
        await there.until(lambda: sum(span.name == "SendMessage" for span in spans(there)) == len(WIRES))
        admin = next(line.split()[1] for line in site.lines if line.startswith("  admin"))
        async with aiohttp.ClientSession() as http, http.get(f"http://{admin}/metrics") as reply:
            text = await reply.text()
    assert {span.trace_id.hex() for span in spans(there) if span.name in ("SendMessage", "turn Order Lookup")} == {
        TRACE
    }
    assert text.count('a2a_code="OK",a2a_operation="SendMessage"') >= len(WIRES)


# -- traces of others go on where nothing is watched

front = Agent(name="Front", description="Lets the other one work.", version="1", skills=[])
back = Agent(name="Back", description="Tells what it has heard.", version="1", skills=[])
others: dict[str, RemoteAgent] = {}


@front.handle
async def ask(task: TaskHandle) -> str:
    return (await task.delegate(others["back"])).checked().text


@back.handle
async def tell(task: TaskHandle) -> str:
    return json.dumps({name: task.call.metadata.get(name, "") for name in ("traceparent", "tracestate")})


@pytest.mark.parametrize(("binding", "version"), WIRES)
@pytest.mark.requirement("SEC-07", "BL-53")
async def test_a_trace_goes_on_to_upstreams_remote_agents_and_webhooks_where_nothing_is_watched(
    binding: str, version: str
) -> None:
    here = {"grpc": "127.0.0.1:0", "http": "127.0.0.1:0", "store": "memory:", "grace": 0.1}
    push = {"push_notifications": True, "push_allow": ("127.0.0.1/32",)}
    async with (
        receiver() as there,
        Server(back, Options(**here)) as last,
        RemoteAgent(last.http_url, binding=binding, version=version) as others["back"],
        Server(front, Options(**here, **push)) as middle,
        Server(Upstream(middle.http_url, binding=binding, version=version), Options(**here)) as first,
        Client(first.http_url, binding=binding, version=version, headers=HEADERS) as client,
    ):
        answer = await client.send(said("go", url=there.url))
        await there.until(lambda: any(b"ompleted" in got.body or b"COMPLETED" in got.body for got in there.got))
    assert json.loads(answer.task.artifacts[-1].parts[0].text) == HEADERS
    assert all(got.headers.items() >= HEADERS.items() for got in there.got)


@pytest.mark.requirement("SEC-03", "SEC-07")
async def test_what_is_no_trace_holds_no_delegation_up() -> None:
    here = {"grpc": "127.0.0.1:0", "http": "127.0.0.1:0", "store": "memory:", "grace": 0.1}
    wrong = {"traceparent": "00-\xe4", "tracestate": "\xe4"}
    body = {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "go"}]}}
    async with (
        Server(back, Options(**here)) as last,
        RemoteAgent(last.http_url, binding=GRPC) as others["back"],
        Server(front, Options(**here)) as middle,
        Server(Upstream(middle.http_url, binding=GRPC), Options(**here)) as first,
        aiohttp.ClientSession() as http,
    ):
        for server in (middle, first):
            url, headers = f"{server.http_url}/message:send", {"A2A-Version": "1.0", **wrong}
            async with http.post(url, json=body, headers=headers) as reply:
                answer = await reply.json()
            assert answer["task"]["status"]["state"] == "TASK_STATE_COMPLETED", answer
            body["message"]["messageId"] = "n"  # type: ignore[index]


# -- the store

slow = Agent(name="Slow", description="Works for as long as it is let.", version="1", skills=[])


@slow.handle
async def hold(task: TaskHandle) -> str:
    await anext(aiter(task.inbox))
    return "let go"


@pytest.mark.requirement("SEC-07")
async def test_a_turn_that_is_watched_keeps_its_lease_for_as_long_as_it_works() -> None:
    watch = Watch()

    def renewed() -> list[int]:
        rows = watch.points("a2a.store.duration")
        return [count for row, count in rows if row == {"a2a.store.operation": "renew", "a2a.code": "OK"}]

    async with serving(watch, slow, lease=0.6) as server, calling(server) as client:
        request = said("hold")
        request.configuration.return_immediately = True
        task = (await client.send(request)).task
        await watch.until(lambda: renewed() and renewed()[0] >= 6)  # two leases, and more
        done = await client.send(said("go on", task.id))
        assert done.task.status.state == v1.TASK_STATE_COMPLETED
        assert watch.points("a2a.leases.lost") == [({}, 0)]


@pytest.mark.requirement("SEC-07")
async def test_leases_that_others_have_taken_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    watch = Watch()

    async def taken(_self: Any, _holder: str, _until: int, tokens: Mapping[str, int]) -> frozenset[str]:
        return frozenset(tokens)

    monkeypatch.setattr(MemoryStore, "renew", taken)
    async with serving(watch, slow, lease=0.6) as server, calling(server) as client:
        request = said("hold")
        request.configuration.return_immediately = True
        await client.send(request)
        await watch.until(lambda: watch.named("turn Slow"))
        assert watch.points("a2a.leases.lost") == [({}, 1)]


# -- what goes out


def shown(span: ReadableSpan, *names: str) -> list[Any]:
    found = dict(span.attributes or {})
    return [found.get(name) for name in names]


@pytest.mark.requirement("SEC-07")
async def test_requests_that_go_out_say_where_to_and_how_it_went() -> None:
    watch = Watch()
    async with serving(Watch()) as other, AsyncExitStack() as stack:
        at = {GRPC: other.grpc_address, JSONRPC: other.http_address, REST: other.http_address}
        with watch.telemetry.here():
            for binding, version in WIRES:
                client = await stack.enter_async_context(Client(other.http_url, binding=binding, version=version))
                task = (await client.send(said("hello"))).task
                await client.get(task.id)
                with pytest.raises(A2AError):
                    await client.get("nobody-knows")
    names = ("server.address", "server.port", "rpc.method", "url.template", "rpc.response.status_code")
    names += ("http.response.status_code", "error.type", "jsonrpc.protocol.version", "http.route")
    found = [(*shown(span, "a2a.binding", "a2a.version"), shown(span, *names)) for span in watch.named("GetTask")]
    for binding, version, row in found:
        assert row[:2] == ["127.0.0.1", int(at[binding].rpartition(":")[2])]
        assert (row[7] == "2.0") is (binding == JSONRPC) and row[8] is None
        assert bool(row[2]) is (binding != REST) and bool(row[3]) is (binding == REST), (binding, version)
    base = f"http://{at[REST]}"
    wanted = {(JSONRPC, "1.0"): f"{base}/", (JSONRPC, "0.3"): f"{base}/", (REST, "1.0"): f"{base}/tasks/nobody-knows"}
    where = {tuple(shown(span, "a2a.binding", "a2a.version")): shown(span, "url.full")[0] for span in watch.spans}
    assert {wire: url for wire, url in where.items() if url} == wanted
    assert [row[4:7] for _, version, row in found if version == "1.0"] == [
        ["OK", None, None],
        ["NOT_FOUND", None, "NOT_FOUND"],
        [None, None, None],
        ["-32001", None, "-32001"],
        [None, 200, None],
        [None, 404, "404"],
    ]
    assert [span.status.status_code for span in watch.named("GetTask")] == [StatusCode.UNSET, StatusCode.ERROR] * 6


@pytest.mark.parametrize("binding", [GRPC, JSONRPC, REST])
@pytest.mark.requirement("SEC-07")
async def test_an_agent_that_nobody_reaches_has_answered_nothing(binding: str) -> None:
    watch = Watch()
    url = f"127.0.0.1:{free_port()}" if binding == GRPC else f"http://127.0.0.1:{free_port()}"
    card = v1.AgentCard(name="Gone")
    card.supported_interfaces.add(url=url, protocol_binding=binding, protocol_version="1.0")
    async with Client(card, retries=None) as client:
        with watch.telemetry.here(), pytest.raises(UnavailableError):
            await client.get("t")
    [span] = watch.named("GetTask")
    statuses = shown(span, "rpc.response.status_code", "http.response.status_code")
    assert (shown(span, "a2a.code", "error.type"), statuses) == (["UNREACHABLE"] * 2, [None, None])
    [(labels, count)] = watch.points("a2a.client.call.duration")
    assert (labels["a2a.code"], count) == ("UNREACHABLE", 1)


@pytest.mark.requirement("SEC-05", "SEC-07")
async def test_a_webhook_has_its_status_in_its_span_and_none_of_its_secrets() -> None:
    async def answers(_: Got) -> web.Response:
        return web.Response(status=next(statuses, 204))

    watch, statuses = Watch(), iter((204, 503, 410))
    keys = auth.ApiKey({auth.hashed(SECRET): "alice"})
    options = Options(
        grpc="127.0.0.1:0",
        http="127.0.0.1:0",
        store="memory:",
        grace=0.1,
        push_notifications=True,
        push_allow=("127.0.0.1/32",),
    )
    async with (
        receiver(answers) as there,
        Server(agent, options, authenticators=keys, telemetry=watch.telemetry) as server,
    ):
        for binding, version in WIRES:
            async with Client(
                server.http_url, binding=binding, version=version, headers={"x-api-key": SECRET}
            ) as client:
                request = said(WORDS, url=f"{there.url}/{SECRET}?key={SECRET}")
                request.configuration.task_push_notification_config.token = SECRET
                await client.send(request)
        await watch.until(lambda: {row[0]["a2a.result"] for row in watch.points("a2a.push.duration")} >= {"gone"})
        await watch.until(lambda: len(watch.named("SendMessage")) == len(WIRES))
    ends = {tuple(shown(span, "http.response.status_code", "error.type")) for span in watch.named("push")}
    assert ends >= {(204, None), (503, "503"), (410, "410")}
    assert {tuple(shown(span, "server.address", "server.port")) for span in watch.named("push")} == {
        ("127.0.0.1", int(there.url.rpartition(":")[2]))
    }
    every = "".join(span.to_json() for span in watch.spans)
    assert "alice" in every and SECRET not in every and WORDS not in every
    measured = str([watch.points(name) for name in ("a2a.server.call.duration", "a2a.push.duration")])
    assert SECRET not in measured and "alice" not in measured


@pytest.mark.requirement("SEC-07")
async def test_whoever_leaves_before_an_agent_has_answered_is_no_error_of_it() -> None:
    watch = Watch()

    async def never(_: Got) -> web.Response:
        await asyncio.Event().wait()
        return web.Response()

    async with receiver(never) as there:
        card = v1.AgentCard(name="Slow")
        card.supported_interfaces.add(url=there.url, protocol_binding=REST, protocol_version="1.0")
        async with Client(card, retries=None) as client:
            with watch.telemetry.here():
                asking = asyncio.create_task(client.get("t"))
                await there.until(lambda: bool(there.got))
                asking.cancel()
                await asyncio.wait([asking])
    [span] = watch.named("GetTask")
    assert shown(span, "a2a.code", "error.type") == ["CANCELED", None]
    assert span.status.status_code is StatusCode.UNSET
