"""The signed policy of a lane's proxy. The program creates its bundles, and the origin serves them. An older or forged
one must never be put into force, whatever breaks."""

import asyncio
import os
import re
import subprocess

from plan import SILENCE

PATH = "/policy.bundle"
URL = f"https://policy.test{PATH}"
WRONG = "sha256/" + "A" * 43 + "="
#: The server's failures while everything breaks, in percent of polls; otherwise it serves the current bundle.
BREAKS = {"older": 15, "forged": 15, "cut": 10, "refused": 10, "silent": 2}


class Policy:
    def __init__(self, executable, folder, chance, report):
        """- Parameter report: is called with an accepted version that wasn't published."""
        self.executable, self.chance, self.report = executable, chance, report
        self.folder = folder / "policy"
        self.folder.mkdir()
        #: The current bundle, and the earlier ones.
        self.bundle, self.older = None, []
        #: Whether the hosts of zone `signed` have a right pin, by version, starting at 1.
        self.published = []
        #: The version put into force last, in all lives.
        self.accepted = 0
        self.looks = 0
        for name in ("root", "policy"):
            file = self.folder / name
            subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", file], check=True)
            file.chmod(0o600)
        self.key, policy = (self.run("key", self.folder / name).strip() for name in ("root", "policy"))
        self.file = self.folder / "made.bundle"
        keys = ["--root", self.key, "--bundle", policy, "--timestamp", policy]
        self.run("root", self.file, *keys, "--expires", "365d")
        self.sign("root", "root")

    def run(self, *words):
        # The proxy's clock differs from this one.
        environment = {"PATH": os.environ["PATH"]}
        return subprocess.run(
            [self.executable, "bundle", *words], check=True, stdout=subprocess.PIPE, text=True, env=environment
        ).stdout

    def sign(self, role, key):
        self.run("sign", self.file, "--role", role, "--key-file", self.folder / key)

    def publish(self, pin, is_right=True):
        """Publishes the next version."""
        pins = self.folder / "pins.yaml"
        pins.write_text(
            f'hosts:\n  - {{match: "*.signed.test", pinning: public-key, pins: [{pin if is_right else WRONG}]}}\n'
        )
        version = len(self.published) + 1
        self.run("create", self.file, "--pins", pins, "--expires", "90d", "--version", str(version))
        self.sign("bundle", "policy")
        self.run("timestamp", self.file, "--expires", "7d")
        self.sign("timestamp", "policy")
        if self.bundle:
            self.older = (self.older + [self.bundle])[-20:]
        self.published.append(is_right)
        self.bundle = self.file.read_bytes()

    @property
    def version(self):
        return len(self.published)

    def took(self, version, line):
        """Is called when the proxy has put a version into force."""
        if not self.accepted < version <= self.version:
            self.report(f"version {self.accepted} was in force, {self.version} is the current one: {line[:300]!r}")
        self.accepted = max(self.accepted, version)

    @property
    def forged(self):
        """The current bundle with one letter of a signature changed."""
        at = self.chance.choice([match.start(1) for match in re.finditer(rb'"sig" ?: ?"(.)', self.bundle)])
        letter = b"A" if self.bundle[at : at + 1] != b"A" else b"B"
        return self.bundle[:at] + letter + self.bundle[at + 1 :]

    async def serve(self, is_calm, send):
        """Answers a poll through `send`. False: the connection ends."""
        self.looks += 1
        kind = self.chance.choices([*BREAKS, "current"], [*BREAKS.values(), 100 - sum(BREAKS.values())])[0]
        if is_calm or kind == "older" and not self.older:
            kind = "current"
        if kind == "silent":
            await asyncio.sleep(SILENCE)
            return False
        if kind == "refused":
            return await send(b"HTTP/1.1 503 Soak\r\nContent-Length: 0\r\n\r\n")
        body = {"older": lambda: self.chance.choice(self.older), "forged": lambda: self.forged}.get(
            kind, lambda: self.bundle
        )()
        head = f"HTTP/1.1 200 Soak\r\nContent-Length: {len(body)}\r\n\r\n".encode()
        if kind == "cut":
            await send(head + body[: len(body) // 2])
            return False
        return await send(head + body)
