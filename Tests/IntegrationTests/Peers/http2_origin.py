"""An HTTP/2 origin over TLS; paths select its behaviour (http2_paths.py). It also offers HTTP/1.1.

    http2_origin.py --certificate chain.pem --key key.pem [--protocols h2,http/1.1] [--streams N] [--window N]
                    [--websocket] [--silent preface|settings] [--listen ADDRESS] [--port N]

    --streams    MAX_CONCURRENT_STREAMS
    --window     INITIAL_WINDOW_SIZE
    --websocket  takes extended CONNECTs (RFC 8441)
    --silent     each connection goes silent: preface, after TLS; settings, after its SETTINGS

Prints JSON lines: {"event": "ready", "port": N}, then connections, requests, resets and ends.
"""

import argparse
import asyncio
import json
import ssl

import h2.events
import h2.exceptions
import h2.settings

import http2_streams
from events import say
from http2_paths import PATHS, websocket
from http2_streams import Gone

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


class Stream(http2_streams.Stream):
    def __init__(self, connection, number, fields):
        super().__init__(connection, number, fields)
        named = dict(fields)
        self.method, self.path = named.get(":method", ""), named.get(":path", "")
        self.authority = named.get(":authority", "")
        self.protocol = named.get(":protocol")

    async def echo(self):
        sha256, length = await self.digest()
        text = json.dumps(
            {
                "method": self.method,
                "target": self.path,
                "version": "HTTP/2",
                "sha256": sha256,
                "length": length,
                "lines": [f"{name}: {value}" for name, value in self.fields],
                "trailers": [f"{name}: {value}" for name, value in self.trailers],
                "connection": self.connection.number,
            }
        )
        await self.answer(text, 200, ("content-type", "application/json"))


class Connection(http2_streams.Connection):
    stream_type = Stream

    def connection_made(self, transport):
        global count
        super().connection_made(transport)
        count += 1
        self.number = count
        self.http1 = b""
        secure = transport.get_extra_info("ssl_object")
        self.is_http2 = secure.selected_alpn_protocol() == "h2"
        say(
            "connection",
            connection=self.number,
            protocol=secure.selected_alpn_protocol(),
            name=getattr(secure, "asked", None),
        )
        if not self.is_http2:
            # Python's TLS continues even without a common protocol.
            if "http/1.1" not in options.protocols:
                transport.abort()
            return
        settings = {h2.settings.SettingCodes.MAX_CONCURRENT_STREAMS: options.streams or 1000}
        if options.window is not None:
            settings[h2.settings.SettingCodes.INITIAL_WINDOW_SIZE] = options.window
        if options.websocket:
            settings[h2.settings.SettingCodes.ENABLE_CONNECT_PROTOCOL] = 1
        self.begin(settings)
        if options.silent != "preface":
            self.flush()

    def data_received(self, data):
        if options.silent:
            return say("silent", connection=self.number)
        if not self.is_http2:
            return self.receive_http1(data)
        super().data_received(data)

    def objected(self, error):
        say("fault", connection=self.number, cause=f"{type(error).__name__}: {error}")

    def happened(self, event, stream):
        match event:
            case h2.events.RequestReceived():
                say(
                    "request",
                    connection=self.number,
                    stream=stream.number,
                    method=stream.method,
                    target=stream.path,
                    authority=stream.authority,
                    lines=[f"{name}: {value}" for name, value in stream.fields],
                )
                self.start(self.serve(stream))
            case h2.events.StreamReset() if stream:
                say("reset", connection=self.number, stream=stream.number, code=stream.code, target=stream.path)
            case h2.events.ConnectionTerminated():
                say("goaway", connection=self.number, code=int(event.error_code), last=event.last_stream_id)
            case h2.events.PingAckReceived():
                say("told", connection=self.number)
            case h2.events.PingReceived():
                say("ping", connection=self.number)

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
            stream.finish()

    def receive_http1(self, data):
        """Answers every HTTP/1.1 request with a JSON body that describes it."""
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
            body = json.dumps(
                {
                    "method": method,
                    "target": target,
                    "version": version,
                    "lines": lines[1:],
                    "length": 0,
                    "sha256": "",
                    "trailers": [],
                    "connection": self.number,
                }
            ).encode()
            self.transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)

    def connection_lost(self, error):
        super().connection_lost(error)
        say("closed", connection=self.number, cause=str(error or ""))


async def main():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(options.certificate, options.key)
    context.set_alpn_protocols(options.protocols.split(","))
    context.sni_callback = lambda secure, name, _: setattr(secure, "asked", name)
    server = await asyncio.get_running_loop().create_server(
        Connection, options.listen, options.port, ssl=context, backlog=512
    )
    say("ready", port=server.sockets[0].getsockname()[1])
    await server.serve_forever()


asyncio.run(main())
