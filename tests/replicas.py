"""Servers in this process that share one PostgreSQL, each call taken by one of them by chance.

Laws: they share nothing else; which bus is between them, or none that works, is a row of BUSES.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any

from a2a_stubs import v1_grpc

from a2a_grpc.agent import Agent
from a2a_grpc.config import Options
from a2a_grpc.opening import open_bus, open_store
from a2a_grpc.server import Server
from a2a_grpc.service import A2AService, Owner
from a2a_grpc.tasks.bus import Bus
from a2a_grpc.tasks.bus_remote import RemoteBus
from tests.stores import nats_url, postgres_url


def deaf() -> RemoteBus:
    """A bus that loses everything."""

    class Nothing:
        async def open(self, receive: Any) -> None:
            pass

        async def close(self) -> None:
            pass

        async def send(self, message: bytes) -> None:
            raise ConnectionError("cut")

    return RemoteBus(Nothing())


BUSES: dict[str, Callable[[str], Bus]] = {
    "postgresql": lambda url: open_bus(Options(store=url)),
    "nats": lambda url: open_bus(Options(store=url, bus=nats_url(url))),
    "deaf": lambda _: deaf(),
}
"""A bus for replicas on the database at an address."""


async def vanish(server: Server) -> None:
    """The server can no longer reach its store: whatever it does from now on cannot be stored."""
    await server.store._link.close()  # type: ignore[attr-defined]


class Spread(v1_grpc.A2AServiceServicer):
    """Several services as one: each call goes to any of them."""

    def __init__(self, services: Sequence[Any]) -> None:
        for method in v1_grpc.METHODS:
            setattr(self, method.name, self._any([getattr(service, method.name) for service in services]))

    @staticmethod
    def _any(methods: Sequence[Any]) -> Any:
        return lambda request, call: random.choice(methods)(request, call)


class Front(Server):
    """A server whose ports are those of others, too: each call is taken by any of them."""

    def __init__(self, others: Sequence[Server], *given: Any, **more: Any) -> None:
        self._others = others
        super().__init__(*given, **more)

    def _servicer(self, name: str, agent: Any, owner: Owner) -> Any:
        card = self._cards.extended(name, agent)
        engines = [self.engine, *(other.engine for other in self._others)]
        return Spread([A2AService(name, agent, engine, self.options, card, owner) for engine in engines])

    async def start(self) -> None:
        for other in self._others:
            await other.start_engine()
        await super().start()

    async def stop(self, grace: float | None = None) -> None:
        for other in self._others:
            await other.stop(grace)
        await super().stop(grace)


async def fronted(
    stack: AsyncExitStack,
    kind: str,
    agents: Callable[[], Agent | Mapping[str, Agent]],
    options: Options,
    **more: Any,
) -> Front:
    """Three replicas with a bus of BUSES, of which one has ports; not yet started."""
    url = await stack.enter_async_context(postgres_url())

    def parts() -> dict[str, Any]:
        return {"store": open_store(Options(store=url, store_connections=3)), "bus": BUSES[kind](url)}

    others = [Server(agents(), options, **parts()) for _ in range(2)]
    return Front(others, agents(), options, **parts(), **more)
