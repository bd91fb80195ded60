"""Installs what tests need besides the package: other SDKs, other releases, buf, all below .tools, and a group of
packages beside those of development.

Laws of this file:
- A folder of tests/interop says by the files in it what it needs (`KINDS`); a new folder needs no change here.
- Nothing is done twice: each piece has a stamp with the hash of what it was made from.
- What was made is named in .tools/env, one `NAME=value` a line, which Makefile and .ci/run read.
- Only the standard library, as every Python has it: it runs before anything else is installed.
"""

import argparse
import hashlib
import itertools
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from a2a_grpc.python310 import tomllib

ROOT = Path(__file__).resolve().parent.parent
TOOLS = ROOT / ".tools"
INTEROP = ROOT / "tests" / "interop"


def run(*command: str | Path, cwd: Path = ROOT) -> None:
    """Run a command; its failure ends this script with the command's own words."""
    print("+", *(str(part).replace(f"{ROOT}/", "") for part in command), flush=True)
    subprocess.run(list(map(str, command)), cwd=cwd, check=True)


def once(name: str, made: Path, content: str, make: Callable[[], None]) -> None:
    """Call `make` unless `made` exists and came from the same content."""
    stamp = TOOLS / "stamps" / name
    digest = hashlib.sha256(content.encode()).hexdigest()
    if made.exists() and stamp.exists() and stamp.read_text() == digest:
        return
    stamp.unlink(missing_ok=True)
    make()
    stamp.parent.mkdir(parents=True, exist_ok=True)
    stamp.write_text(digest)


def sources(folder: Path) -> str:
    """Everything in a folder that git would keep, to be hashed."""
    names = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=folder,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split("\n")
    return "\0".join(f"{name}\0{(folder / name).read_text('utf-8', 'replace')}" for name in names if name)


def python_environment(name: str, requirements: list[str], python: str = sys.executable) -> Path:
    """A virtual environment below .tools with these requirements; answers its Python."""
    target = TOOLS / name
    binary = target / "bin" / "python"

    def make() -> None:
        shutil.rmtree(target, ignore_errors=True)
        run(python, "-m", "venv", target)
        run(binary, "-m", "pip", "install", "--quiet", *requirements)

    once(name, binary, f"{python}\n{requirements}", make)
    return binary


def peers() -> None:
    """The group `peers` of pyproject.toml, into the environment that runs this: Envoy, judges, a browser's
    driver."""
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]
    command = (sys.executable, "-m", "pip", "install", "--quiet", "--group", "peers")
    once(
        "peers",
        Path(sys.prefix),
        f"{sys.prefix}\n{os.stat(sys.executable).st_ctime_ns}\n{groups}",
        lambda: run(*command),
    )


def edges(edge: str) -> list[str]:
    """The run-time requirements of the project and of its extras, each at its lowest or at its highest allowed
    release."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = (lines for name, lines in project["optional-dependencies"].items() if name != "all")
    found: list[str] = [*project["dependencies"], *itertools.chain(*extras)]
    return [re.sub(r">=([^,;]*)[^;]*", r"==\1", line, count=1) for line in found] if edge == "lowest" else found


def make_python(folder: Path) -> tuple[str, Path]:
    lines = (folder / "requirements.txt").read_text().splitlines()
    wanted = [line for line in map(str.strip, lines) if line and not line.startswith("#")]
    return "PYTHON", python_environment(folder.name, wanted)


def make_node(folder: Path) -> tuple[str, Path]:
    modules = folder / "node_modules"
    locked = (folder / "package-lock.json").read_text()
    once(folder.name, modules, locked, lambda: run("npm", "ci", "--no-audit", "--no-fund", cwd=folder))
    return "MODULES", modules


def make_go(folder: Path) -> tuple[str, Path]:
    binary = TOOLS / folder.name
    once(folder.name, binary, sources(folder), lambda: run("go", "build", "-o", binary, ".", cwd=folder))
    return "BINARY", binary


def make_by_itself(folder: Path) -> tuple[str, Path]:
    """The folder's own script, given the folder to fill and this Python (which has grpcio-tools); it may use the
    protos."""
    target = TOOLS / folder.name

    def make() -> None:
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir(parents=True)
        run(folder / "setup", target, sys.executable, cwd=folder)

    once(folder.name, target, sources(folder) + sources(ROOT / "proto"), make)
    return "FOLDER", target


class Kind(NamedTuple):
    """A file that shows what a folder needs, and what makes it; answers the end of a variable's name and its value."""

    file: str
    make: Callable[[Path], tuple[str, Path]]


KINDS = (
    Kind("setup", make_by_itself),
    Kind("requirements.txt", make_python),
    Kind("package-lock.json", make_node),
    Kind("go.mod", make_go),
)
"""The first that fits is taken: an executable `setup` spares a folder every rule made here."""


def folders(failed: list[str]) -> Iterator[tuple[str, Path]]:
    """Every variable that the folders of tests/interop ask for: `A2A_<FOLDER>_<WHAT>`."""
    for folder in sorted(path for path in INTEROP.iterdir() if path.is_dir()):
        kind = next((kind for kind in KINDS if (folder / kind.file).exists()), None)
        if kind is None:
            continue
        try:
            what, made = kind.make(folder)
        except (OSError, subprocess.CalledProcessError) as fault:
            failed.append(f"{folder.name}: {fault}")
        else:
            yield f"A2A_{folder.name.upper()}_{what}", made


def ranges() -> Iterator[Path]:
    """Pythons with the lowest releases (on the oldest Python) and with the highest (on the newest), of the extras,
    too."""
    for edge, age in (("lowest", "oldest"), ("highest", "newest")):
        found = subprocess.run([ROOT / "scripts/find-python", age], check=True, capture_output=True, text=True)
        yield python_environment(edge, edges(edge), found.stdout.strip())


def servers() -> dict[str, str]:
    """The addresses of servers that services.py started."""
    lines = (TOOLS / "env").read_text().splitlines() if (TOOLS / "env").exists() else []
    return dict(line.split("=", 1) for line in lines if line.startswith(("A2A_POSTGRES_URL=", "A2A_NATS_URL=")))


def main() -> int:
    """Make everything, then write .tools/env; 1 when something could not be made."""
    parser = argparse.ArgumentParser(description="Install below .tools what the interoperability tests need.")
    parser.parse_args()
    failed: list[str] = []
    peers()
    variables = {name: str(made) for name, made in folders(failed)}
    variables["A2A_RANGE_PYTHONS"] = os.pathsep.join(map(str, ranges()))
    variables["BUF"] = str(INTEROP / "buf" / "node_modules" / ".bin" / "buf")
    (TOOLS / "env").write_text("".join(f"{name}={value}\n" for name, value in (variables | servers()).items()))
    print(f"written: {(TOOLS / 'env').relative_to(ROOT)}", *failed, sep="\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
