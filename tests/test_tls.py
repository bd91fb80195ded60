"""Both ports with a certificate."""

import ssl
import subprocess
import uuid
from itertools import product

import grpc.aio
import pytest
from a2a_stubs import v1, v1_grpc

from a2a_grpc.agent import Agent
from a2a_grpc.bindings.grpc import GrpcBinding, GrpcHost
from a2a_grpc.bindings.http import tls_context
from a2a_grpc.bindings.streams import Streams
from a2a_grpc.client import Client
from a2a_grpc.config import Options
from a2a_grpc.errors import UnavailableError
from a2a_grpc.testing import serve
from tests import test_grpc_binding, test_http_host


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The options that name a fresh certificate for this machine and its key."""
    folder = tmp_path_factory.mktemp("tls")
    cert, key = folder / "cert.pem", folder / "key.pem"
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost"]
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-keyout", key, "-out", cert]
    subprocess.run([*made, *subject], check=True, capture_output=True)
    return {"tls_cert": str(cert), "tls_key": str(key)}


@pytest.mark.requirement("SEC-01", "I-63")
async def test_http_speaks_tls_from_1_2_on(files):
    async with test_http_host.serving(**files) as site:
        context = ssl.create_default_context(cafile=files["tls_cert"])
        async with site.client.get(f"https://{site.host.address}/healthz", ssl=context) as reply:
            assert reply.status == 200
    assert tls_context(Options(**files)).minimum_version == ssl.TLSVersion.TLSv1_2
    assert tls_context(Options()) is None


@pytest.mark.requirement("SEC-01", "GRPC-02")
async def test_grpc_speaks_tls(files):
    async with test_grpc_binding.serving(test_grpc_binding.Fake(), **files) as plain:
        with open(files["tls_cert"], "rb") as roots:  # noqa: ASYNC230
            credentials = grpc.ssl_channel_credentials(roots.read())
        async with grpc.aio.secure_channel(plain.host.address, credentials) as channel:
            assert (await v1_grpc.A2AServiceStub(channel).GetTask(v1.GetTaskRequest(id="5"))).id == "5"


@pytest.mark.requirement("SEC-01", "SEC-02", "CARD-06", "CARD-09", "I-28")
async def test_every_interface_of_a_card_with_tls_answers(files, monkeypatch):
    agent = Agent(name="Echo", description="Says it again.", version="1.0.0", skills=[])
    agent.handle(lambda task: task.text)
    context = ssl.create_default_context(cafile=files["tls_cert"])
    async with serve(agent, **files) as server:
        for binding, version in product(("GRPC", "JSONRPC", "HTTP+JSON"), ("1.0", "0.3")):
            settings = {"binding": binding, "version": version, "tls": context}
            monkeypatch.setenv("SSL_CERT_FILE", files["tls_cert"])
            async with Client(server.http_url, **settings) as client:
                assert (await client.send(said())).task.artifacts[0].parts[0].text == "hi"
        monkeypatch.delenv("SSL_CERT_FILE")
        async with Client(server.http_url, binding="GRPC", tls=context) as client:
            with pytest.raises(UnavailableError):  # whose certificate nobody vouches for
                await client.send(said())


def said():
    message = v1.Message(message_id=str(uuid.uuid4()), role=v1.ROLE_USER, parts=[v1.Part(text="hi")])
    return v1.SendMessageRequest(message=message)


@pytest.mark.requirement("SEC-01")
@pytest.mark.parametrize("missing", ["tls_cert", "tls_key"])
async def test_a_file_that_cannot_be_read_is_an_os_error(files, missing):
    options = Options(grpc="127.0.0.1:0", http="127.0.0.1:0", **(files | {missing: "no-such-file"}))
    with pytest.raises(OSError):
        await GrpcHost(GrpcBinding(test_grpc_binding.Fake(), options, Streams(1)), options).start()
    with pytest.raises(OSError):
        await test_http_host.HttpHost([], options, Streams(1)).start()


@pytest.mark.parametrize("name", ["tls_cert", "tls_key", "tls_client_ca"])
def test_a_file_that_holds_something_else_is_told_by_its_option(files, tmp_path, name):
    (tmp_path / "odd.pem").write_text("something else")
    with pytest.raises(OSError, match=f"{name} .*odd.pem"):
        tls_context(Options(**(files | {name: str(tmp_path / "odd.pem")})))


def test_nobody_is_asked_for_the_pass_phrase_of_a_key(files, tmp_path):
    made = ["openssl", "pkey", "-in", files["tls_key"], "-aes256", "-passout", "pass:secret", "-out", tmp_path / "key"]
    subprocess.run(made, check=True, capture_output=True)
    with pytest.raises(OSError, match=r"tls_key .*key cannot be used"):
        tls_context(Options(**files | {"tls_key": str(tmp_path / "key")}))
