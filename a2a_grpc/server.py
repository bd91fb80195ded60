"""The assembly: agents, a store, the engine, the services and the hosts, put together and run.

Laws: this is where the parts meet; it holds no rule of the protocol. A `Server` is made
without side effects (BL-43); sockets, threads and files come with `start`.
"""

import asyncio
import logging
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, Final

import grpc.aio
from aiohttp import web

from a2a_grpc import auth, inspector
from a2a_grpc.admin import Admin
from a2a_grpc.agent import Agent
from a2a_grpc.auth_rates import limits
from a2a_grpc.bindings import openapi
from a2a_grpc.bindings.asgi import AsgiHost
from a2a_grpc.bindings.grpc import GrpcBinding, GrpcHost
from a2a_grpc.bindings.http import HttpHost
from a2a_grpc.bindings.jsonrpc import JsonRpc
from a2a_grpc.bindings.mounts import CardReader, Mount
from a2a_grpc.bindings.rest import Rest
from a2a_grpc.bindings.streams import Streams
from a2a_grpc.bindings.wire import HttpReply, HttpRequest, query_pairs
from a2a_grpc.call import REST, Caller, Credentials, Interceptor
from a2a_grpc.card_pages import Cards, Places
from a2a_grpc.config import OptionError, Options
from a2a_grpc.errors import NotFoundError
from a2a_grpc.gateway import Upstream
from a2a_grpc.opening import (
    HasSchema,
    open_bus,
    open_gate,
    open_policy,
    open_poster,
    open_signer,
    open_store,
    open_telemetry,
)
from a2a_grpc.python310 import Self
from a2a_grpc.python310_asyncio import count_cancels
from a2a_grpc.routing import ByTenant, surround
from a2a_grpc.service import A2AService, Owner, subject
from a2a_grpc.store_watch import StoreWatch
from a2a_grpc.tasks.bus import Bus, LocalBus
from a2a_grpc.tasks.engine import Engine
from a2a_grpc.tasks.memory import MemoryStore
from a2a_grpc.tasks.store import Store
from a2a_grpc.telemetry_parts import Off

log: Final = logging.getLogger("a2a_grpc")

STOP_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
"""What tells `Server.serve` to stop."""

LAST_READERS: Final = 4.0
"""Most seconds of the grace that are left to readers when all turns are over."""

RESERVED_TENANTS: Final = frozenset(("tasks", "message:send", "message:stream", "extendedAgentCard"))
"""First segments of REST paths, which no tenant may be named after (REST-05)."""


class Server:
    """One or several agents, served on every wire.

    agents: one Agent, or an Upstream, which makes the server a gateway; or several by name. With several, each is
    reached on HTTP below `/<name>` (and `/api/a2a/<name>`, card at `/api/.well-known/<name>/agent-card.json`), and by
    tenant `<name>` at the root and on gRPC; calls without a tenant go to the first.
    options: default Options(). store, bus: default as the options say, in memory where no agent and no upstream keeps
    anything; beside a store of your own, hints stay within the process unless you hand in a bus, too, or name one.
    interceptors: surround every call, the first outermost.
    authenticators: what callers must show, see auth; default as the options say, which is nothing. authorizer: whether
    a known caller may make a call; default always. owner: whose tasks a call is about, default its caller's subject.
    telemetry: what watches; default as the options say, which is nothing.
    Raises OptionError when the parts do not fit together.
    """

    def __init__(
        self,
        agents: Agent | Upstream | Mapping[str, Agent | Upstream],
        options: Options | None = None,
        *,
        store: Store | None = None,
        bus: Bus | None = None,
        interceptors: Sequence[Interceptor] = (),
        authenticators: auth.Policy | None = None,
        authorizer: auth.Authorizer | None = None,
        owner: Owner = subject,
        telemetry: Off | None = None,
    ) -> None:
        self.options = options or Options()
        self.telemetry = telemetry or open_telemetry(self.options)
        self.agents = dict(agents) if isinstance(agents, Mapping) else {"": agents}
        local = {name: agent for name, agent in self.agents.items() if isinstance(agent, Agent)}
        self._upstreams = [agent for agent in self.agents.values() if isinstance(agent, Upstream)]
        keeps = local or not self.agents or any(each.push == "own" or each.buffer for each in self._upstreams)
        self.store = store or (open_store(self.options) if keeps else MemoryStore())
        _check_names(self.agents, self.options)
        self.engine = Engine(
            self.telemetry.store(self.store),
            bus or (LocalBus() if store and not self.options.bus else open_bus(self.options)),
            local,
            self.options,
            self.telemetry.poster(open_poster(self.options)),
            self.telemetry.around,
        )
        self.streams = Streams(self.options.max_streams)
        self.ready = False
        self._started = False
        elsewhere = isinstance(self.store, HasSchema) and not self.store.exclusive
        self._watch = StoreWatch(self.store) if elsewhere else None
        policy = open_policy(self.options) if authenticators is None else authenticators
        self.authentication = None if policy is None else auth.Authentication(policy)
        """What tells who is calling, None when nobody is asked; counts `failures`."""
        signer = open_signer(self.options)
        self._cards = Cards(self.agents, self.options, self._places, self.authentication, signer)
        self._authorizer = authorizer
        self._gate = open_gate(self.authentication, self.options)
        self._limits = limits(self.options)
        services = {
            name: surround(self._servicer(name, agent, owner), interceptors) for name, agent in self.agents.items()
        }
        several = len(services) > 1
        self.service = self._guarded(ByTenant(services, self.agents) if several else next(iter(services.values())))
        """The service object with the eleven operations; takes v1.0 messages and a `Call`."""
        self.admin = Admin(self, self.options, self.telemetry)
        """The view for operators."""
        self._door = self.telemetry.gate(self._gate)
        self._mounts = self._make_mounts(services)
        self._grpc = GrpcBinding(self.service, self.options, self.streams, self._door)
        self._grpc_host: GrpcHost | None = None
        self._http_host: HttpHost | None = None
        self._asgi_host: AsgiHost | None = None
        self.served_at = ""
        """`host:port` at which somebody else's server carries `asgi()`, gRPC with it; default "": unknown. Set it, and
        cards name that address."""

    # -- life

    async def start(self) -> None:
        """Open the store, settle what an earlier run left behind, open both ports; nothing if that is done already.
        A server may be started again after its stop. Raises StoreBusy, OSError; then nothing is left open."""
        if self._grpc_host or self._http_host:
            return
        await self.start_engine()
        try:
            if self.options.grpc:
                self._grpc_host = GrpcHost(self._grpc, self.options)
                await self._grpc_host.start()
            if self.options.http:
                self._http_host = HttpHost(self._mounts, self.options, self.streams, unready=self._unready)
                await self._http_host.start()
        except BaseException:
            await self.stop(0)
            raise
        self.ready = True

    async def start_engine(self) -> None:
        """Open the store and start the engine only: for servers whose ports are somebody else's."""
        if not self._started:
            count_cancels(asyncio.get_running_loop())
            await self.store.open()
            self._started = True
            if self.options.push_notifications and not self.options.secret_keys and isinstance(self.store, HasSchema):
                log.warning("secrets of webhooks are kept as they are: see the option secret_keys")
            try:
                await self.engine.start()
                await self.admin.start()
                await asyncio.gather(*(upstream.open() for upstream in self._upstreams))
                if self._watch is not None:
                    self._watch.open()
            except BaseException:
                await self.stop(0)
                raise
            if self._asgi_host:
                self._asgi_host.resume()
            self.ready = not (self.options.grpc or self.options.http)

    async def stop(self, grace: float | None = None) -> None:
        """Stop gracefully: no new work, running turns may finish within `grace` seconds (default: the option), then
        streams end, ports close, the store closes (BL-34)."""
        grace = self.options.grace if grace is None else grace
        end = time.monotonic() + grace
        self.ready = False
        if self._grpc_host:
            await self._grpc_host.drain()
        if self._asgi_host:
            self._asgi_host.drain()
        if self._started:
            await asyncio.gather(self.engine.drain(grace), *(upstream.close(grace) for upstream in self._upstreams))
        # What the grace has left over is for readers who are still being told how their tasks ended.
        patience = min(1.0, grace + 0.1) + min(max(end - time.monotonic(), 0), LAST_READERS)
        hosts = [host.stop(patience) for host in (self._http_host, self._grpc_host, self._asgi_host) if host]
        await asyncio.gather(*hosts)
        self._http_host = self._grpc_host = None
        if self._started:
            self._started = False
            await self.admin.stop()
            if self._watch is not None:
                await self._watch.close()
            await self.store.close()
            await self.telemetry.flush()

    async def serve(self, started: Callable[[], None] = lambda: None) -> None:
        """Start, run until SIGINT or SIGTERM, stop gracefully; a second signal ends the process at once.

        started: called once everything answers, for instance to print the addresses.
        """
        loop, told = asyncio.get_running_loop(), asyncio.Event()

        # Python's own handler, not the loop's: it is called even while a coroutine holds the loop.
        def stop(*_: object) -> None:
            for number in STOP_SIGNALS:
                signal.signal(number, signal.SIG_DFL)
            loop.call_soon_threadsafe(told.set)

        for number in STOP_SIGNALS:
            signal.signal(number, stop)
        await self.start()
        started()
        await told.wait()
        await self.stop()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    def _unready(self) -> str:
        """Why new work is not welcome, "" while it is."""
        if not self.ready:
            return "not ready"
        if self._watch is not None and self._watch.away:
            return "not ready: the store cannot be reached"
        return "" if all(upstream.up for upstream in self._upstreams) else "not ready: an upstream is away"

    # -- addresses and embedding

    @property
    def grpc_address(self) -> str:
        """`host:port` of the gRPC port, "" when there is none."""
        return self._grpc_host.address if self._grpc_host else self.served_at

    @property
    def http_address(self) -> str:
        """`host:port` of the HTTP port, "" when there is none."""
        return self._http_host.address if self._http_host else self.served_at

    @property
    def http_url(self) -> str:
        """Base URL of the HTTP port as bound, "" when there is none."""
        scheme = "https" if self.options.tls_cert else "http"
        return f"{scheme}://{self.http_address}" if self.http_address else ""

    def _places(self) -> Places:
        return Places(self.http_url, self.grpc_address)

    def application(self) -> web.Application:
        """The HTTP bindings as an aiohttp application, to run alone or to mount with `add_subapp`.

        It starts the engine with the application and stops it with it, unless the server runs already.
        """
        host = HttpHost(self._mounts, self.options, self.streams, unready=self._unready)
        application = host.application()

        owner = False

        async def begin(_: web.Application) -> None:
            nonlocal owner
            owner = not self._started
            await self.start_engine()
            self.ready = True

        async def end(_: web.Application) -> None:
            if owner:
                await self.stop()

        application.on_startup.append(begin)
        application.on_shutdown.append(end)  # while streams are open: the application would wait for them
        application.on_cleanup.append(end)  # where another part's start has failed
        return application

    @asynccontextmanager
    async def lifespan(self, application: object = None) -> AsyncIterator[None]:
        """The engine while another application runs, as `FastAPI(lifespan=server.lifespan)` wants it; nothing if the
        server runs already. Raises StoreBusy, OSError."""
        owner = not self._started
        await self.start_engine()
        self.ready = True
        try:
            yield
        finally:
            if owner:
                await self.stop()

    def asgi(self) -> AsgiHost:
        """Every wire as one ASGI 3 application, the same at each call; it starts and stops the engine with its own
        lifespan. Mounted in another application, which passes none on, it needs `lifespan` there."""
        if self._asgi_host is None:
            self._asgi_host = AsgiHost(
                self.service,
                self._mounts,
                self.options,
                self.streams,
                self._door,
                life=self.lifespan,
                unready=self._unready,
                serving=lambda: self._started,
                base=lambda: self.http_url,
            )
        return self._asgi_host

    def add_to_grpc(self, server: grpc.aio.Server) -> None:
        """Serve the gRPC bindings on a grpc.aio server of yours, which you start after `start_engine`."""
        self._grpc.add_to_server(server)

    # -- making

    def _servicer(self, name: str, agent: Agent | Upstream, owner: Owner) -> Any:
        if isinstance(agent, Agent):
            return A2AService(name, agent, self.engine, self.options, self._cards.extended(name, agent), owner)
        agent.present = self._cards.presented(name)
        agent.keep(name, self.engine, self.options, isinstance(self.store, HasSchema))
        return agent

    def _guarded(self, service: Any, agent: str = "") -> Any:
        """The service for callers who may use it. agent: the name that its path stands for."""
        steps = [*self._limits]
        if self.authentication is not None or self._authorizer is not None:
            challenge = self.authentication.challenge if self.authentication else ""
            steps.append(auth.authorization(self._authorizer, challenge, agent))
        return self.telemetry.service(surround(service, steps))

    def _make_mounts(self, services: Mapping[str, Any]) -> list[Mount]:
        mounts = [self._mount("", self.service, next(iter(self.agents)))]
        mounts[0].pages.update(self._cards.pages() | self.admin.public)
        if len(services) > 1:
            for name, inner in services.items():
                service = self._guarded(inner, name)
                alias = f"/api/.well-known/{name}/agent-card.json"
                mounts.append(self._mount(f"/{name}", service, name))
                mounts.append(self._mount(f"/api/a2a/{name}", service, name, alias))
        own = self.options.http and self.authentication is None
        if self.options.inspector == "on" or (self.options.inspector == "auto" and own):
            for mount in mounts:
                mount.pages.update(inspector.pages(mount.prefix))
        return mounts

    def _check_tenants(self, caller: Caller, name: str, prefix: str) -> None:
        """Raise NotFoundError for the card of an agent that a caller may not address (TENANT-06, TENANT-07)."""
        own = {name, *self.agents[name].tenants, *(() if prefix else ("",))}
        if len(self.agents) > 1 and caller.tenants is not None and own.isdisjoint(caller.tenants):
            raise NotFoundError

    def _mount(self, prefix: str, service: Any, name: str, *aliases: str) -> Mount:
        def shown(page: Callable[..., Awaitable[HttpReply]]) -> CardReader:
            async def reply(request: HttpRequest, origin: str) -> HttpReply:
                private = self._gate is not None and not self.options.public_card
                if self._gate is not None and private:
                    pairs = query_pairs(request)
                    asked = Credentials(REST, request.headers, pairs, request.certificate, request.peer)
                    self._check_tenants(await self._gate(asked), name, prefix)
                answer = await page(name, prefix, request, origin)
                if private:
                    answer.headers["cache-control"] = "private, no-cache"
                return answer

            return reply

        room = self.streams.check_room
        return Mount(
            prefix,
            JsonRpc(service, self.options, room, self._door),
            Rest(service, self.options, room=room, gate=self._door),
            shown(self._cards.reply),
            aliases,
            {prefix + openapi.PATH: shown(self._cards.openapi)},
        )


def _check_names(agents: Mapping[str, Agent | Upstream], options: Options) -> None:
    if not agents:
        raise OptionError("a server needs at least one agent")
    for agent in agents.values():
        try:
            _ = agent.handler if isinstance(agent, Agent) else None
        except ValueError as fault:
            raise OptionError(str(fault)) from None
    tenants = {tenant for agent in agents.values() for tenant in agent.tenants} | (
        set(agents) if len(agents) > 1 else set()
    )
    if wrong := sorted(tenants & RESERVED_TENANTS):
        raise OptionError(f"no tenant may be named {', '.join(wrong)}: REST paths begin with that word")
    if "v1" in tenants and "0.3" in options.versions:
        raise OptionError("no tenant may be named v1 while version 0.3 is offered: its REST paths begin with that word")
    if len(agents) > 1 and "" in agents:
        raise OptionError("several agents need a name each")
    if wrong := sorted(name for name in tenants if "/" in name or name.strip() != name or not name):
        raise OptionError(f"not fit as a name in paths: {', '.join(map(repr, wrong))}")
