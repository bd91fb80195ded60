"""Flags that say how an agent is reached, for all the commands that call one.

Laws: words become settings of a client here, and nothing is called. A credential comes from a word or a file, and is
never printed.
"""

import argparse
from pathlib import Path
from typing import Any

from a2a_stubs import v1

from a2a_grpc.call import VERSIONS
from a2a_grpc.client_auth import Tls
from a2a_grpc.commands.words import BINDING_WORDS, UsageError, header_word, seconds_word, value_word
from a2a_grpc.v03_cards import card_up


def token_word(text: str) -> str:
    """A token, or the one in the file of `@FILE`."""
    if not text.startswith("@"):
        return value_word(text)
    try:
        return value_word(Path(text[1:]).read_text("utf-8").strip())
    except (OSError, ValueError) as fault:
        raise argparse.ArgumentTypeError(f"cannot read a token from {text[1:]!r}: {fault}") from None


def credential_flags(made: argparse.ArgumentParser) -> None:
    """Add the flags for what is shown to an agent and believed of it."""
    add = made.add_argument
    add("-H", "--header", action="append", type=header_word, default=[], metavar="'NAME: VALUE'",
        help="sent with each call")  # fmt: skip
    add("--token", type=token_word, metavar="TOKEN", help="bearer token to show; @FILE reads it from a file")
    add("--ca", metavar="FILE", help="authorities that vouch for the agent, in PEM; default: those of the system")
    add("--cert", metavar="FILE", help="a certificate of one's own to show, in PEM")
    add("--key", metavar="FILE", help="the key of --cert, in PEM")


def interface_flags(made: argparse.ArgumentParser) -> None:
    """Add the flags for which interface is used, and how."""
    add = made.add_argument
    add("--binding", type=str.lower, choices=BINDING_WORDS, help="wire to use; default: the first in the card")
    add("--version", choices=VERSIONS, help="protocol version to use; default: the newest in the card")
    add("--interface", metavar="URL", help="the interface of the card to use, by its address")
    add("--extension", action="append", type=value_word, default=[], metavar="URI", help="extension to ask for")
    add("--tenant", metavar="NAME", help="the tenant to address; default: as the card says")
    add("--timeout", type=seconds_word, metavar="SECONDS", help="give up on a silent agent; default: never")
    credential_flags(made)


def credentials(arguments: argparse.Namespace) -> dict[str, Any]:
    """Settings of a client for the flags of `credential_flags`. Raises UsageError for files that cannot be read."""
    tls = None
    if arguments.ca or arguments.cert or arguments.key:
        if bool(arguments.cert) != bool(arguments.key):
            raise UsageError("--cert and --key go together")
        tls = Tls(ca=arguments.ca, cert=arguments.cert, key=arguments.key)
        try:
            tls.context()
        except (OSError, ValueError) as fault:
            raise UsageError(f"--ca, --cert or --key cannot be used: {fault}") from None
    return {"headers": dict(arguments.header), "auth": arguments.token, "tls": tls}


def settings(arguments: argparse.Namespace) -> dict[str, Any]:
    """Settings of a client for the flags of `interface_flags`. Raises UsageError."""

    def only(document: Any, _: str) -> v1.AgentCard:
        card = card_up(document)
        kept = [entry for entry in card.supported_interfaces if entry.url == arguments.interface]
        if not kept:
            offered = ", ".join(entry.url for entry in card.supported_interfaces)
            raise UsageError(f"the card has no interface {arguments.interface}; it has: {offered or 'none'}")
        del card.supported_interfaces[:]
        card.supported_interfaces.extend(kept)
        return card

    return credentials(arguments) | {
        "binding": BINDING_WORDS.get(arguments.binding),
        "version": arguments.version,
        "extensions": arguments.extension,
        "tenant": arguments.tenant,
        "timeout": arguments.timeout,
        "verify": only if arguments.interface else None,
    }
