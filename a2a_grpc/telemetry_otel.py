"""Traces and measures by OpenTelemetry: a Recorder on its API, and where they are sent by the usual OTEL_* variables.

Laws: the only module that names OpenTelemetry; it is loaded when an option asks for it. Attributes follow
the semantic conventions for RPC and HTTP, what has no place there begins with `a2a.`. What a program has set up for
itself is used; nothing is set up over it.
"""

import importlib
import logging
import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cache, partial
from importlib import metadata
from typing import Any, Final

from a2a_grpc.call import GRPC, JSONRPC, V03
from a2a_grpc.config import OptionError
from a2a_grpc.errors import BY_REASON, UnavailableError
from a2a_grpc.extras import needs
from a2a_grpc.methods import METHODS
from a2a_grpc.telemetry import (
    BINDING,
    BUCKETS,
    CALL,
    CODE,
    COUNTERS,
    HTTP_STATUS,
    KINDS,
    OK,
    OPERATION,
    PUSH,
    RESULT,
    STATE,
    TRIMMED,
    VERSION,
    Kind,
    Values,
)
from a2a_grpc.telemetry_sums import Labels, Sum, Sums
from a2a_grpc.v03_names import JSONRPC_NAMES, METHOD_NAMES

with needs("telemetry"):
    from opentelemetry import context, metrics, trace
    from opentelemetry.context import Context
    from opentelemetry.metrics import CallbackOptions, Histogram, MeterProvider, Observation
    from opentelemetry.sdk.metrics import Exemplar
    from opentelemetry.sdk.metrics import Histogram as SdkHistogram
    from opentelemetry.sdk.metrics import MeterProvider as SdkMeterProvider
    from opentelemetry.sdk.metrics.export import (
        AggregationTemporality,
        HistogramDataPoint,
        Metric,
        MetricExporter,
        MetricExportResult,
        MetricsData,
        PeriodicExportingMetricReader,
        ScopeMetrics,
    )
    from opentelemetry.sdk.metrics.export import Histogram as HistogramData
    from opentelemetry.sdk.metrics.view import ExponentialBucketHistogramAggregation
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider as SdkTracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor
    from opentelemetry.sdk.trace.sampling import ParentBased
    from opentelemetry.trace import Link, Span, SpanKind, Status, StatusCode, TracerProvider
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

_W3C: Final = TraceContextTextMapPropagator()
_FIELDS: Final = frozenset(_W3C.fields)
for _name in ("opentelemetry.trace.propagation.tracecontext", "opentelemetry.trace.span"):
    logging.getLogger(_name).setLevel(logging.ERROR)  # else callers write a warning with each header that is wrong


_ROLES: Final[Mapping[str, SpanKind]] = {kind.role: SpanKind[kind.role] for kind in KINDS}

Counts = dict[tuple[tuple[str, str], ...], int]
"""How often something was counted, by its labels."""


class OpenTelemetry:
    """A Recorder. tracers: whose spans; None: no spans. meters: whose measures; None: no measures. sums: where
    durations are added up for an exporter of ours; None: instruments of `meters` take each."""

    text = None

    def __init__(
        self, tracers: TracerProvider | None = None, meters: MeterProvider | None = None, sums: Sums | None = None
    ) -> None:
        self._sums = sums
        self._providers: list[Any] = [each for each in (tracers, meters) if hasattr(each, "force_flush")]
        self._tracer = tracers.get_tracer("a2a_grpc", _version()) if tracers else None
        self._inherits = _inherits(tracers)
        self._meter = meters.get_meter("a2a_grpc", _version()) if meters else metrics.NoOpMeter("a2a_grpc")
        self._histograms: dict[Kind, Histogram] = {}
        if meters and sums is None:
            self._histograms = {kind: self._histogram(kind) for kind in KINDS}
        # What has no labels is there from the start, so that rates are.
        self._counted: dict[str, Counts] = {name: {} if row[1] else {(): 0} for name, row in COUNTERS.items()}
        self._counting = threading.Lock()
        for name, (meaning, _) in COUNTERS.items():
            self.observe(name, "1", meaning, partial(_counts, self._counted[name]), grows=True)

    def _histogram(self, kind: Kind) -> Histogram:
        return self._meter.create_histogram(
            f"{kind.name}.duration", "s", kind.meaning, explicit_bucket_boundaries_advisory=BUCKETS
        )

    # -- spans

    def begin(
        self,
        kind: Kind,
        name: str,
        details: Mapping[str, Any],
        parent: Span | None,
        headers: Mapping[str, str],
        earlier: str,
        began: int | None = None,
    ) -> Span | None:
        """Begin a span (see Recorder)."""
        if self._tracer is None:
            return None
        whence = trace.set_span_in_context(parent) if parent is not None else _whence(kind, headers)
        if self._inherits and (parent is not None or (whence is None and kind is not CALL)):
            above = trace.get_current_span() if parent is None else parent
            known = above.get_span_context()
            left_out = isinstance(above, trace.NonRecordingSpan) and not known.trace_flags.sampled
            if left_out and known.is_valid and not known.is_remote:
                return above  # what is part of it is not sampled either: there is nothing to make
        links = [Link(last)] if earlier and (last := _context_of(earlier)) else None
        if BINDING in details:
            details = {**_of_wire(kind is CALL, details[OPERATION], details[BINDING], details[VERSION]), **details}
        return self._tracer.start_span(
            name, whence, _ROLES[kind.role], details, links, began, set_status_on_exception=False
        )

    def enter(self, span: Span | None) -> Any:
        """Make the span the current one (see Recorder)."""
        return None if span is None else context.attach(trace.set_span_in_context(span))

    def leave(self, token: Any) -> None:
        """Take `enter` back (see Recorder)."""
        if token is not None:
            context.detach(token)

    def headers(self, span: Span | None) -> dict[str, str]:
        """W3C headers of a span, None for the current one (see Recorder)."""
        found = (trace.get_current_span() if span is None else span).get_span_context()
        if not found.is_valid:
            return {}
        parent = f"00-{found.trace_id:032x}-{found.span_id:016x}-{found.trace_flags:02x}"
        state = found.trace_state.to_header() if found.trace_state else ""
        return {"traceparent": parent, "tracestate": state} if state else {"traceparent": parent}

    def ids(self, span: Span | None) -> dict[str, str]:
        """The ids of a span (see Recorder)."""
        found = span.get_span_context() if span is not None else None
        if found is None or not found.is_valid:
            return {}
        return {"trace_id": trace.format_trace_id(found.trace_id), "span_id": trace.format_span_id(found.span_id)}

    def end(
        self,
        kind: Kind,
        span: Span | None,
        seconds: float,
        labels: Mapping[str, str],
        new: Mapping[str, str],
        failed: bool,
    ) -> None:
        """An act is over (see Recorder). What a caller did wrong is no error of the span of its call."""
        if (histogram := self._histograms.get(kind)) is not None:
            histogram.record(seconds, labels, context=None if span is None else trace.set_span_in_context(span))
        elif self._sums is not None:
            here = span and span.get_span_context()
            example = (here.trace_id, here.span_id) if here and here.trace_flags.sampled else None
            self._sums.add(kind, seconds, labels, example)
        if span is None:
            return
        if span.is_recording():
            binding = labels.get(BINDING, "")
            answered = _answered(kind is CALL, binding, labels.get(CODE, "")) if binding else {}
            if new or answered:
                span.set_attributes({**new, **answered})
            code = labels.get(CODE, "")
            if failed and not (kind is CALL and code in BY_REASON and BY_REASON[code].http < 500):
                span.set_attribute("error.type", _error(new, labels, answered))
                span.set_status(Status(StatusCode.ERROR))
        span.end()

    # -- measures

    def count(self, name: str, amount: int, labels: Mapping[str, str]) -> None:
        """Add to a counter (see Recorder)."""
        counted, key = self._counted[name], tuple(labels.items())
        with self._counting:
            counted[key] = counted.get(key, 0) + amount

    def observe(self, name: str, unit: str, meaning: str, values: Values, *, grows: bool) -> None:
        """Have values read whenever measures are. grows: they only ever become more."""

        def read(_: CallbackOptions) -> Iterable[Observation]:
            return [Observation(value, labels) for value, labels in values()]

        make = self._meter.create_observable_counter if grows else self._meter.create_observable_gauge
        make(name, [read], unit, meaning)

    def flushes(self) -> Iterable[Callable[[], object]]:
        """What sends what is not sent yet (see Recorder)."""
        return [provider.force_flush for provider in self._providers]


def _inherits(tracers: TracerProvider | None) -> bool:
    """Whether what is part of an act that is not sampled never is, as of all samplers of the environment whose names
    begin with `parentbased`."""
    sampler = getattr(tracers, "sampler", None)
    told: Any = sampler.get_description if isinstance(sampler, ParentBased) else str
    return "localParentNotSampled:AlwaysOffSampler" in told()


def _counts(counted: Counts) -> Iterable[tuple[float, Mapping[str, str]]]:
    return [(number, dict(labels)) for labels, number in list(counted.items())]


def _version() -> str:
    try:
        return metadata.version("a2a-grpc")
    except metadata.PackageNotFoundError:
        return "0"


def _whence(kind: Kind, headers: Mapping[str, str]) -> Context | None:
    """Where an act goes on from, None for what is under way here: for a call that is what an instrumented host in
    between has begun; a webhook's request is under way on behalf of nobody but whom its headers name."""
    if kind is PUSH:
        return _W3C.extract(headers, Context())
    if "traceparent" not in headers:
        return None
    told = _W3C.extract(headers, Context())
    mine, theirs = (trace.get_current_span(place).get_span_context() for place in (None, told))
    return None if mine.is_valid and theirs.trace_id in (0, mine.trace_id) else told


def _context_of(earlier: str) -> trace.SpanContext | None:
    parent, _, state = earlier.partition(" ")
    found = trace.get_current_span(_W3C.extract({"traceparent": parent, "tracestate": state}, Context()))
    return found.get_span_context() if found.get_span_context().is_valid else None


# -- the semantic conventions


@cache
def _of_wire(served: bool, operation: str, binding: str, version: str) -> Mapping[str, str]:
    """What the conventions say of an operation on a wire: names and routes as they are there. served: here."""
    name = METHOD_NAMES.get(operation, operation) if version == V03 else operation
    method = METHODS.get(version, {}).get(name)
    if method is None:
        return {}
    if binding == GRPC:
        return {"rpc.system.name": "grpc", "rpc.method": method.path.lstrip("/")}
    if binding == JSONRPC:
        told = JSONRPC_NAMES[operation] if version == V03 else operation
        return {"rpc.system.name": "jsonrpc", "jsonrpc.protocol.version": "2.0", "rpc.method": told}
    route = "http.route" if served else "url.template"
    return {"http.request.method": method.routes[0].verb, route: method.routes[0].template}


@cache
def _answered(served: bool, binding: str, code: str) -> Mapping[str, str | int]:
    """How the wire said that it went. served: here."""
    error = BY_REASON.get(code)
    if error is None and code != OK:
        return {}
    if binding == GRPC:
        return {"rpc.response.status_code": error.grpc.name if error else code}
    if error is UnavailableError and not served:
        return {}  # a connection may have broken before there was an answer
    if binding == JSONRPC:
        return {"rpc.response.status_code": str(error.jsonrpc)} if error else {}
    return {HTTP_STATUS: error.http if error else 200}


def _error(new: Mapping[str, Any], labels: Mapping[str, str], answered: Mapping[str, str | int]) -> str:
    """What an error is called: by the wire's own status, if there was one, else by what its measure says."""
    statuses = (*answered.values(), new.get(HTTP_STATUS), *map(labels.get, (CODE, RESULT, STATE)))
    return str(next(filter(None, statuses), "_OTHER"))


# -- exporters

_EXPORTERS: Final[Mapping[str, str]] = {"traces": "OTLPSpanExporter", "metrics": "OTLPMetricExporter"}
_MODULES: Final[Mapping[str, str]] = {"traces": "trace_exporter", "metrics": "metric_exporter"}


def _exporter(signal: str) -> Any:
    """The exporter of `traces` or `metrics` that the environment asks for, None for none. Raises OptionError."""
    asked = os.environ.get(f"OTEL_{signal.upper()}_EXPORTER", "otlp").strip()
    if asked in ("none", ""):
        return None
    if asked != "otlp":
        raise OptionError(f"OTEL_{signal.upper()}_EXPORTER must be otlp or none, not {asked!r}")
    specific = os.environ.get(f"OTEL_EXPORTER_OTLP_{signal.upper()}_PROTOCOL")
    protocol = specific or os.environ.get("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")
    way = {"http/protobuf": "http", "grpc": "grpc"}.get(protocol)
    if way is None:
        raise OptionError(f"OTEL_EXPORTER_OTLP_PROTOCOL must be http/protobuf or grpc, not {protocol!r}")
    name = f"opentelemetry.exporter.otlp.proto.{way}.{_MODULES[signal]}"
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as missing:
        raise OptionError(f"there is no {missing.name}: install opentelemetry-exporter-otlp-proto-{way}") from None
    return getattr(module, _EXPORTERS[signal])()


class _Adding(MetricExporter):
    """An exporter that is handed durations, too, which were added up here at a tenth of what the SDK takes for each."""

    def __init__(self, exporter: Any, sums: Sums) -> None:
        super().__init__(exporter._preferred_temporality, exporter._preferred_aggregation)
        self._exporter, self._sums, self._since = exporter, sums, time.time_ns()
        self._temporality = (exporter._preferred_temporality or {}).get(SdkHistogram, AggregationTemporality.CUMULATIVE)
        self._examples = os.environ.get("OTEL_METRICS_EXEMPLAR_FILTER", "").strip().lower() != "always_off"

    def export(self, metrics_data: MetricsData, timeout_millis: float = 10_000, **more: Any) -> MetricExportResult:
        """Export what was measured, and what was added up."""
        found = [
            replace(each, scope_metrics=[self._added(scope) for scope in each.scope_metrics])
            for each in metrics_data.resource_metrics
        ]
        result: MetricExportResult = self._exporter.export(MetricsData(found), timeout_millis, **more)
        return result

    def _added(self, scope: ScopeMetrics) -> ScopeMetrics:
        """What our own scope measured, known by a counter that is always there, and the durations."""
        if not any(metric.name == TRIMMED for metric in scope.metrics):
            return scope
        since, now, delta = self._since, time.time_ns(), self._temporality is AggregationTemporality.DELTA
        if delta:
            self._since = now
        made = []
        for kind in KINDS:
            if points := [self._point(kind, *row, since, now) for row in self._sums.read(kind, anew=delta)]:
                data = HistogramData(points, self._temporality)
                made.append(Metric(f"{kind.name}.duration", kind.meaning, "s", data))
        return replace(scope, metrics=[*scope.metrics, *made])

    def _point(self, kind: Kind, labels: Labels, each: Sum, since: int, now: int) -> HistogramDataPoint:
        seen = each.seen.values() if self._examples else ()
        return HistogramDataPoint(
            dict(zip(kind.labels, labels, strict=True)), since, now, sum(each.counts), each.total, each.counts, BUCKETS,
            each.least, each.most, [Exemplar({}, seconds, at, span, trace) for seconds, at, trace, span in seen],
        )  # fmt: skip

    def force_flush(self, timeout_millis: float = 10_000) -> bool:
        """Send what is not sent yet."""
        return bool(self._exporter.force_flush(timeout_millis))

    def shutdown(self, timeout_millis: float = 30_000, **more: Any) -> None:
        """Send no more."""
        self._exporter.shutdown(timeout_millis, **more)


def _added_up(exporter: Any) -> bool:
    """Whether durations go to an exporter in classes of ours; a variable may ask for others."""
    wanted = (exporter._preferred_aggregation or {}).get(SdkHistogram)
    return not isinstance(wanted, ExponentialBucketHistogramAggregation)


def _tracers(resource: Resource) -> TracerProvider | None:
    """The program's own provider, or one that sends spans, which the program then has, too."""
    found = trace.get_tracer_provider()
    if not isinstance(found, trace.ProxyTracerProvider):
        return found
    exporter = _exporter("traces")
    if exporter is None:
        return None
    # The end of the process waits for nobody: what is left is sent when the server stops, see Telemetry.flush.
    provider = SdkTracerProvider(resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    return provider


def recorder() -> OpenTelemetry:
    """The recorder that the environment asks for. Raises OptionError: a part is missing, or a variable has a value that
    is not understood."""
    resource = Resource.create({} if os.environ.get("OTEL_SERVICE_NAME") else {"service.name": "a2a-grpc"})
    tracers = _tracers(resource)
    given = metrics.get_meter_provider()
    if isinstance(given, SdkMeterProvider):
        return OpenTelemetry(tracers, given)
    exporter = _exporter("metrics")
    if exporter is None:
        return OpenTelemetry(tracers)
    sums = Sums() if _added_up(exporter) else None
    reader = PeriodicExportingMetricReader(exporter if sums is None else _Adding(exporter, sums))
    return OpenTelemetry(tracers, SdkMeterProvider([reader], resource, shutdown_on_exit=False), sums)
