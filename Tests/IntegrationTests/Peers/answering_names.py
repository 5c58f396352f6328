"""A name server that knows every name, with 127.0.0.1 as the only address.

    answering_names.py --listen ADDRESS

It listens on port 53 of ADDRESS, over UDP. Prints {"event": "ready", "port": 53}.
"""

import argparse
import socket

from events import say

parser = argparse.ArgumentParser()
parser.add_argument("--listen", required=True)
options = parser.parse_args()
server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind((options.listen, 53))
say("ready", port=53)
while True:
    message, client = server.recvfrom(512)
    end = message.index(b"\0", 12) + 5
    is_a = message[end - 4 : end - 2] == b"\0\1"
    # A pointer to the name, type A, class IN, 60 seconds (RFC 1035 section 4.1.3).
    answer = b"\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4\x7f\0\0\1" if is_a else b""
    server.sendto(
        message[:2] + b"\x81\x80\0\1" + (b"\0\1" if is_a else b"\0\0") + bytes(4) + message[12:end] + answer, client
    )
