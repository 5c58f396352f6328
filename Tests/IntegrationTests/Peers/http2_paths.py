"""The behaviours of http2_origin.py by path. `stream` is the request's `Stream`."""

import asyncio
import hashlib
import struct

from websockets.frames import OP_CLOSE, OP_PING, OP_PONG, Frame

from events import say

BLOCK = bytes(range(256)) * 256
releases = {}
counts = {}


def release(name):
    return releases.setdefault(name, asyncio.Event())


def first(stream, limit):
    """Whether this is one of the first `limit` requests for the path."""
    counts[stream.path] = counts.get(stream.path, 0) + 1
    return counts[stream.path] <= int(limit)


def goaway(stream, last, code=0):
    """Sends only the frame: h2 would close the connection."""
    payload = struct.pack(">II", last, code)
    stream.connection.flush()
    stream.connection.transport.write(struct.pack(">I", len(payload))[1:] + b"\x07\x00\x00\x00\x00\x00" + payload)
    say("goaway-sent", connection=stream.connection.number, last=last)


async def large(stream, argument):
    """/large/N: N bytes of one pattern."""
    left = int(argument)
    stream.head(200, ("content-length", argument), end=left == 0)
    while left:
        piece = BLOCK[:left]
        left -= len(piece)
        await stream.send(piece, end=left == 0)


async def told(stream, argument):
    """/told/N: like /large/N, and reports when the client has received all of it."""
    await large(stream, argument)
    stream.connection.h2.ping(stream.number.to_bytes(8, "big"))
    stream.connection.flush()


async def endless(stream):
    """/endless: a body of unknown length, until the stream is reset."""
    stream.head()
    while True:
        await stream.send(BLOCK)


async def slow_echo(stream):
    """/slow-echo: reads its body in small pieces, with pauses."""
    digest, length = hashlib.sha256(), 0
    async for piece in stream.pieces():
        digest.update(piece)
        length += len(piece)
        await asyncio.sleep(0.0005)
    await stream.answer(f"{length} {digest.hexdigest()}")


async def unread(stream, name):
    """/unread/NAME: reads nothing of its body before /release/NAME."""
    say("held", name=name, connection=stream.connection.number)
    await release(name).wait()
    await stream.echo()


async def chunked(stream):
    """/chunked: a body of unknown length, and trailers."""
    stream.head(200, ("trailer", "x-sum"))
    await stream.send(b"hello, world")
    stream.end([("x-sum", "12")])


async def hints(stream):
    stream.head(103, ("link", "</style.css>; rel=preload"))
    await stream.answer("hinted\n")


async def interims(stream, number):
    """/interims/N: N interim responses."""
    for _ in range(int(number)):
        stream.head(102)
    await stream.answer("at last\n")


async def expectation(stream):
    """Sends 100 before reading the body, if the request expects it."""
    if stream.field("expect") == "100-continue":
        if stream.received:
            say("impatient", connection=stream.connection.number)
        stream.head(100)
    await stream.echo()


async def refused_expectation(stream):
    """Answers 417 to each request with an expectation, and stops its body."""
    if not stream.field("expect"):
        return await stream.echo()
    stream.head(417, ("content-length", "0"), end=True)
    if not stream.has_ended:
        stream.reset("NO_ERROR")


async def early(stream):
    """/early: a final response during the upload, which is then stopped."""
    await stream.answer("big\n", 413)
    stream.reset("NO_ERROR")


async def duplex(stream):
    """/duplex: echoes the body while it arrives, and counts it in a trailer."""
    stream.head(200)
    length = 0
    async for piece in stream.pieces():
        length += len(piece)
        await stream.send(piece)
    stream.end([("x-length", str(length))])


async def status(stream, code):
    """/status/204: no body, and no fields about one."""
    stream.head(code, ("x-kept", "yes"), end=True)


async def not_modified(stream):
    stream.head(304, ("content-length", "1234"), ("etag", '"e"'), end=True)


async def head_length(stream):
    stream.head(200, ("content-length", "1234"), end=True)


async def cookies(stream):
    """/cookies: sets two cookies."""
    await stream.answer("set\n", 200, ("set-cookie", "a=1; Path=/"), ("set-cookie", "b=2; Path=/"))


async def length(stream, argument):
    """/length/N/M: announces N bytes, and sends M."""
    said, sent = argument.split("/")
    stream.head(200, ("content-length", said), end=sent == "0")
    if sent != "0":
        await stream.send(b"x" * int(sent), end=True)


async def field(stream, argument):
    """/field/HEX/HEX: a response with that field, name and value."""
    name, value = (bytes.fromhex(part).decode("latin-1") for part in argument.split("/"))
    await stream.answer("with a field\n", 200, (name, value))


async def refused(stream, argument):
    """/refused/N/NAME: REFUSED_STREAM for the first N requests."""
    if first(stream, argument.split("/")[0]):
        return stream.reset("REFUSED_STREAM")
    await stream.echo()


async def leaving(stream, argument):
    """/leaving/N/NAME: closes the first N connections with a GOAWAY that leaves the request unprocessed."""
    if first(stream, argument.split("/")[0]):
        goaway(stream, stream.number - 2 if stream.number > 1 else 0)
        return stream.connection.transport.close()
    await stream.echo()


async def last(stream, argument):
    """/last/NAME: GOAWAY, then the response after /release/NAME."""
    goaway(stream, stream.number)
    say("held", name=argument, connection=stream.connection.number)
    await release(argument).wait()
    await stream.answer("the last one\n")


async def only_http1(stream):
    stream.reset("HTTP_1_1_REQUIRED")


async def broken(stream, argument):
    """/broken/N/CODE: N bytes of a larger body, then a reset."""
    sent, code = argument.split("/")
    stream.head(200, ("content-length", "10000000"))
    await stream.send(b"#" * int(sent))
    stream.reset(code)


async def cut(stream, argument):
    """/cut/N: N bytes of a body of unknown length, then the connection closes."""
    stream.head()
    await stream.send(b"#" * int(argument))
    stream.connection.transport.close()


async def part(stream, argument):
    """/part/BREAK/SIZE/NAME: SIZE bytes, at most BREAK per stream. Range requests work as specified."""
    limit, size, _ = argument.split("/")
    asked, start = stream.field("range"), 0
    say("asked", target=stream.path, range=asked or "")
    if asked and stream.field("if-range") in (None, '"1"'):
        start = int(asked.removeprefix("bytes=").split("-")[0])
        stream.head(
            206,
            ("etag", '"1"'),
            ("content-range", f"bytes {start}-{int(size) - 1}/{size}"),
            ("content-length", str(int(size) - start)),
        )
    else:
        stream.head(200, ("etag", '"1"'), ("accept-ranges", "bytes"), ("content-length", size))
    end = min(int(size), start + int(limit))
    while start < end:
        offset = start % 256
        piece = BLOCK[offset : offset + min(end - start, 60_000)]
        start += len(piece)
        await stream.send(piece, end=start == int(size))
    if end < int(size):
        stream.reset("INTERNAL_ERROR")


async def hold(stream, name):
    """/hold/NAME: the head and half of the body, then the rest after /release/NAME."""
    stream.head(200, ("content-length", "12"))
    await stream.send(b"first,")
    say("held", name=name, connection=stream.connection.number)
    await release(name).wait()
    await stream.send(b"second", end=True)


async def release_held(stream, name):
    release(name).set()
    await stream.answer("released\n")


async def silent(stream, stage):
    """/silent/STAGE: sends nothing more after the stage, and keeps the connection. STAGE is request, head or data, or
    end: a response without content lacks END_STREAM."""
    if stage != "request":
        stream.head(200, ("content-length", "0" if stage == "end" else "9999"))
    if stage == "data":
        await stream.send(b"first")
    say("silent", connection=stream.connection.number)


async def deaf(stream, name):
    """/deaf/NAME: the connection reads nothing more, and so acknowledges no PING."""
    stream.connection.transport.pause_reading()
    say("deaf", name=name, connection=stream.connection.number)


async def trickle(stream, stage):
    """/trickle/STAGE: endless interim heads (head) or single bytes (data)."""
    if stage == "data":
        stream.head(200, ("content-length", "9999"))
    while True:
        if stage == "data":
            await stream.send(b"x")
        else:
            stream.head(102)
        await asyncio.sleep(0.05)


async def frames(stream):
    """The WebSocket frames in the stream's bytes."""
    pieces, received = stream.pieces(), bytearray()

    def exactly(count):
        while len(received) < count:
            yield
        data = bytes(received[:count])
        del received[:count]
        return data

    while True:
        reading = Frame.parse(exactly, mask=True, max_size=None)
        while True:
            try:
                next(reading)
            except StopIteration as done:
                yield done.value
                break
            try:
                received += await anext(pieces)
            except StopAsyncIteration:
                return


async def websocket(stream):
    """An extended CONNECT: /refused answers 403, any other path echoes WebSocket messages."""
    if stream.path == "/refused":
        return await stream.answer("no\n", 403)
    stream.head(200, *[("sec-websocket-protocol", "chat")] * (stream.field("sec-websocket-protocol") is not None))
    message, kind = b"", 0
    async for frame in frames(stream):
        if frame.opcode == OP_PING:
            await stream.send(Frame(OP_PONG, frame.data).serialize(mask=False))
        elif frame.opcode == OP_CLOSE:
            return await stream.send(Frame(OP_CLOSE, frame.data).serialize(mask=False), end=True)
        elif frame.opcode != OP_PONG:
            kind, message = frame.opcode or kind, message + frame.data
            if frame.fin:
                await stream.send(Frame(kind, message).serialize(mask=False))
                message = b""
    stream.end()


PATHS = {
    "large": large,
    "told": told,
    "endless": endless,
    "slow-echo": slow_echo,
    "unread": unread,
    "chunked": chunked,
    "hints": hints,
    "interims": interims,
    "expectation": expectation,
    "refused-expectation": refused_expectation,
    "early": early,
    "duplex": duplex,
    "status": status,
    "not-modified": not_modified,
    "head-length": head_length,
    "cookies": cookies,
    "length": length,
    "field": field,
    "refused": refused,
    "leaving": leaving,
    "last": last,
    "only-http1": only_http1,
    "broken": broken,
    "cut": cut,
    "part": part,
    "hold": hold,
    "release": release_held,
    "silent": silent,
    "deaf": deaf,
    "trickle": trickle,
}
