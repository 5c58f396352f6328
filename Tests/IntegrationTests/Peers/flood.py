"""A client of HTTP/2 that floods its connection, or breaks the protocol: flood.py PROXY-PORT AUTHORITY CA WHAT

WHAT is `settings` or `preface`. Prints the error code of the GOAWAY with which the proxy ends the connection.
"""

import socket
import ssl
import sys

port, authority, ca, what = sys.argv[1:]
tunnel = socket.create_connection(("127.0.0.1", int(port)), timeout=60)
tunnel.sendall(f"CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n".encode())
answer = b""
while not answer.endswith(b"\r\n\r\n"):
    answer += tunnel.recv(1)
assert b" 200 " in answer.split(b"\r\n")[0], answer
context = ssl.create_default_context(cafile=ca)
context.set_alpn_protocols(["h2"])
client = context.wrap_socket(tunnel, server_hostname=authority.split(":")[0])
assert client.selected_alpn_protocol() == "h2"
SETTINGS = bytes.fromhex("000000 04 00 00000000")
if what == "settings":
    client.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + SETTINGS * 200)
else:
    client.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
data = b""
while piece := client.recv(65536):
    data += piece
while data:
    length, kind = int.from_bytes(data[:3], "big"), data[3]
    if kind == 7:
        print(int.from_bytes(data[13:17], "big"))
    data = data[9 + length:]
