"""Everything on one port by Envoy, with Python inside of it: the process that starts it and looks after it.

Laws: this process serves nothing. Envoy loads `envoy_app`, which makes what is served; the two talk by a socket that
only their user can reach. One signal stops gracefully: first what is served, then Envoy; a second one at once.
"""

import asyncio
import json
import os
import signal
import socket
import sys
import tempfile
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any, Final

import find_libpython
import pyvoy

from a2a_grpc.commands.words import UsageError
from a2a_grpc.config import OptionError, Options
from a2a_grpc.envoy_app import ENVIRONMENT
from a2a_grpc.server import STOP_SIGNALS
from a2a_grpc.telemetry_logs import SWITCH

THREADS: Final = 1
"""Threads in which Envoy reads and writes; Python is busy long before one of them."""

STREAMS: Final = 2**31 - 1
"""HTTP/2 streams of a connection; what is too many is said by `max_streams`."""

PING_TIMEOUT: Final = 20
"""Seconds until a peer that does not answer pings is given up."""

_FILTERS: Final = "filter_chains"


def run(options: Options, command: tuple[Any, Sequence[str]], report: Callable[[str], None]) -> int:
    """Serve until stopped; the result is the exit code. command: the `run` of a command's module, and its words;
    report: called in the event loop with what there is to say once everything answers.

    Raises OptionError: no way to Envoy here, UsageError: what is served cannot be; OSError for a port in use.
    """
    if find_libpython.find_libpython() is None:
        raise OptionError("engine envoy needs a Python with a shared library (libpython), which this one has not")
    host, _, port = options.http.rpartition(":")
    family, _, _, _, (address, *_) = socket.getaddrinfo(host.strip("[]") or "0.0.0.0", int(port))[0]
    if not options.reuse_port:
        socket.create_server((address, int(port)), family=family).close()
    return asyncio.run(_live(options, str(address), command, report))


class _Envoy(pyvoy.PyvoyServer):
    """Envoy with the settings of the options."""

    def __init__(self, options: Options, address: str, folder: Path, told: dict[str, Any]) -> None:
        given = {"tls_cert": options.tls_cert, "tls_key": options.tls_key, "tls_ca_cert": options.tls_client_ca}
        files: dict[str, Any] = {name: Path(file).absolute() for name, file in given.items() if file}
        super().__init__(
            "a2a_grpc.envoy_app:application",
            address=address,
            port=int(options.http.rpartition(":")[2]),
            lifespan=True,
            tls_enable_http3=False,
            additional_envoy_args=["--concurrency", str(THREADS), "--log-path", str(folder / "log")],
            env={ENVIRONMENT: json.dumps(told), "GRPC_VERBOSITY": "NONE"},
            stdout=None,
            stderr=None,
            **files,
        )
        self._options = options

    def get_envoy_config(self) -> dict[str, Any]:
        """The configuration: no end of silent streams, pings, and a port that is not shared unless it is to be."""
        found: dict[str, Any] = super().get_envoy_config()
        keepalive = self._options.keepalive
        pings = {"interval": f"{keepalive:.3f}s", "timeout": f"{PING_TIMEOUT}s"}
        for listener in found["static_resources"]["listeners"]:
            listener["enable_reuse_port"] = self._options.reuse_port
            manager = listener[_FILTERS][0]["filters"][-1]["typed_config"]
            manager["stream_idle_timeout"] = "0s"
            manager["http2_protocol_options"] = {"max_concurrent_streams": STREAMS} | (
                {"connection_keepalive": pings} if keepalive else {}
            )
        return found

    def kill(self) -> None:
        """End it at once."""
        if self._process is not None and self._process.returncode is None:
            self._process.kill()


class _Child:
    """What is served, at the other end of the socket."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    def tell(self, **words: Any) -> None:
        """Say something that is not answered."""
        self._writer.write(json.dumps(words).encode() + b"\n")

    async def ask(self, **words: Any) -> dict[str, Any]:
        """The answer to a question. Raises UsageError: why there is none."""
        self.tell(**words)
        line = await self._reader.readline()
        answer: dict[str, Any] = json.loads(line or b'{"failed": "Envoy has ended"}')
        if "failed" in answer:
            raise UsageError(answer["failed"])
        return answer


async def _live(options: Options, address: str, command: tuple[Any, Sequence[str]], report: Any) -> int:
    loop, stopping = asyncio.get_running_loop(), asyncio.Event()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        told = {"socket": str(folder / "talk"), "command": command[0].__module__, "words": list(command[1])}
        engine = _Envoy(options, address, folder, told)

        def stop(number: int) -> None:
            if stopping.is_set():
                engine.kill()
                signal.signal(number, signal.SIG_DFL)
                os.kill(os.getpid(), number)
            stopping.set()

        for number in STOP_SIGNALS:
            loop.add_signal_handler(number, stop, number)
        joined: asyncio.Future[_Child] = loop.create_future()
        loop.add_signal_handler(SWITCH, _switch, joined)
        talk = await asyncio.start_unix_server(lambda *pair: joined.set_result(_Child(*pair)), told["socket"])
        over = asyncio.ensure_future(stopping.wait())
        try:
            if not await _first(over, _begin(engine, joined, options, report, folder)):
                await _first(over, engine.wait())
                if not stopping.is_set():
                    print("a2a-grpc: Envoy has ended by itself", file=sys.stderr, flush=True)
                    return 1
                await joined.result().ask(stop=True)
            return 0
        finally:
            over.cancel()
            await engine.stop()
            talk.close()


def _switch(joined: "asyncio.Future[_Child]") -> None:
    """Pass the signal on, which Envoy does not know; before there is anybody to tell, it changes nothing."""
    if joined.done():
        joined.result().tell(switch=True)


async def _begin(engine: _Envoy, joined: "asyncio.Future[_Child]", options: Options, report: Any, folder: Path) -> None:
    try:
        await engine.start()
    except pyvoy.StartupError:
        last = (folder / "log").read_text("utf-8", "replace").strip().splitlines()[-1:]
        raise UsageError(f"Envoy did not start: {''.join(last)[:500]}") from None
    answer = await (await joined).ask(at=f"{options.http.rpartition(':')[0]}:{engine.listener_port}")
    report(answer["report"])


async def _first(over: "asyncio.Future[Any]", other: Coroutine[Any, Any, Any]) -> bool:
    """Whether the first of two is over before the other; that is then given up. Raises what the other raised."""
    task = asyncio.ensure_future(other)
    await asyncio.wait((over, task), return_when=asyncio.FIRST_COMPLETED)
    if task.done():
        task.result()
        return False
    task.cancel()
    await asyncio.wait((task,))
    return True
