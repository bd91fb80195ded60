"""Replicas behind a real nginx, set up by deploy/nginx.conf and the options of deploy/compose.yaml.

Laws: of the files in `deploy` only addresses are replaced, and what nginx would write outside of the test's folder; all
else is as deployed. Each request is noted with the replica that answered it.
"""

import asyncio
import os
import shutil
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from scripts.services import answers, free_port
from tests.faults.processes import ROOT, Serving, clients, serving, within
from tests.stores import nats_url, postgres_url

DEPLOY = ROOT / "deploy"
COUNT = 3


def replica_options() -> dict[str, str]:
    """The options of a replica in compose.yaml, as environment."""
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
    found: dict[str, str] = services["replica-1"]["environment"]
    return dict(found)


class Proxy:
    """A running nginx: http and grpc are its ports as `host:port`, replicas the servers behind it."""

    def __init__(self, folder: Path, replicas: list[Serving], http: str, grpc: str) -> None:
        self.folder, self.replicas, self.http, self.grpc = folder, replicas, http, grpc
        self.url = f"http://{http}"

    def asked(self) -> list[tuple[str, ...]]:
        """The path of each request that is over, and the addresses of the replicas that were tried for it, in order."""
        lines = (self.folder / "access").read_text().splitlines()
        return [tuple(line.replace(",", " ").split()) for line in lines]

    def config(self) -> str:
        """nginx.conf with the addresses of this run."""
        text = (DEPLOY / "nginx.conf").read_text()
        for number, replica in enumerate(self.replicas, 1):
            for port, place in ((8080, replica.url.removeprefix("http://")), (50051, replica.grpc)):
                text = replaced(text, f"replica-{number}:{port}", place)
        text = replaced(text, "listen 8080;", f"listen {self.http};")
        text = replaced(text, "listen 50051 ", f"listen {self.grpc} ")
        own = "".join(
            f"{kind}_temp_path {self.folder}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "scgi", "uwsgi")
        )
        own += f"log_format tried '$uri $upstream_addr'; access_log {self.folder}/access tried;"
        return replaced(text, "\nhttp {", f"\nhttp {{ {own}")


def replaced(text: str, old: str, new: str) -> str:
    assert old in text, f"nginx.conf has no {old}"
    return text.replace(old, new)


@asynccontextmanager
async def behind_nginx(folder: Path, agent: str) -> AsyncIterator[Proxy]:
    """Replicas of an agent in a PostgreSQL of the tests, with hints by NATS, and nginx before them."""
    program = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin")
    if not (program and os.environ.get("A2A_NATS_URL")):
        pytest.skip("needs nginx, and PostgreSQL and NATS (make services)")
    http, grpc = (f"127.0.0.1:{free_port()}" for _ in range(2))
    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(postgres_url())
        words = ["--store", url, "--bus", nats_url(url), "--public-grpc", grpc, "--lease", "2"]

        async def replica() -> Serving:
            own = f"127.0.0.1:{free_port()}"  # it tells the public one
            place = serving(folder, *words, "--grpc", own, agent=agent, **replica_options())
            return (await stack.enter_async_context(place))._replace(grpc=own)

        proxy = Proxy(folder, list(await asyncio.gather(*(replica() for _ in range(COUNT)))), http, grpc)
        await stack.enter_async_context(_running(program, proxy))
        yield proxy


@asynccontextmanager
async def _running(program: str, proxy: Proxy) -> AsyncIterator[None]:
    settings = f"daemon off; pid {proxy.folder}/pid; error_log stderr;"
    settings += " user root;" if not os.geteuid() else ""
    (proxy.folder / "nginx.conf").write_text(proxy.config())
    words = ("-p", str(proxy.folder), "-e", "stderr", "-c", str(proxy.folder / "nginx.conf"), "-g", settings)
    with (proxy.folder / "nginx-log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(program, *words, stderr=log)
    try:
        async with asyncio.timeout(60):
            while not answers(int(proxy.http.rpartition(":")[2])):
                assert process.returncode is None, (proxy.folder / "nginx-log").read_text()
                await asyncio.sleep(0.02)
        yield
    finally:
        if process.returncode is None:
            process.terminate()
        await within(process.wait())


def calling(proxy: Proxy) -> Any:
    """A client for each binding, by way of the proxy's card."""
    return clients(Serving(proxy.replicas[0].process, proxy.url, proxy.grpc, proxy.folder / "nginx-log"))
