"""A container registry behind TLS, with one image of one layer. Its only file belongs to user 5 and group 5.

registry.py --certificate chain.pem --key key.pem
"""

import argparse
import gzip
import hashlib
import http.server
import io
import json
import ssl
import tarfile

from events import say


def digest(blob):
    return "sha256:" + hashlib.sha256(blob).hexdigest()


def layer():
    """The layer's tar archive."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        file = tarfile.TarInfo("greeting")
        file.uid = file.gid = 5
        file.size = 3
        archive.addfile(file, io.BytesIO(b"hi\n"))
    return made.getvalue()


TAR = layer()
LAYER = gzip.compress(TAR, mtime=0)
CONFIGURATION = json.dumps(
    {"architecture": "amd64", "os": "linux", "config": {}, "rootfs": {"type": "layers", "diff_ids": [digest(TAR)]}}
).encode()
MANIFEST_TYPE = "application/vnd.oci.image.manifest.v1+json"
MANIFEST = json.dumps(
    {
        "schemaVersion": 2,
        "mediaType": MANIFEST_TYPE,
        "config": {
            "mediaType": "application/vnd.oci.image.config.v1+json",
            "digest": digest(CONFIGURATION),
            "size": len(CONFIGURATION),
        },
        "layers": [
            {
                "mediaType": "application/vnd.oci.image.layer.v1.tar+gzip",
                "digest": digest(LAYER),
                "size": len(LAYER),
            }
        ],
    }
).encode()
BLOBS = {digest(blob): blob for blob in (LAYER, CONFIGURATION)}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self):
        name = self.path.rsplit("/", 1)[-1]
        content, kind = b"{}", "application/json"
        if "/manifests/" in self.path:
            content, kind = MANIFEST, MANIFEST_TYPE
        elif "/blobs/" in self.path:
            content, kind = BLOBS.get(name), "application/octet-stream"
        if content is None:
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Docker-Content-Digest", digest(content))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content)

    do_GET = do_HEAD = answer


parser = argparse.ArgumentParser()
parser.add_argument("--certificate")
parser.add_argument("--key")
options = parser.parse_args()
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(options.certificate, options.key)
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
say("ready", port=server.server_port)
server.serve_forever()
