"""The scripted origin over HTTP/2: the same exchanges, broken at the level of frames."""

import asyncio
import pathlib
import struct
import sys

import h2.events
import h2.exceptions
import h2.settings

from ends import reset
from plan import AUTHORIZATION, SILENCE

sys.path.append(str(pathlib.Path(__file__).parents[1] / "IntegrationTests" / "Peers"))
import http2_streams  # noqa: E402

CODES = [
    "NO_ERROR",
    "PROTOCOL_ERROR",
    "INTERNAL_ERROR",
    "FLOW_CONTROL_ERROR",
    "CANCEL",
    "ENHANCE_YOUR_CALM",
    "STREAM_CLOSED",
]


class HTTP2Origin(http2_streams.Connection):
    def __init__(self, origin):
        self.origin, self.chance = origin, origin.chance
        #: Streams after this one are not processed.
        self.last = 1 << 31

    def connection_made(self, transport):
        super().connection_made(transport)
        settings = h2.settings.SettingCodes
        self.begin(
            {
                settings.MAX_CONCURRENT_STREAMS: self.chance.choice([2, 10, 100]),
                settings.INITIAL_WINDOW_SIZE: self.chance.choice([1_000, 65_535, 1 << 20]),
            }
        )
        self.flush()

    def objected(self, error):
        self.origin.report(f"the proxy breaks HTTP/2 to an origin: {type(error).__name__}: {error}")

    def happened(self, event, stream):
        if not isinstance(event, h2.events.RequestReceived):
            return
        if stream.number <= self.last:
            self.origin.keep(self.serve(stream))
        else:
            self.refuse(stream)

    def refuse(self, stream):
        """Refuses a stream after the last one in h2, which doesn't know about the GOAWAY."""
        stream.reset("REFUSED_STREAM")
        stream.code = 7
        stream.news.set()

    def raw(self, data):
        """Sends bytes without h2's knowledge."""
        self.flush()
        if not self.transport.is_closing():
            self.transport.write(data)

    def go_away(self, last):
        self.raw(struct.pack(">HBBBIII", 0, 8, 7, 0, 0, last, 0))
        self.last = last
        for stream in self.streams.values():
            if stream.number > last and stream.code is None:
                self.refuse(stream)

    async def serve(self, stream):
        try:
            fields = dict(stream.fields)
            target = fields[":path"]
            body = b"".join([piece async for piece in stream.pieces()])
            exchange = self.origin.exchange(fields[":method"], target, fields, body)
            if not exchange:
                return stream.reset("INTERNAL_ERROR")
            await self.answer(exchange, target, fields, stream)
        except http2_streams.Gone:
            pass
        except h2.exceptions.ProtocolError as error:
            if not self.transport.is_closing():
                self.origin.report(f"{target}: the origin itself is wrong: {error!r}")
        finally:
            stream.finish()
            self.streams.pop(stream.number, None)
            if self.last < 1 << 31 and all(number > self.last for number in self.streams):
                self.transport.close()

    def cut(self, stream, *codes):
        """Ends a stream early, sometimes the whole connection."""
        if not codes and self.chance.random() < 0.1:
            return reset(self.transport)
        stream.reset(self.chance.choice(codes or CODES))

    async def answer(self, exchange, target, fields, stream):
        kind, body = exchange.kind, exchange.whole
        tag, length, half = ("x-origin", exchange.tag), ("content-length", str(len(body))), len(body) // 2
        if kind == "unprocessed" and self.origin.tries(exchange) == 1:
            way = self.chance.random()
            if way < 0.1:
                return self.go_away(max(0, stream.number - 2))
            return stream.reset("HTTP_1_1_REQUIRED" if way < 0.2 else "REFUSED_STREAM")
        if kind == "redirect" and not target.startswith("/moved"):
            return await stream.answer(b"", 302, tag, ("location", f"/moved{exchange.path}"))
        if kind == "loop":
            return await stream.answer(b"", 302, tag, ("location", target))
        if kind == "challenge" and fields.get("authorization") != AUTHORIZATION:
            return await stream.answer(b"", 401, tag, ("www-authenticate", 'Basic realm="soak"'))
        if kind == "unchanged":
            return stream.head(304, tag, ("etag", f'"{exchange.tag}"'), end=True)
        if kind == "head":
            return stream.head(200, tag, length, end=True)
        if kind == "part":
            first, last = exchange.part
            return await stream.answer(
                body[first : last + 1], 206, tag, ("content-range", f"bytes {first}-{last}/{len(body)}")
            )
        if kind == "ended":
            stream.head(103, ("link", "</style>"))
        if kind in ("chunked", "trailers", "ended"):
            stream.head(200, tag)
            await stream.send(body, end=not exchange.trailers)
            return stream.end(exchange.trailers) if exchange.trailers else None
        if kind in ("cut-ended", "cut-chunks", "bad-chunk", "reset-body", "cut-length"):
            stream.head(200, tag, *([length] if kind in ("reset-body", "cut-length") else []))
            await stream.send(body[:half], end=kind == "cut-length")
            # A reset without an error doesn't end a body either.
            return None if kind == "cut-length" else self.cut(stream, *(["NO_ERROR"] if kind == "bad-chunk" else []))
        if kind == "reset" or kind == "once-reset" and self.origin.tries(exchange) == 1:
            return self.cut(stream)
        if kind == "reset-head":
            # HEADERS without the final CONTINUATION.
            self.raw(struct.pack(">HBBBI", 0, 1, 1, 0, stream.number) + b"\x88")
            return reset(self.transport)
        if kind in ("silent", "stall"):
            if kind == "stall":
                stream.head(200, tag, length)
                await stream.send(body[:half])
            await asyncio.sleep(SILENCE)
            return self.cut(stream)
        if kind == "garbage":
            self.raw(b"\x00\xff" + exchange.bytes()[:200])
            return self.transport.close()
        if kind == "bad-length":
            stream.head(200, tag, length, ("content-length", str(len(body) + 1)))
            return await stream.send(body, end=True)
        if kind in ("head-over", "head-under"):
            # limits.response_head is 32 KiB.
            return await stream.answer(body, 200, tag, ("x-long", "x" * (34_000 if kind == "head-over" else 30_000)))
        if kind == "trickle":
            stream.head(200, tag, length)
            for at in range(0, len(body), 64):
                await asyncio.sleep(0.2)
                await stream.send(body[at : at + 64], end=at + 64 >= len(body))
            return None
        if kind == "download":
            return await self.download(exchange, fields, stream)
        content = [(name.lower(), value) for name, value in exchange.content_fields]
        if exchange.is_known(fields):
            return stream.head(304, tag, *content, end=True)
        return await stream.answer(body, exchange.status, tag, *content)

    async def download(self, exchange, fields, stream):
        """See ``Origin``."""
        first = exchange.first_byte(fields)
        body = exchange.whole[first:]
        more = [(name.lower(), value) for name, value in exchange.download_fields(first)]
        head = 206 if first else 200, ("x-origin", exchange.tag), *more
        if self.origin.tries(exchange) > 2:
            return await stream.answer(body, *head)
        stream.head(*head, ("content-length", str(len(body))))
        await stream.send(body[: len(body) // 2])
        return self.cut(stream)
