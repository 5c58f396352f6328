"""An HTTP/2 origin whose paths are behaviours (http2_paths.py), over TLS. It speaks HTTP/1.1 to who chooses that.

    http2_origin.py --certificate chain.pem --key key.pem [--protocols h2,http/1.1] [--streams N] [--window N]
                    [--websocket] [--silent preface|settings] [--listen ADDRESS] [--port N]

    --streams    MAX_CONCURRENT_STREAMS
    --window     INITIAL_WINDOW_SIZE
    --websocket  takes extended CONNECTs (RFC 8441)
    --silent     each connection falls silent: preface, after TLS; settings, after its SETTINGS

Prints JSON lines: {"event": "ready", "port": N}, then connections, requests, resets and ends.
"""

import argparse
import asyncio
import collections
import hashlib
import json
import ssl

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.exceptions
import h2.settings

from events import say
from http2_paths import PATHS, websocket

parser = argparse.ArgumentParser()
parser.add_argument("--certificate", required=True)
parser.add_argument("--key", required=True)
parser.add_argument("--protocols", default="h2,http/1.1")
parser.add_argument("--streams", type=int)
parser.add_argument("--window", type=int)
parser.add_argument("--websocket", action="store_true")
parser.add_argument("--silent", choices=["preface", "settings"])
parser.add_argument("--listen", default="127.0.0.1")
parser.add_argument("--port", type=int, default=0)
options = parser.parse_args()
tasks = set()
count = 0


class Gone(Exception):
    """The stream or its connection has ended."""


class Stream:
    """One request, and what is answered to it."""

    def __init__(self, connection, number, fields):
        self.connection, self.number, self.fields = connection, number, fields
        named = dict(fields)
        self.method, self.path = named.get(":method", ""), named.get(":path", "")
        self.authority = named.get(":authority", "")
        self.protocol = named.get(":protocol")
        self.received = collections.deque()
        self.trailers = []
        self.has_ended = self.is_done = False
        self.code = None
        self.news = asyncio.Event()

    def field(self, name):
        return dict(self.fields).get(name)

    async def wait(self):
        """Until something arrives, or there is more room."""
        self.news.clear()
        await self.news.wait()

    def check(self):
        if self.code is not None or self.connection.is_over:
            raise Gone

    async def pieces(self):
        """The body. The client may send more of it as it is taken."""
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
        """Within the client's windows, and as fast as the socket takes it."""
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

    async def echo(self):
        sha256, length = await self.digest()
        text = json.dumps({
            "method": self.method, "target": self.path, "version": "HTTP/2", "sha256": sha256, "length": length,
            "lines": [f"{name}: {value}" for name, value in self.fields],
            "trailers": [f"{name}: {value}" for name, value in self.trailers], "connection": self.connection.number,
        })
        await self.answer(text, 200, ("content-type", "application/json"))


class Connection(asyncio.Protocol):
    def connection_made(self, transport):
        global count
        count += 1
        self.number, self.transport, self.is_over = count, transport, False
        self.writable = asyncio.Event()
        self.writable.set()
        self.streams = {}
        self.http1 = b""
        secure = transport.get_extra_info("ssl_object")
        self.is_http2 = secure.selected_alpn_protocol() == "h2"
        say("connection", connection=self.number, protocol=secure.selected_alpn_protocol(), name=getattr(secure, "asked", None))
        if not self.is_http2:
            # Python's TLS goes on where nothing was agreed upon.
            if "http/1.1" not in options.protocols:
                transport.abort()
            return
        # What it sends is as wrong as the path wants it.
        configuration = h2.config.H2Configuration(
            client_side=False, header_encoding="latin-1", validate_outbound_headers=False, normalize_outbound_headers=False,
            # It would join cookies.
            normalize_inbound_headers=False)
        self.h2 = h2.connection.H2Connection(configuration)
        settings = {h2.settings.SettingCodes.MAX_CONCURRENT_STREAMS: options.streams or 1000}
        if options.window is not None:
            settings[h2.settings.SettingCodes.INITIAL_WINDOW_SIZE] = options.window
        if options.websocket:
            settings[h2.settings.SettingCodes.ENABLE_CONNECT_PROTOCOL] = 1
        # Initial values: later ones aren't in the first SETTINGS.
        self.h2.local_settings = h2.settings.Settings(client=False, initial_values=settings)
        self.h2.initiate_connection()
        if options.silent != "preface":
            self.flush()

    def flush(self):
        if not self.is_over:
            self.transport.write(self.h2.data_to_send())

    def room(self, stream):
        return max(0, min(self.h2.local_flow_control_window(stream), self.h2.max_outbound_frame_size))

    def return_credit(self, amount, stream):
        try:
            self.h2.acknowledge_received_data(amount, stream)
        except h2.exceptions.StreamClosedError:
            pass
        self.flush()

    def pause_writing(self):
        self.writable.clear()

    def resume_writing(self):
        self.writable.set()

    def data_received(self, data):
        if options.silent:
            return say("silent", connection=self.number)
        if not self.is_http2:
            return self.receive_http1(data)
        try:
            events = self.h2.receive_data(data)
        except h2.exceptions.ProtocolError as error:
            say("fault", connection=self.number, cause=f"{type(error).__name__}: {error}")
            self.flush()
            return self.transport.close()
        for event in events:
            self.take(event)
        self.flush()

    def take(self, event):
        stream = self.streams.get(getattr(event, "stream_id", None))
        match event:
            case h2.events.RequestReceived():
                stream = self.streams[event.stream_id] = Stream(self, event.stream_id, event.headers)
                say("request", connection=self.number, stream=stream.number, method=stream.method, target=stream.path,
                    authority=stream.authority, lines=[f"{name}: {value}" for name, value in stream.fields])
                self.start(self.serve(stream))
            case h2.events.DataReceived() if stream:
                if stream.is_done:
                    self.return_credit(event.flow_controlled_length, event.stream_id)
                else:
                    stream.received.append((event.data, event.flow_controlled_length))
            case h2.events.TrailersReceived() if stream:
                stream.trailers = event.headers
            case h2.events.StreamEnded() if stream:
                stream.has_ended = True
            case h2.events.StreamReset() if stream:
                stream.code = int(event.error_code)
                say("reset", connection=self.number, stream=stream.number, code=stream.code, target=stream.path)
            case h2.events.ConnectionTerminated():
                say("goaway", connection=self.number, code=int(event.error_code), last=event.last_stream_id)
            case h2.events.PingReceived():
                say("ping", connection=self.number)
        for waiting in [stream] if stream else self.streams.values():
            waiting.news.set()

    def start(self, work):
        task = asyncio.get_running_loop().create_task(work)
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    async def serve(self, stream):
        try:
            if stream.protocol:
                return await websocket(stream)
            _, name, *rest = stream.path.split("?")[0].split("/", 2)
            await PATHS.get(name, Stream.echo)(stream, *rest[:1]) if name in PATHS else await stream.echo()
        except (Gone, h2.exceptions.ProtocolError) as error:
            say("gone", connection=self.number, stream=stream.number, cause=f"{type(error).__name__}: {error}")
        finally:
            # What nobody reads holds up no other stream.
            stream.is_done = True
            while stream.received:
                self.return_credit(stream.received.popleft()[1], stream.number)

    def receive_http1(self, data):
        """Whatever is asked for, it is told by a JSON body."""
        self.http1 += data
        while b"\r\n\r\n" in self.http1:
            head, _, rest = self.http1.partition(b"\r\n\r\n")
            lines = head.decode("latin-1").split("\r\n")
            fields = dict(line.lower().split(": ", 1) for line in lines[1:])
            if "chunked" in fields.get("transfer-encoding", ""):
                if b"0\r\n\r\n" not in rest:
                    return
                _, _, rest = rest.partition(b"0\r\n\r\n")
            else:
                length = int(fields.get("content-length", "0"))
                if len(rest) < length:
                    return
                rest = rest[length:]
            self.http1 = rest
            method, target, version = lines[0].split(" ")
            say("request", connection=self.number, stream=0, method=method, target=target, lines=lines[1:])
            body = json.dumps({"method": method, "target": target, "version": version, "lines": lines[1:],
                               "length": 0, "sha256": "", "trailers": [], "connection": self.number}).encode()
            self.transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)

    def connection_lost(self, error):
        self.is_over = True
        self.writable.set()
        for stream in self.streams.values():
            stream.news.set()
        say("closed", connection=self.number, cause=str(error or ""))


async def main():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(options.certificate, options.key)
    context.set_alpn_protocols(options.protocols.split(","))
    context.sni_callback = lambda secure, name, _: setattr(secure, "asked", name)
    server = await asyncio.get_running_loop().create_server(Connection, options.listen, options.port, ssl=context, backlog=512)
    say("ready", port=server.sockets[0].getsockname()[1])
    await server.serve_forever()


asyncio.run(main())
