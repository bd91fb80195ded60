"""gRPC health: whether the server, and each of its services, takes new calls (grpc.health.v1).

Laws: no gRPC library and no operation; a status changes once, when the server begins to stop.
"""

import asyncio
from collections.abc import Callable, Iterable
from typing import Any, Final

from grpc_health.v1 import health_pb2

from a2a_grpc.bindings.rpc import Context, Handler, Rpc, reader
from a2a_grpc.errors import STOPPING, NotFoundError, UnavailableError

SERVICE: Final = "grpc.health.v1.Health"
"""The full name of the service."""

_Answer: Final = health_pb2.HealthCheckResponse


class Health:
    """The health of one host. names: the full names of the services that it knows beside itself."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names = frozenset(("", *names))
        self._draining, self._over = asyncio.Event(), asyncio.Event()

    def drain(self) -> None:
        """Say NOT_SERVING from now on."""
        self._draining.set()

    def resume(self) -> None:
        """Say SERVING again."""
        self._draining.clear()

    def end(self) -> None:
        """End the calls of those who watch, for good."""
        self._over.set()

    def _status(self) -> Any:
        return _Answer.NOT_SERVING if self._draining.is_set() else _Answer.SERVING

    async def check(self, request: Any, context: Context) -> Any:
        """The status of a service, "" for the server. Raises NotFoundError."""
        if request.service not in self._names:
            raise NotFoundError("There is no such service")
        return _Answer(status=self._status())

    async def watch(self, request: Any, context: Context) -> None:
        """The status of a service now and when it changes; the call ends with its reader or the server, which then is
        UnavailableError."""
        if request.service not in self._names:
            await context.write(_Answer(status=_Answer.SERVICE_UNKNOWN))
        else:
            if not self._draining.is_set():
                await context.write(_Answer(status=self._status()))
                await self._draining.wait()
            await context.write(_Answer(status=self._status()))
        await self._over.wait()
        raise UnavailableError(STOPPING)


def rows(health: Health, plain: Callable[[Handler], Handler]) -> list[Rpc]:
    """The calls of the service. plain: makes handlers of methods, as of `Rpcs`."""
    read, write = reader(health_pb2.HealthCheckRequest), _Answer.SerializeToString
    methods = health_pb2.DESCRIPTOR.services_by_name["Health"].methods
    found = {method.name: (method.server_streaming, getattr(health, method.name.lower(), None)) for method in methods}
    return [
        Rpc(f"/{SERVICE}/{name}", read, write, plain(method), streaming)
        for name, (streaming, method) in found.items()
        if method
    ]
