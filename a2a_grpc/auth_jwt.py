"""Bearer tokens that are JSON Web Tokens, of an OAuth 2 or OpenID Connect issuer.

Laws: a token counts when a key of the issuer signed it with an algorithm of the list, it names issuer and audience,
and it is in its time; all else of it is believed only then. No part of a token goes to the log (SEC-05).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import orjson
from a2a_stubs import v1

from a2a_grpc.auth import REALM, authorization_header
from a2a_grpc.auth_keys import DISCOVERY, KeySource, RemoteKeys
from a2a_grpc.call import Caller, Credentials
from a2a_grpc.config import OptionError
from a2a_grpc.errors import UnauthenticatedError
from a2a_grpc.extras import needs

with needs("auth"):
    from joserfc import jws
    from joserfc.errors import JoseError
    from joserfc.jwt import JWTClaimsRegistry

ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "Ed25519")
"""The algorithms that are accepted unless others are named: those with a public key."""

_HEADER_LIMIT: Final = 8192


@dataclass(frozen=True)
class JWT:
    """`Authorization: Bearer TOKEN`, where the token is a JWT.

    issuer: exact. audience: one that the token must be for, or several of which one is enough.
    keys: default None asks the issuer by OpenID Connect discovery; see auth_keys for others.
    algorithms: accepted, default `ALGORITHMS`; "none" never is. leeway: seconds that clocks may differ, default 30.
    scopes: required, default none; granted are those of the claims `scope` and `scp`. subject: makes the caller's
    subject from the claims; default is `issuer|sub`, as a `sub` means nothing beside another issuer.
    tenant_claim: name of a claim that lists the tenants the caller may address; default "": every one; with a name,
    a token without the claim opens none. card: how the card describes it, such as an oauth2SecurityScheme; default an
    openIdConnectSecurityScheme, with keys given an httpAuthSecurityScheme. scheme_name: for the card.
    Raises OptionError.
    """

    issuer: str
    audience: str | tuple[str, ...]
    keys: KeySource | None = None
    algorithms: tuple[str, ...] = ALGORITHMS
    leeway: int = 30
    scopes: tuple[str, ...] = ()
    subject: Callable[[Mapping[str, Any]], str] | None = None
    tenant_claim: str = ""
    card: v1.SecurityScheme | None = None
    scheme_name: str = "jwt"
    challenge: str = field(default=f'Bearer realm="{REALM}"', init=False, repr=False)
    _source: KeySource = field(init=False, repr=False, compare=False)
    _registry: jws.JWSRegistry = field(init=False, repr=False, compare=False)
    _claims: JWTClaimsRegistry = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        audience = [self.audience] if isinstance(self.audience, str) else list(self.audience)
        if not self.issuer or not all(audience) or not audience:
            raise OptionError("a JWT authenticator needs an issuer and an audience")
        if unknown := {*self.algorithms} - {*jws.JWSRegistry.algorithms} | {"none"} & {*self.algorithms}:
            raise OptionError(f"not an algorithm for tokens: {', '.join(sorted(unknown))}")
        registry = jws.JWSRegistry(algorithms=self.algorithms, strict_check_header=False)
        registry.max_header_length = _HEADER_LIMIT
        claims = JWTClaimsRegistry(
            leeway=self.leeway,
            iss={"essential": True, "value": self.issuer},
            aud={"essential": True, "values": audience},
            exp={"essential": True},
        )
        object.__setattr__(self, "_source", self.keys or RemoteKeys(issuer=self.issuer))
        object.__setattr__(self, "_registry", registry)
        object.__setattr__(self, "_claims", claims)

    @property
    def scheme(self) -> v1.SecurityScheme:
        """What `card` says, or what the way of finding keys tells."""
        if self.card is not None:
            return self.card
        if self.keys is None:
            url = self.issuer.rstrip("/") + DISCOVERY
            about = v1.OpenIdConnectSecurityScheme(open_id_connect_url=url)
            return v1.SecurityScheme(open_id_connect_security_scheme=about)
        return v1.SecurityScheme(
            http_auth_security_scheme=v1.HTTPAuthSecurityScheme(scheme="Bearer", bearer_format="JWT")
        )

    async def authenticate(self, credentials: Credentials) -> Caller | None:
        """The caller that the token names. Raises UnavailableError when the issuer's keys cannot be had."""
        token = authorization_header(credentials, "bearer")
        if token is None:
            return None
        claims = await self._verified(token)
        subject = self.subject(claims) if self.subject else f"{self.issuer}|{claims['sub']}" if _sub(claims) else ""
        tenants = frozenset(_words(claims.get(self.tenant_claim))) if self.tenant_claim else None
        scopes = frozenset((*_words(claims.get("scope")), *_words(claims.get("scp"))))
        return Caller(subject, True, scopes, claims, tenants)

    async def _verified(self, token: str) -> dict[str, Any]:
        """The claims of a token that stands every check."""
        try:
            signed = jws.extract_compact(token.encode(), registry=self._registry)
            header = signed.headers()
            if header.get("alg") not in self.algorithms:
                raise UnauthenticatedError("the token's algorithm is not accepted")
            kid = header.get("kid")
            candidates = await self._source.keys(kid if isinstance(kid, str) else None)
            if not any(self._signed(signed, key) for key in candidates):
                raise UnauthenticatedError("no key of the issuer has signed the token")
            claims = orjson.loads(signed.payload or b"")
            if not isinstance(claims, dict):
                raise UnauthenticatedError("the token holds no claims")
            self._claims.validate(claims)
        except JoseError as fault:
            claim = getattr(fault, "claim", "")
            about = claim if claim in ("iss", "aud", "exp", "nbf", "iat", "sub") else ""
            raise UnauthenticatedError(f"the token is refused: {fault.error} {about}".rstrip()) from None
        except (ValueError, TypeError, KeyError, OverflowError):
            raise UnauthenticatedError("the token cannot be read") from None
        return claims

    def _signed(self, signed: jws.CompactSignature, key: Any) -> bool:
        try:
            return jws.validate_compact(signed, key, registry=self._registry)
        except (JoseError, ValueError, TypeError):  # a key of another kind
            return False


def _sub(claims: Mapping[str, Any]) -> bool:
    return isinstance(claims.get("sub"), str) and bool(claims["sub"])


def _words(value: Any) -> list[str]:
    """The words of a claim, which is a text with blanks or a list."""
    if isinstance(value, str):
        return value.split()
    return [word for word in value if isinstance(word, str)] if isinstance(value, list) else []
