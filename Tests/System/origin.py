"""An origin at 127.0.0.1: HTTP on port 8080, HTTPS on 8443 with a certificate. /slow is a download of ten seconds, /xml
is XML, /fresh can be stored.

On port 8444 each TLS handshake starts a second late; http://…:8080/handshakes counts them.

origin.py CERTIFICATE KEY
"""

import http.server
import ssl
import sys
import threading
import time


class Origin(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/slow":
            return self.drip()
        if self.path == "/handshakes":
            return self.answer(b"%d\n" % Late.handshakes)
        if self.path == "/fresh":
            return self.answer(b"origin\n" * 10_000, "text/plain", "max-age=600")
        if self.path == "/xml":
            return self.answer(b"<a/>\n", "application/xml")
        self.answer(b"origin\n")

    def answer(self, body, kind=None, freshness=None):
        self.send_response(200)
        if kind:
            self.send_header("Content-Type", kind)
        if freshness:
            self.send_header("Cache-Control", freshness)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def drip(self):
        self.send_response(200)
        self.send_header("Content-Length", "100")
        self.end_headers()
        for _ in range(100):
            self.wfile.write(b".")
            time.sleep(0.1)

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 256


class Late(Server):
    handshakes = 0

    def finish_request(self, request, client_address):
        Late.handshakes += 1
        time.sleep(1)
        with context.wrap_socket(request, server_side=True) as secure:
            super().finish_request(secure, client_address)

    def handle_error(self, request, client_address):
        pass  # A client may leave during the handshake.


plain = Server(("127.0.0.1", 8080), Origin)
secure = Server(("127.0.0.1", 8443), Origin)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[1], sys.argv[2])
secure.socket = context.wrap_socket(secure.socket, server_side=True)
for server in [plain, Late(("127.0.0.1", 8444), Origin)]:
    threading.Thread(target=server.serve_forever, daemon=True).start()
secure.serve_forever()
