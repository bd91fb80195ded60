"""Starts and stops the servers that tests may use: a private PostgreSQL and a private NATS.

Laws of this file:
- Both listen on free loopback ports, keep everything below .tools/services and die with `stop`; nothing that was
  there before is touched. `start` does nothing for a server that runs.
- PostgreSQL refuses to run as root; then it runs as `postgres`, the user that comes with its package.
- Addresses stand in .tools/env beside what interop_setup.py writes, as long as the servers run.
- Only the standard library: it runs before anything is installed.
"""

import argparse
import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ENV = ROOT / ".tools" / "env"
HOME = ROOT / ".tools" / "services"
NAMES = ("A2A_POSTGRES_URL", "A2A_NATS_URL")
PATIENCE = 60.0
"""Seconds that a server may take to answer or to end."""
SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "max_connections": "500",
    "max_wal_size": "256MB",
}


def find(name: str, package: str) -> str:
    """A program by name, or from the folders where Debian puts the servers; ends this script when it is missing."""
    places = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: float(path.parent.name), reverse=True)
    path = os.pathsep.join(map(str, [*places, os.environ.get("PATH", ""), "/usr/sbin"]))
    if found := shutil.which(name, path=path):
        return os.path.realpath(found)
    raise SystemExit(f"there is no {name}: install the Debian package {package}")


def free_port() -> int:
    """A loopback port that nobody listens on, below those that a system gives away by itself: no connection and no
    other server is likely to have it by the time that somebody is told to listen there."""
    while True:
        port = 20_000 + secrets.randbelow(12_000)
        with closing(socket.socket()) as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def answers(port: int) -> bool:
    """Whether somebody listens."""
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


def until(condition: Callable[[], bool], what: str, log: Path) -> None:
    """Wait for a condition; ends this script with the server's own words when it does not come true."""
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            raise SystemExit(f"{what} within {PATIENCE:g} s; its log:\n{log.read_text() if log.exists() else '(none)'}")
        time.sleep(0.05)


class Service:
    """A server with a folder of its own: `port`, `pid` and `log` lie in it. ready: whether it serves at a port."""

    def __init__(self, name: str, program: str) -> None:
        self.name, self.program = name, program
        self.folder = HOME / name
        self.log = self.folder / "log"
        self.ready: Callable[[int], bool] = answers
        self._process: subprocess.Popen[bytes] | None = None
        self._command: tuple[Sequence[str], str | None] = ((), None)

    @property
    def pid(self) -> int:
        """The process if it runs and is ours: a number that was given to another program since does not count."""
        with suppress(OSError, ValueError):
            pid = int((self.folder / "pid").read_text())
            command = Path(f"/proc/{pid}/cmdline").read_text()
            if self.program in command and str(self.folder) in command:
                return pid
        return 0

    @property
    def port(self) -> int:
        """The port that it serves at."""
        return int((self.folder / "port").read_text())

    def start(self, command: Sequence[str], user: str | None) -> None:
        """Start the server detached from this script and wait until it answers."""
        with self.log.open("ab") as log:
            process = subprocess.Popen(
                command,
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                user=user,
                group=user,
                extra_groups=[] if user else None,
            )
        self._process, self._command = process, (command, user)
        (self.folder / "pid").write_text(str(process.pid))
        until(lambda: process.poll() is not None or self.ready(self.port), f"{self.name} did not answer", self.log)
        if process.poll() is not None:
            raise SystemExit(f"{self.name} ended at once; its log:\n{self.log.read_text()}")

    def end(self, number: signal.Signals) -> None:
        """End the server if it runs; what it kept stays."""
        if pid := self.pid:
            os.kill(pid, number)
            until(lambda: not self.pid, f"{self.name} did not end", self.log)
        if self._process is not None:
            self._process.wait(PATIENCE)

    def again(self) -> None:
        """Start the server that was started by this object before and has ended."""
        self.start(*self._command)

    def stop(self, number: signal.Signals) -> None:
        """Stop the server if it runs, and remove what it kept."""
        self.end(number)
        shutil.rmtree(self.folder, ignore_errors=True)


def postgres(service: Service) -> str:
    """Make a cluster and start it; answers its address."""
    user = "postgres" if os.geteuid() == 0 else None
    if user:
        try:
            pwd.getpwnam(user)
        except KeyError:
            raise SystemExit("PostgreSQL does not run as root, and there is no user postgres") from None
    data, port, password = service.folder / "data", free_port(), secrets.token_urlsafe(12)
    data.mkdir(mode=0o700)
    if user:
        shutil.chown(data, user, user)
    secret = data.parent / "password"
    secret.write_text(password)
    if user:
        shutil.chown(secret, user)
    make = [find("initdb", "postgresql"), "-D", str(data), "-U", "a2a", f"--pwfile={secret}", "-A", "scram-sha-256"]
    make += ["-E", "UTF8", "--locale=C.UTF-8"]
    done = subprocess.run(make, cwd="/", user=user, group=user, capture_output=True, text=True, check=False)
    secret.unlink()
    if done.returncode:
        raise SystemExit(f"initdb failed; the folders above {HOME} must be open to {user}:\n{done.stderr}")
    (service.folder / "port").write_text(str(port))
    probe = find("pg_isready", "postgresql")
    service.ready = lambda port: not subprocess.call([probe, "-q", "-h", "127.0.0.1", "-p", str(port)])
    options = [word for name, value in SETTINGS.items() for word in ("-c", f"{name}={value}")]
    service.start([service.program, "-D", str(data), "-p", str(port), *options], user)
    return f"postgresql://a2a:{password}@127.0.0.1:{port}/postgres"


def nats(service: Service) -> str:
    """Start NATS; answers its address."""
    port = free_port()
    (service.folder / "port").write_text(str(port))
    service.start([service.program, "-a", "127.0.0.1", "-p", str(port), "-P", str(service.folder / "own-pid")], None)
    return f"nats://127.0.0.1:{port}"


def remember(addresses: dict[str, str]) -> None:
    """Write the addresses into .tools/env, in place of earlier ones."""
    lines = ENV.read_text().splitlines() if ENV.exists() else []
    lines = [line for line in lines if line.split("=")[0] not in NAMES]
    lines += [f"{name}={value}" for name, value in addresses.items()]
    ENV.parent.mkdir(exist_ok=True)
    ENV.write_text("".join(f"{line}\n" for line in lines))


def start(services: Sequence[tuple[Service, Callable[[Service], str]]]) -> None:
    """Start what does not run."""
    addresses = {}
    for name, (service, make) in zip(NAMES, services, strict=True):
        known = service.folder / "address"
        if not (service.pid and known.exists()):
            service.stop(signal.SIGKILL)
            service.folder.mkdir(parents=True)
            known.write_text(make(service))
            known.chmod(0o600)
        addresses[name] = known.read_text()
        print(f"{service.name} runs as process {service.pid}")
    remember(addresses)
    print(f"written: {ENV.relative_to(ROOT)}")


def main() -> None:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description="Start or stop the private servers that tests use.")
    parser.add_argument("action", choices=("start", "stop"))
    action = parser.parse_args().action
    services = (
        (Service("postgres", find("postgres", "postgresql")), postgres),
        (Service("nats", find("nats-server", "nats-server")), nats),
    )
    if action == "start":
        start(services)
        return
    for service, _ in services:
        service.stop(signal.SIGINT)
    remember({})


if __name__ == "__main__":
    sys.exit(main())
