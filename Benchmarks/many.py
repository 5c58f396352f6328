"""Tests many concurrent connections. The cases are as many exchanges in flight as the shipped configuration allows
clients, each with an upstream connection; thousands of connections opened at once; and a shortage of descriptors. See
README.md."""

import argparse
import os
import pathlib
import selectors
import socket
import tempfile
import threading
import time

import crowd
from names import Names
from peers import HOST, NGINX, Bench, Pinproxy, Server, free_port


class Gate:
    """A plaintext server that holds its responses until it is opened."""

    def __init__(self, path):
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(path))
        os.chmod(path, 0o777)
        self.listener.listen(65535)
        self.held = 0
        self.waiting = []
        self.isOpen = False
        self.lock = threading.Lock()
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        selector = selectors.DefaultSelector()
        self.listener.setblocking(False)
        selector.register(self.listener, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                if key.fileobj is self.listener:
                    try:
                        client, _ = self.listener.accept()
                    except OSError:
                        continue
                    selector.register(client, selectors.EVENT_READ)
                    continue
                client = key.fileobj
                try:
                    received = client.recv(65536)
                except OSError:
                    received = b""
                if not received:
                    selector.unregister(client)
                    client.close()
                    continue
                with self.lock:
                    if self.isOpen:
                        self._answer(client)
                    else:
                        self.held += 1
                        self.waiting.append(client)

    @staticmethod
    def _answer(client):
        try:
            client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nyes")
        except OSError:
            pass

    def open(self):
        with self.lock:
            self.isOpen = True
            for client in self.waiting:
                self._answer(client)
            self.waiting = []

    def close(self):
        with self.lock:
            self.isOpen = False
            self.held = 0


class GatedOrigin(Server):
    """The TLS origin in front of the gate, with enough connections for the test."""

    def __init__(self, bench):
        port = free_port()
        self.gate = Gate(bench.path("gate.sock"))
        body = f"""
    upstream gate {{ server unix:{bench.path("gate.sock")}; keepalive 32768; }}
    proxy_read_timeout 900s;
    server {{
        listen 127.0.0.1:{port} ssl backlog=4096; root {bench.path("documents")};
        location /gate {{ proxy_http_version 1.1; proxy_set_header Connection ""; proxy_pass http://gate; }}
    }}"""
        configuration = NGINX.format(directory=bench.directory, name="gated", workers=2, body=body).replace(
            "16384", "65000"
        )
        super().__init__(bench, ["nginx", "-p", bench.directory, "-c", bench.write("gated.conf", configuration)], port)


def overflows():
    """Connections that the kernel dropped because a listen queue was full (ListenOverflows, ListenDrops)."""
    lines = pathlib.Path("/proc/net/netstat").read_text().splitlines()
    names, values = next(
        (a.split(), b.split()) for a, b in zip(lines, lines[1:]) if a.startswith("TcpExt:") and b.startswith("TcpExt:")
    )
    return int(values[names.index("ListenOverflows")])


def log_lines(server, *events):
    text = pathlib.Path(server.log.name).read_text(errors="replace")
    return {event: text.count(event) for event in events}


def descriptors(server):
    return len(os.listdir(f"/proc/{server.process.pid}/fd"))


def await_held(gate, wanted, seconds=120):
    deadline = time.monotonic() + seconds
    while gate.held < wanted and time.monotonic() < deadline:
        time.sleep(0.05)
    return gate.held


#: Everything else is as shipped. On a machine shared with the clients and the origin, connecting takes a while.
PATIENT = "timeouts: {idle_client: 15m, first_byte: 15m, connect: 60s, tls_handshake: 60s}\n"


def full(bench, origin, count):
    """Starts clients with one request each, which the origin holds; then all are answered."""
    server = Pinproxy(bench, origin, name="full", workers="auto", more=PATIENT)
    clients = crowd.Crowd(server, origin)
    try:
        before, began = server.processor_seconds(), time.monotonic()
        clients.come(count, names=f"n{{}}.{HOST}", path="/gate", waits=False)
        held = await_held(origin.gate, count)
        took = time.monotonic() - began
        spent = server.processor_seconds() - before
        used, (resident, _) = descriptors(server), server.memory()
        origin.gate.open()
        good, bad = clients.hear()
        again = clients.ask("/gate")
        print(
            f"{count:,} clients, each with an upstream connection: {held:,} requests in flight at once, "
            f"{good:,} answered"
            f"{f', {len(bad)} not ({bad[:3]})' if bad else ''}, {again:,} answered a second time; {used:,} "
            "descriptors, "
            f"{resident / 1024:.0f} MiB resident; {took:.0f} s to connect all, {spent:.1f} s of processor time"
        )
        print(
            "  the log: " + str(log_lines(server, "clients.limit", "accept.failed", "descriptors.lack", "proxy.crash"))
        )
    finally:
        origin.gate.close()
        clients.end()
        server.stop()


def burst(bench, origin, count, times=3):
    """Opens connections all at once, each with a request that the proxy answers itself."""
    server = Pinproxy(bench, origin, name="burst", workers="auto", more=PATIENT)
    clients = crowd.Crowd(server, origin)
    try:
        for _ in range(times):
            lost = overflows()
            seconds = clients.burst(count)
            print(
                f"{count:,} connections at once: {len(seconds):,} answered, the first after {seconds[0] * 1000:.0f} "
                "ms, half after "
                f"{seconds[len(seconds) // 2] * 1000:.0f} ms, the last after {seconds[-1] * 1000:.0f} ms; "
                f"{overflows() - lost} dropped by the kernel at first"
            )
    finally:
        clients.end()
        server.stop()


def short(bench, origin, limit, count):
    """Connects more clients than there are descriptors for."""
    server = Pinproxy(
        bench, origin, name="short", workers="auto", more=PATIENT, wrapper=("prlimit", f"--nofile={limit}:{limit}")
    )
    first = crowd.Crowd(server, origin)
    second = crowd.Crowd(server, origin)
    try:
        # Idle clients for distinct names, with their pooled upstream connections.
        rest = limit // 4
        first.come(rest, names=f"n{{}}.{HOST}")
        print(
            f"{limit:,} descriptors; {rest:,} idle clients with a pooled upstream connection each: "
            f"{descriptors(server):,} used"
        )
        try:
            second.come(count, names=f"m{{}}.{HOST}", path="/1k")
            print(f"  {count:,} more clients were answered")
        except SystemExit as error:
            print(f"  one of {count:,} more clients was not served: {error}")
        before, began = server.processor_seconds(), time.monotonic()
        time.sleep(3)
        print(
            f"  {descriptors(server):,} used; while idle: "
            f"{(server.processor_seconds() - before) / (time.monotonic() - began):.3f} of a processor"
        )
        first.leave()
        second.leave()
        third = crowd.Crowd(server, origin)
        third.come(100)
        print(
            f"  after all clients have left: {third.ask()} clients served; "
            + str(log_lines(server, "accept.failed", "descriptors.lack", "proxy.crash"))
        )
        third.end()
    finally:
        first.end()
        second.end()
        server.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pinproxy", default=".build/release/pinproxy", help="the release executable")
    parser.add_argument("--clients", type=int, default=10000, help="requests in flight at once")
    parser.add_argument("--burst", type=int, default=5000, help="connections opened at once")
    parser.add_argument("--descriptors", type=int, default=2000, help="the limit of descriptors for the shortage")
    parser.add_argument("--only", choices=["full", "burst", "short"])
    options = parser.parse_args()
    Pinproxy.executable = os.path.abspath(options.pinproxy)
    limit = crowd.raise_descriptor_limit()
    # The proxy needs a few descriptors for itself.
    most = (limit - 100) // 2
    if options.clients > most:
        print(f"the hard limit of {limit:,} descriptors allows {most:,} clients with an upstream connection each")
        options.clients = most

    with tempfile.TemporaryDirectory(prefix="pinproxy-many.") as directory:
        bench = Bench(directory)
        bench.names = Names(bench)
        origin = GatedOrigin(bench)
        try:
            if options.only in (None, "full"):
                full(bench, origin, options.clients)
            if options.only in (None, "burst"):
                burst(bench, origin, options.burst)
            if options.only in (None, "short"):
                short(bench, origin, options.descriptors, options.descriptors // 2)
        finally:
            origin.stop()
            bench.names.stop()


if __name__ == "__main__":
    main()
