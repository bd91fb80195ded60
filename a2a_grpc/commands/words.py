"""Words of the command line: parsers, readers of single words, and the fault of who typed them.

Laws: what commands share to read their words, and nothing that acts; a mistake of the user is a UsageError, told in one
line. Readers raise argparse.ArgumentTypeError, which argparse tells with the name of the flag.
"""

import argparse
import json
import mimetypes
import re
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import fields as members_of
from pathlib import Path
from typing import Any, Final, NoReturn
from urllib.parse import urlsplit

from a2a_stubs import v1

from a2a_grpc import config, protojson
from a2a_grpc.call import GRPC, JSONRPC, REST
from a2a_grpc.client import SCHEMES
from a2a_grpc.client_auth import HEADER_NAME, plain
from a2a_grpc.errors import A2AError
from a2a_grpc.protojson_fields import MANY, MAP, ONE, fields
from a2a_grpc.tasks.parts import BYTES_TYPE
from a2a_grpc.v03_cards import card_up

IDS: Final = re.compile(r" \([A-Z0-9]+(?:-[A-Z0-9]+)*-[0-9]+\)")
"""References to requirements, which say nothing to who asks for help."""

BINDING_WORDS: Final = {"jsonrpc": JSONRPC, "rest": REST, "http+json": REST, "grpc": GRPC}
"""Wires as they are typed."""


LONGEST: Final = 86_400
"""Seconds of the longest time that a flag may say."""

ABSENT: Final = object()
"""In the place of a JSON value that was not given, since null is one."""


class UsageError(Exception):
    """The user asked for something that cannot be; the text is the one line that is shown."""


class Parser(argparse.ArgumentParser):
    """A parser that raises UsageError instead of leaving the process."""

    def error(self, message: str) -> NoReturn:
        """Raise UsageError with the message and where to read more."""
        raise UsageError(f"{message} (see {self.prog} --help)")


def options_parser(prog: str, description: str) -> argparse.ArgumentParser:
    """A parser of all the options of a server."""
    parser = Parser(
        prog=prog,
        description=description,
        epilog="Each option is also read from the environment, such as A2A_GRPC_MAX_PARTS, and from --config.",
    )
    add_config(parser)
    for row in (row for row in members_of(config.Options) if not row.metadata["secret"]):
        flag, meaning = "--" + row.name.replace("_", "-"), IDS.sub("", row.metadata["meaning"]).replace("%", "%%")
        if row.type is bool:
            parser.add_argument(flag, action=argparse.BooleanOptionalAction, default=None, help=meaning)
        else:
            default = ",".join(row.default) if isinstance(row.default, tuple) else row.default
            parser.add_argument(flag, type=_reader(row.name), metavar="VALUE", help=f"{meaning} (default: {default})")
    return parser


def add_store(parser: argparse.ArgumentParser) -> None:
    """Let a parser read which store is meant."""
    parser.add_argument("--store", metavar="URL", help="as for serve; default: from the environment")
    add_config(parser)


def add_config(parser: argparse.ArgumentParser) -> None:
    """Let a parser read which file has options."""
    parser.add_argument("--config", metavar="FILE", help="TOML file with options")


def _reader(name: str) -> Callable[[str], Any]:
    def read(text: str) -> Any:
        try:
            return config.from_text(name, text)
        except config.OptionError as fault:
            raise argparse.ArgumentTypeError(str(fault)) from None

    return read


def json_word(text: str) -> Any:
    """A JSON value."""
    try:
        return json.loads(text)
    except ValueError as fault:
        raise argparse.ArgumentTypeError(f"not JSON: {fault}") from None


def unknown(kind: Any, value: Any, path: str = "") -> Iterator[str]:
    """The members of a JSON value that messages of a type (a descriptor) do not have, by their paths. Who reads what
    others wrote ignores such; who types them has mistyped something."""
    if kind is None or kind.file.package == "google.protobuf" or not isinstance(value, dict):
        return
    known = {name: row for row in fields(kind) for name in (row[0].name, row[0].json_name)}
    for name, member in value.items():
        if name not in known:
            yield path + name
            continue
        _, shape, item = known[name]
        if shape == MANY and isinstance(member, list):
            found = [(f"[{index}]", each) for index, each in enumerate(member)]
        elif shape == MAP and isinstance(member, dict):
            found = [(f".{key}", each) for key, each in member.items()]
        else:
            found = [("", member)] if shape == ONE else []
        for where, each in found:
            yield from unknown(item.message_type, each, f"{path}{name}{where}.")


def url_word(text: str) -> str:
    """An address that a client can call."""
    try:
        parts = urlsplit(text)
        usable = parts.scheme in SCHEMES and parts.port != 0 and bool(parts.hostname)
    except ValueError:
        usable = False
    if not usable:
        raise argparse.ArgumentTypeError(f"{text!r} is not an address with one of {', '.join(SCHEMES)}")
    return text


def value_word(text: str) -> str:
    """What may be the value of a header, or of gRPC metadata."""
    if not plain(text):
        raise argparse.ArgumentTypeError(f"{text!r} has characters that no header may have")
    return text


def seconds_word(text: str) -> float:
    """A time to wait, in seconds, more than 0."""
    with suppress(ValueError):
        if (found := float(text)) > 0:
            return found
    raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0")


def number_word(text: str) -> int:
    """A whole number, 0 or more."""
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number")
    return int(text)


def mebibytes_word(text: str) -> int:
    """A number of MiB, as bytes."""
    return number_word(text) * 1024 * 1024


def time_word(text: str) -> float:
    """A time in seconds, 0 or more."""
    with suppress(ValueError):
        if 0 <= (seconds := float(text)) <= LONGEST:
            return seconds
    raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds up to {LONGEST}")


def header_word(text: str) -> tuple[str, str]:
    """Name and value of `'Name: value'`."""
    name, mark, value = map(str.strip, text.partition(":"))
    if not (mark and value.isprintable()):
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form 'Name: value'")
    return name_word(name), value_word(value)


def name_word(text: str) -> str:
    """The name of a header, or of gRPC metadata."""
    if not HEADER_NAME.fullmatch(text.lower()):
        raise argparse.ArgumentTypeError(f"{text!r} is not the name of a header")
    return text


def card_file(file: str) -> v1.AgentCard:
    """The card in a file. Raises OSError, and UsageError for a file that is none."""
    try:
        return card_up(protojson.loads(Path(file).read_bytes()))
    except A2AError as fault:
        raise UsageError(f"{file} is not a card: {fault.message}") from None


def file_word(path: str) -> v1.Part:
    """A part with what is in a file."""
    try:
        raw = Path(path).expanduser().read_bytes()
    except (OSError, RuntimeError) as fault:
        raise argparse.ArgumentTypeError(f"cannot read {path!r}: {getattr(fault, 'strerror', '') or fault}") from None
    media_type = mimetypes.guess_type(path)[0] or BYTES_TYPE
    return v1.Part(raw=raw, filename=Path(path).name, media_type=media_type)


def message_params(
    *,
    text: str = "",
    data: Any = ABSENT,
    files: Sequence[v1.Part] = (),
    message_id: str = "",
    task: str | None = None,
    context: str | None = None,
) -> dict[str, Any]:
    """The parameters of a message to send, as JSON; data: a JSON value, null too; message_id: default a new
    one."""
    parts = [{"text": text}] * bool(text) + [{"data": data}] * (data is not ABSENT)
    parts += [protojson.encode(file) for file in files]
    message = {"messageId": message_id or uuid.uuid4().hex, "role": "ROLE_USER", "parts": parts}
    return {"message": message | {k: v for k, v in (("taskId", task), ("contextId", context)) if v}}
