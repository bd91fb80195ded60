"""What may be in a message, and how a push notification config is kept and shown.

Laws: checks of content that need the agent's card or the options, but no task: media types, counts, numbers, addresses.
Each failure names the field (ERR-06). Required fields are not here (methods.py), nor is anything about a task's state.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Final

import orjson
from a2a_stubs import v1

from a2a_grpc.agent import Agent
from a2a_grpc.auth import skill_of
from a2a_grpc.call import PUSH_EXTRAS, Call
from a2a_grpc.config import Options
from a2a_grpc.errors import (
    ContentTypeNotSupportedError,
    InvalidParamsError,
    PushNotificationNotSupportedError,
    UnavailableError,
)
from a2a_grpc.push_guard import Guard
from a2a_grpc.push_secrets import Seal, Sealed
from a2a_grpc.tasks.store import PushConfig

LONGEST_ID: Final = 1024
"""UTF-8 bytes of an id that a caller makes up. Stores index such ids, and no index takes any length (DATA-15)."""

_UNFIT_IN_HEADER: Final = re.compile(r"[\x00-\x1f\x7f]")
_AUTH_SCHEME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


_MEDIA_TYPE: Final = re.compile(r"[!#$&^_.+a-z0-9-]{1,127}/[!#$&^_.+a-z0-9-]{1,127}")


class Modes:
    """Media types of a card, of its skills among them; `*/*` and `text/*` stand for many."""

    def __init__(self, *modes: str) -> None:
        self._modes = frozenset(map(_kind, modes))
        self._groups = frozenset(mode.partition("/")[0] for mode in self._modes)

    def have(self, media_type: str) -> bool:
        """Whether a media type is one of them; its parameters do not count."""
        kind = _kind(media_type)
        known = not self._modes.isdisjoint((kind, kind.partition("/")[0] + "/*", "*/*"))
        return known and _MEDIA_TYPE.fullmatch(kind) is not None

    def meet(self, wanted: Iterable[str]) -> bool:
        """Whether one of them is among what somebody wants, who may say `*/*`, `text/*` or, as of old, `text`."""
        for kind in map(_kind, wanted):
            group, _, rest = kind.partition("/")
            if group == "*" or self.have(kind) or (rest in ("", "*") and group in self._groups) or "*" in self._groups:
                return True
        return False


def _kind(media_type: str) -> str:
    return media_type.partition(";")[0].strip().lower()


class Rules:
    """The content rules of one agent: media types that it takes and gives (OP-SEND-08), and limits (DATA-15). A message
    that names a skill (see auth.skill_of) is held to the modes of that skill, every other to those of all (CARD-15)."""

    def __init__(self, agent: Agent, options: Options) -> None:
        accepted, offered = agent.default_input_modes, agent.default_output_modes
        self._all = (
            Modes(*accepted, *(mode for skill in agent.skills for mode in skill.input_modes)),
            Modes(*offered, *(mode for skill in agent.skills for mode in skill.output_modes)),
        )
        self._skills = {
            skill.id: (Modes(*(skill.input_modes or accepted)), Modes(*(skill.output_modes or offered)))
            for skill in agent.skills
            if any(one.input_modes or one.output_modes for one in agent.skills)
        }
        self._options = options
        self._guard = Guard(options.push_allow, options.push_https_only)

    def check(self, request: v1.SendMessageRequest) -> None:
        """Refuse what a send must not hold; drops an inline push config when the options say so (I-61)."""
        message = request.message
        wrong = _too_long(message.context_id, "message.contextId")
        if wrong := wrong + _too_long(message.message_id, "message.messageId"):
            raise InvalidParamsError(violations=wrong)
        parts = message.parts
        if len(parts) > self._options.max_parts:
            text = f"holds {len(parts)} parts; the limit is {self._options.max_parts}"
            raise InvalidParamsError(violations=[("message.parts", text)])
        skill = skill_of(request) if self._skills else ""
        accepted, offered = self._skills.get(skill, self._all)
        for position, part in enumerate(parts[:]):
            if (kind := part.media_type) and not accepted.have(kind):
                text = f"Media type {kind[:80]!r} is not accepted{f' by the skill {skill}' * (skill in self._skills)}"
                raise ContentTypeNotSupportedError(text, violations=[(f"message.parts[{position}].mediaType", text)])
            if part.HasField("url") and not part.url:
                raise InvalidParamsError(violations=[(f"message.parts[{position}].url", "must not be empty")])
        if request.HasField("configuration"):
            self._check_modes(request.configuration.accepted_output_modes, offered)
            check_history(request.configuration, "configuration.")
            self._check_push(request)

    def _check_modes(self, wanted: Sequence[str], offered: Modes) -> None:
        """Refuse a send of somebody who can read nothing of what is offered, before the agent does any work."""
        if wanted and self._options.check_output_modes and not offered.meet(wanted):
            text = "None of the accepted output modes is offered"
            raise ContentTypeNotSupportedError(text, violations=[("configuration.acceptedOutputModes", text)])

    def _check_push(self, request: v1.SendMessageRequest) -> None:
        if not request.configuration.HasField("task_push_notification_config"):
            return
        if self._options.push_notifications:
            self.check_webhook(
                request.configuration.task_push_notification_config,
                "configuration.taskPushNotificationConfig.",
            )
        elif self._options.ignore_inline_push:
            request.configuration.ClearField("task_push_notification_config")
        else:
            raise PushNotificationNotSupportedError

    def check_webhook(self, config: v1.TaskPushNotificationConfig, path: str = "") -> None:
        """Refuse an address that no delivery could use or none may, and a token or credentials that would be more than
        themselves in a request's head (PUSH-02, PUSH-21, SEC-03)."""
        wrong = _too_long(config.id, f"{path}id")
        if why := self._guard.refusal(config.url):
            wrong.append((f"{path}url", why))
        told = config.authentication
        if told.scheme and not _AUTH_SCHEME.fullmatch(told.scheme):
            wrong.append((f"{path}authentication.scheme", "must be the name of an HTTP authentication scheme"))
        for name, text in (("token", config.token), ("authentication.credentials", told.credentials)):
            if _UNFIT_IN_HEADER.search(text):
                wrong.append((f"{path}{name}", "must not hold control characters"))
        if wrong:
            raise InvalidParamsError(violations=wrong)


def _too_long(ident: str, field: str) -> list[tuple[str, str]]:
    # No character has more than four bytes.
    if len(ident) * 4 <= LONGEST_ID or len(ident.encode()) <= LONGEST_ID:
        return []
    return [(field, f"is longer than {LONGEST_ID} bytes")]


def check_history(asked: v1.SendMessageConfiguration | v1.GetTaskRequest | v1.ListTasksRequest, path: str = "") -> None:
    """Refuse a negative historyLength (OP-GET-03, BL-23)."""
    if asked.history_length < 0:
        raise InvalidParamsError(violations=[(f"{path}historyLength", "must not be negative")])


def push_config(config: v1.TaskPushNotificationConfig, call: Call, seal: Seal) -> PushConfig:
    """The form in which a config is kept: task id and id are set already (PUSH-23, PUSH-29, L-39)."""
    extra = call.request_metadata.get(PUSH_EXTRAS)
    return PushConfig(
        config.task_id,
        config.id,
        seal.close(config.SerializeToString(), config.task_id, config.id),
        call.version,
        orjson.dumps(extra) if extra is not None else b"",
    )


def opened(stored: PushConfig, seal: Seal) -> v1.TaskPushNotificationConfig:
    """A kept config as it was made. Raises Sealed."""
    kept = seal.open(stored.config, stored.task_id, stored.config_id)
    return v1.TaskPushNotificationConfig.FromString(kept)


def shown_push_config(stored: PushConfig, call: Call, seal: Seal, *, redact: bool) -> v1.TaskPushNotificationConfig:
    """A kept config as an answer; `redact` leaves the secrets out (I-60). Raises UnavailableError, with the id by which
    it can be deleted or made anew: there is no key to it here."""
    try:
        shown = opened(stored, seal)
    except Sealed:
        raise UnavailableError(f"The push notification config {stored.config_id} cannot be read for now") from None
    if redact:
        shown.ClearField("token")
        shown.authentication.ClearField("credentials")
    if stored.extra:
        extras = call.attributes.setdefault(PUSH_EXTRAS, {})
        extras[stored.task_id, stored.config_id] = orjson.loads(stored.extra)
    shown.tenant = call.tenant
    return shown
