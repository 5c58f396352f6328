"""Upgrades a machine to the next release. The proxy serves before and after, and afterwards with that release's
package."""

import shutil

from steps import an_origin, equal, served

NEXT = {"bookworm": "trixie"}
APT = "apt-get --yes --quiet --no-install-recommends -o Dpkg::Options::=--force-confold"


def prepare(later):
    """Installs the package and downloads the upgrade, since the booted machine has no network access."""

    def fetch(machine):
        shutil.copy(later, machine.root / "root/later.deb")
        machine.before_boot(f"{APT} install /root/pinproxy.deb", "the package can't be installed")
        sources = machine.root / "etc/apt/sources.list"
        sources.write_text(sources.read_text().replace(machine.suite, NEXT[machine.suite]))
        machine.lists = "lists-upgrade"
        machine.before_boot(
            f"apt-get update && {APT} --download-only full-upgrade && {APT} --download-only install /root/later.deb",
            "the next release can't be fetched",
        )

    return fetch


def status(machine):
    return machine("dpkg-query -W -f '${db:Status-Status}' pinproxy", check=True).stdout


def serves_with_what_is_installed(machine):
    machine("systemctl restart pinproxy", check=True)
    served(machine)
    return machine("pinproxy --version", check=True).stdout.strip().replace("\n", ", ")


def it_serves_before_the_upgrade(machine):
    an_origin(machine)
    machine("systemctl reload pinproxy", check=True)
    return serves_with_what_is_installed(machine)


def it_serves_after_the_upgrade_with_the_package_of_before(machine):
    machine(f"{APT} --no-download full-upgrade", check=True, timeout=900)
    equal(machine(". /etc/os-release && echo $VERSION_CODENAME", check=True).stdout, NEXT[machine.suite] + "\n")
    equal(status(machine), "installed")
    # Before a restart, the old version runs.
    served(machine)
    return serves_with_what_is_installed(machine)


def the_next_releases_package_replaces_it(machine):
    before = machine("dpkg-query -W -f '${Version}' pinproxy", check=True).stdout
    machine(f"{APT} install /root/later.deb", check=True, timeout=300)
    machine(
        f"dpkg --compare-versions \"$(dpkg-query -W -f '${{Version}}' pinproxy)\" gt {before} && apt-get check",
        check=True,
    )
    served(machine)
    return serves_with_what_is_installed(machine)


CASES = [
    it_serves_before_the_upgrade,
    it_serves_after_the_upgrade_with_the_package_of_before,
    the_next_releases_package_replaces_it,
]
