"""The server that the outside clients call, and how one of their programs is run.

Laws: a program prints one JSON line a step and judges nothing; what the lines must say stands in the tests. Clients
come from `make interop-setup`, which names them in the environment.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.hosts import ENVOY, NEEDS_ENVOY

ROOT = Path(__file__).resolve().parents[2]
SERVE = ("serve", "tests.interop.agent:agent", "--store", "memory:", "--push-notifications")
WEBHOOK = "hooks.example"
"""Where the clients want to be called. Nobody is there, and the server says so in its log."""
REFUSED = "credential refused"
"""What the log says of clients that try."""
PORTS = ("--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0", "--log-level", "warning")


class Served(NamedTuple):
    """Where the agent is: base URL without a last slash, and `host:port` of gRPC. lists: whether it lists tasks."""

    url: str
    grpc: str
    lists: bool = True


@contextmanager
def serving(log: Path, *options: str, command: tuple[str, ...] = SERVE) -> Iterator[Served]:
    """The agent in a server of its own, on free ports; it may log no warning while clients use it as they should.
    command: what is served in its place."""
    path = os.pathsep.join((str(ROOT), str(ROOT / "generated")))
    command = (sys.executable, "-m", "a2a_grpc", *command, *PORTS, *options)
    with (
        log.open("w") as errors,
        subprocess.Popen(
            command, cwd=ROOT, env={**os.environ, "PYTHONPATH": path}, stdout=subprocess.PIPE, stderr=errors, text=True
        ) as process,
    ):
        assert process.stdout is not None
        told: dict[str, str] = {}
        try:
            while "try" not in told:
                line = process.stdout.readline()
                assert line, log.read_text()
                name, _, rest = line.strip().partition(" ")
                told[name] = rest.strip()
            yield Served(told["card"].partition("/.well-known/")[0], told["GRPC"])
        finally:
            process.terminate()
    told_of = [line for line in log.read_text().splitlines() if WEBHOOK not in line and REFUSED not in line]
    assert (process.returncode, told_of) == (0, [])


WITHOUT_ENVOY = pytest.mark.skipif(not ENVOY, reason=NEEDS_ENVOY)
WEB = pytest.param("envoy", marks=WITHOUT_ENVOY)
"""The engine that speaks gRPC-Web."""


class Way(NamedTuple):
    """How a gateway calls the agent behind it: words of its options."""

    binding: str
    version: str


WAYS = (Way("grpc", "1.0"), Way("jsonrpc", "0.3"), Way("rest", "1.0"))
GATEWAYS = {"-".join(("gateway", *way)): way for way in WAYS}
FRONTS = ("aio", WEB, next(iter(GATEWAYS)))
"""What differs in how it looks from outside; what is behind a gateway only shows in the answers of the agent."""


@pytest.fixture(scope="session", params=("aio", WEB, *GATEWAYS))
def served(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Served]:
    """The agent at both versions, by each engine, and through gateways that call it in several ways."""
    folder = tmp_path_factory.mktemp("served")
    if request.param not in GATEWAYS:
        with serving(folder / "log", "--engine", request.param) as address:
            yield address
        return
    way = GATEWAYS[request.param]
    with serving(folder / "agent.log") as behind:
        words = ("--upstream-binding", way.binding, "--upstream-version", way.version)
        with serving(folder / "log", command=("gateway", "--upstream", behind.url, *words)) as address:
            yield address._replace(lists=way.version == "1.0")


def made(variable: str) -> Path:
    """What `make interop-setup` has made and named in the environment, or a skip."""
    if not (value := os.environ.get(variable)):
        pytest.skip(f"needs {variable}: run make interop-setup")
    assert Path(value).exists(), f"{variable} names nothing: {value}"
    return Path(value)


def output(*command: str | Path, code: int = 0, timeout: float = 120, cwd: Path = ROOT, **env: str) -> str:
    """What a command prints; it must end with this exit code, and within some seconds. env: more of an environment."""
    words, told = list(map(str, command)), {**os.environ, **env}
    done = subprocess.run(words, cwd=cwd, env=told, capture_output=True, text=True, timeout=timeout)
    assert done.returncode == code, f"exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout if code == 0 else done.stdout + done.stderr


def steps(*command: str | Path, **env: str) -> dict[str, dict[str, Any]]:
    """The steps that a client program takes, in order, with the facts that it saw."""
    lines = [json.loads(line) for line in output(*command, **env).strip().split("\n")]
    found = {line.pop("step"): line for line in lines}
    assert len(found) == len(lines), "a step was told twice"
    return found
