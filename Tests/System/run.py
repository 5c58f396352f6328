"""The Debian package on a booted Debian 12: each line says PASS or FAIL, and the exit status is 1 if one failed.

run.py PACKAGE.deb
"""

import json
import shutil
import sys
import pathlib
import traceback

import machine as machines

HERE = pathlib.Path(__file__).parent
STATE = "/var/lib/pinproxy"
URL = "http://origin.test:8080/"
SECURE = "https://origin.test:8443/"
PROXIED = f"curl --silent --show-error --max-time 20 --proxy http://127.0.0.1:7467 --cacert {STATE}/authority.pem"

CASES = []


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
    """As the journal has them, of this boot."""
    machine("journalctl --sync", check=True)
    lines = machine(f"journalctl --unit pinproxy PINPROXY_EVENT={name} --output json --no-pager", check=True).stdout
    return [json.loads(line) for line in lines.splitlines() if line.startswith("{")]


def served(machine, url=SECURE):
    equal(machine(f"{PROXIED} {url}", check=True).stdout, "origin\n", url)


def pins(machine, text):
    (machine.root / "etc/pinproxy/pins.yaml").write_text(text)


def main_process(machine):
    return properties(machine, "MainPID")["MainPID"]


RESTARTS = f"""
    for time in $(seq 10); do
        systemctl restart pinproxy || exit 1
        for request in $(seq 30); do {PROXIED} --output /dev/null {URL} || exit 1; done
    done
    """


def under_load(machine, script):
    """Nobody is refused while it runs."""
    load = machine.start(f"python3 /root/load.py 7467 {URL}")
    try:
        equal(load.stdout.readline(), "under way\n", "load")
        machine(script, check=True)
    finally:
        out = load.communicate()[0]
    equal(load.returncode, 0, out)
    return out.strip()


@case
def installing_starts_the_service_on_loopback(machine):
    machine(
        "apt-get install --yes --quiet --no-install-recommends /root/pinproxy.deb", check=True, timeout=300)
    equal(machine("systemctl is-active pinproxy").stdout, "active\n")
    equal(machine("systemctl is-enabled pinproxy").stdout, "enabled\n")
    addresses = {line.split()[3] for line in machine("ss -Hltnp | grep pinproxy", check=True).stdout.splitlines()}
    equal(addresses, {"127.0.0.1:7467"}, "listens on")


@case
def the_authority_is_new_and_its_key_the_daemons(machine):
    equal(machine(f"stat -c '%U %a' {STATE}/authority.key", check=True).stdout, "pinproxy 600\n")
    equal(machine(f"stat -c '%U %a' {STATE}", check=True).stdout, "pinproxy 755\n")
    equal(len(events(machine, "authority.created")), 1, "authority.created")
    equal(machine("ls -A /root/.local 2>/dev/null").stdout, "")


@case
def its_readiness_is_in_the_journal(machine):
    ready, *_ = events(machine, "proxy.ready")
    equal(ready["PINPROXY_LISTEN"], "127.0.0.1:7467")
    equal(ready["PRIORITY"], "5")
    equal(ready["SYSLOG_IDENTIFIER"], "pinproxy")
    equal(ready["_SYSTEMD_UNIT"], "pinproxy.service")


@case
def a_reload_takes_up_the_configuration(machine):
    for name in ["load.py", "origin.py"]:
        shutil.copy(HERE / name, machine.root / "root" / name)
    machine("""
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
        systemd-run --unit origin python3 /root/origin.py /root/origin.pem /root/origin.key
        """, check=True)
    before = main_process(machine)
    machine("systemctl reload pinproxy", check=True)
    equal(len(events(machine, "config.reload")), 1, "config.reload")
    machines.until("the origin answers", 20, lambda: machine(f"curl -sf {URL}").returncode == 0)
    served(machine)
    served(machine, URL)
    equal(main_process(machine), before, "process after a reload")


@case
def a_wrong_pin_is_refused_and_found_in_the_journal(machine):
    pins(machine, "hosts:\n  - match: origin.test\n    pinning: public-key\n    pins:\n"
         "      - sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n")
    machine("systemctl reload pinproxy", check=True)
    contains(machine(f"{PROXIED} {SECURE}").stdout, "502")
    [mismatch] = events(machine, "pin.mismatch")
    equal(mismatch["PINPROXY_HOST"], "origin.test")
    equal(mismatch["PRIORITY"], "4")


@case
def a_refused_reload_changes_nothing(machine):
    (machine.root / "etc/pinproxy/pins.yaml").write_text("hosts: 1\n")
    equal(machine("systemctl reload pinproxy").returncode != 0, True, "the reload fails")
    equal(machine("systemctl is-active pinproxy").stdout, "active\n")
    contains(machine(f"{PROXIED} {SECURE}").stdout, "502")
    [error] = events(machine, "config.error")
    equal(error["PRIORITY"], "3")
    contains(machine("journalctl --unit pinproxy --priority err --no-pager").stdout, "config.error")
    pins(machine, "hosts: []\n")
    machine("systemctl reload pinproxy", check=True)
    served(machine)


@case
def root_is_answered_over_the_control_socket(machine):
    status = json.loads(machine("pinproxy status --json", check=True).stdout)
    equal(isinstance(status, dict), True, "status")
    tasks = json.loads(machine("pinproxy tasks list --json", check=True).stdout)
    equal((tasks["tasks"], tasks["silent_workers"]), ([], []), "tasks")
    machine("pinproxy reload", check=True)
    equal(events(machine, "control.refused"), [])


@case
def nobody_else_is(machine):
    refused = machine("setpriv --reuid nobody --regid nogroup --clear-groups pinproxy tasks list")
    equal(refused.returncode, 1, refused.stdout)
    direct = machine(f"setpriv --reuid nobody --regid nogroup --clear-groups curl -sS --unix-socket {STATE}/control.sock"
                     " http://localhost/tasks")
    equal(direct.returncode, 7, direct.stdout)


@case
def a_restart_under_load_refuses_nobody(machine):
    return under_load(machine, RESTARTS)


@case
def an_upgrade_under_load_refuses_nobody_and_keeps_everything(machine):
    kept = f"cat {STATE}/authority.pem /etc/pinproxy/*.yaml | sha256sum"
    before, process = machine(kept, check=True).stdout, main_process(machine)
    said = under_load(machine, "dpkg --install --force-confold /root/pinproxy.deb")
    equal(machine(kept, check=True).stdout, before, "authority and configuration")
    equal(main_process(machine) != process, True, "another process")
    served(machine)
    return said


@case
def a_killed_proxy_returns(machine):
    before = main_process(machine)
    machine("systemctl kill --kill-whom=main --signal=KILL pinproxy", check=True)
    machines.until("it is restarted", 20, lambda: main_process(machine) not in ("0", before))
    machines.until("it is ready", 20, lambda: machine("systemctl is-active pinproxy").stdout == "active\n")
    served(machine)


@case
def a_proxy_that_stands_still_is_restarted(machine):
    machine("mkdir -p /run/systemd/system/pinproxy.service.d && printf '[Service]\nWatchdogSec=3\n' >"
            " /run/systemd/system/pinproxy.service.d/watchdog.conf && systemctl daemon-reload && systemctl restart pinproxy",
            check=True)
    before = main_process(machine)
    machine(f"kill -STOP {before}", check=True)
    machines.until("it is restarted", 30, lambda: main_process(machine) not in ("0", before))
    machines.until("it is ready", 20, lambda: machine("systemctl is-active pinproxy").stdout == "active\n")
    served(machine)
    contains(machine("journalctl _PID=1 --unit pinproxy --no-pager").stdout, "Watchdog timeout")
    machine("rm -r /run/systemd/system/pinproxy.service.d && systemctl daemon-reload", check=True)


@case
def stopping_ends_it_cleanly(machine):
    machine("systemctl stop pinproxy", check=True)
    seen = properties(machine, "ActiveState", "Result", "ExecMainStatus")
    equal(seen, {"ActiveState": "inactive", "Result": "success", "ExecMainStatus": "0"})
    equal(machine(f"{PROXIED} {URL}").returncode, 7, "nobody listens")


@case
def a_wrong_configuration_is_78_and_not_tried_again(machine):
    pins(machine, "hosts: 1\n")
    equal(machine("systemctl start pinproxy").returncode, 1)
    seen = properties(machine, "ActiveState", "SubState", "ExecMainStatus", "NRestarts")
    equal(seen, {"ActiveState": "failed", "SubState": "failed", "ExecMainStatus": "78", "NRestarts": "0"})
    machine("journalctl --sync", check=True)
    contains(machine("journalctl --unit pinproxy --no-pager -n 20").stdout, "/etc/pinproxy/pins.yaml:1:")
    pins(machine, "hosts: []\n")
    machine("systemctl reset-failed pinproxy", check=True)


@case
def a_port_in_use_is_named_and_waited_for(machine):
    machine("systemd-run --unit squatter python3 -c 'import socket, time; s = socket.create_server((\"127.0.0.1\", 7467));"
            " time.sleep(600)'", check=True)
    machines.until("the port is taken", 20, lambda: machine("ss -Hltn 'sport = 7467'").stdout != "")
    equal(machine("systemctl start pinproxy").returncode, 1)
    machine("journalctl --sync", check=True)
    contains(machine("journalctl --unit pinproxy --no-pager -n 20").stdout, "127.0.0.1:7467 is already in use")
    # More often than systemd allows by default.
    machines.until("it has tried six times", 60, lambda: int(properties(machine, "NRestarts")["NRestarts"]) >= 6)
    machine("systemctl stop squatter", check=True)
    machines.until("it is ready", 20, lambda: machine("systemctl is-active pinproxy").stdout == "active\n")
    served(machine)


@case
def a_state_directory_that_cannot_be_written_is_named_and_waited_for(machine):
    machine(f"systemctl stop pinproxy && cp -a {STATE} /root/state && mount -t tmpfs -o size=64k tmpfs {STATE}"
            f" && cp -a /root/state/. {STATE} && rm -f {STATE}/pinproxy.pid", check=True)
    try:
        for breaking, reason, repair in [
            (f"cat /dev/zero > {STATE}/full; true", "No space left on device", f"rm {STATE}/full"),
            (f"mount -o remount,ro {STATE}", "Read-only file system", f"mount -o remount,rw {STATE}"),
        ]:
            machine(breaking, check=True)
            equal(machine("systemctl start pinproxy").returncode, 1, reason)
            machine("journalctl --sync", check=True)
            contains(machine("journalctl --unit pinproxy --no-pager -n 20").stdout, f"{STATE}/pinproxy.pid: {reason}")
            machine(repair, check=True)
            machines.until("it is ready", 20, lambda: machine("systemctl is-active pinproxy").stdout == "active\n")
            served(machine)
            machine(f"systemctl stop pinproxy && rm -f {STATE}/pinproxy.pid", check=True)
    finally:
        machine(f"systemctl stop pinproxy; umount {STATE}; rm -rf /root/state")


@case
def the_first_client_starts_it_by_its_socket(machine):
    machine("systemctl start pinproxy.socket", check=True)
    equal(machine("systemctl is-active pinproxy").stdout, "inactive\n")
    served(machine, URL)
    equal(machine("systemctl is-active pinproxy").stdout, "active\n")
    said = under_load(machine, RESTARTS)
    warnings = [event["PINPROXY_CAUSE"] for event in events(machine, "config.warning")]
    # It has the socket from systemd twice, from the unit and as the process before has left it.
    equal([warning for warning in warnings if "hands over" in warning], [], "warnings")
    return said


@case
def what_it_may_do_is_confined(machine):
    seen = machine("systemd-analyze security --no-pager --threshold=15 pinproxy.service")
    equal(seen.returncode, 0, seen.stdout[-300:])
    return seen.stdout.strip().splitlines()[-1].lstrip("→ ")


@case
def what_the_system_trusts_outlives_a_fresh_store(machine):
    machine("pinproxy ca install && update-ca-certificates --fresh", check=True)
    untold = "curl --silent --show-error --max-time 20 --proxy http://127.0.0.1:7467"
    equal(machine(f"{untold} {SECURE}", check=True).stdout, "origin\n")


@case
def removal_leaves_the_state(machine):
    machine("apt-get remove --yes --quiet pinproxy", check=True)
    machine(f"test -e {STATE}/authority.key && test -e /etc/pinproxy/pins.yaml", check=True)
    equal(machine("ss -Hltn 'sport = 7467'").stdout, "", "listeners")
    equal(machine("grep -lx pinproxy /proc/[0-9]*/comm").stdout, "", "processes")


@case
def purge_leaves_nothing(machine):
    # What the administrator has put there is theirs.
    machine("rm /etc/pinproxy/test-root.pem", check=True)
    machine("apt-get purge --yes --quiet pinproxy", check=True)
    left = machine("find / -xdev -name '*pinproxy*' -not -path '/proc/*' -not -path '/root/*' -not -path '/var/cache/apt/*'"
                   " -not -path '/tmp/*'; getent passwd pinproxy; getent group pinproxy").stdout
    equal(left, "", "left")
    equal(machine("grep -c pinproxy /etc/ca-certificates.conf; ls /etc/ssl/certs | grep pinproxy").stdout, "0\n")


def main(package):
    reason = machines.missing()
    if reason:
        print(f"SKIP  the system test: {reason}")
        return 0
    passed = failed = 0
    with machines.machine(package) as machine:
        for function in CASES:
            name = function.__name__.replace("_", " ")
            try:
                said = function(machine)
                passed += 1
                print(f"PASS  {name}" + (f" ({said})" if said else ""), flush=True)
            except Exception as error:
                failed += 1
                print(f"FAIL  {name}\n      {error}", flush=True)
                if not isinstance(error, AssertionError):
                    traceback.print_exc()
                if function is CASES[0]:
                    break  # What isn't installed has nothing to show.
        if failed:
            print(machine("journalctl --unit pinproxy --no-pager -n 60").stdout)
    print(f"{passed} passed, {failed} failed of {len(CASES)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
