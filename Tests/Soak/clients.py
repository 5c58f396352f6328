"""Clients of the proxy: they send requests, and read and verify responses. Some abort in the middle."""

import asyncio
import collections
import re
import socket
import time

from ends import CLOSED
from http1_door import Break, HTTP1Door
from http2_door import HTTP2Door
from plan import NEVER_WHOLE, REFUSED, TURNING, ZONE_OF, ZONES, make

PROXY = ("127.0.0.1", 7467)
REFUSED_HOSTS = ["wrong.test", "denied.test", "pinned.test", "nowhere.free.test"]
#: The share of HTTP/2 among connections inside TLS. Half of all exchanges are inside TLS.
HTTP2 = 0.5
#: More than all timeouts and retries of the proxy.
PATIENCE = 120
#: Seconds of lateness of the trial's own programs from which a time-out isn't blamed on the proxy.
LATE = 2
#: The log's texts for timeouts, and for data that an HTTP/2 peer doesn't read in time.
CAUSE = re.compile('"cause":"([^"]*)"')
TIMED_OUT = re.compile(
    "timed out|timeouts[.]|within [0-9]|no answer|nothing moved|nothing for too long|sent nothing|took nothing"
)


class Lateness:
    """Measures how late the trial's own programs are. They share an event loop, which may get no processor for seconds
    on a busy machine."""

    STEP = 0.1

    def __init__(self):
        #: When the loop was late, and by how many seconds.
        self.times = []

    async def watch(self):
        while True:
            begin = time.monotonic()
            await asyncio.sleep(self.STEP)
            end = time.monotonic()
            if end - begin > self.STEP + 0.5:
                self.times.append((end, end - begin - self.STEP))

    def since(self, begin):
        """Total seconds of lateness since then."""
        return sum(seconds for end, seconds in self.times if end >= begin)


class Clients:
    """All clients of a lane. `contexts`: by the protocols offered in ALPN. `begun`: by path, how many lines the log may
    and must have, and when the last one ended."""

    def __init__(self, lane, chance, proxy, contexts, report):
        self.lane, self.chance, self.proxy, self.contexts, self.report = lane, chance, proxy, contexts, report
        self.number = 0
        self.begun = {}
        #: Failures although nothing is broken: path, text, and how late the trial was. The log, which arrives later,
        #: decides.
        self.puzzles = []
        #: Time-outs caused by the trial, by the log's cause.
        self.late = collections.Counter()
        self.lateness = Lateness()
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
                await self.visit(self.chance.random() < 0.7)

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
                # The proxy is being restarted.
                connection.close()
                if time.monotonic() > end:
                    self.report(
                        f"the proxy can't be connected to: {error}; it has ended with {self.proxy.process.poll()}"
                    )
                    raise
                await asyncio.sleep(0.1)

    async def tunnel(self, connection, host):
        """Returns the status of a CONNECT."""
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
        """Makes one connection with some exchanges."""
        chance = self.chance
        zone = chance.choice(ZONES)
        count = 1 if exchanges else min(int(chance.expovariate(0.12)) + 1, 40)
        refused_host = None
        if not exchanges and not self.is_calm and chance.random() < 0.01:
            refused_host = chance.choice(REFUSED_HOSTS)
        begin = time.monotonic()
        connection = await self.connect()
        door = None
        try:
            if secure:
                if not exchanges:
                    if chance.random() < 0.5 and not refused_host:
                        zone = chance.choice(list(ZONE_OF.values()))
                    host = refused_host or f"n{chance.randrange(10)}.{zone}.test"
                status = await asyncio.wait_for(self.tunnel(connection, host), PATIENCE)
                if status != 200:
                    return self.refused_tunnel(host, status, begin)
            door = await asyncio.wait_for(self.enter(connection, host, secure), PATIENCE)

            async def row():
                nonlocal count
                while count > 0:
                    count -= 1
                    if not exchanges:
                        self.number += 1
                        self.remaining -= 1
                    one = exchanges[0] if exchanges else self.exchange(zone if secure and not refused_host else None)
                    where = host if exchanges or secure else refused_host or self.host_of(one)
                    if not await self.ask(one, where, door):
                        return

            await asyncio.gather(*(row() for _ in range(door.most)))
        except TimeoutError:
            self.timed_out(begin, f"{host}: nothing came for {PATIENCE} s to CONNECT or in the handshake")
        except (Break, *CLOSED) as error:
            # Before the first request inside, nothing was promised.
            if self.is_calm:
                self.timed_out(begin, f"{host}: no connection in a calm round: {error!r}")
        finally:
            if door:
                door.abort()
            connection.close()

    async def enter(self, connection, host, secure):
        """Returns an object to make requests with."""
        loop, chance = asyncio.get_running_loop(), self.chance
        if secure and chance.random() < HTTP2:
            _, door = await loop.create_connection(
                lambda: HTTP2Door(chance, self.report), sock=connection, ssl=self.contexts["h2"], server_hostname=host
            )
            return door
        reader = asyncio.StreamReader(1 << 18)
        protocol = asyncio.StreamReaderProtocol(reader)
        transport, _ = await loop.create_connection(
            lambda: protocol,
            sock=connection,
            ssl=self.contexts["http/1.1"] if secure else None,
            server_hostname=host if secure else None,
        )
        return HTTP1Door(reader, asyncio.StreamWriter(transport, protocol, reader, loop), secure)

    def exchange(self, zone):
        """An exchange that the hosts of a zone serve; None: any zone."""
        while True:
            made = make(self.chance, f"{self.lane}-{self.number}", self.is_calm)
            if zone is None or ZONE_OF.get(made.kind, zone) == zone:
                return made

    def host_of(self, exchange):
        zone = ZONE_OF.get(exchange.kind) or self.chance.choice(ZONES)
        return f"n{self.chance.randrange(10)}.{zone}.plain.test"

    def refused_tunnel(self, host, status, begin):
        if status < 400:
            self.report(f"{status} to CONNECT {host}")
        elif self.is_calm and not any(zone in host for zone in TURNING):
            told = self.report if status != 504 else lambda text: self.timed_out(begin, text)
            told(f"{host}: {status} to CONNECT in a calm round")

    async def ask(self, exchange, host, door):
        """Makes one exchange. False: the connection is no longer usable."""
        entry = self.begun.setdefault(exchange.path, [0, 0, 0.0])
        entry[0] += 1
        begin, was_heard = time.monotonic(), False

        def heard():
            nonlocal was_heard
            if not was_heard:
                was_heard = True
                entry[1] += 1

        habit = 1 if self.is_calm else self.chance.random()
        try:
            result = await asyncio.wait_for(door.ask(exchange, host, habit, self.chance, heard), PATIENCE)
        except TimeoutError:
            self.timed_out(begin, f"{host}{exchange.path}: nothing for {PATIENCE} s")
            return False
        except (Break, *CLOSED) as error:
            self.broken += 1
            if self.is_calm:
                self.puzzle(exchange.path, begin, f"{host}{exchange.path}: interrupted in a calm round: {error!r}")
            return door.is_usable
        except (ValueError, IndexError) as error:
            self.report(f"{host}{exchange.path}: a response that isn't one: {error}")
            return False
        finally:
            entry[2] = time.monotonic()
        if result:
            self.judge(exchange, host, result, begin)
        else:
            self.left += 1
        return door.is_usable

    def puzzle(self, path, begin, text):
        self.puzzles.append((path, text, self.lateness.since(begin)))

    def timed_out(self, begin, text):
        """Handles a failure for which only the clock gives a reason."""
        if self.lateness.since(begin) < LATE:
            return self.report(text)
        self.late[text.split(": ")[-1]] += 1

    def judge(self, exchange, host, result, begin):
        what = f"{host}{exchange.path}: {result.status}"
        if "x-origin" not in result.fields:
            if result.status < 400 or "pinproxy" not in result.fields.get("proxy-status", ""):
                self.report(f"{what} is neither the origin's nor an error of the proxy's")
            elif self.is_calm and exchange.kind not in REFUSED and not any(zone in host for zone in TURNING):
                self.puzzle(exchange.path, begin, f"{what} in a calm round: {result.fields.get('proxy-status')}")
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
        elif result.trailers != exchange.trailers:
            problem = f"with the trailers {result.trailers}"
        if problem:
            self.report(f"{what} {problem}; {result.fields}")
        self.right += 1

    def compare(self, proxy):
        """Checks that every exchange is in the log once."""
        lines, gaps = proxy.lines, proxy.gaps
        for path, text, late in self.puzzles:
            words = proxy.words.get(path, [])
            causes = [cause for line in words for cause in CAUSE.findall(line) if TIMED_OUT.search(cause)]
            if late >= LATE and causes:
                self.late[causes[0]] += 1
            else:
                self.report(f"{text}; the trial was late by {late:.1f} s meanwhile; the log: {words}")
        self.puzzles = []
        proxy.words.clear()
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
