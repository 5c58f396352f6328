"""Talks to a WebSocket echo server over HTTP/2 (RFC 8441): http2_websocket_client.py --proxy PORT --ca FILE --authority
A [--stop PID]

    --stop  stops this process while the stream is ended and the connection closed: both arrive at once
"""

import argparse
import asyncio
import os
import pathlib
import signal

from websockets.frames import OP_BINARY, OP_CLOSE, OP_PING, OP_PONG, OP_TEXT, Frame

import http2_wire

parser = argparse.ArgumentParser()
parser.add_argument("--proxy", type=int, required=True)
parser.add_argument("--ca", required=True)
parser.add_argument("--authority", required=True)
parser.add_argument("--stop", type=int)
options = parser.parse_args()


def is_stopped(process):
    threads = pathlib.Path(f"/proc/{process}/task").glob("*/stat")
    return {thread.read_text().rsplit(")", 1)[1].split()[0] for thread in threads} == {"T"}


async def main():
    wire = await http2_wire.connect(options.proxy, options.authority, options.ca)
    wire.begin()
    await wire.until(lambda: wire.has_settings)
    assert wire.settings.get(8) == 1, "no extended CONNECT"
    number = wire.request(
        [
            (":method", "CONNECT"),
            (":protocol", "websocket"),
            (":scheme", "https"),
            (":authority", options.authority),
            (":path", "/"),
            ("sec-websocket-version", "13"),
            ("origin", "https://somewhere.test"),
        ],
        end=False,
    )
    stream = wire.streams[number]
    await wire.until(lambda: stream.heads)
    fields = dict(stream.heads[0])
    assert fields[":status"] == "200", fields
    assert not {"connection", "upgrade", "sec-websocket-accept"} & set(fields), fields
    received = bytearray()
    stream.receive = received.extend

    def exactly(count):
        while len(received) < count:
            yield
        data = bytes(received[:count])
        del received[:count]
        return data

    async def next_frame():
        reading = Frame.parse(exactly, mask=False, max_size=None)
        while True:
            try:
                next(reading)
            except StopIteration as done:
                return done.value
            assert not wire.is_over and stream.code is None, "cut"
            await wire.wait()

    async def next_message():
        message = b""
        while True:
            frame = await next_frame()
            message += frame.data
            if frame.fin:
                return message

    async def send(opcode, data, end=False):
        await wire.send(number, Frame(opcode, data).serialize(mask=True), end)

    for opcode, message in [
        (OP_TEXT, b"hello"),
        (OP_TEXT, b""),
        (OP_BINARY, b"\x00\xff" * 10),
        (OP_BINARY, os.urandom(3_000_000)),
    ]:
        sending = asyncio.create_task(send(opcode, message))
        assert await next_message() == message, len(message)
        await sending
    # Many in flight at once, in order.
    for count in range(500):
        await send(OP_TEXT, b"%d" % count)
    for count in range(500):
        assert await next_message() == b"%d" % count
    await send(OP_PING, b"alive")
    frame = await next_frame()
    assert (frame.opcode, frame.data) == (OP_PONG, b"alive")
    await send(OP_CLOSE, b"\x03\xe8")
    frame = await next_frame()
    assert frame.opcode == OP_CLOSE, frame
    if options.stop:
        await wire.until(lambda: stream.has_ended)
        os.kill(options.stop, signal.SIGSTOP)
        while not is_stopped(options.stop):
            await asyncio.sleep(0.001)
    await wire.send(number, b"", end=True)
    if options.stop:
        wire.transport.abort()
        await wire.until(lambda: wire.is_over)
        os.kill(options.stop, signal.SIGCONT)
    await wire.until(lambda: stream.has_ended or stream.code is not None)
    print("closed", int.from_bytes(frame.data[:2], "big"), "ended" if stream.has_ended else stream.code)


asyncio.run(main())
