"""The agent card: what it says, its forms on the wire, answers to requests for it, and the choice of an interface.

Laws: everything here is a function of a card, options and request headers: no sockets, no transport library. Old
members of a card come from v03_cards alone. A card never names an address that only the server itself can reach
(BL-45), and a converted card carries no signatures (SIGN-12, L-22).
"""

import hashlib
import inspect
import re
import time
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from email.utils import formatdate, parsedate_to_datetime
from typing import Any, Final, NamedTuple, Protocol, cast
from urllib.parse import parse_qsl, urlsplit

import orjson
from a2a_stubs import v1

from a2a_grpc import protojson, v03_cards
from a2a_grpc.agent import Agent
from a2a_grpc.call import GRPC, JSONRPC, REST, V03, V1, VERSIONS, Call, major_minor, told_version
from a2a_grpc.config import Options
from a2a_grpc.errors import MethodNotAllowedError, VersionNotSupportedError

WELL_KNOWN: Final = "/.well-known/agent-card.json"
"""Where a card is found below a base URL (CARD-01, I-57)."""

BINDINGS: Final = (JSONRPC, REST, GRPC)
"""The bindings in the order a card lists them; JSON-RPC leads since some clients take the first entry unseen."""

_EVERYWHERE: Final = frozenset({"", "0.0.0.0", "::", "[::]"})
_HOST: Final = re.compile(r"(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?")
_PREFIX: Final = re.compile(r"(?:/[A-Za-z0-9._~%-]+)*/?")
_KEPT_DOCUMENTS: Final = 64

Sign = Callable[..., list[dict[str, str]]]
"""Gives the signatures of a v1.0 card's JSON object, and of other objects as they stand; see signing.Signer."""


def interfaces(
    options: Options, http_base: str, grpc_address: str, prefix: str = "", tenant: str = ""
) -> list[v1.AgentInterface]:
    """The interface entries of an agent, newest version first, JSON-RPC first in each (CARD-03 to CARD-06, BL-46).

    http_base: base URL without a last slash, "" when HTTP is off; grpc_address: bound `host:port`, "" when gRPC is off.
    prefix: path under which the agent is mounted, such as `/orders`; tenant: the agent's tenant. With a prefix the path
    says who is meant and only gRPC needs the tenant. v0.3 has no tenants: entries that need one are left out (L-13).
    """
    base = http_base + prefix
    urls = {
        JSONRPC: http_base and base + "/",
        REST: http_base and base,
        GRPC: grpc_address and _grpc_url(options, http_base, grpc_address),
    }
    tenants = {binding: "" if prefix and binding != GRPC else tenant for binding in BINDINGS}
    return [
        v1.AgentInterface(
            url=urls[binding],
            protocol_binding=binding,
            protocol_version=version,
            tenant=tenants[binding],
        )
        for version in VERSIONS
        if version in options.versions
        for binding in BINDINGS
        if urls[binding] and not (version == V03 and tenants[binding])
    ]


def _grpc_url(options: Options, http_base: str, grpc_address: str) -> str:
    authority = options.public_grpc
    if not authority:
        host, _, port = grpc_address.rpartition(":")
        if options.public_url or host in _EVERYWHERE:
            host = urlsplit(http_base).hostname or "localhost"
            host = f"[{host}]" if ":" in host else host
        authority = f"{host}:{port}"
    if options.grpc_url_style == "authority" or "://" in authority:
        return authority
    return ("https://" if options.tls_cert or http_base.startswith("https:") else "http://") + authority


def base_url(options: Options, origin: str, headers: Mapping[str, str]) -> str:
    """The base URL, without a last slash, under which the client of one request reaches HTTP (BL-45).

    origin: the listening address as a URL, such as `http://0.0.0.0:8080`; headers: request headers, keys in lower case.
    `options.public_url` wins; then X-Forwarded-Host, -Proto and -Prefix if `options.trust_forwarded`; then, bound to
    all addresses, the Host header; then `origin`. Malformed headers count as absent.
    """
    if options.public_url:
        return options.public_url.rstrip("/")
    scheme, _, authority = origin.partition("://")
    forwarded = {
        name: headers.get(f"x-forwarded-{name}", "").split(",")[0].strip()
        for name in ("proto", "host", "prefix")
        if options.trust_forwarded
    }
    if any(forwarded.values()) or authority.rpartition(":")[0] in _EVERYWHERE:
        hosts = (forwarded.get("host", ""), headers.get("host", ""))
        fallback = "localhost:" + authority.rpartition(":")[2]
        authority = next((host for host in hosts if _HOST.fullmatch(host)), fallback)
    if (proto := forwarded.get("proto", "").lower()) in ("http", "https"):
        scheme = proto
    prefix = forwarded.get("prefix", "")
    return f"{scheme}://{authority}{prefix.rstrip('/') if _PREFIX.fullmatch(prefix) else ''}"


def build(
    agent: Agent,
    entries: Sequence[v1.AgentInterface],
    *,
    push: bool,
    extensions: Iterable[str] = (),
    security_schemes: Mapping[str, v1.SecurityScheme] | None = None,
    security_requirements: Iterable[v1.SecurityRequirement] = (),
) -> v1.AgentCard:
    """The public card of an agent (CARD-02, CARD-10, CARD-12 to CARD-15, EXT-01).

    entries: see `interfaces`; push: whether push notifications are offered; extensions: URIs of those that the server
    adds to the agent's own. Capabilities are always written out, and every skill states its modes, as some clients
    need them.
    """
    card = v1.AgentCard(
        name=agent.name,
        description=agent.description,
        version=agent.version,
        supported_interfaces=entries,
        documentation_url=agent.documentation_url,
        icon_url=agent.icon_url,
        default_input_modes=agent.default_input_modes,
        default_output_modes=agent.default_output_modes,
        capabilities=v1.AgentCapabilities(
            streaming=agent.streaming,
            push_notifications=push,
            extended_agent_card=agent.extended_card is not None,
            extensions=[_extension(extension) for extension in agent.extensions]
            + [v1.AgentExtension(uri=uri) for uri in extensions],
        ),
        security_schemes=security_schemes,
        security_requirements=security_requirements,
        skills=[
            v1.AgentSkill(
                id=skill.id,
                name=skill.name,
                description=skill.description or skill.name,
                tags=skill.tags,
                examples=skill.examples,
                input_modes=skill.input_modes or agent.default_input_modes,
                output_modes=skill.output_modes or agent.default_output_modes,
            )
            for skill in agent.skills
        ],
    )
    if agent.provider_organization:
        card.provider.organization, card.provider.url = agent.provider_organization, agent.provider_url
    return card


def _extension(extension: Any) -> v1.AgentExtension:
    return v1.AgentExtension(
        uri=extension.uri,
        description=extension.description,
        required=extension.required,
        params=None if extension.params is None else protojson.struct_of(extension.params),
    )


async def extended(agent: Agent, call: Call, public: Callable[[], v1.AgentCard]) -> v1.AgentCard | None:
    """The extended card for one caller, None when the agent has none for it (CARD-22 to CARD-24).

    Whatever the agent's extended card leaves unset is filled in from the public card; then its signatures, if it has
    any, no longer hold and are left out.
    """
    source = agent.extended_card
    found = source(call) if callable(source) else source
    given = await found if inspect.isawaitable(found) else found
    if given is None:
        return None
    card: Any = v1.AgentCard()
    card.CopyFrom(public())
    card.ClearField("signatures")
    for field, _ in given.ListFields():
        card.ClearField(field.name)
    card.MergeFrom(given)
    if card != given:
        card.ClearField("signatures")
    return cast(v1.AgentCard, card)


def document(card: v1.AgentCard, version: str = "", sign: Sign | None = None) -> dict[str, Any]:
    """The JSON object of a card as asked for by a version: "1.0", "0.3", or "" for both in one (I-10, BL-46).

    A card without v0.3 interfaces has only its v1.0 form, which is then given for every version. sign: signs the v1.0
    form, for both in one the v1.0 part and the whole (I-58); the v0.3 form is never signed (SIGN-12); default: no one.
    """
    old = None if version == V1 else v03_cards.card_down(card)
    if old is not None and version == V03:
        return old
    pure: dict[str, Any] = protojson.encode(card)
    shown = pure if old is None else v03_cards.card_hybrid(card)
    if sign is not None:
        shown["signatures"] = sign(pure, shown)
    return shown


class Request(Protocol):
    """What is read of an HTTP request."""

    @property
    def verb(self) -> str:
        """In upper case."""
        ...

    @property
    def headers(self) -> Mapping[str, str]:
        """Keys in lower case, repeated ones joined with commas."""
        ...

    @property
    def query(self) -> str:
        """Still percent-encoded, without the question mark."""
        ...


class CardReply(NamedTuple):
    """An HTTP answer: status, headers with keys in lower case, body."""

    status: int
    headers: dict[str, str]
    body: bytes


class CardPage:
    """Answers HTTP requests for one agent's card (CARD-01, CARD-16, CARD-17, CARD-21).

    card: makes the card for a base URL; its result depends on nothing else. options: public address, trust, caching.
    sign: see `document`.
    The query `bindings=http` leaves out gRPC entries, for clients that refuse a card with a foreign origin in it.
    Each form is encoded once for each base URL, of which the latest 64 are kept.
    """

    def __init__(self, card: Callable[[str], v1.AgentCard], options: Options, sign: Sign | None = None) -> None:
        self._card, self._options, self._sign = card, options, sign
        self._since = int(time.time())
        self._headers = {
            "cache-control": f"public, max-age={options.card_max_age}",
            "last-modified": formatdate(self._since, usegmt=True),
            "vary": "A2A-Version",
        }
        self._documents: dict[tuple[str, str, bool], tuple[bytes, str]] = {}

    def reply(self, request: Request, origin: str) -> CardReply:
        """The answer to one request; origin: the listening address as a URL, see `base_url`.

        Raises MethodNotAllowedError, VersionNotSupportedError for a version that no card form has (VER-04), and
        InvalidParamsError when header and query name different versions (VER-10).
        """
        check_reading(request.verb)
        asked = [(name.lower(), value) for name, value in parse_qsl(request.query)]
        told = [value for name, value in asked if name == "a2a-version"]
        body, etag = self._document(
            self._known(told_version(request.headers.get("a2a-version", ""), *told)),
            base_url(self._options, origin, request.headers),
            ("bindings", "http") in asked,
        )
        answer = {**self._headers, "etag": etag}
        if self._fresh(request.headers, etag):
            return CardReply(304, answer, b"")
        answer |= {"content-type": "application/json", "content-length": str(len(body))}
        return CardReply(200, answer, body if request.verb == "GET" else b"")

    def _known(self, version: str) -> str:
        if version and version not in VERSIONS:
            raise VersionNotSupportedError(
                metadata={"supportedVersions": ", ".join(v for v in VERSIONS if v in self._options.versions)}
            )
        return version

    def _document(self, version: str, base: str, http_only: bool) -> tuple[bytes, str]:
        key = (version, base, http_only)
        if key not in self._documents:
            card = self._card(base)
            if http_only:
                chosen = [entry for entry in card.supported_interfaces if entry.protocol_binding != GRPC]
                card = v1.AgentCard.FromString(card.SerializeToString())
                del card.supported_interfaces[:]
                card.supported_interfaces.extend(chosen)
                card.ClearField("signatures")
            shown = document(card, version, self._sign)
            body = protojson.dumps(shown)
            while len(self._documents) >= _KEPT_DOCUMENTS:
                del self._documents[next(iter(self._documents))]
            self._documents[key] = body, f'"{_mark(shown)}"'
        return self._documents[key]

    def _fresh(self, headers: Mapping[str, str], etag: str) -> bool:
        if (tags := headers.get("if-none-match")) is not None:
            return is_known(tags, etag)
        try:
            return parsedate_to_datetime(headers["if-modified-since"]).timestamp() >= self._since
        except (KeyError, ValueError, OverflowError):
            return False


def check_reading(verb: str) -> None:
    """For what is only read. Raises MethodNotAllowedError for another verb than GET and HEAD."""
    if verb not in ("GET", "HEAD"):
        raise MethodNotAllowedError(allow=("GET", "HEAD"))


def is_known(tags: str, etag: str) -> bool:
    """Whether who asks with this If-None-Match has what an ETag stands for."""
    return bool({tag.strip().removeprefix("W/") for tag in tags.split(",")} & {etag, "*"})


def _mark(shown: dict[str, Any]) -> str:
    """A short mark of a card's content. Free JSON has no order of its own, so keys are sorted, and a signature looks
    different each time that it is made, so only its header counts: replicas agree."""
    if "signatures" in shown:
        shown = {**shown, "signatures": [signature["protected"] for signature in shown["signatures"]]}
    return hashlib.sha256(orjson.dumps(shown, option=orjson.OPT_SORT_KEYS)).hexdigest()[:24]


def choices(
    card: v1.AgentCard, callable_: Container[tuple[str, str]], binding: str | None = None, version: str | None = None
) -> list[v1.AgentInterface]:
    """The interfaces of a card that a client can call, in the card's order (CARD-07, CARD-08).

    callable_: pairs of binding and version that the client knows; binding, version: only these, None (default) is any.
    The patch part of a version is ignored (VER-05).
    """
    found = []
    for entry in card.supported_interfaces:
        pair = entry.protocol_binding, major_minor(entry.protocol_version or V1)
        if pair in callable_ and binding in (None, pair[0]) and version in (None, pair[1]):
            found.append(entry)
    return found


RESOLVED: Final = ("dns:", "ipv4:", "ipv6:")
"""How names begin for which gRPC's own resolver finds addresses, or which list some."""


def grpc_target(url: str, secure_card: bool = False) -> tuple[str, bool]:
    """What to dial for a gRPC address of a card, and whether with TLS (CARD-09, I-28).

    `https://` and `grpcs://` mean TLS, `http://` and `grpc://` do not; without a port 443 and 80 are meant. Names
    such as `dns:///host:port` and `host:port` stay as they are, with TLS on port 443, and on every port if the card
    came over TLS (secure_card): who took care there does not mean credentials to go in the clear here (SEC-01). So do
    `RESOLVED` names behind a scheme, with what that means.
    """
    scheme, mark, rest = url.partition("://")
    if not mark or scheme == "dns":
        return url, secure_card or url.endswith(":443")
    secure = scheme in ("https", "grpcs")
    if rest.startswith(RESOLVED):
        return rest, secure
    authority = rest.partition("/")[0]
    bare = not re.search(r":\d+$", authority)
    return authority + (":443" if secure else ":80") * bare, secure


def fronted(
    card: v1.AgentCard,
    entries: Sequence[v1.AgentInterface],
    security_schemes: Mapping[str, v1.SecurityScheme] | None = None,
    security_requirements: Iterable[v1.SecurityRequirement] = (),
) -> v1.AgentCard:
    """The card of an upstream with the gateway's interfaces, and without signatures, which no longer hold (SIGN-12).

    security_schemes, security_requirements: those of the gateway; None (default) keeps what the upstream asks for.
    """
    shown: Any = v1.AgentCard()
    shown.CopyFrom(card)
    for name in ("supported_interfaces", "signatures"):
        shown.ClearField(name)
    shown.supported_interfaces.extend(entries)
    if security_schemes is not None:
        for name in ("security_schemes", "security_requirements"):
            shown.ClearField(name)
        shown.MergeFrom(
            v1.AgentCard(security_schemes=security_schemes, security_requirements=security_requirements),
        )
    made: v1.AgentCard = shown
    return made
