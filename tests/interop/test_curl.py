"""What a person types first: curl, with the headers of the documentation or with none."""

import json
import shutil
import subprocess
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from tests.interop.conftest import Served, output

V1 = {"A2A-Version": "1.0"}
MESSAGE = {"messageId": "curl", "role": "ROLE_USER", "parts": [{"text": "hello"}]}
OLD_MESSAGE = {"messageId": "curl", "role": "user", "parts": [{"kind": "text", "text": "hello"}], "kind": "message"}
OLD_PROTO = {"messageId": "curl", "role": "ROLE_USER", "content": [{"text": "hello"}]}


class Reply(NamedTuple):
    """A reply as `curl -i` shows it; header names in lower case."""

    status: int
    headers: dict[str, str]
    body: str

    @property
    def value(self) -> Any:
        return json.loads(self.body)

    @property
    def events(self) -> list[tuple[str, Any]]:
        """Id and JSON of each event."""
        assert self.headers["content-type"] == "text/event-stream"
        blocks = [block.splitlines() for block in self.body.split("\n\n") if block]
        fields = [dict(line.split(": ", 1) for line in block) for block in blocks]
        return [(one.get("id", ""), json.loads(one["data"])) for one in fields]


Curl = Callable[..., Reply]


@pytest.fixture
def curl(served: Served) -> Curl:
    """A function: path, JSON body or None, headers, flags -> Reply."""
    if not shutil.which("curl"):
        pytest.skip("needs curl")

    def run(path: str, body: Any = None, headers: dict[str, str] | None = None, *flags: str) -> Reply:
        told = [word for name, value in (headers or {}).items() for word in ("-H", f"{name}: {value}")]
        sent = () if body is None else ("-H", "Content-Type: application/json", "-d", json.dumps(body))
        text = output("curl", "--silent", "--include", "--no-buffer", *told, *sent, *flags, served.url + path)
        head, _, rest = text.replace("\r\n", "\n").partition("\n\n")
        status, *lines = head.split("\n")
        pairs = (line.split(": ", 1) for line in lines)
        return Reply(int(status.split()[1]), {name.lower(): value for name, value in pairs}, rest)

    return run


def rpc(method: str, params: dict[str, Any], ident: Any = 1) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": ident, "method": method, "params": params}


@pytest.mark.requirement("CARD-01", "CARD-16", "CARD-17", "CARD-21", "I-10", "BL-46")
@pytest.mark.parametrize(
    ("version", "there", "absent"),
    [
        ("", ("supportedInterfaces", "url", "preferredTransport"), ()),
        ("1.0", ("supportedInterfaces",), ("url", "preferredTransport", "additionalInterfaces")),
        ("0.3", ("url", "preferredTransport", "additionalInterfaces"), ("supportedInterfaces",)),
    ],
)
def test_the_card_has_the_shape_of_the_version_asked_for(
    curl: Curl, version: str, there: tuple[str, ...], absent: tuple[str, ...]
) -> None:
    asked = {"A2A-Version": version} if version else {}
    reply = curl("/.well-known/agent-card.json", None, asked)
    assert reply.status == 200 and reply.headers["content-type"].startswith("application/json")
    assert set(there) <= set(reply.value) and not set(absent) & set(reply.value)
    assert "max-age=" in reply.headers["cache-control"] and "a2a-version" in reply.headers["vary"].lower()
    again = curl("/.well-known/agent-card.json", None, {**asked, "If-None-Match": reply.headers["etag"]})
    assert (again.status, again.body) == (304, "")


@pytest.mark.requirement("RPC-01", "RPC-02", "RPC-05", "I-09")
@pytest.mark.parametrize("headers", [V1, {}], ids=["version", "no version"])
def test_json_rpc_sends_and_streams(curl: Curl, headers: dict[str, str]) -> None:
    reply = curl("/", rpc("SendMessage", {"message": MESSAGE}, "x"), headers)
    assert (reply.status, reply.headers["content-type"], reply.value["id"]) == (200, "application/json", "x")
    assert reply.value["result"]["task"]["status"]["state"] == "TASK_STATE_COMPLETED"
    events = curl("/", rpc("SendStreamingMessage", {"message": MESSAGE}), headers).events
    assert all(value["id"] == 1 for _, value in events) and "task" in events[0][1]["result"]
    assert events[-1][1]["result"]["statusUpdate"]["status"]["state"] == "TASK_STATE_COMPLETED"


@pytest.mark.requirement("V03-01", "V03-03", "V03-04", "V03-05", "V03-06", "V03-18", "V03-19")
def test_old_json_rpc_sends_streams_and_fails(curl: Curl) -> None:
    task = curl("/", rpc("message/send", {"message": OLD_MESSAGE})).value["result"]
    assert (task["kind"], task["status"]["state"]) == ("task", "completed")
    events = [value["result"] for _, value in curl("/", rpc("message/stream", {"message": OLD_MESSAGE})).events]
    assert events[0]["kind"] == "task" and (events[-1]["kind"], events[-1]["final"]) == ("status-update", True)
    reply = curl("/", rpc("tasks/get", {"id": "nobody"}))
    assert (reply.status, reply.value["error"]["code"]) == (200, -32001)


@pytest.mark.requirement("REST-01", "REST-08", "REST-18", "SSE-01", "SSE-03", "SSE-05", "I-03")
@pytest.mark.parametrize("headers", [V1, {}], ids=["version", "no version"])
def test_rest_sends_streams_gets_lists_and_fails(curl: Curl, headers: dict[str, str], served: Served) -> None:
    sent = curl("/message:send", {"message": MESSAGE}, headers)
    assert (sent.status, sent.headers["content-type"]) == (200, "application/json")
    task = sent.value["task"]
    stream = curl("/message:stream", {"message": MESSAGE}, headers)
    assert stream.headers["cache-control"] == "no-cache" and "task" in stream.events[0][1]
    got = curl(f"/tasks/{task['id']}?historyLength=0", None, headers)
    assert got.headers["content-type"] == "application/a2a+json"
    assert got.value["artifacts"] == task["artifacts"] and "history" not in got.value
    page = curl(f"/tasks?contextId={task['contextId']}", None, headers).value
    if served.lists:
        assert [row["id"] for row in page["tasks"]] == [task["id"]]
        assert (page["totalSize"], page["nextPageToken"], "artifacts" in page["tasks"][0]) == (1, "", False)
    else:
        assert page["error"]["details"][0]["reason"] == "UNSUPPORTED_OPERATION"
    fault = curl("/tasks/nobody", None, headers)
    assert (fault.status, fault.value["error"]["status"]) == (404, "NOT_FOUND")


@pytest.mark.requirement("V03-20", "V03-21", "V03-22", "V03-25", "I-42")
@pytest.mark.parametrize("message", [OLD_MESSAGE, OLD_PROTO], ids=["JSON", "ProtoJSON"])
def test_old_rest_answers_in_the_dialect_of_the_request(curl: Curl, message: dict[str, Any]) -> None:
    schema = message is OLD_MESSAGE
    task = curl("/v1/message:send", {"message": message}).value["task"]
    assert task["status"]["state"] == ("completed" if schema else "TASK_STATE_COMPLETED")
    assert ("kind" in task) == schema
    last = curl("/v1/message:stream", {"message": message}).events[-1][1]["statusUpdate"]
    assert last["final"] is True
    fault = curl("/v1/tasks/nobody")
    assert (fault.status, fault.value["code"], fault.value["type"]) == (404, -32001, "TaskNotFoundError")


@pytest.mark.requirement("SUB-02", "SUB-03", "SUB-06", "I-01", "EQ-05")
def test_a_cut_stream_goes_on_after_the_last_event_seen(curl: Curl, served: Served) -> None:
    """curl is killed while it streams a waiting task; another wire cancels it; curl reads on from where it was."""
    waiting = json.dumps({"message": {**MESSAGE, "parts": [{"text": "wait"}]}})
    command = ("curl", "--silent", "--no-buffer", "-H", "Content-Type: application/json", "-d", waiting)
    with subprocess.Popen((*command, f"{served.url}/message:stream"), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        text = ""
        while "TASK_STATE_WORKING" not in text and (line := process.stdout.readline()):
            text += line
        process.kill()
    events = Reply(200, {"content-type": "text/event-stream"}, text).events
    task, seen = events[0][1]["task"]["id"], int(events[-1][0])
    canceled = curl("/", rpc("CancelTask", {"id": task}), V1).value["result"]
    assert canceled["status"]["state"] == "TASK_STATE_CANCELED"
    # A finished task takes no new subscriber; one that comes back with a number gets the rest.
    rest = curl(f"/tasks/{task}:subscribe", None, {**V1, "Last-Event-ID": str(seen)}).events
    assert int(rest[0][0]) == seen + 1 and "task" not in rest[0][1]
    assert rest[-1][1]["statusUpdate"]["status"]["state"] == "TASK_STATE_CANCELED"
    fault = curl(f"/tasks/{task}:subscribe", None, V1)
    assert (fault.status, fault.value["error"]["details"][0]["reason"]) == (400, "UNSUPPORTED_OPERATION")
