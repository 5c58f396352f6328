"""A page in a real Chromium through a proxy, driven over WebDriver (chromedriver).

    browser.py URL --proxy HOST:PORT --profile DIRECTORY [--screenshot FILE]

HOME has the browser's trust store (~/.pki/nssdb). Prints one JSON object: what the page is and says, and what scripts of it could do.
"""

import argparse
import base64
import json
import re
import subprocess
import urllib.request


def call(base, method, path, body=None):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(base + path, data, {"Content-Type": "application/json"}, method=method)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        return json.load(opener.open(request, timeout=60))["value"]
    except urllib.error.HTTPError as error:
        return {"error": json.load(error)["value"]["message"]}


parser = argparse.ArgumentParser()
parser.add_argument("url")
parser.add_argument("--proxy", required=True)
parser.add_argument("--profile", required=True)
parser.add_argument("--screenshot")
options = parser.parse_args()
driver = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
try:
    port = next(m.group(1) for m in (re.search(r"successfully on port (\d+)", line) for line in driver.stdout) if m)
    base = f"http://127.0.0.1:{port}"
    arguments = [
        "--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", f"--user-data-dir={options.profile}",
        f"--proxy-server=http://{options.proxy}", "--disable-background-networking",
    ]
    chrome = {
        "browserName": "chrome", "goog:chromeOptions": {"args": arguments, "perfLoggingPrefs": {"enableNetwork": True}},
        "goog:loggingPrefs": {"performance": "ALL"},
    }
    base += "/session/" + call(base, "POST", "/session", {"capabilities": {"alwaysMatch": chrome}})["sessionId"]
    opened = call(base, "POST", "/url", {"url": options.url})

    def run(script):
        return call(base, "POST", "/execute/sync", {"script": script, "args": []})

    messages = [json.loads(entry["message"])["message"] for entry in call(base, "POST", "/se/log", {"type": "performance"})]
    answers = [m["params"]["response"] for m in messages if m["method"] == "Network.responseReceived"]
    document = next((a for a in answers if a["url"] == options.url), {})
    print(json.dumps({
        "error": (opened or {}).get("error", ""), "status": document.get("status", 0),
        "security": document.get("securityState", ""), "fields": {k.lower(): v for k, v in document.get("headers", {}).items()},
        "title": run("return document.title"), "text": run("return document.body.innerText"),
        "origin": run("return self.origin"),
        "worker": run("try { return String(navigator.serviceWorker) } catch (error) { return error.name }"),
        "cookies": call(base, "GET", "/cookie"),
    }))
    if options.screenshot:
        shot = call(base, "GET", "/screenshot")
        with open(options.screenshot, "wb") as file:
            file.write(base64.b64decode(shot))
    call(base, "DELETE", "")
finally:
    driver.terminate()
    driver.wait()
