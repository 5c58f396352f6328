"""An origin at 127.0.0.1:443 that serves each host's contents, and records every request."""

import collections
import http.server
import pathlib
import ssl
import threading

import contents


class Origin:
    """Serves until it is closed, in its own threads."""

    def __init__(self, files, certificate, key):
        self.files = files
        self.requests = collections.defaultdict(list)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        origin = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            # Limits a client that sends nothing.
            timeout = 60

            def respond(self):
                origin.write(self)
                self.rfile.read(int(self.headers.get("Content-Length") or 0))
                data, kind = origin.find(self.path)
                status = 200 if data is not None else 404
                data = data if data is not None else b"nothing is here\n"
                first, last = self.part(len(data)) if status == 200 else (0, len(data))
                if (first, last) != (0, len(data)):
                    status = 206
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(last - first))
                self.send_header("Accept-Ranges", "bytes")
                if status == 206:
                    self.send_header("Content-Range", f"bytes {first}-{last - 1}/{len(data)}")
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(data[first:last])

            def part(self, length):
                """The requested range if it is a single satisfiable one, else the whole."""
                unit, _, spec = (self.headers.get("Range") or "").partition("=")
                first, _, last = spec.partition("-")
                if unit != "bytes" or not first.isdigit() or int(first) >= length or not (last or "0").isdigit():
                    return 0, length
                return int(first), min(int(last) + 1 if last else length, length)

            do_GET = do_HEAD = do_POST = do_PUT = do_OPTIONS = do_PROPFIND = do_DELETE = do_REPORT = respond

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            request_queue_size = 256

            def finish_request(self, request, client_address):
                with context.wrap_socket(request, server_side=True) as secure:
                    super().finish_request(secure, client_address)

            def handle_error(self, request, client_address):
                pass  # A handshake that the proxy aborts, as it does for a wrong pin.

        self.server = Server(("127.0.0.1", 443), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def write(self, request):
        host = (request.headers.get("Host") or "").partition(":")[0].lower()
        self.requests[host].append((request.command, request.path, request.headers.get("Via") or ""))

    def find(self, target):
        path, _, query = target.partition("?")
        # The way hg requests it, with other parameters after it.
        for name in [target.partition("&")[0], path]:
            if name in self.files:
                kind = contents.TYPES.get(pathlib.Path(path).suffix)
                if name.startswith("/v2/") and "/manifests/" in name:
                    kind = "application/vnd.oci.image.manifest.v1+json"
                if name.startswith("/hg"):
                    kind = "application/mercurial-0.1"
                data = self.files[name]
                kinds = {b"{": "application/json", b"<": "text/html"}
                return data, kind or kinds.get(data[:1], "application/octet-stream")
        return None, "text/plain"
