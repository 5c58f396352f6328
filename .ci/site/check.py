"""Checks the built site: internal links resolve, and pages load nothing from other hosts.

check.py FOLDER   prints each problem with its page
"""

import html.parser
import pathlib
import sys
import urllib.parse

LOADED = {"script", "img", "iframe", "source", "audio", "video", "embed"}


class Page(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.names, self.links, self.loads = {""}, [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.names |= {given[name] for name in ("id", "name") if given.get(name)}
        if tag in LOADED or tag == "link" and given.get("rel") != "canonical":
            self.loads += [given[name] for name in ("src", "href") if given.get(name)]
        elif given.get("href"):
            self.links.append(given["href"])


def problems(folder):
    pages = {path: Page(path.read_text()) for path in sorted(folder.rglob("*.html"))}
    for path, page in pages.items():
        for link in page.links + page.loads:
            parts = urllib.parse.urlsplit(link)
            if parts.scheme == "data" or (parts.scheme or parts.netloc) and link not in page.loads:
                continue
            target = (path.parent / urllib.parse.unquote(parts.path)).resolve() if parts.path else path
            if parts.scheme or parts.netloc:
                yield f"{path}: loads {link} from another host"
            elif parts.path.startswith("/"):
                yield f"{path}: {link} is not relative"
            elif not target.exists():
                yield f"{path}: {link} doesn't exist"
            elif target in pages and urllib.parse.unquote(parts.fragment) not in pages[target].names:
                yield f"{path}: {link} names no place there"
    for path in folder.rglob("*.css"):
        if "url(http" in path.read_text() or "url(//" in path.read_text():
            yield f"{path}: loads something from another host"


found = list(problems(pathlib.Path(sys.argv[1]).resolve()))
sys.exit("\n".join(found) or None)
