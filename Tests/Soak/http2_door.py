"""A client's HTTP/2 connection with concurrent requests. h2 rejects anything that the proxy may not send."""

import asyncio
import pathlib
import sys

import h2.events
import h2.exceptions
import h2.settings

sys.path.append(str(pathlib.Path(__file__).parents[1] / "IntegrationTests" / "Peers"))
import http2_streams  # noqa: E402
from http1_door import Break, Result  # noqa: E402


class Stream(http2_streams.Stream):
    heard = staticmethod(lambda: None)


class HTTP2Door(http2_streams.Connection):
    stream_type = Stream

    def __init__(self, chance, report):
        self.chance, self.report = chance, report
        self.most = chance.choice([1, 4, 12])
        self.is_going = self.was_left = False

    def connection_made(self, transport):
        super().connection_made(transport)
        chosen = transport.get_extra_info("ssl_object").selected_alpn_protocol()
        if chosen != "h2":
            self.report(f"{chosen} was chosen of h2 and http/1.1")
            return transport.abort()
        window = self.chance.choice([2_000, 65_535, 1 << 20])
        self.begin(
            {h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: window, h2.settings.SettingCodes.ENABLE_PUSH: 0},
            is_client=True,
        )
        self.flush()

    @property
    def is_usable(self):
        return not (self.is_over or self.is_going or self.was_left)

    def abort(self):
        self.transport.abort()

    def objected(self, error):
        self.report(f"the proxy breaks HTTP/2 to a client: {type(error).__name__}: {error}")

    def happened(self, event, stream):
        match event:
            case h2.events.ResponseReceived() if stream:
                stream.heard()
            case h2.events.ConnectionTerminated():
                self.is_going = True
                for number, stream in self.streams.items():
                    # It wasn't processed (RFC 9113 section 6.8).
                    if event.last_stream_id is not None and number > event.last_stream_id and stream.code is None:
                        stream.code = 7

    def fields(self, exchange, host):
        fields = [(":method", exchange.method), (":scheme", "https"), (":authority", host), (":path", exchange.path)]
        if exchange.kind == "post":
            fields.append(("content-length", str(len(exchange.upload))))
        return fields + [(name.lower(), value) for name, value in exchange.request_fields if name != "Connection"]

    async def ask(self, exchange, host, habit, chance, heard):
        """See ``HTTP1Door``."""
        if not self.is_usable:
            raise Break("the connection is over")
        body = exchange.upload if exchange.method == "POST" else b""
        stream = None
        try:
            stream = self.request(self.fields(exchange, host), end=not body)
            stream.heard = heard
            if habit < 0.005:
                return self.leave(stream)
            if body:
                await self.upload(stream, body)
            if habit < 0.01:
                return self.leave(stream)
            if habit < 0.03:
                await asyncio.sleep(chance.uniform(0.05, 1))
            while stream.fields is None:
                stream.check()
                await stream.wait()
            if habit < 0.035:
                return self.leave(stream)
            return self.result(stream, b"".join([piece async for piece in stream.pieces()]))
        except (http2_streams.Gone, h2.exceptions.ProtocolError) as error:
            if self.was_left:
                return None
            code = stream.code if stream else None
            raise Break(f"stream {stream and stream.number} by {code}, {error!r}, over: {self.is_over}") from None
        finally:
            if stream:
                stream.finish()
                self.streams.pop(stream.number, None)

    async def upload(self, stream, body):
        try:
            half = len(body) // 2
            await stream.send(body[:half])
            await stream.send(body[half:], end=True)
        except http2_streams.Gone:
            # It may have been answered early (RFC 9113 section 8.1).
            if stream.fields is None:
                raise

    @staticmethod
    def result(stream, body):
        fields = {}
        for name, value in stream.fields:
            if name in ("content-length", "x-origin") and name in fields:
                raise ValueError(f"two fields {name}")
            fields[name] = value
        return Result(int(fields.pop(":status")), fields, body, stream.trailers)

    def leave(self, stream):
        """Ends this exchange, or the whole connection."""
        if self.chance.random() < 0.1:
            self.was_left = True
            self.transport.abort()
        elif not stream.has_ended:
            stream.reset("CANCEL")
        return None
