"""Causes failures around the proxy while clients send requests. They affect the network, the disk, the clock and the
log's reader; reloads and SIGKILL are among them."""

import asyncio
import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import time

from proxy import CLOCK, FAKETIME


#: The commands that start and stop packet loss. Kernels without netem use an nftables rule, without delay and
#: reordering.
NETEM = ("tc qdisc add dev lo root netem delay 1ms 1ms loss 0.5% reorder 5% 50%", "tc qdisc del dev lo root")
NFTABLES = (
    "nft add table inet soak && nft add chain inet soak in '{ type filter hook input priority 0; }' && "
    "nft add rule inet soak in numgen random mod 1000 '<' 5 drop",
    "nft delete table inet soak",
)


def shell(command):
    return subprocess.run(["sh", "-c", command], capture_output=True).returncode == 0


class Trouble:
    def __init__(self, chance, proxy, origin, names, report):
        self.chance, self.proxy, self.origin, self.names, self.report = chance, proxy, origin, names, report
        self.done = {}
        #: In the second half the proxy isn't killed any more: only a long life shows whether its memory is stable.
        self.may_kill = True
        #: None: this kernel can't drop packets.
        self.loss = next((way for way in (NETEM, NFTABLES) if shell(way[0]) and shell(way[1])), None)

    def kinds(self):
        kinds = ["reload", "reload", "pins", "policy", "policy", "full", "full", "network", "network"]
        if self.may_kill:
            kinds.append("kill")
        if self.proxy.log_file is None:
            kinds.append("reader")
        if self.proxy.uses_faketime:
            kinds.append("clock")
        if not self.loss:
            kinds = [kind for kind in kinds if kind != "network"]
        return kinds

    async def befall(self):
        """Causes one trouble after the other until it is cancelled, then restores everything."""
        try:
            while True:
                await asyncio.sleep(self.chance.uniform(0.2, 2))
                kind = self.chance.choice(self.kinds())
                self.done[kind] = self.done.get(kind, 0) + 1
                # A started action is completed even if this is cancelled.
                action = asyncio.ensure_future(getattr(self, kind)())
                try:
                    await asyncio.shield(action)
                except asyncio.CancelledError:
                    await action
                    raise
        finally:
            (self.proxy.folder / "clock").write_text(CLOCK)
            self.proxy.pins(True)

    async def reload(self):
        try:
            self.proxy.process.send_signal(signal.SIGHUP)
        except OSError as error:
            self.report(f"SIGHUP: {error}")

    async def pins(self):
        self.proxy.pins(not self.proxy.turn_is_right)
        await self.reload()

    async def policy(self):
        """Publishes another bundle, or serves the last one again, and has the proxy poll."""
        if self.chance.random() < 0.7:
            is_right = self.chance.random() < 0.5
            await asyncio.to_thread(self.proxy.policy.publish, self.proxy.pin, is_right)
        self.proxy.configure()
        await self.reload()

    async def kill(self):
        await self.proxy.end(signal.SIGKILL)
        await self.proxy.start(self.chance.random() < 0.5)

    async def network(self):
        begin, end = self.loss
        shell(begin)
        try:
            await asyncio.sleep(self.chance.uniform(1, 5))
        finally:
            shell(end)

    async def full(self):
        """Fills the disk of the state, and of the log if that is a file."""
        ballast = self.proxy.folder / "disk" / "ballast"
        with self.proxy.gap() if self.proxy.log_file else contextlib.nullcontext():
            with open(ballast, "wb", buffering=0) as file:
                end = time.monotonic() + self.chance.uniform(0.5, 3)
                while time.monotonic() < end:
                    try:
                        while True:
                            file.write(bytes(4096))
                    except OSError:
                        await asyncio.sleep(0.05)
            ballast.unlink()

    async def reader(self):
        """Stops reading the log for a while."""
        loop, proxy = asyncio.get_running_loop(), self.proxy
        with proxy.gap():
            loop.remove_reader(proxy.pipe)
            await asyncio.sleep(self.chance.uniform(0.5, 4))
            loop.add_reader(proxy.pipe, proxy.read_pipe)

    async def clock(self):
        """Changes the clock. The proxy notices within a second, the time that faketime caches."""
        (self.proxy.folder / "clock").write_text(self.chance.choice(["+10m", "+50m", "+1797s", "+32m", CLOCK]))


def usable_faketime(executable):
    """Whether the program starts with faketime."""
    if FAKETIME is None:
        return False
    run = subprocess.run(
        [executable, "--version"],
        capture_output=True,
        env={"LD_PRELOAD": str(FAKETIME), "FAKETIME": "+1d", "PATH": os.environ["PATH"]},
    )
    return run.returncode == 0


def small_disk(folder):
    """Mounts a file system of 8 MiB at the folder `disk`."""
    disk = pathlib.Path(folder) / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m,mode=0700", "tmpfs", disk], check=True)
    return disk


def why_not():
    """Why the trial can't run on this machine; None if it can."""
    for program in ("unshare", "ip", "tc", "openssl"):
        if not shutil.which(program):
            return f"{program} isn't installed"
    run = subprocess.run(
        ["unshare", "--net", "--mount", "ip", "link", "set", "lo", "up"], capture_output=True, text=True
    )
    return None if run.returncode == 0 else f"no namespaces can be made: {run.stderr.strip()}"
