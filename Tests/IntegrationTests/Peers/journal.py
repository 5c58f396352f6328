"""A substitute for systemd-journald(8): prints each record of sd_journal_sendv(3) as a JSON line.

journal.py SOCKET
"""

import socket
import sys

from events import say


def fields(data):
    """Yields NAME=value lines. A value with line feeds is preceded by its length (the native journal protocol)."""
    while data:
        line, _, rest = data.partition(b"\n")
        name, equals, value = line.partition(b"=")
        if not equals:
            size = int.from_bytes(rest[:8], "little")
            value, rest = rest[8 : 8 + size], rest[9 + size :]
        yield name.decode(), value.decode()
        data = rest


journal = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
journal.bind(sys.argv[1])
say("ready", port=1)
while True:
    say("record", **dict(fields(journal.recv(1 << 20))))
