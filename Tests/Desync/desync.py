"""A differential test of message framing. Mutated requests and responses go through a release build of the proxy. What
arrives is compared with a strict model of RFC 9112 (model.py), and read by nginx, Node, Go, Python and curl.

    desync.py --pinproxy PATH [--count N] [--seed S] [--lanes L]

Exits with 1 if there is a difference that known.py doesn't list with its reason. A lane is one process with its own
proxy and origins; the same seed and lane make the same messages.
"""

import argparse
import collections
import multiprocessing
import os
import pathlib
import random
import sys
import tempfile
import time

from known import KNOWN
from http2_trial import HTTP2Trial
from peers import Programs, certificates, build_go, start_proxy, start_readers
from trial import Trial
from wire import Loop, Recorder

#: A lane stops after this many differences.
FAULTS = 20


def tunnelled(loop, number):
    """An origin on port 80 of an address that no other lane has. None without the privilege."""
    try:
        return Recorder(loop, KNOWN, (f"127.{os.getpid() >> 8 & 255}.{os.getpid() & 255}.{number + 2}", 80))
    except PermissionError:
        print("no privilege for port 80: no tunnels", flush=True)
        return None


def last_words(folder):
    """The end of the proxy's output, to show why it exited."""
    return "".join((folder / name).read_text(errors="replace")[-6000:] for name in ("proxy.out", "proxy.log"))


def lane(number, options, go, queue):
    with tempfile.TemporaryDirectory(prefix="pinproxy-desync.") as name:
        programs = Programs(pathlib.Path(name))
        try:
            loop = Loop()
            certificate = certificates(programs.folder, "IP:127.0.0.1")
            proxy, port = start_proxy(programs, options.pinproxy)
            recorder = Recorder(loop, KNOWN)
            readers = start_readers(programs, loop, Recorder(loop, KNOWN), go)
            trial = Trial(f"seed {options.seed} lane {number}", loop, port, recorder, tunnelled(loop, number), readers)
            secure = start_readers(programs, loop, Recorder(loop, KNOWN), go, certificate)
            trial.others = HTTP2Trial(trial, certificate, secure)
            told = time.monotonic()
            while sum(trial.counts.values()) < options.count / options.lanes and len(trial.faults) < FAULTS:
                trial.batch()
                if proxy.poll() is not None:
                    trial.report(f"the proxy has ended: {proxy.returncode}\n{last_words(programs.folder)}")
                    break
                programs.check()
                if time.monotonic() - told > 60:
                    told = time.monotonic()
                    print(
                        f"lane {number}: {sum(trial.counts.values()):,} messages, {len(trial.faults)} differences",
                        flush=True,
                    )
            queue.put((trial.counts, trial.known, trial.verdicts, trial.faults))
        except BaseException as error:
            queue.put(({}, {}, {}, [f"lane {number} broke: {error!r}"]))
            raise
        finally:
            programs.stop()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--pinproxy", type=lambda path: os.path.abspath(path), required=True)
    parser.add_argument("--count", type=int, default=20000)
    parser.add_argument("--seed", default=str(random.randrange(1 << 32)))
    parser.add_argument("--lanes", type=int, default=os.cpu_count())
    options = parser.parse_args()
    print(f"SEED={options.seed}, {options.count:,} messages in {options.lanes} lanes", flush=True)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="pinproxy-desync.") as folder:
        go = build_go(pathlib.Path(folder))
        if not go:
            print("Go isn't installed: its reader is skipped")
        queue = multiprocessing.Queue()
        lanes = [multiprocessing.Process(target=lane, args=(n, options, go, queue)) for n in range(options.lanes)]
        for process in lanes:
            process.start()
        results = [queue.get() for _ in lanes]
        for process in lanes:
            process.join()
    counts, known, verdicts = (
        sum((collections.Counter(r[n]) for r in results), collections.Counter()) for n in range(3)
    )
    faults = [fault for *_, found in results for fault in found]
    seconds = time.monotonic() - began
    for title, table in ("messages", counts), ("verdicts", verdicts):
        print(f"{title}: " + ", ".join(f"{name} {n:,}" for name, n in sorted(table.items(), key=lambda item: -item[1])))
    for name, entry in KNOWN.items():
        print(
            f"known: {name} ({known[name]:,}), {'refused' if entry.refuses else 'passed on'}: {entry.reason} "
            f"{entry.rfc}"
        )
    print(f"{sum(counts.values()):,} messages in {seconds:.0f} s, {len(faults)} unknown differences")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
