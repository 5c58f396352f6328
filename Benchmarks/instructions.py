"""Instructions of pinproxy for one exchange and for one new connection, as callgrind counts them: the same number
for the same binary, whatever else the machine does. Beside another binary, the ratio of the two."""

import argparse
import re
import signal
import socket
import ssl
import tempfile
import time

import peers
from load import _connect_many
from peers import HOST, Bench, Origin, Pinproxy


class Counted(Pinproxy):
    """pinproxy under callgrind; `count()` ends it and returns the instructions of its whole life."""

    def __init__(self, bench, origin, name):
        self.results = bench.path(f"{name}.callgrind")
        super().__init__(bench, origin, name=name, wrapper=[
            "valgrind", "--tool=callgrind", f"--callgrind-out-file={self.results}"], patience=120)

    def count(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(timeout=120)
        return int(re.search(r"^(?:summary|totals): (\d+)", self.results.read_text(), re.MULTILINE)[1])


def keep_alive(server, origin, count):
    """CONNECT, one handshake, `count` requests one after the other."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    host = f"{HOST}:{origin.port}"
    connection = socket.create_connection(("127.0.0.1", server.port), timeout=60)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.sendall(f"CONNECT {host} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
    answer = b""
    while b"\r\n\r\n" not in answer:
        answer += connection.recv(4096)
    assert b" 200 " in answer.split(b"\r\n", 1)[0], answer
    request = f"GET /1k HTTP/1.1\r\nHost: {host}\r\nUser-Agent: bench\r\nAccept: */*\r\n\r\n".encode()
    with context.wrap_socket(connection, server_hostname=HOST) as secure:
        for _ in range(count):
            secure.sendall(request)
            response = b""
            while b"\r\n\r\n" not in response:
                response += secure.recv(65536)
            head, body = response.split(b"\r\n\r\n", 1)
            length = int(re.search(rb"(?i)content-length: (\d+)", head)[1])
            while len(body) < length:
                body += secure.recv(65536)


def new_connections(server, origin, count):
    _connect_many("connect", server.port, origin.port, count, "1k")


WORKS = {"keep-alive exchange": (keep_alive, 100, 600), "new connection, one GET": (new_connections, 20, 80)}


def per_unit(bench, origin, executable, work, name):
    """The difference of a long and a short run, so that start and end don't count."""
    perform, few, many = WORKS[work]
    # valgrind can't read the debug information of this toolchain.
    Pinproxy.executable = bench.path(f"pinproxy-{name}")
    peers.run("strip", "-o", Pinproxy.executable, executable)
    totals = []
    for count in (few, many):
        server = Counted(bench, origin, f"{name}-{count}-{time.monotonic_ns()}")
        try:
            perform(server, origin, 5)
            perform(server, origin, count)
            totals.append(server.count())
        finally:
            server.stop()
    return (totals[1] - totals[0]) / (many - few)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pinproxy", required=True, help="the release binary")
    parser.add_argument("--beside", help="another one to compare it with")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        bench = Bench(directory)
        origin = Origin(bench)
        try:
            for work in WORKS:
                ours = per_unit(bench, origin, options.pinproxy, work, "ours")
                line = f"{work}: {ours:,.0f} instructions"
                if options.beside:
                    theirs = per_unit(bench, origin, options.beside, work, "theirs")
                    line += f", beside {theirs:,.0f}: {ours / theirs:.3f}"
                print(line, flush=True)
        finally:
            origin.stop()


if __name__ == "__main__":
    main()
