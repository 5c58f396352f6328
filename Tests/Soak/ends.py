"""Resets connections, and lists the errors that show one."""

import asyncio
import socket
import struct

CLOSED = (ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, OSError, EOFError)


def reset(transport):
    """Resets a connection instead of closing it cleanly."""
    if transport.is_closing():
        return
    found = transport.get_extra_info("socket")
    if found is not None:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()
