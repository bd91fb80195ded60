"""Errors as data: what the wires print of them."""

import pytest
from a2a_stubs import google

from a2a_grpc.errors import ResourceExhaustedError, scrubbed
from a2a_grpc.protojson import decode


@pytest.mark.requirement("ERR-10", "JSON-21")
@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0s"), (0.00003, "0s"), (1.25, "1.25s"), (60, "60s"), (2e6, "2000000s")]
)
def test_a_delay_is_a_duration_whatever_its_size(seconds: float, text: str) -> None:
    delay = ResourceExhaustedError(retry_after=seconds).details()[1]["retryDelay"]
    assert delay == text
    assert decode(google.RetryInfo, {"retryDelay": delay}).retry_delay.ToMilliseconds() == round(seconds * 1000)


@pytest.mark.requirement("SEC-05")
@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("http://user:hush@h:1/p?key=hush#f", "http://h:1/p?...#f"),
        ("cannot fetch http://h/?key=hush: refused (is it on?)", "cannot fetch http://h/?...: refused (is it on?)"),
        ("404, url='https://hush@h/?a=hush&b=hush'", "404, url='https://h/?...'"),
        ("grpc://h:1 is away", "grpc://h:1 is away"),
    ],
)
def test_an_address_is_shown_without_what_may_be_secret(text: str, shown: str) -> None:
    assert scrubbed(text) == shown
