"""What the library costs a Swift program, beside AsyncHTTPClient and Foundation's URLSession. See README.md here."""

import argparse
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


class Clients:
    """The programs of Benchmarks/Library, against one origin."""

    def __init__(self, programs, bench, origin):
        self.programs, self.bench = programs, bench
        self.url = f"https://localhost:{origin.port}"

    def run(self, kind, path, *work):
        """What the program says of its work; seconds and processor seconds of the whole process, and its largest
        KiB."""
        command = [f"{self.programs}/{kind}Load", self.url + path, str(self.bench.path("ca.pem")), *map(str, work)]
        began = time.monotonic()
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            output = process.stdout.read()
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        if status:
            raise SystemExit(f"{' '.join(command)}: exit status {process.returncode}")
        whole = (time.monotonic() - began, usage.ru_utime + usage.ru_stime, usage.ru_maxrss)
        return json.loads(output), whole


def measure(options, clients):
    figures, memory = {}, {}

    def add(work, kind, value):
        figures.setdefault(work, {name: [] for name in KINDS})[kind].append(value)

    file = str(clients.bench.path("downloaded"))
    for turn in range(options.rounds):
        for kind in KINDS[turn % 3 :] + KINDS[: turn % 3]:
            for at_once, count in ((100, options.requests), (1, options.requests // 4)):
                told, whole = clients.run(kind, "/1k", "get", count, at_once)
                work = f"keep-alive 1 KiB, {at_once} at one time"
                add(f"{work} (µs/request)", kind, told["processor"] * 1e6 / count)
                add(f"{work} (requests/s)", kind, count / told["seconds"])
                memory.setdefault(f"after {work}", {name: [] for name in KINDS})[kind].append(whole[2] / 1024)
            told, _ = clients.run(kind, "/1k", "first", 100)
            add("100 at one time, each with a handshake (ms)", kind, told["seconds"] * 1e3)
            add("100 at one time, each with a handshake (ms of processor time)", kind, told["processor"] * 1e3)
            starts = [clients.run(kind, "/1k", "first", 1)[1] for _ in range(3)]
            add("start, one request, end (ms)", kind, statistics.median(taken for taken, _, _ in starts) * 1e3)
            add("start, one request, end (ms of processor time)", kind, statistics.median(u for _, u, _ in starts) * 1e3)
            memory.setdefault("after one request", {name: [] for name in KINDS})[kind].append(starts[0][2] / 1024)
            told, whole = clients.run(kind, "/1g", "download", file)
            if os.path.getsize(file) != GIGABYTE:
                raise SystemExit(f"{kind} wrote {os.path.getsize(file)} bytes")
            os.unlink(file)
            add("download of 1 GiB to a file (s)", kind, told["seconds"])
            add("download of 1 GiB to a file (s of processor time)", kind, told["processor"])
            memory.setdefault("after a download of 1 GiB", {name: [] for name in KINDS})[kind].append(whole[2] / 1024)
    return figures, memory


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", default=".build/library-benchmark/release", help="of Benchmarks/Library")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--requests", type=int, default=20000, help="with 100 at one time; a quarter of it one by one")
    options = parser.parse_args()
    # In memory, where a file needs no disk.
    with tempfile.TemporaryDirectory(prefix="pinproxy-bench.", dir="/dev/shm") as directory:
        bench = Bench(directory)
        with open(bench.path("documents/1g"), "wb") as document:
            document.truncate(GIGABYTE)
        origin = Origin(bench)
        try:
            figures, memory = measure(options, Clients(options.programs, bench, origin))
        finally:
            origin.stop()
    print(f"\nMedians of {options.rounds} rounds\n")
    print("\n".join(table(figures, KINDS)))
    print("\nMiB of memory at most:")
    for work, row in memory.items():
        print(f"  {work}: " + ", ".join(f"{kind} {statistics.median(row[kind]):.1f}" for kind in KINDS))


if __name__ == "__main__":
    main()
