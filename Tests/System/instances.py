"""Several proxies: the template unit."""

import json

from steps import SECURE, STATE, case, contains, equal, machines


@case
def an_instance_has_a_configuration_ports_and_an_authority_of_its_own(machine):
    machine(
        "sed -e 's/127.0.0.1:7467/127.0.0.1:7567/' -e 's/127.0.0.1:7468/127.0.0.1:7568/'"
        " /etc/pinproxy/pinproxy.yaml > /etc/pinproxy/build.yaml && systemctl start pinproxy@build",
        check=True,
        timeout=60,
    )
    state = f"{STATE}-instances/build"
    equal(machine(f"stat -c '%U %a' {state} {state}/authority.key", check=True).stdout, "pinproxy 755\npinproxy 600\n")
    equal(machine(f"cmp {state}/authority.pem {STATE}/authority.pem").returncode, 1, "the authorities")
    curl = "curl --silent --show-error --max-time 20 --proxy http://127.0.0.1:7567"
    equal(machine(f"{curl} --cacert {state}/authority.pem {SECURE}", check=True).stdout, "origin\n")
    # Commands find the instance by its configuration.
    contains(
        machine("pinproxy status --config /etc/pinproxy/build.yaml", check=True).stdout, f"state directory {state}"
    )
    machine("systemctl reload pinproxy@build && systemctl restart pinproxy@build", check=True, timeout=60)
    # The first instance restarts independently.
    machine("systemctl restart pinproxy", check=True, timeout=60)
    equal(machine("systemctl is-active pinproxy@build").stdout, "active\n")
    equal(machine("test -d /run/pinproxy-build").returncode, 0, "its runtime directory")
    machine("systemctl stop pinproxy@build && rm /etc/pinproxy/build.yaml", check=True, timeout=60)


@case
def events_have_message_ids_that_the_catalog_explains(machine):
    machine("journalctl --sync", check=True)
    lines = machine("journalctl --unit pinproxy PINPROXY_EVENT=proxy.ready --output json --no-pager", check=True).stdout
    ready = json.loads(lines.splitlines()[-1])
    by_id = machine(f"journalctl MESSAGE_ID={ready['MESSAGE_ID']} --catalog --no-pager -n 1", check=True).stdout
    contains(by_id, "Subject: The proxy accepts clients")
    contains(by_id, "The proxy accepts clients at 127.0.0.1:7467.")


@case
def a_replaced_library_is_told(machine):
    equal("restart it" in machine("pinproxy status", check=True).stdout, False, "before")
    library = machine("readlink -f /usr/lib/*/libssl.so.3", check=True).stdout.strip()
    machine(f"cp {library} {library}.new && mv {library}.new {library}", check=True)
    contains(machine("pinproxy status", check=True).stdout, f"restart it: replaced on disk since the start: {library}")
    machine("systemctl restart pinproxy", check=True)
    machines.until("the new one runs", 20, lambda: "restart it" not in machine("pinproxy status").stdout)
