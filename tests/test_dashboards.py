"""The dashboard and the alerts in deploy: their queries are PromQL, and ask for what is there when a server works."""

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import promql_parser
import pytest
import pytest_asyncio
import yaml
from aiohttp import ClientSession
from prometheus_client.parser import text_string_to_metric_families

from a2a_grpc import Client, Options, Server
from a2a_grpc.errors import A2AError
from tests.nginx import DEPLOY
from tests.receivers import receiver
from tests.test_telemetry import WIRES, agent, peers, said

GIVEN = {"job": "a2a", "instance": "here:9100"}
"""Labels that Prometheus adds."""

PANELS = json.loads((DEPLOY / "grafana-dashboard.json").read_text())["panels"]
RULES = yaml.safe_load((DEPLOY / "alerts.yaml").read_text())["groups"][0]["rules"]
SHOWN = [(panel["title"], target["expr"]) for panel in PANELS for target in panel.get("targets", ())]
ALERTS = [(rule["alert"], rule["expr"]) for rule in RULES]


class Selector(NamedTuple):
    """What a query asks for: a series, and conditions on its labels as (label, operator, value)."""

    name: str
    conditions: list[tuple[str, str, str]]


def parsed(query: str) -> Any:
    return promql_parser.parse(query.replace("$__rate_interval", "5m").replace("$job", ".*").replace("$instance", ".*"))


def selectors(query: str) -> Iterator[Selector]:
    for found in re.findall(r"\b((?:a2a|process)_\w+)(?:\{([^}]*)\})?(?=[\s\[)/]|$)", parsed(query).prettify()):
        name, inner = found
        if name.startswith("a2a_") and re.search(rf"by \([^)]*\b{name}\b", query):
            continue  # a label that sums are made by
        yield Selector(name, re.findall(r'(\w+)(=~|!~|!=|=)"([^"]*)"', inner))


def grouped_by(query: str) -> set[str]:
    found = re.findall(r"\b(?:by|on) ?\(([^)]*)\)", query)
    return {label for group in found for label in re.split(r"[\s,]+", group) if label} - {"le", *GIVEN}


Samples = dict[str, list[dict[str, str]]]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def samples() -> Samples:
    """What Prometheus reads of a server that has done everything once: the labels of each series by its name."""
    push = {"push_notifications": True, "push_allow": ("127.0.0.1/32",)}
    places = {"grpc": "127.0.0.1:0", "http": "127.0.0.1:0", "admin": ("127.0.0.1:0",), "metrics": "admin"}
    async with receiver() as there, Server(agent, Options(store="memory:", grace=0.1, **places, **push)) as server:
        for binding, version in WIRES:
            async with Client(server.http_url, binding=binding, version=version) as client:
                peers["there"] = client
                for text in ("hello", "fail", "remote hi"):
                    await client.send(said(text, url=there.url))
                assert [event async for event in client.stream(said("hello"))]
                with pytest.raises(A2AError):
                    await client.get("nobody-knows")
        await there.until(lambda: len(there.got) > 10)
        async with ClientSession() as session, session.get(f"http://{server.admin.addresses[0]}/metrics") as reply:
            text = await reply.text()
    found: Samples = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, []).append({**sample.labels, **GIVEN})
    return found


HOLDS = {
    "=": lambda value, wanted: value == wanted,
    "!=": lambda value, wanted: value != wanted,
    "=~": lambda value, wanted: re.fullmatch(wanted, value),
    "!~": lambda value, wanted: not re.fullmatch(wanted, value),
}


def is_there(wanted: Selector, samples: Samples, *, all_values: bool) -> bool:
    """Whether a series has the labels of a selector, and with `all_values` their values, too."""
    return any(
        all(
            label in row and (not all_values or HOLDS[how](row[label], value))
            for label, how, value in wanted.conditions
        )
        for row in samples.get(wanted.name, ())
    )


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(("title", "query"), SHOWN)
@pytest.mark.requirement("SEC-07")
async def test_each_query_of_the_dashboard_finds_something(samples: Samples, title: str, query: str) -> None:
    found = list(selectors(query))
    assert found
    for wanted in found:
        assert is_there(wanted, samples, all_values=True), wanted
        assert grouped_by(query) <= {label for row in samples[wanted.name] for label in row}


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(("name", "query"), ALERTS)
@pytest.mark.requirement("SEC-07")
async def test_each_alert_asks_for_what_is_there(samples: Samples, name: str, query: str) -> None:
    found = list(selectors(query))
    assert found and re.search(r"[<>] [0-9.]+\s*$", query)
    for wanted in found:
        assert is_there(wanted, samples, all_values=False), wanted
        assert grouped_by(query) <= {label for row in samples[wanted.name] for label in row}


def test_no_two_panels_lie_on_each_other_and_each_series_has_a_name() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in PANELS:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken and max(x for x, _ in cells) < 24
        taken |= cells
        assert all(target["legendFormat"] for target in panel.get("targets", ()))
    assert len({panel["id"] for panel in PANELS}) == len(PANELS)


def test_a_query_for_what_is_not_there_is_noticed() -> None:
    there: Samples = {"a2a_turns_running": [dict(GIVEN)]}
    assert is_there(Selector("a2a_turns_running", []), there, all_values=True)
    assert not is_there(Selector("a2a_turns_walking", []), there, all_values=False)
    assert not is_there(Selector("a2a_turns_running", [("a2a_agent", "=~", ".*")]), there, all_values=False)
    with pytest.raises(ValueError):
        parsed("sum(rate(a2a_turns_running[5m])")
