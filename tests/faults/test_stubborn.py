"""Agents that do not stop when they are told to: the process ends without them."""

import signal
from pathlib import Path

import pytest
from a2a_stubs import v1

from a2a_grpc.call import GRPC, REST
from tests.faults.processes import at_work, clients, message, serving


@pytest.mark.requirement("BL-34", "OP-CANCEL-06")
@pytest.mark.parametrize("agent", ["deaf", "pooler", pytest.param("blocker", marks=pytest.mark.requirement("BL-17"))])
async def test_a_function_that_will_not_stop_does_not_hold_up_the_end(tmp_path: Path, agent: str) -> None:
    async with serving(tmp_path, "--grace", "0", agent=agent) as server, clients(server) as agents:
        task = (await agents[GRPC].send(message("600", now=True))).task
        await at_work(agents, 1)
        server.process.send_signal(signal.SIGTERM)
        assert await server.exit_code() == 0, server.log
    async with serving(tmp_path) as server, clients(server) as agents:
        assert (await agents[REST].get(task.id)).status.state == v1.TASK_STATE_FAILED
