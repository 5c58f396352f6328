"""A WebSocket echo server (the `websockets` package), behind TLS if it has a certificate.

    websocket_origin.py [--certificate chain.pem --key key.pem]

It uses asyncio: with threads the package reads and writes one TLS connection at the same time, which Python's ssl
module doesn't always survive.
"""

import argparse
import asyncio
import ssl

from websockets.asyncio.server import serve

from events import say

parser = argparse.ArgumentParser()
parser.add_argument("--certificate")
parser.add_argument("--key")
options = parser.parse_args()
context = None
if options.certificate:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(options.certificate, options.key)


async def echo(connection):
    async for message in connection:
        await connection.send(message)


async def main():
    server = await serve(echo, "127.0.0.1", 0, ssl=context, max_size=None, open_timeout=None, ping_timeout=None)
    port = server.sockets[0].getsockname()[1]
    say("ready", port=port)
    await server.serve_forever()


asyncio.run(main())
