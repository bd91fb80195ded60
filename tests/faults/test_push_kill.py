"""Push notifications of a server that is killed: nothing is lost, nothing is out of order, repetitions say so."""

from pathlib import Path

import pytest
from a2a_stubs import v1

from a2a_grpc.call import GRPC
from tests.faults.processes import clients, ended, message, seeded, serving
from tests.receivers import Got, receiver

WORDS = ("--push-notifications", "--push-allow", "127.0.0.1/32")


def check(got: list[Got], numbers: list[int]) -> None:
    """Every update at least once, the first arrivals in order; what comes again is the same."""
    bodies: dict[int, bytes] = {}
    for one in got:
        assert bodies.setdefault(one.number, one.body) == one.body
    assert [*bodies] == numbers


@pytest.mark.parametrize(("updates", "hooks"), [(200, 3), (10_000, 5)])
@pytest.mark.requirement("BL-49", "PUSH-03", "PUSH-08", "PUSH-14", "PUSH-18")
@pytest.mark.limit(600)
async def test_a_kill_in_the_middle_loses_no_update_of_any_webhook_and_keeps_their_order(
    tmp_path: Path, updates: int, hooks: int
) -> None:
    paths = [f"/{number}" for number in range(hooks)]
    kill_at = seeded().randrange(updates // 10, updates // 2)
    async with receiver() as there:
        async with serving(tmp_path, *WORDS) as server, clients(server) as agents:
            task_id = (await agents[GRPC].send(message("ask"))).task.id
            for path in paths:
                config = v1.TaskPushNotificationConfig(task_id=task_id, id=path[1:], url=there.url + path)
                await agents[GRPC].create_push_config(config)
            await agents[GRPC].send(message(f"count {updates} 0", task_id, now=True))
            await there.until(lambda: len(there.at("/0")) >= kill_at)
            server.process.kill()
            await server.exit_code()
        assert len(there.at("/0")) < updates
        async with serving(tmp_path, *WORDS) as server, clients(server) as agents:
            state = v1.TaskState.Name((await ended(agents[GRPC], task_id)).status.state).encode()
            await there.until(lambda: all(state in got[-1].body for got in map(there.at, paths) if got))
            told = [3, *range(5, there.at("/0")[-1].number + 1)]  # 4 is what the user said
            for path in paths:
                check(there.at(path), told)
