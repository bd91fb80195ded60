"""Running an author's function, whatever kind of function it is.

Laws: an async function runs in the event loop, a plain one in a thread of its own, where the handle works without
`await` (BL-17). A plain function may turn out to be the wrapper of an async one; what it gives back then runs in the
event loop, where the same handle works with `await`. Nothing is known of tasks here. Threads do not keep the process
alive, and nothing that a thread raises ends it.
"""

import asyncio
import contextvars
import inspect
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from contextlib import aclosing, suppress
from types import TracebackType, coroutine
from typing import Any

from a2a_grpc.agent import Handler, Kind
from a2a_grpc.python310 import Self
from a2a_grpc.python310_asyncio import EAGER, Task
from a2a_grpc.tasks.context import Context, Memory
from a2a_grpc.tasks.handle import Output, TaskHandle, Waiting
from a2a_grpc.tasks.inbox import Inbox


def at_once(work: Coroutine[Any, Any, None], loop: asyncio.AbstractEventLoop, name: str) -> asyncio.Task[None]:
    """Let the loop do `work`, at once up to its first pause, which costs a fifth less if it never pauses. Before
    Python 3.12 it begins in the next turn of the loop."""
    return Task(work, loop=loop, name=name, **EAGER)


@coroutine
def begun(work: Coroutine[Any, Any, None], paused: Callable[[], None]) -> Generator[Any, None, None]:
    """Run `work` to its end; `paused` is called once, when it waits for the first time."""
    try:
        waits = work.send(None)
        paused()
        while True:
            try:
                yield waits
            except BaseException as fault:
                waits = work.throw(fault)
            else:
                yield from work
                return
    except StopIteration:
        return


async def invoke(handler: Handler, handle: TaskHandle, strays: set[object]) -> None:
    """Run the function to its end; what it returns or yields goes into one artifact.

    strays: holds the function's thread while it goes on although the wait for it was canceled.
    """
    function = handler.function
    if handler.kind is Kind.PLAIN_STREAM:
        await _drain(handle, function, strays)
        return
    if handler.kind is Kind.COROUTINE:
        result = await function(handle)
    elif handler.kind is Kind.STREAM:
        result = function(handle)
    else:
        blocking = Blocking(handle, asyncio.get_running_loop())
        result = await in_thread(lambda: function(blocking), strays)
        if inspect.isawaitable(result):
            result = await result
    if result is None:
        return
    if handler.kind is Kind.STREAM or inspect.isasyncgen(result):
        await _write_all(handle.artifact(), result)
    else:
        await handle.add_artifact(result)


async def _drain(handle: TaskHandle, function: Callable[..., Any], strays: set[object]) -> None:
    out, loop = handle.artifact(), asyncio.get_running_loop()

    def drain() -> None:
        put = Blocking(out, loop).write
        values = function(Blocking(handle, loop))
        try:
            for value in values:
                if value is not None:
                    put(value)
        finally:
            values.close()

    await in_thread(drain, strays)
    await out.close()


async def _write_all(out: Output, values: AsyncGenerator[Any, Any]) -> None:
    async with aclosing(values):
        async for value in values:
            if value is not None:
                await out.write(value)
    await out.close()


async def in_thread(function: Callable[[], Any], strays: set[object] | None = None) -> Any:
    """What the function returns or raises, run in a thread of its own with a copy of the context variables. Canceling
    the wait leaves the thread alone, among the strays (if given) until it ends. What would end a loop or a process is
    raised as a RuntimeError."""
    left = set() if strays is None else strays
    loop, context = asyncio.get_running_loop(), contextvars.copy_context()
    done: asyncio.Future[Any] = loop.create_future()

    def settle(result: Any, fault: BaseException | None) -> None:
        left.discard(thread)
        if done.done():
            return
        if fault is None:
            done.set_result(result)
        else:
            done.set_exception(fault)

    def body() -> None:
        result: Any = None
        fault: BaseException | None = None
        try:
            result = context.run(function)
        except BaseException as raised:
            fault = raised
            if not isinstance(raised, Exception) or isinstance(raised, StopIteration):  # which no future can carry
                fault = RuntimeError(f"the function raised {type(raised).__name__}")
                fault.__cause__ = raised
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(settle, result, fault)

    thread = threading.Thread(target=body, daemon=True, name="a2a-function")
    thread.start()
    try:
        return await done
    finally:
        if done.cancelled():
            left.add(thread)


class Blocking:
    """An object of the event loop as a plain function in a thread sees it: what is awaited there is waited for here,
    `async with` is `with`, `async for` is `for`. In the event loop itself it is the object as it is: there nobody may
    wait, or everybody would."""

    _WRAPPED: tuple[type, ...] = (TaskHandle, Output, Waiting, Context, Memory, Inbox)

    def __init__(self, target: Any, loop: asyncio.AbstractEventLoop) -> None:
        self._target = target
        self._loop = loop

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._target, name)
        return value if asyncio._get_running_loop() is self._loop else self._wrap(value)

    def _wrap(self, value: Any) -> Any:
        if inspect.iscoroutinefunction(value):
            return lambda *args, **named: self._wrap(self._wait(value(*args, **named)))
        if inspect.ismethod(value):
            return lambda *args, **named: self._wrap(value(*args, **named))
        return type(self)(value, self._loop) if isinstance(value, self._WRAPPED) else value

    def _wait(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def __enter__(self) -> Self:
        self._wait(self._target.__aenter__())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._wait(self._target.__aexit__(kind, fault, trace))

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        try:
            return self._wait(self._target.__anext__())
        except StopAsyncIteration:
            raise StopIteration from None
