"""The scenarios run in every cell; what is left out is said in one table, which may only shrink."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from a2a_grpc.call import VERSIONS
from a2a_grpc.cards import BINDINGS as ALL_BINDINGS
from a2a_grpc.methods import METHODS
from a2a_grpc.opening import BUSES as ALL_BUSES
from a2a_grpc.opening import STORES as ALL_STORES
from a2a_grpc.v03_names import METHOD_NAMES
from tests.contract.cells import ALONE, BINDINGS, LACKS, PLACES, REPLICAS, SPREAD, STORES, WIRES
from tests.stores import STORES as OPENERS

HERE = Path(__file__).parent
MOST_LACKS = 30
"""Cells in LACKS, rows times wires. May only shrink."""

MOST_ALONE = 2
"""Scenarios in ALONE. May only shrink."""


def marks(name: str) -> Iterator[tuple[str, list[str]]]:
    """Every use of a mark in the scenarios: file and line, and the texts it is given."""
    for path in sorted(HERE.glob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == f"pytest.mark.{name}":
                yield f"{path.name}:{node.lineno}", [arg.value for arg in node.args if isinstance(arg, ast.Constant)]


def test_every_binding_version_and_store_is_a_cell() -> None:
    assert {(BINDINGS[binding], version) for binding, version in WIRES} == {
        (binding, version) for binding in ALL_BINDINGS for version in VERSIONS
    }
    assert {"memory", "sqlite"} <= set(STORES) <= set(OPENERS) >= set(ALL_STORES)
    assert set(PLACES) == {*STORES, "gateway", "asgi", *REPLICAS}
    assert set(REPLICAS.values()) in (set(), {*ALL_BUSES, "deaf"})
    assert (
        {binding for binding, _, _ in SPREAD} == {*BINDINGS} and {place for _, _, place in SPREAD} == {*REPLICAS}
    ) or not REPLICAS


def test_operations_that_v03_lacks_are_those_that_its_contract_lacks() -> None:
    assert set(METHODS["1.0"]) - set(METHOD_NAMES) == {row for row in LACKS if row in METHODS["1.0"]}


def test_what_is_left_out_is_used_and_does_not_grow() -> None:
    used = {row for _, rows in marks("needs") for row in rows}
    assert used == set(LACKS)
    assert all(wires and wires <= set(WIRES) and reason for wires, reason in LACKS.values())
    scenes = {name for path in HERE.glob("test_*.py") for name in re.findall(r"def (test_\w+)", path.read_text())}
    assert ALONE.keys() <= scenes and len(ALONE) <= MOST_ALONE
    assert sum(len(wires) for wires, _ in LACKS.values()) <= MOST_LACKS
