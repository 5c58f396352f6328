"""A trial under adverse conditions. Exchanges go through a release build while origin, network, name server, disk, log,
clock and the proxy itself break at random. Every byte is checked, every exchange has to be in the log once, and no
resources may remain at the end.

    soak.py --pinproxy PATH [--count N] [--seed S] [--lanes L]

Exits with 1 at any fault. A lane is one process in its own network namespace, with a proxy, an origin, a name server
and clients.
"""

import argparse
import asyncio
import logging
import os
import pathlib
import random
import selectors
import signal
import ssl
import subprocess
import sys
import tempfile
import time

from clients import Clients
from names import Names
from origin import Origin
from policy import Policy
from proxy import Proxy, die_with_parent
from trouble import Trouble, small_disk, usable_faketime, why_not

#: A lane stops after this many faults.
FAULTS = 20
ROUND = 4000
#: Every round of this number is calm: nothing is broken, and every exchange has to be right.
CALM = 5
AT_A_TIME = 64


class Lane:
    def __init__(self, options):
        self.name = f"seed {options.seed} lane {options.lane}"
        self.options = options
        self.chance = random.Random(self.name)
        self.faults = 0
        self.is_over = False

    def report(self, fault):
        self.faults += 1
        if self.faults <= FAULTS:
            print(f"FAULT {self.name}: {fault}", flush=True)

    def random(self, part):
        """Separate sources of random numbers for each part, so that they don't affect each other."""
        return random.Random(f"{self.name} {part}")

    async def run(self, folder):
        options = self.options
        uses_faketime = usable_faketime(options.pinproxy)
        if not uses_faketime:
            print("no clock steps: libfaketime isn't installed, or the program doesn't start with it", flush=True)
        policy = Policy(options.pinproxy, folder, self.random("policy"), self.report)
        proxy = Proxy(options.pinproxy, folder, policy, self.report, uses_faketime)
        origin = Origin(folder, self.random("origin"), policy, self.report)
        names = Names(self.random("names"))
        await origin.start()
        await names.start()
        trouble = Trouble(self.random("trouble"), proxy, origin, names, self.report)
        print(
            f"packets are lost by {trouble.loss[0].split()[0]}"
            if trouble.loss
            else "no lost packets: neither netem nor nftables can be used here",
            flush=True,
        )
        try:
            await proxy.start(logs_to_file=options.lane % 2 == 1)
            authority = next((folder / "disk").glob("**/authority.pem"))
            contexts = {}
            for offered in ["h2", "http/1.1"]:
                contexts[offered] = ssl.create_default_context(cafile=authority)
                contexts[offered].set_alpn_protocols([offered])
            clients = Clients(options.lane, self.random("clients"), proxy, contexts, self.report)
            # asyncio only has a weak reference to a task: the variable keeps it.
            watch = asyncio.ensure_future(clients.lateness.watch())  # noqa: F841
            await self.rounds(clients, proxy, origin, names, trouble)
            await proxy.end(signal.SIGTERM)
            clients.compare(proxy)
        finally:
            proxy.programs.stop()
        print(
            f"{self.name}: {clients.count:,} exchanges: {clients.right:,} right, {clients.refused:,} refused, "
            f"{clients.broken:,} visibly broken, {clients.left:,} left by their clients; "
            f"{clients.late.total():,} timeouts while the trial itself was late: {dict(clients.late)}; troubles "
            f"{trouble.done}; "
            f"{origin.reports:,} reports; {proxy.policy.version} bundles in {proxy.policy.looks:,} polls; "
            f"{names.asked:,} names queried; private memory in the last life {proxy.memories} KiB; "
            f"events {dict(proxy.events)}",
            flush=True,
        )
        if clients.count and clients.right < clients.count / 2:
            self.report("less than half is right")
        print(f"RESULT {clients.count} {self.faults}", flush=True)

    async def rounds(self, clients, proxy, origin, names, trouble):
        wanted = self.options.count / self.options.lanes
        number = 0
        told = time.monotonic()
        while clients.count < wanted and self.faults < FAULTS:
            number += 1
            trouble.may_kill = clients.count < wanted / 2
            is_calm = number % CALM == 1
            origin.is_calm = names.is_calm = is_calm
            befalling = None
            if is_calm:
                # Effects of earlier breakage are reset: failed addresses and names, tickets, wrong pins.
                proxy.configure()
                await trouble.reload()
                await asyncio.sleep(3)
                if (version := await proxy.policy_in_force()) != proxy.policy.version:
                    self.report(f"version {proxy.policy.version} of the policy isn't taken: {version} is in force")
            else:
                befalling = asyncio.ensure_future(trouble.befall())
            await clients.round(min(ROUND, wanted - clients.count), self.options.clients, is_calm)
            if befalling:
                befalling.cancel()
                await asyncio.wait([befalling])
                if not befalling.cancelled() and befalling.exception():
                    raise befalling.exception()
            origin.is_calm = names.is_calm = True
            await proxy.checkpoint(f"round {number}")
            # The log's lines arrive a moment later.
            await asyncio.sleep(0.3)
            clients.compare(proxy)
            if time.monotonic() - told > 60:
                told = time.monotonic()
                print(f"{self.name}: {clients.count:,} exchanges, {self.faults} faults", flush=True)


def network():
    """Sets up the network. All traffic uses the loopback, but without another link the machine counts as offline
    (docs/reachability.md). The proxy would then wait at most half a second for a name, too little for busy lanes."""
    for command in (
        "link set lo up",
        "link add up0 type veth peer name up1",
        "link set up1 up",
        "link set up0 up",
        "address add 192.0.2.1/24 dev up0",
        "route add default via 192.0.2.2",
    ):
        subprocess.run(["ip", *command.split(" ")], check=True)


def lane(options):
    """Runs one lane in its own namespaces."""
    network()
    # Failed writes to connections that the trial itself broke are not worth reporting.
    logging.getLogger("asyncio").setLevel(logging.ERROR)
    with tempfile.TemporaryDirectory(prefix="pinproxy-soak.") as name:
        folder = pathlib.Path(name)
        small_disk(folder)
        (folder / "resolv.conf").write_text("nameserver 127.0.0.1\noptions timeout:2 attempts:4\n")
        subprocess.run(["mount", "--bind", folder / "resolv.conf", "/etc/resolv.conf"], check=True)
        runner = Lane(options)
        try:
            asyncio.run(runner.run(folder))
        finally:
            subprocess.run(["umount", "--lazy", folder / "disk"], check=True)
    sys.exit(bool(runner.faults))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--pinproxy", type=os.path.abspath, required=True)
    parser.add_argument("--count", type=int, default=1_000_000)
    parser.add_argument("--seed", default=str(random.randrange(1 << 32)))
    parser.add_argument("--lanes", type=int, default=os.cpu_count())
    parser.add_argument(
        "--clients",
        type=int,
        default=AT_A_TIME,
        help="concurrent connections of a lane; use fewer if a processor is busy",
    )
    parser.add_argument("--lane", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.lane is not None:
        return lane(options)
    if reason := why_not():
        print(f"SKIP  the soak test: {reason}")
        return
    print(f"SEED={options.seed}, {options.count:,} exchanges in {options.lanes} lanes", flush=True)
    began = time.monotonic()
    lanes = [
        subprocess.Popen(
            [
                "unshare",
                "--net",
                "--mount",
                sys.executable,
                "-B",
                __file__,
                "--pinproxy",
                options.pinproxy,
                "--count",
                str(options.count),
                "--seed",
                options.seed,
                "--lanes",
                str(options.lanes),
                "--clients",
                str(options.clients),
                "--lane",
                str(number),
            ],
            stdout=subprocess.PIPE,
            text=True,
            preexec_fn=die_with_parent,
        )
        for number in range(options.lanes)
    ]
    results = [0, 0]
    selector = selectors.DefaultSelector()
    for process in lanes:
        selector.register(process.stdout, selectors.EVENT_READ)
    while selector.get_map():
        for key, _ in selector.select():
            line = key.fileobj.readline()
            if not line:
                selector.unregister(key.fileobj)
            elif line.startswith("RESULT"):
                results = [a + int(b) for a, b in zip(results, line.split()[1:])]
            else:
                print(line, end="", flush=True)
    failed = any([process.wait() for process in lanes])
    print(
        f"{results[0]:,} exchanges in {time.monotonic() - began:.0f} s, {results[1]} faults"
        + (f"; again: make soak COUNT={options.count} SEED={options.seed} LANES={options.lanes}" if failed else "")
    )
    sys.exit(failed)


if __name__ == "__main__":
    main()
