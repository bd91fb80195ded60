"""The fixture `cell`: every scenario of this folder runs in each cell that can say what it needs.

Marks: `needs(*rows of LACKS)` leaves out the cells that lack something, `versions(...)` and `wires(...)` all others;
`stores(...)` those of other stores; `site(agent=, own=, **options)` asks for another server than the shared one.
All of a module runs in one event loop, with its servers.
"""

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.contract.cells import ALONE, LACKS, PLACES, REPLICAS, SPREAD, WIRES, Cell, Sites

HERE = Path(__file__).parent


def pytest_configure(config: pytest.Config) -> None:
    for line in (
        "needs(*rows): leave out the cells that a row of LACKS names",
        "versions(*versions): only in cells of these versions",
        "wires(*bindings): only in cells of these bindings",
        "stores(*stores): only in cells of these stores",
        "site(**settings): another server than the one shared by the module",
    ):
        config.addinivalue_line("markers", line)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents and pytest_asyncio.is_async_test(item):
            item.add_marker(pytest.mark.asyncio(loop_scope="module"), append=False)


def _told(metafunc: pytest.Metafunc, name: str) -> Iterator[Any]:
    for mark in metafunc.definition.iter_markers(name):
        yield from mark.args


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "cell" not in metafunc.fixturenames:
        return
    lacking = {wire for row in _told(metafunc, "needs") for wire in LACKS[row][0]}
    only = [set(_told(metafunc, name)) for name in ("wires", "versions", "stores")]
    name = metafunc.definition.originalname
    every = [
        (*wire, place)
        for wire in WIRES
        for place in PLACES
        if wire not in lacking and (place not in REPLICAS or (name not in ALONE and (*wire, place) in SPREAD))
    ]
    cells = [cell for cell in every if all(not told or value in told for value, told in zip(cell, only, strict=True))]
    metafunc.parametrize("cell", cells, ids=["-".join(cell) for cell in cells], indirect=True)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def sites(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Sites]:
    """The servers of the module. Replicas that hear no hints look often, so that nobody waits long."""
    async with AsyncExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.setattr("a2a_grpc.tasks.feed.POLL", 0.1)
        yield Sites(tmp_path_factory.mktemp("stores"), stack)


@pytest_asyncio.fixture(loop_scope="module", name="cell")
async def one_cell(request: pytest.FixtureRequest, sites: Sites) -> Cell:
    """A cell with its server."""
    binding, version, store = request.param
    settings: dict[str, Any] = {}
    for mark in request.node.iter_markers("site"):
        settings = {**mark.kwargs, **settings}
    site = await sites.site(store, **settings)
    return Cell(binding, version, store, site, await site.client(binding, version))
