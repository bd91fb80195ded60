"""The OpenAPI document: valid, of every route there is and no other, at each agent's place, and true to the wires."""

import base64
import json
from typing import Any

import aiohttp
import pytest
from a2a_stubs import v1
from openapi_spec_validator import validate

from a2a_grpc.agent import Agent
from a2a_grpc.auth import AllOf, AnyOf, ApiKey, BearerKey, Policy, hashed
from a2a_grpc.auth_basic import Basic, hash_password
from a2a_grpc.bindings import openapi
from a2a_grpc.call import V1, VERSIONS
from a2a_grpc.config import Options
from a2a_grpc.methods import METHODS, Router
from a2a_grpc.protojson_values import WRITE_MESSAGE
from a2a_grpc.server import Server
from tests.contract.agents import AGENTS

CARD = v1.AgentCard(name="Shop", description="Sells.", version="2.0.0")
HERE: dict[str, Any] = {"grpc": "", "http": "127.0.0.1:0", "store": "memory:", "grace": 0.0}
KEYS = {hashed("key"): "alice"}


def made(**more: Any) -> dict[str, Any]:
    """A document as its readers get it."""
    value = openapi.document(CARD, more.pop("versions", VERSIONS), **more)
    return json.loads(json.dumps({**value, "servers": [{"url": "http://shop.example"}]}))


@pytest.mark.parametrize("versions", [VERSIONS, ("1.0",), ("0.3",)])
@pytest.mark.parametrize("tenants", [(), ("acme", "globex")])
@pytest.mark.requirement("REST-01", "REST-05")
def test_the_document_is_valid_and_has_every_route_of_the_offered_versions(
    versions: tuple[str, ...], tenants: tuple[str, ...]
) -> None:
    document = made(versions=versions, tenants=tenants)
    validate(document)
    assert document["openapi"].startswith("3.1.") and document["info"]["title"] == "Shop"
    found = {
        (verb.upper(), path.format_map(Filled()), one["summary"], one["tags"][0])
        for path, verbs in document["paths"].items()
        for verb, one in verbs.items()
        if "tags" in one
    }
    for verb, path, name, tag in found:
        assert Router(METHODS[tag.split()[1]].values()).find(verb, path).method.name == name
    wanted = sum(
        bool(tenants) or all(name != "tenant" for name, _, _ in route.variables)
        for version in versions
        for method in METHODS[version].values()
        for route in method.routes
    )
    assert len(found) == wanted
    assert ("{tenant}" in json.dumps(document)) == (bool(tenants) and "1.0" in versions)


class Filled(dict[str, str]):
    """A value for every variable of a path."""

    def __missing__(self, name: str) -> str:
        return "x1"


def test_every_plain_type_of_the_json_form_has_a_schema() -> None:
    assert set(WRITE_MESSAGE) - {"google.protobuf.Any"} <= set(openapi.KNOWN)
    assert not any(not schema for schema in made()["components"]["schemas"].values())


@pytest.mark.requirement("DATA-13", "DATA-01", "OP-SEND-09")
def test_the_schemas_say_what_is_required() -> None:
    schemas = made()["components"]["schemas"]
    message = schemas["Message"]
    assert message["required"] == ["messageId", "role", "parts"]
    assert message["properties"]["parts"]["minItems"] == 1 and message["properties"]["messageId"]["minLength"] == 1
    assert "ROLE_UNSPECIFIED" not in message["properties"]["role"]["enum"]
    assert {"required": ["data"]} in schemas["Part"]["oneOf"]


async def read(server: Server, path: str, verb: str = "GET", **headers: str) -> tuple[int, Any, Any]:
    async with (
        aiohttp.ClientSession(headers=headers) as session,
        session.request(verb, server.http_url + path) as reply,
    ):
        body = await reply.read()
        return reply.status, json.loads(body) if body else None, reply.headers


def agent(**more: Any) -> Agent:
    shop = Agent(name="Shop", description="Sells.", version="2.0.0", skills=[], **more)

    @shop.handle(replies=True)
    async def work(task: Any) -> None:
        await task.reply("sold")

    return shop


async def test_each_agent_shows_its_document_at_its_place() -> None:
    agents = {"shop": agent(tenants=("acme",)), "demanding": AGENTS["demanding"]()}
    async with Server(agents, Options(**HERE)) as server:
        for path, name, tenants in (
            ("", "Shop", {"acme", "demanding", "shop"}),
            ("/shop", "Shop", {"acme"}),
            ("/api/a2a/shop", "Shop", {"acme"}),
            ("/demanding", agents["demanding"].name, set()),
        ):
            status, document, headers = await read(server, f"{path}/openapi.json")
            validate(document)
            assert (status, document["info"]["title"]) == (200, name)
            assert document["servers"] == [{"url": server.http_url + path}]
            told = document["paths"].get("/{tenant}/tasks", {}).get("get", {"parameters": [{"schema": {"enum": []}}]})
            assert set(told["parameters"][0]["schema"]["enum"]) == tenants
            assert "max-age" in headers["cache-control"]
        status, document, headers = await read(server, "/openapi.json", "HEAD")
        assert (status, document) == (200, None) and int(headers["content-length"]) > 1000
        status, document, headers = await read(server, "/openapi.json", "POST")
        assert (status, headers["allow"]) == (405, "GET, HEAD")


POLICY: Policy = AnyOf(
    ApiKey(KEYS, scopes=("a2a",)),
    AllOf(Basic({"alice": hash_password("pw")}), ApiKey(KEYS, "k", "query", scheme_name="second")),
    BearerKey(KEYS),
    AllOf(),
)


@pytest.mark.requirement("AUTH-01", "CARD-12", "CARD-14")
async def test_the_document_says_the_security_of_the_card() -> None:
    async with Server(agent(), Options(**HERE), authenticators=POLICY) as server:
        _, document, _ = await read(server, "/openapi.json")
        validate(document)
        _, card, _ = await read(server, "/.well-known/agent-card.json", **{"A2A-Version": "1.0"})
    schemes = document["components"]["securitySchemes"]
    assert schemes["apiKey"] | {"description": ""} == {
        "type": "apiKey",
        "in": "header",
        "name": "X-API-Key",
        "description": "",
    }
    assert set(schemes) == set(card["securitySchemes"]) and {} in document["security"]
    assert [set(one) for one in document["security"]] == [
        set(one.get("schemes", {})) for one in card["securityRequirements"]
    ]
    assert document["paths"]["/.well-known/agent-card.json"]["get"]["security"] == []


@pytest.mark.requirement("AUTH-05")
async def test_a_server_that_hides_its_card_hides_the_document() -> None:
    policy = AnyOf(Basic({"alice": hash_password("pw")}))
    async with Server(agent(), Options(**HERE, public_card=False), authenticators=policy) as server:
        status, refused, headers = await read(server, "/openapi.json")
        assert status == 401 and "Basic" in headers["www-authenticate"] and "paths" not in refused
        shown = {"authorization": "Basic " + base64.b64encode(b"alice:pw").decode()}
        status, document, headers = await read(server, "/openapi.json", **shown)
        assert status == 200 and headers["cache-control"].startswith("private")
        assert "security" not in document["paths"]["/.well-known/agent-card.json"]["get"]


@pytest.mark.requirement("TENANT-06", "TENANT-07")
async def test_a_server_that_knows_its_callers_tells_nobody_the_names_of_tenants() -> None:
    async with Server(agent(tenants=("acme",)), Options(**HERE), authenticators=ApiKey(KEYS)) as server:
        _, document, _ = await read(server, "/openapi.json")
        validate(document)
    assert "/{tenant}/tasks" in document["paths"] and "acme" not in json.dumps(document)


async def test_a_version_that_is_not_offered_is_not_described() -> None:
    async with Server(agent(), Options(**HERE, versions=(V1,))) as server:
        _, document, _ = await read(server, "/openapi.json")
    assert not any(path.startswith("/v1/") for path in document["paths"])
