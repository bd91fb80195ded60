"""Types of google.protobuf and google.rpc. Made by proto/generate.py; do not edit."""

import builtins as _b
import collections.abc as _abc
import typing as _t

from google.protobuf import descriptor as _descriptor, message as _message
from google.protobuf.internal import containers as _containers, enum_type_wrapper as _enums
from google.protobuf.internal import well_known_types as _well_known

from a2a_stubs import google as _google


class Any(_message.Message, _well_known.Any):
    DESCRIPTOR: _descriptor.Descriptor
    TYPE_URL_FIELD_NUMBER: _t.Final = 1
    VALUE_FIELD_NUMBER: _t.Final = 2
    type_url: _b.str
    value: _b.bytes
    def __init__(
        self,
        *,
        type_url: _b.str | None = ...,
        value: _b.bytes | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.NoReturn) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["type_url", "value"]) -> None: ...
    def WhichOneof(self, oneof_group: _t.NoReturn) -> None: ...

class Duration(_message.Message, _well_known.Duration):
    DESCRIPTOR: _descriptor.Descriptor
    SECONDS_FIELD_NUMBER: _t.Final = 1
    NANOS_FIELD_NUMBER: _t.Final = 2
    seconds: _b.int
    nanos: _b.int
    def __init__(
        self,
        *,
        seconds: _b.int | None = ...,
        nanos: _b.int | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.NoReturn) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["seconds", "nanos"]) -> None: ...
    def WhichOneof(self, oneof_group: _t.NoReturn) -> None: ...

class Empty(_message.Message):
    DESCRIPTOR: _descriptor.Descriptor
    def __init__(
        self,
    ) -> None: ...
    def HasField(self, field_name: _t.NoReturn) -> _b.bool: ...
    def ClearField(self, field_name: _t.NoReturn) -> None: ...
    def WhichOneof(self, oneof_group: _t.NoReturn) -> None: ...

class _NullValue:
    ValueType = _t.NewType("ValueType", _b.int)

class _NullValueWrapper(_enums._EnumTypeWrapper[_NullValue.ValueType], _b.type):
    DESCRIPTOR: _descriptor.EnumDescriptor
    NULL_VALUE: _NullValue.ValueType

class NullValue(_NullValue, metaclass=_NullValueWrapper):
    ...

NULL_VALUE: NullValue.ValueType

class Struct(_message.Message, _well_known.Struct):
    DESCRIPTOR: _descriptor.Descriptor
    FIELDS_FIELD_NUMBER: _t.Final = 1
    @_b.property
    def fields(self) -> _containers.MessageMap[_b.str, _google.Value]:
        ...
    def __init__(
        self,
        *,
        fields: _abc.Mapping[_b.str, _google.Value] | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.NoReturn) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["fields"]) -> None: ...
    def WhichOneof(self, oneof_group: _t.NoReturn) -> None: ...

class Value(_message.Message):
    DESCRIPTOR: _descriptor.Descriptor
    NULL_VALUE_FIELD_NUMBER: _t.Final = 1
    NUMBER_VALUE_FIELD_NUMBER: _t.Final = 2
    STRING_VALUE_FIELD_NUMBER: _t.Final = 3
    BOOL_VALUE_FIELD_NUMBER: _t.Final = 4
    STRUCT_VALUE_FIELD_NUMBER: _t.Final = 5
    LIST_VALUE_FIELD_NUMBER: _t.Final = 6
    null_value: _google.NullValue.ValueType
    number_value: _b.float
    string_value: _b.str
    bool_value: _b.bool
    @_b.property
    def struct_value(self) -> _google.Struct:
        ...
    @_b.property
    def list_value(self) -> _google.ListValue:
        ...
    def __init__(
        self,
        *,
        null_value: _google.NullValue.ValueType | _b.str | None = ...,
        number_value: _b.float | None = ...,
        string_value: _b.str | None = ...,
        bool_value: _b.bool | None = ...,
        struct_value: _google.Struct | None = ...,
        list_value: _google.ListValue | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.Literal["null_value", "number_value", "string_value", "bool_value", "struct_value", "list_value", "kind"]) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["null_value", "number_value", "string_value", "bool_value", "struct_value", "list_value", "kind"]) -> None: ...
    def WhichOneof(self, oneof_group: _t.Literal["kind"]) -> _t.Literal["null_value", "number_value", "string_value", "bool_value", "struct_value", "list_value"] | None: ...

class ListValue(_message.Message, _well_known.ListValue):
    DESCRIPTOR: _descriptor.Descriptor
    VALUES_FIELD_NUMBER: _t.Final = 1
    @_b.property
    def values(self) -> _containers.RepeatedCompositeFieldContainer[_google.Value]:
        ...
    def __init__(
        self,
        *,
        values: _abc.Iterable[_google.Value] | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.NoReturn) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["values"]) -> None: ...
    def WhichOneof(self, oneof_group: _t.NoReturn) -> None: ...

class Timestamp(_message.Message, _well_known.Timestamp):
    DESCRIPTOR: _descriptor.Descriptor
    SECONDS_FIELD_NUMBER: _t.Final = 1
    NANOS_FIELD_NUMBER: _t.Final = 2
    seconds: _b.int
    nanos: _b.int
    def __init__(
        self,
        *,
        seconds: _b.int | None = ...,
        nanos: _b.int | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.NoReturn) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["seconds", "nanos"]) -> None: ...
    def WhichOneof(self, oneof_group: _t.NoReturn) -> None: ...

class Status(_message.Message):
    DESCRIPTOR: _descriptor.Descriptor
    CODE_FIELD_NUMBER: _t.Final = 1
    MESSAGE_FIELD_NUMBER: _t.Final = 2
    DETAILS_FIELD_NUMBER: _t.Final = 3
    code: _b.int
    message: _b.str
    @_b.property
    def details(self) -> _containers.RepeatedCompositeFieldContainer[_google.Any]:
        ...
    def __init__(
        self,
        *,
        code: _b.int | None = ...,
        message: _b.str | None = ...,
        details: _abc.Iterable[_google.Any] | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.NoReturn) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["code", "message", "details"]) -> None: ...
    def WhichOneof(self, oneof_group: _t.NoReturn) -> None: ...

class ErrorInfo(_message.Message):
    DESCRIPTOR: _descriptor.Descriptor
    REASON_FIELD_NUMBER: _t.Final = 1
    DOMAIN_FIELD_NUMBER: _t.Final = 2
    METADATA_FIELD_NUMBER: _t.Final = 3
    reason: _b.str
    domain: _b.str
    @_b.property
    def metadata(self) -> _containers.ScalarMap[_b.str, _b.str]:
        ...
    def __init__(
        self,
        *,
        reason: _b.str | None = ...,
        domain: _b.str | None = ...,
        metadata: _abc.Mapping[_b.str, _b.str] | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.NoReturn) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["reason", "domain", "metadata"]) -> None: ...
    def WhichOneof(self, oneof_group: _t.NoReturn) -> None: ...

class RetryInfo(_message.Message):
    DESCRIPTOR: _descriptor.Descriptor
    RETRY_DELAY_FIELD_NUMBER: _t.Final = 1
    @_b.property
    def retry_delay(self) -> _google.Duration:
        ...
    def __init__(
        self,
        *,
        retry_delay: _google.Duration | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.Literal["retry_delay"]) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["retry_delay"]) -> None: ...
    def WhichOneof(self, oneof_group: _t.NoReturn) -> None: ...

class DebugInfo(_message.Message):
    DESCRIPTOR: _descriptor.Descriptor
    STACK_ENTRIES_FIELD_NUMBER: _t.Final = 1
    DETAIL_FIELD_NUMBER: _t.Final = 2
    @_b.property
    def stack_entries(self) -> _containers.RepeatedScalarFieldContainer[_b.str]:
        ...
    detail: _b.str
    def __init__(
        self,
        *,
        stack_entries: _abc.Iterable[_b.str] | None = ...,
        detail: _b.str | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.NoReturn) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["stack_entries", "detail"]) -> None: ...
    def WhichOneof(self, oneof_group: _t.NoReturn) -> None: ...

class QuotaFailure(_message.Message):
    DESCRIPTOR: _descriptor.Descriptor

    class Violation(_message.Message):
        DESCRIPTOR: _descriptor.Descriptor
        SUBJECT_FIELD_NUMBER: _t.Final = 1
        DESCRIPTION_FIELD_NUMBER: _t.Final = 2
        API_SERVICE_FIELD_NUMBER: _t.Final = 3
        QUOTA_METRIC_FIELD_NUMBER: _t.Final = 4
        QUOTA_ID_FIELD_NUMBER: _t.Final = 5
        QUOTA_DIMENSIONS_FIELD_NUMBER: _t.Final = 6
        QUOTA_VALUE_FIELD_NUMBER: _t.Final = 7
        FUTURE_QUOTA_VALUE_FIELD_NUMBER: _t.Final = 8
        subject: _b.str
        description: _b.str
        api_service: _b.str
        quota_metric: _b.str
        quota_id: _b.str
        @_b.property
        def quota_dimensions(self) -> _containers.ScalarMap[_b.str, _b.str]:
            ...
        quota_value: _b.int
        future_quota_value: _b.int
        def __init__(
            self,
            *,
            subject: _b.str | None = ...,
            description: _b.str | None = ...,
            api_service: _b.str | None = ...,
            quota_metric: _b.str | None = ...,
            quota_id: _b.str | None = ...,
            quota_dimensions: _abc.Mapping[_b.str, _b.str] | None = ...,
            quota_value: _b.int | None = ...,
            future_quota_value: _b.int | None = ...,
        ) -> None: ...
        def HasField(self, field_name: _t.Literal["future_quota_value"]) -> _b.bool: ...
        def ClearField(self, field_name: _t.Literal["subject", "description", "api_service", "quota_metric", "quota_id", "quota_dimensions", "quota_value", "future_quota_value"]) -> None: ...
        def WhichOneof(self, oneof_group: _t.NoReturn) -> None: ...
    VIOLATIONS_FIELD_NUMBER: _t.Final = 1
    @_b.property
    def violations(self) -> _containers.RepeatedCompositeFieldContainer[_google.QuotaFailure.Violation]:
        ...
    def __init__(
        self,
        *,
        violations: _abc.Iterable[_google.QuotaFailure.Violation] | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.NoReturn) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["violations"]) -> None: ...
    def WhichOneof(self, oneof_group: _t.NoReturn) -> None: ...

class PreconditionFailure(_message.Message):
    DESCRIPTOR: _descriptor.Descriptor

    class Violation(_message.Message):
        DESCRIPTOR: _descriptor.Descriptor
        TYPE_FIELD_NUMBER: _t.Final = 1
        SUBJECT_FIELD_NUMBER: _t.Final = 2
        DESCRIPTION_FIELD_NUMBER: _t.Final = 3
        type: _b.str
        subject: _b.str
        description: _b.str
        def __init__(
            self,
            *,
            type: _b.str | None = ...,
            subject: _b.str | None = ...,
            description: _b.str | None = ...,
        ) -> None: ...
        def HasField(self, field_name: _t.NoReturn) -> _b.bool: ...
        def ClearField(self, field_name: _t.Literal["type", "subject", "description"]) -> None: ...
        def WhichOneof(self, oneof_group: _t.NoReturn) -> None: ...
    VIOLATIONS_FIELD_NUMBER: _t.Final = 1
    @_b.property
    def violations(self) -> _containers.RepeatedCompositeFieldContainer[_google.PreconditionFailure.Violation]:
        ...
    def __init__(
        self,
        *,
        violations: _abc.Iterable[_google.PreconditionFailure.Violation] | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.NoReturn) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["violations"]) -> None: ...
    def WhichOneof(self, oneof_group: _t.NoReturn) -> None: ...

class BadRequest(_message.Message):
    DESCRIPTOR: _descriptor.Descriptor

    class FieldViolation(_message.Message):
        DESCRIPTOR: _descriptor.Descriptor
        FIELD_FIELD_NUMBER: _t.Final = 1
        DESCRIPTION_FIELD_NUMBER: _t.Final = 2
        REASON_FIELD_NUMBER: _t.Final = 3
        LOCALIZED_MESSAGE_FIELD_NUMBER: _t.Final = 4
        field: _b.str
        description: _b.str
        reason: _b.str
        @_b.property
        def localized_message(self) -> _google.LocalizedMessage:
            ...
        def __init__(
            self,
            *,
            field: _b.str | None = ...,
            description: _b.str | None = ...,
            reason: _b.str | None = ...,
            localized_message: _google.LocalizedMessage | None = ...,
        ) -> None: ...
        def HasField(self, field_name: _t.Literal["localized_message"]) -> _b.bool: ...
        def ClearField(self, field_name: _t.Literal["field", "description", "reason", "localized_message"]) -> None: ...
        def WhichOneof(self, oneof_group: _t.NoReturn) -> None: ...
    FIELD_VIOLATIONS_FIELD_NUMBER: _t.Final = 1
    @_b.property
    def field_violations(self) -> _containers.RepeatedCompositeFieldContainer[_google.BadRequest.FieldViolation]:
        ...
    def __init__(
        self,
        *,
        field_violations: _abc.Iterable[_google.BadRequest.FieldViolation] | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.NoReturn) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["field_violations"]) -> None: ...
    def WhichOneof(self, oneof_group: _t.NoReturn) -> None: ...

class RequestInfo(_message.Message):
    DESCRIPTOR: _descriptor.Descriptor
    REQUEST_ID_FIELD_NUMBER: _t.Final = 1
    SERVING_DATA_FIELD_NUMBER: _t.Final = 2
    request_id: _b.str
    serving_data: _b.str
    def __init__(
        self,
        *,
        request_id: _b.str | None = ...,
        serving_data: _b.str | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.NoReturn) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["request_id", "serving_data"]) -> None: ...
    def WhichOneof(self, oneof_group: _t.NoReturn) -> None: ...

class ResourceInfo(_message.Message):
    DESCRIPTOR: _descriptor.Descriptor
    RESOURCE_TYPE_FIELD_NUMBER: _t.Final = 1
    RESOURCE_NAME_FIELD_NUMBER: _t.Final = 2
    OWNER_FIELD_NUMBER: _t.Final = 3
    DESCRIPTION_FIELD_NUMBER: _t.Final = 4
    resource_type: _b.str
    resource_name: _b.str
    owner: _b.str
    description: _b.str
    def __init__(
        self,
        *,
        resource_type: _b.str | None = ...,
        resource_name: _b.str | None = ...,
        owner: _b.str | None = ...,
        description: _b.str | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.NoReturn) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["resource_type", "resource_name", "owner", "description"]) -> None: ...
    def WhichOneof(self, oneof_group: _t.NoReturn) -> None: ...

class Help(_message.Message):
    DESCRIPTOR: _descriptor.Descriptor

    class Link(_message.Message):
        DESCRIPTOR: _descriptor.Descriptor
        DESCRIPTION_FIELD_NUMBER: _t.Final = 1
        URL_FIELD_NUMBER: _t.Final = 2
        description: _b.str
        url: _b.str
        def __init__(
            self,
            *,
            description: _b.str | None = ...,
            url: _b.str | None = ...,
        ) -> None: ...
        def HasField(self, field_name: _t.NoReturn) -> _b.bool: ...
        def ClearField(self, field_name: _t.Literal["description", "url"]) -> None: ...
        def WhichOneof(self, oneof_group: _t.NoReturn) -> None: ...
    LINKS_FIELD_NUMBER: _t.Final = 1
    @_b.property
    def links(self) -> _containers.RepeatedCompositeFieldContainer[_google.Help.Link]:
        ...
    def __init__(
        self,
        *,
        links: _abc.Iterable[_google.Help.Link] | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.NoReturn) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["links"]) -> None: ...
    def WhichOneof(self, oneof_group: _t.NoReturn) -> None: ...

class LocalizedMessage(_message.Message):
    DESCRIPTOR: _descriptor.Descriptor
    LOCALE_FIELD_NUMBER: _t.Final = 1
    MESSAGE_FIELD_NUMBER: _t.Final = 2
    locale: _b.str
    message: _b.str
    def __init__(
        self,
        *,
        locale: _b.str | None = ...,
        message: _b.str | None = ...,
    ) -> None: ...
    def HasField(self, field_name: _t.NoReturn) -> _b.bool: ...
    def ClearField(self, field_name: _t.Literal["locale", "message"]) -> None: ...
    def WhichOneof(self, oneof_group: _t.NoReturn) -> None: ...
