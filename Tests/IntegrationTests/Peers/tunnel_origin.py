"""An origin that treats each ClientHello differently, in order of arrival.

    tunnel_origin.py PLAN...

A plan is a list KEY=VALUE,...; the last one applies to all further handshakes:

    chain=NAME  presents NAME.pem with NAME.key
    tls=1.2     supports this version only
    pieces=N    writes N bytes at a time, in separate segments
    client=PEM  requires a client certificate of this authority
    hold=N      answers the ClientHello only after N other connections have sent "GO"
    delay=SECONDS  answers the ClientHello after this time
    raw=HEX     writes these bytes instead of a ServerHello
    silent=1    sends nothing
    copied=NAME presents NAME.pem, as anyone can, and closes before it has to prove possession of the key
    forged=NAME presents NAME.pem, as anyone can, with a key exchange signed by the key of key=NAME
                (random=old: over another client's random, like a replay)

Prints JSON lines: {"event": "ready", "port": N}, then what arrives, by connection and by handshake.
"""

import socket
import ssl
import subprocess
import sys
import threading
import time

from events import say

lock = threading.Lock()
releases = threading.Condition()
released = 0
handshakes = 0
plans = [dict(part.split("=", 1) for part in plan.split(",")) for plan in sys.argv[1:]]


def vector(size, data):
    return len(data).to_bytes(size, "big") + data


def record(kind, data):
    return bytes([kind, 3, 3]) + vector(2, data)


class Connection:
    def __init__(self, connection, number):
        self.socket, self.number, self.total, self.start = connection, number, 0, b""
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()

    def receive(self):
        data = self.socket.recv(65536)
        self.total += len(data)
        say("received", connection=self.number, total=self.total)
        if not data:
            raise EOFError("the peer has ended")
        self.start += data[: 43 - len(self.start)]
        self.incoming.write(data)

    def flush(self):
        data = self.outgoing.read()
        size = int(self.plan.get("pieces", len(data) or 1))
        for start in range(0, len(data), size):
            self.socket.sendall(data[start : start + size])

    def drive(self, step):
        while True:
            try:
                result = step()
                self.flush()
                return result
            except ssl.SSLWantReadError:
                self.flush()
                self.receive()
            except ssl.SSLError:
                self.flush()
                raise

    def serve(self):
        global handshakes, released
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.plan = {}
        # Up to the random of the ClientHello.
        while len(self.start) < 43:
            self.receive()
            if self.start == b"GO":
                say("released")
                with releases:
                    released += 1
                    releases.notify_all()
                return
        with lock:
            handshakes += 1
            number = handshakes
        self.plan = plans[min(number, len(plans)) - 1]
        say("hello", handshake=number, connection=self.number, total=self.total)
        if "hold" in self.plan:
            with releases:
                releases.wait_for(lambda: released >= int(self.plan["hold"]), 60)
        if "delay" in self.plan:
            time.sleep(float(self.plan["delay"]))
        if "silent" in self.plan:
            while True:
                self.receive()
        if "raw" in self.plan:
            self.socket.sendall(bytes.fromhex(self.plan["raw"]))
            while True:
                self.receive()
        if "copied" in self.plan:
            return self.socket.sendall(self.copy(self.plan["copied"]) + record(21, b"\x02\x28"))
        if "forged" in self.plan:
            self.socket.sendall(self.copy(self.plan["forged"]) + self.sign() + record(22, b"\x0e" + vector(3, b"")))
            while True:
                self.receive()
        self.tls(number)

    def sign(self):
        """ServerKeyExchange: X25519, ecdsa_secp256r1_sha256."""
        client = b"o" * 32 if self.plan.get("random") == "old" else self.start[11:]
        parameters = b"\x03\x00\x1d" + vector(1, b"p" * 32)
        signature = subprocess.run(
            ["openssl", "dgst", "-sha256", "-sign", self.plan["key"] + ".key"],
            input=client + b"r" * 32 + parameters,
            capture_output=True,
            check=True,
        ).stdout
        return record(22, b"\x0c" + vector(3, parameters + b"\x04\x03" + vector(2, signature)))

    @staticmethod
    def copy(name):
        """ServerHello (TLS 1.2, with renegotiation_info), Certificate."""
        pem = open(name + ".pem").read().split("-----END CERTIFICATE-----")[:-1]
        chain = b"".join(
            vector(3, ssl.PEM_cert_to_DER_cert(one.strip() + "\n-----END CERTIFICATE-----\n")) for one in pem
        )
        hello = b"\x03\x03" + b"r" * 32 + b"\x00" + b"\xc0\x2b\x00" + vector(2, b"\xff\x01\x00\x01\x00")
        shown = b"\x0b" + vector(3, vector(3, chain))
        pieces = [shown[start : start + 16384] for start in range(0, len(shown), 16384)]
        return record(22, b"\x02" + vector(3, hello)) + b"".join(record(22, piece) for piece in pieces)

    def tls(self, number):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.plan["chain"] + ".pem", self.plan["chain"] + ".key")
        context.set_alpn_protocols(["http/1.1"])
        names = []
        context.sni_callback = lambda _, name, __: names.append(name)
        if "tls" in self.plan:
            version = {"1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}[self.plan["tls"]]
            context.minimum_version = context.maximum_version = version
        if "client" in self.plan:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(self.plan["client"])
        tls = context.wrap_bio(self.incoming, self.outgoing, server_side=True)
        try:
            self.drive(tls.do_handshake)
            say(
                "handshake",
                handshake=number,
                connection=self.number,
                version=tls.version(),
                alpn=tls.selected_alpn_protocol() or "",
                sni=names[0] or "" if names else "",
            )
            head = b""
            while b"\r\n\r\n" not in head:
                head += self.drive(lambda: tls.read(65536)) or self.fail()
            body = f"handshake {number}\n"
            self.drive(
                lambda: tls.write(
                    f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n{body}".encode()
                )
            )
            self.drive(tls.unwrap)
        except (ssl.SSLError, EOFError, OSError) as error:
            say("failed", handshake=number, connection=self.number, cause=str(error))

    def fail(self):
        raise EOFError("the peer has ended")


def serve(connection, number):
    try:
        Connection(connection, number).serve()
    except (EOFError, OSError):
        pass
    finally:
        say("closed", connection=number)
        connection.close()


listener = socket.create_server(("127.0.0.1", 0), backlog=64)
say("ready", port=listener.getsockname()[1])
count = 0
while True:
    connection, _ = listener.accept()
    count += 1
    threading.Thread(target=serve, args=(connection, count), daemon=True).start()
