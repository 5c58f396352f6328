"""Either end of an HTTP/2 connection, as an asyncio protocol over h2's state machine. Its streams wait for incoming
data."""

import asyncio
import collections
import hashlib

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.exceptions
import h2.settings


class Gone(Exception):
    """The stream or its connection has ended."""


class Stream:
    """A request and its response. `fields` are those of the peer's head; None before a response."""

    def __init__(self, connection, number, fields):
        self.connection, self.number, self.fields = connection, number, fields
        self.received = collections.deque()
        self.trailers = []
        self.has_ended = self.is_done = False
        self.code = None
        self.news = asyncio.Event()

    def field(self, name):
        return dict(self.fields).get(name)

    async def wait(self):
        """Waits until something arrives, or the window grows."""
        self.news.clear()
        await self.news.wait()

    def check(self):
        if self.code is not None or self.connection.is_over:
            raise Gone

    async def pieces(self):
        """The body in pieces. Reading it returns flow-control credit."""
        while True:
            while self.received:
                data, counted = self.received.popleft()
                self.connection.return_credit(counted, self.number)
                yield data
            if self.has_ended:
                return
            self.check()
            await self.wait()

    async def digest(self):
        digest, length = hashlib.sha256(), 0
        async for piece in self.pieces():
            digest.update(piece)
            length += len(piece)
        return digest.hexdigest(), length

    def head(self, status=200, *fields, end=False):
        self.check()
        self.connection.h2.send_headers(self.number, [(":status", str(status)), *fields], end_stream=end)
        self.connection.flush()

    async def send(self, data, end=False):
        """Sends within the peer's windows, and as fast as the socket allows."""
        view = memoryview(data)
        while view:
            self.check()
            room = self.connection.room(self.number)
            if room:
                piece, view = view[:room], view[room:]
                self.connection.h2.send_data(self.number, bytes(piece), end_stream=end and not view)
                self.connection.flush()
                await self.connection.writable.wait()
            else:
                await self.wait()
        if end and not data:
            self.end()

    def end(self, trailers=None):
        self.check()
        if trailers:
            self.connection.h2.send_headers(self.number, trailers, end_stream=True)
        else:
            self.connection.h2.end_stream(self.number)
        self.connection.flush()

    def reset(self, code):
        self.check()
        self.connection.h2.reset_stream(self.number, h2.errors.ErrorCodes[code])
        self.connection.flush()

    async def answer(self, body, status=200, *fields):
        body = body.encode() if isinstance(body, str) else body
        self.head(status, *fields, ("content-length", str(len(body))), end=not body)
        if body:
            await self.send(body, end=True)

    def finish(self):
        """Discards unread data, so that it doesn't block other streams."""
        self.is_done = True
        while self.received:
            self.connection.return_credit(self.received.popleft()[1], self.number)


class Announced(h2.settings.Settings):
    """Reports settings when they are announced, not when they are acknowledged. h2 announces the acknowledged ones."""

    def items(self):
        return [(setting, values[-1]) for setting, values in self._settings.items()]


class Connection(asyncio.Protocol):
    #: The class of the connection's streams.
    stream_type = Stream

    def connection_made(self, transport):
        self.transport, self.is_over = transport, False
        self.writable = asyncio.Event()
        self.writable.set()
        self.streams = {}

    def begin(self, settings, is_client=False):
        """Creates the state machine, which sends invalid messages too; `flush` sends the preface."""
        self.h2 = h2.connection.H2Connection(
            h2.config.H2Configuration(
                client_side=is_client,
                header_encoding="latin-1",
                validate_outbound_headers=False,
                normalize_outbound_headers=False,
                # It would join cookies.
                normalize_inbound_headers=False,
            )
        )
        announced = Announced(is_client, dict(self.h2.local_settings))
        announced.update(settings)
        self.h2.local_settings = announced
        self.h2.initiate_connection()
        self.rest, self.preface = b"", 0 if is_client else 24

    def flush(self):
        if not self.is_over and not self.transport.is_closing():
            self.transport.write(self.h2.data_to_send())

    def room(self, stream):
        return max(0, min(self.h2.local_flow_control_window(stream), self.h2.max_outbound_frame_size))

    def return_credit(self, amount, stream):
        try:
            self.h2.acknowledge_received_data(amount, stream)
        except h2.exceptions.StreamClosedError:
            pass
        self.flush()

    def request(self, fields, end):
        number = self.h2.get_next_available_stream_id()
        stream = self.streams[number] = self.stream_type(self, number, None)
        self.h2.send_headers(number, fields, end_stream=end)
        self.flush()
        return stream

    # Incoming data

    def pause_writing(self):
        self.writable.clear()

    def resume_writing(self):
        self.writable.set()

    def data_received(self, data):
        self.rest += data
        try:
            while piece := self.next_piece():
                state = self.h2.state_machine.state
                for event in self.h2.receive_data(piece):
                    self.take(event)
                    if isinstance(event, h2.events.ConnectionTerminated):
                        # h2 reads nothing after a GOAWAY, but open streams continue (RFC 9113 section 6.8).
                        self.h2.state_machine.state = state
        except h2.exceptions.ProtocolError as error:
            self.objected(error)
            self.flush()
            return self.transport.close()
        self.flush()

    def next_piece(self):
        """The preface, or one frame."""
        count = self.preface or (9 + int.from_bytes(self.rest[:3], "big") if len(self.rest) >= 9 else 9)
        if len(self.rest) < count:
            return None
        piece, self.rest, self.preface = self.rest[:count], self.rest[count:], 0
        return piece

    def take(self, event):
        stream = self.streams.get(getattr(event, "stream_id", None))
        match event:
            case h2.events.RequestReceived():
                stream = self.streams[event.stream_id] = self.stream_type(self, event.stream_id, event.headers)
            case h2.events.ResponseReceived() if stream:
                stream.fields = event.headers
            case h2.events.DataReceived() if stream and not stream.is_done:
                stream.received.append((event.data, event.flow_controlled_length))
            case h2.events.DataReceived():
                self.return_credit(event.flow_controlled_length, event.stream_id)
            case h2.events.TrailersReceived() if stream:
                stream.trailers = event.headers
            case h2.events.StreamEnded() if stream:
                stream.has_ended = True
            case h2.events.StreamReset() if stream:
                stream.code = int(event.error_code)
        self.happened(event, stream)
        for waiting in [stream] if stream else self.streams.values():
            waiting.news.set()

    def happened(self, event, stream):
        """Is called for each event, after its stream is updated."""

    def objected(self, error):
        """Is called when the peer violates the protocol."""

    def connection_lost(self, error):
        self.is_over = True
        self.writable.set()
        for stream in self.streams.values():
            stream.news.set()
