"""Types of lf.a2a.v1. Made by proto/generate.py; do not edit."""

import builtins as _b
import collections.abc as _abc
import typing as _t

from google.protobuf import descriptor as _descriptor, message as _message
from google.protobuf.internal import containers as _containers, enum_type_wrapper as _enums
from google.protobuf.internal import well_known_types as _well_known

from a2a_stubs import google as _google, v1 as _v1

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
    TASK_STATE_CANCELED: _TaskState.ValueType
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
TASK_STATE_CANCELED: TaskState.ValueType
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
    TASK_PUSH_NOTIFICATION_CONFIG_FIELD_NUMBER: _t.Final = 2
    HISTORY_LENGTH_FIELD_NUMBER: _t.Final = 3
    RETURN_IMMEDIATELY_FIELD_NUMBER: _t.Final = 4
    @_b.property
    def accepted_output_modes(self) -> _containers.RepeatedScalarFieldContainer[_b.str]:
        """Media types that the caller can read; none given means any."""
    @_b.property
    def task_push_notification_config(self) -> _v1.TaskPushNotificationConfig:
        """A webhook for the task of this message, in place before any event can be missed. Its task_id is
        left empty.
        """
    history_length: _b.int
    """How many of the last messages the task in the answer shows: unset leaves it to the server, 0 is
    none.
    """
    return_immediately: _b.bool
    """True: answer as soon as the task exists. False: answer when it has ended or waits for the
    caller.
    """
    def __init__(
        self,
        *,
        accepted_output_modes: _abc.Iterable[_b.str] | None = ...,
        task_push_notification_config: _v1.TaskPushNotificationConfig | None = ...,
        history_length: _b.int | None = ...,
        return_immediately: _b.bool | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.Literal["task_push_notification_config", "history_length"]) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["accepted_output_modes", "task_push_notification_config", "history_length", "return_immediately"]) -> None: ...
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
    def status(self) -> _v1.TaskStatus:
        """Where the task stands now."""
    @_b.property
    def artifacts(self) -> _containers.RepeatedCompositeFieldContainer[_v1.Artifact]:
        """What the task has produced so far."""
    @_b.property
    def history(self) -> _containers.RepeatedCompositeFieldContainer[_v1.Message]:
        """Messages of the task, oldest first; how many is limited by the history length asked for."""
    @_b.property
    def metadata(self) -> _google.Struct:
        """Free data about the task; extensions keep theirs under their URI."""
    def __init__(
        self,
        *,
        id: _b.str | None = ...,
        context_id: _b.str | None = ...,
        status: _v1.TaskStatus | None = ...,
        artifacts: _abc.Iterable[_v1.Artifact] | None = ...,
        history: _abc.Iterable[_v1.Message] | None = ...,
        metadata: _google.Struct | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.Literal["status", "metadata"]) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["id", "context_id", "status", "artifacts", "history", "metadata"]) -> None: ...
    def WhichOneof(self, oneof_group: _t.NoReturn) -> None: ...

class TaskStatus(_message.Message):
    """The state of a task at one moment."""
    DESCRIPTOR: _descriptor.Descriptor
    STATE_FIELD_NUMBER: _t.Final = 1
    MESSAGE_FIELD_NUMBER: _t.Final = 2
    TIMESTAMP_FIELD_NUMBER: _t.Final = 3
    state: _v1.TaskState.ValueType
    """One of the task states."""
    @_b.property
    def message(self) -> _v1.Message:
        """What the agent has to say about this status: a progress note, a question, the reason of a
        failure.
        """
    @_b.property
    def timestamp(self) -> _google.Timestamp:
        """When this status was set."""
    def __init__(
        self,
        *,
        state: _v1.TaskState.ValueType | _b.str | None = ...,
        message: _v1.Message | None = ...,
        timestamp: _google.Timestamp | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.Literal["message", "timestamp"]) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["state", "message", "timestamp"]) -> None: ...
    def WhichOneof(self, oneof_group: _t.NoReturn) -> None: ...

class Part(_message.Message):
    """A piece of content. Every kind may have a media type, a file name and metadata."""
    DESCRIPTOR: _descriptor.Descriptor
    TEXT_FIELD_NUMBER: _t.Final = 1
    RAW_FIELD_NUMBER: _t.Final = 2
    URL_FIELD_NUMBER: _t.Final = 3
    DATA_FIELD_NUMBER: _t.Final = 4
    METADATA_FIELD_NUMBER: _t.Final = 5
    FILENAME_FIELD_NUMBER: _t.Final = 6
    MEDIA_TYPE_FIELD_NUMBER: _t.Final = 7
    text: _b.str
    """Text."""
    raw: _b.bytes
    """Bytes of a file; base64 in JSON."""
    url: _b.str
    """Where the bytes of a file can be had."""
    @_b.property
    def data(self) -> _google.Value:
        """Any JSON value, null included."""
    @_b.property
    def metadata(self) -> _google.Struct:
        """Free data about the part; extensions keep theirs under their URI."""
    filename: _b.str
    """The name that a file should have."""
    media_type: _b.str
    """The media type of the content."""
    def __init__(
        self,
        *,
        text: _b.str | None = ...,
        raw: _b.bytes | None = ...,
        url: _b.str | None = ...,
        data: _google.Value | None = ...,
        metadata: _google.Struct | None = ...,
        filename: _b.str | None = ...,
        media_type: _b.str | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.Literal["text", "raw", "url", "data", "metadata", "content"]) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["text", "raw", "url", "data", "metadata", "filename", "media_type", "content"]) -> None: ...
    def WhichOneof(self, oneof_group: _t.Literal["content"]) -> _t.Literal["text", "raw", "url", "data"] | None: ...

class Message(_message.Message):
    """One turn of a conversation, by the caller or by the agent."""
    DESCRIPTOR: _descriptor.Descriptor
    MESSAGE_ID_FIELD_NUMBER: _t.Final = 1
    CONTEXT_ID_FIELD_NUMBER: _t.Final = 2
    TASK_ID_FIELD_NUMBER: _t.Final = 3
    ROLE_FIELD_NUMBER: _t.Final = 4
    PARTS_FIELD_NUMBER: _t.Final = 5
    METADATA_FIELD_NUMBER: _t.Final = 6
    EXTENSIONS_FIELD_NUMBER: _t.Final = 7
    REFERENCE_TASK_IDS_FIELD_NUMBER: _t.Final = 8
    message_id: _b.str
    """Made by the author of the message; the same id again means the same message again."""
    context_id: _b.str
    """The conversation to go on with; empty for a new one."""
    task_id: _b.str
    """The task to go on with; empty for a new one."""
    role: _v1.Role.ValueType
    """Who wrote it."""
    @_b.property
    def parts(self) -> _containers.RepeatedCompositeFieldContainer[_v1.Part]:
        """The content, in order; at least one part."""
    @_b.property
    def metadata(self) -> _google.Struct:
        """Free data about the message; extensions keep theirs under their URI."""
    @_b.property
    def extensions(self) -> _containers.RepeatedScalarFieldContainer[_b.str]:
        """URIs of the extensions that had a share in this message."""
    @_b.property
    def reference_task_ids(self) -> _containers.RepeatedScalarFieldContainer[_b.str]:
        """Other tasks that the message is about."""
    def __init__(
        self,
        *,
        message_id: _b.str | None = ...,
        context_id: _b.str | None = ...,
        task_id: _b.str | None = ...,
        role: _v1.Role.ValueType | _b.str | None = ...,
        parts: _abc.Iterable[_v1.Part] | None = ...,
        metadata: _google.Struct | None = ...,
        extensions: _abc.Iterable[_b.str] | None = ...,
        reference_task_ids: _abc.Iterable[_b.str] | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.Literal["metadata"]) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["message_id", "context_id", "task_id", "role", "parts", "metadata", "extensions", "reference_task_ids"]) -> None: ...
    def WhichOneof(self, oneof_group: _t.NoReturn) -> None: ...

class Artifact(_message.Message):
    """One result of a task, such as a document, an image or a table."""
    DESCRIPTOR: _descriptor.Descriptor
    ARTIFACT_ID_FIELD_NUMBER: _t.Final = 1
    NAME_FIELD_NUMBER: _t.Final = 2
    DESCRIPTION_FIELD_NUMBER: _t.Final = 3
    PARTS_FIELD_NUMBER: _t.Final = 4
    METADATA_FIELD_NUMBER: _t.Final = 5
    EXTENSIONS_FIELD_NUMBER: _t.Final = 6
    artifact_id: _b.str
    """Unique within its task."""
    name: _b.str
    """A short name for people; a later version of the result keeps it."""
    description: _b.str
    """What the result is, for people."""
    @_b.property
    def parts(self) -> _containers.RepeatedCompositeFieldContainer[_v1.Part]:
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
        parts: _abc.Iterable[_v1.Part] | None = ...,
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
    METADATA_FIELD_NUMBER: _t.Final = 4
    task_id: _b.str
    """The task concerned."""
    context_id: _b.str
    """The conversation of that task."""
    @_b.property
    def status(self) -> _v1.TaskStatus:
        """The new status."""
    @_b.property
    def metadata(self) -> _google.Struct:
        """Free data about the event."""
    def __init__(
        self,
        *,
        task_id: _b.str | None = ...,
        context_id: _b.str | None = ...,
        status: _v1.TaskStatus | None = ...,
        metadata: _google.Struct | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.Literal["status", "metadata"]) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["task_id", "context_id", "status", "metadata"]) -> None: ...
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
    def artifact(self) -> _v1.Artifact:
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
        artifact: _v1.Artifact | None = ...,
        append: _b.bool | None = ...,
        last_chunk: _b.bool | None = ...,
        metadata: _google.Struct | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.Literal["artifact", "metadata"]) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["task_id", "context_id", "artifact", "append", "last_chunk", "metadata"]) -> None: ...
    def WhichOneof(self, oneof_group: _t.NoReturn) -> None: ...

class AuthenticationInfo(_message.Message):
    """How the agent proves who it is when it calls a webhook."""
    DESCRIPTOR: _descriptor.Descriptor
    SCHEME_FIELD_NUMBER: _t.Final = 1
    CREDENTIALS_FIELD_NUMBER: _t.Final = 2
    scheme: _b.str
    """The HTTP authentication scheme, such as Bearer."""
    credentials: _b.str
    """What follows the scheme in the Authorization header. A secret."""
    def __init__(
        self,
        *,
        scheme: _b.str | None = ...,
        credentials: _b.str | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.NoReturn) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["scheme", "credentials"]) -> None: ...
    def WhichOneof(self, oneof_group: _t.NoReturn) -> None: ...

class AgentInterface(_message.Message):
    """One address at which the agent can be called, and how."""
    DESCRIPTOR: _descriptor.Descriptor
    URL_FIELD_NUMBER: _t.Final = 1
    PROTOCOL_BINDING_FIELD_NUMBER: _t.Final = 2
    TENANT_FIELD_NUMBER: _t.Final = 3
    PROTOCOL_VERSION_FIELD_NUMBER: _t.Final = 4
    url: _b.str
    """The address; for gRPC the target, for HTTP the base of all paths."""
    protocol_binding: _b.str
    """`JSONRPC`, `GRPC`, `HTTP+JSON`, or the URI of another binding."""
    tenant: _b.str
    """The tenant to put into every request at this address; empty for none."""
    protocol_version: _b.str
    """The protocol version spoken here, as Major.Minor."""
    def __init__(
        self,
        *,
        url: _b.str | None = ...,
        protocol_binding: _b.str | None = ...,
        tenant: _b.str | None = ...,
        protocol_version: _b.str | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.NoReturn) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["url", "protocol_binding", "tenant", "protocol_version"]) -> None: ...
    def WhichOneof(self, oneof_group: _t.NoReturn) -> None: ...

class AgentCard(_message.Message):
    """What an agent says about itself: who it is, where it is, what it can do and how callers are
    checked.
    """
    DESCRIPTOR: _descriptor.Descriptor
    NAME_FIELD_NUMBER: _t.Final = 1
    DESCRIPTION_FIELD_NUMBER: _t.Final = 2
    SUPPORTED_INTERFACES_FIELD_NUMBER: _t.Final = 3
    PROVIDER_FIELD_NUMBER: _t.Final = 4
    VERSION_FIELD_NUMBER: _t.Final = 5
    DOCUMENTATION_URL_FIELD_NUMBER: _t.Final = 6
    CAPABILITIES_FIELD_NUMBER: _t.Final = 7
    SECURITY_SCHEMES_FIELD_NUMBER: _t.Final = 8
    SECURITY_REQUIREMENTS_FIELD_NUMBER: _t.Final = 9
    DEFAULT_INPUT_MODES_FIELD_NUMBER: _t.Final = 10
    DEFAULT_OUTPUT_MODES_FIELD_NUMBER: _t.Final = 11
    SKILLS_FIELD_NUMBER: _t.Final = 12
    SIGNATURES_FIELD_NUMBER: _t.Final = 13
    ICON_URL_FIELD_NUMBER: _t.Final = 14
    name: _b.str
    """The name of the agent, for people."""
    description: _b.str
    """What the agent is for, for people and for other agents that choose one."""
    @_b.property
    def supported_interfaces(self) -> _containers.RepeatedCompositeFieldContainer[_v1.AgentInterface]:
        """Where the agent can be called; the first is the one it likes best."""
    @_b.property
    def provider(self) -> _v1.AgentProvider:
        """Who runs the agent."""
    version: _b.str
    """The release of the agent itself, in whatever form its maker uses."""
    documentation_url: _b.str
    """Where more can be read about the agent."""
    @_b.property
    def capabilities(self) -> _v1.AgentCapabilities:
        """Which optional parts of the protocol it supports."""
    @_b.property
    def security_schemes(self) -> _containers.MessageMap[_b.str, _v1.SecurityScheme]:
        """Ways to authenticate, by the name that requirements use for them."""
    @_b.property
    def security_requirements(self) -> _containers.RepeatedCompositeFieldContainer[_v1.SecurityRequirement]:
        """What a caller needs: any one of these."""
    @_b.property
    def default_input_modes(self) -> _containers.RepeatedScalarFieldContainer[_b.str]:
        """Media types that every skill reads unless it lists its own."""
    @_b.property
    def default_output_modes(self) -> _containers.RepeatedScalarFieldContainer[_b.str]:
        """Media types that every skill writes unless it lists its own."""
    @_b.property
    def skills(self) -> _containers.RepeatedCompositeFieldContainer[_v1.AgentSkill]:
        """What the agent can do, one entry for each ability."""
    @_b.property
    def signatures(self) -> _containers.RepeatedCompositeFieldContainer[_v1.AgentCardSignature]:
        """Signatures over the canonical form of this card without this field."""
    icon_url: _b.str
    """A picture of the agent."""
    def __init__(
        self,
        *,
        name: _b.str | None = ...,
        description: _b.str | None = ...,
        supported_interfaces: _abc.Iterable[_v1.AgentInterface] | None = ...,
        provider: _v1.AgentProvider | None = ...,
        version: _b.str | None = ...,
        documentation_url: _b.str | None = ...,
        capabilities: _v1.AgentCapabilities | None = ...,
        security_schemes: _abc.Mapping[_b.str, _v1.SecurityScheme] | None = ...,
        security_requirements: _abc.Iterable[_v1.SecurityRequirement] | None = ...,
        default_input_modes: _abc.Iterable[_b.str] | None = ...,
        default_output_modes: _abc.Iterable[_b.str] | None = ...,
        skills: _abc.Iterable[_v1.AgentSkill] | None = ...,
        signatures: _abc.Iterable[_v1.AgentCardSignature] | None = ...,
        icon_url: _b.str | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.Literal["provider", "documentation_url", "capabilities", "icon_url"]) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["name", "description", "supported_interfaces", "provider", "version", "documentation_url", "capabilities", "security_schemes", "security_requirements", "default_input_modes", "default_output_modes", "skills", "signatures", "icon_url"]) -> None: ...
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
    EXTENDED_AGENT_CARD_FIELD_NUMBER: _t.Final = 4
    streaming: _b.bool
    """Streaming answers and subscriptions."""
    push_notifications: _b.bool
    """Calls to webhooks when a task changes."""
    @_b.property
    def extensions(self) -> _containers.RepeatedCompositeFieldContainer[_v1.AgentExtension]:
        """Extensions that the agent understands."""
    extended_agent_card: _b.bool
    """A fuller card for callers who have authenticated."""
    def __init__(
        self,
        *,
        streaming: _b.bool | None = ...,
        push_notifications: _b.bool | None = ...,
        extensions: _abc.Iterable[_v1.AgentExtension] | None = ...,
        extended_agent_card: _b.bool | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.Literal["streaming", "push_notifications", "extended_agent_card"]) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["streaming", "push_notifications", "extensions", "extended_agent_card"]) -> None: ...
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
    SECURITY_REQUIREMENTS_FIELD_NUMBER: _t.Final = 8
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
    def security_requirements(self) -> _containers.RepeatedCompositeFieldContainer[_v1.SecurityRequirement]:
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
        security_requirements: _abc.Iterable[_v1.SecurityRequirement] | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.NoReturn) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["id", "name", "description", "tags", "examples", "input_modes", "output_modes", "security_requirements"]) -> None: ...
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
    """A webhook that is told of the changes of a task."""
    DESCRIPTOR: _descriptor.Descriptor
    TENANT_FIELD_NUMBER: _t.Final = 1
    ID_FIELD_NUMBER: _t.Final = 2
    TASK_ID_FIELD_NUMBER: _t.Final = 3
    URL_FIELD_NUMBER: _t.Final = 4
    TOKEN_FIELD_NUMBER: _t.Final = 5
    AUTHENTICATION_FIELD_NUMBER: _t.Final = 6
    tenant: _b.str
    """The tenant that the request is for; empty for none."""
    id: _b.str
    """Unique within the task; the server makes one when it is empty."""
    task_id: _b.str
    """The task; left empty inside a message, where the server fills it in."""
    url: _b.str
    """Where the events are sent to."""
    token: _b.str
    """Given back in a header with each event, so that the receiver knows who made the subscription. A
    secret.
    """
    @_b.property
    def authentication(self) -> _v1.AuthenticationInfo:
        """How the agent authenticates to the webhook."""
    def __init__(
        self,
        *,
        tenant: _b.str | None = ...,
        id: _b.str | None = ...,
        task_id: _b.str | None = ...,
        url: _b.str | None = ...,
        token: _b.str | None = ...,
        authentication: _v1.AuthenticationInfo | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.Literal["authentication"]) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["tenant", "id", "task_id", "url", "token", "authentication"]) -> None: ...
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

class SecurityRequirement(_message.Message):
    """Schemes that are needed together."""
    DESCRIPTOR: _descriptor.Descriptor
    SCHEMES_FIELD_NUMBER: _t.Final = 1
    @_b.property
    def schemes(self) -> _containers.MessageMap[_b.str, _v1.StringList]:
        """Name of the scheme in the card, and the scopes needed of it."""
    def __init__(
        self,
        *,
        schemes: _abc.Mapping[_b.str, _v1.StringList] | None = ...,
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
    def api_key_security_scheme(self) -> _v1.APIKeySecurityScheme:
        """A key in a header, a query parameter or a cookie."""
    @_b.property
    def http_auth_security_scheme(self) -> _v1.HTTPAuthSecurityScheme:
        """An HTTP authentication scheme, such as Basic or Bearer."""
    @_b.property
    def oauth2_security_scheme(self) -> _v1.OAuth2SecurityScheme:
        """OAuth 2.0."""
    @_b.property
    def open_id_connect_security_scheme(self) -> _v1.OpenIdConnectSecurityScheme:
        """OpenID Connect."""
    @_b.property
    def mtls_security_scheme(self) -> _v1.MutualTlsSecurityScheme:
        """A client certificate."""
    def __init__(
        self,
        *,
        api_key_security_scheme: _v1.APIKeySecurityScheme | None = ...,
        http_auth_security_scheme: _v1.HTTPAuthSecurityScheme | None = ...,
        oauth2_security_scheme: _v1.OAuth2SecurityScheme | None = ...,
        open_id_connect_security_scheme: _v1.OpenIdConnectSecurityScheme | None = ...,
        mtls_security_scheme: _v1.MutualTlsSecurityScheme | None = ...,
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
    def flows(self) -> _v1.OAuthFlows:
        """How a token is had."""
    oauth2_metadata_url: _b.str
    """The authorization server metadata (RFC 8414)."""
    def __init__(
        self,
        *,
        description: _b.str | None = ...,
        flows: _v1.OAuthFlows | None = ...,
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
    DEVICE_CODE_FIELD_NUMBER: _t.Final = 5
    @_b.property
    def authorization_code(self) -> _v1.AuthorizationCodeOAuthFlow:
        """With a person who agrees in a browser."""
    @_b.property
    def client_credentials(self) -> _v1.ClientCredentialsOAuthFlow:
        """Between machines."""
    @_b.property
    def implicit(self) -> _v1.ImplicitOAuthFlow:
        """In a browser, without a code; out of use for its weakness."""
    @_b.property
    def password(self) -> _v1.PasswordOAuthFlow:
        """With the password of a person; out of use for its weakness."""
    @_b.property
    def device_code(self) -> _v1.DeviceCodeOAuthFlow:
        """On a device without a browser."""
    def __init__(
        self,
        *,
        authorization_code: _v1.AuthorizationCodeOAuthFlow | None = ...,
        client_credentials: _v1.ClientCredentialsOAuthFlow | None = ...,
        implicit: _v1.ImplicitOAuthFlow | None = ...,
        password: _v1.PasswordOAuthFlow | None = ...,
        device_code: _v1.DeviceCodeOAuthFlow | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.Literal["authorization_code", "client_credentials", "implicit", "password", "device_code", "flow"]) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["authorization_code", "client_credentials", "implicit", "password", "device_code", "flow"]) -> None: ...
    def WhichOneof(self, oneof_group: _t.Literal["flow"]) -> _t.Literal["authorization_code", "client_credentials", "implicit", "password", "device_code"] | None: ...

class AuthorizationCodeOAuthFlow(_message.Message):
    """OAuth 2.0 authorization code flow."""
    DESCRIPTOR: _descriptor.Descriptor
    AUTHORIZATION_URL_FIELD_NUMBER: _t.Final = 1
    TOKEN_URL_FIELD_NUMBER: _t.Final = 2
    REFRESH_URL_FIELD_NUMBER: _t.Final = 3
    SCOPES_FIELD_NUMBER: _t.Final = 4
    PKCE_REQUIRED_FIELD_NUMBER: _t.Final = 5
    authorization_url: _b.str
    """Where the person agrees."""
    token_url: _b.str
    """Where tokens are had."""
    refresh_url: _b.str
    """Where tokens are renewed, if elsewhere."""
    @_b.property
    def scopes(self) -> _containers.ScalarMap[_b.str, _b.str]:
        """Scopes that exist, with a description of each."""
    pkce_required: _b.bool
    """True: the client has to use PKCE (RFC 7636)."""
    def __init__(
        self,
        *,
        authorization_url: _b.str | None = ...,
        token_url: _b.str | None = ...,
        refresh_url: _b.str | None = ...,
        scopes: _abc.Mapping[_b.str, _b.str] | None = ...,
        pkce_required: _b.bool | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.NoReturn) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["authorization_url", "token_url", "refresh_url", "scopes", "pkce_required"]) -> None: ...
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

class DeviceCodeOAuthFlow(_message.Message):
    """OAuth 2.0 device authorization flow (RFC 8628)."""
    DESCRIPTOR: _descriptor.Descriptor
    DEVICE_AUTHORIZATION_URL_FIELD_NUMBER: _t.Final = 1
    TOKEN_URL_FIELD_NUMBER: _t.Final = 2
    REFRESH_URL_FIELD_NUMBER: _t.Final = 3
    SCOPES_FIELD_NUMBER: _t.Final = 4
    device_authorization_url: _b.str
    """Where the device asks for its code."""
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
        device_authorization_url: _b.str | None = ...,
        token_url: _b.str | None = ...,
        refresh_url: _b.str | None = ...,
        scopes: _abc.Mapping[_b.str, _b.str] | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.NoReturn) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["device_authorization_url", "token_url", "refresh_url", "scopes"]) -> None: ...
    def WhichOneof(self, oneof_group: _t.NoReturn) -> None: ...

class SendMessageRequest(_message.Message):
    """A message to the agent."""
    DESCRIPTOR: _descriptor.Descriptor
    TENANT_FIELD_NUMBER: _t.Final = 1
    MESSAGE_FIELD_NUMBER: _t.Final = 2
    CONFIGURATION_FIELD_NUMBER: _t.Final = 3
    METADATA_FIELD_NUMBER: _t.Final = 4
    tenant: _b.str
    """The tenant that the request is for; empty for none."""
    @_b.property
    def message(self) -> _v1.Message:
        """The message."""
    @_b.property
    def configuration(self) -> _v1.SendMessageConfiguration:
        """How it should be answered."""
    @_b.property
    def metadata(self) -> _google.Struct:
        """Free data about the request; extensions keep theirs under their URI."""
    def __init__(
        self,
        *,
        tenant: _b.str | None = ...,
        message: _v1.Message | None = ...,
        configuration: _v1.SendMessageConfiguration | None = ...,
        metadata: _google.Struct | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.Literal["message", "configuration", "metadata"]) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["tenant", "message", "configuration", "metadata"]) -> None: ...
    def WhichOneof(self, oneof_group: _t.NoReturn) -> None: ...

class GetTaskRequest(_message.Message):
    """Which task to give."""
    DESCRIPTOR: _descriptor.Descriptor
    TENANT_FIELD_NUMBER: _t.Final = 1
    ID_FIELD_NUMBER: _t.Final = 2
    HISTORY_LENGTH_FIELD_NUMBER: _t.Final = 3
    tenant: _b.str
    """The tenant that the request is for; empty for none."""
    id: _b.str
    """The task."""
    history_length: _b.int
    """How many of the last messages to show: unset leaves it to the server, 0 is none."""
    def __init__(
        self,
        *,
        tenant: _b.str | None = ...,
        id: _b.str | None = ...,
        history_length: _b.int | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.Literal["history_length"]) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["tenant", "id", "history_length"]) -> None: ...
    def WhichOneof(self, oneof_group: _t.NoReturn) -> None: ...

class ListTasksRequest(_message.Message):
    """Which tasks to list; filters that are given must all hold."""
    DESCRIPTOR: _descriptor.Descriptor
    TENANT_FIELD_NUMBER: _t.Final = 1
    CONTEXT_ID_FIELD_NUMBER: _t.Final = 2
    STATUS_FIELD_NUMBER: _t.Final = 3
    PAGE_SIZE_FIELD_NUMBER: _t.Final = 4
    PAGE_TOKEN_FIELD_NUMBER: _t.Final = 5
    HISTORY_LENGTH_FIELD_NUMBER: _t.Final = 6
    STATUS_TIMESTAMP_AFTER_FIELD_NUMBER: _t.Final = 7
    INCLUDE_ARTIFACTS_FIELD_NUMBER: _t.Final = 8
    tenant: _b.str
    """The tenant that the request is for; empty for none."""
    context_id: _b.str
    """Only tasks of this conversation."""
    status: _v1.TaskState.ValueType
    """Only tasks in this state; unspecified for any."""
    page_size: _b.int
    """Tasks on a page, 1 to 100; unset means 50."""
    page_token: _b.str
    """The next_page_token of the page before; empty for the first."""
    history_length: _b.int
    """How many of the last messages each task shows: unset leaves it to the server, 0 is none."""
    @_b.property
    def status_timestamp_after(self) -> _google.Timestamp:
        """Only tasks whose status was set at this time or later."""
    include_artifacts: _b.bool
    """True: tasks come with their artifacts; unset means without."""
    def __init__(
        self,
        *,
        tenant: _b.str | None = ...,
        context_id: _b.str | None = ...,
        status: _v1.TaskState.ValueType | _b.str | None = ...,
        page_size: _b.int | None = ...,
        page_token: _b.str | None = ...,
        history_length: _b.int | None = ...,
        status_timestamp_after: _google.Timestamp | None = ...,
        include_artifacts: _b.bool | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.Literal["page_size", "history_length", "status_timestamp_after", "include_artifacts"]) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["tenant", "context_id", "status", "page_size", "page_token", "history_length", "status_timestamp_after", "include_artifacts"]) -> None: ...
    def WhichOneof(self, oneof_group: _t.NoReturn) -> None: ...

class ListTasksResponse(_message.Message):
    """One page of tasks, the newest status first."""
    DESCRIPTOR: _descriptor.Descriptor
    TASKS_FIELD_NUMBER: _t.Final = 1
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _t.Final = 2
    PAGE_SIZE_FIELD_NUMBER: _t.Final = 3
    TOTAL_SIZE_FIELD_NUMBER: _t.Final = 4
    @_b.property
    def tasks(self) -> _containers.RepeatedCompositeFieldContainer[_v1.Task]:
        """The tasks of the page."""
    next_page_token: _b.str
    """Where the next page begins; empty on the last one."""
    page_size: _b.int
    """The page size that was applied, whatever the number of tasks here."""
    total_size: _b.int
    """How many tasks match on all pages together."""
    def __init__(
        self,
        *,
        tasks: _abc.Iterable[_v1.Task] | None = ...,
        next_page_token: _b.str | None = ...,
        page_size: _b.int | None = ...,
        total_size: _b.int | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.NoReturn) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["tasks", "next_page_token", "page_size", "total_size"]) -> None: ...
    def WhichOneof(self, oneof_group: _t.NoReturn) -> None: ...

class CancelTaskRequest(_message.Message):
    """Which task to stop."""
    DESCRIPTOR: _descriptor.Descriptor
    TENANT_FIELD_NUMBER: _t.Final = 1
    ID_FIELD_NUMBER: _t.Final = 2
    METADATA_FIELD_NUMBER: _t.Final = 3
    tenant: _b.str
    """The tenant that the request is for; empty for none."""
    id: _b.str
    """The task."""
    @_b.property
    def metadata(self) -> _google.Struct:
        """Free data for the agent, such as the reason."""
    def __init__(
        self,
        *,
        tenant: _b.str | None = ...,
        id: _b.str | None = ...,
        metadata: _google.Struct | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.Literal["metadata"]) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["tenant", "id", "metadata"]) -> None: ...
    def WhichOneof(self, oneof_group: _t.NoReturn) -> None: ...

class GetTaskPushNotificationConfigRequest(_message.Message):
    """Which webhook to give."""
    DESCRIPTOR: _descriptor.Descriptor
    TENANT_FIELD_NUMBER: _t.Final = 1
    TASK_ID_FIELD_NUMBER: _t.Final = 2
    ID_FIELD_NUMBER: _t.Final = 3
    tenant: _b.str
    """The tenant that the request is for; empty for none."""
    task_id: _b.str
    """The task."""
    id: _b.str
    """The webhook."""
    def __init__(
        self,
        *,
        tenant: _b.str | None = ...,
        task_id: _b.str | None = ...,
        id: _b.str | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.NoReturn) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["tenant", "task_id", "id"]) -> None: ...
    def WhichOneof(self, oneof_group: _t.NoReturn) -> None: ...

class DeleteTaskPushNotificationConfigRequest(_message.Message):
    """Which webhook to take off."""
    DESCRIPTOR: _descriptor.Descriptor
    TENANT_FIELD_NUMBER: _t.Final = 1
    TASK_ID_FIELD_NUMBER: _t.Final = 2
    ID_FIELD_NUMBER: _t.Final = 3
    tenant: _b.str
    """The tenant that the request is for; empty for none."""
    task_id: _b.str
    """The task."""
    id: _b.str
    """The webhook."""
    def __init__(
        self,
        *,
        tenant: _b.str | None = ...,
        task_id: _b.str | None = ...,
        id: _b.str | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.NoReturn) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["tenant", "task_id", "id"]) -> None: ...
    def WhichOneof(self, oneof_group: _t.NoReturn) -> None: ...

class SubscribeToTaskRequest(_message.Message):
    """Which task to follow."""
    DESCRIPTOR: _descriptor.Descriptor
    TENANT_FIELD_NUMBER: _t.Final = 1
    ID_FIELD_NUMBER: _t.Final = 2
    tenant: _b.str
    """The tenant that the request is for; empty for none."""
    id: _b.str
    """The task."""
    def __init__(
        self,
        *,
        tenant: _b.str | None = ...,
        id: _b.str | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.NoReturn) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["tenant", "id"]) -> None: ...
    def WhichOneof(self, oneof_group: _t.NoReturn) -> None: ...

class ListTaskPushNotificationConfigsRequest(_message.Message):
    """Of which task to list the webhooks."""
    DESCRIPTOR: _descriptor.Descriptor
    TENANT_FIELD_NUMBER: _t.Final = 4
    TASK_ID_FIELD_NUMBER: _t.Final = 1
    PAGE_SIZE_FIELD_NUMBER: _t.Final = 2
    PAGE_TOKEN_FIELD_NUMBER: _t.Final = 3
    tenant: _b.str
    """The tenant that the request is for; empty for none."""
    task_id: _b.str
    """The task."""
    page_size: _b.int
    """Webhooks on a page; 0 leaves it to the server."""
    page_token: _b.str
    """The next_page_token of the page before; empty for the first."""
    def __init__(
        self,
        *,
        tenant: _b.str | None = ...,
        task_id: _b.str | None = ...,
        page_size: _b.int | None = ...,
        page_token: _b.str | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.NoReturn) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["tenant", "task_id", "page_size", "page_token"]) -> None: ...
    def WhichOneof(self, oneof_group: _t.NoReturn) -> None: ...

class GetExtendedAgentCardRequest(_message.Message):
    """Asks for the card that authenticated callers may see."""
    DESCRIPTOR: _descriptor.Descriptor
    TENANT_FIELD_NUMBER: _t.Final = 1
    tenant: _b.str
    """The tenant that the request is for; empty for none."""
    def __init__(
        self,
        *,
        tenant: _b.str | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.NoReturn) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["tenant"]) -> None: ...
    def WhichOneof(self, oneof_group: _t.NoReturn) -> None: ...

class SendMessageResponse(_message.Message):
    """The answer of the agent to one message."""
    DESCRIPTOR: _descriptor.Descriptor
    TASK_FIELD_NUMBER: _t.Final = 1
    MESSAGE_FIELD_NUMBER: _t.Final = 2
    @_b.property
    def task(self) -> _v1.Task:
        """The task that the message began or went on with."""
    @_b.property
    def message(self) -> _v1.Message:
        """A direct answer, with no task."""
    def __init__(
        self,
        *,
        task: _v1.Task | None = ...,
        message: _v1.Message | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.Literal["task", "message", "payload"]) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["task", "message", "payload"]) -> None: ...
    def WhichOneof(self, oneof_group: _t.Literal["payload"]) -> _t.Literal["task", "message"] | None: ...

class StreamResponse(_message.Message):
    """One event of a stream. A stream is either one message, or a task followed by its updates."""
    DESCRIPTOR: _descriptor.Descriptor
    TASK_FIELD_NUMBER: _t.Final = 1
    MESSAGE_FIELD_NUMBER: _t.Final = 2
    STATUS_UPDATE_FIELD_NUMBER: _t.Final = 3
    ARTIFACT_UPDATE_FIELD_NUMBER: _t.Final = 4
    @_b.property
    def task(self) -> _v1.Task:
        """The task as it stands, before its updates."""
    @_b.property
    def message(self) -> _v1.Message:
        """A direct answer, with no task; the only event of its stream."""
    @_b.property
    def status_update(self) -> _v1.TaskStatusUpdateEvent:
        """A change of status."""
    @_b.property
    def artifact_update(self) -> _v1.TaskArtifactUpdateEvent:
        """A new or grown artifact."""
    def __init__(
        self,
        *,
        task: _v1.Task | None = ...,
        message: _v1.Message | None = ...,
        status_update: _v1.TaskStatusUpdateEvent | None = ...,
        artifact_update: _v1.TaskArtifactUpdateEvent | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.Literal["task", "message", "status_update", "artifact_update", "payload"]) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["task", "message", "status_update", "artifact_update", "payload"]) -> None: ...
    def WhichOneof(self, oneof_group: _t.Literal["payload"]) -> _t.Literal["task", "message", "status_update", "artifact_update"] | None: ...

class ListTaskPushNotificationConfigsResponse(_message.Message):
    """One page of webhooks."""
    DESCRIPTOR: _descriptor.Descriptor
    CONFIGS_FIELD_NUMBER: _t.Final = 1
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _t.Final = 2
    @_b.property
    def configs(self) -> _containers.RepeatedCompositeFieldContainer[_v1.TaskPushNotificationConfig]:
        """The webhooks of the page."""
    next_page_token: _b.str
    """Where the next page begins; empty on the last one."""
    def __init__(
        self,
        *,
        configs: _abc.Iterable[_v1.TaskPushNotificationConfig] | None = ...,
        next_page_token: _b.str | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.NoReturn) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["configs", "next_page_token"]) -> None: ...
    def WhichOneof(self, oneof_group: _t.NoReturn) -> None: ...
