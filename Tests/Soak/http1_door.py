"""A client's HTTP/1.1 connection, with one request at a time."""

import asyncio

from ends import reset


class Break(Exception):
    """The connection ended before the response did, visibly for the client."""


class Result:
    """A response. None: the client has left."""

    def __init__(self, status, fields, body, trailers=()):
        self.status, self.fields, self.body, self.trailers = status, fields, body, list(trailers)


async def read_response(reader, method, heard):
    """- Parameter heard: is called at the first byte of a head."""
    while True:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.LimitOverrunError:
            raise Break("a head without an end") from None
        heard()
        first, *lines = head[:-4].decode("latin-1").split("\r\n")
        status = int(first.split(" ")[1])
        if status >= 200:
            break
    fields = {}
    for line in lines:
        name, _, value = line.partition(":")
        if name.lower() in ("content-length", "x-origin") and name.lower() in fields:
            raise ValueError(f"two fields {name}")
        fields[name.lower()] = value.strip()
    if method == "HEAD" or status in (204, 304):
        return Result(status, fields, b"")
    if fields.get("transfer-encoding", "").lower() == "chunked":
        pieces = []
        while True:
            size = int((await reader.readuntil(b"\r\n")).split(b";")[0], 16)
            if not size:
                trailers = []
                while (line := await reader.readuntil(b"\r\n")) != b"\r\n":
                    name, _, value = line.decode("latin-1").partition(":")
                    trailers.append((name.lower(), value.strip()))
                return Result(status, fields, b"".join(pieces), trailers)
            pieces.append((await reader.readexactly(size + 2))[:-2])
    if "content-length" in fields:
        return Result(status, fields, await reader.readexactly(int(fields["content-length"])))
    raise ValueError("a body whose end the client can't see")


class HTTP1Door:
    #: The number of concurrent requests.
    most = 1

    def __init__(self, reader, writer, secure):
        self.reader, self.writer, self.secure = reader, writer, secure
        #: Whether it accepts another request.
        self.is_usable = False

    def abort(self):
        self.writer.transport.abort()

    def request(self, exchange, host):
        target = exchange.path if self.secure else f"http://{host}{exchange.path}"
        lines = [f"{exchange.method} {target} HTTP/1.1", f"Host: {host}"]
        body = b""
        if exchange.method == "POST":
            body = exchange.upload
            if exchange.kind == "post-chunked":
                lines.append("Transfer-Encoding: chunked")
                half = len(body) // 2
                body = (
                    b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (body[:half], body[half:]) if part)
                    + b"0\r\n\r\n"
                )
            else:
                lines.append(f"Content-Length: {len(body)}")
        lines += [f"{name}: {value}" for name, value in exchange.request_fields]
        return ("\r\n".join(lines) + "\r\n\r\n").encode() + body

    async def ask(self, exchange, host, habit, chance, heard):
        """
        - Parameter habit: if small, the client leaves in the middle, reads late, or closes its side.
        - Parameter heard: is called at the first byte of a head.
        """
        self.is_usable = False
        data = self.request(exchange, host)
        if habit < 0.005:
            self.writer.write(data[: chance.randrange(len(data))])
            return self.leave(chance)
        self.writer.write(data)
        if habit < 0.01:
            return self.leave(chance)
        if habit < 0.015 and not self.secure:
            self.writer.write_eof()
        await self.writer.drain()
        if habit < 0.03:
            await asyncio.sleep(chance.uniform(0.05, 1))
        if habit < 0.035:
            await self.reader.read(300)
            return self.leave(chance)
        result = await read_response(self.reader, exchange.method, heard)
        self.is_usable = result.fields.get("connection", "").lower() != "close" and habit >= 0.015
        return result

    def leave(self, chance):
        if chance.random() < 0.5:
            reset(self.writer.transport)
        return None
