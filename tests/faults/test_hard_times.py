"""A full disk, and a process that is stopped for a while: the server says so, and works on when that is over."""

import asyncio
import signal
from pathlib import Path

import pytest
from a2a_stubs import v1

from a2a_grpc.bindings.mounts import HEALTH, READY
from a2a_grpc.call import GRPC, JSONRPC, REST
from a2a_grpc.errors import InternalError
from tests.faults.processes import (
    BINDINGS,
    at_work,
    clients,
    ended,
    fetch,
    limit_files,
    message,
    numbered,
    serving,
    stored,
    texts,
    within,
)


@pytest.mark.requirement("BL-03", "BL-28", "BL-21")
@pytest.mark.parametrize("binding", BINDINGS)
async def test_a_full_disk_is_an_internal_error_until_there_is_room_again(tmp_path: Path, binding: str) -> None:
    async with serving(tmp_path, "--lease", "1") as server, clients(server) as agents:
        agent = agents[binding]
        kept = (await agent.send(message("parts 2 0"))).task
        events = agent.stream(message("count 1000 0.001 5000"))
        first = await within(anext(events))
        limit_files(server.process.pid, stored(tmp_path))
        seen, fault = await numbered(events)
        assert isinstance(fault, InternalError), fault
        for work in (agent.send(message("count 10 0 50000")), anext(agent.stream(message("count 10 0 50000")))):
            with pytest.raises(InternalError) as told:
                await within(work)
            assert "disk" not in told.value.message and "sqlite" not in str(told.value.metadata)
        assert await fetch(server.url, HEALTH) == 200 and await fetch(server.url, READY) == 200
        assert await agent.get(kept.id) == kept

        limit_files(server.process.pid, -1)
        assert texts((await agent.send(message("parts 1 0"))).task) == ["part 0"]
        task = await ended(agent, first.task.id)
        assert task.status.state == v1.TASK_STATE_FAILED
        rest, fault = await numbered(agent.subscribe(task.id, str(max(seen, default=1))))
        assert fault is None and min(rest) == max(seen, default=1) + 1
    async with serving(tmp_path) as server, clients(server) as agents:
        assert await agents[binding].get(kept.id) == kept
        assert await agents[binding].get(task.id) == task


@pytest.mark.requirement("BL-08", "SUB-03")
async def test_a_process_that_was_stopped_past_its_leases_goes_on_as_if_nothing_had_been(tmp_path: Path) -> None:
    async with serving(tmp_path, "--lease", "0.5", "--heartbeat", "0.2") as server, clients(server) as agents:
        readers = {
            binding: asyncio.create_task(numbered(agent.stream(message("count 250 0.02"))))
            for binding, agent in agents.items()
        }
        await at_work(agents, len(readers))
        server.process.send_signal(signal.SIGSTOP)
        await asyncio.sleep(2)  # four leases
        server.process.send_signal(signal.SIGCONT)
        for binding in (GRPC, JSONRPC, REST):
            seen, fault = await within(readers[binding])
            assert fault is None
            assert seen[max(seen)].status_update.status.state == v1.TASK_STATE_COMPLETED
            assert texts(await agents[binding].get(seen[1].task.id)) == ["".join(f"{index} " for index in range(250))]
        assert "Traceback" not in server.log
