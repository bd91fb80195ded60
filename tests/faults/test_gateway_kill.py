"""A gateway that is killed: another one on the same database goes on, for readers and for webhooks, where the agent
knows nothing of numbers, of webhooks or of gateways."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from a2a_stubs import v1

from a2a_grpc import auth
from a2a_grpc.call import GRPC, Call
from a2a_grpc.client import Client
from a2a_grpc.config import Options
from a2a_grpc.errors import UnavailableError
from a2a_grpc.push_secrets import new_key
from a2a_grpc.server import Server
from a2a_grpc.tasks.state import state_of
from tests.faults.processes import BINDINGS, ENDED, PATIENCE, Serving, client, message, number, serving
from tests.faults.test_push_kill import check
from tests.faults.workers import worker
from tests.fronts import HERE
from tests.receivers import Receiver, receiver
from tests.stores import postgres_url

PIECES = 150
WHOLE = "".join(f"{each} " for each in range(PIECES))
SHOWN = "Bearer of-the-caller"
WORDS = ("--buffer", "8", "--push", "own", "--push-allow", "127.0.0.1/32", "--push-timeout", "0.5", "--lease", "1")


@asynccontextmanager
async def plainly(call: Call, _: Any) -> AsyncIterator[None]:
    """Around the calls of an agent that numbers nothing."""
    call.extensions, call.resume = (), None
    yield


@asynccontextmanager
async def behind() -> AsyncIterator[str]:
    """The agent, which wants a credential, and has no webhooks and no card."""
    options = Options(store="memory:", **HERE)
    shown = auth.ApiKey({auth.hashed(SHOWN): "caller"}, "authorization")
    async with Server(worker, options, interceptors=[plainly], authenticators=shown) as server:
        yield server.grpc_address


class Reader:
    """Follows a task wherever it is told, by the number of the event that it has."""

    def __init__(self) -> None:
        self.task_id = ""
        self.seen: dict[int, v1.StreamResponse] = {}

    async def take(self, events: Any, most: int = 0) -> None:
        """Read to the end of the task, or until there are so many events."""
        async with aclosing(events):
            async for event in events:
                at = number(event)
                assert at > max(self.seen, default=0), (at, sorted(self.seen))
                self.seen[at] = event
                self.task_id = self.task_id or event.task.id
                if most and len(self.seen) >= most:
                    return

    async def finish(self, there: Client) -> None:
        """Go on elsewhere, to the end."""
        while not any(state_of(event) in ENDED for event in self.seen.values()):
            request = v1.SubscribeToTaskRequest(id=self.task_id)
            try:
                await self.take(there.events("SubscribeToTask", request, last_event_id=str(max(self.seen))))
            except UnavailableError:
                await asyncio.sleep(0.05)

    @property
    def text(self) -> str:
        updates = [event.artifact_update for event in self.seen.values() if event.HasField("artifact_update")]
        return "".join(part.text for update in updates for part in update.artifact.parts)


def told(there: Receiver, path: str) -> str:
    """What a webhook was told of the artifact, by the first time that it heard of each event; a task that was heard of
    late begins with what it has by then."""
    first = {got.number: got.json for got in reversed(there.at(path))}
    said = ""
    for at in sorted(first):
        artifacts = first[at].get("task", {}).get("artifacts", ()) or [
            first[at].get("artifactUpdate", {}).get("artifact")
        ]
        said += "".join(part["text"] for artifact in artifacts if artifact for part in artifact["parts"])
    return said


async def caller(stack: AsyncExitStack, front: Serving, binding: str) -> Client:
    made = await client(front.url, binding, headers={"authorization": SHOWN})
    stack.push_async_callback(made.close)
    return made


@pytest.mark.requirement("SUB-04", "BL-08", "PUSH-08", "PUSH-14", "PUSH-18", "SEC-05")
async def test_another_gateway_goes_on_for_readers_and_webhooks_of_one_that_was_killed(tmp_path: Path) -> None:
    readers = {binding: Reader() for binding in BINDINGS}
    async with AsyncExitStack() as stack:
        agent, there = await stack.enter_async_context(behind()), await stack.enter_async_context(receiver())
        words = (*WORDS, "--store", await stack.enter_async_context(postgres_url()))
        keys = {"A2A_GRPC_SECRET_KEYS": new_key()}
        one, two = [await stack.enter_async_context(serving(tmp_path, *words, gateway=agent, **keys)) for _ in range(2)]
        begins = []
        for binding, reader in readers.items():
            request = message(f"count {PIECES} 0.03")
            request.configuration.task_push_notification_config.url = f"{there.url}/{binding[:4]}"
            events = (await caller(stack, one, binding)).events("SendStreamingMessage", request)
            begins.append(reader.take(events, 25))
        await asyncio.wait_for(asyncio.gather(*begins), PATIENCE)
        unread = message(f"count {PIECES} 0.01", now=True)
        unread.configuration.task_push_notification_config.url = f"{there.url}/unread"
        await (await caller(stack, one, GRPC)).send(unread)
        await there.until(lambda: len(there.at("/unread")) > 5)
        one.process.kill()
        await one.exit_code()
        ends = [reader.finish(await caller(stack, two, binding)) for binding, reader in readers.items()]
        await asyncio.wait_for(asyncio.gather(*ends), PATIENCE)
        paths = [f"/{binding[:4]}" for binding in BINDINGS] + ["/unread"]
        await there.until(lambda: all(b"COMPLETED" in there.at(path)[-1].body for path in paths))
    for binding, reader in readers.items():
        assert (binding, list(reader.seen)) == (binding, [*range(min(reader.seen), max(reader.seen) + 1)])
        assert (binding, reader.text) == (binding, WHOLE)
    for path in paths:
        got = there.at(path)
        check(got, [*range(got[0].number, max(each.number for each in got) + 1)])
        assert (path, told(there, path)) == (path, WHOLE)
