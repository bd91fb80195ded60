"""Measures as Prometheus reads them: classes of durations, counters, what is read when somebody looks."""

import threading

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as open_metrics
from prometheus_client.parser import text_string_to_metric_families as plain

from a2a_grpc.telemetry import BUCKETS, CODE, OK, PUSH, REQUESTS, RESULT, STORE, Both
from a2a_grpc.telemetry_prometheus import Prometheus
from tests.watched import Watch

ACCEPT = "application/openmetrics-text; version=1.0.0"


def read(recorder: Prometheus, accept: str = "") -> dict[str, dict[tuple[str, ...], float]]:
    """The values of each series by the values of its labels, in the order of their names."""
    media, body = recorder.text(accept)
    parse = open_metrics if "openmetrics" in media else plain
    found: dict[str, dict[tuple[str, ...], float]] = {}
    for family in parse(body.decode()):
        for sample in family.samples:
            found.setdefault(sample.name, {})[tuple(value for _, value in sorted(sample.labels.items()))] = sample.value
    return found


@pytest.mark.parametrize("accept", ["", ACCEPT])
@pytest.mark.requirement("SEC-07")
def test_durations_fall_into_classes_that_hold_the_ones_below(accept: str) -> None:
    recorder = Prometheus("shop")
    for seconds in (0.0004, 0.0005, 0.02, 0.02, 1000.0):
        recorder.end(PUSH, None, seconds, {RESULT: "delivered"}, {}, False)
    recorder.end(PUSH, None, 0.5, {RESULT: "gone"}, {}, True)
    found = read(recorder, accept)
    name = "a2a_push_duration_seconds"
    assert found[f"{name}_count"] == {("delivered",): 5.0, ("gone",): 1.0}
    assert found[f"{name}_sum"][("delivered",)] == pytest.approx(1000.0409)
    classes = found[f"{name}_bucket"]
    assert len(classes) == 2 * (len(BUCKETS) + 1)
    wanted = {"0.0005": 2, "0.001": 2, "0.01": 2, "0.025": 4, "300.0": 4, "+Inf": 5}
    assert {bound: classes["delivered", bound] for bound in wanted} == wanted
    assert found["target_info"] == {("shop",): 1.0}


def test_what_is_counted_is_there_from_the_start_and_never_lost() -> None:
    recorder = Prometheus()
    assert read(recorder)["a2a_retention_deleted_total"] == {(): 0.0}

    def count() -> None:
        for _ in range(2000):
            recorder.count(REQUESTS, 1, {"a2a.binding": "GRPC", CODE: OK})
            recorder.end(STORE, None, 0.1, {"a2a.store.operation": "commit", CODE: OK}, {}, False)

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = read(recorder)
    assert found["a2a_server_requests_total"] == {("GRPC", OK): 8000.0}
    assert found["a2a_store_duration_seconds_count"] == {(OK, "commit"): 8000.0}


def test_a_measure_that_cannot_be_read_hides_no_other(caplog: pytest.LogCaptureFixture) -> None:
    recorder = Prometheus()

    def broken() -> list[tuple[float, dict[str, str]]]:
        raise RuntimeError("no way")

    recorder.observe("a2a.bad", "{x}", "Cannot be read", broken, grows=False)
    recorder.observe("a2a.good", "{x}", "Can be read", lambda: [(3, {"a2a.limit": "y"})], grows=False)
    recorder.observe("a2a.more", "{x}", "Grows", lambda: [(4, {})], grows=True)
    found = read(recorder)
    assert "a2a_bad" not in found and "a2a_bad cannot be read" in caplog.text
    assert found["a2a_good"] == {("y",): 3.0} and found["a2a_more_total"] == {(): 4.0}


def test_two_recorders_hear_of_everything() -> None:
    watch, recorder = Watch(), Prometheus()
    first = watch.telemetry.recorder
    assert first is not None
    both = Both(first, recorder)
    both.observe("a2a.good", "{x}", "Can be read", lambda: [(3, {})], grows=False)
    both.count(REQUESTS, 2, {"a2a.binding": "GRPC", CODE: OK})
    span = both.begin(PUSH, "push", {}, None, {}, "")
    both.end(PUSH, span, 0.1, {RESULT: "delivered"}, {}, False)
    found = read(recorder)
    assert [each.name for each in watch.spans] == ["push"] and both.text == recorder.text
    assert found["a2a_good"] == {(): 3.0} and watch.points("a2a.good") == [({}, 3)]
    assert found["a2a_server_requests_total"] == {("GRPC", OK): 2.0}
    assert watch.points(REQUESTS) == [({"a2a.binding": "GRPC", CODE: OK}, 2)]
    assert found["a2a_push_duration_seconds_count"] == {("delivered",): 1.0}
    assert watch.points("a2a.push.duration") == [({RESULT: "delivered"}, 1)] and [*both.flushes()]
