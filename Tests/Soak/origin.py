"""The scripted origin, with TLS on port 443 and plain HTTP on port 80. The path of a request selects the failure. Hosts
with an even number use HTTP/2 (http2_side.py)."""

import asyncio
import hashlib
import socket
import ssl
import struct

from ends import CLOSED, reset
from http2_side import HTTP2Origin
from plan import AUTHORIZATION, SILENCE, Exchange
from policy import PATH

HINTS = b"HTTP/1.1 103 Early Hints\r\nLink: </style>\r\n\r\n"


class Arriving(asyncio.StreamReaderProtocol):
    """A connection before its protocol is known, which TLS negotiates."""

    def __init__(self, origin, reader):
        super().__init__(reader)
        self.origin, self.is_http2 = origin, False

    def connection_made(self, transport):
        secure = transport.get_extra_info("ssl_object")
        if not secure or secure.selected_alpn_protocol() != "h2":
            return super().connection_made(transport)
        self.is_http2 = True
        successor = HTTP2Origin(self.origin)
        transport.set_protocol(successor)
        successor.connection_made(transport)


class Origin:
    def __init__(self, folder, chance, policy, report):
        """
        - Parameters:
          - folder: contains its certificate and key.
          - policy: serves bundles.
          - report: is called with a request that no client has sent.
        """
        self.contexts = {}
        for offered in ["http/1.1", "h2"]:
            self.contexts[offered] = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.contexts[offered].load_cert_chain(folder / "origin.pem", folder / "origin.key")
            self.contexts[offered].set_alpn_protocols([offered, "http/1.1"])
        self.contexts["http/1.1"].sni_callback = self.choose
        self.chance = chance
        self.policy = policy
        self.report = report
        self.is_calm = True
        self.tried = {}
        self.running = set()
        self.reports = 0

    async def start(self):
        for port in (80, 443):
            listener = socket.create_server(("127.0.0.1", port), backlog=1024)
            listener.setblocking(False)
            self.keep(self.accept(listener, self.contexts["http/1.1"] if port == 443 else None))

    def choose(self, connection, host, _):
        """Even hosts use HTTP/2. While things break, a host sometimes changes its choice."""
        is_even = host is not None and host[1:2].isdigit() and int(host[1]) % 2 == 0
        if is_even != (not self.is_calm and self.chance.random() < 0.02):
            connection.context = self.contexts["h2"]

    def keep(self, coroutine):
        task = asyncio.get_running_loop().create_task(coroutine)
        self.running.add(task)
        task.add_done_callback(self.running.discard)

    async def accept(self, listener, context):
        loop = asyncio.get_running_loop()
        while True:
            connection, _ = await loop.sock_accept(listener)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.keep(self.connected(connection, context))

    async def connected(self, connection, context):
        loop = asyncio.get_running_loop()
        kind = 1 if self.is_calm else self.chance.random()
        try:
            if kind < 0.01:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                return connection.close()
            if kind < 0.012:
                await asyncio.sleep(SILENCE)
                return connection.close()
            if kind < 0.02:
                await loop.sock_recv(connection, 4096)
                await loop.sock_sendall(connection, self.chance.randbytes(self.chance.randrange(1, 300)))
                return connection.close()
            if kind < 0.025:
                # A handshake record that is never completed.
                await loop.sock_recv(connection, 4096)
                await loop.sock_sendall(connection, b"\x16\x03\x03\x01\x00\x02\x00\x00")
                return connection.close()
            reader = asyncio.StreamReader(1 << 18)
            protocol = Arriving(self, reader)
            transport, _ = await loop.connect_accepted_socket(lambda: protocol, connection, ssl=context)
            if protocol.is_http2:
                return
            writer = asyncio.StreamWriter(transport, protocol, reader, loop)
        except (OSError, EOFError):
            return connection.close()
        try:
            while await self.serve(reader, writer, context is not None):
                pass
        except CLOSED:
            pass
        finally:
            writer.transport.abort()

    async def serve(self, reader, writer, is_secure):
        """Serves one request. False: the connection has ended."""
        head = await reader.readuntil(b"\r\n\r\n")
        first, *lines = head[:-4].decode("latin-1").split("\r\n")
        method, target, _ = first.split(" ")
        fields = {}
        for line in lines:
            name, _, value = line.partition(":")
            fields[name.lower()] = value.strip()
        body = await self.upload(reader, writer, fields)
        if target.startswith("/collector"):
            self.reports += 1
            return await self.send(writer, b"HTTP/1.1 204 No Content\r\n\r\n")
        if target == PATH:
            return await self.policy.serve(self.is_calm, lambda data: self.send(writer, data))
        exchange = self.exchange(method, target, fields, body)
        return bool(exchange) and await self.answer(exchange, target, fields, writer)

    def exchange(self, method, target, fields, body):
        """The exchange of a request. Reports a request that no client has sent, and returns None."""
        exchange = Exchange.of(target.removeprefix("/moved"))
        if not exchange or exchange.method != method:
            return self.report(f"a request that nobody sent: {method} {target}")
        if exchange.method == "POST" and body != exchange.upload:
            return self.report(f"{target}: another body arrived, {len(body)} bytes of {len(exchange.upload)}")
        if exchange.kind == "rewritten" and (fields.get("x-client") != "fleet" or "referer" in fields):
            return self.report(f"{target}: the request rules weren't applied: {sorted(fields)}")
        return exchange

    def tries(self, exchange):
        """How often it was requested, including this time."""
        tries = self.tried[exchange.identifier] = self.tried.get(exchange.identifier, 0) + 1
        return tries

    async def upload(self, reader, writer, fields):
        if fields.get("expect", "").lower() == "100-continue":
            writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        if "transfer-encoding" not in fields:
            return await reader.readexactly(int(fields.get("content-length", 0)))
        pieces = []
        while True:
            size = int((await reader.readuntil(b"\r\n")).split(b";")[0], 16)
            piece = await reader.readexactly(size + 2)
            if not size:
                return b"".join(pieces)
            pieces.append(piece[:-2])

    async def send(self, writer, data):
        writer.write(data)
        await writer.drain()
        return True

    def head(self, exchange, status, *fields):
        lines = [f"HTTP/1.1 {status} Soak", f"X-Origin: {exchange.tag}", *fields]
        return ("\r\n".join(lines) + "\r\n\r\n").encode()

    def chunks(self, body):
        """The body in chunks of several sizes, without the last chunk."""
        at, sizes, pieces = 0, hashlib.md5(body).digest(), []
        while at < len(body):
            size = 1 + sizes[len(pieces) % 16] * (len(body) // 700 + 1)
            piece = body[at : at + size]
            pieces.append(b"%x\r\n%s\r\n" % (len(piece), piece))
            at += size
        return b"".join(pieces)

    async def answer(self, exchange, target, fields, writer):
        kind, body, length = exchange.kind, exchange.whole, f"Content-Length: {len(exchange.whole)}"
        head = self.head
        half = len(body) // 2
        if kind == "redirect" and not target.startswith("/moved"):
            return await self.send(writer, head(exchange, 302, f"Location: /moved{exchange.path}", "Content-Length: 0"))
        if kind == "loop":
            return await self.send(writer, head(exchange, 302, f"Location: {target}", "Content-Length: 0"))
        if kind == "challenge":
            if fields.get("authorization") != AUTHORIZATION:
                return await self.send(
                    writer, head(exchange, 401, 'WWW-Authenticate: Basic realm="soak"', "Content-Length: 0")
                )
        if kind == "unchanged":
            return await self.send(writer, head(exchange, 304, f'ETag: "{exchange.tag}"'))
        if kind == "head":
            return await self.send(writer, head(exchange, 200, length))
        if kind == "part":
            first, last = exchange.part
            return await self.send(
                writer,
                head(
                    exchange,
                    206,
                    f"Content-Range: bytes {first}-{last}/{len(body)}",
                    f"Content-Length: {last - first + 1}",
                )
                + body[first : last + 1],
            )
        if kind in ("chunked", "trailers", "cut-chunks", "bad-chunk"):
            chunks = self.chunks(body)
            trailer = f"0\r\nX-Sum: {exchange.tag}\r\n\r\n".encode()
            end = {"chunked": b"0\r\n\r\n", "trailers": trailer, "bad-chunk": b"-5\r\nabcde\r\n0\r\n\r\n"}.get(kind)
            await self.send(
                writer,
                head(exchange, 200, "Transfer-Encoding: chunked") + (chunks if end else chunks[: len(chunks) // 2]),
            )
            if end:
                return await self.send(writer, end)
            return False
        if kind == "ended":
            await self.send(writer, HINTS + head(exchange, 200, "Connection: close") + body)
            # Inside TLS with close_notify.
            writer.close()
            await asyncio.wait_for(writer.wait_closed(), 5)
            return False
        if kind == "cut-ended":
            await self.send(writer, head(exchange, 200, "Connection: close") + body[:half])
            if writer.get_extra_info("ssl_object") is None:
                reset(writer.transport)
            # Inside TLS the connection ends without close_notify.
            return False
        if kind in ("reset", "once-reset"):
            if kind == "reset" or self.tries(exchange) == 1:
                reset(writer.transport)
                return False
        if kind == "reset-head":
            await self.send(writer, head(exchange, 200, length)[:40])
            reset(writer.transport)
            return False
        if kind in ("reset-body", "cut-length"):
            await self.send(writer, head(exchange, 200, length) + body[:half])
            if kind == "reset-body":
                reset(writer.transport)
            return False
        if kind in ("silent", "stall"):
            if kind == "stall":
                await self.send(writer, head(exchange, 200, length) + body[:half])
            await asyncio.sleep(SILENCE)
            return False
        if kind == "garbage":
            await self.send(writer, b"\x00\xff" + exchange.bytes()[:200] + b"\r\n\r\n")
            return False
        if kind == "bad-length":
            await self.send(writer, head(exchange, 200, length, f"Content-Length: {len(body) + 1}") + body)
            return False
        if kind in ("head-over", "head-under"):
            # limits.response_head is 32 KiB.
            field = "X-Long: " + "x" * (34_000 if kind == "head-over" else 30_000)
            return await self.send(writer, head(exchange, 200, length, field) + body)
        if kind == "trickle":
            await self.send(writer, head(exchange, 200, length))
            for at in range(0, len(body), 64):
                await asyncio.sleep(0.2)
                await self.send(writer, body[at : at + 64])
            return True
        if kind == "download":
            return await self.download(exchange, fields, writer)
        content = [f"{name}: {value}" for name, value in exchange.content_fields]
        if exchange.is_known(fields):
            return await self.send(writer, head(exchange, 304, *content))
        return await self.send(writer, head(exchange, exchange.status, length, *content) + body)

    async def download(self, exchange, fields, writer):
        """Interrupts the transfer twice, and supports resumption."""
        body, first = exchange.whole, exchange.first_byte(fields)
        more = [f"{name}: {value}" for name, value in exchange.download_fields(first)]
        await self.send(
            writer, self.head(exchange, 206 if first else 200, f"Content-Length: {len(body) - first}", *more)
        )
        if self.tries(exchange) <= 2:
            await self.send(writer, body[first : first + (len(body) - first) // 2])
            return False
        return await self.send(writer, body[first:])
