"""A name server that goes silent, over UDP or over TCP.

    silent_names.py --listen ADDRESS --over udp|tcp [--then trickle|vanish]

It listens on port 53 of ADDRESS. udp: it answers no query. tcp: it answers each UDP query with a truncated message, so
that the client retries over TCP, where it accepts and never responds. trickle: a response over TCP is sent a byte at a
time, endlessly. vanish: connections are reset, and no UDP socket is open.

Prints JSON lines: {"event": "ready", "port": 53}, then "silent" for each query or connection without an answer.
"""

import argparse
import socket
import struct
import threading
import time

from events import say

parser = argparse.ArgumentParser()
parser.add_argument("--listen", required=True)
parser.add_argument("--over", choices=["udp", "tcp"], required=True)
parser.add_argument("--then", choices=["silence", "trickle", "vanish"], default="silence")
options = parser.parse_args()
datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
datagrams.bind((options.listen, 53))
listener = socket.create_server((options.listen, 53), backlog=512)
kept = []


def accept():
    while True:
        connection, _ = listener.accept()
        say("silent")
        if options.then == "trickle":
            threading.Thread(target=trickle, args=[connection], daemon=True).start()
        elif options.then == "vanish":
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connection.close()
        else:
            kept.append(connection)


def trickle(connection):
    try:
        connection.sendall(b"\xff\xff")
        while True:
            connection.sendall(b"\0")
            time.sleep(0.05)
    except OSError:
        pass


threading.Thread(target=accept, daemon=True).start()
say("ready", port=53)
if options.over == "udp" and options.then == "vanish":
    datagrams.recvfrom(512)
    datagrams.close()
    say("silent")
    threading.Event().wait()
while True:
    question, client = datagrams.recvfrom(512)
    if options.over == "udp":
        say("silent")
    else:
        # The QR, TC and RD bits (RFC 1035 section 4.1.1).
        datagrams.sendto(question[:2] + b"\x83\x00" + question[4:6] + bytes(6) + question[12:], client)
