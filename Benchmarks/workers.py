"""Measures the cost and gain of a second worker. Proxies with one worker and with two do the same work in turns. See
../docs/scaling.md."""

import argparse
import os
import statistics
import tempfile
import time

import load
from names import Names
from peers import Bench, Origin, Shipped

WORKS = {
    "keep-alive 1 KiB, 32 connections": lambda o, b, s, g: load.keep_alive(b, s, g, 32, "1k", o.seconds),
    "keep-alive 16 KiB, 32 connections": lambda o, b, s, g: load.keep_alive(b, s, g, 32, "16k", o.seconds),
    "new connection, one GET": lambda o, b, s, g: load.new_connections(b, s, g, o.connections),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pinproxy", default=".build/release/pinproxy", help="the release executable")
    parser.add_argument("--workers", default="1,2", help="comma-separated; the others are compared with the first")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=int, default=2)
    parser.add_argument("--connections", type=int, default=400)
    options = parser.parse_args()
    Shipped.executable = os.path.abspath(options.pinproxy)
    counts = [int(count) for count in options.workers.split(",")]
    with tempfile.TemporaryDirectory(prefix="pinproxy-workers.") as directory:
        bench = Bench(directory)
        bench.names = Names(bench)
        origin = Origin(bench)
        servers = {count: Shipped(bench, origin, name=f"workers{count}", workers=count) for count in counts}
        figures = {(work, count): [] for work in WORKS for count in counts}
        try:
            for server in servers.values():
                load.new_connections(bench, server, origin, 80)
            for turn in range(options.rounds):
                for work, perform in WORKS.items():
                    for count in counts[turn % len(counts) :] + counts[: turn % len(counts)]:
                        before, began = servers[count].processor_seconds(), time.monotonic()
                        units = perform(options, bench, servers[count], origin)
                        took = time.monotonic() - began
                        figures[work, count].append(
                            ((servers[count].processor_seconds() - before) / units * 1e6, units / took)
                        )
        finally:
            for server in [*servers.values(), origin, bench.names]:
                server.stop()
    for work in WORKS:
        for count in counts:
            spent, rate = zip(*figures[work, count])
            ratios = [a / b[0] for a, b in zip(spent, figures[work, counts[0]])]
            rates = [a / b[1] for a, b in zip(rate, figures[work, counts[0]])]
            print(
                f"{work}, {count} worker{'s' if count > 1 else ''}: {statistics.median(spent):.1f} µs each, "
                f"{statistics.median(rate):,.0f} a second; "
                f"to {counts[0]}: processor time {statistics.median(ratios):.2f} "
                f"({min(ratios):.2f}–{max(ratios):.2f}), "
                f"rate {statistics.median(rates):.2f} ({min(rates):.2f}–{max(rates):.2f})"
            )


if __name__ == "__main__":
    main()
