"""Writes docs/programs.md from the results of the trial."""

import table

HEAD = """# Programs that work with one command

{works} of {all} programs work with `pinproxy exec -- PROGRAM` as an ordinary user ({after} of them, browsers, after
`pinproxy ca install --nss`), {transparent} more with `pinproxy exec --transparent -- PROGRAM`, and {none} with neither.
With a wrong pin {passed} reached the origin.

`make test-programs` writes this page ([testing.md](testing.md#the-programs-of-a-whole-system)). Each program fetches a
document by HTTPS on Debian 12, with only the settings of `pinproxy exec`. Only the proxy knows the origin's address and
authority. A program that needs more than a document, such as a registry, works if its request was answered. Programs
that work with `exec` aren't tested with `--transparent`. [clients.md](clients.md#what-each-program-needs) says what to
set for programs that don't work.
"""


def reason(program, result):
    """Why the program doesn't work with plain `exec`, by what was reported."""
    attempt = result["exec"]
    if attempt["works"]:
        return program.remark if needs_more(program) else ""
    told = " ".join(attempt["told"])
    if attempt["problem"]:
        cause = attempt["problem"]
    elif "sent nothing through the proxy" in told:
        cause = "sends nothing through the proxy"
    elif "trust the proxy's authority" in told or "ended TLS" in told or "does not trust" in told:
        cause = "doesn't trust the proxy's authority"
    elif "TLS spoken to a plain port" in told:
        cause = "speaks TLS with the proxy"
    elif attempt["status"] == "time-out":
        cause = "doesn't exit in time"
    elif attempt["requests"]:
        cause = "can't use the answer"
    elif told:
        cause = (
            attempt["told"][0]
            .partition(". Details: run pinproxy explain")[0]
            .removeprefix(f"pinproxy: {program.label}.right.test: ")
        )
    else:
        cause = "fails silently"
    return f"{cause}: {program.remark}" if program.remark else cause


def needs_more(program):
    """Whether more than the one command was needed."""
    return program.remark.startswith("after ")


def works(result):
    if result["exec"]["works"]:
        return "`exec`"
    return "`exec --transparent`" if result.get("transparent", {}).get("works") else "no"


def counts(programs, results):
    found = [works(results[program.label]) for program in programs]
    after = [program for program in programs if needs_more(program) and results[program.label]["exec"]["works"]]
    return {
        "after": len(after),
        "all": len(found),
        "works": found.count("`exec`"),
        "transparent": found.count("`exec --transparent`"),
        "none": found.count("no"),
        "passed": sum(results[program.label]["passed"] for program in programs) or "none",
    }


def summary(programs, results):
    lines = []
    for program in programs:
        result = results[program.label]
        if works(result) != "`exec`":
            lines.append(f"{program.name}: {works(result)} ({reason(program, result)})")
    number = counts(programs, results)
    lines.append(
        "{works} of {all} work under exec, {transparent} more with --transparent, {none} with neither; past a wrong "
        "pin: {passed}".format(**number)
    )
    return "\n".join(lines)


def text(programs, results):
    parts = [HEAD.format(**counts(programs, results))]
    for kind, title in table.KINDS.items():
        rows = [program for program in programs if program.kind == kind]
        parts.append(f"\n## {title}\n\n| program | version | works with | why not with `exec` |\n|---|---|---|---|\n")
        for program in rows:
            result = results[program.label]
            why = reason(program, result) or "–"
            parts.append(f"| `{program.name}` | {result['version']} | {works(result)} | {why} |\n")
    return "".join(parts)
