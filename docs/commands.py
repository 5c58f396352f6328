"""Generates pinproxy(1), the page of the whole program, from the data behind --help.

pinproxy --experimental-dump-help | commands.py FILE

swift-argument-parser's own generator makes the pages of the commands; its page of the program lists no commands.
"""

import datetime
import json
import os
import pathlib
import sys

from manual import escaped, literal

EXIT_STATUS = [
    ("0", "Done."),
    ("1", "The answer is no, or the command failed."),
    ("2", "Wrong usage."),
    ("78", "The configuration is wrong."),
]

FILES = [
    (
        "/etc/pinproxy/pinproxy.yaml",
        "The configuration: pinproxy.yaml(5). Without --config, that of the user's running proxy comes first; without "
        "both, config/pinproxy.yaml.",
    ),
    ("/etc/pinproxy/pins.yaml", "Which keys a host may present: pins.yaml(5)."),
    ("/etc/pinproxy/NAME.yaml", "The configuration of the instance pinproxy@NAME.service."),
    ("/var/lib/pinproxy", "The state directory of the service: the local authority, counts, and the control socket."),
    ("/usr/share/doc/pinproxy", "The documentation."),
    ("/usr/share/pinproxy/monitoring", "Alerts for Prometheus, and a dashboard for Grafana."),
]

ENVIRONMENT = [
    ("STATE_DIRECTORY", "The state directory, where --state-directory isn't given. systemd sets it."),
    (
        "XDG_STATE_HOME, HOME",
        "Where the state directory is without it: $XDG_STATE_HOME/pinproxy, else ~/.local/state/pinproxy.",
    ),
    ("CREDENTIALS_DIRECTORY", "The files that credential:NAME stands for. systemd sets it."),
    ("NO_COLOR", "No colour on a terminal."),
    (
        "HTTPS_PROXY, SSL_CERT_FILE, CURL_CA_BUNDLE, ...",
        "pinproxy-env(1) prints them, and pinproxy-exec(1) sets them: with them programs use the proxy and trust its "
        "authority.",
    ),
]

EXAMPLES = [
    ("Run one command through the proxy:", "pinproxy exec -- curl https://example.org/"),
    (
        "Pin a host, and put the change into force:",
        "pinproxy pin api.example.com        # compare the keys, then paste the entry into pins.yaml\n"
        "pinproxy check && pinproxy reload",
    ),
    ("Find out why a host is refused:", "pinproxy explain api.example.com"),
    (
        "Try next year's certificate before the host uses it:",
        "pinproxy explain api.example.com --chain new-chain.pem --at 2027-03-12",
    ),
    ("What the service does, and what it has refused:", "sudo pinproxy status\njournalctl -u pinproxy -p warning"),
]

RELATED = ["pinproxy.yaml 5", "pins.yaml 5", "journalctl 1", "systemd.unit 5"]


def tagged(items, width="Ds"):
    out = [f".Bl -tag -width {width}"]
    for name, text in items:
        out += [f".It {escaped(name)}", escaped(text)]
    return out + [".El"]


def visible(items):
    return [item for item in items if item.get("shouldDisplay", True)]


def listed(command, parents=()):
    """The subcommands at all levels: (name, abstract)."""
    found = []
    for below in visible(command.get("subcommands", [])):
        name = (*parents, below["commandName"])
        if name == ("help",):
            continue
        found.append((" ".join(name), below["abstract"]))
        found += listed(below, name)
    return found


def options(command):
    return [
        (
            ", ".join(("-" if name["kind"] == "short" else "--") + name["name"] for name in option["names"]),
            option["abstract"],
        )
        for option in visible(command["arguments"])
    ]


def page(program):
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    date = datetime.datetime.fromtimestamp(int(epoch), datetime.timezone.utc) if epoch else datetime.datetime.now()
    commands = listed(program)
    first_steps = [line for line in program["discussion"].splitlines() if line.startswith("  ")]
    out = [
        f".Dd {date:%B} {date.day}, {date.year}",
        ".Dt PINPROXY 1",
        ".Os",
        ".Sh NAME",
        ".Nm pinproxy",
        f".Nd {program['abstract'].rstrip('.')}",
        ".Sh SYNOPSIS",
        ".Nm",
        ".Ar command",
        ".Op Ar options",
        ".Nm",
        ".Fl -version | -help",
        ".Sh DESCRIPTION",
        ".Nm",
        "decides which keys a server may present, for every program on a machine.",
        "Programs use it through the ordinary",
        ".Ev HTTPS_PROXY",
        "variable.",
        "Each command has a page of its own:",
        ".Xr pinproxy-run 1 ,",
        "or",
        ".Ic man pinproxy run .",
        ".Pp",
        "The first five minutes:",
        *literal(first_steps),
        ".Sh COMMANDS",
        *tagged(commands, "16n"),
        ".Sh OPTIONS",
        "Every command takes",
        ".Fl -help ;",
        "those that read the configuration take",
        ".Fl -config Ar file",
        "and",
        ".Fl -state-directory Ar dir .",
        *tagged(options(program)),
        ".Sh EXIT STATUS",
        *tagged(EXIT_STATUS),
        ".Pp",
        ".Ic exec",
        "ends with the status of its command.",
        ".Sh FILES",
        *tagged(FILES),
        ".Sh ENVIRONMENT",
        *tagged(ENVIRONMENT),
        ".Sh EXAMPLES",
    ]
    for text, lines in EXAMPLES:
        out += [".Pp", text, *literal(lines.splitlines())]
    pages = [f"pinproxy-{name} 1" for name, _ in commands if " " not in name] + RELATED
    out += [".Sh SEE ALSO", *(f".Xr {name}" + (" ," if name != pages[-1] else "") for name in pages)]
    return "\n".join(out) + "\n"


pathlib.Path(sys.argv[1]).write_text(page(json.load(sys.stdin)["command"]))
