"""Opens a page in Chromium through a proxy, over WebDriver (chromedriver).

    browser.py URL --proxy [SCHEME://]HOST:PORT --profile DIRECTORY [--screenshot FILE] [--fetch URL…]

HOME has the browser's trust store (~/.pki/nssdb). Prints one JSON object: properties and text of the page, and what its
scripts can do; with --fetch also what they get from these URLs, a text or an error.
"""

import argparse
import json

from chromium import Page, Refused

parser = argparse.ArgumentParser()
parser.add_argument("url")
parser.add_argument("--proxy", required=True)
parser.add_argument("--profile", required=True)
parser.add_argument("--screenshot")
parser.add_argument("--fetch", nargs="*", default=[])
options = parser.parse_args()


def fetched(page, url):
    page.run(
        """window.fetched = "";
        fetch(arguments[0]).then(response => response.text()).then(
            text => window.fetched = text || "(nothing)", error => window.fetched = String(error))""",
        url,
    )
    return page.wait("return window.fetched")


page = Page(options.profile, f"--proxy-server={options.proxy if '://' in options.proxy else 'http://' + options.proxy}")
try:
    failure = ""
    try:
        page.open(options.url)
    except Refused as error:
        failure = str(error)
    answers = [m["params"]["response"] for m in page.network() if m["method"] == "Network.responseReceived"]
    document = next((a for a in answers if a["url"] == options.url), {})
    print(
        json.dumps(
            {
                "error": failure,
                "status": document.get("status", 0),
                "protocol": document.get("protocol", ""),
                "security": document.get("securityState", ""),
                "fields": {k.lower(): v for k, v in document.get("headers", {}).items()},
                "title": page.run("return document.title"),
                "text": page.run("return document.body.innerText"),
                "origin": page.run("return self.origin"),
                "worker": page.run(
                    "try { return String(navigator.serviceWorker) } catch (error) { return error.name }"
                ),
                "cookies": page.cookies(),
                "fetched": [fetched(page, url) for url in options.fetch],
            }
        )
    )
    if options.screenshot:
        page.screenshot(options.screenshot)
finally:
    page.quit()
