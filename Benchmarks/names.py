"""Runs a name server, so that names below the benchmark's host resolve by DNS. A long hosts file would be
unrealistic."""

import os
import pathlib
import socket
import subprocess
import time

from peers import HOST, TUNNELLED


class Names:
    """dnsmasq with every name below the host. `wrapper` starts a program that queries only it."""

    def __init__(self, bench):
        # resolv.conf can't specify a port, so a separate address keeps runs apart.
        self.address = f"127.{60 + os.getpid() // 65536 % 60}.{os.getpid() // 256 % 256}.{os.getpid() % 254 + 1}"
        self.process = subprocess.Popen(
            [
                "dnsmasq",
                "--keep-in-foreground",
                "--no-resolv",
                "--no-hosts",
                "--no-poll",
                "--bind-interfaces",
                f"--listen-address={self.address}",
                "--port=53",
                "--pid-file=",
                "--user=root",
                "--local-ttl=600",
                "--max-ttl=600",
                "--dns-forward-max=1000",
                f"--address=/{HOST}/127.0.0.1",
                f"--address=/{TUNNELLED}/127.0.0.1",
                "--local=/test/",
            ],
            stdout=subprocess.DEVNULL,
            stderr=open(bench.path("dnsmasq.log"), "wb"),
        )
        self.file = bench.write("resolv.conf", f"nameserver {self.address}\n")
        self._await(bench)

    def _await(self, bench):
        # A query for localhost's address (RFC 1035 section 4).
        question = b"\1\2\1\0\0\1\0\0\0\0\0\0\6origin\4test\0\0\1\0\1"
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
            client.settimeout(0.2)
            client.connect((self.address, 53))
            deadline = time.monotonic() + 10
            while time.monotonic() < deadline:
                try:
                    client.send(question)
                    if client.recv(512)[:2] == b"\1\2":
                        return
                except OSError:
                    if self.process.poll() is not None:
                        break
                    time.sleep(0.02)
        raise SystemExit(f"dnsmasq did not start: {pathlib.Path(bench.path('dnsmasq.log')).read_text()}")

    @property
    def wrapper(self):
        """A command prefix. The program sees the run's resolv.conf, in a mount namespace of its own."""
        return ("unshare", "--mount", "sh", "-c", f'mount --bind "{self.file}" /etc/resolv.conf && exec "$@"', "sh")

    def stop(self):
        self.process.terminate()
        self.process.wait()
