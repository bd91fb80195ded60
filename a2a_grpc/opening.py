"""What options name, made: the store, the bus, what callers must show, what calls webhooks, and what watches.

Laws: the only place that picks implementations. Nothing is opened here, and no driver is loaded that is not asked for.
Every function raises OptionError for what cannot be: an unknown scheme, a driver that is not installed.
"""

import importlib
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from ipaddress import IPv6Address, ip_address, ip_network
from typing import Any, Final, Protocol, runtime_checkable

from a2a_grpc import auth
from a2a_grpc.auth_rates import Rates
from a2a_grpc.call import ANONYMOUS, Caller, Credentials, Gate
from a2a_grpc.card_pages import JWKS
from a2a_grpc.config import OptionError, Options
from a2a_grpc.errors import ResourceExhaustedError
from a2a_grpc.push_guard import Guard
from a2a_grpc.push_post import HttpPoster
from a2a_grpc.tasks.bus import Bus, LocalBus
from a2a_grpc.tasks.bus_remote import RemoteBus
from a2a_grpc.tasks.memory import MemoryStore
from a2a_grpc.tasks.schema import MIGRATIONS
from a2a_grpc.tasks.sqlite import SQLiteStore
from a2a_grpc.tasks.store import Store
from a2a_grpc.telemetry import Both, Recorder
from a2a_grpc.telemetry_parts import Off, Telemetry


def part(module: str, extra: str) -> Any:
    """A module of the package that needs more than the package does, loaded when it is asked for. Raises OptionError
    when what an extra of the package brings is not installed."""
    try:
        return importlib.import_module(f"a2a_grpc.{module}")
    except ModuleNotFoundError as missing:
        raise OptionError(f"there is no {missing.name}: install a2a-grpc[{extra}]") from None


def _postgres(url: str, options: Options) -> Store:
    store: Store = part("tasks.postgres", "postgres").PostgresStore(
        url, connections=options.store_connections, timeout=options.store_timeout, retry=options.store_retry
    )
    return store


STORES: Final[Mapping[str, Callable[[str, Options], Store]]] = {
    "memory": lambda _url, _: MemoryStore(),
    "sqlite": lambda url, _: SQLiteStore(url.partition(":")[2]),
    "postgresql": _postgres,
}
"""Store factories by the scheme of the `store` option."""


@runtime_checkable
class HasSchema(Store, Protocol):
    """A store with tables that outlive its process, and may be older or newer than this release."""

    async def open_beside(self) -> None:
        """As Store.open, while somebody else may serve from the store: nothing is taken or brought up to date. Raises
        StoreError; OtherSchema, where the tables are not those of this release."""

    async def schema(self) -> int:
        """The number of the schema that is there, 0 for none. Nothing is changed; the store must not be open."""


def _remote(module: str, carrier: str, extra: str, url: str) -> Bus:
    return RemoteBus(getattr(part(f"tasks.{module}", extra), carrier)(url))


BUSES: Final[Mapping[str, Callable[[str], Bus]]] = {
    "postgresql": partial(_remote, "bus_postgres", "PostgresCarrier", "postgres"),
    "nats": partial(_remote, "bus_nats", "NatsCarrier", "nats"),
}
"""Bus factories by the scheme of the `bus` option, or of the `store` option if that is empty."""


def open_store(options: Options) -> Store:
    """The store that the options name, not yet opened. Raises OptionError: unknown scheme, missing driver."""
    scheme = options.store.partition(":")[0]
    if scheme not in STORES:
        known = ", ".join(f"{name}:" for name in STORES)
        raise OptionError(f"store must start with one of {known}, not {scheme}:")
    return STORES[scheme](options.store, options)


def lasting_store(options: Options) -> HasSchema:
    """The store that the options name, not yet opened, if it outlives its process. Raises OptionError."""
    store = open_store(options)
    if not isinstance(store, HasSchema):
        raise OptionError("this store has no tables to look after: it does not outlive its process")
    return store


async def schema_of(options: Options, upgrade: bool = False) -> tuple[int, int]:
    """The number of the schema in the store that the options name, 0 for none, and the one this release needs.

    upgrade: bring it up to date first. Raises OptionError for a store without tables, StoreError: no way to the store,
    and with `upgrade` a schema that is newer than this release.
    """
    store = lasting_store(options)
    if upgrade:
        await store.open()
        await store.close()
    return await store.schema(), len(MIGRATIONS)


def open_bus(options: Options) -> Bus:
    """The bus that the options name, not yet opened. Raises OptionError: unknown scheme, missing driver."""
    scheme = (options.bus or options.store).partition(":")[0]
    if scheme in BUSES:
        return BUSES[scheme](options.bus or options.store)
    if options.bus:
        known = ", ".join(f"{name}:" for name in BUSES)
        raise OptionError(f"bus must start with one of {known}, not {scheme}:")
    return LocalBus()


def open_policy(options: Options) -> auth.Policy | None:
    """What the options ask of callers, None for nothing. Raises OptionError, and OSError for a file of keys."""
    ways: list[auth.Authenticator] = []
    if options.api_key_file:
        ways.append(auth.ApiKey(auth.KeyFile(options.api_key_file), options.api_key_header))
    if options.jwt_issuer:
        keys, place = None, options.jwks_url
        if place:
            found = part("auth_keys", "auth")
            keys = found.RemoteKeys(place) if "://" in place else found.FileKeys(place)
        ways.append(part("auth_jwt", "auth").JWT(options.jwt_issuer, options.jwt_audience, keys))
    return auth.AnyOf(*ways) if ways else None


def open_signer(options: Options) -> Any:
    """The signing.SignerFiles of the keys that the options name, None for none. Raises OptionError, OSError."""
    if not options.card_keys:
        return None
    here = options.public_url.rstrip("/") + JWKS if options.serve_jwks else ""
    return part("signing", "auth").SignerFiles(options.card_keys, options.card_jku or here)


def open_gate(authentication: auth.Authentication | None, options: Options) -> Gate | None:
    """What the wires ask first, None when nobody is asked anything."""
    known: Gate | None = authentication
    if authentication is not None and options.failure_rate:
        known = _patient(authentication, options)
    if not options.call_rate:
        return known
    rates = Rates(options.call_rate, options.call_burst)

    async def gate(credentials: Credentials) -> Caller:
        caller = await known(credentials) if known else ANONYMOUS
        rates.take(caller.subject)
        return caller

    return gate


def _patient(authentication: auth.Authentication, options: Options) -> Gate:
    """The gate, closed for a while to addresses that have shown too many wrong credentials (SEC-04)."""
    wrong = Rates(options.failure_rate, options.failure_burst)

    async def gate(credentials: Credentials) -> Caller:
        told = credentials.metadata.get("x-forwarded-for", "") if options.trust_forwarded else ""
        source = _network(told.rpartition(",")[2].strip() or credentials.peer)
        wrong.take(source, 0)
        shown: list[auth.Authenticator] = []
        try:
            return await authentication(credentials, shown)
        finally:
            if shown:  # beside a right one, too: who has that must not guess those of others
                with suppress(ResourceExhaustedError):
                    wrong.take(source)

    return gate


def _network(address: str) -> str:
    """What counts as one address: of IPv6 the network that one customer has."""
    try:
        found = ip_address(address)
    except ValueError:
        return address
    mapped = found.ipv4_mapped if isinstance(found, IPv6Address) else None
    return str(mapped or (found if found.version == 4 else ip_network((found, 64), strict=False)))


def open_telemetry(options: Options) -> Off:
    """What watches a server, as the options say."""
    recorders: list[Recorder] = []
    if options.telemetry:
        recorders.append(part("telemetry_otel", "telemetry").recorder())
    if options.metrics:
        name = os.environ.get("OTEL_SERVICE_NAME") or "a2a-grpc"
        recorders.append(part("telemetry_prometheus", "telemetry").Prometheus(name))
    if recorders:
        return Telemetry(recorders[0] if len(recorders) == 1 else Both(*recorders), hash_callers=options.hash_callers)
    watches = Telemetry if options.log_format == "json" else Off
    return watches(hash_callers=options.hash_callers)


def open_poster(options: Options) -> HttpPoster | None:
    """What calls webhooks; None where the options say that nothing does."""
    if not options.push_notifications:
        return None
    return HttpPoster(Guard(options.push_allow, options.push_https_only), options.push_timeout)
