"""Generates random HTTP/2 messages and their frames (RFC 9113 section 4, RFC 7541)."""

import struct

from mutate import MARK, METHODS, NUMBERS, ODD_METHODS, PATHS, Maker
from streams import Sent

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RESET, SETTINGS, PING, GOAWAY, WINDOW, CONTINUATION = 0, 1, 3, 4, 6, 7, 8, 9
#: Windows too large to be exhausted here: INITIAL_WINDOW_SIZE, and the connection's.
WIDE = (struct.pack(">HI", 4, 1 << 30), struct.pack(">I", (1 << 30) - 65535))

VALUES = [
    b"a",
    b"",
    b"\xe9\xff",
    b"a\r\nsmuggled: 1",
    b"a\nb",
    b"a\rb",
    b"a\x00b",
    b" a",
    b"a ",
    b"\ta",
    b"a\x7f",
    b"a\x1b",
    b"a\x85b",
    b"a\x0bb",
    b"a,b",
    b"a\r\n\r\nGET /smuggled HTTP/1.1\r\nhost: a\r\n\r\n",
    b"a" * 5000,
    b"\r\n",
    b"a\r\n b",
]
NAMES = [
    b"X-Upper",
    b"x-a\x00",
    b"x a",
    b"",
    b"x-a:",
    b"x-a\r\nsmuggled",
    b"x-a\n",
    b"x\xe9",
    b"x-a ",
    b" x-a",
    b"x_a",
    b"(x)",
    b"x-a\x7f",
    b"Content-Length",
    b"content_length",
    b"content-length ",
    b"Transfer-Encoding",
    b"transfer-encoding\x00",
    b"transfer_encoding",
    b"x-a: b\r\ncontent-length",
    b"\t",
    b"x-\x85",
]
FIELDS = [
    (b"connection", b"close"),
    (b"connection", b"keep-alive, x-a"),
    (b"keep-alive", b"timeout=5"),
    (b"proxy-connection", b"close"),
    (b"transfer-encoding", b"chunked"),
    (b"transfer-encoding", b"identity"),
    (b"transfer-encoding", b""),
    (b"upgrade", b"h2c"),
    (b"upgrade", b"websocket"),
    (b"te", b"trailers"),
    (b"te", b"Trailers"),
    (b"te", b"trailers, chunked"),
    (b"te", b"chunked"),
    (b"te", b""),
    (b"cookie", b"a=1"),
    (b"cookie", b"b=2"),
    (b"http2-settings", b"AAA"),
    (b"expect", b"100-continue"),
    (b"trailer", b"x-t"),
    (b"priority", b"u=1, i"),
    (b"via", b"2 a"),
    (b"forwarded", b"for=a"),
    (b"content-encoding", b"chunked"),
    (b"x-http-method-override", b"DELETE"),
    (b"content-length2", b"5"),
    (b"proxy-authorization", b"Basic YTpi"),
]
PSEUDO = [
    (b":status", b"200"),
    (b":foo", b"a"),
    (b":protocol", b"websocket"),
    (b":Method", b"GET"),
    (b":", b"a"),
    (b":path", b"/smuggled"),
    (b":method", b"GET"),
    (b":scheme", b"https"),
    (b":authority", b"other.test"),
    (b":path ", b"/smuggled"),
    (b":host", b"a"),
]
SCHEMES = [b"http", b"HTTPS", b"ftp", b"", b"https://a/", b"https\r\nsmuggled: 1", b"https:", b"h\x00"]
AUTHORITIES = [
    b"other.test",
    b"",
    b"a@{0}",
    b"{0}:1",
    b"{0} ",
    b"{0}\r\nsmuggled: 1",
    b"{0}/smuggled",
    b"{0}?a",
    b"{0}\x00",
    b"{0},{0}",
    b"[{0}]",
    b"\xe9",
    b"{0}#a",
]
PATH_PARTS = [
    b" HTTP/1.1\r\nsmuggled: 1\r\nx: ",
    b" HTTP/1.1",
    b"\r\n\r\nGET /smuggled HTTP/1.1\r\n\r\n",
    b"\n",
    b"\x00",
    b"\t",
    b" ",
    b"\r",
    b"\xa0",
]
STATUSES = [
    b"201",
    b"204",
    b"205",
    b"206",
    b"304",
    b"404",
    b"500",
    b"999",
    b"600",
    b"99",
    b"2000",
    b"20",
    b"+20",
    b"2x0",
    b"",
    b"200 OK",
    b" 200",
    b"200\r\nsmuggled: 1",
    b"100",
    b"101",
    b"103",
    b"000",
    b"099",
    b"-20",
    b"\xb2\xb2\xb2",
]
TRAILERS = [
    (b"x-t", b"a"),
    (b"content-length", b"5"),
    (b"transfer-encoding", b"chunked"),
    (b"host", b"a"),
    (b":path", b"/smuggled"),
    (b":status", b"200"),
    (b"X-T", b"a"),
    (b"x-t", b"a\r\nsmuggled: 1"),
    (b"x-t", b"a\r\n\r\nGET /smuggled HTTP/1.1\r\n\r\n"),
    (b"connection", b"close"),
    (b"", b"a"),
    (b"x\x00", b"a"),
    (b"x-t", b"a" * 20000),
]


class FrameMaker(Maker):
    """Generates messages and their frames."""

    def length(self, body, share):
        if not self.odd(share * 2):
            return [(b"content-length", b"%d" % len(body))] if self.odd(0.6) else []
        fields = [(b"content-length", self.number(len(body), NUMBERS))]
        return fields + [(b"content-length", self.number(len(body), NUMBERS))] * self.odd(0.3)

    def pieces(self, body):
        pieces, at = [], 0
        while at < len(body):
            size = 1 + int(self.random.random() * self.pick([20, 400, 16000]))
            pieces.append(body[at : at + size])
            at += size
        while self.odd(0.1):
            pieces.insert(int(self.random.random() * (len(pieces) + 1)), b"")
        return pieces

    def add_fields(self, fields, share, first=0):
        while self.odd(share * 4):
            at = first + int(self.random.random() * (len(fields) + 1 - first)) if not self.odd(0.15) else 0
            kind = self.random.random()
            if kind < 0.4:
                field = self.pick(FIELDS)
            elif kind < 0.6:
                field = (self.pick(NAMES), self.pick([b"a", b"5", b"chunked"]))
            elif kind < 0.85:
                field = (b"x-a", self.pick(VALUES))
            elif kind < 0.99:
                field = self.pick(PSEUDO)
            else:
                fields[at:at] = [(b"x-%d" % n, b"a") for n in range(self.pick([300, 1100]))]
                continue
            fields.insert(at, field)

    def trailers(self, share):
        if not self.odd(0.1 + share):
            return None
        return [(b"x-t", b"a")] if not self.odd(share * 4) else [self.pick(TRAILERS) for _ in range(1 + self.odd(0.3))]

    def request_stream(self, name, authority, share):
        method = self.pick(ODD_METHODS) if self.odd(share) else self.pick(METHODS)
        path = b"/" + name
        if self.odd(share * 2):
            path = self.pick(
                [
                    path + self.pick(PATHS),
                    path + self.pick(PATH_PARTS) + self.pick([b"", b"a"]),
                    self.pick(PATHS),
                    b"*",
                    b"",
                    authority,
                    b"https://" + authority + path,
                ]
            )
        scheme = self.pick(SCHEMES) if self.odd(share) else b"https"
        said = self.pick(AUTHORITIES).replace(b"{0}", authority) if self.odd(share) else authority
        inner = b"GET /%s HTTP/1.1\r\nHost: %s\r\n\r\n" % (MARK, authority)
        body = self.body(inner) if method not in (b"GET", b"HEAD") or self.odd(0.3) else b""
        pseudo = [(b":method", method), (b":scheme", scheme), (b":authority", said), (b":path", path)]
        self.random.shuffle(pseudo)
        if self.odd(share):
            at = int(self.random.random() * 4)
            pseudo[at : at + 1] = self.pick([[], [pseudo[at], pseudo[at]]])
        fields = pseudo + self.length(body, share)
        if self.odd(share):
            fields.insert(len(pseudo), (b"host", self.pick([authority, b"other.test", b""])))
        self.add_fields(fields, share, len(pseudo))
        return Sent(fields, self.pieces(body), self.trailers(share))

    def response_stream(self, name, share):
        status = self.pick(STATUSES) if self.odd(share * 2) else b"200"
        inner = b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n" + MARK
        body = name + self.body(inner)
        if status in (b"204", b"304") and not self.odd(0.2):
            body = b""
        fields = [(b":status", status), *self.length(body, share)]
        self.add_fields(fields, share, 1)
        interim = []
        while self.odd(0.1):
            head = [(b":status", self.pick([b"100", b"102", b"103", b"103", b"199"]))]
            self.add_fields(head, share, 1)
            interim.append(head)
        reset = self.pick([0, 1, 2, 8, 11, 12]) if self.odd(share) else None
        return Sent(fields, self.pieces(body), self.trailers(share), reset, interim)

    # Frames

    def section(self, stream, fields, ends):
        """HEADERS and CONTINUATION, sometimes with padding and priority."""
        block = b"".join(b"\x00" + text(name) + text(value) for name, value in fields)
        cuts = sorted(int(self.random.random() * (len(block) + 1)) for _ in range(self.pick([0, 0, 0, 1, 3])))
        parts, at = [], 0
        for cut in [*cuts, len(block)]:
            parts += [block[n : min(n + 16000, cut)] for n in range(at, cut, 16000)] or [b""]
            at = cut
        flags = 1 if ends else 0
        first = parts[0]
        if self.odd(0.05):
            flags, first = flags | 0x20, b"\0\0\0\0\x10" + first
        if self.odd(0.05):
            flags, first = flags | 8, b"\3" + first + b"\0\0\0"
        if len(parts) == 1:
            return frame(HEADERS, flags | 4, stream, first)
        rest = [frame(CONTINUATION, 4 if n == len(parts) - 2 else 0, stream, part) for n, part in enumerate(parts[1:])]
        return frame(HEADERS, flags, stream, first) + b"".join(rest)

    def frames(self, stream, sent):
        """The frames of a message. Frames of other streams may be interleaved."""
        frames = [self.section(stream, head, False) for head in sent.interim]
        last = sent.trailers is None and sent.reset is None
        frames.append(self.section(stream, sent.fields, last and not sent.pieces))
        for number, piece in enumerate(sent.pieces):
            flags = 1 if last and number == len(sent.pieces) - 1 else 0
            padded = self.odd(0.05)
            frames.append(frame(DATA, flags | 8 * padded, stream, b"\2" * padded + piece + b"\0\0" * padded))
        if sent.trailers is not None:
            frames.append(self.section(stream, sent.trailers, sent.reset is None))
        if sent.reset is not None:
            frames.append(frame(RESET, 0, stream, struct.pack(">I", sent.reset)))
        return frames


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def text(data):
    """A string literal without Huffman coding (RFC 7541 section 5.2)."""
    if len(data) < 127:
        return bytes([len(data)]) + data
    rest, number = b"\x7f", len(data) - 127
    while number >= 128:
        rest += bytes([number % 128 + 128])
        number //= 128
    return rest + bytes([number]) + data


def begin(is_client):
    settings, window = WIDE
    return (PREFACE if is_client else b"") + frame(SETTINGS, 0, 0, settings) + frame(WINDOW, 0, 0, window)
