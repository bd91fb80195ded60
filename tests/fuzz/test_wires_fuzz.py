"""Any bytes on the HTTP wires give an answer in the wire's own form; event streams read alike however they are cut."""

import asyncio
import contextlib
import itertools
import json
import os
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from a2a_grpc import errors
from a2a_grpc.bindings import jsonrpc, rest, sse
from a2a_grpc.bindings.wire import HttpReply, HttpRequest
from a2a_grpc.config import Options
from a2a_grpc.methods import METHODS
from a2a_grpc.v03_names import BY_JSONRPC, METHOD_NAMES
from tests.fakes import FakeService

EFFORT = int(os.environ.get("A2A_FUZZ", "10" if os.environ.get("A2A_CI") else "1"))
"""How much longer than on a developer's machine: in continuous integration, and as `make fuzz` wants it."""

MEMBERS = [
    *(
        "id",
        "name",
        "tenant",
        "message",
        "messageId",
        "contextId",
        "taskId",
        "role",
        "parts",
        "content",
        "kind",
        "text",
    ),
    *("data", "raw", "url", "file", "bytes", "configuration", "blocking", "historyLength", "metadata", "pageSize"),
    *("status", "request", "parent", "config", "pushNotificationConfig"),
]
WORDS = ["t1", "user", "ROLE_USER", "task", "text", "file", "data", "aGk=", "tasks/t1", "TASK_STATE_WORKING", ""]

scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(WORDS) | st.text(max_size=5)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(MEMBERS), inner, max_size=4),
    max_leaves=12,
)
methods = st.sampled_from([*METHODS["1.0"], *BY_JSONRPC, "no/such", ""])
envelopes = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": st.just("2.0") | scalars,
        "id": scalars | values,
        "method": methods | scalars,
        "params": values,
    },
)
requests = st.fixed_dictionaries(
    {"jsonrpc": st.just("2.0"), "id": st.integers(0, 9), "method": methods, "params": values}
)
bodies = st.binary(max_size=64) | (envelopes | requests | values).map(lambda value: json.dumps(value).encode())
headers = st.fixed_dictionaries(
    {},
    optional={
        "a2a-version": st.sampled_from(["1.0", "0.3", "", "9", "1.0, 0.3"]) | st.text(max_size=6),
        "content-type": st.sampled_from(["application/json", "application/a2a+json; charset=x", "text/plain"])
        | st.text(),
        "accept": st.sampled_from(["*/*", "application/json;q=0.1, application/a2a+json"]) | st.text(max_size=12),
        "a2a-extensions": st.text(max_size=12),
        "last-event-id": st.text(max_size=4) | st.integers().map(str),
    },
)
segments = st.sampled_from(
    [
        "tasks",
        "v1",
        "t1",
        "message:send",
        "message:stream",
        "t1:cancel",
        "t1:subscribe",
        "extendedAgentCard",
        "card",
        "",
    ]
    + ["pushNotificationConfigs", "%3A", "%ff", "%", ":", "a%2Fb", "."]
)
paths = st.lists(segments | st.text(max_size=4), max_size=5).map(lambda found: "/" + "/".join(found))
queries = st.text(max_size=12) | st.lists(
    st.tuples(st.sampled_from([*MEMBERS, "A2A-Version"]), st.text(max_size=5)).map("=".join), max_size=3
).map("&".join)


async def read(answer):
    """Status, and the documents of an answer, each of which must be JSON on one line."""
    if isinstance(answer, HttpReply):
        return answer.status, [json.loads(answer.body)]
    parser = sse.Parser()
    events = [event for chunk in [chunk async for chunk in answer.chunks] for event in parser.feed(chunk)]
    await answer.chunks.aclose()
    return answer.status, [json.loads(event.data) for event in events]


@pytest.mark.requirement("RPC-08", "BL-22", "BL-32")
@settings(max_examples=200 * EFFORT, deadline=None)
@given(body=bodies, head=headers, query=queries, verb=st.sampled_from(["POST", "POST", "GET"]))
def test_any_json_rpc_request_has_a_json_rpc_answer(body, head, query, verb):
    wire = jsonrpc.JsonRpc(FakeService(), Options())
    status, documents = asyncio.run(run(wire, HttpRequest(verb, "/", query, head, body)))
    assert status in (200, 405, 415)
    for document in documents:
        assert document["jsonrpc"] == "2.0" and ("result" in document) != ("error" in document)
        assert document.get("error", {}).get("code") != -32603, document


@pytest.mark.requirement("REST-18", "REST-24", "BL-32")
@settings(max_examples=200 * EFFORT, deadline=None)
@given(path=paths, body=bodies, head=headers, query=queries, verb=st.sampled_from(["GET", "POST", "DELETE", "PUT"]))
def test_any_rest_request_has_a_rest_answer(path, body, head, query, verb):
    wire = rest.Rest(FakeService(), Options())
    status, documents = asyncio.run(run(wire, HttpRequest(verb, path, query, head, body)))
    assert status in (200, 400, 404, 405, 415)
    assert all(("error" in document) == (status != 200) or "code" in document for document in documents), documents


async def run(wire, request):
    return await read(await wire.answer(request))


LINES = st.sampled_from(
    [b"data: a", b"data:", b"data", b":", b"id: 1", b"event: x", b"retry: 1", b"x", b"", b"", b"\xff"]
)
ENDS = st.sampled_from([b"\n", b"\r\n", b"\r"])
streams = st.lists(st.tuples(LINES, ENDS).map(b"".join), max_size=12).map(b"".join) | st.binary(max_size=40)


def simple(stream):
    """The events of a stream by the plainest reading of the rules."""
    events, data, last, name = [], [], "", ""
    for line in re.split(b"\r\n|\r|\n", stream.removeprefix(b"\xef\xbb\xbf"))[:-1]:
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if not line:
            events += [(b"\n".join(data), last, name)] if data else []
            data, name = [], ""
        elif field == b"data":
            data.append(value)
        elif field == b"id" and b"\0" not in value:
            last = value.decode("utf-8", "replace")
        elif field == b"event":
            name = value.decode("utf-8", "replace")
    return events


@pytest.mark.requirement("SSE-02")
@settings(max_examples=300 * EFFORT, deadline=None)
@given(stream=streams, cuts=st.lists(st.integers(0, 200), max_size=6))
def test_an_event_stream_reads_alike_however_it_is_cut(stream, cuts):
    edges = sorted({min(cut, len(stream)) for cut in (0, *cuts, len(stream))})
    parser = sse.Parser()
    pieces = [stream[start:stop] for start, stop in itertools.pairwise(edges)]
    assert [event for piece in pieces for event in parser.feed(piece)] == simple(stream)


@pytest.mark.requirement("ERR-16")
@settings(max_examples=200 * EFFORT, deadline=None)
@given(body=bodies, status=st.sampled_from([200, 204, 302, 400, 404, 500]), version=st.sampled_from(["1.0", "0.3"]))
def test_a_client_takes_any_reply_as_an_answer_or_an_error(body, status, version):
    for operation in METHODS["1.0"] if version == "1.0" else METHOD_NAMES:
        for read_it, *given_it in (
            (jsonrpc.result, operation, body, version),
            (rest.result, operation, status, {}, body, version),
            (rest.event, operation, body, version),
        ):
            with contextlib.suppress(errors.A2AError):
                read_it(*given_it)
