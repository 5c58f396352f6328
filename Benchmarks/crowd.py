"""Simulates many concurrent clients in a few processes. Each has a persistent connection of its own."""

import multiprocessing
import os
import resource
import socket
import ssl
import time

import load
from peers import HOST, TUNNELLED

PROCESSES = 4


def raise_descriptor_limit(wanted=65536):
    """Raises the limit of this process and its children. The shipped unit has LimitNOFILE=65536 as well."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < wanted:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, max(hard, wanted)))
        except (ValueError, PermissionError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


class Crowd:
    """A number of clients of one server. Clients act one after the other, in up to ``PROCESSES`` processes at a
    time."""

    def __init__(self, server, origin):
        context = multiprocessing.get_context("fork")
        self.members = []
        for _ in range(PROCESSES):
            ours, theirs = context.Pipe()
            process = context.Process(
                target=_serve, args=(theirs, server.way, server.port, server.tunnel_port(), origin.port), daemon=True
            )
            process.start()
            theirs.close()
            self.members.append((process, ours))

    def _all(self, order, count=0, **options):
        share, rest = divmod(count, PROCESSES)
        for number, (_, pipe) in enumerate(self.members):
            pipe.send((order, share + (number < rest), number, options))
        answers = []
        for _, pipe in self.members:
            answer = pipe.recv()
            if isinstance(answer, str):
                raise SystemExit(answer)
            answers.append(answer)
        return answers

    def come(self, count, kind="inside", path="/1k", names=None, waits=True):
        """Adds clients, each with a connection and a request.

        - kind: "inside": TLS that the proxy intercepts; "h2": the same with HTTP/2; "tunnel": TLS it tunnels; "plain":
          only TCP.
        - names: a format for each client's host name, filled with a number.
        - waits: for each client's response before the next client connects."""
        return self._all("come", count, kind=kind, path=path, names=names, waits=waits)

    def visit(self, count, names):
        """Runs clients in sequence, each with its own host name. A client makes one exchange and closes its
        connection."""
        self._all("visit", count, names=names)

    def ask(self, path="/1k"):
        """Each client sends a request and reads the response."""
        return sum(self._all("ask", path=path))

    def hear(self):
        """Reads the outstanding responses. Returns how many were good, and what the others were."""
        answers = self._all("hear")
        return sum(good for good, _ in answers), [bad for _, some in answers for bad in some]

    def burst(self, count):
        """Opens TCP connections all at once, each with a request to the proxy itself. Returns the seconds until each
        was answered."""
        return sorted(second for part in self._all("burst", count) for second in part)

    def leave(self):
        self._all("leave")

    def end(self):
        for process, pipe in self.members:
            # Closing this end alone has no effect: processes started later hold it too.
            pipe.send(None)
            process.join()
            pipe.close()


def _serve(pipe, way, port, tunnel_port, origin_port):
    members = _Members(way, port, tunnel_port, origin_port)
    while True:
        given = pipe.recv()
        if given is None:
            os._exit(0)
        order, count, part, options = given
        try:
            pipe.send(getattr(members, order)(count, part, **options))
        except BaseException as error:
            pipe.send(f"{order}: {type(error).__name__}: {error}")


class _Members:
    def __init__(self, way, port, tunnel_port, origin_port):
        self.way, self.port, self.tunnel_port, self.origin_port = way, port, tunnel_port, origin_port
        self.clients = []
        self.waiting = []
        self.context = load.context_without_trust()
        self.number = 0

    def come(self, count, part, kind, path, names, waits):
        for _ in range(count):
            self.number += 1
            name = names.format(self.number * PROCESSES + part) if names else TUNNELLED if kind == "tunnel" else HOST
            port = self.tunnel_port if kind == "tunnel" else self.port
            if kind == "plain":
                self.clients.append((socket.create_connection(("127.0.0.1", port), timeout=60), name))
                continue
            connection = load.connect(self.way, port, self.origin_port, name)
            if kind == "h2":
                self.clients.append((self._ask_by_streams(connection, name, path), name))
                continue
            secure = self.context.wrap_socket(connection, server_hostname=name)
            self._request(secure, name, path)
            if waits:
                self._response(secure)
            else:
                self.waiting.append(secure)
            self.clients.append((secure, name))
        return count

    def visit(self, count, part, names):
        for _ in range(count):
            self.come(1, part, "inside", "/1k", names, True)
            self.clients.pop()[0].close()
        return count

    def _request(self, secure, name, path):
        host = f"{name}:{self.origin_port}" if self.way == "connect" else name
        secure.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())

    def _ask_by_streams(self, connection, name, path):
        """Sends a request on an HTTP/2 connection (RFC 9113) after its first response. The fields are literals, which
        need no HPACK table."""
        context = load.context_without_trust()
        context.set_alpn_protocols(["h2"])
        secure = context.wrap_socket(connection, server_hostname=name)
        if secure.selected_alpn_protocol() != "h2":
            raise OSError("HTTP/2 was not chosen")
        host = f"{name}:{self.origin_port}" if self.way == "connect" else name
        head = b"\x82\x87" + b"".join(
            bytes([0, len(key)]) + key.encode() + bytes([len(value)]) + value.encode()
            for key, value in ((":path", path), (":authority", host))
        )

        def frame(kind, flags, stream, payload):
            return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload

        secure.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0, b"") + frame(1, 5, 1, head))
        received = b""
        while True:
            while len(received) < 9 or len(received) < 9 + int.from_bytes(received[:3], "big"):
                some = secure.recv(65536)
                if not some:
                    raise OSError("ended before the response")
                received += some
            length, kind, flags = int.from_bytes(received[:3], "big"), received[3], received[4]
            stream = int.from_bytes(received[5:9], "big")
            received = received[9 + length :]
            if kind == 4 and not flags & 1:
                secure.sendall(frame(4, 1, 0, b""))
            if kind in (3, 7):
                raise OSError(f"frame {kind} in the place of a response")
            if stream == 1 and kind in (0, 1) and flags & 1:
                return secure

    @staticmethod
    def _response(secure):
        response = b""
        while b"\r\n\r\n" not in response:
            some = secure.recv(65536)
            if not some:
                raise OSError(f"ended after {response[:200]!r}")
            response += some
        head, _, body = response.partition(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 200"):
            raise OSError(f"odd response: {(head + body)[:400]!r}")
        length = next(
            int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length")
        )
        left = length - len(body)
        while left > 0:
            left -= len(secure.recv(65536)) or left + 1
        if left < 0:
            raise OSError("a body broke off")

    def ask(self, _, part, path):
        for secure, name in self.clients:
            self._request(secure, name, path)
            self._response(secure)
        return len(self.clients)

    def hear(self, _, part):
        good, bad = 0, []
        for secure in self.waiting:
            try:
                secure.settimeout(60)
                self._response(secure)
                good += 1
            except (OSError, ssl.SSLError) as error:
                bad.append(str(error))
        self.waiting = []
        return good, bad

    def burst(self, count, part):
        import selectors

        selector = selectors.DefaultSelector()
        # A request to the proxy itself: it is answered directly, without a lookup.
        request = b"GET / HTTP/1.1\r\nHost: nobody.test\r\n\r\n"
        began = {}
        for _ in range(count):
            client = socket.socket()
            client.setblocking(False)
            client.connect_ex(("127.0.0.1", self.port))
            began[client] = time.monotonic()
            selector.register(client, selectors.EVENT_WRITE)
        seconds = []
        deadline = time.monotonic() + 60
        while len(seconds) < count and time.monotonic() < deadline:
            for key, events in selector.select(1):
                client = key.fileobj
                if events & selectors.EVENT_WRITE:
                    error = client.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
                    if error:
                        raise OSError(error, os.strerror(error))
                    client.send(request)
                    selector.modify(client, selectors.EVENT_READ)
                else:
                    answer = client.recv(65536)
                    if not answer.startswith(b"HTTP/1.1 "):
                        raise OSError(f"a connection ended unanswered: {answer!r}")
                    seconds.append(time.monotonic() - began[client])
                    selector.unregister(client)
                    client.close()
        if len(seconds) < count:
            raise OSError(f"{count - len(seconds)} connections were not answered in 60 s")
        return seconds

    def leave(self, _, part):
        for client, _ in self.clients:
            client.close()
        self.clients = []
        self.waiting = []
        return True
