"""A name server that knows no name, and records each queried name."""

import socket
import sys

server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind(("127.0.0.1", 53))
with open(sys.argv[1], "a", buffering=1) as asked:
    print("ready", file=asked)
    while True:
        message, client = server.recvfrom(4096)
        labels, at = [], 12
        while message[at]:
            labels.append(message[at + 1 : at + 1 + message[at]].decode("latin-1"))
            at += 1 + message[at]
        print(".".join(labels), file=asked)
        # NXDOMAIN.
        server.sendto(message[:2] + b"\x81\x83" + message[4:6] + bytes(6) + message[12 : at + 5], client)
