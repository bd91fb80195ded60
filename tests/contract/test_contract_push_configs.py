"""The webhooks of a task: kept, shown, listed and removed, in every cell."""

from typing import Any

import pytest
from a2a_stubs import v1

from a2a_grpc.call import V03
from a2a_grpc.errors import InvalidParamsError, PushNotificationNotSupportedError, TaskNotFoundError
from tests.contract.cells import Cell, fresh, said

pytestmark = pytest.mark.site(push_notifications=True)

URL = "https://hooks.example/in?x=1"


def hook(task_id: str = "", name: str = "", **more: Any) -> v1.TaskPushNotificationConfig:
    return v1.TaskPushNotificationConfig(**{"task_id": task_id, "id": name, "url": URL, **more})


async def listed(cell: Cell, task_id: str) -> list[v1.TaskPushNotificationConfig]:
    found = (await cell.client.list_push_configs(task_id)).configs
    return sorted(found, key=lambda config: config.id)


@pytest.mark.requirement("PUSH-02", "PUSH-04", "PUSH-08", "GRPC-09", "REST-17", "I-60", "V03-09", "V03-10", "V03-12")
async def test_a_config_is_kept_shown_and_listed_as_it_was_made(cell: Cell) -> None:
    task = await cell.task("ask")
    secret = v1.AuthenticationInfo(scheme="Bearer", credentials="abc")
    first = hook(task.id, "first", token="t0k3n", authentication=secret)
    second = hook(task.id, "second")
    for config in (first, second):
        assert await cell.client.create_push_config(config) == config
        assert await cell.client.get_push_config(task.id, config.id) == config
    assert await listed(cell, task.id) == [first, second]


@pytest.mark.requirement("PUSH-30", "V03-09")
async def test_the_same_id_again_replaces_a_config(cell: Cell) -> None:
    task = await cell.task("ask")
    await cell.client.create_push_config(hook(task.id, "one", token="old"))
    newer = hook(task.id, "one", url="https://hooks.example/new")
    await cell.client.create_push_config(newer)
    assert await listed(cell, task.id) == [newer]


@pytest.mark.needs("config without id")
@pytest.mark.requirement("PUSH-02", "L-20")
async def test_a_config_without_an_id_gets_one_of_its_own(cell: Cell) -> None:
    task = await cell.task("ask")
    made = [await cell.client.create_push_config(hook(task.id)) for _ in range(2)]
    assert made[0].id and made[1].id and made[0].id != made[1].id
    assert len(await listed(cell, task.id)) == 2


@pytest.mark.versions("0.3")
@pytest.mark.requirement("L-20", "V03-09", "V03-11", "I-56")
async def test_an_old_config_without_an_id_has_that_of_its_task(cell: Cell) -> None:
    task = await cell.task("ask")
    for token in ("one", "two"):
        made = await cell.client.create_push_config(hook(task.id, token=token))
        assert (made.id, made.token) == (task.id, token)
    assert len(await listed(cell, task.id)) == 1


@pytest.mark.requirement("PUSH-06", "PUSH-07", "RPC-15", "GRPC-08", "REST-22", "I-16", "I-17", "I-18", "I-39", "V03-12")
async def test_a_config_is_deleted_for_good_and_again(cell: Cell) -> None:
    task = await cell.task("ask")
    await cell.client.create_push_config(hook(task.id, "gone"))
    for _ in range(2):
        await cell.client.delete_push_config(task.id, "gone")
    assert await listed(cell, task.id) == []
    request = v1.GetTaskPushNotificationConfigRequest(task_id=task.id, id="gone")
    await cell.refuses(TaskNotFoundError, "GetTaskPushNotificationConfig", request)
    with pytest.raises(TaskNotFoundError) as missing:
        await cell.client.get_push_config(task.id, "gone")
    assert missing.value.metadata == {"taskId": task.id, "configId": "gone"}


def about(task_id: str) -> dict[str, Any]:
    """A request for each operation on the configs of a task."""
    return {
        "CreateTaskPushNotificationConfig": hook(task_id, "c"),
        "GetTaskPushNotificationConfig": v1.GetTaskPushNotificationConfigRequest(task_id=task_id, id="c"),
        "ListTaskPushNotificationConfigs": v1.ListTaskPushNotificationConfigsRequest(task_id=task_id),
        "DeleteTaskPushNotificationConfig": v1.DeleteTaskPushNotificationConfigRequest(task_id=task_id, id="c"),
    }


@pytest.mark.requirement("PUSH-02", "PUSH-04", "PUSH-05", "PUSH-06", "PUSH-09", "BL-04", "ERR-07")
async def test_configs_of_an_unknown_or_foreign_task_are_not_found(cell: Cell) -> None:
    ann = await cell.caller("ann")
    task = await ann.task("ask")
    await ann.client.create_push_config(hook(task.id, "c"))
    for task_id in (task.id, fresh("task")):
        for operation, request in about(task_id).items():
            await cell.refuses(TaskNotFoundError, operation, request, x_caller="bob")
    assert await listed(ann, task.id) == [hook(task.id, "c")]


@pytest.mark.site(push_notifications=False)
@pytest.mark.requirement("PUSH-01", "ERR-12", "BL-19", "EQ-03")
async def test_without_the_capability_push_is_not_supported_whatever_the_task(cell: Cell) -> None:
    task = await cell.task("ask")
    for task_id in (task.id, fresh("task")):
        for operation, request in about(task_id).items():
            await cell.refuses(PushNotificationNotSupportedError, operation, request)


@pytest.mark.parametrize(
    "url", ["", "hooks.example/in", "ftp://hooks.example/in", "https:///in", "javascript:alert(1)"]
)
@pytest.mark.requirement("PUSH-02", "OP-SEND-11", "ERR-06")
async def test_an_address_that_nothing_can_be_sent_to_is_an_invalid_parameter(cell: Cell, url: str) -> None:
    task = await cell.task("ask")
    found = await cell.refuses(InvalidParamsError, "CreateTaskPushNotificationConfig", hook(task.id, "c", url=url))
    assert any(field.endswith("url") for field in found.fields)
    request = said(push=v1.TaskPushNotificationConfig(url=url))
    found = await cell.refuses(InvalidParamsError, "SendMessage", request)
    assert any(field.endswith("url") for field in found.fields)


@pytest.mark.requirement("OP-SEND-11", "PUSH-08", "L-20")
async def test_a_config_in_a_send_belongs_to_the_task_that_comes_of_it(cell: Cell) -> None:
    task = await cell.task("ask 9", push=hook(name="mine", token="t"))
    assert await listed(cell, task.id) == [hook(task.id, "mine", token="t")]
    for token in ("a", "b"):
        await cell.task("one", task_id=task.id, push=hook(token=token))
    assert await listed(cell, task.id) == sorted(
        [hook(task.id, "mine", token="t"), hook(task.id, task.id, token="b")], key=lambda config: config.id
    )


@pytest.mark.site(push_notifications=True, max_push_configs=200)
@pytest.mark.requirement("L-29")
async def test_an_old_json_rpc_caller_gets_all_configs_at_once(cell: Cell) -> None:
    task = await cell.task("ask")
    names = sorted(f"c{number}" for number in range(101))  # more than the largest page of a list of tasks
    for name in names:
        await cell.client.create_push_config(hook(task.id, name))
    assert [config.id for config in await listed(await cell.over("jsonrpc", V03), task.id)] == names


@pytest.mark.site(push_notifications=True, max_push_configs=2)
@pytest.mark.requirement("SEC-04", "PUSH-08", "PUSH-30", "ERR-06")
async def test_a_task_that_has_as_many_configs_as_it_may_takes_no_other(cell: Cell) -> None:
    task = await cell.task("ask")
    for name in ("a", "b", "a"):
        await cell.client.create_push_config(hook(task.id, name))
    found = await cell.refuses(InvalidParamsError, "CreateTaskPushNotificationConfig", hook(task.id, "c"))
    assert "the limit is 2" in found.text
    found = await cell.refuses(InvalidParamsError, "SendMessage", said(task_id=task.id, push=hook(name="c")))
    assert "the limit is 2" in found.text
    await cell.client.delete_push_config(task.id, "b")
    await cell.task("one", task_id=task.id, push=hook(name="c"))
    assert [config.id for config in await listed(cell, task.id)] == ["a", "c"]


@pytest.mark.needs("pages of configs")
@pytest.mark.requirement("PUSH-05", "I-20")
async def test_configs_are_listed_in_pages_on_request(cell: Cell) -> None:
    task = await cell.task("ask")
    for name in "abcde":
        await cell.client.create_push_config(hook(task.id, name))
    names, token, pages = [], "", 0
    while token or not pages:
        request = v1.ListTaskPushNotificationConfigsRequest(task_id=task.id, page_size=2, page_token=token)
        answer = await cell.client.call("ListTaskPushNotificationConfigs", request)
        names += [config.id for config in answer.configs]
        token, pages = answer.next_page_token, pages + 1
    assert (names, pages) == (list("abcde"), 3)
    for query in ({"page_token": "made up"}, {"page_size": -1}):
        request = v1.ListTaskPushNotificationConfigsRequest(task_id=task.id, **query)
        await cell.refuses(InvalidParamsError, "ListTaskPushNotificationConfigs", request)


@pytest.mark.site(push_notifications=True, redact_push_credentials=True)
@pytest.mark.requirement("I-60", "PUSH-23")
async def test_secrets_are_left_out_of_answers_if_the_server_is_told_so(cell: Cell) -> None:
    task = await cell.task("ask")
    secret = v1.AuthenticationInfo(scheme="Bearer", credentials="hush")
    made = await cell.client.create_push_config(hook(task.id, "c", token="hush", authentication=secret))
    for shown in (made, await cell.client.get_push_config(task.id, "c"), *await listed(cell, task.id)):
        assert "hush" not in str(shown) and shown.authentication.scheme == "Bearer"


@pytest.mark.requirement("L-39", "EQ-05", "PUSH-03")
async def test_a_config_made_on_one_wire_is_seen_on_the_others(cell: Cell) -> None:
    task = await cell.task("ask")
    await cell.client.create_push_config(hook(task.id, "c", token="t"))
    for binding in ("grpc", "jsonrpc", "rest"):
        for version in ("1.0", "0.3"):
            other = await cell.over(binding, version)
            assert await other.client.get_push_config(task.id, "c") == hook(task.id, "c", token="t")
