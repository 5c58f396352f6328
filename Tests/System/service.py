"""The service in use: installed, reloaded, restarted, upgraded, watched."""

import json

import machine as machines
from steps import (
    PROXIED,
    RESTARTS,
    SECURE,
    STATE,
    URL,
    an_origin,
    case,
    contains,
    equal,
    events,
    main_process,
    pins,
    properties,
    proxy_process,
    served,
    under_load,
)


@case
def installing_starts_the_service_on_loopback(machine):
    machine("apt-get install --yes --quiet --no-install-recommends /root/pinproxy.deb", check=True, timeout=300)
    equal(machine("systemctl is-active pinproxy").stdout, "active\n")
    equal(machine("systemctl is-enabled pinproxy").stdout, "enabled\n")
    addresses = {line.split()[3] for line in machine("ss -Hltnp | grep pinproxy", check=True).stdout.splitlines()}
    equal(addresses, {"127.0.0.1:7467", "127.0.0.1:7468"}, "listens on")
    equal(machine("curl -sf http://127.0.0.1:7468/healthz", check=True).stdout, '{"status":"alive"}')


@case
def at_rest_it_needs_little_memory(machine):
    """With the shipped configuration, before the first client."""

    def resident(process):
        return int(machine(f"grep VmRSS /proc/{process}/status", check=True).stdout.split()[1])

    def proportional(process):
        return int(machine(f"grep ^Pss: /proc/{process}/smaps_rollup", check=True).stdout.split()[1])

    proxy, main = proxy_process(machine), main_process(machine)
    machines.until("the proxy holds at most 25 MB", 20, lambda: resident(proxy) <= 25_000)
    equal(proportional(main) <= 4_000, True, f"the main process holds {proportional(main)} kB")
    return f"{resident(proxy) / 1000:.1f} MB; the main process has {proportional(main) / 1000:.1f} MB for itself"


@case
def the_authority_is_new_and_its_key_the_daemons(machine):
    equal(machine(f"stat -c '%U %a' {STATE}/authority.key", check=True).stdout, "pinproxy 600\n")
    equal(machine(f"stat -c '%U %a' {STATE}", check=True).stdout, "pinproxy 755\n")
    equal(len(events(machine, "authority.created")), 1, "authority.created")
    equal(machine("ls -A /root/.local 2>/dev/null").stdout, "")


@case
def its_readiness_is_in_the_journal(machine):
    ready, *_ = events(machine, "proxy.ready")
    equal(ready["PINPROXY_LISTEN"], "127.0.0.1:7467")
    equal(ready["PRIORITY"], "5")
    equal(ready["SYSLOG_IDENTIFIER"], "pinproxy")
    equal(ready["_SYSTEMD_UNIT"], "pinproxy.service")


@case
def a_reload_takes_up_the_configuration(machine):
    an_origin(machine)
    before = proxy_process(machine)
    machine("systemctl reload pinproxy", check=True)
    equal(len(events(machine, "config.reload")), 1, "config.reload")
    machines.until("the origin answers", 20, lambda: machine(f"curl -sf {URL}").returncode == 0)
    served(machine)
    served(machine, URL)
    equal(proxy_process(machine), before, "process after a reload")


@case
def root_checks_a_candidate_with_the_services_token(machine):
    """Like the `validate:` step of docs/fleet.md."""
    machine(
        """
        cd /etc/pinproxy
        openssl rand -hex 32 > admin.token
        chown pinproxy: admin.token
        chmod 600 admin.token
        sed 's/^  token_file: null$/  token_file: admin.token/' pinproxy.yaml > .candidate.yaml
        grep -q '^  token_file: admin.token$' .candidate.yaml
        """,
        check=True,
    )
    for command in ["check", "lint", "explain origin.test"]:
        run = machine(f"pinproxy {command} --config /etc/pinproxy/.candidate.yaml")
        if run.returncode == 78:
            raise AssertionError(f"{command}: {run.stderr}")
    machine("rm /etc/pinproxy/.candidate.yaml /etc/pinproxy/admin.token", check=True)


@case
def root_rotates_the_authority(machine):
    before = machine(f"cat {STATE}/authority.pem", check=True).stdout
    for step in ["", "--activate", "--finish"]:
        machine(f"pinproxy ca rotate {step} && systemctl reload pinproxy", check=True)
        served(machine)
    if machine(f"cat {STATE}/authority.pem", check=True).stdout == before:
        raise AssertionError("the authority is the one before")
    equal(machine(f"stat -c '%U %a' {STATE}/authority.key", check=True).stdout, "pinproxy 600\n")
    equal(machine(f"ls {STATE} | grep -c ^authority", check=True).stdout, "2\n")


@case
def a_wrong_pin_is_refused_and_found_in_the_journal(machine):
    pins(
        machine,
        "hosts:\n  - match: origin.test\n    pinning: public-key\n    pins:\n"
        "      - sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n",
    )
    machine("systemctl reload pinproxy", check=True)
    contains(machine(f"{PROXIED} {SECURE}").stdout, "502")
    [mismatch] = events(machine, "pin.mismatch")
    equal(mismatch["PINPROXY_HOST"], "origin.test")
    equal(mismatch["PRIORITY"], "4")


@case
def a_refused_reload_changes_nothing(machine):
    (machine.root / "etc/pinproxy/pins.yaml").write_text("hosts: 1\n")
    equal(machine("systemctl reload pinproxy").returncode != 0, True, "the reload fails")
    equal(machine("systemctl is-active pinproxy").stdout, "active\n")
    contains(machine(f"{PROXIED} {SECURE}").stdout, "502")
    [error] = events(machine, "config.error")
    equal(error["PRIORITY"], "3")
    contains(machine("journalctl --unit pinproxy --priority err --no-pager").stdout, "config.error")
    pins(machine, "hosts: []\n")
    machine("systemctl reload pinproxy", check=True)
    served(machine)


@case
def root_is_answered_over_the_control_socket(machine):
    status = json.loads(machine("pinproxy status --json", check=True).stdout)
    equal(isinstance(status, dict), True, "status")
    tasks = json.loads(machine("pinproxy tasks list --json", check=True).stdout)
    equal((tasks["tasks"], tasks["silent_workers"]), ([], []), "tasks")
    machine("pinproxy reload", check=True)
    equal(events(machine, "control.refused"), [])


@case
def nobody_else_is(machine):
    refused = machine("setpriv --reuid nobody --regid nogroup --clear-groups pinproxy tasks list")
    equal(refused.returncode, 1, refused.stdout)
    direct = machine(
        f"setpriv --reuid nobody --regid nogroup --clear-groups curl -sS --unix-socket {STATE}/control.sock"
        " http://localhost/tasks"
    )
    equal(direct.returncode, 7, direct.stdout)


@case
def restarts_under_load_are_noticed_by_nobody(machine):
    """The proxy that started a download finishes it, however long that takes."""
    return under_load(machine, RESTARTS)


@case
def an_upgrade_under_load_refuses_nobody_and_keeps_everything(machine):
    kept = f"cat {STATE}/authority.pem /etc/pinproxy/*.yaml | sha256sum"
    before, process = machine(kept, check=True).stdout, proxy_process(machine)
    said = under_load(machine, "dpkg --install --force-confold /root/pinproxy.deb")
    equal(machine(kept, check=True).stdout, before, "authority and configuration")
    equal(proxy_process(machine) != process, True, "another process")
    served(machine)
    return said


@case
def an_upgrade_with_a_broken_pin_file_refuses_nobody(machine):
    """The service uses the last configuration in force. It reports that until the files are fixed."""
    pins(machine, "hosts: 1\n")
    said = under_load(machine, "dpkg --install --force-confold /root/pinproxy.deb > /root/upgrade 2>&1")
    contains(machine("cat /root/upgrade").stdout, "/etc/pinproxy/pins.yaml:1:")
    contains(machine("cat /root/upgrade").stdout, "this version rejects the configuration")
    contains(machine("pinproxy status", check=True).stdout, "WARNING: the configuration was refused at the start")
    equal(machine(f"stat -c '%U %a' {STATE}/configuration.json", check=True).stdout, "pinproxy 600\n")
    [fallback] = events(machine, "config.fallback")
    equal(fallback["PRIORITY"], "3")
    served(machine)
    pins(machine, "hosts: []\n")
    machine("systemctl reload pinproxy", check=True)
    contains(machine("curl -sf http://127.0.0.1:7468/metrics", check=True).stdout, "\npinproxy_config_fallback 0\n")
    return said


@case
def the_journal_has_the_whole_access_log(machine):
    """More lines than the journal's usual limit allows."""
    before = len(events(machine, "exchange"))
    machine(f"seq 400 | xargs -P 4 -n 1 sh -c '{PROXIED} --output /dev/null {URL}?[1-30]'", check=True, timeout=300)
    equal(len(events(machine, "exchange")) - before, 12_000, "lines")


def returned(machine, before):
    """Waits until another proxy serves and the previous one is gone."""
    machines.until("another proxy runs", 30, lambda: proxy_process(machine) != before)
    machines.until("it is ready", 20, lambda: machine("systemctl is-active pinproxy").stdout == "active\n")
    machines.until("the one before is gone", 20, lambda: machine(f"test -e /proc/{before}").returncode == 1)
    served(machine)


@case
def a_killed_proxy_returns(machine):
    before = proxy_process(machine)
    machine(f"kill -KILL {before}", check=True)
    returned(machine, before)


@case
def a_killed_main_process_returns(machine):
    before = proxy_process(machine)
    machine("systemctl kill --kill-whom=main --signal=KILL pinproxy", check=True)
    returned(machine, before)


@case
def killing_all_of_it_leaves_nothing(machine):
    before = proxy_process(machine)
    machine("systemctl kill --signal=KILL pinproxy", check=True)
    returned(machine, before)


@case
def a_proxy_that_stands_still_is_restarted(machine):
    machine(
        "mkdir -p /run/systemd/system/pinproxy.service.d && printf '[Service]\nWatchdogSec=3\n' >"
        " /run/systemd/system/pinproxy.service.d/watchdog.conf && systemctl daemon-reload && systemctl restart "
        "pinproxy",
        check=True,
    )
    before = proxy_process(machine)
    machine(f"kill -STOP {before}", check=True)
    returned(machine, before)
    contains(machine("journalctl _PID=1 --unit pinproxy --no-pager").stdout, "Watchdog timeout")
    machine("rm -r /run/systemd/system/pinproxy.service.d && systemctl daemon-reload", check=True)


@case
def stopping_ends_it_cleanly(machine):
    machine("systemctl stop pinproxy", check=True)
    seen = properties(machine, "ActiveState", "Result", "ExecMainStatus")
    equal(seen, {"ActiveState": "inactive", "Result": "success", "ExecMainStatus": "0"})
    equal(machine(f"{PROXIED} {URL}").returncode, 7, "nobody listens")
    machines.until(
        "no process is left",
        20,
        lambda: machine("cat /sys/fs/cgroup/system.slice/pinproxy.service/cgroup.procs 2>/dev/null").stdout == "",
    )
