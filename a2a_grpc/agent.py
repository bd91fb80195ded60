"""What an author writes: an agent, its skills, and the function that does the work.

Laws: an Agent is a description and a function; it knows no engine, no store and no wire, and nothing happens when it
is made. Wrong descriptions are refused when the object is made, with the name of the field.
"""

import inspect
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from types import CodeType
from typing import Any, Final, NamedTuple, TypeVar, overload

from a2a_stubs import v1

from a2a_grpc.call import Call
from a2a_grpc.tasks.handle import Output, TaskHandle, TurnEnded

__all__ = [
    "Agent",
    "Extension",
    "Failed",
    "Handler",
    "Kind",
    "Output",
    "Rejected",
    "Skill",
    "TaskHandle",
    "TurnEnded",
]

DEFAULT_MODES: Final = ("text/plain", "application/json")

Function = TypeVar("Function", bound=Callable[..., Any])
ExtendedCard = v1.AgentCard | Callable[[Call], "v1.AgentCard | Awaitable[v1.AgentCard | None] | None"]


class Rejected(Exception):
    """Raise it to end the task as REJECTED; the text is shown to the caller."""


class Failed(Exception):
    """Raise it to end the task as FAILED; the text is shown to the caller. The text of any other exception is not."""


def _texts(owner: str, name: str, value: Any) -> tuple[str, ...]:
    if isinstance(value, str) or not all(isinstance(entry, str) and entry for entry in value):
        raise ValueError(f"{owner}: {name} must be a list of texts, not {value!r}")
    return tuple(value)


def _modes(owner: str, name: str, value: Any) -> tuple[str, ...]:
    modes = _texts(owner, name, value)
    if wrong := [mode for mode in modes if mode.count("/") != 1]:
        raise ValueError(f"{owner}: {name} holds {wrong[0]!r}, which is no media type")
    return modes


def _filled(owner: str, **texts: Any) -> None:
    for name, value in texts.items():
        if not isinstance(value, str) or not value.strip():
            raise ValueError(f"{owner}: {name} must be a text that is not empty")


@dataclass(frozen=True, slots=True)
class Skill:
    """One thing that an agent can do, as its card lists it (CARD-13).

    id, name: required. description: default the name. tags, examples: default none. input_modes, output_modes: media
    types; default those of the agent. Raises ValueError for wrong values.
    """

    id: str
    name: str
    description: str = ""
    tags: Sequence[str] = ()
    examples: Sequence[str] = ()
    input_modes: Sequence[str] = ()
    output_modes: Sequence[str] = ()

    def __post_init__(self) -> None:
        owner = f"Skill {self.id!r}"
        _filled(owner, id=self.id, name=self.name)
        object.__setattr__(self, "tags", _texts(owner, "tags", self.tags))
        object.__setattr__(self, "examples", _texts(owner, "examples", self.examples))
        object.__setattr__(self, "input_modes", _modes(owner, "input_modes", self.input_modes))
        object.__setattr__(self, "output_modes", _modes(owner, "output_modes", self.output_modes))


@dataclass(frozen=True, slots=True)
class Extension:
    """A protocol extension of an agent (EXT-01). uri: required. required: callers must declare it (EXT-06); default
    False. params: a JSON object for the card; default None. Raises ValueError for wrong values."""

    uri: str
    description: str = ""
    required: bool = False
    params: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        _filled("Extension", uri=self.uri)
        if not self.uri.isascii() or not self.uri.isprintable() or not {" ", ","}.isdisjoint(self.uri):
            raise ValueError(f"Extension: uri must be what callers can ask for in a header, not {self.uri!r}")


class Kind(Enum):
    """How the author's function is run."""

    COROUTINE = "async def"
    STREAM = "async def with yield"
    PLAIN = "def, in a thread"
    PLAIN_STREAM = "def with yield, in a thread"


class Handler(NamedTuple):
    """The author's function: what it is, how it is run, and whether it may reply without a task."""

    function: Callable[..., Any]
    kind: Kind
    replies: bool


@dataclass(kw_only=True, eq=False)
class Agent:
    """An agent: what its card says, and with `handle` what it does.

    name, description, version: required. skills: required, may be empty. provider_organization, provider_url: both or
    none; default none. documentation_url, icon_url: default None. default_input_modes, default_output_modes: media
    types; default text/plain and application/json. streaming: offer the streaming operations; default True.
    extensions: default none. extended_card: the card for authenticated callers, or a function (Call) -> card or None,
    plain or async; default None. tenants: names of the tenants served besides ""; default none.
    rerun_lost_turns: run a turn again whose server died, at most three times in all, instead of failing its task;
    default False. Raises ValueError for wrong values.
    """

    name: str
    description: str
    version: str
    skills: Sequence[Skill]
    provider_organization: str = ""
    provider_url: str = ""
    documentation_url: str | None = None
    icon_url: str | None = None
    default_input_modes: Sequence[str] = DEFAULT_MODES
    default_output_modes: Sequence[str] = DEFAULT_MODES
    streaming: bool = True
    extensions: Sequence[Extension] = ()
    extended_card: ExtendedCard | None = None
    tenants: Sequence[str] = ()
    rerun_lost_turns: bool = False
    _handler: Handler | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        owner = f"Agent {self.name!r}"
        _filled(owner, name=self.name, description=self.description, version=self.version)
        self.skills = _all_of(owner, "skills", self.skills, Skill)
        self.extensions = _all_of(owner, "extensions", self.extensions, Extension)
        for kind, names in (("skill id", [skill.id for skill in self.skills]), ("extension", self._uris())):
            if twice := {name for name in names if names.count(name) > 1}:
                raise ValueError(f"{owner}: {kind} {min(twice)!r} is given more than once")
        if bool(self.provider_organization) != bool(self.provider_url):
            raise ValueError(f"{owner}: provider_organization and provider_url go together; one of them is empty")
        self.default_input_modes = _modes(owner, "default_input_modes", self.default_input_modes)
        self.default_output_modes = _modes(owner, "default_output_modes", self.default_output_modes)
        self.tenants = _texts(owner, "tenants", self.tenants)

    def _uris(self) -> list[str]:
        return [extension.uri for extension in self.extensions]

    @overload
    def handle(self, function: Function) -> Function: ...
    @overload
    def handle(self, *, replies: bool | None = None) -> Callable[[Function], Function]: ...
    def handle(self, function: Any = None, *, replies: bool | None = None) -> Any:
        """Decorator: this function does the work; it is called with a TaskHandle for every turn.

        It may be a coroutine function, an async generator, or a plain function or generator, which run in a thread
        of their own. A returned value completes the task with one artifact; yielded values stream one artifact.
        replies: the function may answer with `task.reply`, so a task is made only when it does something else;
        default: whether its code mentions `reply`. Raises TypeError for what cannot be called with one argument,
        ValueError for a second function.
        """
        if function is None:
            return lambda given: self._set(given, replies)
        return self._set(function, replies)

    def _set(self, function: Any, replies: bool | None) -> Any:
        if not callable(function):
            raise TypeError(f"Agent {self.name!r}: {_named(function)} cannot be called")
        if not _takes_task(function):
            raise TypeError(f"Agent {self.name!r}: {_named(function)} must take one argument, the task")
        if self._handler is not None:
            raise ValueError(f"Agent {self.name!r} has a function already: {_named(self._handler.function)}")
        code = _unwrapped(function)
        self._handler = Handler(function, _kind(code), _mentions_reply(code) if replies is None else replies)
        return function

    @cached_property
    def handler(self) -> Handler:
        """The function and how it is run; raises ValueError if there is none yet."""
        if self._handler is None:
            raise ValueError(f"Agent {self.name!r} has no function: decorate one with @agent.handle")
        return self._handler


def _all_of(owner: str, name: str, value: Any, kind: type[Any]) -> tuple[Any, ...]:
    entries = tuple(value)
    if wrong := [entry for entry in entries if not isinstance(entry, kind)]:
        raise ValueError(f"{owner}: {name} must hold {kind.__name__} objects, not {wrong[0]!r}")
    return entries


def _named(function: Any) -> str:
    """A function as its author knows it."""
    return getattr(function, "__qualname__", "") or repr(function)


def _takes_task(function: Any) -> bool:
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # some that are not written in Python have none
        return True
    try:
        signature.bind(None)
    except TypeError:
        return False
    return True


def _unwrapped(function: Any) -> Any:
    """The function proper behind partials, wrappers, methods and callable objects."""
    while True:
        inner = getattr(function, "func", None) or getattr(function, "__wrapped__", None)
        if inner is None and not hasattr(function, "__code__") and not inspect.ismethod(function):
            inner = type(function).__call__
            inner = inner if hasattr(inner, "__code__") else None
        if inner is None:
            return function
        function = inner


def _kind(function: Any) -> Kind:
    if inspect.isasyncgenfunction(function):
        return Kind.STREAM
    if inspect.iscoroutinefunction(function):
        return Kind.COROUTINE
    return Kind.PLAIN_STREAM if inspect.isgeneratorfunction(function) else Kind.PLAIN


def _mentions_reply(function: Any) -> bool:
    code = getattr(function, "__code__", None)
    return code is not None and any("reply" in inner.co_names for inner in _codes(code))


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)
