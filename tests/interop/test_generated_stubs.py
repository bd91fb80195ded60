"""Clients on stubs that the stock tools of other languages make from the protos here: strictly typed, both versions."""

import pytest

from tests.interop import stubs
from tests.interop.conftest import Served, steps

DONE = {"state": "TASK_STATE_COMPLETED", "text": "echo hello"}
UNKNOWN = {"status": 5, "reason": "TASK_NOT_FOUND", "domain": "a2a-protocol.org"}
WANTED = {
    "send": DONE,
    "stream": DONE,
    "error": UNKNOWN,
    "send 0.3": DONE,
    "stream 0.3": {**DONE, "final": True},
    "error 0.3": UNKNOWN,
}


@pytest.mark.requirement("GRPC-01", "GRPC-03", "GRPC-07", "V03-26", "V03-27", "I-09")
@pytest.mark.parametrize("language", stubs.LANGUAGES)
def test_generated_stubs_send_stream_and_read_error_details(served: Served, language: str) -> None:
    assert steps(*stubs.client(language), served.grpc) == WANTED
