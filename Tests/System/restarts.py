"""State that survives a restart, and a failure of pins."""

import machine as machines
from steps import PROXIED, SECURE, STATE, URL, case, contains, equal, pins, proxy_process, served

LATE = "https://origin.test:8444/"


def handshakes(machine):
    return int(machine(f"curl -sf {URL}handshakes", check=True).stdout)


@case
def a_restart_finishes_a_connect_that_waits_for_its_server(machine):
    """The server sees no repeated handshakes, with interception and with a verified tunnel."""
    for action in ["intercept", "verify-tunnel"]:
        pins(machine, f"hosts:\n  - {{match: origin.test, action: {action}}}\n")
        machine("systemctl restart pinproxy", check=True)
        before, process = handshakes(machine), proxy_process(machine)
        trusted = "--cacert /etc/pinproxy/test-root.pem" if action == "verify-tunnel" else ""
        waiting = machine.start(f"{PROXIED} {trusted} {LATE}")
        machines.until("the server is asked", 20, lambda before=before: handshakes(machine) > before)
        machine("systemctl restart pinproxy", check=True)
        equal(proxy_process(machine) != process, True, "another process")
        equal(waiting.communicate()[0], "origin\n", action)
        # The tunnel's probe, and the tunnel.
        equal(handshakes(machine) - before <= 2, True, f"{handshakes(machine) - before} handshakes with {action}")
    pins(machine, "hosts: []\n")
    machine("systemctl reload pinproxy", check=True)


@case
def a_response_on_disk_outlasts_a_restart(machine):
    """The unit's restrictions allow it, and the files belong to the service."""
    pins(machine, "hosts:\n  - {match: origin.test, cache: disk}\n")
    machine("systemctl reload pinproxy", check=True)

    def status():
        answer = machine(f"{PROXIED} --include --output /dev/null --dump-header - {SECURE}fresh", check=True).stdout
        [line] = [line for line in answer.splitlines() if line.lower().startswith("cache-status:")]
        return line

    contains(status(), "stored")
    machines.until("the response is stored", 20, lambda: "; hit" in status())
    machine("systemctl restart pinproxy", check=True)
    contains(status(), "; hit")
    equal(machine(f"find {STATE}/cache -perm /077 -o -not -user pinproxy", check=True).stdout, "")
    contains(machine("pinproxy cache", check=True).stdout, "1 response")
    contains(machine("pinproxy cache purge --all", check=True).stdout, "1")
    pins(machine, "hosts: []\n")
    machine("systemctl reload pinproxy", check=True)


@case
def a_failure_of_pins_is_counted_from_nought_and_outlasts_refusals(machine):
    def checks():
        metrics = machine("curl -sf http://127.0.0.1:7468/metrics", check=True).stdout
        [line] = [
            line
            for line in metrics.splitlines()
            if line.startswith("pinproxy_pin_checks_total") and "origin.test" in line and '"missed"' in line
        ]
        return line.split()[-1]

    pins(
        machine,
        "hosts:\n  - match: origin.test\n    pinning: public-key\n    pins:\n"
        "      - sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n  - {match: denied.test, action: deny}\n",
    )
    machine("systemctl restart pinproxy", check=True)
    equal(checks(), "0")
    contains(machine(f"{PROXIED} {SECURE}").stdout, "502")
    equal(checks(), "1")
    machine(f"for time in $(seq 300); do {PROXIED} --output /dev/null http://denied.test/; done", check=True)
    status = machine("pinproxy status", check=True).stdout
    contains(status, "pins failed in the last hour: origin.test: 1 connection refused")
    contains(status, "301 of them refused")
    pins(machine, "hosts: []\n")
    machine("systemctl reload pinproxy", check=True)
    served(machine)
    machine("systemctl stop pinproxy", check=True)


@case
def a_crash_leaves_no_core(machine):
    """A core would contain the authority's key. systemd restarts the proxy. `CrashTests` shows that a core would be
    found."""
    machine("systemctl start pinproxy", check=True)
    served(machine)
    process = proxy_process(machine)
    equal(machine(f"grep 'Max core file size' /proc/{process}/limits", check=True).stdout.split()[4:6], ["0", "0"])
    machine(f"kill -SEGV {process}", check=True)
    machines.until("another proxy serves", 30, lambda: machine(f"{PROXIED} {URL}").stdout == "origin\n")
    equal(proxy_process(machine) != process, True, "another process")
    machine("systemctl stop pinproxy", check=True)
