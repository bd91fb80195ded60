"""The way of a gateway to its upstream: the client, an eye on whether anybody is there, and the calls under way.

Laws: whatever goes wrong with one look, the next is taken; who watches never leaves before it is told to. What callers
read says nothing of the way, the log does. What the upstream means, and what its card is made of, is not known here.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final
from urllib.parse import urlsplit

from a2a_stubs import v1

from a2a_grpc.bindings.streams import LAST_WORDS, Running
from a2a_grpc.client import SCHEMES, Client
from a2a_grpc.client_dial import spoken
from a2a_grpc.client_wires import GrpcWire
from a2a_grpc.errors import STOPPING, A2AError, UnavailableError, VersionNotSupportedError, scrubbed
from a2a_grpc.python310_asyncio import cancelling, timeout, uncancel

log: Final = logging.getLogger("a2a_grpc.gateway")

UNREACHABLE: Final = "The agent behind this gateway is not available"
"""What callers read when there is no way to the upstream; the log says more."""

LOOK_SECONDS: Final = 5.0
"""Time between two looks at the upstream, and the longest that one may take."""

EXPECTED: Final = (A2AError, OSError, TimeoutError)
"""What a look may end with while the upstream is away; anything else is a fault of somebody's, and told with its place
in the code."""


class Way:
    """The way to one upstream.

    url: what Client takes; versions: those to ask for, in this order; settings: of Client; learn: told each card that
    is found, None where there is none. Raises ValueError for what is no address.
    """

    def __init__(
        self,
        url: str,
        versions: Sequence[str],
        settings: Mapping[str, Any],
        learn: Callable[[v1.AgentCard | None], None],
    ) -> None:
        if (scheme := urlsplit(url).scheme) not in SCHEMES:
            raise ValueError(f"{scheme!r} of {scrubbed(url)!r} is none of {', '.join(SCHEMES)}")
        self._url, self._versions, self._learn = url, versions, learn
        self.settings: Final = settings
        """What every client of the upstream is made with."""
        self._client: Client | None = None
        self._clients: dict[str, Client] = {}
        self._connecting = asyncio.Lock()
        self._watcher: asyncio.Task[None] | None = None
        self._running = Running()
        self._told = ""
        self._stopping = False
        self.waiting: set[asyncio.Task[Any]] = set()
        """Those that wait for the upstream just now."""
        self.up = False
        """Whether the upstream could be reached at the last look."""
        self.over = False
        """Whether calls have no more time."""

    # -- life

    async def open(self) -> None:
        """Look for the upstream, now and then again every few seconds; it need not be there yet."""
        self._stopping = self.over = False
        await self._look()
        self._watcher = asyncio.create_task(self._watch())

    async def end(self, grace: float) -> None:
        """Take no more calls, and cut off those that are left after `grace` seconds."""
        self._stopping = True
        await self._running.idle(grace)
        self.over = True
        for task in self.waiting:
            task.cancel()
        await self._running.idle(LAST_WORDS)
        if self._watcher is not None:
            self._watcher.cancel()
            with suppress(asyncio.CancelledError):
                await self._watcher

    async def close(self) -> None:
        """Let go of the upstream; it may be opened again."""
        clients, self._clients = [*self._clients.values()], {}
        self._client, self._watcher, self._told, self.up = None, None, "", False
        for client in clients:
            await client.close()

    async def connected(self) -> Client:
        """The client of the upstream, whose card is known from then on. Raises UnavailableError."""
        if self._stopping:
            raise UnavailableError(STOPPING)
        if self._client is None:
            async with self._connecting:
                if self._client is None:
                    try:
                        async with timeout(LOOK_SECONDS):
                            client = await self._dial()
                    except EXPECTED as fault:
                        raise UnavailableError(UNREACHABLE) from fault
                    self._learn(client.card)
                    self._client = self._clients[spoken(client.interface)] = client
        return self._client

    async def _dial(self) -> Client:
        *first, last = self._versions
        for version in first:
            with suppress(VersionNotSupportedError):
                return await Client.connect(self._url, version=version, **self.settings)
        return await Client.connect(self._url, version=last, **self.settings)

    async def _informed(self, version: str) -> Client:
        """The client that speaks a version, with the card as it is now. One of each version is kept to the end: calls
        that were begun in the other go on as they can."""
        client = self._clients.get(version)
        if client is None:
            client = self._clients[version] = await Client.connect(self._url, version=version, **self.settings)
        else:
            await client.refresh_card(force=True)
        return client

    # -- an eye on it

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            await self._look()

    async def _look(self) -> None:
        """Find out whether the upstream is there, and whether its card is still the same."""
        looking = asyncio.current_task()
        asked = cancelling(looking) if looking else 0
        try:
            async with timeout(LOOK_SECONDS):
                if self._client is not None and self._url.startswith("http"):
                    async with await self._dial() as fresh:
                        self._learn(fresh.card)
                        if fresh.card != self._client.card:
                            self._client = await self._informed(spoken(fresh.interface))
                carrier = (await self.connected()).wire
                if isinstance(carrier, GrpcWire):
                    await carrier.check()
        except asyncio.CancelledError as fault:
            if looking is None or cancelling(looking) > asked:
                raise
            self._turn(fault)  # a connection that was closed meanwhile ends its calls so
        except Exception as fault:
            self._turn(fault)
        else:
            self._turn(None)

    def _turn(self, fault: BaseException | None) -> None:
        """Remember how a look has ended, and tell what is new. fault: why the upstream is not there."""
        was, self.up = self.up, fault is None
        told, self._told = self._told, "" if fault is None else "away"
        if fault is None:
            if not was:
                log.info("the upstream %s answers", scrubbed(self._url))
        elif not isinstance(fault, EXPECTED):
            self._told = type(fault).__name__
            if told != self._told:
                log.error("a look at the upstream %s failed", scrubbed(self._url), exc_info=fault)
        elif told != self._told:
            why = scrubbed(fault.__cause__ or fault) or f"nobody has answered in {LOOK_SECONDS:g} seconds"
            log.warning("the upstream %s cannot be reached: %s", scrubbed(self._url), why)

    # -- calls

    @contextmanager
    def under_way(self) -> Iterator["asyncio.Task[Any]"]:
        """Around a call upstream: it is waited for at the end, and its failure does not tell the way."""
        task = asyncio.current_task()
        assert task is not None
        self._running.enter()
        self.waiting.add(task)
        try:
            yield task
        except UnavailableError as fault:
            log.info("a call to the upstream %s failed: %s", scrubbed(self._url), fault.message)
            text = STOPPING if self._stopping else UNREACHABLE
            raise UnavailableError(text, metadata=fault.metadata, retry_after=fault.retry_after) from fault
        except asyncio.CancelledError:
            if not self.over or uncancel(task):  # the caller has left
                raise
            raise UnavailableError(STOPPING) from None
        finally:
            self.waiting.discard(task)
            self._running.leave()
