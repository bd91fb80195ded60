"""The HTTP host over real sockets, with the true wires in front of a small servicer."""

import asyncio
import contextlib
import gzip
import json
import logging

import aiohttp
import pytest
from a2a_stubs import v1
from aiohttp import web

from a2a_grpc.bindings.http import HttpHost
from a2a_grpc.bindings.jsonrpc import JsonRpc
from a2a_grpc.bindings.mounts import Mount
from a2a_grpc.bindings.rest import Rest
from a2a_grpc.bindings.streams import Streams
from a2a_grpc.bindings.wire import HttpReply
from a2a_grpc.config import Options
from a2a_grpc.errors import VersionNotSupportedError
from a2a_grpc.testing import until
from tests.fakes import FakeService, status

V1 = {"A2A-Version": "1.0"}
MESSAGE = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "hi"}]}
WORKING = v1.TASK_STATE_WORKING


def rpc(method="GetTask", params=None, ident=1):
    return {"jsonrpc": "2.0", "id": ident, "method": method, "params": {"id": "t1"} if params is None else params}


class Site:
    """A running host with what a test wants to look at."""

    def __init__(self, host, service, streams, client, base):
        self.host, self.service, self.streams, self.client, self.base = host, service, streams, client, base

    def get(self, path, **more):
        return self.client.get(self.base + path, **more)

    def post(self, path, **more):
        return self.client.post(self.base + path, headers=V1 | more.pop("headers", {}), **more)

    def stream(self):
        return self.post("/message:stream", json={"message": MESSAGE})

    async def dial(self, request, limit=2**16):
        """A raw connection on which some bytes were sent."""
        reader, writer = await asyncio.open_connection(*self.host.address.split(":"), limit=limit)
        writer.write(request)
        await writer.drain()
        return reader, writer

    async def raw(self, request):
        reader, writer = await self.dial(request)
        try:
            return await reader.read()
        finally:
            writer.close()


def mount(service, options, prefix="", aliases=()):
    async def card(request, origin):
        if request.headers.get("a2a-version") == "9.9":
            raise VersionNotSupportedError
        body = json.dumps({"prefix": prefix, "origin": origin, "query": request.query}).encode()
        return HttpReply(200, {"content-type": "application/json", "etag": '"e"'}, body)

    return Mount(prefix, JsonRpc(service, options), Rest(service, options), card, aliases)


@contextlib.asynccontextmanager
async def serving(prefixes=("",), aliases=(), unready=str, **chosen):
    options = Options(http="127.0.0.1:0", **chosen)
    streams, services = Streams(options.max_streams), {prefix: FakeService() for prefix in prefixes}
    mounts = [mount(service, options, prefix, aliases) for prefix, service in services.items()]
    host = HttpHost(mounts, options, streams, unready=unready)
    await host.start()
    try:
        async with aiohttp.ClientSession() as client:
            yield Site(host, services if len(services) > 1 else services[""], streams, client, f"http://{host.address}")
    finally:
        await host.stop(0)


@contextlib.asynccontextmanager
async def mounted(prefix="/sub", middlewares=(), prepare=None, **chosen):
    """The host as a sub-application of a user's own aiohttp application."""
    options = Options(**chosen)
    service, streams = FakeService(), Streams(options.max_streams)
    host = HttpHost([mount(service, options)], options, streams)
    outer = web.Application(middlewares=middlewares)
    if prepare:
        outer.on_response_prepare.append(prepare)
    outer.add_subapp(prefix, host.application())
    runner = web.AppRunner(outer, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host.address = "{}:{}".format(*runner.addresses[0])
    try:
        async with aiohttp.ClientSession() as client:
            yield Site(host, service, streams, client, f"http://{host.address}{prefix}")
    finally:
        await runner.cleanup()


# -- which path goes where


@pytest.mark.requirement("REST-01", "RPC-18", "BL-32")
@pytest.mark.parametrize("path", ["", "/", "/a2a/jsonrpc", "/a2a/jsonrpc/"])
async def test_json_rpc_answers_at_the_root_and_at_its_own_path_with_and_without_a_slash(path):
    async with serving() as site, site.post(path, json=rpc()) as reply:
        assert reply.status == 200
        assert (await reply.json())["result"]["id"] == "t1"


@pytest.mark.requirement("REST-01", "REST-04", "REST-06")
@pytest.mark.parametrize(
    ("path", "ident"),
    [
        ("/tasks/a%3Acancel", "a:cancel"),
        ("/tasks/a%2Fb", "a/b"),
        ("/tasks/a:b", "a:b"),
        ("/tasks/%41%25", "A%"),
        ("/tasks/%E2%82%AC", "€"),
        ("/tasks/x/", "x"),
    ],
)
async def test_the_path_reaches_the_wire_still_percent_encoded(path, ident):
    async with serving() as site:
        request = (
            f"GET {path}?historyLength=2 HTTP/1.1\r\nHost: localhost\r\nA2A-Version: 1.0\r\nConnection: close\r\n\r\n"
        )
        assert (await site.raw(request.encode())).startswith(b"HTTP/1.1 200 ")
        asked, call = site.service.calls[0]
        assert (asked.id, asked.history_length) == (ident, 2)
        assert call.binding == "HTTP+JSON" and call.metadata["host"] == "localhost"


@pytest.mark.requirement("BL-33", "EXT-02")
async def test_repeated_headers_are_joined():
    async with serving() as site:
        headers = [("A2A-Extensions", "urn:a"), ("A2A-Extensions", "urn:b"), ("A2A-Version", "1.0")]
        async with site.client.get(site.base + "/tasks/1", headers=headers) as reply:
            assert reply.headers["A2A-Extensions"] == "urn:a, urn:b"


@pytest.mark.requirement("BL-52", "CARD-01")
async def test_the_longest_prefix_wins_and_each_has_its_card():
    async with serving(("", "/one", "/one/two")) as site:
        for prefix in ("", "/one", "/one/two"):
            async with site.post(f"{prefix}/", json=rpc()) as reply:
                assert reply.status == 200
            async with site.post(prefix, json=rpc()) as reply:
                assert reply.status == 200
            async with site.get(f"{prefix}/tasks/7", headers=V1) as reply:
                assert reply.status == 200
            assert len(site.service[prefix].calls) == 3
            async with site.get(f"{prefix}/.well-known/agent-card.json?x=1") as reply:
                assert await reply.json() == {"prefix": prefix, "origin": site.base, "query": "x=1"}
        async with site.get("/oneself/tasks/7", headers=V1) as reply:
            assert reply.status == 200
        assert site.service[""].calls[-1][1].tenant == "oneself"


@pytest.mark.requirement("BL-52", "CARD-01")
async def test_cards_answer_head_aliases_and_errors_in_form():
    alias = "/api/.well-known/x/agent-card.json"
    async with serving(aliases=(alias,)) as site:
        async with site.get(alias) as reply:
            assert (await reply.json())["prefix"] == ""
        async with site.client.head(site.base + "/.well-known/agent-card.json") as reply:
            assert reply.status == 200 and reply.headers["ETag"] == '"e"' and await reply.read() == b""
        async with site.get(alias, headers={"A2A-Version": "9.9"}) as reply:
            assert reply.status == 400
            assert (await reply.json())["error"]["details"][0]["reason"] == "VERSION_NOT_SUPPORTED"


async def test_nothing_is_served_outside_every_prefix():
    async with serving(("/one", "/two")) as site, site.get("/tasks/1", headers=V1) as reply:
        assert reply.status == 404


async def test_probes_tell_life_and_readiness():
    why = ["not ready: for no reason"]
    async with serving(unready=lambda: why[0]) as site:
        for expected, text in ((503, "not ready: for no reason\n"), (200, "ok\n")):
            async with site.get("/healthz") as live, site.get("/readyz") as probe:
                assert (live.status, probe.status, await probe.text()) == (200, expected, text)
            why[0] = ""


# -- bodies


@pytest.mark.requirement("BL-39", "RPC-12")
@pytest.mark.parametrize("chunked", [False, True])
async def test_a_body_past_the_limit_is_refused_in_the_form_of_its_wire(chunked):
    async def pieces():
        for _ in range(40):
            yield b"x" * 1000

    async with serving(max_request_bytes=20_000) as site:
        for path in ("/", "/message:send"):
            async with site.post(path, data=pieces() if chunked else b"x" * 40_000) as reply:
                assert reply.status == 413
                error = (await reply.json())["error"]
                assert "20000" in error["message"]
                assert error.get("data", error.get("details"))[0]["reason"] == "PAYLOAD_TOO_LARGE"
        assert not site.service.calls
        async with site.post("/", json=rpc(params={"id": "y" * 19_000})) as reply:
            assert reply.status == 200


@pytest.mark.requirement("BL-39")
async def test_a_body_that_says_its_size_is_refused_before_it_is_sent():
    async with serving(max_request_bytes=1024) as site:
        reader, writer = await site.dial(
            b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9999999\r\nExpect: 100-continue\r\n\r\n"
        )
        assert (await reader.readline()).startswith(b"HTTP/1.1 413 ")
        writer.close()


async def test_a_client_that_waits_for_leave_to_send_gets_it():
    async with serving() as site:
        body = json.dumps(rpc()).encode()
        head = f"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\nExpect: 100-continue\r\n\r\n"
        reader, writer = await site.dial(head.encode())
        assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        writer.write(body)
        assert (await reader.readline()).startswith(b"HTTP/1.1 200 ")
        writer.close()


@pytest.mark.requirement("BL-32", "REST-09")
@pytest.mark.parametrize("host", [serving, mounted])
@pytest.mark.parametrize("body", [gzip.compress(json.dumps(rpc()).encode(), mtime=0), b"not gzip"])
async def test_a_compressed_body_is_refused_cleanly(host, body):
    async with host() as site, site.post("/", data=body, headers={"Content-Encoding": "gzip"}) as reply:
        assert reply.status in (400, 415)
        assert (await reply.read()) and not site.service.calls


@pytest.mark.requirement("VER-09", "JSON-19")
async def test_a_header_that_is_no_text_gets_an_answer():
    async with serving() as site:
        for start, status in (("POST / HTTP/1.1", b" 200 "), ("GET /tasks/t1 HTTP/1.1", b" 400 ")):
            head, body = f"{start}\r\nHost: localhost\r\nConnection: close\r\n".encode(), json.dumps(rpc()).encode()
            answer = await site.raw(head + b"Content-Length: %d\r\nA2A-Version: \xff\r\n\r\n" % len(body) + body)
            assert status in answer.partition(b"\r\n")[0] and b"VERSION_NOT_SUPPORTED" in answer


@pytest.mark.requirement("ERR-11", "REST-18", "BL-32")
@pytest.mark.parametrize(
    "sent",
    [
        b"\x16\x03\x01\x02",
        b"FOO /tasks HTTP/1.1\r\n\r\n",
        b"GET /" + b"secret" * 2000 + b" HTTP/1.1\r\n\r\n",
        b"GET * HTTP/1.1\r\n",
    ]
    + [b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"],
)
async def test_bytes_that_are_no_http_get_an_error_that_does_not_repeat_them(sent):
    async with serving() as site:
        head, _, body = (await site.raw(sent + b"\r\n\r\n")).partition(b"\r\n\r\n")
        error = json.loads(body)["error"]
        assert b" 400 " in head and (error["code"], error["details"][0]["reason"]) == (400, "INVALID_JSON")
        assert b"secret" not in body and b"bytes" not in body.replace(b"The bytes", b"")


@pytest.mark.requirement("BL-32")
@pytest.mark.parametrize("late", [False, True])
async def test_a_broken_chunked_body_is_a_bad_request(late, caplog):
    async with serving(stall_timeout=0.2) as site:
        head = b"POST /message:send HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"
        reader, writer = await site.dial(head if late else head + b"ZZ\r\nboom")
        if late:
            await until(lambda: len(site.host.running) == 1)
            writer.write(b"ZZ\r\nboom")
        assert b" 400 " in await asyncio.wait_for(reader.readline(), 10)
        writer.close()
        async with site.get("/healthz") as alive:
            assert alive.status == 200
        assert not len(site.host.running)
    assert not [record for record in caplog.records if record.exc_info]


@pytest.mark.requirement("BL-35")
async def test_a_client_that_leaves_within_its_body_leaves_nothing(caplog):
    async with serving() as site:
        _, writer = await site.dial(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nhalf")
        await until(lambda: len(site.host.running) == 1)
        writer.close()
        await until(lambda: not len(site.host.running))
    assert not [record for record in caplog.records if record.exc_info]


# -- streams


@pytest.mark.requirement("SSE-04", "SSE-05", "BL-37")
@pytest.mark.parametrize("host", [serving, mounted])
async def test_each_event_arrives_on_its_own_and_is_not_compressed(host):
    async with host() as site:
        told = asyncio.Event()
        site.service.events = [status(WORKING)]
        site.service.wait = told.wait()
        async with site.post(
            "/message:stream", json={"message": MESSAGE}, headers={"Accept-Encoding": "gzip"}
        ) as reply:
            assert reply.status == 200
            assert "Content-Encoding" not in reply.headers
            assert reply.headers["Cache-Control"] == "no-cache" and reply.headers["X-Accel-Buffering"] == "no"
            chunk, _ = await asyncio.wait_for(reply.content.readchunk(), 10)
            assert chunk.startswith(b"id: 1\ndata: {") and chunk.endswith(b"}\n\n")
            told.set()
            assert await reply.content.read() == b""
        await until(lambda: site.service.closed == 1 and not len(site.streams))


@pytest.mark.requirement("BL-37")
async def test_compression_of_the_whole_application_spares_streams():
    @web.middleware
    async def compress(request, handler):
        response = await handler(request)
        response.enable_compression()
        return response

    async def prepare(request, response):
        response.enable_compression()

    async with mounted(middlewares=(compress,), prepare=prepare) as site, site.stream() as reply:
        assert "Content-Encoding" not in reply.headers
        assert (await reply.read()).count(b"data: ") == 2


@pytest.mark.requirement("BL-20", "REST-20")
async def test_an_early_error_of_a_stream_is_a_plain_reply():
    async with serving() as site:
        site.service.events, site.service.fault = [], VersionNotSupportedError()
        async with site.stream() as reply:
            assert reply.status == 400
            assert (await reply.json())["error"]["details"][0]["reason"] == "VERSION_NOT_SUPPORTED"


@pytest.mark.requirement("SSE-01")
async def test_a_stream_that_ends_without_an_event_is_an_empty_one():
    async with serving() as site:
        site.service.events = []
        async with site.stream() as reply:
            assert (reply.status, reply.content_type, await reply.read()) == (200, "text/event-stream", b"")


@pytest.mark.requirement("SSE-06", "BL-35")
@pytest.mark.parametrize("host", [serving, mounted])
async def test_a_hundred_dropped_streams_leave_nothing_behind(host, caplog):
    caplog.set_level(logging.INFO)
    body = json.dumps({"message": MESSAGE}).encode()
    async with host(heartbeat=0) as site:
        path = site.base.partition(site.host.address)[2] + "/message:stream"
        head = (
            f"POST {path} HTTP/1.1\r\nHost: [::1]\r\nA2A-Version: 1.0\r\nContent-Length: {len(body)}\r\n\r\n".encode()
        )
        site.service.events = [status(WORKING)]
        for _ in range(100):
            site.service.wait = asyncio.sleep(600)
            reader, writer = await site.dial(head + body)
            await reader.readuntil(b"}\n\n")
            writer.close()
        await until(lambda: site.service.closed == 100 and not len(site.streams) and not len(site.host.running))
        async with site.get("/tasks/1", headers=V1) as reply:
            assert reply.status == 200
    assert not [record for record in caplog.records if record.exc_info or record.levelno >= logging.WARNING]


@pytest.mark.requirement("STREAM-06", "BL-02")
@pytest.mark.parametrize("host", [serving, mounted])
async def test_a_stalled_reader_is_cut_off_alone(host, caplog):
    big = v1.StreamResponse(task=v1.Task(id="x" * 500_000))
    body = json.dumps({"message": MESSAGE}).encode()
    async with host(stall_timeout=0.3) as site:
        path = site.base.partition(site.host.address)[2] + "/message:stream"
        head = (
            f"POST {path} HTTP/1.1\r\nHost: [::1]\r\nA2A-Version: 1.0\r\nContent-Length: {len(body)}\r\n\r\n".encode()
        )
        site.service.events = [big] * 200
        reader, writer = await site.dial(head + body, limit=1024)
        await reader.readline()
        site.service.events = [status(WORKING)] * 3
        async with site.stream() as reply:
            assert (await reply.read()).count(b"data: ") == 3
        await until(lambda: site.service.closed == 2 and not len(site.streams))
        with contextlib.suppress(ConnectionError):
            while await reader.read(65_536):
                pass
        writer.close()
    assert [record.getMessage() for record in caplog.records if "cut off" in record.getMessage()]
    assert not [record for record in caplog.records if record.exc_info]


@pytest.mark.requirement("SEC-04", "ERR-10")
async def test_past_the_limit_of_open_streams_a_call_is_refused_with_a_delay():
    async with serving(max_streams=1) as site:
        site.service.events, site.service.wait = [status(WORKING)], asyncio.sleep(600)
        async with site.stream() as held:
            await held.content.readline()
            async with site.stream() as reply:
                assert reply.status == 429 and reply.headers["Retry-After"] == "1"
                assert "1 open streams" in (await reply.json())["error"]["message"]


@pytest.mark.requirement("BL-21", "STREAM-11")
async def test_a_failure_in_mid_stream_is_its_last_event_and_the_body_ends_cleanly():
    async with serving() as site:
        site.service.fault = VersionNotSupportedError()
        async with site.stream() as reply:
            last = (await reply.read()).strip().rpartition(b"data: ")[2]
        assert json.loads(last)["error"]["details"][0]["reason"] == "VERSION_NOT_SUPPORTED"


# -- stopping, TLS, other applications


@pytest.mark.requirement("BL-34")
async def test_stopping_waits_for_running_requests_then_ends_open_streams():
    async with serving() as site:
        told = asyncio.Event()
        site.service.events, site.service.wait = [status(WORKING)], told.wait()
        async with site.stream() as finished:
            await finished.content.readline()
            stopping = asyncio.create_task(site.host.stop(20))
            await asyncio.sleep(0)
            told.set()
            assert (await finished.content.read()).endswith(b"\n\n")
        async with asyncio.timeout(10):
            await stopping
        with pytest.raises(aiohttp.ClientError):
            await site.get("/healthz")


@pytest.mark.requirement("BL-34")
async def test_a_stream_that_outlasts_the_grace_is_cut():
    async with serving() as site:
        site.service.events, site.service.wait = [status(WORKING)], asyncio.sleep(600)
        async with site.stream() as held:
            await held.content.readline()
            async with asyncio.timeout(10):
                await site.host.stop(0.1)
            assert not len(site.streams) and not len(site.host.running) and site.service.closed == 1
            with pytest.raises(aiohttp.ClientError):
                await held.content.read()


async def test_a_taken_address_is_an_os_error_that_names_it():
    async with serving() as site:
        with pytest.raises(OSError, match=f"HTTP cannot listen on {site.host.address}: in use"):
            await HttpHost([], Options(http=site.host.address), Streams(1)).start()


@pytest.mark.requirement("BL-52")
async def test_a_sub_application_answers_below_its_prefix():
    async with mounted() as site:
        async with site.post("/", json=rpc()) as reply:
            assert (await reply.json())["result"]["id"] == "t1"
        async with site.post("", json=rpc()) as reply:
            assert reply.status == 200
        async with site.get("/tasks/a%2Fb", headers=V1) as reply:
            assert reply.status == 200
        assert site.service.calls[-1][0].id in ("a/b", "t1")
        async with site.get("/.well-known/agent-card.json") as reply:
            assert (await reply.json())["origin"] == site.base


async def test_bytes_that_are_no_http_get_a_short_answer_and_no_traceback(caplog):
    async with serving() as site:
        for garbage in (b"\x16\x03\x01\x02\x00nonsense\r\n\r\n", b"GET  \r\n\r\n", b"G\x00T / HTTP/1.1\r\n\r\n"):
            reader, writer = await site.dial(garbage)
            writer.write_eof()
            assert len(await asyncio.wait_for(reader.read(), 10)) < 1000
            writer.close()
    assert not [record for record in caplog.records if record.exc_info]


@pytest.mark.requirement("BL-43")
def test_a_host_is_made_without_a_loop():
    assert HttpHost([mount(FakeService(), Options())], Options(), Streams(1)).address == ""
