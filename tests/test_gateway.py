"""The gateway: an agent behind it answers as it does directly, whatever lies between; its card; the command.

What an operation means through a gateway is the contract suite's business, which has a place `gateway`.
"""

import asyncio
import json
import os
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import grpc
import grpc.aio
import pytest
from a2a_stubs import google, v1, v1_grpc

from a2a_grpc import auth, errors
from a2a_grpc.agent import Agent, TaskHandle
from a2a_grpc.call import GRPC, JSONRPC, REST, RESUME_EXTENSION, V03, V1
from a2a_grpc.cards import fronted
from a2a_grpc.client import Client
from a2a_grpc.config import Options
from a2a_grpc.gateway import FORWARDED, Upstream
from a2a_grpc.server import Server
from a2a_grpc.testing import serve
from tests.fakes import FakeService
from tests.fronts import (
    HERE,
    PATIENCE,
    WIRES,
    asking,
    eventually,
    failure,
    faked,
    gateway,
    last_of,
    make_agent,
    told,
    wire_of,
)

# -- the same answers


@pytest.fixture
async def back() -> AsyncIterator[Server]:
    async with serve(make_agent(), push_notifications=True) as server:
        yield server


@pytest.mark.requirement("EQ-02", "EQ-03", "ERR-15", "CARD-07", "SUB-04", "V03-29")
@pytest.mark.parametrize(("binding", "version"), WIRES)
async def test_an_agent_answers_through_a_gateway_as_it_does_directly(back: Server, binding: str, version: str) -> None:
    async with gateway(back.http_url, binding=binding, version=version) as front:
        for wire in WIRES:
            async with wire_of(front, *wire) as through, wire_of(back, *wire) as direct:
                await converse(through, direct, listing=V03 not in (version, wire[1]))


async def converse(through: Client, direct: Client, *, listing: bool) -> None:
    """Every operation through a gateway, compared with what the agent says of it directly."""
    done = (await through.send(asking("one two"))).task
    assert done.status.state == v1.TASK_STATE_COMPLETED and done == await direct.get(done.id)
    assert await through.get(done.id) == done
    kinds = [event.WhichOneof("payload") async for event in through.stream(asking("a b"))]
    assert kinds[0] == "task" and kinds[-1] == "status_update" and "artifact_update" in kinds

    asked = (await through.send(asking("ask"))).task
    config = await through.create_push_config(
        v1.TaskPushNotificationConfig(task_id=asked.id, id="p", url="https://hooks.example/a", token="t")
    )
    assert config == await direct.get_push_config(asked.id, "p") == await through.get_push_config(asked.id, "p")
    assert (await through.list_push_configs(asked.id)).configs == [config]
    await through.delete_push_config(asked.id, "p")
    assert not (await direct.list_push_configs(asked.id)).configs
    events = through.subscribe(asked.id)
    assert (await anext(events)).task == await direct.get(asked.id)
    canceled = await through.cancel(asked.id)
    assert canceled.status.state == v1.TASK_STATE_CANCELED
    assert [event.status_update.status.state async for event in events][-1] == v1.TASK_STATE_CANCELED
    if listing:
        request = v1.ListTasksRequest(context_id=done.context_id, include_artifacts=True)
        assert await through.list(request) == await direct.list(request)

    for wrong in (
        *([lambda client: client.extended_card()] if listing else []),  # told by different words in v0.3
        lambda client: client.get("nowhere"),
        lambda client: client.cancel(done.id),
        lambda client: client.send(asking("x", task_id=done.id)),
        lambda client: client.get_push_config(asked.id, "none"),
        lambda client: anext(client.subscribe("nowhere")),
        lambda client: anext(client.stream(asking("x", task_id="nowhere"))),
    ):
        assert told(await failure(wrong(through))) == told(await failure(wrong(direct)))
    assert await late(through, done.id) == await late(direct, done.id)


async def late(client: Client, task_id: str) -> Any:
    """What a subscription to a task gives that has ended: v1.0 refuses it, v0.3 shows the task."""
    try:
        return [event async for event in client.subscribe(task_id)]
    except errors.A2AError as fault:
        return told(fault)


@pytest.mark.requirement("ERR-03", "ERR-06", "ERR-10")
@pytest.mark.parametrize(("binding", "version"), [wire for wire in WIRES if wire[1] == V1])
async def test_an_error_keeps_all_its_details(binding: str, version: str) -> None:
    service = FakeService()
    faults = [
        errors.InvalidParamsError(violations=[("message.parts[0]", "is odd"), ("tenant", "too")]),
        errors.ResourceExhaustedError("Later", retry_after=7, metadata={"limit": "3"}),
        errors.TaskNotFoundError(metadata={"taskId": "t1"}),
    ]
    async with faked(service) as address, gateway(address) as front, wire_of(front, binding, version) as client:
        for fault in faults:
            service.fault = fault
            assert told(await failure(client.get("t1"))) == told(fault)
            assert told(await last_of(client.stream(asking("x")))) == told(fault)  # after two events


class Stock(v1_grpc.A2AServiceServicer):
    """An agent written on the generated stubs alone, with errors of its own."""

    async def GetTask(self, request: v1.GetTaskRequest, context: Any) -> v1.Task:
        if request.id == "bare":
            await context.abort(grpc.StatusCode.FAILED_PRECONDITION, "Not now")
        if request.id == "own":
            details = google.Status(code=grpc.StatusCode.RESOURCE_EXHAUSTED.value[0], message="Too fast")
            details.details.add().Pack(google.ErrorInfo(reason="OWN", domain="own.example", metadata={"k": "v"}))
            retry = google.RetryInfo()
            retry.retry_delay.FromSeconds(9)
            details.details.add().Pack(retry)
            trailers = (("grpc-status-details-bin", details.SerializeToString()),)
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "Too fast", trailers)
        return v1.Task(id=request.id)

    async def SendStreamingMessage(self, request: v1.SendMessageRequest, context: Any) -> AsyncIterator[Any]:
        for number in range(3):
            yield v1.StreamResponse(message=v1.Message(message_id=str(number)))


@pytest.mark.requirement("ERR-16")
async def test_an_agent_on_bare_stubs_gets_every_wire_and_its_own_errors_have_their_meaning() -> None:
    server = grpc.aio.server()
    v1_grpc.add_A2AServiceServicer_to_server(Stock(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with gateway(f"127.0.0.1:{port}") as front:
        for binding in (JSONRPC, REST, GRPC):
            async with wire_of(front, binding, V1) as client:
                assert (await client.get("t1")).id == "t1"
                events = client.stream(asking("x"))
                assert [event.message.message_id async for event in events] == ["0", "1", "2"]
                assert events.last_event_id == ""
                bare, own = await failure(client.get("bare")), await failure(client.get("own"))
                assert told(bare) == (errors.UnsupportedOperationError, "Not now", {}, (), None)
                assert told(own) == (errors.ResourceExhaustedError, "Too fast", {"k": "v"}, (), 9.0)
                assert isinstance(await failure(client.cancel("t1")), errors.MethodNotFoundError)
    await server.stop(None)


async def test_where_wire_and_version_agree_no_byte_is_changed() -> None:
    """Not even of fields that nobody here knows: those of a newer standard."""
    unknown = b"\xc2\x3e\x03new"  # field 1000
    asked: list[bytes] = []
    task = v1.Task(id="t1", context_id="c", status=v1.TaskStatus(state=v1.TASK_STATE_WORKING))
    answer = task.SerializeToString() + unknown
    event = v1.StreamResponse(task=task).SerializeToString() + unknown

    async def one(request: bytes, context: Any) -> bytes:
        asked.append(request)
        return answer

    async def many(request: bytes, context: Any) -> AsyncIterator[bytes]:
        asked.append(request)
        yield event

    server = grpc.aio.server()
    rows = {"GetTask": grpc.unary_unary_rpc_method_handler(one)}
    rows["SubscribeToTask"] = grpc.unary_stream_rpc_method_handler(many)
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(v1_grpc.SERVICE, rows),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    request = v1.GetTaskRequest(id="t1").SerializeToString() + unknown
    async with (
        gateway(f"127.0.0.1:{port}") as front,
        grpc.aio.insecure_channel(front.grpc_address) as channel,
    ):
        assert await channel.unary_unary(f"/{v1_grpc.SERVICE}/GetTask")(request) == answer
        follow = channel.unary_stream(f"/{v1_grpc.SERVICE}/SubscribeToTask")
        assert [got async for got in follow(request)] == [event]
    assert asked == [request, request]
    await server.stop(None)


# -- what goes on beside the message


async def test_deadline_trace_and_extensions_go_on_and_nothing_that_is_not_on_the_list() -> None:
    service = FakeService()
    headers = {"traceparent": "00-1-2-01", "authorization": "Bearer x", "x-mine": "m", "x-other": "o", "cookie": "c"}
    async with (
        faked(service) as address,
        gateway(address, headers={"x-own": "secret"}, forward=(*FORWARDED, "X-Mine")) as front,
        grpc.aio.insecure_channel(front.grpc_address) as channel,
    ):
        stub = v1_grpc.A2AServiceStub(channel)
        metadata = (*headers.items(), ("a2a-version", "1.0"), ("a2a-extensions", "urn:a, urn:b"))
        await stub.GetTask(v1.GetTaskRequest(tenant="acme", id="t1"), metadata=metadata, timeout=40)
    request, call = service.calls[0]
    assert request == v1.GetTaskRequest(tenant="acme", id="t1")
    assert call.extensions == ("urn:a", "urn:b")
    assert call.deadline is not None and 10 < call.deadline - time.monotonic() < 50  # the wire rounds
    assert call.metadata["x-own"] == "secret" and call.metadata["x-mine"] == "m"
    assert call.metadata["traceparent"] == "00-1-2-01" and call.metadata["authorization"] == "Bearer x"
    assert not {"x-other", "cookie"} & call.metadata.keys()


@pytest.mark.requirement("SEC-07")
@pytest.mark.parametrize(("binding", "version"), WIRES)
async def test_a_trace_goes_on_from_every_wire_to_every_wire_though_nothing_is_watched(
    binding: str, version: str
) -> None:
    sent = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "tracestate": "vendor=1"}
    heard: list[dict[str, str]] = []
    agent = Agent(name="Last", description="Hears.", version="1", skills=[])

    @agent.handle
    async def hear(task: TaskHandle) -> str:
        heard.append({name: value for name, value in task.call.metadata.items() if name in ("x-mine", *sent)})
        return "heard"

    async with serve(agent) as back, gateway(back.http_url, binding=binding, version=version) as front:
        for wire in WIRES:
            async with wire_of(front, *wire, headers={**sent, "x-mine": "stays"}) as client:
                await client.send(asking("x"))
                assert [event async for event in client.stream(asking("x"))]
    assert heard == [sent] * 2 * len(WIRES)


async def test_a_credential_for_the_gateway_stays_there() -> None:
    service = FakeService()
    more = {"authenticators": auth.ApiKey({auth.hashed("Bearer x"): "ann"}, "authorization")}
    async with faked(service) as address, gateway(address, server=more) as front:
        async with Client(f"grpc://{front.grpc_address}", headers={"authorization": "Bearer x"}) as client:
            await client.get("t1")
        async with Client(f"grpc://{front.grpc_address}") as stranger:
            assert isinstance(await failure(stranger.get("t1")), errors.UnauthenticatedError)
    assert len(service.calls) == 1 and "authorization" not in service.calls[0][1].metadata


@pytest.mark.requirement("SUB-04")
@pytest.mark.parametrize(("binding", "version"), WIRES)
async def test_a_stream_is_taken_up_again_where_it_broke(back: Server, binding: str, version: str) -> None:
    """Numbers come from ids where the upstream writes them, from its messages on gRPC; who did not ask sees neither."""
    async with gateway(back.http_url, binding=binding, version=version) as front, wire_of(front, REST, V1) as client:
        events = client.stream(asking("hold"))
        first = await anext(events)
        assert not first.task.metadata.fields
        numbers = [int(events.last_event_id)]
        while (await anext(events)).WhichOneof("payload") != "status_update":
            numbers.append(int(events.last_event_id))
        numbers.append(int(events.last_event_id))
        assert numbers == sorted(set(numbers)) and numbers[0] >= 1
        await events.aclose()
        again = client.subscribe(first.task.id, last_event_id=str(numbers[-1]))
        await client.cancel(first.task.id)
        rest = [(int(again.last_event_id), event) async for event in again]
        assert [number for number, _ in rest] == list(range(numbers[-1] + 1, numbers[-1] + 1 + len(rest)))
        assert rest[-1][1].status_update.status.state == v1.TASK_STATE_CANCELED


async def test_who_asks_for_the_numbers_on_grpc_gets_them(back: Server) -> None:
    async with gateway(back.http_url) as front, wire_of(front, GRPC, V1, extensions=[RESUME_EXTENSION]) as client:
        seen = [event async for event in client.stream(asking("a"))]
    bodies = [getattr(event, event.WhichOneof("payload")) for event in seen]
    numbers = [body.metadata[RESUME_EXTENSION]["sequence"] for body in bodies]
    assert numbers == sorted(set(numbers)) and len(numbers) == len(seen)


@pytest.mark.requirement("EXT-05")
async def test_extensions_that_the_upstream_knows_are_said_to_be_in_force(back: Server) -> None:
    async with gateway(back.http_url) as front, aiohttp.ClientSession() as http:
        headers = {"a2a-version": V1, "a2a-extensions": "urn:example:known, urn:nobody"}
        async with http.get(f"{front.http_url}/tasks", headers=headers) as reply:
            assert (reply.status, reply.headers["a2a-extensions"]) == (200, "urn:example:known")


# -- the card


@pytest.mark.requirement("CARD-03", "SIGN-12")
async def test_the_card_is_that_of_the_agent_with_the_addresses_of_the_gateway(back: Server) -> None:
    async with (
        gateway(back.http_url) as front,
        wire_of(front, JSONRPC, V1) as through,
        wire_of(back, JSONRPC, V1) as direct,
    ):
        card, own = through.card, direct.card
    assert card and own
    urls = {(entry.protocol_binding, entry.protocol_version): entry.url for entry in card.supported_interfaces}
    assert urls.keys() == set(WIRES)
    assert all(front.http_address in url or front.grpc_address in url for url in urls.values())
    assert fronted(own, card.supported_interfaces) == card

    signed = v1.AgentCard(name="x", signatures=[v1.AgentCardSignature(protected="p", signature="s")])
    signed.security_schemes["upstream"].mtls_security_scheme.description = "its own"
    kept, asked = fronted(signed, []), fronted(signed, [], {"k": v1.SecurityScheme()}, [v1.SecurityRequirement()])
    assert not kept.signatures and "upstream" in kept.security_schemes
    assert list(asked.security_schemes) == ["k"] and len(asked.security_requirements) == 1


@pytest.mark.requirement("CARD-17")
async def test_a_card_that_changes_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("a2a_grpc.gateway_way.LOOK_SECONDS", 0.2)
    agent = make_agent()
    async with serve(agent) as back, gateway(back.http_url) as front, aiohttp.ClientSession() as http:

        async def name() -> tuple[str, str]:
            async with http.get(f"{front.http_url}/.well-known/agent-card.json") as reply:
                return (await reply.json())["name"], reply.headers["etag"]

        first = await name()
        assert first[0] == "Echo" and await name() == first
        back._cards._public.clear()
        agent.name = "Renamed"

        async def renamed() -> bool:
            return (await name())[0] == "Renamed"

        await eventually(renamed)
        assert (await name())[1] != first[1]


async def test_an_upstream_without_a_card_gets_a_plain_one_or_the_one_that_is_given() -> None:
    async with faked(FakeService()) as address:
        for given, name in ((None, "Agent"), (v1.AgentCard(name="Given", version="3"), "Given")):
            async with gateway(address, card=given) as front, wire_of(front, REST, V1) as client:
                assert client.card and client.card.name == name
                assert (await client.get("t1")).id == "t1"


async def test_several_upstreams_and_agents_share_a_gateway(back: Server) -> None:
    service = FakeService()
    async with faked(service) as address:
        agents = {"far": Upstream(back.http_url), "fake": Upstream(address), "near": make_agent()}
        async with Server(agents, Options(store="memory:", **HERE)) as front:
            for name in ("far", "near"):
                async with Client(f"{front.http_url}/{name}", timeout=PATIENCE) as client:
                    assert (await client.send(asking("hi"))).task.status.state == v1.TASK_STATE_COMPLETED
            async with Client(f"grpc://{front.grpc_address}", tenant="fake", timeout=PATIENCE) as client:
                assert (await client.get("t1")).id == "t1"
    assert [request.tenant for request, _ in service.calls] == [""]


# -- the command

ROOT = Path(__file__).parent.parent
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "generated")))}


@asynccontextmanager
async def command(*words: str, cwd: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "a2a_grpc", "gateway", *words, cwd=cwd, env=ENVIRONMENT,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def test_the_command_puts_every_wire_before_an_agent(tmp_path: Path) -> None:
    service = FakeService()
    async with faked(service) as address:
        await command_serves(address, tmp_path)
    told = [(call.metadata["x-own"], call.metadata["x-mine"], call.extensions) for _, call in service.calls]
    assert told == [("secret", "m", ())] * len(WIRES)


async def command_serves(address: str, tmp_path: Path) -> None:
    ports = ("--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0")
    card = tmp_path / "card.json"
    card.write_text(json.dumps({"name": "Shown", "description": "d", "version": "1"}))
    words = ("--upstream", address, "--upstream-card", str(card), "--upstream-header", "X-Own: secret")
    words += ("--forward", "X-Mine")
    async with command(*words, *ports, cwd=tmp_path) as process:
        assert process.stdout
        lines = []
        while not (lines and lines[-1].startswith("  or ")):
            lines.append((await asyncio.wait_for(process.stdout.readline(), PATIENCE)).decode())
            assert lines[-1]
        assert address in lines[0] and "is ready" in lines[0]
        url = next(line.split()[1] for line in lines if line.startswith("  HTTP+JSON"))
        for wire in WIRES:
            headers = {"x-mine": "m", "x-own": "not mine"}
            async with Client(url, binding=wire[0], version=wire[1], headers=headers, timeout=PATIENCE) as client:
                assert client.card and client.card.name == "Shown"
                assert (await client.get("t1")).id == "t1"
        process.terminate()
        assert await asyncio.wait_for(process.wait(), PATIENCE) == 0
    assert not (tmp_path / "a2a.db").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "--upstream"),
        (("--upstream", "ftp://x"), "not an address"),
        (("--upstream", "http://a", "--upstream", "http://b"), "a name each"),
        (("--upstream", "http://a", "--upstream-card", "none.json"), "none.json"),
    ],
)
async def test_a_command_that_cannot_be_ends_with_one_line(words: Any, said: str, tmp_path: Path) -> None:
    async with command(*words, cwd=tmp_path) as process:
        out, err = await asyncio.wait_for(process.communicate(), PATIENCE)
    assert (process.returncode, out) == (2, b"") and said in err.decode() and err.count(b"\n") == 1
