"""Both ends of connections in one thread: clients that send, and an origin that records."""

import hashlib
import selectors
import socket
import ssl
import time

from model import RELAYED_TRAILER_LIMIT, Incomplete, Reader, Refused

#: A batch that takes longer is a failure.
PATIENCE = 60


def digest(*parts):
    return hashlib.md5(b" ".join(parts)).hexdigest()[:8]


def seen_as(method, target, body):
    """The record of a message, for comparison between the model and the readers."""
    return method.hex(), target.hex(), len(body), digest(body)


class Loop:
    """Waits for sockets and pipes; each has an owner with `ready()`."""

    def __init__(self):
        self.selector = selectors.EpollSelector()

    def add(self, file, owner):
        self.selector.register(file, selectors.EVENT_READ, owner)

    def remove(self, file):
        try:
            self.selector.unregister(file)
        except (KeyError, ValueError):
            pass

    def turn(self, timeout):
        ready = self.selector.select(timeout)
        for key, _ in ready:
            key.data.ready()
        return bool(ready)

    def run(self, is_done, patience=PATIENCE):
        """Runs until `is_done()`, and no more data arrives. False: it took too long."""
        end = time.monotonic() + patience
        while not is_done():
            if time.monotonic() > end:
                return False
            self.turn(0.5)
        while self.turn(0.002):
            if time.monotonic() > end:
                return False
        return True


class Link:
    """TLS over a socket. The loop handles it like a plain socket."""

    def __init__(self, connection, context, is_server, secured=lambda: None):
        """
        - Parameter secured: is called once, after the handshake.
        """
        connection.settimeout(0)
        self.secured = secured
        self.socket = context.wrap_socket(connection, server_side=is_server, do_handshake_on_connect=False)
        self.fileno, self.close, self.shutdown = self.socket.fileno, self.socket.close, self.socket.shutdown

    def handshake(self):
        """True once the handshake is complete."""
        if self.secured:
            try:
                self.socket.do_handshake()
            except ssl.SSLWantReadError:
                return False
            secured, self.secured = self.secured, None
            secured()
        return True

    def recv(self, count, flags=0):
        """Returns all available data."""
        if not self.handshake():
            raise BlockingIOError
        pieces = []
        while True:
            try:
                piece = self.socket.recv(count)
            except ssl.SSLWantReadError:
                if pieces:
                    return b"".join(pieces)
                raise BlockingIOError from None
            except OSError:
                # Earlier data is handled; the next call fails again.
                if pieces:
                    return b"".join(pieces)
                raise
            if not piece:
                return b"".join(pieces)
            pieces.append(piece)

    def sendall(self, data):
        self.socket.settimeout(5)
        try:
            self.socket.sendall(data)
        finally:
            self.socket.settimeout(0)

    def settimeout(self, seconds):
        """Only ``sendall(_:)`` waits."""


class Recorder:
    """An origin that reads by the strict model. It answers with a digest of the request."""

    def __init__(self, loop, known, address=("127.0.0.1", 0), context=None):
        """
        - Parameter context: a TLS context; None: plaintext.
        """
        self.loop = loop
        self.context = context
        self.reader = Reader(known, RELAYED_TRAILER_LIMIT)
        self.seen = []
        #: Invalid data that arrived.
        self.refused = []
        #: Prepared responses by target: the bytes, and whether they close the connection.
        self.responses = {}
        self.socket = socket.create_server(address, backlog=1024)
        self.socket.setblocking(False)
        self.port = self.socket.getsockname()[1]
        self.authority = b"%s:%d" % (address[0].encode(), self.port)
        loop.add(self.socket, self)

    def ready(self):
        while True:
            try:
                connection, _ = self.socket.accept()
            except BlockingIOError:
                return
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.accepted(connection if self.context is None else Link(connection, self.context, True))

    def accepted(self, connection):
        Recorded(self, connection)


class Recorded:
    """One connection of a recorder."""

    def __init__(self, recorder, connection):
        self.recorder = recorder
        self.socket = connection
        connection.settimeout(5)
        self.data = b""
        self.continued = False
        recorder.loop.add(connection, self)

    def close(self):
        self.recorder.loop.remove(self.socket)
        self.socket.close()

    def ready(self):
        try:
            received = self.socket.recv(1 << 18, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return
        except OSError:
            received = b""
        if not received:
            return self.close()
        self.data += received
        try:
            while self.data:
                if not self.next():
                    return
        except OSError:
            self.close()

    def next(self):
        """Answers one request. False without a request, or if the connection is closed."""
        recorder = self.recorder
        try:
            message, end = recorder.reader.request(self.data, 0)
        except Incomplete:
            if not self.continued and b"\r\n\r\n" in self.data and b"100-continue" in self.data.lower():
                self.continued = True
                self.socket.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
            return False
        except Refused as refused:
            recorder.refused.append((str(refused), self.data))
            self.close()
            return False
        self.data = self.data[end:]
        self.continued = False
        recorder.seen.append(seen_as(message.method, message.target, message.body))
        prepared = recorder.responses.get(message.target)
        if prepared:
            self.socket.sendall(prepared[0])
            if prepared[1]:
                self.close()
                return False
            return True
        body = digest(message.body).encode()
        self.socket.sendall(
            b"HTTP/1.1 200 OK\r\nX-Id: %s\r\nContent-Length: %d\r\n%s\r\n%s"
            % (
                digest(message.method, message.target).encode(),
                len(body),
                b"Connection: close\r\n" if message.closes else b"",
                b"" if message.method == b"HEAD" else body,
            )
        )
        if message.closes:
            self.close()
            return False
        return True


class Client:
    """One connection to the proxy. It sends a series of messages, and reads until the end."""

    def __init__(self, loop, port, pieces, ends, is_satisfied=None, tunnel=None, context=None):
        """
        - Parameter tunnel: an authority to CONNECT to first.
        - Parameter context: for TLS inside the tunnel.
        - Parameter ends: closes the sending side after the last byte.
        - Parameter is_satisfied: whether the data is all that is expected.
        """
        self.loop = loop
        self.pieces = pieces
        self.ends = ends
        self.is_satisfied = is_satisfied
        self.context = context
        self.received = []
        self.is_done = False
        self.was_reset = False
        self.socket = socket.socket()
        self.socket.settimeout(5)
        try:
            self.socket.connect(("127.0.0.1", port))
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            loop.add(self.socket, self)
            self.tunnel = tunnel
            if tunnel:
                self.socket.sendall(b"CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n" % (tunnel, tunnel))
            else:
                self.send()
        except OSError:
            self.finish(True)

    @property
    def data(self):
        return b"".join(self.received)

    def send(self):
        """Sends the next piece. A peer that closes meanwhile is not a failure."""
        if self.tunnel or self.context:
            return
        try:
            if self.pieces:
                self.socket.sendall(self.pieces.pop(0))
            if not self.pieces and self.ends:
                self.socket.shutdown(socket.SHUT_WR)
                self.ends = False
        except OSError:
            self.pieces = []

    def ready(self):
        try:
            received = self.socket.recv(1 << 18, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return
        except OSError:
            return self.finish(True)
        if not received:
            return self.finish(False)
        self.received.append(received)
        if self.tunnel and self.data.startswith(b"HTTP/1.1 200 ") and self.data.endswith(b"\r\n\r\n"):
            self.received, self.tunnel = [], None
            return self.secure() if self.context else self.send()
        if self.is_satisfied and self.is_satisfied(self.data):
            self.finish(False)

    def secure(self):
        """Starts TLS. Pending pieces are sent after the handshake."""
        self.loop.remove(self.socket)
        self.socket = Link(self.socket, self.context, False, self.secured)
        self.loop.add(self.socket, self)
        self.socket.handshake()

    def secured(self):
        self.context = None
        self.send()

    def finish(self, was_reset):
        self.was_reset = was_reset
        self.is_done = True
        self.loop.remove(self.socket)
        self.socket.close()
