"""Errors and missing parts: one line reports each, and everything else continues."""

import machine as machines
from steps import (
    PROXIED,
    STATE,
    case,
    contains,
    drop_in,
    equal,
    events,
    is_active,
    pins,
    properties,
    said,
    served,
    settings,
    start_fails,
)

CONFIGURATION = "/etc/pinproxy/pinproxy.yaml"


def serves_under(machine, text):
    """Checks that the service runs with these lines in its unit, and serves a request."""
    with drop_in(machine, text):
        machine("systemctl start pinproxy", check=True)
        served(machine)


@case
def no_configuration_is_78(machine):
    machine(f"mv {CONFIGURATION} /root/away.yaml", check=True)
    start_fails(machine, 78, f"{CONFIGURATION}: error: can't be read: No such file or directory")
    machine(f"mv /root/away.yaml {CONFIGURATION}", check=True)


@case
def a_wrong_configuration_is_78_and_not_tried_again(machine):
    """There was none in force before."""
    machine(f"rm {STATE}/configuration.json", check=True)
    pins(machine, "hosts: 1\n")
    start_fails(machine, 78, "/etc/pinproxy/pins.yaml:1:")
    pins(machine, "hosts: []\n")


@case
def a_key_that_it_cannot_read_is_78(machine):
    try:
        machine(f"chown root {STATE}/authority.key", check=True)
        start_fails(machine, 78, f"{STATE}/authority.key: Permission denied")
        machine(f"chown pinproxy {STATE}/authority.key && chmod 640 {STATE}/authority.key", check=True)
        start_fails(machine, 78, f"{STATE}/authority.key is open to other users (mode 640)")
    finally:
        machine(
            f"chown pinproxy {STATE}/authority.key && chmod 600 {STATE}/authority.key && systemctl reset-failed "
            "pinproxy",
            check=True,
        )


@case
def the_key_is_a_credential(machine):
    machine(f"install -m 600 {STATE}/authority.key /root/ca.key && mv {STATE}/authority.key /root/away.key", check=True)
    try:
        with settings(machine, "s/^  private_key: authority.key/  private_key: credential:authority.key/"):
            start_fails(machine, 78, 'systemd has handed over no credential "authority.key"')
            with drop_in(machine, "[Service]\\nLoadCredential=authority.key:/root/ca.key\\n"):
                machine("systemctl start pinproxy", check=True)
                served(machine)
                # A command started elsewhere finds it too, as root.
                machine("pinproxy check", check=True)
                machine("systemctl reload pinproxy && systemctl restart pinproxy", check=True)
                served(machine)
                equal(machine(f"test -e {STATE}/authority.key").returncode, 1, "a key in the state directory")
                return machine("stat -c '%U %a' /run/credentials/pinproxy.service/authority.key").stdout.strip()
    finally:
        machine(f"mv /root/away.key {STATE}/authority.key", check=True)


@case
def a_port_in_use_is_named_and_waited_for(machine):
    machine(
        'systemd-run --unit squatter python3 -c \'import socket, time; s = socket.create_server(("127.0.0.1", 7467));'
        " time.sleep(600)'",
        check=True,
    )
    machines.until("the port is taken", 20, lambda: machine("ss -Hltn 'sport = 7467'").stdout != "")
    equal(machine("systemctl start pinproxy").returncode, 1)
    said(machine, "127.0.0.1:7467 is already in use")
    # More often than systemd allows by default.
    machines.until("it has tried six times", 60, lambda: int(properties(machine, "NRestarts")["NRestarts"]) >= 6)
    machine("systemctl stop squatter", check=True)
    machines.until("it is ready", 20, lambda: is_active(machine))
    served(machine)


@case
def a_state_directory_that_cannot_be_written_is_named_and_does_without(machine):
    machine(
        f"systemctl stop pinproxy && cp -a {STATE} /root/state && mount -t tmpfs -o size=64k tmpfs {STATE}"
        f" && cp -a /root/state/. {STATE} && rm -f {STATE}/pinproxy.pid",
        check=True,
    )
    try:
        for breaking, reason, repair in [
            (f"cat /dev/zero > {STATE}/full; true", "No space left on device", f"rm {STATE}/full"),
            (f"mount -o remount,ro {STATE}", "Read-only file system", f"mount -o remount,rw {STATE}"),
        ]:
            machine(breaking, check=True)
            machine("systemctl start pinproxy", check=True)
            served(machine)
            warning = events(machine, "state.unwritable")[-1]
            equal((warning["PINPROXY_FILE"], warning["PINPROXY_CAUSE"]), (f"{STATE}/pinproxy.pid", reason))
            machine(f"{repair} && systemctl restart pinproxy && pinproxy status", check=True)
            machine(f"systemctl stop pinproxy && rm -f {STATE}/pinproxy.pid", check=True)
    finally:
        machine(f"systemctl stop pinproxy; umount {STATE}; rm -rf /root/state")


@case
def no_network_is_said_and_waited_for(machine):
    machine("ip link set out0 down && systemctl start pinproxy", check=True)
    try:
        # This machine's own services are still served.
        served(machine)
        refused = machine(f"{PROXIED} -i http://192.0.2.80/")
        contains(refused.stdout, "503")
        contains(refused.stdout, "Retry-After")
        machines.until(
            "the status line says so", 30, lambda: "not-reachable" in properties(machine, "StatusText")["StatusText"]
        )
        status = properties(machine, "StatusText")["StatusText"]
        contains(machine("pinproxy status").stdout, "network: not-reachable")
    finally:
        machine("ip link set out0 up && ip route replace default via 192.0.2.1", check=True)
    machines.until("it returns", 30, lambda: "network: via-wired" in machine("pinproxy status").stdout)
    return status


@case
def no_resolver_leaves_the_hosts_file(machine):
    machine("cp /etc/resolv.conf /root/resolv.conf; : > /etc/resolv.conf; systemctl restart pinproxy", check=True)
    served(machine)
    contains(machine(f"{PROXIED} https://unknown.test/").stdout, "502")
    machine("cp /root/resolv.conf /etc/resolv.conf")


@case
def no_ipv6_leaves_ipv4(machine):
    serves_under(
        machine, "[Service]\\nRestrictAddressFamilies=\\nRestrictAddressFamilies=AF_INET AF_UNIX AF_NETLINK\\n"
    )


@case
def twenty_descriptors_are_too_few_and_that_is_said(machine):
    with drop_in(machine, "[Service]\\nLimitNOFILE=20\\n"):
        start = machine("systemctl start pinproxy", timeout=300)
        said(machine, "LimitNOFILE")
        machine("systemctl stop pinproxy")
        return f"start: {start.returncode}"


@case
def a_decoder_that_is_missing_is_named(machine):
    """Responses that need it are refused; everything else continues."""
    avif = {"bookworm": 15, "trixie": 16}[machine.suite]
    decoders = {
        "libxml2.so.2": ("xml", "application/xml", "<a/>", "libxml2"),
        "libpng16.so.16": ("image", "image/png", "\\211PNG\\r\\n\\032\\n", "libpng16-16"),
        "libturbojpeg.so.0": ("image", "image/jpeg", "\\377\\330\\377", "libturbojpeg0"),
        "libgif.so.7": ("image", "image/gif", "GIF89a", "libgif7"),
        "libwebpdemux.so.2": ("image", "image/webp", "RIFF\\0\\0\\0\\0WEBPVP8 ", "libwebpdemux2"),
        "libtiff.so.6": ("image", "image/tiff", "II*\\0more", "libtiff6"),
        f"libavif.so.{avif}": ("image", "image/avif", "\\0\\0\\0\\034ftypavif\\0\\0\\0\\0more", f"libavif{avif}"),
    }
    pins(
        machine,
        "hosts:\n  - match: origin.test\n    rules:\n"
        + "".join(f"      - path: /{name}\n        response: {{serializer: {name}}}\n" for name in ("xml", "image")),
    )
    # They are recommended packages, which weren't installed.
    packages = [package for _, _, _, package in decoders.values() if package != "libxml2"]
    check = machine("pinproxy check", check=True).stdout
    for package in packages:
        contains(check, package)
    machine(
        f"apt-get install --yes --quiet --no-install-recommends --no-download {' '.join(packages)}",
        check=True,
        timeout=300,
    )
    equal("warning" in machine("pinproxy check", check=True).stdout, False, "a warning of pinproxy check")
    try:
        for library, (serializer, kind, body, package) in decoders.items():
            machine(f"mkdir /root/away && mv /usr/lib/*/{library}* /root/away", check=True)
            try:
                machine("systemctl restart pinproxy", check=True)
                served(machine)
                machine(
                    f"printf 'HTTP/1.1 200 OK\\r\\nContent-Type: {kind}\\r\\n\\r\\n{body}' > /root/answer", check=True
                )
                judged = machine(f"pinproxy explain origin.test --path /{serializer} --response /root/answer")
                equal(judged.returncode, 1, judged.stdout)
                contains(judged.stdout, f"can't be checked: {library} is not installed (Debian package {package})")
            finally:
                machine("mv /root/away/* /usr/lib/$(uname -m)-linux-gnu && rmdir /root/away", check=True)
    finally:
        pins(machine, "hosts: []\n")


@case
def no_journal_is_no_hindrance(machine):
    journal = (
        "systemd-journald.socket systemd-journald-dev-log.socket systemd-journald-audit.socket systemd-journald.service"
    )
    machine(f"systemctl stop pinproxy; systemctl stop {journal}; rm -f /run/systemd/journal/socket", check=True)
    try:
        equal(machine("test -e /run/systemd/journal/socket").returncode, 1, "the journal's socket")
        machine("systemctl start pinproxy", check=True)
        served(machine)
        machine("systemctl reload pinproxy", check=True)
    finally:
        machine("systemctl start systemd-journald.socket systemd-journald-dev-log.socket systemd-journald", check=True)
    # It runs without the journal, and uses it again after the next start.
    served(machine)
    machine("systemctl restart pinproxy", check=True)
    equal(events(machine, "proxy.ready")[-1]["PINPROXY_LISTEN"], "127.0.0.1:7467")


@case
def a_journal_that_ends_takes_nothing_with_it(machine):
    machine("systemctl kill --signal=KILL systemd-journald", check=True)
    served(machine)
    machines.until("the journal is there again", 30, lambda: machine("journalctl --sync").returncode == 0)
    served(machine)
    machine("systemctl reload pinproxy", check=True)
    machine("systemctl stop pinproxy", check=True)
