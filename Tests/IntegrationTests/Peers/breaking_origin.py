"""An HTTPS origin whose connections break in the middle of every body. Range requests continue a body.

    breaking_origin.py --certificate chain.pem --key key.pem

/file/N/EVERY: N bytes (byte i is i % 251), at most EVERY per connection; ranges with If-Range are
answered. /changing/N/EVERY: the same, with a new entity tag for each request. /plain/N/EVERY: without ranges.
Prints JSON lines: {"event": "ready", "port": N} first, then each request's range.
"""

import argparse
import http.server
import itertools
import ssl

from events import say

tags = itertools.count(1)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        _, kind, count, every = self.path.split("/")
        count, every = int(count), int(every)
        tag = f'"{next(tags)}"' if kind == "changing" else '"one"'
        asked = self.headers.get("Range")
        say("request", path=self.path, range=asked or "none")
        start = 0
        if asked and kind != "plain" and self.headers.get("If-Range", tag) == tag:
            start = int(asked.removeprefix("bytes=").split("-")[0])
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {start}-{count - 1}/{count}")
        else:
            self.send_response(200)
        self.send_header("Content-Length", str(count - start))
        if kind != "plain":
            self.send_header("Accept-Ranges", "bytes")
            self.send_header("ETag", tag)
        self.end_headers()
        end = min(count, start + every)
        self.wfile.write((bytes(range(251)) * (every // 251 + 2))[start % 251 : start % 251 + end - start])
        self.wfile.flush()
        if end < count:
            self.close_connection = True
            self.connection.unwrap()
            self.connection.close()

    def log_message(self, *arguments):
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        pass


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--certificate")
    parser.add_argument("--key")
    options = parser.parse_args()
    server = Server(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(options.certificate, options.key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    say("ready", port=server.server_address[1])
    server.serve_forever()


main()
