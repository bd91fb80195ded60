"""The protos say what the contracts say, and the committed stubs are what the protos give.

The contracts in tests/golden are the judge; only the allowed v0.3 additions are written out here.
"""

import copy
import datetime
import importlib.util
import json
import pickle
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from a2a_stubs import descriptors, google, v03, v03_grpc, v1, v1_grpc
from google.api import annotations_pb2, client_pb2, field_behavior_pb2
from google.protobuf import descriptor_pb2

ROOT = Path(__file__).resolve().parent.parent
GOLDEN = ROOT / "tests" / "golden"
CONTRACTS = {"v1": "contract-v1.json", "v03": "contract-v0.3.json"}
PROTOS = {"v1": "lf/a2a/v1/a2a.proto", "v03": "a2a/v1/a2a.proto"}
STUBS = {"v1": (v1, v1_grpc), "v03": (v03, v03_grpc)}

Field = descriptor_pb2.FieldDescriptorProto

# What peers of v0.3 send beyond the contract: fields by message, and further HTTP routes by method.
EXTRA_FIELDS = {
    "Part": {
        "name": "metadata",
        "number": 4,
        "json_name": "metadata",
        "type": "message",
        "type_name": "google.protobuf.Struct",
        "label": "singular",
        "presence": "explicit",
    },
    "FilePart": {
        "name": "name",
        "number": 4,
        "json_name": "name",
        "type": "string",
        "label": "singular",
        "presence": "implicit",
    },
    "AgentCard": {
        "name": "icon_url",
        "number": 18,
        "json_name": "iconUrl",
        "type": "string",
        "label": "singular",
        "presence": "implicit",
    },
}
EXTRA_ROUTES = {
    "CreateTaskPushNotificationConfig": {
        "verb": "POST",
        "path": "/v1/{parent=tasks/*}/pushNotificationConfigs",
        "body": "config",
        "response_body": None,
        "binding": "additional",
    }
}


@cache
def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("proto_generate", ROOT / "proto" / "generate.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@cache
def compiled() -> dict[str, Any]:
    files = descriptor_pb2.FileDescriptorSet.FromString(generator().compile_protos(comments=True)).file
    return {proto.name: proto for proto in files}


@cache
def contract(version: str) -> dict[str, Any]:
    """The contract, for v0.3 with the additions."""
    loaded = json.loads((GOLDEN / CONTRACTS[version]).read_text())
    if version == "v03":
        for message in loaded["messages"]:
            message["fields"] += [EXTRA_FIELDS[message["name"]]] if message["name"] in EXTRA_FIELDS else []
        for method in loaded["services"][0]["methods"]:
            method["http"] += [EXTRA_ROUTES[method["name"]]] if method["name"] in EXTRA_ROUTES else []
    return loaded


def field_row(field: Any, message: Any, package: str) -> dict[str, Any]:
    """A field in the words of the contract."""
    entries = {n.name: n for n in message.nested_type if n.options.map_entry}
    repeated = field.label == Field.LABEL_REPEATED
    explicit = field.type == Field.TYPE_MESSAGE or field.HasField("oneof_index")
    row: dict[str, Any] = {"name": field.name, "number": field.number, "json_name": field.json_name}
    entry = entries.get(field.type_name.rpartition(".")[2])
    if entry:
        key, value = entry.field
        kind = type_name(value)
        row |= {"type": "map", "map_key": type_name(key), "map_value_kind": kind}
        row["map_value"] = local(value.type_name, package) if value.type_name else kind
    else:
        row["type"] = type_name(field)
        if field.type_name:
            row["type_name"] = local(field.type_name, package)
    row["label"] = "repeated" if repeated else "singular"
    if field.proto3_optional:
        row["optional"] = True
    elif field.HasField("oneof_index"):
        row["oneof"] = message.oneof_decl[field.oneof_index].name
    row["presence"] = "none" if repeated else "explicit" if explicit else "implicit"
    behaviour = field.options.Extensions[field_behavior_pb2.field_behavior]
    if behaviour:
        row["field_behavior"] = [field_behavior_pb2.FieldBehavior.Name(value) for value in behaviour]
    if field.options.deprecated:
        row["deprecated"] = True
    return row


def type_name(field: Any) -> str:
    return Field.Type.Name(field.type).removeprefix("TYPE_").lower()


def local(full_name: str, package: str) -> str:
    return full_name.removeprefix(f".{package}.").removeprefix(".")


def message_row(message: Any, package: str) -> dict[str, Any]:
    """A message in the words of the contract."""
    fields = [field_row(field, message, package) for field in message.field]
    row: dict[str, Any] = {"name": message.name, "full_name": f"{package}.{message.name}", "fields": fields}
    oneofs = list(dict.fromkeys(field["oneof"] for field in fields if "oneof" in field))
    if oneofs:
        row["oneofs"] = [
            {"name": oneof, "fields": [field["name"] for field in fields if field.get("oneof") == oneof]}
            for oneof in oneofs
        ]
    required = [field["name"] for field in fields if "REQUIRED" in field.get("field_behavior", ())]
    if required:
        row["required"] = required
    return row


def method_row(method: Any, service: str, package: str) -> dict[str, Any]:
    """A method in the words of the contract."""
    http = method.options.Extensions[annotations_pb2.http]
    routes = []
    for kind, rule in [("primary", http), *(("additional", rule) for rule in http.additional_bindings)]:
        verb = rule.WhichOneof("pattern")
        routes.append(
            {
                "verb": verb.upper(),
                "path": getattr(rule, verb),
                "body": rule.body or None,
                "response_body": rule.response_body or None,
                "binding": kind,
            }
        )
    return {
        "name": method.name,
        "grpc_path": f"/{package}.{service}/{method.name}",
        "input": local(method.input_type, package),
        "output": local(method.output_type, package),
        "client_streaming": method.client_streaming,
        "server_streaming": method.server_streaming,
        "http": routes,
        "method_signatures": list(method.options.Extensions[client_pb2.method_signature]),
    }


MESSAGES = [(version, row["name"]) for version in CONTRACTS for row in contract(version)["messages"]]
METHODS = [(version, row["name"]) for version in CONTRACTS for row in contract(version)["services"][0]["methods"]]


@pytest.mark.requirement("L-30")
@pytest.mark.parametrize(("version", "name"), MESSAGES)
def test_message_has_the_fields_of_the_contract(version: str, name: str) -> None:
    proto = compiled()[PROTOS[version]]
    (expected,) = [row for row in contract(version)["messages"] if row["name"] == name]
    (message,) = [message for message in proto.message_type if message.name == name]
    assert message_row(message, proto.package) == expected


@pytest.mark.requirement("GRPC-01", "GRPC-03", "GRPC-08", "GRPC-09", "V03-26")
@pytest.mark.parametrize(("version", "name"), METHODS)
def test_operation_has_the_types_and_routes_of_the_contract(version: str, name: str) -> None:
    proto = compiled()[PROTOS[version]]
    (service,) = proto.service
    (expected,) = [row for row in contract(version)["services"][0]["methods"] if row["name"] == name]
    (method,) = [method for method in service.method if method.name == name]
    assert method_row(method, service.name, proto.package) == expected


@pytest.mark.requirement("GRPC-01", "V03-26")
@pytest.mark.parametrize("version", CONTRACTS)
def test_file_holds_what_the_contract_lists_and_no_more(version: str) -> None:
    proto, expected = compiled()[PROTOS[version]], contract(version)
    assert (proto.syntax, proto.package) == (expected["syntax"], expected["package"])
    assert list(proto.dependency) == expected["imports"]
    assert {option.name: value for option, value in proto.options.ListFields()} == expected["file_options"]
    assert [message.name for message in proto.message_type] == [row["name"] for row in expected["messages"]]
    assert [[method.name for method in service.method] for service in proto.service] == [
        [row["name"] for row in service["methods"]] for service in expected["services"]
    ]
    assert [
        {
            "name": enum.name,
            "full_name": f"{proto.package}.{enum.name}",
            "values": [{"name": value.name, "number": value.number} for value in enum.value],
        }
        for enum in proto.enum_type
    ] == expected["enums"]


@pytest.mark.parametrize("version", CONTRACTS)
def test_everything_in_the_protos_is_explained(version: str) -> None:
    proto = compiled()[PROTOS[version]]
    explained = {tuple(place.path) for place in proto.source_code_info.location if place.leading_comments}
    wanted = {(6, s): service.name for s, service in enumerate(proto.service)}
    wanted |= {
        (6, s, 2, m): row.name for s, service in enumerate(proto.service) for m, row in enumerate(service.method)
    }
    for kind, inner, things in ((4, 2, proto.message_type), (5, 2, proto.enum_type)):
        for t, thing in enumerate(things):
            wanted[(kind, t)] = thing.name
            rows = thing.field if kind == 4 else thing.value
            wanted |= {(kind, t, inner, r): f"{thing.name}.{row.name}" for r, row in enumerate(rows)}
    assert [name for path, name in wanted.items() if path not in explained] == []


@pytest.mark.parametrize("version", CONTRACTS)
def test_tables_of_the_stubs_say_what_the_contract_says(version: str) -> None:
    (messages, service), expected = STUBS[version], contract(version)
    package = expected["package"]
    assert {name: list(fields) for name, fields in messages.REQUIRED.items()} == {
        row["full_name"]: row["required"] for row in expected["messages"] if "required" in row
    }
    rows = expected["services"][0]["methods"]
    assert {
        name: [{"verb": verb, "path": path, "body": body} for verb, path, body in rules]
        for name, rules in service.HTTP_RULES.items()
    } == {row["name"]: [{key: r[key] for key in ("verb", "path", "body")} for r in row["http"]] for row in rows}
    assert [
        (row.name, row.path, local(f".{row.input.DESCRIPTOR.full_name}", package), row.server_streaming)
        for row in service.METHODS
    ] == [(row["name"], row["grpc_path"], row["input"], row["server_streaming"]) for row in rows]
    assert [local(f".{row.output.DESCRIPTOR.full_name}", package) for row in service.METHODS] == [
        row["output"] for row in rows
    ]


@pytest.mark.parametrize("version", CONTRACTS)
def test_options_can_be_read_through_the_private_pool(version: str) -> None:
    proto = compiled()[PROTOS[version]]
    embedded = descriptor_pb2.FileDescriptorProto.FromString(STUBS[version][0].DESCRIPTOR.serialized_pb)
    expected = copy.deepcopy(proto)
    expected.ClearField("source_code_info")
    assert embedded == expected
    assert descriptors.pool.FindExtensionByName("google.api.http").number == annotations_pb2.http.number
    assert descriptors.pool.FindExtensionByName("google.api.field_behavior")


def test_making_the_stubs_again_changes_nothing() -> None:
    if generator().tool_versions() != descriptors.TOOLS:
        pytest.skip(f"needs {descriptors.TOOLS}")
    made = generator().generate()
    folder = ROOT / "generated" / "a2a_stubs"
    assert sorted(made) == sorted(path.name for path in folder.iterdir() if path.is_file())
    assert [name for name, text in made.items() if (folder / name).read_text() != text] == []


def test_private_google_classes_have_their_convenience_methods() -> None:
    moment = datetime.datetime(2025, 3, 4, 5, 6, 7, 8000, tzinfo=datetime.timezone.utc)
    task = v1.Task(id="t", status=v1.TaskStatus(state=v1.TASK_STATE_WORKING))
    task.status.timestamp.FromDatetime(moment)
    task.metadata.update({"a": [1, {"b": None}]})
    assert task.status.timestamp.ToDatetime(datetime.timezone.utc) == moment
    assert type(task.status.timestamp) is google.Timestamp
    assert type(task.metadata) is google.Struct
    assert task.metadata["a"][1]["b"] is None
    holder, back = google.Any(), google.ErrorInfo()
    holder.Pack(google.ErrorInfo(reason="TASK_NOT_FOUND"))
    assert holder.Unpack(back) and back.reason == "TASK_NOT_FOUND"


def test_messages_can_be_copied_and_pickled() -> None:
    part = v1.Part(text="", metadata=google.Struct(fields={"k": google.Value(bool_value=True)}))
    for again in (
        copy.deepcopy(part),
        pickle.loads(pickle.dumps(part)),
        v1.Part.FromString(part.SerializeToString()),
    ):
        assert again == part and again.WhichOneof("content") == "text"
