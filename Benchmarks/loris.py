"""Measures how long honest clients wait while attackers hold connections, or attack over HTTP/2. Turns with and without
attackers alternate in one run, for comparison. See README.md."""

import argparse
import json
import os
import pathlib
import socket
import statistics
import subprocess
import tempfile
import threading
import time

import crowd
import load
from names import Names
from peers import HOST, Bench, Origin, Shipped

#: Seconds between two bytes of a slow sender: less than any timeout that a byte resets.
PAUSE = 0.5


class Attack:
    """A number of connections of one kind. One thread advances each a little at a time, and reopens those the proxy has
    closed."""

    def __init__(self, kind, server, origin, count):
        self.kind, self.server, self.origin, self.count = kind, server, origin, count
        self.stop = threading.Event()
        self.members = []
        self.closed = 0
        self.authority = f"{HOST}:{origin.port}"
        for _ in range(count):
            self.members.append(self.open())
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def open(self):
        member = socket.socket()
        if self.kind == "slow reading":
            member.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        member.settimeout(30)
        member.connect(("127.0.0.1", self.server.port))
        connect = f"CONNECT {self.authority} HTTP/1.1\r\nHost: {self.authority}\r\n\r\n".encode()
        if self.kind == "slow head":
            member.sendall(b"GET http://a.test/ HTTP/1.1\r\nX-A: ")
        elif self.kind == "slow CONNECT":
            member.sendall(b"CONNECT a.test:443 HTTP/1.1\r\nX-A: ")
        elif self.kind == "slow body":
            # The target expects TLS, so the origin answers 400 only after the body.
            member.sendall(
                f"POST http://{self.authority}/up HTTP/1.1\r\nHost: {self.authority}\r\n"
                "Content-Length: 100000\r\n\r\n".encode()
            )
        elif self.kind in ("slow handshake", "slow reading"):
            member.sendall(connect)
            member.recv(4096)
            if self.kind == "slow handshake":
                # A handshake record with its length, sent a byte at a time.
                member.sendall(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")
            else:
                member = load.context_without_trust().wrap_socket(member, server_hostname=HOST)
                member.sendall(f"GET /100m HTTP/1.1\r\nHost: {self.authority}\r\n\r\n".encode())
        member.settimeout(0.05)
        return member

    def run(self):
        while not self.stop.wait(PAUSE):
            for number, member in enumerate(self.members):
                if self.stop.is_set():
                    return
                try:
                    if self.kind == "slow reading":
                        member.recv(16)
                    elif self.kind != "idle":
                        member.sendall(b"x")
                except TimeoutError:
                    pass
                except OSError:
                    self.closed += 1
                    member.close()
                    try:
                        self.members[number] = self.open()
                    except OSError:
                        pass

    def end(self):
        self.stop.set()
        self.thread.join()
        for member in self.members:
            member.close()


class Flood:
    """HTTP/2 connections that attack as fast as they can (http2_attack.py). They run in a separate process with the
    lowest priority."""

    #: Concurrent connections of each kind: flooding, and idle with a hundred streams each.
    FLOODS, WAITING = 8, 10
    KINDS = {
        "rapid-reset": FLOODS,
        "window-of-zero": FLOODS,
        "window-overflow": FLOODS,
        "bodies-that-are-too-long": FLOODS,
        "continuations": FLOODS,
        "settings": FLOODS,
        "pings": FLOODS,
        "empty-data": FLOODS,
        "priorities": FLOODS,
        "window-updates": FLOODS,
        "hpack-bomb": FLOODS,
        "closed-windows": WAITING,
        "unread-responses": WAITING,
        "slow-bodies": WAITING,
    }
    ROOT = pathlib.Path(__file__).parents[1]

    def __init__(self, kind, server, origin, authority):
        """
        - Parameter authority: the file of the proxy's authority.
        """
        self.count = self.KINDS[kind]
        self.closed = 0
        self.process = subprocess.Popen(
            [
                "nice",
                "-n",
                "19",
                self.ROOT / ".build/python/bin/python3",
                "-uB",
                self.ROOT / "Tests/IntegrationTests/Peers/http2_attack.py",
                "--proxy",
                str(server.port),
                "--ca",
                authority,
                "--authority",
                f"{HOST}:{origin.port}",
                "--connections",
                str(self.count),
                "--large",
                "/100m",
                kind,
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        for _ in range(self.count):
            self.process.stdout.readline()
        self.thread = threading.Thread(target=self.read)
        self.thread.start()

    def read(self):
        for line in self.process.stdout:
            self.closed += json.loads(line).get("ended", False)

    def end(self):
        self.process.kill()
        self.process.wait()
        self.thread.join()


def honest(server, origin, count):
    """Milliseconds of each exchange; every tenth uses a new connection. Pauses leave time for the attackers."""
    context, taken = load.context_without_trust(), []
    connection = None
    for number in range(count):
        began = time.perf_counter()
        if number % 10 == 0:
            if connection:
                connection.close()
            connection = context.wrap_socket(
                load.connect(server.way, server.port, origin.port, HOST), server_hostname=HOST
            )
        connection.sendall(f"GET /1k HTTP/1.1\r\nHost: {HOST}:{origin.port}\r\n\r\n".encode())
        received = b""
        while b"\r\n\r\n" not in received or len(received.split(b"\r\n\r\n", 1)[1]) < 1024:
            data = connection.recv(65536)
            received += data
            if not data or not received.startswith(b"HTTP/1.1 200 "):
                raise SystemExit(f"an honest client got {received[:300]}")
        taken.append((time.perf_counter() - began) * 1000)
        time.sleep(PAUSE / 100)
    connection.close()
    return taken


def p99(taken):
    return statistics.quantiles(taken, n=100)[98]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pinproxy", default=".build/release/pinproxy", help="the release executable")
    parser.add_argument("--attackers", type=int, default=1000)
    parser.add_argument("--exchanges", type=int, default=1000, help="exchanges of honest clients per turn")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument(
        "--kinds", default=",".join(["idle,slow head,slow CONNECT,slow handshake,slow body,slow reading", *Flood.KINDS])
    )
    options = parser.parse_args()
    Shipped.executable = os.path.abspath(options.pinproxy)
    crowd.raise_descriptor_limit()
    with tempfile.TemporaryDirectory(prefix="pinproxy-loris.") as directory:
        bench = Bench(directory)
        bench.names = Names(bench)
        origin = Origin(bench)
        server = Shipped(bench, origin, workers=2)
        authority = next(pathlib.Path(directory).glob("**/authority.pem"))
        try:
            honest(server, origin, 200)
            for kind in options.kinds.split(","):
                without, beside, closed = [], [], 0
                for _ in range(options.turns):
                    without += honest(server, origin, options.exchanges)
                    if kind in Flood.KINDS:
                        attack = Flood(kind, server, origin, authority)
                    else:
                        attack = Attack(kind, server, origin, options.attackers)
                    beside += honest(server, origin, options.exchanges)
                    attack.end()
                    closed += attack.closed
                print(
                    f"{kind}: p99 {p99(without):.1f} ms alone, {p99(beside):.1f} ms beside {attack.count:,}; "
                    f"median {statistics.median(without):.2f} and {statistics.median(beside):.2f} ms; "
                    f"{closed:,} attackers were cut off",
                    flush=True,
                )
        finally:
            server.stop()
            origin.stop()
            bench.names.stop()


if __name__ == "__main__":
    main()
