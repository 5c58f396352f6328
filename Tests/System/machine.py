"""A Debian that boots. It is bootstrapped once into a cache; each run uses an overlay of it."""

import contextlib
import fcntl
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request

SUITES = {"bookworm": "Debian 12", "trixie": "Debian 13"}
MIRROR = os.environ.get("DEBIAN_MIRROR", "http://deb.debian.org/debian")
PACKAGES = ["systemd-sysv", "ca-certificates", "curl", "iproute2", "python3-minimal", "libpython3-stdlib", "openssl"]
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "pinproxy"


def missing(suite):
    """Why no machine can be created here, or None. The tools are packages, which root can install."""
    if os.geteuid() != 0:
        return "needs root"
    probe = subprocess.run(
        [
            "unshare",
            "--mount",
            "--net",
            "--pid",
            "--uts",
            "--ipc",
            "--cgroup",
            "--fork",
            "mount",
            "-t",
            "tmpfs",
            "none",
            "/mnt",
        ],
        capture_output=True,
        text=True,
    )
    if probe.returncode != 0:
        return f"this machine lets nobody make namespaces and mounts: {probe.stderr.strip()}"
    if (
        "overlay" not in pathlib.Path("/proc/filesystems").read_text()
        and subprocess.run(["modprobe", "overlay"]).returncode != 0
    ):
        return "this kernel has no overlayfs"
    if not (CACHE / suite).exists() and (problem := mirror_problem(suite)):
        return f"no base system is kept in {CACHE}, and {MIRROR} can't be reached: {problem}"
    return None


def mirror_problem(suite):
    try:
        urllib.request.urlopen(f"{MIRROR}/dists/{suite}/Release", timeout=30).close()
    except OSError as error:
        return str(error)
    return None


def apt_settings():
    """This machine's apt settings for its registry, which others need too. root owns the cache."""
    settings = subprocess.run(["apt-config", "dump", "Acquire"], capture_output=True, text=True, check=True).stdout
    return settings + 'APT::Sandbox::User "root";\n'


@contextlib.contextmanager
def locked(name):
    """Holds a lock that one process of this machine has at a time. Another one waits, and says so."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with open(CACHE / f"{name}.lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"Waiting for another run's lock, {lock.name}", file=sys.stderr, flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def bootstrapped(suite):
    """The folder of the base system. An interrupted bootstrap starts again."""
    base = CACHE / suite
    with locked(suite):
        if not base.exists():
            bootstrap(suite, base)
    return base


def bootstrap(suite, base):
    new = pathlib.Path(tempfile.mkdtemp(prefix=f"{suite}.", dir=CACHE))
    try:
        command = ["debootstrap", "--variant=minbase", f"--include={','.join(PACKAGES)}", suite, str(new), MIRROR]
        run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if run.returncode != 0:
            raise SystemExit(f"{' '.join(command)} failed:\n{run.stdout[-2000:]}")
        new.chmod(0o755)
        new.rename(base)
    finally:
        shutil.rmtree(new, ignore_errors=True)


class Machine:
    """A machine with its own network, without a route to anywhere."""

    def __init__(self, suite, root, folder):
        self.suite = suite
        # apt discards its lists of one release when it gets those of another.
        self.lists = "lists" if suite == "bookworm" else f"lists-{suite}"
        self.root = root
        self.folder = folder
        self.leader = None

    # apt's lists and packages are in the cache: after the first run nothing is fetched.
    def binds(self):
        for name in ["archives", "archives/partial", self.lists, f"{self.lists}/partial"]:
            (CACHE / name).mkdir(parents=True, exist_ok=True)
        return [f"--bind={CACHE}/archives:/var/cache/apt/archives", f"--bind={CACHE}/{self.lists}:/var/lib/apt/lists"]

    def fetch_dependencies(self, package):
        """Fetches the dependencies of a package file, and copies the file to /root/pinproxy.deb."""
        shutil.copy(package, self.root / "root/pinproxy.deb")
        (self.root / "etc/apt/apt.conf.d/90host").write_text(apt_settings())
        install = "apt-get install --yes --quiet --download-only"
        self.before_boot(
            f"{install} --no-download /root/pinproxy.deb || {{ apt-get update && {install} /root/pinproxy.deb; }}",
            "the package's dependencies can't be fetched",
        )

    def before_boot(self, script, problem):
        """Runs a script in the machine, with this machine's network."""
        run = subprocess.run(
            ["systemd-nspawn", "--quiet", "--register=no", "--keep-unit", "--console=pipe", "-D", str(self.root)]
            + self.binds()
            + ["/usr/bin/env", "DEBIAN_FRONTEND=noninteractive", "/bin/sh", "-c", script],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        if run.returncode != 0:
            raise SystemExit(f"{problem}:\n{run.stdout[-2000:]}")

    @contextlib.contextmanager
    def groups(self):
        """Its own version 1 control groups. In a container they are read-only unless they are remounted."""
        groups = {}
        for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines():
            controller, path = line.split(":", 2)[1:]
            group = pathlib.Path(f"/sys/fs/cgroup/{controller}{path}/pinproxy-test-{os.getpid()}")
            if controller in ("memory", "pids") and os.access(group.parent, os.W_OK):
                group.mkdir()
                groups[controller] = group
        try:
            yield groups
        finally:
            for group in groups.values():
                for folder, _, _ in os.walk(group, topdown=False):
                    os.rmdir(folder)

    @contextlib.contextmanager
    def booted(self):
        with self.groups() as groups, self.started(groups):
            if groups:
                mounts = " && ".join(f"mount -o remount,bind,rw /sys/fs/cgroup/{controller}" for controller in groups)
                self(f"{mounts} && systemctl daemon-reexec", check=True)
            yield self

    @contextlib.contextmanager
    def started(self, groups):
        console = open(self.folder / "console", "w")
        enter = "".join(f"echo $$ > {group}/cgroup.procs && " for group in groups.values()) + 'exec "$@"'
        container = subprocess.Popen(
            [
                "/bin/sh",
                "-c",
                enter,
                "sh",
                "systemd-nspawn",
                "--quiet",
                "--boot",
                "--register=no",
                "--keep-unit",
                "--console=pipe",
                "--private-network",
                f"--machine=pinproxy-{os.getpid()}",
                "-D",
                str(self.root),
            ]
            + self.binds()
            # For init: systemd 257 boots with version 1 control groups, which this machine may have, only if told so.
            + ["SYSTEMD_CGROUP_ENABLE_LEGACY_FORCE=1"],
            stdin=subprocess.DEVNULL,
            stdout=console,
            stderr=console,
        )
        try:
            until("the machine has booted", 120, lambda: self.is_up(container))
            self(
                "ip link add out0 type veth peer name out1 && ip link set out1 up && ip address add 192.0.2.2/24 dev "
                "out0 && ip link set out0 up"
                " && ip route add default via 192.0.2.1",
                check=True,
            )
            yield self
        finally:
            container.terminate()
            try:
                container.wait(60)
            except subprocess.TimeoutExpired:
                container.kill()
                container.wait()
            console.close()

    def is_up(self, container):
        if container.poll() is not None:
            raise SystemExit(f"systemd-nspawn exited:\n{(self.folder / 'console').read_text()[-2000:]}")
        children = pathlib.Path(f"/proc/{container.pid}/task/{container.pid}/children").read_text().split()
        if not children:
            return False
        self.leader = children[0]
        # It takes a moment until its first process is systemd.
        state = self("systemctl is-system-running --wait").stdout.strip()
        return state in ("running", "degraded")

    def command(self, script):
        return [
            "nsenter",
            "--target",
            self.leader,
            "--mount",
            "--uts",
            "--ipc",
            "--net",
            "--pid",
            "--cgroup",
            "--",
            "/usr/bin/env",
            "-i",
            "PATH=/usr/sbin:/usr/bin:/sbin:/bin",
            "HOME=/root",
            "LC_ALL=C.UTF-8",
            "DEBIAN_FRONTEND=noninteractive",
            "/bin/sh",
            "-c",
            script,
        ]

    def __call__(self, script, check=False, timeout=120):
        run = subprocess.run(
            self.command(script),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=timeout,
        )
        if check and run.returncode != 0:
            raise AssertionError(f"{script}\nexit {run.returncode}: {run.stdout[-1500:]}")
        return run

    def start(self, script):
        return subprocess.Popen(
            self.command(script), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )


def until(what, seconds, condition):
    """Polls a condition, since most conditions here are another program's state."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds} s: {what}")
        time.sleep(0.1)


@contextlib.contextmanager
def machine(suite, package, prepare=None):
    """Boots one machine at a time. Machines share the package cache and this machine's control groups.

    - prepare: is called with the machine before it boots.
    """
    base = bootstrapped(suite)
    with locked("booted"), overlaid(base) as (root, folder):
        machine = Machine(suite, root, folder)
        machine.fetch_dependencies(package)
        if prepare:
            prepare(machine)
        with machine.booted():
            yield machine


@contextlib.contextmanager
def overlaid(base):
    """A system that starts as the base, and its folder."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="pinproxy-system."))
    root = folder / "root"
    for name in ["root", "changes", "work"]:
        (folder / name).mkdir()
    # The overlay's root gets the mode of this one.
    (folder / "changes").chmod(0o755)
    subprocess.run(
        [
            "mount",
            "-t",
            "overlay",
            "overlay",
            "-o",
            f"lowerdir={base},upperdir={folder}/changes,workdir={folder}/work",
            str(root),
        ],
        check=True,
    )
    try:
        yield root, folder
    finally:
        subprocess.run(["umount", str(root)], check=True)
        shutil.rmtree(folder)


if __name__ == "__main__":
    print(missing(sys.argv[1]) or "", end="")
