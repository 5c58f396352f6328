#!/usr/bin/python3
"""Replaces a decoding process, through a link. It runs the code in the file "behaviour" beside the link."""

import os
import resource
import socket
import struct
import sys
import time  # noqa: F401, for the behaviour

resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
proxy = socket.socket(fileno=3)
folder = os.path.dirname(sys.argv[0])


def say(message, body=b""):
    proxy.sendall(struct.pack("<QQ", len(message), len(body)) + message + body)


def exactly(count):
    data = b""
    while len(data) < count:
        more = proxy.recv(count - len(data))
        if not more:
            os._exit(0)
        data += more
    return data


def asked():
    message, body = struct.unpack("<QQ", exactly(16))
    return exactly(message), exactly(body)


exec(open(os.path.join(folder, "behaviour")).read())
