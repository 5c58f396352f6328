"""Generates man pages of section 5 from the comments of the shipped files.

manual.py FILE.yaml... FOLDER   writes FOLDER/FILE.yaml.5 for each

The comment at the top of a file becomes its description. Each section becomes a section of the page, as it is in the
file. The page of pins.yaml also has every key of the rules, from rules.md.
"""

import datetime
import os
import pathlib
import re
import sys

TEXTS = {
    "pinproxy.yaml": (
        "configuration of pinproxy",
        ["pinproxy 1", "pinproxy-run 1", "pinproxy-check 1", "pins.yaml 5", "systemd.exec 5", "systemd.socket 5"],
    ),
    "pins.yaml": (
        "pins of pinproxy",
        ["pinproxy 1", "pinproxy-pin 1", "pinproxy-explain 1", "pinproxy-lint 1", "pinproxy.yaml 5"],
    ),
}


def escaped(text):
    """Escapes text for a line that doesn't start with a request."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("…", "\\[u2026]").replace("–", "\\(en")
    return "\\&" + text if text[:1] in (".", "'") else text


def literal(lines):
    return [".Bd -literal -compact", *[escaped(line) for line in lines], ".Ed"]


def prose(comment):
    """The paragraphs of a comment. Indented text is literal."""
    out, block = [], []

    def end():
        if block:
            out.extend([".Bd -literal -offset indent -compact", *map(escaped, block), ".Ed"])
            block.clear()

    for line in comment:
        if line.startswith("  "):
            block.append(line[2:])
            continue
        end()
        if line.strip():
            out.append(escaped(line))
        elif out and out[-1] != ".Pp":
            out.append(".Pp")
    end()
    while out and out[-1] == ".Pp":
        out.pop()
    return out


def parts(lines):
    """The comment at the top, then the sections: (key, lines) with the key's comment."""
    end = next(index for index, line in enumerate(lines) if not line.startswith("#"))
    sections, waiting = [], []
    for line in lines[end:]:
        key = re.match(r"([a-z_]+):", line)
        if key:
            sections.append((key[1], waiting + [line]))
            waiting = []
        elif sections and (line.startswith(" ") or line.startswith("#") and "" not in waiting):
            sections[-1][1].extend(waiting + [line])
            waiting = []
        else:
            waiting.append(line)
    if any(line.strip("# ") for line in waiting):
        sys.exit(f"manual.py: these lines belong to no section: {waiting}")
    return [line[2:] if len(line) > 1 else "" for line in lines[:end]], sections


def trimmed(lines):
    while lines and not lines[0].strip():
        lines = lines[1:]
    while lines and not lines[-1].strip():
        lines = lines[:-1]
    return lines


def rules():
    """Every key of the rules, as listed in rules.md."""
    text = (pathlib.Path(__file__).parent / "rules.md").read_text()
    return text.split("\n## All keys\n", 1)[1].split("```yaml\n", 1)[1].split("```\n", 1)[0].splitlines()


def page(path):
    name = path.name
    what, related = TEXTS[name]
    comment, sections = parts(path.read_text().splitlines())
    epoch = int(os.environ.get("SOURCE_DATE_EPOCH") or path.stat().st_mtime)
    date = datetime.datetime.fromtimestamp(epoch, datetime.timezone.utc)
    out = [
        f".Dd {date:%B} {date.day}, {date.year}",
        f".Dt {name.upper()} 5",
        ".Os",
        ".Sh NAME",
        f".Nm {name}",
        f".Nd {what}",
        ".Sh SYNOPSIS",
        f".Pa /etc/pinproxy/{name}",
        ".Sh DESCRIPTION",
        *prose(comment),
        ".Pp",
        "It is YAML.",
        "Unknown keys are errors.",
        "What follows is the file as it is installed; a line that is not a comment shows",
        "a default.",
        ".Sh SETTINGS",
    ]
    for key, lines in sections:
        out += [f".Ss {key}", *literal(trimmed(lines))]
    if name == "pins.yaml":
        out += [
            ".Sh RULES",
            "Every key of",
            ".Ic session , request , response",
            "and",
            ".Ic rules .",
            "All may stand in",
            ".Ic defaults",
            "too, except",
            ".Ic base_url .",
            "Unless its comment says otherwise, a line shows the default.",
            ".Pp",
            *literal(rules()),
        ]
    out += [".Sh FILES", f".Pa /etc/pinproxy/{name} ,", ".Pa /usr/share/doc/pinproxy/", ".Sh SEE ALSO"]
    out += [f".Xr {reference}" + (" ," if reference != related[-1] else "") for reference in related]
    return "\n".join(out) + "\n"


def main(*arguments):
    *files, folder = map(pathlib.Path, arguments)
    for path in files:
        (folder / f"{path.name}.5").write_text(page(path))


if __name__ == "__main__":
    main(*sys.argv[1:])
