"""How a connection is reset, and what one sees of its end."""

import asyncio
import socket
import struct

CLOSED = (ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, OSError, EOFError)


def reset(transport):
    """Ends a connection by a reset, not in an orderly manner."""
    if transport.is_closing():
        return
    found = transport.get_extra_info("socket")
    if found is not None:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()
