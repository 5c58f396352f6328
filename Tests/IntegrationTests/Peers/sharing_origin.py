"""An origin that waits: what several clients ask for at one time, and when they get it, is the test's to say.

GET /wait/KEY?Field=value&…   answered with those fields once POST /go/KEY came
GET /file                     32 MiB with an entity tag, parts of it too
Each request is told of as a JSON line: {"event": "request", "target": …, "range": …}, and its end.
"""
import hashlib
import http.server
import json
import random
import socketserver
import sys
import threading
from urllib.parse import parse_qsl, urlsplit

FILE = random.Random(7).randbytes(32 << 20)
doors = {}
lock = threading.Lock()


def tell(**event):
    with lock:
        sys.stdout.write(json.dumps(event) + "\n")
        sys.stdout.flush()


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
        tell(event="request", target=url.path, range=self.headers.get("Range", ""), accept=self.headers.get("Accept", ""))
        try:
            if url.path == "/file":
                return self.file()
            fields = parse_qsl(url.query)
            door(url.path.removeprefix("/wait/")).wait()
            self.answer(f"for {self.headers.get('Accept', '')}".encode(), fields=fields)
        except OSError:
            tell(event="gone", target=url.path)
        finally:
            tell(event="over", target=url.path)

    def file(self):
        fields = [("ETag", '"seven"'), ("Accept-Ranges", "bytes")]
        asked = self.headers.get("Range")
        if not asked:
            return self.answer(FILE, fields=fields)
        first = int(asked.removeprefix("bytes=").removesuffix("-"))
        self.answer(FILE[first:], 206, fields + [("Content-Range", f"bytes {first}-{len(FILE) - 1}/{len(FILE)}")])

    def do_POST(self):
        door(self.path.removeprefix("/go/")).set()
        self.answer(b"")


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    request_queue_size = 256


server = Server(("127.0.0.1", 0), Handler)
tell(event="ready", port=server.server_port, sha256=hashlib.sha256(FILE).hexdigest())
server.serve_forever()
