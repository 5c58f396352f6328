"""A strict reader of HTTP/1.1 messages, written from RFC 9112 alone. It shares no code with the proxy.

Each doubt about a message has a name (a reason). known.py lists the reasons that would refuse a message but that
pinproxy passes on, and those where the RFC leaves a choice.
"""

import re
from typing import NamedTuple

TOKEN = rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
REQUEST_LINE = re.compile(rb"(" + TOKEN + rb") ([\x21-\x7e\x80-\xff]+) (HTTP/[0-9]\.[0-9])\Z")
STATUS_LINE = re.compile(rb"(HTTP/[0-9]\.[0-9]) ([1-9][0-9][0-9])(?: [\t\x20-\x7e\x80-\xff]*)?\Z")
FIELD = re.compile(rb"(" + TOKEN + rb"):[ \t]*((?:[^ \t](?:.*[^ \t])?)?)[ \t]*\Z", re.DOTALL)
CONTROL = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
URI = re.compile(rb"(?:[A-Za-z0-9\-._~:/?\[\]@!$&'()*+,;=]|%[0-9A-Fa-f]{2})*\Z")
ABSOLUTE = re.compile(rb"([A-Za-z][A-Za-z0-9+\-.]*)://([^/?]+)(.*)\Z", re.DOTALL)
HOST = re.compile(rb"(?:\[[0-9A-Fa-f:.]+\]|(?:[A-Za-z0-9\-._~!$&'()*+,;=]|%[0-9A-Fa-f]{2})*)(?::[0-9]*)?\Z")
HOST_TEXT = re.compile(rb"[A-Za-z0-9\-._~%!$&'()*+;=:\[\]]*\Z")
CHUNK_LINE = re.compile(rb"([0-9A-Fa-f]+)((?:[ \t]*;.*)?)\Z", re.DOTALL)
QUOTED = rb'"(?:[\t \x21\x23-\x5b\x5d-\x7e\x80-\xff]|\\[\t\x20-\x7e\x80-\xff])*"'
EXTENSIONS = re.compile(rb"(?:[ \t]*;[ \t]*" + TOKEN + rb"(?:[ \t]*=[ \t]*(?:" + TOKEN + rb"|" + QUOTED + rb"))?)*\Z")

#: pinproxy's configured and fixed limits.
HEAD_LIMIT, FIELD_LIMIT, OPTION_LIMIT, CHUNK_LINE_LIMIT, TRAILER_LIMIT = 65536, 1000, 32, 4096, 16384
RESPONSE_HEAD_LIMIT = 262144
#: Trailers from HTTP/2 have the limit of the head before them.
RELAYED_TRAILER_LIMIT = RESPONSE_HEAD_LIMIT


class Refused(Exception):
    """The message must be refused. The argument is the reason."""


class Incomplete(Exception):
    """The message is incomplete."""


class Message(NamedTuple):
    method: bytes
    target: bytes
    body: bytes
    #: No further message follows on the connection.
    closes: bool
    host: bytes
    #: The recipient answers it directly (Max-Forwards: 0).
    is_own: bool = False


class Answer(NamedTuple):
    status: int
    body: bytes
    #: Where the next message begins.
    end: int
    fields: list
    #: The body ends when the connection closes.
    until_close: bool


class Reader:
    """Reads messages. `known` are the reasons of known.py; `used` counts those that applied."""

    def __init__(self, known, trailer_limit=TRAILER_LIMIT):
        """
        - Parameter trailer_limit: the limit for the trailers, and for each line of them.
        """
        self.known = known
        self.trailer_limit = trailer_limit
        self.used = {}
        #: The body of the last message with trailers.
        self.whole = None

    def doubt(self, reason, refuses):
        """Handles a reason that the RFC refuses, or allows a recipient to refuse; known.py decides."""
        entry = self.known.get(reason)
        if entry:
            refuses = entry.refuses
            self.used[reason] = self.used.get(reason, 0) + 1
        if refuses:
            raise Refused(reason)

    # Heads

    def lines(self, data, start, limit):
        """The lines of a head, and the offset of the body."""
        end = data.find(b"\r\n\r\n", start)
        head = data[start : end if end >= 0 else len(data)]
        whole = head.split(b"\r\n")
        if end < 0:
            rest = whole.pop()
            if rest.endswith(b"\r"):
                rest = rest[:-1]
            whole_text = [*whole, rest]
        else:
            whole_text = whole
        for line in whole_text:
            if CONTROL.search(line):
                raise Refused("control")
        if end < 0:
            if len(data) - start >= limit:
                raise Refused("head too large")
            return whole, None
        if end + 4 - start > limit:
            raise Refused("head too large")
        return whole, end + 4

    def fields(self, lines):
        if len(lines) > FIELD_LIMIT:
            raise Refused("too many fields")
        fields = []
        for line in lines:
            match = FIELD.match(line)
            if not match:
                raise Refused("field line")
            fields.append((match[1].lower(), match[2]))
        return fields

    def framing(self, fields, version):
        """The length of the body (None: unspecified), and whether it is chunked."""
        length = None
        digits = None
        chunked = False
        for name, value in fields:
            if name == b"content-length":
                for number in value.split(b","):
                    number = number.strip(b" \t")
                    if not number.isdigit():
                        raise Refused("Content-Length")
                    if int(number) > 2**63 - 1:
                        raise Refused("Content-Length too large")
                    if length is not None:
                        if int(number) != length:
                            raise Refused("Content-Length differs")
                        self.doubt("length repeated", False)
                        if len(number) != digits:
                            self.doubt("length repeated in other digits", False)
                    length, digits = int(number), len(number)
            elif name == b"transfer-encoding":
                codings = [c.strip(b" \t").lower() for c in value.split(b",")]
                if b"" in codings and len(codings) > 1:
                    self.doubt("empty coding", False)
                    codings = [c for c in codings if c]
                if codings != [b"chunked"] or chunked:
                    raise Refused("Transfer-Encoding")
                chunked = True
        if chunked and length is not None:
            raise Refused("both framings")
        if chunked and version == b"HTTP/1.0":
            raise Refused("Transfer-Encoding in HTTP/1.0")
        return length, chunked

    def keeps(self, fields, version):
        options = [
            o.strip(b" \t").lower() for name, value in fields if name == b"connection" for o in value.split(b",")
        ]
        options = [o for o in options if o]
        if len(options) > OPTION_LIMIT:
            raise Refused("too many options")
        return b"close" not in options and (version != b"HTTP/1.0" or b"keep-alive" in options)

    @staticmethod
    def version(text):
        if text[5:6] != b"1":
            raise Refused("version")
        return b"HTTP/1.0" if text == b"HTTP/1.0" else b"HTTP/1.1"

    # Bodies

    def chunks(self, data, at):
        """A chunked body, and the offset of its end."""
        body = []
        while True:
            line, at = self.line(data, at, CHUNK_LINE_LIMIT)
            match = CHUNK_LINE.match(line)
            if not match:
                raise Refused("chunk size")
            size = int(match[1], 16)
            if size > 2**63 - 1:
                raise Refused("chunk size too large")
            if len(match[1]) > 15:
                self.doubt("chunk size of many digits", False)
            if not EXTENSIONS.match(match[2]):
                self.doubt("chunk extension", True) if self.is_lax(match[2]) else self.refuse("chunk extension")
            if size == 0:
                break
            if len(data) < at + size:
                raise Incomplete
            body.append(data[at : at + size])
            at += size
            if data[at : at + 2] != b"\r\n":
                if b"\r\n".startswith(data[at : at + 2]):
                    raise Incomplete
                raise Refused("chunk end")
            at += 2
        start = at
        self.whole = b"".join(body)
        while True:
            line, at = self.line(data, at, self.trailer_limit)
            if not line:
                return self.whole, at
            if not FIELD.match(line):
                raise Refused("trailer")
            if at - start > self.trailer_limit:
                raise Refused("trailers too long")

    @staticmethod
    def refuse(reason):
        raise Refused(reason)

    #: Extensions that every reader parses alike: tokens, "=", blanks and complete quoted strings.
    LAX = re.compile(
        rb"[ \t]*;[ \t]*" + TOKEN + rb"(?:[ \t=]|" + TOKEN + rb"|" + QUOTED + rb"|;[ \t]*" + TOKEN + rb")*\Z"
    )

    def is_lax(self, text):
        return bool(self.LAX.match(text))

    @staticmethod
    def line(data, at, limit):
        end = data.find(b"\r\n", at)
        text = data[at:end] if end >= 0 else data[at:].removesuffix(b"\r")
        if CONTROL.search(text):
            raise Refused("control")
        if len(text) + 2 > limit:
            raise Refused("line too long")
        if end < 0:
            raise Incomplete
        return text, end + 2

    # Requests

    def request(self, data, at, authority=None, is_inside=False):
        """Reads one request. Returns it with the offset of the next. With an authority the recipient is a proxy for it,
        else a server.

        - Parameter is_inside: it came inside CONNECT to that authority.
        """
        while data.startswith(b"\r\n", at):
            at += 2
        if at == len(data) or data[at:] == b"\r":
            raise Incomplete
        lines, body_at = self.lines(data, at, HEAD_LIMIT)
        if not lines:
            raise Incomplete
        match = REQUEST_LINE.match(lines[0])
        if not match:
            raise Refused("request line")
        method, target, version = match[1], match[2], self.version(match[3])
        if b"#" in target:
            raise Refused("fragment")
        target = self.target(method, target, authority, is_inside)
        fields = self.fields(lines[1:])
        hosts = [value for name, value in fields if name == b"host"]
        if len(hosts) > 1:
            raise Refused("two hosts")
        for host in hosts:
            if not HOST_TEXT.match(host):
                if b"," in host:
                    self.doubt("comma in Host", False)
                raise Refused("Host")
            # An empty port is the scheme's (RFC 3986 section 6.2.3).
            if is_inside and host not in (authority, authority.removesuffix(b":80"), authority.removesuffix(b"80")):
                raise Refused("another Host than CONNECT")
            if not HOST.match(host):
                self.doubt("syntax of Host", True)
        length, chunked = self.framing(fields, version)
        keeps = self.keeps(fields, version)
        if body_at is None:
            raise Incomplete
        if not hosts and version != b"HTTP/1.0":
            raise Refused("no Host")
        if not URI.match(target):
            self.doubt("target not a URI", True)
        hops = [value for name, value in fields if name == b"max-forwards"] if method in (b"OPTIONS", b"TRACE") else []
        is_own = False
        if authority and hops:
            if len(hops) > 1 or not hops[0].isdigit():
                raise Refused("Max-Forwards")
            is_own = int(hops[0]) == 0
        if is_own and (chunked or length is not None):
            # A server that answers a request directly needn't read its body, but then it has to close.
            return Message(method, target, b"", True, b"", True), len(data)
        if chunked:
            body, end = self.chunks(data, body_at)
        else:
            end = body_at + (length or 0)
            if len(data) < end:
                raise Incomplete
            body = data[body_at:end]
        return Message(method, target, body, not keeps, hosts[0] if hosts else b"", is_own), end

    def target(self, method, target, authority, is_inside):
        if method == b"CONNECT":
            raise Refused("CONNECT")
        if authority is None or is_inside:
            if target[:1] == b"/" or (target == b"*" and method == b"OPTIONS"):
                return target
            if not is_inside:
                raise Refused("target")
        match = ABSOLUTE.match(target)
        if not match or match[1].lower() != b"http" or match[2] != authority:
            raise Refused("target")
        path = match[3]
        if not path:
            return b"*" if method == b"OPTIONS" else b"/"
        return b"/" + path if path[:1] == b"?" else path

    def requests(self, data, authority, is_inside=False):
        """All requests of a connection to a proxy, and how it ends. That is "end", "closed", "incomplete" or the reason
        of a refusal."""
        messages = []
        at = 0
        while True:
            try:
                message, at = self.request(data, at, authority, is_inside)
            except Incomplete:
                rest = data[at:]
                return messages, "end" if not rest.strip(b"\r\n") else "incomplete"
            except Refused as refused:
                # Whether an incomplete head is answered depends on how much of it was read.
                has_head = b"\r\n\r\n" in data[at:].lstrip(b"\r\n")
                return messages, f"refused: {refused}" if has_head else "incomplete"
            messages.append(message)
            if message.closes:
                return messages, "closed"

    # Responses

    def response(self, data, method, at=0, has_ended=True, is_client=False):
        """The final response. A client's own reader (`is_client`) skips doubts that depend on the request."""
        while True:
            lines, body_at = self.lines(data, at, RESPONSE_HEAD_LIMIT)
            if lines and not lines[0]:
                raise Refused("empty line")
            match = STATUS_LINE.match(lines[0]) if lines else None
            if lines and not match:
                raise Refused("status line")
            if not lines:
                raise Incomplete
            version, status = self.version(match[1]), int(match[2])
            fields = self.fields(lines[1:])
            length, chunked = self.framing(fields, version)
            self.keeps(fields, version)
            if body_at is None:
                raise Incomplete
            if status == 101:
                raise Refused("101 unasked")
            if status >= 200:
                break
            at = body_at
        if status == 206 and not is_client:
            self.doubt("206 unasked", False)
        if method == b"HEAD" or status in (204, 304):
            return Answer(status, b"", body_at, fields, False)
        if status == 205 and not is_client:
            self.doubt("205", False)
            return Answer(status, b"", body_at, fields, False)
        if chunked:
            body, end = self.chunks(data, body_at)
            return Answer(status, body, end, fields, False)
        if length is not None:
            if len(data) < body_at + length:
                raise Incomplete
            return Answer(status, data[body_at : body_at + length], body_at + length, fields, False)
        if not has_ended:
            raise Incomplete
        return Answer(status, data[body_at:], len(data), fields, True)
