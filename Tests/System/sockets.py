"""Sockets held by systemd."""

from steps import (
    PROXIED,
    RESTARTS,
    STATE,
    URL,
    case,
    contains,
    drop_in,
    equal,
    events,
    is_active,
    machines,
    served,
    settings,
    start_fails,
    under_load,
)


def is_soon_active(machine):
    """The service may answer before systemd has read its readiness."""
    machines.until("the service is active", 20, lambda: is_active(machine))


@case
def the_first_client_starts_it_by_its_socket(machine):
    machine("systemctl start pinproxy.socket", check=True)
    equal(is_active(machine), False)
    served(machine, URL)
    is_soon_active(machine)
    said = under_load(machine, RESTARTS)
    warnings = [event["PINPROXY_CAUSE"] for event in events(machine, "config.warning")]
    # systemd passes the socket twice: from the unit, and from the previous process.
    equal([warning for warning in warnings if "hands over" in warning], [], "warnings")
    machine("systemctl stop pinproxy.socket pinproxy", check=True)
    return said


@case
def the_address_is_the_units_where_the_configuration_says_systemd(machine):
    with settings(machine, "s/^  listen: 127.0.0.1:7467/  listen: systemd/"):
        start_fails(machine, 78, 'systemd hands over no TCP socket named "proxy"')
        with drop_in(machine, "[Socket]\\nListenStream=\\nListenStream=127.0.0.3:7470\\n", unit="pinproxy.socket"):
            machine("systemctl start pinproxy.socket", check=True)
            equal(is_active(machine), False)
            elsewhere = PROXIED.replace("127.0.0.1:7467", "127.0.0.3:7470")
            equal(machine(f"{elsewhere} {URL}", check=True).stdout, "origin\n")
            is_soon_active(machine)
            equal(machine(f"cat {STATE}/listen", check=True).stdout, "127.0.0.3:7470\n")
            contains(
                machine("setpriv --reuid nobody --regid nogroup --clear-groups env HOME=/tmp pinproxy env").stdout,
                "export HTTPS_PROXY='http://127.0.0.3:7470'",
            )
            # Its unit keeps it; the descriptor store has no second copy.
            machine("systemctl restart pinproxy", check=True)
            equal(machine(f"{elsewhere} {URL}", check=True).stdout, "origin\n")
            equal(machine("systemctl show pinproxy -P NFileDescriptorStore").stdout, "0\n", "stored")
            machine("systemctl stop pinproxy.socket pinproxy", check=True)
    machine("systemctl reset-failed pinproxy; systemctl start pinproxy", check=True)
    served(machine)


@case
def the_admin_port_is_systemds_or_a_socket_of_the_file_system(machine):
    health = '{"status":"alive"}'
    with settings(machine, "s/^  listen: 127.0.0.1:7468/  listen: systemd/"):
        machine("systemctl stop pinproxy")
        start_fails(machine, 78, 'systemd hands over no TCP socket named "admin": start pinproxy-admin.socket')
        with drop_in(
            machine, "[Socket]\\nListenStream=\\nListenStream=127.0.0.3:7471\\n", unit="pinproxy-admin.socket"
        ):
            machine("systemctl reset-failed pinproxy; systemctl start pinproxy-admin.socket", check=True)
            equal(is_active(machine), False)
            equal(machine("curl -sf http://127.0.0.3:7471/healthz", check=True).stdout, health)
            is_soon_active(machine)
            served(machine)
            machine("systemctl stop pinproxy-admin.socket pinproxy", check=True)
    with settings(
        machine,
        's,^  listen: 127.0.0.1:7468,  listen: unix:/run/pinproxy/admin.sock,;s/socket_mode: .*/socket_mode: "0666"/',
    ):
        machine("systemctl reset-failed pinproxy; systemctl start pinproxy", check=True)
        asked = "curl -sf --unix-socket /run/pinproxy/admin.sock http://localhost/healthz"
        equal(machine(f"setpriv --reuid nobody --regid nogroup --clear-groups {asked}", check=True).stdout, health)
    machine("systemctl restart pinproxy", check=True)
    served(machine)
