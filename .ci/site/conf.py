"""Sphinx's configuration for `make site`, which renders the repository's Markdown unchanged with the Furo theme."""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
DAEMON = (ROOT / "Sources/Daemon/Service/ProxyDaemon.swift").read_text()

project = "pinproxy"
release = re.search(r'static let version = "(.*)"', DAEMON)[1]
html_title = f"pinproxy {release}"
# Keeps the two hyphens of options.
smartquotes = False
html_theme = "furo"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_use_index = False
html_show_sphinx = False
html_show_copyright = False
extensions = ["myst_parser"]
# The anchors that code hosts generate for headings.
myst_heading_anchors = 6
# Examples use … for omitted parts, which makes them invalid JSON or YAML.
suppress_warnings = ["misc.highlighting_failure"]
pygments_style = "default"
pygments_dark_style = "github-dark"
