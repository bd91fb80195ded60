"""Servicers around servicers: interceptors, and the choice of an agent by tenant.

Laws: computed from the method table, so that no operation is named here; what is not asked for costs nothing: without
interceptors the service itself is handed on.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing
from typing import Any

from a2a_stubs import v1_grpc
from google.protobuf.message import Message

from a2a_grpc.call import Call, Interceptor
from a2a_grpc.errors import NotFoundError, TaskNotFoundError


class Surrounded(v1_grpc.A2AServiceServicer):
    """A service with interceptors around each call; made by `surround`."""

    def __init__(self, service: Any, interceptors: Sequence[Interceptor]) -> None:
        for method in v1_grpc.METHODS:
            wrap = _streaming if method.server_streaming else _unary
            setattr(self, method.name, wrap(getattr(service, method.name), tuple(interceptors)))


def surround(service: Any, interceptors: Sequence[Interceptor]) -> Any:
    """The service with interceptors around it, the first outermost; without any, the service itself."""
    return Surrounded(service, interceptors) if interceptors else service


def _unary(method: Any, interceptors: tuple[Interceptor, ...]) -> Any:
    async def called(request: Message, call: Call) -> Message:
        call.gives_request = False  # interceptors may look at it again
        async with AsyncExitStack() as stack:
            for interceptor in interceptors:
                await stack.enter_async_context(interceptor(call, request))
            answer: Message = await method(request, call)
            return answer
        raise AssertionError("an interceptor swallowed the error of its call")

    return called


def _streaming(method: Any, interceptors: tuple[Interceptor, ...]) -> Any:
    async def called(request: Message, call: Call) -> AsyncIterator[Message]:
        call.gives_request = False
        async with AsyncExitStack() as stack:
            for interceptor in interceptors:
                await stack.enter_async_context(interceptor(call, request))
            events = method(request, call)
            stack.push_async_callback(events.aclose)
            async for event in events:
                yield event
            return
        raise AssertionError("an interceptor swallowed the error of its call")

    return called


class ByTenant(v1_grpc.A2AServiceServicer):
    """Several agents behind one address: the tenant names the agent, no tenant means the first (BL-52).

    A tenant that is neither an agent nor served by the first one is unknown like a foreign resource (TENANT-06).
    """

    def __init__(self, services: Mapping[str, Any], agents: Mapping[str, Any]) -> None:
        first = next(iter(services))
        for method in v1_grpc.METHODS:
            routes = {name: getattr(service, method.name) for name, service in services.items()}
            routes[""] = routes[first]
            own = frozenset(agents[first].tenants)
            setattr(self, method.name, _routed(routes, own, streaming=method.server_streaming))


def _routed(routes: Mapping[str, Any], own: frozenset[str], *, streaming: bool) -> Any:
    def choose(request: Any, call: Call) -> Any:
        tenant = call.tenant
        if tenant in routes:
            call.tenant = ""
            return routes[tenant]
        if tenant in own:
            return routes[""]
        told = (request, getattr(request, "message", None))  # a message may be about a task as well
        about_task = any(getattr(one, name, "") for one in told for name in ("id", "task_id"))
        raise TaskNotFoundError if about_task else NotFoundError

    async def unary(request: Message, call: Call) -> Any:
        return await choose(request, call)(request, call)

    async def stream(request: Message, call: Call) -> AsyncIterator[Any]:
        async with aclosing(choose(request, call)(request, call)) as events:
            async for event in events:
                yield event

    return stream if streaming else unary
