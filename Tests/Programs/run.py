"""Runs every program of table/ under `pinproxy exec`, and writes docs/programs.md.

run.py PINPROXY [--only NAME,…] [--at-once N]

All of them run inside a Debian 12 that is created once with all packages, in an overlay that is discarded. Its network
leads nowhere. The output of each program is kept in .build/programs/.
"""

import argparse
import json
import pathlib
import subprocess
import sys

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / "Tests/System"))

import machine  # noqa: E402
import page  # noqa: E402
import release  # noqa: E402
import table  # noqa: E402

SUITE = "bookworm"
# Packages for the proxy and the trial, in addition to the programs.
PACKAGES = [
    "libbrotli1", "libc-ares2", "libcrypt1", "libevent-2.1-7", "libidn2-0", "libmnl0", "libnghttp2-14", "libpsl5",
    "libseccomp2", "libsqlite3-0", "libssl3", "libyaml-0-2", "libzstd1", "publicsuffix", "ca-certificates", "dbus",
    "fakeroot", "git", "iproute2", "libnss3-tools", "procps", "python3", "python3-venv", "uidmap", "util-linux",
    "xauth", "xvfb",
]  # fmt: skip
RESULTS = REPOSITORY / ".build/programs"
ENVIRONMENT = {
    "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/root",
    "LC_ALL": "C.UTF-8",
    "DEBIAN_FRONTEND": "noninteractive",
}
# Existing ones are kept, without asking a registry.
FROM_PYPI = """
set -e
[ -e /opt/pypi/bin/pip ] || python3 -m venv /opt/pypi
installed=$(/opt/pypi/bin/pip list --disable-pip-version-check --format freeze | cut -d= -f1)
missing=
for package; do
    echo "$installed" | grep -qxF "$package" || missing="$missing $package"
done
[ -z "$missing" ] || /opt/pypi/bin/pip install --quiet --disable-pip-version-check $missing
"""


def prepared(programs):
    """The folder of the system with all packages. The first call takes half an hour."""
    root, has_news = release.prepared(SUITE, "programs")
    with machine.locked(root.name):
        binds = [(REPOSITORY / ".ci", "/opt/ci", "ro")]
        packages = sorted(set(PACKAGES).union(*(program.packages for program in programs)))
        pypi = sorted({program.pypi for program in programs if program.pypi})
        # The second finishes an interrupted installation.
        steps = [["update-ca-certificates"]] if has_news else []
        steps += [["dpkg", "--configure", "-a"], ["/opt/ci/install-packages", *packages], ["apt-get", "clean"]]
        for step in [*steps, ["/bin/sh", "-c", FROM_PYPI, "sh", *pypi]]:
            if release.entered(root, binds, step, ENVIRONMENT) != 0:
                raise SystemExit(f"the programs can't be installed in {root}: {step[0]} failed")
    return root


def tried(root, pinproxy, only, at_once):
    """The results of the programs, by label."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    binds = [
        (pinproxy.parent, "/opt/pinproxy", "ro"),
        (pathlib.Path(__file__).parent, "/opt/programs", "ro"),
        (RESULTS, "/opt/results", "rw"),
    ]
    command = ["/usr/bin/python3", "-B", "/opt/programs/trial.py", "--at-once", str(at_once)]
    command += ["--only", only] if only else []
    with machine.overlaid(root) as (top, _):
        status = release.entered(top, binds, command, ENVIRONMENT, "/", ("--mount", "--pid", "--net", "--uts", "--ipc"))
    if status != 0:
        raise SystemExit(f"the trial ended with {status}")
    return json.loads((RESULTS / "results.json").read_text())


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("pinproxy", type=pathlib.Path)
    parser.add_argument("--only", help="names of programs, comma-separated")
    parser.add_argument("--at-once", type=int, default=3, help="how many run at the same time")
    options = parser.parse_args()
    chosen = table.programs(options.only)
    if reason := machine.missing(SUITE):
        print(f"SKIP  the trial of programs: {reason}")
        return 0
    results = tried(prepared(table.programs()), options.pinproxy.resolve(), options.only, options.at_once)
    print(page.summary(chosen, results))
    if not options.only:
        (REPOSITORY / "docs/programs.md").write_text(page.text(chosen, results))
        subprocess.run(["git", "diff", "--stat", "--", "docs/programs.md"], cwd=REPOSITORY)
    passed = [program.name for program in chosen if results[program.label]["passed"]]
    if passed:
        print(f"FAIL  past a wrong pin: {', '.join(passed)}")
    return 1 if passed else 0


if __name__ == "__main__":
    sys.exit(main())
