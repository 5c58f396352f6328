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
        signer = machine("systemctl show pinproxy-signer -p MainPID --value", check=True).stdout.strip()
        # Whoever has taken over the proxy has its user's rights.
        for attempt in [f"cat {KEY}", f"mv {KEY} /tmp", f"touch {HOME}/authority.pem", f"head -c 1 /proc/{signer}/mem",
                        f"cat /proc/{signer}/environ", f"ls /proc/{signer}/fd"]:
            contains(machine(f"setpriv --reuid pinproxy --regid pinproxy --clear-groups {attempt}").stderr, "Permission denied")
        contains(machine(f"setpriv --reuid pinproxy --regid pinproxy --clear-groups kill {signer}").stderr, "not permitted")
        # Nobody but the proxy asks it. (curl would speak of another kind of socket.)
        equal(machine("stat -c %U:%a /run/pinproxy-signer.sock", check=True).stdout, "pinproxy:600\n")
        for user, refusal in [("nobody", "Permission denied"), ("pinproxy", "Protocol wrong type")]:
            asked = machine(f"setpriv --reuid {user} --clear-groups curl -sv --unix-socket /run/pinproxy-signer.sock http://a/")
            contains(asked.stderr, refusal)
        seen = machine("systemd-analyze security --no-pager --threshold=16 pinproxy-signer.service")
        equal(seen.returncode, 0, seen.stdout[-300:])
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
