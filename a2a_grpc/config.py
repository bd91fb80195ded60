"""Every option of a server: default, limit and meaning in one place, readable from code, flags, environment and file.

Laws: an option is one `option(...)` row of `Options`; flags, environment names, file keys and the documentation table
are made from the rows. Values are checked when the object is made and never change afterwards. No I/O but reading the
one file that `read` is given; nothing here knows what an option is used for.
"""

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from ipaddress import ip_network
from pathlib import Path
from typing import Any, Final, get_args, get_origin

from a2a_grpc.python310 import tomllib

LOG_FORMATS: Final = ("console", "json")
ENVIRONMENT_PREFIX: Final = "A2A_GRPC_"
MIB: Final = 1024 * 1024
LARGEST_PORT: Final = 65_535
_ADDRESS: Final = re.compile(r".*:([0-9]{1,5})")

Form = tuple[re.Pattern[str], str]
"""What the text of an option looks like, and in words."""

_BASE_URL: Final = re.compile(r"(?:https?://[^\s/?#]+[^\s?#]*)?"), "an absolute http or https address"
_KEYS_URL: Final = re.compile(r"(?:https?://[^\s/?#]+\S*)?"), "an absolute http or https address"
_TARGET: Final = re.compile(r"\S*"), "host:port or an absolute address"
_HEADER: Final = re.compile(r"[0-9A-Za-z_.-]+"), "letters, digits and - _ . as headers and gRPC metadata allow them"
_ORIGIN: Final = (
    re.compile(r"\*|null|[A-Za-z][A-Za-z0-9+.-]*://[^\s/?#]+/*"),
    "origins such as https://app.example, or *",
)
_HOST_NAME: Final = re.compile(r"\*|[\w.-]+|\[[0-9A-Fa-f:.]+\]", re.ASCII), "names or addresses without ports, or *"
_HOST: Final = re.compile(r"(?:[\w-]+\.)*(?!\d+$)[\w-]+", re.ASCII), "hosts, addresses and networks"


class OptionError(ValueError):
    """An option has a wrong value; the text names the option, the value and what is allowed."""


def option(
    default: Any,
    meaning: str,
    *,
    low: float | None = None,
    high: float | None = None,
    choices: tuple[Any, ...] = (),
    form: Form | None = None,
    secret: bool = False,
) -> Any:
    """One row: default value, meaning, the smallest, largest or listed values allowed, and what a text looks like. A
    secret is in no repr, and no flag, which everybody on a machine may read (SEC-05)."""
    metadata = {"meaning": meaning, "low": low, "high": high, "choices": choices, "form": form, "secret": secret}
    return field(default=default, metadata=metadata, repr=not secret)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options of a server. Wrong values raise OptionError."""

    # -- where it is
    grpc: str = option("127.0.0.1:50051", "gRPC address `host:port`; empty switches gRPC off; port 0 picks a free one")
    http: str = option("127.0.0.1:8080", "HTTP address `host:port`; empty switches HTTP off; port 0 picks a free one")
    engine: str = option(
        "aio",
        "what carries the wires of `serve` and `gateway`: `aio`, a port for gRPC and one for HTTP; `envoy`: all on the"
        " HTTP address, by Envoy (extra `envoy`)",
        choices=("aio", "envoy"),
    )
    workers: int = option(
        1, "processes that `serve` on the same ports; several need a PostgreSQL store and given ports", low=1, high=256
    )
    reuse_port: bool = option(False, "let other processes listen on the same ports (SO_REUSEPORT), as `workers` do")
    public_url: str = option(
        "",
        "base URL under which clients reach HTTP, written into the card (BL-45); empty: the bound address",
        form=_BASE_URL,
    )
    public_grpc: str = option(
        "",
        "gRPC address written into the card; empty: host of `public_url` or the bound one, with the bound port",
        form=_TARGET,
    )
    grpc_url_style: str = option(
        "authority",
        "gRPC address in the card as `host:port` or as an absolute address (I-28)",
        choices=("authority", "absolute"),
    )
    trust_forwarded: bool = option(
        False, "take scheme, host and prefix of card URLs, and callers' addresses, from X-Forwarded-* headers"
    )
    tls_cert: str = option("", "PEM file with the certificate chain of both ports; empty: no TLS")
    tls_key: str = option("", "PEM file with the private key that belongs to `tls_cert`")
    tls_client_ca: str = option(
        "", "PEM file with authorities; only clients with a certificate of theirs may connect; empty: all may"
    )
    api_key_file: str = option(
        "", "file with lines `subject:sha256` of API keys; with it callers must show a key; empty: anybody may call"
    )
    api_key_header: str = option("X-API-Key", "header, or gRPC metadata, that API keys are shown in", form=_HEADER)
    jwt_issuer: str = option("", "issuer of bearer tokens (JWT) that callers may show; empty: none")
    jwt_audience: str = option("", "audience that bearer tokens must name; goes with `jwt_issuer`")
    jwks_url: str = option("", "address or file with the keys of `jwt_issuer`; empty: as OpenID Connect discovery says")
    card_keys: tuple[str, ...] = option(
        (), "files with keys, in PEM or as JSON Web Keys, that sign the card; needs `public_url`; empty: not signed"
    )
    card_jku: str = option(
        "",
        "address of the public keys, for the signatures; empty: that of `serve_jwks`, if that is on (SIGN-06)",
        form=_KEYS_URL,
    )
    serve_jwks: bool = option(False, "publish the public parts of `card_keys` at `/.well-known/jwks.json`")
    public_card: bool = option(True, "show the card to everybody; off: to callers who may call")
    cors_origins: tuple[str, ...] = option(
        (), "origins such as `https://app.example` whose web pages may call; `*`: all; empty: none", form=_ORIGIN
    )
    allowed_hosts: tuple[str, ...] = option(
        (),
        "names under which HTTP is reached, such as `agent.example`, beside that of `public_url`; `*`: any; empty: any,"
        " but bound to a loopback address without `trust_forwarded` only those of the own machine (SEC-03)",
        form=_HOST_NAME,
    )
    inspector: str = option(
        "auto",
        "a page at `/inspector` to look at the agent in a browser; auto: on a port of its own while anybody may call",
        choices=("auto", "on", "off"),
    )
    store: str = option(
        "sqlite:a2a.db", "where tasks are kept: `memory:`, `sqlite:PATH` or `postgresql://USER@HOST/NAME`"
    )
    store_connections: int = option(10, "most connections to a PostgreSQL store at a time", low=2, high=1000)
    store_timeout: float = option(10.0, "seconds that one statement may take in a PostgreSQL store", low=0.1, high=3600)
    store_retry: float = option(
        15.0, "seconds that work waits for a PostgreSQL server that is lost before it fails", low=0, high=3600
    )
    bus: str = option(
        "",
        "what wakes other replicas: `postgresql://...`, `nats://HOST`, `nats://HOST/NAME` on a server that others use, "
        "too; empty: the PostgreSQL store itself, if any",
    )
    log_level: str = option("info", "least level of log lines", choices=("debug", "info", "warning", "error"))
    log_format: str = option(
        "console",
        "log lines for eyes, or one JSON object each with the ids of what they are about",
        choices=LOG_FORMATS,
    )
    hash_callers: bool = option(False, "show callers as a hash in log lines, spans and the admin view")
    telemetry: bool = option(False, "send traces and measures by OpenTelemetry (OTLP), as the OTEL_* variables say")
    metrics: str = option(
        "",
        "where Prometheus reads `/metrics`: on the addresses of `admin`, or on the HTTP port, which shows it to all"
        " who reach that; empty: nowhere",
        choices=("", "admin", "http"),
    )
    admin: tuple[str, ...] = option(
        (),
        "addresses `host:port`, or `unix:PATH`, of the view for operators; of several workers each takes the next"
        " port or path that is free; empty: none",
    )
    # -- what it speaks
    versions: tuple[str, ...] = option(("1.0", "0.3"), "protocol versions offered", choices=("1.0", "0.3"))
    strict_version: bool = option(
        False, "read an absent version literally as 0.3, also where only 1.0 can be meant (I-09)"
    )
    error_profile: str = option(
        "1.0.1", "patch release whose error statuses are sent (I-02)", choices=("1.0.1", "1.0.0")
    )
    rest_media_type: str = option(
        "application/a2a+json",
        "media type of REST answers when the request names none (I-03)",
        choices=("application/a2a+json", "application/json"),
    )
    reflection: bool = option(True, "serve gRPC reflection, v1 and v1alpha")
    push_notifications: bool = option(False, "offer push notifications: configs are kept, and events sent to webhooks")
    ignore_inline_push: bool = option(
        False, "ignore a push config inside a send instead of refusing it while push is off (I-61)"
    )
    check_output_modes: bool = option(
        True, "refuse a send whose `acceptedOutputModes` hold none of the media types that the card offers"
    )
    redact_push_credentials: bool = option(
        False, "leave credentials and token out of answers that hold push configs (I-60)"
    )
    push_allow: tuple[str, ...] = option(
        (), "hosts, addresses and networks (`10.1.0.0/16`) that webhooks may have although they are not public (BL-05)"
    )
    secret_keys: tuple[str, ...] = option(
        (),
        "keys of `a2a-grpc push key` that seal push configs in the store: the first is used, the others still open;"
        " given by A2A_GRPC_SECRET_KEYS or a file, there is no flag (PUSH-23)",
        secret=True,
    )
    push_https_only: bool = option(False, "refuse webhooks without TLS (PUSH-22)")
    push_concurrency: int = option(
        64, "most webhooks called at a time; a fourth of them at one host", low=1, high=10_000
    )
    max_push_configs: int = option(100, "most push notification configs of one task", low=1, high=100_000)
    close_on_input_required: bool = option(True, "a sending stream closes when the turn ends in INPUT_REQUIRED (I-06)")
    keep_status_messages: bool = option(True, "append the previous status message to the history (I-67)")
    v03_file_bytes: str = option(
        "auto",
        "form of file bytes at v0.3 over gRPC and REST: raw, base64 text, or by user agent",
        choices=("auto", "raw", "base64"),
    )
    v03_push: str = option(
        "task",
        "what v0.3 webhooks get: the task at each status, or every event as it is (I-50)",
        choices=("task", "event"),
    )
    deduplicate: str = option(
        "authenticated",
        "whose repeated sends (same messageId) give the first outcome (OP-SEND-14)",
        choices=("authenticated", "always", "off"),
    )
    card_max_age: int = option(300, "seconds that a card may be cached", low=0, high=86_400 * 30)
    # -- limits
    max_request_bytes: int = option(
        16 * MIB, "largest request on any wire, in bytes (BL-39)", low=1024, high=1024 * MIB
    )
    max_parts: int = option(1000, "most parts in one message", low=1, high=1_000_000)
    max_depth: int = option(30, "deepest nesting of objects inside JSON values (JSON-18)", low=1, high=30)
    max_streams: int = option(10_000, "most open streams; past it RESOURCE_EXHAUSTED", low=1, high=1_000_000)
    max_turns: int = option(
        1000, "most turns of user code at a time; past it RESOURCE_EXHAUSTED", low=1, high=1_000_000
    )
    call_rate: float = option(
        0.0, "calls a second that one caller may make; past it RESOURCE_EXHAUSTED; 0: any number", low=0, high=1e6
    )
    call_burst: int = option(50, "calls that a caller may make at once under `call_rate`", low=1, high=1_000_000)
    failure_rate: float = option(
        0.0,
        "wrong credentials a second that one address may show; past it all its calls get RESOURCE_EXHAUSTED for a "
        "while, unlooked at; needs `trust_forwarded` behind a proxy, else all callers are one address; 0: any number",
        low=0,
        high=1e6,
    )
    failure_burst: int = option(
        20, "wrong credentials that an address may show at once under `failure_rate`", low=1, high=1_000_000
    )
    call_limit: int = option(
        0, "most calls of one caller at a time, open streams among them; 0: any number", low=0, high=1_000_000
    )
    operation_rates: tuple[str, ...] = option(
        (), "rates of single operations for one caller: `NAME=RATE/BURST`, calls a second and at once; empty: none"
    )
    stream_limit: int = option(0, "most open streams of one caller; 0: any number", low=0, high=1_000_000)
    turn_limit: int = option(0, "most turns of user code of one caller at a time; 0: any number", low=0, high=1_000_000)
    default_history: int = option(
        100,
        "messages of history in an answer when the caller sets no historyLength (HIST-01)",
        low=0,
        high=100_000,
    )
    # -- time, in seconds
    heartbeat: float = option(
        15.0, "silence after which an event stream carries a comment line; 0: never (BL-36)", low=0, high=3600
    )
    stall_timeout: float = option(
        30.0,
        "how long a reader may block a stream before it alone is cut off (STREAM-06)",
        low=0.1,
        high=3600,
    )
    keepalive: float = option(30.0, "seconds between HTTP/2 pings of the gRPC server; 0: none", low=0, high=86_400)
    lease: float = option(15.0, "seconds that a turn is owned without renewal", low=0.3, high=3600)
    push_timeout: float = option(15.0, "seconds that one call of a webhook may take (PUSH-16)", low=0.1, high=600)
    push_give_up: float = option(
        86_400.0, "seconds of failed attempts after which a webhook is given up (PUSH-15)", low=0, high=86_400 * 30
    )
    cancel_grace: float = option(
        1.0, "seconds a canceled function has to stop before its task is settled", low=0, high=600
    )
    grace: float = option(10.0, "seconds running turns have to finish after a stop signal (BL-34)", low=0, high=3600)
    dedupe_window: float = option(86_400.0, "seconds that a messageId is remembered", low=1, high=86_400 * 365)
    retain: float = option(86_400.0 * 7, "seconds that finished tasks are kept (BL-44)", low=1, high=86_400 * 3650)
    retain_count: int = option(100_000, "most finished tasks kept of each owner", low=1, high=1_000_000_000)
    retain_reply_bytes: int = option(
        64 * MIB,
        "most bytes of direct exchanges, messages that were answered without a task, kept of each owner; the oldest go",
        low=0,
        high=1024 * 1024 * MIB,
    )
    retain_reply_bytes_all: int = option(
        1024 * MIB, "most bytes of direct exchanges kept of all owners together", low=0, high=1024 * 1024 * MIB
    )
    retain_stuck: float = option(
        86_400.0 * 30,
        "seconds that unfinished tasks without a running turn are kept",
        low=1,
        high=86_400 * 3650,
    )
    trim_interval: float = option(
        60.0, "seconds between looks for what retention no longer keeps", low=0.05, high=86_400
    )
    block_warning: float = option(
        0.5,
        "seconds an async agent may hold the event loop before a warning names it (BL-17); 0: never",
        low=0,
        high=3600,
    )

    def __post_init__(self) -> None:
        for row in fields(self):
            _check(row.name, getattr(self, row.name), row.type, row.metadata)
        if bool(self.tls_cert) != bool(self.tls_key):
            raise OptionError("tls_cert and tls_key go together; one of them is empty")
        if self.tls_client_ca and not self.tls_cert:
            raise OptionError("tls_client_ca needs tls_cert and tls_key")
        if self.engine == "envoy" and not self.http:
            raise OptionError("engine envoy serves everything at http, which is empty")
        if bool(self.jwt_issuer) != bool(self.jwt_audience):
            raise OptionError("jwt_issuer and jwt_audience go together; one of them is empty")
        if self.jwks_url and not self.jwt_issuer:
            raise OptionError("jwks_url needs jwt_issuer and jwt_audience")
        if self.card_keys and not self.public_url:
            raise OptionError("card_keys needs public_url: no address that a caller made up must be signed")
        if (self.card_jku or self.serve_jwks) and not self.card_keys:
            raise OptionError("card_jku and serve_jwks need card_keys")
        for entry in self.push_allow:
            try:
                ip_network(entry)
            except ValueError as fault:
                if "/" in entry or not _HOST[0].fullmatch(entry):
                    raise OptionError(f"push_allow must be {_HOST[1]}: {fault}") from None
        if not self.versions:
            raise OptionError("versions must hold at least one of 1.0, 0.3")
        if (self.metrics == "admin" and not self.admin) or (self.metrics == "http" and not self.http):
            raise OptionError(f"metrics: {self.metrics} has no address")
        places = [address for address in self.admin if not address.startswith("unix:/")]
        for name, address in (("grpc", self.grpc), ("http", self.http), *(("admin", place) for place in places)):
            found = _ADDRESS.fullmatch(address)
            if address and (found is None or int(found[1]) > LARGEST_PORT):
                raise OptionError(
                    f"{name} must be host:port with a port up to {LARGEST_PORT}, or empty, not {address!r}"
                )


def _check(name: str, value: Any, kind: Any, rule: Mapping[str, Any]) -> None:
    expected = get_origin(kind) or kind
    if not isinstance(value, (int, float) if expected is float else expected) or (
        isinstance(value, bool) and expected is not bool
    ):
        told = "" if rule["secret"] else f", not {value!r}"
        raise OptionError(f"{name} must be of type {expected.__name__}{told}")
    for entry in value if isinstance(value, tuple) else (value,):
        if rule["choices"] and entry not in rule["choices"]:
            raise OptionError(f"{name} must be one of {', '.join(rule['choices']).lstrip(', ')}, not {entry!r}")
        if (form := rule["form"]) and not form[0].fullmatch(entry):
            raise OptionError(f"{name} must be {form[1]}, not {entry!r}")
        low, high = rule["low"], rule["high"]
        if (low is not None and not entry >= low) or (high is not None and not entry <= high):  # NaN is neither
            raise OptionError(f"{name} must be between {low:g} and {high:g}, not {entry!r}")


def _truth(text: str) -> bool:
    known = {
        "1": True,
        "true": True,
        "yes": True,
        "on": True,
        "0": False,
        "false": False,
        "no": False,
        "off": False,
    }
    return known[text.strip().lower()]


READERS: Final[Mapping[Any, Callable[[str], Any]]] = {str: str, int: int, float: float, bool: _truth}


def from_text(name: str, text: str) -> Any:
    """The value of an option written as text, as in a flag or an environment variable; lists are comma-separated."""
    kinds = {row.name: row.type for row in fields(Options)}
    kind = kinds[name]
    try:
        if get_origin(kind) is tuple:
            reader = READERS[get_args(kind)[0]]
            return tuple(reader(entry.strip()) for entry in text.split(",") if entry.strip())
        return READERS[kind](text)
    except (ValueError, KeyError):
        raise OptionError(f"{name} cannot be read from {text!r}") from None


def read(
    file: str | Path | None = None,
    environment: Mapping[str, str] = os.environ,
    otherwise: Mapping[str, Any] | None = None,
    **given: Any,
) -> Options:
    """Options from a TOML file, then the environment (`A2A_GRPC_MAX_PARTS`), then `given`; later ones win.

    file: path of a TOML file with option names as keys, or None. given: ready values; None means not given. otherwise:
    what stands in place of the defaults.
    Raises OptionError for an unknown key or a wrong value, OSError when the file cannot be read.
    """
    names = [row.name for row in fields(Options)]
    values: dict[str, Any] = {}
    if file is not None:
        try:
            content = tomllib.loads(Path(file).read_text("utf-8"))
        except ValueError as fault:
            raise OptionError(f"{file} is not readable TOML: {fault}") from None
        values = {name.replace("-", "_"): tuple(v) if isinstance(v, list) else v for name, v in content.items()}
    values = {**(otherwise or {}), **values}
    for name in names:
        if (text := environment.get(ENVIRONMENT_PREFIX + name.upper())) is not None:
            values[name] = from_text(name, text)
    values |= {name: value for name, value in given.items() if value is not None}
    if unknown := sorted(set(values) - set(names)):
        raise OptionError(f"unknown option: {', '.join(unknown)}")
    return Options(**values)


def table() -> str:
    """The options as a Markdown table, for the documentation: name, environment, default, limit, meaning."""
    lines = ["| option | default | limit | meaning |", "| --- | --- | --- | --- |"]
    for row in fields(Options):
        rule = row.metadata
        limit = ", ".join(map(str, rule["choices"])) or (
            "" if rule["low"] is None else f"{rule['low']:g} to {rule['high']:g}"
        )
        default = ", ".join(row.default) if isinstance(row.default, tuple) else row.default
        shown = f"`{default}`" if default != "" else "(empty)"
        lines.append(f"| `{row.name}` | {shown} | {limit} | {rule['meaning']} |")
    return "\n".join(lines) + "\n"
