"""Every descriptor of the package in one private pool, and what the other modules are made with. Made by proto/generate.py; do not edit."""

from collections.abc import AsyncIterator, Awaitable
from typing import Any, NamedTuple, Protocol, TypeVar

from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import Message

TOOLS: str
"""Releases of the tools whose google files are in the set."""
FILE_DESCRIPTOR_SET: bytes
"""A serialised google.protobuf.FileDescriptorSet, dependencies first, without source comments."""
pool: DescriptorPool
"""Holds every file of the set and nothing else; not the default pool."""

_Given = TypeVar("_Given", contravariant=True)
_Answer = TypeVar("_Answer", covariant=True)

class Method(NamedTuple):
    """One row of a METHODS table."""

    name: str
    path: str
    """The full gRPC path, `/package.Service/Method`."""
    input: type[Message]
    output: type[Message]
    server_streaming: bool
    """True: many answers."""

class _Call(Protocol):
    def cancel(self) -> bool: ...
    def code(self) -> Any: ...
    def details(self) -> Any: ...
    def initial_metadata(self) -> Any: ...
    def trailing_metadata(self) -> Any: ...
    def add_done_callback(self, callback: Any) -> None: ...

class UnaryCall(_Call, Awaitable[_Answer], Protocol[_Answer]):
    """A running call with one answer, which is awaited."""

class StreamCall(_Call, AsyncIterator[_Answer], Protocol[_Answer]):
    """A running call with many answers, which are iterated with `async for` or taken with `read`."""

    async def read(self) -> Any: ...

class UnaryUnary(Protocol[_Given, _Answer]):
    """A method with one answer, as it is on a grpc.aio channel."""

    def __call__(
        self,
        request: _Given,
        *,
        timeout: float | None = ...,
        metadata: Any = ...,
        credentials: Any = ...,
        wait_for_ready: bool | None = ...,
        compression: Any = ...,
    ) -> UnaryCall[_Answer]: ...

class UnaryStream(Protocol[_Given, _Answer]):
    """A method with many answers, as it is on a grpc.aio channel."""

    def __call__(
        self,
        request: _Given,
        *,
        timeout: float | None = ...,
        metadata: Any = ...,
        credentials: Any = ...,
        wait_for_ready: bool | None = ...,
        compression: Any = ...,
    ) -> StreamCall[_Answer]: ...

def message(full_name: str, module: str) -> type[Message]:
    """The class of a message of the pool, said to be of `module`."""

def enum(full_name: str) -> Any:
    """The wrapper of an enum of the pool."""

async def unimplemented(context: Any) -> None:
    """Ends a grpc.aio call with UNIMPLEMENTED."""

def bind(stub: object, channel: Any, methods: tuple[Method, ...]) -> None:
    """Gives a stub one callable for each method of the table; the channel may be of grpc.aio or of grpc."""

def register(servicer: object, server: Any, service: str, methods: tuple[Method, ...]) -> None:
    """Adds the methods of a servicer to a grpc.aio or grpc server."""
