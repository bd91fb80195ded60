"""The benchmark of stores runs, on services of its own, and every part of it gives what it promises."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.bench.lists import CASES, spread
from tests.faults.processes import ENVIRONMENT, ROOT

STORES = {"memory", "sqlite", "postgresql"}


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
