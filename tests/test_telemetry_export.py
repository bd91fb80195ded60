"""Where spans and measures go: to an OTLP collector, as the usual variables say, from a server as it is started."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from a2a_grpc import Client
from a2a_grpc.call import GRPC, JSONRPC
from scripts.services import free_port
from tests import test_cli
from tests.receivers import Got, Receiver, receiver
from tests.test_telemetry import HEADERS, TRACE, said

KINDS = {"/v1/traces": ExportTraceServiceRequest, "/v1/metrics": ExportMetricsServiceRequest}


@asynccontextmanager
async def collecting(monkeypatch: pytest.MonkeyPatch, **more: str) -> AsyncIterator[Receiver]:
    """A collector to which commands send."""
    async with receiver() as there:
        told = {"OTEL_EXPORTER_OTLP_ENDPOINT": there.url, "OTEL_SERVICE_NAME": "shop", "OTEL_BSP_SCHEDULE_DELAY": "100"}
        for name, value in {**told, "OTEL_METRIC_EXPORT_INTERVAL": "200", **more}.items():
            monkeypatch.setitem(test_cli.ENVIRONMENT, name, value)
        yield there


def found(there: Receiver, path: str) -> list[Any]:
    """What has arrived, decompressed."""
    return [KINDS[path].FromString(got.body) for got in there.at(path)]


def spans(there: Receiver) -> list[Any]:
    return [
        span
        for sent in found(there, "/v1/traces")
        for resource in sent.resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]


def measures(there: Receiver) -> set[str]:
    return {
        metric.name
        for sent in found(there, "/v1/metrics")
        for resource in sent.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }


@pytest.mark.requirement("SEC-07", "BL-53")
async def test_a_server_sends_spans_and_measures_to_a_collector(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    async with collecting(monkeypatch) as there:
        async with test_cli.serving("--store", "memory:", "--telemetry", cwd=tmp_path) as site:
            for binding in (GRPC, JSONRPC):
                async with Client(site.url, binding=binding, headers=HEADERS) as client:
                    await client.send(said("order 1042"))
            wanted = {"a2a.server.call.duration", "a2a.turns.running", "a2a.push.behind"}
            await there.until(lambda: wanted <= measures(there))
            site.process.terminate()
            await asyncio.wait_for(site.process.wait(), test_cli.PATIENCE)
        calls = [span for span in spans(there) if span.name == "SendMessage"]
        assert len(calls) == 2 and {span.trace_id.hex() for span in calls} == {TRACE}
        [resource] = {
            attribute.value.string_value
            for sent in found(there, "/v1/traces")
            for resource in sent.resource_spans
            for attribute in resource.resource.attributes
            if attribute.key == "service.name"
        }
        assert resource == "shop"


@pytest.mark.requirement("SEC-07", "BL-53")
async def test_a_gateway_and_the_server_behind_it_send_one_trace_up_to_the_webhook(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    push = ("--push-notifications", "--push-allow", "127.0.0.1/32")
    async with (
        collecting(monkeypatch) as there,
        receiver() as hook,
        test_cli.serving("--store", "memory:", "--telemetry", *push, cwd=tmp_path) as site,
    ):
        front = ("gateway", "--upstream", site.url, "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0", "--telemetry")
        process = await test_cli.start(*front, cwd=tmp_path)
        try:
            gateway = await test_cli.announced(process)
            async with Client(gateway.url, binding=JSONRPC, headers=HEADERS) as client:
                await client.send(said("Where is order 1001?", url=hook.url))
            await hook.until(lambda: any(b"COMPLETED" in got.body for got in hook.got))
            names = {"turn Order Lookup", "store commit", "push"}
            await there.until(lambda: names <= {span.name for span in spans(there)})
            await there.until(lambda: sum(span.name == "SendMessage" for span in spans(there)) == 3)
        finally:
            if process.returncode is None:
                process.kill()
            await process.communicate()
    assert {got.headers["traceparent"].split("-")[1] for got in hook.got} == {TRACE}
    found = {span.span_id.hex(): span for span in spans(there) if span.trace_id.hex() == TRACE}
    assert names <= {span.name for span in found.values()}
    outside = {span.parent_span_id.hex() for span in found.values()} - found.keys()
    assert outside == {HEADERS["traceparent"].split("-")[2]}  # every span but the first is below another one


@pytest.mark.requirement("BL-34")
@pytest.mark.parametrize("there", [True, False])
async def test_a_collector_that_is_away_or_silent_holds_no_server_up(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, there: bool
) -> None:
    async def never(_: Got) -> web.Response:
        await asyncio.sleep(3600)
        return web.Response()

    words = ("--store", "memory:", "--telemetry", "--metrics", "http")
    async with AsyncExitStack() as stack:
        url = (await stack.enter_async_context(receiver(never))).url if there else f"http://127.0.0.1:{free_port()}"
        monkeypatch.setitem(test_cli.ENVIRONMENT, "OTEL_EXPORTER_OTLP_ENDPOINT", url)
        site = await stack.enter_async_context(test_cli.serving(*words, cwd=tmp_path))
        async with Client(site.url, binding=GRPC) as client:
            await client.send(said("order 1042"))
        site.process.terminate()
        # The exporter itself would go on for half a minute.
        assert await asyncio.wait_for(site.process.wait(), 20) == 0
        assert site.process.stderr and b"not everything that was recorded" in await site.process.stderr.read()


async def test_what_is_not_wanted_is_not_sent(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    async with collecting(monkeypatch, OTEL_TRACES_EXPORTER="none") as there:
        async with test_cli.serving("--store", "memory:", "--telemetry", cwd=tmp_path) as site:
            async with Client(site.url, binding=GRPC, headers=HEADERS) as client:
                await client.send(said("order 1042"))
            await there.until(lambda: "a2a.server.call.duration" in measures(there))
        assert not there.at("/v1/traces")


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("OTEL_TRACES_EXPORTER", "pigeon", "OTEL_TRACES_EXPORTER must be otlp or none, not 'pigeon'"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "smoke", "OTEL_EXPORTER_OTLP_PROTOCOL must be http/protobuf or grpc, not"),
    ],
)
async def test_a_variable_that_is_not_understood_is_told_in_one_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, value: str, told: str
) -> None:
    monkeypatch.setitem(test_cli.ENVIRONMENT, name, value)
    ended = await test_cli.run("serve", "--store", "memory:", "--telemetry", "--http", "127.0.0.1:0", cwd=tmp_path)
    assert ended.code == 2 and told in ended.err and len(ended.err.splitlines()) == 1
