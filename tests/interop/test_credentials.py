"""Outside clients that show credentials: keys and signed tokens, on every binding, by their own means."""

import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from joserfc import jwt
from joserfc.jwk import RSAKey

from a2a_grpc.auth import hashed
from tests.interop.conftest import Served, made, output, serving
from tests.interop.test_reflection_tools import PLAIN, SEND, SERVICES
from tests.interop.test_sdk_clients import BINDINGS, CLIENTS, check

ISSUER, AUDIENCE = "https://issuer.example", "agent"
CELLS = [
    (name, binding, ("key", "bearer")[(row + column) % 2])
    for row, name in enumerate(CLIENTS)
    for column, binding in enumerate(BINDINGS)
]
CALLERS = ("tool", *map("-".join, CELLS))
"""Who calls; each has a key and a token, as a message that one has sent before is not done again."""


class Guarded(NamedTuple):
    """A server that takes keys, and tokens of an issuer. tokens: by caller."""

    served: Served
    tokens: dict[str, str]


def key_of(caller: str) -> str:
    return f"the-key-of-{caller}"


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    folder = tmp_path_factory.mktemp("guarded")
    key = RSAKey.generate_key(2048, {"kid": "one", "use": "sig", "alg": "RS256"})
    (folder / "jwks").write_text(json.dumps({"keys": [key.as_dict(private=False)]}))
    (folder / "keys").write_text("".join(f"{caller}:{hashed(key_of(caller))}\n" for caller in CALLERS))
    options = ("--api-key-file", str(folder / "keys"), "--jwks-url", str(folder / "jwks"))
    claims = {"iss": ISSUER, "aud": AUDIENCE, "exp": int(time.time()) + 3600}
    head = {"alg": "RS256", "kid": "one"}
    tokens = {caller: jwt.encode(head, {**claims, "sub": caller}, key) for caller in CALLERS}
    with serving(folder / "log", *options, "--jwt-issuer", ISSUER, "--jwt-audience", AUDIENCE) as served:
        yield Guarded(served, tokens)


@pytest.mark.requirement("AUTH-01", "EQ-04", "GRPC-13", "CARD-12", "V03-35")
@pytest.mark.parametrize(("name", "binding", "kind"), CELLS, ids=map("-".join, CELLS))
def test_the_sdk_does_all_it_can_with_a_credential(guarded: Guarded, name: str, binding: str, kind: str) -> None:
    version, caller = CLIENTS[name][2][0], f"{name}-{binding}-{kind}"
    token = guarded.tokens[caller]
    sent = {"key": f"x-api-key={key_of(caller)}", "bearer": f"authorization=Bearer {token}"}[kind]
    shown = {"key": f"apiKey={key_of(caller)}", "bearer": f"jwt={token}"}[kind]
    check(guarded.served, name, binding, version, version, A2A_SHOW=shown, A2A_METADATA=sent)


def heads(guarded: Guarded) -> dict[str, str]:
    return {"key": f"x-api-key: {key_of('tool')}", "bearer": f"authorization: Bearer {guarded.tokens['tool']}"}


@pytest.mark.parametrize("kind", ["key", "bearer"])
@pytest.mark.requirement("AUTH-01", "AUTH-03", "GRPC-13", "ERR-08")
def test_grpcurl_and_buf_show_a_credential_as_metadata(guarded: Guarded, kind: str) -> None:
    grpcurl, buf = made("A2A_GO_FOLDER") / "bin" / "grpcurl", made("BUF")
    method, head, data = f"{SERVICES[0]}/SendMessage", heads(guarded)[kind], SEND % f"credential-{kind}"
    told = output(grpcurl, "-plaintext", "-H", head, "-d", data, guarded.served.grpc, method)
    assert "TASK_STATE_COMPLETED" in told
    refused = output(grpcurl, "-plaintext", "-d", data, guarded.served.grpc, method, code=64 + 16)
    assert "Code: Unauthenticated" in refused
    shown = output(grpcurl, "-v", "-plaintext", "-d", data, guarded.served.grpc, method, code=64 + 16)
    assert 'www-authenticate: ApiKey realm="a2a"' in shown
    url = f"http://{guarded.served.grpc}/{method}"
    assert "TASK_STATE_COMPLETED" in output(buf, "curl", *PLAIN, "-H", head, "-d", data, url)
    refused = output(buf, "curl", *PLAIN, "-H", head + "x", "-d", data, url, code=16 * 8)
    assert json.loads(refused)["code"] == "unauthenticated" and "key-of" not in refused


@pytest.mark.parametrize("kind", ["key", "bearer"])
@pytest.mark.requirement("AUTH-01", "AUTH-03", "ERR-08", "I-38")
def test_curl_shows_a_credential_as_a_header(guarded: Guarded, tmp_path: Path, kind: str) -> None:
    message = {"messageId": f"c-{kind}", "role": "ROLE_USER", "parts": [{"text": "hello"}]}
    call = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message}}
    for path, body in (("/", call), ("/message:send", {"message": {**message, "messageId": f"d-{kind}"}})):
        words = ["curl", "--silent", "--include", "-H", "A2A-Version: 1.0", "-H", "Content-Type: application/json"]
        words += ["-d", json.dumps(body), guarded.served.url + path]
        assert "TASK_STATE_COMPLETED" in output(*words, "-H", heads(guarded)[kind])
        refused = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True).stdout
        assert " 401 " in refused.splitlines()[0] and 'ApiKey realm="a2a"' in refused
