"""An HTTP/2 client that executes commands, inside a CONNECT or on the proxy's own port.

    http2_client.py --proxy PORT --ca FILE

Each connection to the port that it announces is a separate client. Commands are lines of JSON, an object with `do` and
arguments; each is answered with a line of JSON:

    connect   authority, protocols, front, name (for the SNI): {status, protocol}, and the connection starts
    request   method, path, fields (added to the usual ones; null removes one) or exact fields, end, held:
              {stream}
    send      stream, count (of a pattern) or text or hex, end, trailers, later (don't wait for windows)
    head      stream: {status, fields} of the next head
    body      stream, count (how much to wait for): {count, sha256, isPattern, text, ended, trailers, reset}
    take      stream, count: allows more bytes on a held stream
    reset     stream, code
    raw       hex, times: bytes of frames
    ping      waits for the acknowledgement
    goaway    number: the nth GOAWAY, [last, code, text]
    settings  the peer's settings; or `announced`: new settings to send to it
    order     the streams of DATA frames so far
    closed    waits for the end: {cause}
    close     closes the connection
"""

import argparse
import asyncio
import json

from hyperframe.frame import PingFrame, SettingsFrame

import http2_wire
from events import say
from http2_wire import CODES

parser = argparse.ArgumentParser()
parser.add_argument("--proxy", type=int, required=True)
parser.add_argument("--ca", required=True)
options = parser.parse_args()
BLOCK = bytes(range(256)) * 256


class Client:
    def __init__(self):
        self.wire, self.tasks = None, set()

    async def connect(self, authority, protocols=("h2",), front=False, name=None, settings=None):
        self.authority = authority
        wire = await http2_wire.connect(options.proxy, authority, options.ca, protocols, front, name)
        if isinstance(wire, int):
            return {"status": wire}
        self.wire = wire
        if wire.protocol == "h2":
            wire.begin({int(key): value for key, value in settings.items()} if settings else None)
            await wire.until(lambda: wire.has_settings)
        return {"status": 200, "protocol": wire.protocol or ""}

    def stream(self, number):
        return self.wire.streams[number]

    async def request(self, method="GET", path="/echo", fields=(), exact=None, end=True, held=False):
        given = dict(fields)
        usual = {":method": method, ":scheme": "https", ":authority": self.authority, ":path": path}
        pseudo = [(name, given.get(name, value)) for name, value in usual.items()]
        others = sorted(
            (field for field in fields if field[0] not in usual), key=lambda field: not field[0].startswith(":")
        )
        whole = exact or [field for field in [*pseudo, *others] if field[1] is not None]
        return {"stream": self.wire.request([(n.encode("latin-1"), v.encode("latin-1")) for n, v in whole], end, held)}

    async def send(self, stream, count=0, text="", hex="", end=False, trailers=None, later=False):
        data = text.encode() or bytes.fromhex(hex) or (BLOCK * (count // len(BLOCK) + 1))[:count]

        async def work():
            await self.wire.send(stream, data, end and not trailers)
            if trailers:
                self.wire.trailers(stream, [tuple(field) for field in trailers])

        task = asyncio.create_task(work())
        self.tasks.add(task)
        if not later:
            await task
        return {}

    async def head(self, stream):
        state = self.stream(stream)
        seen = getattr(state, "seen", 0)
        await self.wire.until(lambda: len(state.heads) > seen or state.code is not None)
        if len(state.heads) <= seen:
            return self.ending(state)
        state.seen = seen + 1
        return {
            "status": int(dict(state.heads[seen])[":status"]),
            "fields": [list(field) for field in state.heads[seen]],
        }

    def ending(self, state):
        return {
            "ended": state.has_ended,
            "reset": None if state.code is None else CODES[state.code],
            "trailers": [list(field) for field in state.trailers],
            "isClosed": self.wire.is_over,
        }

    async def body(self, stream, count=None):
        state = self.stream(stream)
        await self.wire.until(
            lambda: state.has_ended or state.code is not None or (count is not None and state.count >= count)
        )
        return {
            "count": state.count,
            "sha256": state.digest.hexdigest(),
            "isPattern": state.is_pattern,
            "text": state.text.decode("latin-1"),
            **self.ending(state),
        }

    async def take(self, stream, count):
        self.wire.take(stream, count)
        return {}

    async def reset(self, stream, code="CANCEL"):
        self.wire.reset(stream, code)
        return {}

    async def raw(self, hex, times=1):
        self.wire.write(bytes.fromhex(hex) * times)
        return {}

    async def ping(self):
        wanted = self.wire.pongs + 1
        self.wire.write(PingFrame(0, b"whatever"))
        await self.wire.until(lambda: self.wire.pongs >= wanted)
        return {"isClosed": self.wire.is_over}

    async def goaway(self, number=1):
        await self.wire.until(lambda: len(self.wire.goaways) >= number)
        return {"goaways": [{"last": last, "code": code, "text": text} for last, code, text in self.wire.goaways]}

    async def settings(self, announced=None):
        if announced:
            announced = {int(key): value for key, value in announced.items()}
            self.wire.write(SettingsFrame(0, settings=announced))
        return {"settings": {str(key): value for key, value in self.wire.settings.items()}}

    async def order(self):
        return {"order": self.wire.order}

    async def closed(self):
        await self.wire.until(lambda: None)
        return {"cause": self.wire.cause}

    async def close(self):
        self.wire.transport.close()
        return {}


async def serve(reader, writer):
    client = Client()
    while line := await reader.readline():
        command = json.loads(line)
        try:
            answer = await getattr(client, command.pop("do"))(**command)
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        writer.write((json.dumps(answer) + "\n").encode())
    if client.wire:
        client.wire.transport.abort()
    writer.close()


async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0, limit=1 << 24)
    say("ready", port=server.sockets[0].getsockname()[1])
    await server.serve_forever()


asyncio.run(main())
