"""buf curl and grpcurl, which know nothing but the address and learn the rest by reflection."""

import json
import re
from pathlib import Path

import pytest
from google.protobuf import descriptor_pb2
from grpc_reflection.v1alpha import reflection_pb2

from a2a_grpc.bindings.reflection import Reflection
from tests.interop.conftest import FRONTS, WEB, Served, made, output

SERVICES = ("lf.a2a.v1.A2AService", "a2a.v1.A2AService")
SEND = '{"message": {"messageId": "tool-%s", "role": "ROLE_USER", "parts": [{"text": "hello"}]}}'
OLD_SEND = '{"message": {"messageId": "tool-%s", "role": "ROLE_USER", "content": [{"text": "hello"}]}}'
PLAIN = ("--http2-prior-knowledge", "--protocol", "grpc")
ERROR = "type.googleapis.com/google.rpc.ErrorInfo"


def documents(text: str) -> list[dict[str, object]]:
    """The JSON documents that a tool prints one after another."""
    found = []
    while text := text.lstrip():
        value, end = json.JSONDecoder().raw_decode(text)
        found.append(value)
        text = text[end:]
    return found


def streamed(events: list[dict[str, object]]) -> tuple[str, str]:
    """What the first event of a stream is, and the state that the last one tells."""
    last = events[-1]["statusUpdate"]
    assert isinstance(last, dict)
    return next(iter(events[0])), last["status"]["state"]


@pytest.mark.requirement("BL-40", "GRPC-16", "GRPC-07", "I-09")
def test_buf_curl_needs_no_proto_file(served: Served) -> None:
    buf, base = made("BUF"), f"http://{served.grpc}"
    methods = output(buf, "curl", *PLAIN, base, "--list-methods").split()
    assert {method.partition("/")[0] for method in methods} >= set(SERVICES)
    service = f"{base}/{SERVICES[0]}"
    (answer,) = documents(output(buf, "curl", *PLAIN, "-d", SEND % "buf-1", f"{service}/SendMessage"))
    assert json.dumps(answer).count("TASK_STATE_COMPLETED") == 1
    stream = output(buf, "curl", *PLAIN, "-d", SEND % "buf-2", f"{service}/SendStreamingMessage")
    assert streamed(documents(stream)) == ("task", "TASK_STATE_COMPLETED")
    old = output(buf, "curl", *PLAIN, "-d", OLD_SEND % "buf-3", f"{base}/{SERVICES[1]}/SendStreamingMessage")
    assert streamed(documents(old)) == ("task", "TASK_STATE_COMPLETED")
    fault = output(buf, "curl", *PLAIN, "-d", '{"id": "nobody"}', f"{service}/GetTask", code=5 * 8)
    (error,) = documents(fault)
    assert error["code"] == "not_found" and "google.rpc.ErrorInfo" in json.dumps(error["details"])


def schema(file: Path) -> Path:
    """A file with the descriptors that reflection would tell, as gRPC-Web cannot ask for them."""
    found = Reflection(()).answer(reflection_pb2.ServerReflectionRequest(file_containing_symbol=SERVICES[0]))
    files = descriptor_pb2.FileDescriptorSet()
    for one in found.file_descriptor_response.file_descriptor_proto:
        files.file.add().ParseFromString(one)
    file.write_bytes(files.SerializeToString())
    return file


@pytest.mark.parametrize("served", [WEB], indirect=True)
@pytest.mark.parametrize("http", [(), ("--http2-prior-knowledge",)], ids=["http1", "http2"])
@pytest.mark.requirement("GRPC-07")
def test_buf_curl_speaks_grpc_web(served: Served, http: tuple[str, ...], tmp_path: Path) -> None:
    buf, words = made("BUF"), ("curl", "--protocol", "grpcweb", *http, "--schema", schema(tmp_path / "a2a.binpb"))
    service = f"http://{served.grpc}/{SERVICES[0]}"
    (answer,) = documents(output(buf, *words, "-d", SEND % "web-1", f"{service}/SendMessage"))
    assert json.dumps(answer).count("TASK_STATE_COMPLETED") == 1
    stream = output(buf, *words, "-d", SEND % "web-2", f"{service}/SendStreamingMessage")
    assert streamed(documents(stream)) == ("task", "TASK_STATE_COMPLETED")
    (error,) = documents(output(buf, *words, "-d", '{"id": "nobody"}', f"{service}/GetTask", code=5 * 8))
    assert error["code"] == "not_found" and "google.rpc.ErrorInfo" in json.dumps(error["details"])


@pytest.mark.requirement("BL-40", "GRPC-16", "GRPC-07", "I-09")
def test_grpcurl_needs_no_proto_file(served: Served) -> None:
    def grpcurl(*words: str, data: str = "", code: int = 0) -> str:
        flags = ("-plaintext", *(("-d", data) if data else ()))
        return output(made("A2A_GO_FOLDER") / "bin" / "grpcurl", *flags, served.grpc, *words, code=code)

    assert set(grpcurl("list").split()) >= {*SERVICES, "grpc.health.v1.Health"}
    send, stream, get = (f"{SERVICES[0]}/{name}" for name in ("SendMessage", "SendStreamingMessage", "GetTask"))
    assert "TASK_STATE_COMPLETED" in grpcurl(send, data=SEND % "grpcurl-1")
    events = documents(grpcurl(stream, data=SEND % "grpcurl-2"))
    assert streamed(events) == ("task", "TASK_STATE_COMPLETED")
    fault = grpcurl(get, data='{"id": "nobody"}', code=64 + 5)
    assert "Code: NotFound" in fault and ERROR in fault and "TASK_NOT_FOUND" in fault


@pytest.mark.requirement("BL-40", "GRPC-16")
@pytest.mark.parametrize("served", FRONTS, indirect=True)
@pytest.mark.parametrize("service", SERVICES)
def test_grpcurl_describes_a_service_its_methods_and_every_message(served: Served, service: str) -> None:
    def describe(symbol: str) -> str:
        return output(made("A2A_GO_FOLDER") / "bin" / "grpcurl", "-plaintext", served.grpc, "describe", symbol)

    package = service.removesuffix("A2AService")
    text = describe(service)
    for method in re.findall(r"rpc (\w+)", text):
        assert describe(f"{service}.{method}").startswith(f"{service}.{method} is a method:")
    waiting, known = set(re.findall(rf"[ .]({re.escape(package)}\w+)", text)) - {service}, set()
    while waiting:
        symbol = waiting.pop()
        known.add(symbol)
        text = describe(symbol)
        assert text.startswith((f"{symbol} is a message:", f"{symbol} is an enum:"))
        waiting |= set(re.findall(rf"[ .]({re.escape(package)}\w+)", text)) - known
    assert len(known) > 30
