"""Too little memory and too few threads: load is shed, and the service keeps running."""

import machine as machines
from steps import (
    PROXIED,
    SECURE,
    STATE,
    URL,
    Skipped,
    case,
    contains,
    drop_in,
    equal,
    events,
    pins,
    properties,
    proxy_process,
    said,
    served,
    under_load,
)

IDLE = f"python3 /root/idle.py 7467 origin.test:8443 {STATE}/authority.pem 3000"
LOAD = f"python3 /root/load.py 7467 {URL} {SECURE} {STATE}/authority.pem"
REQUESTS = f"for time in $(seq 20); do {PROXIED} --output /dev/null {URL} {SECURE} || exit 1; done"


def metric(machine, name):
    """The service's metric, or None if it doesn't exist."""
    lines = machine("curl -sf http://127.0.0.1:7468/metrics", check=True).stdout.splitlines()
    return next((float(line.split()[-1]) for line in lines if line.startswith(f"{name} ")), None)


def killed(machine):
    """How many processes of the service the kernel's OOM killer has ended."""
    group = "system.slice/pinproxy.service"
    files = f"/sys/fs/cgroup/memory/{group}/memory.oom_control /sys/fs/cgroup/{group}/memory.events"
    return machine(f"cat {files} 2>/dev/null | grep '^oom_kill '").stdout.split()[-1]


def limits(machine, name):
    """Skips the case unless systemd has control groups of that kind here."""
    if not properties(machine, name)[name].isdigit():
        raise Skipped(f"this machine's systemd can't limit anything ({name} isn't known)")


@case
def three_thousand_idle_clients_and_a_load_in_64_megabytes_end_nothing(machine):
    with drop_in(machine, "[Service]\\nMemoryMax=64M\\n"):
        machine("systemctl start pinproxy", check=True)
        limits(machine, "MemoryCurrent")
        process, lines = proxy_process(machine), len(events(machine, "memory.limit"))
        idle = machine.start(IDLE)
        settled = idle.stdout.readline().strip()
        load = machine.start(LOAD)
        equal(load.stdout.readline(), "in flight\n", "load")
        # Some are served anyway, since idle clients are closed.
        machines.until("a client is served", 60, lambda: machine(f"{PROXIED} {SECURE}").stdout == "origin\n")
        loaded = load.communicate()[0].strip()
        left = idle.communicate()[0].strip()
        seen = proxy_process(machine), properties(machine, "NRestarts")["NRestarts"], killed(machine)
        equal(seen, (process, "0", "0"), "the process, its restarts, and how many were killed")
        equal(events(machine, "memory.limit")[lines]["PRIORITY"], "4", "the line of the shortage")
        machines.until("there is memory again", 60, lambda: metric(machine, "pinproxy_memory_pressure") == 0)
        after = under_load(machine, REQUESTS)
        equal(proxy_process(machine), process)
    machine("systemctl start pinproxy", check=True)
    return f"clients: {settled}, then {left}; beside them {loaded}; afterwards {after}"


@case
def without_another_thread_what_needs_one_is_refused_and_all_else_served(machine):
    pins(machine, "hosts:\n  - match: origin.test\n    rules: [{path: /xml, response: {serializer: xml}}]\n")
    machine("systemctl restart pinproxy", check=True)
    limits(machine, "TasksCurrent")
    process, lines = proxy_process(machine), len(events(machine, "decoder.unavailable"))
    judged = f"{PROXIED} --http1.1 --include {SECURE}xml"
    # Tasks of the proxy and its main process.
    tasks = 1 + int(machine(f"ls /proc/{process}/task | wc -l", check=True).stdout)
    machine(f"systemctl set-property --runtime pinproxy TasksMax={tasks}", check=True)
    try:
        loaded = under_load(machine, f"for time in $(seq 20); do {judged} | grep -q '^HTTP/1.1 503 ' || exit 1; done")
        contains(machine(judged).stdout, "Retry-After: ")
        contains(events(machine, "decoder.unavailable")[lines]["PINPROXY_CAUSE"], "Resource temporarily unavailable")
        equal(metric(machine, 'pinproxy_decoder_starts_total{result="failed"}') > 0, True, "the metric")
    finally:
        machine("systemctl revert pinproxy && systemctl set-property --runtime pinproxy TasksMax=infinity", check=True)
    machines.until("XML is judged again", 30, lambda: "HTTP/1.1 200 OK" in machine(judged).stdout)
    equal((proxy_process(machine), properties(machine, "NRestarts")["NRestarts"]), (process, "0"))
    machine("systemctl revert pinproxy", check=True)
    pins(machine, "hosts: []\n")
    return loaded


@case
def a_start_without_enough_threads_names_the_setting(machine):
    # With one task even systemd 257 can't create the unit's directories.
    for tasks in [2, 5]:
        with drop_in(machine, f"[Service]\\nTasksMax={tasks}\\n"):
            if machine("systemctl start pinproxy").returncode == 0:
                limits(machine, "TasksCurrent")
                raise AssertionError(f"it starts with {tasks} tasks")
            said(machine, "TasksMax=")
    machine("systemctl start pinproxy", check=True)
    served(machine)
    machine("systemctl stop pinproxy", check=True)
