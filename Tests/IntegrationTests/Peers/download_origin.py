"""A TLS origin with interrupted downloads:

    /KIND/BREAK/SIZE/NAME    SIZE bytes; each connection is reset after at most BREAK of them

The bytes are those of `block`, or of a file (--file), repeated. Ranges and If-Range work as specified, except as KIND
says:

    good         always
    closes       the connection is closed cleanly, not reset
    date         Last-Modified instead of ETag
    busy         every second response is 503
    hints        103 before each part
    weak         the entity tag is weak
    plain        doesn't mention ranges
    changed      after the first break, all of another version
    ignores      after the first break, all of the same version, as if no range were requested
    version      after the first break, a part of another version
    earlier, later, shorter, longer, whole-length, no-range, nonsense, multipart
                 a part with a Content-Range or length that differs from the request
    gone, refused  404, 403 after the first break
    moved        302 after the first break
    expires      requires Digest (of anyone), with a nonce for each request
    silent       after the first break, a reset without a response
    accepts      the same, closed cleanly
    postponed    the second response is 503 with Retry-After: 1
    far          after the first break, 503 with Retry-After: 3600
"""

import argparse
import hashlib
import http.server
import re
import secrets
import socket
import ssl
import struct
import threading
import time
from email.utils import formatdate

from events import say

block = b"".join(hashlib.sha256(b"%d" % i).digest() for i in range(1 << 15))
lock = threading.Lock()
counts = {}
nonces = set()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 0

    def log_message(self, *arguments):
        pass

    def pieces(self, start, end):
        while start < end:
            offset = start % len(block)
            piece = block[offset : offset + min(end - start, 1 << 16)]
            yield piece
            start += len(piece)

    def break_off(self, kind):
        self.close_connection = True
        if kind not in ("closes", "accepts", "postponed"):
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        raise ConnectionResetError

    def do_GET(self):
        try:
            self.download()
        except (BrokenPipeError, ConnectionResetError, ssl.SSLError):
            self.close_connection = True
            self.connection.close()

    def download(self):
        _, kind, limit, size, name = self.path.split("/", 4)
        limit, size = int(limit), int(size)
        asked = self.headers.get("Range")
        say(
            "asked",
            path=self.path,
            range=asked or "",
            if_range=self.headers.get("If-Range", ""),
            authorization=self.headers.get("Authorization", "").split(" ")[0],
        )
        with lock:
            counts[self.path] = counts.get(self.path, 0) + 1
            count = counts[self.path]
        if kind == "expires" and not self.takes_nonce():
            return self.short(401)
        tag, start, end, status = '"1"', 0, size, 200
        if kind == "weak":
            tag = 'W/"1"'
        if asked:
            if kind in ("silent", "accepts"):
                self.break_off(kind)
            if kind == "busy" and count % 2 == 0:
                return self.short(503)
            if kind == "postponed" and count == 2 or kind == "far":
                return self.short(503, retry_after=1 if kind == "postponed" else 3600)
            if kind in ("gone", "refused", "moved"):
                return self.short({"gone": 404, "refused": 403, "moved": 302}[kind])
            start = int(re.fullmatch(r"bytes=(\d+)-", asked)[1])
            validator = self.headers.get("If-Range")
            status = 206
            if kind == "changed":
                tag, start, status = '"2"', 0, 200
            elif kind == "ignores":
                start, status = 0, 200
            elif kind == "version":
                tag = '"2"'
            elif validator not in (tag, DATE):
                start, status = 0, 200
        first, last, complete, length = start, end - 1, size, end - start
        if status == 206:
            if kind == "earlier":
                first, length = start - 1, end - start + 1
                start -= 1
            elif kind == "later":
                first, length = start + 1, end - start - 1
                start += 1
            elif kind == "shorter":
                last, end, length = last - 1, end - 1, length - 1
            elif kind == "longer":
                last, complete, end, length = last + 1, complete + 1, end + 1, length + 1
            elif kind == "whole-length":
                length = size
        if kind == "hints" and status == 206:
            self.connection.sendall(b"HTTP/1.1 103 Early Hints\r\nLink: </style.css>\r\n\r\n")
        self.send_response(status)
        if kind == "date":
            self.send_header("Last-Modified", DATE)
        elif not (kind == "version" and status == 200 and asked):
            self.send_header("ETag", tag)
        if kind != "plain":
            self.send_header("Accept-Ranges", "bytes")
        if status == 206 and kind not in ("no-range", "multipart"):
            self.send_header(
                "Content-Range", "bytes nonsense" if kind == "nonsense" else f"bytes {first}-{last}/{complete}"
            )
        if status == 206 and kind == "multipart":
            self.send_header("Content-Type", "multipart/byteranges; boundary=x")
        self.send_header("Content-Length", str(length))
        self.end_headers()
        stop = min(end, start + limit)
        for piece in self.pieces(start, stop):
            self.connection.sendall(piece)
        if stop < end:
            self.break_off(kind)

    def takes_nonce(self):
        given = re.search(r'nonce="(\w+)"', self.headers.get("Authorization", ""))
        with lock:
            if not given or given[1] not in nonces:
                return False
            nonces.discard(given[1])
            return True

    def short(self, status, retry_after=None):
        self.send_response(status)
        if retry_after:
            self.send_header("Retry-After", str(retry_after))
        if status == 401:
            nonce = secrets.token_hex(8)
            with lock:
                nonces.add(nonce)
            self.send_header("WWW-Authenticate", f'Digest realm="hall", nonce="{nonce}", qop="auth", algorithm=SHA-256')
        if status == 302:
            self.send_header("Location", "/elsewhere")
        self.send_header("Content-Length", "0")
        self.end_headers()


DATE = formatdate(time.time() - 86400, usegmt=True)
parser = argparse.ArgumentParser()
parser.add_argument("--certificate", required=True)
parser.add_argument("--key", required=True)
parser.add_argument("--file")
options = parser.parse_args()
if options.file:
    block = open(options.file, "rb").read()


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 256

    def handle_error(self, *arguments):
        pass


server = Server(("127.0.0.1", 0), Handler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(options.certificate, options.key)
server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
say("ready", port=server.server_address[1])
server.serve_forever()
