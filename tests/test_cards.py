"""The agent card: what it says, which form a reader gets, caching, and the choice of an interface."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.utils import formatdate
from typing import Any

import pytest
from a2a_stubs import v1

from a2a_grpc import cards
from a2a_grpc.agent import Agent, Extension, Skill
from a2a_grpc.call import Call
from a2a_grpc.config import Options
from a2a_grpc.errors import InvalidParamsError, MethodNotAllowedError, VersionNotSupportedError

BOUND = "http://127.0.0.1:8080"


@dataclass
class Fetch:
    """An HTTP request as a host hands it on."""

    headers: Mapping[str, str] = field(default_factory=dict)
    query: str = ""
    verb: str = "GET"


def make_agent(**more: Any) -> Agent:
    return Agent(
        name="Order Lookup",
        description="Answers questions about orders.",
        version="1.2.3",
        skills=[Skill(id="lookup", name="Lookup order", tags=["orders"])],
        **more,
    )


def make_page(
    options: Options | None = None, *, grpc: str = "127.0.0.1:50051", prefix: str = "", **more: Any
) -> cards.CardPage:
    options = options or Options()

    def card(base: str) -> v1.AgentCard:
        return cards.build(make_agent(**more), cards.interfaces(options, base, grpc, prefix), push=False)

    return cards.CardPage(card, options)


def fetch(page: cards.CardPage, origin: str = BOUND, **request: Any) -> dict[str, Any]:
    reply = page.reply(Fetch(**request), origin)
    assert reply.status == 200
    found: dict[str, Any] = json.loads(reply.body)
    return found


def listed(card: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    return [(entry["protocolBinding"], entry["protocolVersion"], entry["url"]) for entry in card["supportedInterfaces"]]


V1_ONLY = {"a2a-version": "1.0"}
V03_ONLY = {"a2a-version": "0.3"}

# -- what a card says


@pytest.mark.requirement("CARD-02", "CARD-03", "CARD-04", "CARD-05", "CARD-06", "VER-07", "I-28", "I-29")
def test_every_wire_and_version_is_listed_with_json_rpc_first() -> None:
    assert listed(fetch(make_page(), headers=V1_ONLY)) == [
        ("JSONRPC", "1.0", "http://127.0.0.1:8080/"),
        ("HTTP+JSON", "1.0", "http://127.0.0.1:8080"),
        ("GRPC", "1.0", "127.0.0.1:50051"),
        ("JSONRPC", "0.3", "http://127.0.0.1:8080/"),
        ("HTTP+JSON", "0.3", "http://127.0.0.1:8080"),
        ("GRPC", "0.3", "127.0.0.1:50051"),
    ]


@pytest.mark.requirement("CARD-26", "EQ-01")
def test_only_what_is_served_is_listed() -> None:
    only_v1 = Options(versions=("1.0",))
    assert {version for _, version, _ in listed(fetch(make_page(only_v1), headers=V1_ONLY))} == {"1.0"}
    without_grpc = listed(fetch(make_page(grpc=""), headers=V1_ONLY))
    assert {binding for binding, _, _ in without_grpc} == {"JSONRPC", "HTTP+JSON"}
    grpc_only = cards.interfaces(Options(), "", "127.0.0.1:7")
    assert [entry.url for entry in grpc_only] == ["127.0.0.1:7"] * 2


@pytest.mark.requirement("CARD-20", "TENANT-01", "L-13", "BL-52")
def test_a_mounted_agent_is_told_by_its_path_and_on_grpc_by_its_tenant() -> None:
    found = cards.interfaces(Options(), BOUND, "127.0.0.1:50051", "/orders", "orders")
    told = [(entry.protocol_binding, entry.protocol_version, entry.url, entry.tenant) for entry in found]
    assert told == [
        ("JSONRPC", "1.0", BOUND + "/orders/", ""),
        ("HTTP+JSON", "1.0", BOUND + "/orders", ""),
        ("GRPC", "1.0", "127.0.0.1:50051", "orders"),
        ("JSONRPC", "0.3", BOUND + "/orders/", ""),
        ("HTTP+JSON", "0.3", BOUND + "/orders", ""),
    ]
    by_tenant = cards.interfaces(Options(), BOUND, "", "", "orders")
    assert {(entry.protocol_version, entry.tenant) for entry in by_tenant} == {("1.0", "orders")}


@pytest.mark.requirement("CARD-10", "CARD-15", "EXT-01")
def test_capabilities_modes_and_extensions_are_written_out() -> None:
    extension = Extension("https://example.org/priority/v1", "Lets callers hurry.", required=True, params={"max": 3})
    agent = make_agent(extensions=[extension], streaming=False)
    card = cards.document(cards.build(agent, [], push=True, extensions=["urn:ours"]), "1.0")
    assert card["capabilities"] == {
        "streaming": False,
        "pushNotifications": True,
        "extendedAgentCard": False,
        "extensions": [
            {
                "uri": "https://example.org/priority/v1",
                "description": "Lets callers hurry.",
                "required": True,
                "params": {"max": 3},
            },
            {"uri": "urn:ours"},
        ],
    }
    (skill,) = card["skills"]
    assert skill["inputModes"] == card["defaultInputModes"] != []
    assert skill["outputModes"] == card["defaultOutputModes"] != []


@pytest.mark.requirement("CARD-22", "CARD-25")
async def test_the_extended_card_is_the_public_one_with_its_own_members_on_top() -> None:
    def public() -> v1.AgentCard:
        return cards.build(make_agent(), cards.interfaces(Options(), BOUND, ""), push=False)

    own = v1.AgentCard(skills=[v1.AgentSkill(id="refund", name="Refund", description="Pays back.", tags=["money"])])

    async def for_alice(call: Call) -> v1.AgentCard | None:
        return own if call.tenant == "alice" else None

    for source in (own, lambda _: own, for_alice):
        card = await cards.extended(make_agent(extended_card=source), Call("x", tenant="alice"), public)
        assert card is not None
        assert [skill.id for skill in card.skills] == ["refund"]
        assert card.name == "Order Lookup" and len(card.supported_interfaces) == 4
    assert await cards.extended(make_agent(extended_card=for_alice), Call("x"), public) is None
    assert await cards.extended(make_agent(), Call("x"), public) is None


# -- addresses that readers can reach


@pytest.mark.requirement("BL-45", "CARD-05")
def test_the_public_url_wins_over_everything() -> None:
    page = make_page(Options(public_url="https://example.org/a2a/", trust_forwarded=True))
    headers = V1_ONLY | {"host": "evil.test", "x-forwarded-host": "evil.test", "x-forwarded-proto": "http"}
    assert listed(fetch(page, "http://0.0.0.0:8080", headers=headers))[:3] == [
        ("JSONRPC", "1.0", "https://example.org/a2a/"),
        ("HTTP+JSON", "1.0", "https://example.org/a2a"),
        ("GRPC", "1.0", "example.org:50051"),
    ]


@pytest.mark.requirement("BL-45")
@pytest.mark.parametrize(
    ("headers", "base"),
    [
        ({"x-forwarded-host": "example.org", "x-forwarded-proto": "https"}, "https://example.org"),
        ({"x-forwarded-proto": "https", "host": "example.org"}, "https://example.org"),
        ({"x-forwarded-host": "example.org, proxy", "x-forwarded-prefix": "/agents/"}, "http://example.org/agents"),
        ({"x-forwarded-host": 'a"><script>', "x-forwarded-proto": "gopher", "host": "ok.test:81"}, "http://ok.test:81"),
        ({"x-forwarded-prefix": "//evil.test", "host": "ok.test"}, "http://ok.test"),
        ({"host": "ignored.test"}, BOUND),
        ({}, BOUND),
    ],
)
def test_forwarded_headers_count_when_they_are_trusted_and_well_formed(headers: dict[str, str], base: str) -> None:
    trusting = make_page(Options(trust_forwarded=True))
    assert listed(fetch(trusting, headers=V1_ONLY | headers))[1][2] == base
    assert listed(fetch(make_page(), headers=V1_ONLY | headers))[1][2] == BOUND


@pytest.mark.requirement("BL-45")
@pytest.mark.parametrize("bound", ["http://0.0.0.0:8080", "http://[::]:8080"])
def test_a_card_never_names_the_wildcard_address(bound: str) -> None:
    page = make_page(grpc="0.0.0.0:50051")
    urls = [url for _, _, url in listed(fetch(page, bound, headers=V1_ONLY | {"host": "box.lan:8080"}))]
    assert urls[:3] == ["http://box.lan:8080/", "http://box.lan:8080", "box.lan:50051"]
    urls = [url for _, _, url in listed(fetch(page, bound, headers=V1_ONLY))]
    assert urls[:3] == ["http://localhost:8080/", "http://localhost:8080", "localhost:50051"]


@pytest.mark.requirement("I-28", "CARD-05")
@pytest.mark.parametrize(
    ("options", "url"),
    [
        (Options(), "127.0.0.1:50051"),
        (Options(grpc_url_style="absolute"), "http://127.0.0.1:50051"),
        (Options(grpc_url_style="absolute", tls_cert="c", tls_key="k"), "https://127.0.0.1:50051"),
        (Options(public_url="https://[2001:db8::1]/x"), "[2001:db8::1]:50051"),
        (Options(public_grpc="grpc.example.org:443"), "grpc.example.org:443"),
        (Options(public_grpc="https://grpc.example.org", grpc_url_style="absolute"), "https://grpc.example.org"),
    ],
)
def test_the_grpc_address_is_written_in_the_style_asked_for(options: Options, url: str) -> None:
    base = cards.base_url(options, BOUND, {})
    found = cards.interfaces(options, base, "127.0.0.1:50051")
    assert next(entry.url for entry in found if entry.protocol_binding == "GRPC") == url


# -- the form a reader gets


@pytest.mark.requirement("I-10", "BL-46", "CARD-21", "SIGN-12")
def test_the_version_asked_for_picks_the_form() -> None:
    page = make_page()
    pure = fetch(page, headers=V1_ONLY)
    assert "url" not in pure and "protocolVersion" not in pure and pure["supportedInterfaces"]
    old = fetch(page, headers=V03_ONLY)
    assert "supportedInterfaces" not in old
    assert old["url"] == BOUND + "/" and old["protocolVersion"].startswith("0.3") and old["preferredTransport"]
    both = fetch(page)
    assert {key: both[key] for key in pure} == pure
    assert both["url"] == old["url"] and both["additionalInterfaces"] == old["additionalInterfaces"]
    assert fetch(page, query="A2A-Version=1.0") == fetch(page, query="a2a-version=1.0.1") == pure
    assert fetch(page, headers={"a2a-version": ""}) == both
    replies = [page.reply(Fetch(headers=headers), BOUND) for headers in (V1_ONLY, V03_ONLY, {})]
    assert len({reply.headers["etag"] for reply in replies}) == 3
    assert {reply.headers["vary"] for reply in replies} == {"A2A-Version"}
    assert {reply.headers["content-type"] for reply in replies} == {"application/json"}


@pytest.mark.requirement("BL-46")
def test_a_card_without_old_interfaces_has_one_form_for_all() -> None:
    page = make_page(Options(versions=("1.0",)))
    assert fetch(page) == fetch(page, headers=V03_ONLY) == fetch(page, headers=V1_ONLY)


@pytest.mark.requirement("SIGN-12", "L-22")
def test_signatures_stay_with_the_form_they_were_made_over() -> None:
    card = cards.build(make_agent(), cards.interfaces(Options(), BOUND, ""), push=False)
    card.signatures.add(protected="cHJvdGVjdGVk", signature="c2lnbmVk")
    assert "signatures" in cards.document(card, "1.0")
    assert "signatures" not in cards.document(card, "0.3")
    assert "signatures" not in cards.document(card, "")


@pytest.mark.requirement("VER-04", "VER-09", "VER-10", "ERR-18")
def test_a_version_nobody_speaks_is_refused_and_so_are_two_at_once() -> None:
    page = make_page()
    for version in ("2.0", "abc", "1", "99.0"):
        with pytest.raises(VersionNotSupportedError) as caught:
            page.reply(Fetch({"a2a-version": version}), BOUND)
        assert caught.value.metadata == {"supportedVersions": "1.0, 0.3"}
    with pytest.raises(InvalidParamsError):
        page.reply(Fetch(V1_ONLY, "A2A-Version=0.3"), BOUND)
    assert fetch(page, headers=V1_ONLY, query="A2A-Version=1.0")


def test_the_card_can_be_had_with_http_bindings_alone() -> None:
    for headers in (V1_ONLY, V03_ONLY, {}):
        assert b"50051" not in make_page().reply(Fetch(headers, "bindings=http"), BOUND).body
        assert b"50051" in make_page().reply(Fetch(headers), BOUND).body


# -- caching


@pytest.mark.requirement("CARD-16", "CARD-17")
def test_a_card_is_sent_again_only_when_it_changed() -> None:
    page = make_page(Options(card_max_age=60))
    first = page.reply(Fetch(), BOUND)
    assert first.headers["cache-control"] == "public, max-age=60"
    etag, since = first.headers["etag"], first.headers["last-modified"]
    for headers in (
        {"if-none-match": etag},
        {"if-none-match": f'"other", W/{etag}'},
        {"if-none-match": "*"},
        {"if-modified-since": since},
        {"if-none-match": etag, "if-modified-since": formatdate(0, usegmt=True)},
    ):
        reply = page.reply(Fetch(headers), BOUND)
        assert (reply.status, reply.body) == (304, b"")
        assert reply.headers["etag"] == etag and reply.headers["vary"] == "A2A-Version"
    for headers in (
        {"if-none-match": '"other"', "if-modified-since": since},
        {"if-modified-since": formatdate(0, usegmt=True)},
        {"if-modified-since": "yesterday"},
        {"if-modified-since": "Mon, 01 Jan 99999999999999999999 00:00:00 GMT"},
        V1_ONLY | {"if-none-match": etag},
    ):
        assert page.reply(Fetch(headers), BOUND).status == 200


@pytest.mark.requirement("CARD-01", "CARD-16")
def test_head_tells_the_same_without_the_body_and_other_verbs_are_refused() -> None:
    page = make_page()
    full, head = page.reply(Fetch(), BOUND), page.reply(Fetch(verb="HEAD"), BOUND)
    assert head == (200, full.headers, b"") and full.headers["content-length"] == str(len(full.body))
    with pytest.raises(MethodNotAllowedError) as caught:
        page.reply(Fetch(verb="POST"), BOUND)
    assert caught.value.allow == ("GET", "HEAD")


@pytest.mark.requirement("BL-45")
def test_a_card_is_made_once_for_each_form_and_the_kept_forms_are_few() -> None:
    made: list[str] = []

    def card(base: str) -> v1.AgentCard:
        made.append(base)
        return cards.build(make_agent(), cards.interfaces(Options(), base, ""), push=False)

    page = cards.CardPage(card, Options())
    for _ in range(5):
        page.reply(Fetch(V1_ONLY), BOUND)
        page.reply(Fetch(), BOUND)
    assert made == [BOUND, BOUND]
    for number in range(1000):
        page.reply(Fetch({"host": f"h{number}.test"}), "http://0.0.0.0:1")
    assert len(page._documents) <= 64


# -- choosing from a card


@pytest.mark.requirement("CARD-07", "VER-05", "VER-08")
def test_the_first_fitting_interface_of_a_card_is_chosen() -> None:
    entries = [("carrier-pigeon", "1.0"), ("GRPC", "0.3"), ("JSONRPC", "1.0.2"), ("HTTP+JSON", "2.0"), ("GRPC", "1.0")]
    card = v1.AgentCard(
        supported_interfaces=[
            v1.AgentInterface(url=str(number), protocol_binding=binding, protocol_version=version)
            for number, (binding, version) in enumerate(entries)
        ]
    )
    known = {(binding, version) for binding in ("JSONRPC", "GRPC", "HTTP+JSON") for version in ("1.0", "0.3")}
    assert [entry.url for entry in cards.choices(card, known)] == ["1", "2", "4"]
    assert [entry.url for entry in cards.choices(card, known - {("GRPC", "0.3")})] == ["2", "4"]
    assert [entry.url for entry in cards.choices(card, known, version="1.0")] == ["2", "4"]
    assert [entry.url for entry in cards.choices(card, known, binding="GRPC")] == ["1", "4"]
    assert cards.choices(card, known, "HTTP+JSON", "1.0") == []


@pytest.mark.requirement("CARD-09", "I-28")
@pytest.mark.parametrize(
    ("url", "target"),
    [
        ("example.org:50051", ("example.org:50051", False)),
        ("example.org:443", ("example.org:443", True)),
        ("https://example.org", ("example.org:443", True)),
        ("https://example.org:8443/a2a", ("example.org:8443", True)),
        ("http://example.org/", ("example.org:80", False)),
        ("grpc://[::1]:5", ("[::1]:5", False)),
        ("grpcs://[::1]", ("[::1]:443", True)),
        ("dns:///example.org:50051", ("dns:///example.org:50051", False)),
    ],
)
def test_grpc_addresses_of_any_style_are_understood(url: str, target: tuple[str, bool]) -> None:
    assert cards.grpc_target(url) == target


@pytest.mark.requirement("CARD-09", "SEC-01")
def test_an_address_without_a_scheme_is_as_safe_as_its_card() -> None:
    for url in ("example.org:50051", "dns:///example.org:50051"):
        assert cards.grpc_target(url, secure_card=True) == (url, True)
    assert cards.grpc_target("http://example.org:50051", secure_card=True) == ("example.org:50051", False)
