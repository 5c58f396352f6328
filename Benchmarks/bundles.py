"""Measures the cost of a signed bundle: verifying its file, and putting it into force. A reload of a pin file with the
same entries alternates with it for comparison. See README.md."""

import argparse
import os
import pathlib
import re
import statistics
import subprocess
import tempfile
import time

from peers import HOST, Bench, Origin, Pinproxy

PIN = "sha256/" + "A" * 43 + "="


class Bundled(Pinproxy):
    """A proxy with its policy from a bundle."""


class Bundle:
    """The bundle's file, as the origin serves it."""

    def __init__(self, bench, entries):
        self.bench, self.entries = bench, entries
        self.file = bench.path("policy.bundle")
        self.served = bench.path("documents/policy.bundle")
        self.key_file = bench.path("policy.pem")
        self.version = 0
        subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", self.key_file], check=True)
        self.key_file.chmod(0o600)
        self.key = self.run("key", self.key_file).strip()
        self.run(
            "root",
            self.file,
            *("--root", self.key, "--bundle", self.key, "--timestamp", self.key, "--expires", "365d"),
        )
        self.sign("root")

    def run(self, *words):
        command = [Pinproxy.executable, "bundle", *map(str, words)]
        return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout

    def sign(self, role):
        self.run("sign", self.file, "--role", role, "--key-file", self.key_file)

    def publish(self):
        """Publishes the next version."""
        self.version += 1
        pins = self.bench.write("policy/pins.yaml", self.entries)
        # The proxy's own pin file contains a tunnel.
        self.run("create", self.file, "--pins", pins, "--expires", "90d", "--local", "any")
        self.sign("bundle")
        self.run("timestamp", self.file, "--expires", "7d")
        self.sign("timestamp")
        fresh = self.served.with_suffix(".new")
        fresh.write_bytes(self.file.read_bytes())
        # nginx derives its ETag from the time in seconds and the length.
        os.utime(fresh, (self.version, self.version))
        fresh.rename(self.served)


def entries(count):
    lines = [f'  - {{match: "h{n}.team{n % 100}.test", pinning: public-key, pins: ["{PIN}"]}}' for n in range(count)]
    return "hosts:\n" + "\n".join(lines) + "\n"


def wait(log, version):
    """Waits until the log reports that a version is in force."""
    until = time.monotonic() + 60
    while not re.search(rf"policy\.accepted.*version\W+{version}\b", log.read_text(errors="replace")):
        if time.monotonic() > until:
            raise SystemExit(f"version {version} wasn't put into force:\n{log.read_text(errors='replace')[-2000:]}")
        time.sleep(0.05)
    # By then the previous snapshot has been released.
    time.sleep(0.5)


def spent(server, work):
    """The server's processor time, in milliseconds."""
    before = server.processor_seconds()
    work()
    return (server.processor_seconds() - before) * 1e3


def used(command):
    """A program's processor time, in milliseconds."""
    before = os.times()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after = os.times()
    return (after.children_user + after.children_system - before.children_user - before.children_system) * 1e3


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pinproxy", type=os.path.abspath, default=os.path.abspath(".build/release/pinproxy"))
    parser.add_argument("--entries", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    Pinproxy.executable = options.pinproxy
    with tempfile.TemporaryDirectory(prefix="pinproxy-bundles.") as directory:
        bench = Bench(directory)
        text = entries(options.entries)
        bundle = Bundle(bench, text)
        bundle.publish()
        origin = Origin(bench)
        url = f"https://{HOST}:{origin.port}/policy.bundle"
        policy = f'policy: {{bundle: "{url}", keys: ["{bundle.key}"], interval: 10s}}\n'
        plain = Pinproxy(bench, origin, "plain", rules=text.removeprefix("hosts:\n"))
        bundled = Bundled(bench, origin, "bundled", more=policy)
        try:
            log = pathlib.Path(bundled.log.name)
            wait(log, 1)
            figures = {name: [] for name in ("verify", "version", "reload", "bundle")}
            environment = {**os.environ, "XDG_STATE_HOME": str(bench.path("plain/state"))}
            reload = [options.pinproxy, "reload", "--config", str(bench.path("plain/pinproxy.yaml"))]
            for _ in range(options.rounds):
                figures["version"].append(used([options.pinproxy, "--version"]))
                verify = ["bundle", "verify", bundle.file, "--key", bundle.key]
                figures["verify"].append(used([options.pinproxy, *map(str, verify)]))
                figures["reload"].append(
                    spent(plain, lambda: subprocess.run(reload, check=True, env=environment, capture_output=True))
                )
                bundle.publish()
                figures["bundle"].append(spent(bundled, lambda: wait(log, bundle.version)))
        finally:
            for server in (plain, bundled, origin):
                server.stop()
    middle = {name: statistics.median(values) for name, values in figures.items()}
    size = len(text) / 1e6
    print(f"{options.entries:,} entries, {size:.1f} MB; medians of {options.rounds}, milliseconds of processor time")
    print(f"bundle verify: {middle['verify']:.0f}, of which program start {middle['version']:.0f}")
    print(
        f"a new bundle put into force: {middle['bundle']:.0f}; a reload of the same pin file {middle['reload']:.0f} "
        f"({middle['bundle'] / middle['reload']:.2f})"
    )


if __name__ == "__main__":
    main()
