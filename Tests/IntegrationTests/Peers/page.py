"""Tests the status page in Chromium, over WebDriver (chromedriver).

    page.py URL --profile DIRECTORY [--token TOKEN] [--axe axe.min.js] [--screenshots DIRECTORY] [--wait-for TEXT]
    [--orders]
            [--follow TITLE]

Prints one JSON line when the page shows the policy in force ({"event": "ready", "port": 0, …}), and a second one
({"event": "done", …}) once TEXT is among the refusals. That one has the page's texts, console messages, requested
hosts, complaints of axe-core, and the number of rows for entries in the document. --orders presses the buttons of the
one running task, and reports its states. --follow first follows the link of the banner with that title.
"""

import argparse
import json
import os
import re
import sys
import time

from chromium import Page
from events import say


def press_buttons(page):
    """Suspends, resumes and cancels the shown task. Returns its text at each step."""
    seen = {}
    task = "document.querySelector('#task-list > li')"
    page.wait(f"return {task} && {task}.querySelector('progress').value > 0")
    seen["progress"] = page.run(f"return {task}.querySelector('progress').value")
    seen["amount"] = page.run(f"return {task}.querySelector('.amount').textContent")
    seen["client"] = page.run(f"return {task}.querySelector('.client').textContent")
    seen["target"] = page.run(f"return {task}.querySelector('.target').textContent")
    press = (
        f"const all = [...{task}.querySelectorAll('button')];"
        "const b = all.find(b => b.textContent === arguments[0] && !b.hidden);"
        "if (b) { b.focus(); b.click(); } return !!b"
    )
    seen["suspend"] = page.run(press, "suspend")
    page.wait(f"return {task}.querySelector('.phase').textContent.startsWith('suspended')")
    seen["hidden"] = page.run(
        f"return [...{task}.querySelectorAll('button')].filter(b => b.hidden).map(b => b.textContent)"
    )
    seen["resume"] = page.run(press, "resume")
    page.wait(f"return !{task}.querySelector('.phase').textContent.startsWith('suspended')")
    seen["cancel"] = page.run(press, "cancel")
    page.wait("return document.querySelectorAll('#task-list > li').length === 0")
    # A history line in the tiles.
    page.wait("return document.querySelectorAll('#tiles svg.spark path').length >= 2")
    seen["sparks"] = page.run(
        "return [...document.querySelectorAll('#tiles svg.spark')].map(s => s.getAttribute('aria-label'))"
    )
    seen["line"] = page.run("return document.querySelector('#tiles svg.spark path:not(.area)').getAttribute('d')")
    return seen


# Elements that the Tab key stops at.
STOPS = (
    "[...document.querySelectorAll('a[href], button, input, select, summary, [tabindex]')]"
    ".filter(e => e.tabIndex >= 0 && e.checkVisibility()).length"
)
# Badges that overflow their rows.
CUT = (
    "[...document.querySelectorAll('#spacer .policy')].filter(p => p.offsetHeight > p.parentNode.clientHeight || "
    "p.scrollWidth > p.clientWidth).length"
)


def walk_by_keys(page):
    """Moves through both lists with the arrow keys. Returns the focused texts."""

    def press(key):
        for kind in ["keyDown", "keyUp"]:
            page.command("Input.dispatchKeyEvent", {"type": kind, "key": key, "code": key})

    seen = []
    for list, first in [("refusals", "#refusal-list summary"), ("entries", "#spacer button")]:
        page.run("const e = document.querySelector(arguments[0]); if (e) e.focus()", first)
        for key in ["ArrowDown", "End", "Home"]:
            press(key)
            seen.append([list, key, page.run("return document.activeElement.textContent.slice(0, 200)")])
    return seen


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("--profile", required=True)
    parser.add_argument("--token")
    parser.add_argument("--axe")
    parser.add_argument("--screenshots")
    parser.add_argument("--wait-for")
    parser.add_argument("--orders", action="store_true")
    parser.add_argument("--follow")
    options = parser.parse_args()
    page = Page(options.profile, "--no-proxy-server", "--hide-scrollbars", "--window-size=1280,1000")
    try:
        page.open(options.url)
        if options.token:
            page.wait("return !document.getElementById('token').hidden")
            page.run(
                "document.getElementById('secret').value = arguments[0]; document.querySelector('#token "
                "button').click()",
                options.token,
            )
        page.wait(
            "return !document.getElementById('content').hidden && document.getElementById('headline').textContent !== "
            "'Connecting …' && document.getElementById('headline').textContent !== 'Not connected'"
        )
        say("ready", port=0, headline=page.run("return document.getElementById('headline').textContent"))
        if options.follow:
            banner = (
                "[...document.querySelectorAll('#banners .banner')].find(b => b.textContent.startsWith(arguments[0]))"
            )
            page.wait(f"return {banner} !== undefined", options.follow)
            page.run(f"{banner}.querySelector('a').click()", options.follow)
        if options.wait_for:
            page.wait(
                "return document.getElementById('refusal-list').textContent.includes(arguments[0])", options.wait_for
            )
        orders = press_buttons(page) if options.orders else None
        result = {
            "event": "done",
            "orders": orders,
            "headline": page.run("return document.getElementById('headline').textContent"),
        }
        result["announced"] = page.run("return document.getElementById('announcer').textContent")
        result["rows"] = page.run("return document.querySelectorAll('#spacer .row').length")
        result["entries"] = page.run("return document.getElementById('entries-title').textContent")
        result["refusals"] = page.run(
            "return [...document.querySelectorAll('#refusal-list > li')].map(e => e.textContent).join('\\n')"
        )
        result["text"] = page.run("return document.getElementById('main').innerText")
        result["overflow"] = page.run(
            "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )
        result["injected"] = page.run(
            "return document.querySelectorAll('main script, main img, main iframe').length + (window.hacked ? 1 : 0)"
        )
        result["stops"] = page.run(f"return {STOPS}")
        result["cut"] = page.run(f"return {CUT}")
        result["tile"] = page.run(
            "return [...document.querySelectorAll('#tiles .tile.bad')].map(t => t.textContent).join('; ')"
        )
        result["kinds"] = page.run(
            "return [...document.querySelectorAll('#refusal-list .badge.bad')].map(b => b.textContent)"
        )
        result["months"] = page.run(
            "return [...document.querySelectorAll('#calendar > li')].map(li => li.querySelectorAll('.end').length)"
        )
        result["keys"] = walk_by_keys(page)
        # By keyboard alone: an entry's details open with Enter and close with Escape.
        result["dialog"] = page.run(
            "const b = document.querySelector('#spacer button'); if (!b) return 'none'; b.focus(); b.click(); "
            "const open = document.getElementById('entry').open, text = "
            "document.getElementById('entry-body').textContent; "
            "document.getElementById('entry').close(); return open ? text : 'closed'"
        )
        page.run(
            "const f = document.getElementById('pin-filter'); f.value = 'no-entry-is-called-so'; f.dispatchEvent(new "
            "Event('input'))"
        )
        result["filtered"] = page.run("return document.getElementById('entry-none').textContent")
        page.run("const f = document.getElementById('pin-filter'); f.value = ''; f.dispatchEvent(new Event('input'))")
        if options.axe:
            with open(options.axe) as file:
                page.command("Runtime.evaluate", {"expression": file.read()})
            found = page.command(
                "Runtime.evaluate",
                {
                    "expression": (
                        "axe.run(document).then(r => JSON.stringify(r.violations.map(v => [v.id, v.impact, "
                        "v.nodes.map(n => n.html.slice(0, 120) + ' ' + n.failureSummary).slice(0, 3)])))"
                    ),
                    "awaitPromise": True,
                    "returnByValue": True,
                },
            )
            result["violations"] = json.loads(found["result"].get("value", '[["axe did not run"]]'))
        result["console"] = [entry["message"] for entry in page.log("browser")]
        hosts = set()
        for message in page.network():
            if message["method"] == "Network.requestWillBeSent":
                # Without those of the browser's own first tab.
                asked = re.match(r"^(https?|wss?|ftp)://[^/]*", message["params"]["request"]["url"])
                if asked:
                    hosts.add(asked.group())
        result["hosts"] = sorted(hosts)
        page.command(
            "Emulation.setDeviceMetricsOverride", {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
        )
        page.run("window.dispatchEvent(new Event('resize'))")
        page.wait("return getComputedStyle(document.documentElement).getPropertyValue('--row') === '124px'")
        result["phone-cut"] = page.run(f"return {CUT}")
        result["phone-overflow"] = page.run(
            "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )
        page.command("Emulation.clearDeviceMetricsOverride", {})
        if options.screenshots:
            os.makedirs(options.screenshots, exist_ok=True)
            page.run("document.activeElement.blur(); window.scrollTo({top: 0, behavior: 'instant'})")
            time.sleep(0.3)
            page.screenshot(f"{options.screenshots}/light.png")
            page.screenshot(f"{options.screenshots}/light-whole.png", whole=True)
            page.command(
                "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}
            )
            time.sleep(0.3)
            page.screenshot(f"{options.screenshots}/dark.png")
            page.screenshot(f"{options.screenshots}/dark-whole.png", whole=True)
            page.command(
                "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": "light"}]}
            )
            page.command(
                "Emulation.setDeviceMetricsOverride",
                {"width": 390, "height": 844, "deviceScaleFactor": 1.5, "mobile": True},
            )
            page.run("window.dispatchEvent(new Event('resize'))")
            time.sleep(0.3)
            page.screenshot(f"{options.screenshots}/phone.png")
            page.screenshot(f"{options.screenshots}/phone-whole.png", whole=True)
        print(json.dumps(result), flush=True)
    finally:
        page.quit()


if __name__ == "__main__":
    sys.exit(main())
