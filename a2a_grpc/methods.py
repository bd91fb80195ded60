"""The operations as rows, read from the service descriptors of both versions: types, HTTP routes, required fields.

Laws: no operation is named here; what differs from the descriptors is a row of a table. Routes are looked up in a tree
that is made once. Required fields are compiled once per message type, from the protos' own annotations (DATA-13). This
module knows no wire: verbs and paths in, rows and variables out.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

from a2a_stubs import v03_grpc, v1_grpc
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from a2a_grpc.call import V03, V1
from a2a_grpc.errors import InvalidParamsError, MethodNotAllowedError, MethodNotFoundError, Violation
from a2a_grpc.protojson_fields import MANY, MAP, ONE, REQUIRED, fields
from a2a_grpc.protojson_values import WRITE_MESSAGE, join

# Rows


@dataclass(frozen=True, slots=True)
class Route:
    """One HTTP rule.

    verb: HTTP method, upper case; template: as in the proto, such as `/tasks/{id=*}:cancel`; body: None for no body,
    `*` for the whole request, else the request field that the body is.
    segments: literals, None for any one segment; custom: the text after the colon, "" for none; variables: name of the
    request field, with the first and the behind-last of the segments that it spans.
    """

    verb: str
    template: str
    segments: tuple[str | None, ...]
    custom: str
    body: str | None
    variables: tuple[tuple[str, int, int], ...]


@dataclass(frozen=True, slots=True)
class Method:
    """One method of a service.

    name: in its own version; version: "1.0" or "0.3"; path: the full gRPC path; request, response: message classes;
    streaming: whether it has many answers; routes: its HTTP rules, plain ones first.
    """

    name: str
    version: str
    path: str
    request: type[Message]
    response: type[Message]
    streaming: bool
    routes: tuple[Route, ...]

    @property
    def reads(self) -> bool:
        """Whether it changes nothing: it has a route by GET."""
        return any(route.verb == "GET" for route in self.routes)


ALSO: Final[Mapping[tuple[str, str], tuple[str, str | None]]] = {
    ("subscribe", "GET"): ("POST", "*"),
    ("subscribe", "POST"): ("GET", None),
}
"""Custom verb and HTTP verb of a rule, with the HTTP verb and body of the further rule that it implies (I-01)."""

_PIECE: Final = re.compile(r"\{(\w+)(?:=([^}]+))?\}|([^/{}]+)")


def parse_route(verb: str, template: str, body: str | None) -> Route:
    """The route of an HTTP rule; understands `{name}`, `{name=*}` and variables over several segments."""
    head, _, tail = template.rpartition("/")
    last, colon, custom = tail.rpartition(":")
    if colon and "}" not in custom:
        template_path = f"{head}/{last}"
    else:
        template_path, custom = template, ""
    segments: list[str | None] = []
    variables = []
    for name, pattern, literal in _PIECE.findall(template_path):
        start = len(segments)
        segments += [None if piece == "*" else piece for piece in (literal or pattern or "*").split("/")]
        if name:
            variables.append((name, start, len(segments)))
    return Route(verb, template, tuple(segments), custom, body, tuple(variables))


def _routes(rules: Iterable[tuple[str, str, str | None]]) -> tuple[Route, ...]:
    found = [parse_route(*rule) for rule in rules]
    given = {(route.verb, route.template) for route in found}
    for route in tuple(found):
        verb, body = ALSO.get((route.custom, route.verb), ("", None))
        if verb and (verb, route.template) not in given:
            found.append(parse_route(verb, route.template, body))
    return tuple(found)


def _methods(version: str, service: Any) -> Mapping[str, Method]:
    return {
        row.name: Method(
            name=row.name,
            version=version,
            path=row.path,
            request=row.input,
            response=row.output,
            streaming=row.server_streaming,
            routes=_routes(service.HTTP_RULES[row.name]),
        )
        for row in service.METHODS
    }


METHODS: Final[Mapping[str, Mapping[str, Method]]] = {V1: _methods(V1, v1_grpc), V03: _methods(V03, v03_grpc)}
"""The methods of each version, by name, in the order of the service."""


# Routing


class Match(NamedTuple):
    """What a request line means. variables: by proto field name, percent-decoded; a variable over several segments
    holds them with slashes, such as `tasks/ID`."""

    method: Method
    route: Route
    variables: Mapping[str, str]


@dataclass(slots=True)
class _Node:
    """A place in the tree of paths: where a segment leads, and what ends here, by custom verb and then HTTP verb."""

    literals: "dict[str, _Node]" = field(default_factory=dict)
    variable: "_Node | None" = None
    ends: dict[str, dict[str, tuple[Method, Route]]] = field(default_factory=dict)


_Ends = Mapping[str, tuple[Method, Route]]


class Router:
    """Finds the method of a path, for one table of methods (REST-01 to REST-06).

    Literal segments win over variables. Text after the last colon of the last segment is a custom verb where there is
    one of that name, else part of the segment; an encoded colon always is. Slashes at the end do not matter.
    """

    def __init__(self, methods: Iterable[Method]) -> None:
        self._root = _Node()
        self._fixed: dict[tuple[str, str], Match] = {}
        self._last: dict[tuple[str, str], tuple[Mapping[str, _Node], Method, Route, str, str]] = {}
        fixed = []
        for method in methods:
            for route in method.routes:
                node = above = self._root
                for segment in route.segments:
                    above = node
                    if segment is not None:
                        node = node.literals.setdefault(segment, _Node())
                    else:
                        node.variable = node = node.variable or _Node()
                node.ends.setdefault(route.custom, {}).setdefault(route.verb, (method, route))
                fixed += [] if route.variables else [(route.verb, route.template)]
                *before, last = route.segments
                if last is None and None not in before and not route.custom:
                    head = "".join(f"/{segment}" for segment in before)
                    ((name, start, _),) = route.variables
                    own = "".join(f"{segment}/" for segment in before[start:])
                    self._last.setdefault((route.verb, head), (above.literals, method, route, name, own))
        self._fixed |= {(verb, path): self.find(verb, path) for verb, path in fixed}

    def find(self, verb: str, path: str) -> Match:
        """The match of an HTTP verb and a raw path, as sent, below the interface's address and without the query.

        Raises MethodNotFoundError for an unknown path, MethodNotAllowedError for a known one with another verb
        (REST-24), InvalidParamsError for percent-encoding that is not UTF-8.
        """
        if (match := self._fixed.get((verb, path))) is not None:
            return match
        head, _, last = path.rpartition("/")
        if (leaf := self._last.get((verb, head))) is not None and last and not (":" in last or "%" in last):
            literals, method, route, name, own = leaf
            if last not in literals:
                return Match(method, route, {name: own + last})
        raw = path.rstrip("/").split("/")[1:]
        found = self._ends(raw)
        if found is None:
            raise MethodNotFoundError
        ends, last = found
        end = ends.get(verb)
        if end is None:
            raise MethodNotAllowedError(allow=sorted(ends))
        method, route = end
        raw[-1] = last
        return Match(
            method,
            route,
            {name: "/".join([_decoded(piece) for piece in raw[start:stop]]) for name, start, stop in route.variables},
        )

    def _ends(self, raw: list[str]) -> tuple[_Ends, str] | None:
        """What the path ends in, and its last segment without a custom verb."""
        if not raw:
            return None
        head, colon, custom = raw[-1].rpartition(":")
        if colon and head and (ends := _walk(self._root, raw[:-1], head, custom)):
            return ends, head
        ends = _walk(self._root, raw[:-1], raw[-1], "")
        return (ends, raw[-1]) if ends else None


def _walk(node: _Node, before: list[str], last: str, custom: str, position: int = 0) -> _Ends | None:
    segment = before[position] if position < len(before) else last
    for child in (node.literals.get(segment), node.variable if segment else None):
        if child is not None:
            ends = (
                _walk(child, before, last, custom, position + 1) if position < len(before) else child.ends.get(custom)
            )
            if ends:
                return ends
    return None


def _decoded(segment: str) -> str:
    if "%" not in segment:
        return segment
    try:
        return unquote(segment, errors="strict")
    except UnicodeDecodeError:
        raise InvalidParamsError("The path is not UTF-8") from None


# Required fields

NEEDS_ONE: Final = frozenset(
    {"lf.a2a.v1.Message.parts", "lf.a2a.v1.Artifact.parts", "lf.a2a.v1.AgentCard.supported_interfaces"}
)
"""Required lists that must not be empty (I-21, OP-SEND-09)."""

NEEDS_CONTENT: Final = frozenset({"lf.a2a.v1.Part.content"})
"""Oneofs of which a member must be there (DATA-01)."""

EXEMPT: Final = frozenset({"lf.a2a.v1.ListTasksResponse"})
"""Types whose required fields may all be at their default; what they hold is checked all the same (I-21, LIST-06)."""

_Found = list[tuple[str, str]]
_Check = Callable[[Any], _Found | None]
_IS_REQUIRED, _IS_EMPTY = "is required", "must have at least one element"


def missing(message: Any, path: str = "") -> list[Violation]:
    """The required fields that a message lacks, at any depth, with camelCase paths such as `message.parts[0]`; empty
    when all is there (GRPC-12, DATA-13, OP-SEND-09, BL-31). path: what the paths start with; default "".

    An empty string and an enum at zero are lacking, and so is a part without content. Lists count by `NEEDS_ONE`.
    """
    check = _checker(message.DESCRIPTOR)
    found = check(message) if check else None
    return [Violation(join(path, where) or "body", what) for where, what in found] if found else []


@cache
def _checker(descriptor: Descriptor) -> _Check | None:
    """The function that finds what a message lacks; None for types in which nothing is required."""
    if descriptor.full_name in WRITE_MESSAGE:
        return None
    required = () if descriptor.full_name in EXEMPT else REQUIRED.get(descriptor.full_name, ())
    values, messages, lists, maps = [], [], [], []
    for row, shape, item in fields(descriptor):
        needed = row.name in required
        below = _checker(item.message_type) if item.message_type is not None else None
        if shape == ONE and row.message_type is not None:
            if needed or below:
                messages.append((row.name, row.json_name, needed, below))
        elif shape == MANY and (row.full_name in NEEDS_ONE or below):
            lists.append((row.name, row.json_name, row.full_name in NEEDS_ONE, below))
        elif shape == MAP and below:
            maps.append((row.name, row.json_name, below))
        elif shape == ONE and needed and _has_void(row):
            values.append((row.name, row.json_name))
    contents = [
        (oneof.name, f"needs one of {', '.join(member.json_name for member in oneof.fields)}")
        for oneof in descriptor.oneofs
        if oneof.full_name in NEEDS_CONTENT
    ]

    def check(message: Any) -> _Found | None:
        wrong: _Found = []
        for name, json in values:
            if not getattr(message, name):
                wrong.append((json, _IS_REQUIRED))
        for name, text in contents:
            if not message.WhichOneof(name):
                wrong.append(("", text))
        for name, json, needed, below in messages:
            if not message.HasField(name):
                wrong += [(json, _IS_REQUIRED)] if needed else []
            elif below is not None and (found := below(getattr(message, name))):
                wrong += _under(json, found)
        for name, json, needed, below in lists:
            items = getattr(message, name)
            if not items:
                wrong += [(json, _IS_EMPTY)] if needed else []
            elif below is not None:
                for index, item in enumerate(items[:]):
                    if found := below(item):
                        wrong += _under(f"{json}[{index}]", found)
        for name, json, below in maps:
            items = getattr(message, name)
            for key in items:
                wrong += _under(f"{json}.{key}", below(items[key]) or ())
        return wrong or None

    return check if values or contents or messages or lists or maps else None


def _has_void(row: Any) -> bool:
    """Whether a scalar's default means that it is not there: true of strings, bytes and enums, not of numbers."""
    return row.type in (FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BYTES, FieldDescriptor.TYPE_ENUM)


def _under(place: str, found: Iterable[tuple[str, str]]) -> _Found:
    return [(join(place, where), what) for where, what in found]
