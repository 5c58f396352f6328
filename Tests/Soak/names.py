"""A name server that resolves every name below .test to the loopback. It delays, drops and refuses queries at
random."""

import asyncio
import socket
import struct

SERVFAIL, NXDOMAIN = 2, 3


class Names(asyncio.DatagramProtocol):
    def __init__(self, chance):
        self.chance = chance
        #: Nothing is delayed, dropped or refused.
        self.is_calm = True
        self.asked = 0

    async def start(self):
        loop = asyncio.get_running_loop()
        self.transport, _ = await loop.create_datagram_endpoint(lambda: self, local_addr=("127.0.0.1", 53))

    def datagram_received(self, data, sender):
        self.asked += 1
        answer = self.answer(data)
        kind = 1 if self.is_calm else self.chance.random()
        if kind < 0.03:
            return
        if kind < 0.06:
            answer = self.failure(data, SERVFAIL)
        elif kind < 0.08:
            answer = self.failure(data, NXDOMAIN)
        elif kind < 0.09:
            answer = answer[: len(answer) // 2]
        elif kind < 0.10:
            answer = bytes([answer[0] ^ 1]) + answer[1:]
        if kind < 0.3:
            asyncio.get_running_loop().call_later(self.chance.uniform(0, 1.5), self.transport.sendto, answer, sender)
        else:
            self.transport.sendto(answer, sender)

    def failure(self, data, code):
        return data[:2] + bytes([0x81, 0x80 | code]) + data[4:6] + bytes(6) + self.question(data)

    @staticmethod
    def question(data):
        end = 12
        while data[end]:
            end += data[end] + 1
        return data[12 : end + 5]

    def answer(self, data):
        """One address for A, none for other types (RFC 1035 section 4)."""
        question = self.question(data)
        (kind,) = struct.unpack(">H", question[-4:-2])
        if b"\x04test\x00" not in question or b"\x07nowhere" in question:
            return self.failure(data, NXDOMAIN)
        address = socket.inet_aton("127.0.0.1") if kind == 1 else b""
        record = b"\xc0\x0c\x00\x01\x00\x01" + struct.pack(">IH", 2, 4) + address if address else b""
        return data[:2] + b"\x81\x80" + data[4:6] + struct.pack(">HHH", bool(record), 0, 0) + question + record
