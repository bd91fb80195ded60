"""Law 3: who may name an operation, and who a v0.3 field. Words in code count; comments and docstrings may explain."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from a2a_stubs import v03, v03_grpc, v1, v1_grpc
from google.protobuf.descriptor import Descriptor

from tests.rules.sources import docstrings, expect_none, label, modules, tree

NAME_OPERATIONS = {"service", "client", "commands.call", "v03_names"}
OPERATIONS = {method.name for method in (*v1_grpc.METHODS, *v03_grpc.METHODS)}
OLD_METHODS = re.compile(r"(message|tasks|agent)/[a-z]\w*(/\w+)?")
OLD_MEMBERS = {
    "additionalInterfaces",
    "mimeType",
    "preferredTransport",
    "pushNotificationConfigId",
    "stateTransitionHistory",
    "supportsAuthenticatedExtendedCard",
}
"""Members of the v0.3 JSON schema that neither protocol buffer package has."""
OWN_WORDS = {"config_id", "configId"}
"""Fields of v0.3 whose names are ordinary words here: a parameter, and a key of error metadata (I-16)."""

FOREIGN = {("mcp", "mime_type")}
"""Modules with a word that is another protocol's own: MCP has the name that v0.3 had."""


def fields(message: Descriptor) -> set[str]:
    """Names of all fields of a message and the messages nested in it, in both spellings."""
    own = {name for field in message.fields for name in (field.name, field.json_name)}
    return own.union(*(fields(nested) for nested in message.nested_types))


def package_fields(stubs: object) -> set[str]:
    types = stubs.DESCRIPTOR.message_types_by_name.values()  # type: ignore[attr-defined]
    return set().union(*map(fields, types))


def words(path: Path) -> Iterator[tuple[str, int]]:
    """Every identifier and every string of a file, docstrings left out, with its line."""
    prose = docstrings(path)
    for node in ast.walk(tree(path)):
        line = getattr(node, "lineno", 0)
        match node:
            case ast.Constant(value=str(text)) if id(node) not in prose:
                yield text, line
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.FunctionDef(name=name):
                yield name, line
            case ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name) | ast.arg(arg=name):
                yield name, line
            case ast.keyword(arg=str(name), value=value):
                yield name, value.lineno


def test_operations_are_named_where_they_mean_something() -> None:
    expect_none(
        f"{label(path, line)}: {word}"
        for name, path in modules().items()
        if name not in NAME_OPERATIONS
        for word, line in words(path)
        if OPERATIONS & set(re.findall(r"\w+", word)) or OLD_METHODS.fullmatch(word)
    )


def test_old_fields_are_known_to_the_translation_only() -> None:
    old = {
        name for name in package_fields(v03) - package_fields(v1) if re.search("[_A-Z]", name)
    } - OWN_WORDS | OLD_MEMBERS
    assert {"file_with_bytes", "fileWithBytes", "additional_interfaces"} <= old
    expect_none(
        f"{label(path, line)}: {word}"
        for name, path in modules().items()
        if not name.startswith("v03")
        for word, line in words(path)
        if word in old and (name, word) not in FOREIGN
    )
