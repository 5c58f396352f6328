"""An origin that requires Digest (RFC 7616, SHA-256, qop=auth) of user "ann" with password "secret". It echoes method,
path, content type and body. The nonce is new for each challenge and used once, except below

    /counted/   a nonce may be used again, each count once
    /session/   the same, with SHA-256-sess
    /next/      each response names the next nonce
    /sess-next/ the same, with SHA-256-sess, whose secret is that of the first nonces (RFC 7616 section 3.4.2)
    /stale/     every nonce is stale

Below /basic/ it requires Basic. If the path contains /other/, the password is "other"."""

import argparse
import base64
import hashlib
import http.server
import json
import re
import secrets
import ssl
import threading

from events import say

REALM = "peers"
nonces = set()
sessions = {}
used = set()
lock = threading.Lock()


def digest(*parts):
    return hashlib.sha256(":".join(parts).encode()).hexdigest()


def new_nonce():
    nonce = secrets.token_hex(16)
    with lock:
        nonces.add(nonce)
    return nonce


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def allowed(self):
        header = self.headers.get("Authorization", "")
        say("asked", path=self.path, scheme=header.split(" ")[0])
        if self.path.startswith("/basic/"):
            return header == "Basic " + base64.b64encode(f"ann:{self.password()}".encode()).decode()
        if not header.startswith("Digest ") or self.path.startswith("/stale/"):
            return False
        given = dict(re.findall(r'(\w+)="?([^",]*)"?', header))
        use = (given.get("nonce"), given.get("nc"))
        with lock:
            if given.get("uri") != self.path or given.get("nonce") not in nonces:
                return False
            if not self.path.startswith(("/counted/", "/session/")):
                nonces.discard(given["nonce"])
            is_new = use not in used
            used.add(use)
        if not is_new:
            say("replayed", use=use)
            return False
        secret = digest("ann", REALM, self.password())
        if self.path.startswith("/session/"):
            secret = digest(secret, given["nonce"], given["cnonce"])
        if self.path.startswith("/sess-next/"):
            with lock:
                self.session = sessions.setdefault(given["nonce"], (given["nonce"], given["cnonce"]))
            secret = digest(secret, *self.session)
        wanted = digest(
            secret, given["nonce"], given["nc"], given["cnonce"], given["qop"], digest(self.command, self.path)
        )
        return wanted == given["response"]

    def password(self):
        return "other" if "/other/" in self.path else "secret"

    def challenge(self):
        if self.path.startswith("/basic/"):
            return f'Basic realm="{REALM}"'
        session = "-sess" if self.path.startswith(("/session/", "/sess-next/")) else ""
        stale = ", stale=true" if self.path.startswith("/stale/") else ""
        return f'Digest realm="{REALM}", nonce="{new_nonce()}", qop="auth", algorithm=SHA-256{session}{stale}'

    def answer(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        if self.allowed():
            fields = {name: self.headers.get(name) for name in ("User-Agent", "X-Client", "Content-Type")}
            text = json.dumps({"method": self.command, "path": self.path, "body": body, **fields}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            if self.path.startswith(("/next/", "/sess-next/")):
                nonce = new_nonce()
                if self.path.startswith("/sess-next/"):
                    with lock:
                        sessions[nonce] = self.session
                self.send_header("Authentication-Info", f'nextnonce="{nonce}"')
        else:
            text = b"who are you?"
            self.send_response(401)
            self.send_header("WWW-Authenticate", self.challenge())
            self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_POST = do_PUT = answer

    def log_message(self, *arguments):
        pass


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 256


parser = argparse.ArgumentParser()
parser.add_argument("--certificate")
parser.add_argument("--key")
options = parser.parse_args()
server = Server(("127.0.0.1", 0), Handler)
if options.certificate:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(options.certificate, options.key)
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
say("ready", port=server.server_address[1])
server.serve_forever()
