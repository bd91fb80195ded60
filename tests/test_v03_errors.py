"""Errors as v0.3 clients tell them: by code, by name, by text."""

import pytest

from a2a_grpc import errors
from a2a_grpc import v03 as old

GET, CARD = "GetTask", "GetExtendedAgentCard"


@pytest.mark.requirement("V03-18", "L-28")
@pytest.mark.parametrize("error", [kind() for kind in errors.BY_REASON.values()], ids=lambda error: error.name)
def test_every_error_is_told_by_code_name_and_default_text(error: errors.A2AError) -> None:
    shown = old.down_error(error)
    assert (shown["code"], shown["message"]) == (error.jsonrpc, error.v03_text)
    assert shown["data"] == error.details()
    assert old.grpc_text(error) == f"{error.name}: {error.v03_text}"
    assert old.down_error(type(error)("own words"))["message"] == "own words"


@pytest.mark.requirement("V03-25", "I-47")
def test_a_rest_error_can_be_read_by_every_client() -> None:
    error = errors.TaskNotCancelableError()
    assert old.rest_error(error) == {
        "code": -32002,
        "type": "TaskNotCancelableError",
        "message": "Task cannot be canceled",
        "data": error.details(),
        "error": {
            "code": 400,
            "status": "FAILED_PRECONDITION",
            "message": "Task cannot be canceled",
            "details": error.details(),
        },
    }
    assert old.rest_error(error, profile="1.0.0")["error"]["code"] == 409


@pytest.mark.requirement("I-35")
def test_no_extended_card_is_always_the_same_error() -> None:
    error = errors.UnsupportedOperationError("The agent has no extended card")
    shown = old.down_error(error, CARD)
    assert (shown["code"], shown["message"]) == (-32007, "Authenticated Extended Card is not configured")
    assert old.rest_error(error, CARD)["type"] == "AuthenticatedExtendedCardNotConfiguredError"
    assert old.grpc_text(old.as_v03(error, CARD)).startswith("AuthenticatedExtendedCardNotConfiguredError: ")
    assert old.down_error(error, GET)["code"] == -32004


@pytest.mark.requirement("ERR-06", "V03-10")
@pytest.mark.parametrize(
    ("operation", "field", "in_json", "in_proto"),
    [
        ("SendMessage", "message.parts[2].raw", "message.parts[2].file.bytes", "message.content[2].file.fileWithBytes"),
        (
            "SendMessage",
            "message.metadata.parts[2].raw",
            "message.metadata.parts[2].raw",
            "message.metadata.parts[2].raw",
        ),
        ("SendMessage", "message.messageId", "message.messageId", "message.messageId"),
        ("GetTask", "id", "id", "name"),
        ("GetTask", "historyLength", "historyLength", "historyLength"),
        ("DeleteTaskPushNotificationConfig", "id", "pushNotificationConfigId", "name"),
        ("ListTaskPushNotificationConfigs", "taskId", "id", "parent"),
        ("CreateTaskPushNotificationConfig", "taskId", "taskId", "parent"),
        (
            "CreateTaskPushNotificationConfig",
            "authentication.scheme",
            "pushNotificationConfig.authentication.schemes",
            "config.pushNotificationConfig.authentication.schemes",
        ),
    ],
)
def test_a_field_refused_below_the_door_has_its_old_name(
    operation: str, field: str, in_json: str, in_proto: str
) -> None:
    error = errors.InvalidParamsError(violations=[(field, "is wrong")])
    for dialect, name in ((old.J03, in_json), (old.P03, in_proto), ("", field)):
        shown = old.as_v03(error, operation, dialect)
        assert shown.violations == ((name, "is wrong"),)
        assert old.down_error(error, operation, dialect)["message"] == f"Invalid parameters: {name} is wrong"
    assert error.violations[0].field == field
