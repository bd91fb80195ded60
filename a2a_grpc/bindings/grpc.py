"""gRPC on grpc.aio: a port of our own, or a server of somebody else's.

Laws: what a call means is said in `bindings.rpc`; here is only what the library wants of it. Nothing of gRPC is made at
import (BL-43).
"""

import asyncio
import logging
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property, partial
from types import SimpleNamespace
from typing import Any, Final

import grpc
import grpc.aio

from a2a_grpc.bindings import health, reflection
from a2a_grpc.bindings.rpc import Refusal, Rpc, Rpcs
from a2a_grpc.bindings.streams import LAST_WORDS, Streams
from a2a_grpc.bindings.tls import of_context, server_credentials
from a2a_grpc.call import Certificate, Gate
from a2a_grpc.config import Options
from a2a_grpc.errors import STOPPING, UnavailableError

_STATUS: Final = {code.value[0]: code for code in grpc.StatusCode}
_MIN_PING_INTERVAL_MS: Final = 5000
_PING_TIMEOUT_MS: Final = 20_000

MOST_BYTES: Final = 4096
"""Wake-ups that are joined at a time."""

READER: Final = "PollerCompletionQueue._handle_events"
"""What in grpcio takes one byte at a time."""

_LOOK: Final[int] = getattr(socket, "MSG_DONTWAIT", 0) | socket.MSG_PEEK

_KINDS: Final[Mapping[tuple[bool, bool], Callable[..., Any]]] = {
    (False, False): grpc.unary_unary_rpc_method_handler,
    (False, True): grpc.unary_stream_rpc_method_handler,
    (True, True): grpc.stream_stream_rpc_method_handler,
}
"""What makes a handler of the library, by whether there are many requests and many answers."""


_SPEAKER: Final = "grpc._cython.cygrpc"
"""Where grpcio writes what handlers raise."""


def _fault(record: logging.LogRecord) -> bool:
    """Whether a line of grpcio tells of a fault: a caller who is gone before its answer is written is none (BL-35)."""
    return not (record.exc_info and type(record.exc_info[1]).__name__ == "ExecuteBatchError")


async def _refuse(context: Any, refusal: Refusal) -> None:
    await context.abort(_STATUS[refusal.code], refusal.text, refusal.trailers)


def _shown(context: Any) -> Certificate | None:
    return of_context(context.auth_context())


class GrpcBinding:
    """The gRPC side of a servicer.

    servicer: any object with the eleven v1.0 methods `(request, call)`; streaming ones are async generators.
    options: versions, limits, error profile. streams: where open streams are counted, shared with the other wires.
    gate: tells who is calling; default None: nobody is asked.
    services: for each offered version, an object for the `add_A2AServiceServicer_to_server` of its stubs.
    rpcs: its calls.
    """

    def __init__(self, servicer: object, options: Options, streams: Streams, gate: Gate | None = None) -> None:
        self._make = partial(Rpcs, servicer, options, streams, gate, _refuse, _shown, _metadata)
        self.rpcs = self._make()

    @cached_property
    def services(self) -> Mapping[str, SimpleNamespace]:
        """See the class: the stubs serialise messages and nothing else."""
        return {version: SimpleNamespace(**each) for version, each in self._make(ready=False).handlers.items()}

    def add_to_server(self, server: grpc.aio.Server) -> None:
        """Serve every offered version on a grpc.aio server that has not started. Bytes that are no request get
        INVALID_ARGUMENT, which the `add_A2AServiceServicer_to_server` of the stubs leaves to grpcio (BL-28)."""
        add_rows(server, self.rpcs.rows())


def add_rows(server: grpc.aio.Server, rows: Iterable[Rpc]) -> None:
    """Serve calls on a grpc.aio server that has not started."""
    server.add_generic_rpc_handlers((_Served(rows),))


class _Served(grpc.GenericRpcHandler):  # type: ignore[misc]
    """Finds the handler of a call, and keeps for it the metadata that were read to find it."""

    def __init__(self, rows: Iterable[Rpc]) -> None:
        self._handlers = {row.path: _made(row) for row in rows}

    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler | None:
        found = self._handlers.get(details.method)
        if found is not None:
            _told.set(details.invocation_metadata)
        return found


def _made(row: Rpc) -> grpc.RpcMethodHandler:
    one = not (row.asking or row.streaming)
    return _KINDS[row.asking, row.streaming](_One(row.handler) if one else row.handler, row.read, row.write)


class _One(partial[Any]):
    """A handler with one answer. grpcio finds out at each call whether a handler is asynchronous, which takes it some
    microseconds for a function, and one for what could be awaited."""

    __slots__ = ()

    def __await__(self) -> Iterator[Any]:
        raise TypeError("a handler is to be called")


_told: Final[ContextVar[tuple[tuple[str, str | bytes], ...] | None]] = ContextVar("metadata", default=None)
"""The metadata of the call that the current task is about, until they are taken: grpcio makes them anew for each who
asks."""


def _metadata(context: Any) -> Any:
    found = _told.get()
    if found is None:  # an interceptor has kept the handler of an earlier call, or the stubs were used
        return context.invocation_metadata()
    _told.set(None)
    return found


def server_options(options: Options) -> list[tuple[str, int]]:
    """The grpc server arguments that the options mean: size limits, and pings that throw nobody off (BL-38, BL-39)."""
    keepalive = [("grpc.keepalive_time_ms", int(options.keepalive * 1000))] if options.keepalive else []
    return [
        ("grpc.max_receive_message_length", options.max_request_bytes),
        ("grpc.max_send_message_length", -1),
        *keepalive,
        ("grpc.keepalive_timeout_ms", _PING_TIMEOUT_MS),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.min_recv_ping_interval_without_data_ms", _MIN_PING_INTERVAL_MS),
        ("grpc.http2.max_ping_strikes", 0),
        ("grpc.http2.max_pings_without_data", 0),
        ("grpc.so_reuseport", int(options.reuse_port)),
    ]


class GrpcHost:
    """A gRPC port of our own: the binding, health, and reflection when the option is on.

    address: `host:port` as bound, "" before `start`.
    """

    def __init__(self, binding: GrpcBinding, options: Options) -> None:
        self._binding = binding
        self._options = options
        self._server: grpc.aio.Server | None = None
        self._health: health.Health | None = None
        self.address = ""

    async def start(self) -> None:
        """Open the port and serve. Raises OSError when the address cannot be had or a TLS file cannot be read."""
        options = self._options
        logging.getLogger(_SPEAKER).addFilter(_fault)
        with joined():
            server = grpc.aio.server(options=server_options(options))
        port = self._bind(server)
        rpcs = self._binding.rpcs
        self._health = health.Health(rpcs.names)
        rows = rpcs.rows() + health.rows(self._health, rpcs.plain)
        add_rows(server, rows + (reflection.rows(rows, rpcs.plain) if options.reflection else []))
        await server.start()
        self._server = server
        self.address = f"{options.grpc.rpartition(':')[0]}:{port}"

    def _bind(self, server: grpc.aio.Server) -> int:
        options = self._options
        try:
            if not options.tls_cert:
                return int(server.add_insecure_port(options.grpc))
            return int(server.add_secure_port(options.grpc, server_credentials(options)))
        except RuntimeError:
            raise OSError(f"gRPC cannot listen on {options.grpc}: in use, or not an address of this host") from None

    async def drain(self) -> None:
        """Say NOT_SERVING to whoever asks for health, for good. Calls are served as before."""
        if self._health is not None:
            self._health.drain()

    async def stop(self, grace: float) -> None:
        """Take no new calls, let running ones end within `grace` seconds, tell the streams that are left that the
        server is unavailable, then close the port (BL-34). Health watchers are not waited for: they are told, too."""
        if self._server is None:
            return
        server, self._server = self._server, None
        await self.drain()
        closing = asyncio.create_task(server.stop(grace + 3 * LAST_WORDS))
        await self._binding.rpcs.running.idle(grace)
        if len(self._binding.rpcs.running):
            self._binding.rpcs.end(UnavailableError(STOPPING))
        await self._binding.rpcs.running.idle(LAST_WORDS)
        if self._health is not None:
            self._health.end()
        # grpcio writes an answer after its handler is over, and what is cut off before that is lost.
        await asyncio.wait({closing}, timeout=LAST_WORDS)
        await server.stop(None)
        await closing


# -- how grpcio wakes the loop


@contextmanager
def joined() -> Iterator[None]:
    """Join grpcio's wake-ups of the running loop, if it is tied to the loop in here: with the first server or channel
    that is made there.

    A thread of grpcio sends a byte through a socket for each operation that is over. Its reader in the loop takes one
    byte and deals with everything that is over, so that a loop with a hundred operations in one turn is woken
    ninety-nine times more for nothing. Here the bytes are taken together, save for the last, which is grpcio's to read;
    none is taken before what it stands for can be seen. Readers of other names are left alone.
    """
    loop: Any = asyncio.get_running_loop()
    add = loop.add_reader

    def added(file: Any, handler: Callable[..., Any], *words: Any) -> None:
        if isinstance(file, socket.socket) and _is_reader(handler):
            handler = together(file, handler)
        add(file, handler, *words)

    replaced = "add_reader" in getattr(loop, "__dict__", ())
    try:
        loop.add_reader = added
    except AttributeError:  # a loop to which nothing can be added
        added = add
    try:
        yield
    finally:
        if replaced:
            loop.add_reader = add
        elif added is not add:
            del loop.add_reader


def _is_reader(handler: Any) -> bool:
    method = getattr(handler, "func", handler)
    return f"{type(getattr(method, '__self__', None)).__name__}.{getattr(method, '__name__', '')}" == READER


def together(file: socket.socket, handler: Callable[..., Any]) -> Callable[..., None]:
    """What is to be called in place of a handler that reads one byte: takes all but one before."""
    room = bytearray(MOST_BYTES)

    def woken(*words: Any) -> None:
        try:
            there = file.recv_into(room, MOST_BYTES, _LOOK)
        except BlockingIOError:
            return
        if there > 1:
            file.recv_into(room, there - 1)
        handler(*words)

    return woken
