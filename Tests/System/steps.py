"""Common steps of the cases. A case is a function of the machine, which earlier cases have changed."""

import contextlib
import json
import pathlib
import shutil

import machine as machines

HERE = pathlib.Path(__file__).parent
STATE = "/var/lib/pinproxy"
URL = "http://origin.test:8080/"
SECURE = "https://origin.test:8443/"
PROXIED = f"curl --silent --show-error --max-time 20 --proxy http://127.0.0.1:7467 --cacert {STATE}/authority.pem"

CASES = []


class Skipped(Exception):
    """A requirement of the case is missing; the argument says which."""


def case(function):
    CASES.append(function)
    return function


def equal(seen, wanted, what=""):
    if seen != wanted:
        raise AssertionError(f"{what}: {seen!r} instead of {wanted!r}")


def contains(text, part):
    if part not in text:
        raise AssertionError(f"no {part!r} in {text[-1500:]!r}")


def properties(machine, *names):
    lines = machine(f"systemctl show pinproxy.service {' '.join('-p ' + name for name in names)}", check=True).stdout
    return dict(line.split("=", 1) for line in lines.splitlines())


def events(machine, name):
    """The service's events in the journal since boot."""
    machine("journalctl --sync", check=True)
    lines = machine(f"journalctl --unit pinproxy PINPROXY_EVENT={name} --output json --no-pager", check=True).stdout
    return [json.loads(line) for line in lines.splitlines() if line.startswith("{")]


def an_origin(machine):
    """Starts an origin with its name in the hosts file. The configuration trusts its authority from the next reload."""
    for name in ["idle.py", "load.py", "origin.py"]:
        shutil.copy(HERE / name, machine.root / "root" / name)
    machine(
        """
        cd /etc/pinproxy
        openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 -subj '/CN=root.test' \
            -keyout /root/root.key -out test-root.pem -addext basicConstraints=critical,CA:TRUE \
            -addext keyUsage=critical,keyCertSign
        openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=origin.test -keyout /root/origin.key \
            -out /root/origin.csr
        printf 'subjectAltName=DNS:origin.test\nextendedKeyUsage=serverAuth\n' > /root/extensions
        openssl x509 -req -in /root/origin.csr -CA test-root.pem -CAkey /root/root.key -CAcreateserial -days 20 \
            -CAserial /root/serial -extfile /root/extensions -out /root/origin.pem
        echo '127.0.0.1 origin.test' >> /etc/hosts
        sed -i 's/^  trust: system$/  trust: [system, test-root.pem]/' pinproxy.yaml
        systemd-run --unit origin --property LimitNOFILE=65536 python3 /root/origin.py /root/origin.pem /root/origin.key
        """,
        check=True,
    )


def served(machine, url=SECURE):
    equal(machine(f"{PROXIED} {url}", check=True).stdout, "origin\n", url)


def pins(machine, text):
    (machine.root / "etc/pinproxy/pins.yaml").write_text(text)


def main_process(machine):
    """The process that systemd has started, the parent of the proxy."""
    return properties(machine, "MainPID")["MainPID"]


def proxy_process(machine):
    return machine(f"cat {STATE}/pinproxy.pid", check=True).stdout.strip()


RESTARTS = f"""
    for time in $(seq 50); do
        systemctl restart pinproxy || exit 1
        for url in {URL} {SECURE}; do {PROXIED} --output /dev/null $url || exit 1; done
    done
    """


def under_load(machine, script):
    """Checks that no request fails while the script runs."""
    load = machine.start(f"python3 /root/load.py 7467 {URL} {SECURE} {STATE}/authority.pem")
    try:
        equal(load.stdout.readline(), "in flight\n", "load")
        machine(script, check=True, timeout=300)
    finally:
        out = load.communicate()[0]
    equal(load.returncode, 0, out)
    return out.strip()


def is_active(machine):
    return machine("systemctl is-active pinproxy").stdout == "active\n"


def said(machine, part):
    """Checks the service's last lines in the journal. On a busy machine a line may come late."""
    lines = "journalctl --sync && journalctl --unit pinproxy --no-pager -n 20"
    with contextlib.suppress(AssertionError):
        machines.until("the line", 20, lambda: part in machine(lines, check=True).stdout)
    contains(machine(lines).stdout, part)


def start_fails(machine, status, part):
    """Checks the exit status and a line with the reason. 78 is not retried."""
    machine("systemctl reset-failed pinproxy")
    equal(machine("systemctl start pinproxy").returncode, 1, "systemctl start")
    seen = properties(machine, "ActiveState", "SubState", "ExecMainStatus", "NRestarts")
    if status == 78:
        wanted = {"ActiveState": "failed", "SubState": "failed", "ExecMainStatus": "78", "NRestarts": "0"}
        equal(seen, wanted)
    else:
        equal(seen["ExecMainStatus"], str(status), "exit status")
    said(machine, part)


@contextlib.contextmanager
def drop_in(machine, text, unit="pinproxy.service"):
    """Adds lines to a unit, which is stopped before and after."""
    folder = f"/run/systemd/system/{unit}.d"
    machine(
        f"systemctl stop {unit}; mkdir -p {folder} && printf '{text}' > {folder}/test.conf && systemctl daemon-reload",
        check=True,
    )
    try:
        yield
    finally:
        machine(f"systemctl stop {unit}; rm -r {folder}; systemctl daemon-reload; systemctl reset-failed {unit}")


@contextlib.contextmanager
def settings(machine, edit):
    """Changes pinproxy.yaml temporarily, by a sed script."""
    file = "/etc/pinproxy/pinproxy.yaml"
    machine(f"cp -p {file} /root/kept.yaml && sed -i '{edit}' {file}", check=True)
    try:
        yield
    finally:
        machine(f"cp -p /root/kept.yaml {file}", check=True)
