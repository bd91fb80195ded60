"""The cards of a server: of each agent for whoever asks, and the keys that sign them; and what tools read of an agent.

Laws: what a card says is made in `cards` or comes from an upstream; here is which agent, address and form a request
gets. A card is signed last, in the form in which it is shown, and never in that of v0.3 (SIGN-12).
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, NamedTuple, Protocol

from a2a_stubs import v1

from a2a_grpc import cards, protojson
from a2a_grpc.agent import Agent
from a2a_grpc.auth import Authentication
from a2a_grpc.bindings import openapi
from a2a_grpc.bindings.wire import JSON, HttpReply, HttpRequest
from a2a_grpc.call import RESUME_EXTENSION, V1, Call
from a2a_grpc.config import Options
from a2a_grpc.gateway import Upstream

JWKS: Final = "/.well-known/jwks.json"
"""Where the option `serve_jwks` publishes keys."""

JWK_SET: Final = "application/jwk-set+json"


class Signer(Protocol):
    """What signs cards, see signing.Signer."""

    @property
    def jwks(self) -> dict[str, Any]:
        """The public parts of its keys."""
        ...

    @property
    def now(self) -> object:
        """Another one when its keys have changed."""
        ...

    def signatures(self, document: dict[str, Any], *others: dict[str, Any]) -> list[dict[str, str]]:
        """The signatures of a card's JSON object."""
        ...

    def sign(self, card: v1.AgentCard) -> None:
        """Put signatures into a card."""
        ...


class Places(NamedTuple):
    """Where a server is as bound: base URL of HTTP and `host:port` of gRPC, each "" when there is none."""

    http: str
    grpc: str


class Cards:
    """The cards of the agents of a server, the first of which is meant where none is named.

    places: where the server is, asked each time. authentication: what the cards say of credentials, None for nothing.
    signer: default None: cards are not signed.
    """

    def __init__(
        self,
        agents: Mapping[str, Agent | Upstream],
        options: Options,
        places: Callable[[], Places],
        authentication: Authentication | None = None,
        signer: Signer | None = None,
    ) -> None:
        self._agents, self._options, self._places = agents, options, places
        self._asked, self._signer = authentication, signer
        self._public: dict[str, tuple[object, object, cards.CardPage]] = {}
        self._described: dict[str, tuple[object, dict[str, Any]]] = {}

    async def reply(self, name: str, prefix: str, request: HttpRequest, origin: str) -> HttpReply:
        """The answer to a request for the public card of an agent below a path; raises as `cards.CardPage.reply`, and
        UnavailableError when its upstream is away."""
        if isinstance(agent := self._agents[name], Upstream):
            await agent.connected()
        return HttpReply(*self._page(name, prefix).reply(request, origin))

    async def openapi(self, name: str, prefix: str, request: HttpRequest, origin: str) -> HttpReply:
        """The answer to a request for the OpenAPI document of an agent below a path; raises as `reply`."""
        cards.check_reading(request.verb)
        if isinstance(agent := self._agents[name], Upstream):
            await agent.connected()
        source = agent.card if isinstance(agent, Upstream) else agent
        base = cards.base_url(self._options, origin, request.headers) + prefix
        known, made = self._described.get(prefix, (None, {}))
        if known is not source:
            shared = self._agents if len(self._agents) > 1 and not prefix else ()
            tenants, guarded = {*agent.tenants, *shared}, self._asked is not None
            made = openapi.document(
                self._card(name, prefix, base),
                self._options.versions,
                tenants,
                named=not guarded,  # names of tenants are for those who may address them
                closed=guarded and not self._options.public_card,
            )
            self._described[prefix] = source, made
        return self._document({**made, "servers": [{"url": base}]}, JSON, request.verb)

    def _document(self, value: Any, media: str, verb: str) -> HttpReply:
        body, age = protojson.dumps(value), self._options.card_max_age
        headers = {"content-type": media, "cache-control": f"public, max-age={age}", "content-length": str(len(body))}
        return HttpReply(200, headers, body if verb == "GET" else b"")

    def _page(self, name: str, prefix: str) -> cards.CardPage:
        agent = self._agents[name]
        source = agent.card if isinstance(agent, Upstream) else agent
        signer = self._signer and self._signer.now
        known, signed, page = self._public.get(prefix, (None, None, None))
        if page is None or known is not source or signed is not signer:
            sign = self._signer.signatures if self._signer else None
            page = cards.CardPage(lambda base: self._card(name, prefix, base), self._options, sign)
            self._public[prefix] = source, signer, page
        return page

    def _card(self, name: str, prefix: str, base: str, card: v1.AgentCard | None = None) -> v1.AgentCard:
        """The card of an agent for a base URL. card: another one of its upstream; default the public one."""
        tenant = "" if name == next(iter(self._agents)) else name  # who names no tenant reaches the first
        grpc = self._places().grpc or self._options.public_grpc
        found = cards.interfaces(self._options, base, grpc, prefix, tenant)
        asked = self._asked
        schemes, requirements = (asked.schemes, asked.requirements) if asked else (None, ())
        agent = self._agents[name]
        if isinstance(agent, Upstream):
            return cards.fronted(card or agent.card, found, schemes, requirements)
        return cards.build(
            agent,
            found,
            push=self._options.push_notifications,
            extensions=(RESUME_EXTENSION,),
            security_schemes=schemes,
            security_requirements=requirements,
        )

    def _for(self, name: str, call: Call, card: v1.AgentCard | None = None) -> v1.AgentCard:
        path = "" if name == next(iter(self._agents)) else f"/{name}"  # only the path says in v0.3 who is meant
        here = self._places().http
        base = cards.base_url(self._options, here, call.metadata) if here or self._options.public_url else ""
        return self._card(name, path, base, card)

    def _signed(self, card: v1.AgentCard, call: Call) -> v1.AgentCard:
        if self._signer and call.version == V1:
            self._signer.sign(card)
        return card

    def extended(self, name: str, agent: Agent) -> Callable[[Call], Awaitable[v1.AgentCard | None]]:
        """What gives the extended card of an agent for a call, None when there is none for it."""

        async def made(call: Call) -> v1.AgentCard | None:
            found = await cards.extended(agent, call, lambda: self._for(name, call))
            return found and self._signed(found, call)

        return made

    def presented(self, name: str) -> Callable[[v1.AgentCard, Call], v1.AgentCard]:
        """What makes a card of an upstream one of this server."""
        return lambda card, call: self._signed(self._for(name, call, card), call)

    def pages(self) -> dict[str, Callable[[HttpRequest, str], Awaitable[HttpReply]]]:
        """What is shown beside the cards, by whole path: the published keys, if they shall be."""
        if self._signer is None or not self._options.serve_jwks:
            return {}
        signer = self._signer

        async def keys(request: HttpRequest, _: str) -> HttpReply:
            cards.check_reading(request.verb)
            return self._document(signer.jwks, JWK_SET, request.verb)

        return {JWKS: keys}
