"""Durations that are added up here reach a collector as those that the SDK adds up."""

import random
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.sdk.metrics import Histogram, MeterProvider
from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    MetricExporter,
    MetricExportResult,
    MetricsData,
    PeriodicExportingMetricReader,
)
from opentelemetry.sdk.trace import TracerProvider

from a2a_grpc import telemetry_otel
from a2a_grpc.telemetry import AGENT, BUCKETS, STATE, TURN
from a2a_grpc.telemetry_otel import OpenTelemetry, _Adding
from a2a_grpc.telemetry_sums import Sums

CUMULATIVE, DELTA = AggregationTemporality.CUMULATIVE, AggregationTemporality.DELTA


class Kept(MetricExporter):
    """Keeps what it is to export."""

    def __init__(self, temporality: AggregationTemporality) -> None:
        super().__init__({Histogram: temporality})
        self.sent: list[MetricsData] = []

    def export(self, metrics_data: MetricsData, timeout_millis: float = 10_000, **_: Any) -> MetricExportResult:
        self.sent.append(metrics_data)
        return MetricExportResult.SUCCESS

    def force_flush(self, timeout_millis: float = 10_000) -> bool:
        return True

    def shutdown(self, timeout_millis: float = 30_000, **_: Any) -> None:
        pass

    def durations(self) -> Any:
        """What was sent last of turns: unit and meaning, temporality, and of each row of labels the numbers."""
        metrics = [
            (scope.scope.name, metric)
            for resource in self.sent[-1].resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
            if metric.name == "a2a.turn.duration"
        ]
        if not metrics:
            return None
        [(scope, metric)] = metrics
        rows = {tuple(sorted(point.attributes.items())): point for point in metric.data.data_points}
        numbers = {
            labels: (point.count, round(point.sum, 9), tuple(point.bucket_counts), point.min, point.max)
            for labels, point in rows.items()
        }
        examples = {
            labels: sorted((each.value, each.trace_id, each.span_id) for each in point.exemplars)
            for labels, point in rows.items()
        }
        [bounds] = {tuple(point.explicit_bounds) for point in rows.values()}
        assert all(0 < point.start_time_unix_nano < point.time_unix_nano for point in rows.values())
        told = scope, metric.unit, metric.description, metric.data.aggregation_temporality
        return told, bounds, numbers, examples


def made(temporality: AggregationTemporality, adding: bool) -> tuple[Kept, Any, OpenTelemetry]:
    """An exporter, what collects for it, and a recorder."""
    kept, sums = Kept(temporality), Sums() if adding else None
    reader = PeriodicExportingMetricReader(kept if sums is None else _Adding(kept, sums), float("inf"))
    return kept, reader, OpenTelemetry(None, MeterProvider([reader], shutdown_on_exit=False), sums)


@pytest.mark.requirement("BL-53")
@pytest.mark.parametrize("temporality", [CUMULATIVE, DELTA])
def test_what_is_added_up_here_is_what_the_sdk_adds_up(temporality: AggregationTemporality) -> None:
    both, dice = [made(temporality, adding) for adding in (False, True)], random.Random(1)
    tracer = TracerProvider(shutdown_on_exit=False).get_tracer("x")
    seen = []
    for count in (300, 0, 50):
        for number in range(count):
            seconds = dice.choice((*BUCKETS, dice.random() / 10, 10 * dice.random(), 1000.0))
            labels = {AGENT: dice.choice("ab"), STATE: dice.choice(("COMPLETED", "FAILED"))}
            span = tracer.start_span("turn") if number % 3 else trace.INVALID_SPAN
            for _, _, recorder in both:
                recorder.end(TURN, span, seconds, labels, {}, failed=False)
        for _, reader, _ in both:
            reader.collect()
        theirs, ours = (kept.durations() for kept, _, _ in both)
        assert theirs == ours
        seen.append(ours)
    assert seen[0] != seen[2] and (seen[1] is None) == (temporality is DELTA)


def test_who_wants_other_classes_gets_them_from_the_sdk(monkeypatch: pytest.MonkeyPatch) -> None:
    assert telemetry_otel._added_up(OTLPMetricExporter())
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION", "base2_exponential_bucket_histogram")
    assert not telemetry_otel._added_up(OTLPMetricExporter())
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", "DELTA")
    assert _Adding(OTLPMetricExporter(), Sums())._temporality is DELTA


def test_examples_can_be_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_METRICS_EXEMPLAR_FILTER", "always_off")
    kept, reader, recorder = made(CUMULATIVE, adding=True)
    span = TracerProvider(shutdown_on_exit=False).get_tracer("x").start_span("turn")
    recorder.end(TURN, span, 1.0, {AGENT: "a", STATE: "COMPLETED"}, {}, failed=False)
    reader.collect()
    [examples] = kept.durations()[3].values()
    assert examples == []
