"""Collects reports, over TLS or plaintext.

    collector.py [--certificate chain.pem --key key.pem] [--answer STATUS | --silent]

Prints JSON lines: {"event": "ready", "port": N}, then a "report" event for each POST, with the body as text. --silent
accepts a report and never responds.
"""

import argparse
import http.server
import ssl
import sys
import threading

from events import say


class Collector(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        say("report", target=self.path, body=body, host=self.headers["Host"], type=self.headers["Content-Type"])
        if options.silent:
            threading.Event().wait()
        self.send_response(options.answer)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "5")
        self.end_headers()
        self.wfile.write(b"hello")

    def log_message(self, *arguments):
        pass


parser = argparse.ArgumentParser()
parser.add_argument("--certificate")
parser.add_argument("--key")
parser.add_argument("--answer", type=int, default=204)
parser.add_argument("--silent", action="store_true")
options = parser.parse_args()
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Collector)
server.daemon_threads = True
if options.certificate:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(options.certificate, options.key)
    # The handshake runs in the connection's thread, not in the accepting thread.
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
say("ready", port=server.server_address[1])
sys.exit(server.serve_forever())
