"""The table of methods, the router, and the check of required fields."""

import pytest
from a2a_stubs import v03, v03_grpc, v1, v1_grpc

from a2a_grpc.call import V03, V1
from a2a_grpc.errors import InvalidParamsError, MethodNotAllowedError, MethodNotFoundError
from a2a_grpc.methods import METHODS, Router, missing, parse_route

ROUTERS = {version: Router(table.values()) for version, table in METHODS.items()}


def found(verb: str, path: str, version: str = V1) -> tuple[str, dict[str, str]]:
    match = ROUTERS[version].find(verb, path)
    return match.method.name, dict(match.variables)


def lacking(message: object, path: str = "") -> list[str]:
    return [violation.field for violation in missing(message, path)]


@pytest.mark.requirement("GRPC-01", "GRPC-03", "RPC-03", "V03-26")
@pytest.mark.parametrize(("version", "service"), [(V1, v1_grpc), (V03, v03_grpc)])
def test_every_method_of_a_service_is_a_row(version: str, service: object) -> None:
    rows = service.METHODS  # type: ignore[attr-defined]
    assert list(METHODS[version]) == [row.name for row in rows]
    for row in rows:
        method = METHODS[version][row.name]
        assert (method.path, method.request, method.response, method.streaming) == tuple(row)[1:]
        assert method.version == version and method.routes


@pytest.mark.requirement("REST-01", "REST-02")
def test_every_rule_is_found_with_and_without_a_tenant() -> None:
    for version, table in METHODS.items():
        for method in table.values():
            for route in method.routes:
                path = "/" + "/".join(segment or f"x{n}" for n, segment in enumerate(route.segments))
                match = ROUTERS[version].find(route.verb, path + (f":{route.custom}" if route.custom else ""))
                assert (match.method, match.route) == (method, route)
                assert set(match.variables) == {name for name, _, _ in route.variables}
    assert all(any("{tenant}" in route.template for route in method.routes) for method in METHODS[V1].values())


@pytest.mark.requirement("REST-03", "I-01", "V03-23")
def test_subscribing_answers_to_both_verbs() -> None:
    assert found("GET", "/tasks/t:subscribe") == found("POST", "/tasks/t:subscribe") == ("SubscribeToTask", {"id": "t"})
    for verb in ("GET", "POST"):
        assert found(verb, "/acme/tasks/t:subscribe")[1] == {"tenant": "acme", "id": "t"}
        assert found(verb, "/v1/tasks/t:subscribe", V03) == ("TaskSubscription", {"name": "tasks/t"})
    assert ROUTERS[V1].find("POST", "/tasks/t:subscribe").route.body == "*"
    assert ROUTERS[V1].find("GET", "/tasks/t:subscribe").route.body is None


@pytest.mark.requirement("REST-04", "REST-06", "TENANT-09")
@pytest.mark.parametrize(
    ("verb", "path", "name", "variables"),
    [
        ("GET", "/tasks/a:b", "GetTask", {"id": "a:b"}),
        ("GET", "/tasks/urn:x:cancelled", "GetTask", {"id": "urn:x:cancelled"}),
        ("POST", "/tasks/a:b:cancel", "CancelTask", {"id": "a:b"}),
        ("GET", "/tasks/a%3Acancel", "GetTask", {"id": "a:cancel"}),
        ("POST", "/tasks/a%3Acancel:cancel", "CancelTask", {"id": "a:cancel"}),
        ("GET", "/tasks/a%2Fb%20c", "GetTask", {"id": "a/b c"}),
        ("GET", "/tasks/a%252Fb", "GetTask", {"id": "a%2Fb"}),
        ("GET", "/tasks/%C3%BC", "GetTask", {"id": "ü"}),
        ("GET", "/tasks/a+b", "GetTask", {"id": "a+b"}),
        ("GET", "/a%2Fb/tasks", "ListTasks", {"tenant": "a/b"}),
        ("POST", "/a:b/message:send", "SendMessage", {"tenant": "a:b"}),
    ],
)
def test_ids_may_hold_colons_and_are_decoded_once(verb: str, path: str, name: str, variables: dict[str, str]) -> None:
    assert found(verb, path) == (name, variables)
    assert found(verb, path + "/") == (name, variables)


@pytest.mark.requirement("REST-05", "I-13")
def test_literal_segments_win_over_tenants() -> None:
    assert found("GET", "/tasks/extendedAgentCard") == ("GetTask", {"id": "extendedAgentCard"})
    assert found("GET", "/tasks/tasks") == ("GetTask", {"id": "tasks"})
    assert found("GET", "/extendedAgentCard") == ("GetExtendedAgentCard", {})
    assert found("GET", "/message/tasks/t") == ("GetTask", {"tenant": "message", "id": "t"})


@pytest.mark.parametrize("version", [V1, V03])
def test_the_quick_way_to_a_task_finds_what_the_tree_of_paths_does(version: str) -> None:
    quick, tree = (Router(METHODS[version].values()) for _ in range(2))
    tree._last.clear()
    assert quick._last
    below = "/v1" if version == V03 else ""
    for path in (
        "tasks/t",
        "tasks/a.b",
        "tasks/tasks",
        "tasks/",
        "tasks/a:b",
        "tasks/a%20b",
        "x/tasks/t",
        "tasks/t/",
        "t",
    ):
        for verb in ("GET", "POST", "DELETE"):
            assert outcome(quick, verb, f"{below}/{path}") == outcome(tree, verb, f"{below}/{path}")


def outcome(router: Router, verb: str, path: str) -> object:
    try:
        return router.find(verb, path)
    except (MethodNotAllowedError, MethodNotFoundError) as error:
        return type(error), getattr(error, "allow", None)


@pytest.mark.requirement("REST-24")
@pytest.mark.parametrize(
    "path",
    [
        "",
        "/",
        "/nope",
        "//tasks",
        "/tasks//pushNotificationConfigs",
        "/message%3Asend",
        "/message",
        "/a/b/c/d",
    ],
)
def test_unknown_paths_are_not_found(path: str) -> None:
    for verb in ("GET", "POST"):
        with pytest.raises(MethodNotFoundError):
            found(verb, path)


@pytest.mark.requirement("REST-24")
@pytest.mark.parametrize(
    ("verb", "path", "allow"),
    [
        ("POST", "/tasks", ("GET",)),
        ("GET", "/tasks/t:cancel", ("POST",)),
        ("PUT", "/tasks/t:subscribe", ("GET", "POST")),
        ("GET", "/message:send", ("POST",)),
        ("PATCH", "/tasks/t/pushNotificationConfigs/c", ("DELETE", "GET")),
        ("DELETE", "/acme/tasks/t/pushNotificationConfigs", ("GET", "POST")),
    ],
)
def test_the_wrong_verb_tells_the_right_ones(verb: str, path: str, allow: tuple[str, ...]) -> None:
    with pytest.raises(MethodNotAllowedError) as caught:
        found(verb, path)
    assert caught.value.allow == allow


@pytest.mark.requirement("REST-06")
def test_a_path_that_is_not_utf8_is_refused() -> None:
    with pytest.raises(InvalidParamsError):
        found("GET", "/tasks/%ff")


@pytest.mark.requirement("V03-20")
@pytest.mark.parametrize(
    ("verb", "path", "name", "variables"),
    [
        ("POST", "/v1/message:send", "SendMessage", {}),
        ("GET", "/v1/tasks/t", "GetTask", {"name": "tasks/t"}),
        ("POST", "/v1/tasks/t:cancel", "CancelTask", {"name": "tasks/t"}),
        ("POST", "/v1/tasks/t/pushNotificationConfigs", "CreateTaskPushNotificationConfig", {"parent": "tasks/t"}),
        ("GET", "/v1/tasks/t/pushNotificationConfigs", "ListTaskPushNotificationConfig", {"parent": "tasks/t"}),
        ("GET", "/v1/card", "GetAgentCard", {}),
        (
            "DELETE",
            "/v1/tasks/t/pushNotificationConfigs/c",
            "DeleteTaskPushNotificationConfig",
            {"name": "tasks/t/pushNotificationConfigs/c"},
        ),
    ],
)
def test_v03_paths_give_resource_names(verb: str, path: str, name: str, variables: dict[str, str]) -> None:
    assert found(verb, path, V03) == (name, variables)


def test_a_rule_is_taken_apart() -> None:
    route = parse_route("POST", "/v1/{parent=task/*/configs}", "config")
    assert (route.segments, route.custom) == (("v1", "task", None, "configs"), "")
    assert route.variables == (("parent", 1, 4),)
    assert parse_route("POST", "/{tenant}/message:send", "*").segments == (None, "message")


# Required fields


@pytest.mark.requirement("OP-SEND-09", "BL-31", "DATA-13", "GRPC-12")
def test_a_message_with_nothing_set_lacks_everything_by_name() -> None:
    assert lacking(v1.SendMessageRequest()) == ["message"]
    assert lacking(v1.SendMessageRequest(message=v1.Message())) == [
        "message.messageId",
        "message.role",
        "message.parts",
    ]
    empty = v1.Message(message_id="m", role=v1.ROLE_USER, parts=[v1.Part(text=""), v1.Part(filename="f")])
    assert lacking(v1.SendMessageRequest(message=empty)) == ["message.parts[1]"]
    assert lacking(v1.Part(), "parts[3]") == ["parts[3]"]
    assert lacking(v1.Part()) == ["body"]


@pytest.mark.requirement("DATA-01", "DATA-02", "DATA-03")
def test_every_kind_of_content_counts_even_when_it_is_empty() -> None:
    null = v1.Part()
    null.data.null_value = 0  # type: ignore[assignment]
    parts = [v1.Part(text=""), v1.Part(raw=b""), v1.Part(url=""), null]
    assert lacking(v1.Message(message_id="m", role=v1.ROLE_USER, parts=parts)) == []


@pytest.mark.requirement("DATA-13", "OP-GET-03")
@pytest.mark.parametrize(
    ("message", "fields"),
    [
        (v1.GetTaskRequest(), ["id"]),
        (v1.CancelTaskRequest(tenant="x"), ["id"]),
        (v1.GetTaskPushNotificationConfigRequest(), ["taskId", "id"]),
        (v1.TaskPushNotificationConfig(authentication=v1.AuthenticationInfo()), ["url", "authentication.scheme"]),
        (v1.ListTasksRequest(), []),
        (v1.GetExtendedAgentCardRequest(), []),
        (v03.GetTaskRequest(), ["name"]),
    ],
)
def test_required_fields_of_requests(message: object, fields: list[str]) -> None:
    assert lacking(message) == fields


@pytest.mark.requirement("OP-SEND-09")
def test_what_is_nested_and_optional_is_checked_where_it_is_set() -> None:
    message = v1.Message(message_id="m", role=v1.ROLE_USER, parts=[v1.Part(text="x")])
    request = v1.SendMessageRequest(message=message)
    request.configuration.return_immediately = True
    assert lacking(request) == []
    request.configuration.task_push_notification_config.token = "t"
    assert lacking(request) == ["configuration.taskPushNotificationConfig.url"]


@pytest.mark.requirement("I-21", "BL-31", "DATA-07", "DATA-08")
def test_results_of_the_agent_are_checked_alike_but_lists_of_replies_may_be_empty() -> None:
    assert lacking(v1.ListTasksResponse()) == []
    task = v1.Task(id="t", artifacts=[v1.Artifact(artifact_id="a")], history=[v1.Message()])
    assert lacking(v1.ListTasksResponse(tasks=[task])) == [
        "tasks[0].status",
        "tasks[0].artifacts[0].parts",
        "tasks[0].history[0].messageId",
        "tasks[0].history[0].role",
        "tasks[0].history[0].parts",
    ]
    assert lacking(v1.TaskStatusUpdateEvent(status=v1.TaskStatus())) == ["taskId", "contextId", "status.state"]


@pytest.mark.requirement("I-21", "CARD-01")
def test_a_card_needs_an_interface_but_no_skill() -> None:
    card = v1.AgentCard(name="n", description="d", version="1", capabilities=v1.AgentCapabilities())
    assert lacking(card) == ["supportedInterfaces"]
    card.supported_interfaces.add(url="http://x", protocol_binding="JSONRPC")
    card.skills.add(id="s", name="n", description="d")
    card.security_schemes["k"].api_key_security_scheme.name = "X"
    assert lacking(card) == [
        "supportedInterfaces[0].protocolVersion",
        "securitySchemes.k.apiKeySecurityScheme.location",
    ]
