"""Compares pinproxy's processor time with that of other proxies in one run. See README.md."""

import argparse
import os
import platform
import statistics
import tempfile

import crowd
import load
import memory
from names import Names
from peers import Bench, HAProxy, Mitmproxy, Nginx, Origin, Pinproxy, Shipped, Squid

#: "shipped" is pinproxy with its access log.
KINDS = {
    "shipped": Shipped,
    "pinproxy": Pinproxy,
    "nginx": Nginx,
    "haproxy": HAProxy,
    "squid": Squid,
    "mitmproxy": Mitmproxy,
}

#: Each returns the amount of work, or a pair of the processor time and the work done in it.
WORKS = {
    "keep-alive 1 KiB, 32 connections (µs/request)": lambda o, b, s, g: load.keep_alive(b, s, g, 32, "1k", o.seconds),
    "keep-alive 16 KiB, 32 connections (µs/request)": lambda o, b, s, g: load.keep_alive(b, s, g, 32, "16k", o.seconds),
    "keep-alive 1 KiB, 1 connection (µs/request)": lambda o, b, s, g: load.keep_alive(b, s, g, 1, "1k", o.seconds),
    "keep-alive 1 KiB, 256 connections (µs/request)": lambda o, b, s, g: load.keep_alive(b, s, g, 256, "1k", o.seconds),
    "keep-alive 1 KiB, 1,000 connections (µs/request)": lambda o, b, s, g: load.keep_alive(
        b, s, g, 1000, "1k", o.seconds
    ),
    "keep-alive 1 KiB, 5,000 connections (µs/request)": lambda o, b, s, g: load.keep_alive(
        b, s, g, 5000, "1k", o.seconds
    ),
    "new upstream connection for each request, resumed (µs/request)": lambda o, b, s, g: load.keep_alive(
        b, s, g, 8, "once/1k", o.seconds
    ),
    "new upstream connection for each request, whole handshake (µs/request)": lambda o, b, s, g: load.keep_alive(
        b, s, g, 8, "forgetful/1k", o.seconds
    ),
    "new connection, one GET, warm leaf (µs/connection)": lambda o, b, s, g: load.new_connections(
        b, s, g, o.connections
    ),
    "new connection, resumed session (µs/connection)": lambda o, b, s, g: load.new_connections(
        b, s, g, o.connections, resumes=True
    ),
    "new connection, new name (µs/connection)": lambda o, b, s, g: load.new_connections(
        b, s, g, o.connections // 4, new_names=True
    ),
    "bulk 100 MB down (s/GB)": lambda o, b, s, g: load.bulk(b, s, g, 3),
    "bulk 100 MB up (s/GB)": lambda o, b, s, g: load.bulk(b, s, g, 3, "up"),
    "bulk 100 MB through a tunnel (s/GB)": lambda o, b, s, g: load.bulk(b, s, g, 3, "tunnel"),
}

#: Works that a quick run skips, because their clients take long to connect.
NOT_QUICK = ("1,000 connections", "5,000 connections")


def measure(options, bench, origin, servers):
    """Returns work → server → one figure per round: seconds of processor time per unit."""
    figures = {work: {name: [] for name in servers} for work in WORKS}
    names = list(servers)
    for server in servers.values():
        load.new_connections(bench, server, origin, 40)
    for round_number in range(options.rounds):
        order = names[round_number % len(names) :] + names[: round_number % len(names)]
        for work, perform in WORKS.items():
            if options.only and options.only not in work or options.quick and any(kind in work for kind in NOT_QUICK):
                continue
            for name in order:
                if any(lack in work for lack in servers[name].lacks):
                    continue
                before = servers[name].processor_seconds()
                done = perform(options, bench, servers[name], origin)
                spent, units = done if isinstance(done, tuple) else (servers[name].processor_seconds() - before, done)
                figures[work][name].append(spent / units * (1e6 if "µs" in work else 1))
        print(f"round {round_number + 1} of {options.rounds} done", flush=True)
    return figures


def latencies(options, bench, origin, servers):
    """Measures the latency that each proxy adds. The rate is half the maximum of nginx's worker on this machine."""
    timed = {
        "origin": origin,
        **{name: servers[name] for name in ("shipped", "pinproxy", "nginx", "haproxy") if name in servers},
    }
    busiest = servers.get("nginx") or next(iter(servers.values()))
    spent, answered = load.keep_alive(bench, busiest, origin, 32, "1k", options.seconds)
    rate = answered / options.seconds / 2
    figures = {name: [] for name in timed}
    names = list(timed)
    for round_number in range(options.rounds):
        for name in names[round_number % len(names) :] + names[: round_number % len(names)]:
            times = load.latency(bench, timed[name], origin, rate, options.seconds + 1)
            figures[name].append((times[len(times) // 2], times[len(times) * 99 // 100]))
    median = {
        name: [statistics.median(each[place] for each in rounds) for place in (0, 1)]
        for name, rounds in figures.items()
    }
    print(
        f"\nLatency added at {rate:.0f} requests a second over 32 connections, compared with no proxy "
        f"(p50 {median['origin'][0]:.0f} µs, p99 {median['origin'][1]:.0f}):"
    )
    for name in names[1:]:
        print(
            f"  {name}: p50 +{median[name][0] - median['origin'][0]:.0f} µs, p99 "
            f"+{median[name][1] - median['origin'][1]:.0f}"
        )


def table(figures, names):
    """Formats the medians, and the median and range of the ratios within each round."""
    subject = names[0]
    yield "| work | " + " | ".join(names) + " | " + " | ".join(f"{subject} / {n}" for n in names[1:]) + " |"
    yield "|---" * (2 * len(names)) + "|"
    for work, row in figures.items():
        if not row[subject]:
            continue
        digits = 1 if "µs" in work else 2
        cells = [f"{statistics.median(row[name]):.{digits}f}" if row[name] else "–" for name in names]
        for name in names[1:]:
            ratios = [ours / theirs for ours, theirs in zip(row[subject], row[name]) if theirs]
            cells.append(f"{statistics.median(ratios):.2f} ({min(ratios):.2f}–{max(ratios):.2f})" if ratios else "–")
        yield f"| {work} | " + " | ".join(cells) + " |"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pinproxy", default=".build/release/pinproxy", help="the release executable")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=4, help="seconds per keep-alive run")
    parser.add_argument("--connections", type=int, default=1200, help="connections per new-connection run")
    parser.add_argument(
        "--subject",
        default="shipped",
        choices=["shipped", "pinproxy"],
        help="with its access log, or without one like the peers",
    )
    parser.add_argument(
        "--peers",
        default="pinproxy,nginx,haproxy,squid",
        help="comma-separated; mitmproxy only if make bench has installed it",
    )
    parser.add_argument("--idle", type=int, default=10000, help="idle clients for the memory measurement; 0 skips it")
    parser.add_argument(
        "--quick",
        action="store_true",
        help="two short rounds against nginx and HAProxy only, in two minutes",
    )
    parser.add_argument("--only", help="run only works whose name contains this")
    options = parser.parse_args()
    Pinproxy.executable = os.path.abspath(options.pinproxy)
    crowd.raise_descriptor_limit()
    if options.quick:
        options.rounds, options.seconds, options.connections = 2, 1, 100
        options.idle = min(options.idle, 1000)
        options.peers = ",".join(peer for peer in options.peers.split(",") if peer in ("nginx", "haproxy"))
    names = [options.subject] + [name for name in options.peers.split(",") if name and name != options.subject]

    with tempfile.TemporaryDirectory(prefix="pinproxy-bench.") as directory:
        bench = Bench(directory)
        bench.names = Names(bench)
        origin = Origin(bench)
        servers = {}
        try:
            for name in names:
                servers[name] = KINDS[name](bench, origin)
            # This comes first, since memory allocated under load could otherwise be reused.
            idle = {}
            if options.idle:
                memory.warm(servers.values(), origin)
                idle = {name: memory.idle(server, origin, options.idle) for name, server in servers.items()}
            figures = measure(options, bench, origin, servers)
            if not options.only or options.only in "latency":
                latencies(options, bench, origin, servers)
            resident = {name: server.resident_kib() for name, server in servers.items()}
        finally:
            for server in [*servers.values(), origin, bench.names]:
                server.stop()

    with open("/proc/cpuinfo") as information:
        model = next((line.split(":")[1].strip() for line in information if "model name" in line), "?")
    print(
        f"\n{model}, Linux {platform.release()}; medians of {options.rounds} rounds, "
        "processor time (user and system) of the proxy's processes\n"
    )
    print("\n".join(table(figures, names)))
    if idle:
        print(
            f"\n{options.idle} idle clients, KiB each: " + ", ".join(f"{name} {kib:.1f}" for name, kib in idle.items())
        )
    print(
        "\nresident memory after the runs: "
        + ", ".join(f"{name} {kib / 1024:.1f} MiB" for name, kib in resident.items())
    )


if __name__ == "__main__":
    main()
