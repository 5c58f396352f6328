"""Talks to the echo server through the proxy of the environment: websocket_client.py URL"""

import os
import sys

from websockets.sync.client import connect

with connect(sys.argv[1], max_size=None) as connection:
    for message in ["hello", "", "ü" * 1000, b"\x00\xff" * 10, os.urandom(3_000_000)]:
        connection.send(message)
        assert connection.recv() == message, len(message)
    # Many on their way at once, in order.
    for number in range(500):
        connection.send(str(number))
    for number in range(500):
        assert connection.recv() == str(number)
    assert connection.ping().wait(10)
print("closed", connection.protocol.close_code)
