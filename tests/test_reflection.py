"""Reflection as grpcurl and buf curl use it, both versions, with no proto file at hand."""

import grpc
import grpc.aio
import pytest
from a2a_stubs import v1_grpc
from google.protobuf import descriptor_pb2, descriptor_pool
from grpc._cython.cygrpc import _ServerStoppedError
from grpc_reflection.v1alpha import reflection_pb2

from a2a_grpc.bindings.rpc import Rpcs
from a2a_grpc.bindings.streams import Streams
from a2a_grpc.config import Options
from tests.test_grpc_binding import Fake, failure, serving

SERVICES = {
    "lf.a2a.v1.A2AService",
    "a2a.v1.A2AService",
    "grpc.health.v1.Health",
    "grpc.reflection.v1alpha.ServerReflection",
    "grpc.reflection.v1.ServerReflection",
}
VERSIONS = pytest.mark.parametrize("version", ["v1", "v1alpha"])


def ask(channel, version, **question):
    # One question: on the wire the same as a stream of one, and a refusal cannot race the sending of it.
    call = channel.unary_stream(
        f"/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo",
        request_serializer=reflection_pb2.ServerReflectionRequest.SerializeToString,
        response_deserializer=reflection_pb2.ServerReflectionResponse.FromString,
    )

    async def answer():
        (found,) = [found async for found in call(reflection_pb2.ServerReflectionRequest(**question))]
        return found

    return answer()


def build(response):
    """A pool of the answer's files alone: raises when one that another needs is not among them."""
    pool = descriptor_pool.DescriptorPool()
    waiting = list(
        map(descriptor_pb2.FileDescriptorProto.FromString, response.file_descriptor_response.file_descriptor_proto)
    )
    assert waiting, response.error_response
    known = set()
    while waiting:
        ready = [file for file in waiting if known.issuperset(file.dependency)]
        assert ready, f"missing: {[name for file in waiting for name in file.dependency if name not in known]}"
        for file in ready:
            pool.Add(file)
            known.add(file.name)
            waiting.remove(file)
    return pool


@VERSIONS
@pytest.mark.requirement("BL-40", "GRPC-16")
async def test_list_names_every_service(version):
    async with serving(Fake()) as channel:
        found = await ask(channel, version, list_services="*")
    assert {service.name for service in found.list_services_response.service} == SERVICES


@VERSIONS
@pytest.mark.requirement("BL-40")
async def test_describe_works_for_every_service_method_and_message(version):
    async with serving(Fake()) as channel:
        for name in SERVICES:
            pool = build(await ask(channel, version, file_containing_symbol=name))
            service = pool.FindServiceByName(name)
            for method in service.methods:
                for symbol in (method.full_name, method.input_type.full_name, method.output_type.full_name):
                    build(await ask(channel, version, file_containing_symbol=symbol))
        for message in descriptor_messages():
            found = build(await ask(channel, version, file_containing_symbol=message))
            assert found.FindMessageTypeByName(message).full_name == message


def descriptor_messages():
    rows = [row.input.DESCRIPTOR.file for row in v1_grpc.METHODS]
    return {message.full_name for file in rows for message in file.message_types_by_name.values()}


@VERSIONS
@pytest.mark.requirement("BL-40")
async def test_imports_are_found_by_file_and_extensions_by_number(version):
    async with serving(Fake()) as channel:
        for name in ("google/api/annotations.proto", "google/api/field_behavior.proto", "google/protobuf/struct.proto"):
            build(await ask(channel, version, file_by_filename=name))
        found = await ask(channel, version, all_extension_numbers_of_type="google.protobuf.MethodOptions")
        assert 72295728 in found.all_extension_numbers_response.extension_number
        question = {"containing_type": "google.protobuf.MethodOptions", "extension_number": 72295728}
        build(await ask(channel, version, file_containing_extension=question))


@VERSIONS
@pytest.mark.requirement("BL-40")
async def test_what_is_unknown_is_an_answer_not_a_failure(version):
    async with serving(Fake()) as channel:
        for question in (
            {"file_containing_symbol": "no.Such"},
            {"file_by_filename": "no.proto"},
            {"file_by_filename": ""},
        ):
            found = await ask(channel, version, **question)
            assert found.error_response.error_code == grpc.StatusCode.NOT_FOUND.value[0]


@VERSIONS
@pytest.mark.requirement("GRPC-16")
async def test_reflection_can_be_switched_off(version):
    async with serving(Fake(), reflection=False) as channel:
        fault = await failure(ask(channel, version, list_services="*"))
    assert fault.code() == grpc.StatusCode.UNIMPLEMENTED


@pytest.mark.requirement("BL-28")
@pytest.mark.parametrize("path", ["/grpc.health.v1.Health/Check", "/grpc.reflection.v1.ServerReflection/*"])
async def test_bytes_that_are_no_request_are_refused_as_such(path):
    async with serving(Fake()) as channel:
        fault = await failure(channel.unary_unary(path.replace("*", "ServerReflectionInfo"))(b"\xff"))
    assert fault.code() == grpc.StatusCode.INVALID_ARGUMENT


@pytest.mark.requirement("BL-28")
async def test_who_is_still_asking_when_the_server_has_stopped_is_left_to_grpc_and_no_fault(caplog):
    async def read(request, context):
        raise _ServerStoppedError("Server already stopped.")

    async def refuse(context, refusal):
        raise AssertionError(refusal)

    rpcs = Rpcs(Fake(), Options(), Streams(1), None, refuse)
    with pytest.raises(_ServerStoppedError):
        await rpcs.plain(read)(b"", None)
    assert not caplog.records
