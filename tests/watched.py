"""Servers that are watched, and what was recorded of them: spans and measures in memory.

Laws: nothing global is set up; each server has providers of its own.
"""

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from a2a_grpc.telemetry_otel import OpenTelemetry
from a2a_grpc.telemetry_parts import Telemetry

PATIENCE = 30.0


class Watch:
    """telemetry: for a Server. tracers: for spans of one's own. sampler: of these, default the SDK's."""

    def __init__(self, sampler: Any = None, **more: Any) -> None:
        self._spans, self._reader = InMemorySpanExporter(), InMemoryMetricReader()
        self.tracers = TracerProvider(sampler, shutdown_on_exit=False)
        self.tracers.add_span_processor(SimpleSpanProcessor(self._spans))
        meters = MeterProvider([self._reader], shutdown_on_exit=False)
        self.telemetry = Telemetry(OpenTelemetry(self.tracers, meters), **more)

    @property
    def spans(self) -> list[ReadableSpan]:
        """What has ended so far."""
        return list(self._spans.get_finished_spans())

    def named(self, *names: str) -> list[ReadableSpan]:
        """The spans with one of these names."""
        return [span for span in self.spans if span.name in names]

    async def until(self, enough: Callable[[], Any]) -> None:
        """Wait until something holds of what was recorded."""
        async with asyncio.timeout(PATIENCE):
            while not enough():  # noqa: ASYNC110
                await asyncio.sleep(0.01)

    def points(self, name: str) -> list[tuple[dict[str, Any], Any]]:
        """The values of a measure, each with its labels; of a duration, how many there were."""
        found = self._reader.get_metrics_data()
        scopes = [scope for resource in (found.resource_metrics if found else ()) for scope in resource.scope_metrics]
        return [
            (dict(point.attributes or {}), getattr(point, "count", None) or getattr(point, "value", 0))
            for scope in scopes
            for metric in scope.metrics
            if metric.name == name
            for point in metric.data.data_points
        ]


def ancestry(spans: Iterable[ReadableSpan]) -> dict[str, str]:
    """The name of each span's parent by the name of the span; "" where it is not among them."""
    by_id = {span.context.span_id: span.name for span in spans if span.context}
    return {span.name: by_id.get(span.parent.span_id if span.parent else 0, "") for span in spans}
