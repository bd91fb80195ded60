"""Bearer tokens of an issuer on loopback, with the keys it publishes."""

import asyncio
import base64
import hmac
import json
import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from a2a_stubs import v1
from aiohttp import web
from joserfc import jwt
from joserfc.jwk import ECKey, Key, OKPKey, RSAKey
from joserfc.jws import JWSRegistry

from a2a_grpc.agent import Agent
from a2a_grpc.auth import AllOf, AnyOf, Authentication
from a2a_grpc.auth_jwt import JWT
from a2a_grpc.auth_keys import LIMIT, FixedKeys, RemoteKeys
from a2a_grpc.call import GRPC, JSONRPC, REST, V1, Credentials
from a2a_grpc.client import Client
from a2a_grpc.config import OptionError, Options
from a2a_grpc.errors import PermissionDeniedError, UnauthenticatedError, UnavailableError
from a2a_grpc.opening import open_policy
from a2a_grpc.server import Server
from tests.peers import listening

EC = ECKey.generate_key("P-256", {"kid": "ec"})
HERE: dict[str, Any] = {"grpc": "127.0.0.1:0", "http": "127.0.0.1:0", "grace": 0.0, "store": "memory:"}
AUDIENCE = "https://agents.example"


class Issuer:
    """A small OpenID provider: discovery and keys, both counted, which can be made to fail."""

    def __init__(self) -> None:
        self.keys: list[Key] = [EC]
        self.asked: list[str] = []
        self.failure: Any = None
        self.url = ""

    async def answer(self, request: web.Request) -> web.Response:
        self.asked.append(request.path)
        if self.failure is not None:
            return self.failure()
        if request.path.endswith("openid-configuration"):
            return web.json_response({"issuer": self.url, "jwks_uri": f"{self.url}/jwks"})
        return web.json_response({"keys": [key.as_dict(private=False) for key in self.keys]})

    def token(self, key: Key = EC, alg: str = "ES256", header: dict[str, Any] | None = None, **claims: Any) -> str:
        now = int(time.time())
        given = {"iss": self.url, "aud": AUDIENCE, "sub": "ann", "iat": now, "exp": now + 600, **claims}
        kid = {"kid": key.kid} if key.kid else {}
        kept = {name: value for name, value in given.items() if value is not None}
        registry = JWSRegistry(algorithms=[alg], strict_check_header=False)
        return jwt.encode({"alg": alg, **kid, **(header or {})}, kept, key, registry=registry)

    def bearer(self, *given: Any, **claims: Any) -> Credentials:
        return shown(self.token(*given, **claims))


def shown(token: str) -> Credentials:
    return Credentials(GRPC, {"authorization": f"Bearer {token}"})


@asynccontextmanager
async def running() -> AsyncIterator[Issuer]:
    issuer = Issuer()
    async with listening(issuer.answer) as address:
        issuer.url = f"http://{address}"
        yield issuer


def fixed(*keys: Key, **more: Any) -> tuple[Issuer, Authentication]:
    issuer = Issuer()
    issuer.url = "https://id.example"
    made = FixedKeys({"keys": [key.as_dict(private=False) for key in keys or (EC,)]})
    return issuer, Authentication(JWT(issuer.url, AUDIENCE, made, **more))


# -- what a token must be


@pytest.mark.requirement("AUTH-01", "AUTH-06")
async def test_a_good_token_says_who_is_calling_and_what_was_granted():
    issuer, gate = fixed(tenant_claim="tenants")
    found = await gate(issuer.bearer(scope="read write", scp=["more"], tenants=["acme"], aud=["x", AUDIENCE]))
    assert (found.subject, found.authenticated) == ("https://id.example|ann", True)
    assert (found.scopes, found.tenants) == ({"read", "write", "more"}, {"acme"})
    assert found.claims["iss"] == issuer.url
    assert (await gate(issuer.bearer())).tenants == frozenset()


KINDS = {
    "RS256": RSAKey.generate_key(2048, {"kid": "rsa"}),
    "PS384": RSAKey.generate_key(2048),
    "ES384": ECKey.generate_key("P-384", {"kid": "ec3"}),
    "Ed25519": OKPKey.generate_key("Ed25519", {"kid": "okp"}),
}


@pytest.mark.parametrize("alg", KINDS)
async def test_each_kind_of_key_signs(alg):
    issuer, gate = fixed(*KINDS.values())
    assert (await gate(issuer.bearer(KINDS[alg], alg))).subject
    header = {"x5t": "dGVzdA", "nonce": "n"}
    assert (await gate(issuer.bearer(KINDS[alg], alg, header))).subject


def forged(header: dict[str, Any], claims: dict[str, Any], signature: bytes = b"") -> str:
    parts = (json.dumps(header).encode(), json.dumps(claims).encode(), signature)
    return ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts)


def mixed_up(_: Issuer) -> str:
    """Signed with the public key as if it were a shared secret."""
    header = {"alg": "HS256", "kid": "ec"}
    signed = forged(header, GOOD).rpartition(".")[0].encode()
    return forged(header, GOOD, hmac.digest(EC.as_pem(private=False), signed, "sha256"))


NOW = int(time.time())
"""When the tests are gathered; they may run long after."""
DAY = 86_400
GOOD = {"iss": "https://id.example", "aud": AUDIENCE, "sub": "ann", "exp": NOW + DAY}
BAD = {
    "expired": lambda issuer: issuer.token(exp=NOW - 31),
    "not yet": lambda issuer: issuer.token(nbf=NOW + DAY),
    "from the future": lambda issuer: issuer.token(iat=NOW + DAY),
    "for ever": lambda issuer: issuer.token(exp=None),
    "another audience": lambda issuer: issuer.token(aud="https://other.example"),
    "no audience": lambda issuer: issuer.token(aud=None),
    "another issuer": lambda issuer: issuer.token(iss="https://id.example.evil"),
    "nobody": lambda issuer: issuer.token(sub=None),
    "a number": lambda issuer: issuer.token(sub=7),
    "time as text": lambda issuer: issuer.token(exp="tomorrow"),
    "another key": lambda issuer: issuer.token(ECKey.generate_key("P-256", {"kid": "ec"})),
    "a key of its own": lambda issuer: issuer.token(header={"jwk": EC.as_dict(private=False), "kid": "own"}),
    "no algorithm": lambda _: forged({"alg": "none"}, GOOD),
    "no algorithm, in capitals": lambda _: forged({"alg": "NONE", "kid": "ec"}, GOOD, b"x"),
    "an algorithm that is no text": lambda _: forged({"alg": ["ES256"], "kid": "ec"}, GOOD, b"x"),
    "no header": lambda _: forged({}, GOOD, b"x"),
    "claims that are none": lambda issuer: forged({"alg": "ES256", "kid": "ec"}, [], b"x"),
    "unknown critical header": lambda issuer: forged({"alg": "ES256", "kid": "ec", "crit": ["x"], "x": 1}, GOOD, b"x"),
    "changed claims": lambda issuer: changed(issuer.token()),
    "no token": lambda _: "",
    "two parts": lambda _: "a.b",
    "five parts": lambda _: "a.b.c.d.e",
    "no base64": lambda _: "\u00e9.{}.!",
    "very long": lambda _: "a" * 200_000 + ".b.c",
    "a shared secret": mixed_up,
}


def changed(token: str) -> str:
    head, _, mark = token.split(".")
    return ".".join((head, forged({}, GOOD).split(".")[1], mark))


@pytest.mark.parametrize("how", BAD)
@pytest.mark.requirement("AUTH-01", "AUTH-03", "SEC-05")
async def test_a_bad_token_is_refused_and_not_logged(how, caplog):
    issuer, gate = fixed()
    token = BAD[how](issuer)
    with caplog.at_level(logging.DEBUG), pytest.raises(UnauthenticatedError) as refused:
        await gate(shown(token))
    assert 'error="invalid_token"' in refused.value.challenge
    assert len(caplog.records) == 1 and "ann" not in caplog.text
    assert all(part not in caplog.text for part in token.split(".") if len(part) > 20)


@pytest.mark.requirement("ERR-09")
async def test_a_token_without_the_scope_is_told_which():
    issuer, gate = fixed(scopes=("read", "write"))
    with pytest.raises(PermissionDeniedError, match="Missing scope: write") as refused:
        await gate(issuer.bearer(scope="read"))
    assert refused.value.metadata == {"scopes": "write"}
    assert 'scope="write"' in refused.value.challenge


async def test_clocks_may_differ_a_little():
    issuer, gate = fixed(leeway=60)
    assert await gate(issuer.bearer(exp=int(time.time()) - 30))


async def test_two_issuers_are_told_apart():
    issuer, _ = fixed()
    other = Issuer()
    other.url = "https://other.example"
    keys = FixedKeys({"keys": [EC.as_dict(private=False)]})
    ways = [JWT(one.url, AUDIENCE, keys, scheme_name=one.url) for one in (issuer, other)]
    gate = Authentication(AnyOf(ways[0], AllOf(ways[1])))
    found = [(await gate(one.bearer())).subject for one in (issuer, other)]
    assert found == ["https://id.example|ann", "https://other.example|ann"]
    plain = JWT(issuer.url, AUDIENCE, keys, subject=lambda claims: str(claims["sub"]))
    assert (await Authentication(plain)(issuer.bearer())).subject == "ann"


@pytest.mark.parametrize("settings", [{"algorithms": ("none",)}, {"algorithms": ("XX1",)}, {"audience": ""}])
def test_what_no_token_can_be_is_an_option_error(settings):
    with pytest.raises(OptionError):
        JWT(**{"issuer": "https://id.example", "audience": AUDIENCE, **settings})


@pytest.mark.requirement("CARD-12", "CARD-13")
def test_the_card_tells_where_tokens_come_from():
    found = JWT("https://id.example/", AUDIENCE).scheme.open_id_connect_security_scheme
    assert found.open_id_connect_url == "https://id.example/.well-known/openid-configuration"
    flows = v1.OAuthFlows(client_credentials=v1.ClientCredentialsOAuthFlow(token_url="https://id.example/token"))
    card = v1.SecurityScheme(oauth2_security_scheme=v1.OAuth2SecurityScheme(flows=flows))
    assert JWT("https://id.example", AUDIENCE, card=card).scheme == card
    _, gate = fixed()
    assert gate.schemes["jwt"].http_auth_security_scheme.bearer_format == "JWT"


# -- where keys come from


def test_keys_may_be_in_a_file(tmp_path):
    file = tmp_path / "keys"
    one = EC.as_dict(private=False)
    for content in (json.dumps({"keys": [one]}), json.dumps(one), EC.as_pem(private=False).decode()):
        file.write_text(content)
        assert len(asyncio.run(FixedKeys.from_file(file).keys("ec"))) == 1
    for content in ("{", "{}", "nothing", '{"keys": []}', '{"keys": [{"kty": "EC"}]}'):
        file.write_text(content)
        with pytest.raises(OptionError):
            FixedKeys.from_file(file)


@pytest.mark.parametrize("url", ["http://id.example/keys", "ftp://id.example", "id.example", "file:///keys", ""])
@pytest.mark.requirement("SEC-01")
def test_keys_come_over_https(url):
    with pytest.raises(OptionError, match="https"):
        RemoteKeys(url)


async def test_new_keys_are_found_and_old_ones_forgotten():
    async with running() as issuer:
        gate = Authentication(JWT(issuer.url, AUDIENCE, RemoteKeys(f"{issuer.url}/jwks", pause=0)))
        for _ in range(3):
            await gate(issuer.bearer())
        assert issuer.asked == ["/jwks"]
        newer = ECKey.generate_key("P-256", {"kid": "newer"})
        issuer.keys = [newer]
        assert (await gate(issuer.bearer(newer))).subject
        assert len(issuer.asked) == 2
        with pytest.raises(UnauthenticatedError):
            await gate(issuer.bearer())


async def test_tokens_with_made_up_keys_do_not_wear_out_the_issuer():
    async with running() as issuer:
        gate = Authentication(JWT(issuer.url, AUDIENCE))
        await gate(issuer.bearer())
        for number in range(20):
            with pytest.raises(UnauthenticatedError):
                await gate(issuer.bearer(header={"kid": f"made-up-{number}"}))
        assert issuer.asked == ["/.well-known/openid-configuration", "/jwks"]


async def test_many_callers_at_once_ask_the_issuer_once():
    async with running() as issuer:
        gate = Authentication(JWT(issuer.url, AUDIENCE, RemoteKeys(f"{issuer.url}/jwks")))
        await asyncio.gather(*(gate(issuer.bearer()) for _ in range(50)))
        assert issuer.asked == ["/jwks"]


FAILURES = {
    "error": lambda: web.Response(status=500),
    "redirect": lambda: web.Response(status=302, headers={"location": "/jwks"}),
    "no JSON": lambda: web.Response(text="<html>"),
    "no keys": lambda: web.json_response({"keys": []}),
    "another issuer": lambda: web.json_response({"issuer": "https://evil.example", "jwks_uri": "http://127.0.0.1/"}),
    "too large": lambda: web.Response(body=b" " * (LIMIT + 1)),
}


@pytest.mark.parametrize("how", FAILURES)
async def test_an_issuer_that_fails_is_left_alone_and_known_keys_stay(how):
    now = [1000.0]
    async with running() as issuer:
        source = RemoteKeys(issuer=issuer.url, max_age=10, pause=5, stale=100, clock=lambda: now[0])
        gate = Authentication(JWT(issuer.url, AUDIENCE, source))
        issuer.failure = FAILURES[how]
        for _ in range(3):
            with pytest.raises(UnavailableError) as refused:
                await gate(issuer.bearer())
            assert refused.value.retry_after == 5
        assert len(issuer.asked) == 1
        issuer.failure, now[0] = None, now[0] + 5
        assert await gate(issuer.bearer())
        issuer.failure, now[0] = FAILURES[how], now[0] + 50
        assert await gate(issuer.bearer())  # asks in the background, and goes on with what it knows
        while source._task is not None:
            await asyncio.shield(source._task)
        now[0] += 51
        with pytest.raises(UnavailableError):
            await gate(issuer.bearer())


# -- on a server


async def test_the_options_may_name_a_file_of_keys_which_may_change(tmp_path, monkeypatch):
    monkeypatch.setattr("a2a_grpc.key_files.LOOK", 0.0)
    file = tmp_path / "keys"
    file.write_text(json.dumps(EC.as_dict(private=False)))
    issuer, _ = fixed()
    policy = open_policy(Options(jwt_issuer=issuer.url, jwt_audience=AUDIENCE, jwks_url=str(file)))
    assert policy is not None
    gate = Authentication(policy)
    assert (await gate(issuer.bearer())).subject
    file.write_text(json.dumps(ECKey.generate_key("P-256", {"kid": EC.kid}).as_dict(private=False)))
    with pytest.raises(UnauthenticatedError):
        await gate(issuer.bearer())
    file.write_text(json.dumps(EC.as_dict(private=False)))
    assert (await gate(issuer.bearer())).subject
    assert open_policy(Options()) is None


@pytest.mark.parametrize("binding", [GRPC, JSONRPC, REST])
@pytest.mark.requirement("EQ-04", "GRPC-13", "AUTH-01")
async def test_a_server_takes_tokens_by_its_options_alone(binding):
    agent = Agent(name="Guarded", description="Tells who asks.", version=V1, skills=[])

    @agent.handle
    async def who(task: Any) -> str:
        return f"hello {task.caller.claims['sub']}"

    async with running() as issuer:
        options = Options(**HERE, jwt_issuer=issuer.url, jwt_audience=AUDIENCE)
        request = v1.SendMessageRequest(
            message=v1.Message(message_id="m", role=v1.ROLE_USER, parts=[v1.Part(text="hi")])
        )
        async with Server(agent, options) as server:
            for token, good in ((issuer.token(), True), (issuer.token(exp=NOW - 600), False)):
                headers = {"authorization": f"Bearer {token}"}
                async with await Client.connect(server.http_url, binding=binding, headers=headers) as client:
                    scheme = client.card.security_schemes["jwt"].open_id_connect_security_scheme
                    assert scheme.open_id_connect_url.startswith(issuer.url)
                    if good:
                        answer = await client.send(request)
                        assert answer.task.artifacts[0].parts[0].text == "hello ann"
                    else:
                        with pytest.raises(UnauthenticatedError):
                            await client.send(request)
