"""Makes the stubs package `generated/a2a_stubs` from the two protos. Run it with `make proto`.

Laws of this file:
- The descriptors are the only source: every class, table, service and type stub is derived from them; none is
  listed here.
- The classes live in a private descriptor pool with its own google files, so that another package that
  registers the same symbols in the default pool can share the process.
- The output carries no check of the protobuf release and is the same on every Python version.
- What was made is committed and never edited by hand; `--check` says whether it is up to date.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterable, Iterator
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path

from google.api import annotations_pb2, client_pb2, field_behavior_pb2
from google.protobuf import descriptor_pb2
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
)
from grpc_tools import protoc

assert client_pb2, "google.api.method_signature has to be known before the options are parsed"

HERE = Path(__file__).resolve().parent
OUTPUT = HERE.parent / "generated" / "a2a_stubs"
# Module name -> the proto files whose messages and enums it offers.
OURS = {"v1": "lf/a2a/v1/a2a.proto", "v03": "a2a/v1/a2a.proto"}
GOOGLE = (
    "google/protobuf/any.proto",
    "google/protobuf/duration.proto",
    "google/protobuf/empty.proto",
    "google/protobuf/struct.proto",
    "google/protobuf/timestamp.proto",
    "google/rpc/status.proto",
    "google/rpc/error_details.proto",
)
MODULES: dict[str, tuple[str, ...]] = {"google": GOOGLE, **{name: (path,) for name, path in OURS.items()}}
PACKAGES = {".lf.a2a.v1.": "v1", ".a2a.v1.": "v03", ".google.protobuf.": "google", ".google.rpc.": "google"}
# Messages to which the protobuf runtime adds methods of its own, in every pool.
MIXINS = {f"google.protobuf.{name}" for name in ("Any", "Duration", "ListValue", "Struct", "Timestamp")}
TOOLS = ("grpcio-tools", "googleapis-common-protos")
NOTICE = "Made by proto/generate.py; do not edit."

Field = FieldDescriptorProto
SCALARS = {
    **dict.fromkeys((Field.TYPE_DOUBLE, Field.TYPE_FLOAT), "_b.float"),
    **dict.fromkeys((Field.TYPE_INT32, Field.TYPE_INT64, Field.TYPE_UINT32, Field.TYPE_UINT64), "_b.int"),
    Field.TYPE_BOOL: "_b.bool",
    Field.TYPE_STRING: "_b.str",
    Field.TYPE_BYTES: "_b.bytes",
}


def compile_protos(*, comments: bool) -> bytes:
    """A FileDescriptorSet of both protos and the google files they need, dependencies first."""
    with tempfile.TemporaryDirectory() as directory:
        target = Path(directory, "set.binpb")
        arguments = [
            "protoc",
            f"-I{HERE}",
            f"-I{files('google.api').joinpath('annotations.proto').parent.parent.parent}",  # type: ignore[attr-defined]
            f"-I{files('grpc_tools').joinpath('_proto')}",
            "--include_imports",
            *["--include_source_info"] * comments,
            f"--descriptor_set_out={target}",
            *OURS.values(),
            *GOOGLE,
        ]
        if protoc.main(arguments) != 0:
            raise SystemExit("protoc refused the protos")
        return target.read_bytes()


def tool_versions() -> str:
    """The releases whose google files are in the output; another release may bring other google files."""
    return ", ".join(f"{tool} {version(tool)}" for tool in TOOLS)


def runtime_modules(protos: dict[str, FileDescriptorProto]) -> Iterator[tuple[str, str]]:
    """The .py files, as (file name, text)."""
    yield (
        "__init__.py",
        f'"""Messages and services of A2A v1.0 and v0.3, in a descriptor pool of their own. {NOTICE}"""\n',
    )
    yield "py.typed", ""
    yield "descriptors.py", descriptors_module()
    for module, paths in MODULES.items():
        yield f"{module}.py", messages_module(module, [protos[path] for path in paths])
    for module, path in OURS.items():
        yield f"{module}_grpc.py", service_module(module, protos[path])


def descriptors_module() -> str:
    """descriptors.py: all files as protoc wrote them, the pool, and how a class is found in it."""
    data = compile_protos(comments=False)
    literal = "\n".join(f"    {data[start : start + 28]!r}" for start in range(0, len(data), 28))
    return (HERE / "descriptors.py.in").read_text().format(notice=NOTICE, tools=tool_versions(), literal=literal)


def messages_module(module: str, protos: list[FileDescriptorProto]) -> str:
    """The runtime module of messages and enums of some files."""
    lines = [f'"""{docstring_of(protos)} {NOTICE}"""', ""]
    lines += ["from a2a_stubs import descriptors as _descriptors", ""]
    if module in OURS:
        lines.append(f'DESCRIPTOR = _descriptors.pool.FindFileByName("{protos[0].name}")')
    for proto in protos:
        for enum in proto.enum_type:
            lines.append(f'{enum.name} = _descriptors.enum("{proto.package}.{enum.name}")')
            lines += [f"{value.name} = {value.number}" for value in enum.value]
        lines += [f'{m.name} = _descriptors.message("{proto.package}.{m.name}", __name__)' for m in proto.message_type]
    if module in OURS:
        lines += ["", "REQUIRED = {", *required_rows(protos[0]), "}"]
    return "\n".join(lines) + "\n"


def required_rows(proto: FileDescriptorProto) -> Iterator[str]:
    """Rows: full message name -> names of its fields with field_behavior REQUIRED."""
    for message in proto.message_type:
        names = [
            field.name
            for field in message.field
            if field_behavior_pb2.REQUIRED in field.options.Extensions[field_behavior_pb2.field_behavior]
        ]
        if names:
            yield f'    "{proto.package}.{message.name}": {tuple(names)!r},'


def service_module(module: str, proto: FileDescriptorProto) -> str:
    """The runtime module of the service: tables, servicer, stub, registration; imports grpc when needed."""
    (service,) = proto.service
    full_name = f"{proto.package}.{service.name}"
    lines = [f'"""{docstring_of([proto])} Service for grpcio. {NOTICE}"""', ""]
    lines += [
        f"from a2a_stubs import descriptors as _descriptors, google as _google, {module} as _{module}",
        "",
    ]
    lines += [f'SERVICE = "{full_name}"', "", "METHODS = ("]
    for method in service.method:
        classes = f"{class_name(method.input_type)}, {class_name(method.output_type)}"
        row = f'"{method.name}", "/{full_name}/{method.name}", {classes}, {method.server_streaming}'
        lines.append(f"    _descriptors.Method({row}),")
    lines += [")", "", "HTTP_RULES = {"]
    for method in service.method:
        lines += [f'    "{method.name}": (', *(f"        {rule!r}," for rule in http_rules(method)), "    ),"]
    lines += ["}", "", "", f"class {service.name}Servicer:"]
    for method in service.method:
        lines += [f"    async def {method.name}(self, request, context):"]
        lines += ["        await _descriptors.unimplemented(context)"]
        lines += ["        yield"] * method.server_streaming + [""]
    lines += ["", f"class {service.name}Stub:", "    def __init__(self, channel):"]
    lines += ["        _descriptors.bind(self, channel, METHODS)", "", ""]
    lines += [f"def add_{service.name}Servicer_to_server(servicer, server):"]
    lines += ["    _descriptors.register(servicer, server, SERVICE, METHODS)"]
    return "\n".join(lines) + "\n"


def http_rules(method: descriptor_pb2.MethodDescriptorProto) -> Iterator[tuple[str, str, str | None]]:
    """(verb, path, body field or None) of a method, the primary rule first."""
    primary = method.options.Extensions[annotations_pb2.http]
    for rule in (primary, *primary.additional_bindings):
        verb = rule.WhichOneof("pattern")
        yield verb.upper(), getattr(rule, verb), rule.body or None


def class_name(type_name: str) -> str:
    """`_v1.Task` for `.lf.a2a.v1.Task`: where the modules of the package offer a type."""
    package = next(package for package in PACKAGES if type_name.startswith(package))
    return f"_{PACKAGES[package]}.{type_name.removeprefix(package)}"


def docstring_of(protos: list[FileDescriptorProto]) -> str:
    return f"Types of {' and '.join(dict.fromkeys(proto.package for proto in protos))}."


def quote(text: str) -> str:
    return f'"{text}"'


class Comments:
    """The comments of one proto file by descriptor path, printed as docstrings."""

    def __init__(self, proto: FileDescriptorProto, wanted: bool) -> None:
        locations = proto.source_code_info.location if wanted else ()
        self._text = {tuple(place.path): place.leading_comments for place in locations if place.leading_comments}

    def docstring(self, path: tuple[int, ...], indent: str) -> list[str]:
        lines = [line.strip().replace("\\", "\\\\") for line in self._text.get(path, "").strip().splitlines()]
        if not lines:
            return []
        if len(lines) == 1:
            return [f'{indent}"""{lines[0]}"""']
        return [f'{indent}"""{lines[0]}', *(f"{indent}{line}".rstrip() for line in lines[1:]), f'{indent}"""']


class TypeStub:
    """Writes the .pyi of one module; private imports keep fields from hiding types."""

    def __init__(self, module: str, protos: list[FileDescriptorProto]) -> None:
        self.module, self.protos = module, protos
        self.lines = [
            f'"""{docstring_of(protos)} {NOTICE}"""',
            "",
            "import builtins as _b",
            "import collections.abc as _abc",
            "import typing as _t",
            "",
            "from google.protobuf import descriptor as _descriptor, message as _message",
            "from google.protobuf.internal import containers as _containers, enum_type_wrapper as _enums",
            "from google.protobuf.internal import well_known_types as _well_known",
            "",
            f"from a2a_stubs import {', '.join(f'{name} as _{name}' for name in sorted({'google', module}))}",
            "",
        ]

    def text(self) -> str:
        if self.module in OURS:
            self.lines += ["DESCRIPTOR: _descriptor.FileDescriptor", "REQUIRED: dict[str, tuple[str, ...]]"]
        for proto in self.protos:
            comments = Comments(proto, self.module in OURS)
            for index, enum in enumerate(proto.enum_type):
                self.enum(enum, "", comments, (5, index))
            for index, message in enumerate(proto.message_type):
                self.message(message, "", f".{proto.package}.{message.name}", comments, (4, index))
        return "\n".join(self.lines) + "\n"

    def enum(self, enum: EnumDescriptorProto, indent: str, comments: Comments, path: tuple[int, ...]) -> None:
        name, members = enum.name, []
        for index, value in enumerate(enum.value):
            members.append((value.name, comments.docstring((*path, 2, index), f"{indent}    ")))
        self.lines += [
            "",
            f"{indent}class _{name}:",
            f'{indent}    ValueType = _t.NewType("ValueType", _b.int)',
            "",
            f"{indent}class _{name}Wrapper(_enums._EnumTypeWrapper[_{name}.ValueType], _b.type):",
            f"{indent}    DESCRIPTOR: _descriptor.EnumDescriptor",
        ]
        for member, lines in members:
            self.lines += [f"{indent}    {member}: _{name}.ValueType", *lines]
        self.lines += ["", f"{indent}class {name}(_{name}, metaclass=_{name}Wrapper):"]
        self.lines += comments.docstring(path, f"{indent}    ") or [f"{indent}    ..."]
        self.lines += ["", *(f"{indent}{member}: {name}.ValueType" for member, _ in members)]

    def message(
        self, message: DescriptorProto, indent: str, full_name: str, comments: Comments, path: tuple[int, ...]
    ) -> None:
        """The class of one message: nested types, fields, constructor, presence and oneofs."""
        inner = f"{indent}    "
        mixin = f", _well_known.{message.name}" if full_name.removeprefix(".") in MIXINS else ""
        self.lines += [
            "",
            f"{indent}class {message.name}(_message.Message{mixin}):",
            *comments.docstring(path, inner),
        ]
        self.lines.append(f"{inner}DESCRIPTOR: _descriptor.Descriptor")
        entries = {f"{full_name}.{n.name}": n for n in message.nested_type if n.options.map_entry}
        for index, nested in enumerate(message.nested_type):
            if not nested.options.map_entry:
                self.message(nested, inner, f"{full_name}.{nested.name}", comments, (*path, 3, index))
        for index, enum in enumerate(message.enum_type):
            self.enum(enum, inner, comments, (*path, 4, index))
        self.lines += [
            f"{inner}{field.name.upper()}_FIELD_NUMBER: _t.Final = {field.number}" for field in message.field
        ]
        arguments = []
        for index, field in enumerate(message.field):
            attribute, argument, writable = self.types(field, entries)
            doc = comments.docstring((*path, 2, index), inner if writable else f"{inner}    ")
            if writable:
                self.lines += [f"{inner}{field.name}: {attribute}", *doc]
            else:
                self.lines += [
                    f"{inner}@_b.property",
                    f"{inner}def {field.name}(self) -> {attribute}:",
                    *(doc or [f"{inner}    ..."]),
                ]
            arguments.append(f"{inner}    {field.name}: {argument} = ...,")
        star = [f"{inner}    *,"] if arguments else []
        self.lines += [
            f"{inner}def __init__(",
            f"{inner}    self,",
            *star,
            *arguments,
            f"{inner}) -> None: ...",
        ]
        self.lines += [f"{inner}{line}" for line in presence(message)]

    def types(self, field: FieldDescriptorProto, entries: dict[str, DescriptorProto]) -> tuple[str, str, bool]:
        """(type of the attribute, type given to the constructor, whether the attribute can be assigned)."""
        if field.type_name in entries:
            key, value = (self.single(part, written=False) for part in entries[field.type_name].field)
            holder = "ScalarMap" if entries[field.type_name].field[1].type in SCALARS else "MessageMap"
            return f"_containers.{holder}[{key}, {value}]", f"_abc.Mapping[{key}, {value}] | None", False
        single, written = self.single(field, written=False), self.single(field, written=True)
        if field.label == Field.LABEL_REPEATED:
            holder = (
                "RepeatedCompositeFieldContainer"
                if field.type == Field.TYPE_MESSAGE
                else "RepeatedScalarFieldContainer"
            )
            return f"_containers.{holder}[{single}]", f"_abc.Iterable[{written}] | None", False
        return single, f"{written} | None", field.type != Field.TYPE_MESSAGE

    def single(self, field: FieldDescriptorProto, *, written: bool) -> str:
        """The type of one value; an enum may also be given by its name when it is written."""
        if field.type in SCALARS:
            return SCALARS[field.type]
        name = class_name(field.type_name)
        if field.type == Field.TYPE_ENUM:
            return f"{name}.ValueType | _b.str" if written else f"{name}.ValueType"
        return name


def presence(message: DescriptorProto) -> Iterator[str]:
    """Typed HasField, ClearField and WhichOneof of a message."""
    real: dict[str, list[str]] = {}
    for field in message.field:
        if field.HasField("oneof_index") and not field.proto3_optional:
            real.setdefault(message.oneof_decl[field.oneof_index].name, []).append(field.name)
    explicit = [
        field.name
        for field in message.field
        if field.label != Field.LABEL_REPEATED and (field.type == Field.TYPE_MESSAGE or field.HasField("oneof_index"))
    ]

    def literal(names: Iterable[str]) -> str:
        listed = ", ".join(quote(name) for name in names)
        return f"_t.Literal[{listed}]" if listed else "_t.NoReturn"

    yield f"def HasField(self, field_name: {literal([*explicit, *real])}) -> _b.bool: ..."
    every = [field.name for field in message.field]
    yield f"def ClearField(self, field_name: {literal([*every, *real])}) -> None: ..."
    for oneof, names in real.items():
        if len(real) > 1:
            yield "@_t.overload"
        yield f"def WhichOneof(self, oneof_group: {literal([oneof])}) -> {literal(names)} | None: ..."
    if not real:
        yield "def WhichOneof(self, oneof_group: _t.NoReturn) -> None: ..."


def service_stub(module: str, proto: FileDescriptorProto) -> str:
    """The .pyi of a service module; the stub serves every channel and is typed for grpc.aio."""
    (service,) = proto.service
    comments = Comments(proto, wanted=True)
    servicer, stub = [f"class {service.name}Servicer:", *comments.docstring((6, 0), "    ")], []
    for index, method in enumerate(service.method):
        given, answer = class_name(method.input_type), class_name(method.output_type)
        if method.server_streaming:
            define, result, kind = "def", f"_abc.AsyncIterator[{answer}]", "UnaryStream"
        else:
            define, result, kind = "async def", answer, "UnaryUnary"
        servicer.append(f"    {define} {method.name}(self, request: {given}, context: _t.Any) -> {result}:")
        servicer += comments.docstring((6, 0, 2, index), "        ") or ["        ..."]
        stub.append(f"    {method.name}: _descriptors.{kind}[{given}, {answer}]")
    lines = [
        f'"""{docstring_of([proto])} Service for grpcio. {NOTICE}"""',
        "",
        "import collections.abc as _abc",
        "import typing as _t",
        "",
        f"from a2a_stubs import descriptors as _descriptors, google as _google, {module} as _{module}",
        "",
        "SERVICE: str",
        "METHODS: tuple[_descriptors.Method, ...]",
        "HTTP_RULES: dict[str, tuple[tuple[str, str, str | None], ...]]",
        "",
        *servicer,
        "",
        f"class {service.name}Stub:",
        "    def __init__(self, channel: _t.Any) -> None: ...",
        *stub,
        "",
        f"def add_{service.name}Servicer_to_server(",
        f"    servicer: {service.name}Servicer, server: _t.Any",
        ") -> None: ...",
    ]
    return "\n".join(lines) + "\n"


def generate() -> dict[str, str]:
    """File name -> text of the whole package."""
    compiled = descriptor_pb2.FileDescriptorSet.FromString(compile_protos(comments=True))
    protos = {proto.name: proto for proto in compiled.file}
    made = dict(runtime_modules(protos))
    made["descriptors.pyi"] = (HERE / "descriptors.pyi.in").read_text().format(notice=NOTICE)
    for module, paths in MODULES.items():
        made[f"{module}.pyi"] = TypeStub(module, [protos[path] for path in paths]).text()
    for module, path in OURS.items():
        made[f"{module}_grpc.pyi"] = service_stub(module, protos[path])
    return made


def main() -> int:
    parser = argparse.ArgumentParser(description="Make the stubs package from the protos.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when the package is not up to date")
    check = parser.parse_args().check
    made = generate()
    there = {path.name: path.read_text() for path in OUTPUT.glob("*") if path.is_file()} if OUTPUT.exists() else {}
    different = sorted(name for name in made.keys() | there.keys() if made.get(name) != there.get(name))
    for name in different:
        print(f"a2a_stubs/{name} {'is not up to date' if check else 'written' if name in made else 'removed'}")
        if not check and name in made:
            OUTPUT.mkdir(parents=True, exist_ok=True)
            (OUTPUT / name).write_text(made[name])
        elif not check:
            (OUTPUT / name).unlink()
    return 1 if check and different else 0


if __name__ == "__main__":
    sys.exit(main())
