"""Push notifications of several replicas over one database: each event is sent by one of them, whoever is left."""

from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from a2a_stubs import v1

from a2a_grpc.call import GRPC
from tests.faults.processes import clients, ended, message, serving
from tests.faults.test_push_kill import WORDS, check
from tests.receivers import receiver
from tests.stores import postgres_url

UPDATES = 100


@pytest.mark.requirement("PUSH-03", "PUSH-07", "PUSH-08", "PUSH-14", "PUSH-18", "BL-48", "BL-49")
async def test_a_webhook_is_served_by_the_replicas_that_live(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(postgres_url())
        words = (*WORDS, "--store", url, "--push-timeout", "0.5", "--lease", "1")
        there = await stack.enter_async_context(receiver())
        one, two = [await stack.enter_async_context(serving(tmp_path, *words)) for _ in range(2)]
        first, second = [(await stack.enter_async_context(clients(server)))[GRPC] for server in (one, two)]
        request = message(f"count {UPDATES} 0.02", now=True)
        request.configuration.task_push_notification_config.url = f"{there.url}/a"
        task_id = (await first.send(request)).task.id
        for name in ("b", "gone"):
            config = v1.TaskPushNotificationConfig(task_id=task_id, id=name, url=f"{there.url}/{name}")
            await second.create_push_config(config)
        await there.until(lambda: bool(there.at("/gone")))
        await second.delete_push_config(task_id, "gone")
        await there.until(lambda: all(len(there.at(path)) > 20 for path in ("/a", "/b")))
        gone = len(there.at("/gone"))
        one.process.kill()
        await one.exit_code()
        assert (await ended(second, task_id)).status.state == v1.TASK_STATE_FAILED
        for path in ("/a", "/b"):
            await there.until(lambda path=path: "FAILED" in str(there.at(path)[-1].json))
            got = there.at(path)
            check(got, [*range(got[0].number, there.at("/a")[-1].number + 1)])
        assert there.at("/a")[0].number == 1
        assert len(there.at("/gone")) <= gone


@pytest.mark.requirement("PUSH-14", "PUSH-18", "BL-49")
async def test_no_event_is_sent_twice_while_all_is_well(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(postgres_url())
        there = await stack.enter_async_context(receiver())
        servers = [await stack.enter_async_context(serving(tmp_path, *WORDS, "--store", url)) for _ in range(2)]
        agents = [(await stack.enter_async_context(clients(server)))[GRPC] for server in servers]
        for number, agent in enumerate(agents * 3):
            request = message("count 30 0.001", now=True)
            request.configuration.task_push_notification_config.url = f"{there.url}/{number}"
            await agent.send(request)
        for path in (f"/{number}" for number in range(6)):
            await there.until(lambda path=path: any("COMPLETED" in str(got.json) for got in there.at(path)))
            numbers = [got.number for got in there.at(path)]
            assert numbers == [*range(1, numbers[-1] + 1)]
