"""Checks that what would be released works for who installs it. Run by `make release-check`.

Laws of this file:
- What is checked is the built wheel, in an empty environment: nothing of the checkout is on its path.
- How a page is worked through is known to tests/test_docs.py alone, which is told the environment.
- Only the standard library as every Python has it, `build` and pytest; a failed check ends the script with a line that
  says what is wrong.
"""

import argparse
import itertools
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import time
import urllib.request
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from interop_setup import edges

from a2a_grpc.python310 import tomllib

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
NOT_IN_WHEEL = ("tests/", "scripts/", "docs/", "proto/", "deploy/", "examples/")
IN_SDIST = ("LICENSE", "README.md", "pyproject.toml", "a2a_grpc/py.typed", "generated/a2a_stubs/v1.py")
MAY_BE_IN_SDIST = {"a2a_grpc", "generated", "a2a_grpc.egg-info", "MANIFEST.in", "PKG-INFO", "setup.cfg"}
"""What else may be at the top of the source archive; the build backend makes the last three."""
DATA = re.compile(r"\.(py|pyi|typed|html|js|css|svg)$")
QUESTION = {"messageId": "1", "role": "ROLE_USER", "parts": [{"text": "Where is order 1001?"}]}


def fail(text: str) -> None:
    """End with a line."""
    sys.exit(f"release-check: {text}")


def run(*command: str | Path, cwd: Path = ROOT, environment: Mapping[str, str] = os.environ) -> str:
    """The output of a command that must succeed."""
    words = list(map(str, command))
    done = subprocess.run(words, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        fail(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


def kept(folder: str, below: Iterable[str]) -> set[str]:
    """Files of the repository below a folder that the wheel must hold, by their names in it."""
    names = run("git", "ls-files", *below).split("\n")
    return {name.removeprefix(folder) for name in names if DATA.search(name)}


def build(target: Path) -> Path:
    """Build both archives and look into them; the wheel."""
    run(sys.executable, "-m", "build", "--outdir", target)
    [wheel], [sdist] = target.glob("*.whl"), target.glob("*.tar.gz")
    there = set(zipfile.ZipFile(wheel).namelist())
    if missing := (kept("", ["a2a_grpc"]) | kept("generated/", ["generated/a2a_stubs"])) - there:
        fail(f"the wheel lacks {', '.join(sorted(missing))}")
    if not any(name.endswith("/licenses/LICENSE") for name in there):
        fail("the wheel lacks its licence")
    if found := [name for name in there if name.startswith(NOT_IN_WHEEL)]:
        fail(f"the wheel holds {', '.join(sorted(found))}")
    with tarfile.open(sdist) as archive:
        held = {name.partition("/")[2] for name in archive.getnames()}
    if missing := set(IN_SDIST) - held:
        fail(f"the source archive lacks {', '.join(sorted(missing))}")
    if found := {name.partition("/")[0] for name in held} - {"", *MAY_BE_IN_SDIST, *IN_SDIST}:
        fail(f"the source archive holds {', '.join(sorted(found))}")
    return wheel


def try_out(python: Path, folder: Path) -> None:
    """A newcomer's first minute: the version, the demo, an answer and the inspector."""
    command = python.with_name("a2a-grpc")
    if PROJECT["version"] not in (said := run(command, "--version", cwd=folder)):
        fail(f"--version says {said}")
    words = [command, "serve", "--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0", "--store", "memory:"]
    server = subprocess.Popen(words, cwd=folder, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    try:
        lines = [server.stdout.readline() for _ in range(5)]
        base = re.search(r"http://[^/\s]+", "".join(lines))
        if base is None:
            fail(f"serve said {lines}")
            return
        headers = {"A2A-Version": "1.0", "Content-Type": "application/json"}
        body = json.dumps({"message": QUESTION}).encode()
        with urllib.request.urlopen(urllib.request.Request(f"{base[0]}/message:send", body, headers)) as reply:
            if "TASK_STATE_COMPLETED" not in (answer := reply.read().decode()):
                fail(f"the demo answered {answer}")
        with urllib.request.urlopen(f"{base[0]}/inspector") as reply:
            if b"app.js" not in reply.read():
                fail("the inspector is not in the wheel")
        run(command, "call", "stream", base[0], "Where is order 1002?", "--binding", "grpc", cwd=folder)
    finally:
        server.terminate()
        if server.wait(30):
            fail(f"serve ended with {server.returncode}")


def read_on(python: Path) -> str:
    """Work through every page with what is installed for a Python, and with what the page says to install besides; how
    many tests that were."""
    tests = ("tests/test_docs.py", "-k", "works_from_top_to_bottom or other_tools", "-n", "2", "-q")
    said = run(sys.executable, "-m", "pytest", *tests, environment={**os.environ, "A2A_DOCS_PYTHON": str(python)})
    return said.strip().splitlines()[-1]


def refuse(python: str, wheel: Path, folder: Path) -> None:
    """Check that who has too old a Python is told so."""
    home = folder / "too-old"
    run(python, "-m", "venv", home)
    command = [home / "bin" / "pip", "install", "--no-deps", wheel]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    if not done.returncode or "requires a different Python" not in done.stderr:
        fail(f"{python} can install what needs a newer one: {done.stdout}{done.stderr}")
    print(next(line for line in done.stderr.splitlines() if "requires a different Python" in line), flush=True)


def parsed() -> argparse.Namespace:
    """What is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--python", nargs="*", default=[], help="default: the one that runs this, and the oldest that is here, quickly")
    add("--extras", default="", help="such as all")
    add("--releases", nargs="*", default=["highest"], help="of what the package needs: lowest, highest (default)")
    add("--too-old", default="", metavar="PYTHON", help="one that must be refused")
    add("--quick", action="store_true", help="leave the pages unread")
    return parser.parse_args()


class Try(NamedTuple):
    """One environment: its Python, the edge of the releases in it, and whether the pages are read there."""

    python: str
    edge: str
    pages: bool


def tries(arguments: argparse.Namespace) -> Iterator[Try]:
    """What is tried where; unless Pythons are named, both edges with the oldest as well, which differs the most."""
    for python, edge in itertools.product(arguments.python or [sys.executable], arguments.releases):
        yield Try(python, edge, not arguments.quick)
    oldest = run(ROOT / "scripts" / "find-python", "oldest").strip()
    told = run(oldest, "-c", "import sys; print('%d.%d' % sys.version_info[:2])").strip()
    if not arguments.python and told != f"{sys.version_info[0]}.{sys.version_info[1]}":
        yield from (Try(oldest, edge, pages=False) for edge in ("lowest", "highest"))


def main() -> None:
    """Build, install and try, and read the documentation as a newcomer would."""
    arguments = parsed()
    os.environ.pop("PYTHONPATH", None)  # by which pip would find the checkout, and leave the wheel where it is
    if f"## {PROJECT['version']} " not in (ROOT / "CHANGELOG.md").read_text():
        fail(f"CHANGELOG.md does not speak of {PROJECT['version']}")
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        wheel = build(folder / "dist")
        if arguments.too_old:
            refuse(arguments.too_old, wheel, folder)
        for index, (python, edge, pages) in enumerate(tries(arguments)):
            begun = time.monotonic()
            home = folder / f"environment{index}"
            bounds = folder / f"{edge}.txt"
            bounds.write_text("\n".join(edges(edge)))
            run(python, "-m", "venv", home)
            wanted = f"{wheel}[{arguments.extras}]" if arguments.extras else wheel
            run(home / "bin" / "pip", "install", "--quiet", "--constraint", bounds, wanted)
            try_out(home / "bin" / "python", folder)
            print(f"{python}: installed, asked and answered after {time.monotonic() - begun:.0f} s", flush=True)
            told = read_on(home / "bin" / "python") if pages else ""
            print(f"{python}: {wheel.name} with the {edge} releases is fit to be released. {told}", flush=True)


main()
