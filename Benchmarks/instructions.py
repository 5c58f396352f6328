"""Counts pinproxy's instructions for one exchange and for one new connection with callgrind. The count is the same for
the same binary, whatever else the machine does. A second binary is compared by ratio."""

import argparse
import re
import signal
import socket
import ssl
import tempfile
import time

import peers
from callgrind import Profile
from load import _connect_many
from peers import HOST, Bench, Origin, Pinproxy


class Counted(Pinproxy):
    """pinproxy under callgrind. `count()` stops it and returns the profile of the whole run."""

    def __init__(self, bench, origin, name):
        self.results = bench.path(f"{name}.callgrind")
        super().__init__(
            bench,
            origin,
            name=name,
            patience=120,
            wrapper=[
                "valgrind",
                "--tool=callgrind",
                "--separate-threads=yes",
                "--demangle=no",
                "--compress-strings=no",
                "--compress-pos=no",
                f"--callgrind-out-file={self.results}",
            ],
        )

    def count(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(timeout=120)
        # A separate thread looks up the clients' processes as often as the clock permits.
        return Profile.of(self.results.parent.glob(self.results.name + "-*"), but="18PinproxyLocalPeers12ProcessTable")


class CountedWithLog(Counted):
    access = "true"


def keep_alive(server, origin, count):
    """CONNECT, one handshake, then `count` requests in sequence."""
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
    _connect_many("connect", server.port, origin.port, [HOST] * count, False)


# Enough connections for the leaf to be cached (LeafCache) before counting begins.
WORKS = {"keep-alive exchange": (keep_alive, 100, 600), "new connection, one GET": (new_connections, 80, 140)}


def profiles(bench, origin, executable, work, name, counted=Counted):
    """Profiles a short and a long run; also returns how many units they differ by. The difference of the profiles
    excludes start and shutdown."""
    perform, few, many = WORKS[work]
    # valgrind can't read this toolchain's debug information.
    Pinproxy.executable = bench.path(f"pinproxy-{name}")
    peers.run("strip", "--strip-debug", "-o", Pinproxy.executable, executable)
    seen = []
    for count in (few, many):
        server = counted(bench, origin, f"{name}-{count}-{time.monotonic_ns()}")
        try:
            perform(server, origin, 5)
            perform(server, origin, count)
            seen.append(server.count())
        finally:
            server.stop()
    return *seen, many - few


def per_unit(bench, origin, executable, work, name):
    short, long, units = profiles(bench, origin, executable, work, name)
    return (long.instructions - short.instructions) / units


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pinproxy", required=True, help="the release binary")
    parser.add_argument("--beside", help="another binary to compare with")
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
