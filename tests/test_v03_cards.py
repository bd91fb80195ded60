"""Agent cards between the versions: what a v0.3 reader sees of a v1.0 card and the other way round."""

import copy
import logging
from typing import Any

import pytest
from a2a_stubs import v1

from a2a_grpc import errors
from a2a_grpc import v03 as old
from a2a_grpc.protojson import decode, encode
from a2a_grpc.v03_cards import card_down, card_hybrid, card_message, card_up

CARD = "GetExtendedAgentCard"


def entry(url: str, version: str = "0.3", binding: str = "JSONRPC", **more: Any) -> dict[str, Any]:
    """A v1.0 interface."""
    return {"url": url, "protocolBinding": binding, "protocolVersion": version, **more}


def card(*interfaces: dict[str, Any], **more: Any) -> v1.AgentCard:
    """A v1.0 card with some interfaces."""
    value = {"name": "N", "description": "D", "version": "1", "capabilities": {}, "supportedInterfaces": [*interfaces]}
    return decode(v1.AgentCard, value | more)


def plain(**more: Any) -> dict[str, Any]:
    """A v0.3 card."""
    return {"name": "N", "description": "D", "version": "1", "url": "https://x/rpc", "capabilities": {}, **more}


FLOWS = {
    "password": {"tokenUrl": "https://x/p", "scopes": {}},
    "implicit": {"authorizationUrl": "https://x/i", "scopes": {"a": "A"}},
    "authorizationCode": {"authorizationUrl": "https://x/a", "tokenUrl": "https://x/t", "scopes": {"a": "A"}},
}


# -- down


@pytest.mark.requirement("V03-34", "L-25", "L-13", "L-23", "V03-33", "I-49")
def test_only_interfaces_that_speak_v03_are_listed() -> None:
    made = card(
        entry("https://x/new", "1.0"),
        entry("https://x/tenant", tenant="a"),
        entry("https://x/rest", "0.3.0", "HTTP+JSON"),
        entry("https://x/rpc"),
        entry("https://x/rpc"),
        entry("https://x/odd", "0.30"),
    )
    for shown in (card_down(made), card_hybrid(made)):
        assert shown is not None
        assert (shown["url"], shown["preferredTransport"], shown["protocolVersion"]) == (
            "https://x/rest",
            "HTTP+JSON",
            "0.3.0",
        )
        assert shown["additionalInterfaces"] == [
            {"url": "https://x/rest", "transport": "HTTP+JSON"},
            {"url": "https://x/rpc", "transport": "JSONRPC"},
        ]


@pytest.mark.requirement("V03-34", "L-25")
def test_a_card_of_v10_alone_has_no_v03_form() -> None:
    made = card(entry("https://x/new", "1.0"))
    assert card_down(made) is None
    assert card_message(made) is None
    assert card_hybrid(made) == encode(made)
    for down in (old.down_result, old.down_message, old.down_rest):
        with pytest.raises(errors.VersionNotSupportedError):
            down(made)


@pytest.mark.requirement("V03-32", "L-21", "I-26")
@pytest.mark.parametrize(
    ("extended", "shown"), [({}, None), ({"extendedAgentCard": False}, False), ({"extendedAgentCard": True}, True)]
)
def test_the_flag_of_the_extended_card_moves_with_its_presence(extended: Any, shown: Any) -> None:
    made = card(entry("https://x"), capabilities={"streaming": False, **extended})
    down = card_down(made)
    assert down is not None
    assert down["capabilities"] == {"streaming": False}
    assert down.get("supportsAuthenticatedExtendedCard") is shown
    assert card_up(down) == made
    if shown is not None:
        assert card_up(plain(supportsExtendedAgentCard=shown)).capabilities.extended_agent_card is shown


@pytest.mark.requirement("L-22")
def test_signatures_are_never_carried_over() -> None:
    signature = [{"protected": "a", "signature": "b"}]
    made = card(entry("https://x"), signatures=signature)
    message = card_message(made)
    assert message is not None
    assert not message.signatures
    assert "signatures" not in card_hybrid(made) and "signatures" not in (card_down(made) or {})
    assert not card_up(plain(signatures=signature)).signatures
    assert card_up(encode(made)).signatures


def oauth(**flows: Any) -> dict[str, Any]:
    """A v1.0 scheme."""
    return {"o": {"oauth2SecurityScheme": {"description": "d", "flows": flows, "oauth2MetadataUrl": "https://x/m"}}}


@pytest.mark.requirement("L-02")
def test_a_device_code_flow_leaves_an_empty_scheme_and_a_log_line(caplog: pytest.LogCaptureFixture) -> None:
    flow = {"deviceAuthorizationUrl": "https://x/d", "tokenUrl": "https://x/t", "scopes": {}}
    made = card(entry("https://x"), securitySchemes=oauth(deviceCode=flow))
    with caplog.at_level(logging.WARNING, "a2a_grpc"):
        down = card_down(made)
    assert down is not None
    assert down["securitySchemes"]["o"] == {
        "type": "oauth2",
        "description": "d",
        "flows": {},
        "oauth2MetadataUrl": "https://x/m",
    }
    assert "device code" in caplog.text
    assert card_up(card_hybrid(made)) == made
    message = card_message(made)
    assert message is not None
    scheme = message.security_schemes["o"].oauth2_security_scheme
    assert scheme.HasField("flows") and scheme.flows.WhichOneof("flow") is None


@pytest.mark.requirement("L-03")
def test_pkce_becomes_a_hint_in_the_description() -> None:
    code = {**FLOWS["authorizationCode"], "pkceRequired": True}
    made = card(entry("https://x"), securitySchemes=oauth(authorizationCode=code))
    down, message = card_down(made), card_message(made)
    assert down is not None and message is not None
    scheme = down["securitySchemes"]["o"]
    assert scheme["flows"] == {"authorizationCode": FLOWS["authorizationCode"]}
    assert scheme["description"] == "d PKCE is required."
    assert message.security_schemes["o"].oauth2_security_scheme.description == "d PKCE is required."
    assert card_up(card_hybrid(made)) == made


@pytest.mark.requirement("V03-35", "I-10", "I-27")
def test_a_hybrid_card_is_right_for_readers_of_both_versions() -> None:
    made = card(
        entry("https://x/new", "1.0"),
        entry("https://x/rpc"),
        capabilities={"streaming": True, "extendedAgentCard": True},
        securitySchemes={
            "h": {"httpAuthSecurityScheme": {"scheme": "bearer"}},
            "k": {"apiKeySecurityScheme": {"location": "query", "name": "n"}},
            "m": {"mtlsSecurityScheme": {}},
        },
        securityRequirements=[{"schemes": {"h": {"list": ["s"]}, "m": {}}}],
        skills=[
            {
                "id": "s",
                "name": "S",
                "description": "d",
                "tags": ["t"],
                "securityRequirements": [{"schemes": {"k": {}}}],
            }
        ],
    )
    shown = card_hybrid(made)
    assert card_up(copy.deepcopy(shown)) == made
    assert shown["securitySchemes"] == {
        "h": {"type": "http", "scheme": "bearer", "httpAuthSecurityScheme": {"scheme": "bearer"}},
        "k": {
            "type": "apiKey",
            "in": "query",
            "name": "n",
            "apiKeySecurityScheme": {"location": "query", "name": "n"},
        },
        "m": {"type": "mutualTLS", "mtlsSecurityScheme": {}},
    }
    assert shown["security"] == [{"h": ["s"], "m": []}]
    assert shown["skills"][0]["security"] == [{"k": []}]
    assert shown["supportsAuthenticatedExtendedCard"] is True
    del shown["supportedInterfaces"]
    read = card_up(shown)
    assert [interface.url for interface in read.supported_interfaces] == ["https://x/rpc"]
    read.supported_interfaces.insert(0, made.supported_interfaces[0])
    assert read == made


# -- up


@pytest.mark.requirement("L-01", "V03-35")
def test_several_oauth_flows_become_alternatives() -> None:
    value = plain(
        securitySchemes={"o": {"type": "oauth2", "flows": FLOWS}, "k": {"type": "apiKey", "in": "header", "name": "n"}},
        security=[{"o": ["a"], "k": []}, {"k": []}],
        skills=[{"id": "s", "name": "S", "description": "d", "tags": [], "security": [{"o": []}]}],
    )
    before = copy.deepcopy(value)
    read = encode(card_up(value))
    assert value == before
    held = {
        name: [*scheme.get("oauth2SecurityScheme", {}).get("flows", {})]
        for name, scheme in read["securitySchemes"].items()
    }
    assert held == {"o": ["authorizationCode"], "o__implicit": ["implicit"], "o__password": ["password"], "k": []}
    names = [sorted(requirement["schemes"]) for requirement in read["securityRequirements"]]
    assert names == [["k", "o"], ["k", "o__implicit"], ["k", "o__password"], ["k"]]
    assert all(requirement["schemes"]["k"] == {} for requirement in read["securityRequirements"])
    assert read["securityRequirements"][1]["schemes"]["o__implicit"] == {"list": ["a"]}
    assert len(read["skills"][0]["securityRequirements"]) == 3


@pytest.mark.requirement("L-01")
def test_a_split_scheme_never_takes_the_name_of_another() -> None:
    schemes = {"o": {"type": "oauth2", "flows": FLOWS}, "o__implicit": {"type": "mutualTLS"}}
    read = card_up(plain(securitySchemes=schemes))
    assert read.security_schemes["o__implicit"].HasField("mtls_security_scheme")
    assert read.security_schemes["o__implicit_"].oauth2_security_scheme.flows.HasField("implicit")


@pytest.mark.requirement("L-01")
def test_alternatives_without_bound_are_refused() -> None:
    schemes = {f"o{number}": {"type": "oauth2", "flows": FLOWS} for number in range(20)}
    with pytest.raises(errors.InvalidParamsError):
        card_up(plain(securitySchemes=schemes, security=[{name: [] for name in schemes}]))


@pytest.mark.requirement("V03-32", "I-48", "I-49", "L-23", "L-24", "L-21")
@pytest.mark.parametrize(
    ("more", "interfaces"),
    [
        ({}, [("https://x/rpc", "JSONRPC", "0.3")]),
        ({"protocolVersion": "0.2.9"}, [("https://x/rpc", "JSONRPC", "0.2")]),
        ({"preferredTransport": "urn:own"}, [("https://x/rpc", "urn:own", "0.3")]),
        (
            {
                "protocolVersion": "0.3.0",
                "additionalInterfaces": [
                    {"url": "https://x/rpc", "transport": "JSONRPC"},
                    {"url": "https://x/rest", "transport": "HTTP+JSON"},
                ],
            },
            [("https://x/rpc", "JSONRPC", "0.3"), ("https://x/rest", "HTTP+JSON", "0.3")],
        ),
    ],
)
def test_the_interfaces_of_an_old_card_are_read(more: Any, interfaces: Any) -> None:
    read = card_up(plain(**more, supportedInterfaces=[]) | {"capabilities": {"stateTransitionHistory": True}})
    found = [(one.url, one.protocol_binding, one.protocol_version) for one in read.supported_interfaces]
    assert found == interfaces


@pytest.mark.requirement("L-23")
def test_one_address_with_two_transports_is_kept_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    value = plain(additionalInterfaces=[{"url": "https://x/rpc", "transport": "GRPC"}])
    with caplog.at_level(logging.WARNING, "a2a_grpc"):
        read = card_up(value)
    assert [one.protocol_binding for one in read.supported_interfaces] == ["JSONRPC", "GRPC"]
    assert "several transports" in caplog.text


@pytest.mark.requirement("I-27", "I-29")
def test_an_untidy_v10_card_is_read() -> None:
    bare = {"url": "https://x", "protocolBinding": "GRPC"}
    value = {"name": "N", "supportedInterfaces": [bare], "security": [{"k": ["s"]}]}
    read = card_up(value)
    assert read.supported_interfaces[0].protocol_version == "1.0"
    assert read.security_requirements[0].schemes["k"].list == ["s"]
    assert card_up({**value, "url": "https://x"}).supported_interfaces[0].protocol_version == "0.3"
    assert "protocolVersion" not in bare


@pytest.mark.requirement("V03-35")
@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        "card",
        {"supportedInterfaces": 5},
        {"supportedInterfaces": [5]},
        plain(url=[]) | {"url": ["x"]},
        plain(additionalInterfaces=[5]),
        plain(additionalInterfaces=[{"url": {}, "transport": ["x"]}, {"url": ["y"]}]),
        plain(capabilities=[1]),
        plain(skills=5),
        plain(skills=[5]),
        plain(securitySchemes=[1]),
        plain(securitySchemes={"a": 5}),
        plain(securitySchemes={"a": {"type": []}}),
        plain(securitySchemes={"a": {"type": "magic"}}),
        plain(securitySchemes={"a": {"type": "oauth2", "flows": 5}}),
        plain(security=5),
        plain(security=[5]),
        plain(security=[{"a": 5}]),
        plain(security=[{"schemes": {"a": []}}]),
        plain(security=[{"schemes": {"a": 5}}]),
    ],
)
def test_a_card_that_is_none_is_refused(value: Any) -> None:
    with pytest.raises(errors.InvalidParamsError):
        card_up(value)
    with pytest.raises(errors.InvalidAgentResponseError):
        old.up_result(CARD, value)
