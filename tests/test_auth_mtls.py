"""Clients that show a certificate, and certificates that are replaced, on both ports with a test authority."""

import asyncio
import os
import shutil
import ssl
import subprocess
from pathlib import Path
from typing import Any

import aiohttp
import grpc.aio
import pytest
from a2a_stubs import v03_grpc, v1, v1_grpc

from a2a_grpc import v03
from a2a_grpc.agent import Agent
from a2a_grpc.auth import AnyOf, MutualTLS, Policy
from a2a_grpc.bindings import jsonrpc, rest
from a2a_grpc.call import V03, V1, Caller
from a2a_grpc.config import OptionError, Options
from a2a_grpc.server import Server

ALICE = "spiffe://example/alice"
NAMES = {
    "server": "IP:127.0.0.1,DNS:localhost",
    "alice": f"URI:{ALICE}",
    "bob": "DNS:bob.example,email:bob@example.org",
    "carol": "",
    "dave": "otherName:1.3.6.1.4.1.311.20.2.3;UTF8:dave@corp,dirName:inner,RID:1.2.3.4",
    "erin": "otherName:1.3.6.1.4.1.311.20.2.3;UTF8:erin@corp,IP:2001:db8::1",
}


def openssl(folder: Path, *words: str) -> None:
    subprocess.run(["openssl", *words], check=True, capture_output=True, cwd=folder)


def authority(folder: Path, name: str) -> None:
    made = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
    made += ["-addext", "keyUsage=critical,keyCertSign,cRLSign"]  # Python 3.13 takes no authority without it
    openssl(folder, *made, "-keyout", f"{name}.key", "-out", f"{name}.pem", "-subj", f"/CN={name}")


def issue(folder: Path, name: str, issuer: str, alternative: str, file: str = "") -> None:
    file = file or name
    made = ["req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", f"/CN={name}"]
    openssl(folder, *made, "-keyout", f"{file}.key", "-out", f"{file}.csr")
    named = f"subjectAltName={alternative}\n" if alternative else ""
    rest = "authorityKeyIdentifier=keyid\nsubjectKeyIdentifier=hash\n[inner]\nCN=somebody else\n"
    (folder / "names").write_text(named + rest)
    signed = ["x509", "-req", "-in", f"{file}.csr", "-CA", f"{issuer}.pem", "-CAkey", f"{issuer}.key"]
    openssl(folder, *signed, "-CAcreateserial", "-days", "2", "-extfile", "names", "-out", f"{file}.pem")


@pytest.fixture(scope="module")
def certs(tmp_path_factory) -> Path:
    """A folder with an authority, certificates of it, and one of an authority that is not trusted."""
    folder = tmp_path_factory.mktemp("mtls")
    for name in ("authority", "stranger"):
        authority(folder, name)
    for name, alternative in NAMES.items():
        issue(folder, name, "authority", alternative)
    issue(folder, "mallory", "stranger", f"URI:{ALICE}")
    return folder


def server(certs: Path, policy: Policy, **more: Any) -> Server:
    agent = Agent(name="Guarded", description="Tells who asks.", version="1.0.0", skills=[])

    @agent.handle(replies=True)
    async def who(task: Any) -> None:
        await task.reply(f"hello {task.caller.subject}")

    files = {"tls_cert": "server.pem", "tls_key": "server.key", "tls_client_ca": "authority.pem", **more}
    where = {"grpc": "127.0.0.1:0", "http": "127.0.0.1:0", "grace": 0.0, "store": "memory:"}
    paths = {option: str(certs / name) for option, name in files.items() if name}
    return Server(agent, Options(**where, **paths), authenticators=policy)


SAID = v1.SendMessageRequest(message=v1.Message(message_id="m", role=v1.ROLE_USER, parts=[v1.Part(text="hi")]))


async def over_http(made: Server, certs: Path, name: str, binding: str, version: str) -> tuple[int, str]:
    context = ssl.create_default_context(cafile=str(certs / "authority.pem"))
    if name:
        context.load_cert_chain(certs / f"{name}.pem", certs / f"{name}.key")
    verb, path = "POST", "/"
    if binding == "jsonrpc":
        headers, body = jsonrpc.request("SendMessage", SAID, 1, version)
    else:
        verb, path, headers, body = rest.request("SendMessage", SAID, "", version)
    url = made.http_url + path
    async with (
        aiohttp.ClientSession(headers=headers) as session,
        session.request(verb, url, data=body, ssl=context) as reply,
    ):
        return reply.status, await reply.text()


async def over_grpc(made: Server, certs: Path, name: str, version: str) -> tuple[int, str]:
    key, chain = ((certs / f"{name}.{end}").read_bytes() for end in ("key", "pem")) if name else (None, None)
    trust = grpc.ssl_channel_credentials((certs / "authority.pem").read_bytes(), key, chain)
    async with grpc.aio.secure_channel(made.grpc_address, trust) as channel:
        old = version == V03
        stub: Any = (v03_grpc if old else v1_grpc).A2AServiceStub(channel)
        try:
            return 200, str(await stub.SendMessage(v03.down_request(SAID) if old else SAID, timeout=30))
        except grpc.aio.AioRpcError as fault:
            code = {grpc.StatusCode.UNAUTHENTICATED: 401, grpc.StatusCode.UNAVAILABLE: 0}[fault.code()]
            return code, fault.details() or ""


async def called(made: Server, certs: Path, name: str, binding: str, version: str = V1) -> tuple[int, str]:
    """Status and answer; 0 when no connection comes about."""
    if binding == "grpc":
        return await over_grpc(made, certs, name, version)
    try:
        return await over_http(made, certs, name, binding, version)
    except (aiohttp.ClientError, OSError) as fault:
        return 0, str(fault)


@pytest.mark.parametrize("version", [V1, V03])
@pytest.mark.parametrize("binding", ["grpc", "jsonrpc", "rest"])
@pytest.mark.requirement("EQ-04", "AUTH-01", "AUTH-06", "CARD-12", "SEC-01")
async def test_a_certificate_says_who_is_calling(certs: Path, binding: str, version: str) -> None:
    async with server(certs, MutualTLS()) as made:
        for name, subject in (("alice", ALICE), ("bob", "bob.example"), ("carol", "carol")):
            status, answer = await called(made, certs, name, binding, version)
            assert status == 200 and f"hello {subject}" in answer, answer
        for name in ("", "mallory"):
            assert (await called(made, certs, name, binding, version))[0] == 0


@pytest.mark.parametrize("binding", ["grpc", "jsonrpc", "rest"])
@pytest.mark.requirement("EQ-04", "AUTH-01", "AUTH-06")
async def test_names_that_say_nothing_are_nobodys_and_addresses_are_the_same_on_each_wire(
    certs: Path, binding: str
) -> None:
    async with server(certs, MutualTLS()) as made:
        for name, subject in (("dave", "dave"), ("erin", "2001:db8::1")):
            status, answer = await called(made, certs, name, binding)
            assert status == 200 and f'hello {subject}"' in answer, answer


@pytest.mark.parametrize("binding", ["grpc", "jsonrpc", "rest"])
@pytest.mark.requirement("EQ-04", "AUTH-01", "AUTH-03")
async def test_only_listed_names_are_known(certs: Path, binding: str) -> None:
    known = {ALICE: "alice", "bob@example.org": Caller("bob"), "carol": "carol"}
    async with server(certs, AnyOf(MutualTLS(known))) as made:
        for name in ("alice", "bob", "carol"):
            status, answer = await called(made, certs, name, binding)
            assert status == 200 and f"hello {name}" in answer, answer
        assert (await called(made, certs, "server", binding))[0] == 401


async def test_a_certificate_that_was_replaced_is_in_use_at_once(certs: Path, tmp_path: Path, caplog) -> None:
    folder = tmp_path / "live"
    shutil.copytree(certs, folder)
    async with server(folder, MutualTLS()) as made:
        numbers = []
        for content in ("old", "broken", "new"):
            if content == "broken":
                (folder / "server.key").write_text("no key")
            if content == "new":
                issue(folder, "server", "authority", NAMES["server"], "next")
                for end in ("key", "pem"):
                    os.replace(folder / f"next.{end}", folder / f"server.{end}")
            seen = set()
            for address in (made.http_address, made.grpc_address):
                assert (await called(made, certs, "alice", "grpc"))[0] == 200
                assert (await called(made, certs, "alice", "rest"))[0] == 200
                seen.add(await served(certs, address))
            numbers.append(seen)
        assert len(numbers[0]) == 1 and numbers[0] == numbers[1] and len(numbers[2]) == 1
        assert numbers[2] != numbers[0]
    assert "cannot be used" in caplog.text


async def served(certs: Path, address: str) -> str:
    """The certificate that a port shows."""
    words = ["s_client", "-connect", address, "-cert", "alice.pem", "-key", "alice.key", "-CAfile", "authority.pem"]
    process = await asyncio.create_subprocess_exec(
        "openssl",
        *words,
        "-alpn",
        "h2",
        cwd=certs,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    told, _ = await process.communicate()
    return told.decode("latin-1").split("-----BEGIN CERTIFICATE-----")[1].split("-----END")[0]


def test_authorities_need_a_certificate_of_the_server() -> None:
    with pytest.raises(OptionError, match="tls_client_ca needs"):
        Options(tls_client_ca="authority.pem")


async def test_files_that_cannot_be_used_at_the_start_are_an_os_error(certs: Path) -> None:
    for wrong in ({"tls_client_ca": "server.key"}, {"tls_key": "alice.key"}, {"tls_cert": "no-such-file"}):
        with pytest.raises(OSError):
            await server(certs, MutualTLS(), **wrong).start()
