"""Measures the cost of a cached response. The cases are 1 KiB and 16 KiB from memory, and 10 MB from disk. pinproxy
with a cache alternates with nginx's proxy_cache and with pinproxy without a cache. See README.md."""

import argparse
import pathlib
import re
import statistics
import subprocess
import tempfile

import load
from peers import HOST, NGINX, Bench, Origin, Pinproxy, Server, free_port


class CachingNginx(Server):
    """A reverse proxy with proxy_cache and TLS on both sides; it verifies the origin."""

    def __init__(self, bench, origin):
        port = free_port()
        body = f"""
    proxy_cache_path {bench.path("stored")} levels=1:2 keys_zone=stored:10m max_size=2g inactive=60m use_temp_path=off;
    upstream origin {{ server 127.0.0.1:{origin.port}; keepalive 8192; }}
    server {{
        listen 127.0.0.1:{port} ssl backlog=4096;
        location / {{
            proxy_cache stored; proxy_cache_key $request_uri; add_header X-Cache $upstream_cache_status;
            proxy_pass https://origin; proxy_http_version 1.1; proxy_set_header Connection "";
            proxy_set_header Host {HOST}; proxy_ssl_name {HOST}; proxy_ssl_server_name on;
            proxy_ssl_verify on; proxy_ssl_trusted_certificate {bench.path("ca.pem")};
        }}
    }}"""
        configuration = bench.write(
            "caching.conf", NGINX.format(directory=bench.directory, name="caching", workers=1, body=body)
        )
        super().__init__(bench, ["nginx", "-p", bench.directory, "-c", configuration], port)


def requests(bench, server, origin, document, seconds):
    """Microseconds of processor time per request over 32 connections, without the cost of the connections."""
    prefix, url, host = load.forward(bench, server, origin, document)
    command = [*prefix, "wrk", "-t", "1", "-c", "32", "-d", f"{seconds}s", "-H", f"Host: {host}", url]
    subprocess.run([*command[:-4], "1s", *command[-3:]], check=True, stdout=subprocess.DEVNULL)

    def spend(length):
        command[command.index("-d") + 1] = f"{length}s"
        before = server.processor_seconds()
        output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
        if "Non-2xx" in output:
            raise SystemExit(output)
        return server.processor_seconds() - before, int(re.search(r"(\d+) requests in", output)[1])

    short, long = spend(1), spend(seconds + 1)
    return (long[0] - short[0]) / (long[1] - short[1]) * 1e6


def bulk(server, origin, times=20):
    """Milliseconds of processor time for 10 MB with curl."""
    way = (
        ["--proxy", f"http://127.0.0.1:{server.port}"]
        if server.way == "connect"
        else ["--noproxy", "*", "--connect-to", f"{HOST}:{origin.port}:127.0.0.1:{server.port}"]
    )
    command = ["curl", "--silent", "--show-error", "--fail", "--insecure", "--http1.1", *way]
    command += ["--output", "/dev/null", f"https://{HOST}:{origin.port}/fresh/10m"] * times
    before = server.processor_seconds()
    subprocess.run(command, check=True)
    return (server.processor_seconds() - before) / times * 1e3


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pinproxy", default=".build/release/pinproxy", help="the release executable")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="pinproxy-cache.") as directory:
        bench = Bench(directory)
        Pinproxy.executable = str(pathlib.Path(options.pinproxy).resolve())
        origin = Origin(bench)
        peers = {
            "memory": Pinproxy(bench, origin, "memory", rules="    cache: memory"),
            "disk": Pinproxy(bench, origin, "disk", rules="    cache: disk", more="cache: {disk: 2GB}"),
            "none": Pinproxy(bench, origin, "none"),
            "nginx": CachingNginx(bench, origin),
        }
        try:
            works = {
                "hit of 1 KiB (µs)": (["memory", "nginx", "none", "disk"], lambda peer: requests(
                    bench, peer, origin, "fresh/1k", options.seconds)),
                "hit of 16 KiB (µs)": (["memory", "nginx", "none", "disk"], lambda peer: requests(
                    bench, peer, origin, "fresh/16k", options.seconds)),
                "hit of 10 MB (ms)": (["disk", "nginx", "none"], lambda peer: bulk(peer, origin)),
            }  # fmt: skip
            for work, (names, measure) in works.items():
                rows = {name: [] for name in names}
                for name in names:
                    measure(peers[name])
                for turn in range(options.rounds):
                    for name in names[turn % len(names) :] + names[: turn % len(names)]:
                        rows[name].append(measure(peers[name]))
                told = ", ".join(f"{name} {statistics.median(row):.1f}" for name, row in rows.items())
                ratios = [
                    f"{name} / {other} {statistics.median(a / b for a, b in zip(rows[name], rows[other])):.2f}"
                    for name in names[:1]
                    for other in names[1:]
                ]
                print(f"{work}: {told}; {', '.join(ratios)}", flush=True)
        finally:
            for peer in [*peers.values(), origin]:
                peer.stop()


if __name__ == "__main__":
    main()
