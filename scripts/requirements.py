"""The ledger: every requirement with the tests that prove it. Run by `make requirements`.

Laws of this file:
- A requirement is proved by a test that carries its ID in `pytest.mark.requirement`; nothing else counts.
- Every requirement of the ledger is demanded unless `OPEN` says why not; that table may only shrink, so a
  requirement on it that has a test fails the run as much as one that has none and is not on it.
- Contradictions (I) and losses (L) are settled by requirements; they are listed, not demanded.
"""

import argparse
import contextlib
import io
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
LEDGER = ROOT / "tests" / "golden" / "requirements.txt"
OPEN = {
    "a duty of clients, not proved yet": "OP-SEND-23 EXT-13",
    "credentials that a task asks for are its author's affair": "AUTH-13",
    "there are no custom bindings": "CB-01 CB-02 CB-03 CB-04",
    "a rule for authors of extensions": "EXT-07 EXT-08 EXT-09 EXT-10 EXT-11 EXT-12",
    "a rule for documentation": "CTX-11",
}
"""Why a requirement is not demanded, and which."""
LISTED_ONLY = ("I-", "L-")


class Marks:
    """A pytest plugin that notes which tests carry which IDs."""

    def __init__(self) -> None:
        self.tests: dict[str, list[str]] = defaultdict(list)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        for item in session.items:
            name = item.nodeid.split("[")[0]
            for mark in item.iter_markers("requirement"):
                for wanted in mark.args:
                    if name not in self.tests[wanted]:
                        self.tests[wanted].append(name)


def collected() -> dict[str, list[str]]:
    """Names of tests by requirement ID. Ends the script when the tests cannot be collected."""
    marks = Marks()
    output = ["--collect-only", "-q", f"--rootdir={ROOT}", "-c", str(ROOT / "pyproject.toml"), str(ROOT / "tests")]
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        code = pytest.main(output, plugins=[marks])
    if code != pytest.ExitCode.OK:
        sys.exit(f"{printed.getvalue()}\nthe tests cannot be collected (pytest exit code {int(code)})")
    return marks.tests


def ledger() -> Iterator[tuple[str, str]]:
    """IDs and what they are about, in order."""
    for line in LEDGER.read_text().splitlines():
        if line and not line.startswith("#"):
            name, level, binds, words = line.split(maxsplit=3)
            yield name, f"{words} ({level}{'' if binds == '-' else f' {binds}'})"


def reason(name: str) -> str:
    """Why an ID is not demanded, "" when it is."""
    return next((why for why, names in OPEN.items() if name in names.split()), "")


def main() -> int:
    """Print the ledger; 1 when an ID is without a test or on the table of open ones without need."""
    parser = argparse.ArgumentParser(description="Print every requirement with the tests that prove it.")
    parser.add_argument("--quiet", action="store_true", help="print only what is wrong")
    quiet: bool = parser.parse_args().quiet
    tests, wrong, proved, demanded = collected(), [], 0, 0
    for name, words in ledger():
        why, found = reason(name), tests.get(name, [])
        listed_only = name.startswith(LISTED_ONLY)
        demanded += not why and not listed_only
        proved += bool(found) and not why and not listed_only
        if not quiet:
            print(f"{name:<13} {words}", *(found or [f"- {why or 'NO TEST'}"]), sep="\n    ")
        if found and why:
            wrong.append(f"{name} has a test: take it off the table of open requirements ({why})")
        if not found and not why and not listed_only:
            wrong.append(f"{name} has no test: {words}")
    print(*wrong, f"{proved} of {demanded} demanded requirements are proved", sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
