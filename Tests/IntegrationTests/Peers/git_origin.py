"""`git http-backend` behind TLS: a repository to clone over https.

git_origin.py --certificate chain.pem --key key.pem --root DIRECTORY
"""

import argparse
import http.server
import os
import ssl
import subprocess

from events import say


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def run_backend(self):
        path, _, query = self.path.partition("?")
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        environment = {
            "PATH": os.environ["PATH"],
            "GIT_PROJECT_ROOT": self.server.root,
            "GIT_HTTP_EXPORT_ALL": "1",
            "REQUEST_METHOD": self.command,
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "CONTENT_LENGTH": str(len(body)),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            "REMOTE_ADDR": "127.0.0.1",
            "HOME": self.server.root,
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "safe.directory",
            "GIT_CONFIG_VALUE_0": "*",
        }
        result = subprocess.run(["git", "http-backend"], input=body, env=environment, capture_output=True)
        head, _, content = result.stdout.partition(b"\r\n\r\n")
        fields = [line.split(": ", 1) for line in head.decode().split("\r\n") if line]
        status = next((int(value.split()[0]) for name, value in fields if name == "Status"), 200)
        self.send_response(status)
        for name, value in fields:
            if name != "Status":
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = run_backend


parser = argparse.ArgumentParser()
parser.add_argument("--certificate")
parser.add_argument("--key")
parser.add_argument("--root")
options = parser.parse_args()
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(options.certificate, options.key)
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.root = options.root
server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
say("ready", port=server.server_port)
server.serve_forever()
