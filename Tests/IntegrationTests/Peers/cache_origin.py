"""An origin whose responses the test chooses. It counts the requests for each.

GET /NAME?status=200&length=20&field=Name:value&…   that response; its body has the number of requests for /NAME,
                                                    padded with dots
    &etag="x"          with this tag; 304 with the same fields if If-None-Match has the tag
    &modified=DATE     with Last-Modified; 304 if If-Modified-Since has that date
    &later=Name:value  a field only for a 304
    &wrong=TAG         a 304 of another version with this tag, for any If-None-Match
    &coding=chunked    without a length
    &cut=N             ends after N bytes of the body
    &ranges=1          serves ranges
    &fail=STATUS       that status from the second request on
    &close=1           closes without a response from the second request on
    &hold=KEY          from the second request on, responds after POST /go/KEY
Each request is reported as a JSON line: {"event": "request", "method": …, "target": …, "number": …, "fields": {…}}.
"""

import http.server
import socketserver
import ssl
import sys
import threading
from urllib.parse import parse_qsl, urlsplit

from events import say

counts = {}
gates = {}
lock = threading.Lock()


def gate(key):
    with lock:
        return gates.setdefault(key, threading.Event())


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def answer(self):
        url = urlsplit(self.path)
        pairs = parse_qsl(url.query, keep_blank_values=True)
        how = dict(pairs)
        with lock:
            number = counts[url.path] = counts.get(url.path, 0) + 1
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        fields = {name.lower(): value for name, value in self.headers.items()}
        say("request", method=self.command, target=url.path, number=number, fields=fields, body=body.decode())
        if number > 1 and "hold" in how:
            gate(how["hold"]).wait()
        if number > 1 and "close" in how:
            self.close_connection = True
            return
        status = int(how.get("status", 200))
        if number > 1 and "fail" in how:
            status = int(how["fail"])
        lines = [value.split(":", 1) for name, value in pairs if name == "field"]
        if "etag" in how:
            lines.append(("ETag", how["etag"]))
        if "modified" in how:
            lines.append(("Last-Modified", how["modified"]))
        names = self.headers.get("If-None-Match")
        since = self.headers.get("If-Modified-Since")
        if (
            status == 200
            and "wrong" not in how
            and (
                how["etag"] in names if names and "etag" in how else since is not None and since == how.get("modified")
            )
        ):
            more = [value.split(":", 1) for name, value in pairs if name == "later"]
            return self.send(304, lines + more, None)
        if names and "wrong" in how:
            return self.send(304, [("ETag", how["wrong"])], None)
        text = f"{url.path} {number} ".encode()
        text = text.ljust(int(how.get("length", len(text))), b".")
        asked = self.headers.get("Range")
        if asked and "ranges" in how and status == 200:
            first, _, last = asked.removeprefix("bytes=").partition("-")
            first, last = int(first), min(int(last or len(text) - 1), len(text) - 1)
            lines.append(("Content-Range", f"bytes {first}-{last}/{len(text)}"))
            return self.send(206, lines, text[first : last + 1])
        if "cut" in how:
            lines.append(("Content-Length", str(len(text))))
            self.send(status, lines, text[: int(how["cut"])], length=False)
            self.close_connection = True
            return
        self.send(status, lines, text, chunked=how.get("coding") == "chunked")

    def send(self, status, lines, body, length=True, chunked=False):
        self.send_response(status)
        for name, value in lines:
            self.send_header(name, value)
        if chunked:
            self.send_header("Transfer-Encoding", "chunked")
        elif body is not None and length:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if body is None or self.command == "HEAD":
            return
        if not chunked:
            self.wfile.write(body)
            return
        for start in range(0, len(body), 1000):
            piece = body[start : start + 1000]
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        self.wfile.write(b"0\r\n\r\n")

    do_GET = do_HEAD = do_PUT = do_DELETE = answer

    def do_POST(self):
        if not self.path.startswith("/go/"):
            return self.answer()
        gate(self.path.removeprefix("/go/")).set()
        self.send(204, [], None)


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    request_queue_size = 256


server = Server(("127.0.0.1", 0), Handler)
if len(sys.argv) > 1:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*sys.argv[1:3])
    server.socket = context.wrap_socket(server.socket, server_side=True)
say("ready", port=server.server_port)
server.serve_forever()
