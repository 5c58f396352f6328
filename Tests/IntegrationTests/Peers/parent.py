"""A parent proxy that reports requests, and answers CONNECT on command.

    parent.py [--hold] [--banner TEXT] [--relay]

--hold: success waits for `GET /release`. --banner: bytes in the same segment as the 200. --relay: not a proxy, but a
relay of whole connections to the port that `GET /target/PORT` sets: a loop for a client that uses it as its parent.

Prints JSON lines: {"event": "ready", "port": N}, then "connect" and "request" with their lines.
"""

import argparse
import socket
import sys
import threading

from events import say

released = threading.Event()
targeted = threading.Event()
target = None


def carry(source, sink):
    try:
        while data := source.recv(65536):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        for end in (source, sink):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


def join(one, other):
    back = threading.Thread(target=carry, args=(other, one), daemon=True)
    back.start()
    carry(one, other)
    back.join()
    other.close()


def serve(client, options):
    global target
    try:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        received = b""
        while b"\r\n\r\n" not in received:
            data = client.recv(65536)
            if not data:
                return
            received += data
        head, rest = received.split(b"\r\n\r\n", 1)
        lines = head.decode("latin-1").split("\r\n")
        method, where, _ = lines[0].split(" ", 2)
        if where == "/release":
            released.set()
            client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        elif where.startswith("/target/"):
            target = int(where.rsplit("/", 1)[1])
            targeted.set()
            client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        elif options.relay:
            say("relayed", lines=lines)
            targeted.wait(60)
            origin = socket.create_connection(("127.0.0.1", target))
            origin.sendall(received)
            join(client, origin)
        elif method == "CONNECT":
            say("connect", target=where, lines=lines)
            if options.hold:
                released.wait(60)
            if options.banner:
                client.sendall(b"HTTP/1.1 200 OK\r\n\r\n" + options.banner.encode())
                while client.recv(65536):
                    pass
                return
            origin = socket.create_connection(("127.0.0.1", int(where.rsplit(":", 1)[1])))
            client.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            say("answered")
            origin.sendall(rest)
            join(client, origin)
        else:
            say("request", method=method, target=where, lines=lines)
            client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nparent\n")
    except OSError as error:
        say("failed", cause=str(error))
    finally:
        client.close()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--hold", action="store_true")
    parser.add_argument("--banner")
    parser.add_argument("--relay", action="store_true")
    options = parser.parse_args()
    listener = socket.create_server(("127.0.0.1", 0), backlog=512)
    say("ready", port=listener.getsockname()[1])
    while True:
        client, _ = listener.accept()
        threading.Thread(target=serve, args=(client, options), daemon=True).start()


if __name__ == "__main__":
    sys.exit(main())
