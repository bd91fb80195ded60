"""`a2a-grpc gateway`: an agent that runs somewhere else, on every wire.

Laws: words become upstreams; passing calls on is gateway.py's, serving is as in serve.
"""

import argparse
import re
import ssl
from collections.abc import Sequence
from typing import Any, Final

from a2a_grpc import workers
from a2a_grpc.call import VERSIONS
from a2a_grpc.cards import RESOLVED
from a2a_grpc.client_auth import BALANCES, STREAMS, Channel, Tls
from a2a_grpc.commands.card import verifier
from a2a_grpc.commands.serve import Ready, serving, tell
from a2a_grpc.commands.words import (
    BINDING_WORDS,
    UsageError,
    card_file,
    header_word,
    mebibytes_word,
    name_word,
    number_word,
    options_parser,
    time_word,
    url_word,
)
from a2a_grpc.gateway import CREDENTIALS, FORWARDED, PUSH, Upstream

SIGNED: Final = (
    ("signed-by", "FILE", "in this file"),
    ("jwks", "URL", "at this address"),
    ("trust", "HOST", "that it names itself, at this host or whole address"),
)
"""Flags that say whose signature the card of an upstream must have."""


CHANNEL: Final = ("keepalive", "balance", "connections", "streams")
"""Flags that say how connections are held, in the order of `Channel`."""


def parser() -> argparse.ArgumentParser:
    """What follows `a2a-grpc gateway`."""
    made = options_parser("a2a-grpc gateway", "Serves an agent that runs somewhere else on every wire.")
    add = made.add_argument
    add("--upstream", action="append", type=_upstream, required=True, metavar="[NAME=]URL",
        help="base URL, card URL, or host:port or dns:///NAME:PORT of gRPC; several need a name each")  # fmt: skip
    add("--upstream-binding", type=str.lower, choices=BINDING_WORDS, help="wire to use; default: the first in the card")
    add("--upstream-version", choices=VERSIONS, help="protocol version to use; default: the newest in the card")
    add("--upstream-header", action="append", type=header_word, default=[], metavar="'NAME: VALUE'",
        help="sent upstream with each call")  # fmt: skip
    add("--upstream-card", metavar="FILE", help="the card, for an upstream that has none at its address")
    add("--upstream-ca", metavar="FILE", help="authorities that vouch for the upstream; default: those of the system")
    add("--upstream-cert", metavar="FILE", help="certificate to show to the upstream (mutual TLS)")
    add("--upstream-key", metavar="FILE", help="the private key of that certificate; default: in the same file")
    for name, kind, text in SIGNED:
        add(f"--upstream-{name}", action="append", default=[], metavar=kind,
            help=f"the card must be signed by a key {text}")  # fmt: skip
    add("--upstream-keepalive", type=time_word, default=0.0, metavar="SECONDS",
        help="silence after which a gRPC connection in use is tried by a ping; default: 0, never")  # fmt: skip
    add("--upstream-balance", choices=BALANCES, default=BALANCES[0],
        help="which of the addresses of a name gRPC calls; default: %(default)s")  # fmt: skip
    add("--upstream-connections", type=number_word, default=0, metavar="COUNT",
        help="gRPC: connections that share the calls (default: 1); HTTP: at most (default: any)")  # fmt: skip
    add("--upstream-streams", choices=STREAMS, default="",
        help="what reads streams over gRPC; default: h2, where it is there and the address one host")  # fmt: skip
    add("--buffer", type=mebibytes_word, default=0, metavar="MIB",
        help="MiB of events to keep to resume streams of an upstream that cannot; default: 0")  # fmt: skip
    add("--push", choices=PUSH, default=PUSH[0],
        help="who keeps push notification configs and delivers: pass: the upstream; own: the gateway, from its store;"
        " default: %(default)s")  # fmt: skip
    add("--forward", action="append", type=name_word, default=[], metavar="NAME",
        help=f"a header of callers that goes on, beside {', '.join(FORWARDED + CREDENTIALS)}")  # fmt: skip
    return made


def _tls(ca: str | None, cert: str | None, key: str | None) -> Tls | None:
    """What TLS trusts and shows, read once to find mistakes early. Raises OSError, UsageError."""
    if key and not cert:
        raise UsageError("--upstream-key needs --upstream-cert")
    if not (ca or cert):
        return None
    made = Tls(ca, cert, key or cert)
    try:
        made.context()
    except ssl.SSLError as fault:
        raise UsageError(f"no certificates as TLS wants them in {ca or ''} {cert or ''}: {fault.reason}") from None
    return made


def _upstream(text: str) -> tuple[str, str]:
    """Name, "" for none, and address."""
    named = re.fullmatch(r"(?:([\w.-]+)=)?(.+)", text)
    name, url = named.groups() if named else ("", text)
    if not url.startswith(RESOLVED):
        url_word(url if "://" in url else f"grpc://{url}")
    return name or "", url


def ready(words: Sequence[str]) -> Ready:
    """What is to be served."""
    arguments = vars(parser().parse_args(words))
    told = arguments.pop("upstream")
    card, forward = arguments.pop("upstream_card"), arguments.pop("forward")
    settings = {
        "binding": BINDING_WORDS.get(arguments.pop("upstream_binding")),
        "version": arguments.pop("upstream_version"),
        "headers": dict(arguments.pop("upstream_header")),
        "forward": (*FORWARDED, *forward),
        "buffer": arguments.pop("buffer"),
        "push": arguments.pop("push"),
        "channel": Channel(*(arguments.pop(f"upstream_{name}") for name in CHANNEL)),
    }
    if settings["push"] == "own":
        arguments["push_notifications"] = True
    arguments["otherwise"] = {"store": "memory:"}
    files = [arguments.pop(f"upstream_{name}") for name in ("ca", "cert", "key")]
    signed = [arguments.pop(f"upstream_{name.replace('-', '_')}") for name, *_ in SIGNED]
    if len({name for name, _ in told}) < len(told):
        raise UsageError("several upstreams need a name each, such as --upstream orders=URL")

    def made() -> Any:
        given, tls = card_file(card) if card else None, _tls(*files)
        verify = verifier(*signed) if any(signed) else None
        more = {**settings, "card": given, "tls": tls, "verify": verify}
        found = {name: Upstream(url, **more) for name, url in told}
        return found if len(found) > 1 or "" not in found else found[""]

    return Ready(arguments, made, keeps=settings["push"] == "own" or settings["buffer"] > 0)


def run(words: Sequence[str], report: workers.Report = tell) -> int:
    """Serve until stopped; report: takes the lines that say where everything is."""
    return serving(ready(words), report, (run, words))
