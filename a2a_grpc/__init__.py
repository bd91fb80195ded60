"""A2A servers: one agent function behind gRPC, JSON-RPC and REST, in protocol v1.0 and v0.3.

Laws: the public face and nothing else. What an author of an agent needs is here at once; what runs it is loaded when
it is first asked for, so that `import a2a_grpc` stays light.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from a2a_grpc.agent import Agent, Extension, Failed, Rejected, Skill, TaskHandle
from a2a_grpc.call import Call, Caller, Interceptor
from a2a_grpc.config import OptionError, Options
from a2a_grpc.errors import A2AError

if TYPE_CHECKING:
    from a2a_grpc.client import Client
    from a2a_grpc.gateway import Upstream
    from a2a_grpc.remote import RemoteAgent
    from a2a_grpc.server import Server
    from a2a_grpc.sync import blocking
    from a2a_grpc.tasks.memory import MemoryStore
    from a2a_grpc.tasks.sqlite import SQLiteStore
    from a2a_grpc.tasks.store import Store, StoreBusy

__version__: Final = "0.1.0"

__all__ = [
    "A2AError",
    "Agent",
    "Call",
    "Caller",
    "Client",
    "Extension",
    "Failed",
    "Interceptor",
    "MemoryStore",
    "OptionError",
    "Options",
    "Rejected",
    "RemoteAgent",
    "SQLiteStore",
    "Server",
    "Skill",
    "Store",
    "StoreBusy",
    "TaskHandle",
    "Upstream",
    "blocking",
]

_LATER: Final = {
    "Client": "a2a_grpc.client",
    "MemoryStore": "a2a_grpc.tasks.memory",
    "RemoteAgent": "a2a_grpc.remote",
    "SQLiteStore": "a2a_grpc.tasks.sqlite",
    "Server": "a2a_grpc.server",
    "Store": "a2a_grpc.tasks.store",
    "StoreBusy": "a2a_grpc.tasks.store",
    "Upstream": "a2a_grpc.gateway",
    "blocking": "a2a_grpc.sync",
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_LATER[name]), name)
