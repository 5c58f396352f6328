"""A WebSocket echo server (the `websockets` package) behind TLS.

    websocket_origin.py --certificate chain.pem --key key.pem
"""

import argparse
import json
import ssl

from websockets.sync.server import serve

parser = argparse.ArgumentParser()
parser.add_argument("--certificate")
parser.add_argument("--key")
options = parser.parse_args()
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(options.certificate, options.key)


def echo(connection):
    for message in connection:
        connection.send(message)


with serve(echo, "127.0.0.1", 0, ssl=context, max_size=None) as server:
    print(json.dumps({"event": "ready", "port": server.socket.getsockname()[1]}), flush=True)
    server.serve_forever()
