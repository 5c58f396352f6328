"""Generates requests and responses from a grammar of what readers disagree about, and mutates bytes."""

MARK = b"smuggled"

METHODS = [b"GET", b"POST", b"PUT", b"HEAD", b"DELETE", b"PATCH", b"OPTIONS", b"TRACE"]
ODD_METHODS = [
    b"get",
    b"M-SEARCH",
    b"X",
    b"CONNECT",
    b"GE T",
    b"G(T",
    b"",
    b"GET\t",
    b" GET",
    b"G\x00T",
    b"\xe9",
    b"PRI",
    b"QUERY",
]
VERSIONS = [
    b"HTTP/1.0",
    b"HTTP/1.2",
    b"HTTP/1.9",
    b"HTTP/2.0",
    b"HTTP/0.9",
    b"HTTP/1.10",
    b"http/1.1",
    b"HTTP/1,1",
    b"HTTP /1.1",
    b"HTTP/1.1 ",
    b"",
    b"HTTP/11",
    b"HTTP/1.1\x0b",
    b"HTTP/-1.1",
    b"HTTP/1.1 HTTP/1.1",
]
LINE_ENDS = [
    b"\n",
    b"\r",
    b"\r\r\n",
    b"\n\r\n",
    b"\r\n\r\n",
    b"\r\n ",
    b"\r\n\t",
    b"\x0b\r\n",
    b" \r\n",
    b"\t\r\n",
    b"\x85",
    b"\n\n",
    b"\x00\r\n",
    b"\x0c\r\n",
    b"\xe2\x80\xa8",
]
COLONS = [b":", b" :", b"\t:", b": \t ", b"", b"::", b"=", b"\x00:", b"\xa0:", b"\x0b:", b":\xa0", b":\x0b"]
SPACES = [b"  ", b"\t", b"", b"\x0b", b"\x0c", b"\xa0", b"\x00", b"\r", b" \t"]
NUMBERS = [
    "+{0}",
    "-{0}",
    "0{0}",
    "00000000000000000000{0}",
    "0x{0:x}",
    "{0}.0",
    "{0},{0}",
    "{0}, {0}",
    "{0},0{0}",
    "0,{0}",
    "{0},0",
    "{0} ",
    "{0} {0}",
    "{0}_0",
    "0_{0}",
    "{0}e0",
    '"{0}"',
    "",
    " ",
    "{0};a",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551616",
    "1844674407370955161{0}",
    "\u0661",
    "{0}\x00",
    "{0}\x0b",
    "{0},",
    ",{0}",
    "{1}",
    "{2}",
    "+0",
    "0",
    "{0}\t",
    "\xa0{0}",
    "-0",
    "{0},+{0}",
    "{0}\x85",
]
CODINGS = [
    b"chunked",
    b"Chunked",
    b"CHUNKED",
    b"chunKed",
    b" chunked",
    b"chunked ",
    b"\tchunked",
    b"\x0bchunked",
    b"chunked\x0b",
    b'"chunked"',
    b"'chunked'",
    b"xchunked",
    b"chunked1",
    b"chunked, chunked",
    b"gzip, chunked",
    b"chunked, gzip",
    b"identity",
    b"identity, chunked",
    b"chunked, identity",
    b"chunked;q=1",
    b"chunked ;a=b",
    b"",
    b",",
    b",chunked",
    b"chunked,",
    b", chunked ,",
    b"chun\xe4ked",
    b"chunked\x00",
    b"\x00chunked",
    b"cow",
    b"compress",
    b"chu\r\n nked",
    b"\r\n chunked",
    b"chunked\r\n ",
    b"\xc3\xa7hunked",
    b"chun\xe2\x84\xaaed",
    b"chunked\x85",
    b"\xa0chunked",
    b"trailers, chunked",
    b"chunked chunked",
]
OPTIONS = [
    b"close",
    b"Close",
    b"keep-alive",
    b"Keep-Alive",
    b"close, keep-alive",
    b"keep-alive, close",
    b"Content-Length",
    b"Transfer-Encoding",
    b"Host",
    b"X-Case",
    b"X-Id",
    b"upgrade",
    b"TE",
    b",",
    b",,close",
    b"clo se",
    b"close;a",
    b"xclose",
    b"",
    b", ".join([b"a"] * 20),
    b", ".join([b"a"] * 40),
    b"Content-Length, Transfer-Encoding, close",
    b"HTTP2-Settings",
]
SIZES = [
    "{0:x}",
    "{0:X}",
    "0{0:x}",
    "00000000{0:x}",
    "00000000000000{0:x}",
    "000000000000000000{0:x}",
    "0x{0:x}",
    "+{0:x}",
    "-{0:x}",
    "{0:x} ",
    " {0:x}",
    "{0:x}\t",
    "{0:x};",
    "{0:x};a",
    "{0:x};a=b",
    "{0:x} ;a=b",
    '{0:x};a="b"',
    '{0:x};a="b;\\"c"',
    '{0:x};a="\r\n',
    "{0:x};a\n",
    "{0:x};a\r",
    "{0:x}_0",
    "0_{0:x}",
    "{0:x}g",
    "{0:x}.0",
    "ffffffffffffffff",
    "10000000000000000",
    "10000000000000{0:03x}",
    "7fffffffffffffff",
    "8000000000000000",
    "",
    "{0:x}\x00",
    "{0:x}\x0b",
    "{1:x}",
    "{2:x}",
    "{0:x};;a",
    "{0:x};a=b=c",
    "{0:x};\xe9",
    "{0:x};a=\xe9",
    "{0:x} {0:x}",
    "{0:x};a b",
    "{0:x}\xa0",
    "{0:x},{0:x}",
    "{0}",
    '{0:x};a="b',
    "{0:x};=b",
    "{0:x}; a = b",
    "-0",
    "0 ",
    "0;a",
    "00",
    "0x0",
    "000000000000000000000",
]
EXTRA = [
    b"X-A: b",
    b"X-A:",
    b"X-A: \xe9\xff",
    b"X-A: a\x85Content-Length: 5",
    b"X-A: a\x00b",
    b"X-A: a\rb",
    b"X-A: a\r\n b",
    b"X-A: a\r\n\tb",
    b" X-A: b",
    b": b",
    b"X A: b",
    b"X-A",
    b"X_A: b",
    b"Content_Length: 5",
    b"Content-Length\xc0: 5",
    b"X-A: \x7f",
    b"X-A: \x1b",
    b"Content-Lengt: 5",
    b"Content-Length2: 5",
    b"Transfer_Encoding: chunked",
    b"Transfer-Encoding\x00: chunked",
    b"Expect: 100-continue",
    b"Expect: 100-Continue",
    b"Expect: 200-ok",
    b"Expect: 100-continue, a",
    b"Upgrade: websocket",
    b"Upgrade: h2c",
    b"HTTP2-Settings: AAA",
    b"TE: trailers",
    b"TE: chunked",
    b"TE: trailers, chunked",
    b"Trailer: X-T",
    b"Keep-Alive: a=1",
    b"Proxy-Connection: close",
    b"Proxy-Connection: keep-alive",
    b"Max-Forwards: 1",
    b"Max-Forwards: 0",
    b"Max-Forwards: 01",
    b"Max-Forwards: -1",
    b"X-HTTP-Method-Override: DELETE",
    b"Content-Encoding: chunked",
    b"Range: bytes=0-1",
    b"Via: 1.1 a",
    b"Forwarded: for=a",
    b"(X): b",
    b"X-A\t: b",
    b"\xe9: b",
    b"\x00: b",
    b'Cookie: a="b\r\n"',
    b"X-A: " + b"a" * 2000,
]
HOSTS = [
    b"Host: other.test",
    b"Host:",
    b"Host: a b",
    b"Host: a,b",
    b"Host: a@b",
    b"Host: a/b",
    b"Host: [::1]",
    b"Host: [",
    b"Host: a:b",
    b"Host: a:1:2",
    b"Host: a\x00",
    b"Host: \xe9",
    b"Host : a",
    b"Host: a\r\nHost: a",
    b"Host: a\r\nHost: b",
    b"",
    b"Hos\xf4: a",
    b"Host: a\r\n b",
    b"Host: %41",
    b"Host: %zz",
    b"Host: a?b",
    b"Host: a#b",
    b"Host: a\\b",
]
PATHS = [
    b"",
    b"?a",
    b"/%00",
    b"/%",
    b"/a%20b",
    b"/a b",
    b"/a\tb",
    b"/\xe9",
    b"/a#b",
    b"/a?b#c",
    b"/../x",
    b"/./",
    b"//x",
    b"/a\\b",
    b"/a;b",
    b"/{}",
    b"/a|b",
    b"/a\x7fb",
    b"/a\x00b",
    b"/a\x0bb",
    b"/%0d%0a",
    b"/http://a/",
    b"\\a",
    b"/\xa0a",
    b"/a\xa0HTTP/1.1",
    b"/\x85",
    b"*",
    b"/*",
    b"/a?b=" + b"c" * 3000,
]
TRAILERS = [
    b"X-T: a",
    b"Content-Length: 5",
    b"Transfer-Encoding: chunked",
    b"Host: a",
    b"X-T : a",
    b"X-T",
    b" X-T: a",
    b": a",
    b"X-T: a\r\n b",
    b"X-T: \x00",
    b"X-T: a\nX-U: b",
    b"\xe9: a",
    b"X-T: a\rb",
    b"GET / HTTP/1.1",
    b"X-T: " + b"a" * 20000,
    b"Connection: close",
    b"X-T:\xe9",
]
STATUS_LINES = [
    b"HTTP/1.1 200",
    b"HTTP/1.1 200 ",
    b"HTTP/1.0 200 OK",
    b"HTTP/1.1 201 Created",
    b"HTTP/1.1 204 No Content",
    b"HTTP/1.1 205 Reset",
    b"HTTP/1.1 206 Part",
    b"HTTP/1.1 304 Not Modified",
    b"HTTP/1.1 301 Moved",
    b"HTTP/1.1 404 Not Found",
    b"HTTP/1.1 418 \xe9",
    b"HTTP/1.1 500 a\tb",
    b"HTTP/1.1 999 Odd",
    b"HTTP/1.1 600 Odd",
    b"HTTP/1.1 099 a",
    b"HTTP/1.1 000 a",
    b"HTTP/1.1 20 a",
    b"HTTP/1.1 2000 a",
    b"HTTP/1.1  200 OK",
    b"HTTP/1.1\t200 OK",
    b"HTTP/1.1 200\tOK",
    b"HTTP/1.1 200OK",
    b"HTTP/2.0 200 OK",
    b"HTTP/2 200 OK",
    b"http/1.1 200 OK",
    b"HTTP/1.1 200 a\x00",
    b"HTTP/1.1 200 a\rb",
    b"HTTP/1.1 +20 OK",
    b"HTTP/1.1 2x0 OK",
    b"",
    b"HTTP/1.2 200 OK",
    b" HTTP/1.1 200 OK",
    b"\r\nHTTP/1.1 200 OK",
    b"HTTP/1.1",
    b"ICY 200 OK",
    b"HTTP/1.1 101 Switching",
    b"HTTP/1.1 -200 OK",
    b"HTTP/1.10 200 OK",
]
INTERIM = [
    b"HTTP/1.1 100 Continue\r\n\r\n",
    b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n",
    b"HTTP/1.1 102 Processing\r\nContent-Length: 5\r\n\r\n",
    b"HTTP/1.1 100 Continue\r\nTransfer-Encoding: chunked\r\n\r\n",
    b"HTTP/1.1 199 Odd\r\nX-A: b\r\n\r\n",
    b"HTTP/1.1 100 Continue\n\n",
    b"HTTP/1.1 100 Continue\r\nContent-Length: a\r\n\r\n",
    b"HTTP/1.1 100 Continue\r\nConnection: close\r\n\r\n",
]


class Maker:
    """Generates messages from a random source."""

    def __init__(self, random):
        self.random = random

    def odd(self, share):
        return self.random.random() < share

    def pick(self, list):
        return list[int(self.random.random() * len(list))]

    def number(self, count, forms):
        """A number in some notation: correct, or off by one."""
        text = self.pick(forms)
        return text.format(count, count + 1, max(0, count - 1)).encode("latin-1", "replace")

    def body(self, inner):
        """A body that would be a message if it were parsed as one."""
        kind = self.random.random()
        if kind < 0.4:
            return inner
        if kind < 0.5:
            return b""
        if kind < 0.6:
            return b"0\r\n\r\n" + inner
        if kind < 0.65:
            return b"x" * int(self.random.random() * 40000)
        return b"abc"[: 1 + int(self.random.random() * 3)] + (b"\r\n" + inner if self.odd(0.3) else b"")

    def chunks(self, body, share):
        pieces = []
        at = 0
        while at < len(body):
            size = min(len(body) - at, 1 + int(self.random.random() * max(40, len(body) // 3)))
            end = self.pick(LINE_ENDS) if self.odd(share / 2) else b"\r\n"
            line = self.number(size, SIZES) if self.odd(share) else b"%x" % size
            pieces += [line, b"\r\n" if not self.odd(share / 3) else self.pick(LINE_ENDS), body[at : at + size], end]
            at += size
        pieces.append(
            b"0\r\n"
            if not self.odd(share)
            else self.pick(
                [b"00\r\n", b"0\n", b"0\r\r\n", b"0;a\r\n", b"0 \r\n", b"-0\r\n", b"0x0\r\n", b"", b"0\r\n\r\n0\r\n"]
            )
        )
        if self.odd(0.1 + share):
            pieces += [self.pick(TRAILERS), b"\r\n"]
        pieces.append(b"\r\n" if not self.odd(share / 2) else self.pick(LINE_ENDS))
        return b"".join(pieces)

    def framed(self, body, share):
        """Fields that frame a body, and the body, which matches them more or less."""
        kind = self.random.random()
        chunked = kind < 0.4
        length = kind >= 0.4 and (body or kind < 0.6)
        fields = []
        if chunked:
            fields.append(b"Transfer-Encoding: " + (self.pick(CODINGS) if self.odd(share * 2) else b"chunked"))
            wire = self.chunks(body, share)
        else:
            wire = body
            if length:
                fields.append(
                    b"Content-Length: "
                    + (self.number(len(body), NUMBERS) if self.odd(share * 2) else b"%d" % len(body))
                )
            elif not self.odd(share):
                wire = b""
        if self.odd(share):
            fields.append(
                self.pick(
                    [
                        b"Content-Length: " + self.number(len(wire), NUMBERS),
                        b"Content-Length: 0",
                        b"content-length: %d" % len(wire),
                        b"Content-Length: %d" % len(body),
                        b"transfer-encoding: chunked",
                        b"Transfer-Encoding: " + self.pick(CODINGS),
                    ]
                )
            )
            self.random.shuffle(fields)
        return fields, wire

    def head(self, start, fields, share):
        """Joins lines with line ends, sometimes with an odd colon or line end."""
        lines = [start, *fields]
        if share == 0 or not self.odd(share * 4):
            return b"\r\n".join(lines) + b"\r\n\r\n"
        text = []
        for line in lines:
            if self.odd(share):
                line = line.replace(b":", self.pick(COLONS), 1)
            text += [line, self.pick(LINE_ENDS) if self.odd(share) else b"\r\n"]
        text.append(b"\r\n" if not self.odd(share) else self.pick(LINE_ENDS))
        return b"".join(text)

    def request(self, name, url, share, is_inside=False):
        """One request. `share` is the probability that a part is odd.

        - Parameter url: the beginning of the absolute target.
        - Parameter is_inside: whether it is for a tunnel, where targets are paths.
        """
        authority = url[7:]
        method = self.pick(ODD_METHODS) if self.odd(share) else self.pick(METHODS)
        path = b"/" + name
        if self.odd(share):
            path += self.pick(PATHS) if self.odd(0.6) else b""
        target = path if is_inside and not self.odd(0.1) else url + path
        if self.odd(share / 2):
            target = self.pick(
                [
                    path,
                    b"*",
                    url,
                    url + self.pick(PATHS),
                    b"http://a@" + authority + path,
                    b"HTTP://" + authority + path,
                    b"http:/" + authority + path,
                    b"http:" + path,
                    b"ftp://" + authority + path,
                    b"//" + authority + path,
                    authority,
                    b"http://" + authority + b"9" + path,
                    b"http://[" + authority + b"]" + path,
                    b"http://%31" + authority[1:] + path,
                    b"http:///" + path,
                    b"http://" + authority + b"\\" + path,
                ]
            )
        version = self.pick(VERSIONS) if self.odd(share) else b"HTTP/1.1"
        space = [self.pick(SPACES) if self.odd(share / 4) else b" " for _ in range(2)]
        inner = b"GET %s/%s HTTP/1.1\r\nHost: %s\r\n\r\n" % (url if self.odd(0.5) else b"", MARK, authority)
        fields, wire = self.framed(self.body(inner) if method not in (b"GET", b"HEAD") or self.odd(0.3) else b"", share)
        host = b"Host: " + authority
        if self.odd(share):
            host = self.pick(HOSTS)
        fields.insert(int(self.random.random() * (len(fields) + 1)), host)
        if not host:
            fields.remove(host)
        self.add_odd(fields, share)
        text = self.head(b"".join([method, space[0], target, space[1], version]), fields, share) + wire
        return (self.pick([b"\r\n", b"\r\n\r\n", b"\n", b"\r", b" ", b"\x00"]) if self.odd(share / 3) else b"") + text

    def add_odd(self, fields, share):
        while self.odd(share * 3):
            at = int(self.random.random() * (len(fields) + 1))
            if self.odd(0.25):
                fields.insert(at, b"Connection: " + self.pick(OPTIONS))
            elif self.odd(0.004):
                fields[at:at] = [b"X-%d: a" % n for n in range(self.pick([900, 1100]))]
            elif self.odd(0.004):
                fields.insert(at, b"X-A: " + b"a" * self.pick([30000, 70000]))
            else:
                fields.insert(at, self.pick(EXTRA))

    def response(self, name, share):
        """One response, with its name in the body."""
        status = self.pick(STATUS_LINES) if self.odd(share * 2) else b"HTTP/1.1 200 OK"
        inner = b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\nX-Id: %s\r\n\r\n%s" % (MARK, MARK)
        fields, wire = self.framed(name + self.body(inner), share)
        self.add_odd(fields, share)
        text = self.head(status, fields, share) + wire
        while self.odd(0.1):
            text = self.pick(INTERIM if self.odd(0.5) else INTERIM[:3]) + text
        if self.odd(share):
            text += inner
        if self.odd(share / 2):
            text = text[: int(self.random.random() * len(text))]
        return text

    def flipped(self, data, protected=b""):
        """Changes, inserts, removes, doubles or moves bytes outside the protected part."""
        for _ in range(1 + int(self.random.random() * 3)):
            parts = data.split(protected) if protected else [data]
            index = int(self.random.random() * len(parts))
            part = parts[index]
            at = int(self.random.random() * (len(part) + 1))
            kind = int(self.random.random() * 6)
            if kind == 0 and at < len(part):
                part = part[:at] + bytes([part[at] ^ 1 << int(self.random.random() * 8)]) + part[at + 1 :]
            elif kind == 1:
                part = (
                    part[:at]
                    + self.pick(
                        [b"\r", b"\n", b"\r\n", b"\x00", b" ", b"\t", b":", b"\xff", b"0", b"\x0b", b",", b"\x85", b";"]
                    )
                    + part[at:]
                )
            elif kind == 2:
                part = part[:at] + part[at + 1 + int(self.random.random() * 4) :]
            elif kind == 3:
                end = at + int(self.random.random() * 40)
                part = part[:end] + part[at:end] + part[end:]
            elif kind == 4 and at < len(part):
                part = part[:at] + bytes([int(self.random.random() * 256)]) + part[at + 1 :]
            else:
                part = part[:at]
            parts[index] = part
            data = protected.join(parts)
        return data
