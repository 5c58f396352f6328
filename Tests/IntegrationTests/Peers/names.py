"""Queries names like a stub resolver, and prints one line per response.

    names.py SERVER TYPE NAME [tcp]

TYPE is a number. Prints the response code, then the addresses.
"""

import ipaddress
import socket
import struct
import sys

server, kind, name = sys.argv[1:4]
labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
question = b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00" + labels + b"\0" + struct.pack(">HH", int(kind), 1)
over_tcp = sys.argv[4:] == ["tcp"]
family = socket.AF_INET6 if ":" in server else socket.AF_INET
with socket.socket(family, socket.SOCK_STREAM if over_tcp else socket.SOCK_DGRAM) as client:
    client.settimeout(60)
    client.connect((server, 53))
    if over_tcp:
        client.sendall(struct.pack(">H", len(question)) + question)
        stream = client.makefile("rb")
        answer = stream.read(struct.unpack(">H", stream.read(2))[0])
    else:
        client.send(question)
        answer = client.recv(512)
assert answer[:2] == question[:2] and answer[12 : len(question)] == question[12:]
count = struct.unpack(">H", answer[6:8])[0]
rest, addresses = answer[len(question) :], []
for _ in range(count):
    length = struct.unpack(">H", rest[10:12])[0]
    addresses.append(str(ipaddress.ip_address(rest[12 : 12 + length])))
    rest = rest[12 + length :]
print(answer[3] & 15, *addresses)
