"""Reads the cache tile of the status page in Chromium.

    cache_page.py URL PROFILE

Waits for the tile. Prints one JSON line with its text, how many pixels are cut off on a desktop and on a phone, and the
console's messages.
"""

import json
import sys

from chromium import Page

TILE = "[...document.querySelectorAll('#tiles .tile')].find(t => t.textContent.startsWith('Cache hits'))"
OVERFLOW = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"

page = Page(sys.argv[2])
try:
    page.open(sys.argv[1])
    page.wait(f"return !!{TILE}")
    seen = {"tile": page.run(f"return {TILE}.textContent"), "overflow": page.run(OVERFLOW)}
    page.command(
        "Emulation.setDeviceMetricsOverride", {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
    )
    seen["phone"] = page.run(OVERFLOW)
    seen["console"] = [entry["message"] for entry in page.log("browser")]
    print(json.dumps(seen), flush=True)
finally:
    page.quit()
