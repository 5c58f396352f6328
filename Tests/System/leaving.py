"""Confinement, and what remains after the package is removed."""

import os
import pathlib
import re

from steps import SECURE, STATE, case, contains, equal, events, machines

# In a folder named after the authority.
BUNDLE = f"{STATE}/trust/$(openssl x509 -in {STATE}/authority.pem -outform DER | sha256sum | cut -c 1-16)/ca-bundle.pem"


@case
def what_it_may_do_is_confined(machine):
    seen = machine("systemd-analyze security --no-pager --threshold=16 pinproxy.service")
    equal(seen.returncode, 0, seen.stdout[-300:])
    return seen.stdout.strip().splitlines()[-1].lstrip("→ ")


@case
def what_the_system_trusts_outlives_a_fresh_store(machine):
    machine("pinproxy ca install && update-ca-certificates --fresh", check=True)
    untold = "curl --silent --show-error --max-time 20 --proxy http://127.0.0.1:7467"
    equal(machine(f"{untold} {SECURE}", check=True).stdout, "origin\n")


@case
def what_the_system_trusts_anew_the_proxy_trusts_too(machine):
    """The hook of ca-certificates has the proxy reread the roots. It also rewrites the file for programs."""
    machine(f"test -e {BUNDLE}", check=True)
    before = len(events(machine, "config.reload"))
    machine(
        "cp /etc/pinproxy/test-root.pem /usr/local/share/ca-certificates/test-root.crt && update-ca-certificates",
        check=True,
    )
    machines.until("the reload", 20, lambda: len(events(machine, "config.reload")) > before)
    equal(
        machine(
            f"openssl crl2pkcs7 -nocrl -certfile {BUNDLE} | openssl pkcs7 -print_certs -noout"
            " | grep -c '^subject=CN *= *root.test'"
        ).stdout,
        "1\n",
        "in the bundle",
    )
    machine("rm /usr/local/share/ca-certificates/test-root.crt && update-ca-certificates --fresh", check=True)


@case
def every_login_has_the_variables_by_the_example(machine):
    machine(
        "cp /usr/share/doc/pinproxy/examples/pinproxy.sh /etc/profile.d/ && useradd --create-home somebody", check=True
    )
    try:
        shell = "su - somebody -c 'echo $HTTPS_PROXY; curl --silent --show-error --max-time 20 %s'" % SECURE
        equal(machine(shell, check=True).stdout, "http://127.0.0.1:7467\norigin\n")
        # A login without a readable configuration succeeds, and prints a warning.
        machine("mv /etc/pinproxy/pinproxy.yaml /root/away.yaml", check=True)
        broken = machine("su - somebody -c 'echo on'; mv /root/away.yaml /etc/pinproxy/pinproxy.yaml").stdout
        contains(broken, "on\n")
        contains(broken, "this shell does not use the proxy")
    finally:
        machine("userdel --remove somebody; rm /etc/profile.d/pinproxy.sh")


@case
def the_manual_is_there(machine):
    pages = machine("dpkg -L pinproxy | grep /man/ | sort", check=True).stdout
    for page in ["man1/pinproxy.1.gz", "man1/pinproxy-run.1.gz", "man5/pinproxy.yaml.5.gz", "man5/pins.yaml.5.gz"]:
        contains(pages, page)
    contains(machine("zcat /usr/share/man/man1/pinproxy.1.gz", check=True).stdout, ".It learn")
    pins = machine("zcat /usr/share/man/man5/pins.yaml.5.gz", check=True).stdout
    contains(pins, "ads.example.net")
    contains(pins, "upgrade_insecure")


@case
def the_documentation_is_whole(machine):
    """Every linked page, picture and file is in the package. The licence is its copyright file."""
    here = pathlib.Path("/usr/share/doc/pinproxy")
    pages = list((machine.root / str(here)[1:]).rglob("*.md"))
    links = {
        os.path.normpath(here / page.parent.relative_to(machine.root / str(here)[1:]) / link)
        for page in pages
        for link in re.findall(r"\]\(([^)#]+)", page.read_text())
        if "://" not in link
        and "Benchmarks" not in link
        and not link.startswith("systemd")
        and not link.endswith("LICENSE")
    }
    equal([link for link in sorted(links) if machine(f"test -e {link}").returncode != 0], [], "links to nowhere")
    for name in ["alerts.yml", "grafana.json"]:
        machine(f"test -s /usr/share/pinproxy/monitoring/{name}", check=True)
    return f"{len(pages)} pages, {len(links)} links"


@case
def removal_leaves_the_state(machine):
    # All its services run, including the optional ones.
    machine("systemctl start pinproxy pinproxy-signer.socket pinproxy-signer.service", check=True)
    machine("apt-get remove --yes --quiet pinproxy", check=True)
    machine(f"test -e {STATE}/authority.key && test -e /etc/pinproxy/pins.yaml", check=True)
    equal(machine("ss -Hltn 'sport = 7467'").stdout, "", "listeners")
    equal(machine("grep -lx pinproxy /proc/[0-9]*/comm").stdout, "", "processes")


@case
def purge_leaves_nothing_but_the_user(machine):
    # Purge keeps files that the administrator put there, like this one.
    machine("rm /etc/pinproxy/test-root.pem", check=True)
    machine("apt-get purge --yes --quiet pinproxy", check=True)
    left = machine(
        "find / -xdev -name '*pinproxy*' -not -path '/proc/*' -not -path '/root/*' -not -path '/var/cache/apt/*'"
        " -not -path '/tmp/*'; find / -xdev -user pinproxy -o -xdev -user pinproxy-signer"
    ).stdout
    equal(left, "", "left")
    # A reused user number would give access to the service's files.
    machine("getent passwd pinproxy pinproxy-signer", check=True)
    equal(machine("grep -c pinproxy /etc/ca-certificates.conf; ls /etc/ssl/certs | grep pinproxy").stdout, "0\n")
