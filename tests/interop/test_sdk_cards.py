"""Cards signed here and verified by the official SDKs, and the reverse, over every algorithm and every hard card."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from joserfc.jwk import import_key

from a2a_grpc.agent import Agent, Extension, Skill
from a2a_grpc.auth import ApiKey, hashed
from a2a_grpc.auth_keys import FixedKeys
from a2a_grpc.config import Options
from a2a_grpc.server import Server
from a2a_grpc.signing import ALGORITHMS, Signer
from a2a_grpc.verification import FORMS, SPEC, Verifier
from tests.interop.conftest import made, steps
from tests.signed_cards import EMPTY, HARD, keys_for

HERE = Path(__file__).parent
SDKS = {"sdk1": ("A2A_SDK1_PYTHON", "cards.py"), "node1": ("A2A_NODE1_MODULES", "cards.mjs")}
KNOWN = [algorithm for algorithm in ALGORITHMS if algorithm != "Ed25519"]
"""The names of algorithms that both SDKs know; Ed25519 is the later name of one kind of EdDSA."""

KEYS = {name: {**keys_for(name).as_dict(private=True), "alg": name, "kid": name} for name in KNOWN}
CARDS = [(name, "ES256", card) for name, card in HARD.items()]
CARDS += [("texts", algorithm, HARD["texts"]) for algorithm in KNOWN if algorithm != "ES256"]

REFUSED = {
    "sdk1": (),
    # Its reader keeps security schemes in another shape, which the reader inside its verifier takes for empty.
    "node1": ("read and verify schemes ES256", "read and verify empty schemes ES256", "fetch closed"),
}
"""Known differences: what an SDK does not verify although it is right."""


def signed(card: dict[str, Any], kid: str) -> dict[str, Any]:
    return {**card, "signatures": Signer([import_key(KEYS[kid])]).signatures(card)}


def agent(name: str) -> Agent:
    params = {"é": ["", None, 1.0, {}], "\U0001f600": 1e21, "\ufb33": {"b": [], "a": 0.5}}
    made_of = Agent(
        name=f"{name} ☃",
        description="Signs.",
        version="1",
        skills=[Skill(id="s", name="S")],
        extensions=[Extension("urn:x", params=params)],
    )

    @made_of.handle
    async def work(task: Any) -> str:
        return "done"

    return made_of


@pytest.mark.requirement("BL-47", "SIGN-01", "SIGN-02", "SIGN-03", "SIGN-04", "SIGN-05", "SIGN-06", "SIGN-07", "I-58")
@pytest.mark.parametrize("sdk", SDKS)
async def test_cards_signed_here_verify_there_and_the_reverse(sdk: str, tmp_path: Path) -> None:
    variable, program = SDKS[sdk]
    place, told, key = made(variable), tmp_path / "told.json", tmp_path / "key.json"
    key.write_text(json.dumps(KEYS["ES256"]))
    options = Options(
        grpc="127.0.0.1:0",
        http="127.0.0.1:0",
        store="memory:",
        grace=0.0,
        public_url="https://agent.example",
        card_keys=(str(key),),
    )
    closed = ApiKey({hashed("a"): "ann"})
    async with Server(agent("Open"), options) as one, Server(agent("Closed"), options, authenticators=closed) as two:
        sent = [(name, kid, signed(card, kid)) for name, kid, card in CARDS]
        fetch = {"open": one.http_url, "closed": two.http_url}
        told.write_text(json.dumps({"keys": KEYS, "sign": CARDS, "verify": sent, "fetch": fetch}))
        run = place if program.endswith(".py") else "node"
        found = await asyncio.to_thread(steps, run, HERE / sdk / program, told)
    assert len(found) > 2 * len(CARDS)
    for step, facts in found.items():
        if not step.startswith("sign "):
            assert (step, facts["right"]) == (step, step not in REFUSED[sdk])
    for name, kid, _ in CARDS:
        verifier = Verifier(FixedKeys({"keys": list(KEYS.values())}), forms=FORMS)
        verified = await verifier.verify(found[f"sign {name} {kid}"]["card"], "")
        assert verified is not None and verified.alg == kid
        assert (name, verified.form == SPEC) == (name, name not in EMPTY)
