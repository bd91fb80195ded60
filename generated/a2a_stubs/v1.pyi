"""Package lf.a2a.v1. Made by proto/generate.py; do not edit."""

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
    TASK_STATE_SUBMITTED: _TaskState.ValueType
    TASK_STATE_WORKING: _TaskState.ValueType
    TASK_STATE_COMPLETED: _TaskState.ValueType
    TASK_STATE_FAILED: _TaskState.ValueType
    TASK_STATE_CANCELED: _TaskState.ValueType
    TASK_STATE_INPUT_REQUIRED: _TaskState.ValueType
    TASK_STATE_REJECTED: _TaskState.ValueType
    TASK_STATE_AUTH_REQUIRED: _TaskState.ValueType

class TaskState(_TaskState, metaclass=_TaskStateWrapper):
    ...

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
    ROLE_USER: _Role.ValueType
    ROLE_AGENT: _Role.ValueType

class Role(_Role, metaclass=_RoleWrapper):
    ...

ROLE_UNSPECIFIED: Role.ValueType
ROLE_USER: Role.ValueType
ROLE_AGENT: Role.ValueType

class SendMessageConfiguration(_message.Message):
    DESCRIPTOR: _descriptor.Descriptor
    ACCEPTED_OUTPUT_MODES_FIELD_NUMBER: _t.Final = 1
    TASK_PUSH_NOTIFICATION_CONFIG_FIELD_NUMBER: _t.Final = 2
    HISTORY_LENGTH_FIELD_NUMBER: _t.Final = 3
    RETURN_IMMEDIATELY_FIELD_NUMBER: _t.Final = 4
    @_b.property
    def accepted_output_modes(self) -> _containers.RepeatedScalarFieldContainer[_b.str]:
        ...
    @_b.property
    def task_push_notification_config(self) -> _v1.TaskPushNotificationConfig:
        ...
    history_length: _b.int
    return_immediately: _b.bool
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
    def WhichOneof(self, oneof_group: _t.Never) -> None: ...

class Task(_message.Message):
    DESCRIPTOR: _descriptor.Descriptor
    ID_FIELD_NUMBER: _t.Final = 1
    CONTEXT_ID_FIELD_NUMBER: _t.Final = 2
    STATUS_FIELD_NUMBER: _t.Final = 3
    ARTIFACTS_FIELD_NUMBER: _t.Final = 4
    HISTORY_FIELD_NUMBER: _t.Final = 5
    METADATA_FIELD_NUMBER: _t.Final = 6
    id: _b.str
    context_id: _b.str
    @_b.property
    def status(self) -> _v1.TaskStatus:
        ...
    @_b.property
    def artifacts(self) -> _containers.RepeatedCompositeFieldContainer[_v1.Artifact]:
        ...
    @_b.property
    def history(self) -> _containers.RepeatedCompositeFieldContainer[_v1.Message]:
        ...
    @_b.property
    def metadata(self) -> _google.Struct:
        ...
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
    def WhichOneof(self, oneof_group: _t.Never) -> None: ...

class TaskStatus(_message.Message):
    DESCRIPTOR: _descriptor.Descriptor
    STATE_FIELD_NUMBER: _t.Final = 1
    MESSAGE_FIELD_NUMBER: _t.Final = 2
    TIMESTAMP_FIELD_NUMBER: _t.Final = 3
    state: _v1.TaskState.ValueType
    @_b.property
    def message(self) -> _v1.Message:
        ...
    @_b.property
    def timestamp(self) -> _google.Timestamp:
        ...
    def __init__(
        self,
        *,
        state: _v1.TaskState.ValueType | _b.str | None = ...,
        message: _v1.Message | None = ...,
        timestamp: _google.Timestamp | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.Literal["message", "timestamp"]) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["state", "message", "timestamp"]) -> None: ...
    def WhichOneof(self, oneof_group: _t.Never) -> None: ...

class Part(_message.Message):
    DESCRIPTOR: _descriptor.Descriptor
    TEXT_FIELD_NUMBER: _t.Final = 1
    RAW_FIELD_NUMBER: _t.Final = 2
    URL_FIELD_NUMBER: _t.Final = 3
    DATA_FIELD_NUMBER: _t.Final = 4
    METADATA_FIELD_NUMBER: _t.Final = 5
    FILENAME_FIELD_NUMBER: _t.Final = 6
    MEDIA_TYPE_FIELD_NUMBER: _t.Final = 7
    text: _b.str
    raw: _b.bytes
    url: _b.str
    @_b.property
    def data(self) -> _google.Value:
        ...
    @_b.property
    def metadata(self) -> _google.Struct:
        ...
    filename: _b.str
    media_type: _b.str
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
    context_id: _b.str
    task_id: _b.str
    role: _v1.Role.ValueType
    @_b.property
    def parts(self) -> _containers.RepeatedCompositeFieldContainer[_v1.Part]:
        ...
    @_b.property
    def metadata(self) -> _google.Struct:
        ...
    @_b.property
    def extensions(self) -> _containers.RepeatedScalarFieldContainer[_b.str]:
        ...
    @_b.property
    def reference_task_ids(self) -> _containers.RepeatedScalarFieldContainer[_b.str]:
        ...
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
    def WhichOneof(self, oneof_group: _t.Never) -> None: ...

class Artifact(_message.Message):
    DESCRIPTOR: _descriptor.Descriptor
    ARTIFACT_ID_FIELD_NUMBER: _t.Final = 1
    NAME_FIELD_NUMBER: _t.Final = 2
    DESCRIPTION_FIELD_NUMBER: _t.Final = 3
    PARTS_FIELD_NUMBER: _t.Final = 4
    METADATA_FIELD_NUMBER: _t.Final = 5
    EXTENSIONS_FIELD_NUMBER: _t.Final = 6
    artifact_id: _b.str
    name: _b.str
    description: _b.str
    @_b.property
    def parts(self) -> _containers.RepeatedCompositeFieldContainer[_v1.Part]:
        ...
    @_b.property
    def metadata(self) -> _google.Struct:
        ...
    @_b.property
    def extensions(self) -> _containers.RepeatedScalarFieldContainer[_b.str]:
        ...
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
    def WhichOneof(self, oneof_group: _t.Never) -> None: ...

class TaskStatusUpdateEvent(_message.Message):
    DESCRIPTOR: _descriptor.Descriptor
    TASK_ID_FIELD_NUMBER: _t.Final = 1
    CONTEXT_ID_FIELD_NUMBER: _t.Final = 2
    STATUS_FIELD_NUMBER: _t.Final = 3
    METADATA_FIELD_NUMBER: _t.Final = 4
    task_id: _b.str
    context_id: _b.str
    @_b.property
    def status(self) -> _v1.TaskStatus:
        ...
    @_b.property
    def metadata(self) -> _google.Struct:
        ...
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
    def WhichOneof(self, oneof_group: _t.Never) -> None: ...

class TaskArtifactUpdateEvent(_message.Message):
    DESCRIPTOR: _descriptor.Descriptor
    TASK_ID_FIELD_NUMBER: _t.Final = 1
    CONTEXT_ID_FIELD_NUMBER: _t.Final = 2
    ARTIFACT_FIELD_NUMBER: _t.Final = 3
    APPEND_FIELD_NUMBER: _t.Final = 4
    LAST_CHUNK_FIELD_NUMBER: _t.Final = 5
    METADATA_FIELD_NUMBER: _t.Final = 6
    task_id: _b.str
    context_id: _b.str
    @_b.property
    def artifact(self) -> _v1.Artifact:
        ...
    append: _b.bool
    last_chunk: _b.bool
    @_b.property
    def metadata(self) -> _google.Struct:
        ...
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
    def WhichOneof(self, oneof_group: _t.Never) -> None: ...

class AuthenticationInfo(_message.Message):
    DESCRIPTOR: _descriptor.Descriptor
    SCHEME_FIELD_NUMBER: _t.Final = 1
    CREDENTIALS_FIELD_NUMBER: _t.Final = 2
    scheme: _b.str
    credentials: _b.str
    def __init__(
        self,
        *,
        scheme: _b.str | None = ...,
        credentials: _b.str | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.Never) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["scheme", "credentials"]) -> None: ...
    def WhichOneof(self, oneof_group: _t.Never) -> None: ...

class AgentInterface(_message.Message):
    DESCRIPTOR: _descriptor.Descriptor
    URL_FIELD_NUMBER: _t.Final = 1
    PROTOCOL_BINDING_FIELD_NUMBER: _t.Final = 2
    TENANT_FIELD_NUMBER: _t.Final = 3
    PROTOCOL_VERSION_FIELD_NUMBER: _t.Final = 4
    url: _b.str
    protocol_binding: _b.str
    tenant: _b.str
    protocol_version: _b.str
    def __init__(
        self,
        *,
        url: _b.str | None = ...,
        protocol_binding: _b.str | None = ...,
        tenant: _b.str | None = ...,
        protocol_version: _b.str | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.Never) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["url", "protocol_binding", "tenant", "protocol_version"]) -> None: ...
    def WhichOneof(self, oneof_group: _t.Never) -> None: ...

class AgentCard(_message.Message):
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
    description: _b.str
    @_b.property
    def supported_interfaces(self) -> _containers.RepeatedCompositeFieldContainer[_v1.AgentInterface]:
        ...
    @_b.property
    def provider(self) -> _v1.AgentProvider:
        ...
    version: _b.str
    documentation_url: _b.str
    @_b.property
    def capabilities(self) -> _v1.AgentCapabilities:
        ...
    @_b.property
    def security_schemes(self) -> _containers.MessageMap[_b.str, _v1.SecurityScheme]:
        ...
    @_b.property
    def security_requirements(self) -> _containers.RepeatedCompositeFieldContainer[_v1.SecurityRequirement]:
        ...
    @_b.property
    def default_input_modes(self) -> _containers.RepeatedScalarFieldContainer[_b.str]:
        ...
    @_b.property
    def default_output_modes(self) -> _containers.RepeatedScalarFieldContainer[_b.str]:
        ...
    @_b.property
    def skills(self) -> _containers.RepeatedCompositeFieldContainer[_v1.AgentSkill]:
        ...
    @_b.property
    def signatures(self) -> _containers.RepeatedCompositeFieldContainer[_v1.AgentCardSignature]:
        ...
    icon_url: _b.str
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
    def WhichOneof(self, oneof_group: _t.Never) -> None: ...

class AgentProvider(_message.Message):
    DESCRIPTOR: _descriptor.Descriptor
    URL_FIELD_NUMBER: _t.Final = 1
    ORGANIZATION_FIELD_NUMBER: _t.Final = 2
    url: _b.str
    organization: _b.str
    def __init__(
        self,
        *,
        url: _b.str | None = ...,
        organization: _b.str | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.Never) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["url", "organization"]) -> None: ...
    def WhichOneof(self, oneof_group: _t.Never) -> None: ...

class AgentCapabilities(_message.Message):
    DESCRIPTOR: _descriptor.Descriptor
    STREAMING_FIELD_NUMBER: _t.Final = 1
    PUSH_NOTIFICATIONS_FIELD_NUMBER: _t.Final = 2
    EXTENSIONS_FIELD_NUMBER: _t.Final = 3
    EXTENDED_AGENT_CARD_FIELD_NUMBER: _t.Final = 4
    streaming: _b.bool
    push_notifications: _b.bool
    @_b.property
    def extensions(self) -> _containers.RepeatedCompositeFieldContainer[_v1.AgentExtension]:
        ...
    extended_agent_card: _b.bool
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
    def WhichOneof(self, oneof_group: _t.Never) -> None: ...

class AgentExtension(_message.Message):
    DESCRIPTOR: _descriptor.Descriptor
    URI_FIELD_NUMBER: _t.Final = 1
    DESCRIPTION_FIELD_NUMBER: _t.Final = 2
    REQUIRED_FIELD_NUMBER: _t.Final = 3
    PARAMS_FIELD_NUMBER: _t.Final = 4
    uri: _b.str
    description: _b.str
    required: _b.bool
    @_b.property
    def params(self) -> _google.Struct:
        ...
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
    def WhichOneof(self, oneof_group: _t.Never) -> None: ...

class AgentSkill(_message.Message):
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
    name: _b.str
    description: _b.str
    @_b.property
    def tags(self) -> _containers.RepeatedScalarFieldContainer[_b.str]:
        ...
    @_b.property
    def examples(self) -> _containers.RepeatedScalarFieldContainer[_b.str]:
        ...
    @_b.property
    def input_modes(self) -> _containers.RepeatedScalarFieldContainer[_b.str]:
        ...
    @_b.property
    def output_modes(self) -> _containers.RepeatedScalarFieldContainer[_b.str]:
        ...
    @_b.property
    def security_requirements(self) -> _containers.RepeatedCompositeFieldContainer[_v1.SecurityRequirement]:
        ...
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
    def HasField(self, field_name: _t.Never) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["id", "name", "description", "tags", "examples", "input_modes", "output_modes", "security_requirements"]) -> None: ...
    def WhichOneof(self, oneof_group: _t.Never) -> None: ...

class AgentCardSignature(_message.Message):
    DESCRIPTOR: _descriptor.Descriptor
    PROTECTED_FIELD_NUMBER: _t.Final = 1
    SIGNATURE_FIELD_NUMBER: _t.Final = 2
    HEADER_FIELD_NUMBER: _t.Final = 3
    protected: _b.str
    signature: _b.str
    @_b.property
    def header(self) -> _google.Struct:
        ...
    def __init__(
        self,
        *,
        protected: _b.str | None = ...,
        signature: _b.str | None = ...,
        header: _google.Struct | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.Literal["header"]) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["protected", "signature", "header"]) -> None: ...
    def WhichOneof(self, oneof_group: _t.Never) -> None: ...

class TaskPushNotificationConfig(_message.Message):
    DESCRIPTOR: _descriptor.Descriptor
    TENANT_FIELD_NUMBER: _t.Final = 1
    ID_FIELD_NUMBER: _t.Final = 2
    TASK_ID_FIELD_NUMBER: _t.Final = 3
    URL_FIELD_NUMBER: _t.Final = 4
    TOKEN_FIELD_NUMBER: _t.Final = 5
    AUTHENTICATION_FIELD_NUMBER: _t.Final = 6
    tenant: _b.str
    id: _b.str
    task_id: _b.str
    url: _b.str
    token: _b.str
    @_b.property
    def authentication(self) -> _v1.AuthenticationInfo:
        ...
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
    def WhichOneof(self, oneof_group: _t.Never) -> None: ...

class StringList(_message.Message):
    DESCRIPTOR: _descriptor.Descriptor
    LIST_FIELD_NUMBER: _t.Final = 1
    @_b.property
    def list(self) -> _containers.RepeatedScalarFieldContainer[_b.str]:
        ...
    def __init__(
        self,
        *,
        list: _abc.Iterable[_b.str] | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.Never) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["list"]) -> None: ...
    def WhichOneof(self, oneof_group: _t.Never) -> None: ...

class SecurityRequirement(_message.Message):
    DESCRIPTOR: _descriptor.Descriptor
    SCHEMES_FIELD_NUMBER: _t.Final = 1
    @_b.property
    def schemes(self) -> _containers.MessageMap[_b.str, _v1.StringList]:
        ...
    def __init__(
        self,
        *,
        schemes: _abc.Mapping[_b.str, _v1.StringList] | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.Never) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["schemes"]) -> None: ...
    def WhichOneof(self, oneof_group: _t.Never) -> None: ...

class SecurityScheme(_message.Message):
    DESCRIPTOR: _descriptor.Descriptor
    API_KEY_SECURITY_SCHEME_FIELD_NUMBER: _t.Final = 1
    HTTP_AUTH_SECURITY_SCHEME_FIELD_NUMBER: _t.Final = 2
    OAUTH2_SECURITY_SCHEME_FIELD_NUMBER: _t.Final = 3
    OPEN_ID_CONNECT_SECURITY_SCHEME_FIELD_NUMBER: _t.Final = 4
    MTLS_SECURITY_SCHEME_FIELD_NUMBER: _t.Final = 5
    @_b.property
    def api_key_security_scheme(self) -> _v1.APIKeySecurityScheme:
        ...
    @_b.property
    def http_auth_security_scheme(self) -> _v1.HTTPAuthSecurityScheme:
        ...
    @_b.property
    def oauth2_security_scheme(self) -> _v1.OAuth2SecurityScheme:
        ...
    @_b.property
    def open_id_connect_security_scheme(self) -> _v1.OpenIdConnectSecurityScheme:
        ...
    @_b.property
    def mtls_security_scheme(self) -> _v1.MutualTlsSecurityScheme:
        ...
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
    DESCRIPTOR: _descriptor.Descriptor
    DESCRIPTION_FIELD_NUMBER: _t.Final = 1
    LOCATION_FIELD_NUMBER: _t.Final = 2
    NAME_FIELD_NUMBER: _t.Final = 3
    description: _b.str
    location: _b.str
    name: _b.str
    def __init__(
        self,
        *,
        description: _b.str | None = ...,
        location: _b.str | None = ...,
        name: _b.str | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.Never) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["description", "location", "name"]) -> None: ...
    def WhichOneof(self, oneof_group: _t.Never) -> None: ...

class HTTPAuthSecurityScheme(_message.Message):
    DESCRIPTOR: _descriptor.Descriptor
    DESCRIPTION_FIELD_NUMBER: _t.Final = 1
    SCHEME_FIELD_NUMBER: _t.Final = 2
    BEARER_FORMAT_FIELD_NUMBER: _t.Final = 3
    description: _b.str
    scheme: _b.str
    bearer_format: _b.str
    def __init__(
        self,
        *,
        description: _b.str | None = ...,
        scheme: _b.str | None = ...,
        bearer_format: _b.str | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.Never) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["description", "scheme", "bearer_format"]) -> None: ...
    def WhichOneof(self, oneof_group: _t.Never) -> None: ...

class OAuth2SecurityScheme(_message.Message):
    DESCRIPTOR: _descriptor.Descriptor
    DESCRIPTION_FIELD_NUMBER: _t.Final = 1
    FLOWS_FIELD_NUMBER: _t.Final = 2
    OAUTH2_METADATA_URL_FIELD_NUMBER: _t.Final = 3
    description: _b.str
    @_b.property
    def flows(self) -> _v1.OAuthFlows:
        ...
    oauth2_metadata_url: _b.str
    def __init__(
        self,
        *,
        description: _b.str | None = ...,
        flows: _v1.OAuthFlows | None = ...,
        oauth2_metadata_url: _b.str | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.Literal["flows"]) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["description", "flows", "oauth2_metadata_url"]) -> None: ...
    def WhichOneof(self, oneof_group: _t.Never) -> None: ...

class OpenIdConnectSecurityScheme(_message.Message):
    DESCRIPTOR: _descriptor.Descriptor
    DESCRIPTION_FIELD_NUMBER: _t.Final = 1
    OPEN_ID_CONNECT_URL_FIELD_NUMBER: _t.Final = 2
    description: _b.str
    open_id_connect_url: _b.str
    def __init__(
        self,
        *,
        description: _b.str | None = ...,
        open_id_connect_url: _b.str | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.Never) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["description", "open_id_connect_url"]) -> None: ...
    def WhichOneof(self, oneof_group: _t.Never) -> None: ...

class MutualTlsSecurityScheme(_message.Message):
    DESCRIPTOR: _descriptor.Descriptor
    DESCRIPTION_FIELD_NUMBER: _t.Final = 1
    description: _b.str
    def __init__(
        self,
        *,
        description: _b.str | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.Never) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["description"]) -> None: ...
    def WhichOneof(self, oneof_group: _t.Never) -> None: ...

class OAuthFlows(_message.Message):
    DESCRIPTOR: _descriptor.Descriptor
    AUTHORIZATION_CODE_FIELD_NUMBER: _t.Final = 1
    CLIENT_CREDENTIALS_FIELD_NUMBER: _t.Final = 2
    IMPLICIT_FIELD_NUMBER: _t.Final = 3
    PASSWORD_FIELD_NUMBER: _t.Final = 4
    DEVICE_CODE_FIELD_NUMBER: _t.Final = 5
    @_b.property
    def authorization_code(self) -> _v1.AuthorizationCodeOAuthFlow:
        ...
    @_b.property
    def client_credentials(self) -> _v1.ClientCredentialsOAuthFlow:
        ...
    @_b.property
    def implicit(self) -> _v1.ImplicitOAuthFlow:
        ...
    @_b.property
    def password(self) -> _v1.PasswordOAuthFlow:
        ...
    @_b.property
    def device_code(self) -> _v1.DeviceCodeOAuthFlow:
        ...
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
    DESCRIPTOR: _descriptor.Descriptor
    AUTHORIZATION_URL_FIELD_NUMBER: _t.Final = 1
    TOKEN_URL_FIELD_NUMBER: _t.Final = 2
    REFRESH_URL_FIELD_NUMBER: _t.Final = 3
    SCOPES_FIELD_NUMBER: _t.Final = 4
    PKCE_REQUIRED_FIELD_NUMBER: _t.Final = 5
    authorization_url: _b.str
    token_url: _b.str
    refresh_url: _b.str
    @_b.property
    def scopes(self) -> _containers.ScalarMap[_b.str, _b.str]:
        ...
    pkce_required: _b.bool
    def __init__(
        self,
        *,
        authorization_url: _b.str | None = ...,
        token_url: _b.str | None = ...,
        refresh_url: _b.str | None = ...,
        scopes: _abc.Mapping[_b.str, _b.str] | None = ...,
        pkce_required: _b.bool | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.Never) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["authorization_url", "token_url", "refresh_url", "scopes", "pkce_required"]) -> None: ...
    def WhichOneof(self, oneof_group: _t.Never) -> None: ...

class ClientCredentialsOAuthFlow(_message.Message):
    DESCRIPTOR: _descriptor.Descriptor
    TOKEN_URL_FIELD_NUMBER: _t.Final = 1
    REFRESH_URL_FIELD_NUMBER: _t.Final = 2
    SCOPES_FIELD_NUMBER: _t.Final = 3
    token_url: _b.str
    refresh_url: _b.str
    @_b.property
    def scopes(self) -> _containers.ScalarMap[_b.str, _b.str]:
        ...
    def __init__(
        self,
        *,
        token_url: _b.str | None = ...,
        refresh_url: _b.str | None = ...,
        scopes: _abc.Mapping[_b.str, _b.str] | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.Never) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["token_url", "refresh_url", "scopes"]) -> None: ...
    def WhichOneof(self, oneof_group: _t.Never) -> None: ...

class ImplicitOAuthFlow(_message.Message):
    DESCRIPTOR: _descriptor.Descriptor
    AUTHORIZATION_URL_FIELD_NUMBER: _t.Final = 1
    REFRESH_URL_FIELD_NUMBER: _t.Final = 2
    SCOPES_FIELD_NUMBER: _t.Final = 3
    authorization_url: _b.str
    refresh_url: _b.str
    @_b.property
    def scopes(self) -> _containers.ScalarMap[_b.str, _b.str]:
        ...
    def __init__(
        self,
        *,
        authorization_url: _b.str | None = ...,
        refresh_url: _b.str | None = ...,
        scopes: _abc.Mapping[_b.str, _b.str] | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.Never) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["authorization_url", "refresh_url", "scopes"]) -> None: ...
    def WhichOneof(self, oneof_group: _t.Never) -> None: ...

class PasswordOAuthFlow(_message.Message):
    DESCRIPTOR: _descriptor.Descriptor
    TOKEN_URL_FIELD_NUMBER: _t.Final = 1
    REFRESH_URL_FIELD_NUMBER: _t.Final = 2
    SCOPES_FIELD_NUMBER: _t.Final = 3
    token_url: _b.str
    refresh_url: _b.str
    @_b.property
    def scopes(self) -> _containers.ScalarMap[_b.str, _b.str]:
        ...
    def __init__(
        self,
        *,
        token_url: _b.str | None = ...,
        refresh_url: _b.str | None = ...,
        scopes: _abc.Mapping[_b.str, _b.str] | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.Never) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["token_url", "refresh_url", "scopes"]) -> None: ...
    def WhichOneof(self, oneof_group: _t.Never) -> None: ...

class DeviceCodeOAuthFlow(_message.Message):
    DESCRIPTOR: _descriptor.Descriptor
    DEVICE_AUTHORIZATION_URL_FIELD_NUMBER: _t.Final = 1
    TOKEN_URL_FIELD_NUMBER: _t.Final = 2
    REFRESH_URL_FIELD_NUMBER: _t.Final = 3
    SCOPES_FIELD_NUMBER: _t.Final = 4
    device_authorization_url: _b.str
    token_url: _b.str
    refresh_url: _b.str
    @_b.property
    def scopes(self) -> _containers.ScalarMap[_b.str, _b.str]:
        ...
    def __init__(
        self,
        *,
        device_authorization_url: _b.str | None = ...,
        token_url: _b.str | None = ...,
        refresh_url: _b.str | None = ...,
        scopes: _abc.Mapping[_b.str, _b.str] | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.Never) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["device_authorization_url", "token_url", "refresh_url", "scopes"]) -> None: ...
    def WhichOneof(self, oneof_group: _t.Never) -> None: ...

class SendMessageRequest(_message.Message):
    DESCRIPTOR: _descriptor.Descriptor
    TENANT_FIELD_NUMBER: _t.Final = 1
    MESSAGE_FIELD_NUMBER: _t.Final = 2
    CONFIGURATION_FIELD_NUMBER: _t.Final = 3
    METADATA_FIELD_NUMBER: _t.Final = 4
    tenant: _b.str
    @_b.property
    def message(self) -> _v1.Message:
        ...
    @_b.property
    def configuration(self) -> _v1.SendMessageConfiguration:
        ...
    @_b.property
    def metadata(self) -> _google.Struct:
        ...
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
    def WhichOneof(self, oneof_group: _t.Never) -> None: ...

class GetTaskRequest(_message.Message):
    DESCRIPTOR: _descriptor.Descriptor
    TENANT_FIELD_NUMBER: _t.Final = 1
    ID_FIELD_NUMBER: _t.Final = 2
    HISTORY_LENGTH_FIELD_NUMBER: _t.Final = 3
    tenant: _b.str
    id: _b.str
    history_length: _b.int
    def __init__(
        self,
        *,
        tenant: _b.str | None = ...,
        id: _b.str | None = ...,
        history_length: _b.int | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.Literal["history_length"]) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["tenant", "id", "history_length"]) -> None: ...
    def WhichOneof(self, oneof_group: _t.Never) -> None: ...

class ListTasksRequest(_message.Message):
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
    context_id: _b.str
    status: _v1.TaskState.ValueType
    page_size: _b.int
    page_token: _b.str
    history_length: _b.int
    @_b.property
    def status_timestamp_after(self) -> _google.Timestamp:
        ...
    include_artifacts: _b.bool
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
    def WhichOneof(self, oneof_group: _t.Never) -> None: ...

class ListTasksResponse(_message.Message):
    DESCRIPTOR: _descriptor.Descriptor
    TASKS_FIELD_NUMBER: _t.Final = 1
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _t.Final = 2
    PAGE_SIZE_FIELD_NUMBER: _t.Final = 3
    TOTAL_SIZE_FIELD_NUMBER: _t.Final = 4
    @_b.property
    def tasks(self) -> _containers.RepeatedCompositeFieldContainer[_v1.Task]:
        ...
    next_page_token: _b.str
    page_size: _b.int
    total_size: _b.int
    def __init__(
        self,
        *,
        tasks: _abc.Iterable[_v1.Task] | None = ...,
        next_page_token: _b.str | None = ...,
        page_size: _b.int | None = ...,
        total_size: _b.int | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.Never) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["tasks", "next_page_token", "page_size", "total_size"]) -> None: ...
    def WhichOneof(self, oneof_group: _t.Never) -> None: ...

class CancelTaskRequest(_message.Message):
    DESCRIPTOR: _descriptor.Descriptor
    TENANT_FIELD_NUMBER: _t.Final = 1
    ID_FIELD_NUMBER: _t.Final = 2
    METADATA_FIELD_NUMBER: _t.Final = 3
    tenant: _b.str
    id: _b.str
    @_b.property
    def metadata(self) -> _google.Struct:
        ...
    def __init__(
        self,
        *,
        tenant: _b.str | None = ...,
        id: _b.str | None = ...,
        metadata: _google.Struct | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.Literal["metadata"]) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["tenant", "id", "metadata"]) -> None: ...
    def WhichOneof(self, oneof_group: _t.Never) -> None: ...

class GetTaskPushNotificationConfigRequest(_message.Message):
    DESCRIPTOR: _descriptor.Descriptor
    TENANT_FIELD_NUMBER: _t.Final = 1
    TASK_ID_FIELD_NUMBER: _t.Final = 2
    ID_FIELD_NUMBER: _t.Final = 3
    tenant: _b.str
    task_id: _b.str
    id: _b.str
    def __init__(
        self,
        *,
        tenant: _b.str | None = ...,
        task_id: _b.str | None = ...,
        id: _b.str | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.Never) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["tenant", "task_id", "id"]) -> None: ...
    def WhichOneof(self, oneof_group: _t.Never) -> None: ...

class DeleteTaskPushNotificationConfigRequest(_message.Message):
    DESCRIPTOR: _descriptor.Descriptor
    TENANT_FIELD_NUMBER: _t.Final = 1
    TASK_ID_FIELD_NUMBER: _t.Final = 2
    ID_FIELD_NUMBER: _t.Final = 3
    tenant: _b.str
    task_id: _b.str
    id: _b.str
    def __init__(
        self,
        *,
        tenant: _b.str | None = ...,
        task_id: _b.str | None = ...,
        id: _b.str | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.Never) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["tenant", "task_id", "id"]) -> None: ...
    def WhichOneof(self, oneof_group: _t.Never) -> None: ...

class SubscribeToTaskRequest(_message.Message):
    DESCRIPTOR: _descriptor.Descriptor
    TENANT_FIELD_NUMBER: _t.Final = 1
    ID_FIELD_NUMBER: _t.Final = 2
    tenant: _b.str
    id: _b.str
    def __init__(
        self,
        *,
        tenant: _b.str | None = ...,
        id: _b.str | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.Never) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["tenant", "id"]) -> None: ...
    def WhichOneof(self, oneof_group: _t.Never) -> None: ...

class ListTaskPushNotificationConfigsRequest(_message.Message):
    DESCRIPTOR: _descriptor.Descriptor
    TENANT_FIELD_NUMBER: _t.Final = 4
    TASK_ID_FIELD_NUMBER: _t.Final = 1
    PAGE_SIZE_FIELD_NUMBER: _t.Final = 2
    PAGE_TOKEN_FIELD_NUMBER: _t.Final = 3
    tenant: _b.str
    task_id: _b.str
    page_size: _b.int
    page_token: _b.str
    def __init__(
        self,
        *,
        tenant: _b.str | None = ...,
        task_id: _b.str | None = ...,
        page_size: _b.int | None = ...,
        page_token: _b.str | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.Never) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["tenant", "task_id", "page_size", "page_token"]) -> None: ...
    def WhichOneof(self, oneof_group: _t.Never) -> None: ...

class GetExtendedAgentCardRequest(_message.Message):
    DESCRIPTOR: _descriptor.Descriptor
    TENANT_FIELD_NUMBER: _t.Final = 1
    tenant: _b.str
    def __init__(
        self,
        *,
        tenant: _b.str | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.Never) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["tenant"]) -> None: ...
    def WhichOneof(self, oneof_group: _t.Never) -> None: ...

class SendMessageResponse(_message.Message):
    DESCRIPTOR: _descriptor.Descriptor
    TASK_FIELD_NUMBER: _t.Final = 1
    MESSAGE_FIELD_NUMBER: _t.Final = 2
    @_b.property
    def task(self) -> _v1.Task:
        ...
    @_b.property
    def message(self) -> _v1.Message:
        ...
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
    DESCRIPTOR: _descriptor.Descriptor
    TASK_FIELD_NUMBER: _t.Final = 1
    MESSAGE_FIELD_NUMBER: _t.Final = 2
    STATUS_UPDATE_FIELD_NUMBER: _t.Final = 3
    ARTIFACT_UPDATE_FIELD_NUMBER: _t.Final = 4
    @_b.property
    def task(self) -> _v1.Task:
        ...
    @_b.property
    def message(self) -> _v1.Message:
        ...
    @_b.property
    def status_update(self) -> _v1.TaskStatusUpdateEvent:
        ...
    @_b.property
    def artifact_update(self) -> _v1.TaskArtifactUpdateEvent:
        ...
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
    DESCRIPTOR: _descriptor.Descriptor
    CONFIGS_FIELD_NUMBER: _t.Final = 1
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _t.Final = 2
    @_b.property
    def configs(self) -> _containers.RepeatedCompositeFieldContainer[_v1.TaskPushNotificationConfig]:
        ...
    next_page_token: _b.str
    def __init__(
        self,
        *,
        configs: _abc.Iterable[_v1.TaskPushNotificationConfig] | None = ...,
        next_page_token: _b.str | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.Never) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["configs", "next_page_token"]) -> None: ...
    def WhichOneof(self, oneof_group: _t.Never) -> None: ...
