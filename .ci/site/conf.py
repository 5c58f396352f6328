"""Sphinx's configuration for `make site`: the Markdown of the repository as it is, in Furo."""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
DAEMON = (ROOT / "Sources/Daemon/Service/ProxyDaemon.swift").read_text()

project = "pinproxy"
release = re.search(r'static let version = "(.*)"', DAEMON)[1]
html_title = f"pinproxy {release}"
# Options keep their two hyphens.
smartquotes = False
html_theme = "furo"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_use_index = False
html_show_sphinx = False
html_show_copyright = False
extensions = ["myst_parser"]
# The anchors that code hosts give to headings.
myst_heading_anchors = 6
# Examples leave out with … what doesn't matter, which isn't JSON or YAML any more.
suppress_warnings = ["misc.highlighting_failure"]
pygments_style = "default"
pygments_dark_style = "github-dark"
