"""gRPC server reflection, v1alpha and v1, over every descriptor that the server speaks (GRPC-16, BL-40).

Laws: reflection answers from descriptors alone and knows no operation. The A2A descriptors live in the private pool of
the stubs; health and reflection describe themselves from the pool of their own packages. v1 is v1alpha under another
package name, so one servicer answers both.
"""

from collections.abc import Iterable
from typing import Any, Final

import grpc
import grpc.aio
from a2a_stubs import descriptors
from google.protobuf import descriptor_pb2, descriptor_pool, text_format
from grpc_reflection.v1alpha import reflection, reflection_pb2, reflection_pb2_grpc

V1ALPHA: Final = "grpc.reflection.v1alpha.ServerReflection"
V1: Final = "grpc.reflection.v1.ServerReflection"


class _Pools:
    """Several descriptor pools behind the few look-ups that reflection makes; the first that knows a name answers."""

    def __init__(self, *pools: Any) -> None:
        self._pools = pools

    def _first(self, look_up: str, name: str) -> Any:
        for pool in self._pools:
            try:
                return getattr(pool, look_up)(name)
            except (KeyError, ValueError):
                continue
        raise KeyError(name)

    def FindFileByName(self, name: str) -> Any:
        return self._first("FindFileByName", name)

    def FindFileContainingSymbol(self, name: str) -> Any:
        name = name.removeprefix(".")
        owner, _, member = name.rpartition(".")
        try:
            return self._first("FindFileContainingSymbol", name)
        except KeyError:  # pools of the C runtime know no methods by name
            service = self._first("FindServiceByName", owner)
            if member not in service.methods_by_name:
                raise
            return service.file

    def FindMessageTypeByName(self, name: str) -> Any:
        return self._first("FindMessageTypeByName", name.removeprefix("."))

    def FindExtensionByNumber(self, message: Any, number: int) -> Any:
        return message.file.pool.FindExtensionByNumber(message, number)

    def FindAllExtensions(self, message: Any) -> Any:
        return message.file.pool.FindAllExtensions(message)


def _v1_pool() -> descriptor_pool.DescriptorPool:
    """A pool with the description of the v1 service, which no package brings along."""
    alpha = descriptor_pb2.FileDescriptorProto()
    reflection_pb2.DESCRIPTOR.CopyToProto(alpha)
    text = text_format.MessageToString(alpha).replace("v1alpha", "v1")
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(text_format.Parse(text, descriptor_pb2.FileDescriptorProto()).SerializeToString())
    return pool


def add_to_server(server: grpc.aio.Server, services: Iterable[str]) -> None:
    """Serve both versions of reflection on a grpc.aio server; services: full names to list beside reflection itself."""
    pools = _Pools(descriptors.pool, _v1_pool(), descriptor_pool.Default())
    servicer = reflection.aio.ReflectionServicer((*services, V1ALPHA, V1), pool=pools)
    reflection_pb2_grpc.add_ServerReflectionServicer_to_server(servicer, server)
    method = reflection_pb2.DESCRIPTOR.services_by_name["ServerReflection"].methods[0].name
    handler = grpc.stream_stream_rpc_method_handler(
        getattr(servicer, method),
        request_deserializer=reflection_pb2.ServerReflectionRequest.FromString,
        response_serializer=reflection_pb2.ServerReflectionResponse.SerializeToString,
    )
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(V1, {method: handler}),))
