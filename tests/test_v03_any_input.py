"""Whatever JSON a v0.3 peer sends is understood or refused with an A2A error, and never changed."""

import contextlib
import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from a2a_grpc import v03 as old
from a2a_grpc.errors import A2AError
from a2a_grpc.v03_cards import card_up
from a2a_grpc.v03_names import JSONRPC_NAMES

TEXT = (
    "kind text file data message task status state parts content role metadata messageId taskId contextId id "
    "name parent config configId pushNotificationConfig pushNotification url token authentication schemes "
    "credentials configuration blocking historyLength bytes uri mimeType value data_part_compat a2a_grpc.v1 "
    "mediaType artifact artifacts history final statusUpdate artifactUpdate timestamp configs security "
    "securitySchemes type flows skills additionalInterfaces transport preferredTransport protocolVersion "
    "supportedInterfaces capabilities oauth2 implicit password apiKey user agent working canceled ROLE_USER "
    "TASK_STATE_CANCELLED status-update artifact-update referenceTaskIds tasks/t 2025-10-28T10:30:00 "
)
WORDS = TEXT.split()
LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 3), st.floats(0.5, 9), st.sampled_from(["", "aGk=", *WORDS])
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=5),
    max_leaves=25,
)


@pytest.mark.requirement("ERR-06", "V03-40")
@given(st.sampled_from([*JSONRPC_NAMES]), VALUES)
@settings(max_examples=150, deadline=None)
def test_any_value_is_understood_or_refused(operation: str, value: Any) -> None:
    before = copy.deepcopy(value)
    for read in (
        lambda: old.up_params(operation, value),
        lambda: old.up_rest(operation, {}, [], value),
        lambda: old.up_rest(operation, {"name": "tasks/t", "parent": "tasks/t"}, [("historyLength", "x")], value),
        lambda: old.up_result(operation, value),
        lambda: old.up_event(value),
        lambda: card_up(value),
    ):
        with contextlib.suppress(A2AError):
            read()
    assert value == before


PARTS = st.fixed_dictionaries(
    {},
    optional={
        "kind": st.sampled_from(["text", "file", "data"]),
        "text": st.text(max_size=3),
        "data": st.dictionaries(st.sampled_from(WORDS), VALUES, max_size=3),
        "file": st.sampled_from(
            [{"bytes": "aGk="}, {"uri": "https://x"}, {"bytes": "", "mimeType": "a/b", "name": "n"}]
        ),
        "metadata": st.dictionaries(st.sampled_from(WORDS), VALUES, max_size=3),
    },
)


@pytest.mark.requirement("V03-21", "V03-27")
@given(PARTS)
@settings(max_examples=150, deadline=None)
def test_a_part_that_is_understood_survives_both_dialects(part: Any) -> None:
    message = {"kind": "message", "messageId": "m", "role": "agent", "parts": [part]}
    with contextlib.suppress(A2AError):
        answer = old.up_result("SendMessage", message)
        assert old.up_result("SendMessage", old.down_result(answer)) == answer
        proto = old.down_message(answer)
        assert old.up_result("SendMessage", old.down_rest(answer)) == old.up_result("SendMessage", proto)
        if "file" not in part:
            assert old.up_result("SendMessage", proto) == answer
