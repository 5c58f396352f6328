"""An origin that waits. The test decides when concurrent requests are answered, and how.

GET /wait/KEY?Field=value&…   responds with those fields after POST /go/KEY, and with the request's number
                              (X-Number)
GET /moved/URL                302 to that URL (percent-encoded), after POST /go/moved
GET /file                     32 MiB with an entity tag; supports ranges
GET /file/KEY                 the same; what follows the first 64 KiB is sent after POST /go/KEY
GET /stream/KEY?coding=…      the same without a tag: in chunks (and a trailer), with a length, or until the
                              connection ends; what follows the first 64 KiB after POST /go/KEY; with &fresh=1 the
                              middle differs each time, with &size=N it has N bytes, a multiple of 64 KiB
Each request is reported as a JSON line, {"event": "request", "target": …, "range": …}, and its end too.
"""

import hashlib
import http.server
import itertools
import random
import secrets
import socketserver
import threading
from urllib.parse import parse_qsl, unquote, urlsplit

from events import say

FILE = random.Random(7).randbytes(32 << 20)
doors = {}
lock = threading.Lock()
numbers = itertools.count(1)


def door(key):
    with lock:
        return doors.setdefault(key, threading.Event())


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def answer(self, body, status=200, fields=()):
        self.send_response(status)
        for name, value in fields:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        url = urlsplit(self.path)
        number = next(numbers)
        say("request", target=url.path, range=self.headers.get("Range", ""), accept=self.headers.get("Accept", ""))
        try:
            if url.path == "/file" or url.path.startswith("/file/"):
                return self.file(url.path.removeprefix("/file").removeprefix("/"))
            if url.path.startswith("/stream/"):
                return self.stream(url.path.removeprefix("/stream/"), dict(parse_qsl(url.query)))
            if url.path.startswith("/moved/"):
                door("moved").wait()
                return self.answer(b"moved", 302, [("Location", unquote(url.path.removeprefix("/moved/")))])
            fields = [("X-Number", str(number))] + parse_qsl(url.query)
            door(url.path.removeprefix("/wait/")).wait()
            self.answer(f"for {self.headers.get('Accept', '')}".encode(), fields=fields)
        except OSError:
            say("gone", target=url.path)
        finally:
            say("over", target=url.path)

    def file(self, key):
        fields = [("ETag", '"seven"'), ("Accept-Ranges", "bytes")]
        asked = self.headers.get("Range")
        if key and not asked:
            self.send_response(200)
            for name, value in fields + [("Content-Length", str(len(FILE)))]:
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(FILE[: 64 << 10])
            door(key).wait()
            return self.wfile.write(FILE[64 << 10 :])
        if not asked:
            return self.answer(FILE, fields=fields)
        first = int(asked.removeprefix("bytes=").removesuffix("-"))
        self.answer(FILE[first:], 206, fields + [("Content-Range", f"bytes {first}-{len(FILE) - 1}/{len(FILE)}")])

    def stream(self, key, how):
        size = int(how.get("size", len(FILE)))
        self.send_response(200)
        name, value = {
            "chunked": ("Transfer-Encoding", "chunked"),
            "close": ("Connection", "close"),
            "length": ("Content-Length", str(size)),
        }[how["coding"]]
        self.send_header(name, value)
        self.end_headers()
        piece = 64 << 10
        for start in range(0, size, piece):
            body = FILE[start : start + piece]
            if "fresh" in how and start == piece:
                body = secrets.token_bytes(piece)
            self.wfile.write(b"%x\r\n%s\r\n" % (piece, body) if value == "chunked" else body)
            if start == 0:
                door(key).wait()
        if value == "chunked":
            self.wfile.write(b"0\r\nX-Sum: 12\r\n\r\n")
        self.close_connection = value == "close"

    def do_POST(self):
        key = self.path.removeprefix("/go/")
        say("go", key=key)
        door(key).set()
        self.answer(b"")


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    request_queue_size = 256


server = Server(("127.0.0.1", 0), Handler)
say("ready", port=server.server_port, sha256=hashlib.sha256(FILE).hexdigest())
server.serve_forever()
