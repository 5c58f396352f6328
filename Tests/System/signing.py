"""The authority's key with a user and a process of its own."""

from steps import case, contains, equal, events, served, settings

HOME = "/var/lib/pinproxy-signer"
KEY = f"{HOME}/authority.key"


@case
def a_signer_keeps_the_key_from_the_proxys_user(machine):
    edit = (f"s,^  signer: null,  signer: unix:/run/pinproxy-signer.sock,;s,^  certificate: authority.pem,  certificate: {HOME}/authority.pem,;"
            f"s,^  private_key: authority.key,  private_key: {KEY},")
    with settings(machine, edit):
        machine("systemctl enable --now pinproxy-signer.socket pinproxy-signer.service", check=True)
        machine("systemctl restart pinproxy", check=True)
        machine("pinproxy ca install", check=True)
        served(machine)
        equal(machine(f"stat -c %U:%a {KEY}", check=True).stdout, "pinproxy-signer:600\n")
        contains(machine(f"setpriv --reuid pinproxy --regid pinproxy --clear-groups cat {KEY}").stderr, "Permission denied")
        # Nobody but the proxy asks it.
        equal(machine("stat -c %U:%a /run/pinproxy-signer.sock", check=True).stdout, "pinproxy:600\n")
        # Proxy and signer each survive the other's restart.
        machine("systemctl restart pinproxy-signer", check=True)
        machine("systemctl restart pinproxy", check=True)
        served(machine)
        for step in ["", " --activate"]:
            machine(f"pinproxy ca rotate{step}", check=True)
            equal(machine(f"stat -c %U:%a {KEY}", check=True).stdout, "pinproxy-signer:600\n")
            machine("systemctl reload pinproxy", check=True)
            machine("pinproxy ca install", check=True)
            served(machine)
        machine("pinproxy ca rotate --finish && systemctl reload pinproxy", check=True)
        served(machine)
        machine("pinproxy ca remove", check=True)
    machine("systemctl disable --now pinproxy-signer.socket pinproxy-signer.service; systemctl restart pinproxy", check=True)
    equal([event["PINPROXY_CAUSE"] for event in events(machine, "signer.failed") if "PINPROXY_CAUSE" in event], [], "failures")
    served(machine)
