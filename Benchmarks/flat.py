"""Checks that a proxy's memory doesn't grow over a million exchanges and ten thousand reloads. The exit status is 1 if
it does. See README.md."""

import argparse
import http.client
import itertools
import os
import socket
import statistics
import sys
import tempfile
import threading

import crowd
import load
from names import Names
from peers import Bench, Origin, Shipped

#: KiB by which the last quarter may exceed the second: normal fluctuation of an allocator.
ALLOWED = 1024


class Control:
    """A client of the proxy's control socket."""

    def __init__(self, path):
        self.path = str(path)

    def reload(self):
        client = http.client.HTTPConnection("localhost")
        client.sock = socket.socket(socket.AF_UNIX)
        client.sock.settimeout(60)
        client.sock.connect(self.path)
        client.request("POST", "/reload")
        answer = client.getresponse()
        text = answer.read()
        client.close()
        if answer.status != 200:
            raise SystemExit(f"a reload was refused: {text!r}")


class Watched:
    """Samples a server's memory against the amount of work done."""

    def __init__(self, server):
        self.server = server
        self.samples = []

    def look(self, done):
        self.samples.append((done, self.server.memory()[1]))

    def verdict(self, what, unit):
        """The least-squares slope over the last three quarters, and the median of each quarter."""
        done = [a for a, _ in self.samples]
        own = [b for _, b in self.samples]
        quarter = len(own) // 4
        quarters = [statistics.median(own[i * quarter : (i + 1) * quarter]) for i in range(4)]
        slope = statistics.linear_regression(done[quarter:], own[quarter:]).slope
        grown = quarters[3] - quarters[1]
        print(
            f"{what}: {done[-1]:,} in total; private memory, median of each quarter: "
            + ", ".join(f"{q / 1024:.2f}" for q in quarters)
            + f" MiB; slope over the last three {slope * 1024:+.2f} bytes {unit}",
            flush=True,
        )
        return grown <= ALLOWED


def exchanges(bench, server, origin, count):
    """Uses persistent connections for most exchanges, new ones for some, with and without session resumption."""
    watched = Watched(server)
    done = lost = 0
    for turn in itertools.count():
        if done >= count and len(watched.samples) >= 40:
            break
        try:
            done += load.keep_alive(bench, server, origin, 32, "1k", 2)[1]
        except SystemExit:
            # On a busy machine wrk may time out before its first request.
            lost += 1
            if lost > 5:
                raise
        done += load.new_connections(bench, server, origin, 40, resumes=turn % 2 == 1)
        # Memory of disconnected clients is freed some time later; the sample is of what remains.
        watched.look(done)
    return watched.verdict("exchanges", "an exchange")


def reloads(bench, server, origin, count):
    """Reloads while clients send requests. The pin file changes before every other reload."""
    control = Control(bench.path("shipped/state/pinproxy/control.sock"))
    pins = bench.path("shipped/pins.yaml")
    text = pins.read_text()
    changed = text + "".join(
        f"  - match: h{number}.example.test\n    pinning: public-key\n    pins: [sha256/{bench.pin()}]\n"
        for number in range(20)
    )
    clients = crowd.Crowd(server, origin)
    clients.come(40)
    stop = threading.Event()
    asked = [0]

    def ask():
        while not stop.is_set():
            asked[0] += clients.ask()

    asking = threading.Thread(target=ask)
    asking.start()
    watched = Watched(server)
    try:
        for number in range(1, count + 1):
            fresh = bench.path("shipped/pins.new")
            fresh.write_text(changed if number % 2 else text)
            os.rename(fresh, pins)
            control.reload()
            if number % max(count // 200, 1) == 0:
                watched.look(number)
    finally:
        stop.set()
        asking.join()
        clients.end()
    print(f"{asked[0]:,} requests were answered meanwhile")
    return watched.verdict("reloads", "a reload")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pinproxy", default=".build/release/pinproxy", help="the release executable")
    parser.add_argument("--exchanges", type=int, default=1_000_000)
    parser.add_argument("--reloads", type=int, default=10_000)
    options = parser.parse_args()
    Shipped.executable = os.path.abspath(options.pinproxy)
    with tempfile.TemporaryDirectory(prefix="pinproxy-flat.") as directory:
        bench = Bench(directory)
        bench.names = Names(bench)
        origin = Origin(bench)
        # Its log would take a few hundred megabytes.
        server = Shipped(bench, origin, workers=2, wrapper=("sh", "-c", 'exec "$@" > /dev/null 2>&1', "sh"))
        try:
            isFlat = exchanges(bench, server, origin, options.exchanges)
            isFlat = reloads(bench, server, origin, options.reloads) and isFlat
        finally:
            server.stop()
            origin.stop()
            bench.names.stop()
    sys.exit(0 if isFlat else "its memory grows")


if __name__ == "__main__":
    main()
