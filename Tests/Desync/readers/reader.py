"""Python's http.server as an origin: records each request, and answers with digests. The server parses heads and leaves
the length of a body to programs like this one, which is as trusting as most."""

import hashlib
import http.server
import os
import socketserver
import ssl
import sys


def digest(data):
    return hashlib.md5(data).hexdigest()[:8]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def __getattr__(self, name):
        if name.startswith("do_"):
            return self.answer
        raise AttributeError(name)

    def chunks(self):
        body = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            data = self.rfile.read(size)
            if len(data) < size or not self.rfile.readline():
                raise ConnectionError
            body += data
        while True:
            line = self.rfile.readline()
            if not line:
                raise ConnectionError
            if not line.strip():
                return body

    def answer(self):
        try:
            if "chunked" in self.headers.get("Transfer-Encoding", "").lower():
                body = self.chunks()
            else:
                length = int(self.headers.get("Content-Length", 0))
                body = self.rfile.read(length)
                if len(body) < length:
                    raise ConnectionError
        except (ValueError, ConnectionError):
            self.close_connection = True
            return
        method, target = self.command.encode("latin-1"), self.path.encode("latin-1")
        os.write(1, f"{method.hex()} {target.hex()} {len(body)} {digest(body)}\n".encode())
        text = digest(body).encode()
        self.send_response(200)
        self.send_header("X-Id", digest(method + b" " + target))
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        if method != b"HEAD":
            self.wfile.write(text)

    def log_message(self, *_):
        pass


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    request_queue_size = 512
    daemon_threads = True

    def handle_error(self, *_):
        pass

    def get_request(self):
        connection, address = super().get_request()
        if context:
            # The thread makes the handshake, with its first read.
            connection = context.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
        return connection, address


context = None
if sys.argv[1:]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*sys.argv[1:])


server = Server(("127.0.0.1", 0), Handler)
os.write(1, f"ready {server.server_address[1]}\n".encode())
server.serve_forever()
