"""A server that goes silent after a given stage of every connection.

    silent.py --until STAGE [--then silence|trickle|vanish] [--certificate chain.pem --key key.pem] [--listen ADDRESS]

With a certificate it uses TLS. After the stage a connection stays open, and nothing more is read or written; or a
byte of a continuation is written each 50 ms, for ever (trickle); or the connection is reset (vanish). Stages:

    backlog     the listen queue is full: the kernel drops every SYN
    accept      the connection is accepted
    hello       a part of the ServerHello is sent
    handshake   the TLS handshake is done
    request     the request's head is read
    half-head   a part of the response's head is sent
    continue    100 Continue is sent
    switch      101 Switching Protocols is sent
    head        the response's head is sent
    half-body   a part of the body is sent
    half-chunk  a part of a chunk is sent
    answer      the whole response is sent

Prints JSON lines: {"event": "ready", "port": N}, then "silent" for each connection that has reached the stage.
"""

import argparse
import itertools
import socket
import ssl
import struct
import sys
import threading
import time

from events import say

ANSWERS = {
    "request": b"",
    "half-head": b"HTTP/1.1 200 OK\r\nContent-Le",
    "continue": b"HTTP/1.1 100 Continue\r\n\r\n",
    "switch": b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n",
    "head": b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n",
    "half-body": b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\nfirst",
    "half-chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2710\r\nfirst",
    "answer": b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nfirst,last",
}
# What trickles after a stage, before its last byte repeats. Each could still become valid.
NEXT = {
    "request": b"HTTP/1.1 200 OK\r\nX-Field: a",
    "handshake": b"HTTP/1.1 200 OK\r\nX-Field: a",
    "continue": b"HTTP/1.1 200 OK\r\nX-Field: a",
    # The header of a record of 16 KiB, with a ServerHello of that length.
    "accept": b"\x16\x03\x03\x40\x00\x02\x00\x3f\xfc\x03\x03\x00"
    if "--certificate" in sys.argv
    else b"HTTP/1.1 200 OK\r\nX-Field: a",
}
STAGES = ["backlog", "accept", "hello", "handshake", *ANSWERS]

parser = argparse.ArgumentParser()
parser.add_argument("--until", choices=STAGES, required=True)
parser.add_argument("--then", choices=["silence", "trickle", "vanish"], default="silence")
parser.add_argument("--certificate")
parser.add_argument("--key")
parser.add_argument("--listen", default="127.0.0.1")
options = parser.parse_args()
context = None
if options.certificate:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(options.certificate, options.key)
kept = []


def say_half_a_hello(client):
    received, sent = ssl.MemoryBIO(), ssl.MemoryBIO()
    server = context.wrap_bio(received, sent, server_side=True)
    while not sent.pending:
        received.write(client.recv(65536))
        try:
            server.do_handshake()
        except ssl.SSLWantReadError:
            pass
    # A record header and the first part of its message.
    client.sendall(sent.read()[:40])


def serve(client):
    if options.until == "hello":
        say_half_a_hello(client)
    elif options.until != "accept":
        if context:
            client = context.wrap_socket(client, server_side=True)
        if options.until in ANSWERS:
            head = b""
            while b"\r\n\r\n" not in head:
                head += client.recv(1)
            client.sendall(ANSWERS[options.until])
    say("silent")
    if options.then == "silence":
        kept.append(client)
    elif options.then == "trickle":
        trickle(client)
    else:
        vanish(client)


def trickle(client):
    try:
        for byte in itertools.chain(NEXT.get(options.until, b"a"), itertools.repeat(NEXT.get(options.until, b"a")[-1])):
            # TLS is not involved before the handshake is complete.
            socket.socket.send(client, bytes([byte])) if options.until in ("accept", "hello") else client.send(
                bytes([byte])
            )
            time.sleep(0.05)
    except OSError:
        pass


def vanish(client):
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()


listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.bind((options.listen, 0))
if options.until == "backlog":
    listener.listen(0)
    kept.append(socket.create_connection(listener.getsockname()))
    say("ready", port=listener.getsockname()[1])
    threading.Event().wait()
listener.listen(512)
say("ready", port=listener.getsockname()[1])
while True:
    client, _ = listener.accept()
    threading.Thread(target=serve, args=(client,), daemon=True).start()
