"""Talks to the echo server through the environment's proxy: websocket_client.py URL"""

import asyncio
import os
import sys

from websockets.asyncio.client import connect


async def talk(url):
    # No timeouts here: the test decides how long it may take.
    async with connect(url, max_size=None, open_timeout=None, ping_timeout=None) as connection:
        for message in ["hello", "", "ü" * 1000, b"\x00\xff" * 10, os.urandom(3_000_000)]:
            await connection.send(message)
            assert await connection.recv() == message, len(message)
        # Many in flight at once, in order.
        for number in range(500):
            await connection.send(str(number))
        for number in range(500):
            assert await connection.recv() == str(number)
        await (await connection.ping())
    print("closed", connection.close_code)


asyncio.run(talk(sys.argv[1]))
