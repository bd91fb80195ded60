"""The handle of one turn: everything that a function of an agent's author sees and does.

Laws: the handle decides nothing about tasks; it turns what the author says into events and hands them to its turn,
which it knows only as `Acts`. Every wrong value is refused at the author's call.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, Final, Protocol

import orjson
from a2a_stubs import v1

from a2a_grpc.call import Call, Caller
from a2a_grpc.errors import InvalidAgentResponseError
from a2a_grpc.protojson_values import json_of, struct_of, value_of
from a2a_grpc.python310 import Self
from a2a_grpc.tasks.context import Context
from a2a_grpc.tasks.inbox import Inbox
from a2a_grpc.tasks.parts import add_parts, agent_message, unpaired
from a2a_grpc.tasks.start import new_id
from a2a_grpc.tasks.told import First, Text, Texts, about_of

SCHEMA_TYPE: Final = "application/schema+json"
"""Media type of the data part that holds the JSON Schema of a question."""


class TurnEnded(RuntimeError):
    """The turn has ended: by the author's own call, by a cancel, or because another replica took the task over."""


class Paused(TurnEnded):
    """The turn has ended with a question that a delegation asked; the function is called again with the answer. Let it
    pass."""


class Delegate(Protocol):
    """Somebody else who can do a part of a task, such as a `remote.RemoteAgent`."""

    async def delegated(self, handle: "TaskHandle", place: int, content: Any = None, **told: Any) -> Any:
        """Do it; place: which delegation of the turn this is, from 1."""


class Acts(Protocol):
    """A turn, as the handle needs it: `call` and `request` that started it, ids of the message set; `task_id` and
    `context_id` of its task, `ids`: both as events have them; `attempt`, see TaskHandle; `answering`: the message
    answers a question; `cancel_request`: None until there is one; `author_state`, `history`, `context`: see
    TaskHandle."""

    call: Call
    request: v1.SendMessageRequest
    task_id: str
    context_id: str
    attempt: int
    answering: bool
    cancel_request: v1.CancelTaskRequest | None

    @property
    def ids(self) -> bytes:
        """The ids of the task, see state.ids_of."""

    @property
    def author_state(self) -> dict[str, Any]:
        """The author's JSON object."""

    @property
    def history(self) -> Sequence[v1.Message]:
        """Messages so far, not to be changed."""

    @property
    def context(self) -> Context:
        """The conversation."""

    def open_inbox(self) -> Inbox:
        """Declare that messages are taken."""

    async def work(self, message: v1.Message | None, metadata: Mapping[str, Any] | None) -> None:
        """Emit WORKING."""

    async def put(self, said: v1.StreamResponse | First | Text) -> None:
        """Emit an artifact event."""

    async def wait(self, message: v1.Message | None) -> None:
        """Emit AUTH_REQUIRED, and go on."""

    async def end(self, state: int, message: v1.Message | None, metadata: Mapping[str, Any] | None) -> None:
        """End the turn in a state."""

    async def reply(self, message: v1.Message) -> None:
        """Answer without a task."""


class Output:
    """One artifact, written in pieces: `async with task.artifact(name="answer") as out: await out.write("...")`.

    Each piece goes out at once (OP-STREAM-08). Since the last one is known only afterwards, leaving the block sends
    one more chunk, an empty text with `lastChunk`, if the artifact ends in text; end other artifacts with
    `write(..., last=True)`. A block that writes nothing makes no artifact.
    """

    def __init__(self, acts: Acts, identity: str, about: Mapping[str, Any], media_type: str) -> None:
        self._acts = acts
        self._about = about
        self._media_type = media_type
        self._begun = self._done = self._text = False
        self._texts: Texts | None = None
        self.id: Final = identity or new_id()
        """The artifact's id, unique in the task (DATA-07)."""

    async def write(self, value: Any, last: bool = False) -> None:
        """Append text, data (dict, list, number ...), bytes, a Part or a list of Part; `last` says that it is the end.

        Raises InvalidAgentResponseError for what no part can hold, TurnEnded after the end of the turn.
        """
        if type(value) is not str or not self._begun or self._done:
            await self._put(value, self._begun, last)
            return
        if self._texts is None:
            self._texts = Texts(self._acts.task_id, self._acts.context_id, self.id, self._media_type)
        try:
            text = Text(self._texts, value, last)
        except UnicodeEncodeError:
            raise unpaired("text") from None
        self._done, self._text = last, True
        await self._acts.put(text)

    async def replace(self, value: Any, last: bool = False) -> None:
        """Put `value` in the place of everything written so far; else as `write`."""
        await self._put(value, False, last)

    async def _put(self, value: Any, append: bool, last: bool) -> None:
        if self._done:
            raise InvalidAgentResponseError("the artifact has had its last chunk")
        said = _chunk(self._acts, self.id, {} if append else self._about, value, self._media_type, append, last)
        self._begun, self._done, self._text = True, last, True
        if isinstance(said, v1.StreamResponse):
            self._text = said.artifact_update.artifact.parts[-1].WhichOneof("content") == "text"
        await self._acts.put(said)

    async def close(self) -> None:
        """Mark the end, as leaving the block does."""
        if self._begun and not self._done and self._text:
            await self.write("", last=True)
        self._done = True

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            await self.close()


class Waiting:
    """A block in which a task is AUTH_REQUIRED while its function goes on; see TaskHandle.awaiting_auth."""

    def __init__(self, acts: Acts, message: v1.Message | None) -> None:
        self._acts, self._message = acts, message

    async def __aenter__(self) -> None:
        await self._acts.wait(self._message)

    async def __aexit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            with suppress(TurnEnded):  # by what was done in the block, or else the next act tells
                await self._acts.work(None, None)


class TaskHandle:
    """One turn of a task: the message that started it, what is known around it, and what the function can do.

    In plain (not async) functions the same names work without `await`, `with` and `for` in place of `async with` and
    `async for`. After `complete`, `fail`, `reject`, `ask`, `ask_auth` or `reply` the turn is over and every further
    action raises TurnEnded. Values that break the data model raise InvalidAgentResponseError at the call.
    """

    def __init__(self, acts: Acts) -> None:
        self._acts = acts
        self._delegations = 0

    # -- what is known

    @property
    def id(self) -> str:
        """The task's id."""
        return self._acts.task_id

    @property
    def context_id(self) -> str:
        """The conversation that the task belongs to."""
        return self._acts.context_id

    @property
    def message(self) -> v1.Message:
        """The message of this turn; not to be changed."""
        return self._acts.request.message

    @property
    def parts(self) -> Sequence[v1.Part]:
        """The parts of the message."""
        return self.message.parts

    @property
    def text(self) -> str:
        """The text parts of the message, joined by line breaks; "" if there are none."""
        parts = self._acts.request.message.parts
        if len(parts) == 1:
            return parts[0].text
        return "\n".join([part.text for part in parts[:] if part.HasField("text")])

    @property
    def data(self) -> Any:
        """The first data part of the message as a Python value; None if there is none."""
        return next((json_of(part.data) for part in self.parts if part.WhichOneof("content") == "data"), None)

    @property
    def files(self) -> list[v1.Part]:
        """The parts of the message that are files: `raw` bytes or a `url`. Check a URL before you fetch it (SEC-03)."""
        return [part for part in self.parts if part.WhichOneof("content") in ("raw", "url")]

    @property
    def answer(self) -> Any:
        """What the caller answered to `ask` or `ask_auth`: the first data part, else the text as JSON if it is JSON,
        else the text. None when this turn answers no question."""
        if not self._acts.answering:
            return None
        if any(part.WhichOneof("content") == "data" for part in self.parts):
            return self.data
        try:
            return orjson.loads(self.text)
        except ValueError:
            return self.text

    @property
    def call(self) -> Call:
        """The call that brought the message."""
        return self._acts.call

    @property
    def caller(self) -> Caller:
        """Who asks."""
        return self.call.caller

    @property
    def tenant(self) -> str:
        """The addressed tenant, "" for none."""
        return self.call.tenant

    @property
    def extensions(self) -> tuple[str, ...]:
        """URIs of the extensions in force."""
        return self.call.activated

    @property
    def metadata(self) -> dict[str, Any]:
        """The metadata of the send request."""
        found: dict[str, Any] = json_of(self._acts.request.metadata)
        return found

    @property
    def accepted_output_modes(self) -> list[str]:
        """Media types that the caller can read; empty: any (OP-SEND-10)."""
        return list(self._acts.request.configuration.accepted_output_modes)

    @property
    def waited_for(self) -> bool:
        """Whether the caller waits for the end of the turn; False if the task alone was to be answered at once."""
        return not self._acts.request.configuration.return_immediately

    @property
    def attempt(self) -> int:
        """1, or more when the turn was lost with its server and is run again (`Agent(rerun_lost_turns=True)`)."""
        return self._acts.attempt

    @property
    def history(self) -> list[v1.Message]:
        """What was said in this task, oldest first, this turn's message included."""
        return [_copy(message) for message in self._acts.history]

    @property
    def state(self) -> dict[str, Any]:
        """A JSON object of yours, kept from turn to turn: saved when the turn ends in a question; at most 64 KiB."""
        return self._acts.author_state

    @property
    def context(self) -> Context:
        """The conversation around the task: memory, earlier tasks and messages; see Context."""
        return self._acts.context

    @property
    def inbox(self) -> Inbox:
        """Messages sent to the task while the function works. Reading this declares that the function takes them;
        otherwise they are refused (OP-SEND-17)."""
        return self._acts.open_inbox()

    @property
    def canceled(self) -> bool:
        """Whether the caller has asked to cancel; plain functions should look now and then."""
        return self._acts.cancel_request is not None

    @property
    def cancel_metadata(self) -> dict[str, Any] | None:
        """The metadata of the cancel request (OP-CANCEL-07); None while there is none."""
        request = self._acts.cancel_request
        return None if request is None else json_of(request.metadata)

    # -- what can be done

    async def working(self, content: Any = None, *, metadata: Mapping[str, Any] | None = None) -> None:
        """Tell that work goes on, with text, parts or a Message for the caller if given."""
        await self._acts.work(self._message(content), metadata)

    def artifact(
        self,
        *,
        name: str = "",
        description: str = "",
        id: str = "",
        media_type: str = "",
        metadata: Mapping[str, Any] | None = None,
        extensions: Sequence[str] = (),
    ) -> Output:
        """An artifact to write in pieces; see Output. id: made if empty; an id used before continues nothing, it
        begins that artifact anew. media_type: of the parts that do not state their own."""
        _, _, about = _about(name, description, id, media_type, metadata, extensions)
        return Output(self._acts, id, about, media_type)

    async def add_artifact(self, value: Any, **about: Any) -> None:
        """A whole artifact at once: text, data, bytes, parts or a v1.Artifact; keywords as for `artifact`."""
        if isinstance(value, v1.Artifact):
            about = {
                "id": value.artifact_id,
                "name": value.name,
                "description": value.description,
                "metadata": value.metadata if value.HasField("metadata") else None,
                "extensions": value.extensions,
                **about,
            }
        identity, media_type, said = _about(**about)
        await self._acts.put(_chunk(self._acts, identity or new_id(), said, value, media_type, False, True))

    async def complete(self, content: Any = None) -> None:
        """End the task: done. Results belong into artifacts; `content` is a last word (OP-SEND-18)."""
        await self._acts.end(v1.TASK_STATE_COMPLETED, self._message(content), None)

    async def fail(self, content: Any = None) -> None:
        """End the task: it did not work out. `content` is shown to the caller."""
        await self._acts.end(v1.TASK_STATE_FAILED, self._message(content), None)

    async def reject(self, content: Any = None) -> None:
        """End the task: the agent will not do it. `content` is shown to the caller."""
        await self._acts.end(v1.TASK_STATE_REJECTED, self._message(content), None)

    async def ask(self, prompt: Any, *, data: Any = None, schema: Any = None) -> None:
        """End the turn with a question. The caller's next message on the task calls the function again, on whatever
        replica, with `answer` and `state`. data: a value shown beside the prompt; schema: a JSON Schema of the
        answer, sent as a data part of type `application/schema+json`."""
        await self._ask(v1.TASK_STATE_INPUT_REQUIRED, prompt, data, schema)

    async def ask_auth(self, prompt: Any, *, data: Any = None, schema: Any = None) -> None:
        """End the turn because the caller must authorise something, which the prompt explains (AUTH-08). Credentials
        travel out of band (AUTH-09); else as `ask`."""
        await self._ask(v1.TASK_STATE_AUTH_REQUIRED, prompt, data, schema)

    def awaiting_auth(self, prompt: Any, *, data: Any = None, schema: Any = None) -> Waiting:
        """A block in which the task is AUTH_REQUIRED and the function waits by itself for what the caller authorises
        somewhere else, as a page of its own that is called back; leaving it means that work goes on, with no message
        of the caller (AUTH-10). Who waits for an answer gets the task as it is then, streams stay open. Messages that
        come meanwhile are in `inbox`. It lasts no longer than the process; arguments, and else, as of `ask_auth`."""
        return Waiting(self._acts, self._question(prompt, data, schema))

    async def delegate(self, remote: Delegate, content: Any = None, **told: Any) -> Any:
        """Let another agent do a part of the task, and wait for its `remote.Result`. content: default the parts of
        this turn's message; told: overrides of RemoteAgent, and `pause`, `key`.

        The trace goes on with it, it is canceled with the turn, has the caller's deadline, and keeps to one
        conversation of its own for each of ours. When it wants something, the turn ends with its question, and the
        caller's answer goes to it in the next turn, which begins from the top: a delegation is known again by its
        order in the turn and what it was given, and one that had ended is not made again, but read again. pause:
        False gives the suspended result instead. key: tells apart what order and content do not. Raises what the
        other agent answers; see Result.checked for work that it did not do.
        """
        self._delegations += 1
        return await remote.delegated(self, self._delegations, content, **told)

    async def reply(self, content: Any) -> None:
        """Answer with a direct message instead of a task. Only before anything else was done: afterwards there is a
        task, which this completes with the message as its last word (OP-SEND-20)."""
        message = self._message(content)
        if message is None:
            raise InvalidAgentResponseError("a reply needs content")
        await self._acts.reply(message)

    async def _ask(self, state: int, prompt: Any, data: Any, schema: Any) -> None:
        await self._acts.end(state, self._question(prompt, data, schema), None)

    def _question(self, prompt: Any, data: Any, schema: Any) -> v1.Message | None:
        more = [v1.Part(data=value_of(data))] if data is not None else []
        if schema is not None:
            more.append(v1.Part(data=value_of(schema), media_type=SCHEMA_TYPE))
        return self._message(prompt, *more)

    def _message(self, content: Any, *more: v1.Part) -> v1.Message | None:
        return agent_message(content, self.context_id, self.id, *more)


def _about(
    name: str = "",
    description: str = "",
    id: str = "",
    media_type: str = "",
    metadata: Mapping[str, Any] | None = None,
    extensions: Sequence[str] = (),
) -> tuple[str, str, dict[str, Any]]:
    """The id of an artifact, the media type of its parts, and what else is said about it."""
    about: dict[str, Any] = {}
    if name:
        about["name"] = name
    if description:
        about["description"] = description
    if extensions:
        about["extensions"] = extensions
    if metadata is not None:
        about["metadata"] = struct_of(metadata)
    return id, media_type, about


def _chunk(
    acts: Acts, identity: str, about: Mapping[str, Any], value: Any, media_type: str, append: bool, last: bool
) -> v1.StreamResponse | First:
    """The event that begins an artifact, or adds to it."""
    if type(value) is str and not append and type(identity) is type(media_type) is str:
        try:
            return First(acts.ids, identity, about_of(about), value, media_type, last)
        except UnicodeEncodeError:
            pass  # as a message it is refused with the place
    payload = v1.StreamResponse()
    update = payload.artifact_update
    update.task_id, update.context_id = acts.task_id, acts.context_id
    if append:
        update.append = True
    if last:
        update.last_chunk = True
    artifact = update.artifact
    try:
        if about:
            artifact.MergeFrom(v1.Artifact(**about))
        artifact.artifact_id = identity
    except UnicodeEncodeError:
        raise unpaired("artifact") from None
    add_parts(artifact.parts, value, media_type)
    return payload


def _copy(message: v1.Message) -> v1.Message:
    own = v1.Message()
    own.CopyFrom(message)
    return own
