"""Laws 5 and 10 and what holds for all text: docstrings, one truth in one place, nothing of the maker's machine."""

import ast
import itertools
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import a2a_grpc
from tests.rules.sources import PACKAGE, ROOT, docstrings, expect_none, files, label, python_files, tree

RUN = 6
"""Lines that make a repetition."""
REPEATED: set[tuple[str, str]] = set()
"""Pairs of files that may repeat a run of lines; the list may only shrink."""
MACHINE = re.compile(r"(?<![\w.~*-])/(?:work|root|home|Users)/\w")
HOSTS = re.compile("|".join(f"{host}[.]{end}" for host, end in (
    ("pypi", "org"), ("pythonhosted", "org"), ("registry[.]npmjs", "org"), ("yarnpkg", "com"),
    ("proxy[.]golang", "org"), ("repo1?[.]maven", "(?:apache[.])?org"), ("crates", "io"),
)))  # fmt: skip
Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def public(body: list[ast.stmt], owner: str = "") -> Iterator[tuple[str, Definition]]:
    """Public classes, functions and methods, not those of private classes or inside functions."""
    for node in body:
        if isinstance(node, Definition) and not node.name.startswith("_"):
            yield owner + node.name, node
            if isinstance(node, ast.ClassDef):
                yield from public(node.body, f"{node.name}.")


def decorators(node: Definition) -> set[str]:
    return {ast.unparse(each).split("(")[0].split(".")[-1] for each in node.decorator_list}


def test_every_public_name_says_what_it_does() -> None:
    """A method that some class documents needs no second docstring where it is implemented."""
    silent = [label(path) for path in python_files("a2a_grpc", "tests", "proto", "scripts") if not lawful(path)]
    named = [(path, name, node) for path in python_files("a2a_grpc") for name, node in public(tree(path).body)]
    generated = [found for path in python_files("generated") for found in public(tree(path).body)]
    explained = {name.split(".")[-1] for _, name, node in named if "." in name and ast.get_docstring(node)}
    explained |= {name.split(".")[-1] for name, _ in generated}
    for path, name, node in named:
        known = "." in name and (name.split(".")[-1] in explained or said(path, node.name))
        if not (known or ast.get_docstring(node) or decorators(node) & {"overload", "setter", "override"}):
            silent.append(f"{label(path, node.lineno)} {name}")
    expect_none(silent)


def said(path: Path, word: str) -> bool:
    """Whether a docstring of the module has the word: that of its class, or of the law it follows."""
    prose = docstrings(path)
    texts = (node.value for node in ast.walk(tree(path)) if isinstance(node, ast.Constant) and id(node) in prose)
    return any(re.search(rf"\b{word}\b", str(text)) for text in texts)


def lawful(path: Path) -> bool:
    """Whether a file opens with a docstring; one of the package's modules must state its laws there."""
    opening = ast.get_docstring(tree(path)) or ""
    return bool(opening) and ("Law" in opening or not path.is_relative_to(PACKAGE) or path.stem.startswith("__"))


def test_every_field_of_a_public_dataclass_is_explained() -> None:
    silent = []
    for path in python_files("a2a_grpc"):
        for name, node in public(tree(path).body):
            if not isinstance(node, ast.ClassDef) or "dataclass" not in decorators(node):
                continue
            after = [*node.body[1:], None]
            for field, following in zip(node.body, after, strict=True):
                if not isinstance(field, ast.AnnAssign) or not isinstance(field.target, ast.Name):
                    continue
                word, explained = field.target.id, isinstance(following, ast.Expr)
                in_call = isinstance(field.value, ast.Call) and len(ast.unparse(field.value)) > 40
                if not (word.startswith("_") or explained or in_call or said(path, word)):
                    silent.append(f"{label(path, field.lineno)} {name}.{word}")
    expect_none(silent)


def test_exported_names_are_the_documented_names() -> None:
    exported = getattr(a2a_grpc, "__all__", ())
    assert sorted(exported) == sorted(set(exported)), "a name exported twice"
    assert not [name for name in exported if not hasattr(a2a_grpc, name)]
    pages = [
        path for path in files() if path.suffix == ".md" and path.relative_to(ROOT).parts[0] in ("README.md", "docs")
    ]
    text = "\n".join(path.read_text() for path in pages)
    expect_none(name for name in exported if not re.search(rf"`[^`\n]*\b{name}\b|^#+ .*\b{name}\b", text, re.M))


def test_the_readme_is_short_and_starts_with_the_two_commands() -> None:
    text = (ROOT / "README.md").read_text()
    assert "make run" in text and "make test" in text
    assert text.count("\n") < 200


def test_the_changelog_tells_of_the_present_version() -> None:
    version = re.search(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(), re.M)
    assert version and f"## {version[1]}" in (ROOT / "CHANGELOG.md").read_text()


def test_no_file_names_the_machine_or_a_package_registry() -> None:
    found = []
    for path in files():
        try:
            lines = path.read_text("utf-8").splitlines()
        except UnicodeDecodeError:
            continue
        found += [label(path, at) for at, line in enumerate(lines, 1) if MACHINE.search(line) or HOSTS.search(line)]
    expect_none(found)


def test_nothing_is_put_off() -> None:
    words = re.compile(r"\b(" + "|".join(("TO" + "DO", "FIX" + "ME", "HA" + "CK")) + r")\b")
    found = []
    for path in python_files("a2a_grpc", "tests", "proto", "scripts"):
        lines = enumerate(path.read_text().splitlines(), 1)
        found += [label(path, at) for at, line in lines if words.search(line)]
    expect_none(found)


def runs(path: Path) -> Iterator[tuple[tuple[str, ...], int]]:
    """Every run of lines of a file's code with its first line; not imports, signatures (given by a
    protocol), docstrings and comments."""
    prose = docstrings(path)
    passive: set[int] = set()
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            passive.update(range(node.lineno, node.body[0].lineno))
        elif isinstance(node, ast.Import | ast.ImportFrom) or (isinstance(node, ast.Expr) and id(node.value) in prose):
            passive.update(range(node.lineno, (node.end_lineno or 0) + 1))
    numbered = ((at, line.split("  #")[0].strip()) for at, line in enumerate(path.read_text().splitlines(), 1))
    kept = [(at, line) for at, line in numbered if re.search(r"\w", line) and line[0] != "#" and at not in passive]
    for first in range(len(kept) - RUN + 1):
        yield tuple(line for _, line in kept[first : first + RUN]), kept[first][0]


def test_nothing_is_written_twice() -> None:
    places: dict[tuple[str, ...], list[tuple[str, int]]] = defaultdict(list)
    for path in python_files("a2a_grpc"):
        for run, line in runs(path):
            places[run].append((label(path), line))
    pairs: dict[tuple[str, str], str] = {}
    for found in places.values():
        for (one, first), (two, second) in itertools.pairwise(found):
            if one != two:
                pairs.setdefault((one, two), f"{one}:{first} and {two}:{second}")
    expect_none(where for pair, where in pairs.items() if pair not in REPEATED)
    assert not REPEATED - pairs.keys(), "no longer repeated: take it off the list"
