"""A strict reader of HTTP/2 messages, written from RFC 9113 alone. It gives their fields and bodies in HTTP/1.1. Like
model.py, it shares no code with the proxy."""

import re
from typing import NamedTuple

from model import CONTROL, FIELD_LIMIT, URI, Reader, Refused

NAME = re.compile(rb"[!#$%&'*+\-.^_`|~0-9a-z]+\Z")
TOKEN = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+\Z")
STATUS = re.compile(rb"[1-9][0-9][0-9]\Z")
CONNECTION_SPECIFIC = {b"connection", b"proxy-connection", b"keep-alive", b"transfer-encoding", b"upgrade"}
#: See "Cases that aren't differences" in known.py.
LENGTH, AFTER = "length isn't that of DATA", "what follows a message that is whole"
#: limits.request_head counts text; each field counts 32 extra bytes (RFC 9113 section 6.5.2).
HEAD_LIMIT, RESPONSE_HEAD_LIMIT = 65536, 262144


class Sent(NamedTuple):
    """A message in frames, as it is sent."""

    fields: list
    #: Payloads of DATA frames.
    pieces: list = []
    #: None: no trailers.
    trailers: list = None
    #: For a response: the error code that resets its stream at its end.
    reset: int = None
    #: For a response: the interim heads before it.
    interim: list = []

    @property
    def body(self):
        return b"".join(self.pieces)


class Asked(NamedTuple):
    """What an origin has to receive."""

    method: bytes
    target: bytes
    body: bytes


class StreamReader(Reader):
    """Reads messages, with the reasons of known.py, like `Reader`."""

    def section(self, fields, limit):
        """Splits a field section into pseudo-header fields and others."""
        pseudo, others = {}, []
        if len(fields) > FIELD_LIMIT:
            raise Refused("too many fields")
        if sum(len(name) + len(value) + 32 for name, value in fields) > limit:
            raise Refused("head too large")
        for name, value in fields:
            if CONTROL.search(value) or value[:1] in (b" ", b"\t") or value[-1:] in (b" ", b"\t"):
                raise Refused("value")
            if name[:1] == b":":
                if others:
                    raise Refused("late pseudo-field")
                if name in pseudo:
                    raise Refused("pseudo-field repeated")
                pseudo[name] = value
                continue
            if not NAME.match(name):
                raise Refused("name")
            if name in CONNECTION_SPECIFIC or name == b"te" and value.lower() != b"trailers":
                raise Refused("connection-specific field")
            others.append((name, value))
        return pseudo, others

    def length(self, others, sent):
        """Refuses a length that contradicts DATA."""
        lengths = [value for name, value in others if name == b"content-length"]
        if len(lengths) > 1:
            self.doubt("length repeated in HTTP/2", False)
        number, _ = self.framing(others, b"HTTP/1.1")
        if lengths and b"," in lengths[0]:
            self.doubt("length repeated in HTTP/2", False)
        return number

    def trailers(self, trailers, limit):
        pseudo, others = self.section(trailers or [], limit)
        if any(name == b"content-length" for name, _ in others):
            self.doubt("length in trailers of HTTP/2", False)
        if pseudo:
            raise Refused("pseudo-field in trailers")
        return others

    def request(self, sent, authority):
        """The meaning of a request inside CONNECT to an authority."""
        pseudo, others = self.section(sent.fields, HEAD_LIMIT)
        if set(pseudo) - {b":method", b":scheme", b":authority", b":path"}:
            raise Refused("pseudo-field")
        if not {b":method", b":scheme", b":path"} <= set(pseudo):
            raise Refused("pseudo-field missing")
        method, target = pseudo[b":method"], pseudo[b":path"]
        if not TOKEN.match(method):
            raise Refused("method")
        if method == b"CONNECT":
            raise Refused("CONNECT")
        if pseudo[b":scheme"].lower() != b"https":
            raise Refused("scheme")
        if target[:1] != b"/" and not (target == b"*" and method == b"OPTIONS"):
            raise Refused("path")
        if b"#" in target:
            raise Refused("fragment")
        if re.search(rb"[\x00-\x20\x7f]", target):
            raise Refused("path")
        if not URI.match(target):
            self.doubt("target not a URI", True)
        hosts = [value for name, value in others if name == b"host"]
        if len(hosts) > 1:
            raise Refused("two hosts")
        said = [*hosts, *([pseudo[b":authority"]] if b":authority" in pseudo else [])]
        if not said or any(host != authority for host in said):
            raise Refused("another authority than CONNECT")
        if [value for name, value in others if name == b"max-forwards"]:
            raise Refused("Max-Forwards isn't tried here")
        number = self.length(others, sent)
        others = self.trailers(sent.trailers, HEAD_LIMIT)
        if len(hosts) + sum(name == b"host" for name, _ in others) > 1:
            self.doubt("host repeated in trailers of HTTP/2", False)
        if number is not None and number != len(sent.body):
            raise Refused(LENGTH)
        return Asked(method, target, sent.body)

    def response(self, sent, method):
        """The status and body of a response to a method."""
        for fields in sent.interim:
            status, _ = self.head(fields)
            if not 100 <= status < 200:
                raise Refused("interim head")
            if status == 101:
                raise Refused("101")
        status, others = self.head(sent.fields)
        if status == 101:
            raise Refused("101")
        if status < 200:
            raise Refused("no final head")
        number = self.length(others, sent)
        if status == 206:
            self.doubt("206 unasked", False)
        has_body = method != b"HEAD" and status not in (204, 304)
        if has_body and number is not None and number != len(sent.body):
            raise Refused(LENGTH)
        try:
            self.trailers(sent.trailers, RESPONSE_HEAD_LIMIT)
            if sent.reset is not None:
                raise Refused("reset")
            if not has_body and sent.body:
                raise Refused("DATA")
        except Refused as refused:
            raise refused if has_body and status != 205 and number is None else Refused(AFTER) from None
        if status == 205:
            self.doubt("205", False)
            return status, b""
        return status, sent.body if has_body else b""

    @staticmethod
    def said(sent, method):
        """The part of a response's body that its head announces. If only the end is refused, an HTTP/1.1 client has a
        complete message by then. None: it can't be complete."""
        status, length = dict(sent.fields)[b":status"], dict(sent.fields).get(b"content-length", b"")
        if method == b"HEAD" or status in (b"204", b"205", b"304"):
            return b""
        return sent.body[: int(length)] if length.isdigit() and int(length) <= len(sent.body) else None

    def head(self, fields):
        pseudo, others = self.section(fields, RESPONSE_HEAD_LIMIT)
        if set(pseudo) != {b":status"}:
            raise Refused("pseudo-field")
        if not STATUS.match(pseudo[b":status"]):
            raise Refused("status")
        return int(pseudo[b":status"]), others
