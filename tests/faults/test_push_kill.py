"""Push notifications of a server that is killed: nothing is lost, nothing is out of order, repetitions say so."""

from pathlib import Path

import pytest
from a2a_stubs import v1

from a2a_grpc.call import GRPC
from tests.faults.processes import clients, ended, message, seeded, serving
from tests.receivers import Got, receiver

UPDATES = 200
PATHS = ("/a", "/b", "/c")
WORDS = ("--push-notifications", "--push-allow", "127.0.0.1/32")


def check(got: list[Got], last: int) -> None:
    """Every update at least once, first arrivals in order; what comes again is the same."""
    first, bodies = got[0].number, dict[int, bytes]()
    for one in got:
        assert one.number in bodies or one.number == first + len(bodies), (one.number, first, len(bodies))
        assert bodies.setdefault(one.number, one.body) == one.body
    assert [*bodies] == [*range(first, last + 1)]


@pytest.mark.requirement("BL-49", "PUSH-03", "PUSH-08", "PUSH-14", "PUSH-18")
@pytest.mark.limit(240)
async def test_a_kill_in_the_middle_loses_no_update_of_any_webhook_and_keeps_their_order(tmp_path: Path) -> None:
    chance = seeded()
    async with receiver() as there:
        async with serving(tmp_path, *WORDS) as server, clients(server) as agents:
            request = message(f"count {UPDATES} 0.005", now=True)
            request.configuration.task_push_notification_config.url = f"{there.url}/a"
            request.configuration.task_push_notification_config.id = "a"
            task_id = (await agents[GRPC].send(request)).task.id
            for path in PATHS[1:]:
                config = v1.TaskPushNotificationConfig(task_id=task_id, id=path[1:], url=there.url + path)
                await agents[GRPC].create_push_config(config)
            kill_at = chance.randrange(20, UPDATES - 50)
            await there.until(lambda: len(there.at("/a")) >= kill_at)
            server.process.kill()
            await server.exit_code()
        assert len(there.at("/a")) < UPDATES
        async with serving(tmp_path, *WORDS) as server, clients(server) as agents:
            await ended(agents[GRPC], task_id)
            await there.until(lambda: all("FAILED" in str(there.at(path)[-1:]) for path in PATHS))
            last = there.at("/a")[-1].number
            assert there.at("/a")[0].number == 1 and last == there.at("/b")[-1].number
            for path in PATHS:
                check(there.at(path), last)
