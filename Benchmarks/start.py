"""Measures the time from exec to the first client, and the memory at that point. nginx and HAProxy are compared. See
README.md."""

import argparse
import os
import shutil
import signal
import socket
import statistics
import subprocess
import tempfile
import time

import peers
from peers import Bench, HAProxy, Nginx, Origin, Pinproxy


class Started(Exception):
    pass


def command_of(kind, bench, origin):
    """The command that `kind` would execute, by its own constructor, and its port."""
    found = {}

    def instead(self, bench, command, port, environment=None, patience=20):
        found.update(command=command, port=port, environment=environment or {})
        raise Started

    before = peers.Server.__init__
    peers.Server.__init__ = instead
    try:
        kind(bench, origin)
    except Started:
        return found
    finally:
        peers.Server.__init__ = before


def start(bench, found, notifies):
    """Measures one start. Returns milliseconds until READY=1 (None without notification), milliseconds until a
    connection is accepted, and MiB resident a second later."""
    notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    path = str(bench.path("notify"))
    if os.path.exists(path):
        os.unlink(path)
    notify.bind(path)
    notify.settimeout(20)
    environment = {**os.environ, **found["environment"], **({"NOTIFY_SOCKET": path} if notifies else {})}
    began = time.monotonic()
    process = subprocess.Popen(
        found["command"],
        cwd=bench.directory,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=open(bench.path("start.log"), "wb"),
    )
    ready = None
    if notifies:
        while b"READY=1" not in notify.recv(4096):
            pass
        ready = (time.monotonic() - began) * 1000
    while True:
        try:
            socket.create_connection(("127.0.0.1", found["port"]), timeout=1).close()
            break
        except OSError:
            if process.poll() is not None:
                raise SystemExit(
                    f"{found['command'][0]} did not start: {bench.path('start.log').read_text()[-1000:]}"
                ) from None
            time.sleep(0.0005)
    taken = (time.monotonic() - began) * 1000
    time.sleep(1)
    with open(f"/proc/{process.pid}/status") as status:
        resident = next(int(line.split()[1]) for line in status if line.startswith("VmRSS:")) / 1024
    process.send_signal(signal.SIGTERM)
    process.wait(30)
    notify.close()
    return ready, taken, resident


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pinproxy", default=".build/release/pinproxy", help="the release executable")
    parser.add_argument("--starts", type=int, default=20)
    options = parser.parse_args()
    Pinproxy.executable = os.path.abspath(options.pinproxy)
    with tempfile.TemporaryDirectory(prefix="pinproxy-start.") as directory:
        bench = Bench(directory)
        origin = Origin(bench)
        try:
            # The package installs it stripped.
            stripped = str(bench.path("stripped"))
            shutil.copy(Pinproxy.executable, stripped)
            subprocess.run(["strip", stripped], check=True)
            Pinproxy.executable = stripped
            kinds = {"pinproxy": Pinproxy, "nginx": Nginx, "haproxy": HAProxy}
            commands = {name: command_of(kind, bench, origin) for name, kind in kinds.items()}
            figures = {name: [] for name in kinds}
            # The first start creates the authority and warms the page cache.
            for turn in range(options.starts + 1):
                for name, found in commands.items():
                    figure = start(bench, found, name == "pinproxy")
                    if turn:
                        figures[name].append(figure)
        finally:
            origin.stop()
    for name, rows in figures.items():
        ready, taken, resident = zip(*rows)
        text = f"{name}: a client is taken after {statistics.median(taken):.1f} ms (longest {max(taken):.1f})"
        if ready[0]:
            text += f", READY=1 after {statistics.median(ready):.1f} ms (longest {max(ready):.1f})"
        print(f"{text}, {statistics.median(resident):.1f} MiB resident when idle; {options.starts} starts")


if __name__ == "__main__":
    main()
