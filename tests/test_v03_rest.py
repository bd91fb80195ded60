"""v0.3 REST: every body that clients send, and the answers in the dialect that was read."""

from typing import Any

import pytest
from a2a_stubs import google, v1

from a2a_grpc import v03 as old
from a2a_grpc.call import PUSH_EXTRAS
from a2a_grpc.protojson import decode
from tests.test_v03 import HOOK, SEND, SET, fields, proto_send, send


@pytest.mark.requirement("V03-21", "I-42", "V03-04")
@pytest.mark.parametrize(
    ("body", "dialect"),
    [
        (send(), old.J03),
        ({"request": send()["message"]}, old.J03),
        ({"message": {"messageId": "m1", "role": "user", "parts": [{"text": "a"}]}}, old.J03),
        ({"message": {"messageId": "m1", "role": "ROLE_USER", "parts": [{"text": "a"}]}}, old.J03),
        (proto_send(), old.P03),
        ({"request": {"message_id": "m1", "role": "ROLE_USER", "content": [{"text": "a"}]}}, old.P03),
        ({"message": {"messageId": "m1", "role": 1, "content": [{"kind": "text", "text": "a"}]}}, old.P03),
    ],
)
def test_rest_reads_both_dialects_and_answers_in_the_one_it_read(body: Any, dialect: str) -> None:
    up = old.up_rest(SEND, {}, [], body)
    assert up.request.message == decode(v1.Message, {"messageId": "m1", "role": "ROLE_USER", "parts": [{"text": "a"}]})
    assert up.dialect == dialect
    answer = old.down_rest(v1.SendMessageResponse(message=up.request.message), dialect)
    assert set(answer) == {"message"}
    assert ("kind" in answer["message"], "content" in answer["message"]) == (dialect == old.J03, dialect == old.P03)


@pytest.mark.requirement("V03-20", "V03-21")
@pytest.mark.parametrize("body", [None, {}, {"name": "tasks/t"}, {"id": "t"}])
def test_cancel_takes_every_body_that_clients_send(body: Any) -> None:
    up = old.up_rest("CancelTask", {"name": "tasks/t"}, [], body)
    assert up == (v1.CancelTaskRequest(id="t"), {}, old.P03)


@pytest.mark.requirement("V03-26", "L-14", "ERR-06")
def test_a_body_that_names_another_task_is_refused() -> None:
    for body, field in (({"name": "tasks/u"}, "name"), ({"id": "u"}, "id"), ({"metadata": 5}, "metadata")):
        assert fields(lambda body=body: old.up_rest("CancelTask", {"name": "tasks/t"}, [], body)) == [field]
    up = old.up_rest("CancelTask", {"name": "tasks/t"}, [], {"metadata": {"k": "v"}})
    assert up.request.metadata["k"] == "v"
    up = old.up_rest("SubscribeToTask", {"name": "tasks/t"}, [], {"metadata": {"k": "v", PUSH_EXTRAS: 1}})
    assert up == (v1.SubscribeToTaskRequest(id="t"), {"k": "v"}, old.P03)
    assert fields(lambda: old.up_rest("CancelTask", {"name": "tasks/t"}, [], [])) == ["body"]


@pytest.mark.requirement("I-44", "V03-20", "V03-21")
@pytest.mark.parametrize("parent", ["tasks/t", "task/t/pushNotificationConfigs"])
@pytest.mark.parametrize(
    ("body", "dialect"),
    [
        ({"parent": "tasks/t", "configId": "p", "config": {"pushNotificationConfig": {"url": HOOK}}}, old.P03),
        ({"parent": "tasks/t", "config_id": "p", "config": {"push_notification_config": {"url": HOOK}}}, old.P03),
        ({"config": {"name": "tasks/t/pushNotificationConfigs/p", "pushNotificationConfig": {"url": HOOK}}}, old.P03),
        ({"name": "tasks/t/pushNotificationConfigs/p", "pushNotificationConfig": {"url": HOOK}}, old.P03),
        ({"id": "p", "url": HOOK}, old.P03),
        ({"config": {"taskId": "t", "pushNotificationConfig": {"id": "p", "url": HOOK}}}, old.J03),
        ({"taskId": "t", "pushNotificationConfig": {"id": "p", "url": HOOK}}, old.J03),
    ],
)
def test_push_set_takes_every_body_that_clients_send(parent: str, body: Any, dialect: str) -> None:
    up = old.up_rest(SET, {"parent": parent}, [], body)
    assert up == (v1.TaskPushNotificationConfig(task_id="t", id="p", url=HOOK), {}, dialect)
    answer = old.down_rest(up.request, dialect)
    name = {"taskId": "t"} if dialect == old.J03 else {"name": "tasks/t/pushNotificationConfigs/p"}
    assert answer == {**name, "pushNotificationConfig": {"id": "p", "url": HOOK}}


@pytest.mark.requirement("I-44", "V03-26")
def test_push_set_takes_the_id_from_the_query_and_refuses_conflicts() -> None:
    bare = {"pushNotificationConfig": {"url": HOOK}}
    assert old.up_rest(SET, {"parent": "tasks/t"}, [("configId", "p")], bare).request.id == "p"
    assert old.up_rest(SET, {"parent": "tasks/t"}, [], bare).request.id == "t"
    for body, field in (
        ({"parent": "tasks/u", "config": bare}, "parent"),
        ({**bare, "taskId": "u"}, "config.taskId"),
        ({"configId": "p", "config": {"pushNotificationConfig": {"id": "q", "url": HOOK}}}, "configId"),
        ({"config": []}, "config"),
        ({}, "config.pushNotificationConfig.url"),
    ):
        assert fields(lambda body=body: old.up_rest(SET, {"parent": "tasks/t"}, [], body)) == [field]


@pytest.mark.requirement("V03-12", "V03-20")
def test_rest_answers_that_have_no_message() -> None:
    assert old.down_rest(google.Empty()) == {}
    assert old.down_result(google.Empty()) is None
    listed = decode(v1.ListTaskPushNotificationConfigsResponse, {"configs": [{"taskId": "t", "id": "p", "url": HOOK}]})
    assert [*old.down_rest(listed)] == ["configs"]
    assert isinstance(old.down_rest(listed, old.J03), list)
    up = old.up_rest("ListTaskPushNotificationConfigs", {"parent": "tasks/t"}, [("page_size", "2")], None)
    assert up.request == v1.ListTaskPushNotificationConfigsRequest(task_id="t", page_size=2)
