"""A name server that is silent over UDP or over TCP.

    silent_names.py --listen ADDRESS --over udp|tcp

It listens on port 53 of ADDRESS. udp: it answers no query. tcp: it answers each UDP query with a truncated message, so
that the client asks again over TCP, where it accepts and never answers.

Prints JSON lines: {"event": "ready", "port": 53}, then "silent" for each query or connection without an answer.
"""

import argparse
import socket
import threading

from events import say

parser = argparse.ArgumentParser()
parser.add_argument("--listen", required=True)
parser.add_argument("--over", choices=["udp", "tcp"], required=True)
options = parser.parse_args()
datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
datagrams.bind((options.listen, 53))
listener = socket.create_server((options.listen, 53), backlog=512)
kept = []


def accept():
    while True:
        kept.append(listener.accept())
        say("silent")


threading.Thread(target=accept, daemon=True).start()
say("ready", port=53)
while True:
    question, client = datagrams.recvfrom(512)
    if options.over == "udp":
        say("silent")
    else:
        # The QR, TC and RD bits (RFC 1035 section 4.1.1).
        datagrams.sendto(question[:2] + b"\x83\x00" + question[4:6] + bytes(6) + question[12:], client)
