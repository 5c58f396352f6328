"""An origin that wants Digest (RFC 7616, SHA-256, qop=auth) of user "ann" with password "secret", and answers with what it
got: method, path, content type, body. The nonce is new for each challenge and used once."""

import argparse
import hashlib
import http.server
import json
import re
import secrets
import ssl

REALM = "peers"
nonces = set()


def digest(*parts):
    return hashlib.sha256(":".join(parts).encode()).hexdigest()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def allowed(self):
        header = self.headers.get("Authorization", "")
        if not header.startswith("Digest "):
            return False
        given = dict(re.findall(r'(\w+)="?([^",]*)"?', header))
        if given.get("uri") != self.path or given.get("nonce") not in nonces:
            return False
        nonces.discard(given["nonce"])
        wanted = digest(
            digest("ann", REALM, "secret"), given["nonce"], given["nc"], given["cnonce"], given["qop"],
            digest(self.command, self.path))
        return wanted == given["response"]

    def answer(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        if self.allowed():
            fields = {name: self.headers.get(name) for name in ("User-Agent", "X-Client", "Content-Type")}
            text = json.dumps({"method": self.command, "path": self.path, "body": body, **fields}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
        else:
            nonce = secrets.token_hex(16)
            nonces.add(nonce)
            text = b"who are you?"
            self.send_response(401)
            self.send_header("WWW-Authenticate", f'Digest realm="{REALM}", nonce="{nonce}", qop="auth", algorithm=SHA-256')
            self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_POST = answer

    def log_message(self, *arguments):
        pass


parser = argparse.ArgumentParser()
parser.add_argument("--certificate", required=True)
parser.add_argument("--key", required=True)
options = parser.parse_args()
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(options.certificate, options.key)
server.socket = context.wrap_socket(server.socket, server_side=True)
print(json.dumps({"event": "ready", "port": server.server_address[1]}), flush=True)
server.serve_forever()
