"""Texts of artifacts as they are told: bytes from the author on, and messages only for those who want them.

Laws: pure, no I/O, no clock. The bytes are those that the message would be serialised to. What joins a fold does to its
task what the message would do.
"""

from collections.abc import Mapping
from typing import Any, Final

from a2a_stubs import v1

from a2a_grpc.tasks.state import ARTIFACT_UPDATE, SIZES, Fold, field_of, ids_of, tag_of

_ARTIFACT = tag_of(v1.TaskArtifactUpdateEvent, "artifact")
_APPEND, _LAST = (tag_of(v1.TaskArtifactUpdateEvent, name, 0) + b"\1" for name in ("append", "last_chunk"))
_NAME, _PARTS = (tag_of(v1.Artifact, name) for name in ("artifact_id", "parts"))
_LEAD: Final = frozenset({"name", "description"})
_TEXT, _MEDIA_TYPE = (tag_of(v1.Part, name) for name in ("text", "media_type"))


class First:
    """A text that begins an artifact. ids: as in state.ids_of; artifact_id: not empty; about: what else is said of the
    artifact, see `about_of`; media_type: "" for none; last: whether nothing follows. Raises UnicodeError for what is no
    text."""

    __slots__ = ("_artifact", "artifact_id", "body")
    state = at_ms = 0

    def __init__(
        self, ids: bytes, artifact_id: str, about: tuple[bytes, bytes], text: str, media_type: str, last: bool
    ) -> None:
        said, name, (before, after) = text.encode(), artifact_id.encode(), about
        media = field_of(_MEDIA_TYPE, media_type.encode()) if media_type else b""
        size = SIZES[len(said)]
        part = SIZES[1 + len(size) + len(said) + len(media)]
        lead = _NAME, SIZES[len(name)], name, before, _PARTS, part, _TEXT, size, said, media, after
        self.artifact_id, self._artifact = artifact_id, b"".join(lead)
        artifact, mark = SIZES[len(self._artifact)], _LAST if last else b""
        update = SIZES[len(ids) + 1 + len(artifact) + len(self._artifact) + len(mark)]
        self.body = b"".join((ARTIFACT_UPDATE, update, ids, _ARTIFACT, artifact, self._artifact, mark))

    def join(self, fold: Fold) -> None:
        """Go into the task of a fold."""
        fold.begin(self.artifact_id, self._artifact)


def about_of(about: Mapping[str, Any]) -> tuple[bytes, bytes]:
    """What is said of an artifact besides its id and its parts, by the names of the fields: what stands before the
    parts, and what behind."""
    if not about:
        return b"", b""
    lead = {name: about[name] for name in about if name in _LEAD}
    rest = {name: about[name] for name in about if name not in _LEAD}
    return v1.Artifact(**lead).SerializeToString(), v1.Artifact(**rest).SerializeToString()


class Text:
    """What is written: a text that continues an artifact. json: room for what a wire makes of it."""

    __slots__ = ("body", "json", "last", "text", "to")
    state = at_ms = 0

    def __init__(self, to: "Texts", text: str, last: bool) -> None:
        self.to, self.text, self.last = to, text, last
        said = text.encode()
        head = to._heads.get(len(said)) if not last else None
        self.body = b"".join((head or to._head(len(said), last), said, to._ends[last]))
        self.json: Any = None

    def join(self, fold: Fold) -> None:
        """Go into the task of a fold."""
        fold.write(self.to.task_id, self.to.artifact_id, self.text, self.to.form)


_SHORT: Final = 64
"""Bytes of a text that is longer than most pieces."""


class Texts:
    """The texts that continue an artifact, one after the other: what all of them say is made once. json: room for what
    a wire makes of that."""

    __slots__ = ("_about", "_ends", "_heads", "_name", "artifact_id", "form", "json", "task_id")

    def __init__(self, task_id: str, context_id: str, artifact_id: str, media_type: str) -> None:
        self.task_id, self.artifact_id, self.form = task_id, artifact_id, (media_type, "")
        self._about = ids_of(task_id, context_id) + _ARTIFACT
        self._name = field_of(_NAME, artifact_id.encode()) + _PARTS
        media = field_of(_MEDIA_TYPE, media_type.encode()) if media_type else b""
        self._ends = media + _APPEND, media + _APPEND + _LAST
        self._heads: dict[int, bytes] = {}
        self.json: Any = None

    def _head(self, length: int, last: bool) -> bytes:
        """What is before a text of so many bytes: messages in messages, each behind its size. Pieces are mostly short,
        so that there are few lengths."""
        about, name, marks = self._about, self._name, len(_APPEND + _LAST) if last else len(_APPEND)
        size = SIZES[length]
        part = 1 + len(size) + length + len(self._ends[last]) - marks
        part_size = SIZES[part]
        artifact = len(name) + len(part_size) + part
        artifact_size = SIZES[artifact]
        update = SIZES[len(about) + len(artifact_size) + artifact + marks]
        head = b"".join((ARTIFACT_UPDATE, update, about, artifact_size, name, part_size, _TEXT, size))
        if length < _SHORT and not last:
            self._heads[length] = head
        return head
