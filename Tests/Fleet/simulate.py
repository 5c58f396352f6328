"""Simulates a fleet: proxies on one machine with one signed bundle, which nginx serves. A bad bundle is rolled out to a
tenth, detected by its reports, and withdrawn. Then a good one reaches all in three stages.

    simulate.py --pinproxy PATH [--machines N] [--interval SECONDS]

Exits with 1 if a machine misbehaves. It runs in a network namespace of its own and counts the traffic on the loopback.
Each proxy has a mount namespace with its own machine-id. Needs root.
"""

import argparse
import collections
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import secrets
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "Desync"))
from peers import ENVIRONMENT, Programs, certificates  # noqa: E402

REPOSITORY = pathlib.Path(__file__).parents[2]
NAMESPACE = "PINPROXY_FLEET_NAMESPACE"
SERVER, API = "policy.test", "api.test"
PORT, FIRST_PROXY, FIRST_ADMIN = 8443, 20000, 30000
WRONG = "sha256/" + "A" * 43 + "="
#: The number of machines started, queried or read at a time.
AT_ONCE = 16
#: The number of polls counted per machine while nothing changes.
QUIET = 3
TICKS = os.sysconf("SC_CLK_TCK")

NGINX = """
daemon off; worker_processes 1; user root; pid {folder}/nginx.pid; error_log {folder}/nginx.err warn;
events {{ worker_connections 4096; }}
http {{
    log_format looks '$msec $host $status $bytes_sent $request_length $ssl_session_reused';
    access_log {folder}/access.log looks;
    # Machines that look every five minutes find their connection closed: so do these.
    keepalive_timeout 2s;
    server {{
        listen 127.0.0.1:{port} ssl; server_name {server} {api};
        ssl_certificate {folder}/origin.pem; ssl_certificate_key {folder}/origin.key;
        root {folder}/served;
        include {repository}/docs/fleet/policy-nginx.conf;
    }}
}}
"""
PROXY = """
proxy: {{listen: "127.0.0.1:{port}", workers: 1}}
admin: {{listen: "127.0.0.1:{admin}"}}
upstream: {{trust: [{folder}/ca.pem]}}
reachability: [127.0.0.1]
log: {{level: notice, format: json, access: false}}
policy: {{bundle: "https://{server}:{server_port}/policy.bundle", keys: ["{key}"], interval: {interval}s}}
pins: null
"""


def place(machine):
    """A machine's position in a rollout (docs/bundles.md)."""
    return int.from_bytes(hashlib.sha256(f"pinproxy rollout {machine}".encode()).digest()[:4], "big") % 100


def processor_time(process):
    """Seconds of processor time of a process, without its children."""
    fields = pathlib.Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def memory(process):
    """KiB of a process: resident, and proportional share."""
    text = pathlib.Path(f"/proc/{process}/smaps_rollup").read_text()
    return tuple(int(re.search(rf"^{name}: +(\d+)", text, re.M)[1]) for name in ("Rss", "Pss"))


def loopback_bytes():
    # Of this namespace, unlike /sys.
    line = next(
        line for line in pathlib.Path("/proc/net/dev").read_text().splitlines() if line.strip().startswith("lo:")
    )
    return int(line.split(":")[1].split()[8])


class Machine:
    """A proxy with a state directory and a machine-id."""

    def __init__(self, folder, number, key, interval):
        self.number, self.folder = number, folder / f"machine-{number}"
        self.folder.mkdir()
        self.id = secrets.token_hex(16)
        (self.folder / "machine-id").write_text(self.id + "\n")
        self.port, self.admin = FIRST_PROXY + number, FIRST_ADMIN + number
        (self.folder / "pinproxy.yaml").write_text(
            PROXY.format(
                port=self.port,
                admin=self.admin,
                folder=folder,
                server=SERVER,
                server_port=PORT,
                key=key,
                interval=interval,
            )
        )
        self.hosts = folder / "hosts"
        self.read, self.rest = 0, b""
        self.events = []

    def start(self, programs, executable):
        mount = 'mount --bind "$1" /etc/machine-id && shift && exec "$@"'
        command = ["unshare", "--mount", "sh", "-c", mount, "sh", self.folder / "machine-id"]
        name = f"machine-{self.number}"
        self.log = programs.folder / f"{name}.log"
        self.process = programs.start(
            name,
            [*command, executable, "run", "--config", self.folder / "pinproxy.yaml"],
            env=ENVIRONMENT | {"XDG_STATE_HOME": str(self.folder / "state"), "CARES_HOSTS": str(self.hosts)},
            stdout=subprocess.DEVNULL,
        )

    def follow(self):
        with open(self.log, "rb") as log:
            log.seek(self.read)
            data = log.read()
        self.read += len(data)
        *lines, self.rest = (self.rest + data).split(b"\n")
        for line in lines:
            if line.startswith(b"{"):
                self.events.append(json.loads(line))

    def count(self, name, version=None):
        return sum(
            1
            for event in self.events
            if event.get("event") == name and (version is None or str(event.get("version")) == str(version))
        )

    def connect(self):
        """The status for a client that requests the API."""
        with socket.create_connection(("127.0.0.1", self.port), 60) as client:
            client.sendall(f"CONNECT {API}:{PORT} HTTP/1.1\r\nHost: {API}:{PORT}\r\n\r\n".encode())
            return int(client.recv(4096).split()[1])

    def metrics(self):
        with socket.create_connection(("127.0.0.1", self.admin), 60) as client:
            client.sendall(
                f"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1:{self.admin}\r\nConnection: close\r\n\r\n".encode()
            )
            return b"".join(iter(lambda: client.recv(65536), b"")).decode()


class Fleet:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.programs = Programs(folder)
        self.faults = []
        certificates(folder, f"DNS:{SERVER},DNS:{API}")
        script = "openssl pkey -in origin.key -pubout -outform der | openssl dgst -sha256 -binary | base64"
        self.pin = "sha256/" + subprocess.check_output(["sh", "-c", script], cwd=folder, text=True).strip()
        (folder / "hosts").write_text(f"127.0.0.1 {SERVER}\n127.0.0.1 {API}\n")
        (folder / "served").mkdir()
        for name in ("root", "policy"):
            subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", folder / f"{name}.pem"], check=True)
            (folder / f"{name}.pem").chmod(0o600)
        self.keys = {name: self.bundle("key", f"{name}.pem").strip() for name in ("root", "policy")}
        keys = ["--root", self.keys["root"], "--bundle", self.keys["policy"], "--timestamp", self.keys["policy"]]
        self.bundle("root", "policy.bundle", *keys, "--expires", "365d")
        self.bundle("sign", "policy.bundle", "--role", "root", "--key-file", "root.pem")
        self.machines = [
            Machine(folder, number, self.keys["root"], options.interval) for number in range(options.machines)
        ]
        (folder / "nginx.conf").write_text(
            NGINX.format(folder=folder, port=PORT, server=SERVER, api=API, repository=REPOSITORY)
        )

    def bundle(self, *words):
        run = subprocess.run(
            [self.options.pinproxy, "bundle", *words], cwd=self.folder, capture_output=True, text=True, check=False
        )
        if run.returncode:
            raise SystemExit(f"pinproxy bundle {' '.join(words)}: {run.stderr}")
        return run.stdout

    def publish(self, version, pins, *more, enforcement="enforce"):
        """Publishes a bundle. Returns when the server had it."""
        lines = ["hosts:", f"  - match: {API}", "    pinning: public-key", f"    enforcement: {enforcement}"]
        (self.folder / "pins.yaml").write_text("\n".join(lines + [f"    pins: [{', '.join(pins)}]"]) + "\n")
        self.bundle("create", "policy.bundle", "--pins", "pins.yaml", "--expires", "90d", *more)
        self.bundle("sign", "policy.bundle", "--role", "bundle", "--key-file", "policy.pem")
        self.bundle("timestamp", "policy.bundle", "--expires", "7d")
        self.bundle("sign", "policy.bundle", "--role", "timestamp", "--key-file", "policy.pem")
        next_file = self.folder / "served" / "policy.bundle.next"
        next_file.write_bytes((self.folder / "policy.bundle").read_bytes())
        self.expect(
            f"version {version}",
            version,
            json.loads(self.bundle("show", "policy.bundle", "--json"))["bundle"]["version"],
        )
        next_file.rename(self.folder / "served" / "policy.bundle")
        return time.monotonic()

    # What is expected

    def expect(self, what, wanted, found):
        if wanted != found:
            self.faults.append(f"{what}: {found} in place of {wanted}")
            print(f"FAULT {self.faults[-1]}", flush=True)

    def await_all(self, what, condition):
        """Waits until every machine meets a condition. Returns when the last one did."""
        end = time.monotonic() + 10 * self.options.interval + self.options.machines
        while time.monotonic() < end:
            self.programs.check()
            for machine in self.machines:
                machine.follow()
            if all(condition(machine) for machine in self.machines):
                return time.monotonic()
            time.sleep(0.2)
        missing = [machine.number for machine in self.machines if not condition(machine)]
        self.programs.stop()
        raise SystemExit(f"{what}: not by the machines {missing[:20]}")

    def ask(self, call):
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as threads:
            return list(threads.map(call, self.machines))

    def roll_out(self, version, pins, stage, enforcement="enforce"):
        """Rolls a bundle out: machines in the stage take it, the others wait. Returns the seconds until the last
        machine knew."""
        more = ["--stage", str(stage)] if stage < 100 else []
        began = self.publish(version, pins, *more, enforcement=enforcement)
        former = {machine.number: machine.count("policy.accepted") for machine in self.machines}
        ended = self.await_all(
            f"bundle {version}",
            # A waiting machine has already reported a policy that differs only in its stage.
            lambda machine: machine.count("policy.accepted", version) + machine.count("policy.waiting", version),
        )
        took = [machine for machine in self.machines if machine.count("policy.accepted") > former[machine.number]]
        meant = [machine.number for machine in self.machines if place(machine.id) < stage]
        self.expect(f"machines with bundle {version}", meant, [machine.number for machine in took])
        print(
            f"bundle {version}, stage {stage}, {enforcement}: {len(took)} machines after {ended - began:.1f} s",
            flush=True,
        )
        return took

    def use(self, what):
        """Has every machine request the API once."""
        self.expect(f"answers, {what}", {200: len(self.machines)}, dict(collections.Counter(self.ask(Machine.connect))))
        for machine in self.machines:
            machine.follow()

    def reports(self):
        """Machines by what their log and their metrics report."""
        time.sleep(1)
        for machine in self.machines:
            machine.follow()
        logged = [machine.number for machine in self.machines if machine.count("pin.report")]
        pattern = re.compile(r'^pinproxy_pin_checks_total\{.*result="reported".*\} (\d+)', re.M)
        texts = self.ask(Machine.metrics)
        counted = [
            machine.number
            for machine, text in zip(self.machines, texts, strict=True)
            if any(int(number) for number in pattern.findall(text))
        ]
        digests = collections.Counter(
            re.findall(r'^pinproxy_config_info\{.*bundle="(\d+)".*\} 1', text, re.M)[0] for text in texts
        )
        return logged, counted, dict(digests)

    # What it costs

    def looks(self, since=0):
        """The polls of the bundle: status, and bytes of HTTP in both directions."""
        found = []
        for line in (self.folder / "access.log").read_text().splitlines():
            moment, host, status, sent, received, reused = line.split()
            if host == SERVER and float(moment) >= since:
                found.append((float(moment), int(status), int(sent), int(received), reused))
        return found

    def nginx_time(self):
        children = pathlib.Path(f"/proc/{self.nginx.pid}/task/{self.nginx.pid}/children").read_text().split()
        return sum(processor_time(process) for process in [self.nginx.pid, *children])

    def tell(self, what, looks, octets, seconds):
        if not looks:
            return
        by_status = collections.defaultdict(list)
        for _, status, sent, received, _ in looks:
            by_status[status].append(sent + received)
        kinds = ", ".join(
            f"{len(sizes)} × {status} of {sum(sizes) / len(sizes):.0f} bytes of HTTP"
            for status, sizes in sorted(by_status.items())
        )
        resumed = sum(reused == "r" for *_, reused in looks)
        print(
            f"{what}: {len(looks)} polls in {seconds:.1f} s ({len(looks) / seconds:.1f}/s), {kinds}, "
            f"{octets / len(looks):.0f} bytes each on the loopback, {resumed} TLS sessions resumed",
            flush=True,
        )

    def run(self):
        options, count = self.options, len(self.machines)
        self.nginx = self.programs.start(
            "nginx", ["nginx", "-c", self.folder / "nginx.conf"], stdout=subprocess.DEVNULL
        )
        self.publish(1, [self.pin])
        time.sleep(1)
        size = (self.folder / "policy.bundle").stat().st_size
        print(
            f"{count} machines, interval {options.interval} s, bundle {size} bytes",
            flush=True,
        )

        began, octets = time.monotonic(), loopback_bytes()
        for first in range(0, count, AT_ONCE):
            batch = self.machines[first : first + AT_ONCE]
            for machine in batch:
                machine.start(self.programs, options.pinproxy)
            end = time.monotonic() + 120
            while time.monotonic() < end and not all(machine.count("policy.accepted", 1) for machine in batch):
                time.sleep(0.1)
                for machine in batch:
                    machine.follow()
        ended = self.await_all("bundle 1", lambda machine: machine.count("policy.accepted", 1))
        print(f"bundle 1: started with it, {count} machines after {ended - began:.1f} s", flush=True)
        looks = self.looks()
        self.tell("while they start", looks, loopback_bytes() - octets, ended - began)
        self.use("bundle 1")

        time.sleep(5)
        now, octets = time.time(), loopback_bytes()
        server = self.nginx_time()
        proxies = [processor_time(machine.process.pid) for machine in self.machines]
        time.sleep(QUIET * options.interval)
        octets, seconds = loopback_bytes() - octets, time.time() - now
        looks = self.looks(now)
        self.tell("while nothing changes", looks, octets, seconds)
        spent = [processor_time(m.process.pid) - before for m, before in zip(self.machines, proxies, strict=True)]
        if looks:
            server = self.nginx_time() - server
            print(
                f"processor time: nginx {1000 * server / len(looks):.2f} ms per poll, a proxy "
                f"{1000 * sum(spent) / len(looks):.2f} ms per poll, including all its other work",
                flush=True,
            )
        sizes = [memory(machine.process.pid) for machine in self.machines]
        print(
            f"memory: {sum(rss for rss, _ in sizes) / count / 1024:.1f} MiB resident per proxy, "
            f"{sum(pss for _, pss in sizes) / 1024:.0f} MiB for all of them (Pss)",
            flush=True,
        )

        took = self.roll_out(2, [WRONG], 10, "report")
        self.use("bundle 2")
        logged, counted, bundles = self.reports()
        meant = [machine.number for machine in took]
        self.expect("machines whose log reports", meant, logged)
        self.expect("machines whose metrics report", meant, counted)
        print(
            f"detected: {len(logged)} machines by pin.report, {len(counted)} by metrics; bundles in force: {bundles}",
            flush=True,
        )
        for machine in self.machines:
            machine.events = [event for event in machine.events if event.get("event") != "pin.report"]

        self.roll_out(3, [self.pin], 100)
        self.use("bundle 3")
        logged, _, bundles = self.reports()
        self.expect("reports after the withdrawal", [], logged)
        self.expect("bundles in force", {"3": count}, bundles)
        for version, stage in ((4, 10), (5, 50), (6, 100)):
            took = self.roll_out(version, [self.pin, WRONG], stage)
            self.use(f"bundle {version}")
        self.expect("bundles in force", {"6": count}, self.reports()[2])
        looks = self.looks()
        busiest = collections.Counter(int(moment) for moment, *_ in looks).most_common(1)[0][1]
        print(f"the server's busiest second: {busiest} polls; in total {len(looks)}", flush=True)
        for machine in self.machines:
            self.expect(f"failures of machine {machine.number}", 0, machine.count("policy.failed"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--pinproxy", required=True, type=pathlib.Path)
    parser.add_argument("--machines", type=int, default=200)
    parser.add_argument("--interval", type=int, default=10)
    options = parser.parse_args()
    options.pinproxy = options.pinproxy.resolve()
    if os.geteuid():
        raise SystemExit("simulate.py: namespaces need root")
    if not 1 <= options.machines <= 9999:
        raise SystemExit("simulate.py: --machines is from 1 to 9999")
    if NAMESPACE not in os.environ:
        os.environ[NAMESPACE] = "yes"
        script = 'ip link set lo up && exec "$@"'
        os.execvp("unshare", ["unshare", "--net", "sh", "-c", script, "sh", sys.executable, "-B", *sys.argv])
    with tempfile.TemporaryDirectory(prefix="pinproxy-fleet.") as folder:
        fleet = Fleet(options, pathlib.Path(folder))
        try:
            fleet.run()
        finally:
            fleet.programs.stop()
        print(f"{len(fleet.faults)} faults", flush=True)
        sys.exit(1 if fleet.faults else 0)


if __name__ == "__main__":
    main()
