"""Types of a2a.v1. Made by proto/generate.py; do not edit."""

import builtins as _b
import collections.abc as _abc
import typing as _t

from google.protobuf import descriptor as _descriptor, message as _message
from google.protobuf.internal import containers as _containers, enum_type_wrapper as _enums
from google.protobuf.internal import well_known_types as _well_known

from a2a_stubs import google as _google, v03 as _v03

DESCRIPTOR: _descriptor.FileDescriptor
REQUIRED: dict[str, tuple[str, ...]]

class _TaskState:
    ValueType = _t.NewType("ValueType", _b.int)

class _TaskStateWrapper(_enums._EnumTypeWrapper[_TaskState.ValueType], _b.type):
    DESCRIPTOR: _descriptor.EnumDescriptor
    TASK_STATE_UNSPECIFIED: _TaskState.ValueType
    """Not known; a server never sends it."""
    TASK_STATE_SUBMITTED: _TaskState.ValueType
    """Taken on, not begun."""
    TASK_STATE_WORKING: _TaskState.ValueType
    """Being worked on."""
    TASK_STATE_COMPLETED: _TaskState.ValueType
    """Done. Final."""
    TASK_STATE_FAILED: _TaskState.ValueType
    """Ended by an error. Final."""
    TASK_STATE_CANCELLED: _TaskState.ValueType
    """Stopped at the wish of the caller. Final."""
    TASK_STATE_INPUT_REQUIRED: _TaskState.ValueType
    """Waits for an answer of the caller."""
    TASK_STATE_REJECTED: _TaskState.ValueType
    """The agent would not do it. Final."""
    TASK_STATE_AUTH_REQUIRED: _TaskState.ValueType
    """Waits for the caller to authenticate or to grant access."""

class TaskState(_TaskState, metaclass=_TaskStateWrapper):
    """The states of a task. Completed, failed, canceled and rejected are final; the two "required" ones
    wait for the caller.
    """

TASK_STATE_UNSPECIFIED: TaskState.ValueType
TASK_STATE_SUBMITTED: TaskState.ValueType
TASK_STATE_WORKING: TaskState.ValueType
TASK_STATE_COMPLETED: TaskState.ValueType
TASK_STATE_FAILED: TaskState.ValueType
TASK_STATE_CANCELLED: TaskState.ValueType
TASK_STATE_INPUT_REQUIRED: TaskState.ValueType
TASK_STATE_REJECTED: TaskState.ValueType
TASK_STATE_AUTH_REQUIRED: TaskState.ValueType

class _Role:
    ValueType = _t.NewType("ValueType", _b.int)

class _RoleWrapper(_enums._EnumTypeWrapper[_Role.ValueType], _b.type):
    DESCRIPTOR: _descriptor.EnumDescriptor
    ROLE_UNSPECIFIED: _Role.ValueType
    """Not said; not valid in a message."""
    ROLE_USER: _Role.ValueType
    """The caller, whether a person or another agent."""
    ROLE_AGENT: _Role.ValueType
    """The agent that was called."""

class Role(_Role, metaclass=_RoleWrapper):
    """Who wrote a message."""

ROLE_UNSPECIFIED: Role.ValueType
ROLE_USER: Role.ValueType
ROLE_AGENT: Role.ValueType

class SendMessageConfiguration(_message.Message):
    """How the caller wants a message to be answered."""
    DESCRIPTOR: _descriptor.Descriptor
    ACCEPTED_OUTPUT_MODES_FIELD_NUMBER: _t.Final = 1
    PUSH_NOTIFICATION_FIELD_NUMBER: _t.Final = 2
    HISTORY_LENGTH_FIELD_NUMBER: _t.Final = 3
    BLOCKING_FIELD_NUMBER: _t.Final = 4
    @_b.property
    def accepted_output_modes(self) -> _containers.RepeatedScalarFieldContainer[_b.str]:
        """Media types that the caller can read; none given means any."""
    @_b.property
    def push_notification(self) -> _v03.PushNotificationConfig:
        """A webhook for the task of this message."""
    history_length: _b.int
    """How many of the last messages the task in the answer shows; 0 sets no limit."""
    blocking: _b.bool
    """True: answer when the task has ended or waits for the caller. False: answer as soon as it
    exists.
    """
    def __init__(
        self,
        *,
        accepted_output_modes: _abc.Iterable[_b.str] | None = ...,
        push_notification: _v03.PushNotificationConfig | None = ...,
        history_length: _b.int | None = ...,
        blocking: _b.bool | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.Literal["push_notification"]) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["accepted_output_modes", "push_notification", "history_length", "blocking"]) -> None: ...
    def WhichOneof(self, oneof_group: _t.NoReturn) -> None: ...

class Task(_message.Message):
    """A unit of work that the agent has taken on: its state, what was said, and what came out of it."""
    DESCRIPTOR: _descriptor.Descriptor
    ID_FIELD_NUMBER: _t.Final = 1
    CONTEXT_ID_FIELD_NUMBER: _t.Final = 2
    STATUS_FIELD_NUMBER: _t.Final = 3
    ARTIFACTS_FIELD_NUMBER: _t.Final = 4
    HISTORY_FIELD_NUMBER: _t.Final = 5
    METADATA_FIELD_NUMBER: _t.Final = 6
    id: _b.str
    """Made by the agent, unique among its tasks."""
    context_id: _b.str
    """The conversation that the task belongs to."""
    @_b.property
    def status(self) -> _v03.TaskStatus:
        """Where the task stands now."""
    @_b.property
    def artifacts(self) -> _containers.RepeatedCompositeFieldContainer[_v03.Artifact]:
        """What the task has produced so far."""
    @_b.property
    def history(self) -> _containers.RepeatedCompositeFieldContainer[_v03.Message]:
        """Messages of the task, oldest first; how many is limited by the history length asked for."""
    @_b.property
    def metadata(self) -> _google.Struct:
        """Free data about the task; extensions keep theirs under their URI."""
    def __init__(
        self,
        *,
        id: _b.str | None = ...,
        context_id: _b.str | None = ...,
        status: _v03.TaskStatus | None = ...,
        artifacts: _abc.Iterable[_v03.Artifact] | None = ...,
        history: _abc.Iterable[_v03.Message] | None = ...,
        metadata: _google.Struct | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.Literal["status", "metadata"]) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["id", "context_id", "status", "artifacts", "history", "metadata"]) -> None: ...
    def WhichOneof(self, oneof_group: _t.NoReturn) -> None: ...

class TaskStatus(_message.Message):
    """The state of a task at one moment."""
    DESCRIPTOR: _descriptor.Descriptor
    STATE_FIELD_NUMBER: _t.Final = 1
    UPDATE_FIELD_NUMBER: _t.Final = 2
    TIMESTAMP_FIELD_NUMBER: _t.Final = 3
    state: _v03.TaskState.ValueType
    """One of the task states."""
    @_b.property
    def update(self) -> _v03.Message:
        """What the agent has to say about this status; `message` in JSON."""
    @_b.property
    def timestamp(self) -> _google.Timestamp:
        """When this status was set."""
    def __init__(
        self,
        *,
        state: _v03.TaskState.ValueType | _b.str | None = ...,
        update: _v03.Message | None = ...,
        timestamp: _google.Timestamp | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.Literal["update", "timestamp"]) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["state", "update", "timestamp"]) -> None: ...
    def WhichOneof(self, oneof_group: _t.NoReturn) -> None: ...

class Part(_message.Message):
    """A piece of content."""
    DESCRIPTOR: _descriptor.Descriptor
    TEXT_FIELD_NUMBER: _t.Final = 1
    FILE_FIELD_NUMBER: _t.Final = 2
    DATA_FIELD_NUMBER: _t.Final = 3
    METADATA_FIELD_NUMBER: _t.Final = 4
    text: _b.str
    """Text."""
    @_b.property
    def file(self) -> _v03.FilePart:
        """A file."""
    @_b.property
    def data(self) -> _v03.DataPart:
        """Structured data."""
    @_b.property
    def metadata(self) -> _google.Struct:
        """Free data about the part. Later than release 0.3.0."""
    def __init__(
        self,
        *,
        text: _b.str | None = ...,
        file: _v03.FilePart | None = ...,
        data: _v03.DataPart | None = ...,
        metadata: _google.Struct | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.Literal["text", "file", "data", "metadata", "part"]) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["text", "file", "data", "metadata", "part"]) -> None: ...
    def WhichOneof(self, oneof_group: _t.Literal["part"]) -> _t.Literal["text", "file", "data"] | None: ...

class FilePart(_message.Message):
    """A file, given by its bytes or by its address."""
    DESCRIPTOR: _descriptor.Descriptor
    FILE_WITH_URI_FIELD_NUMBER: _t.Final = 1
    FILE_WITH_BYTES_FIELD_NUMBER: _t.Final = 2
    MIME_TYPE_FIELD_NUMBER: _t.Final = 3
    NAME_FIELD_NUMBER: _t.Final = 4
    file_with_uri: _b.str
    """Where the bytes can be had."""
    file_with_bytes: _b.bytes
    """The bytes; base64 in JSON."""
    mime_type: _b.str
    """The media type of the file."""
    name: _b.str
    """The name that the file should have. Later than release 0.3.0."""
    def __init__(
        self,
        *,
        file_with_uri: _b.str | None = ...,
        file_with_bytes: _b.bytes | None = ...,
        mime_type: _b.str | None = ...,
        name: _b.str | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.Literal["file_with_uri", "file_with_bytes", "file"]) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["file_with_uri", "file_with_bytes", "mime_type", "name", "file"]) -> None: ...
    def WhichOneof(self, oneof_group: _t.Literal["file"]) -> _t.Literal["file_with_uri", "file_with_bytes"] | None: ...

class DataPart(_message.Message):
    """Structured data."""
    DESCRIPTOR: _descriptor.Descriptor
    DATA_FIELD_NUMBER: _t.Final = 1
    @_b.property
    def data(self) -> _google.Struct:
        """A JSON object; no other JSON value fits."""
    def __init__(
        self,
        *,
        data: _google.Struct | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.Literal["data"]) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["data"]) -> None: ...
    def WhichOneof(self, oneof_group: _t.NoReturn) -> None: ...

class Message(_message.Message):
    """One turn of a conversation, by the caller or by the agent."""
    DESCRIPTOR: _descriptor.Descriptor
    MESSAGE_ID_FIELD_NUMBER: _t.Final = 1
    CONTEXT_ID_FIELD_NUMBER: _t.Final = 2
    TASK_ID_FIELD_NUMBER: _t.Final = 3
    ROLE_FIELD_NUMBER: _t.Final = 4
    CONTENT_FIELD_NUMBER: _t.Final = 5
    METADATA_FIELD_NUMBER: _t.Final = 6
    EXTENSIONS_FIELD_NUMBER: _t.Final = 7
    message_id: _b.str
    """Made by the author of the message; the same id again means the same message again."""
    context_id: _b.str
    """The conversation to go on with; empty for a new one."""
    task_id: _b.str
    """The task to go on with; empty for a new one."""
    role: _v03.Role.ValueType
    """Who wrote it."""
    @_b.property
    def content(self) -> _containers.RepeatedCompositeFieldContainer[_v03.Part]:
        """The content, in order; at least one part."""
    @_b.property
    def metadata(self) -> _google.Struct:
        """Free data about the message; extensions keep theirs under their URI."""
    @_b.property
    def extensions(self) -> _containers.RepeatedScalarFieldContainer[_b.str]:
        """URIs of the extensions that had a share in this message."""
    def __init__(
        self,
        *,
        message_id: _b.str | None = ...,
        context_id: _b.str | None = ...,
        task_id: _b.str | None = ...,
        role: _v03.Role.ValueType | _b.str | None = ...,
        content: _abc.Iterable[_v03.Part] | None = ...,
        metadata: _google.Struct | None = ...,
        extensions: _abc.Iterable[_b.str] | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.Literal["metadata"]) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["message_id", "context_id", "task_id", "role", "content", "metadata", "extensions"]) -> None: ...
    def WhichOneof(self, oneof_group: _t.NoReturn) -> None: ...

class Artifact(_message.Message):
    """One result of a task, such as a document, an image or a table."""
    DESCRIPTOR: _descriptor.Descriptor
    ARTIFACT_ID_FIELD_NUMBER: _t.Final = 1
    NAME_FIELD_NUMBER: _t.Final = 3
    DESCRIPTION_FIELD_NUMBER: _t.Final = 4
    PARTS_FIELD_NUMBER: _t.Final = 5
    METADATA_FIELD_NUMBER: _t.Final = 6
    EXTENSIONS_FIELD_NUMBER: _t.Final = 7
    artifact_id: _b.str
    """Unique within its task."""
    name: _b.str
    """A short name for people; a later version of the result keeps it."""
    description: _b.str
    """What the result is, for people."""
    @_b.property
    def parts(self) -> _containers.RepeatedCompositeFieldContainer[_v03.Part]:
        """The content, in order; at least one part."""
    @_b.property
    def metadata(self) -> _google.Struct:
        """Free data about the artifact; extensions keep theirs under their URI."""
    @_b.property
    def extensions(self) -> _containers.RepeatedScalarFieldContainer[_b.str]:
        """URIs of the extensions that had a share in this artifact."""
    def __init__(
        self,
        *,
        artifact_id: _b.str | None = ...,
        name: _b.str | None = ...,
        description: _b.str | None = ...,
        parts: _abc.Iterable[_v03.Part] | None = ...,
        metadata: _google.Struct | None = ...,
        extensions: _abc.Iterable[_b.str] | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.Literal["metadata"]) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["artifact_id", "name", "description", "parts", "metadata", "extensions"]) -> None: ...
    def WhichOneof(self, oneof_group: _t.NoReturn) -> None: ...

class TaskStatusUpdateEvent(_message.Message):
    """Tells readers of a stream that the status of a task has changed."""
    DESCRIPTOR: _descriptor.Descriptor
    TASK_ID_FIELD_NUMBER: _t.Final = 1
    CONTEXT_ID_FIELD_NUMBER: _t.Final = 2
    STATUS_FIELD_NUMBER: _t.Final = 3
    FINAL_FIELD_NUMBER: _t.Final = 4
    METADATA_FIELD_NUMBER: _t.Final = 5
    task_id: _b.str
    """The task concerned."""
    context_id: _b.str
    """The conversation of that task."""
    @_b.property
    def status(self) -> _v03.TaskStatus:
        """The new status."""
    final: _b.bool
    """True on the last event of the stream."""
    @_b.property
    def metadata(self) -> _google.Struct:
        """Free data about the event."""
    def __init__(
        self,
        *,
        task_id: _b.str | None = ...,
        context_id: _b.str | None = ...,
        status: _v03.TaskStatus | None = ...,
        final: _b.bool | None = ...,
        metadata: _google.Struct | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.Literal["status", "metadata"]) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["task_id", "context_id", "status", "final", "metadata"]) -> None: ...
    def WhichOneof(self, oneof_group: _t.NoReturn) -> None: ...

class TaskArtifactUpdateEvent(_message.Message):
    """Tells readers of a stream that an artifact is new or has grown."""
    DESCRIPTOR: _descriptor.Descriptor
    TASK_ID_FIELD_NUMBER: _t.Final = 1
    CONTEXT_ID_FIELD_NUMBER: _t.Final = 2
    ARTIFACT_FIELD_NUMBER: _t.Final = 3
    APPEND_FIELD_NUMBER: _t.Final = 4
    LAST_CHUNK_FIELD_NUMBER: _t.Final = 5
    METADATA_FIELD_NUMBER: _t.Final = 6
    task_id: _b.str
    """The task concerned."""
    context_id: _b.str
    """The conversation of that task."""
    @_b.property
    def artifact(self) -> _v03.Artifact:
        """The artifact, or the parts to be added to it."""
    append: _b.bool
    """True: add the parts to the artifact of the same id. False: the artifact is new, or takes the
    place of the old one.
    """
    last_chunk: _b.bool
    """True on the last piece of this artifact."""
    @_b.property
    def metadata(self) -> _google.Struct:
        """Free data about the event."""
    def __init__(
        self,
        *,
        task_id: _b.str | None = ...,
        context_id: _b.str | None = ...,
        artifact: _v03.Artifact | None = ...,
        append: _b.bool | None = ...,
        last_chunk: _b.bool | None = ...,
        metadata: _google.Struct | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.Literal["artifact", "metadata"]) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["task_id", "context_id", "artifact", "append", "last_chunk", "metadata"]) -> None: ...
    def WhichOneof(self, oneof_group: _t.NoReturn) -> None: ...

class PushNotificationConfig(_message.Message):
    """A webhook that is told of the changes of a task."""
    DESCRIPTOR: _descriptor.Descriptor
    ID_FIELD_NUMBER: _t.Final = 1
    URL_FIELD_NUMBER: _t.Final = 2
    TOKEN_FIELD_NUMBER: _t.Final = 3
    AUTHENTICATION_FIELD_NUMBER: _t.Final = 4
    id: _b.str
    """Unique within the task, chosen by the client."""
    url: _b.str
    """Where the events are sent to."""
    token: _b.str
    """Given back in a header with each event, so that the receiver knows who made the subscription. A
    secret.
    """
    @_b.property
    def authentication(self) -> _v03.AuthenticationInfo:
        """How the agent authenticates to the webhook."""
    def __init__(
        self,
        *,
        id: _b.str | None = ...,
        url: _b.str | None = ...,
        token: _b.str | None = ...,
        authentication: _v03.AuthenticationInfo | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.Literal["authentication"]) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["id", "url", "token", "authentication"]) -> None: ...
    def WhichOneof(self, oneof_group: _t.NoReturn) -> None: ...

class AuthenticationInfo(_message.Message):
    """How the agent proves who it is when it calls a webhook."""
    DESCRIPTOR: _descriptor.Descriptor
    SCHEMES_FIELD_NUMBER: _t.Final = 1
    CREDENTIALS_FIELD_NUMBER: _t.Final = 2
    @_b.property
    def schemes(self) -> _containers.RepeatedScalarFieldContainer[_b.str]:
        """HTTP authentication schemes that the webhook takes; any one of them will do."""
    credentials: _b.str
    """What follows the scheme in the Authorization header. A secret."""
    def __init__(
        self,
        *,
        schemes: _abc.Iterable[_b.str] | None = ...,
        credentials: _b.str | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.NoReturn) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["schemes", "credentials"]) -> None: ...
    def WhichOneof(self, oneof_group: _t.NoReturn) -> None: ...

class AgentInterface(_message.Message):
    """One address at which the agent can be called, and how."""
    DESCRIPTOR: _descriptor.Descriptor
    URL_FIELD_NUMBER: _t.Final = 1
    TRANSPORT_FIELD_NUMBER: _t.Final = 2
    url: _b.str
    """The address; for gRPC the target, for HTTP the base of all paths."""
    transport: _b.str
    """`JSONRPC`, `GRPC`, `HTTP+JSON`, or another name."""
    def __init__(
        self,
        *,
        url: _b.str | None = ...,
        transport: _b.str | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.NoReturn) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["url", "transport"]) -> None: ...
    def WhichOneof(self, oneof_group: _t.NoReturn) -> None: ...

class AgentCard(_message.Message):
    """What an agent says about itself: who it is, where it is, what it can do and how callers are
    checked.
    """
    DESCRIPTOR: _descriptor.Descriptor
    PROTOCOL_VERSION_FIELD_NUMBER: _t.Final = 16
    NAME_FIELD_NUMBER: _t.Final = 1
    DESCRIPTION_FIELD_NUMBER: _t.Final = 2
    URL_FIELD_NUMBER: _t.Final = 3
    PREFERRED_TRANSPORT_FIELD_NUMBER: _t.Final = 14
    ADDITIONAL_INTERFACES_FIELD_NUMBER: _t.Final = 15
    PROVIDER_FIELD_NUMBER: _t.Final = 4
    VERSION_FIELD_NUMBER: _t.Final = 5
    DOCUMENTATION_URL_FIELD_NUMBER: _t.Final = 6
    CAPABILITIES_FIELD_NUMBER: _t.Final = 7
    SECURITY_SCHEMES_FIELD_NUMBER: _t.Final = 8
    SECURITY_FIELD_NUMBER: _t.Final = 9
    DEFAULT_INPUT_MODES_FIELD_NUMBER: _t.Final = 10
    DEFAULT_OUTPUT_MODES_FIELD_NUMBER: _t.Final = 11
    SKILLS_FIELD_NUMBER: _t.Final = 12
    SUPPORTS_AUTHENTICATED_EXTENDED_CARD_FIELD_NUMBER: _t.Final = 13
    SIGNATURES_FIELD_NUMBER: _t.Final = 17
    ICON_URL_FIELD_NUMBER: _t.Final = 18
    protocol_version: _b.str
    """The protocol version spoken, as Major.Minor.Patch."""
    name: _b.str
    """The name of the agent, for people."""
    description: _b.str
    """What the agent is for, for people and for other agents that choose one."""
    url: _b.str
    """The main address of the agent."""
    preferred_transport: _b.str
    """How the main address is called; empty means `JSONRPC`."""
    @_b.property
    def additional_interfaces(self) -> _containers.RepeatedCompositeFieldContainer[_v03.AgentInterface]:
        """Further addresses."""
    @_b.property
    def provider(self) -> _v03.AgentProvider:
        """Who runs the agent."""
    version: _b.str
    """The release of the agent itself, in whatever form its maker uses."""
    documentation_url: _b.str
    """Where more can be read about the agent."""
    @_b.property
    def capabilities(self) -> _v03.AgentCapabilities:
        """Which optional parts of the protocol it supports."""
    @_b.property
    def security_schemes(self) -> _containers.MessageMap[_b.str, _v03.SecurityScheme]:
        """Ways to authenticate, by the name that requirements use for them."""
    @_b.property
    def security(self) -> _containers.RepeatedCompositeFieldContainer[_v03.Security]:
        """What a caller needs: any one of these."""
    @_b.property
    def default_input_modes(self) -> _containers.RepeatedScalarFieldContainer[_b.str]:
        """Media types that every skill reads unless it lists its own."""
    @_b.property
    def default_output_modes(self) -> _containers.RepeatedScalarFieldContainer[_b.str]:
        """Media types that every skill writes unless it lists its own."""
    @_b.property
    def skills(self) -> _containers.RepeatedCompositeFieldContainer[_v03.AgentSkill]:
        """What the agent can do, one entry for each ability."""
    supports_authenticated_extended_card: _b.bool
    """A fuller card for callers who have authenticated."""
    @_b.property
    def signatures(self) -> _containers.RepeatedCompositeFieldContainer[_v03.AgentCardSignature]:
        """Signatures over the canonical form of this card without this field."""
    icon_url: _b.str
    """A picture of the agent. Later than release 0.3.0."""
    def __init__(
        self,
        *,
        protocol_version: _b.str | None = ...,
        name: _b.str | None = ...,
        description: _b.str | None = ...,
        url: _b.str | None = ...,
        preferred_transport: _b.str | None = ...,
        additional_interfaces: _abc.Iterable[_v03.AgentInterface] | None = ...,
        provider: _v03.AgentProvider | None = ...,
        version: _b.str | None = ...,
        documentation_url: _b.str | None = ...,
        capabilities: _v03.AgentCapabilities | None = ...,
        security_schemes: _abc.Mapping[_b.str, _v03.SecurityScheme] | None = ...,
        security: _abc.Iterable[_v03.Security] | None = ...,
        default_input_modes: _abc.Iterable[_b.str] | None = ...,
        default_output_modes: _abc.Iterable[_b.str] | None = ...,
        skills: _abc.Iterable[_v03.AgentSkill] | None = ...,
        supports_authenticated_extended_card: _b.bool | None = ...,
        signatures: _abc.Iterable[_v03.AgentCardSignature] | None = ...,
        icon_url: _b.str | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.Literal["provider", "capabilities"]) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["protocol_version", "name", "description", "url", "preferred_transport", "additional_interfaces", "provider", "version", "documentation_url", "capabilities", "security_schemes", "security", "default_input_modes", "default_output_modes", "skills", "supports_authenticated_extended_card", "signatures", "icon_url"]) -> None: ...
    def WhichOneof(self, oneof_group: _t.NoReturn) -> None: ...

class AgentProvider(_message.Message):
    """The organisation behind an agent."""
    DESCRIPTOR: _descriptor.Descriptor
    URL_FIELD_NUMBER: _t.Final = 1
    ORGANIZATION_FIELD_NUMBER: _t.Final = 2
    url: _b.str
    """Its web site."""
    organization: _b.str
    """Its name."""
    def __init__(
        self,
        *,
        url: _b.str | None = ...,
        organization: _b.str | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.NoReturn) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["url", "organization"]) -> None: ...
    def WhichOneof(self, oneof_group: _t.NoReturn) -> None: ...

class AgentCapabilities(_message.Message):
    """The optional parts of the protocol; what is not said is not supported."""
    DESCRIPTOR: _descriptor.Descriptor
    STREAMING_FIELD_NUMBER: _t.Final = 1
    PUSH_NOTIFICATIONS_FIELD_NUMBER: _t.Final = 2
    EXTENSIONS_FIELD_NUMBER: _t.Final = 3
    streaming: _b.bool
    """Streaming answers and subscriptions."""
    push_notifications: _b.bool
    """Calls to webhooks when a task changes."""
    @_b.property
    def extensions(self) -> _containers.RepeatedCompositeFieldContainer[_v03.AgentExtension]:
        """Extensions that the agent understands."""
    def __init__(
        self,
        *,
        streaming: _b.bool | None = ...,
        push_notifications: _b.bool | None = ...,
        extensions: _abc.Iterable[_v03.AgentExtension] | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.NoReturn) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["streaming", "push_notifications", "extensions"]) -> None: ...
    def WhichOneof(self, oneof_group: _t.NoReturn) -> None: ...

class AgentExtension(_message.Message):
    """An extension of the protocol that the agent understands."""
    DESCRIPTOR: _descriptor.Descriptor
    URI_FIELD_NUMBER: _t.Final = 1
    DESCRIPTION_FIELD_NUMBER: _t.Final = 2
    REQUIRED_FIELD_NUMBER: _t.Final = 3
    PARAMS_FIELD_NUMBER: _t.Final = 4
    uri: _b.str
    """What the extension is known by."""
    description: _b.str
    """What the agent uses it for."""
    required: _b.bool
    """True: callers that do not activate it are refused."""
    @_b.property
    def params(self) -> _google.Struct:
        """Settings, as the extension itself defines them."""
    def __init__(
        self,
        *,
        uri: _b.str | None = ...,
        description: _b.str | None = ...,
        required: _b.bool | None = ...,
        params: _google.Struct | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.Literal["params"]) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["uri", "description", "required", "params"]) -> None: ...
    def WhichOneof(self, oneof_group: _t.NoReturn) -> None: ...

class AgentSkill(_message.Message):
    """One ability of an agent."""
    DESCRIPTOR: _descriptor.Descriptor
    ID_FIELD_NUMBER: _t.Final = 1
    NAME_FIELD_NUMBER: _t.Final = 2
    DESCRIPTION_FIELD_NUMBER: _t.Final = 3
    TAGS_FIELD_NUMBER: _t.Final = 4
    EXAMPLES_FIELD_NUMBER: _t.Final = 5
    INPUT_MODES_FIELD_NUMBER: _t.Final = 6
    OUTPUT_MODES_FIELD_NUMBER: _t.Final = 7
    SECURITY_FIELD_NUMBER: _t.Final = 8
    id: _b.str
    """Unique within the card."""
    name: _b.str
    """A short name for people."""
    description: _b.str
    """What it does, in enough detail to choose it by."""
    @_b.property
    def tags(self) -> _containers.RepeatedScalarFieldContainer[_b.str]:
        """Words to find it by."""
    @_b.property
    def examples(self) -> _containers.RepeatedScalarFieldContainer[_b.str]:
        """Requests that it can serve."""
    @_b.property
    def input_modes(self) -> _containers.RepeatedScalarFieldContainer[_b.str]:
        """Media types that it reads, in place of the default ones of the card."""
    @_b.property
    def output_modes(self) -> _containers.RepeatedScalarFieldContainer[_b.str]:
        """Media types that it writes, in place of the default ones of the card."""
    @_b.property
    def security(self) -> _containers.RepeatedCompositeFieldContainer[_v03.Security]:
        """What a caller needs for this skill: any one of these."""
    def __init__(
        self,
        *,
        id: _b.str | None = ...,
        name: _b.str | None = ...,
        description: _b.str | None = ...,
        tags: _abc.Iterable[_b.str] | None = ...,
        examples: _abc.Iterable[_b.str] | None = ...,
        input_modes: _abc.Iterable[_b.str] | None = ...,
        output_modes: _abc.Iterable[_b.str] | None = ...,
        security: _abc.Iterable[_v03.Security] | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.NoReturn) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["id", "name", "description", "tags", "examples", "input_modes", "output_modes", "security"]) -> None: ...
    def WhichOneof(self, oneof_group: _t.NoReturn) -> None: ...

class AgentCardSignature(_message.Message):
    """One JSON Web Signature of the card, with the payload left out (RFC 7515)."""
    DESCRIPTOR: _descriptor.Descriptor
    PROTECTED_FIELD_NUMBER: _t.Final = 1
    SIGNATURE_FIELD_NUMBER: _t.Final = 2
    HEADER_FIELD_NUMBER: _t.Final = 3
    protected: _b.str
    """The protected header: base64url of a JSON object."""
    signature: _b.str
    """The signature itself, in base64url."""
    @_b.property
    def header(self) -> _google.Struct:
        """Header members that the signature does not cover."""
    def __init__(
        self,
        *,
        protected: _b.str | None = ...,
        signature: _b.str | None = ...,
        header: _google.Struct | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.Literal["header"]) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["protected", "signature", "header"]) -> None: ...
    def WhichOneof(self, oneof_group: _t.NoReturn) -> None: ...

class TaskPushNotificationConfig(_message.Message):
    """A webhook together with the task it belongs to."""
    DESCRIPTOR: _descriptor.Descriptor
    NAME_FIELD_NUMBER: _t.Final = 1
    PUSH_NOTIFICATION_CONFIG_FIELD_NUMBER: _t.Final = 2
    name: _b.str
    """tasks/{id}/pushNotificationConfigs/{config id}."""
    @_b.property
    def push_notification_config(self) -> _v03.PushNotificationConfig:
        """The webhook."""
    def __init__(
        self,
        *,
        name: _b.str | None = ...,
        push_notification_config: _v03.PushNotificationConfig | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.Literal["push_notification_config"]) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["name", "push_notification_config"]) -> None: ...
    def WhichOneof(self, oneof_group: _t.NoReturn) -> None: ...

class StringList(_message.Message):
    """A list of strings, for use as the value of a map."""
    DESCRIPTOR: _descriptor.Descriptor
    LIST_FIELD_NUMBER: _t.Final = 1
    @_b.property
    def list(self) -> _containers.RepeatedScalarFieldContainer[_b.str]:
        """The strings, in order."""
    def __init__(
        self,
        *,
        list: _abc.Iterable[_b.str] | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.NoReturn) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["list"]) -> None: ...
    def WhichOneof(self, oneof_group: _t.NoReturn) -> None: ...

class Security(_message.Message):
    """Schemes that are needed together."""
    DESCRIPTOR: _descriptor.Descriptor
    SCHEMES_FIELD_NUMBER: _t.Final = 1
    @_b.property
    def schemes(self) -> _containers.MessageMap[_b.str, _v03.StringList]:
        """Name of the scheme in the card, and the scopes needed of it."""
    def __init__(
        self,
        *,
        schemes: _abc.Mapping[_b.str, _v03.StringList] | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.NoReturn) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["schemes"]) -> None: ...
    def WhichOneof(self, oneof_group: _t.NoReturn) -> None: ...

class SecurityScheme(_message.Message):
    """One way to authenticate."""
    DESCRIPTOR: _descriptor.Descriptor
    API_KEY_SECURITY_SCHEME_FIELD_NUMBER: _t.Final = 1
    HTTP_AUTH_SECURITY_SCHEME_FIELD_NUMBER: _t.Final = 2
    OAUTH2_SECURITY_SCHEME_FIELD_NUMBER: _t.Final = 3
    OPEN_ID_CONNECT_SECURITY_SCHEME_FIELD_NUMBER: _t.Final = 4
    MTLS_SECURITY_SCHEME_FIELD_NUMBER: _t.Final = 5
    @_b.property
    def api_key_security_scheme(self) -> _v03.APIKeySecurityScheme:
        """A key in a header, a query parameter or a cookie."""
    @_b.property
    def http_auth_security_scheme(self) -> _v03.HTTPAuthSecurityScheme:
        """An HTTP authentication scheme, such as Basic or Bearer."""
    @_b.property
    def oauth2_security_scheme(self) -> _v03.OAuth2SecurityScheme:
        """OAuth 2.0."""
    @_b.property
    def open_id_connect_security_scheme(self) -> _v03.OpenIdConnectSecurityScheme:
        """OpenID Connect."""
    @_b.property
    def mtls_security_scheme(self) -> _v03.MutualTlsSecurityScheme:
        """A client certificate."""
    def __init__(
        self,
        *,
        api_key_security_scheme: _v03.APIKeySecurityScheme | None = ...,
        http_auth_security_scheme: _v03.HTTPAuthSecurityScheme | None = ...,
        oauth2_security_scheme: _v03.OAuth2SecurityScheme | None = ...,
        open_id_connect_security_scheme: _v03.OpenIdConnectSecurityScheme | None = ...,
        mtls_security_scheme: _v03.MutualTlsSecurityScheme | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.Literal["api_key_security_scheme", "http_auth_security_scheme", "oauth2_security_scheme", "open_id_connect_security_scheme", "mtls_security_scheme", "scheme"]) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["api_key_security_scheme", "http_auth_security_scheme", "oauth2_security_scheme", "open_id_connect_security_scheme", "mtls_security_scheme", "scheme"]) -> None: ...
    def WhichOneof(self, oneof_group: _t.Literal["scheme"]) -> _t.Literal["api_key_security_scheme", "http_auth_security_scheme", "oauth2_security_scheme", "open_id_connect_security_scheme", "mtls_security_scheme"] | None: ...

class APIKeySecurityScheme(_message.Message):
    """A fixed key that the caller sends along."""
    DESCRIPTOR: _descriptor.Descriptor
    DESCRIPTION_FIELD_NUMBER: _t.Final = 1
    LOCATION_FIELD_NUMBER: _t.Final = 2
    NAME_FIELD_NUMBER: _t.Final = 3
    description: _b.str
    """A note for people."""
    location: _b.str
    """Where it is sent: `header`, `query` or `cookie`."""
    name: _b.str
    """The name of that header, parameter or cookie."""
    def __init__(
        self,
        *,
        description: _b.str | None = ...,
        location: _b.str | None = ...,
        name: _b.str | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.NoReturn) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["description", "location", "name"]) -> None: ...
    def WhichOneof(self, oneof_group: _t.NoReturn) -> None: ...

class HTTPAuthSecurityScheme(_message.Message):
    """Authentication by the HTTP Authorization header."""
    DESCRIPTOR: _descriptor.Descriptor
    DESCRIPTION_FIELD_NUMBER: _t.Final = 1
    SCHEME_FIELD_NUMBER: _t.Final = 2
    BEARER_FORMAT_FIELD_NUMBER: _t.Final = 3
    description: _b.str
    """A note for people."""
    scheme: _b.str
    """The name of the scheme in that header, in any case."""
    bearer_format: _b.str
    """A hint at what the bearer token looks like, such as `JWT`."""
    def __init__(
        self,
        *,
        description: _b.str | None = ...,
        scheme: _b.str | None = ...,
        bearer_format: _b.str | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.NoReturn) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["description", "scheme", "bearer_format"]) -> None: ...
    def WhichOneof(self, oneof_group: _t.NoReturn) -> None: ...

class OAuth2SecurityScheme(_message.Message):
    """Authentication by OAuth 2.0."""
    DESCRIPTOR: _descriptor.Descriptor
    DESCRIPTION_FIELD_NUMBER: _t.Final = 1
    FLOWS_FIELD_NUMBER: _t.Final = 2
    OAUTH2_METADATA_URL_FIELD_NUMBER: _t.Final = 3
    description: _b.str
    """A note for people."""
    @_b.property
    def flows(self) -> _v03.OAuthFlows:
        """How a token is had."""
    oauth2_metadata_url: _b.str
    """The authorization server metadata (RFC 8414)."""
    def __init__(
        self,
        *,
        description: _b.str | None = ...,
        flows: _v03.OAuthFlows | None = ...,
        oauth2_metadata_url: _b.str | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.Literal["flows"]) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["description", "flows", "oauth2_metadata_url"]) -> None: ...
    def WhichOneof(self, oneof_group: _t.NoReturn) -> None: ...

class OpenIdConnectSecurityScheme(_message.Message):
    """Authentication by OpenID Connect."""
    DESCRIPTOR: _descriptor.Descriptor
    DESCRIPTION_FIELD_NUMBER: _t.Final = 1
    OPEN_ID_CONNECT_URL_FIELD_NUMBER: _t.Final = 2
    description: _b.str
    """A note for people."""
    open_id_connect_url: _b.str
    """The discovery document."""
    def __init__(
        self,
        *,
        description: _b.str | None = ...,
        open_id_connect_url: _b.str | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.NoReturn) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["description", "open_id_connect_url"]) -> None: ...
    def WhichOneof(self, oneof_group: _t.NoReturn) -> None: ...

class MutualTlsSecurityScheme(_message.Message):
    """Authentication by a client certificate on the TLS connection."""
    DESCRIPTOR: _descriptor.Descriptor
    DESCRIPTION_FIELD_NUMBER: _t.Final = 1
    description: _b.str
    """A note for people."""
    def __init__(
        self,
        *,
        description: _b.str | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.NoReturn) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["description"]) -> None: ...
    def WhichOneof(self, oneof_group: _t.NoReturn) -> None: ...

class OAuthFlows(_message.Message):
    """The OAuth 2.0 flow on offer."""
    DESCRIPTOR: _descriptor.Descriptor
    AUTHORIZATION_CODE_FIELD_NUMBER: _t.Final = 1
    CLIENT_CREDENTIALS_FIELD_NUMBER: _t.Final = 2
    IMPLICIT_FIELD_NUMBER: _t.Final = 3
    PASSWORD_FIELD_NUMBER: _t.Final = 4
    @_b.property
    def authorization_code(self) -> _v03.AuthorizationCodeOAuthFlow:
        """With a person who agrees in a browser."""
    @_b.property
    def client_credentials(self) -> _v03.ClientCredentialsOAuthFlow:
        """Between machines."""
    @_b.property
    def implicit(self) -> _v03.ImplicitOAuthFlow:
        """In a browser, without a code; out of use for its weakness."""
    @_b.property
    def password(self) -> _v03.PasswordOAuthFlow:
        """With the password of a person; out of use for its weakness."""
    def __init__(
        self,
        *,
        authorization_code: _v03.AuthorizationCodeOAuthFlow | None = ...,
        client_credentials: _v03.ClientCredentialsOAuthFlow | None = ...,
        implicit: _v03.ImplicitOAuthFlow | None = ...,
        password: _v03.PasswordOAuthFlow | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.Literal["authorization_code", "client_credentials", "implicit", "password", "flow"]) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["authorization_code", "client_credentials", "implicit", "password", "flow"]) -> None: ...
    def WhichOneof(self, oneof_group: _t.Literal["flow"]) -> _t.Literal["authorization_code", "client_credentials", "implicit", "password"] | None: ...

class AuthorizationCodeOAuthFlow(_message.Message):
    """OAuth 2.0 authorization code flow."""
    DESCRIPTOR: _descriptor.Descriptor
    AUTHORIZATION_URL_FIELD_NUMBER: _t.Final = 1
    TOKEN_URL_FIELD_NUMBER: _t.Final = 2
    REFRESH_URL_FIELD_NUMBER: _t.Final = 3
    SCOPES_FIELD_NUMBER: _t.Final = 4
    authorization_url: _b.str
    """Where the person agrees."""
    token_url: _b.str
    """Where tokens are had."""
    refresh_url: _b.str
    """Where tokens are renewed, if elsewhere."""
    @_b.property
    def scopes(self) -> _containers.ScalarMap[_b.str, _b.str]:
        """Scopes that exist, with a description of each."""
    def __init__(
        self,
        *,
        authorization_url: _b.str | None = ...,
        token_url: _b.str | None = ...,
        refresh_url: _b.str | None = ...,
        scopes: _abc.Mapping[_b.str, _b.str] | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.NoReturn) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["authorization_url", "token_url", "refresh_url", "scopes"]) -> None: ...
    def WhichOneof(self, oneof_group: _t.NoReturn) -> None: ...

class ClientCredentialsOAuthFlow(_message.Message):
    """OAuth 2.0 client credentials flow."""
    DESCRIPTOR: _descriptor.Descriptor
    TOKEN_URL_FIELD_NUMBER: _t.Final = 1
    REFRESH_URL_FIELD_NUMBER: _t.Final = 2
    SCOPES_FIELD_NUMBER: _t.Final = 3
    token_url: _b.str
    """Where tokens are had."""
    refresh_url: _b.str
    """Where tokens are renewed, if elsewhere."""
    @_b.property
    def scopes(self) -> _containers.ScalarMap[_b.str, _b.str]:
        """Scopes that exist, with a description of each."""
    def __init__(
        self,
        *,
        token_url: _b.str | None = ...,
        refresh_url: _b.str | None = ...,
        scopes: _abc.Mapping[_b.str, _b.str] | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.NoReturn) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["token_url", "refresh_url", "scopes"]) -> None: ...
    def WhichOneof(self, oneof_group: _t.NoReturn) -> None: ...

class ImplicitOAuthFlow(_message.Message):
    """OAuth 2.0 implicit flow."""
    DESCRIPTOR: _descriptor.Descriptor
    AUTHORIZATION_URL_FIELD_NUMBER: _t.Final = 1
    REFRESH_URL_FIELD_NUMBER: _t.Final = 2
    SCOPES_FIELD_NUMBER: _t.Final = 3
    authorization_url: _b.str
    """Where the person agrees."""
    refresh_url: _b.str
    """Where tokens are renewed, if elsewhere."""
    @_b.property
    def scopes(self) -> _containers.ScalarMap[_b.str, _b.str]:
        """Scopes that exist, with a description of each."""
    def __init__(
        self,
        *,
        authorization_url: _b.str | None = ...,
        refresh_url: _b.str | None = ...,
        scopes: _abc.Mapping[_b.str, _b.str] | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.NoReturn) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["authorization_url", "refresh_url", "scopes"]) -> None: ...
    def WhichOneof(self, oneof_group: _t.NoReturn) -> None: ...

class PasswordOAuthFlow(_message.Message):
    """OAuth 2.0 resource owner password flow."""
    DESCRIPTOR: _descriptor.Descriptor
    TOKEN_URL_FIELD_NUMBER: _t.Final = 1
    REFRESH_URL_FIELD_NUMBER: _t.Final = 2
    SCOPES_FIELD_NUMBER: _t.Final = 3
    token_url: _b.str
    """Where tokens are had."""
    refresh_url: _b.str
    """Where tokens are renewed, if elsewhere."""
    @_b.property
    def scopes(self) -> _containers.ScalarMap[_b.str, _b.str]:
        """Scopes that exist, with a description of each."""
    def __init__(
        self,
        *,
        token_url: _b.str | None = ...,
        refresh_url: _b.str | None = ...,
        scopes: _abc.Mapping[_b.str, _b.str] | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.NoReturn) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["token_url", "refresh_url", "scopes"]) -> None: ...
    def WhichOneof(self, oneof_group: _t.NoReturn) -> None: ...

class SendMessageRequest(_message.Message):
    """A message to the agent."""
    DESCRIPTOR: _descriptor.Descriptor
    REQUEST_FIELD_NUMBER: _t.Final = 1
    CONFIGURATION_FIELD_NUMBER: _t.Final = 2
    METADATA_FIELD_NUMBER: _t.Final = 3
    @_b.property
    def request(self) -> _v03.Message:
        """The message; `message` in JSON."""
    @_b.property
    def configuration(self) -> _v03.SendMessageConfiguration:
        """How it should be answered."""
    @_b.property
    def metadata(self) -> _google.Struct:
        """Free data about the request; extensions keep theirs under their URI."""
    def __init__(
        self,
        *,
        request: _v03.Message | None = ...,
        configuration: _v03.SendMessageConfiguration | None = ...,
        metadata: _google.Struct | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.Literal["request", "configuration", "metadata"]) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["request", "configuration", "metadata"]) -> None: ...
    def WhichOneof(self, oneof_group: _t.NoReturn) -> None: ...

class GetTaskRequest(_message.Message):
    """Which task to give."""
    DESCRIPTOR: _descriptor.Descriptor
    NAME_FIELD_NUMBER: _t.Final = 1
    HISTORY_LENGTH_FIELD_NUMBER: _t.Final = 2
    name: _b.str
    """tasks/{id}."""
    history_length: _b.int
    """How many of the last messages to show; 0 sets no limit."""
    def __init__(
        self,
        *,
        name: _b.str | None = ...,
        history_length: _b.int | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.NoReturn) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["name", "history_length"]) -> None: ...
    def WhichOneof(self, oneof_group: _t.NoReturn) -> None: ...

class CancelTaskRequest(_message.Message):
    """Which task to stop."""
    DESCRIPTOR: _descriptor.Descriptor
    NAME_FIELD_NUMBER: _t.Final = 1
    name: _b.str
    """tasks/{id}."""
    def __init__(
        self,
        *,
        name: _b.str | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.NoReturn) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["name"]) -> None: ...
    def WhichOneof(self, oneof_group: _t.NoReturn) -> None: ...

class GetTaskPushNotificationConfigRequest(_message.Message):
    """Which webhook to give."""
    DESCRIPTOR: _descriptor.Descriptor
    NAME_FIELD_NUMBER: _t.Final = 1
    name: _b.str
    """tasks/{id}/pushNotificationConfigs/{config id}."""
    def __init__(
        self,
        *,
        name: _b.str | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.NoReturn) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["name"]) -> None: ...
    def WhichOneof(self, oneof_group: _t.NoReturn) -> None: ...

class DeleteTaskPushNotificationConfigRequest(_message.Message):
    """Which webhook to take off."""
    DESCRIPTOR: _descriptor.Descriptor
    NAME_FIELD_NUMBER: _t.Final = 1
    name: _b.str
    """tasks/{id}/pushNotificationConfigs/{config id}."""
    def __init__(
        self,
        *,
        name: _b.str | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.NoReturn) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["name"]) -> None: ...
    def WhichOneof(self, oneof_group: _t.NoReturn) -> None: ...

class CreateTaskPushNotificationConfigRequest(_message.Message):
    """A webhook to add to a task."""
    DESCRIPTOR: _descriptor.Descriptor
    PARENT_FIELD_NUMBER: _t.Final = 1
    CONFIG_ID_FIELD_NUMBER: _t.Final = 2
    CONFIG_FIELD_NUMBER: _t.Final = 3
    parent: _b.str
    """tasks/{id}."""
    config_id: _b.str
    """The id of the webhook within the task."""
    @_b.property
    def config(self) -> _v03.TaskPushNotificationConfig:
        """The webhook."""
    def __init__(
        self,
        *,
        parent: _b.str | None = ...,
        config_id: _b.str | None = ...,
        config: _v03.TaskPushNotificationConfig | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.Literal["config"]) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["parent", "config_id", "config"]) -> None: ...
    def WhichOneof(self, oneof_group: _t.NoReturn) -> None: ...

class TaskSubscriptionRequest(_message.Message):
    """Which task to follow."""
    DESCRIPTOR: _descriptor.Descriptor
    NAME_FIELD_NUMBER: _t.Final = 1
    name: _b.str
    """tasks/{id}."""
    def __init__(
        self,
        *,
        name: _b.str | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.NoReturn) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["name"]) -> None: ...
    def WhichOneof(self, oneof_group: _t.NoReturn) -> None: ...

class ListTaskPushNotificationConfigRequest(_message.Message):
    """Of which task to list the webhooks."""
    DESCRIPTOR: _descriptor.Descriptor
    PARENT_FIELD_NUMBER: _t.Final = 1
    PAGE_SIZE_FIELD_NUMBER: _t.Final = 2
    PAGE_TOKEN_FIELD_NUMBER: _t.Final = 3
    parent: _b.str
    """tasks/{id}."""
    page_size: _b.int
    """Webhooks on a page; 0 leaves it to the server."""
    page_token: _b.str
    """The next_page_token of the page before; empty for the first."""
    def __init__(
        self,
        *,
        parent: _b.str | None = ...,
        page_size: _b.int | None = ...,
        page_token: _b.str | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.NoReturn) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["parent", "page_size", "page_token"]) -> None: ...
    def WhichOneof(self, oneof_group: _t.NoReturn) -> None: ...

class GetAgentCardRequest(_message.Message):
    """Asks for the card that authenticated callers may see."""
    DESCRIPTOR: _descriptor.Descriptor
    def __init__(
        self,
    ) -> None: ...
    def HasField(self, field_name: _t.NoReturn) -> _b.bool: ...
    def ClearField(self, field_name: _t.NoReturn) -> None: ...
    def WhichOneof(self, oneof_group: _t.NoReturn) -> None: ...

class SendMessageResponse(_message.Message):
    """The answer of the agent to one message."""
    DESCRIPTOR: _descriptor.Descriptor
    TASK_FIELD_NUMBER: _t.Final = 1
    MSG_FIELD_NUMBER: _t.Final = 2
    @_b.property
    def task(self) -> _v03.Task:
        """The task that the message began or went on with."""
    @_b.property
    def msg(self) -> _v03.Message:
        """A direct answer, with no task; `message` in JSON."""
    def __init__(
        self,
        *,
        task: _v03.Task | None = ...,
        msg: _v03.Message | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.Literal["task", "msg", "payload"]) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["task", "msg", "payload"]) -> None: ...
    def WhichOneof(self, oneof_group: _t.Literal["payload"]) -> _t.Literal["task", "msg"] | None: ...

class StreamResponse(_message.Message):
    """One event of a stream. A stream is either one message, or a task followed by its updates."""
    DESCRIPTOR: _descriptor.Descriptor
    TASK_FIELD_NUMBER: _t.Final = 1
    MSG_FIELD_NUMBER: _t.Final = 2
    STATUS_UPDATE_FIELD_NUMBER: _t.Final = 3
    ARTIFACT_UPDATE_FIELD_NUMBER: _t.Final = 4
    @_b.property
    def task(self) -> _v03.Task:
        """The task as it stands, before its updates."""
    @_b.property
    def msg(self) -> _v03.Message:
        """A direct answer, with no task, and the only event of its stream; `message` in JSON."""
    @_b.property
    def status_update(self) -> _v03.TaskStatusUpdateEvent:
        """A change of status."""
    @_b.property
    def artifact_update(self) -> _v03.TaskArtifactUpdateEvent:
        """A new or grown artifact."""
    def __init__(
        self,
        *,
        task: _v03.Task | None = ...,
        msg: _v03.Message | None = ...,
        status_update: _v03.TaskStatusUpdateEvent | None = ...,
        artifact_update: _v03.TaskArtifactUpdateEvent | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.Literal["task", "msg", "status_update", "artifact_update", "payload"]) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["task", "msg", "status_update", "artifact_update", "payload"]) -> None: ...
    def WhichOneof(self, oneof_group: _t.Literal["payload"]) -> _t.Literal["task", "msg", "status_update", "artifact_update"] | None: ...

class ListTaskPushNotificationConfigResponse(_message.Message):
    """One page of webhooks."""
    DESCRIPTOR: _descriptor.Descriptor
    CONFIGS_FIELD_NUMBER: _t.Final = 1
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _t.Final = 2
    @_b.property
    def configs(self) -> _containers.RepeatedCompositeFieldContainer[_v03.TaskPushNotificationConfig]:
        """The webhooks of the page."""
    next_page_token: _b.str
    """Where the next page begins; empty on the last one."""
    def __init__(
        self,
        *,
        configs: _abc.Iterable[_v03.TaskPushNotificationConfig] | None = ...,
        next_page_token: _b.str | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.NoReturn) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["configs", "next_page_token"]) -> None: ...
    def WhichOneof(self, oneof_group: _t.NoReturn) -> None: ...
