#!/usr/bin/env python3
"""Runs the fuzz targets in sequence (`make fuzz`). `make fuzz-minimize` merges findings into the committed corpora.

Each target starts with its files of Tests/Fuzz/Corpus and Tests/Fuzz/Regressions, and keeps inputs that reach new code
in .build-fuzz/corpus/TARGET. See docs/testing.md.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

here = pathlib.Path(__file__).resolve().parent
build = here.parent.parent / ".build-fuzz"
program = build / "release" / "PinproxyFuzz"
# A trap would stop in Swift's backtracer. The leak sanitizer mistakes weak references for leaks. Freed memory is
# watched for 16 MB of further allocations instead of 256, more than an input makes; eight frames are kept per
# allocation instead of 30. Together that saves a tenth of the time; reproducing a crash uses the defaults.
environment = {
    **os.environ,
    "SWIFT_BACKTRACE": "enable=no",
    "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=1:quarantine_size_mb=16:malloc_context_size=8",
}
bounds = [
    # The maximum length of an input, which libFuzzer would otherwise take from the corpus; seconds per input; megabytes
    # of the process.
    "-max_len=4096",
    "-timeout=10",
    "-rss_limit_mb=2048",
    # Both take the first seconds or minutes of a run: function names in a program of this size, and a search of all
    # memory whenever an input has left something in a cache.
    "-print_funcs=0",
    "-detect_leaks=0",
]


def targets():
    return subprocess.run(
        [program, "--list"], check=True, capture_output=True, text=True, env=environment
    ).stdout.split()


def committed(target):
    return [str(folder) for folder in (here / "Corpus" / target, here / "Regressions" / target) if folder.is_dir()]


def number(pattern, text):
    found = re.findall(pattern, text)
    return int(found[-1]) if found else 0


def run(target, seconds):
    """Runs a target. Returns a row of the table, and the paths of the findings."""
    corpus, found, log = (build / kind / target for kind in ("corpus", "found", "log"))
    for folder in (corpus, found, log.parent):
        folder.mkdir(parents=True, exist_ok=True)
    before = set(found.iterdir())
    dictionary = here / "Dictionaries" / target
    command = [
        program,
        target,
        f"-max_total_time={seconds}",
        *bounds,
        f"-artifact_prefix={found}/",
        "-print_final_stats=1",
    ]
    command += [f"-dict={dictionary}"] if dictionary.exists() else []
    with open(log, "w") as output:
        try:
            # The fuzzer stops after that time; one that doesn't is killed, and counts as a finding.
            status = subprocess.run(
                [*command, str(corpus), *committed(target)],
                stdout=output,
                stderr=output,
                env=environment,
                timeout=seconds + 120,
            ).returncode
        except subprocess.TimeoutExpired:
            status = -1
    text = log.read_text(errors="replace")
    executions = number(r"stat::number_of_executed_units:\s+(\d+)", text)
    row = (target, executions, number(r"cov: (\d+)", text), number(r"ft: (\d+)", text), executions // max(seconds, 1))
    print("{}: {} executions, {} edges, {} features, {} a second".format(*row), flush=True)
    # A slow input is kept, and is not a failure.
    new = [path for path in sorted(set(found.iterdir()) - before) if not path.name.startswith("slow-unit")]
    if status == 0:
        return row, []
    words = [
        line
        for line in text.splitlines()
        if "does not hold" in line or "Fatal error" in line or line.startswith("SUMMARY")
    ]
    print(f"{target} FAILED ({log}):\n  " + "\n  ".join(words[:5]), flush=True)
    for path in new:
        print(
            f"""  The input: {path}
  To see it again: SWIFT_BACKTRACE=enable=no {program} {target} {path}
  Minimise it: the same with -minimize_crash=1 -runs=100000 before the file. Then fix the cause, and keep the
  input as {here}/Regressions/{target}/WHAT-IT-WAS, which `make test` runs from then on.""",
            flush=True,
        )
    return row, new or [log]


def minimize(target):
    """Minimises the corpora to the smallest files with the same coverage. Seeds are kept."""
    corpus = here / "Corpus" / target
    before = {path.read_bytes() for path in corpus.iterdir()}
    with tempfile.TemporaryDirectory() as folder:
        log = subprocess.run(
            [program, target, "-merge=1", *bounds, folder, str(corpus), str(build / "corpus" / target)],
            capture_output=True,
            text=True,
            errors="replace",
            env=environment,
            timeout=1800,
        )
        if log.returncode != 0:
            sys.exit(f"{target}: merging failed\n{log.stderr[-2000:]}")
        for path in corpus.iterdir():
            if not path.name.startswith("seed-"):
                path.unlink()
        kept = {path.read_bytes() for path in corpus.iterdir()}
        for path in sorted(pathlib.Path(folder).iterdir()):
            if path.stat().st_size <= 1024 and path.read_bytes() not in kept:
                shutil.copyfile(path, corpus / path.name[:16])
    print(f"{target}: {len(before)} files before, {len(list(corpus.iterdir()))} now", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--time", type=int, default=60, help="seconds for each target")
    parser.add_argument("--target", help="run only this target")
    parser.add_argument("--minimize", action="store_true", help="merge the findings into Tests/Fuzz/Corpus")
    arguments = parser.parse_args()
    names = targets()
    if arguments.target and arguments.target not in names:
        sys.exit(f'There is no target "{arguments.target}": {", ".join(names)}')
    names = [arguments.target] if arguments.target else names
    if arguments.minimize:
        for name in names:
            minimize(name)
        return
    rows, finds = [], []
    for name in names:
        row, found = run(name, arguments.time)
        rows.append(row)
        finds += [(name, path) for path in found]
    print("\n{:<20} {:>12} {:>8} {:>9} {:>9}".format("target", "executions", "edges", "features", "a second"))
    for row in rows:
        print("{:<20} {:>12} {:>8} {:>9} {:>9}".format(*row))
    if finds:
        sys.exit("\nFound:\n" + "\n".join(f"  {name}: {path}" for name, path in finds))


if __name__ == "__main__":
    main()
