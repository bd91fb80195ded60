"""The view for operators: what goes on in a server, as JSON over HTTP, on ports and unix sockets of its own, and what
Prometheus reads.

Laws: it shows and changes nothing. It is on no port where callers are, but for `/metrics` if an option says so. Only
who reaches its address sees it; a web page that was led there by a name of its own is refused. A unix socket is for
its owner alone.
"""

import asyncio
import errno
import logging
import os
import socket
import stat
from contextlib import suppress
from ipaddress import ip_address
from typing import Any, Final

from aiohttp import web

from a2a_grpc.admin_views import MEASURES, VIEWS, Measure
from a2a_grpc.bindings.browsers import host_name, is_address
from a2a_grpc.bindings.mounts import CardReader
from a2a_grpc.bindings.wire import HttpReply, HttpRequest
from a2a_grpc.config import Options
from a2a_grpc.protojson import dumps
from a2a_grpc.python310_asyncio import timeout
from a2a_grpc.tasks.store import Counts
from a2a_grpc.telemetry_parts import Off

METRICS: Final = "/metrics"
ALL: Final = "/"
"""Where every view is, by name."""

COUNT_SECONDS: Final = 15.0
"""How old what the store counted may be when measures are sent without being asked for."""

PATIENCE: Final = 3.0
"""Seconds that the store may take to answer for a view or for measures."""

NOTHING: Final = {"error": "the store does not answer; the log says more"}
"""A view that cannot be shown."""

TRIES: Final = 256
"""How many ports or paths a worker looks at for a free one."""

_UNIX: Final = "unix:"

log: Final = logging.getLogger("a2a_grpc")


class Admin:
    """The view of one server. server: what is looked at; it is asked for nothing but what is public.

    addresses: `host:port` and `unix:PATH` as bound, none before `start`. public: pages for the HTTP port.
    """

    def __init__(self, server: Any, options: Options, telemetry: Off) -> None:
        self._server, self._options = server, options
        self._recorder = telemetry.recorder
        self._counts = Counts(0, 0, 0, 0)
        self._runner: web.ServerRunner | None = None
        self._counter: asyncio.Task[None] | None = None
        self.addresses: list[str] = []
        self.public: dict[str, CardReader] = {METRICS: self._metrics} if options.metrics == "http" else {}
        if self._recorder is not None:
            for measure in MEASURES:
                self._observe(measure)

    def _observe(self, row: Measure) -> None:
        assert self._recorder is not None
        values = lambda: row.read(self._server, self._counts)  # noqa: E731
        self._recorder.observe(row.name, row.unit, row.meaning, values, grows=row.grows)

    async def start(self) -> None:
        """Open the addresses; the store must be open. Raises OSError."""
        if self._options.telemetry:
            self._counter = asyncio.create_task(self._keep_counting(), name="counts for measures")
        if not self._options.admin:
            return
        self._runner = web.ServerRunner(web.Server(self._answer, access_log=None), shutdown_timeout=0.1)
        await self._runner.setup()
        for address in self._options.admin:
            tries = TRIES if self._options.reuse_port else 1  # which says that there are others like this one
            for number in range(tries):
                try:
                    self.addresses.append(await self._open(self._runner, address, number))
                    break
                except OSError:
                    if number + 1 == tries:
                        await self.stop()
                        raise

    async def _open(self, runner: web.ServerRunner, address: str, number: int) -> str:
        if address.startswith(_UNIX):
            path = address.removeprefix(_UNIX) + f".{number}" * (number > 0)
            await web.SockSite(runner, _unix(path)).start()
            return _UNIX + path
        host, _, port = address.rpartition(":")
        if not _is_local(host.strip("[]")):
            log.warning("the view for operators at %s is seen by everybody who reaches that address", address)
        wanted = int(port) + number * (port != "0")
        site = web.TCPSite(runner, host.strip("[]"), wanted)
        await site.start()
        return f"{host}:{runner.addresses[-1][1] if port == '0' else wanted}"

    async def stop(self) -> None:
        """Close what is open."""
        if self._counter is not None:
            self._counter.cancel()
        runner, self._runner, self._counter = self._runner, None, None
        if runner is not None:
            await runner.cleanup()
        for address in self.addresses:
            if address.startswith(_UNIX):
                with suppress(OSError):
                    os.unlink(address.removeprefix(_UNIX))
        self.addresses.clear()

    async def _keep_counting(self) -> None:
        while True:
            await self._count()
            await asyncio.sleep(COUNT_SECONDS)

    async def _count(self) -> None:
        """Ask the store; without an answer the last one stands, as the other measures are wanted most then."""
        with suppress(Exception):
            async with timeout(PATIENCE):
                self._counts = await self._server.store.counts(self._server.store.now_ms())

    # -- requests

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        if not _is_ours(request, self._options.admin):
            return _json({"error": "reach this view by its address"}, 403)
        if request.method not in ("GET", "HEAD"):
            return _json({"error": "there is nothing to change here"}, 405)
        path = request.path
        if path == METRICS and self._options.metrics == "admin":
            asked = HttpRequest(request.method, path, headers={"accept": request.headers.get("Accept", "")})
            reply = await self._metrics(asked, "")
            return web.Response(status=reply.status, headers=reply.headers, body=reply.body)
        if path == ALL:
            return _json({name: await self._view(name) for name in VIEWS})
        name = path.removeprefix("/")
        if name not in VIEWS:
            return _json({"error": "no such view", "views": list(VIEWS)}, 404)
        shown = await self._view(name)
        return _json(shown, 503 if shown == NOTHING else 200)

    async def _view(self, name: str) -> Any:
        try:
            async with timeout(PATIENCE):
                return await VIEWS[name](self._server)
        except Exception:
            log.exception("the view %s cannot be shown", name)
            return NOTHING

    async def _metrics(self, request: HttpRequest, _: str) -> HttpReply:
        if request.verb not in ("GET", "HEAD"):
            return HttpReply(405, {"allow": "GET, HEAD"}, b"")
        text = self._recorder and self._recorder.text
        if not text:
            return HttpReply(404, {}, b"")
        await self._count()
        media, body = text(request.headers.get("accept", ""))
        return HttpReply(200, {"content-type": media}, body)


def _json(value: Any, status: int = 200) -> web.Response:
    headers = {"Content-Type": "application/json", "Cache-Control": "no-store"}
    return web.Response(status=status, body=dumps(value) + b"\n", headers=headers)


def _is_ours(request: web.BaseRequest, admin: tuple[str, ...]) -> bool:
    """Whether a request was made for this address: a web page may have a name that leads here, but cannot lie about it.
    No web page reaches a unix socket."""
    if request.transport is None or not isinstance(request.transport.get_extra_info("sockname"), tuple):
        return True
    host = host_name(request.host)
    return is_address(host) or host in {"localhost", *map(host_name, admin)}


def _is_local(host: str) -> bool:
    with suppress(ValueError):
        return ip_address(host).is_loopback
    return host == "localhost"


def _unix(path: str) -> socket.socket:
    """A socket at a path, for its owner alone; what an earlier process has left there goes."""
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with suppress(FileNotFoundError, ConnectionRefusedError), socket.socket(socket.AF_UNIX) as probe:
            probe.connect(path)
            raise FileExistsError(errno.EADDRINUSE, "somebody answers there", path)
        with suppress(FileNotFoundError):
            if stat.S_ISSOCK(os.stat(path).st_mode):
                os.unlink(path)
        before = os.umask(0o177)
        try:
            made.bind(path)
        finally:
            os.umask(before)
    except OSError as fault:
        made.close()
        if fault.filename:
            raise
        raise OSError(fault.errno or errno.EINVAL, fault.strerror or str(fault), path) from None
    return made
