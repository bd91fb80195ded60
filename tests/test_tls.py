"""Both ports with a certificate."""

import ssl
import subprocess

import grpc.aio
import pytest
import test_grpc_binding
import test_http_host
from a2a_stubs import v1, v1_grpc

from a2a_grpc.bindings.grpc import GrpcBinding, GrpcHost
from a2a_grpc.bindings.http import tls_context
from a2a_grpc.bindings.streams import Streams
from a2a_grpc.config import Options


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


@pytest.mark.requirement("SEC-01")
@pytest.mark.parametrize("missing", ["tls_cert", "tls_key"])
async def test_a_file_that_cannot_be_read_is_an_os_error(files, missing):
    options = Options(grpc="127.0.0.1:0", http="127.0.0.1:0", **(files | {missing: "no-such-file"}))
    with pytest.raises(OSError):
        await GrpcHost(GrpcBinding(test_grpc_binding.Fake(), options, Streams(1)), options).start()
    with pytest.raises(OSError):
        await test_http_host.HttpHost([], options, Streams(1)).start()
