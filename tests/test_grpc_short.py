"""What is left out of grpcio's way: wake-ups of the loop for nothing, and metadata that are made twice."""

import asyncio
import socket
from functools import partial

import grpc
import grpc.aio
import pytest
from a2a_stubs import v1, v1_grpc

from a2a_grpc.bindings import grpc as binding_module
from a2a_grpc.bindings.grpc import GrpcBinding, GrpcHost, joined, together
from a2a_grpc.bindings.streams import Streams
from a2a_grpc.config import Options
from a2a_grpc.python310_asyncio import Runner
from a2a_grpc.testing import until
from tests.test_grpc_binding import REQUEST, Fake, collect, serving


class PollerCompletionQueue:
    """What grpcio does: things happen, each with a byte; one byte is read, and everything is dealt with."""

    def __init__(self):
        self.reading, self.writing = socket.socketpair()
        self.happened, self.done, self.woken = [], [], 0

    def happen(self, *what):
        for each in what:
            self.happened.append(each)
            self.writing.send(b"1")

    def _handle_events(self, loop):
        self.woken += 1
        assert self.reading.recv(1) and loop is asyncio.get_running_loop()
        self.done += self.happened
        self.happened.clear()

    def listen(self, *words):
        """Tell the loop as grpcio does."""
        loop = asyncio.get_running_loop()
        loop.add_reader(self.reading, partial(self._handle_events, loop), *words)

    def close(self):
        asyncio.get_running_loop().remove_reader(self.reading)
        self.reading.close()
        self.writing.close()


@pytest.fixture
async def queue():
    made = PollerCompletionQueue()
    yield made
    made.close()


async def test_a_hundred_things_that_happen_in_one_turn_wake_the_loop_once(queue):
    with joined():
        queue.listen()
    queue.happen(*range(100))
    await until(lambda: len(queue.done) == 100)
    queue.happen("last")
    await until(lambda: queue.done[-1] == "last")
    assert queue.woken == 2
    queue.reading.setblocking(False)
    with pytest.raises(BlockingIOError):
        queue.reading.recv(1)


async def test_a_wake_up_for_nothing_does_not_hold_the_loop(queue):
    woken = together(queue.reading, partial(queue._handle_events, asyncio.get_running_loop()))
    woken()
    queue.happen(1, 2)
    woken()
    woken()
    assert queue.done == [1, 2] and queue.woken == 1


async def test_more_than_is_taken_at_a_time_is_dealt_with(queue, monkeypatch):
    monkeypatch.setattr(binding_module, "MOST_BYTES", 10)
    with joined():
        queue.listen()
    queue.happen(*range(25))
    await until(lambda: queue.woken == 3)
    assert queue.done == list(range(25))


async def test_other_readers_and_the_loop_afterwards_are_left_alone(queue):
    loop, told = asyncio.get_running_loop(), []
    with joined():
        loop.add_reader(queue.reading, lambda *words: told.append((queue.reading.recv(1), *words)), "word")
    queue.happen(1, 2, 3)
    await until(lambda: len(told) == 3)
    assert told == [(b"1", "word")] * 3
    queue.listen()
    queue.happen(4, 5, 6)
    await until(lambda: queue.woken == 3)


async def test_a_loop_with_a_way_of_its_own_keeps_it(queue):
    loop, seen = asyncio.get_running_loop(), []
    add = loop.add_reader

    def own(file, *words):
        seen.append(file)
        add(file, *words)

    loop.add_reader = own
    with joined():
        queue.listen()
    assert seen == [queue.reading] and loop.add_reader is own
    del loop.add_reader


async def served_and_called():
    options = Options(grpc="127.0.0.1:0", http="")
    host = GrpcHost(GrpcBinding(v1_grpc.A2AServiceServicer(), options, Streams(9)), options)
    await host.start()
    async with grpc.aio.insecure_channel(host.address) as channel:
        ask = channel.unary_unary("/grpc.health.v1.Health/Check")
        answers = await asyncio.gather(*[ask(b"") for _ in range(50)])
    await host.stop(0)
    return set(answers)


@pytest.mark.parametrize("name", ["asyncio", "uvloop"])
def test_a_server_is_woken_so_on_either_loop(monkeypatch, name):
    module, seen = pytest.importorskip(name), []

    def watched(file, handler):
        seen.append(file)
        return together(file, handler)

    monkeypatch.setattr(binding_module, "together", watched)
    with Runner(loop_factory=module.new_event_loop) as runner:
        assert runner.run(served_and_called()) == {b"\x08\x01"}
    assert len(seen) == 1


class Kept(grpc.aio.ServerInterceptor):
    """Asks for the handler of a method once."""

    def __init__(self):
        self.handlers = {}

    async def intercept_service(self, continuation, details):
        if details.method not in self.handlers:
            self.handlers[details.method] = await continuation(details)
        return self.handlers[details.method]


@pytest.mark.requirement("GRPC-04", "AUTH-01")
@pytest.mark.parametrize("interceptors", [[], [Kept()]], ids=["none", "one that keeps handlers"])
async def test_each_call_is_known_by_its_own_metadata(interceptors):
    fake = Fake(events=lambda request, call: one_event())

    async def one_event():
        yield v1.StreamResponse(task=v1.Task(id="t"))

    server = grpc.aio.server(interceptors=interceptors)
    GrpcBinding(fake, Options(), Streams(99)).add_to_server(server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        stub = v1_grpc.A2AServiceStub(channel)
        for name in "abc":
            told = [("a2a-version", "1.0"), ("authorization", name)]
            await stub.GetTask(v1.GetTaskRequest(id="t"), metadata=told)
            assert fake.calls[-1].metadata["authorization"] == name
            await collect(stub.SendStreamingMessage(REQUEST, metadata=told))
            assert fake.calls[-1].metadata["authorization"] == name
        await asyncio.gather(
            *[
                stub.GetTask(v1.GetTaskRequest(id=str(n)), metadata=[("a2a-version", "1.0"), ("number", str(n))])
                for n in range(20)
            ]
        )
    assert sorted(int(call.metadata["number"]) for call in fake.calls[-20:]) == list(range(20))
    await server.stop(0)


# -- callers who leave


@pytest.mark.requirement("GRPC-11", "BL-35")
async def test_a_caller_who_leaves_a_large_answer_unread_is_no_error_in_the_log(caplog):
    large = v1.Task(id="t" * 6_000_000)

    def leave(address):
        """Ask as another process does, who reads no answer as large as this."""
        with grpc.insecure_channel(address) as channel:
            stub = v1_grpc.A2AServiceStub(channel)
            for round_ in range(100):
                with pytest.raises(grpc.RpcError):
                    stub.GetTask(REQUEST, timeout=0.01 if round_ % 2 else None)

    async with serving(Fake(lambda request, call: large)) as channel:
        await asyncio.to_thread(leave, channel.host.address)
    assert not caplog.records
