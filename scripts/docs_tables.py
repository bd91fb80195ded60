"""The parts of the documentation that are made from the code. Run by `make docs`.

Laws of this file:
- A made part stands between `<!-- made: NAME -->` and `<!-- end -->`; `TABLES` says what makes it.
- What is said of a name comes from its docstring or its row; nothing is said here.
"""

import ast
import inspect
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from types import GenericAlias
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "generated")]

import a2a_grpc  # noqa: E402
from a2a_grpc import admin_views, config, errors, telemetry, v03_names  # noqa: E402
from a2a_grpc.call import V03, V1  # noqa: E402
from a2a_grpc.methods import METHODS, Method  # noqa: E402
from tests.rules.floors import FLOORS  # noqa: E402

THROUGH = {
    "Client": (
        ("client_streams", "Events"),
        ("client_retries", "Retries"),
        ("client_auth", "ClientCredentials"),
        ("client_auth", "Tls"),
        ("client_auth", "Channel"),
        ("client_cards", "CardCache"),
    ),
    "RemoteAgent": (
        ("remote", "Result"),
        ("remote", "Suspension"),
        ("remote", "Run"),
        ("remote", "Update"),
        ("remote", "Overrides"),
    ),
    "TaskHandle": (
        ("tasks.handle", "Output"),
        ("tasks.inbox", "Inbox"),
        ("tasks.context", "Context"),
        ("tasks.context", "Memory"),
    ),
}
"""Classes that are not exported but handed out by those that are."""
FROM_MODULES = {
    "auth": "Authenticator AllOf AnyOf ApiKey BearerKey Custom MutualTLS hashed skill_of",
    "auth_basic": "Basic hash_password",
    "auth_jwt": "JWT",
    "auth_keys": "KeySource FixedKeys FileKeys RemoteKeys",
    "verification": "Verifier Verified",
    "push_receiver": "PushReceiver Notification Reply",
    "testing": "connect serve webhook Webhook",
    "adapters.process": "process",
    "adapters.openai_chat": "openai_chat",
    "adapters.langgraph": "langgraph",
    "config": "read",
    "protojson": "value_of json_of",
    "tasks.bus": "Bus",
    "telemetry_parts": "Telemetry",
    "telemetry_otel": "OpenTelemetry",
}
"""Names that the pages use and that are imported from their own modules, as few programs need them."""
PART = re.compile(r"(<!-- made: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def table(heads: list[str], rows: Iterator[list[str]]) -> str:
    """A Markdown table."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def first_sentence(text: str) -> str:
    """The first sentence of a docstring, on one line, without the IDs of requirements."""
    line = re.sub(r" \([A-Z0-9]+-[A-Z0-9-]+[^)]*\)", "", " ".join(text.split("\n\n")[0].split()))
    return re.split(r"(?<=[.:;]) (?=[A-Z])|; ", line)[0].rstrip(".:;").replace("|", "\\|")


def error_table() -> str:
    """Every error with its row."""

    def rows() -> Iterator[list[str]]:
        for error in vars(errors).values():
            if inspect.isclass(error) and issubclass(error, errors.A2AError) and error is not errors.A2AError:
                cells = [f"`{error.reason}`", str(error.jsonrpc), error.grpc.name, str(error.http)]
                yield [f"`{error.__name__}`", *cells, first_sentence(error.__doc__ or "")]

    return table(["error", "reason", "JSON-RPC", "gRPC", "HTTP", "when"], rows())


def profile_table() -> str:
    """Where the older error profile differs."""

    def rows() -> Iterator[list[str]]:
        for error, (grpc, http) in errors.PROFILES["1.0.0"].items():
            yield [f"`{error.__name__}`", f"{error.grpc.name} {error.http}", f"{grpc.name} {http}"]

    return table(["error", "1.0.1 (default)", "1.0.0"], rows())


def operation_table() -> str:
    """Every operation with its name and path on each wire and version."""
    old = {row.operation: row for row in v03_names.NAMES}

    def paths(method: Method) -> str:
        found = [f"`{route.verb} {route.template}`" for route in method.routes if "{tenant}" not in route.template]
        return "<br>".join(found)

    def rows() -> Iterator[list[str]]:
        for name, method in METHODS[V1].items():
            row = old.get(name)
            v03 = [f"`{row.jsonrpc}`", f"`{row.method}`", paths(METHODS[V03][row.method])] if row else ["-"] * 3
            yield [f"`{name}`", paths(method), *v03]

    heads = ["v1.0 JSON-RPC and gRPC", "v1.0 REST", "v0.3 JSON-RPC", "v0.3 gRPC", "v0.3 REST"]
    return table(heads, rows())


def module_table() -> str:
    """Every module with its floor."""

    def rows() -> Iterator[list[str]]:
        for floor in (4, 3, 2, 1):
            for name in FLOORS[floor].split():
                path = (ROOT / "a2a_grpc" / name.replace(".", "/")).with_suffix(".py")
                if path.exists():  # read, not imported: some modules need a driver
                    about = ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""
                    yield [str(floor), f"`{name}`", first_sentence(about)]

    return table(["floor", "module", "what"], rows())


def measure_table() -> str:
    """Every measure, as OpenTelemetry and as Prometheus call it."""

    def row(name: str, ending: str, labels: Iterable[str], meaning: str) -> list[str]:
        shown = ", ".join(f"`{label.replace('.', '_')}`" for label in labels) or "-"
        return [f"`{name}`", f"`{name.replace('.', '_')}{ending}`", shown, meaning]

    def rows() -> Iterator[list[str]]:
        for kind in telemetry.KINDS:
            yield row(f"{kind.name}.duration", "_seconds", kind.labels, kind.meaning)
        for name, (meaning, labels) in telemetry.COUNTERS.items():
            yield row(name, "_total", labels, meaning)
        for measure in admin_views.MEASURES:
            yield row(measure.name, "_total" * measure.grows, measure.labels, measure.meaning)

    return table(["measure", "Prometheus", "labels there", "what"], rows())


PLAIN = (str, int, float, tuple, type(None), type(inspect.Parameter.empty))
"""Defaults that are shown as they are: what others print depends on the run."""


class _Left:
    """A default that is not shown."""

    def __repr__(self) -> str:
        return "..."


def signature(name: str, member: Any) -> str:
    """A name with its parameters, without types, which the docstrings tell."""
    parameters = inspect.signature(member).parameters.values()
    kept = [
        each.replace(annotation=each.empty, default=each.default if isinstance(each.default, PLAIN) else _Left())
        for each in parameters
        if each.name not in ("self", "cls")
    ]
    return f"{name}{inspect.Signature(kept)}"


def members(owner: type) -> Iterator[str]:
    """The public methods and properties of a class with what they say of themselves."""
    own = {kind: vars(kind) for kind in reversed(owner.__mro__) if kind.__module__.startswith("a2a_grpc")}
    for name, member in dict(pair for found in own.values() for pair in found.items()).items():
        function = getattr(member, "__func__", member)
        told = " ".join((inspect.getdoc(function) or "").split())
        if name.startswith("_") or not told or "(see Store." in told:
            continue
        if isinstance(member, property):
            yield f"- `{name}`: {told}\n"
        elif inspect.isfunction(function):
            yield f"- `{signature(name, function)}`: {told}\n"


def entry(head: str, found: Any) -> str:
    """What is said of one name."""
    kind = inspect.isclass(found) and not isinstance(found, GenericAlias)  # for which Python 3.10 takes those, too
    about = inspect.getdoc(found) if kind or inspect.isfunction(found) else constant(head.strip("# `"))
    return "\n".join(filter(None, (f"{head}\n\n{about}\n", "".join(members(found)) if kind else "")))


def reference() -> str:
    """The reference of all exported names, each with the classes that are met only through it."""
    pieces = []
    for name in sorted(a2a_grpc.__all__):
        pieces.append(entry(f"## `{name}`", getattr(a2a_grpc, name)))
        for module, more in THROUGH.get(name, ()):
            pieces.append(entry(f"### `{more}`", getattr(import_module(f"a2a_grpc.{module}"), more)))
    return "\n".join(pieces)


def module_reference() -> str:
    """The reference of names that are imported from a module of their own."""
    pieces = []
    for module, names in FROM_MODULES.items():
        pieces.append(f"## From `a2a_grpc.{module}`\n")
        for name in names.split():
            found = getattr(import_module(f"a2a_grpc.{module}"), name)
            head = signature(name, found) if inspect.isfunction(found) else name
            pieces.append(entry(f"### `{head}`", found))
    return "\n".join(pieces)


def program(name: str) -> str:
    """A file of examples/calls, as a block of code."""
    language = {"py": "python", "mts": "ts"}.get(ending := name.partition(".")[2], ending)
    return f"```{language}\n{(ROOT / 'examples/calls' / name).read_text('utf-8')}```\n"


def constant(name: str) -> str:
    """The text below the assignment of a name that is no class."""
    for module in ("call", "errors", "agent"):
        source = inspect.getsource(import_module(f"a2a_grpc.{module}"))
        if found := re.search(rf'^{name} = .*?\n"""(.*?)"""', source, re.DOTALL | re.MULTILINE):
            return found[1]
    raise LookupError(f"{name} has no text")


TABLES: Mapping[str, Callable[[], str]] = {
    "options": config.table,
    "errors": error_table,
    "profiles": profile_table,
    "operations": operation_table,
    "modules": module_table,
    "measures": measure_table,
    "reference": reference,
    "module_reference": module_reference,
    "call_curl": lambda: program("call.sh"),
    "call_grpcurl": lambda: program("grpcurl.sh"),
    "call_python": lambda: program("call.py"),
    "call_typescript": lambda: program("call.mts"),
    "call_go": lambda: program("call.go"),
    "call_java": lambda: program("Call.java"),
}
"""What makes each part."""


def filled(text: str) -> str:
    """The text of a page with its made parts made anew."""
    return PART.sub(lambda found: f"{found[1]}\n{TABLES[found[2]]()}\n{found[3]}", text)


def main() -> None:
    """Write every page whose made parts have changed."""
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
        text = page.read_text("utf-8")
        if (made := filled(text)) != text:
            page.write_text(made, "utf-8")
            print(f"written: {page.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
