"""The gRPC host over real sockets, in front of a small servicer."""

import asyncio
import contextlib
import logging
import struct
import time

import grpc
import grpc.aio
import pytest
from a2a_stubs import google, v03, v03_grpc, v1, v1_grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from a2a_grpc import errors
from a2a_grpc.bindings import rpc as binding_module
from a2a_grpc.bindings.grpc import GrpcBinding, GrpcHost, server_options
from a2a_grpc.bindings.rpc import cut, status_details
from a2a_grpc.bindings.streams import Streams
from a2a_grpc.config import Options
from a2a_grpc.python310_asyncio import count_cancels
from a2a_grpc.testing import until

SECRET = "dsn=db://user:pw@host"
REQUEST = v1.SendMessageRequest(message=v1.Message(message_id="m", role="ROLE_USER", parts=[v1.Part(text="hi")]))


class Fake(v1_grpc.A2AServiceServicer):
    """Answers what the test says; keeps the calls it saw and how many of its generators are open."""

    def __init__(self, answer=None, events=None):
        self.answer = answer or (lambda request, call: v1.Task(id=getattr(request, "id", "t")))
        self.events = events
        self.calls = []
        self.open = 0

    async def GetTask(self, request, call):
        self.calls.append(call)
        found = self.answer(request, call)
        return await found if asyncio.iscoroutine(found) else found

    async def SendMessage(self, request, call):
        self.calls.append(call)
        return v1.SendMessageResponse(task=v1.Task(id="t", status=v1.TaskStatus(state="TASK_STATE_COMPLETED")))

    async def SendStreamingMessage(self, request, call):
        self.calls.append(call)
        self.open += 1
        try:
            async for event in self.events(request, call):
                yield event
        finally:
            self.open -= 1


def status_event(state="TASK_STATE_WORKING", size=0):
    text = v1.Message(message_id="s", role="ROLE_AGENT", parts=[v1.Part(text="x" * size)])
    update = v1.TaskStatusUpdateEvent(
        task_id="t", context_id="c", status=v1.TaskStatus(state=state, message=text if size else None)
    )
    return v1.StreamResponse(status_update=update)


@contextlib.asynccontextmanager
async def serving(servicer, **chosen):
    options = Options(grpc="127.0.0.1:0", **chosen)
    streams = Streams(options.max_streams)
    count_cancels(asyncio.get_running_loop())
    host = GrpcHost(GrpcBinding(servicer, options, streams), options)
    await host.start()
    try:
        async with grpc.aio.insecure_channel(host.address) as channel:
            channel.stub, channel.streams, channel.host = v1_grpc.A2AServiceStub(channel), streams, host
            yield channel
    finally:
        await host.stop(0)


async def failure(call):
    """The error of a call, with its status details unpacked."""
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    fault = caught.value
    trailers = dict(fault.trailing_metadata())
    found = google.Status.FromString(trailers.get("grpc-status-details-bin", b""))
    fault.inner = found
    for kind in (google.ErrorInfo, google.BadRequest, google.RetryInfo):
        packed = [detail for detail in found.details if detail.Is(kind.DESCRIPTOR)]
        value = kind.FromString(packed[0].value) if packed else None
        setattr(fault, kind.DESCRIPTOR.name, value)
    fault.trailers = trailers
    return fault


async def collect(call):
    return [event async for event in call]


async def drained(call):
    """Read to the end of a stream, whatever its status."""
    with contextlib.suppress(grpc.aio.AioRpcError):
        while await call.read() is not grpc.aio.EOF:
            pass


# -- what the servicer learns


@pytest.mark.requirement("GRPC-01", "GRPC-03", "GRPC-04", "GRPC-05", "TENANT-04", "BL-33")
async def test_the_servicer_sees_tenant_metadata_extensions_deadline_and_resume_position():
    fake = Fake()
    metadata = (
        ("a2a-version", "1.0"),
        ("a2a-extensions", "urn:a, urn:b"),
        ("a2a-extensions", "urn:c"),
        ("x-a2a-extensions", "urn:b,urn:d"),
        ("last-event-id", "17"),
        ("secret-bin", b"\x00\xff"),
    )
    async with serving(fake) as channel:
        task = await channel.stub.GetTask(v1.GetTaskRequest(id="7", tenant="acme"), metadata=metadata, timeout=60)
        await channel.stub.GetTask(v1.GetTaskRequest(id="8"))
    assert task.id == "7"
    first, second = fake.calls
    assert (first.operation, first.binding, first.version, first.tenant) == ("GetTask", "GRPC", "1.0", "acme")
    assert first.extensions == ("urn:a", "urn:b", "urn:c", "urn:d")
    assert first.resume == 17
    assert first.metadata["a2a-extensions"] == "urn:a, urn:b, urn:c"
    assert "secret-bin" not in first.metadata
    assert 0 < first.deadline - time.monotonic() < 61
    assert second.deadline is None and second.resume is None and second.extensions == ()


@pytest.mark.requirement("EXT-02", "GRPC-04")
async def test_callers_who_differ_in_one_value_of_their_metadata_are_told_apart():
    fake, told = Fake(), ["urn:a", "urn:a", "urn:b", "urn:a"]
    async with serving(fake) as channel:
        for uri in told:
            await channel.stub.GetTask(REQUEST, metadata=(("a2a-version", "1.0"), ("a2a-extensions", uri)))
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await channel.stub.GetTask(REQUEST, metadata=(("a2a-version", "9.9"), ("a2a-extensions", "urn:a")))
    assert [call.extensions for call in fake.calls] == [(uri,) for uri in told]
    assert [call.metadata["a2a-extensions"] for call in fake.calls] == told
    assert "9.9" in caught.value.details()


@pytest.mark.requirement("GRPC-14", "EXT-05")
async def test_activated_extensions_come_back_in_initial_metadata():
    def answer(request, call):
        call.activated = ("urn:a", "urn:b")
        return v1.Task(id="t")

    async def events(request, call):
        call.activated = ("urn:s",)
        yield status_event()

    async with serving(Fake(answer, events)) as channel:
        call = channel.stub.GetTask(v1.GetTaskRequest(id="1"))
        assert dict(await call.initial_metadata())["a2a-extensions"] == "urn:a, urn:b"
        await call
        call = channel.stub.SendStreamingMessage(REQUEST)
        assert len(await collect(call)) == 1
        assert dict(await call.initial_metadata())["a2a-extensions"] == "urn:s"


@pytest.mark.requirement("GRPC-06", "VER-04", "VER-05", "VER-12", "I-09", "BL-19")
@pytest.mark.parametrize(
    ("asked", "strict", "accepted"),
    [
        (None, False, True),
        ("", False, True),
        ("1.0", False, True),
        ("1.0.7", False, True),
        ("0.3", False, False),
        ("99.0", False, False),
        ("1.1", False, False),
        ("1", False, False),
        ("abc", False, False),
        (None, True, False),
        ("1.0", True, True),
    ],
)
async def test_the_package_fixes_the_version_and_metadata_may_only_agree(asked, strict, accepted):
    metadata = () if asked is None else (("a2a-version", asked),)
    async with serving(Fake(), strict_version=strict) as channel:
        call = channel.stub.GetTask(v1.GetTaskRequest(id="1"), metadata=metadata)
        if accepted:
            assert (await call).id == "1"
            return
        fault = await failure(call)
    assert fault.code() == grpc.StatusCode.FAILED_PRECONDITION
    assert fault.ErrorInfo.reason == "VERSION_NOT_SUPPORTED"
    assert fault.ErrorInfo.domain == "a2a-protocol.org"
    assert "1.0" in fault.ErrorInfo.metadata["supportedVersions"]


# -- errors


@pytest.mark.requirement("GRPC-07", "ERR-01", "ERR-04", "I-02")
@pytest.mark.parametrize("profile", ["1.0.1", "1.0.0"])
async def test_every_error_has_its_status_text_and_reason(profile):
    raised = iter(sorted(errors.BY_REASON.values(), key=lambda kind: kind.__name__))

    async def answer(request, call):
        raise next(raised)

    async with serving(Fake(answer), error_profile=profile) as channel:
        for kind in sorted(errors.BY_REASON.values(), key=lambda kind: kind.__name__):
            fault = await failure(channel.stub.GetTask(v1.GetTaskRequest(id="1")))
            code = kind().status(profile)[0]
            assert fault.code().value[0] == code == fault.inner.code
            assert fault.details() == kind.text == fault.inner.message
            assert (fault.ErrorInfo.reason, fault.ErrorInfo.domain) == (kind.reason, errors.DOMAIN)
            assert ("www-authenticate" in fault.trailers) == (kind is errors.UnauthenticatedError)


@pytest.mark.requirement("GRPC-07", "ERR-06", "ERR-10", "GRPC-10")
async def test_details_name_the_fields_and_the_delay_and_no_message_precedes_an_early_error():
    async def events(request, call):
        raise errors.InvalidParamsError(
            violations=[("message.parts", "is required")], metadata={"taskId": "9"}, retry_after=1.5
        )
        yield

    async with serving(Fake(events=events)) as channel:
        fault = await failure(collect(channel.stub.SendStreamingMessage(REQUEST)))
    assert fault.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert [(v.field, v.description) for v in fault.BadRequest.field_violations] == [("message.parts", "is required")]
    assert dict(fault.ErrorInfo.metadata) == {"taskId": "9"}
    assert fault.RetryInfo.retry_delay.ToNanoseconds() == 1_500_000_000


@pytest.mark.requirement("BL-30")
@pytest.mark.parametrize(
    "text", ["x" * 30_000, "日本語テキスト" * 5000, "line\nbreak%\n" * 3000, "😀" * 9000, "\ud800" * 9000]
)
async def test_long_errors_keep_their_status_and_are_cut_on_a_character_boundary(text):
    async def answer(request, call):
        raise errors.InvalidParamsError(
            text,
            violations=[(f"message.parts[{n}].{text[:300]}", text) for n in range(200)],
            metadata={f"key{n}": text for n in range(50)},
        )

    async with serving(Fake(answer)) as channel:
        fault = await failure(channel.stub.GetTask(v1.GetTaskRequest(id="1")))
    assert fault.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert fault.details().endswith(" [cut]")
    assert text.encode("utf-8", "replace").decode().startswith(fault.details().removesuffix(" [cut]"))
    encoded = sum(1 if 0x20 <= byte <= 0x7E and byte != 0x25 else 3 for byte in fault.details().encode())
    assert encoded + len(fault.trailers["grpc-status-details-bin"]) * 4 / 3 < 7 * 1024
    last = fault.BadRequest.field_violations[-1]
    assert last.description == f"{201 - len(fault.BadRequest.field_violations)} more [cut]"


@pytest.mark.requirement("BL-30")
def test_many_short_violations_fill_the_room_there_is():
    error = errors.InvalidParamsError(violations=[(f"parts[{n}]", "is required") for n in range(200)])
    details = status_details(error, 3, error.message)
    assert binding_module.DETAIL_LIMIT * 0.9 < len(details) <= binding_module.DETAIL_LIMIT
    few = errors.InvalidParamsError(violations=[(f"parts[{n}]", "is required") for n in range(20)])
    assert b"[cut]" not in status_details(few, 3, few.message)


@pytest.mark.requirement("BL-30")
def test_a_text_that_just_fits_is_not_cut():
    assert cut("a" * 100, 100) == "a" * 100
    assert cut("a" * 101, 100) == "a" * 94 + " [cut]"
    assert cut("é" * 50, 100) == "é" * 50
    assert cut("é" * 51, 100) == "é" * 47 + " [cut]"


@pytest.mark.requirement("BL-28", "ERR-11")
async def test_the_text_of_an_exception_stays_in_the_log(caplog):
    async def answer(request, call):
        raise RuntimeError(SECRET)

    async def events(request, call):
        yield status_event()
        raise RuntimeError(SECRET)

    async with serving(Fake(answer, events)) as channel:
        faults = [
            await failure(channel.stub.GetTask(v1.GetTaskRequest(id="1"))),
            await failure(collect(channel.stub.SendStreamingMessage(REQUEST))),
        ]
    for fault in faults:
        assert fault.code() == grpc.StatusCode.INTERNAL
        assert SECRET not in f"{fault.details()}{fault.trailers}"
        reference = fault.ErrorInfo.metadata["reference"]
        lines = [record for record in caplog.records if reference in record.getMessage()]
        assert len(lines) == 1 and SECRET in str(lines[0].exc_info[1])


@pytest.mark.requirement("BL-29")
async def test_a_cancellation_inside_gives_a_status_at_once():
    async def answer(request, call):
        raise asyncio.CancelledError

    async def events(request, call):
        yield status_event()
        inner = asyncio.create_task(asyncio.sleep(60))
        inner.cancel()
        await inner

    async with serving(Fake(answer, events)) as channel, asyncio.timeout(10):
        assert (await failure(channel.stub.GetTask(v1.GetTaskRequest(id="1")))).code() == grpc.StatusCode.INTERNAL
        fault = await failure(collect(channel.stub.SendStreamingMessage(REQUEST)))
        assert fault.code() == grpc.StatusCode.INTERNAL


# -- how calls end


async def quiet(request, call):
    yield status_event()
    await asyncio.sleep(600)


@pytest.mark.requirement("GRPC-11", "BL-35", "STREAM-04")
async def test_a_hundred_dropped_streams_leave_nothing_behind(caplog):
    caplog.set_level(logging.INFO)
    fake = Fake(events=quiet)
    async with serving(fake) as channel:
        for round_ in range(100):
            call = channel.stub.SendStreamingMessage(REQUEST, timeout=0.05 if round_ % 10 == 0 else None)
            with contextlib.suppress(grpc.aio.AioRpcError):  # a deadline may come before the first event
                await call.read()
            if round_ % 10:
                call.cancel()
        await until(lambda: not fake.open and not len(channel.streams))
        assert (await channel.stub.GetTask(v1.GetTaskRequest(id="1"))).id == "1"
    assert not [record for record in caplog.records if record.exc_info or record.levelno >= logging.WARNING]


@pytest.mark.requirement("STREAM-06", "BL-02")
async def test_a_stalled_reader_is_cut_off_alone(caplog):
    async def events(request, call):
        for _ in range(4000):
            yield status_event(size=65_536)

    async def slow(request, call):
        for _ in range(5):
            await asyncio.sleep(0.2)
            yield status_event()

    fake = Fake(events=lambda request, call: (slow if request.tenant else events)(request, call))
    async with serving(fake, stall_timeout=0.3) as channel:
        stalled = channel.stub.SendStreamingMessage(REQUEST)
        await stalled.read()
        other = v1.SendMessageRequest(tenant="slow")
        assert len(await collect(channel.stub.SendStreamingMessage(other))) == 5
        await until(lambda: not fake.open)
        await drained(stalled)
        assert await stalled.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
        await until(lambda: not len(channel.streams))
    assert len([record for record in caplog.records if "cut off" in record.getMessage()]) == 1


@pytest.mark.requirement("SEC-04", "BL-39")
async def test_past_the_limit_of_open_streams_a_call_is_refused_with_a_delay():
    fake = Fake(events=quiet)
    async with serving(fake, max_streams=2) as channel:
        held = [channel.stub.SendStreamingMessage(REQUEST) for _ in range(2)]
        for call in held:
            await call.read()
        fault = await failure(collect(channel.stub.SendStreamingMessage(REQUEST)))
        assert fault.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
        assert "2" in fault.details() and fault.RetryInfo.retry_delay.seconds == 1
        held[0].cancel()
        await until(lambda: len(channel.streams) == 1)
        assert (await channel.stub.SendStreamingMessage(REQUEST).read()).HasField("status_update")


@pytest.mark.requirement("BL-34")
async def test_stopping_lets_calls_finish_and_tells_open_streams():
    async def answer(request, call):
        await asyncio.sleep(0.2)
        return v1.Task(id="late")

    async with serving(Fake(answer, quiet)) as channel:
        health = health_pb2_grpc.HealthStub(channel)
        watch = health.Watch(health_pb2.HealthCheckRequest())
        assert (await watch.read()).status == health_pb2.HealthCheckResponse.SERVING
        stream = channel.stub.SendStreamingMessage(REQUEST)
        await stream.read()
        unary = asyncio.ensure_future(channel.stub.GetTask(v1.GetTaskRequest(id="1")))
        await until(lambda: len(channel.host._binding.rpcs.running) == 2)
        stopping = asyncio.create_task(channel.host.stop(1))
        assert (await watch.read()).status == health_pb2.HealthCheckResponse.NOT_SERVING
        assert (await unary).id == "late"
        await drained(stream)
        assert await stream.code() == grpc.StatusCode.UNAVAILABLE
        assert await stream.details() == "The server is stopping"
        assert await watch.code() == grpc.StatusCode.UNAVAILABLE and await watch.details() == "The server is stopping"
        await stopping


# -- limits and settings


@pytest.mark.requirement("GRPC-15", "BL-39")
async def test_the_request_limit_is_named_and_large_answers_pass():
    def answer(request, call):
        return v1.Task(id="t", history=[v1.Message(message_id="m", parts=[v1.Part(raw=bytes(5_000_000))])])

    async with serving(Fake(answer), max_request_bytes=100_000) as channel:
        fault = await failure(channel.stub.GetTask(v1.GetTaskRequest(id="x" * 100_001)))
        assert fault.code() == grpc.StatusCode.RESOURCE_EXHAUSTED and "100000" in fault.details()
        wide = grpc.aio.insecure_channel(channel.host.address, options=[("grpc.max_receive_message_length", -1)])
        async with wide:
            task = await v1_grpc.A2AServiceStub(wide).GetTask(v1.GetTaskRequest(id="x" * 90_000))
        assert len(task.history[0].parts[0].raw) == 5_000_000


@pytest.mark.requirement("BL-36", "BL-38")
def test_keepalive_settings_follow_the_options():
    found = dict(server_options(Options(keepalive=12.5)))
    assert found["grpc.keepalive_time_ms"] == 12_500
    assert found["grpc.http2.max_ping_strikes"] == 0
    assert found["grpc.http2.min_recv_ping_interval_without_data_ms"] == 5000
    assert found["grpc.so_reuseport"] == 0
    assert "grpc.keepalive_time_ms" not in dict(server_options(Options(keepalive=0)))


@pytest.mark.requirement("BL-38")
async def test_a_client_that_pings_all_the_time_is_not_thrown_off():
    def frame(kind, flags=0, payload=b""):
        return struct.pack(">I", len(payload))[1:] + bytes((kind, flags)) + bytes(4) + payload

    async with serving(Fake()) as channel, asyncio.timeout(20):
        reader, writer = await asyncio.open_connection(*channel.host.address.split(":"))
        writer.write(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4))
        writer.write(b"".join(frame(6, payload=struct.pack(">Q", n)) for n in range(50)))
        answered = 0
        while answered < 50:
            head = await reader.readexactly(9)
            payload = await reader.readexactly(int.from_bytes(head[:3], "big"))
            assert head[3] != 7, f"GOAWAY {payload!r}"
            answered += head[3] == 6 and head[4] == 1
        writer.close()


# -- health, own servers, logs


@pytest.mark.requirement("GRPC-16")
async def test_health_knows_the_server_and_each_service_and_turns_on_drain():
    async with serving(Fake()) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        for name in ("", "lf.a2a.v1.A2AService", "a2a.v1.A2AService"):
            found = await stub.Check(health_pb2.HealthCheckRequest(service=name))
            assert found.status == health_pb2.HealthCheckResponse.SERVING
        await channel.host.drain()
        for name in ("", "lf.a2a.v1.A2AService", "a2a.v1.A2AService"):
            found = await stub.Check(health_pb2.HealthCheckRequest(service=name))
            assert found.status == health_pb2.HealthCheckResponse.NOT_SERVING
        assert (await channel.stub.GetTask(v1.GetTaskRequest(id="1"))).id == "1"


@pytest.mark.requirement("GRPC-01", "V03-26")
async def test_the_binding_fits_a_server_of_the_users_own():
    options = Options()
    binding = GrpcBinding(Fake(), options, Streams(10))
    server = grpc.aio.server()
    v1_grpc.add_A2AServiceServicer_to_server(binding.services["1.0"], server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        assert (await v1_grpc.A2AServiceStub(channel).GetTask(v1.GetTaskRequest(id="5"))).id == "5"
        fault = await failure(v03_grpc.A2AServiceStub(channel).GetTask(v03.GetTaskRequest(name="tasks/5")))
        assert fault.code() == grpc.StatusCode.UNIMPLEMENTED
    await server.stop(None)


@pytest.mark.requirement("VER-07")
async def test_only_offered_versions_are_served():
    async with serving(Fake(), versions=("0.3",)) as channel:
        fault = await failure(channel.stub.GetTask(v1.GetTaskRequest(id="1")))
        assert fault.code() == grpc.StatusCode.UNIMPLEMENTED
        assert channel.host._binding.rpcs.names == ("a2a.v1.A2AService",)


async def test_a_taken_address_is_an_os_error():
    async with serving(Fake()) as channel:
        options = Options(grpc=channel.host.address)
        with pytest.raises(OSError, match="cannot listen"):
            await GrpcHost(GrpcBinding(Fake(), options, Streams(1)), options).start()
