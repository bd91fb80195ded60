"""The source files of the project as the rules read them: paths, syntax trees, imports.

Laws: files are what git keeps or would keep; nothing here knows a single rule.
"""

import ast
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PACKAGE = ROOT / "a2a_grpc"


@cache
def files() -> tuple[Path, ...]:
    """Every file that git keeps, or would keep if it were added."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return tuple(path for name in sorted(set(listed.split("\0"))) if name and (path := ROOT / name).is_file())


def python_files(*folders: str) -> list[Path]:
    """The Python files below these folders of the project."""
    return [path for path in files() if path.suffix == ".py" and path.relative_to(ROOT).parts[0] in folders]


def label(path: Path, line: int | None = None) -> str:
    """How a finding names its place."""
    return str(path.relative_to(ROOT)) + (f":{line}" if line else "")


@cache
def tree(path: Path) -> ast.Module:
    """The syntax tree of a file."""
    return ast.parse(path.read_text(), str(path))


def modules() -> dict[str, Path]:
    """Modules of the package by name below it: "errors", "tasks.store", "" for the package itself."""
    found = {}
    for path in python_files("a2a_grpc"):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        found[".".join(part for part in parts if part != "__init__")] = path
    return found


def imported(path: Path) -> Iterator[tuple[str, int]]:
    """Every module name that a file imports, wherever in the file, with its line; `from x import y` gives x.y too."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{label(path, node.lineno)}: relative import"
            yield str(node.module), node.lineno
            yield from ((f"{node.module}.{alias.name}", node.lineno) for alias in node.names)


def docstrings(path: Path) -> set[int]:
    """Ids of the nodes of a file's strings that stand alone: docstrings of anything."""
    return {id(node.value) for node in ast.walk(tree(path)) if isinstance(node, ast.Expr)}


def expect_none(findings: Iterable[str]) -> None:
    """Fail with every finding on a line of its own."""
    found = sorted(findings)
    assert not found, "\n  ".join(["", *found])


def fresh_python(code: str, *arguments: str, python: str = sys.executable) -> subprocess.CompletedProcess[str]:
    """Run code in a Python that has imported nothing, warnings as errors, stubs and package at hand."""
    paths = os.pathsep.join((str(ROOT), str(ROOT / "generated")))
    command = [python, "-W", "error", "-c", code, *arguments]
    return subprocess.run(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True)
