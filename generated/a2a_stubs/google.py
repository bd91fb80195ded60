"""Types of google.protobuf and google.rpc. Made by proto/generate.py; do not edit."""

from a2a_stubs import descriptors as _descriptors

Any = _descriptors.message("google.protobuf.Any", __name__)
Duration = _descriptors.message("google.protobuf.Duration", __name__)
Empty = _descriptors.message("google.protobuf.Empty", __name__)
NullValue = _descriptors.enum("google.protobuf.NullValue")
NULL_VALUE = 0
Struct = _descriptors.message("google.protobuf.Struct", __name__)
Value = _descriptors.message("google.protobuf.Value", __name__)
ListValue = _descriptors.message("google.protobuf.ListValue", __name__)
Timestamp = _descriptors.message("google.protobuf.Timestamp", __name__)
Status = _descriptors.message("google.rpc.Status", __name__)
ErrorInfo = _descriptors.message("google.rpc.ErrorInfo", __name__)
RetryInfo = _descriptors.message("google.rpc.RetryInfo", __name__)
DebugInfo = _descriptors.message("google.rpc.DebugInfo", __name__)
QuotaFailure = _descriptors.message("google.rpc.QuotaFailure", __name__)
PreconditionFailure = _descriptors.message("google.rpc.PreconditionFailure", __name__)
BadRequest = _descriptors.message("google.rpc.BadRequest", __name__)
RequestInfo = _descriptors.message("google.rpc.RequestInfo", __name__)
ResourceInfo = _descriptors.message("google.rpc.ResourceInfo", __name__)
Help = _descriptors.message("google.rpc.Help", __name__)
LocalizedMessage = _descriptors.message("google.rpc.LocalizedMessage", __name__)
