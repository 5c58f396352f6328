"""Counts instructions and allocations of pinproxy's inner loop, and compares them with expected.json. The exit status
is 1 if a count has grown. `--write` saves the current counts as the expected ones."""

import argparse
import json
import pathlib
import sys
import tempfile

from callgrind import named
from instructions import CountedWithLog, profiles
from peers import Bench, Origin

#: Allocations that depend on the clock, averaged over the units.
SLACK = 0.3
EXPECTED = pathlib.Path(__file__).parent / "expected.json"
ALLOCATORS = {"malloc", "calloc", "realloc", "posix_memalign", "aligned_alloc", "memalign"}
#: All of OpenSSL's allocations go through these functions.
OPENSSL = {"CRYPTO_malloc", "CRYPTO_zalloc", "CRYPTO_realloc", "CRYPTO_clear_realloc"}

#: One call of each, including callees: its description, its Swift name, and the run that contains it.
FUNCTIONS = [
    ("log line", r"AccessLog\.write\(_:now:\)", "logged exchange"),
    ("request head", r"HeadParser\.parseRequest\(_:into:\)", "exchange"),
    ("response head", r"HeadParser\.parseResponse\(_:to:into:\)", "exchange"),
    ("decision about a host", r"Router\.decide\(_:for:client:\)", "connection"),
]


def per_unit(short, long, units):
    """Instructions per unit, the program's own allocations, and OpenSSL's."""
    own = [profile.called(ALLOCATORS, but=OPENSSL) for profile in (short, long)]
    openssl = [profile.called(ALLOCATORS) - count for profile, count in zip((short, long), own)]
    if not own[0] or not openssl[0]:
        raise SystemExit("no allocations counted: callgrind doesn't know the allocators by name")
    return {
        "instructions": round((long.instructions - short.instructions) / units),
        "allocations": round((own[1] - own[0]) / units, 2),
        "allocations of OpenSSL": round((openssl[1] - openssl[0]) / units, 2),
    }


def counted(executable):
    with tempfile.TemporaryDirectory() as directory:
        bench = Bench(directory)
        origin = Origin(bench)
        try:
            runs = {
                "exchange": profiles(bench, origin, executable, "keep-alive exchange", "exchange"),
                "logged exchange": profiles(bench, origin, executable, "keep-alive exchange", "logged", CountedWithLog),
                "connection": profiles(bench, origin, executable, "new connection, one GET", "connection"),
            }
        finally:
            origin.stop()
    counts = {name: per_unit(*run) for name, run in runs.items()}
    # The number of lines per batch of the log's thread depends on the clock.
    del counts["logged exchange"]["instructions"]
    for what, pattern, run in FUNCTIONS:
        functions = named(executable, pattern)
        cost = runs[run][1].cost(functions)
        if cost is None:
            raise SystemExit(f"{what}: {pattern} isn't called, or has another name: see FUNCTIONS in {__file__}")
        counts[what] = {"instructions": round(cost)}
    return counts


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pinproxy", required=True, help="the release binary, unstripped")
    parser.add_argument("--expected", default=EXPECTED, type=pathlib.Path)
    parser.add_argument("--tolerance", type=float, help="the fraction by which a count may grow; by default the file's")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    counts = counted(options.pinproxy)
    expected = json.loads(options.expected.read_text())
    tolerance = options.tolerance or expected["tolerance"]
    if options.write:
        expected["counts"] = counts
        options.expected.write_text(json.dumps(expected, indent=2) + "\n")
    failed = 0
    for what, kinds in counts.items():
        for kind, count in kinds.items():
            wanted = expected["counts"].get(what, {}).get(kind)
            bound = 0 if wanted is None else wanted * (1 + tolerance) + (0 if kind == "instructions" else SLACK)
            verdict = "ok" if count <= bound else "DEARER"
            if wanted and count < wanted * (1 - tolerance) - SLACK:
                verdict = "cheaper: --write makes that the bound"
            failed += verdict == "DEARER"
            print(f"{what + ', ' + kind:44} {count:>12,} expected {wanted or 0:>12,}  {verdict}")
    if failed:
        print(f'{failed} counts exceed {options.expected.name}: see Benchmarks/README.md, "What it costs"')
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
