"""What Python 3.10 lacks of asyncio; newer ones have it themselves, and pay nothing for this module.

Laws: on Python 3.11 and newer every name here is the standard library's own, so that this module can go when 3.10 does;
`EAGER` alone stays until 3.11 goes, too.
A timeout never swallows a cancel from outside: if one is under way, the task ends as canceled.

Tasks of 3.10 do not count how often they were asked to cancel. They are made to: those made by `Task`, all that a loop
makes once a server runs in it, and others from their first timeout on. Three things are less sure than with newer
ones:

- Other libraries cancel a task for timeouts of their own without taking that back. A CancelledError that comes from
  inside of a call (BL-29), of a task that has outlived such a timeout, ends the call without an answer; newer ones
  answer with an error.
- A cancel by a function that was taken from its task before that counted (`stop = task.cancel`) is not counted. If a
  timeout runs out before the task has ended, TimeoutError is raised.
- Of tasks that are older than the server, or made by somebody else's factory, every CancelledError passes for a cancel
  from outside.
"""

import asyncio
import sys
from typing import Any, Final

__all__ = ("EAGER", "Runner", "Task", "cancelling", "count_cancels", "timeout", "timeout_at", "uncancel")

EAGER: Final[dict[str, Any]] = {"eager_start": True} if sys.version_info >= (3, 12) else {}
"""What `Task` is given to begin its work at once, up to the first pause; before Python 3.12 it does so in the next turn
of the loop."""

if sys.version_info >= (3, 11):
    from asyncio import Runner, Task, timeout, timeout_at

    cancelling, uncancel = asyncio.Task.cancelling, asyncio.Task.uncancel

    def count_cancels(loop: asyncio.AbstractEventLoop) -> None:
        """Let the tasks that a loop makes from now on count how often they are asked to cancel, as they do."""

else:
    import weakref

    from backports.asyncio.runner import Runner
    from typing_extensions import Self

    class _Cancel:
        """In the place of a task's own `cancel`: cancels, and counts as tasks of Python 3.11 do.

        before: 1 if the task may have been asked before this was there, which can never be taken back."""

        def __init__(self, task: "asyncio.Task[Any]", before: int = 1) -> None:
            self._task = weakref.ref(task)
            self._asked = self._before = before

        def __call__(self, msg: Any = None) -> bool:
            task = self._task()
            if task is None or task.done():
                return False
            self._asked += 1
            return type(task).cancel(task, msg)

        def cancelling(self) -> int:
            return self._asked

        def uncancel(self) -> int:
            self._asked = max(self._before, self._asked - 1)
            return self._asked

    def _counts(task: Any) -> Any:
        """What counts for a task: itself, if Runner made it."""
        if hasattr(task, "uncancel"):
            return task
        if not isinstance(task.cancel, _Cancel):
            task.cancel = _Cancel(task)
        return task.cancel

    def cancelling(task: Any) -> int:
        """How many requests to cancel a task has had that were not taken back; at least 1 if some are not known."""
        return int(_counts(task).cancelling())

    def uncancel(task: Any) -> int:
        """Take one request to cancel a task back; how many are left."""
        return int(_counts(task).uncancel())

    def Task(work: Any, *, loop: asyncio.AbstractEventLoop, **more: Any) -> "asyncio.Task[Any]":
        """A task that counts from its beginning how often it is asked to cancel."""
        made: Any = asyncio.Task(work, loop=loop, **more)
        made.cancel = _Cancel(made, before=0)
        return made  # type: ignore[no-any-return]

    def count_cancels(loop: asyncio.AbstractEventLoop) -> None:
        """Let the tasks that a loop makes from now on count how often they are asked to cancel. Nothing if they are
        made by somebody else's factory."""
        if loop.get_task_factory() is None:
            loop.set_task_factory(lambda loop, work, **more: Task(work, loop=loop, **more))

    class Timeout:
        """What `timeout` gives: as asyncio.Timeout of Python 3.11."""

        def __init__(self, when: float | None) -> None:
            self._when = when
            self._timer: asyncio.Handle | None = None
            self._text = f"timeout {id(self):x}"
            self._expired = self._beside = False

        def when(self) -> float | None:
            """The time of the loop's clock at which it ends, None for never."""
            return self._when

        def expired(self) -> bool:
            """Whether the time was over before the block was."""
            return self._expired

        def reschedule(self, when: float | None) -> None:
            """Let it end at another time. Raises RuntimeError once it has expired."""
            if self._expired:
                raise RuntimeError("the timeout has expired")
            if self._timer is not None:
                self._timer.cancel()
            self._when, loop = when, asyncio.get_running_loop()
            if when is not None:
                late = when <= loop.time()
                self._timer = loop.call_soon(self._expire) if late else loop.call_at(when, self._expire)

        def _expire(self) -> None:
            self._expired = True
            self._beside = getattr(self._task, "_must_cancel", False)  # somebody else's request is on its way
            self._task.cancel(self._text)
            self._then = self._count.cancelling()

        async def __aenter__(self) -> Self:
            task = asyncio.current_task()
            if task is None:
                raise RuntimeError("a timeout needs a task")
            self._task, self._count = task, _counts(task)
            self._before = self._count.cancelling()
            self.reschedule(self._when)
            return self

        async def __aexit__(self, kind: object, fault: BaseException | None, _: object) -> None:
            if self._timer is not None:
                self._timer.cancel()
            if self._expired:
                beside = self._beside or self._count.cancelling() > self._then
                left = uncancel(self._task) > self._before and (beside or not self._began(fault))
                if kind is asyncio.CancelledError and not left:
                    raise TimeoutError from fault

        def _began(self, fault: BaseException | None) -> bool:
            """Whether a chain of cancellations began here. If not, an earlier one is still under way in the block. If
            so, earlier ones have come to nothing: timeouts of other libraries, which do not take them back."""
            first = fault
            while first is not None and isinstance(first.__context__, asyncio.CancelledError):
                first = first.__context__
            return first is not None and first.args == (self._text,)

    def timeout(delay: float | None) -> Timeout:
        """As asyncio.timeout of Python 3.11."""
        return Timeout(None if delay is None else asyncio.get_running_loop().time() + delay)

    timeout_at = Timeout
