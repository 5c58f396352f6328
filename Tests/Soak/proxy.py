"""The proxy of a lane: its configuration, log and resources. It is stopped and restarted here."""

import asyncio
import collections
import contextlib
import ctypes
import json
import math
import os
import pathlib
import re
import signal
import statistics
import subprocess
import sys
import time
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "Desync"))
from peers import ENVIRONMENT, Programs, certificates, die_with_parent  # noqa: E402
from plan import ZONES  # noqa: E402
from policy import URL  # noqa: E402

ADMIN = "http://127.0.0.1:7468"
FAKETIME = next(iter(pathlib.Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1")), None)
CONFIGURATION = """
proxy: {{listen: "127.0.0.1:7467", workers: 2}}
admin: {{listen: "127.0.0.1:7468"}}
upstream: {{trust: [{folder}/ca.pem]}}
reachability: [127.0.0.1]
timeouts: {{connect: 10s, tls_handshake: 10s, idle_client: 8s, idle_upstream: 2s, first_byte: 8s, drain: 5s}}
limits: {{response_head: 32KiB, inspected_body: 1MiB, replay_body: 64KiB, bodies: 64MiB, minimum_rate: "off"}}
log: {{level: info, format: json, access: true}}
cache: {{disk: 4MiB}}
policy: {{bundle: "{url}", keys: ["{key}"], interval: 10s, groups: [g{turn}]}}
pins: pins.yaml
"""
SESSION = {
    "follow": "session: {redirects: follow, max_redirects: 5}",
    "share": "session: {coalesce: true}",
    "auth": "session: {credentials: {user: soak, password_file: password, allow_http: true}}",
    "few": "session: {max_active: 4}",
    "cache": "cache: disk",
    "json": "rules: [{path: /json/**, response: &json {serializer: json}}, {path: /bad-json/**, response: *json}]",
    "rewrite": "request: {set_headers: {X-Client: fleet}, remove_headers: [Referer]}",
}
#: Descriptors beyond those before the first client: one per worker for its resolver, and files opened at first use.
DESCRIPTORS = 10
#: KiB of private memory by which the last quarter of a life's rounds may exceed the second: an allocator's usual
#: fluctuation.
MEMORY = 8 * 1024
#: A shorter life is not conclusive.
ROUNDS = 16
PUNCH_HOLE = 3
#: The proxy's clock when nothing changes it: ahead, so that current certificates are valid after a step back.
CLOCK = "+30m"


def issue(folder):
    """Creates an authority, and a leaf of it for all zones. Returns its pin."""
    names = [f"*.{zone}.test" for zone in ZONES] + ["wrong.test", "collector.test", "policy.test"]
    certificates(folder, ",".join(f"DNS:{name}" for name in names))
    script = "openssl pkey -in origin.key -pubout -outform der | openssl dgst -sha256 -binary | base64"
    return "sha256/" + subprocess.check_output(["sh", "-c", script], cwd=folder, text=True).strip()


class Proxy:
    """Lives one life after another; `lives` holds the records of each."""

    def __init__(self, executable, folder, policy, trouble, uses_faketime):
        """
        - Parameter folder: persistent files. Its folder `disk`, a small file system, has the state and a log in a file.
        - Parameter trouble: is called with each fault.
        """
        self.executable, self.folder, self.policy, self.trouble = executable, folder, policy, trouble
        self.programs = Programs(folder)
        self.uses_faketime = uses_faketime
        self.pin = issue(folder)
        self.lines = collections.Counter()
        #: By path: the log lines of its exchanges in this round.
        self.words = collections.defaultdict(list)
        #: Start and end of periods in which lines may be missing, in seconds of the monotonic clock.
        self.gaps = []
        self.events = collections.Counter()
        self.process = None
        self.turn_is_right = True
        self.pins(True)
        policy.publish(self.pin)
        self.turn = 0
        self.configure()
        (folder / "password").write_text("soak-password\n")
        (folder / "password").chmod(0o600)
        (folder / "clock").write_text(CLOCK)

    def configure(self):
        """Writes pinproxy.yaml. Its groups change, so that the proxy polls for a bundle after reading it."""
        self.turn += 1
        fresh = self.folder / "pinproxy.new"
        fresh.write_text(CONFIGURATION.format(folder=self.folder, url=URL, key=self.policy.key, turn=self.turn))
        fresh.rename(self.folder / "pinproxy.yaml")

    def pins(self, is_right):
        """Writes the pin file. `turning` hosts get a right or a wrong pin."""
        wrong = "sha256/" + "A" * 43 + "="
        lines = [
            "hosts:",
            "  - {match: denied.test, action: deny}",
            f"  - {{match: wrong.test, pinning: public-key, pins: [{wrong}]}}",
            # A host with pins, without TLS; and inside TLS the leaf has another name.
            f"  - {{match: pinned.test, pinning: public-key, pins: [{self.pin}]}}",
            f"  - {{match: policy.test, pinning: public-key, pins: [{self.pin}]}}",
        ]
        for zone in ZONES[:-1]:
            if zone == "signed":
                continue
            pin = wrong if zone == "report" or zone == "turning" and not is_right else self.pin
            lines += [f'  - match: "*.{zone}.test"', "    pinning: public-key", f"    pins: [{pin}]"]
            if zone == "report":
                lines += ["    enforcement: report", "    report_uri: http://collector.test/collector"]
            if zone in SESSION:
                lines.append("    " + SESSION[zone])
                # Unencrypted hosts can't be pinned.
                lines += [f'  - match: "*.{zone}.plain.test"', "    " + SESSION[zone]]
        fresh = self.folder / "pins.new"
        fresh.write_text("\n".join(lines) + "\n")
        fresh.rename(self.folder / "pins.yaml")
        self.turn_is_right = is_right

    # A life

    async def start(self, logs_to_file):
        """- Parameter logs_to_file: into the small file system; else into a pipe."""
        self.is_ready = asyncio.Event()
        self.life_lines, self.life_gap, self.rest = 0, False, b""
        self.life_kinds = collections.Counter()
        self.memories, self.tasks = [], set()
        self.log_file = None
        environment = ENVIRONMENT | {"XDG_STATE_HOME": str(self.folder / "disk")}
        if self.uses_faketime:
            environment |= {
                "LD_PRELOAD": str(FAKETIME),
                "FAKETIME_TIMESTAMP_FILE": str(self.folder / "clock"),
                "FAKETIME_CACHE_DURATION": "1",
                "FAKETIME_DONT_FAKE_MONOTONIC": "1",
                "DONT_FAKE_MONOTONIC": "1",
            }
        command = ["/usr/bin/env", self.executable, "run", "--config", self.folder / "pinproxy.yaml"]
        if logs_to_file:
            self.log_file = open(self.folder / "disk" / "proxy.log", "a+b", buffering=0)
            self.log_file.truncate(0)
            self.at = 0
            error = self.log_file
        else:
            self.pipe, error = os.pipe()
            os.set_blocking(self.pipe, False)
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=error,
            env=environment,
            preexec_fn=die_with_parent,
        )
        self.programs.all.append(self.process)
        loop = asyncio.get_running_loop()
        if logs_to_file:
            self.following = loop.create_task(self.follow())
        else:
            os.close(error)
            loop.add_reader(self.pipe, self.read_pipe)
        await asyncio.wait_for(self.is_ready.wait(), 30)
        self.descriptors_before = self.descriptors()

    def read_pipe(self):
        try:
            data = os.read(self.pipe, 1 << 18)
        except BlockingIOError:
            return
        if not data:
            asyncio.get_running_loop().remove_reader(self.pipe)
            os.close(self.pipe)
            self.pipe = None
        self.take(data)

    async def follow(self):
        while True:
            self.read_file()
            await asyncio.sleep(0.1)

    def read_file(self):
        """Reads new lines, and frees their space on the disk at once."""
        while data := os.pread(self.log_file.fileno(), 1 << 20, self.at):
            ctypes.CDLL(None).fallocate(
                self.log_file.fileno(), PUNCH_HOLE, ctypes.c_long(self.at), ctypes.c_long(len(data))
            )
            self.at += len(data)
            self.take(data)

    def take(self, data):
        *lines, self.rest = (self.rest + data).split(b"\n")
        for line in lines:
            try:
                event = json.loads(line)
                name = event["event"]
            except (ValueError, KeyError):
                # Before the log begins, the command prints the warnings of `pinproxy check`.
                if b": warning: " in line and not self.is_ready.is_set():
                    continue
                # A full disk truncates a line. Nothing may follow on that line.
                if b'{"time":' in line[1:] or not self.is_in_gap:
                    self.trouble(f"a line of the log that isn't one: {line[:300]!r}")
                continue
            self.events[name] += 1
            if name == "exchange":
                if "path" in event:
                    self.words[event["path"]].append(line.decode())
                self.life_lines += 1
                self.life_kinds[event["method"]] += 1
                if event["task"] in self.tasks:
                    self.trouble(f"task {event['task']} is in the log a second time: {line[:300]!r}")
                self.tasks.add(event["task"])
                # A shared fetch is logged on a separate line.
                if "client" in event and event["method"] != "CONNECT":
                    self.lines[event["path"]] += 1
            elif name == "proxy.ready":
                self.is_ready.set()
            elif name == "policy.accepted":
                self.policy.took(event["version"], line)
            elif name == "log.dropped":
                self.life_gap = True
                if not self.is_in_gap:
                    self.trouble(f"lines were dropped though the log was read: {line!r}")
            elif name in ("proxy.crash", "config.error", "accept.failed", "descriptors.lack"):
                self.trouble(f"{line[:600]!r}")

    @property
    def is_in_gap(self):
        """Whether a gap is open, or has just ended: its lines may still be read."""
        return bool(self.gaps) and self.gaps[-1][1] > time.monotonic() - 5

    @contextlib.contextmanager
    def gap(self):
        """Lines may be missing meanwhile, and for a moment before and after."""
        gap = [time.monotonic() - 2, math.inf]
        self.gaps.append(gap)
        self.life_gap = True
        try:
            yield
        finally:
            gap[1] = time.monotonic() + 2

    def close_log(self):
        """Reads the rest of the log after the process has exited."""
        if self.log_file:
            self.following.cancel()
            self.read_file()
            self.log_file.close()
        else:
            while self.pipe is not None:
                self.read_pipe()

    async def end(self, by):
        """Stops the proxy with SIGKILL, or cleanly with SIGTERM."""
        process = self.process
        with self.gap() if by == signal.SIGKILL else contextlib.nullcontext():
            process.send_signal(by)
            ending = await asyncio.to_thread(process.wait, 30)
            self.programs.all.remove(process)
            self.close_log()
        if by == signal.SIGTERM and ending != 0:
            self.trouble(f"the proxy ended with {ending} after SIGTERM")

    # Resources

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def described(self):
        """Describes its descriptors."""
        folder = pathlib.Path(f"/proc/{self.process.pid}/fd")
        kinds = collections.Counter(re.sub(r":\[?\d+\]?$", "", os.readlink(path)) for path in folder.iterdir())
        sockets = subprocess.run(["ss", "-aHOnp"], capture_output=True, text=True).stdout.splitlines()
        return dict(kinds), [" ".join(line.split()[:6]) for line in sockets if f"pid={self.process.pid}," in line]

    def memory(self):
        text = pathlib.Path(f"/proc/{self.process.pid}/smaps_rollup").read_text()
        return int(re.search(r"Anonymous:\s+(\d+)", text)[1])

    def ask(self, path, data=None):
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(ADMIN + path, data, timeout=20) as answer:
            return answer.read().decode()

    def metrics(self):
        """name → sum of its series. Exchanges are also counted by protocol and outcome, as in `connect completed`."""
        found = collections.Counter()
        for line in self.ask("/metrics").splitlines():
            if not line.startswith("#"):
                name, value = line.rsplit(" ", 1)
                plain, _, labels = name.partition("{")
                found[plain] += float(value)
                if plain == "pinproxy_exchanges_total":
                    found[" ".join(re.findall(r'(?:protocol|outcome)="([^"]*)"', labels))] += float(value)
        return found

    async def is_quiet(self):
        """Waits until the clients' state is gone. Returns the metrics, or None if something remains."""
        end = time.monotonic() + 40
        while True:
            self.held = {}
            try:
                metrics = await asyncio.to_thread(self.metrics)
                self.held = {
                    "tasks": metrics["pinproxy_tasks"],
                    "connections": metrics["pinproxy_upstream_connections_open"],
                    "clients": metrics["pinproxy_clients"],
                    "bodies": metrics["pinproxy_kept_bodies_bytes"],
                    "descriptors": max(0, self.descriptors() - self.descriptors_before - DESCRIPTORS),
                }
                if not any(self.held.values()):
                    return metrics
            except OSError as error:
                self.held = {"admin": repr(error)}
            if time.monotonic() > end:
                return None
            await asyncio.sleep(0.2)

    async def policy_in_force(self):
        """The version of the bundle in force. Waits up to half a minute for the current one."""
        end = time.monotonic() + 30
        while True:
            version = int((await asyncio.to_thread(self.metrics))["pinproxy_policy_bundle_version"])
            if version == self.policy.version or time.monotonic() > end:
                return version
            await asyncio.sleep(0.2)

    async def checkpoint(self, name):
        """Checks that nothing remains after all clients have gone."""
        if self.process.poll() is not None:
            return self.trouble(f"{name}: the proxy has ended: {self.process.returncode}")
        metrics = await self.is_quiet()
        if metrics is None:
            return self.trouble(f"{name}: this stays of clients that have gone: {self.held}; {self.described()}")
        self.memories.append(self.memory())
        if len(self.memories) >= ROUNDS:
            quarter = len(self.memories) // 4
            early, late = self.memories[quarter : 2 * quarter], self.memories[-quarter:]
            if statistics.median(late) > statistics.median(early) + MEMORY:
                self.trouble(f"{name}: its memory grows: {self.memories} KiB")
        # A CONNECT followed by TLS with the client is not logged separately.
        counted = metrics["pinproxy_exchanges_total"] - metrics["connect completed"]
        if not self.life_gap:
            await self.read_up_to(counted)
            if counted != self.life_lines:
                self.trouble(
                    f"{name}: {counted:.0f} exchanges are counted, and {self.life_lines} are in the log: "
                    f"{dict(self.life_kinds)}, {dict(metrics)}"
                )

    async def read_up_to(self, count):
        end = time.monotonic() + 5
        while self.life_lines < count and time.monotonic() < end:
            await asyncio.sleep(0.05)
