"""Python's own server of files: files.py DIRECTORY"""

import functools
import http.server
import json
import sys

handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=sys.argv[1])
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
print(json.dumps({"event": "ready", "port": server.server_address[1]}), flush=True)
server.serve_forever()
