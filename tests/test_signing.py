"""Signed cards: what is signed, byte for byte, with every kind of key, and when a signature is believed."""

import base64
import json
import struct
import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta, timezone
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from a2a_stubs import v1
from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import Encoding
from joserfc import jws
from joserfc.jwk import ECKey, Key, OctKey, RSAKey

from a2a_grpc import protojson
from a2a_grpc.auth_keys import FixedKeys, RemoteKeys
from a2a_grpc.config import OptionError
from a2a_grpc.errors import InvalidAgentResponseError, UnavailableError
from a2a_grpc.signing import ALGORITHMS, Signer, canonical, encoded, filled_form, spec_form, unsigned
from a2a_grpc.verification import DOCUMENT, FILLED, FORMS, SPEC, Verified, Verifier
from tests.peers import listening
from tests.signed_cards import HARD, key_files, keys_for

Json = dict[str, Any]
EC = ECKey.generate_key("P-256", {"kid": "ec"})
URL = "https://agent.example/.well-known/agent-card.json"
CARD = HARD["plain"]


def signed(card: Json = CARD, *keys: Key, **settings: Any) -> Json:
    return {**card, "signatures": Signer(keys or (EC,), **settings).signatures(card)}


def public(*keys: Key) -> FixedKeys:
    return FixedKeys({"keys": [key.as_dict(private=False) for key in keys or (EC,)]})


def resigned(card: Json, key: Key = EC, payload: Json | None = None, **header: Any) -> Json:
    """A card with one signature whose header says what it likes."""
    told = {"alg": "ES256", "kid": "ec", "typ": "JOSE", **header}
    protected = encoded(json.dumps({name: value for name, value in told.items() if value is not None}).encode())
    message = f"{protected}.{encoded(canonical(unsigned(payload or spec_form(card))))}".encode()
    made = jws.JWSRegistry.algorithms["ES256"].sign(message, key)
    return {**card, "signatures": [{"protected": protected, "signature": encoded(made)}]}


async def refusal(verifier: Verifier, document: Any) -> str:
    with pytest.raises(InvalidAgentResponseError) as caught:
        await verifier.verify(document, URL)
    return caught.value.message


# -- what is signed


DOUBLES = {
    "0000000000000000": "0",
    "8000000000000000": "0",
    "0000000000000001": "5e-324",
    "8000000000000001": "-5e-324",
    "7fefffffffffffff": "1.7976931348623157e+308",
    "4340000000000000": "9007199254740992",
    "c340000000000000": "-9007199254740992",
    "4430000000000000": "295147905179352830000",
    "44b52d02c7e14af5": "9.999999999999997e+22",
    "44b52d02c7e14af6": "1e+23",
    "44b52d02c7e14af7": "1.0000000000000001e+23",
    "444b1ae4d6e2ef4e": "999999999999999700000",
    "444b1ae4d6e2ef4f": "999999999999999900000",
    "444b1ae4d6e2ef50": "1e+21",
    "3eb0c6f7a0b5ed8c": "9.999999999999997e-7",
    "3eb0c6f7a0b5ed8d": "0.000001",
    "41b3de4355555553": "333333333.3333332",
    "becbf647612f3696": "-0.0000033333333333333333",
    "43143ff3c1cb0959": "1424953923781206.2",
}
"""The numbers of RFC 8785, appendix B."""


@pytest.mark.requirement("SIGN-05")
def test_numbers_are_written_as_the_rfc_says():
    found = {bits: canonical(struct.unpack(">d", bytes.fromhex(bits))[0]).decode() for bits in DOUBLES}
    assert found == DOUBLES
    assert canonical([1.0, 10**21, 2**53, 2**53 + 1, -(2**60)]) == (
        b"[1,1e+21,9007199254740992,9007199254740992,-1152921504606847000]"
    )


@pytest.mark.requirement("SIGN-05")
def test_names_and_texts_are_written_as_the_rfc_says():
    names = ["\r", "1", "\u0080", "ö", "€", "\U0001f600", "\ufb33"]
    assert [*json.loads(canonical(dict.fromkeys(reversed(names), 0)))] == names
    text = '€$\u000f\nA\'B"\\\\"/\u007f\u2028\U0001f600'
    assert canonical(text) == '"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/\u007f\u2028\U0001f600"'.encode()
    assert canonical({"b": [True, False, None, [], {}], "a": ""}) == b'{"a":"","b":[true,false,null,[],{}]}'


@pytest.mark.requirement("SIGN-02", "SIGN-03", "I-58")
def test_the_example_of_the_standard_is_signed_as_it_says():
    card = {
        "name": "Example Agent",
        "description": "",
        "capabilities": {"streaming": False, "pushNotifications": False, "extensions": []},
        "skills": [],
        "signatures": [{"protected": "x", "signature": "y"}],
    }
    wanted = b'{"capabilities":{"pushNotifications":false,"streaming":false},"description":"","name":"Example Agent"'
    form = {name: value for name, value in spec_form(card).items() if name in card}
    assert canonical(form) == wanted + b',"skills":[]}'
    rest = {name: value for name, value in spec_form(card).items() if name not in card}
    assert rest == {"supportedInterfaces": [], "version": "", "defaultInputModes": [], "defaultOutputModes": []}


@pytest.mark.requirement("SIGN-03", "SIGN-04")
def test_what_was_set_stays_and_what_was_not_is_left_out():
    card = {
        "securitySchemes": {"m": {"mtlsSecurityScheme": {}}, "k": {"apiKeySecurityScheme": {"description": ""}}},
        "securityRequirements": [{"schemes": {"m": {"list": []}}}],
        "capabilities": {
            "streaming": None,
            "extensions": [{"uri": "u", "required": False, "params": {"e": "", "l": [], "o": {}, "n": None, "z": 0.0}}],
        },
        "documentationUrl": "",
        "unknown": 1,
    }
    form = spec_form(card)
    assert form["securitySchemes"] == {
        "m": {"mtlsSecurityScheme": {}},
        "k": {"apiKeySecurityScheme": {"location": "", "name": ""}},
    }
    assert form["securityRequirements"] == [{"schemes": {"m": {}}}]
    assert form["capabilities"] == {
        "extensions": [{"uri": "u", "params": {"e": "", "l": [], "o": {}, "n": None, "z": 0}}]
    }
    assert form["documentationUrl"] == "" and "iconUrl" not in form and "unknown" not in form
    assert filled_form(card) == {"capabilities": {"extensions": [{"uri": "u", "params": {"z": 0}}]}}


# -- signing


@pytest.mark.requirement("SIGN-01", "SIGN-06", "SIGN-07", "SIGN-08")
@pytest.mark.parametrize("algorithm", ALGORITHMS)
async def test_every_algorithm_signs_and_verifies(algorithm: str, tmp_path: Path):
    key = keys_for(algorithm)
    for file in key_files(key, algorithm, tmp_path):
        signer = Signer.from_files([file], "https://keys.example/jwks.json")
        document = {**CARD, "signatures": signer.signatures(CARD)}
        [header] = [json.loads(_bytes(signature["protected"])) for signature in document["signatures"]]
        wanted = {"alg": algorithm, "kid": header["kid"], "typ": "JOSE", "jku": "https://keys.example/jwks.json"}
        assert header == wanted and header["kid"]
        assert not any("=" in text for text in document["signatures"][0].values())
        found = await Verifier(FixedKeys(signer.jwks)).verify(document, URL)
        assert found is not None and (found.alg, found.kid, found.form) == (algorithm, header["kid"], SPEC)
        assert {"d", "p", "q", "dp", "dq", "qi", "k"}.isdisjoint(signer.jwks["keys"][0])


def _bytes(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


@pytest.mark.requirement("SIGN-01")
async def test_keys_are_rotated_by_signing_with_both():
    old, new = ECKey.generate_key("P-256", {"kid": "old"}), RSAKey.generate_key(2048, {"kid": "new"})
    both, gone = signed(CARD, old, new), ECKey.import_key(old.as_dict(private=False))
    for key in (old, new):
        found = await Verifier(public(key)).verify(both, URL)
        assert found is not None and found.kid == key.kid
    signer = Signer([new, gone])
    assert [key["kid"] for key in signer.jwks["keys"]] == ["new", "old"]
    assert len(signer.signatures(CARD)) == 1


@pytest.mark.filterwarnings("ignore::joserfc.errors.SecurityWarning")
@pytest.mark.requirement("SIGN-09", "SIGN-11")
def test_keys_that_must_not_sign_are_refused():
    for key, told in (
        (public_only(EC), "no private key"),
        (OctKey.generate_key(256), "cannot sign cards"),
        (RSAKey.generate_key(1024, auto_kid=True), "fewer than 2048 bits"),
        (ECKey.generate_key("P-256", {"kid": "x", "exp": 1}), "has expired"),
        (ECKey.generate_key("P-256", {"kid": "x", "exp": "2999-01-01"}), "no number of seconds as exp"),
        (ECKey.generate_key("P-256", {"kid": "x", "nbf": True}), "no number of seconds as nbf"),
        (ECKey.generate_key("P-256", {"kid": "x", "alg": "ES384"}), "is not for ES384"),
        (ECKey.generate_key("P-256", {"kid": "x", "use": "enc"}), "is not for ES256"),
        (ECKey.generate_key("P-256", {"kid": "x", "key_ops": ["verify"]}), "does not sign"),
    ):
        with pytest.raises(OptionError, match=told):
            Signer([key])


def test_two_keys_of_one_name_are_refused_and_one_key_may_come_twice():
    with pytest.raises(OptionError, match="the same name: ec"):
        Signer([EC, ECKey.generate_key("P-256", {"kid": "ec"})])
    assert len(Signer([EC, public_only(EC)]).jwks["keys"]) == 1


async def test_what_is_published_verifies_although_the_private_key_may_only_sign():
    signer = Signer([ECKey.generate_key("P-256", {"kid": "x", "key_ops": ["sign"]})])
    document = {**CARD, "signatures": signer.signatures(CARD)}
    assert (await Verifier(FixedKeys(signer.jwks)).verify(document, URL)).kid == "x"


def test_an_encrypted_key_is_called_so(tmp_path: Path):
    (tmp_path / "key.pem").write_bytes(EC.as_pem(private=True, password="secret"))
    with pytest.raises(OptionError, match=r"key\.pem is encrypted"):
        Signer.from_files([tmp_path / "key.pem"])


def public_only(key: Key) -> Key:
    return ECKey.import_key(key.as_dict(private=False))


@pytest.mark.requirement("SIGN-07", "I-58")
def test_a_card_message_gets_its_signatures_once():
    card, signer = protojson.decode(v1.AgentCard, CARD), Signer([EC])
    signer.sign(card)
    first = [signature.signature for signature in card.signatures]
    signer.sign(card)
    assert [signature.signature for signature in card.signatures] == first != []
    card.name = "Another"
    signer.sign(card)
    assert [signature.signature for signature in card.signatures] != first
    sparse = Signer([EC]).signatures({**CARD, "description": ""})
    assert len(sparse) == 2, "the second is for readers that drop what is empty"


# -- verifying


@pytest.mark.requirement("SIGN-02", "SIGN-04", "SIGN-05", "SIGN-08", "BL-47")
@pytest.mark.parametrize("name", HARD)
async def test_hard_cards_survive_the_way(name: str):
    card = HARD[name]
    sent = json.dumps(signed(card), ensure_ascii=True, sort_keys=True).encode()
    found = await Verifier(public()).verify(protojson.loads(sent), URL)
    assert found is not None and found.form == SPEC
    over_grpc = v1.AgentCard.FromString(found.card.SerializeToString())
    assert (await Verifier(public()).verify(protojson.encode(over_grpc), URL)) is not None


CHANGES: dict[str, Callable[[Json], Any]] = {
    "a text": lambda card: card.update(description="Trust me."),
    "an address": lambda card: card["supportedInterfaces"][0].update(url="https://evil.example"),
    "one thing more": lambda card: card["skills"].append({"id": "x", "name": "x", "description": "", "tags": []}),
    "one thing less": lambda card: card["skills"].clear(),
    "an empty requirement": lambda card: card.update(securityRequirements=[{"schemes": {}}]),
    "a set default": lambda card: card["capabilities"].update(extendedAgentCard=False),
    "a parameter": lambda card: card["capabilities"].update(extensions=[{"uri": "u", "params": {}}]),
}


@pytest.mark.requirement("SIGN-02", "SIGN-03", "SIGN-10")
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
async def test_a_changed_card_is_refused(change: Callable[[Json], Any]):
    document = json.loads(json.dumps(signed()))
    change(document)
    assert "does not fit what the card says" in await refusal(Verifier(public()), document)


@pytest.mark.requirement("SIGN-10")
async def test_what_was_added_beside_the_signed_members_is_not_in_the_card_that_is_believed():
    bare = {**CARD, "supportedInterfaces": [], "securityRequirements": []}
    document = {**signed(bare), "url": "https://evil.example", "security": [{"evil": []}], "protocolVersion": "0.3.0"}
    card = await Verifier(public())(document, URL)
    assert card is not None and not card.supported_interfaces and not card.security_requirements


@pytest.mark.requirement("SIGN-08", "I-58")
async def test_other_forms_are_told_apart():
    whole = {**CARD, "newMember": {"a": 1.0}, "description": ""}
    verifier = Verifier(public(), forms=FORMS)
    for payload, form in ((spec_form(whole), SPEC), (whole, DOCUMENT), (filled_form(whole), FILLED)):
        found = await verifier.verify(resigned(whole, payload=payload), URL)
        assert found is not None and found.form == form
    assert "does not fit" in await refusal(Verifier(public()), resigned(whole, payload=filled_form(whole)))
    old = {"name": "Old", "url": "https://old.example", "preferredTransport": "JSONRPC", "protocolVersion": "0.3.0"}
    found = await Verifier(public()).verify(resigned(old, payload=old), URL)
    assert found is not None and found.form == DOCUMENT
    assert found.card.supported_interfaces[0].url == "https://old.example"


@pytest.mark.requirement("SIGN-10")
async def test_a_card_without_signatures_is_refused_unless_it_is_let_in():
    for document in (CARD, {**CARD, "signatures": []}, [], None):
        assert "is not signed" in await refusal(Verifier(public()), document)
    lenient = Verifier(public(), must_be_signed=False)
    assert await lenient(CARD, URL) is None
    assert "names no trusted key" in await refusal(lenient, signed(CARD, ECKey.generate_key("P-256", {"kid": "?"})))


HEADERS: dict[str, tuple[Json, str]] = {
    "none": ({"alg": "none"}, "'none', which is not accepted"),
    "shared secret": ({"alg": "HS256"}, "'HS256', which is not accepted"),
    "no algorithm": ({"alg": None}, "'', which is not accepted"),
    "another algorithm": ({"alg": "ES384"}, "is not for ES384"),
    "another kind": ({"alg": "RS256"}, "is not for RS256"),
    "unknown key": ({"kid": "other"}, "names no trusted key: 'other'"),
    "critical": ({"crit": ["b64"], "b64": False}, "needs extensions that are not known"),
    "a place nobody trusts": ({"kid": "other", "jku": "https://evil.example/jwks"}, "at 'https://evil.example/jwks'"),
}


@pytest.mark.requirement("SIGN-08", "SIGN-11")
@pytest.mark.parametrize(("header", "told"), HEADERS.values(), ids=HEADERS)
async def test_a_header_that_says_too_much_is_refused(header: Json, told: str):
    assert told in await refusal(Verifier(public()), resigned(CARD, **header))


@pytest.mark.requirement("SIGN-11")
async def test_only_listed_algorithms_are_accepted():
    assert "which is not accepted" in await refusal(Verifier(public(), algorithms=["RS256"]), signed())
    for settings in ({"algorithms": ["none"]}, {"algorithms": ["HS256"]}, {"forms": ["loose"]}):
        with pytest.raises(OptionError):
            Verifier(public(), **settings)
    with pytest.raises(OptionError):
        Verifier()


@pytest.mark.parametrize(
    "signatures",
    [
        {},
        "x",
        [None],
        [{}],
        [{"protected": "e30", "signature": ""}],
        [{"protected": "W10", "signature": "AA"}],
        [{"protected": "eyJhbGciOiJFUzI1NiIsImFsZyI6Im5vbmUifQ", "signature": "AA"}],
        [{"protected": "?", "signature": "AA"}],
        [{"protected": "A", "signature": "AA"}],
    ],
    ids=repr,
)
async def test_any_signature_gets_an_answer(signatures: Any):
    assert "not to be trusted" in await refusal(Verifier(public()), {**CARD, "signatures": signatures})


async def test_a_card_that_is_nested_too_deep_has_no_form():
    deep: Any = {}
    for _ in range(1000):
        deep = {"a": deep}
    assert "not to be trusted" in await refusal(Verifier(public()), {**signed(), "more": deep, "skills": 3})


def certificate(key: Key, begin: datetime) -> list[str]:
    """A certificate of a day as a key names it."""
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "x")])
    built = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key)
    built = built.serial_number(1).not_valid_before(begin).not_valid_after(begin + timedelta(days=1))
    made = built.sign(key.private_key, hashes.SHA256())
    return [base64.b64encode(made.public_bytes(Encoding.DER)).decode()]


NOW = time.time()
TODAY = datetime.now(timezone.utc)
DAY = 86_400
TIMES: dict[str, tuple[Json, str]] = {
    "expired": ({"exp": NOW - 1}, "has expired"),
    "too early": ({"nbf": NOW + DAY}, "is not valid yet"),
    "no time": ({"exp": str(NOW + DAY)}, "no number of seconds as exp"),
    "revoked": ({"revoked": {"revoked_at": 1}}, "is revoked"),
    "old certificate": ({"x5c": certificate(EC, TODAY - timedelta(days=2))}, "has expired"),
    "early certificate": ({"x5c": certificate(EC, TODAY + timedelta(days=1))}, "is not valid yet"),
}


@pytest.mark.requirement("SIGN-09")
@pytest.mark.parametrize(("members", "told"), TIMES.values(), ids=TIMES)
async def test_keys_out_of_their_time_are_not_used(members: Json, told: str):
    key = {**EC.as_dict(private=False), **members}
    assert told in await refusal(Verifier(FixedKeys({"keys": [key]})), signed())
    fine = {**key, "exp": NOW + DAY, "nbf": NOW - 1000, "revoked": None, "x5c": certificate(EC, TODAY)}
    kept = {name: value for name, value in fine.items() if value is not None}
    assert await Verifier(FixedKeys({"keys": [kept]})).verify(signed(), URL)


@pytest.mark.requirement("SIGN-08")
async def test_keys_come_from_functions_and_the_last_word_is_ones_own():
    asked: list[tuple[str, str]] = []
    seen: list[Verified] = []

    async def provider(kid: str, jku: str) -> Sequence[Key]:
        asked.append((kid, jku))
        return [EC]

    async def away(kid: str, jku: str) -> Sequence[Key]:
        raise UnavailableError

    def later(found: Verified) -> Awaitable[bool]:
        async def judged() -> bool:
            return False

        return judged()

    document = signed(jku="https://keys.example/jwks")
    found = await Verifier(away, provider, accept=lambda one: not seen.append(one), clock=lambda: 7.0)(document, URL)
    assert found is not None and asked == [("ec", "https://keys.example/jwks")]
    assert (seen[0].url, seen[0].time, seen[0].jku, seen[0].card.name) == (URL, 7.0, asked[0][1], CARD["name"])
    assert "refused here" in await refusal(Verifier(provider, accept=later), document)
    with pytest.raises(UnavailableError):
        await Verifier(away).verify(document, URL)


# -- keys at an address


class KeyServer:
    """Publishes keys, and counts who asks."""

    def __init__(self) -> None:
        self.jwks: Json = {"keys": [EC.as_dict(private=False)]}
        self.asked: list[str] = []
        self.url = self.place = ""

    async def answer(self, request: web.Request) -> web.Response:
        self.asked.append(request.path)
        if request.path == "/moved":
            raise web.HTTPFound("/jwks")
        return web.json_response(self.jwks)


@pytest.fixture
async def key_server():
    server = KeyServer()
    async with listening(server.answer) as server.place:
        server.url = f"http://{server.place}/jwks"
        yield server


@pytest.mark.requirement("SIGN-08", "SIGN-10", "SIGN-11")
async def test_keys_are_fetched_from_trusted_places_only(key_server: KeyServer):
    document = signed(jku=key_server.url)
    for trusted in (key_server.place, key_server.url):
        found = await Verifier(trusted=[trusted]).verify(document, URL)
        assert found is not None and found.jku == key_server.url
    assert key_server.asked == ["/jwks"] * 2
    other = RSAKey.generate_key(2048, {"kid": "other"})
    for trusted, jku in (
        ("127.0.0.1", key_server.url),
        ("keys.example", key_server.url),
        (key_server.url, key_server.url + "/../evil"),
        (key_server.place, f"http://user@{key_server.place}/jwks"),
        (key_server.place, f"http://{key_server.place}@evil.example/jwks"),
    ):
        assert "names no trusted key" in await refusal(Verifier(public(other), trusted=[trusted]), signed(jku=jku))
    plain = "http://keys.example/jwks"
    assert "must come from an https address" in await refusal(Verifier(trusted=["keys.example"]), signed(jku=plain))
    assert len(key_server.asked) == 2
    with pytest.raises(UnavailableError):
        await Verifier(trusted=[key_server.place]).verify(signed(jku=f"http://{key_server.place}/moved"), URL)
    assert key_server.asked[2:] == ["/moved"]


@pytest.mark.requirement("SIGN-09")
async def test_a_key_that_was_taken_back_is_not_used_for_long(key_server: KeyServer, monkeypatch: pytest.MonkeyPatch):
    now = 0.0
    timed = partial(RemoteKeys, clock=lambda: now)
    monkeypatch.setattr("a2a_grpc.verification.RemoteKeys", timed)
    verifier, document = Verifier(trusted=[key_server.place]), signed(jku=key_server.url)
    assert await verifier.verify(document, URL)
    key_server.jwks = {"keys": [ECKey.generate_key("P-256", {"kid": "next"}).as_dict(private=False)]}
    now = 599.0
    assert await verifier.verify(document, URL)
    now = 601.0
    assert "names no trusted key" in await refusal(verifier, document)
