"""Measures a proxy's memory per client, tunnel, upstream connection, name and entry. See README.md."""

import argparse
import os
import resource
import tempfile
import time

import crowd
from names import Names
from peers import HOST, Bench, HAProxy, Nginx, Origin, Pinproxy, Squid

#: Clients stay connected longer than the shipped timeouts allow.
PATIENT = "timeouts: {idle_client: 15m, idle_upstream: 15m, first_byte: 15m}\n"
KINDS = {"nginx": Nginx, "haproxy": HAProxy, "squid": Squid}


def settled(server):
    """The server's memory once it is stable: it is released a while after a peak."""
    last = server.memory()
    for _ in range(40):
        time.sleep(0.25)
        now = server.memory()
        if abs(now[0] - last[0]) < 64:
            return now
        last = now
    return last


def warm(servers, origin):
    """Warms servers up, so that one-time costs of first requests aren't attributed to clients. Most of that is the code
    they run: 5 MiB over 1,000 clients would look like 5 KiB each."""
    for server in servers:
        first = crowd.Crowd(server, origin)
        first.come(200)
        for _ in range(3):
            first.ask()
        first.leave()
        first.end()
    # Their memory is freed some seconds later.
    time.sleep(6.5)


class Subject:
    """A server that is warmed up, and its future clients."""

    def __init__(self, server, origin):
        self.server = server
        self.crowd = crowd.Crowd(server, origin)
        self.base = settled(server)

    def grown(self, count):
        """KiB per client: resident, and private to the process."""
        now = settled(self.server)
        return tuple((after - before) / count for after, before in zip(now, self.base))

    def end(self):
        self.crowd.end()


def idle(server, origin, count, kind="inside"):
    """KiB per idle client of a warm server, after one response each."""
    # HAProxy counts two descriptors per client, with or without an upstream connection.
    count = min(count, (resource.getrlimit(resource.RLIMIT_NOFILE)[1] - 200) // 2)
    subject = Subject(server, origin)
    subject.crowd.come(count, kind=kind)
    grown, _ = subject.grown(count)
    subject.end()
    return grown


def measure(subject, sizes, **options):
    """Returns size → KiB per client, with clients connected as `options` say."""
    found, here = {}, 0
    for size in sizes:
        subject.crowd.come(size - here, **options)
        here = size
        found[size] = subject.grown(size)
    return found


def visited(bench, origin, count, idle):
    """KiB of a proxy's private memory per host name that one client has requested. `idle` is the value of
    idle_upstream."""
    server = Pinproxy(
        bench, origin, name=f"visited{idle}", more=PATIENT.replace("idle_upstream: 15m", f"idle_upstream: {idle}")
    )
    try:
        warm([server], origin)
        subject = Subject(server, origin)
        subject.crowd.visit(count, f"n{{}}.{HOST}")
        if idle != "15m":
            time.sleep(6.5)
        _, own = subject.grown(count)
        subject.end()
        return own
    finally:
        server.stop()


def entries(bench, origin, count):
    """Bytes per pin file entry with one pin, in an idle proxy with `count` entries."""

    def own(number):
        text = "".join(
            f"  - match: h{n}.team{n % 1000}.company{n % 37}.test\n    pinning: public-key\n    pins: "
            f"[sha256/{100000 + n}{'A' * 37}=]\n"
            for n in range(number)
        )
        server = Pinproxy(bench, origin, name=f"entries{number}", rules=text, patience=120)
        try:
            time.sleep(2)
            return settled(server)[1]
        finally:
            server.stop()

    return (own(count) - own(0)) * 1024 / count


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pinproxy", default=".build/release/pinproxy", help="the release executable")
    parser.add_argument("--sizes", default="1000,2000,5000,10000", help="numbers of clients, comma-separated")
    parser.add_argument("--peers", default="nginx,haproxy,squid", help="comma-separated")
    parser.add_argument("--only", help="measure only kinds whose name contains this")
    options = parser.parse_args()
    Pinproxy.executable = os.path.abspath(options.pinproxy)
    sizes = [int(size) for size in options.sizes.split(",")]
    crowd.raise_descriptor_limit()

    with tempfile.TemporaryDirectory(prefix="pinproxy-memory.") as directory:
        bench = Bench(directory)
        bench.names = Names(bench)
        origin = Origin(bench)
        starts = {"pinproxy": lambda: Pinproxy(bench, origin, name=f"pinproxy{time.monotonic_ns()}", more=PATIENT)}
        for peer in filter(None, options.peers.split(",")):
            starts[peer] = lambda kind=KINDS[peer]: kind(bench, origin)
        works = [
            ("idle client inside TLS", {"kind": "inside"}, list(starts)),
            ("tunnel", {"kind": "tunnel"}, [name for name in starts if name != "nginx"]),
            ("client that has said nothing", {"kind": "plain"}, list(starts)),
            ("another name: client, leaf, upstream connection", {"names": f"n{{}}.{HOST}"}, ["pinproxy"]),
        ]
        try:
            for what, come, who in works:
                if options.only and options.only not in what:
                    continue
                for name in who:
                    if what != works[0][0] and name == "squid" and os.path.exists(bench.path("squid")):
                        os.rename(bench.path("squid"), bench.path(f"squid{time.monotonic_ns()}"))
                    server = starts[name]()
                    warm([server], origin)
                    subject = Subject(server, origin)
                    try:
                        found = measure(subject, sizes, **come)
                    finally:
                        subject.end()
                        server.stop()
                    base = f"{subject.base[0] / 1024:.1f} MiB before"
                    print(
                        f"{what}, {name} ({base}): "
                        + "; ".join(
                            f"{size:,}: {resident:.1f} KiB ({own:.1f} own)" for size, (resident, own) in found.items()
                        ),
                        flush=True,
                    )
            if not options.only or options.only in "name":
                both, leaf = (visited(bench, origin, 2000, idle) for idle in ("15m", "1s"))
                print(
                    f"a name, of 2,000 requested in sequence: {both:.1f} KiB own with an idle upstream connection and "
                    f"a leaf, {leaf:.1f} without the connection",
                    flush=True,
                )
            if not options.only or options.only in "entry":
                print(f"an entry with one pin, of 100,000: {entries(bench, origin, 100_000):.0f} bytes")
        finally:
            origin.stop()
            bench.names.stop()


if __name__ == "__main__":
    main()
