"""Runs a command for this repository inside another release of Debian: release.py trixie make deb

The system is kept in the cache, with the packages installed there. It shares the network, the repository with
.build-trixie as .build, and the Swift toolchain, read-only. No process outlives the command.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import machine

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
# Packages for the toolchain, in addition to those that `make` installs.
PACKAGES = ["build-essential", "git", "libcurl4-openssl-dev", "libncurses6", "libsqlite3-0", "procps", "tzdata"]
# This machine's settings for registries.
SETTINGS = ["/etc/pip.conf", "/etc/resolv.conf"]
AUTHORITIES = pathlib.Path("/usr/local/share/ca-certificates")
# In separate namespaces. The root is changed by pivot_root(2), since chroot(2) would prevent user namespaces inside.
ENTER = """
set -e
root=$1 directory=$2
shift 2
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys"
mount --rbind /dev "$root/dev"
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
mount -t tmpfs -o mode=755 tmpfs "$root/run"
while [ "$1" != -- ]; do
    mkdir -p "$root$2"
    mount --bind "$1" "$root$2"
    [ "$3" = rw ] || mount -o remount,bind,ro "$root$2"
    shift 3
done
shift
cd "$root"
pivot_root . .
umount -l .
cd "$directory"
exec "$@"
"""


def entered(root, binds, command, environment, directory="/", namespaces=("--mount", "--pid")):
    """Runs a command with that folder as its root. Returns its exit status. It ends with this process.

    - binds: directories of this machine, their paths inside, and "rw" or "ro".
    - namespaces: options for separate namespaces; without --net it uses this machine's network.
    """
    enter = ["setpriv", "--pdeathsig", "KILL", "unshare", *namespaces, "--fork", "--kill-child"]
    enter += ["--propagation", "private", "/bin/sh", "-c", ENTER, "sh", str(root), str(directory)]
    places = [str(word) for bind in binds for word in bind]
    return subprocess.run(enter + places + ["--"] + command, env=environment).returncode


def prepared(suite, purpose="build"):
    """Returns the system's folder for that purpose, and whether this machine's authorities have changed."""
    root = machine.CACHE / f"{suite}-{purpose}"
    with machine.locked(root.name):
        return root, prepare(suite, root)


def prepare(suite, root):
    """Returns whether this machine's authorities have changed since the last time."""
    if not root.exists():
        new = pathlib.Path(tempfile.mkdtemp(prefix=f"{root.name}.", dir=machine.CACHE))
        try:
            subprocess.run(["cp", "-a", "--reflink=auto", f"{machine.bootstrapped(suite)}/.", str(new)], check=True)
            new.chmod(0o755)
            new.rename(root)
        finally:
            shutil.rmtree(new, ignore_errors=True)
    (root / "etc/apt/apt.conf.d/90host").write_text(machine.apt_settings())
    (root / "etc/dpkg/dpkg.cfg.d/90host").write_text("force-unsafe-io\n")
    for file in map(pathlib.Path, SETTINGS):
        if file.exists():
            shutil.copy(file, root / str(file).lstrip("/"))
    authorities = root / str(AUTHORITIES).lstrip("/")
    authorities.mkdir(parents=True, exist_ok=True)
    known = {file.name for file in authorities.iterdir()}
    if AUTHORITIES.exists():
        shutil.copytree(AUTHORITIES, authorities, dirs_exist_ok=True)
    return known != {file.name for file in authorities.iterdir()}


def toolchain():
    """The folder that contains usr/bin/swiftc."""
    compiler = shutil.which("swiftc")
    if not compiler:
        raise SystemExit("no swiftc on the PATH")
    folder = pathlib.Path(compiler).resolve().parents[2]
    if folder == pathlib.Path("/"):
        raise SystemExit(
            f"{compiler} is among this machine's own programs; the toolchain has to be in a folder of its own"
        )
    return folder


def inside(suite, command):
    """Runs a command inside. Returns its exit status."""
    if reason := machine.missing(suite):
        raise SystemExit(f"Debian's {suite} can't be entered: {reason}")
    root, has_news = prepared(suite)
    tools = toolchain()
    build = REPOSITORY / f".build-{suite}"
    build.mkdir(exist_ok=True)
    # Outside, where git can reach the dependencies.
    subprocess.run(
        ["swift", "package", "resolve", "--scratch-path", str(build)], cwd=REPOSITORY, check=True, stdout=sys.stderr
    )
    environment = {
        name: value for name, value in os.environ.items() if name.startswith(("PINPROXY_", "ASAN_", "LSAN_", "DEBIAN_"))
    }
    environment |= {
        "PATH": f"{tools}/usr/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": "/root",
        "LC_ALL": "C.UTF-8",
        "DEBIAN_FRONTEND": "noninteractive",
        "PINPROXY_TEST_OFFLINE": "yes",
    }

    # The build folder differs inside.
    (REPOSITORY / ".build").mkdir(exist_ok=True)
    binds = [(REPOSITORY, REPOSITORY, "rw"), (build, REPOSITORY / ".build", "rw"), (tools, tools, "ro")]

    def run(command):
        return entered(root, binds, command, environment, REPOSITORY)

    if has_news:
        run(["update-ca-certificates"])
    # The first finishes an interrupted installation.
    steps = [["dpkg", "--configure", "-a"], [".ci/install-packages"] + PACKAGES, command]
    return next(filter(None, map(run, steps)), 0)


if __name__ == "__main__":
    sys.exit(inside(sys.argv[1], sys.argv[2:]))
