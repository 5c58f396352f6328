"""Peers that send bodies slowly: a byte each 50 ms until the other side closes.

    dripping.py origin                       by path:
        /length /chunked /close /stream      a slow body in that framing; /stream: text/event-stream
        /json                                the same, as JSON of a known length
        /resumed                             a part of a download, then slow bytes; a range request gets the rest
        /swallow                             the request's body is read slowly
        /pause/SECONDS                       silence for that long, then the whole body
    dripping.py client PORT HEAD             sends HEAD and a slow body, and prints the response

Prints JSON lines: {"event": "ready", "port": N}, then "gone" for each connection that the other side has closed.
"""

import http.server
import select
import socket
import sys
import time

from events import say

PAUSE = 0.05
WHOLE = bytes(range(256)) * 1000


class Origin(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def head(self, status, *fields):
        lines = [f"HTTP/1.1 {status} Some", *fields, "", ""]
        self.wfile.write("\r\n".join(lines).encode())

    def drip(self, piece):
        try:
            while True:
                self.wfile.write(piece)
                time.sleep(PAUSE)
        except OSError:
            say("gone", path=self.path)
        self.close_connection = True

    def do_GET(self):
        kind = self.path.split("/")[1]
        if kind == "length":
            self.head(200, "Content-Length: 100000000")
            self.drip(b"x")
        elif kind == "chunked":
            self.head(200, "Transfer-Encoding: chunked")
            self.drip(b"1\r\nx\r\n")
        elif kind == "close":
            self.head(200, "Connection: close")
            self.drip(b"x")
        elif kind == "stream":
            self.head(200, "Content-Type: Text/Event-Stream; charset=utf-8", "Transfer-Encoding: chunked")
            self.drip(b"1\r\n:\r\n")
        elif kind == "json":
            self.head(200, "Content-Type: application/json", "Content-Length: 100000")
            self.drip(b" ")
        elif kind == "pause":
            self.head(200, "Content-Length: 6")
            self.wfile.flush()
            time.sleep(float(self.path.split("/")[2]))
            self.wfile.write(b"later\n")
        else:
            self.resumed()

    def resumed(self):
        fields = ['ETag: "one"', "Accept-Ranges: bytes"]
        asked = self.headers.get("Range")
        say("asked", range=asked or "")
        if asked is None:
            self.head(200, f"Content-Length: {len(WHOLE)}", *fields)
            self.wfile.write(WHOLE[:1000])
            for at in range(1000, len(WHOLE)):
                try:
                    self.wfile.write(WHOLE[at : at + 1])
                except OSError:
                    break
                time.sleep(PAUSE)
            self.close_connection = True
        else:
            start = int(asked.removeprefix("bytes=").removesuffix("-").split("-")[0])
            last = len(WHOLE) - 1
            self.head(
                206,
                f"Content-Length: {len(WHOLE) - start}",
                f"Content-Range: bytes {start}-{last}/{len(WHOLE)}",
                *fields,
            )
            self.wfile.write(WHOLE[start:])

    def do_POST(self):
        try:
            while self.rfile.read1(512):
                time.sleep(PAUSE)
        except OSError:
            pass
        say("gone", path=self.path)
        self.close_connection = True


class Server(http.server.ThreadingHTTPServer):
    def server_bind(self):
        # Keeps the kernel's buffer small.
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        super().server_bind()


def client(port, head):
    connection = socket.create_connection(("127.0.0.1", port))
    connection.sendall(head.encode().decode("unicode_escape").encode("latin-1"))
    answer = b""
    while True:
        if select.select([connection], [], [], PAUSE)[0]:
            piece = connection.recv(65536)
            answer += piece
            if not piece or b"\r\n\r\n" in answer:
                break
        else:
            connection.sendall(b"x")
    print(answer.decode("latin-1"))


if sys.argv[1] == "client":
    client(int(sys.argv[2]), sys.argv[3])
else:
    server = Server(("127.0.0.1", 0), Origin)
    say("ready", port=server.server_port)
    server.serve_forever()
