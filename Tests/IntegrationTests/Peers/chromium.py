"""Chromium without a display, driven over WebDriver (chromedriver)."""

import base64
import json
import re
import subprocess
import time
import urllib.error
import urllib.request


class Refused(Exception):
    """The browser's error message."""


def call(base, method, path, body=None):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(base + path, data, {"Content-Type": "application/json"}, method=method)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        return json.load(opener.open(request, timeout=120))["value"]
    except urllib.error.HTTPError as error:
        raise Refused(f"{method} {path}: {json.load(error)['value']['message']}") from error


def start_driver(log_path):
    """Starts a chromedriver. Returns it with its address. It takes a free port of ::1 and needs the same port of
    127.0.0.1. If that is in use, it exits and is started again."""
    for _ in range(20):
        driver = subprocess.Popen(
            ["chromedriver", "--port=0", f"--log-path={log_path}"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        said = ""
        for line in driver.stdout:
            said += line
            if listening := re.search(r"successfully on port (\d+)", line):
                return driver, f"http://127.0.0.1:{listening.group(1)}"
        driver.wait()
        if "port not available" not in said:
            break
    raise Refused(f"chromedriver ended:\n{said}")


class Page:
    """A browser with one page. The caller ends it with quit()."""

    def __init__(self, profile, *arguments):
        """- Parameter arguments: for Chromium's command line, for example its proxy."""
        self.driver, self.base = start_driver(f"{profile}.log")
        try:
            self.base += "/session/" + self.begin(profile, arguments)
        except BaseException:
            self.driver.terminate()
            self.driver.wait()
            raise

    def begin(self, profile, arguments):
        """Starts Chromium. Returns the session's ID."""
        usual = [
            "--headless=new",
            "--no-sandbox",
            "--disable-dev-shm-usage",
            "--disable-gpu",
            f"--user-data-dir={profile}",
            "--disable-background-networking",
        ]
        chrome = {
            "browserName": "chrome",
            "goog:chromeOptions": {"args": usual + list(arguments), "perfLoggingPrefs": {"enableNetwork": True}},
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
        }
        try:
            return call(self.base, "POST", "/session", {"capabilities": {"alwaysMatch": chrome}})["sessionId"]
        except Refused as error:
            with open(f"{profile}.log", errors="replace") as log:
                raise Refused(f"{error}\n{log.read()[-3000:]}") from error

    def open(self, url):
        call(self.base, "POST", "/url", {"url": url})

    def run(self, script, *arguments):
        return call(self.base, "POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def wait(self, script, *arguments, seconds=110):
        end = time.time() + seconds
        while True:
            value = self.run(script, *arguments)
            if value:
                return value
            if time.time() > end:
                text = self.run("return document.body.innerText")
                raise SystemExit(f"timed out waiting for {script}\n{text[:3000]}\n{self.log('browser')}")
            time.sleep(0.1)

    def log(self, kind):
        return call(self.base, "POST", "/se/log", {"type": kind})

    def network(self):
        """The page's network activity, as DevTools events."""
        return [json.loads(entry["message"])["message"] for entry in self.log("performance")]

    def cookies(self):
        return call(self.base, "GET", "/cookie")

    def command(self, name, parameters):
        return call(self.base, "POST", "/goog/cdp/execute", {"cmd": name, "params": parameters})

    def screenshot(self, path, whole=False):
        shot = self.command("Page.captureScreenshot", {"format": "png", "captureBeyondViewport": whole})
        with open(path, "wb") as file:
            file.write(base64.b64decode(shot["data"]))

    def quit(self):
        try:
            call(self.base, "DELETE", "")
        finally:
            self.driver.terminate()
            self.driver.wait()
