"""An origin at 127.0.0.1: HTTP on port 8080, HTTPS on 8443 with a certificate. /slow is a download of ten seconds.

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
        self.send_response(200)
        self.send_header("Content-Length", "7")
        self.end_headers()
        self.wfile.write(b"origin\n")

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


plain = Server(("127.0.0.1", 8080), Origin)
secure = Server(("127.0.0.1", 8443), Origin)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[1], sys.argv[2])
secure.socket = context.wrap_socket(secure.socket, server_side=True)
threading.Thread(target=plain.serve_forever, daemon=True).start()
secure.serve_forever()
