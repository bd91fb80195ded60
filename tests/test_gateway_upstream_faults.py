"""What an upstream does wrong over gRPC, as callers of a gateway see it: the same on every wire and version, whatever
reads the streams, in calls and in streams, and the next call is served."""

import asyncio

import pytest
from a2a_stubs import v1

from a2a_grpc import errors
from a2a_grpc.call import V1
from a2a_grpc.client_auth import Channel
from a2a_grpc.gateway_way import UNREACHABLE
from tests.fronts import WIRES, asking, eventually, failure, gateway, wire_of
from tests.http2_peers import GOOD, HEAD, Peer, Talk, packed
from tests.test_client_http2 import BOTH, EVENT, FAULTS, Say, good, heads

LASTING = {("a status that is no number", "grpcio")}
"""What grpcio goes on to find in answers, since headers refer to those before."""

ANSWER = v1.SendMessageResponse(task=v1.Task(id="t")).SerializeToString()


async def empty(talk: Talk, stream: int) -> None:
    talk.head(stream)
    talk.tail(stream)


async def leaving(talk: Talk, stream: int) -> None:
    talk.goaway(stream)
    await right(talk, stream)


async def unseen(talk: Talk, stream: int) -> None:
    talk.peer.answer = behind(right)
    talk.goaway(0)


async def right(talk: Talk, stream: int) -> None:
    if talk.peer.seen[-1][":path"].endswith("SendStreamingMessage"):
        await good(talk, stream)
    else:
        talk.head(stream)
        talk.body(stream, packed(ANSWER))
        talk.tail(stream)


def behind(say: Say) -> Say:
    """A server that says that to what is sent, and knows nothing else."""

    async def answer(talk: Talk, stream: int) -> None:
        known = talk.peer.seen[-1][":path"].endswith("Message")
        await (say if known else heads(*HEAD, ("grpc-status", "12")))(talk, stream)

    return answer


@BOTH
@pytest.mark.requirement("EQ-02", "ERR-16")
@pytest.mark.parametrize("name", FAULTS)
async def test_a_fault_is_the_same_error_on_every_wire_and_the_next_call_is_served(name: str, streams: str) -> None:
    say, kind = FAULTS[name]
    peer = Peer(behind(say))
    async with peer.listening() as address, gateway(address, channel=Channel(streams=streams)) as front:
        for binding, version in WIRES:
            async with wire_of(front, binding, version) as client:

                async def read() -> list[v1.StreamResponse]:
                    return [event async for event in client.events("SendStreamingMessage", asking("x"))]

                async def send() -> v1.SendMessageResponse:
                    return await client.call("SendMessage", asking("x"))

                for asked in (read, send):
                    fault = await failure(asked())
                    while type(fault) is errors.UnavailableError is not kind:  # as below
                        await asyncio.sleep(0.05)
                        fault = await failure(asked())
                    assert type(fault) is kind
                    if kind is errors.UnavailableError:
                        assert fault.message == UNREACHABLE
                    assert address not in fault.message
                peer.answer = behind(right)

                async def served() -> bool:
                    try:
                        return await read() == [EVENT]
                    except errors.UnavailableError:  # for a moment after a connection that was lost
                        return False

                if version == V1 and (name, streams) not in LASTING:
                    await eventually(served)
                peer.answer = behind(say)


@BOTH
@pytest.mark.parametrize("say", [empty, heads(*HEAD, *GOOD)], ids=["empty", "trailers only"])
async def test_a_stream_without_events_ends_in_order_and_a_call_without_an_answer_does_not(
    say: Say, streams: str
) -> None:
    peer = Peer(behind(say))
    async with peer.listening() as address, gateway(address, channel=Channel(streams=streams)) as front:
        for binding, version in WIRES:
            async with wire_of(front, binding, version) as client:
                assert [event async for event in client.events("SendStreamingMessage", asking("x"))] == []
                fault = await failure(client.call("SendMessage", asking("x")))
                assert type(fault) is errors.InvalidAgentResponseError


@BOTH
@pytest.mark.parametrize("say", [leaving, unseen])
async def test_an_upstream_that_leaves_in_order_is_not_noticed(say: Say, streams: str) -> None:
    peer = Peer(behind(right))
    async with peer.listening() as address, gateway(address, channel=Channel(streams=streams)) as front:
        for binding, version in WIRES:
            async with wire_of(front, binding, version) as client:
                for _ in range(3):
                    peer.answer = behind(say)
                    events = [event async for event in client.events("SendStreamingMessage", asking("x"))]
                    assert events[0] == EVENT
                    assert len(events) == (1 if version == V1 else 2)  # in v0.3 the last is said to be that
                    peer.answer = behind(say)
                    assert (await client.call("SendMessage", asking("x"))).task.id == "t"
    assert len(peer.talks) > 10
