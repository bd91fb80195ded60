"""The documentation does what it says: its programs and commands run, and print what the pages show.

Laws: a page is run from top to bottom in a folder of its own, as a newcomer would: a block whose first line is
`# name.py` or `// name.mjs` is saved as that file, a `console` block is typed, one marked `server` is left running
until the next one, one marked `beside` to the end of the page. The page of the examples has them in its folder.
The addresses of the pages are replaced by free ones. Shown output is compared line by line; `...` stands for anything:
for lines, for a part of a line, or in JSON for a value and, as a name, for further members. What a page shows and
nothing runs is a line of `ELSEWHERE`, with the reason.

With A2A_DOCS_PYTHON the reader is one who has installed the package: nothing of this checkout is on the path, each page
has an environment of its own above that Python's, and what a page needs more is there once its `pip` lines were typed.
"""

import importlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import a2a_grpc
from a2a_grpc import cli
from a2a_grpc.tasks.context import Context, Memory
from a2a_grpc.tasks.handle import TaskHandle
from scripts import docs_tables
from scripts.services import free_port
from tests.hosts import ENVOY, NEEDS_ENVOY

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), EXAMPLES / "README.md"]
NAMES = [str(page.relative_to(ROOT)) for page in PAGES]
RUN, SHOWN = {"console", "python", "js", "ts", "go", "java", "sh"}, {"text", "json", "toml"}
PORTS = ("8080", "50051", "9100")
PROGRAMS = {"a2a-grpc": "-m a2a_grpc", "python": "", "uvicorn": "-m uvicorn"}
"""Commands that every reader has, and what Python is told to run."""
INSTALLED = os.environ.get("A2A_DOCS_PYTHON", "")
"""A Python that has the package installed, for readers without this checkout; empty: the Python that runs this."""
TOOLS = {
    "buf": ("A2A_BUF_MODULES", ".bin"),
    "go": ("A2A_GO_FOLDER", "bin"),
    "grpcurl": ("A2A_GO_FOLDER", "bin"),
    "java": ("A2A_JAVA_FOLDER", "bin"),
    "node": ("A2A_NODE1_MODULES", ".bin"),
    "sdk-python": ("A2A_SDK1_PYTHON", ".."),
    "tsc": ("A2A_TS_FOLDER", "node_modules/.bin"),
}
"""Commands that a machine may lack, and where they may be: an environment variable and what follows it."""
ENGINE = "needs an engine; tests/test_deploy.py looks at the files, tests/faults/test_behind_nginx.py runs them"
ELSEWHERE = {
    "make run": ("a2a-grpc serve", "the target sets up .venv and then runs just this"),
    "make setup": ("true", "every other target begins with it"),
    "make test": ("true", "continuous integration runs it in a clean clone"),
    "make check": ("true", "continuous integration runs it in a clean clone"),
    "make interop-setup": ("true", "continuous integration runs it in a clean clone"),
    "make docs": ("true", "test_tables_are_up_to_date compares what it would write"),
    "make proto": ("true", "tests/test_protos.py compares what it would write"),
    "make requirements": ("true", "make check runs the same script"),
    "docker build -f deploy/Dockerfile -t a2a-grpc .": ("true", ENGINE),
    "POSTGRES_PASSWORD=secret docker compose -f deploy/compose.yaml up --build --wait": ("true", ENGINE),
    "kubectl create secret generic a2a-grpc-store --from-literal=url=postgresql://a2a:secret@postgres/a2a": (
        "true",
        ENGINE,
    ),
    "kubectl apply -f deploy/kubernetes.yaml": ("true", ENGINE),
}
"""Commands that are not run from here: what is run in their place, and why."""
FENCE = re.compile(r"^```(\w*)([^\n]*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
NOTHING = object()


class Step(NamedTuple):
    """Something that a reader does: `kind` is file, command, fails (a command that does), server or beside; `shown`
    are the lines that it prints."""

    kind: str
    text: str
    shown: list[str]
    line: int


def steps(text: str) -> Iterator[Step]:
    """What a page tells its reader to do, in order."""
    for found in FENCE.finditer(text):
        language, mark, body = found[1], found[2].strip(), found[3]
        line = text.count("\n", 0, found.start()) + 1
        assert language in RUN | SHOWN, f"line {line}: a block of kind {language!r} would not be checked"
        if language == "console":
            yield from typed(body, mark or "command", line + 1)
        elif name := re.match(r"(?:#|//) ([\w.]+\.\w+)\n", body):
            yield Step("file", name[1], [body], line)
        else:
            assert language in SHOWN, f"line {line}: a program needs a first line that names its file"


def typed(body: str, kind: str, line: int) -> Iterator[Step]:
    """The commands of a console block with the output shown below each."""
    command: Step | None = None
    for at, text in enumerate(body.splitlines(), line):
        if command is not None and not complete(command.text):
            command = command._replace(text=f"{command.text}\n{text}")
        elif text.startswith("$ "):
            if command is not None:
                yield command
            command = Step(kind, text[2:], [], at)
        else:
            assert command is not None, f"line {at}: output without a command"
            command.shown.append(text)
    if command is not None:
        yield command


def complete(command: str) -> bool:
    """Whether a shell would run the command instead of asking for another line."""
    try:
        return bool(shlex.split(command))
    except ValueError:  # an open quotation, or a backslash at the end
        return False


def value(line: str) -> Any:
    """The JSON value of a line, alone or as data of an event; `NOTHING` if it is none."""
    try:
        return json.loads(line.removeprefix("data: "))
    except ValueError:
        return NOTHING


def alike(shown: Any, got: Any) -> bool:
    """Whether a JSON value is as shown."""
    if isinstance(shown, dict) and isinstance(got, dict):
        named = shown.keys() - {"..."}
        fits = named <= got.keys() if "..." in shown else named == got.keys()
        return fits and all(alike(shown[name], got[name]) for name in named)
    if isinstance(shown, list) and isinstance(got, list):
        return len(shown) == len(got) and all(map(alike, shown, got))
    return shown == "..." or (covers(shown, got) if isinstance(shown, str) and isinstance(got, str) else shown == got)


def covers(shown: str, got: str) -> bool:
    pattern = ".*".join(re.escape(part) for part in re.split(r"\.\.\.", shown))
    return re.fullmatch(pattern, got, re.DOTALL) is not None


def same(shown: str, got: str) -> bool:
    """Whether a line is as shown; how many spaces part its words does not matter."""
    one, two = value(shown), value(got)
    if one is not NOTHING and two is not NOTHING:
        return alike(one, two)
    return covers(" ".join(shown.split()), " ".join(got.split()))


def fits(shown: list[str], got: list[str]) -> bool:
    """Whether the lines are as shown."""
    if not shown:
        return not got
    if shown[0].strip() == "...":
        return any(fits(shown[1:], got[skipped:]) for skipped in range(len(got) + 1))
    return bool(got) and same(shown[0], got[0]) and fits(shown[1:], got[1:])


def above(python: str, folder: Path) -> str:
    """The Python of a new environment, in which whatever another one has is there, too."""
    subprocess.run([python, "-m", "venv", "--without-pip", folder], check=True)
    made, where = str(folder / "bin" / "python"), "import sysconfig; print(sysconfig.get_path('purelib'))"
    below, own = (
        subprocess.run([each, "-c", where], check=True, capture_output=True, text=True).stdout.strip()
        for each in (python, made)
    )
    (Path(own) / "below.pth").write_text(f"{below}\n")
    return made


class Reader:
    """Somebody who works through a page: a shell, and the servers that were started."""

    def __init__(self, folder: Path) -> None:
        self.folder, commands = folder / "page", folder / "commands"
        self.folder.mkdir()
        commands.mkdir()
        self.ports = {port: str(free_port()) for port in PORTS}
        self.environment = dict(os.environ)
        for name, line in self._commands(folder):
            (commands / name).write_text(f"#!/bin/sh\n{line}\n")
            (commands / name).chmod(0o755)
        found = [str(Path(os.environ[name]) / rest) for name, rest in TOOLS.values() if name in os.environ]
        self.environment |= {
            "PATH": os.pathsep.join([str(commands), *found, os.environ["PATH"]]),
            "PYTHONUNBUFFERED": "1",
            "A2A_GRPC_HTTP": f"127.0.0.1:{self.ports['8080']}",
            "A2A_GRPC_GRPC": f"127.0.0.1:{self.ports['50051']}",
        }
        self.processes: list[subprocess.Popen[str]] = []
        self.server: subprocess.Popen[str] | None = None
        self.shell = self._start("bash", "--noprofile", "--norc")

    def _commands(self, folder: Path) -> Iterator[tuple[str, str]]:
        """Commands with the line of shell that each is, and the environment that they need."""
        if INSTALLED:
            python = above(INSTALLED, folder / "environment")
            self.environment.pop("PYTHONPATH", None)
            yield "pip", f'exec "{INSTALLED}" -m pip --disable-pip-version-check --python "{python}" "$@"'
        else:  # where everything is installed that development needs
            python = sys.executable
            self.environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), str(ROOT / "generated")])
            yield "pip", "exit 0"
        for name, words in PROGRAMS.items():
            yield name, f'exec "{python}" {words} "$@"'
        if official := os.environ.get("A2A_SDK1_PYTHON"):
            yield "sdk-python", f'exec "{official}" "$@"'

    def _start(self, *words: str) -> "subprocess.Popen[str]":
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        self.processes.append(subprocess.Popen(words, cwd=self.folder, env=self.environment, text=True, **pipes))
        return self.processes[-1]

    def local(self, text: str) -> str:
        """The text with this reader's ports."""
        return re.sub(rf"\b({'|'.join(PORTS)})\b", lambda found: self.ports[found[1]], text)

    def do(self, step: Step) -> None:
        """One step; fails when it does not go as shown."""
        shown = [self.local(line) for line in step.shown]
        command = self.local(ELSEWHERE.get(step.text, (step.text,))[0])
        if step.kind == "file":
            (self.folder / step.text).write_text(shown[0])
        elif step.kind in ("server", "beside"):
            if "--engine envoy" in command and not ENVOY:
                pytest.skip(NEEDS_ENVOY)
            if step.kind == "server":
                self.stop_server()
            started = self.serve(command, shown)
            self.server = started if step.kind == "server" else self.server
        else:
            got, code = self.type(command)
            assert fits(shown, got), "\n".join([f"$ {command}", *got, "but the page shows", *shown])
            assert (code == 0) == (step.kind == "command"), "\n".join([f"$ {command}", *got, f"exit code {code}"])

    def type(self, command: str) -> tuple[list[str], int]:
        """The lines that a command prints, and its exit code."""
        assert self.shell.stdin and self.shell.stdout
        self.shell.stdin.write(f"{{ {command}\n}} </dev/null\nprintf '\\n\\036%d\\n' $?\n")
        self.shell.stdin.flush()
        lines = []
        for line in self.shell.stdout:
            if line.startswith("\x1e"):
                text = "".join(lines).removesuffix("\n")
                return [each.rstrip() for each in text.splitlines() if each.strip()], int(line[1:])
            lines.append(line)
        raise AssertionError(f"the shell ended at: {command}")

    def serve(self, command: str, shown: list[str]) -> "subprocess.Popen[str]":
        """Start a server, and wait for the first line that it is shown to print."""
        assert shown, f"{command}: a server must be shown to print something"
        server = self._start("bash", "-c", f"exec env {command}")
        assert server.stdout
        printed = []
        for line in server.stdout:
            if same(shown[0], line.rstrip()):
                return server
            printed.append(line)
        raise AssertionError(f"$ {command}\n{''.join(printed)}but the page shows\n{shown[0]}")

    def stop_server(self) -> None:
        if self.server is not None:
            self.server.terminate()
            said = self.server.communicate(timeout=60)[0]
            assert self.server.returncode in (0, -15), said
            self.server = None

    def close(self) -> None:
        for process in self.processes:
            process.kill()
            process.communicate()


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    if shutil.which("curl") is None:
        pytest.skip("needs curl")
    with closing(Reader(tmp_path)) as found:
        yield found


def tool_of(step: Step) -> str:
    """What a command needs: it, or what the script that it runs is named after."""
    words = {word.removesuffix(".sh") for word in step.text.split()[:2]}
    return next((tool for tool in TOOLS if step.kind == "command" and tool in words), "")


@pytest.mark.limit(900)  # a newcomer installs meanwhile what the page needs
@pytest.mark.parametrize("name", NAMES)
def test_a_page_works_from_top_to_bottom(name: str, reader: Reader) -> None:
    if (page := ROOT / name).is_relative_to(EXAMPLES):
        shutil.copytree(EXAMPLES, reader.folder, dirs_exist_ok=True)
    for step in steps(page.read_text()):
        if not tool_of(step):
            reader.do(step)
    reader.stop_server()


@pytest.mark.limit(900)
@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.requirement("BL-40", "GRPC-16")
def test_the_calls_of_other_tools_work(tool: str, reader: Reader) -> None:
    if shutil.which(tool, path=reader.environment["PATH"]) is None:
        pytest.skip(f"needs {tool}")
    used = 0
    for page in PAGES:
        found = list(steps(page.read_text()))
        if any(tool_of(step) == tool for step in found):
            for step in found:
                if step.kind in ("file", "server") or tool_of(step) == tool:
                    reader.do(step)
                    used += tool_of(step) == tool
    assert used, f"no page shows {tool}"


@pytest.mark.parametrize("name", NAMES)
def test_every_program_of_a_page_is_used(name: str) -> None:
    found = list(steps((ROOT / name).read_text()))
    for step in found:
        if step.kind == "file":
            word = re.compile(rf"\b{Path(step.text).stem}\b")
            others = (other.shown[0] if other.kind == "file" else other.text for other in found if other is not step)
            assert any(map(word.search, others)), f"{name}, line {step.line}: nothing runs {step.text}"


@pytest.mark.parametrize("name", NAMES)
def test_links_lead_somewhere(name: str) -> None:
    text = FENCE.sub("", (ROOT / name).read_text())
    for target in re.findall(r"\]\(([^)\s]+)\)|src=\"([^\"]+)\"", text):
        link, _, anchor = "".join(target).partition("#")
        if link.startswith(("http://", "https://")):
            continue
        page = (ROOT / name).parent / link if link else ROOT / name
        assert page.exists(), f"{name}: {link}"
        if anchor:
            heads = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
            anchors = [re.sub(r"[^\w -]", "", head.lower()).replace(" ", "-") for head in heads]
            assert anchor in anchors, f"{name}: {link}#{anchor}"


@pytest.mark.parametrize("name", NAMES)
def test_names_in_the_text_are_real(name: str) -> None:
    text = (ROOT / name).read_text()
    for root, kind in (("task", TaskHandle), (r"task\.context", Context), (r"task\.context\.memory", Memory)):
        for member in re.findall(rf"`{root}\.(\w+)", text):
            assert member in ("context", "memory", "id") or hasattr(kind, member), f"{name}: {root}.{member}"
    parsers = [importlib.import_module(f"a2a_grpc.commands.{name}").parser() for name in cli.COMMANDS]
    known = {option for parser in parsers for option in parser._option_string_actions}
    for flag in re.findall(r"`(?:a2a-grpc \w+ )?(--[a-z-]+)", text):
        assert flag in known, f"{name}: {flag}"


def test_tables_are_up_to_date() -> None:
    for page in PAGES:
        assert docs_tables.filled(page.read_text()) == page.read_text(), f"{page.name}: run make docs"


def test_the_run_target_is_what_the_pages_run() -> None:
    assert re.search(r"^run:.*\n\t\S+/a2a-grpc serve \$\(ARGS\)$", (ROOT / "Makefile").read_text(), re.MULTILINE)


def test_the_reference_has_every_exported_name() -> None:
    text = (ROOT / "docs" / "api.md").read_text()
    assert re.findall(r"^## `(\w+)`$", text, re.MULTILINE) == sorted(a2a_grpc.__all__)


def test_the_reference_has_every_name_that_programs_import() -> None:
    told = set(re.findall(r"^##+ `(\w+)", (ROOT / "docs" / "api.md").read_text(), re.MULTILINE))
    for page in PAGES:
        for module, names in re.findall(r"^from a2a_grpc\.(\S+) import (.+)$", page.read_text(), re.MULTILINE):
            if module not in ("demo", "errors"):  # an example, and a table of its own
                assert set(names.split(", ")) <= told, f"{page.name}: {module}"


def test_differences_are_seen() -> None:
    assert fits(["a", "...", 'data: {"id":"...","n":1}'], ["a", "b", "c", 'data: {"n": 1, "id": "x"}'])
    assert fits(['{"x":{"...":"...","y":[1]}}'], ['{"x": {"y": [1], "z": 2}}'])
    for shown, got in ((["a"], []), ([], ["a"]), (['{"n":1}'], ['{"n":2}']), (['{"n":1}'], ['{"n":1,"m":2}'])):
        assert not fits(shown, got)
