"""Clients of the proxy: they ask, read what comes and judge it; some break off in the middle."""

import asyncio
import socket
import ssl
import time

from origin import CLOSED, reset
from plan import NEVER_WHOLE, REFUSED, ZONE_OF, ZONES, make

PROXY = ("127.0.0.1", 7467)
REFUSED_HOSTS = ["wrong.test", "denied.test", "pinned.test", "nowhere.free.test"]
#: Beyond all time-outs and retries of the proxy.
PATIENCE = 120


class Break(Exception):
    """The connection ended before the response did, and the client could see it."""


class Result:
    def __init__(self, status, fields, body):
        self.status, self.fields, self.body = status, fields, body


async def read_response(reader, method, heard):
    """- Parameter heard: is called when the first byte of a head has come."""
    while True:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.LimitOverrunError:
            raise Break("a head without an end")
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
                while await reader.readuntil(b"\r\n") != b"\r\n":
                    pass
                return Result(status, fields, b"".join(pieces))
            pieces.append((await reader.readexactly(size + 2))[:-2])
    if "content-length" in fields:
        return Result(status, fields, await reader.readexactly(int(fields["content-length"])))
    raise ValueError("a body whose end the client can't see")


class Clients:
    """All clients of a lane. `begun`: by path, how many lines the log may and must have, and when the last one ended."""

    def __init__(self, lane, chance, proxy, context, report):
        self.lane, self.chance, self.proxy, self.context, self.report = lane, chance, proxy, context, report
        self.number = 0
        self.begun = {}
        self.right = self.refused = self.broken = self.left = 0
        self.failed_kinds = {}

    @property
    def count(self):
        return self.right + self.refused + self.broken + self.left

    async def round(self, count, at_a_time, is_calm):
        self.remaining, self.is_calm = count, is_calm
        await asyncio.gather(*(self.client() for _ in range(at_a_time)))

    async def client(self):
        while self.remaining > 0:
            shared = self.chance.random() < 0.02
            if shared:
                self.number += 1
                exchange = make(self.chance, f"{self.lane}-{self.number}", True)
                exchange.kind = "shared"
                secure = self.chance.random() < 0.5
                host = f"n{self.chance.randrange(10)}.share{'' if secure else '.plain'}.test"
                self.remaining -= 4
                await asyncio.gather(*(self.visit(secure, host, [exchange]) for _ in range(4)))
            else:
                await self.visit(self.chance.random() < 0.6)

    async def connect(self):
        loop = asyncio.get_running_loop()
        end = time.monotonic() + 40
        while True:
            connection = socket.socket()
            connection.setblocking(False)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            try:
                await loop.sock_connect(connection, PROXY)
                return connection
            except OSError as error:
                # It is being started again.
                connection.close()
                if time.monotonic() > end:
                    self.report(f"the proxy can't be connected to: {error}")
                    raise
                await asyncio.sleep(0.1)

    async def tunnel(self, connection, host):
        """The status of a CONNECT."""
        loop = asyncio.get_running_loop()
        await loop.sock_sendall(connection, f"CONNECT {host}:443 HTTP/1.1\r\nHost: {host}:443\r\n\r\n".encode())
        head = b""
        while b"\r\n\r\n" not in head:
            data = await loop.sock_recv(connection, 4096)
            if not data:
                raise Break("CONNECT wasn't answered")
            head += data
        return int(head.split(b" ")[1])

    async def visit(self, secure, host=None, exchanges=None):
        """One connection with some exchanges."""
        chance = self.chance
        zone = chance.choice(ZONES)
        count = 1 if exchanges else min(int(chance.expovariate(0.12)) + 1, 40)
        refused_host = None
        if not exchanges and not self.is_calm and chance.random() < 0.01:
            refused_host = chance.choice(REFUSED_HOSTS)
        connection = await self.connect()
        writer = None
        try:
            if secure:
                if not exchanges:
                    if chance.random() < 0.5 and not refused_host:
                        zone = chance.choice(list(ZONE_OF.values()))
                    host = refused_host or f"n{chance.randrange(10)}.{zone}.test"
                status = await asyncio.wait_for(self.tunnel(connection, host), PATIENCE)
                if status != 200:
                    return self.refused_tunnel(host, status)
            reader = asyncio.StreamReader(1 << 18)
            protocol = asyncio.StreamReaderProtocol(reader)
            transport, _ = await asyncio.wait_for(asyncio.get_running_loop().create_connection(
                lambda: protocol, sock=connection, ssl=self.context if secure else None,
                server_hostname=host if secure else None), PATIENCE)
            writer = asyncio.StreamWriter(transport, protocol, reader, asyncio.get_running_loop())
            for _ in range(count):
                if not exchanges:
                    self.number += 1
                    self.remaining -= 1
                one = exchanges[0] if exchanges else self.exchange(zone if secure and not refused_host else None)
                where = host if exchanges or secure else refused_host or self.host_of(one)
                if not await self.ask(one, where, secure, reader, writer):
                    return
        except TimeoutError:
            self.report(f"{host}: nothing came for {PATIENCE} s to CONNECT or in the handshake")
        except (Break, *CLOSED) as error:
            # Before the first request inside: nothing was promised.
            if self.is_calm:
                self.report(f"{host}: no connection though nobody breaks one: {error!r}")
        finally:
            if writer:
                writer.transport.abort()
            connection.close()

    def exchange(self, zone):
        """One that the hosts of a zone serve; nil: any."""
        while True:
            made = make(self.chance, f"{self.lane}-{self.number}", self.is_calm)
            if zone is None or ZONE_OF.get(made.kind, zone) == zone:
                return made

    def host_of(self, exchange):
        zone = ZONE_OF.get(exchange.kind) or self.chance.choice(ZONES)
        return f"n{self.chance.randrange(10)}.{zone}.plain.test"

    def refused_tunnel(self, host, status):
        if status < 400:
            self.report(f"{status} to CONNECT {host}")
        elif self.is_calm and "turning" not in host:
            self.report(f"{status} to CONNECT {host}, though nobody breaks anything")

    def request(self, exchange, host, secure):
        target = exchange.path if secure else f"http://{host}{exchange.path}"
        lines = [f"{exchange.method} {target} HTTP/1.1", f"Host: {host}"]
        body = b""
        if exchange.method == "POST":
            body = exchange.upload
            if exchange.kind == "post-chunked":
                lines.append("Transfer-Encoding: chunked")
                half = len(body) // 2
                body = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (body[:half], body[half:]) if part) + b"0\r\n\r\n"
            else:
                lines.append(f"Content-Length: {len(body)}")
        if exchange.kind == "unchanged":
            lines.append(f'If-None-Match: "{exchange.tag}"')
        if exchange.kind == "part":
            lines.append("Range: bytes={}-{}".format(*exchange.part))
        if exchange.kind == "rewritten":
            lines.append("Referer: http://elsewhere.test/")
        return ("\r\n".join(lines) + "\r\n\r\n").encode() + body

    async def ask(self, exchange, host, secure, reader, writer):
        """One exchange; false: the connection can't be used any more."""
        entry = self.begun.setdefault(exchange.path, [0, 0, 0.0])
        entry[0] += 1
        was_heard = False

        def heard():
            nonlocal was_heard
            if not was_heard:
                was_heard = True
                entry[1] += 1
        data = self.request(exchange, host, secure)
        habit = 1 if self.is_calm else self.chance.random()
        try:
            if habit < 0.005:
                writer.write(data[:self.chance.randrange(len(data))])
                return self.leave(writer)
            writer.write(data)
            if habit < 0.01:
                return self.leave(writer)
            if habit < 0.015 and not secure:
                writer.write_eof()
            await asyncio.wait_for(writer.drain(), PATIENCE)
            if habit < 0.03:
                await asyncio.sleep(self.chance.uniform(0.05, 1))
            if habit < 0.035:
                await asyncio.wait_for(reader.read(300), PATIENCE)
                return self.leave(writer)
            result = await asyncio.wait_for(read_response(reader, exchange.method, heard), PATIENCE)
        except TimeoutError:
            self.report(f"{host}{exchange.path}: nothing for {PATIENCE} s")
            return False
        except (Break, *CLOSED) as error:
            self.broken += 1
            if self.is_calm:
                self.report(f"{host}{exchange.path}: broken off though nobody breaks anything: {error!r}")
            return False
        except (ValueError, IndexError) as error:
            self.report(f"{host}{exchange.path}: a response that isn't one: {error}")
            return False
        finally:
            entry[2] = time.monotonic()
        self.judge(exchange, host, result)
        return result.fields.get("connection", "").lower() != "close" and habit >= 0.015

    def leave(self, writer):
        self.left += 1
        if self.chance.random() < 0.5:
            reset(writer)
        return False

    def judge(self, exchange, host, result):
        what = f"{host}{exchange.path}: {result.status}"
        if "x-origin" not in result.fields:
            if result.status < 400 or "pinproxy" not in result.fields.get("proxy-status", ""):
                self.report(f"{what} is neither the origin's nor an error of the proxy's")
            elif self.is_calm and exchange.kind not in REFUSED and "turning" not in host:
                self.report(f"{what} though nobody breaks anything: {result.fields.get('proxy-status')}")
            self.refused += 1
            return
        problem = None
        if host in REFUSED_HOSTS:
            problem = "from a host that is refused"
        elif exchange.kind in NEVER_WHOLE:
            problem = "as a whole, though the origin never sends one"
        elif result.fields["x-origin"] != exchange.tag:
            problem = "is another exchange's"
        elif result.status != exchange.status:
            problem = f"and not {exchange.status}"
        elif result.body != exchange.body:
            at = next((n for n, (a, b) in enumerate(zip(result.body, exchange.body)) if a != b), None)
            problem = f"with another body: {len(result.body)} bytes of {len(exchange.body)}, differing at {at}"
        if problem:
            self.report(f"{what} {problem}; {result.fields}")
        self.right += 1

    def compare(self, lines, gaps):
        """Every exchange is in the log once."""
        for path, (most, least, ended) in self.begun.items():
            seen = lines.pop(path, 0)
            if seen > most:
                self.report(f"{path}: {seen} lines in the log, and {most} exchanges")
            elif seen < least and not any(begin <= ended <= end for begin, end in gaps):
                self.report(f"{path}: {seen} lines in the log, and {least} answers")
        self.begun = {}
        for path, seen in lines.items():
            self.report(f"{path}: {seen} lines in the log of what nobody asked for")
        lines.clear()
