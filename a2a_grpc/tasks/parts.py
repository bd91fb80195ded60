"""What an author hands over, as parts of a message or an artifact.

Laws: whatever breaks the data model is refused here, at the author's own call, with an error that says what and where
(DATA-14, BL-26, BL-31); nothing of it is ever stored. No I/O.
"""

from collections.abc import Sequence
from typing import Any, Final, Protocol

from a2a_stubs import v1
from google.protobuf.message import Message

from a2a_grpc.errors import InvalidAgentResponseError
from a2a_grpc.protojson import unfit
from a2a_grpc.protojson_values import value_of
from a2a_grpc.tasks.start import new_id

BYTES_TYPE: Final = "application/octet-stream"


class Parts(Protocol):
    """A repeated field of parts."""

    def add(self, **fields: Any) -> v1.Part:
        """Append a part made of these fields."""

    def extend(self, elements: Sequence[v1.Part], /) -> None:
        """Append copies of parts."""


def add_parts(parts: Parts, value: Any, media_type: str = "") -> None:
    """Append what the author gave: str as a text part, bytes as a file part (`application/octet-stream` unless
    `media_type` says better), Part, Message, Artifact and lists of Part as they are, any other JSON value, dates
    excepted, as a data part.

    Raises InvalidAgentResponseError for what is none of these, for parts without content, numbers JSON has not and text
    that is no Unicode.
    """
    try:
        if isinstance(value, str):
            part = parts.add()
            part.text = value
            if media_type:
                part.media_type = media_type
        elif isinstance(value, bytes | bytearray | memoryview):
            parts.add(raw=bytes(value), media_type=media_type or BYTES_TYPE)
        elif (given := _given(value)) is not None:
            parts.extend(_checked(given, media_type))
        else:
            parts.add(data=value_of(value), media_type=media_type)
    except UnicodeEncodeError:
        raise unpaired("text") from None


def unpaired(where: str) -> InvalidAgentResponseError:
    """The error for a str that is no Unicode text, such as what `json.loads` makes of half an emoji."""
    return _refusal([(where, "holds an unpaired surrogate")])


def _given(value: Any) -> list[v1.Part] | None:
    """The parts of a Part, a Message, an Artifact (of any protobuf pool) or a list of Part; None for other values."""
    if isinstance(value, list | tuple):
        found = [_given(entry) if isinstance(entry, Message) else None for entry in value]
        if found and all(entry is not None for entry in found):
            return [part for entry in found for part in entry or ()]
        return None
    if not isinstance(value, Message):
        return None
    own = _OWN.get(value.DESCRIPTOR.full_name)
    if own is None:
        return None
    if not isinstance(value, own):
        value = own.FromString(value.SerializeToString())
    return [value] if isinstance(value, v1.Part) else list(value.parts)


_OWN: Final[dict[str, type[Message]]] = {cls.DESCRIPTOR.full_name: cls for cls in (v1.Part, v1.Message, v1.Artifact)}


def _checked(parts: list[v1.Part], media_type: str) -> list[v1.Part]:
    if not parts:
        raise InvalidAgentResponseError("at least one part is needed")
    found = []
    for position, given in enumerate(parts):
        if given.WhichOneof("content") is None:
            raise InvalidAgentResponseError(f"parts[{position}] has no content")
        if wrong := unfit(given, f"parts[{position}]"):
            raise _refusal(wrong)
        part = v1.Part()
        part.CopyFrom(given)
        part.media_type = part.media_type or media_type
        found.append(part)
    return found


def _refusal(wrong: Sequence[tuple[str, str]]) -> InvalidAgentResponseError:
    text = "; ".join(f"{field} {description}" for field, description in wrong)
    return InvalidAgentResponseError(text, violations=wrong)


def agent_message(content: Any, context_id: str, task_id: str, *more: v1.Part) -> v1.Message | None:
    """A message of the agent from what the author gave (see `add_parts`), None for None without `more` parts.

    A whole Message keeps what it says besides; its ids and role are set (OP-SEND-19).
    """
    if content is None and not more:
        return None
    message = v1.Message()
    if isinstance(content, v1.Message):
        message.CopyFrom(content)
        message.ClearField("parts")
        if wrong := unfit(message, "message"):
            raise _refusal(wrong)
    message.message_id = message.message_id or new_id()
    message.context_id, message.task_id, message.role = context_id, task_id, v1.ROLE_AGENT
    if content is not None:
        add_parts(message.parts, content)
    message.parts.extend(more)
    return message
