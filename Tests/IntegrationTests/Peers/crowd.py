"""Runs clients that send the same bytes and then keep their connections open.

    crowd.py COUNT tcp:PORT|unix:PATH [TEXT]

Prints "open" when each has connected and sent its bytes, then a line for each response: its first line, or "closed".
"""

import selectors
import socket
import sys

count, place, text = int(sys.argv[1]), sys.argv[2], (sys.argv[3:] or [""])[0]
selector = selectors.DefaultSelector()
for number in range(count):
    if place.startswith("tcp:"):
        client = socket.create_connection(("127.0.0.1", int(place[4:])))
    else:
        client = socket.socket(socket.AF_UNIX)
        client.connect(place[5:])
    client.sendall(text.encode().decode("unicode_escape").replace("NUMBER", f"{number:04}").encode())
    selector.register(client, selectors.EVENT_READ)
print("open", flush=True)
while True:
    for key, _ in selector.select():
        try:
            answer = key.fileobj.recv(65536)
        except OSError:
            answer = b""
        print(answer.split(b"\r\n")[0].decode("latin-1") or "closed", flush=True)
        if not answer:
            selector.unregister(key.fileobj)
