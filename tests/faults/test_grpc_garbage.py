"""Bytes on the gRPC port that are no proper request: a status that says so, at once, and nothing of the inside."""

import asyncio
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc.aio
import pytest
from a2a_stubs import v03, v03_grpc, v1, v1_grpc

from a2a_grpc.call import GRPC
from a2a_grpc.errors import InvalidParamsError
from a2a_grpc.testing import serve
from tests.faults import workers
from tests.faults.processes import channel_to, clients, message, numbered, read_grpc, reason_of, seeded, texts, within

METHODS = [*v1_grpc.METHODS, *v03_grpc.METHODS]
INSIDE = ("DecodeError", "Traceback", "xception", "google.protobuf", "Unexpected", "deserializ", "line ")
"""What a text might hold that was made for nobody's eyes."""
PROPER = {
    grpc.StatusCode.INVALID_ARGUMENT,
    grpc.StatusCode.NOT_FOUND,
    grpc.StatusCode.FAILED_PRECONDITION,
    grpc.StatusCode.UNIMPLEMENTED,
    grpc.StatusCode.UNAUTHENTICATED,
}
GARBAGE = {
    "a number without an end": b"\x80" * 11,
    "a length past the end": b"\x0a\x7fabc",
    "the end of a group that never began": b"\x0c",
    "field number nought": b"\x02\x00",
    "no UTF-8": b"\x0a\x02\xff\xfe",
}
MUTANTS = 400


async def outcome(channel: grpc.aio.Channel, method: Any, body: bytes) -> grpc.aio.AioRpcError | None:
    """What a call with these bytes ends with, None when it goes well."""
    make: Callable[..., Any] = channel.unary_stream if method.server_streaming else channel.unary_unary
    call = make(method.path)(body)
    if method.server_streaming:
        return (await read_grpc(call))[1]
    try:
        await within(call)
    except grpc.aio.AioRpcError as fault:
        return fault
    return None


def check_public(fault: grpc.aio.AioRpcError) -> None:
    told = f"{fault.details()} {fault.trailing_metadata()}"
    assert not [word for word in INSIDE if word in told], told


@pytest.mark.requirement("BL-28", "GRPC-07", "GRPC-12")
@pytest.mark.parametrize("body", GARBAGE.values(), ids=list(GARBAGE))
async def test_bytes_that_cannot_be_read_are_an_invalid_argument(body: bytes, caplog: pytest.LogCaptureFixture) -> None:
    async with (
        serve(workers.worker, push_notifications=True) as server,
        channel_to(server.grpc_address) as channel,
    ):
        for method in METHODS:
            fault = await outcome(channel, method, body)
            if method.input.DESCRIPTOR.fields:  # a message without fields takes whatever is unknown to it
                assert fault is not None and fault.code() == grpc.StatusCode.INVALID_ARGUMENT, method
                assert reason_of(fault) == InvalidParamsError.reason
            if fault is not None:
                check_public(fault)
    assert not caplog.records


def field(number: int, body: bytes) -> bytes:
    """A length-delimited field as protobuf writes it."""
    size, out = len(body), bytearray()
    while size > 127:
        out.append(size & 127 | 128)
        size >>= 7
    return bytes((number << 3 | 2, *out, size)) + body


def struct(levels: int, lists: bool) -> bytes:
    """A google.protobuf.Struct whose values nest that deep, as objects or as lists; made by hand, as the library
    refuses to write what it would not read."""
    value = b"\x1a\x01x"
    for _ in range(levels - 1):
        value = field(6, field(1, value)) if lists else field(5, field(1, field(1, b"k") + field(2, value)))
    return field(1, field(1, b"k") + field(2, value))


def requests_with(deep: bytes) -> list[tuple[Any, bytes]]:
    """Calls that hold this Struct wherever one may stand: as data, and as metadata of all that has some."""
    send, cancel = v1_grpc.METHODS[0], v1_grpc.METHODS[4]
    old = v03_grpc.METHODS[0]
    plain = message("count 1").message.SerializeToString()
    said = v03.Message(message_id="m", role="ROLE_USER", content=[v03.Part(text="count 1")]).SerializeToString()
    return [
        (send, field(2, plain + field(5, field(4, field(5, deep))))),
        (send, field(2, plain + field(5, field(1, b"x") + field(5, deep)))),
        (send, field(2, plain + field(6, deep))),
        (send, field(2, plain) + field(4, deep)),
        (cancel, field(2, b"no-such-task") + field(3, deep)),
        (old, field(1, said + field(5, field(3, field(1, deep))))),
        (old, field(1, said) + field(3, deep)),
    ]


DEEPEST = {False: 30, True: 44}
"""Levels of objects and of lists that are taken: what the 100 levels of protobuf leave for them."""


@pytest.mark.requirement("BL-27", "JSON-18", "BL-28")
@pytest.mark.parametrize("lists", [False, True], ids=["objects", "lists"])
@pytest.mark.parametrize("levels", [0, 1, 2, 3, 10, 30, 60, 5000])
async def test_values_nested_too_deep_are_an_invalid_argument(
    levels: int, lists: bool, caplog: pytest.LogCaptureFixture
) -> None:
    deep = struct(DEEPEST[lists] + 1 + levels, lists)
    async with serve(workers.worker) as server, clients(server) as agents:
        async with channel_to(server.grpc_address) as channel:
            for method, body in requests_with(deep):
                fault = await outcome(channel, method, body)
                # What a cancel holds is shown to nobody, so it may be as deep as can be read.
                allowed = {
                    grpc.StatusCode.INVALID_ARGUMENT,
                    *[grpc.StatusCode.NOT_FOUND] * (method.name == "CancelTask"),
                }
                assert fault is not None and fault.code() in allowed
                check_public(fault)
        assert texts((await agents[GRPC].send(message("parts 1 0"))).task) == ["part 0"]
        assert len((await agents[GRPC].list()).tasks) == 1
    assert not caplog.records


@pytest.mark.requirement("BL-27", "JSON-18", "BL-26")
@pytest.mark.parametrize("lists", [False, True], ids=["objects", "lists"])
async def test_the_deepest_value_that_is_taken_can_be_read_back_everywhere(tmp_path: Path, lists: bool) -> None:
    async with serve(workers.worker, store=f"sqlite:{tmp_path / 'a2a.db'}") as server, clients(server) as agents:
        async with channel_to(server.grpc_address) as channel:
            for method, body in requests_with(struct(DEEPEST[lists], lists)):
                if method.name == "SendMessage":
                    assert await outcome(channel, method, body) is None
        everything = v1.ListTasksRequest(history_length=10, include_artifacts=True)
        tasks = (await agents[GRPC].list(everything)).tasks
        assert len(tasks) == 6
        for agent in agents.values():
            assert (await agent.list(everything)).tasks == tasks
            for task in tasks:
                assert await agent.get(task.id) == task
                events, fault = await numbered(agent.subscribe(task.id, "1"))
                assert fault is None and events


@pytest.mark.requirement("BL-39", "GRPC-15")
async def test_a_request_past_the_limit_is_refused_and_the_connection_goes_on() -> None:
    async with (
        serve(workers.worker, max_request_bytes=100_000) as server,
        channel_to(server.grpc_address) as channel,
    ):
        for method in (*v1_grpc.METHODS[:2], *v03_grpc.METHODS[:2]):
            fault = await outcome(channel, method, field(15, bytes(200_000)))
            assert fault is not None and fault.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
            assert "100000" in str(fault.details())
        answer = await within(v1_grpc.A2AServiceStub(channel).SendMessage(message("parts 1 0")))
        assert texts(answer.task) == ["part 0"]


def mutant(chance: random.Random, body: bytes) -> bytes:
    """The bytes with a few of them changed, lost, doubled or made up."""
    changed = bytearray(body)
    for _ in range(chance.randrange(1, 5)):
        place = chance.randrange(len(changed) + 1)
        changed[place : place + chance.randrange(4)] = chance.randbytes(chance.randrange(4))
    return bytes(changed)


@pytest.mark.requirement("BL-28", "BL-31", "GRPC-12")
async def test_broken_requests_of_any_kind_get_a_proper_status(caplog: pytest.LogCaptureFixture) -> None:
    chance = seeded()
    seeds = [body for _, body in requests_with(struct(3, False))] + [message("parts 2 0").SerializeToString(), b""]
    async with (
        serve(workers.worker, push_notifications=True) as server,
        channel_to(server.grpc_address) as channel,
    ):

        async def attack() -> None:
            method, body = chance.choice(METHODS), mutant(chance, chance.choice(seeds))
            fault = await outcome(channel, method, body)
            if fault is not None:
                assert fault.code() in PROPER, (method.path, body, fault)
                check_public(fault)

        for _ in range(0, MUTANTS, 20):
            await asyncio.gather(*(attack() for _ in range(20)))
    # The agent may well stumble over what it is told to do; nothing else may.
    assert not [record.getMessage() for record in caplog.records if "'Worker' raised" not in record.getMessage()]
