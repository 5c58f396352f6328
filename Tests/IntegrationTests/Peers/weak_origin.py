"""A weak origin. The first label of the requested name selects the weakness.

    weak_origin.py --certificate chain.pem --key key.pem

It uses OpenSSL servers as far as OpenSSL supports the weakness, else scripted messages. Prints JSON lines: {"event":
"ready", "port": N}, then each parsed ClientHello, and how the connection ended: "secured", "alert" with its number, or
"failed" with a cause.
"""

import argparse
import os
import socket
import ssl
import struct
import threading
import warnings

from events import say


def numbers(data):
    return list(struct.unpack(f">{len(data) // 2}H", data))


def sized(count, data):
    """`data` after its length, in `count` bytes."""
    return len(data).to_bytes(count, "big") + data


def hello_of(data):
    """The fields of the ClientHello in these records; None while it is incomplete."""
    body = b""
    while len(data) >= 5 and len(data) >= 5 + int.from_bytes(data[3:5], "big"):
        length = int.from_bytes(data[3:5], "big")
        body, data = body + data[5 : 5 + length], data[5 + length :]
    if len(body) < 4 or len(body) < 4 + int.from_bytes(body[1:4], "big"):
        return None
    version, rest = int.from_bytes(body[4:6], "big"), body[38:]

    def take(count):
        nonlocal rest
        length = int.from_bytes(rest[:count], "big")
        value, rest = rest[count : count + length], rest[count + length :]
        return value

    session = take(1)
    suites, compressions, extensions = numbers(take(2)), list(take(1)), {}
    rest = take(2)
    while rest:
        kind, rest = int.from_bytes(rest[:2], "big"), rest[2:]
        extensions[kind] = take(2)
    protocols, listed = [], extensions.get(16, b"\0\0")[2:]
    while listed:
        protocols.append(listed[1 : 1 + listed[0]].decode())
        listed = listed[1 + listed[0] :]
    return {
        "name": extensions.get(0, b"")[5:].decode(),
        "version": version,
        "session": session.hex(),
        "suites": suites,
        "compressions": compressions,
        "extensions": sorted(extensions),
        "protocols": protocols,
        "versions": numbers(extensions.get(43, b"\0")[1:]),
        "groups": numbers(extensions.get(10, b"\0\0")[2:]),
        "signatures": numbers(extensions.get(13, b"\0\0")[2:]),
    }


# Server messages

RENEGOTIATION_INFO = bytes.fromhex("ff01 0001 00")
EXTENDED_MASTER_SECRET = bytes.fromhex("0017 0000")
HEARTBEAT = bytes.fromhex("000f 0001 01")
TLS_13 = bytes.fromhex("002b 0002 0304")
ECDHE_RSA_AES128_GCM = 0xC02F
X25519, P256, RSA_PSS_SHA256 = 29, 23, 0x0804


def record(kind, body, version=0x0303):
    return struct.pack(">BH", kind, version) + sized(2, body)


def handshake(kind, body):
    return bytes([kind]) + sized(3, body)


def server_hello(
    version=0x0303,
    suite=ECDHE_RSA_AES128_GCM,
    compression=0,
    random=b"",
    session=b"",
    extensions=RENEGOTIATION_INFO + EXTENDED_MASTER_SECRET,
):
    random = os.urandom(32 - len(random)) + random
    body = struct.pack(">H", version) + random + sized(1, session) + struct.pack(">HB", suite, compression)
    return handshake(2, body + sized(2, extensions))


def server_hello_13(session, suite=0x1301, group=X25519):
    share = struct.pack(">H", group) + sized(2, os.urandom(32 if group == X25519 else 133))
    return server_hello(suite=suite, session=session, extensions=TLS_13 + b"\0\x33" + sized(2, share))


def retry_request(session, group):
    """A HelloRetryRequest, identified by its random."""
    random = bytes.fromhex("cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c")
    share = b"\0\x33" + sized(2, struct.pack(">H", group))
    return server_hello(suite=0x1301, random=random, session=session, extensions=TLS_13 + share)


def flight(*messages):
    """The messages in one record, as TLS 1.2 sends them."""
    return record(22, b"".join(messages))


def certificate(chain):
    return handshake(11, sized(3, b"".join(sized(3, der) for der in chain)))


def key_exchange(curve=X25519, signature=RSA_PSS_SHA256, parameters=None):
    """ECDHE by a named curve, with random bytes as the signature."""
    point = os.urandom(32) if curve == X25519 else b"\x04" + os.urandom(64)
    parameters = parameters or b"\x03" + struct.pack(">H", curve) + sized(1, point)
    return handshake(12, parameters + struct.pack(">H", signature) + sized(2, os.urandom(256)))


DONE = handshake(14, b"")
EXPLICIT_PRIME_CURVE = b"\x01" + b"".join(sized(1, b"\x17") for _ in range(6))


# Each script builds a flight from the chain and the client's session ID.


def hello(**changes):
    return lambda chain, _: flight(server_hello(**changes), certificate(chain))


def suite(number):
    return hello(suite=number)


def exchange(**changes):
    return lambda chain, _: flight(server_hello(), certificate(chain), key_exchange(**changes), DONE)


SCRIPTS = {
    "sound-until-cut": hello(),
    "ssl2": lambda *_: sized(2, bytes.fromhex("04 00 01 0002 0000 0003 0010") + bytes(19)),
    "ssl3": hello(version=0x0300),
    "tls1-0-chosen": hello(version=0x0301),
    "tls1-1-chosen": hello(version=0x0302),
    "rc4": suite(0x0005),
    "3des": suite(0x000A),
    "null": suite(0x0002),
    "des": suite(0x0009),
    "rsa-export": suite(0x0003),
    "dhe-export": suite(0x0014),
    "anonymous-dh": suite(0x00A6),
    "anonymous-ecdh": suite(0xC018),
    "static-rsa": suite(0x009C),
    "static-rsa-cbc": suite(0x002F),
    "dhe": suite(0x009E),
    "cbc": suite(0xC013),
    "ccm8": suite(0xC0A0),
    "psk": suite(0x00A8),
    "compression": hello(compression=1),
    "no-rfc5746": hello(extensions=EXTENDED_MASTER_SECRET),
    "renegotiated": hello(extensions=bytes.fromhex("ff01 000d 0c") + bytes(12)),
    "heartbleed": lambda *_: (
        flight(server_hello(extensions=RENEGOTIATION_INFO + HEARTBEAT)) + record(24, bytes.fromhex("01 4000"))
    ),
    "unoffered-alpn": hello(extensions=RENEGOTIATION_INFO + bytes.fromhex("0010 0005 0003 02 6833")),
    "fallback-from-1-3": hello(random=b"DOWNGRD\x01"),
    "fallback-from-1-2": hello(random=b"DOWNGRD\x00"),
    "no-certificate": lambda *_: flight(server_hello(), key_exchange(), DONE),
    "signed-by-nobody": exchange(),
    "sha1-signature": exchange(signature=0x0201),
    "md5-signature": exchange(signature=0x0101),
    "dsa-signature": exchange(signature=0x0402),
    "weak-curve": exchange(curve=1),
    "unoffered-curve": exchange(curve=22),
    "explicit-curve": exchange(parameters=EXPLICIT_PRIME_CURVE),
    "ccm8-1-3": lambda _, session: flight(server_hello_13(session, suite=0x1305)),
    "group-1-3": lambda _, session: flight(server_hello_13(session, group=25)),
    "retry-1-3": lambda _, session: flight(retry_request(session, group=25)),
}

# Contexts: the versions, the suites below TLS 1.3, and more.

warnings.simplefilter("ignore", DeprecationWarning)
V1, V11, V12, V13 = (ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1, ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3)
# The 1024-bit group of RFC 2409 section 6.2, which everyone knows; OpenSSL serves no smaller one.
OAKLEY_2 = bytes.fromhex(
    "ffffffffffffffffc90fdaa22168c234c4c6628b80dc1cd129024e088a67cc74020bbea63b139b22514a08798e3404dd"
    "ef9519b3cd3a431b302b0a6df25f14374fe1356d6d51c245e485b576625e7ec6f44c42e9a637ed6b0bff5cb6f406b7ed"
    "ee386bfb5a899fa5ae9f24117c4b1fe649286651ece65381ffffffffffffffff"
)
SERVERS = {
    "sound": (V12, V13, "DEFAULT", {}),
    "sound-1-2": (V12, V12, "ECDHE+AESGCM", {}),
    "tls1-0": (V1, V1, "ALL", {}),
    "tls1-1": (V11, V11, "ALL", {}),
    "only-static-rsa": (V12, V12, "kRSA+AESGCM", {}),
    "only-cbc": (V12, V12, "ECDHE+AES+SHA1:ECDHE+AES+SHA256", {}),
    "only-dhe-1024": (V12, V12, "DHE+AESGCM", {"prime": OAKLEY_2}),
    "only-anonymous": (V12, V12, "aNULL", {}),
    "only-null": (V12, V12, "eNULL", {}),
    "only-p521": (V12, V12, "ECDHE+AESGCM", {"curve": "secp521r1"}),
    "only-p192": (V12, V12, "ECDHE+AESGCM", {"curve": "prime192v1"}),
}


def context(options, name):
    lowest, highest, suites, more = SERVERS[name]
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.set_ciphers(suites + ":@SECLEVEL=0")
    context.minimum_version, context.maximum_version = lowest, highest
    context.load_cert_chain(options.certificate, options.key)
    if "curve" in more:
        context.set_ecdh_curve(more["curve"])
    if "prime" in more:
        # A SEQUENCE of the prime and the generator 2, shorter than 256 bytes.
        body = b"\x02\x81" + sized(1, b"\0" + more["prime"]) + b"\x02\x01\x02"
        pem = f"{options.certificate}.{name}.dh"
        with open(pem, "w") as file:
            file.write(ssl.DER_cert_to_PEM_cert(b"\x30\x81" + sized(1, body)).replace("CERTIFICATE", "DH PARAMETERS"))
        context.load_dh_params(pem)
    return context


def play(connection, name, flight):
    """Sends the flight, and reports the client's reaction."""
    connection.recv(65536)  # The ClientHello, which was only peeked at.
    connection.sendall(flight)
    received = b""
    while True:
        while len(received) >= 5 and len(received) >= 5 + int.from_bytes(received[3:5], "big"):
            if received[0] == 21:
                return say("alert", name=name, description=received[6])
            received = received[5 + int.from_bytes(received[3:5], "big") :]
        if name == "sound-until-cut" or not (data := connection.recv(65536)):
            return say("failed", name=name, cause="no alert")
        received += data


def serve(connection, options, contexts, chain):
    name = ""
    try:
        connection.settimeout(30)
        hello, seen = None, 0
        while not hello:
            data = connection.recv(65536, socket.MSG_PEEK)
            if len(data) == seen:
                raise EOFError
            seen, hello = len(data), hello_of(data)
        say("hello", **hello)
        name = hello["name"].removesuffix(".weak.test")
        if name in SCRIPTS:
            return play(connection, name, SCRIPTS[name](chain, bytes.fromhex(hello["session"])))
        with contexts[name].wrap_socket(connection, server_side=True) as secured:
            say("secured", name=name, version=secured.version(), suite=secured.cipher()[0])
            if secured.recv(65536):
                secured.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\nhello\n")
    except (EOFError, OSError, KeyError, IndexError) as error:
        say("failed", name=name, cause=f"{type(error).__name__}: {error}")
    finally:
        connection.close()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--certificate", required=True)
    parser.add_argument("--key", required=True)
    options = parser.parse_args()
    contexts = {name: context(options, name) for name in SERVERS}
    chain = []
    with open(options.certificate) as file:
        for pem in file.read().split("-----END CERTIFICATE-----")[:-1]:
            chain.append(ssl.PEM_cert_to_DER_cert(pem.strip() + "\n-----END CERTIFICATE-----\n"))
    listener = socket.create_server(("127.0.0.1", 0), backlog=128)
    say("ready", port=listener.getsockname()[1])
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=serve, args=(connection, options, contexts, chain), daemon=True).start()


if __name__ == "__main__":
    main()
