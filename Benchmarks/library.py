"""Compares the library's cost with AsyncHTTPClient and Foundation's URLSession. See README.md."""

import argparse
import ctypes
import json
import os
import statistics
import subprocess
import tempfile
import time

from bench import table
from peers import Bench, Origin

KINDS = ["PinnedSession", "AsyncHTTPClient", "URLSession"]
GIGABYTE = 1 << 30
CLONE_NEWNS = 0x20000


def trust(authority):
    """Mounts the authority over the system's bundle, for this process and its children. URLSession supports no other
    anchors."""
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNS):
        raise SystemExit(f"a mount namespace: {os.strerror(ctypes.get_errno())}")
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    subprocess.run(["mount", "--bind", authority, "/etc/ssl/certs/ca-certificates.crt"], check=True)


class Clients:
    """The programs of Benchmarks/Library, with one origin."""

    def __init__(self, programs, bench, origin):
        self.programs, self.bench = programs, bench
        self.url = f"https://localhost:{origin.port}"

    def run(self, kind, path, *work):
        """Runs a program. Returns its own report, and the seconds and processor seconds of the whole process."""
        command = [f"{self.programs}/{kind}Load", self.url + path, str(self.bench.path("ca.pem")), *map(str, work)]
        began = time.monotonic()
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            output = process.stdout.read()
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        if status:
            raise SystemExit(f"{' '.join(command)}: exit status {process.returncode}")
        return json.loads(output), time.monotonic() - began, usage.ru_utime + usage.ru_stime


def measure(options, clients):
    figures, memory = {}, {}

    def add(work, kind, value, table=figures):
        table.setdefault(work, {name: [] for name in KINDS})[kind].append(value)

    file = str(clients.bench.path("downloaded"))
    for turn in range(options.rounds):
        for kind in KINDS[turn % 3 :] + KINDS[: turn % 3]:
            for at_once, count in ((100, options.requests), (1, options.requests // 4)):
                work = f"keep-alive 1 KiB, {at_once} at a time"
                told, _, _ = clients.run(kind, "/1k", "get", count, at_once)
                add(f"{work} (µs/request)", kind, told["processor"] * 1e6 / count)
                add(f"{work} (µs/request of wall time)", kind, told["seconds"] * 1e6 / count)
                add(f"{work} (MiB at most)", kind, told["resident"] / 1024, memory)
            for work, connections in (("100 first ones at a time", []), ("the same, each with a handshake", [100])):
                told, _, _ = clients.run(kind, "/1k", "first", 100, *connections)
                add(f"{work} (ms)", kind, told["processor"] * 1e3)
                add(f"{work} (ms of wall time)", kind, told["seconds"] * 1e3)
            work = "start, one request, end"
            runs = [clients.run(kind, "/1k", "first", 1) for _ in range(5)]
            add(f"{work} (ms)", kind, statistics.median(used for _, _, used in runs) * 1e3)
            add(f"{work} (ms of wall time)", kind, statistics.median(taken for _, taken, _ in runs) * 1e3)
            add(f"{work} (MiB at most)", kind, runs[0][0]["resident"] / 1024, memory)
            work = "download of 1 GiB to a file"
            told, _, _ = clients.run(kind, "/1g", "download", file)
            if os.path.getsize(file) != GIGABYTE:
                raise SystemExit(f"{kind} wrote {os.path.getsize(file)} bytes")
            os.unlink(file)
            add(f"{work} (s)", kind, told["processor"])
            add(f"{work} (s of wall time)", kind, told["seconds"])
            add(f"{work} (MiB at most)", kind, told["resident"] / 1024, memory)
    return {**figures, **memory}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--programs", default=".build/library-benchmark/release", help="the build folder of Benchmarks/Library"
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--requests", type=int, default=20000, help="requests, 100 at a time; a quarter as many in sequence"
    )
    options = parser.parse_args()
    if os.geteuid():
        raise SystemExit("The anchors of URLSession are mounted over the system's, which needs root.")
    # In memory, to keep the disk out of the figures.
    with tempfile.TemporaryDirectory(prefix="pinproxy-bench.", dir="/dev/shm") as directory:
        bench = Bench(directory)
        with open(bench.path("documents/1g"), "wb") as document:
            document.truncate(GIGABYTE)
        trust(bench.path("ca.pem"))
        origin = Origin(bench)
        try:
            figures = measure(options, Clients(options.programs, bench, origin))
        finally:
            origin.stop()
    print(f"\nMedians of {options.rounds} rounds; processor time (user and system), unless it says otherwise\n")
    print("\n".join(table(figures, KINDS)))


if __name__ == "__main__":
    main()
