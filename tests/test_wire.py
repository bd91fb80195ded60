"""What the HTTP wires share: version, extensions, position, tenant, and errors on their way out and in."""

import asyncio
import logging

import pytest
from a2a_stubs import v1

from a2a_grpc import errors
from a2a_grpc.bindings import wire
from a2a_grpc.bindings.wire import HttpRequest
from a2a_grpc.config import Options
from a2a_grpc.methods import METHODS
from a2a_grpc.protojson import dumps
from a2a_grpc.python310_asyncio import uncancel
from a2a_grpc.tasks.store import Event
from a2a_grpc.tasks.told import Text, Texts


def asked(header="", query=""):
    request = HttpRequest("GET", "/tasks", query, {"a2a-version": header} if header else {})
    return wire.asked_version(request, wire.query_pairs(request))


@pytest.mark.requirement("VER-02", "VER-03", "VER-05", "VER-10")
@pytest.mark.parametrize(
    ("header", "query", "version"),
    [
        ("", "", None),
        (" ", "A2A-Version=", None),
        ("1.0", "", "1.0"),
        ("1.0.3", "", "1.0"),
        ("0.3.0", "", "0.3"),
        ("", "A2A-Version=0.3", "0.3"),
        ("", "a2a-version=1.0", "1.0"),
        ("1.0", "A2a-Version=1.0.1", "1.0"),
        ("1.0, 1.0", "", "1.0"),
        ("1.1", "", "1.1"),
        ("1", "", "1"),
        ("abc", "", "abc"),
        ("\u0661.\u0660", "", "\u0661.\u0660"),
    ],
)
def test_header_or_query_name_the_version_by_major_and_minor(header, query, version):
    assert asked(header, query) == version


@pytest.mark.requirement("VER-10")
@pytest.mark.parametrize(("header", "query"), [("1.0", "A2A-Version=0.3"), ("1.0, 0.3", ""), ("1.0", "A2A-Version=x")])
def test_two_different_versions_are_refused(header, query):
    with pytest.raises(errors.InvalidParamsError) as caught:
        asked(header, query)
    assert caught.value.violations[0].field == "A2A-Version"


@pytest.mark.requirement("VER-04", "VER-09", "ERR-18")
@pytest.mark.parametrize("version", ["1.1", "2.0", "99.0", "1", "abc", "0.2"])
def test_versions_that_are_not_spoken_are_refused_with_the_list_of_those_that_are(version):
    with pytest.raises(errors.VersionNotSupportedError) as caught:
        wire.offered(version, Options())
    assert caught.value.metadata == {"supportedVersions": "1.0, 0.3"}


@pytest.mark.requirement("VER-04", "VER-07")
def test_a_known_version_that_is_switched_off_is_refused():
    with pytest.raises(errors.VersionNotSupportedError) as caught:
        wire.offered("0.3", Options(versions=("1.0",)))
    assert caught.value.metadata == {"supportedVersions": "1.0"}


def made(headers, message=None):
    request = HttpRequest("POST", "/", "", headers)
    return wire.make_call(request, "GetTask", "JSONRPC", "1.0", message or v1.GetTaskRequest(id="t"), {})


@pytest.mark.requirement("EXT-02", "EXT-14", "BL-33")
def test_both_extension_headers_are_read_and_joined():
    call = made({"a2a-extensions": "urn:a, urn:b", "x-a2a-extensions": "urn:b ,urn:c,"})
    assert call.extensions == ("urn:a", "urn:b", "urn:c")


@pytest.mark.parametrize(
    ("text", "position"),
    [("", None), ("17", 17), ("0", 0), ("-1", None), ("x", None), ("\u0661", None), ("9" * 40, None)],
)
def test_last_event_id_is_the_position_to_start_from(text, position):
    assert made({"last-event-id": text}).resume == position


@pytest.mark.requirement("TENANT-04")
def test_the_tenant_comes_from_the_message():
    assert made({}, v1.GetTaskRequest(id="t", tenant="acme")).tenant == "acme"


def test_query_bytes_that_are_no_text_are_a_bad_parameter():
    with pytest.raises(errors.InvalidParamsError):
        wire.query_pairs(HttpRequest("GET", "/tasks", "contextId=%ff"))


@pytest.mark.requirement("BL-28", "ERR-11")
def test_an_unknown_exception_shows_a_reference_and_leaves_its_text_in_the_log(caplog):
    with caplog.at_level(logging.ERROR, "a2a_grpc"):
        error = wire.public(ValueError("dsn=db://user:pw@host"))
    assert type(error) is errors.InternalError and "dsn" not in str(error.details()) + error.message
    assert error.metadata["reference"] in caplog.text and "pw@host" in caplog.text


@pytest.mark.requirement("BL-29")
async def test_only_the_cancellation_of_the_answering_task_is_passed_on():
    assert isinstance(wire.outcome(asyncio.CancelledError()), errors.InternalError)
    task = asyncio.current_task()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.sleep(0)
    with pytest.raises(asyncio.CancelledError):
        wire.outcome(asyncio.CancelledError())
    uncancel(task)


@pytest.mark.requirement("ERR-08", "ERR-10", "REST-24")
def test_errors_bring_the_headers_that_http_has_for_them():
    assert wire.error_headers(errors.UnauthenticatedError(challenge='Bearer realm="a"'), wire.JSON) == {
        "content-type": "application/json",
        "www-authenticate": 'Bearer realm="a"',
    }
    assert wire.error_headers(errors.ResourceExhaustedError(retry_after=0.2), wire.JSON)["retry-after"] == "1"
    assert wire.error_headers(errors.MethodNotAllowedError(allow=("GET", "POST")), wire.JSON)["allow"] == "GET, POST"


@pytest.mark.requirement("ERR-15", "ERR-16", "I-47")
@pytest.mark.parametrize(
    ("told", "kind"),
    [
        (
            {"code": -32603, "details": [{"@type": "x/google.rpc.ErrorInfo", "reason": "TASK_NOT_FOUND"}]},
            "TaskNotFoundError",
        ),
        ({"code": -32002}, "TaskNotCancelableError"),
        ({"code": 7, "name": "TaskNotFoundError", "status": 400}, "TaskNotFoundError"),
        ({"name": "AuthenticatedExtendedCardNotConfiguredError"}, "ExtendedAgentCardNotConfiguredError"),
        ({"status": 401}, "UnauthenticatedError"),
        ({"status": 418}, "InternalError"),
        ({"code": -31000, "details": "text"}, "InternalError"),
        (
            {"code": "x", "details": [1, {"@type": 5}, {"@type": "google.rpc.ErrorInfo", "reason": "NEW"}]},
            "InternalError",
        ),
    ],
)
def test_a_peers_error_is_told_by_reason_then_code_then_name_then_status(told, kind):
    arguments = {"code": None, "details": None} | told
    assert type(wire.received("m", **arguments)).__name__ == kind


@pytest.mark.requirement("ERR-15")
@pytest.mark.parametrize("kind", sorted(errors.BY_REASON.values(), key=lambda kind: kind.__name__))
def test_every_error_survives_the_way_out_and_in(kind):
    sent = kind("said")
    sent.metadata, sent.retry_after = {"taskId": "t"}, 1.5
    sent.violations = (errors.Violation("message.parts", "is empty"),)
    got = wire.received(sent.message, sent.jsonrpc, sent.details())
    assert (type(got), got.message, got.metadata, got.violations, got.retry_after) == (
        kind,
        "said",
        sent.metadata,
        sent.violations,
        1.5,
    )


def test_a_peers_http_headers_are_read_too():
    error = wire.received("", None, None, status=401, headers={"www-authenticate": "Basic", "retry-after": "7"})
    assert isinstance(error, errors.UnauthenticatedError) and error.challenge == "Basic" and error.retry_after == 7


@pytest.mark.requirement("ERR-10")
@pytest.mark.parametrize(
    ("after", "seconds"),
    [
        ("7", 7.0),
        ("Thu, 01 Jan 2015 12:00:09 GMT", 9.0),
        ("Thu, 01 Jan 2015 11:00:00 GMT", 0.0),
        ("soon", None),
        ("", None),
        ("-1", None),
        ("9" * 400, None),
    ],
)
def test_a_peer_may_say_when_to_come_back_in_seconds_or_by_its_clock(after, seconds):
    told = {"retry-after": after, "date": "Thu, 01 Jan 2015 12:00:00 GMT"}
    assert wire.received("", None, None, status=429, headers=told).retry_after == seconds


class Written:
    """A service whose streams give events that are written already."""

    def __init__(self, *events):
        self.events = events

    async def SendStreamingMessage(self, request, call):
        for event in self.events:
            yield event


@pytest.mark.requirement("SSE-01", "JSON-09")
@pytest.mark.parametrize("media_type", ["", "text/html"])
def test_a_text_of_an_artifact_has_the_json_of_its_message(media_type):
    operation = wire.Operation(Written(), METHODS["1.0"]["SendStreamingMessage"])
    show, texts = operation.printer(v1.SendMessageRequest()), Texts('t"', "c\n", "a\u2028", media_type)
    for text in ("", "plain", 'q"\\\n\u2028 \x00\U0001f600', "x" * 70_000):
        for last in (False, True):
            written = Text(texts, text, last)
            event = Event(1, None, written.body, written)
            for _ in range(2):  # as the first reader gets it, and the next
                assert dumps(show(event)) == dumps(show(Event(1, None, written.body))) == dumps(show(event.payload))
