"""`a2a-grpc card`: cards are signed and verified from the command line, with an exit code for what came of it."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from joserfc.jwk import ECKey, RSAKey

from a2a_grpc.agent import Agent, Skill
from a2a_grpc.cli import main
from a2a_grpc.config import Options
from a2a_grpc.server import Server
from tests.signed_cards import HARD

CARD = HARD["texts"]


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder, which is the current one, with a card and two keys in their parts."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "card.json").write_text(json.dumps(CARD))
    for name, key in (("ec", ECKey.generate_key("P-256")), ("rsa", RSAKey.generate_key(2048))):
        (tmp_path / f"{name}.pem").write_bytes(key.as_pem(private=True))
        (tmp_path / f"{name}.pub").write_bytes(key.as_pem(private=False))
    return tmp_path


def card(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, Any, str]:
    """The exit code, the printed document, and what was said beside it."""
    code = main(["card", *words])
    said = capsys.readouterr()
    return code, json.loads(said.out) if said.out else None, said.err


@pytest.mark.requirement("SIGN-01", "SIGN-06", "SIGN-08", "SIGN-10")
def test_a_file_is_signed_and_verified(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, signed, _ = card(capsys, "sign", "card.json", "--key", "ec.pem", "--jku", "https://keys.example")
    assert code == 0 and {**signed, "signatures": None} == {**CARD, "signatures": None}
    (files / "signed.json").write_text(json.dumps(signed))
    code, found, _ = card(capsys, "verify", "signed.json", "--key", "rsa.pub", "--key", "ec.pub")
    assert (code, found["form"], found["alg"], found["jku"]) == (0, "spec", "ES256", "https://keys.example")
    assert found["name"] == CARD["name"] and found["kid"]
    for words, told in (
        (("--key", "rsa.pub"), "signatures[0] names a key that is not for ES256"),
        (("--key", "ec.pub", "--algorithm", "RS256"), "is made with 'ES256', which is not accepted"),
        (("--trust", "other.example"), "names no trusted key"),
    ):
        code, found, said = card(capsys, "verify", "signed.json", *words)
        assert (code, found) == (1, None) and said.startswith("INVALID_AGENT_RESPONSE: the card at signed.json")
        assert told in said and said.count("\n") == 1


def test_signatures_of_others_stay_and_ones_own_are_replaced(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for key, count in (("ec.pem", 1), ("rsa.pem", 2), ("ec.pem", 2)):
        code, signed, _ = card(capsys, "sign", "card.json", "--key", key)
        assert code == 0 and len(signed["signatures"]) == count
        (files / "card.json").write_text(json.dumps(signed))
    for key in ("ec.pub", "rsa.pub"):
        assert card(capsys, "verify", "card.json", "--key", key, "--form", "spec")[0] == 0


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("verify", "card.json"), "no card can be verified without keys"),
        (("verify", "card.json", "--key", "gone.pem"), "gone.pem"),
        (("verify", "card.json", "--key", "card.json"), "there are no keys"),
        (("verify", "gone.json", "--key", "ec.pub"), "gone.json"),
        (("verify", "card.json", "--key", "ec.pub", "--form", "loose"), "not a form of signed cards: loose"),
        (("verify", "card.json", "--jwks", "http://keys.example/"), "keys must come from an https address"),
        (("sign", "card.json"), "there is no private key"),
        (("sign", "card.json", "--key", "ec.pub"), "there is no private key"),
        (("sign", "old.json", "--key", "ec.pem"), "old.json is not a card of version 1.0"),
        (("fold", "card.json"), "invalid choice: 'fold'"),
    ],
)
def test_mistakes_are_told_in_one_line(
    files: Path, words: tuple[str, ...], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (files / "old.json").write_text('{"name": "Old", "url": "https://old.example"}')
    code, found, said = card(capsys, *words)
    assert (code, found) == (2, None) and told in said and said.count("\n") == 1


@pytest.mark.requirement("SIGN-08", "SIGN-10")
async def test_the_card_of_a_running_agent_is_verified(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    agent = Agent(name="Here", description="Is here.", version="1", skills=[Skill(id="s", name="S")])
    agent.handle(lambda task: "done")
    settings: dict[str, Any] = {"store": "memory:", "grace": 0.0, "grpc": "", "http": "127.0.0.1:0"}
    signing = {"card_keys": ("ec.pem",), "public_url": "https://agent.example"}

    async def verified(url: str) -> tuple[int, Any, str]:
        return await asyncio.to_thread(card, capsys, "verify", url, "--key", "ec.pub")

    async with Server(agent, Options(**settings, **signing)) as server, Server(agent, Options(**settings)) as other:
        code, found, _ = await verified(server.http_url)
        assert (code, found["name"], found["form"]) == (0, "Here", "spec")
        code, _, said = await verified(other.http_url + "/.well-known/agent-card.json")
        assert code == 1 and "it is not signed" in said
        code, signed, _ = await asyncio.to_thread(card, capsys, "sign", other.http_url, "--key", "rsa.pem")
        assert code == 0 and signed["name"] == "Here"
