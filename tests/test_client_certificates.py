"""Certificates of agents that are not to be trusted, and clients without one: no way there on any wire, and the reason
is told, to whoever calls or runs a gateway, and not to callers of that."""

import asyncio
import datetime
import ipaddress
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import uvloop
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization

from a2a_grpc import errors
from a2a_grpc.agent import Agent
from a2a_grpc.call import JSONRPC, REST, V03, V1
from a2a_grpc.client import Client
from a2a_grpc.client_auth import Channel, Tls
from a2a_grpc.gateway_way import UNREACHABLE
from a2a_grpc.server import Server
from a2a_grpc.testing import serve
from tests.fronts import PATIENCE, asking, failure, gateway, wire_of
from tests.test_auth_mtls import authority, issue, openssl
from tests.test_client_http2 import BOTH

HERE = "IP:127.0.0.1,IP:::1,DNS:localhost"

WRONG = {
    "expired": ("expired",),
    "future": ("not yet valid",),
    "elsewhere": ("mismatch", "Hostname"),
    "nameless": ("mismatch", "Hostname"),
    "alone": ("self-signed", "self signed"),
}
"""Certificates of agents, and words of which each library has one for what is wrong."""


def dated(folder: Path, name: str, year: int) -> None:
    """A certificate that is good for a month of a year, which openssl makes in its latest release alone."""
    issue(folder, name, "authority", HERE)
    key = serialization.load_pem_private_key((folder / "authority.key").read_bytes(), None)
    by = x509.load_pem_x509_certificate((folder / "authority.pem").read_bytes())
    like = x509.load_pem_x509_certificate((folder / f"{name}.pem").read_bytes())
    names: list[x509.GeneralName] = [x509.IPAddress(ipaddress.ip_address("127.0.0.1")), x509.DNSName("localhost")]
    made = x509.CertificateBuilder().subject_name(like.subject).issuer_name(by.subject).serial_number(1)
    made = made.public_key(like.public_key()).add_extension(x509.SubjectAlternativeName(names), False)
    begin, end = (datetime.datetime(year, month, 1, tzinfo=datetime.timezone.utc) for month in (1, 2))
    made = made.add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(by.public_key()), False)  # type: ignore[arg-type]
    signed = made.not_valid_before(begin).not_valid_after(end).sign(key, hashes.SHA256())  # type: ignore[arg-type]
    (folder / f"{name}.pem").write_bytes(signed.public_bytes(serialization.Encoding.PEM))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("certificates")
    for name in ("authority", "stranger"):
        authority(found, name)
    for name, names in (
        ("good", HERE),
        ("elsewhere", "DNS:elsewhere.example"),
        ("nameless", ""),
        ("caller", "URI:urn:x"),
    ):
        issue(found, name, "authority", names)
    issue(found, "mallory", "stranger", "URI:urn:x")
    made = ("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2")
    made += ("-subj", "/CN=alone", "-addext", f"subjectAltName={HERE}", "-keyout", "alone.key", "-out", "alone.pem")
    openssl(found, *made)
    dated(found, "expired", 2020)
    dated(found, "future", 2090)
    return found


@asynccontextmanager
async def guarded(folder: Path, name: str, asks: bool = False, host: str = "127.0.0.1") -> AsyncIterator[Server]:
    agent = Agent(name="Echo", description="Says it again.", version="1", skills=[])
    agent.handle(lambda task: task.text)
    told = {"tls_cert": str(folder / f"{name}.pem"), "tls_key": str(folder / f"{name}.key")}
    if asks:
        told["tls_client_ca"] = str(folder / "authority.pem")
    async with serve(agent, grpc=f"{host}:0", http=f"{host}:0", **told) as server:
        yield server


def trusting(folder: Path, shown: str = "") -> Tls:
    cert, key = (str(folder / f"{shown}.{end}") for end in ("pem", "key")) if shown else (None, None)
    return Tls(str(folder / "authority.pem"), cert, key)


async def refused(client: Client) -> Iterator[errors.A2AError]:
    """How a call and a stream fail."""
    return iter([await failure(client.get("t")), await failure(anext(client.stream(asking("x"))))])


@BOTH
@pytest.mark.requirement("SEC-01", "SEC-02")
@pytest.mark.parametrize("name", WRONG)
async def test_a_certificate_that_is_not_to_be_trusted_is_no_way_over_grpc_and_is_told(
    folder: Path, name: str, streams: str, caplog: pytest.LogCaptureFixture
) -> None:
    told = {"tls": trusting(folder), "channel": Channel(streams=streams)}
    async with guarded(folder, name) as back:
        to = f"grpcs://{back.grpc_address}"
        async with Client(to, timeout=PATIENCE, retries=None, **told) as client:
            for fault in await refused(client):
                assert type(fault) is errors.UnavailableError
                assert any(word in fault.message for word in WRONG[name]), fault.message
        async with gateway(to, **told) as front, wire_of(front, REST, "1.0") as client:
            assert {fault.message for fault in await refused(client)} == {UNREACHABLE}
    assert any(word in caplog.text for word in WRONG[name])


@pytest.mark.requirement("SEC-01", "SEC-02")
@pytest.mark.parametrize("binding", [JSONRPC, REST])
@pytest.mark.parametrize("name", WRONG)
async def test_nor_is_it_over_http(folder: Path, name: str, binding: str, caplog: pytest.LogCaptureFixture) -> None:
    tls = trusting(folder)
    async with guarded(folder, name) as back:
        found = await failure(Client.connect(back.http_url, binding=binding, tls=tls, retries=None))
        assert type(found) is errors.UnavailableError
        assert any(word in found.message for word in WRONG[name]), found.message
        async with (
            gateway(back.http_url, tls=tls, binding=binding) as front,
            Client(f"grpc://{front.grpc_address}", timeout=PATIENCE, retries=None) as client,
        ):
            assert {fault.message for fault in await refused(client)} == {UNREACHABLE}
    assert any(word in caplog.text for word in WRONG[name])


SHOWN = {
    "": "certificate required",
    "mallory": "unknown ca",
    "expired": "certificate expired",
    "future": "bad certificate",
    "caller": "",
}
"""Certificates that callers show, and what TLS says of those."""


@BOTH
@pytest.mark.requirement("SEC-01", "AUTH-01")
@pytest.mark.parametrize("shown", SHOWN)
async def test_who_shows_no_certificate_or_a_strange_one_is_not_let_in(folder: Path, shown: str, streams: str) -> None:
    told = {"tls": trusting(folder, shown), "channel": Channel(streams=streams), "retries": None, "timeout": PATIENCE}
    async with guarded(folder, "good", asks=True) as back, Client(f"grpcs://{back.grpc_address}", **told) as client:
        if shown == "caller":
            assert [event async for event in client.stream(asking("hi"))]
        else:
            for fault in await refused(client):
                assert type(fault) is errors.UnavailableError and "certificate of the client" in fault.message


@pytest.mark.requirement("SEC-01", "AUTH-01")
@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
@pytest.mark.parametrize("version", [V1, V03])
@pytest.mark.parametrize("binding", [JSONRPC, REST])
@pytest.mark.parametrize("shown", SHOWN)
def test_nor_is_it_over_http_and_why_is_told(folder: Path, shown: str, binding: str, version: str, loop: Any) -> None:
    async def tried() -> None:
        told: dict[str, Any] = {"tls": trusting(folder, shown), "retries": None, "timeout": PATIENCE}
        async with guarded(folder, "good", asks=True) as back:
            async with Client(back.http_url, tls=trusting(folder, "caller"), retries=None) as known:
                card = known.card
            assert card is not None
            async with Client(card, binding=binding, version=version, **told) as client:
                if shown == "caller":
                    assert [event async for event in client.stream(asking("hi"))]
                    return
                for fault in await refused(client):
                    assert type(fault) is errors.UnavailableError and SHOWN[shown] in fault.message
            found = await failure(Client.connect(back.http_url, **told))
            assert type(found) is errors.UnavailableError and SHOWN[shown] in found.message

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(tried())


@BOTH
@pytest.mark.parametrize("host", ["[::1]", "localhost"])
@pytest.mark.parametrize("binding", ["GRPC", JSONRPC, REST])
async def test_addresses_of_ipv6_and_names_lead_there_in_the_clear_and_over_tls(
    folder: Path, binding: str, host: str, streams: str
) -> None:
    agent = Agent(name="Echo", description="Says it again.", version="1", skills=[])
    agent.handle(lambda task: task.text)
    told = {"binding": binding, "channel": Channel(streams=streams)}
    bound = "127.0.0.1" if host == "localhost" else host
    plain = serve(agent, grpc=f"{bound}:0", http=f"{bound}:0")
    async with plain as clear, guarded(folder, "good", host=bound) as safe:
        for back, tls in ((clear, None), (safe, trusting(folder))):
            port = back.grpc_address.rpartition(":")[2]
            for to in (back.http_url.replace(bound, host), f"{host}:{port}"):
                if binding != "GRPC" and not to.startswith("http"):
                    continue
                async with gateway(to, tls=tls, **told) as front, wire_of(front, REST, "1.0") as client:
                    assert (await client.send(asking("hi"))).task.artifacts[0].parts[0].text == "hi"
                    assert [event async for event in client.stream(asking("hi"))]
