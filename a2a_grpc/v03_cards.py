"""The agent card of v0.3 to and from the one of v1.0.

Laws: a card has three v0.3 forms: the JSON one (`card_down`), both versions in one document (`card_hybrid`) and the
v0.3 proto's message (`card_message`); each is made from a v1.0 card, and `card_up` reads them all back. Security is
never dropped silently: what v0.3 cannot say is logged, what v1.0 cannot say is split into alternatives. Signatures
are never carried over, since they hold only for the form that was signed (L-22).
"""

import itertools
import logging
import math
from collections.abc import Iterable, Mapping
from typing import Any, Final

from a2a_stubs import v03, v1

from a2a_grpc.call import JSONRPC, V03, V1
from a2a_grpc.protojson import decode, encode
from a2a_grpc.v03_json import Json, list_of, object_of, wrong

logger = logging.getLogger("a2a_grpc")

PROTOCOL_VERSION: Final = "0.3.0"
"""What a v0.3 card says of itself (I-49)."""

_SCHEMES: Final[Mapping[str, tuple[str, Mapping[str, str]]]] = {
    "apiKeySecurityScheme": ("apiKey", {"location": "in"}),
    "httpAuthSecurityScheme": ("http", {}),
    "oauth2SecurityScheme": ("oauth2", {}),
    "openIdConnectSecurityScheme": ("openIdConnect", {}),
    "mtlsSecurityScheme": ("mutualTLS", {}),
}
"""Member of a v1.0 security scheme -> v0.3 `type`, and members that have another name there (V03-35)."""

_SCHEMES_UP: Final = {
    kind: (member, {old: new for new, old in renamed.items()}) for member, (kind, renamed) in _SCHEMES.items()
}
_FLOWS: Final = ("authorizationCode", "clientCredentials", "implicit", "password")
"""The OAuth flows of v0.3, in the order in which the first of several keeps the scheme's name (L-01)."""

_PKCE: Final = "PKCE is required."
_MOST_ALTERNATIVES: Final = 256

Alternatives = dict[str, list[str]]
"""Name of a v0.3 scheme with several flows -> names of the v1.0 schemes, any one of which will do."""


# -- down


def card_down(card: v1.AgentCard) -> Json | None:
    """The card as v0.3 JSON (V03-32 to V03-35); None when no interface speaks v0.3.

    Interfaces of other versions and those that need a tenant are left out (L-13, L-25). Device code flows and PKCE
    are not known to v0.3: the first leaves a scheme without flows and a log line, the second a hint in the
    description (L-02, L-03).
    """
    made: Json = encode(card)
    old = _old_members(made)
    if old is None:
        return None
    for name in ("supportedInterfaces", "securityRequirements", "signatures"):
        made.pop(name, None)
    made["capabilities"].pop("extendedAgentCard", None)
    for skill in made["skills"]:
        skill.pop("securityRequirements", None)
    if "securitySchemes" in made:
        made["securitySchemes"] = old.pop("securitySchemes")
    return made | old


def card_hybrid(card: v1.AgentCard) -> Json:
    """The v1.0 card with the v0.3 members beside the v1.0 ones, for readers whose version is not known (I-10).

    A card without v0.3 interfaces is given in its v1.0 form alone. Signatures are left out.
    """
    made: Json = encode(card)
    made.pop("signatures", None)
    old = _old_members(made)
    if old is None:
        return made
    for name, scheme in old.pop("securitySchemes", {}).items():
        made["securitySchemes"][name] |= scheme
    return made | old


def card_message(card: v1.AgentCard) -> v03.AgentCard | None:
    """The card as a message of the v0.3 proto; None when no interface speaks v0.3. Losses as in `card_down`."""
    made = encode(card)
    old = _old_members(made)
    if old is None:
        return None
    for holder in (made, *made["skills"]):
        holder["security"] = holder.get("securityRequirements", [])
    for scheme in made.get("securitySchemes", {}).values():
        flows = scheme.get("oauth2SecurityScheme", {}).get("flows", {})
        _mention_pkce(scheme.get("oauth2SecurityScheme", {}), flows)
    made.pop("signatures", None)
    for name in ("security", "securitySchemes"):
        old.pop(name, None)
    return decode(v03.AgentCard, made | old)


def openapi_security(card: v1.AgentCard) -> tuple[Json, Json]:
    """What an OpenAPI document says of the card's security, which v0.3 cards say in the same words: its schemes, and
    the member that lists the requirements. What neither knows is left out as in `card_down`."""
    made = encode(card)
    schemes = {name: _scheme_down(name, scheme) for name, scheme in made.get("securitySchemes", {}).items()}
    for scheme in schemes.values():
        scheme.pop("oauth2MetadataUrl", None)
    return schemes, {"security": _security_down(made.get("securityRequirements", ()))}


def _old_members(card: Json) -> Json | None:
    """What v0.3 has beside the members of a v1.0 card, as JSON; sets `capabilities` and each skill's `security`."""
    interfaces = [
        {"url": entry["url"], "transport": entry["protocolBinding"]}
        for entry in card["supportedInterfaces"]
        if _minor(entry["protocolVersion"]) == V03 and not entry.get("tenant")
    ]
    if not interfaces:
        return None
    made: Json = {
        "protocolVersion": PROTOCOL_VERSION,
        "url": interfaces[0]["url"],
        "preferredTransport": interfaces[0]["transport"],
        "additionalInterfaces": _distinct(interfaces),
    }
    extended = card.setdefault("capabilities", {}).get("extendedAgentCard")
    if extended is not None:
        made["supportsAuthenticatedExtendedCard"] = extended
    if "securityRequirements" in card:
        made["security"] = _security_down(card["securityRequirements"])
    for skill in card["skills"]:
        if "securityRequirements" in skill:
            skill["security"] = _security_down(skill["securityRequirements"])
    if "securitySchemes" in card:
        made["securitySchemes"] = {name: _scheme_down(name, scheme) for name, scheme in card["securitySchemes"].items()}
    return made


def _minor(version: str) -> str:
    """Major.Minor of a version, v0.3 for none (I-29)."""
    return ".".join(version.split(".")[:2]) or V03


def _distinct(interfaces: Iterable[Json]) -> list[Json]:
    return list({(str(entry["url"]), str(entry["transport"])): entry for entry in interfaces}.values())


def _security_down(requirements: Iterable[Json]) -> list[dict[str, list[str]]]:
    return [
        {name: scopes.get("list", []) for name, scopes in entry.get("schemes", {}).items()} for entry in requirements
    ]


def _scheme_down(name: str, scheme: Json) -> Json:
    member = next((member for member in _SCHEMES if member in scheme), None)
    if member is None:
        logger.warning("security scheme %s has no kind and means nothing to v0.3 readers", name)
        return {}
    kind, renamed = _SCHEMES[member]
    made = {renamed.get(new, new): value for new, value in scheme[member].items()}
    if kind == "oauth2":
        flows = dict(made.get("flows", {}))
        _mention_pkce(made, flows)
        made["flows"] = {flow: flows[flow] for flow in _FLOWS if flow in flows}
        if flows and not made["flows"]:
            logger.warning("security scheme %s offers a device code flow, which v0.3 readers do not see", name)
    return {"type": kind, **made}


def _mention_pkce(scheme: Json, flows: Json) -> None:
    """Say in words what v0.3 has no member for (L-03)."""
    code = flows.get("authorizationCode", {})
    if "pkceRequired" in code:
        flows["authorizationCode"] = {name: value for name, value in code.items() if name != "pkceRequired"}
        scheme["description"] = f"{scheme.get('description', '')} {_PKCE}".strip()


# -- up


def card_up(value: Any) -> v1.AgentCard:
    """The v1.0 card of a received card document: v1.0, v0.3 or hybrid JSON, told apart by its members (part 8).

    A v1.0 document wins over old members beside it, except that `security` is read where `securityRequirements` is
    missing (I-27). Several OAuth flows in one scheme become several schemes, and each requirement that names it
    becomes alternatives (L-01). Signatures of a v0.3 document are dropped; verify the document itself.
    Raises InvalidParamsError for a value of neither shape or with a wrong member.
    """
    card = dict(object_of(value, "card"))
    if not card.get("supportedInterfaces"):
        return decode(v1.AgentCard, _from_old(card) if card.get("url") or card.get("preferredTransport") else card)
    absent = V03 if card.get("url") or card.get("preferredTransport") else V1
    card["supportedInterfaces"] = [
        {**object_of(entry, "supportedInterfaces"), "protocolVersion": entry.get("protocolVersion") or absent}
        for entry in list_of(card["supportedInterfaces"], "supportedInterfaces")
    ]
    if card.get("security") and not card.get("securityRequirements"):
        card["securityRequirements"] = _security_up(card["security"], {})
    return decode(v1.AgentCard, card)


def _from_old(card: Json) -> Json:
    card.pop("signatures", None)
    version = _minor(str(card.get("protocolVersion") or PROTOCOL_VERSION))
    interfaces = [{"url": card.get("url"), "transport": card.get("preferredTransport") or JSONRPC}]
    for position, entry in enumerate(list_of(card.get("additionalInterfaces"), "additionalInterfaces")):
        entry = object_of(entry, f"additionalInterfaces[{position}]")
        interfaces.append({"url": entry.get("url"), "transport": entry.get("transport")})
    found = [entry for entry in _distinct(interfaces) if entry["url"]]
    if len({str(entry["url"]) for entry in found}) < len(found):
        logger.warning("the v0.3 card of %.80r gives one URL several transports", card.get("name"))
    card["supportedInterfaces"] = [
        {"url": entry["url"], "protocolBinding": entry["transport"], "protocolVersion": version} for entry in found
    ]
    capabilities = dict(object_of(card.get("capabilities") or {}, "capabilities"))
    for name in ("supportsAuthenticatedExtendedCard", "supportsExtendedAgentCard"):
        if card.get(name) is not None:
            capabilities["extendedAgentCard"] = card[name]
    card["capabilities"] = capabilities
    card["securitySchemes"], alternatives = _schemes_up(card.get("securitySchemes") or {})
    card["securityRequirements"] = _security_up(card.get("security"), alternatives)
    card["skills"] = [
        {
            **object_of(skill, f"skills[{position}]"),
            "securityRequirements": _security_up(skill.get("security"), alternatives),
        }
        for position, skill in enumerate(list_of(card.get("skills"), "skills"))
    ]
    return card


def _schemes_up(schemes: Any) -> tuple[Json, Alternatives]:
    """The v1.0 schemes, and which of them stand for one v0.3 scheme with several flows."""
    made: Json = {}
    alternatives: Alternatives = {}
    for name, scheme in object_of(schemes, "securitySchemes").items():
        for flow, entry in _scheme_up(object_of(scheme, f"securitySchemes.{name}")):
            new = f"{name}__{flow}" if flow else name
            while new in made or (flow and new in schemes):
                new += "_"
            made[new] = entry
            alternatives.setdefault(name, []).append(new)
    return made, alternatives


def _scheme_up(scheme: Json) -> list[tuple[str, Json]]:
    """One v0.3 scheme as v1.0 schemes, each with the flow that its name must tell, "" for the first."""
    kind = scheme.get("type")
    if kind is None:
        return [("", scheme)]
    if not isinstance(kind, str) or kind not in _SCHEMES_UP:
        raise wrong("securitySchemes.type", f"must be one of {', '.join(_SCHEMES_UP)}")
    member, renamed = _SCHEMES_UP[kind]
    made = {renamed.get(old, old): value for old, value in scheme.items() if old != "type"}
    if kind != "oauth2":
        return [("", {member: made})]
    flows = object_of(made.get("flows") or {}, "securitySchemes.flows")
    held = [flow for flow in _FLOWS if flows.get(flow) is not None]
    if len(held) < 2:
        return [("", {member: {**made, "flows": {flow: flows[flow] for flow in held}}})]
    return [
        (flow if position else "", {member: {**made, "flows": {flow: flows[flow]}}})
        for position, flow in enumerate(held)
    ]


def _security_up(requirements: Any, alternatives: Alternatives) -> list[Json]:
    """v0.3 requirements, in the JSON form or in the proto's, as v1.0 ones (part 9, L-01)."""
    made = []
    for position, entry in enumerate(list_of(requirements, "security")):
        schemes = object_of(entry, f"security[{position}]")
        if isinstance(schemes.get("schemes"), dict):
            inner = schemes["schemes"].items()
            schemes = {name: object_of(scopes, "security.schemes").get("list") for name, scopes in inner}
        choices = [alternatives.get(name, [name]) for name in schemes]
        if math.prod(map(len, choices)) > _MOST_ALTERNATIVES:
            raise wrong(f"security[{position}]", "combines too many schemes of several flows")
        for names in itertools.product(*choices):
            scopes = zip(names, schemes.values(), strict=True)
            made.append({"schemes": {name: {"list": listed or []} for name, listed in scopes}})
    return made
