"""Errors as v0.3 clients read them, on each wire.

Laws: the facts of an error are the columns of errors.py; here is only how v0.3 prints them. No I/O, no messages.
"""

from copy import copy
from typing import Any, Final

from a2a_stubs import v1, v1_grpc

from a2a_grpc import errors
from a2a_grpc.errors import A2AError, Violation
from a2a_grpc.v03_paths import renamed

_CARD_OPERATIONS: Final = frozenset(row.name for row in v1_grpc.METHODS if row.input is v1.GetExtendedAgentCardRequest)


def as_v03(error: A2AError, operation: str = "", dialect: str = "") -> A2AError:
    """The error as v0.3 knows it: a missing extended card is always ExtendedAgentCardNotConfigured (I-35).

    dialect: of a request that was understood and then refused as a v1.0 one; its fields get their v0.3 names (ERR-06).
    Default "": they have them.
    """
    if operation in _CARD_OPERATIONS and isinstance(error, errors.UnsupportedOperationError):
        return errors.ExtendedAgentCardNotConfiguredError()
    if not (dialect and error.violations):
        return error
    shown = copy(error)
    shown.violations = tuple(Violation(renamed(operation, field, dialect), text) for field, text in error.violations)
    shown.message = error.message.replace(" ".join(error.violations[0]), " ".join(shown.violations[0]))
    return shown


def _text(error: A2AError) -> str:
    """The message for v0.3 readers: the v0.3 default where the error says nothing of its own (V03-18)."""
    return error.v03_text if error.message == error.text and error.v03_text else error.message


def down_error(error: A2AError, operation: str = "", dialect: str = "") -> dict[str, Any]:
    """The JSON-RPC error object of v0.3: code, message, and the v1.0 details as `data` (part 11). dialect: see
    `as_v03`."""
    error = as_v03(error, operation, dialect)
    return {"code": error.jsonrpc, "message": _text(error), "data": error.details()}


def rest_error(error: A2AError, operation: str = "", profile: str = "1.0.1", dialect: str = "") -> dict[str, Any]:
    """The REST error body that every deployed v0.3 client reads: code, type, message and data at the top, and the
    v1.0 object under `error` (I-47, V03-25). profile: see errors.PROFILES; dialect: see `as_v03`."""
    error = as_v03(error, operation, dialect)
    grpc, http = error.status(profile)
    status = {"code": http, "status": grpc.name, "message": error.message, "details": error.details()}
    return {**down_error(error), "type": error.name, "error": status}


def grpc_text(error: A2AError) -> str:
    """The gRPC status text that v0.3 clients tell errors by: `TypeName: message`. error: as `as_v03` gave it."""
    return f"{error.name}: {_text(error)}"
