"""Timeouts and cancels: the same on every Python that is allowed, and a cancel from outside is never lost.

Laws: nothing here depends on the version but `foreign`, since other libraries take a cancel back where that exists.
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable

import pytest

from a2a_grpc.python310_asyncio import Runner, cancelling, count_cancels, timeout, timeout_at, uncancel

SOON, LONG = 0.02, 60.0


@pytest.fixture(params=["plain", "counted"])
def plan(request: pytest.FixtureRequest) -> str:
    """Whether tasks are made as the loop makes them, or as in a loop with a server."""
    return str(request.param)


async def outcome(work: Awaitable[object], plan: str, then: Callable[["asyncio.Task[object]"], object]) -> object:
    """How a task ends with which something is done once it waits: what it answers, "canceled", or what it raised."""
    if plan == "counted":
        count_cancels(asyncio.get_running_loop())
    task: asyncio.Task[object] = asyncio.get_running_loop().create_task(work)  # type: ignore[arg-type]
    for _ in range(3):
        await asyncio.sleep(0)
    then(task)
    await asyncio.wait((task,))
    if task.cancelled():
        return "canceled"
    return task.result() if task.exception() is None else type(task.exception())


def nothing(_: object) -> None:
    """Leave the task alone."""


def cancel(task: "asyncio.Task[object]") -> None:
    task.cancel()


def in_the_turn_of_the_timeout(order: str) -> Callable[["asyncio.Task[object]"], None]:
    """A cancel in the very turn of the loop in which a timeout ends: before it, or after it."""

    def act(task: "asyncio.Task[object]") -> None:
        scheduled = asyncio.get_running_loop()._scheduled  # type: ignore[attr-defined]
        timers = [timer for timer in scheduled if "Timeout" in repr(timer._callback)]
        first = min(timers, key=lambda timer: timer.when())
        ends = first._callback, task.cancel
        first.cancel()
        for end in ends if order == "after" else reversed(ends):
            end()

    return act


async def waiting() -> str:
    async with timeout(SOON):
        await asyncio.sleep(LONG)
    return "over"


async def waiting_in_tasks() -> None:
    async with timeout(SOON):
        await asyncio.gather(asyncio.wait_for(asyncio.create_task(asyncio.sleep(LONG)), LONG), asyncio.sleep(LONG))


async def waiting_for_a_condition() -> None:
    async with timeout(SOON), (condition := asyncio.Condition()):
        await condition.wait()


async def waiting_in_a_generator() -> None:
    async def told() -> object:
        try:
            yield 1
            await asyncio.sleep(LONG)
        finally:
            await asyncio.sleep(0)

    async with timeout(SOON):
        async for _ in told():  # type: ignore[attr-defined]
            pass


async def waiting_in_both() -> str:
    with pytest.raises(TimeoutError):
        async with timeout(SOON), timeout(LONG):
            await asyncio.sleep(LONG)
    return "outer"


async def waiting_in_both_that_end_together() -> str:
    end = asyncio.get_running_loop().time() + SOON
    with pytest.raises(TimeoutError):
        async with timeout_at(end):
            try:
                async with timeout_at(end):
                    await asyncio.sleep(LONG)
            except TimeoutError:
                return "inner"
    return "outer"


async def busy_past_its_end() -> None:
    async with timeout(0):
        pass
    async with timeout(SOON) as end:
        end.reschedule(asyncio.get_running_loop().time() - 1)
        await asyncio.sleep(LONG)


@pytest.mark.parametrize(
    "work",
    [
        waiting,
        waiting_in_tasks,
        waiting_for_a_condition,
        waiting_in_a_generator,
        busy_past_its_end,
    ],
)
@pytest.mark.requirement("BL-29")
async def test_what_takes_too_long_ends_with_timeout_error(work: Callable[[], Awaitable[object]], plan: str) -> None:
    assert await outcome(work(), plan, nothing) is TimeoutError


async def test_the_outer_of_two_timeouts_ends_what_is_in_both(plan: str) -> None:
    assert await outcome(waiting_in_both(), plan, nothing) == "outer"


async def test_of_two_timeouts_that_end_together_one_speaks(plan: str) -> None:
    assert await outcome(waiting_in_both_that_end_together(), plan, nothing) == "outer"


async def test_what_is_quick_enough_is_not_disturbed(plan: str) -> None:
    async def quick() -> tuple[str, int]:
        task = asyncio.current_task()
        assert task is not None
        before = cancelling(task)
        async with timeout(SOON) as end:
            end.reschedule(None)
            await asyncio.sleep(2 * SOON)
            assert end.when() is None and not end.expired()
        with pytest.raises(TimeoutError):
            async with timeout(SOON) as end:
                await asyncio.sleep(LONG)
        assert end.expired() and cancelling(task) == before
        with pytest.raises(RuntimeError):
            end.reschedule(None)
        await asyncio.sleep(0)
        return "done"

    assert await outcome(quick(), plan, nothing) == "done"


@pytest.mark.parametrize("work", [waiting, waiting_in_tasks, waiting_for_a_condition, waiting_in_a_generator])
@pytest.mark.requirement("BL-29")
async def test_a_cancel_from_outside_ends_what_has_a_timeout(work: Callable[[], Awaitable[object]], plan: str) -> None:
    assert await outcome(work(), plan, cancel) == "canceled"


@pytest.mark.parametrize("order", ["before", "after"])
@pytest.mark.parametrize("work", [waiting, waiting_in_tasks])
@pytest.mark.requirement("BL-29")
async def test_a_cancel_from_outside_wins_over_a_timeout_in_the_same_turn(
    work: Callable[[], Awaitable[object]], order: str, plan: str
) -> None:
    assert await outcome(work(), plan, in_the_turn_of_the_timeout(order)) == "canceled"


@pytest.mark.requirement("BL-29")
async def test_a_cancel_from_outside_wins_when_what_was_waited_for_has_come_as_well(plan: str) -> None:
    news = asyncio.get_running_loop().create_future()

    async def following() -> None:
        async with timeout(SOON):
            await news

    def act(task: "asyncio.Task[object]") -> None:
        news.set_result(None)
        in_the_turn_of_the_timeout("before")(task)

    assert await outcome(following(), plan, act) == "canceled"


@pytest.mark.requirement("BL-29")
async def test_a_cancel_from_outside_holds_although_its_cleaning_up_takes_too_long(plan: str) -> None:
    async def slow() -> None:
        async with timeout(SOON):
            try:
                await asyncio.sleep(LONG)
            finally:
                await asyncio.sleep(LONG)

    assert await outcome(slow(), plan, cancel) == "canceled"


@pytest.mark.requirement("BL-29")
async def test_a_cancel_from_outside_holds_while_a_timeout_is_cleaned_up_after(plan: str) -> None:
    async def slow() -> None:
        async with timeout(SOON):
            try:
                await asyncio.sleep(LONG)
            finally:
                late.set()
                await asyncio.sleep(LONG)

    async def leave(task: "asyncio.Task[object]") -> None:
        await late.wait()
        task.cancel()

    late = asyncio.Event()
    leaving: list[asyncio.Task[None]] = []
    assert await outcome(slow(), plan, lambda task: leaving.append(asyncio.create_task(leave(task)))) == "canceled"


async def foreign(seconds: float) -> None:
    """A timeout as other libraries have it: it cancels, and takes that back only where tasks count by themselves."""
    task, over = asyncio.current_task(), asyncio.Event()
    assert task is not None

    def end() -> None:
        over.set()
        task.cancel()

    timer = asyncio.get_running_loop().call_later(seconds, end)
    try:
        await asyncio.sleep(LONG)
    except asyncio.CancelledError:
        if not over.is_set():
            raise
        if sys.version_info >= (3, 11):
            task.uncancel()
    finally:
        timer.cancel()


@pytest.mark.requirement("BL-29")
async def test_timeouts_of_other_libraries_do_not_make_a_cancel_of_ours(plan: str) -> None:
    async def calls() -> None:
        async with timeout(None) as end:
            await foreign(0)
            end.reschedule(asyncio.get_running_loop().time() + SOON)
            await asyncio.shield(asyncio.create_task(asyncio.sleep(LONG)))

    assert await outcome(calls(), plan, nothing) is TimeoutError


async def test_tasks_of_a_loop_with_a_server_count_their_cancels() -> None:
    async def twice() -> int:
        task = asyncio.current_task()
        assert task is not None
        seen = [cancelling(task)]
        for _ in range(2):
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asyncio.sleep(LONG)
            seen.append(cancelling(task))
        seen += [uncancel(task), uncancel(task), uncancel(task)]
        return seen == [0, 1, 2, 1, 0, 0]

    assert await outcome(twice(), "counted", nothing) is True


def test_runs_of_one_runner_share_a_loop() -> None:
    async def loop() -> asyncio.AbstractEventLoop:
        return asyncio.get_running_loop()

    with Runner(loop_factory=asyncio.new_event_loop) as runner:
        first, second = runner.run(loop()), runner.run(loop())
    assert first is second and first.is_closed()
