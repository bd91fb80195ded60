"""The OpenAPI 3.1 document of an agent: its REST routes and its JSON-RPC address, in each version that is offered.

Laws: pure, and computed from the descriptors, the HTTP rules and the required fields, so that no operation and no field
is named here and the document cannot disagree with the wires. A schema says what the server writes and what it asks
for; it may ask for less than a schema says, as deployed v0.3 clients differ.
"""

from collections.abc import Collection, Iterator
from typing import Any, Final

from a2a_stubs import v1
from google.protobuf.descriptor import FieldDescriptor

from a2a_grpc.bindings.rest import BODILESS
from a2a_grpc.bindings.sse import HEADERS
from a2a_grpc.bindings.wire import A2A_JSON, EXTENSION_HEADERS, JSON
from a2a_grpc.call import V03, V1
from a2a_grpc.cards import WELL_KNOWN
from a2a_grpc.methods import EXEMPT, METHODS, NEEDS_ONE, Method, Route
from a2a_grpc.protojson_fields import MANY, MAP, REQUIRED, fields
from a2a_grpc.v03_cards import openapi_security
from a2a_grpc.v03_names import BY_JSONRPC

OPENAPI: Final = "3.1.1"
"""The release of the OpenAPI specification that documents follow."""

PATH: Final = "/openapi.json"
"""Where the document is, below an agent's prefix."""

Json = dict[str, Any]

_F = FieldDescriptor
_INTEGER: Final[Json] = {"type": "integer", "format": "int32"}
_LONG: Final[Json] = {"type": ["string", "integer"], "format": "int64"}
SCALARS: Final[dict[int, Json]] = {
    _F.TYPE_STRING: {"type": "string"},
    _F.TYPE_BOOL: {"type": "boolean"},
    _F.TYPE_BYTES: {"type": "string", "contentEncoding": "base64"},
    **dict.fromkeys((_F.TYPE_INT32, _F.TYPE_SINT32, _F.TYPE_SFIXED32, _F.TYPE_UINT32, _F.TYPE_FIXED32), _INTEGER),
    **dict.fromkeys((_F.TYPE_INT64, _F.TYPE_SINT64, _F.TYPE_SFIXED64, _F.TYPE_UINT64, _F.TYPE_FIXED64), _LONG),
    **{kind: {"type": "number"} for kind in (_F.TYPE_DOUBLE, _F.TYPE_FLOAT)},
}
"""The schema of each scalar field type."""

KNOWN: Final[dict[str, Json]] = {
    "google.protobuf.Timestamp": {"type": "string", "format": "date-time"},
    "google.protobuf.Duration": {"type": "string", "pattern": "^-?[0-9]{1,12}(\\.[0-9]{1,9})?s$"},
    "google.protobuf.Struct": {"type": "object"},
    "google.protobuf.Value": {},
    "google.protobuf.ListValue": {"type": "array"},
    "google.protobuf.Empty": {"type": "object"},
    # v0.3 cards are JSON of their own, whatever the wire.
    "a2a.v1.AgentCard": {"type": "object"},
}
"""The schema of each message type whose JSON is not its fields."""

_TEXT: Final[Json] = {"type": "string"}
_DETAILS: Final[Json] = {"type": "array", "items": {"type": "object", "required": ["@type"]}}
_STATUS: Final[Json] = {
    "type": "object",
    "required": ["code", "status", "message", "details"],
    "properties": {"code": {"type": "integer"}, "status": _TEXT, "message": _TEXT, "details": _DETAILS},
}
_CODED: Final[Json] = {
    "type": "object",
    "required": ["code", "message"],
    "properties": {"code": {"type": "integer"}, "message": _TEXT, "data": _DETAILS},
}
ERRORS: Final[dict[str, Json]] = {
    V1: {"type": "object", "required": ["error"], "properties": {"error": _STATUS}},
    V03: {
        "type": "object",
        "required": [*_CODED["required"], "type", "error"],
        "properties": {**_CODED["properties"], "type": _TEXT, "error": _STATUS},
    },
}
"""The schema of a REST error in each version."""

MEDIA: Final[dict[str, tuple[str, ...]]] = {V1: (A2A_JSON, JSON), V03: (JSON,)}
"""The media types of bodies in each version."""


def document(
    card: v1.AgentCard,
    versions: Collection[str],
    tenants: Collection[str] = (),
    *,
    named: bool = True,
    closed: bool = False,
) -> Json:
    """The document for an agent, without `servers`, which depend on who asks.

    card: says name, description, version and security. versions: those that are offered. tenants: the names that paths
    may begin with; default none. named: whether the document tells them. closed: whether the card is shown to callers
    alone.
    """
    schemes, security = openapi_security(card)
    made = _Made()
    paths: dict[str, Json] = {WELL_KNOWN: {"get": _card_page(made, closed)}, "/": {"post": _jsonrpc(made, versions)}}
    for version, methods in METHODS.items():
        for method in methods.values() if version in versions else ():
            routes = [route for route in method.routes if tenants or not _tenants(route)]
            for position, route in enumerate(routes):
                found = made.operation(method, route, tenants if named else ())
                found["operationId"] = _named(method.name + f"_{position + 1}" * bool(position), version)
                paths.setdefault(_path(method, route), {})[route.verb.lower()] = found
    return {
        "openapi": OPENAPI,
        "info": {"title": card.name, "description": card.description, "version": card.version},
        "paths": paths,
        "components": {"schemas": made.schemas, "securitySchemes": schemes},
        **security,
    }


def _named(name: str, version: str) -> str:
    return name if version == V1 else f"{name}.v{version}"


def _tenants(route: Route) -> bool:
    return any(name == "tenant" for name, _, _ in route.variables)


def _variables(method: Method, route: Route) -> Iterator[tuple[int, str, str]]:
    """Segment, name in the path and request field of each variable part of a route."""
    known = method.request.DESCRIPTOR.fields_by_name
    for name, start, stop in route.variables:
        for place in range(start, stop):
            if route.segments[place] is None:
                within = route.segments[place - 1] if stop - start > 1 else None
                yield place, f"{within.removesuffix('s')}Id" if within else known[name].json_name, name


def _path(method: Method, route: Route) -> str:
    names = {place: f"{{{name}}}" for place, name, _ in _variables(method, route)}
    path = "".join(f"/{segment or names[place]}" for place, segment in enumerate(route.segments))
    return f"{path}:{route.custom}" if route.custom else path


def _content(schema: Json, *types: str) -> Json:
    return {media: {"schema": schema} for media in types}


def _event(data: Json) -> Json:
    """The schema of one event of a stream, whose data is JSON."""
    inner = {"type": "string", "contentMediaType": JSON, "contentSchema": data}
    return {"type": "object", "required": ["data"], "properties": {"id": _TEXT, "event": _TEXT, "data": inner}}


class _Made:
    """Operations and the schemas that they need, each made once."""

    def __init__(self) -> None:
        self.schemas: dict[str, Json] = {_named("Error", version): schema for version, schema in ERRORS.items()}

    # -- operations

    def operation(self, method: Method, route: Route, tenants: Collection[str]) -> Json:
        """One method at one of its routes."""
        media = MEDIA[method.version]
        made: Json = {"tags": [f"A2A {method.version}"], "summary": method.name}
        made["parameters"] = [*self._places(method, route, tenants), *self._query(method, route), *_headers(method)]
        if route.body is not None and route.verb not in BODILESS:
            made["requestBody"] = self._body(method, route)
        answer = self.ref(method.response.DESCRIPTOR)
        good = _content(_event(answer), HEADERS["content-type"]) if method.streaming else _content(answer, *media)
        text = "Events, each as the schema says" if method.streaming else "Answer"
        error = {"$ref": f"#/components/schemas/{_named('Error', method.version)}"}
        made["responses"] = {
            "200": {"description": text, "content": good},
            "default": {"description": "A2A error", "content": _content(error, *media)},
        }
        return made

    def _places(self, method: Method, route: Route, tenants: Collection[str]) -> Iterator[Json]:
        for _, name, field in _variables(method, route):
            schema: Json = {"type": "string", "minLength": 1}
            if field == "tenant" and tenants:
                schema = {"type": "string", "enum": sorted(tenants)}
            yield {"name": name, "in": "path", "required": True, "schema": schema}

    def _left(self, method: Method, route: Route) -> frozenset[str]:
        """The request fields that the path does not say, nor a body that is one of them."""
        told = {name for name, _, _ in route.variables} | {"tenant", route.body}
        return frozenset(field.name for field in method.request.DESCRIPTOR.fields if field.name not in told)

    def _query(self, method: Method, route: Route) -> Iterator[Json]:
        if route.body == "*":
            return
        left, whole = self._left(method, route), self._object(method.request.DESCRIPTOR)
        descriptor: Any = method.request.DESCRIPTOR
        for field, shape, item in fields(descriptor):
            plain = item.message_type is None or item.message_type.full_name == "google.protobuf.Timestamp"
            if field.name in left and plain and shape != MAP and item.type != _F.TYPE_BYTES:
                schema = whole["properties"][field.json_name]
                needed = field.json_name in whole.get("required", ())
                yield {"name": field.json_name, "in": "query", "required": needed, "schema": schema}

    def _body(self, method: Method, route: Route) -> Json:
        descriptor: Any = method.request.DESCRIPTOR
        if route.body != "*":
            return {
                "required": True,
                "content": _content(self.ref(descriptor.fields_by_name[route.body].message_type), JSON),
            }
        left = self._left(method, route)
        whole = self._object(descriptor)
        names = {field.json_name for field in descriptor.fields if field.name in left}
        schema = {**whole, "properties": {name: one for name, one in whole["properties"].items() if name in names}}
        schema["required"] = [name for name in whole.get("required", ()) if name in names]
        return {"required": bool(schema["required"]), "content": _content(schema, *MEDIA[method.version])}

    # -- schemas

    def ref(self, descriptor: Any) -> Json:
        """A reference to the schema of a message type, or the schema if it is a plain one."""
        if descriptor.full_name in KNOWN:
            return KNOWN[descriptor.full_name]
        name = _named(descriptor.name, V1 if descriptor.file.package.startswith("lf.") else V03)
        if name not in self.schemas:
            self.schemas[name] = {}  # types hold each other
            self.schemas[name] = self._object(descriptor)
        return {"$ref": f"#/components/schemas/{name}"}

    def _object(self, descriptor: Any) -> Json:
        required = REQUIRED.get(descriptor.full_name, ())
        written = descriptor.full_name in EXEMPT
        properties, needed = {}, []
        for field, shape, item in fields(descriptor):
            must = field.name in required and not written
            schema = self._value(item, must)
            if shape == MANY:
                schema = {"type": "array", "items": schema}
                must = must and field.full_name in NEEDS_ONE
                schema |= {"minItems": 1} if must else {}
            elif shape == MAP:
                schema = {"type": "object", "additionalProperties": schema}
            elif item.message_type is None and item.type not in (_F.TYPE_STRING, _F.TYPE_BYTES, _F.TYPE_ENUM):
                must = False  # a number has no void, see methods.missing
            properties[field.json_name] = schema
            if (must and shape != MAP) or (written and field.name in required):
                needed.append(field.json_name)
        made: Json = {"type": "object", "properties": properties}
        if needed:
            made["required"] = needed
        for oneof in descriptor.oneofs:
            if len(oneof.fields) > 1:
                made["oneOf"] = [{"required": [member.json_name]} for member in oneof.fields]
        return made

    def _value(self, field: Any, must: bool) -> Json:
        if field.message_type is not None:
            return self.ref(field.message_type)
        if field.enum_type is not None:
            return {
                "type": "string",
                "enum": [value.name for value in field.enum_type.values if value.number or not must],
            }
        schema = SCALARS[field.type]
        return {**schema, "minLength": 1} if must and schema["type"] == "string" else schema


def _headers(method: Method) -> Iterator[Json]:
    yield {"name": "A2A-Version", "in": "header", "schema": {"type": "string", "enum": [method.version]}}
    text = "URIs of extensions, separated by commas"
    yield {"name": EXTENSION_HEADERS[method.version], "in": "header", "description": text, "schema": _TEXT}


def _card_page(made: _Made, closed: bool) -> Json:
    shown: Json = {"summary": "The agent card", "operationId": "card"}
    good = _content(made.ref(v1.AgentCard.DESCRIPTOR), JSON)
    shown["responses"] = {"200": {"description": "The card of version 1.0", "content": good}}
    return shown if closed else {**shown, "security": []}


def _jsonrpc(made: _Made, versions: Collection[str]) -> Json:
    def envelope(params: Json, **method: Any) -> Json:
        properties = {"jsonrpc": {"const": "2.0"}, "id": _ID, "method": method, "params": params}
        return {"type": "object", "required": ["jsonrpc", "id", "method"], "properties": properties}

    calls = []
    if V1 in versions:
        calls += [envelope(made.ref(row.request.DESCRIPTOR), const=name) for name, row in METHODS[V1].items()]
    if V03 in versions:
        calls.append(envelope({"type": "object"}, enum=sorted(BY_JSONRPC)))
    answer = {
        "type": "object",
        "required": ["jsonrpc", "id"],
        "properties": {"jsonrpc": {"const": "2.0"}, "id": _ID, "result": {}, "error": _CODED},
        "oneOf": [{"required": ["result"]}, {"required": ["error"]}],
    }
    replies = {**_content(answer, JSON), **_content(_event(answer), HEADERS["content-type"])}
    return {
        "summary": "JSON-RPC 2.0",
        "operationId": "jsonrpc",
        "requestBody": {"required": True, "content": _content({"oneOf": calls}, JSON)},
        "responses": {
            "200": {"description": "Result, error or stream", "content": replies},
            "default": {"description": "Refusal with an HTTP status of its own", "content": _content(answer, JSON)},
        },
    }


_ID: Final[Json] = {"type": ["string", "number", "null"]}
