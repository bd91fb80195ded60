"""A gateway that keeps push notification configs and delivers by itself: for agents that do not, whatever breaks."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from a2a_stubs import v1

from a2a_grpc import auth, errors
from a2a_grpc.call import GRPC, JSONRPC, V1
from a2a_grpc.client_retries import Retries
from a2a_grpc.commands import gateway as command
from a2a_grpc.config import OptionError, Options
from a2a_grpc.gateway import Upstream
from a2a_grpc.push_secrets import new_key
from a2a_grpc.server import Server
from a2a_grpc.tasks.sqlite import SQLiteStore
from a2a_grpc.tasks.start import now_ms
from a2a_grpc.tasks.store import Change, LeaseTaken, Scope
from a2a_grpc.testing import serve, until
from tests.fakes import FakeService, status, task
from tests.fronts import HERE, WIRES, asking, eventually, failure, faked, make_agent, wire_of
from tests.receivers import Got, Receiver, receiver
from tests.stores import postgres_url

LOCAL = {"push_notifications": True, "push_allow": ("127.0.0.1/32",)}
COMPLETED = "TASK_STATE_COMPLETED"
NOBODY = Scope("", "", "")


@asynccontextmanager
async def owning(to: str, store: str = "memory:", options: Any = None, **settings: Any) -> AsyncIterator[Server]:
    """A gateway that delivers by itself."""
    told = Options(**{**HERE, **LOCAL, "store": store, **(options or {})})
    async with Server(Upstream(to, push="own", **settings), told) as front:
        yield front


def hook(url: str, **more: Any) -> v1.TaskPushNotificationConfig:
    return v1.TaskPushNotificationConfig(url=url, **more)


def with_hook(text: str, url: str, now: bool = False, **more: Any) -> v1.SendMessageRequest:
    request = asking(text, **more)
    request.configuration.return_immediately = now
    request.configuration.task_push_notification_config.CopyFrom(hook(url, token="t"))
    return request


def states(got: list[Got]) -> list[str]:
    """The states that a receiver was told, in v1.0."""
    found = []
    for each in got:
        about = each.json.get("statusUpdate") or each.json.get("task")
        found += [about["status"]["state"]] if about else []
    return found


def old_states(got: list[Got]) -> list[str]:
    return [each.json["status"]["state"] for each in got]


@asynccontextmanager
async def back(**options: Any) -> AsyncIterator[Server]:
    """An agent that knows nothing of push notifications."""
    async with serve(make_agent(), **options) as server:
        yield server


async def ended(hooks: Receiver, path: str = "/", word: str = COMPLETED) -> list[Got]:
    async def look() -> bool:
        return any(word in each.body.decode() for each in hooks.got if each.path == path)

    await eventually(look)
    return [each for each in hooks.got if each.path == path]


@pytest.mark.requirement("PUSH-01", "PUSH-10", "PUSH-11", "PUSH-14", "PUSH-29")
@pytest.mark.parametrize(("binding", "version"), WIRES)
async def test_an_agent_without_push_notifications_gains_them(binding: str, version: str) -> None:
    """On every wire of the gateway, whatever wire leads to the agent, in the form of the version of the config."""
    async with (
        back() as agent,
        receiver() as hooks,
        owning(agent.http_url, binding=GRPC) as front,
        wire_of(front, binding, version) as client,
    ):
        done = (await client.send(with_hook("one two", hooks.url + "/sent"))).task
        assert done.status.state == v1.TASK_STATE_COMPLETED
        events = [event async for event in client.stream(with_hook("a b", hooks.url + "/streamed"))]
        assert events[-1].status_update.status.state == v1.TASK_STATE_COMPLETED
        word = COMPLETED if version == V1 else "completed"
        for path in ("/sent", "/streamed"):
            got = await ended(hooks, path, word)
            assert {each.headers["x-a2a-notification-token"] for each in got} == {"t"}
            assert {each.headers["a2a-version"] for each in got} == {version}
            numbers = [each.number for each in got]
            assert numbers == sorted(set(numbers))
            if version == V1:
                assert states(got)[-1] == COMPLETED
                # A task that had ended before it could be followed is told as a whole.
                assert any("artifactUpdate" in each.json or "artifacts" in each.json.get("task", {}) for each in got)
            else:
                assert old_states(got)[-1] == word and got[-1].json["artifacts"]


@pytest.mark.requirement("PUSH-02", "PUSH-04", "PUSH-05", "PUSH-06", "AUTH-05")
@pytest.mark.parametrize(("binding", "version"), WIRES)
async def test_configs_are_the_gateways_and_tasks_the_agents(binding: str, version: str) -> None:
    async with (
        back() as agent,
        receiver() as hooks,
        owning(agent.http_url) as front,
        wire_of(front, binding, version) as client,
    ):
        asked = (await client.send(asking("ask"))).task
        assert not (await client.list_push_configs(asked.id)).configs
        await client.delete_push_config(asked.id, "p")
        made = await client.create_push_config(hook(hooks.url, id="p", task_id=asked.id))
        assert made == await client.get_push_config(asked.id, "p")
        assert (await client.list_push_configs(asked.id)).configs == [made]
        await client.delete_push_config(asked.id, "p")
        assert not (await client.list_push_configs(asked.id)).configs
        for wrong in (hook(hooks.url, task_id="nowhere"), hook("http://10.0.0.1/", task_id=asked.id)):
            fault = await failure(client.create_push_config(wrong))
            expected = errors.TaskNotFoundError if wrong.task_id == "nowhere" else errors.InvalidParamsError
            assert type(fault) is expected
        assert client.card and client.card.capabilities.push_notifications


async def test_a_question_its_answer_and_the_end_are_told_to_one_webhook() -> None:
    async with (
        back() as agent,
        receiver() as hooks,
        owning(agent.http_url) as front,
        wire_of(front, JSONRPC, V1) as client,
    ):
        asked = (await client.send(with_hook("ask", hooks.url + "/first"))).task
        assert asked.status.state == v1.TASK_STATE_INPUT_REQUIRED
        answer = with_hook("blue", hooks.url + "/second", task_id=asked.id)
        answer.configuration.task_push_notification_config.id = "second"
        done = (await client.send(answer)).task
        assert done.status.state == v1.TASK_STATE_COMPLETED
        first, second = await ended(hooks, "/first"), await ended(hooks, "/second")
        assert "TASK_STATE_INPUT_REQUIRED" in states(first)
        assert "TASK_STATE_INPUT_REQUIRED" not in states(second)
        refused = with_hook("more", hooks.url + "/third", task_id=asked.id)
        refused.configuration.task_push_notification_config.id = "third"
        assert type(await failure(client.send(refused))) is errors.UnsupportedOperationError
        assert [each.id for each in (await client.list_push_configs(asked.id)).configs] == [asked.id, "second"]


class Agent(FakeService):
    """Says what it is told to; refuses subscriptions with `deaf`, if it is one."""

    def __init__(self, deaf: errors.A2AError | None = None) -> None:
        super().__init__()
        self.deaf, self.more, self.told = deaf, asyncio.Event(), [status(v1.TASK_STATE_WORKING)]

    def say(self, state: Any) -> None:
        self.answers["GetTask"] = task(state=state)
        self.told.append(status(state))
        self.more.set()
        self.more = asyncio.Event()

    async def _stream(self, method: Any, request: Any, call: Any) -> AsyncIterator[Any]:
        self._seen(request, call)
        if self.deaf:
            raise self.deaf
        yield v1.StreamResponse(task=self.answers["GetTask"])
        at = len(self.told)
        while self.answers["GetTask"].status.state != v1.TASK_STATE_COMPLETED or at < len(self.told):
            for event in self.told[at:]:
                at += 1
                yield event
            if at == len(self.told):
                await self.more.wait()


@pytest.mark.parametrize("deaf", [None, errors.UnsupportedOperationError("no streams"), errors.TaskNotFoundError()])
async def test_a_task_is_followed_to_its_end_also_where_it_cannot_be_subscribed_to(deaf: Any) -> None:
    """As an official SDK of v0.3, which says TASK_NOT_FOUND of tasks that wait for an answer."""
    service = Agent(deaf)
    async with AsyncExitStack() as stack:
        hooks, address = await stack.enter_async_context(receiver()), await stack.enter_async_context(faked(service))
        front = await stack.enter_async_context(owning(address))
        client = await stack.enter_async_context(wire_of(front, JSONRPC, V1))
        await client.create_push_config(hook(hooks.url + "/", task_id="t1"))
        service.say(v1.TASK_STATE_INPUT_REQUIRED)
        await ended(hooks, word="INPUT_REQUIRED")
        assert front.engine.running == 1
        service.say(v1.TASK_STATE_COMPLETED)
        await ended(hooks)
        await eventually(lambda: _none(front))
        assert states(hooks.got) == ["TASK_STATE_INPUT_REQUIRED", COMPLETED]


async def _none(front: Server) -> bool:
    return front.engine.running == 0


@pytest.mark.requirement("PUSH-14", "BL-08")
async def test_a_gateway_that_was_restarted_goes_on_with_the_credentials_that_it_has_sealed(tmp_path: Path) -> None:
    service, store = Agent(), f"sqlite:{tmp_path / 'gateway.db'}"
    keys = {"secret_keys": (new_key(),)}
    async with receiver() as hooks, faked(service) as address:
        async with owning(address, store, keys) as front:
            client = wire_of(front, JSONRPC, V1, headers={"authorization": "Bearer secret"})
            async with client:
                await client.create_push_config(hook(hooks.url + "/", task_id="t1"))
        assert b"secret" not in (tmp_path / "gateway.db").read_bytes()
        service.calls.clear()
        service.say(v1.TASK_STATE_COMPLETED)
        async with owning(address, store, keys) as front:
            await ended(hooks)
            assert front.engine.upkeep.taken_over["followed"] == 1
        assert {call.metadata.get("authorization") for _, call in service.calls} == {"Bearer secret"}
        assert states(hooks.got) == [COMPLETED]


@pytest.mark.requirement("SEC-05")
async def test_without_a_key_no_credential_of_a_caller_is_kept(tmp_path: Path) -> None:
    service, store = Agent(), f"sqlite:{tmp_path / 'gateway.db'}"
    async with receiver() as hooks, faked(service) as address, owning(address, store) as front:
        async with wire_of(front, JSONRPC, V1, headers={"authorization": "Bearer secret"}) as client:
            await client.create_push_config(hook(hooks.url, task_id="t1"))
        row = await front.store.task(NOBODY, "t1")
        assert row is not None and row.author_state == b""


async def test_an_agent_that_holds_the_stream_of_a_task_that_has_ended_is_seen_through(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("a2a_grpc.gateway_tasks.LOOK_SECONDS", 0.2)
    service = FakeService()
    service.events, service.wait = [v1.StreamResponse(task=task())], asyncio.Event().wait()
    async with receiver() as hooks, faked(service) as address, owning(address) as front:
        async with wire_of(front, JSONRPC, V1) as client:
            await client.create_push_config(hook(hooks.url + "/", task_id="t1"))
        service.answers["GetTask"] = task(state=v1.TASK_STATE_COMPLETED)
        await ended(hooks)
        await eventually(lambda: _none(front))


class Closing(FakeService):
    """Ends every stream of a task that waits; a message lets it go on."""

    async def _stream(self, method: Any, request: Any, call: Any) -> AsyncIterator[Any]:
        self._seen(request, call)
        if isinstance(request, v1.SendMessageRequest):
            self.answers["GetTask"] = task(state=v1.TASK_STATE_COMPLETED)
            yield v1.StreamResponse(task=task())
            yield status(v1.TASK_STATE_COMPLETED)
        else:
            yield v1.StreamResponse(task=self.answers["GetTask"])

    async def _one(self, method: Any, request: Any, call: Any) -> Any:
        if isinstance(request, v1.SendMessageRequest):
            self.answers["GetTask"] = task(state=v1.TASK_STATE_COMPLETED)
        return await super()._one(method, request, call)


@pytest.mark.parametrize("streams", [False, True])
async def test_a_message_wakes_who_waits_for_a_task_to_go_on(streams: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("a2a_grpc.gateway_tasks.AGAIN", Retries(first=1000.0, most=1000.0))
    service = Closing()
    service.answers["GetTask"] = task(state=v1.TASK_STATE_INPUT_REQUIRED)
    service.answers["SendMessage"] = v1.SendMessageResponse(task=task(state=v1.TASK_STATE_COMPLETED))
    async with (
        receiver() as hooks,
        faked(service) as address,
        owning(address, buffer=1 << 20) as front,
        wire_of(front, JSONRPC, V1) as client,
    ):
        await client.create_push_config(hook(hooks.url + "/", task_id="t1"))
        await until(lambda: any(keeper._resting for keeper in [front._upstreams[0]._keeper] if keeper))
        answer = with_hook("on", hooks.url + "/", task_id="t1")
        if streams:
            assert [event async for event in client.stream(answer)]
        else:
            await client.send(answer)
        await ended(hooks)


@pytest.mark.requirement("BL-08")
async def test_a_gateway_that_was_killed_goes_on_at_once(tmp_path: Path) -> None:
    """Its lease is long, but the file had nobody else."""
    service, store = Agent(), f"sqlite:{tmp_path / 'gateway.db'}"
    async with receiver() as hooks, faked(service) as address:
        async with owning(address, store) as front, wire_of(front, JSONRPC, V1) as client:
            await client.create_push_config(hook(hooks.url + "/", task_id="t1"))
        async with file_of(tmp_path) as left:
            row = await left.task(NOBODY, "t1")
            assert row is not None
            dead = LeaseTaken("dead", now_ms() + 3_600_000)
            await left.commit(Change(NOBODY, "t1", row.sequence, now_ms(), take=dead))
        service.say(v1.TASK_STATE_COMPLETED)
        async with owning(address, store):
            await ended(hooks)


@asynccontextmanager
async def file_of(folder: Path) -> AsyncIterator[SQLiteStore]:
    left = SQLiteStore(folder / "gateway.db")
    await left.open()
    yield left
    await left.close()


async def test_what_is_followed_counts_for_its_caller() -> None:
    """As its turns would, under the option `turn_limit`."""
    service = FakeService()
    service.wait, service.events = asyncio.Event().wait(), []
    known = {"authenticators": auth.ApiKey({auth.hashed("a"): "ann", auth.hashed("b"): "bob"})}
    told = Options(**{**HERE, **LOCAL, "store": "memory:", "turn_limit": 1})
    async with (
        faked(service) as address,
        Server(Upstream(address, push="own"), told, **known) as front,
        wire_of(front, JSONRPC, V1, headers={"x-api-key": "a"}) as ann,
        wire_of(front, JSONRPC, V1, headers={"x-api-key": "b"}) as bob,
    ):
        await ann.create_push_config(hook("http://127.0.0.1:9", task_id="t1"))
        service.answers["GetTask"] = task("t2")
        more = hook("http://127.0.0.1:9", task_id="t2")
        assert type(await failure(ann.create_push_config(more))) is errors.ResourceExhaustedError
        assert await bob.create_push_config(more)


async def test_a_task_that_the_agent_has_lost_is_followed_no_longer() -> None:
    service = Agent()
    service.deaf = errors.UnsupportedOperationError()
    async with receiver() as hooks, faked(service) as address, owning(address) as front:
        async with wire_of(front, JSONRPC, V1) as client:
            await client.create_push_config(hook(hooks.url, task_id="t1"))
        service.fault = errors.TaskNotFoundError()
        await eventually(lambda: _none(front))
        row = await front.store.task(NOBODY, "t1")
        assert row is not None and row.holder == "" and row.state == v1.TASK_STATE_WORKING
        assert not states(hooks.got)


async def test_no_more_tasks_are_followed_than_turns_may_run() -> None:
    service = FakeService()
    service.wait = asyncio.Event().wait()
    service.events = []
    async with (
        faked(service) as address,
        owning(address, options={"max_turns": 1}) as front,
        wire_of(front, JSONRPC, V1) as client,
    ):
        await client.create_push_config(hook("http://127.0.0.1:9", task_id="t1"))
        service.answers["GetTask"] = task("t2")
        fault = await failure(client.create_push_config(hook("http://127.0.0.1:9", task_id="t2")))
        assert type(fault) is errors.ResourceExhaustedError


async def test_an_agent_that_went_away_is_followed_again_when_it_is_back() -> None:
    service = Agent()
    async with receiver() as hooks, AsyncExitStack() as first:
        address = await first.enter_async_context(faked(service))
        async with owning(address) as front, wire_of(front, JSONRPC, V1) as client:
            await client.create_push_config(hook(hooks.url + "/", task_id="t1"))
            service.say(v1.TASK_STATE_INPUT_REQUIRED)
            await ended(hooks, word="INPUT_REQUIRED")
            await first.aclose()
            service.say(v1.TASK_STATE_WORKING)
            service.say(v1.TASK_STATE_COMPLETED)
            async with faked(service, int(address.rpartition(":")[2])):
                await ended(hooks)
        assert states(hooks.got)[-1] == COMPLETED and len(hooks.got) == len({each.number for each in hooks.got})


def test_the_command_says_who_delivers() -> None:
    def made(*words: str) -> Any:
        options, make, *_ = command.ready(("--upstream", "127.0.0.1:9", *words))
        return options, make()

    options, upstream = made("--push", "own")
    assert options["push_notifications"] is True and upstream.push == "own"
    options, upstream = made()
    assert options["push_notifications"] is None and upstream.push == "pass"
    with pytest.raises(OptionError, match="push"):
        Upstream("127.0.0.1:9", push="other")
    with pytest.raises(OptionError, match="push_notifications"):
        Server(Upstream("127.0.0.1:9", push="own"), Options(store="memory:"))


@pytest.mark.requirement("PUSH-18", "BL-08")
async def test_replicas_of_a_gateway_share_a_database_and_one_goes_on_where_another_stops() -> None:
    service = Agent()
    async with receiver() as hooks, faked(service) as address, postgres_url() as store, owning(address, store) as left:
        async with owning(address, store) as right, wire_of(right, JSONRPC, V1) as client:
            made = await client.create_push_config(hook(hooks.url + "/", id="p", task_id="t1"))
            async with wire_of(left, JSONRPC, V1) as other:
                assert await other.get_push_config("t1", "p") == made
                assert await other.create_push_config(hook(hooks.url + "/", id="p", task_id="t1")) == made
            assert (left.engine.running, right.engine.running) == (0, 1)
            service.say(v1.TASK_STATE_INPUT_REQUIRED)
            await ended(hooks, word="INPUT_REQUIRED")
        service.say(v1.TASK_STATE_COMPLETED)
        await ended(hooks)
        assert states(hooks.got) == ["TASK_STATE_INPUT_REQUIRED", COMPLETED]
        assert left.engine.upkeep.taken_over["followed"] == 1
