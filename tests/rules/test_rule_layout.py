"""Law 1: small files and functions, plain names, floors without a way up or around."""

import ast
import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from a2a_grpc.python310 import tomllib
from tests.rules.floors import floor_of
from tests.rules.sources import (
    ROOT,
    expect_none,
    files,
    fresh_python,
    imported,
    label,
    modules,
    python_files,
    tree,
)

MOST_FILE_LINES = 500
MOST_FUNCTION_LINES = 60
CODE = {".py", ".in", ".js", ".mjs", ".ts", ".mts", ".go", ".java", ".rs", ".html", ".css", ".sh"}
BY_HAND = ("a2a_grpc", "examples", "tests", "proto", "scripts")
EMPTY_NAMES = {"utils", "util", "common", "helpers", "helper", "core", "base", "misc"}
APART = {
    "bindings.*": "a2a_grpc.service a2a_grpc.client a2a_grpc.gateway",
    "bindings.(wire|sse|jsonrpc|rest)": "aiohttp grpc",
    "(errors|methods|protojson.*|v03.*|call|config)": "aiohttp grpc asyncio",
    "(agent|cards|content|paging|tasks.*)": "aiohttp grpc",
    "service": "aiohttp grpc",
}
"""Modules (a pattern) and what they must not import: bindings take any servicer, wires and the engine are pure."""


def own_imports(path: Path) -> dict[str, int]:
    """Modules of the package that a file imports, by name below it."""
    known, found = modules(), {}
    for name, line in imported(path):
        below = name.removeprefix("a2a_grpc").removeprefix(".")
        if name.split(".")[0] == "a2a_grpc" and below in known and name != "a2a_grpc":
            found[below] = line
    return found


def test_no_file_is_longer_than_500_lines() -> None:
    code = [path for path in files() if path.suffix in CODE and path.relative_to(ROOT).parts[0] != "generated"]
    sizes = {path: len(path.read_text().splitlines()) for path in code}
    expect_none(f"{label(path)} has {lines}" for path, lines in sizes.items() if lines > MOST_FILE_LINES)


def test_no_function_is_longer_than_60_lines() -> None:
    expect_none(
        f"{label(path, node.lineno)} {node.name}"
        for path in python_files(*BY_HAND)
        for node in ast.walk(tree(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or 0) - node.lineno + 1 > MOST_FUNCTION_LINES
    )


def test_names_say_something() -> None:
    def empty(name: str) -> bool:
        return bool(
            {name.lower(), *name.lower().split("_")} & EMPTY_NAMES or re.search(r"V\d$|Base$|^Base|Helper", name)
        )

    paths = [path for path in python_files(*BY_HAND) if empty(path.stem) or empty(path.parent.name)]
    classes = [
        f"{label(path, node.lineno)} {node.name}"
        for path in python_files(*BY_HAND)
        for node in ast.walk(tree(path))
        if isinstance(node, ast.ClassDef) and empty(node.name)
    ]
    expect_none([label(path) for path in paths] + classes)


def test_every_module_has_a_floor() -> None:
    expect_none(name for name in modules() if floor_of(name) is None)


def test_imports_go_down_only() -> None:
    ups = []
    for name, path in modules().items():
        for other, line in own_imports(path).items():
            if (floor_of(other) or 0) > (floor_of(name) or 5):
                ups.append(f"{label(path, line)}: {name} imports {other}")
    expect_none(ups)


def test_imports_form_no_circle() -> None:
    graph = {name: set(own_imports(path)) - {name} for name, path in modules().items()}
    while free := [name for name, others in graph.items() if not others & graph.keys()]:
        for name in free:
            del graph[name]
    assert not graph, "these modules import each other, or something that does"


def test_wires_and_engine_know_no_transport() -> None:
    found = []
    for name, path in modules().items():
        for pattern, banned in APART.items():
            if re.fullmatch(pattern, name):
                wrong = re.compile("|".join(rf"{re.escape(other)}(\..*)?" for other in banned.split()))
                found += [f"{label(path, line)}: {other}" for other, line in imported(path) if wrong.fullmatch(other)]
    expect_none(found)


ALONE = """
import importlib, os, sys
import aiohttp.web, grpc.aio, google.protobuf.message, orjson  # once for all: not what is looked at
for name in sys.argv[1:]:
    child = os.fork()
    if not child:
        try:
            importlib.import_module(name)
        except BaseException as fault:
            print(f"{name}: {fault!r}", flush=True)
        os._exit(0)
    os.waitpid(child, 0)
"""


SHARES = 8
"""Parts that the modules are imported in: each begins anew, and all at once take a slow machine minutes."""


@pytest.mark.requirement("BL-43")
@pytest.mark.parametrize("share", range(SHARES))
def test_every_module_can_be_imported_alone(share: int) -> None:
    left_out = {"__main__"} if find_spec("pyvoy") else {"__main__", "envoy"}  # which comes with make interop-setup
    names = [f"a2a_grpc.{name}".rstrip(".") for name in modules() if name not in left_out]
    done = fresh_python(ALONE, *names[share::SHARES])
    assert not done.returncode, done.stderr
    expect_none(done.stdout.splitlines())


def test_every_package_is_shipped() -> None:
    packages = {".".join(path.parent.relative_to(ROOT).parts) for path in modules().values()}
    shipped = set(re.findall(r'"(a2a_grpc[\w.]*)"', re.search(r"packages = \[(.*?)\]", text())[1]))  # type: ignore[index]
    assert packages == shipped


def text() -> str:
    return (ROOT / "pyproject.toml").read_text()


def test_tests_name_each_other_in_full() -> None:
    names = "|".join(sorted({path.stem for path in (ROOT / "tests").rglob("*.py")}))
    bare = re.compile(rf"^(?:from|import) (?:{names})\b", re.MULTILINE)
    found = {str(path.relative_to(ROOT)): bare.findall(path.read_text()) for path in (ROOT / "tests").rglob("*.py")}
    expect_none(f"{path}: {lines}: two files may have one name" for path, lines in found.items() if lines)


@pytest.mark.requirement("BL-41")
def test_warnings_are_errors() -> None:
    assert 'filterwarnings = ["error"]' in text()


def test_all_means_every_extra() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    [everything] = extras.pop("all")
    assert everything == f"a2a-grpc[{','.join(extras)}]"


def test_the_wheel_holds_every_folder_of_the_package() -> None:
    told = re.search(r"(?m)^packages = \[(.*a2a_stubs.*)\]$", (ROOT / "pyproject.toml").read_text())
    there = {".".join(path.parent.relative_to(ROOT).parts) for path in (ROOT / "a2a_grpc").rglob("__init__.py")}
    assert told and set(re.findall(r'"(.+?)"', told[1])) == there | {"a2a_stubs"}
