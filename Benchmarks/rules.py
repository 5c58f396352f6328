"""Measures a host's rules: header rules per request, and validation of 1 MiB of JSON. The latter also shows whether
other clients of the worker wait. pinproxy with rules alternates with pinproxy without."""

import argparse
import json
import os
import socket
import ssl
import statistics
import tempfile
import threading
import time

import load
from peers import HOST, Bench, Origin, Pinproxy

HEADERS = """
    request:
      headers: {X-Client: fleet}
      set_headers: {User-Agent: tool/1}
      remove_headers: [Referer]
      accept_language: [de-AT, de, en]
      cookies: strip
"""
JUDGED = """
    rules:
      - path: /json
        response: {serializer: json, content_types: ["*/*"]}
"""


class Client:
    """One persistent connection through CONNECT."""

    def __init__(self, server, origin):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        self.host = f"{HOST}:{origin.port}"
        connection = socket.create_connection(("127.0.0.1", server.port), timeout=30)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.sendall(f"CONNECT {self.host} HTTP/1.1\r\nHost: {self.host}\r\n\r\n".encode())
        answer = b""
        while b"\r\n\r\n" not in answer:
            answer += connection.recv(4096)
        assert b" 200 " in answer, answer
        self.secure = context.wrap_socket(connection, server_hostname=HOST)

    def get(self, document):
        self.secure.sendall(f"GET /{document} HTTP/1.1\r\nHost: {self.host}\r\n\r\n".encode())
        response = b""
        while b"\r\n\r\n" not in response:
            response += self.secure.recv(65536)
        head, body = response.split(b"\r\n\r\n", 1)
        assert head.startswith(b"HTTP/1.1 200"), response[:500]
        lines = head.decode().lower().split("\r\n")
        length = int(next(line.split(":")[1] for line in lines if line.startswith("content-length")))
        received = len(body)
        while received < length:
            received += len(self.secure.recv(65536))

    def close(self):
        self.secure.close()


def headers(plain, ruled, bench, origin, options):
    """Microseconds of processor time per request."""
    rows = {"without rules": [], "with header rules": []}
    for number in range(options.rounds):
        turns = list(zip(rows, (plain, ruled)))
        for name, server in turns if number % 2 else reversed(turns):
            spent, requests = load.keep_alive(bench, server, origin, 32, "1k", options.seconds)
            rows[name].append(spent / requests * 1e6)
    for name, values in rows.items():
        print(f"{name}: {statistics.median(values):.1f} µs a request")
    difference = [b - a for a, b in zip(*rows.values())]
    print(f"header rules: {statistics.median(difference):+.2f} µs a request (median of the rounds' differences)")


def p99(server, origin, seconds, document):
    """The p99 of small requests in milliseconds. Another client requests `document` ten times a second."""
    over = threading.Event()

    def fetch():
        client = Client(server, origin)
        while not over.wait(0.1):
            client.get(document)
        client.close()

    other = threading.Thread(target=fetch)
    client = Client(server, origin)
    client.get("1k")
    other.start()
    times, end = [], time.monotonic() + seconds
    while time.monotonic() < end:
        begin = time.perf_counter()
        client.get("1k")
        times.append((time.perf_counter() - begin) * 1e3)
        time.sleep(0.001)
    over.set()
    other.join()
    client.close()
    return statistics.quantiles(times, n=100)[98]


def judged(plain, ruled, origin, options):
    costs = {"passed on": [], "judged": []}
    waits = {"passed on": [], "judged": []}
    for number in range(options.rounds):
        turns = list(zip(costs, (plain, ruled)))
        for name, server in turns if number % 2 else reversed(turns):
            client = Client(server, origin)
            client.get("json")
            before = server.processor_seconds()
            for _ in range(60):
                client.get("json")
            costs[name].append((server.processor_seconds() - before) / 60 * 1e3)
            client.close()
            waits[name].append(p99(server, origin, options.seconds, "json"))
    for name in costs:
        print(
            f"1 MiB of JSON {name}: {statistics.median(costs[name]):.2f} ms of processor time; p99 of small requests "
            f"meanwhile {statistics.median(waits[name]):.2f} ms"
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pinproxy", default=".build/release/pinproxy", help="the release executable")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=4, help="seconds per run")
    options = parser.parse_args()
    Pinproxy.executable = os.path.abspath(options.pinproxy)
    with tempfile.TemporaryDirectory(prefix="pinproxy-bench.") as directory:
        bench = Bench(directory)
        record = {"name": "somebody", "tags": ["a", "b"], "score": 1.25, "next": None}
        count = (1 << 20) // len(json.dumps(record)) + 1
        bench.write("documents/json", json.dumps([record] * count))
        origin = Origin(bench)
        servers = [origin]
        try:
            for name, rules in (("plain", ""), ("headers", HEADERS), ("judging", JUDGED)):
                servers.append(Pinproxy(bench, origin, name=name, rules=rules))
            headers(servers[1], servers[2], bench, origin, options)
            judged(servers[1], servers[3], origin, options)
        finally:
            for server in servers:
                server.stop()


if __name__ == "__main__":
    main()
