"""The wires as an ASGI application, without a server: framing, ends of calls, limits, lifespan."""

import asyncio
import base64
import gzip
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import orjson
import pytest
from a2a_stubs import google, v1, v1_grpc
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection_pb2

from a2a_grpc import Agent, Options, Server
from a2a_grpc.bindings.asgi import AsgiHost
from a2a_grpc.bindings.asgi_exchange import Exchange, Watch
from a2a_grpc.bindings.asgi_grpc import NO_TRAILERS
from a2a_grpc.bindings.streams import Streams
from a2a_grpc.errors import InvalidParamsError, TaskNotFoundError, UnauthenticatedError
from tests.asgi_calls import Visit, call, frame, frames
from tests.fakes import FakeService

PATHS = {row.name: row.path for row in v1_grpc.METHODS}
GET, STREAM, SEND = PATHS["GetTask"], PATHS["SendStreamingMessage"], PATHS["SendMessage"]
ASKED = v1.GetTaskRequest(id="t1").SerializeToString()
SAID = v1.SendMessageRequest(
    message=v1.Message(message_id="m", role="ROLE_USER", parts=[v1.Part(text="hi")])
).SerializeToString()
MEDIA = pytest.mark.parametrize(
    "media", ["application/grpc", "application/grpc-web+proto", "application/grpc-web-text"]
)
HEALTH, REFLECTION = "/grpc.health.v1.Health/", "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"


@asynccontextmanager
async def nothing() -> AsyncIterator[None]:
    yield


def host(service: Any = None, serving: bool = True, **options: Any) -> AsgiHost:
    settings = Options(**options)
    return AsgiHost(
        service or FakeService(),
        [],
        settings,
        Streams(settings.max_streams),
        None,
        life=nothing,
        unready=str,
        serving=lambda: serving,
        base=lambda: "",
    )


async def until(condition: Any) -> None:
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


@MEDIA
@pytest.mark.requirement("GRPC-01", "GRPC-14", "EXT-05")
async def test_a_call_is_answered_with_a_message_and_status_zero(media: str) -> None:
    data = base64.b64encode(frame(ASKED)) if "text" in media else frame(ASKED)
    headers = {"a2a-extensions": "urn:one"}
    told = await call(host(), GET, body=data, media=media, headers=headers)
    assert (told.status, told.trailers["grpc-status"]) == (200, "0")
    assert [v1.Task.FromString(each).id for each in told.messages] == ["t1"]
    assert told.headers["content-type"].startswith(media)
    assert told.headers["a2a-extensions"] == "urn:one"


@MEDIA
@pytest.mark.requirement("GRPC-03")
async def test_a_stream_is_answered_with_each_event_in_a_frame(media: str) -> None:
    data = base64.b64encode(frame(SAID)) if "text" in media else frame(SAID)
    told = await call(host(), STREAM, body=data, media=media)
    events = [v1.StreamResponse.FromString(each) for each in told.messages]
    assert [event.WhichOneof("payload") for event in events] == ["task", "status_update"]
    assert told.trailers["grpc-status"] == "0"


@MEDIA
@pytest.mark.parametrize("path", [GET, STREAM])
@pytest.mark.requirement("GRPC-07", "ERR-03", "ERR-04", "BL-30")
async def test_an_error_has_its_status_text_and_details_in_the_trailers(media: str, path: str) -> None:
    service = FakeService()
    service.events = []
    service.fault = TaskNotFoundError("Größe 100% \n unknown")
    body = frame(SAID if path == STREAM else ASKED)
    told = await call(host(service), path, body=base64.b64encode(body) if "text" in media else body, media=media)
    assert (told.status, told.trailers["grpc-status"], told.body) == (200, "5", b"")
    assert told.trailers["grpc-message"] == "Gr%C3%B6%C3%9Fe 100%25 %0A unknown"
    shown = told.trailers["grpc-status-details-bin"]
    status = google.Status.FromString(base64.b64decode(shown + "=" * (-len(shown) % 4)))
    info = google.ErrorInfo.FromString(status.details[0].value)
    assert (status.code, info.reason) == (5, "TASK_NOT_FOUND")


async def test_a_challenge_is_in_the_trailers() -> None:
    service = FakeService()
    service.fault = UnauthenticatedError(challenge='Bearer realm="a"')
    told = await call(host(service), GET, ASKED)
    assert (told.trailers["grpc-status"], told.trailers["www-authenticate"]) == ("16", 'Bearer realm="a"')


@pytest.mark.parametrize(
    ("code", "body", "headers"),
    [
        ("3", b"", {}),
        ("3", b"\0\0\0", {}),
        ("3", frame(ASKED)[:-1], {}),
        ("3", frame(ASKED) * 2, {}),
        ("3", frame(b"\xff"), {}),
        ("13", frame(gzip.compress(ASKED, mtime=0), 1), {}),
        ("13", frame(gzip.compress(ASKED, mtime=0), 1), {"grpc-encoding": "identity"}),
        ("12", frame(gzip.compress(ASKED, mtime=0), 1), {"grpc-encoding": "br"}),
        ("3", frame(ASKED, 1), {"grpc-encoding": "gzip"}),
        ("3", frame(gzip.compress(SAID, mtime=0)[:-6], 1), {"grpc-encoding": "gzip"}),
        ("3", frame(gzip.compress(ASKED, mtime=0) + b"more", 1), {"grpc-encoding": "gzip"}),
        ("3", frame(ASKED), {"grpc-timeout": "soon"}),
        ("8", frame(b"x" * 2000), {}),
        ("8", frame(gzip.compress(b"x" * 100_000, mtime=0), 1), {"grpc-encoding": "gzip"}),
        ("0", frame(gzip.compress(ASKED, mtime=0), 1), {"grpc-encoding": "gzip"}),
        ("0", frame(ASKED), {"grpc-encoding": "gzip"}),
        ("0", frame(b"", 1), {"grpc-encoding": "gzip"}),
    ],
)
@pytest.mark.requirement("BL-28", "BL-39", "GRPC-15")
async def test_bytes_that_are_no_call_are_refused_in_words(code: str, body: bytes, headers: dict[str, str]) -> None:
    told = await call(host(max_request_bytes=1024), GET, body=body, headers=headers)
    assert told.trailers["grpc-status"] == code, told
    assert code == "0" or told.trailers["grpc-message"]
    assert told.headers["grpc-accept-encoding"] == "identity, gzip"


@pytest.mark.parametrize("body", [b"A", b"AAAAA", b"AAA", b"A==", b"AAAA\nAAA", b"\xff"])
@pytest.mark.requirement("BL-28")
async def test_text_that_is_no_base64_is_refused_in_words(body: bytes) -> None:
    told = await call(host(), GET, body=body, media="application/grpc-web-text")
    assert (told.trailers["grpc-status"], bool(told.trailers["grpc-message"])) == ("3", True)


async def test_a_body_in_any_pieces_is_read_and_one_without_end_only_to_the_limit() -> None:
    body = frame(ASKED)
    headers = {"content-type": "application/grpc"}
    pieces = [body[:2], b"", body[2:7], body[7:], b""]
    told = await Visit(host(), GET, pieces, headers=headers).answer()
    assert told.trailers["grpc-status"] == "0"
    endless = [frame(b"x" * 2000), *[b"x" * 1000] * 100]
    told = await Visit(host(max_request_bytes=1024), GET, endless, headers=headers, open=True).answer()
    assert told.trailers["grpc-status"] == "8"
    told = await Visit(host(stall_timeout=0.1), GET, [body[:7]], headers=headers, open=True).answer()
    assert told.trailers["grpc-status"] == "3"


async def test_without_trailers_grpc_is_told_what_it_needs_and_grpc_web_goes_on() -> None:
    told = await call(host(), GET, ASKED, extensions={})
    assert (told.status, told.headers["grpc-status"], told.body) == (200, "12", b"")
    assert told.headers["grpc-message"] == NO_TRAILERS
    told = await call(host(), GET, ASKED, media="application/grpc-web", extensions={})
    assert told.trailers["grpc-status"] == "0"


@pytest.mark.requirement("GRPC-11")
async def test_a_call_ends_with_its_deadline() -> None:
    service = FakeService()
    service.wait = asyncio.Event().wait()
    headers = {"grpc-timeout": "2S"}
    told = await call(host(service), STREAM, SAID, headers=headers)
    assert (told.trailers["grpc-status"], len(told.messages), service.closed) == ("4", 2, 1)
    assert service.calls[0][1].deadline is not None


@pytest.mark.parametrize("path", [GET, STREAM])
@pytest.mark.parametrize("fault", [None, TaskNotFoundError()])
@pytest.mark.requirement("GRPC-11")
async def test_a_deadline_that_runs_out_while_the_end_is_told_breaks_nothing_off(path: str, fault: Any) -> None:
    service, gate = FakeService(), asyncio.Event()
    service.fault, service.wait = fault, asyncio.ensure_future(gate.wait())
    headers = {"content-type": "application/grpc-web+proto", "grpc-timeout": "1S"}
    visit = Visit(host(service), path, [frame(SAID if path == STREAM else ASKED)], headers=headers)
    if path == STREAM:
        await until(lambda: len(visit.sent) == 2)  # both events leave together
    visit.blocked = asyncio.Event()
    gate.set()
    await asyncio.sleep(1.2)
    visit.blocked.set()
    told = await visit.answer()
    assert told.trailers["grpc-status"] == ("5" if fault else "0")
    assert len(told.messages) == (2 if path == STREAM else 0 if fault else 1)


@MEDIA
@pytest.mark.requirement("GRPC-11", "BL-35", "STREAM-06")
async def test_a_reader_that_leaves_ends_the_call_at_once(media: str) -> None:
    service = FakeService()
    service.wait = asyncio.Event().wait()
    body = base64.b64encode(frame(SAID)) if "text" in media else frame(SAID)
    visit = Visit(host(service), STREAM, [body], headers={"content-type": media})
    await until(lambda: len(visit.sent) == 2)  # both events leave together
    visit.left.set()
    await asyncio.wait_for(visit.task, 30)
    assert (service.closed, len(visit.sent)) == (1, 2)


async def test_a_reader_that_takes_nothing_is_owed_little_and_gets_all() -> None:
    service, given = FakeService(), -1

    async def many(request: Any, context: Any) -> AsyncIterator[Any]:
        nonlocal given
        for given in range(100):
            yield v1.StreamResponse(message=v1.Message(message_id=f"{given:10000}"))

    service.SendStreamingMessage = many
    visit = Visit(host(service), STREAM, [frame(SAID)], headers={"content-type": "application/grpc"})
    visit.blocked = asyncio.Event()
    await until(lambda: given >= 0)
    await asyncio.sleep(0.2)
    assert given < 20
    visit.blocked.set()
    told = await visit.answer()
    assert [int(v1.StreamResponse.FromString(each).message.message_id) for each in told.messages] == [*range(100)]
    assert told.trailers["grpc-status"] == "0"


async def test_a_reader_that_is_found_gone_by_a_write_is_no_error(caplog: pytest.LogCaptureFixture) -> None:
    service, more = FakeService(), asyncio.Event()

    async def endless(request: Any, context: Any) -> AsyncIterator[Any]:
        try:
            while True:
                yield service.events[0]
                await more.wait()
        finally:
            service.closed += 1

    service.SendStreamingMessage = endless
    visit = Visit(host(service), STREAM, [frame(SAID)], headers={"content-type": "application/grpc"})
    await until(lambda: len(visit.sent) == 2)
    visit.left.set()
    more.set()
    await asyncio.wait_for(visit.task, 30)
    assert service.closed == 1
    assert not caplog.records


@pytest.mark.requirement("STREAM-06")
async def test_a_stalled_reader_is_cut_off_alone() -> None:
    visit = Visit(host(stall_timeout=0.2), STREAM, [frame(SAID)], headers={"content-type": "application/grpc"})
    visit.blocked = asyncio.Event()
    with pytest.raises(TimeoutError):  # by which the server cuts the connection
        await asyncio.wait_for(visit.task, 30)


async def test_unknown_methods_and_calls_before_the_start_are_refused() -> None:
    assert (await call(host(), "/lf.a2a.v1.A2AService/No", ASKED)).trailers["grpc-status"] == "12"
    assert (await call(host(), GET, ASKED, verb="GET")).trailers["grpc-status"] == "12"
    assert (await call(host(serving=False), GET, ASKED)).trailers["grpc-status"] == "14"
    told = await call(host(), REFLECTION, b"", media="application/grpc-web")
    assert told.trailers["grpc-status"] == "12"


@pytest.mark.requirement("GRPC-16", "BL-40")
async def test_health_and_reflection_are_answered() -> None:
    application = host()
    asked = health_pb2.HealthCheckRequest(service="lf.a2a.v1.A2AService").SerializeToString()
    (answer,) = (await call(application, HEALTH + "Check", asked)).messages
    assert health_pb2.HealthCheckResponse.FromString(answer).status == health_pb2.HealthCheckResponse.SERVING
    visit = Visit(application, HEALTH + "Watch", [frame(asked)], headers={"content-type": "application/grpc"})
    await until(lambda: len(visit.sent) == 2)
    application.drain()
    await until(lambda: len(visit.sent) == 3)
    visit.left.set()
    await asyncio.wait_for(visit.task, 30)
    questions = [{"list_services": "*"}, {"file_containing_symbol": "lf.a2a.v1.Task"}, {}]
    body = b"".join(frame(reflection_pb2.ServerReflectionRequest(**each).SerializeToString()) for each in questions)
    pieces = [body[start : start + 7] for start in range(0, len(body), 7)]
    told = await Visit(application, REFLECTION, pieces, headers={"content-type": "application/grpc"}).answer()
    answers = [reflection_pb2.ServerReflectionResponse.FromString(each) for each in told.messages]
    kinds = ["list_services_response", "file_descriptor_response", "error_response"]
    assert [answer.WhichOneof("message_response") for answer in answers] == kinds
    assert told.trailers["grpc-status"] == "0"


async def test_broken_questions_for_reflection_are_refused() -> None:
    for body, code in ((frame(b"\xff"), "3"), (frame(b"")[:3], "3"), (frame(b"x", 1), "13")):
        visit = Visit(host(), REFLECTION, [body], headers={"content-type": "application/grpc"})
        assert (await visit.answer()).trailers["grpc-status"] == code


def echo() -> Agent:
    agent = Agent(name="Echo", description="Says it again.", version="1", skills=[])

    @agent.handle
    async def say(task: Any) -> str:
        return str(task.text)

    return agent


PARAMS = {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "hi"}]}}


async def test_a_mounted_application_answers_below_its_place_when_its_life_has_begun() -> None:
    server = Server(echo(), Options(grpc="", http="", store="memory:", cors_origins=("https://page.example",)))
    body = orjson.dumps(PARAMS)
    told = {"content-type": "application/json", "origin": "https://page.example"}
    place = {"root_path": "/deep/down"}

    async def send() -> Any:
        return await Visit(server.asgi(), "/deep/down/message:send", [body], headers=told, **place).answer()

    early = await send()
    assert (early.status, orjson.loads(early.body)["error"]["status"]) == (503, "UNAVAILABLE")
    async with server.lifespan():
        found = await send()
        assert found.status == 200
        assert orjson.loads(found.body)["task"]["artifacts"]
        assert found.headers["access-control-allow-origin"] == "https://page.example"
        card = await Visit(server.asgi(), "/deep/down/.well-known/agent-card.json", verb="GET", **place).answer()
        assert orjson.loads(card.body)["supportedInterfaces"][0]["url"] == "http://there:1/deep/down/"
        head = await Visit(server.asgi(), "/deep/down/healthz", verb="HEAD", **place).answer()
        assert (head.status, head.body, head.headers["content-length"]) == (200, b"", "3")
        web = {"origin": "https://page.example"}
        seen = await call(server.asgi(), "/deep/down" + SEND, SAID, "application/grpc-web", headers=web, **place)
        assert seen.trailers["grpc-status"] == "0"
        assert "Grpc-Status" in seen.headers["access-control-expose-headers"]
    assert (await send()).status == 503


async def test_the_lifespan_starts_and_stops_the_engine_and_tells_why_it_cannot() -> None:
    server = Server(echo(), Options(grpc="", http="", store="memory:"))
    told: asyncio.Queue[Any] = asyncio.Queue()
    said: asyncio.Queue[Any] = asyncio.Queue()

    async def lives(server: Server) -> Any:
        task = asyncio.ensure_future(server.asgi()({"type": "lifespan"}, told.get, said.put))
        told.put_nowait({"type": "lifespan.startup"})
        return task, await said.get()

    task, answer = await lives(server)
    assert (answer["type"], server.ready) == ("lifespan.startup.complete", True)
    told.put_nowait({"type": "lifespan.shutdown"})
    await task
    assert ((await said.get())["type"], server.ready) == ("lifespan.shutdown.complete", False)
    broken = Server(echo(), Options(grpc="", http="", store="sqlite:/nowhere/at/all.db"))
    task, answer = await lives(broken)
    assert answer["type"] == "lifespan.startup.failed"
    assert answer["message"]


async def test_an_event_stream_ends_with_its_reader_and_is_cut_off_when_it_stalls() -> None:
    agent = Agent(name="Long", description="Works.", version="1", skills=[])

    @agent.handle
    async def work(task: Any) -> None:
        await task.working("x" * 1000)
        await asyncio.Event().wait()

    options = Options(grpc="", http="", store="memory:", stall_timeout=0.2, grace=0, cancel_grace=0)
    told = {"content-type": "application/json"}
    async with Server(agent, options) as server:
        visit = Visit(server.asgi(), "/message:stream", [orjson.dumps(PARAMS)], headers=told)
        await until(lambda: len(visit.sent) > 1)
        visit.left.set()
        await asyncio.wait_for(visit.task, 30)
        await until(lambda: len(server.streams) == 0)
        visit = Visit(server.asgi(), "/message:stream", [orjson.dumps(PARAMS)], headers=told)
        visit.blocked = asyncio.Event()
        with pytest.raises(ConnectionAbortedError):
            await asyncio.wait_for(visit.task, 30)


async def test_bodies_over_http_are_bounded_and_websockets_closed() -> None:
    async with Server(echo(), Options(grpc="", http="", store="memory:", max_request_bytes=1024)) as server:
        told = {"content-type": "application/json"}
        for pieces, more in (([b"x" * 2000], {"content-length": "2000"}), ([b"x" * 600] * 9, {})):
            visit = Visit(server.asgi(), "/message:send", pieces, headers=told | more, open=True)
            assert (await visit.answer()).status == 413
        sent: list[Any] = []

        async def receive() -> Any:
            return {"type": "websocket.connect"}

        async def send(message: Any) -> None:
            sent.append(message)

        await server.asgi()({"type": "websocket"}, receive, send)
        assert [message["type"] for message in sent] == ["websocket.close"]


async def test_a_v03_call_is_refused_in_its_own_words() -> None:
    service = FakeService()
    service.fault = InvalidParamsError(violations=[("id", "is not good")])
    told = await call(host(service), "/a2a.v1.A2AService/GetTask", b"\n\x07tasks/1")
    assert told.trailers["grpc-status"] == "3"
    assert frames(told.body) == []


@pytest.mark.parametrize(
    ("subject", "name"),
    [
        ("CN=alice,O=Shop", "alice"),
        (r"O=a\,CN=admin,CN=bob", "bob"),
        (r"CN=a\2Cb\\", "a,b"),
        ("O=x+CN=c", "c"),
        ("", None),
    ],
)
@pytest.mark.requirement("AUTH-06")
async def test_a_certificate_is_known_by_its_common_name(subject: str, name: str | None) -> None:
    scope = {"path": "/", "headers": [], "extensions": {"tls": {"client_cert_name": subject}}}
    shown = Exchange(scope, Any, Any, Watch(1)).certificate()
    assert (shown and shown.common_name) == name
