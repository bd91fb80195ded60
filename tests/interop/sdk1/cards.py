"""Signs cards with a2a-sdk 1.x and verifies ours. Usage: cards.py FILE; prints one JSON line a card.

FILE holds `keys`, private JSON Web Keys by their ids, `sign` and `verify`, lists of a name, a key's id and a card, and
`fetch`, base URLs by name.
"""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import httpx
from a2a.client import A2ACardResolver
from a2a.types import AgentCard
from a2a.utils.signing import SignatureVerificationError, create_agent_card_signer, create_signature_verifier
from google.protobuf.json_format import MessageToDict, ParseDict
from jwt import PyJWK

TOLD = json.loads(Path(sys.argv[1]).read_text())
KEYS = {kid: PyJWK(key) for kid, key in TOLD["keys"].items()}
PUBLIC = ("kty", "crv", "x", "y", "n", "e", "alg")
SHOWN = {kid: PyJWK({name: key[name] for name in PUBLIC if name in key}) for kid, key in TOLD["keys"].items()}
verify = create_signature_verifier(lambda kid, jku: SHOWN[str(kid)], [key["alg"] for key in TOLD["keys"].values()])


def sign(card: Any, kid: str) -> Any:
    header: Any = {"kid": kid, "alg": TOLD["keys"][kid]["alg"], "jku": None, "typ": "JOSE"}
    return create_agent_card_signer(KEYS[kid], header)(card)


def judged(step: str, card: Any) -> None:
    try:
        verify(card)
    except SignatureVerificationError:
        print(json.dumps({"step": step, "right": False}))
    else:
        print(json.dumps({"step": step, "right": True}))


def read(card: Any) -> AgentCard:
    return ParseDict(card, AgentCard(), ignore_unknown_fields=True)


async def fetched(url: str) -> AgentCard:
    async with httpx.AsyncClient() as session:
        return await A2ACardResolver(session, url).get_agent_card()


for name, kid, card in TOLD["sign"]:
    print(json.dumps({"step": f"sign {name} {kid}", "card": MessageToDict(sign(read(card), kid))}))
for name, kid, card in TOLD["verify"]:
    judged(f"verify {name} {kid}", read(card))
for name, url in TOLD["fetch"].items():
    judged(f"fetch {name}", asyncio.run(fetched(url)))
