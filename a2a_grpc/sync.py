"""The one bridge from scripts that do not use asyncio: `with blocking(Client(url)) as agent: agent.get(task_id)`.

Laws: there are no twins of anything: an object of the event loop is seen through a window in which what is awaited is
waited for, `async with` is `with` and `async for` is `for`. The loop runs in a thread of its own until the block ends.
"""

import asyncio
import inspect
import threading
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from typing import Any

from a2a_grpc.client import Client, Events
from a2a_grpc.remote import RemoteAgent, Run
from a2a_grpc.tasks.invoke import Blocking


class _Window(Blocking):
    _WRAPPED = (Client, Events, RemoteAgent, Run, AsyncGenerator)

    def _wait(self, work: Any) -> Any:
        async def waited() -> Any:
            return await work

        if self._loop.is_closed():
            if inspect.iscoroutine(work):
                work.close()
            raise RuntimeError("its block has ended, and its connections with it: call inside `with blocking(...)`")
        running = asyncio.run_coroutine_threadsafe(waited(), self._loop)
        try:
            return running.result()
        except BaseException:  # Ctrl-C above all
            running.cancel()
            raise


@contextmanager
def blocking(target: Client | RemoteAgent) -> Iterator[Any]:
    """A Client or RemoteAgent, connected, whose methods wait: no `await`, `with` for `async with`, `for` for
    `async for`. The names are the same. Raises what they raise. Not to be used where an event loop runs: there
    everybody would have to wait, so it raises RuntimeError."""
    if asyncio._get_running_loop() is not None:
        raise RuntimeError("an event loop runs here: use `async with` and `await`")
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="a2a-blocking", daemon=True)
    thread.start()
    try:
        with _Window(target, loop) as window:
            yield window
    finally:
        asyncio.run_coroutine_threadsafe(_tidy(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _tidy() -> None:
    """End what is left in the loop."""
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)
    await asyncio.get_running_loop().shutdown_asyncgens()
