"""One HTTP/2 connection of a client over the library h2: the calls on it, the room that they have, and its end.

Laws: HTTP/2 is h2's; what a call is given of it is said here, and read in client_reading. What is called, and what it
means, is not known, nor how the connection was made. It is given its room back at once, so that no reader holds up
another; a stream when its reader has taken what was there.
"""

import asyncio
import logging
import os
import socket
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, Final

import grpc.aio

from a2a_grpc import client_auth
from a2a_grpc.client_reading import OF_RESET, WINDOW, Reading, Status, failure, limit, pair
from a2a_grpc.extras import needs

with needs("gateway"):
    from h2 import events
    from h2.config import H2Configuration
    from h2.connection import ConnectionInputs, H2Connection, H2ConnectionStateMachine
    from h2.errors import ErrorCodes
    from h2.exceptions import ProtocolError
    from h2.frame_buffer import FrameBuffer
    from h2.settings import SettingCodes, Settings
    from h2.stream import StreamClosedBy, StreamState
    from hpack import Decoder
    from hyperframe.frame import ContinuationFrame, DataFrame, Frame, RstStreamFrame

WINDOW_OF_ALL: Final = 16 * 1024 * 1024
"""Bytes of all streams of a connection that may be on their way."""

LARGEST_FRAME: Final = 131_072
"""Bytes of the largest frame that a server may send: each costs the same, and comes when it is whole."""

ASKED_HEADERS: Final = 65_536
"""Bytes of the headers of an answer that servers are asked not to go beyond."""

MOST_HEADERS: Final = 2 * 1024 * 1024
"""Bytes of them that are read: with more the connection ends, and all that it carries."""

LARGEST_TABLE: Final = 4096
"""Bytes of headers that are remembered so as not to be sent again, however many a server offers to remember."""

MOST_UNSENT: Final = 4 * 1024 * 1024
"""Bytes that may wait for a server that does not read, before the connection is given up."""

MOST_IDLE: Final = 20_000
"""Frames a second that say nothing: with more the connection is given up, since reading them is all that is done."""

MOST_PUSHED: Final = 1_000
"""Streams that nobody has asked for: with more the connection is given up, since each is kept until the next call."""

LAST_WORDS: Final = 1.0
"""Seconds that a connection has to be closed in order."""

FIXED: Final = (
    ("te", "trailers"),
    ("content-type", "application/grpc"),
    ("user-agent", "grpc-python-a2a"),
    ("grpc-accept-encoding", "identity, deflate, gzip"),
)
"""Headers that every call has."""


logging.getLogger("hpack").setLevel(logging.INFO)  # whose lines of debug level tell each header, credentials among them


class _Rules(H2ConnectionStateMachine):
    """The rules of a connection. To h2 a GOAWAY is the end of everything, to gRPC the end of new calls alone."""

    def process_input(self, input_: Any) -> Any:
        return [] if input_ is ConnectionInputs.RECV_GOAWAY else super().process_input(input_)


class _Headers(Decoder):
    """Headers as they come, but the length of a body: gRPC knows where its messages end and asks nobody else, while h2
    would end the connection, and all others on it, for a body of another length. torn: whether some could not be read,
    so that nobody knows what later ones mean."""

    torn = False

    def decode(self, data: bytes, raw: bool = False) -> Any:
        """All headers but that."""
        self.torn = True
        found = [pair for pair in super().decode(data, raw) if pair[0] != b"content-length"]
        self.torn = False
        return found


class _Unruly(events.Event):
    """A frame that may not come where it came. ident: of its stream; why: what ends that, "" where it was over."""

    def __init__(self, ident: int, why: str) -> None:
        self.ident, self.why = ident, why


class _Talk(H2Connection):
    """What is said on a connection. To h2 a GOAWAY takes back what is not sent yet, such as the answer to a ping, and
    what is wrong with one stream is the end of all."""

    decoder: _Headers

    def clear_outbound_data_buffer(self) -> None:
        """Keep it."""

    def _receive_frame(self, frame: Frame) -> list[events.Event]:
        try:
            found = super()._receive_frame(frame)
        except ProtocolError as wrong:
            # On what streams share, which is room and headers, both ends must agree; on one stream no more.
            apart = self.decoder.torn or type(frame) is ContinuationFrame or self.inbound_flow_control_window < 0
            if apart or not frame.stream_id:
                raise
            return self._bear(frame, str(wrong) or type(wrong).__name__)
        # What says nothing is counted, too, but for bodies: those of streams that were left are still on their way.
        return found or ([] if type(frame) is DataFrame else [_Unruly(frame.stream_id, "")])

    def _bear(self, frame: Frame, why: str) -> list[events.Event]:
        """End the stream of a frame, if there is one that goes on."""
        stream, ident, found = self.streams.get(frame.stream_id), frame.stream_id, list[events.Event]()
        if type(frame) is DataFrame:
            size = frame.flow_controlled_length
            found.append(events.DataReceived(stream_id=ident, data=b"", flow_controlled_length=size))
        if stream is None or stream.closed_by is not None:
            return [*found, _Unruly(ident, "")]
        machine = stream.state_machine
        machine.state, machine.stream_closed_by = StreamState.CLOSED, StreamClosedBy.SEND_RST_STREAM
        self._prepare_for_sending([RstStreamFrame(ident, error_code=ErrorCodes.PROTOCOL_ERROR)])
        return [*found, _Unruly(ident, why)]


class _Frames(FrameBuffer):
    """Frames as they come. h2 describes each for its log, be there one or not, with all that is in it in hexadecimal:
    here they say that nothing is in them, which is asked of frames that are sent alone."""

    def __next__(self) -> Frame:
        frame = super().__next__()
        frame.serialize_body = bytes  # type: ignore[method-assign]
        return frame


class Connection(asyncio.Protocol):
    """One HTTP/2 connection. takes: whether new calls may go over it. lost: done when it is no more."""

    def __init__(self, scheme: str, authority: str, keepalive: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._place = ((":method", "POST"), (":scheme", scheme), (":authority", authority))
        self._keepalive = keepalive
        told: dict[str, Any] = {"validate_outbound_headers": False, "normalize_outbound_headers": False}
        # A header that may not be there is a matter of its call: h2 would end the connection, and all others with it.
        told |= {"validate_inbound_headers": False, "header_encoding": None}
        self._h2 = _Talk(H2Configuration(client_side=True, **told))
        self._h2.decoder = _Headers(MOST_HEADERS)
        self._h2.state_machine, self._h2.incoming_buffer = _Rules(), _Frames(server=False)
        self._readings: dict[int, Reading] = {}
        self._transport: Any = None
        self._arrived, self._idle, self._since = 0, 0, 0.0
        self._heard, self._pushed, self._paused = 0.0, 0, False
        self._timer: asyncio.TimerHandle | None = None
        self._moved, self._freed = asyncio.Event(), asyncio.Event()
        self.settled: asyncio.Future[None] = self._loop.create_future()
        self.lost: asyncio.Future[None] = self._loop.create_future()
        self.takes = True

    # -- the transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._transport = transport
        wanted = {
            SettingCodes.ENABLE_PUSH: 0,
            SettingCodes.INITIAL_WINDOW_SIZE: WINDOW,
            SettingCodes.MAX_FRAME_SIZE: LARGEST_FRAME,
            SettingCodes.MAX_HEADER_LIST_SIZE: ASKED_HEADERS,
        }
        self._h2.local_settings = Settings(client=True, initial_values=wanted)
        self._h2.max_inbound_frame_size = LARGEST_FRAME  # which it takes from settings only when they change
        self._h2.initiate_connection()
        # What nobody has asked for is refused where it comes all the same: h2 would end the connection.
        self._h2.local_settings = Settings(client=True, initial_values={**wanted, SettingCodes.ENABLE_PUSH: 1})
        self._h2.increment_flow_control_window(WINDOW_OF_ALL - 65_535)
        self._flush()
        if self._keepalive:
            self._timer = self._loop.call_later(self._keepalive, self._look)

    def connection_lost(self, wrong: Exception | None) -> None:
        """The end of all streams."""
        if self._timer is not None:
            self._timer.cancel()
        self._fail(failure(Status.UNAVAILABLE, f"the connection was lost: {wrong or 'Socket closed'}"))
        self.lost.set_result(None)

    def pause_writing(self) -> None:
        """The server reads too slowly."""
        self._paused = True

    def resume_writing(self) -> None:
        """The server reads again."""
        self._paused = False
        _stir(self._moved)

    def data_received(self, data: bytes) -> None:
        """Take what has come."""
        self._heard = self._loop.time()
        if data[:5] == b"HTTP/" and not self.settled.done():  # which h2 takes for the head of a very large frame
            self._fail(failure(Status.UNAVAILABLE, "the server speaks HTTP/1"))
            self._transport.abort()
            return
        try:
            found = self._h2.receive_data(data)
        except ProtocolError as wrong:
            self._fail(_unruly(wrong))
            self.close()
            return
        readings, idle = self._readings, len(found)
        for event in found:
            if type(event) is events.DataReceived:
                size = event.flow_controlled_length or 0
                self._arrived += size
                idle -= size > 0
                if (reading := readings.get(event.stream_id or 0)) is not None:
                    reading.heard(event.data or b"", size)
            elif (hear := _HEARD.get(type(event))) is not None:
                hear(self, event)
        if idle > 100:
            self._calm(idle)
        if self._arrived >= WINDOW_OF_ALL // 2:
            self._h2.increment_flow_control_window(self._arrived)
            self._arrived = 0
        self._flush()
        if self._transport.get_write_buffer_size() > MOST_UNSENT:
            self._transport.abort()

    def _calm(self, idle: int) -> None:
        if (now := self._loop.time()) - self._since > 1.0:
            self._since, self._idle = now, 0
        self._idle += idle
        if self._idle > MOST_IDLE:
            self._fail(failure(Status.INTERNAL, "the server sends too many frames that say nothing"))
            self._transport.abort()

    def _flush(self) -> None:
        if (said := self._h2.data_to_send()) and not self._transport.is_closing():
            self._transport.write(said)

    def _fail(self, wrong: grpc.aio.AioRpcError) -> None:
        self.takes = False
        if not self.settled.done():
            self.settled.set_exception(ConnectionError(wrong.details()))
            self.settled.exception()  # nobody may be waiting any more
        for reading in [*self._readings.values()]:
            reading.end(wrong)
        self._readings.clear()
        _stir(self._moved)
        _stir(self._freed)

    def _look(self) -> None:
        """Try a connection in use that has been quiet by a ping, and give it up when even then it stays so."""
        left = self._heard + self._keepalive - self._loop.time()
        if left > 0 or not self._readings:
            self._timer = self._loop.call_later(left if left > 0 else self._keepalive, self._look)
            return
        self._h2.ping(b"a2a-grpc")
        self._flush()
        self._timer = self._loop.call_later(client_auth.PING_TIMEOUT_MS / 1000, self._judge, self._heard)

    def _judge(self, before: float) -> None:
        if self._heard == before:
            self._fail(failure(Status.UNAVAILABLE, "a ping was not answered"))
            self._transport.abort()
        else:
            self._look()

    def _on_pong(self, _: Any) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._look()

    def close(self) -> None:
        """End the connection, and every call on it."""
        self._fail(failure(Status.UNAVAILABLE, "the connection was closed"))
        with suppress(ProtocolError):
            self._h2.close_connection()
        self._flush()
        if not self._transport.is_closing():
            self._transport.close()
            if self._transport.get_extra_info("ssl_object") is not None:
                _deafen(self._transport)  # else TLS waits for a good-bye of the server
        self._loop.call_later(LAST_WORDS, self._transport.abort)  # where a server does not read them

    def abort(self) -> None:
        """End the connection without a word."""
        if self._transport is not None:
            self._transport.abort()

    # -- events of h2

    def _on_headers(self, event: Any) -> None:
        if (reading := self._readings.get(event.stream_id)) is not None:
            reading.headed([pair(*each) for each in event.headers])

    def _on_end(self, event: Any) -> None:
        if (reading := self._forget(event.stream_id)) is not None:
            reading.end()

    def _on_reset(self, event: Any) -> None:
        if (reading := self._forget(event.stream_id)) is not None:
            code, number = OF_RESET.get(event.error_code, Status.INTERNAL), int(event.error_code)
            reading.end(failure(code, f"Received RST_STREAM with error code {number}"))

    def _on_unruly(self, event: Any) -> None:
        if event.why and (reading := self._forget(event.ident)) is not None:
            reading.end(_unruly(event.why))

    def _on_goaway(self, event: Any) -> None:
        for ident in [ident for ident in self._readings if ident > event.last_stream_id]:
            reading = self._readings.pop(ident)
            reading.unseen = True
            reading.end(failure(Status.UNAVAILABLE, "the server takes no more calls on this connection"))
        self.retire()

    def _on_push(self, event: Any) -> None:
        with suppress(ProtocolError):  # it is over already
            self._h2.reset_stream(event.pushed_stream_id, ErrorCodes.REFUSED_STREAM)
        self._pushed += 1
        if self._pushed > MOST_PUSHED:
            self._fail(failure(Status.INTERNAL, "the server sends too much that nobody has asked for"))
            self._transport.abort()

    def _on_settings(self, _: Any) -> None:
        self._h2.encoder.header_table_size = min(self._h2.encoder.header_table_size, LARGEST_TABLE)
        if not self.settled.done():
            self.settled.set_result(None)
        _stir(self._moved)
        _stir(self._freed)

    def _on_window(self, _: Any) -> None:
        _stir(self._moved)

    def _forget(self, ident: int) -> Reading | None:
        """Make room for another call, and leave a connection that takes none once the last is over."""
        found = self._readings.pop(ident, None)
        if not (self.takes or self._readings):
            self.close()
        _stir(self._freed)
        _stir(self._moved)
        return found

    # -- calls

    async def room(self) -> bool:
        """Wait until there is room for a call; False when there will be none."""
        while self.takes and self._full():
            await self._freed.wait()
        return self.takes

    def _full(self) -> bool:
        most = self._h2.remote_settings.max_concurrent_streams
        return len(self._readings) >= most or self._h2.open_outbound_streams >= most  # which takes longer to count

    def retire(self) -> None:
        """Take no more calls, and leave when there are none."""
        self.takes = False
        self._forget(0)

    def begin(self, path: str, headers: Iterable[tuple[str, str]], seconds: float | None) -> Reading:
        """Ask, all but the message."""
        ident = self._h2.get_next_available_stream_id()
        until = () if seconds is None else (("grpc-timeout", limit(seconds)),)
        self._h2.send_headers(ident, [*self._place, (":path", path), *FIXED, *until, *headers])
        made = self._readings[ident] = Reading(self, ident, seconds)
        return made

    async def send(self, reading: Reading, body: bytes) -> None:
        """The message, as fast as the server takes it, unless it has answered before."""
        at, end = 0, len(body)
        while reading.ident in self._readings:
            room = min(self._h2.local_flow_control_window(reading.ident), self._h2.max_outbound_frame_size, end - at)
            if room > 0 and not self._paused:
                piece, at = body[at : at + room], at + room
                self._h2.send_data(reading.ident, piece, end_stream=at == end)
                self._flush()
                if at == end:
                    return
            else:
                self._flush()
                await self._moved.wait()
        with suppress(ProtocolError):  # so that nobody waits for the rest
            self._h2.reset_stream(reading.ident, ErrorCodes.CANCEL)
            self._flush()
        _stir(self._freed)

    def give_back(self, reading: Reading, size: int) -> None:
        """Let so many bytes more of a stream come."""
        if reading.ident in self._readings:
            self._h2.increment_flow_control_window(size, reading.ident)
            self._flush()

    def leave(self, reading: Reading) -> None:
        """End a call that its reader needs no more."""
        if reading.ident in self._readings:
            with suppress(ProtocolError):
                self._h2.reset_stream(reading.ident, ErrorCodes.CANCEL)
            self._flush()
            self._forget(reading.ident)


_HEARD: Final[Mapping[type, Callable[[Connection, Any], None]]] = {
    events.ResponseReceived: Connection._on_headers,
    events.TrailersReceived: Connection._on_headers,
    events.StreamEnded: Connection._on_end,
    events.StreamReset: Connection._on_reset,
    events.ConnectionTerminated: Connection._on_goaway,
    events.RemoteSettingsChanged: Connection._on_settings,
    events.WindowUpdated: Connection._on_window,
    events.PingAckReceived: Connection._on_pong,
    events.PushedStreamReceived: Connection._on_push,
    _Unruly: Connection._on_unruly,
}


def _unruly(why: object) -> grpc.aio.AioRpcError:
    return failure(Status.INTERNAL, f"the server breaks the rules of HTTP/2: {why}")


def _deafen(transport: asyncio.BaseTransport) -> None:
    """Hear no more, as if the server had hung up; what was said still goes."""
    with suppress(OSError), socket.socket(fileno=os.dup(transport.get_extra_info("socket").fileno())) as ours:
        ours.shutdown(socket.SHUT_RD)


def _stir(event: asyncio.Event) -> None:
    """Let all who wait look again."""
    event.set()
    event.clear()
