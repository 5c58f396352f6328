#!/usr/bin/python3
"""Plants the faults of faults.py, one at a time, and shows which test detects each.

All are built in once, in a separate work tree; a file says which one is active. A fault is detected if the tests named
for it fail, which without it pass.
"""

import argparse
import os
import re
import subprocess
import sys
from pathlib import Path

from faults import FAULTS

ROOT = Path(__file__).resolve().parents[2]
TREE = ROOT / ".build-faults" / "tree"
DECLARATION = '\n@_silgen_name("pinproxy_planted") private func planted(_ number: CInt) -> Bool\n'
ACTIVE = ROOT / ".build-faults" / "active"
# A file, since tests start programs without their own environment variables.
SWITCH = (
    """#include <stdbool.h>
#include <stdio.h>
bool pinproxy_planted(int number) {
    static int active = -1;
    if (active < 0) {
        int found = 0;
        FILE *file = fopen("%s", "re");
        if (file) {
            if (fscanf(file, "%%d", &found) != 1) found = 0;
            fclose(file);
        }
        active = found;
    }
    return active == number;
}
"""
    % ACTIVE
)


def check():
    """The faults that no longer match the sources."""
    return [
        fault.name
        for fault in FAULTS
        if (ROOT / "Sources" / fault.file).read_text().count(fault.old) != 1 or "PLANTED" not in fault.new
    ]


def plant():
    """Creates a work tree of the current commit with every fault in it."""
    if not TREE.exists():
        subprocess.run(["git", "-C", ROOT, "worktree", "prune"], check=True)
        subprocess.run(["git", "-C", ROOT, "worktree", "add", "--quiet", "--detach", TREE], check=True)
    head = subprocess.run(
        ["git", "-C", ROOT, "rev-parse", "HEAD"], check=True, capture_output=True, text=True
    ).stdout.strip()
    subprocess.run(["git", "-C", TREE, "checkout", "--quiet", "--force", head], check=True)
    (TREE / "Sources/CShims/planted.c").write_text(SWITCH)
    # Adds CShims, which now has planted.c, to the module that depends on none of ours.
    package = TREE / "Package.swift"
    package.write_text(package.read_text().replace('"CXML2", "CZlib",', '"CShims", "CXML2", "CZlib",'))
    for number, fault in enumerate(FAULTS, 1):
        path = TREE / "Sources" / fault.file
        text = path.read_text()
        path.write_text(text.replace(fault.old, fault.new.replace("PLANTED", f"planted({number})")))
    for name in {fault.file for fault in FAULTS}:
        with open(TREE / "Sources" / name, "a") as file:
            file.write(DECLARATION)
    (TREE / ".build").mkdir(exist_ok=True)
    packages = TREE / ".build/python"
    if not packages.exists():
        packages.symlink_to(ROOT / ".build/python")
    build = os.environ.get("SWIFT_BUILD", "swift build").split()
    # As in the Makefile.
    environment = {**os.environ, "SWIFT_DETERMINISTIC_HASHING": "1"}
    subprocess.run([*build, "--build-tests"], cwd=TREE, env=environment, check=True)


def failures(number, tests):
    """The names of the tests that fail with a fault. None: they timed out, which counts as detected."""
    command = ["swift", "test", "--skip-build", "--filter", tests, "--experimental-maximum-parallelization-width", "8"]
    ACTIVE.write_text(str(number))
    try:
        run = subprocess.run(command, cwd=TREE, capture_output=True, text=True, errors="replace", timeout=900)
    except subprocess.TimeoutExpired:
        return None
    if run.returncode == 0:
        return []
    return sorted(set(re.findall(r"✘ Test (\w+)\(.* recorded an issue", run.stdout))) or ["(the run ended early)"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="only check that each fault still matches the sources")
    parser.add_argument("--only", type=int, nargs="*", help="the numbers of faults to plant")
    parser.add_argument("--unseen", type=int, default=2, help="how many faults may be missed (default: 2)")
    arguments = parser.parse_args()
    if misfits := check():
        sys.exit("no longer match the sources (Tests/Faults/faults.py): " + "; ".join(misfits))
    if arguments.check:
        return print(f"{len(FAULTS)} faults match the sources")
    plant()
    for tests in sorted({fault.tests for fault in FAULTS}):
        if (failed := failures(0, tests)) != []:
            sys.exit(f"without a fault, {tests} fail: {failed}")
    missed = []
    for number, fault in enumerate(FAULTS, 1):
        if arguments.only and number not in arguments.only:
            continue
        seen = failures(number, fault.tests)
        if seen == []:
            missed.append(fault.name)
        words = (
            "MISSED"
            if seen == []
            else "no end in time"
            if seen is None
            else ", ".join(seen[:3]) + (f" and {len(seen) - 3} more" if len(seen) > 3 else "")
        )
        print(f"{number:3} {fault.name}: {words}", flush=True)
    print(f"{len(missed)} of {len(FAULTS)} faults missed" + (": " + "; ".join(missed) if missed else ""))
    sys.exit(len(missed) > arguments.unseen)


if __name__ == "__main__":
    main()
