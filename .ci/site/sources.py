"""Collects the repository's Markdown pages for the site, and rewrites their links.

sources.py FOLDER   writes the pages to FOLDER, with the repository's layout
sources.py --check  reports links to files or headings that don't exist

A link to a file that isn't Markdown gets a page that shows the file; a link to a folder, a page that lists it.
"""

import os
import pathlib
import re
import sys

from beside import manual, reference

ROOT = pathlib.Path(__file__).resolve().parents[2]

# The sidebar: the reader's tasks, and the pages for each. Sphinx rejects a page that is missing here.
NAVIGATION = {
    "Start": ["Overview <self>", "docs/README"],
    "Pin hosts": ["docs/pinning", "docs/rules", "docs/verify-tunnel", "docs/cache", "docs/bundles"],
    "Make programs use it": [
        "docs/clients",
        "docs/exec",
        "docs/programs",
        "docs/identity",
        "docs/http2",
        "docs/troubleshooting",
    ],
    "Run it as a service": [
        "docs/operations",
        "docs/addresses",
        "docs/reachability",
        "docs/state",
        "docs/scaling",
        "docs/fleet",
    ],
    "See what it does": ["docs/admin", "docs/incidents", "docs/tasks", "docs/log", "docs/metrics"],
    "Judge its security": ["docs/SECURITY", "docs/interception"],
    "Look something up": ["man/README", "docs/library", "reference/README", "docs/CHANGELOG"],
    "Work on it": ["docs/CONTRIBUTING", "docs/architecture", "docs/testing", "Benchmarks/README"],
}
LANGUAGES = {".yml": "yaml", ".yaml": "yaml", ".json": "json", ".conf": "nginx", ".service": "ini", ".socket": "ini"}
# Left out if they haven't been built.
OPTIONAL = ("man/", "reference/")
# Marks a page that is in neither the sidebar nor the search index.
HIDDEN = "---\norphan: true\nnosearch: true\n---\n"
IMAGES = {".png", ".svg", ".jpg"}
LINK = re.compile(r"(?<=\]\()(?![a-z]+:)([^)#\s]*)(#[^)\s]*)?(?=\))")
FENCE = re.compile(r"\s*(```+|~~~+)")


def prose(text):
    """Yields each line with its number and whether it is outside code blocks."""
    fence = None
    for number, line in enumerate(text.splitlines(), 1):
        mark = FENCE.match(line)
        yield number, line, fence is None and not mark
        if mark and (fence is None or line.strip() == fence):
            fence = mark[1] if fence is None else None


def anchors(text):
    """The anchors that code hosts generate; a repeated heading gets a number."""
    found = set()
    for _, line, outside in prose(text):
        if outside and line.startswith("#"):
            name = re.sub(r"[^\w\- ]", "", line.lstrip("# ").lower()).replace(" ", "-")
            found.add(next(each for n in range(len(found) + 1) if (each := f"{name}-{n}" if n else name) not in found))
    return found


def shown(path):
    """A page with the text of a file, or with a listing of a folder."""
    name = path.relative_to(ROOT)
    if path.is_dir():
        files = sorted(each.name for each in path.iterdir() if each.is_file())
        return f"{HIDDEN}# {name}/\n\n" + "".join(f"- [{file}]({file})\n" for file in files)
    language = LANGUAGES.get(path.suffix, "sh" if path.read_bytes().startswith(b"#!") else "text")
    return f"{HIDDEN}# {name}\n\n`````{language}\n{path.read_text().rstrip()}\n`````\n"


class Pages:
    def __init__(self):
        self.texts = {}
        self.images = set()
        self.broken = []
        self.waiting = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
        while self.waiting:
            path = self.waiting.pop()
            if self.place(path) not in self.texts:
                markdown = path.suffix == ".md"
                self.texts[self.place(path)] = self.linked(path, path.read_text() if markdown else shown(path))

    def place(self, path):
        """The path of a file's page. README.md is the site's first page."""
        name = path.relative_to(ROOT).as_posix()
        if path == ROOT / "README.md":
            return "index.md"
        return f"{name}/README.md" if path.is_dir() else name if path.suffix == ".md" else f"{name}.md"

    def linked(self, path, text):
        """The text of a page, with links rewritten to the site's paths."""
        folder = path if path.is_dir() else path.parent
        lines = []
        for number, line, outside in prose(text):
            lines.append(LINK.sub(lambda link, at=number: self.link(path, folder, at, link), line) if outside else line)
        return "\n".join(lines) + "\n"

    def link(self, path, folder, number, link):
        name, anchor = link[1], (link[2] or "")[1:]
        target = pathlib.Path(os.path.normpath(folder / name)) if name else path
        if target.is_dir() and (target / "README.md").exists():
            target /= "README.md"
        if not (target.exists() and target.is_relative_to(ROOT)) or (
            anchor and target.suffix == ".md" and anchor not in anchors(target.read_text())
        ):
            self.broken.append(f"{path.relative_to(ROOT)}:{number}: {link[0]} doesn't exist")
            return link[0]
        if target.suffix in IMAGES:
            self.images.add(target)
            return link[0]
        if not name:
            return link[0]
        self.waiting.append(target)
        there = os.path.relpath(self.place(target), os.path.dirname(self.place(path)) or ".")
        return there + (link[2] or "")


def contents(pages):
    """The sidebar, as hidden tables of contents on the first page."""
    out = []
    for caption, names in NAVIGATION.items():
        listed = [name for name in names if not name.startswith(OPTIONAL) or f"{name}.md" in pages]
        out += ["", "```{toctree}", ":hidden:", f":caption: {caption}", "", *listed, "```"]
    return "\n".join(out) + "\n"


def main(folder):
    pages = Pages()
    if pages.broken:
        sys.exit("\n".join(pages.broken))
    if folder == "--check":
        return
    texts = pages.texts | manual(ROOT / ".build/manual/pages") | reference(ROOT / ".build/site/reference")
    texts["index.md"] += contents(texts)
    for name, text in texts.items():
        path = pathlib.Path(folder, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    for image in pages.images:
        path = folder / image.relative_to(ROOT)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(image.read_bytes())


if __name__ == "__main__":
    main(sys.argv[1])
