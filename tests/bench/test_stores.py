"""The benchmark of stores runs, on services of its own, and every part of it gives what it promises."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.bench import page, stores_page
from tests.bench.lists import CASES, spread
from tests.faults.processes import ENVIRONMENT, ROOT

STORES = {"memory", "sqlite", "postgresql"}
PAGE = stores_page.PAGE.read_text()


def test_a_spread_is_in_order_however_few_times_there_are() -> None:
    assert spread([0.002, 0.001]) == {"p50": 1.5, "p99": 2.0, "most": 2.0}
    assert spread([each / 1000 for each in range(200)])["p99"] == 197


@pytest.mark.limit(400)
def test_a_short_run_measures_every_part(tmp_path: Path) -> None:
    if not (os.environ.get("A2A_POSTGRES_URL") and shutil.which("nats-server", path=f"{os.environ['PATH']}:/usr/sbin")):
        pytest.skip("needs PostgreSQL and NATS (make services)")
    words = [
        "--rounds",
        "1",
        "--seconds",
        "0.01",
        "--chunks",
        "10",
        "200",
        "--ticks",
        "20",
        "--tasks",
        "400",
        "--owners",
        "4",
        "--pages",
        "4",
    ]
    command = [sys.executable, "-m", "tests.bench.stores", *words, "--json", str(tmp_path / "out.json")]
    done = subprocess.run(command, cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True)
    assert not done.returncode, done.stderr
    found: dict[str, list[dict[str, Any]]] = json.loads((tmp_path / "out.json").read_text())["rows"]
    measured = {(row["store"], row["each"]) for row in found["events"]}
    assert measured == {(store, each) for store in STORES for each in ("chunks 10", "chunks 200", "paced 200")}
    assert {row["store"] for row in found["sends"]} == STORES
    assert all(row["per s"] > 0 for row in found["events"] + found["sends"])
    assert all(value > 16 for row in found["weight"] for name, value in row.items() if name != "store")
    assert {(row["hints by"], row["read at"]) for row in found["lags"]} >= {("NATS", "another replica")}
    assert len(found["takeover"]) == 1
    assert next((row["case"], row["total"]) for row in found["lists"] if row["owners"] == 4) == ("no filter", 100)
    assert {row["case"] for row in found["lists"]} == set(CASES)
    assert done.stdout.count("\n### ") == len(found) == 6
    about = json.loads((tmp_path / "out.json").read_text())["about"]
    assert about["services"].startswith("PostgreSQL ") and ", NATS " in about["services"]
    made = page.written(PAGE, {"about": about, **found}, stores_page.PARTS, stores_page.NEEDS)
    assert "medians of 1 rounds of 0.01 s" in made and "400 tasks of 4 owners" in made and made != PAGE
    assert page.written(made, {"about": about, **found}, stores_page.PARTS, stores_page.NEEDS) == made


def test_the_page_on_scaling_has_a_place_for_each_table_and_keeps_what_was_not_measured() -> None:
    assert [name for name in stores_page.PARTS if PAGE.count(f"<!-- measured: {name} -->\n\n") != 1] == []
    lags = [
        {"hints by": bus, "read at": f"{place} replica", "p50": p50, "p99": 12.5, "most": 80.0}
        for bus in ("PostgreSQL", "NATS")
        for place, p50 in (("the same", 4.0), ("another", 5.25))
    ]
    parts, needs = stores_page.PARTS, stores_page.NEEDS
    made = page.written(PAGE, {"about": {}, "lags": lags}, parts, needs)
    assert "| NATS | another replica | 5.2 | 12.5 | 80.0 |" in made and "1.2 ms more by NATS" in made
    marked = "<!-- measured: lags -->", "<!-- end -->"
    before, after = (text.partition(marked[0])[0::2] for text in (PAGE, made))
    assert before[0] == after[0] and before[1].partition(marked[1])[2] == after[1].partition(marked[1])[2]
    assert page.written(PAGE, {}, parts, needs) == PAGE
