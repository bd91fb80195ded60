"""Our client against servers on the official SDKs, two languages, both release lines, each wire and version: every
operation, questions, and streams that are cut while they run.
"""

import asyncio
import subprocess
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from a2a_stubs import v1

from a2a_grpc import errors
from a2a_grpc.client import Client
from a2a_grpc.client_retries import Retries
from a2a_grpc.remote import RemoteAgent
from a2a_grpc.tasks.state import state_of
from scripts.services import free_port
from tests.interop.conftest import made
from tests.proxies import proxy

HERE = Path(__file__).parent
SERVERS = {
    "sdk1": ("A2A_SDK1_PYTHON", "server.py", ("1.0", "0.3")),
    "sdk03": ("A2A_SDK03_PYTHON", "server.py", ("0.3",)),
    "node1": ("A2A_NODE1_MODULES", "server.mjs", ("1.0", "0.3")),
    "node03": ("A2A_NODE03_MODULES", "server.mjs", ("0.3",)),
}
"""Folder -> the variable that names its environment, its program, the versions that it speaks."""
BINDINGS = ("JSONRPC", "HTTP+JSON", "GRPC")
CELLS = [(name, binding, version) for name, row in SERVERS.items() for version in row[2] for binding in BINDINGS]
NO_LIST = {("sdk1", "HTTP+JSON", "0.3"), ("sdk03", "HTTP+JSON", "0.3"), ("sdk03", "GRPC", "0.3")}
"""Where the server has no way to list or delete webhooks."""
FORGETS = {"sdk03"}
"""Servers that may lose pieces and ends of a task while it is followed from its middle: with each subscriber another
hand writes a whole task of its own, and the last one wins."""
QUICK = Retries(first=0.05, most=0.3, patience=60.0)
WHOLE = "".join(f"{number} " for number in range(40))


class Place(NamedTuple):
    """Where a server listens, and what starts it again there."""

    url: str
    command: list[str]

    @contextmanager
    def running(self) -> Iterator["subprocess.Popen[str]"]:
        """The server, until the block ends or it is killed."""
        with subprocess.Popen(self.command, stdout=subprocess.PIPE, text=True) as process:
            try:
                assert process.stdout is not None and process.stdout.readline() == "ready\n"
                yield process
            finally:
                process.kill()


def place(name: str, folder: Path) -> Place:
    variable, file, _ = SERVERS[name]
    environment = made(variable)
    ports = [str(free_port()), str(free_port())]
    program = [str(environment), str(HERE / name / file)] if file.endswith(".py") else ["node", str(HERE / name / file)]
    store = [str(folder / "tasks.db")] if file.endswith(".py") else []
    return Place(f"http://127.0.0.1:{ports[0]}", [*program, *ports, *store])


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Place]]:
    """Servers, each started when it is first asked for."""
    with ExitStack() as stack:

        class Started(dict[str, Place]):
            def __missing__(self, name: str) -> Place:
                self[name] = found = place(name, tmp_path_factory.mktemp(name))
                stack.enter_context(found.running())
                return found

        yield Started()


@pytest.fixture
async def client(places: dict[str, Place], cell: tuple[str, str, str]) -> AsyncIterator[Client]:
    name, binding, version = cell
    async with Client(places[name].url, binding=binding, version=version, timeout=60, retries=QUICK) as made:
        yield made


def asking(text: str, **message: Any) -> v1.SendMessageRequest:
    said = v1.Message(message_id=uuid.uuid4().hex, role="ROLE_USER", parts=[v1.Part(text=text)], **message)
    return v1.SendMessageRequest(message=said)


def words(*artifacts: v1.Artifact) -> str:
    return "".join(part.text for artifact in artifacts for part in artifact.parts)


@pytest.mark.requirement("EQ-02", "CARD-07", "VER-08", "V03-38", "I-29", "I-48", "I-49")
@pytest.mark.parametrize("cell", CELLS, ids="-".join)
async def test_every_operation_of_an_official_server_is_understood(client: Client, cell: tuple[str, str, str]) -> None:
    assert client.card is not None and client.card.name == "Official"
    done = (await client.send(asking("hello"))).task
    assert done.status.state == v1.TASK_STATE_COMPLETED and words(*done.artifacts) == "echo hello"
    assert (await client.get(done.id, history_length=5)).id == done.id
    assert (await client.send(asking("reply"))).message.parts[0].text == "said"
    await follow(client)
    await hold(client, cell)
    if cell[2] == "1.0":
        assert done.id in [task.id async for task in client.tasks(v1.ListTasksRequest(page_size=2))]
    with pytest.raises(errors.A2AError) as caught:
        await client.get("nowhere")
    assert type(caught.value) is errors.TaskNotFoundError
    with pytest.raises(errors.TaskNotCancelableError):
        await client.cancel(done.id)


async def follow(client: Client) -> None:
    """A stream to its end."""
    told, state = "", 0
    async for event in client.stream(asking("hello")):
        told += words(event.artifact_update.artifact)
        state = event.status_update.status.state or state
    assert (told, state) == ("echo hello", v1.TASK_STATE_COMPLETED)


async def hold(client: Client, cell: tuple[str, str, str]) -> None:
    """A task at work: followed, with webhooks, canceled."""
    request = asking("wait")
    request.configuration.return_immediately = True
    task = (await client.send(request)).task
    config = await client.create_push_config(
        v1.TaskPushNotificationConfig(task_id=task.id, id="hook", url="https://hooks.example/a", token="t")
    )
    assert (config.task_id, config.url) == (task.id, "https://hooks.example/a")
    assert (await client.get_push_config(task.id, config.id)).url == config.url
    if cell not in NO_LIST:
        assert [one.id for one in (await client.list_push_configs(task.id)).configs] == [config.id]
        await client.delete_push_config(task.id, config.id)
        assert not (await client.list_push_configs(task.id)).configs
    waiting = asyncio.create_task(client.wait(task))
    await asyncio.sleep(0.1)
    assert (await client.cancel(task.id)).status.state == v1.TASK_STATE_CANCELED
    assert (await waiting).status.state == v1.TASK_STATE_CANCELED


@pytest.mark.requirement("AUTH-11", "I-53")
@pytest.mark.parametrize("cell", CELLS, ids="-".join)
async def test_questions_of_an_official_server_are_answered(client: Client, cell: tuple[str, str, str]) -> None:
    agent = RemoteAgent(client, timeout=60)
    for word, kind in (("ask", "input"), ("auth", "auth")):
        asked = await agent.generate(word)
        assert asked.suspended is not None and asked.suspended[:2] == (kind, "Which?")
        done = await agent.resume("this", run_id=asked.run_id)
        assert (done.finish_reason, done.text, done.run_id) == ("stop", "echo this", asked.run_id)


@pytest.mark.requirement("OP-STREAM-10", "STREAM-12")
@pytest.mark.parametrize("cell", CELLS, ids="-".join)
async def test_a_stream_of_an_official_server_that_is_cut_loses_and_doubles_nothing(
    client: Client, cell: tuple[str, str, str]
) -> None:
    card, entry = v1.AgentCard(), client.interface
    card.CopyFrom(client.card or card)
    target = entry.url.rpartition("//")[2].partition("/")[0]
    async with proxy(target) as between:
        del card.supported_interfaces[:]
        card.supported_interfaces.append(entry)
        card.supported_interfaces[0].url = entry.url.replace(target, between.address)
        async with Client(card, version=cell[2], timeout=60, retries=replace(QUICK, idle=20.0)) as cut:
            told, count, state = "", 0, 0
            with suppress(*(TimeoutError,) * (cell[0] in FORGETS)):
                async for event in cut.stream(asking("slow")):
                    if event.HasField("artifact_update"):
                        # One of the servers may keep a chunk twice that it was writing when its reader left; what the
                        # client has told until then is put right by the whole artifact, which is no chunk to append.
                        piece = words(event.artifact_update.artifact)
                        told = told + piece if event.artifact_update.append else piece
                    state = event.status_update.status.state or state
                    count += 1
                    if count in (8, 12):
                        between.cut()
            assert between.accepted >= 2
            if cell[0] in FORGETS:
                assert told.startswith("0 1 2 ") and set(told.split()) <= set(WHOLE.split())
            else:
                assert (told, state) == (WHOLE, v1.TASK_STATE_COMPLETED)


async def begun(client: Client) -> tuple[str, Any]:
    """A task that asks, and the events of another one that is at work."""
    asked = (await client.send(asking("ask"))).task.id
    events = client.stream(asking("wait"))
    async for event in events:
        if state_of(event) == v1.TASK_STATE_WORKING:
            break
    return asked, events


async def rest(events: Any) -> list[v1.StreamResponse]:
    return [event async for event in events]


async def found_again(client: Client, asked: str, end: Any, keeps: bool) -> None:
    """What a client sees of a server that was killed and started again. keeps: whether its tasks outlived it."""
    if not keeps:
        assert type(end) is errors.TaskNotFoundError
        with pytest.raises(errors.TaskNotFoundError):
            await client.get(asked)
        assert words(*(await client.send(asking("hello"))).task.artifacts) == "echo hello"
        return
    assert type(end) is TimeoutError and "nobody may be at work on it" in str(end)
    task = await client.get(asked)
    assert task.status.state == v1.TASK_STATE_INPUT_REQUIRED
    done = await client.send(asking("done", task_id=asked, context_id=task.context_id))
    assert done.task.status.state == v1.TASK_STATE_COMPLETED


@pytest.mark.requirement("AUTH-11", "OP-STREAM-10")
@pytest.mark.parametrize("name", SERVERS)
async def test_a_server_that_is_killed_and_started_again_is_found_again_on_each_wire(name: str, tmp_path: Path) -> None:
    where, brief = place(name, tmp_path), replace(QUICK, idle=2.0)
    with ExitStack() as processes:
        process = processes.enter_context(where.running())
        async with AsyncExitStack() as stack:
            clients = [
                await stack.enter_async_context(
                    Client(where.url, binding=binding, version=version, timeout=60, retries=brief)
                )
                for each, binding, version in CELLS
                if each == name
            ]
            known = [await begun(client) for client in clients]
            process.kill()
            process.wait()
            reads = [asyncio.create_task(rest(events)) for _, events in known]
            await asyncio.to_thread(processes.enter_context, where.running())
            ends = await asyncio.gather(*reads, return_exceptions=True)
            for client, (asked, _), end in zip(clients, known, ends, strict=True):
                await found_again(client, asked, end, keeps=SERVERS[name][1].endswith(".py"))
