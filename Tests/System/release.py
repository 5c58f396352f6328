"""Runs a command for this repository inside another release of Debian: release.py trixie make deb

Its system is kept in the cache, and packages that are installed there stay. Of this machine it has the repository, with
.build-trixie instead of .build, the Swift toolchain, read-only, and the network. No process outlives the command.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import machine

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
# What the toolchain needs besides the packages that `make` installs.
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
    """The exit status of a command whose root is that folder. It ends with this process.

    - binds: directories of this machine, where they are seen inside, and "rw" or "ro".
    - namespaces: which it has to itself; without --net it has this machine's network.
    """
    enter = ["setpriv", "--pdeathsig", "KILL", "unshare", *namespaces, "--fork", "--kill-child"]
    enter += ["--propagation", "private", "/bin/sh", "-c", ENTER, "sh", str(root), str(directory)]
    places = [str(word) for bind in binds for word in bind]
    return subprocess.run(enter + places + ["--"] + command, env=environment).returncode


def prepared(suite, purpose="build"):
    """The folder of the system for that purpose, and whether this machine has other authorities than at the last
    time."""
    root = machine.CACHE / f"{suite}-{purpose}"
    with machine.locked(root.name):
        return root, prepare(suite, root)


def prepare(suite, root):
    """Whether this machine has other authorities than at the last time."""
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
    """The folder that holds usr/bin/swiftc."""
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
    """The exit status of the command."""
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

    # Inside, the repository's build folder is another one.
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
