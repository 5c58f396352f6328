"""Starts the proxy and the origin, and runs the programs. This happens inside their Debian, as root, in a separate
network.

Each program and pin has its own host. Only the proxy knows the hosts' addresses, so every request at the origin came
through it.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import secrets
import shutil
import signal
import subprocess
import sys
import time

import attempt
import contents
import origin
import table

PLACE = pathlib.Path("/srv/trial")
RESULTS = pathlib.Path("/opt/results")
CONFIGURATION = """
proxy: {listen: "127.0.0.1:7467"}
upstream: {trust: [authority.pem], allow_addresses: [loopback]}
pins: pins.yaml
"""
PINS = """
hosts:
- {{match: "*.right.test", pinning: public-key, pins: [{right}]}}
- {{match: "*.wrong.test", pinning: public-key, pins: [{wrong}]}}
"""
CERTIFICATES = """
set -e
openssl req -x509 -newkey rsa:2048 -nodes -keyout authority.key -out authority.pem -days 30 -subj "/CN=Origin's own" \
    -addext keyUsage=critical,keyCertSign
for name in origin other; do openssl ecparam -name prime256v1 -genkey -noout -out $name.key; done
openssl req -new -key origin.key -subj /CN=right.test -out origin.csr
printf 'subjectAltName=DNS:*.right.test,DNS:*.wrong.test\\nextendedKeyUsage=serverAuth\\n' > extensions
openssl x509 -req -in origin.csr -CA authority.pem -CAkey authority.key -days 29 -extfile extensions -out origin.pem
for name in origin other; do
    openssl pkey -in $name.key -pubout -outform DER | openssl dgst -sha256 -binary | base64 > $name.pin
done
"""
MACHINE = """
set -e
ip link set lo up
ip link add out0 type veth peer name out1
ip link set out1 up
ip address add 192.0.2.2/24 dev out0
ip link set out0 up
ip route add default via 192.0.2.1
echo 127.0.0.1 localhost "$(hostname)" > /etc/hosts
echo nameserver 127.0.0.1 > /etc/resolv.conf
useradd --create-home --shell /bin/bash --add-subids-for-system person
ln -s /opt/pinproxy/pinproxy /usr/local/bin/pinproxy
"""


def run(script, directory="/"):
    made = subprocess.run(["/bin/sh", "-c", script], cwd=directory, capture_output=True, text=True)
    if made.returncode != 0:
        raise SystemExit(f"{made.stderr[-2000:]}\nin: {script}")


def configure(programs):
    """Writes certificates, pins, and the hosts file that only the proxy reads."""
    run(CERTIFICATES, PLACE)
    pins = {name: f"sha256/{(PLACE / f'{name}.pin').read_text().strip()}" for name in ("origin", "other")}
    (PLACE / "pinproxy.yaml").write_text(CONFIGURATION)
    (PLACE / "pins.yaml").write_text(PINS.format(right=pins["origin"], wrong=pins["other"]))
    names = "".join(f"127.0.0.1 {p.label}.right.test\n127.0.0.1 {p.label}.wrong.test\n" for p in programs)
    (PLACE / "hosts").write_text(names)
    for name in ["state", "attempts"]:
        (PLACE / name).mkdir()
        shutil.chown(PLACE / name, "person", "person")


def started():
    """Starts the proxy as an ordinary user."""
    command = ["pinproxy", "run", "--config", str(PLACE / "pinproxy.yaml")]
    log = open(RESULTS / "pinproxy.log", "w")
    proxy = subprocess.Popen(
        attempt.AS_PERSON + command,
        env=attempt.environment() | {"CARES_HOSTS": str(PLACE / "hosts")},
        stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/",
    )  # fmt: skip
    deadline = time.monotonic() + 30
    while '"proxy.ready"' not in (RESULTS / "pinproxy.log").read_text():
        if proxy.poll() is not None or time.monotonic() > deadline:
            raise SystemExit(f"the proxy doesn't start:\n{(RESULTS / 'pinproxy.log').read_text()}")
        time.sleep(0.05)
    return proxy


def version(program):
    if program.pypi:
        lines = subprocess.run(["/opt/pypi/bin/pip", "show", program.pypi], capture_output=True, text=True).stdout
        return next((line.split()[1] for line in lines.splitlines() if line.startswith("Version:")), "")
    query = ["dpkg-query", "--show", "--showformat", "${Version}", program.packages[0]]
    text = subprocess.run(query, capture_output=True, text=True).stdout
    return re.sub(r"^\d+:|[-+~](deb|dfsg|ds|really|repack).*$|-[^-]*$", "", text)


def tried(program, site, document):
    """Runs a program with the right and the wrong pin. Also tries --transparent if it supports that. Returns the
    results."""
    result = {"version": version(program), "passed": False}
    for mode, options in [("exec", []), ("transparent", ["--transparent"])]:
        right = attempt.Attempt(program, "right", options, site, document, PLACE, RESULTS)
        wrong = attempt.Attempt(program, "wrong", options, site, document, PLACE, RESULTS)
        result[mode] = right.result()
        refused = wrong.result()
        result["passed"] |= bool(refused["requests"]) or refused["works"]
        if result[mode]["works"] or result[mode]["problem"]:
            break
    print(f"{program.name}: {mode if result[mode]['works'] else 'no'}", flush=True)
    return result


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--only")
    parser.add_argument("--at-once", type=int)
    options = parser.parse_args()
    programs = table.programs(options.only)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    os.umask(0o022)
    PLACE.mkdir(parents=True)
    run(MACHINE)
    configure(programs)
    document = f"document-{secrets.token_hex(8)}"
    site = origin.Origin(contents.contents(document, PLACE / "made"), PLACE / "origin.pem", PLACE / "origin.key")
    proxy = started()
    with concurrent.futures.ThreadPoolExecutor(options.at_once) as crew:
        results = list(crew.map(lambda program: tried(program, site, document), programs))
    if proxy.poll() is not None:
        raise SystemExit("the proxy has exited during the trial")
    proxy.terminate()
    proxy.wait(30)
    named = {program.label: result for program, result in zip(programs, results)}
    (RESULTS / "results.json").write_text(json.dumps(named, indent=1))


if __name__ == "__main__":
    main()
