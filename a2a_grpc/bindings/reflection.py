"""gRPC server reflection, v1alpha and v1, over every descriptor that the server speaks (GRPC-16, BL-40).

Laws: no gRPC library; reflection answers from descriptors alone and knows no operation. The A2A descriptors live in the
private pool of the stubs; health and reflection describe themselves from the pool of their own packages. v1 is v1alpha
under another package name, so one method answers both.
"""

from collections.abc import AsyncIterable, Callable, Iterable, Iterator
from typing import Any, Final

from a2a_stubs import descriptors
from google.protobuf import descriptor_pb2, descriptor_pool, text_format
from grpc_reflection.v1alpha import reflection_pb2

from a2a_grpc.bindings.rpc import NOT_A_REQUEST, Context, Handler, Rpc, reader
from a2a_grpc.errors import Code, InvalidParamsError

V1ALPHA: Final = "grpc.reflection.v1alpha.ServerReflection"
V1: Final = "grpc.reflection.v1.ServerReflection"


def _v1_pool() -> descriptor_pool.DescriptorPool:
    """A pool with the description of the v1 service, which no package brings along."""
    alpha = descriptor_pb2.FileDescriptorProto()
    reflection_pb2.DESCRIPTOR.CopyToProto(alpha)
    text = text_format.MessageToString(alpha).replace("v1alpha", "v1")
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(text_format.Parse(text, descriptor_pb2.FileDescriptorProto()).SerializeToString())
    return pool


class Reflection:
    """What there is to tell. services: full names to list."""

    def __init__(self, services: Iterable[str]) -> None:
        self._services = sorted(services)
        self._pools: tuple[Any, ...] = (descriptors.pool, _v1_pool(), descriptor_pool.Default())
        self._questions: dict[str, Callable[[Any], dict[str, Any]]] = {
            "file_by_filename": lambda name: _files(self._first("FindFileByName", name)),
            "file_containing_symbol": lambda name: _files(self._holder(name)),
            "file_containing_extension": self._extension,
            "all_extension_numbers_of_type": self._numbers,
            "list_services": self._list,
        }

    async def talk(self, requests: AsyncIterable[Any], context: Context) -> None:
        """Answer questions until there are no more. Raises InvalidParamsError for bytes that are none."""
        async for request in requests:
            if request is None:
                raise InvalidParamsError(NOT_A_REQUEST)
            await context.write(self.answer(request))

    def answer(self, request: Any) -> Any:
        """The answer to one question; what is unknown is an answer, too."""
        asked = request.WhichOneof("message_request")
        try:
            found = self._questions[asked](getattr(request, asked)) if asked else _failed(Code.INVALID_ARGUMENT)
        except (KeyError, ValueError):
            found = _failed(Code.NOT_FOUND)
        return reflection_pb2.ServerReflectionResponse(original_request=request, **found)

    def _first(self, look_up: str, name: str) -> Any:
        """What the first pool gives that knows a name."""
        for pool in self._pools:
            try:
                return getattr(pool, look_up)(name)
            except (KeyError, ValueError):
                continue
        raise KeyError(name)

    def _holder(self, name: str) -> Any:
        name = name.removeprefix(".")
        owner, _, member = name.rpartition(".")
        try:
            return self._first("FindFileContainingSymbol", name)
        except KeyError:  # pools of the C runtime know no methods by name
            service = self._first("FindServiceByName", owner)
            if member not in service.methods_by_name:
                raise
            return service.file

    def _message(self, name: str) -> Any:
        return self._first("FindMessageTypeByName", name.removeprefix("."))

    def _extension(self, asked: Any) -> dict[str, Any]:
        message = self._message(asked.containing_type)
        return _files(message.file.pool.FindExtensionByNumber(message, asked.extension_number).file)

    def _numbers(self, name: str) -> dict[str, Any]:
        message = self._message(name)
        numbers = sorted(extension.number for extension in message.file.pool.FindAllExtensions(message))
        told = {"base_type_name": message.full_name, "extension_number": numbers}
        return {"all_extension_numbers_response": told}

    def _list(self, _: str) -> dict[str, Any]:
        return {"list_services_response": {"service": [{"name": name} for name in self._services]}}


def _failed(code: Code) -> dict[str, Any]:
    return {"error_response": {"error_code": int(code), "error_message": code.name}}


def _files(file: Any) -> dict[str, Any]:
    """A file and all that it needs, each once."""

    def needed(one: Any) -> Iterator[Any]:
        yield one
        for other in one.dependencies:
            yield from needed(other)

    each = {one.name: one.serialized_pb for one in needed(file)}
    return {"file_descriptor_response": {"file_descriptor_proto": list(each.values())}}


def rows(served: Iterable[Rpc], plain: Callable[[Handler], Handler]) -> list[Rpc]:
    """The calls of both versions of the service. served: all other calls; plain: makes handlers of methods, as of
    `Rpcs`."""
    names = {row.path.split("/")[1] for row in served} | {V1ALPHA, V1}
    service = reflection_pb2.DESCRIPTOR.services_by_name["ServerReflection"]
    read, write = reader(reflection_pb2.ServerReflectionRequest), reflection_pb2.ServerReflectionResponse
    handler = plain(Reflection(names).talk)
    return [
        Rpc(f"/{name}/{method.name}", read, write.SerializeToString, handler, streaming=True, asking=True)
        for name in (V1ALPHA, V1)
        for method in service.methods
    ]
