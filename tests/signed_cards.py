"""Cards that are hard to sign alike, and keys to sign them with."""

import json
from functools import cache
from pathlib import Path
from typing import Any, Final

from joserfc.jwk import ECKey, Key, OKPKey, RSAKey

_PLAIN: Final[dict[str, Any]] = {
    "name": "Plain",
    "description": "Nothing special.",
    "version": "1.0.0",
    "supportedInterfaces": [
        {"url": "https://agent.example/", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"},
        {"url": "https://agent.example", "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0", "tenant": "t"},
    ],
    "capabilities": {"streaming": True},
    "defaultInputModes": ["text/plain"],
    "defaultOutputModes": ["text/plain"],
    "skills": [{"id": "s", "name": "S", "description": "Does it.", "tags": ["a", "b"], "examples": ["do it"]}],
}

_PARAMS: Final = {
    "1.0": 1.0,
    "half": 0.5,
    "large": 1e21,
    "larger": 1.5e300,
    "tiny": 1e-7,
    "small": 0.000001,
    "edge": 9007199254740992,
    "negative": -0.0,
    "third": 333333333.33333329,
    "deep": {"z": {"y": [{"x": [1, [2.5, {"w": False}]]}]}, "a": True},
    "\U0001f600": "\U0001f600",
    "\ufb33": "after the emoji by code unit, before it by code point",
    "é": "e\u0301",
    "€": '\u0000\u001f\u007f"\\/\u2028',
    "10": "ten",
    "9": "nine",
    "A": 1,
    "a": 2,
    "__proto__x": 3,
}

SCHEMES: Final = {
    "key": {"apiKeySecurityScheme": {"location": "header", "name": "X-Key", "description": "a key"}},
    "http": {"httpAuthSecurityScheme": {"scheme": "Bearer", "bearerFormat": "JWT"}},
    "oidc": {"openIdConnectSecurityScheme": {"openIdConnectUrl": "https://id.example/.well-known"}},
    "oauth": {
        "oauth2SecurityScheme": {
            "flows": {
                "authorizationCode": {
                    "authorizationUrl": "https://id.example/a",
                    "tokenUrl": "https://id.example/t",
                    "scopes": {"read": "Read", "10": "ten", "9": "nine"},
                    "pkceRequired": True,
                }
            }
        }
    },
}


def _with(**members: Any) -> dict[str, Any]:
    return {**_PLAIN, **members}


HARD: Final[dict[str, dict[str, Any]]] = {
    "plain": _PLAIN,
    "texts": _with(
        name="Zürich 東京 \U0001f600\U0001f1e8\U0001f1ed", description='"\\/\b\f\n\r\t\u0001\u2028 e\u0301 é'
    ),
    "explicit defaults": _with(
        capabilities={"streaming": False, "pushNotifications": False, "extendedAgentCard": False},
        documentationUrl="https://agent.example/doc",
    ),
    "schemes": _with(securitySchemes=SCHEMES, securityRequirements=[{"schemes": {"oauth": {"list": ["read"]}}}]),
    "params": _with(
        capabilities={"streaming": True, "extensions": [{"uri": "urn:x", "required": True, "params": _PARAMS}]}
    ),
    "required but empty": _with(description="", skills=[], defaultInputModes=[], supportedInterfaces=[]),
    "empty by presence": _with(documentationUrl="", iconUrl="", capabilities={}),
    "empty schemes": _with(
        securitySchemes={**SCHEMES, "mtls": {"mtlsSecurityScheme": {}}},
        securityRequirements=[{"schemes": {"key": {}, "mtls": {}}}, {"schemes": {}}],
    ),
    "empty in params": _with(
        capabilities={"extensions": [{"uri": "urn:x", "params": {"a": "", "b": [], "c": {}, "d": None, "e": [[], ""]}}]}
    ),
    "defaults written out": _with(
        securityRequirements=[],
        provider={"organization": "", "url": ""},
        capabilities={"extensions": [{"uri": "urn:x", "description": "", "required": False}]},
    ),
}
"""Cards by what is hard about them (BL-47)."""

EMPTY: Final = frozenset(list(HARD)[5:])
"""Those of `HARD` in which something is there and empty."""


@cache
def keys_for(algorithm: str) -> Key:
    """A private key for an algorithm."""
    if algorithm.startswith("ES"):
        return ECKey.generate_key({"256": "P-256", "384": "P-384", "512": "P-521"}[algorithm[2:]])
    return _rsa() if algorithm[1] == "S" else OKPKey.generate_key("Ed25519")


@cache
def _rsa() -> RSAKey:
    return RSAKey.generate_key(2048)


def key_files(key: Key, algorithm: str, folder: Path) -> list[Path]:
    """The key in every shape that a file may have; PEM names no algorithm, so only where the usual one is meant."""
    told = {**key.as_dict(private=True), "alg": algorithm, "kid": f"key {algorithm}"}
    jwk, jwks, pem = folder / "key.jwk", folder / "keys.json", folder / "key.pem"
    jwk.write_text(json.dumps(told))
    jwks.write_text(json.dumps({"keys": [told]}))
    pem.write_bytes(key.as_pem(private=True))
    return [jwk, jwks, *([pem] if algorithm in ("ES256", "ES384", "ES512", "RS256", "EdDSA") else [])]
