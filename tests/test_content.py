"""Media types that an agent takes and gives, as its card lists them."""

import pytest
from a2a_stubs import v1

from a2a_grpc.agent import Agent, Skill
from a2a_grpc.config import Options
from a2a_grpc.content import Modes, Rules
from a2a_grpc.errors import ContentTypeNotSupportedError, InvalidParamsError

CHART = Skill(id="chart", name="Chart", input_modes=("text/csv",), output_modes=("image/svg+xml",))


def rules(**options: bool | int) -> Rules:
    agent = Agent(name="A", description="a", version="1", skills=[CHART], default_output_modes=("text/plain",))
    return Rules(agent, Options(**options))  # type: ignore[arg-type]


def send(*media_types: str, modes: tuple[str, ...] = ()) -> v1.SendMessageRequest:
    parts = [v1.Part(text="x", media_type=media_type) for media_type in media_types or ("",)]
    configuration = v1.SendMessageConfiguration(accepted_output_modes=modes)
    return v1.SendMessageRequest(message=v1.Message(parts=parts), configuration=configuration)


@pytest.mark.requirement("OP-SEND-08", "CARD-15")
def test_what_a_skill_takes_and_gives_counts_beside_the_card() -> None:
    rules().check(send("text/csv", "Text/Plain; charset=utf-8", modes=("image/svg+xml",)))
    for wrong in (send("image/svg+xml"), send(modes=("text/csv", "application/json"))):
        with pytest.raises(ContentTypeNotSupportedError):
            rules().check(wrong)


@pytest.mark.requirement("OP-SEND-10")
def test_output_modes_may_be_left_to_the_agent() -> None:
    rules(check_output_modes=False).check(send(modes=("audio/wav",)))


@pytest.mark.parametrize(
    "wrong", ["png", "image/", "/png", "a b/c", "image/png\r\nx: y", "é/x", "a/b/c", "x" * 300 + "/y"]
)
@pytest.mark.requirement("OP-SEND-08")
def test_what_is_no_media_type_is_refused_even_where_all_are_welcome(wrong: str) -> None:
    assert Modes("*/*").have("image/png")
    assert not Modes("*/*").have(wrong)


@pytest.mark.requirement("DATA-15")
def test_too_many_parts_are_refused_with_the_limit() -> None:
    with pytest.raises(InvalidParamsError, match=r"message.parts holds 3 parts; the limit is 2"):
        rules(max_parts=2).check(send("", "", ""))


def named(request: v1.SendMessageRequest, skill: str) -> v1.SendMessageRequest:
    request.message.metadata["skillId"] = skill
    return request


@pytest.mark.requirement("OP-SEND-08", "CARD-15")
def test_a_message_that_names_a_skill_is_held_to_what_that_takes_and_gives() -> None:
    plain = Skill(id="plain", name="Plain")
    agent = Agent(name="A", description="a", version="1", skills=[CHART, plain], default_output_modes=("text/plain",))
    held = Rules(agent, Options())
    for fine in (
        named(send("text/csv", modes=("image/svg+xml",)), "chart"),
        named(send("text/plain", modes=("text/plain",)), "plain"),
        named(send("text/csv", modes=("image/svg+xml",)), "of another agent"),
    ):
        held.check(fine)
    for wrong, why in (
        (named(send("text/plain"), "chart"), "not accepted by the skill chart"),
        (named(send("text/csv"), "plain"), "not accepted by the skill plain"),
        (named(send(modes=("text/plain",)), "chart"), "is offered"),
        (named(send(modes=("image/svg+xml",)), "plain"), "is offered"),
    ):
        with pytest.raises(ContentTypeNotSupportedError, match=why):
            held.check(wrong)
