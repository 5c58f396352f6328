"""Adds the man pages and the library's reference to the site.

beside.py FOLDER   rewrites the DocC archives below FOLDER to work at any base path
"""

import html
import pathlib
import re
import subprocess
import sys

HEADING = re.compile(r'<h([12]) class="S[hs]" id="[^"]*"><a [^>]*>(.*?)</a></h[12]>', re.DOTALL)
RAW = "``````{raw} html\n"


def manual(folder):
    """Renders the man pages as Markdown with embedded HTML, and their index. Links to pages of other packages go to
    Debian's."""
    names = [path.name for path in sorted(folder.glob("*.[15]"), key=lambda path: path.stem)]
    if not names:
        return {}
    pages, rows = {}, []
    for name in names:
        title = re.sub(r"\.([15])$", r"(\1)", name)
        said = re.search(r"^\.Nd (.*)", (folder / name).read_text(), re.MULTILINE)[1]
        rows.append(f"| [{title}]({name}.md) | {said.rstrip('.')} |")
        pages[f"man/{name}.md"] = f"# {title}\n{sections(folder, name)}"
    toctree = "\n".join(["```{toctree}", ":hidden:", "", *names, "```"])
    head = ["# Man pages", "", "| page | what it is about |", "|---|---|"]
    pages["man/README.md"] = "\n".join([*head, *rows, "", toctree]) + "\n"
    return pages


def sections(folder, name):
    """A man page's text with Markdown headings. The table of contents and the search need those."""
    style = "fragment,man=%N.%S.html;https://manpages.debian.org/%N.%S"
    done = subprocess.run(["mandoc", "-T", "html", "-O", style, name], cwd=folder, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"mandoc {folder / name}: {done.stderr}")
    text = re.search(r'<div class="manual-text">\n(.*)</div>\n<table class="foot">', done.stdout, re.DOTALL)[1]
    text = re.sub(r"</?section[^>]*>\n?", "", text)

    def heading(found):
        level, said = int(found[1]), " ".join(html.unescape(found[2]).split())
        return f"``````\n\n{'#' * (level + 1)} {said.capitalize() if level == 1 else said}\n\n{RAW}"

    text = RAW + HEADING.sub(heading, text) + "``````\n"
    return text.replace(f"{RAW}``````\n", "").replace(f"{RAW}\n``````\n", "")


def reference(folder):
    """The page that lists the DocC archives."""
    archives = sorted(path.parent.name for path in folder.glob("*/documentation"))
    if not archives:
        return {}
    rows = "".join(f'<li><a href="{each}/documentation/{each.lower()}/">{each}</a></li>\n' for each in archives)
    said = "Each product of the package has its own pages. They need a web server: opened from a disk they stay empty."
    return {"reference/README.md": f"# Library reference\n\n{said}\n\n{RAW}<ul>\n{rows}</ul>\n``````\n"}


def relative(archive):
    """Makes the URLs in DocC's pages relative; DocC writes them from the server's root."""
    for page in archive.rglob("*.html"):
        up = "../" * len(page.relative_to(archive).parent.parts) or "./"
        text = page.read_text().replace(
            'var baseUrl = "/"', f'var baseUrl = new URL("{up}", document.baseURI).pathname'
        )
        page.write_text(re.sub(r'(src|href)="/(?!/)', rf'\1="{up}', text))


if __name__ == "__main__":
    for archive in pathlib.Path(sys.argv[1]).iterdir():
        relative(archive)
