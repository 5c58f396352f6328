"""The programs of the trial, one table of TOML for each kind, in table/.

A program is a table whose name is the program's, with:

- run: the command, as a shell reads it. `pinproxy exec -- ` is put before it, and nothing else.
- package: Debian's packages, by default that of the program's name; pypi: one of PyPI's instead, in a virtual
  environment whose programs are in $PYPI.
- file: what $URL names on the origin (contents.py), by default document.txt, which has the document in plain text.
- setup: what is done before, without the network; script: a file that is at $SCRIPT; launcher: what executes
  `pinproxy exec` in its place, as xvfb-run.
- reads: what the program prints once it has read the answer, where that isn't the document; a regular expression.
- proof: "request" for programs that want more than a document, as a registry: it arrived at the origin.
- status: the exit status, or "any" of a program that fails after it has read the document.
- stays: a program that doesn't end by itself. Its page asks for a picture whose name it tells.
- remark: what its users should know, shown where it doesn't work without.

Variables: SITE (https://HOST), HOST, PORT, URL, SCRIPT, PYPI, HOME. Whatever the program leaves in its home counts as
its output.
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
        """Its name as a part of host names and of file names."""
        return re.sub(r"[^a-z0-9]+", "-", self.name.lower()).strip("-")


def programs(only=None):
    """All of them, or those whose name or label is named, in the order of the pages."""
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
        raise SystemExit(f"named twice: {', '.join(sorted(twice))}")
    if only:
        wanted = set(only.split(","))
        found = [program for program in found if wanted & {program.name, program.label}]
        if not found:
            raise SystemExit(f"{only} is no program of {FOLDER}")
    return found
