"""Who is calling: policies, keys and passwords by themselves, and what a server makes of them."""

import base64
import logging
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from a2a_stubs import v1

from a2a_grpc import auth, auth_basic
from a2a_grpc.agent import Agent
from a2a_grpc.auth import AllOf, AnyOf, ApiKey, Authentication, BearerKey, Custom, KeyFile, hashed, read_keys
from a2a_grpc.auth_rates import Rates
from a2a_grpc.call import ANONYMOUS, GRPC, REST, Call, Caller, Credentials
from a2a_grpc.client import Client
from a2a_grpc.config import OptionError, Options
from a2a_grpc.errors import (
    A2AError,
    PermissionDeniedError,
    ResourceExhaustedError,
    UnauthenticatedError,
    UnavailableError,
)
from a2a_grpc.server import Server

HERE: dict[str, Any] = {"grpc": "127.0.0.1:0", "http": "127.0.0.1:0", "grace": 0.0, "store": "memory:"}
SECRET = "s3cr3t-of-alice"


def agent() -> Agent:
    made = Agent(name="Guarded", description="Tells who asks.", version="1.0.0", skills=[])

    @made.handle
    async def who(task: Any) -> str:
        return f"hello {task.caller.subject}"

    return made


def shown(binding: str = REST, query: tuple[tuple[str, str], ...] = (), **headers: str) -> Credentials:
    return Credentials(binding, {name.replace("_", "-"): value for name, value in headers.items()}, query)


def basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def message(text: str = "hi") -> v1.SendMessageRequest:
    parts = [v1.Part(text=text)]
    return v1.SendMessageRequest(message=v1.Message(message_id="m", role=v1.ROLE_USER, parts=parts))


def keys(**callers: Any) -> dict[str, Any]:
    return {hashed(secret): caller for secret, caller in callers.items()}


# -- policies


@pytest.mark.requirement("CARD-14", "AUTH-01")
async def test_alternatives_and_combinations_are_asked_as_the_card_says():
    app, user = ApiKey(keys(app="shop"), scheme_name="app"), BearerKey(keys(ann="ann"), scopes=("read",))
    gate = Authentication(AnyOf(AllOf(user, app), ApiKey(keys(root="root"), "x-root", scheme_name="root")))
    assert [sorted(one.schemes) for one in gate.requirements] == [["app", "bearer"], ["root"]]
    assert list(gate.requirements[0].schemes["bearer"].list) == ["read"]
    with pytest.raises(PermissionDeniedError, match="read"):
        await gate(shown(x_api_key="app", authorization="Bearer ann"))
    for half in ({"x_api_key": "app"}, {"authorization": "Bearer ann"}, {"x_root": "no", "x_api_key": "app"}):
        with pytest.raises(UnauthenticatedError):
            await gate(shown(**half))
    assert (await gate(shown(x_root="root"))).subject == "root"


@pytest.mark.parametrize("fault", [UnavailableError, ResourceExhaustedError])
@pytest.mark.requirement("CARD-14", "AUTH-01")
async def test_a_way_that_cannot_tell_now_is_no_harm_beside_a_right_credential(fault: type[A2AError]):
    def away(credentials: Credentials) -> None:
        if "authorization" in credentials.metadata:
            raise fault("away", retry_after=7)

    key = ApiKey(keys(k="ann"), scopes=("read",))
    broken = Custom(away, key.scheme, "Away", scheme_name="away")
    weak = ApiKey(keys(w="weak"), scheme_name="weak", scopes=("write",))
    gate = Authentication(AnyOf(broken, ApiKey(keys(k="ann")), weak, AllOf()))
    assert (await gate(shown(x_api_key="k", authorization="x"))).subject == "ann"
    assert await gate(shown()) == ANONYMOUS
    for headers in ({}, {"x_api_key": "no"}, {"x_api_key": "w"}):  # which may be right where it cannot be told
        with pytest.raises(fault) as refused:
            await gate(shown(authorization="x", **headers))
        assert refused.value.retry_after == 7
    assert gate.failures == {}


async def test_together_the_first_says_who_and_all_say_what():
    user = Caller("ann", scopes=frozenset({"read"}), claims={"a": 1}, tenants=frozenset({"x", "y"}))
    app = Caller("shop", scopes=frozenset({"write"}), claims={"a": 2, "b": 2}, tenants=frozenset({"y", "z"}))
    ways = AllOf(BearerKey(keys(u=user)), ApiKey(keys(a=app)))
    found = await Authentication(ways)(shown(x_api_key="a", authorization="Bearer u"))
    assert (found.subject, found.authenticated) == ("ann", True)
    assert (found.scopes, found.tenants) == ({"read", "write"}, {"y"})
    assert found.claims == {"a": 1, "b": 2}


async def test_nobody_needs_to_show_anything_if_the_policy_says_so():
    gate = Authentication(AnyOf(ApiKey(keys(k="ann")), AllOf()))
    assert await gate(shown()) is ANONYMOUS
    assert (await gate(shown(x_api_key="k"))).subject == "ann"
    with pytest.raises(UnauthenticatedError):  # who tries and fails is not let in as nobody
        await gate(shown(x_api_key="wrong"))


@pytest.mark.parametrize(
    "make",
    [
        lambda: Authentication(AnyOf()),
        lambda: Authentication(AnyOf(ApiKey({}), ApiKey({}, location="query"))),
        lambda: ApiKey({}, location="body"),
        lambda: ApiKey({"plain text": "ann"}),
        lambda: ApiKey({hashed("k"): ""}),
        lambda: auth_basic.Basic({"ann": "password"}),
        lambda: Options(jwt_issuer="https://id.example"),
        lambda: Options(jwks_url="https://id.example/keys"),
    ],
)
def test_what_cannot_be_right_is_an_option_error(make):
    with pytest.raises(OptionError):
        make()


@pytest.mark.requirement("AUTH-06")
async def test_a_way_of_ones_own_may_be_a_plain_or_an_async_function():
    scheme = v1.SecurityScheme(mtls_security_scheme=v1.MutualTlsSecurityScheme())

    def plain(credentials: Credentials) -> Caller | None:
        return Caller(credentials.metadata.get("x-client", ""))

    async def slow(credentials: Credentials) -> Caller | None:
        return plain(credentials)

    for check in (plain, slow):
        gate = Authentication(Custom(check, scheme, 'Mutual realm="a2a"'))
        found = await gate(shown(x_client="ann"))
        assert (found.subject, found.authenticated) == ("ann", True)
        with pytest.raises(UnauthenticatedError) as refused:  # a caller without a name is nobody
            await gate(shown())
        assert refused.value.challenge == 'Mutual realm="a2a"'


# -- keys and passwords


def test_a_file_of_keys_tells_callers_scopes_and_tenants(tmp_path):
    file = tmp_path / "keys"
    lines = [f"ann:{hashed('a')}", f"bob:{hashed('b').upper()}:read write", f"cy:{hashed('c')}::acme globex"]
    file.write_text("\n".join(["# keys", "", *lines]))
    found = read_keys(file)
    assert found[hashed("a")] == Caller("ann", True)
    assert found[hashed("b")].scopes == {"read", "write"} and found[hashed("b")].tenants is None
    assert found[hashed("c")].tenants == {"acme", "globex"} and not found[hashed("c")].scopes
    for wrong in ("ann", f"ann:{SECRET}", f":{hashed('a')}", f"ann:{hashed('a')}\nbob:{hashed('a')}"):
        file.write_text(wrong)
        with pytest.raises(OptionError, match=r"line [12]") as told:
            read_keys(file)
        assert SECRET not in str(told.value)


async def test_a_key_is_taken_back_by_removing_its_line(tmp_path, caplog):
    file, now = tmp_path / "keys", [0.0]
    lines = [f"ann:{hashed('a')}", f"bob:{hashed('b')}"]
    file.write_text("\n".join(lines))
    gate = Authentication(ApiKey(KeyFile(file, lambda: now[0])))
    assert (await gate(shown(x_api_key="a"))).subject == "ann"
    file.write_text(lines[1])
    now[0] += 1
    with pytest.raises(UnauthenticatedError):
        await gate(shown(x_api_key="a"))
    for broken in (lambda: file.write_text("what is this"), file.unlink):
        broken()
        now[0] += 1
        assert (await gate(shown(x_api_key="b"))).subject == "bob"
    assert caplog.text.count("keys stay as they were") == 2
    with pytest.raises(OSError):
        KeyFile(file)


@pytest.mark.parametrize(
    ("location", "credentials"),
    [
        ("header", shown(key="a")),
        ("query", shown(query=(("key", "a"), ("other", "b")))),
        ("cookie", shown(cookie='x=1; key="a"')),
        ("query", shown(GRPC, key="a")),
        ("cookie", shown(GRPC, key="a")),
    ],
)
@pytest.mark.requirement("EQ-04", "CARD-13")
async def test_a_key_is_found_where_the_card_says(location, credentials):
    gate = Authentication(ApiKey(keys(a="ann"), "Key" if location == "header" else "key", location))
    assert (await gate(credentials)).subject == "ann"
    with pytest.raises(UnauthenticatedError):
        await gate(shown(query=(("key", "a"), ("key", "a"))) if location == "query" else shown(other="a"))


@pytest.mark.requirement("SEC-05")
async def test_a_password_is_worked_on_once_and_unknown_users_cost_the_same(monkeypatch):
    worked = []
    derived = auth_basic._derived
    monkeypatch.setattr(auth_basic, "_derived", lambda *given: worked.append(given) or derived(*given))
    way = auth_basic.Basic({"ann": auth_basic.hash_password("pässword")}, {"ann": Caller(scopes=frozenset({"x"}))})
    right = shown(authorization=basic("ann", "pässword"))
    worked.clear()
    for _ in range(3):
        assert await way.authenticate(right) == Caller("ann", True, frozenset({"x"}))
    assert len(worked) == 1
    for user in ("ann", "nobody"):
        with pytest.raises(UnauthenticatedError, match="user or password"):
            await way.authenticate(shown(authorization=basic(user, "wrong")))
    assert len(worked) == 3


async def test_too_many_sign_ins_at_once_are_asked_to_come_back(monkeypatch):
    monkeypatch.setattr(auth_basic, "WAITING", 0)
    way = auth_basic.Basic({"ann": auth_basic.hash_password("p")})
    with pytest.raises(ResourceExhaustedError):
        await way.authenticate(shown(authorization=basic("ann", "p")))


@pytest.mark.requirement("SEC-05", "SEC-06", "AUTH-03")
async def test_failures_are_counted_and_logged_without_the_credential(caplog):
    way = auth_basic.Basic({"ann": auth_basic.hash_password("p")})
    gate = Authentication(AnyOf(ApiKey(keys(k="ann"), scopes=("write",)), BearerKey({}), way))
    tries = [
        shown(x_api_key=SECRET),
        shown(authorization=f"Bearer {SECRET}"),
        shown(authorization=basic("ann", SECRET)),
        shown(),
        shown(x_api_key="k"),
    ]
    with caplog.at_level(logging.DEBUG, "a2a_grpc"):
        for credentials in tries:
            with pytest.raises((UnauthenticatedError, PermissionDeniedError)) as refused:
                await gate(credentials)
            assert SECRET not in repr(credentials) + str(refused.value) + str(vars(refused.value))
    assert gate.failures == {"wrong": 3, "missing": 1, "scope": 1}
    assert len(caplog.records) >= 4 and SECRET not in caplog.text
    assert SECRET not in repr(Call("GetTask", metadata={"authorization": SECRET}))


@pytest.mark.requirement("SEC-06")
async def test_many_failures_do_not_fill_the_log(caplog):
    gate = Authentication(ApiKey({}))
    for _ in range(1000):
        with pytest.raises(UnauthenticatedError):
            await gate(shown(x_api_key=SECRET))
    assert gate.failures == {"wrong": 1000} and 20 <= len(caplog.records) < 500


@pytest.mark.requirement("SEC-04")
def test_a_bucket_fills_again_and_memory_is_bounded(monkeypatch):
    monkeypatch.setattr("a2a_grpc.auth_rates.KEPT", 3)
    now = [0.0]
    rates = Rates(2, 2, lambda: now[0])
    for _ in range(2):
        rates.take("ann")
    with pytest.raises(ResourceExhaustedError) as refused:
        rates.take("ann")
    assert refused.value.retry_after == 0.5
    now[0] = 0.5
    rates.take("ann")
    for name in "abcdef":
        rates.take(name)
    assert len(rates._buckets) == 3


# -- servers


async def status(url: str, **headers: str) -> tuple[int, Any]:
    told = {name.replace("_", "-"): value for name, value in headers.items()}
    async with aiohttp.ClientSession() as session, session.get(url, headers=told) as reply:
        await reply.read()
        return reply.status, reply.headers


@pytest.mark.requirement("AUTH-01", "CARD-16")
async def test_the_card_is_for_everybody_unless_it_is_closed():
    for public, expected in ((True, 200), (False, 401)):
        options = Options(**HERE, public_card=public)
        async with Server(agent(), options, authenticators=ApiKey(keys(k="ann"))) as server:
            url = server.http_url + "/.well-known/agent-card.json"
            got, headers = await status(url)
            assert got == expected and ("www-authenticate" in headers) == (not public)
            got, headers = await status(url, x_api_key="k")
            assert got == 200 and headers["cache-control"].startswith("public" if public else "private")


@pytest.mark.requirement("TENANT-06", "TENANT-07", "CARD-16")
async def test_a_closed_card_is_unknown_to_callers_who_may_not_address_its_agent():
    people = keys(a=Caller("ann", tenants=frozenset({"second"})), b=Caller("bob", tenants=frozenset({"acme"})), c="cy")
    first, second = agent(), agent()
    first.tenants = ("acme",)
    options = Options(**HERE, public_card=False)
    async with Server({"first": first, "second": second}, options, authenticators=ApiKey(people)) as server:
        for path, seen in (("", "bc"), ("/first", "bc"), ("/second", "ac"), ("/api/a2a/second", "ac")):
            for page in ("/.well-known/agent-card.json", "/openapi.json"):
                for key in "abc":
                    got, _ = await status(server.http_url + path + page, x_api_key=key)
                    assert got == (200 if key in seen else 404), (path, page, key)
    options = Options(**HERE, public_card=False)
    async with Server(first, options, authenticators=ApiKey(people)) as server:  # whose tenants have no other card
        url = server.http_url + "/.well-known/agent-card.json"
        assert [(await status(url, x_api_key=key))[0] for key in "abc"] == [200] * 3


@pytest.mark.requirement("AUTH-01", "AUTH-04")
async def test_the_options_alone_can_ask_for_keys(tmp_path):
    file = tmp_path / "keys"
    file.write_text(f"ann:{hashed(SECRET)}")
    async with Server(agent(), Options(**HERE, api_key_file=str(file), api_key_header="X-Shop")) as server:
        async with await Client.connect(server.http_url, headers={"x-shop": SECRET}) as client:
            answer = await client.send(message())
            assert answer.task.artifacts[0].parts[0].text == "hello ann"
        async with await Client.connect(server.http_url) as client:
            assert client.card.security_schemes["apiKey"].api_key_security_scheme.name == "X-Shop"
            with pytest.raises(UnauthenticatedError):
                await client.send(message())
            assert server.authentication.failures == {"missing": 1}


@pytest.mark.requirement("AUTH-04", "CTX-12")
async def test_an_owner_may_be_more_than_one_caller():
    people = keys(a=Caller("ann", claims={"team": "t1"}), b=Caller("bob", claims={"team": "t1"}), c="cy")

    def team(call: Call) -> str:
        return str(call.caller.claims.get("team", call.caller.subject))

    async with Server(agent(), Options(**HERE), authenticators=ApiKey(people), owner=team) as server:
        found = {}
        for key in "abc":
            async with await Client.connect(server.http_url, headers={"x-api-key": key}) as client:
                if key == "a":
                    task = (await client.send(message())).task
                found[key] = [one.id for one in (await client.list()).tasks]
    assert found == {"a": [task.id], "b": [task.id], "c": []}


@pytest.mark.requirement("TENANT-07", "AUTH-04")
async def test_with_several_agents_a_caller_may_be_held_to_some():
    people = keys(a=Caller("ann", tenants=frozenset({"first"})), b="bob")
    seen = []

    def noted(call: Call, request: Any) -> bool:
        seen.append((call.caller.subject, call.tenant or call.agent))
        return True

    agents = {"first": agent(), "second": agent()}
    async with Server(agents, Options(**HERE), authenticators=ApiKey(people), authorizer=noted) as server:
        for key, path, tenant, allowed in (
            ("a", "/first", "", True),
            ("a", "/second", "", False),
            ("a", "", "first", True),
            ("a", "", "second", False),
            ("a", "", "", False),
            ("b", "/second", "", True),
            ("b", "", "second", True),
        ):
            asked = f"{server.http_url}{path}/tasks?tenant={tenant}"
            got, _ = await status(asked, x_api_key=key, a2a_version="1.0")
            assert got == (200 if allowed else 404), (key, path, tenant)
    assert ("ann", "second") in seen and ("bob", "second") in seen


@pytest.mark.requirement("AUTH-07")
def test_the_model_is_documented():
    page = (Path(__file__).parent.parent / "docs" / "security.md").read_text("utf-8")
    names = [
        "AnyOf",
        "AllOf",
        "ApiKey",
        "BearerKey",
        "Basic",
        "JWT",
        "MutualTLS",
        "Custom",
        "authorizer",
        "owner",
        "tenants",
    ]
    names += ["api_key_file", "jwt_issuer", "jwt_audience", "jwks_url", "public_card", "call_rate", "cors_origins"]
    assert [name for name in names if f"`{name}" not in page] == []
    assert {name for name in vars(auth) if name in names} >= {"AnyOf", "AllOf", "ApiKey", "BearerKey", "Custom"}
