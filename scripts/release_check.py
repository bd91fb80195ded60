"""Checks that what would be released works for who installs it. Run by `make release-check`.

Laws of this file:
- What is checked is the built wheel, in an empty environment: nothing of the checkout is on its path.
- Only the standard library and `build`; a failed check ends the script with one line that says what is wrong.
"""

import argparse
import json
import re
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import urllib.request
import zipfile
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
NOT_IN_WHEEL = ("tests/", "scripts/", "docs/", "proto/", "deploy/", "examples/")
IN_SDIST = ("LICENSE", "README.md", "pyproject.toml", "a2a_grpc/py.typed", "generated/a2a_stubs/v1.py")
DATA = re.compile(r"\.(py|pyi|typed|html|js|css|svg)$")
QUESTION = {"messageId": "1", "role": "ROLE_USER", "parts": [{"text": "Where is order 1001?"}]}


def fail(text: str) -> None:
    """End with a line."""
    sys.exit(f"release-check: {text}")


def run(*command: str | Path, cwd: Path = ROOT) -> str:
    """The output of a command that must succeed."""
    done = subprocess.run(list(map(str, command)), cwd=cwd, capture_output=True, text=True, check=False)
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
    if found := [name for name in there if name.startswith(NOT_IN_WHEEL)]:
        fail(f"the wheel holds {', '.join(sorted(found))}")
    with tarfile.open(sdist) as archive:
        held = {name.partition("/")[2] for name in archive.getnames()}
    if missing := set(IN_SDIST) - held:
        fail(f"the source archive lacks {', '.join(sorted(missing))}")
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


def main() -> None:
    """Build, install and try; --python: the Pythons to do it with, default the one that runs this."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", nargs="*", default=[sys.executable])
    parser.add_argument("--extras", default="", help="such as all")
    arguments = parser.parse_args()
    if f"## {PROJECT['version']} " not in (ROOT / "CHANGELOG.md").read_text():
        fail(f"CHANGELOG.md does not speak of {PROJECT['version']}")
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        wheel = build(folder / "dist")
        for index, python in enumerate(arguments.python):
            home = folder / f"environment{index}"
            run(python, "-m", "venv", home)
            wanted = f"{wheel}[{arguments.extras}]" if arguments.extras else wheel
            run(home / "bin" / "pip", "install", "--quiet", wanted)
            try_out(home / "bin" / "python", folder)
            print(f"{python}: {wheel.name} is fit to be released", flush=True)


main()
