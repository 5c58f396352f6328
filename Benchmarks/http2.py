"""Compares pinproxy's processor time over HTTP/2 with that of other proxies. They alternate in one run. See
README.md."""

import argparse
import os
import platform
import signal
import subprocess
import tempfile
import time

import crowd
import load
import memory
from bench import table
from names import Names
from peers import HOST, NGINX, Bench, HAProxy, Nginx, Origin, Pinproxy, Server, Shipped, free_port


class HTTP2Origin(Origin):
    """nginx with h2 and http/1.1 on its port, and HTTP/1.1 only on another."""

    def __init__(self, bench):
        port = free_port()
        self.status = free_port()
        self.old = free_port()
        listens = "".join(
            f"server {{ listen 127.0.0.1:{each} ssl{kind} backlog=4096; root {bench.path('documents')}; "
            "http2_max_concurrent_streams 512; }"
            for each, kind in ((port, " http2"), (self.old, ""))
        )
        body = f"{listens} server {{ listen 127.0.0.1:{self.status}; stub_status; }}"
        configuration = bench.write(
            "origin.conf", NGINX.format(directory=bench.directory, name="origin", workers=1, body=body)
        )
        Server.__init__(self, bench, ["nginx", "-p", bench.directory, "-c", configuration], port)


class Reverse(Nginx):
    """nginx: HTTP/2 to clients, HTTP/1.1 to the origin, where it supports nothing else."""

    def __init__(self, bench, origin):
        port = free_port()
        body = f"""
    upstream origin {{ server 127.0.0.1:{origin.old}; keepalive 8192; keepalive_requests 100000000; }}
    server {{
        listen 127.0.0.1:{port} ssl http2 backlog=4096; http2_max_concurrent_streams 512;
        location / {{
            proxy_pass https://origin; proxy_http_version 1.1; proxy_set_header Connection "";
            proxy_set_header Host {HOST}; proxy_ssl_name {HOST}; proxy_ssl_server_name on;
            proxy_ssl_verify on; proxy_ssl_trusted_certificate {bench.path("ca.pem")};
            proxy_ssl_session_reuse on; proxy_max_temp_file_size 0; proxy_request_buffering off;
        }}
    }}"""
        configuration = bench.write(
            "nginx.conf", NGINX.format(directory=bench.directory, name="nginx", workers=1, body=body)
        )
        Server.__init__(self, bench, ["nginx", "-p", bench.directory, "-c", configuration], port)


class Bridge(HAProxy):
    """HAProxy: HTTP/2 on both sides."""

    bind, server = " alpn h2,http/1.1", " alpn h2"


class Nghttpx(Server):
    """nghttp2's own proxy: HTTP/2 on both sides."""

    def __init__(self, bench, origin):
        port = free_port()
        super().__init__(
            bench,
            [
                "nghttpx",
                "--workers=1",
                "--no-ocsp",
                "--accesslog-file=/dev/null",
                f"--cacert={bench.path('ca.pem')}",
                f"--frontend=127.0.0.1,{port}",
                f"--backend=127.0.0.1,{origin.port};;tls;proto=h2;sni={HOST}",
                "--frontend-http2-max-concurrent-streams=512",
                str(bench.path("origin.key")),
                str(bench.path("origin.pem")),
            ],
            port,
        )


KINDS = {"shipped": Shipped, "pinproxy": Pinproxy, "nginx": Reverse, "haproxy": Bridge, "nghttpx": Nghttpx}


def streams(bench, server, origin, count, document, seconds, old=False, clients=1):
    """Runs h2load with this many streams per connection. Returns the processor time and the requests answered in it."""
    prefix, url, host = load.forward(bench, server, origin, document)
    if old and server.way == "connect":
        url = url.replace(f":{origin.port}/", f":{origin.old}/")
        host = f"{HOST}:{origin.old}"
    command = [
        *prefix,
        "h2load",
        "-t",
        "1",
        "-c",
        str(clients),
        "-m",
        str(count),
        "-D",
        "600",
        "-H",
        f":authority: {host}",
        url,
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as client:
        try:
            load.await_connections(server, clients, client)
            served = origin.answered() + 4 * count * clients
            while origin.answered() < served and client.poll() is None:
                time.sleep(0.05)
            before, begun = server.processor_seconds(), origin.answered()
            time.sleep(seconds)
            spent, answered = server.processor_seconds() - before, origin.answered() - begun - 1
            if client.poll() is not None or answered <= 0:
                raise SystemExit(f"{type(server).__name__}, {document}:\n{client.communicate()[0]}")
        finally:
            client.send_signal(signal.SIGKILL)
    return spent, answered


WORKS = {
    "h2, 32 streams on one connection, 1 KiB, h2 to the origin where it is spoken (µs/request)": lambda o, b, s, g: (
        streams(b, s, g, 32, "1k", o.seconds)
    ),
    "h2, 32 streams on one connection, 1 KiB, HTTP/1.1 to the origin where that can be chosen (µs/request)": (
        lambda o, b, s, g: streams(b, s, g, 32, "1k", o.seconds, old=True)
    ),
    "HTTP/1.1, 32 connections, 1 KiB (µs/request)": lambda o, b, s, g: load.keep_alive(b, s, g, 32, "1k", o.seconds),
    "h2, 100 streams on one connection, 1 MiB each (µs/request)": lambda o, b, s, g: streams(
        b, s, g, 100, "1m", o.seconds
    ),
    "h2, 10 connections of 100 streams, 1 KiB (µs/request)": lambda o, b, s, g: streams(
        b, s, g, 100, "1k", o.seconds, clients=10
    ),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pinproxy", default=".build/release/pinproxy", help="the release executable")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=4, help="seconds per run")
    parser.add_argument(
        "--peers", default="shipped,nginx,haproxy,nghttpx", help="comma-separated; pinproxy comes first"
    )
    parser.add_argument(
        "--idle", type=int, default=1000, help="idle HTTP/2 clients for the memory measurement; 0 skips it"
    )
    parser.add_argument("--only", help="run only works whose name contains this")
    options = parser.parse_args()
    Pinproxy.executable = os.path.abspath(options.pinproxy)
    crowd.raise_descriptor_limit()
    names = ["pinproxy"] + [name for name in options.peers.split(",") if name and name != "pinproxy"]
    with tempfile.TemporaryDirectory(prefix="pinproxy-bench.") as directory:
        bench = Bench(directory)
        bench.path("documents/1m").write_bytes(os.urandom(1 << 20))
        bench.names = Names(bench)
        origin = HTTP2Origin(bench)
        servers = {}
        try:
            for name in names:
                servers[name] = KINDS[name](bench, origin)
            idle = (
                {name: memory.idle(servers[name], origin, options.idle, kind="h2") for name in names}
                if options.idle
                else {}
            )
            figures = {work: {name: [] for name in names} for work in WORKS}
            for number in range(options.rounds):
                for work, perform in WORKS.items():
                    if options.only and options.only not in work:
                        continue
                    for name in names[number % len(names) :] + names[: number % len(names)]:
                        spent, units = perform(options, bench, servers[name], origin)
                        figures[work][name].append(spent / units * 1e6)
                print(f"round {number + 1} of {options.rounds} done", flush=True)
        finally:
            for server in [*servers.values(), origin, bench.names]:
                server.stop()
    print(
        f"\nLinux {platform.release()}; medians of {options.rounds} rounds, processor time (user and system) of the "
        "proxy's processes\n"
    )
    print("\n".join(table(figures, names)))
    if idle:
        print(
            f"\n{options.idle} idle clients of HTTP/2, KiB each: "
            + ", ".join(f"{name} {kib:.1f}" for name, kib in idle.items())
        )


if __name__ == "__main__":
    main()
