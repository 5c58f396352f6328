"""The server that the library's articles ask, behind TLS.

articles_origin.py --certificate chain.pem --key key.pem
"""

import argparse
import http.server
import json
import ssl

from events import say

ANSWERS = {
    "/v1/status": ("application/json", b'{"ok":true}'),
    "/v1/reports/7": ("application/json", json.dumps({"name": "Pins", "pages": 12}).encode()),
    "/v1/reports/7.pdf": ("application/pdf", b"%PDF" + bytes(300_000)),
    "/v1/search": ("application/json", b'{"count":2}'),
    "/v1/export": ("text/csv", b"pin,count\n" * 100_000),
}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        path = self.path.split("?")[0]
        if path not in ANSWERS:
            self.send_error(404)
            return
        self.answer(*ANSWERS[path])

    def do_POST(self):
        """What came goes back."""
        self.answer(self.headers["Content-Type"], self.rfile.read(int(self.headers["Content-Length"])))

    def answer(self, kind, body):
        say("request", method=self.command, target=self.path)
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


parser = argparse.ArgumentParser()
parser.add_argument("--certificate")
parser.add_argument("--key")
options = parser.parse_args()
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(options.certificate, options.key)
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
say("ready", port=server.server_port)
server.serve_forever()
