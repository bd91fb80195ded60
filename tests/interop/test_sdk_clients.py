"""The official SDKs, two languages, both release lines, every binding and version they speak, against one server."""

from pathlib import Path
from typing import Any

import pytest

from tests.interop.conftest import Served, made, serving, steps

HERE = Path(__file__).parent
BINDINGS = ("JSONRPC", "HTTP+JSON", "GRPC")
CLIENTS = {
    "sdk1": ("A2A_SDK1_PYTHON", "client.py", ("1.0", "0.3")),
    "sdk03": ("A2A_SDK03_PYTHON", "client.py", ("0.3",)),
    "node1": ("A2A_NODE1_MODULES", "client.mjs", ("1.0", "0.3")),
    "node03": ("A2A_NODE03_MODULES", "client.mjs", ("0.3",)),
}
"""Folder -> the variable that names its environment, its program, the versions that it speaks."""
CELLS = [(name, binding, version) for name, row in CLIENTS.items() for version in row[2] for binding in BINDINGS]

HOOK = {"task": True, "id": "hook", "url": "https://hooks.example/a2a", "token": "t"}
SCENARIO: dict[str, dict[str, Any]] = {
    "card": {"name": "Interop"},
    "send": {"state": "completed", "text": "echo hello"},
    "parts": {"data": {"n": [1, True]}, "bytes": "00ff6869", "name": "a.bin", "media": "image/png"},
    "stream": {"first": "task", "state": "completed", "text": "echo hello"},
    "get": {"state": "completed", "text": "echo hello", "history": True},
    "list": {"total": 1, "text": "echo hello"},
    "send-now": {"state": "submitted"},
    "push-create": HOOK,
    "push-get": HOOK,
    "push-list": {"ids": ["hook"]},
    "push-delete": {"left": 0},
    "cancel": {"state": "canceled"},
    "subscribe": {"first": "task", "state": "canceled", "text": ""},
}
"""What every client does, in order, and what it must see."""

UNSUPPORTED = "UnsupportedOperationError"
UNLISTED = {
    **{("sdk1", binding): UNSUPPORTED for binding in BINDINGS},
    **{
        ("node1", binding): name + UNSUPPORTED
        for binding, name in zip(BINDINGS, ("JsonRpc", "Rest", "Grpc"), strict=True)
    },
}
"""What each client that can list makes of it that the agent behind a gateway speaks 0.3 alone."""

UNKNOWN, FINISHED, BAD, BAD_STREAM = "unknown-task", "cancel-finished", "bad-message", "bad-stream"
MESSAGES = {
    FINISHED: "Task cannot be canceled",
    UNKNOWN: "Task not found",
    BAD: "Invalid parameters",
    BAD_STREAM: "Invalid parameters",
}
"""The steps that fail, in order, and the text that a client shows if it shows any."""

OLD_PUSH = ("push-list", "push-delete")
LACKS = {
    ("sdk1", "HTTP+JSON", "0.3"): OLD_PUSH,
    ("sdk03", "JSONRPC", "0.3"): OLD_PUSH,
    ("sdk03", "HTTP+JSON", "0.3"): OLD_PUSH,
    ("sdk03", "GRPC", "0.3"): OLD_PUSH,
}
"""The steps that a client has no method for, besides `list` at 0.3."""

NAMELESS = frozenset((name, binding, "0.3") for name in ("node1", "node03") for binding in ("HTTP+JSON", "GRPC"))
"""Where the client's proto has no field for the name of a file."""

MALFORMED = ("RequestMalformedError",) * 2
TYPED = ("TaskNotCancelableError", "TaskNotFoundError")
ERRORS: dict[tuple[str, str], tuple[str, ...]] = {
    **{("sdk1", binding): (*TYPED, "InvalidParamsError", "InvalidParamsError") for binding in BINDINGS},
    **{("node1", binding): (*TYPED, *MALFORMED) for binding in BINDINGS},
    ("sdk03", "JSONRPC"): ("-32002", "-32001", "-32602", "-32602"),
    ("sdk03", "HTTP+JSON"): ("400", "404", "400", "400"),
    ("sdk03", "GRPC"): ("FAILED_PRECONDITION", "NOT_FOUND", "INVALID_ARGUMENT", "INVALID_ARGUMENT"),
    ("node03", "JSONRPC"): (
        "TaskNotCancelableJSONRPCError",
        "TaskNotFoundJSONRPCError",
        "JSONRPCTransportError",
        "Error",
    ),
    ("node03", "HTTP+JSON"): (*TYPED, "Error", "Error"),
    ("node03", "GRPC"): (*TYPED, "Error", "Error"),
}
"""What each client makes of the failures: the best that its code can say."""


def program(name: str) -> tuple[str | Path, Path]:
    variable, file, _ = CLIENTS[name]
    environment = made(variable)
    return environment if file.endswith(".py") else "node", HERE / name / file


def spelled(facts: dict[str, Any]) -> dict[str, Any]:
    """Facts with states in the spelling of 0.3 JSON."""
    state = facts.get("state", "").removeprefix("TASK_STATE_").lower()
    return {**facts, **({"state": state} if state else {})}


def check(served: Served, name: str, binding: str, version: str, card: str, **env: str) -> None:
    """Take a client through the scenario and compare what it saw. env: what it is told by its environment."""
    several = (version, card) * (len(CLIENTS[name][2]) > 1)
    found = steps(*program(name), served.url, binding, *several, **env)
    lacks = (*LACKS.get((name, binding, version), ()), *(("list",) if version == "0.3" else ()))
    wanted = {step: facts for step, facts in SCENARIO.items() if step not in lacks}
    if "list" in wanted and not served.lists:
        wanted["list"] = {"error": UNLISTED[name, binding]}
    assert set(found) == set(wanted) | set(MESSAGES)
    assert any(one.startswith(version) for one in found["card"].pop("versions"))
    for step, facts in wanted.items():
        seen = spelled(found[step])
        final = seen.pop("final", True)
        if step == "send-now" and seen["state"] == "working":  # its turn may be under way before the answer
            facts = {**facts, "state": "working"}
        if step == "parts" and (name, binding, version) in NAMELESS:
            facts = {**facts, "name": ""}
        assert (step, seen, final) == (step, facts, True)
    for (step, message), error in zip(MESSAGES.items(), ERRORS[name, binding], strict=True):
        seen = found[step]
        assert (step, seen.get("error")) == (step, error) and message in seen.get("text", message)


@pytest.mark.requirement(
    *("EQ-01", "EQ-02", "EQ-03", "BL-46", "CARD-01", "I-10", "I-28", "V03-01", "V03-04", "V03-05", "V03-06"),
    *("V03-10", "V03-14", "V03-21", "V03-23", "V03-25", "V03-26", "V03-32", "V03-33", "RPC-12", "I-01", "I-47"),
    *("L-07", "L-09"),
)
@pytest.mark.parametrize(("name", "binding", "version"), CELLS, ids=map("-".join, CELLS))
def test_the_sdk_does_all_it_can(served: Served, name: str, binding: str, version: str) -> None:
    check(served, name, binding, version, version)


@pytest.mark.requirement("BL-46", "I-10", "V03-34")
@pytest.mark.parametrize(("name", "version"), [(name, version) for name, row in CLIENTS.items() for version in row[2]])
def test_an_agent_of_one_version_serves_the_clients_of_that_version(tmp_path: Path, name: str, version: str) -> None:
    with serving(tmp_path / "log", "--versions", version) as alone:
        check(alone, name, "JSONRPC", version, "1.0")
