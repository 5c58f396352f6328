"""Makes docs/images: the status page of a running proxy, in Chromium.

sudo docs/pictures.py PINPROXY [--minutes N] [--images DIRECTORY] [--looks DIRECTORY]

The proxy, its servers and its clients run in separate namespaces, for --minutes before the pictures are taken. --looks
saves further pictures: the whole page, and its layout on a phone.
"""

import argparse
import base64
import hashlib
import http.server
import json
import os
import pathlib
import random
import ssl
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "Tests/IntegrationTests/Peers"))
DAY = 86400
SERVER = "198.51.100.10"
TOKEN = "0123456789abcdef0123456789abcdef"
PINNED = ["api.example.com", "pay.example.com", "login.example.com", "registry.example.net", "telemetry.example.net"]
# The pin of legacy is wrong, and mail's certificate is for another name.
NAMES = PINNED + ["legacy.example.com", "mail.example.com", "cdn.example.net"]


def openssl(directory, *arguments):
    return subprocess.run(["openssl", *arguments], cwd=directory, check=True, capture_output=True).stdout


def authority(directory):
    openssl(
        directory,
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
        "-subj",
        "/CN=Example Root",
        "-keyout",
        "root.key",
        "-out",
        "root.pem",
        "-days",
        "3650",
        "-addext",
        "keyUsage=critical,keyCertSign,cRLSign",
    )


def certify(directory, name, subject, days):
    """Issues a certificate for `subject` in NAME.pem, with its key."""
    extensions = f"subjectAltName=DNS:{subject}\nkeyUsage=critical,digitalSignature\nextendedKeyUsage=serverAuth\n"
    (directory / "extensions").write_text(extensions)
    openssl(
        directory,
        "req",
        "-new",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
        "-subj",
        f"/CN={subject}",
        "-keyout",
        f"{name}.key",
        "-out",
        f"{name}.csr",
    )
    openssl(
        directory,
        "x509",
        "-req",
        "-in",
        f"{name}.csr",
        "-CA",
        "root.pem",
        "-CAkey",
        "root.key",
        "-CAcreateserial",
        "-days",
        str(days),
        "-extfile",
        "extensions",
        "-out",
        f"{name}.pem",
    )


def pin(directory, name):
    key = openssl(directory, "x509", "-in", f"{name}.pem", "-noout", "-pubkey")
    der = subprocess.run(
        ["openssl", "pkey", "-pubin", "-outform", "DER"], input=key, check=True, capture_output=True
    ).stdout
    return "sha256/" + base64.b64encode(hashlib.sha256(der).digest()).decode()


class Answer(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        slow = self.path.startswith("/images/")
        length = 90_000_000 if slow else random.randrange(200, 9000)
        self.send_response(200)
        self.send_header("Content-Type", "application/octet-stream")
        self.send_header("Content-Length", str(length))
        self.end_headers()
        try:
            while length > 0:
                piece = min(length, 65536)
                self.wfile.write(bytes(piece))
                length -= piece
                if slow:
                    time.sleep(0.4)
        except OSError:
            self.close_connection = True

    def log_message(self, *_):
        pass


def serve(directory):
    contexts = {}
    for name in NAMES:
        contexts[name] = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        contexts[name].load_cert_chain(directory / f"{name}.pem", directory / f"{name}.key")

    def choose(connection, name, _):
        connection.context = contexts.get(name, contexts[NAMES[0]])

    first = contexts[NAMES[0]]
    first.sni_callback = choose
    server = http.server.ThreadingHTTPServer((SERVER, 443), Answer)
    server.daemon_threads = True
    server.socket = first.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    server.handle_error = lambda *_: None
    threading.Thread(target=server.serve_forever, daemon=True).start()


def configure(directory):
    now = time.time()

    def date(days):
        return time.strftime("%Y-%m-%d", time.gmtime(now + days * DAY))

    root = pin(directory, "root")
    entries = []
    for name, expires in zip(PINNED, [150, 60, 210, 320, 12]):
        entries.append(
            f"  - {{match: {name}, pinning: public-key, pins: ['{pin(directory, name)}', '{root}'], "
            f"expires: {date(expires)}}}"
        )
    unused = base64.b64encode(hashlib.sha256(b"unused").digest()).decode()
    entries += [
        f"  - {{match: legacy.example.com, pinning: public-key, pins: [sha256/{unused}]}}",
        "  - {match: mail.example.com, pinning: certificate, pins: [{file: mail.example.com.pem}]}",
        f"  - {{match: '*.bank.example.com', pinning: public-key, action: verify-tunnel, pins: ['{root}']}}",
        "  - {match: '**.cdn.example.net', action: tunnel}",
        "  - {match: '**.ads.example.net', action: deny}",
        "  - {match: backup.example.com, clients: {users: [backup]}}",
    ]
    (directory / "pins.yaml").write_text("hosts:\n" + "\n".join(entries) + "\n")
    (directory / "admin.token").write_text(TOKEN + "\n")
    (directory / "admin.token").chmod(0o600)
    (directory / "pinproxy.yaml").write_text(
        "proxy: {listen: 127.0.0.1:7467, workers: 2}\nadmin: {listen: 127.0.0.1:7468, token_file: admin.token}\n"
        "upstream: {trust: [root.pem]}\npins: pins.yaml\n"
    )
    hosts = NAMES + ["backup.example.com", "t1.ads.example.net", "t2.ads.example.net"]
    (directory / "hosts").write_text("".join(f"{SERVER} {name}\n" for name in hosts))
    # History of a year of connections.
    records = {}
    for number, name in enumerate(PINNED):
        since, count = int(now) - (365 - 40 * number) * DAY, 182_340 // (number + 1)
        used = {"since": since, "matches": count, "first": since, "last": int(now) - 600}
        records[name] = {
            "since": since,
            "accepted": count,
            "misses": 0,
            "matchesSinceMiss": count,
            "pins": {pin(directory, name): used, root: used},
        }
    state = directory / "state/pinproxy"
    state.mkdir(parents=True, mode=0o700)
    (state / "pins.json").write_text(json.dumps({"entries": records}))
    (state / "pins.json").chmod(0o600)


class Client:
    """Opens a new connection through the proxy for each request."""

    def __init__(self, directory):
        context = ssl.create_default_context(cafile=directory / "state/pinproxy/authority.pem")
        self.opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({"https": "http://127.0.0.1:7467"}),
            urllib.request.HTTPSHandler(context=context),
        )

    def ask(self, name):
        try:
            self.opener.open(f"https://{name}/v1/status", timeout=20).read()
        except (urllib.error.URLError, OSError):
            pass  # refused, as expected


def curl(directory, user, url):
    """Runs a program of another user, for the proxy to name."""
    return subprocess.Popen(
        [
            "setpriv",
            f"--reuid={user}",
            "--clear-groups",
            "curl",
            "-sS",
            "-o",
            "/dev/null",
            "--proxy",
            "http://127.0.0.1:7467",
            "--cacert",
            str(directory / "authority.pem"),
            url,
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def traffic(directory, ended):
    """Typical traffic of a machine: many allowed requests, and a few refused ones."""
    client, rng, waited = Client(directory), random.Random(7), [curl(directory, "games", "https://backup.example.com/")]
    while not ended.is_set():
        client.ask(rng.choices(PINNED, [9, 5, 3, 2, 1])[0])
        if rng.random() < 0.05:
            waited.append(curl(directory, "www-data", f"https://{rng.choice(['t1', 't2'])}.ads.example.net/pixel"))
        if rng.random() < 0.012:
            waited.append(curl(directory, "mail", "https://mail.example.com/"))
        if rng.random() < 0.02:
            waited.append(curl(directory, "www-data", "https://legacy.example.com/"))
        time.sleep(rng.expovariate(6))
    for process in waited:
        process.wait()


def take(page, path, whole=False):
    time.sleep(1.5)
    page.screenshot(str(path), whole=whole)


def look(directory, images, looks):
    from chromium import Page

    page = Page(str(directory / "profile"), "--no-proxy-server", "--hide-scrollbars", "--window-size=1280,900")

    def show(width, height, colours, section=None, phone=False):
        page.command(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": phone},
        )
        page.command("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": colours}]})
        page.run(
            "window.dispatchEvent(new Event('resize')); document.activeElement.blur();"
            "const e = arguments[0] && document.getElementById(arguments[0]);"
            "window.scrollTo({top: e ? e.getBoundingClientRect().top + scrollY - 100 : 0, behavior: 'instant'})",
            section,
        )

    try:
        page.open("http://127.0.0.1:7468/")
        page.wait("return !document.getElementById('token').hidden")
        page.run(
            "document.getElementById('secret').value = arguments[0]; document.querySelector('#token button').click()",
            TOKEN,
        )
        page.wait("return document.querySelectorAll('#task-list > li').length >= 2")
        # A minute of requests for the line in the first tile.
        page.wait("return document.querySelectorAll('#tiles svg.spark path').length >= 2")
        time.sleep(45)
        show(1280, 960, "light")
        take(page, images / "status-light.png")
        show(1280, 800, "dark", "tasks")
        take(page, images / "status-dark.png")
        if looks:
            looks.mkdir(parents=True, exist_ok=True)
            for colours in ["light", "dark"]:
                show(1280, 900, colours)
                take(page, looks / f"wide-{colours}.png", whole=True)
                show(390, 844, colours, phone=True)
                take(page, looks / f"phone-{colours}.png", whole=True)
    finally:
        page.quit()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("pinproxy", type=pathlib.Path)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--images", type=pathlib.Path, default=ROOT / "docs/images")
    parser.add_argument("--looks", type=pathlib.Path)
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if not options.inside:
        os.execvp("unshare", ["unshare", "--net", "--mount", sys.executable, *sys.argv, "--inside"])
    for command in [
        "link set lo up",
        f"addr add {SERVER}/32 dev lo",
        "link add eth0 type veth peer name router",
        "addr add 192.0.2.2/24 dev eth0",
        "link set router up",
        "link set eth0 up",
        "route add default via 192.0.2.1",
    ]:
        subprocess.run(["ip", *command.split()], check=True)
    # The page shows paths: only this process and its children see this one.
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755", "pictures", "/srv"], check=True)
    directory = pathlib.Path("/srv/pinproxy")
    directory.mkdir()
    authority(directory)
    for server in NAMES:
        certify(
            directory,
            server,
            "smtp.example.org" if server == "mail.example.com" else server,
            240 if server == "login.example.com" else 300,
        )
    configure(directory)
    serve(directory)
    environment = {
        "PATH": os.environ["PATH"],
        "XDG_STATE_HOME": str(directory / "state"),
        "CARES_HOSTS": str(directory / "hosts"),
    }
    with open(directory / "log", "wb") as log:
        proxy = subprocess.Popen(
            [options.pinproxy, "run", "--config", directory / "pinproxy.yaml"], env=environment, stdout=log, stderr=log
        )
    downloads, working, ended = [], None, threading.Event()
    try:
        end = time.time() + 60
        while b"proxy.ready" not in (directory / "log").read_bytes():
            if proxy.poll() is not None or time.time() > end:
                sys.exit((directory / "log").read_text())
            time.sleep(0.1)
        (directory / "authority.pem").write_bytes((directory / "state/pinproxy/authority.pem").read_bytes())
        downloads = [
            curl(directory, "_apt", "https://registry.example.net/images/base-12.9.img"),
            curl(directory, "backup", "https://api.example.com/images/nightly.tar"),
        ]
        working = threading.Thread(target=traffic, args=(directory, ended))
        working.start()
        ended.wait(options.minutes * 60)
        look(directory, options.images, options.looks)
    finally:
        ended.set()
        if working:
            working.join()
        for process in [*downloads, proxy]:
            process.terminate()
            process.wait()


if __name__ == "__main__":
    main()
