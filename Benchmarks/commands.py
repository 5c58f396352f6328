"""Measures commands that people wait for: `exec`, `env`, and the program's start alone. They run while a proxy is
running. See README.md."""

import argparse
import os
import shutil
import statistics
import subprocess
import tempfile
import time

from peers import Bench, Origin, Pinproxy


def used():
    """Seconds of processor time of the children that have exited."""
    times = os.times()
    return times.children_user + times.children_system


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pinproxy", default=".build/release/pinproxy", help="the release executable")
    parser.add_argument("--runs", type=int, default=50)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="pinproxy-commands.") as directory:
        bench = Bench(directory)
        # The package installs it stripped.
        Pinproxy.executable = str(bench.path("stripped"))
        shutil.copy(options.pinproxy, Pinproxy.executable)
        subprocess.run(["strip", Pinproxy.executable], check=True)
        origin = Origin(bench)
        proxy = Pinproxy(bench, origin)
        try:
            file = str(bench.path("pinproxy/pinproxy.yaml"))
            commands = {
                "true": ["true"],
                "--version": [Pinproxy.executable, "--version"],
                "env": [Pinproxy.executable, "env", "--config", file],
                "exec --no-trust -- true": [Pinproxy.executable, "exec", "--config", file, "--no-trust", "--", "true"],
                "exec -- true": [Pinproxy.executable, "exec", "--config", file, "--", "true"],
            }
            figures = {name: [] for name in commands}
            environment = {**os.environ, "XDG_STATE_HOME": str(bench.path("pinproxy/state"))}
            # The first run creates the trust bundle.
            for turn in range(options.runs + 1):
                for name, command in commands.items():
                    before, began = used(), time.monotonic()
                    run = subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
                    if run.returncode:
                        raise SystemExit(f"{' '.join(command)} failed:\n{run.stderr.decode(errors='replace')}")
                    if turn:
                        figures[name].append((time.monotonic() - began, used() - before))
        finally:
            proxy.stop()
            origin.stop()
    for name, rows in figures.items():
        wall, processor = ([1000 * value for value in column] for column in zip(*rows))
        print(
            f"{name}: {statistics.median(wall):.1f} ms (shortest {min(wall):.1f}), "
            f"{statistics.mean(processor):.1f} ms of processor time; {options.runs} runs"
        )


if __name__ == "__main__":
    main()
