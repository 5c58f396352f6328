"""Measures requests to an origin that writes head and body separately without TCP_NODELAY. Python's http.server does
so. Each proxy is compared with a direct connection. See README.md."""

import argparse
import http.server
import multiprocessing
import os
import ssl
import statistics
import tempfile
import time

import load
from names import Names
from peers import HOST, Bench, HAProxy, Nginx, Pinproxy, Shipped, Squid

KINDS = {"pinproxy": Shipped, "nginx": Nginx, "haproxy": HAProxy, "squid": Squid}
BODY = b"x" * 1000


class Answer(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", str(len(BODY)))
        # This writes the buffered head; the body is a separate write.
        self.end_headers()
        self.wfile.write(BODY)

    def log_message(self, *_):
        pass


class PiecesOrigin:
    """http.server with TLS."""

    def __init__(self, bench):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(bench.path("origin.pem"), bench.path("origin.key"))
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        self.port = self.forgetful = server.server_address[1]
        self.process = multiprocessing.get_context("fork").Process(target=server.serve_forever, daemon=True)
        self.process.start()
        server.socket.close()

    def stop(self):
        self.process.terminate()
        self.process.join()


def times(way, port, origin, count):
    """Milliseconds of each request on one connection."""
    host = f"{HOST}:{origin.port}" if way == "connect" else HOST
    request = f"GET / HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()
    found = []
    with load.context_without_trust().wrap_socket(
        load.connect(way, port, origin.port, HOST), server_hostname=HOST
    ) as client:
        for _ in range(count):
            began = time.monotonic()
            client.sendall(request)
            response = b""
            while not response.endswith(BODY):
                some = client.recv(65536)
                if not some:
                    raise SystemExit(f"ended after {response[:200]!r}")
                response += some
            if not response.startswith(b"HTTP/1.1 200"):
                raise SystemExit(f"unexpected response: {response[:200]!r}")
            found.append((time.monotonic() - began) * 1000)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pinproxy", default=".build/release/pinproxy", help="the release executable")
    parser.add_argument("--peers", default="nginx,haproxy,squid", help="comma-separated")
    parser.add_argument("--requests", type=int, default=100)
    options = parser.parse_args()
    Pinproxy.executable = os.path.abspath(options.pinproxy)
    with tempfile.TemporaryDirectory(prefix="pinproxy-pieces.") as directory:
        bench = Bench(directory)
        bench.names = Names(bench)
        origin = PiecesOrigin(bench)
        servers = {}
        try:
            for name in ["pinproxy", *filter(None, options.peers.split(","))]:
                servers[name] = KINDS[name](bench, origin)
            found = {"no proxy": times("direct", origin.port, origin, options.requests)}
            found.update(
                (name, times(server.way, server.port, origin, options.requests)) for name, server in servers.items()
            )
        finally:
            for server in [*servers.values(), origin, bench.names]:
                server.stop()
    for name, each in found.items():
        print(f"{name}: median {statistics.median(each):.2f} ms, longest {max(each):.2f} ms of {len(each)} requests")


if __name__ == "__main__":
    main()
