"""`a2a-grpc card`: a card is signed, or its signatures are verified.

Laws: words become a Signer or a Verifier, which do the rest; private keys come from files alone. The signed card, or
what is known of the signature that holds, goes to stdout; a card that is not to be trusted ends with code 1.
"""

import argparse
import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from a2a_grpc import protojson
from a2a_grpc.client import Client
from a2a_grpc.commands.words import Parser, UsageError, header_word
from a2a_grpc.config import OptionError
from a2a_grpc.errors import A2AError
from a2a_grpc.opening import part


def parser() -> argparse.ArgumentParser:
    """What follows `a2a-grpc card`."""
    made = Parser(
        prog="a2a-grpc card",
        description="Signs a card, or says whether it is to be trusted; prints JSON.",
        usage="%(prog)s (sign|verify) CARD --key FILE [options]",
    )
    add = made.add_argument
    add("action", choices=("sign", "verify"), metavar="ACTION", help="sign or verify")
    add("card", metavar="CARD", help="a file, or the base or card URL of an agent")
    add("--key", action="append", default=[], metavar="FILE",
        help="a key in PEM, a JSON Web Key or a set of them; private to sign")  # fmt: skip
    add("--jku", default="", metavar="URL", help="sign: address of the public keys, for the signatures")
    add("--jwks", action="append", default=[], metavar="URL", help="verify: address of keys to trust")
    add("--trust", action="append", default=[], metavar="HOST",
        help="verify: a host, or a whole address, whose keys are trusted when a signature names it")  # fmt: skip
    add("--algorithm", action="append", metavar="NAME", help="verify: an accepted algorithm; default: all of them")
    add("--form", action="append", metavar="NAME",
        help="verify: what signatures may cover: spec, document, filled; default: the first two")  # fmt: skip
    add("--header", action="append", type=header_word, default=[], metavar="'NAME: VALUE'", help="sent for the card")
    return made


def _document(arguments: argparse.Namespace) -> Any:
    """The card's JSON object, as it stands in the file or comes from the address."""
    if "://" in arguments.card:
        return asyncio.run(_fetched(arguments))
    return protojson.loads(Path(arguments.card).read_bytes())


async def _fetched(arguments: argparse.Namespace) -> Any:
    found: list[Any] = []

    async def keep(document: Any, _: str) -> None:
        found.append(document)

    async with Client(arguments.card, version=None, headers=dict(arguments.header), verify=keep):
        return found[-1]


def _sign(arguments: argparse.Namespace, document: Any) -> Any:
    """The card with signatures of these keys; those of others stay."""
    signer = part("signing", "auth").Signer.from_files(arguments.key, arguments.jku)
    if not isinstance(document, dict) or not document.get("supportedInterfaces"):
        raise UsageError(f"{arguments.card} is not a card of version 1.0: it has no supportedInterfaces")
    own = {key["kid"] for key in signer.jwks["keys"]}
    read = part("verification", "auth").header_of
    others = [signature for signature in document.get("signatures") or () if read(signature).get("kid") not in own]
    return {**document, "signatures": others + signer.signatures(document, document)}


def verifier(files: Sequence[str], jwks: Sequence[str], trusted: Sequence[str], **lists: Sequence[str] | None) -> Any:
    """A Verifier with keys from files and addresses. lists: more of its keywords, None for its defaults. Raises
    OSError, and OptionError as the Verifier."""
    keys, judge = part("auth_keys", "auth"), part("verification", "auth")
    sources = [keys.FixedKeys.from_file(file) for file in files] + [keys.RemoteKeys(url) for url in jwks]
    return judge.Verifier(*sources, trusted=trusted, **{name: given for name, given in lists.items() if given})


async def _verify(arguments: argparse.Namespace, document: Any) -> Any:
    """What the signature that holds says."""
    judge = verifier(
        arguments.key, arguments.jwks, arguments.trust, algorithms=arguments.algorithm, forms=arguments.form
    )
    found = await judge.verify(document, arguments.card)
    told = ("form", "alg", "kid", "jku")
    return {"name": found.card.name} | {name: value for name in told if (value := getattr(found, name))}


def run(words: Sequence[str]) -> int:
    """Sign or verify once, and print what comes of it."""
    arguments = parser().parse_args(words)
    try:
        document = _document(arguments)
        made = _sign(arguments, document) if arguments.action == "sign" else asyncio.run(_verify(arguments, document))
    except A2AError as fault:
        print(f"{fault.reason}: {fault.message}", file=sys.stderr)
        return 1
    except (OptionError, OSError) as fault:
        raise UsageError(str(fault)) from None
    sys.stdout.buffer.write(protojson.dumps(made) + b"\n")
    return 0
