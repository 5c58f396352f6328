"""The programs of the trial: one TOML table per kind, in table/.

A program is a table with the program's name:

- run: the command, as a shell parses it. Only `pinproxy exec -- ` is put before it.
- package: Debian's packages, by default the one with the program's name; pypi: a PyPI package instead, in a virtual
  environment with its programs in $PYPI.
- file: the file at $URL on the origin (contents.py), by default document.txt, which has the document in plain text.
- setup: commands to run first, without the network; script: the contents of $SCRIPT; launcher: a command to run
  `pinproxy exec`, such as xvfb-run.
- reads: a regular expression for the output that shows a read response, if that isn't the document.
- proof: "request" for programs that need more than a document, such as a registry: the request reached the origin.
- status: the exit status, or "any" for a program that fails after reading the document.
- stays: a program that doesn't exit by itself. Its page refers to a picture with a unique name.
- remark: advice for its users, shown if the program doesn't work without.

Variables: SITE (https://HOST), HOST, PORT, URL, SCRIPT, PYPI, HOME. Everything the program writes to its home counts as
output.
"""

import dataclasses
import pathlib
import re
import tomllib

FOLDER = pathlib.Path(__file__).parent / "table"
KINDS = {
    "fetchers": "Programs that fetch, browse and play",
    "tools": "Version control, packages, containers and clouds",
    "programs": "Programs in Python",
    "python": "Python's libraries",
    "services": "Python's libraries for services",
    "pypi": "From PyPI",
    "scripts": "Perl, Ruby, PHP and Node",
    "java": "Java and what runs on it",
    "languages": "Other languages",
}


@dataclasses.dataclass
class Program:
    name: str
    kind: str
    run: str
    package: str = ""
    pypi: str = ""
    file: str = "document.txt"
    setup: str = ""
    script: str = ""
    launcher: str = ""
    reads: str = ""
    proof: str = "document"
    status: int | str = 0
    stays: bool = False
    remark: str = ""

    def __post_init__(self):
        if not self.pypi and not self.package:
            self.package = self.name

    @property
    def packages(self):
        return self.package.split()

    @property
    def label(self):
        """The name as a part of host and file names."""
        return re.sub(r"[^a-z0-9]+", "-", self.name.lower()).strip("-")


def programs(only=None):
    """All programs, or those listed by name or label, in the order of the pages."""
    found = []
    for kind in KINDS:
        rows = tomllib.loads((FOLDER / f"{kind}.toml").read_text())
        try:
            found += [Program(name=name, kind=kind, **row) for name, row in rows.items()]
        except TypeError as error:
            raise SystemExit(f"{kind}.toml: {error}") from None
    labels = [program.label for program in found]
    twice = {label for label in labels if labels.count(label) > 1}
    if twice:
        raise SystemExit(f"duplicate names: {', '.join(sorted(twice))}")
    if only:
        wanted = set(only.split(","))
        found = [program for program in found if wanted & {program.name, program.label}]
        if not found:
            raise SystemExit(f"{only} is not a program of {FOLDER}")
    return found
