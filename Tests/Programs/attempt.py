"""Runs one program once: `pinproxy exec -- PROGRAM`."""

import os
import re
import shutil
import signal
import subprocess
import time

AS_PERSON = ["setpriv", "--reuid", "person", "--regid", "person", "--init-groups"]
HOME = "/home/person"
LIMIT = 60
# Seconds in which a program that keeps running has to show its result.
STAYS = 25
# In process and mount namespaces that end with it, with a private home, temporary and runtime directory.
ENTER = """
set -e
mount --bind "$1/home" /home/person
mount -t tmpfs -o mode=1777 tmpfs /tmp
mount -t tmpfs -o mode=755 tmpfs /run
mkdir -p /run/user /run/lock && install -d -o person -g person -m 700 /run/user/1000
cd /home/person
shift
"$@"
exit $?
"""


def environment():
    """An ordinary user's environment, without variables for certificates or proxies."""
    return {
        "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/local/games:/usr/games:/usr/sbin:/sbin",
        "HOME": HOME,
        "USER": "person",
        "LOGNAME": "person",
        "SHELL": "/bin/bash",
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "XDG_STATE_HOME": "/srv/trial/state",
        "XDG_RUNTIME_DIR": "/run/user/1000",
    }


class Attempt:
    def __init__(self, program, pin, options, site, document, place, results):
        self.program, self.site, self.document = program, site, document
        self.host = f"{program.label}.{pin}.test"
        name = "-".join([program.label, pin, *(option.strip("-") for option in options)])
        self.folder = place / "attempts" / name
        self.home = self.folder / "home"
        self.log = results / f"{name}.log"
        self.options = options

    def result(self):
        """Runs the program. Returns whether it works, its requests at the origin, its exit status, and the messages of
        `pinproxy exec`."""
        before = len(self.site.requests[self.host])
        self.prepare()
        begun = time.monotonic()
        status = self.run(before)
        output = self.log.read_text(errors="replace")
        requests = self.site.requests[self.host][before:]
        works = bool(requests) and self.has_got(output, requests) and self.is_well(status)
        told = [line for line in output.splitlines() if line.startswith("pinproxy: ") and "(shown once)" not in line]
        problem = "" if (self.folder / "ready").exists() else "its set-up failed"
        if any("pinproxy" not in via for _, _, via in requests):
            problem = "its requests bypassed the proxy"
        shutil.rmtree(self.folder)
        return {
            "works": works, "requests": len(requests), "status": status, "told": told, "problem": problem,
            "seconds": round(time.monotonic() - begun, 1),
        }  # fmt: skip

    def prepare(self):
        self.home.mkdir(parents=True)
        command = " ".join(["pinproxy", "exec", *self.options, "--", self.program.run])
        script = f"set -e\n{self.program.setup}\n: > /srv/trial/attempts/{self.folder.name}/ready\n"
        (self.folder / "command").write_text(f"{script}exec {self.program.launcher} {command}\n")
        (self.folder / "script").write_text(self.program.script.lstrip())
        for file in [self.folder, self.home]:
            shutil.chown(file, "person", "person")

    def run(self, before):
        """Returns the exit status, or "time-out"."""
        variables = environment() | {
            "SITE": f"https://{self.host}",
            "HOST": self.host,
            "PORT": "443",
            "URL": f"https://{self.host}/{self.program.file}",
            "SCRIPT": str(self.folder / "script"),
            "PYPI": "/opt/pypi/bin",
        }
        enter = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "/bin/sh", "-c", ENTER, "sh"]
        with open(self.log, "w") as output:
            process = subprocess.Popen(
                enter + [str(self.folder)] + AS_PERSON + ["/bin/sh", str(self.folder / "command")],
                env=variables, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True,
            )  # fmt: skip
            try:
                return self.wait(process, before)
            finally:
                # All other processes of its namespace end with the first, wherever they are.
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def wait(self, process, before):
        deadline = time.monotonic() + (STAYS if self.program.stays else LIMIT)
        while time.monotonic() < deadline:
            try:
                return process.wait(0.2)
            except subprocess.TimeoutExpired:
                if self.program.stays and self.has_shown(self.site.requests[self.host][before:]):
                    return "stays"
        return "stays" if self.program.stays else "time-out"

    def has_shown(self, requests):
        """Whether it has requested the picture that only the document names."""
        return any(self.document in path for _, path, _ in requests)

    def has_got(self, output, requests):
        if self.program.proof == "request" or self.has_shown(requests):
            return True
        if self.program.reads:
            return re.search(self.program.reads, output, re.MULTILINE) is not None
        wanted = self.document.encode()
        files = (file for file in self.home.rglob("*") if file.is_file() and not file.is_symlink())
        return self.document in output or any(wanted in file.read_bytes() for file in files)

    def is_well(self, status):
        expected = self.program.status
        return status == "stays" or (expected == "any" and status != "time-out") or status == expected
