"""The authority's key with its own user and process."""

import shutil

from steps import HERE, SECURE, case, contains, equal, events, pins, served, settings

HOME = "/var/lib/pinproxy-signer"
KEY = f"{HOME}/authority.key"


def signed(machine):
    """Checks that a page comes under a certificate of the signer's authority."""
    page = (
        f"curl --silent --show-error --max-time 20 --proxy http://127.0.0.1:7467 --cacert {HOME}/authority.pem {SECURE}"
    )
    equal(machine(page, check=True).stdout, "origin\n")


EDIT = (
    f"s,^  signer: null,  signer: unix:/run/pinproxy-signer.sock,;s,^  certificate: authority.pem,  certificate: "
    f"{HOME}/authority.pem,;"
    f"s,^  private_key: authority.key,  private_key: {KEY},"
)
UNITS = "pinproxy-signer.socket pinproxy-signer.service"


def taken_over(machine, command, input=""):
    """Runs a program with the rights of the proxy's user. Returns its output."""
    return machine(f"echo '{input}' | setpriv --reuid pinproxy --regid pinproxy --clear-groups {command} 2>&1").stdout


@case
def a_signer_keeps_the_key_from_the_proxys_user(machine):
    pins(machine, "hosts:\n  - {match: tunnel.test, action: tunnel}\n")
    with settings(machine, EDIT):
        machine(f"systemctl enable --now {UNITS}", check=True)
        machine("systemctl restart pinproxy", check=True)
        machine("pinproxy ca install", check=True)
        signed(machine)
        equal(machine(f"stat -c %U:%a {KEY}", check=True).stdout, "pinproxy-signer:600\n")
        signer = machine("systemctl show pinproxy-signer -p MainPID --value", check=True).stdout.strip()
        for attempt in [
            f"cat {KEY}",
            f"mv {KEY} /tmp",
            f"touch {HOME}/authority.pem",
            f"head -c 1 /proc/{signer}/mem",
            f"cat /proc/{signer}/environ",
            f"ls /proc/{signer}/fd",
        ]:
            contains(taken_over(machine, attempt), "Permission denied")
        contains(taken_over(machine, f'sh -c "kill {signer}"'), "not permitted")
        # It may request certificates, and gets none for a host that isn't intercepted.
        shutil.copy(HERE.parent / "IntegrationTests/Peers/signing.py", machine.root / "opt/signing.py")
        answers = taken_over(
            machine,
            f"python3 /opt/signing.py ask /run/pinproxy-signer.sock {HOME}/authority.pem",
            "origin.test 8443\ntunnel.test 443",
        ).splitlines()
        equal(len(answers), 3, answers)
        contains(answers[1], '"issued"')
        contains(answers[2], "doesn't intercept tunnel.test")
        # No other user can connect. (curl would report another kind of socket.)
        equal(machine("stat -c %U:%a /run/pinproxy-signer.sock", check=True).stdout, "pinproxy:600\n")
        contains(
            machine(
                "setpriv --reuid nobody --clear-groups curl -sv --unix-socket /run/pinproxy-signer.sock http://a/ 2>&1"
            ).stdout,
            "Permission denied",
        )
        seen = machine("systemd-analyze security --no-pager --threshold=16 pinproxy-signer.service")
        equal(seen.returncode, 0, seen.stdout[-300:])
        # Proxy and signer each survive a restart of the other.
        machine("systemctl restart pinproxy-signer", check=True)
        machine("systemctl restart pinproxy", check=True)
        signed(machine)
        for step in ["", " --activate"]:
            machine(f"pinproxy ca rotate{step}", check=True)
            equal(machine(f"stat -c %U:%a {KEY}", check=True).stdout, "pinproxy-signer:600\n")
            machine("systemctl reload pinproxy", check=True)
            machine("pinproxy ca install", check=True)
            signed(machine)
        machine("pinproxy ca rotate --finish && systemctl reload pinproxy", check=True)
        signed(machine)
        equal(
            [event["PINPROXY_CAUSE"] for event in events(machine, "signer.failed") if "PINPROXY_CAUSE" in event],
            [],
            "failures",
        )
        machine("pinproxy ca remove", check=True)
    pins(machine, "hosts: []\n")
    machine(f"systemctl disable --now {UNITS}; systemctl restart pinproxy", check=True)
    machine("pinproxy ca install", check=True)
    served(machine)


@case
def an_upgrade_restarts_the_signer(machine):
    """It runs the new version's program; a new file isn't enough."""
    with settings(machine, EDIT):
        machine(f"systemctl start {UNITS} && systemctl restart pinproxy", check=True)
        show = "systemctl show pinproxy-signer -p MainPID --value"
        before = machine(show, check=True).stdout
        machine("dpkg --install --force-confold /root/pinproxy.deb", check=True)
        equal(machine(show, check=True).stdout != before, True, "another process")
        signed(machine)
    machine(f"systemctl stop {UNITS}; systemctl restart pinproxy", check=True)
    served(machine)
