"""Python's own file server: files.py DIRECTORY"""

import functools
import http.server
import sys

from events import say

handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=sys.argv[1])
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
say("ready", port=server.server_address[1])
server.serve_forever()
