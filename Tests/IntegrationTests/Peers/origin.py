"""An HTTPS origin that does what well-behaved servers don't, depending on the path.

    origin.py --certificate chain.pem --key key.pem [--listen ADDRESS] [--port N] [--plain] [--tls12] [--session-ids]

Prints JSON lines: {"event": "ready", "port": N} first, then each connection, request and end.
"""

import argparse
import base64
import email
import email.policy
import fcntl
import hashlib
import json
import socket
import ssl
import struct
import sys
import termios
import threading
import time

from events import say

BLOCK = bytes(range(256)) * 256
releases = {}
stalled = False
lock = threading.Lock()


def release(name):
    with lock:
        return releases.setdefault(name, threading.Event())


class Peer:
    """One connection: reads requests exactly, and writes exact bytes."""

    def __init__(self, connection, number):
        self.connection = connection
        self.number = number
        self.received = b""
        self.requests = 0

    def fill(self):
        data = self.connection.recv(65536)
        if not data:
            raise EOFError
        self.received += data

    def until(self, mark):
        while mark not in self.received:
            self.fill()
        head, self.received = self.received.split(mark, 1)
        return head

    def exactly(self, count):
        """Yields the next bytes in pieces, so that a large body needs no memory."""
        while count:
            if not self.received:
                self.fill()
            piece = self.received[:count]
            self.received = self.received[len(piece) :]
            count -= len(piece)
            yield piece

    def body(self):
        """Yields the pieces of the request's body, and stores trailers in self.trailers."""
        self.trailers = []
        if "chunked" in self.fields.get("transfer-encoding", ""):
            while True:
                size = int(self.until(b"\r\n").split(b";")[0], 16)
                if size == 0:
                    break
                yield from self.exactly(size)
                self.until(b"\r\n")
            while line := self.until(b"\r\n"):
                self.trailers.append(line.decode())
        else:
            yield from self.exactly(int(self.fields.get("content-length", "0")))

    def request(self):
        lines = self.until(b"\r\n\r\n").decode("latin-1").split("\r\n")
        self.method, self.target, self.version = lines[0].split(" ", 2)
        self.lines = lines[1:]
        self.fields = {}
        for line in self.lines:
            name, _, value = line.partition(":")
            self.fields[name.lower()] = value.strip()
        self.requests += 1
        say(
            "request",
            connection=self.number,
            count=self.requests,
            method=self.method,
            target=self.target,
            lines=self.lines,
        )

    def send(self, data):
        self.connection.sendall(data if isinstance(data, bytes) else data.encode("latin-1"))

    def answer(self, body=b"", status="200 OK", fields=""):
        if isinstance(body, str):
            body = body.encode()
        self.send(f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n{fields}\r\n".encode() + body)

    def close_notify(self):
        if isinstance(self.connection, ssl.SSLSocket):
            self.connection = self.connection.unwrap()

    def cut(self):
        """Closes the connection at once: no close_notify, and a reset if data is unread."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        socket.socket(fileno=self.connection.detach()).close()

    def end_without_notify(self):
        """Closes TCP cleanly without close_notify, which looks like a truncated response."""
        raw = socket.socket(fileno=self.connection.detach())
        raw.shutdown(socket.SHUT_WR)
        raw.close()


def echo(peer, _, pause=0):
    digest, length = hashlib.sha256(), 0
    for piece in peer.body():
        digest.update(piece)
        length += len(piece)
        if pause:
            time.sleep(pause)
    peer.answer(
        json.dumps(
            {
                "method": peer.method,
                "target": peer.target,
                "version": peer.version,
                "lines": peer.lines,
                "length": length,
                "sha256": digest.hexdigest(),
                "trailers": peer.trailers,
                "connection": peer.number,
            }
        ),
        fields="Content-Type: application/json\r\n",
    )


def parts(peer, body):
    """The parts of a form, as read by Python's email package."""
    kind = peer.fields.get("content-type", "")
    if not kind.startswith("multipart/"):
        return []
    form = email.message_from_bytes(f"Content-Type: {kind}\r\n\r\n".encode() + body, policy=email.policy.HTTP)
    result = []
    for part in form.iter_parts():
        data = part.get_payload(decode=True)
        result.append(
            {
                "name": part.get_param("name", header="content-disposition"),
                "file": part.get_filename(),
                "type": part.get_content_type(),
                "length": len(data),
                "sha256": hashlib.sha256(data).hexdigest(),
                "text": data[:200].decode("latin-1"),
            }
        )
    return result


def received(peer, _):
    """Like /echo, with the body itself, and the parts of a form."""
    body = b"".join(peer.body())
    peer.answer(
        json.dumps(
            {
                "method": peer.method,
                "target": peer.target,
                "lines": peer.lines,
                "body": body[:1_000_000].decode("latin-1"),
                "length": len(body),
                "sha256": hashlib.sha256(body).hexdigest(),
                "parts": parts(peer, body),
                "connection": peer.number,
            }
        ),
        fields="Content-Type: application/json\r\n",
    )


def answer(peer, argument):
    """/answer/NAME/BASE64URL: these exact bytes; the connection stays open."""
    for _ in peer.body():
        pass
    peer.send(base64.urlsafe_b64decode(argument.split("/")[-1]))


def repeat(peer, _):
    """Sends the request's body back as the whole response."""
    peer.send(b"".join(peer.body()))


def redirect(peer, argument):
    """/redirect/STATUS,STATUS…/REST: redirects in sequence, then to /REST. If the last status is 0, to itself."""
    for _ in peer.body():
        pass
    statuses, rest = argument.split("/", 1)
    first, _, others = statuses.partition(",")
    if first == "0":
        return peer.answer("again", "302 Found", f"Location: {peer.target}\r\n")
    location = f"/redirect/{others}/{rest}" if others else f"/{rest}"
    peer.answer("elsewhere", f"{first} Elsewhere", f"Location: {location}\r\nSet-Cookie: hop=1\r\n")


def held_answer(peer, argument):
    """/held-answer/NAME/KIND/BASE64URL: these bytes; after /release/NAME the end. KIND is close (a clean end) or
    cut."""
    name, kind, text = argument.split("/")
    peer.send(base64.urlsafe_b64decode(text))
    say("held", name=name, connection=peer.number)
    release(name).wait(60)
    if kind == "cut":
        peer.cut()
    else:
        peer.close_notify()
    raise EOFError


def held_gone(peer, name):
    """/held-gone/NAME: half a JSON body; reports when the other side has closed."""
    peer.send("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n[1, ")
    say("held", name=name, connection=peer.number)
    while True:
        peer.fill()


def array(peer, argument):
    """/array/NAME/FRAMING/N: a JSON array of about N bytes. The framing is a length, chunks of a few bytes, or the end
    of the connection."""
    _, framing, count = argument.split("/")
    body = b"[" + b"1," * (int(count) // 2) + b"1]"
    peer.send("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n")
    if framing == "length":
        peer.send(f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
    elif framing == "chunked":
        chunks = b"".join(
            b"%x\r\n%s\r\n" % (len(body[at : at + 7]), body[at : at + 7]) for at in range(0, len(body), 7)
        )
        peer.send(b"Transfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n")
    else:
        peer.send(b"Connection: close\r\n\r\n" + body)
        peer.close_notify()
        raise EOFError


def endless(peer, _):
    """Endless JSON."""
    peer.send("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n[\r\n")
    while True:
        peer.send("1000\r\n" + "1," * 2048 + "\r\n")


def slow_echo(peer, _):
    """Reads more slowly than any client sends."""
    echo(peer, "", pause=0.0002)


def large(peer, argument):
    """/large/N: N bytes of one pattern."""
    left = int(argument)
    peer.send(f"HTTP/1.1 200 OK\r\nContent-Length: {left}\r\n\r\n")
    while left:
        piece = BLOCK[:left]
        peer.send(piece)
        left -= len(piece)


def confirmed(peer):
    """Waits until the other side's kernel has acknowledged all bytes."""
    # SIOCOUTQ: the unacknowledged bytes.
    while struct.unpack("i", fcntl.ioctl(peer.connection.fileno(), termios.TIOCOUTQ, bytes(4)))[0]:
        time.sleep(0.001)


def told(peer, argument):
    """/told/N: like /large/N, and reports when all of it has arrived."""
    large(peer, argument)
    confirmed(peer)
    say("told", connection=peer.number)


def nagle(peer, argument):
    """/nagle/N: like /large/N, by a server with Nagle's algorithm. The body is sent when the head is acknowledged."""
    peer.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 0)
    large(peer, argument)


def chunked(peer, _):
    """A chunked body with extensions and trailers."""
    peer.send(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n"
        '5;name=value\r\nhello\r\n7 ; q="a;b"\r\n, world\r\n0;last\r\nX-Sum: 12\r\n\r\n'
    )


def until_close(peer, argument):
    peer.send("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + "x" * int(argument))
    peer.close_notify()
    raise EOFError


def http10(peer, _):
    peer.send("HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\nold\n")
    peer.close_notify()
    raise EOFError


def truncated(peer, kind):
    """A truncated response: /truncated/length, /chunked, /close, /head"""
    if kind == "length":
        peer.send("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" + "x" * 100)
        peer.close_notify()
    elif kind == "chunked":
        peer.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n64\r\n" + "x" * 100 + "\r\n")
        peer.close_notify()
    elif kind == "close":
        peer.send("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + "x" * 100)
        peer.end_without_notify()
    elif kind == "head":
        peer.send("HTTP/1.1 200 OK\r\nContent-Le")
        peer.close_notify()
    raise EOFError


def cut_short(peer, argument):
    """/cut-short/length/N, /cut-short/chunked/N: N bytes of a larger body, then the connection closes."""
    kind, count = argument.split("/")
    head = "Content-Length: 10000000" if kind == "length" else "Transfer-Encoding: chunked"
    peer.send(f"HTTP/1.1 200 OK\r\n{head}\r\n\r\n" + ("" if kind == "length" else "989680\r\n") + "#" * int(count))
    peer.close_notify()
    raise EOFError


def early_reset(peer, argument):
    """/early-reset/length/NAME, /early-reset/close/NAME: a final response during the upload, then a reset. The response
    has that framing and follows /release/NAME; the reset waits until it is known to have arrived."""
    kind, name = argument.split("/")
    say("held", name=name, connection=peer.number)
    release(name).wait(60)
    fields = "Content-Length: 4\r\n" if kind == "length" else "Connection: close\r\n"
    peer.send(f"HTTP/1.1 413 Content Too Large\r\n{fields}\r\nbig\n")
    confirmed(peer)
    peer.cut()
    say("reset", name=name)
    raise EOFError


def early(peer, _):
    """Sends a final response during the upload."""
    peer.send("HTTP/1.1 413 Content Too Large\r\nContent-Length: 4\r\nConnection: close\r\n\r\nbig\n")
    # A reset mustn't destroy the response: read the upload for a limited time.
    peer.connection.settimeout(10)
    try:
        while peer.connection.recv(65536):
            pass
    except OSError:
        pass
    raise EOFError


def expectation(peer, _):
    """Sends 100 before reading the body, only if the request expects it."""
    if peer.fields.get("expect", "").lower() == "100-continue":
        if peer.received:
            say("impatient", connection=peer.number)
        peer.send("HTTP/1.1 100 Continue\r\n\r\n")
    echo(peer, "")


def refused_expectation(peer, _):
    """Answers 417 to each request with an expectation; others are echoed."""
    if "expect" not in peer.fields:
        return echo(peer, "")
    peer.send("HTTP/1.1 417 Expectation Failed\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
    peer.close_notify()
    raise EOFError


def hints(peer, _):
    peer.send("HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n")
    peer.answer("hinted\n")


def interims(peer, count):
    """/interims/N: N interim responses before the final one."""
    peer.send("HTTP/1.1 102 P\r\n\r\n" * int(count))
    peer.answer("at last\n")


def status(peer, argument):
    """/status/204 and others: no body, and no fields about one."""
    peer.send(f"HTTP/1.1 {argument} Some\r\nX-Kept: yes\r\n\r\n")


def not_modified(peer, _):
    peer.send('HTTP/1.1 304 Not Modified\r\nContent-Length: 1234\r\nETag: "e"\r\n\r\n')


def head_length(peer, _):
    peer.send("HTTP/1.1 200 OK\r\nContent-Length: 1234\r\n\r\n")


def close_when_idle(peer, _):
    """Announces keep-alive, and closes the connection."""
    peer.answer("gone soon\n")
    peer.close_notify()
    raise EOFError


def die_when_reused(peer, _):
    """Answers the first request of a connection. The next one closes it without a response."""
    if peer.requests > 1:
        say("died", connection=peer.number, method=peer.method)
        peer.cut()
        raise EOFError
    for _ in peer.body():
        pass
    peer.answer("first\n")


def die_and_stall(peer, _):
    """Like die-when-reused, and afterwards no TLS handshake succeeds."""
    global stalled
    if peer.requests > 1:
        stalled = True
    die_when_reused(peer, "")


def die(peer, _):
    """Closes each connection on a request, even a connection that has served one."""
    say("died", connection=peer.number, method=peer.method)
    peer.cut()
    raise EOFError


def login(peer, scheme):
    """/login/NTLM: authenticates the connection, whatever the credentials."""
    for _ in peer.body():
        pass
    if peer.fields.get("authorization", "").startswith(scheme + " "):
        return peer.answer("hello\n")
    peer.answer("who?\n", "401 Unauthorized", f"WWW-Authenticate: {scheme}\r\n")


def raw(peer, argument):
    """/raw/BASE64URL: these exact bytes, then the end."""
    peer.send(base64.urlsafe_b64decode(argument))
    peer.close_notify()
    raise EOFError


def upgrade(peer, _):
    """Upgrades to another protocol, an echo of lines. When the other side half-closes, it confirms that and closes."""
    peer.send("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
    try:
        while True:
            if not peer.received:
                peer.fill()
            data, peer.received = peer.received, b""
            peer.send(data)
    except EOFError:
        peer.send("bye\n")
        peer.close_notify()
        raise


def hold(peer, name):
    """/hold/NAME: the head and half of the body, then the rest after /release/NAME."""
    peer.send("HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\nfirst,")
    say("held", name=name, connection=peer.number)
    release(name).wait(60)
    peer.send("second")


def release_held(peer, name):
    release(name).set()
    peer.answer("released\n")


def silent(peer, _):
    """Never responds."""
    say("silent", connection=peer.number)
    while True:
        peer.fill()


PATHS = {
    "echo": echo,
    "slow-echo": slow_echo,
    "large": large,
    "told": told,
    "nagle": nagle,
    "chunked": chunked,
    "until-close": until_close,
    "http10": http10,
    "truncated": truncated,
    "early": early,
    "expectation": expectation,
    "refused-expectation": refused_expectation,
    "hints": hints,
    "interims": interims,
    "status": status,
    "not-modified": not_modified,
    "head-length": head_length,
    "close-when-idle": close_when_idle,
    "die": die,
    "die-when-reused": die_when_reused,
    "die-and-stall": die_and_stall,
    "cut-short": cut_short,
    "early-reset": early_reset,
    "login": login,
    "raw": raw,
    "upgrade": upgrade,
    "hold": hold,
    "release": release_held,
    "silent": silent,
    "received": received,
    "answer": answer,
    "repeat": repeat,
    "redirect": redirect,
    "held-answer": held_answer,
    "held-gone": held_gone,
    "endless": endless,
    "array": array,
}


def serve(connection, number, context):
    peer = Peer(connection, number)
    try:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if stalled:
            say("stalled", connection=number)
            while connection.recv(65536):
                pass
            raise EOFError
        if context:
            peer.connection = context.wrap_socket(connection, server_side=True)
        say(
            "connection",
            connection=number,
            tls=context is not None,
            resumed=bool(context and peer.connection.session_reused),
        )
        while True:
            peer.request()
            path = peer.target.split("?")[0].split("/", 2)
            PATHS.get(path[1], echo)(peer, path[2] if len(path) > 2 else "")
            if peer.fields.get("connection", "").lower() == "close":
                peer.close_notify()
                break
    except (EOFError, OSError, ValueError) as error:
        say("ended", connection=number, cause=f"{type(error).__name__}: {error}")
    finally:
        peer.connection.close()
        say("closed", connection=number)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--certificate")
    parser.add_argument("--key")
    parser.add_argument("--listen", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--plain", action="store_true")
    parser.add_argument("--tls12", action="store_true")
    parser.add_argument("--session-ids", action="store_true")
    options = parser.parse_args()
    context = None
    if not options.plain:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(options.certificate, options.key)
        if options.tls12:
            context.maximum_version = ssl.TLSVersion.TLSv1_2
        if options.session_ids:
            context.options |= ssl.OP_NO_TICKET
    family = socket.AF_INET6 if ":" in options.listen else socket.AF_INET
    listener = socket.create_server((options.listen, options.port), family=family, backlog=512)
    say("ready", port=listener.getsockname()[1])
    number = 0
    while True:
        connection, _ = listener.accept()
        number += 1
        threading.Thread(target=serve, args=(connection, number, context), daemon=True).start()


if __name__ == "__main__":
    sys.exit(main())
