"""The client's end of an HTTP/2 connection that sends any frames, valid or invalid. It has no state machine."""

import asyncio
import hashlib
import ssl

import hpack
from hyperframe.frame import (
    ContinuationFrame,
    DataFrame,
    Frame,
    GoAwayFrame,
    HeadersFrame,
    PingFrame,
    RstStreamFrame,
    SettingsFrame,
    WindowUpdateFrame,
)

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
CODES = [
    "NO_ERROR",
    "PROTOCOL_ERROR",
    "INTERNAL_ERROR",
    "FLOW_CONTROL_ERROR",
    "SETTINGS_TIMEOUT",
    "STREAM_CLOSED",
    "FRAME_SIZE_ERROR",
    "REFUSED_STREAM",
    "CANCEL",
    "COMPRESSION_ERROR",
    "CONNECT_ERROR",
    "ENHANCE_YOUR_CALM",
    "INADEQUATE_SECURITY",
    "HTTP_1_1_REQUIRED",
]


async def connect(proxy, authority, trust, protocols=("h2",), front=False, name=None):
    """Returns a Wire inside a CONNECT, or on the proxy's own port (front). A refused CONNECT returns its status as an
    integer."""
    loop = asyncio.get_running_loop()
    context = ssl.create_default_context(cafile=trust)
    context.set_alpn_protocols(list(protocols))
    context.check_hostname = name is None and not front
    reader, writer = await asyncio.open_connection("127.0.0.1", proxy, limit=1 << 20)
    if not front:
        writer.write(f"CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n".encode())
        status = int((await reader.readuntil(b"\r\n\r\n")).split(b" ")[1])
        if status != 200:
            writer.close()
            return status
    transport, wire = writer.transport, Wire()
    transport.pause_reading()
    secure = await loop.start_tls(
        transport, wire, context, server_hostname=name or authority.rsplit(":", 1)[0] if not front else "proxy.test"
    )
    wire.connection_made(secure)
    # Python 3.13 closes the transport of a writer without references.
    wire.writer = writer
    return wire


class Stream:
    def __init__(self):
        self.heads, self.trailers = [], []
        self.digest, self.count, self.text, self.is_pattern = hashlib.sha256(), 0, b"", True
        self.has_ended, self.code = False, None
        self.window = 0
        # Received bytes whose flow-control credit hasn't been returned.
        self.is_held, self.owed = False, 0
        self.receive = lambda data: None


class Wire(asyncio.Protocol):
    def __init__(self):
        self.encoder, self.decoder = hpack.Encoder(), hpack.Decoder()
        self.decoder.max_header_list_size = 1 << 24
        self.received, self.block = b"", None
        self.streams, self.next = {}, 1
        self.settings, self.has_settings = {}, False
        self.window, self.initial, self.frame_size = 65_535, 65_535, 16_384
        self.goaways, self.pongs = [], 0
        # The streams of DATA frames with bytes, in order.
        self.order = []
        self.is_over, self.cause = False, ""
        self.news = asyncio.Event()
        self.transport = None

    def connection_made(self, transport):
        if self.transport is None:
            self.transport = transport
            self.protocol = transport.get_extra_info("ssl_object").selected_alpn_protocol()

    def connection_lost(self, error):
        self.is_over, self.cause = True, str(error or "")
        self.news.set()

    # Outgoing frames

    def write(self, *frames):
        self.transport.write(b"".join(frame if isinstance(frame, bytes) else frame.serialize() for frame in frames))

    def begin(self, settings=None):
        """Sends the preface, and opens windows wide enough for every test."""
        self.write(
            PREFACE,
            SettingsFrame(0, settings=settings or {SettingsFrame.INITIAL_WINDOW_SIZE: 1 << 20}),
            WindowUpdateFrame(0, window_increment=(1 << 30) - 65_535),
        )
        self.our_initial = (settings or {}).get(SettingsFrame.INITIAL_WINDOW_SIZE, 1 << 20)

    def request(self, fields, end=True, held=False):
        number, self.next = self.next, self.next + 2
        stream = self.streams[number] = Stream()
        stream.is_held, stream.window = held, self.initial
        block = self.encoder.encode([tuple(field) for field in fields])
        pieces = [block[at : at + 16_000] for at in range(0, len(block), 16_000)] or [b""]
        frame = HeadersFrame(number, pieces[0], flags=["END_STREAM"] if end else [])
        frames = [frame, *(ContinuationFrame(number, piece) for piece in pieces[1:])]
        frames[-1].flags.add("END_HEADERS")
        self.write(*frames)
        return number

    def trailers(self, number, fields):
        self.write(HeadersFrame(number, self.encoder.encode(fields), flags=["END_HEADERS", "END_STREAM"]))

    async def send(self, number, data, end=False):
        stream, view = self.streams[number], memoryview(data)
        while view:
            room = min(stream.window, self.window, 16_384)
            if stream.code is not None or self.is_over:
                return
            if room <= 0:
                await self.wait()
                continue
            piece, view = view[:room], view[room:]
            stream.window -= len(piece)
            self.window -= len(piece)
            self.write(DataFrame(number, bytes(piece), flags=["END_STREAM"] if end and not view else []))
        if end and not data:
            self.write(DataFrame(number, b"", flags=["END_STREAM"]))

    def reset(self, number, code):
        self.write(RstStreamFrame(number, error_code=CODES.index(code)))

    def take(self, number, count):
        """Lets the peer send this many more bytes on a held stream."""
        stream = self.streams[number]
        stream.owed -= count
        self.write(WindowUpdateFrame(number, window_increment=count))

    async def wait(self):
        self.news.clear()
        await self.news.wait()

    async def until(self, holds):
        """Waits for a value. Returns it, or None at the end of the connection."""
        while not (value := holds()) and not self.is_over:
            await self.wait()
        return value

    # Incoming frames

    def data_received(self, data):
        self.received += data
        while len(self.received) >= 9:
            frame, length = Frame.parse_frame_header(memoryview(self.received[:9]))
            if len(self.received) < 9 + length:
                break
            frame.parse_body(memoryview(self.received[9 : 9 + length]))
            self.received = self.received[9 + length :]
            self.take_frame(frame)
        self.news.set()

    def take_frame(self, frame):
        stream = self.streams.get(frame.stream_id)
        if isinstance(frame, HeadersFrame):
            self.block, self.block_ends = frame.data, "END_STREAM" in frame.flags
        elif isinstance(frame, ContinuationFrame):
            self.block += frame.data
        if isinstance(frame, (HeadersFrame, ContinuationFrame)):
            if "END_HEADERS" in frame.flags and stream:
                fields = self.decoder.decode(self.block)
                if stream.heads and stream.heads[-1][0][1] >= "200":
                    stream.trailers = fields
                else:
                    stream.heads.append(fields)
                stream.has_ended = stream.has_ended or self.block_ends
        elif isinstance(frame, DataFrame) and stream:
            self.take_data(frame, stream)
        elif isinstance(frame, RstStreamFrame) and stream:
            stream.code = frame.error_code
        elif isinstance(frame, SettingsFrame) and "ACK" not in frame.flags:
            self.take_settings(frame.settings)
        elif isinstance(frame, PingFrame):
            if "ACK" in frame.flags:
                self.pongs += 1
            else:
                self.write(PingFrame(0, frame.opaque_data, flags=["ACK"]))
        elif isinstance(frame, GoAwayFrame):
            self.goaways.append([frame.last_stream_id, CODES[frame.error_code], frame.additional_data.decode()])
        elif isinstance(frame, WindowUpdateFrame):
            if frame.stream_id == 0:
                self.window += frame.window_increment
            elif stream:
                stream.window += frame.window_increment

    def take_data(self, frame, stream):
        at, length = stream.count % 256, len(frame.data)
        pattern = (bytes(range(256)) * (length // 256 + 2))[at : at + length]
        stream.is_pattern = stream.is_pattern and frame.data == pattern
        stream.digest.update(frame.data)
        if frame.data:
            self.order.append(frame.stream_id)
        stream.count += length
        stream.receive(frame.data)
        stream.text = (stream.text + frame.data)[:65_536]
        stream.has_ended = "END_STREAM" in frame.flags
        stream.owed += frame.flow_controlled_length
        credit = (
            [WindowUpdateFrame(0, window_increment=frame.flow_controlled_length)]
            if frame.flow_controlled_length
            else []
        )
        if not stream.is_held and stream.owed and not stream.has_ended:
            credit.append(WindowUpdateFrame(frame.stream_id, window_increment=stream.owed))
            stream.owed = 0
        self.write(*credit)

    def take_settings(self, settings):
        self.settings.update(settings)
        initial = settings.get(SettingsFrame.INITIAL_WINDOW_SIZE, self.initial)
        for stream in self.streams.values():
            stream.window += initial - self.initial
        self.initial = initial
        self.has_settings = True
        self.write(SettingsFrame(0, flags=["ACK"]))
