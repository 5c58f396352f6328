"""Both ends of HTTP/2 connections, as frames: a client of the proxy, and an origin."""

import ssl
import struct

import hpack

from frames import CONTINUATION, DATA, GOAWAY, HEADERS, PING, PREFACE, RESET, SETTINGS, begin, frame
from wire import Client, Link


class Frames:
    """Parses frames from bytes, and decodes heads."""

    def __init__(self):
        self.rest = b""
        self.decoder = hpack.Decoder()
        self.decoder.max_header_list_size = 1 << 24
        self.block = b""

    def take(self, data):
        """Yields (kind, flags, stream, payload) per complete frame. For a head, the payload is the complete field
        section."""
        self.rest += data
        while len(self.rest) >= 9:
            length = int.from_bytes(self.rest[:3], "big")
            if len(self.rest) < 9 + length:
                return
            kind, flags, stream = self.rest[3], self.rest[4], int.from_bytes(self.rest[5:9], "big") & 0x7FFFFFFF
            payload, self.rest = self.rest[9 : 9 + length], self.rest[9 + length :]
            if kind in (HEADERS, CONTINUATION):
                if kind == HEADERS:
                    self.block, self.ends = b"", flags & 1
                    if flags & 0x20:
                        payload = payload[5:]
                self.block += payload
                if flags & 4:
                    fields = self.decoder.decode(self.block, raw=True)
                    yield HEADERS, self.ends, stream, [(bytes(name), bytes(value)) for name, value in fields]
            else:
                yield kind, flags, stream, payload


class Answer:
    def __init__(self):
        self.heads, self.body, self.has_ended, self.code = [], b"", False, None

    @property
    def is_over(self):
        return self.has_ended or self.code is not None

    @property
    def status(self):
        return int(dict(self.heads[-1])[b":status"]) if self.heads else None

    def field(self, name):
        return dict(self.heads[-1]).get(name)

    def __repr__(self):
        return f"<{self.heads} {self.body[:60]} ended {self.has_ended} reset {self.code}>"


class HTTP2Client(Client):
    """One connection inside CONNECT. It sends frames and waits until each stream has ended."""

    def __init__(self, loop, port, frames, numbers, tunnel, context):
        self.frames = Frames()
        self.answers = {number: Answer() for number in numbers}
        self.goaway = None
        super().__init__(loop, port, [begin(True) + b"".join(frames)], False, tunnel=tunnel, context=context)

    def ready(self):
        super().ready()
        if self.is_done or self.tunnel or not isinstance(self.socket, Link):
            return
        data, self.received = self.data, []
        try:
            for kind, flags, stream, payload in self.frames.take(data):
                self.take(kind, flags, self.answers.get(stream), payload)
        except OSError:
            return self.finish(True)
        if all(answer.is_over for answer in self.answers.values()):
            self.finish(False)

    def take(self, kind, flags, answer, payload):
        if kind == SETTINGS and not flags & 1:
            self.socket.sendall(frame(SETTINGS, 1, 0))
        elif kind == PING and not flags & 1:
            self.socket.sendall(frame(PING, 1, 0, payload))
        elif kind == GOAWAY:
            self.goaway = payload
        elif not answer:
            return
        elif kind == HEADERS:
            # Trailers have no status.
            if b":status" in dict(payload):
                answer.heads.append(payload)
        elif kind == DATA:
            answer.body += payload
        elif kind == RESET:
            (answer.code,) = struct.unpack(">I", payload)
        if answer and kind in (HEADERS, DATA) and flags & 1:
            answer.has_ended = True


class HTTP2Origin:
    """Answers requests with frames prepared for their paths."""

    def __init__(self, origin, connection):
        self.origin, self.socket = origin, connection
        self.frames, self.preface, self.has_begun = Frames(), b"", False
        origin.loop.add(connection, self)

    def close(self):
        self.origin.connections.discard(self)
        self.origin.loop.remove(self.socket)
        self.socket.close()

    def ready(self):
        try:
            data = self.socket.recv(1 << 18)
        except BlockingIOError:
            return
        except OSError:
            return self.close()
        if not data:
            return self.close()
        if len(self.preface) < len(PREFACE):
            self.preface += data
            if len(self.preface) < len(PREFACE):
                return
            data, self.preface = self.preface[len(PREFACE) :], self.preface[: len(PREFACE)]
        try:
            if not self.has_begun:
                self.has_begun = True
                self.socket.sendall(begin(False))
            for kind, flags, stream, payload in self.frames.take(data):
                if kind == SETTINGS and not flags & 1:
                    self.socket.sendall(frame(SETTINGS, 1, 0))
                elif kind == PING and not flags & 1:
                    self.socket.sendall(frame(PING, 1, 0, payload))
                elif kind == HEADERS:
                    self.socket.sendall(self.origin.answer(stream, dict(payload)[b":path"]))
        except OSError:
            self.close()


def context(is_server, protocols, certificate=None):
    """A TLS context for connections between the test's own ends, which verify nothing."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if is_server else ssl.PROTOCOL_TLS_CLIENT)
    if is_server:
        made.load_cert_chain(*certificate)
    else:
        made.check_hostname, made.verify_mode = False, ssl.CERT_NONE
    made.set_alpn_protocols(protocols)
    return made
