"""Three replicas on one PostgreSQL under each fault, a few rounds of it; `make soak` has the hundreds.

Laws: what happens and what is checked lies in storms.py.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from a2a_stubs import v1

from tests.faults.processes import seeded
from tests.faults.storms import FAULTS, Fault, Scene, Services, own_services, reached, replicas, suffered
from tests.stores import nats_url, postgres_url


@pytest.fixture(scope="module")
def own() -> Iterator[Services]:
    """A PostgreSQL and a NATS of the module's own, which it may stop."""
    if not (os.environ.get("A2A_POSTGRES_URL") and os.environ.get("A2A_NATS_URL")):
        pytest.skip("needs PostgreSQL and NATS (make services)")
    with own_services() as made:
        yield made


@pytest.mark.requirement("BL-08", "BL-10", "BL-48", "SUB-03", "STREAM-09")
@pytest.mark.parametrize("name", ["kill", "pause"])
async def test_tasks_of_a_replica_that_is_lost_are_settled_by_the_others(tmp_path: Path, name: str) -> None:
    fault = FAULTS[name]
    async with postgres_url() as url, replicas(tmp_path, url, fault, seeded()) as fleet:
        found = await suffered(Scene(fleet, url, None), [fault] * 3)
        assert any(task.state == v1.TASK_STATE_FAILED or task.attempt > 1 for task in found)


@pytest.mark.requirement("BL-34", "BL-48", "SUB-03")
async def test_a_rolling_restart_under_load_is_noticed_by_no_task_and_no_reader(tmp_path: Path) -> None:
    fault = FAULTS["roll"]
    async with postgres_url() as url, replicas(tmp_path, url, fault, seeded()) as fleet:
        await suffered(Scene(fleet, url, None), [fault] * 3)


@pytest.mark.requirement("BL-08", "BL-48")
async def test_clocks_an_hour_apart_and_lost_hints_change_nothing_and_date_nothing_wrongly(tmp_path: Path) -> None:
    fault = FAULTS["clocks"]._replace(loss=0.7)
    async with postgres_url() as url, replicas(tmp_path, url, fault, seeded()) as fleet:

        def until_all_have_begun() -> Iterator[Fault]:
            while len({line.split()[-1] for line in fleet.ran.read_text().splitlines()}) < 3:
                yield fault

        await suffered(Scene(fleet, url, None), until_all_have_begun())


@pytest.mark.requirement("BL-48", "SUB-03")
async def test_what_reaches_the_database_late_loses_and_doubles_nothing(tmp_path: Path) -> None:
    fault, chance = FAULTS["late"], seeded()
    async with (
        postgres_url() as url,
        reached(url, fault, chance) as (place, lag),
        replicas(tmp_path, place, fault, chance, nats_url(url)) as fleet,
    ):
        await suffered(Scene(fleet, url, None, lag), [fault] * 10)


@pytest.mark.requirement("BL-48", "SUB-03")
@pytest.mark.parametrize("names", ["nats cut stop crash", "full"])
async def test_services_that_come_back_lose_and_double_nothing(tmp_path: Path, own: Services, names: str) -> None:
    if "full" in names and not own.small:
        pytest.skip("needs the right to mount a small file system")
    faults = [FAULTS[name] for name in names.split()]
    async with postgres_url(own.url) as url, replicas(tmp_path, url, faults[0], seeded(), own.bus) as fleet:
        await suffered(Scene(fleet, url, own), faults)
