"""A TLS client in a CONNECT tunnel with unusual behaviour; without --proxy it connects directly.

    tunnel_client.py [--proxy PORT] --authority HOST:PORT --trust PEM [options]

Prints one JSON line: {"event": "result", "status": …, "version": …, "body": …}, or with "error".
"""

import argparse
import json
import socket
import ssl

parser = argparse.ArgumentParser()
parser.add_argument("--proxy", type=int)
parser.add_argument("--authority")
parser.add_argument("--trust")
parser.add_argument("--path", default="/")
parser.add_argument("--sni", help="used instead of the authority's host; empty: none")
parser.add_argument("--alpn", default="", help="protocols, comma-separated")
parser.add_argument("--tls", help="1.2 or 1.3: the only version offered")
parser.add_argument("--pieces", type=int, help="writes N bytes at a time until the handshake is complete")
parser.add_argument("--records", type=int, help="splits its ClientHello into records of N bytes")
parser.add_argument("--pipelined", action="store_true", help="sends its ClientHello right after CONNECT")
parser.add_argument("--joined", action="store_true", help="sends its request together with its Finished")
parser.add_argument("--hello", action="store_true", help="only prints its ClientHello, in hex")
parser.add_argument("--behind", default="", help="bytes in hex, sent right after the ClientHello")
options = parser.parse_args()

context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
context.check_hostname = False
context.load_verify_locations(options.trust)
if options.alpn:
    context.set_alpn_protocols(options.alpn.split(","))
if options.tls:
    version = {"1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}[options.tls]
    context.minimum_version = context.maximum_version = version
name = options.authority.rsplit(":", 1)[0] if options.sni is None else options.sni
incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
tls = context.wrap_bio(incoming, outgoing, server_hostname=name or None)

if options.hello:
    try:
        tls.do_handshake()
    except ssl.SSLWantReadError:
        print(json.dumps({"event": "hello", "bytes": outgoing.read().hex()}))
    raise SystemExit

host, port = options.authority.rsplit(":", 1)
connection = socket.create_connection(("127.0.0.1", options.proxy) if options.proxy else (host, int(port)), timeout=30)
connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def flush():
    data = outgoing.read()
    size = options.pieces or len(data) or 1
    for start in range(0, len(data), size):
        connection.sendall(data[start : start + size])


def drive(step, flushes=True):
    while True:
        try:
            result = step()
            if flushes:
                flush()
            return result
        except ssl.SSLWantReadError:
            flush()
            data = connection.recv(65536)
            if data:
                incoming.write(data)
            else:
                incoming.write_eof()


def cut(record, size):
    """Splits a record. The handshake signs and hashes messages, not their records (RFC 8446 section 4.4.1)."""
    message = record[5:]
    parts = [message[start : start + size] for start in range(0, len(message), size)]
    return b"".join(record[:3] + len(part).to_bytes(2) + part for part in parts)


def tunnel(result, pipelined):
    """Whether the proxy opened a tunnel."""
    request = f"CONNECT {options.authority} HTTP/1.1\r\nHost: {options.authority}\r\n\r\n".encode()
    connection.sendall(request + pipelined)
    head = b""
    while b"\r\n\r\n" not in head:
        byte = connection.recv(1)
        if not byte:
            raise EOFError("the proxy has ended")
        head += byte
    result["status"] = int(head.split()[1])
    return result["status"] == 200


def run(result):
    try:
        tls.do_handshake()
    except ssl.SSLWantReadError:
        pass
    hello = outgoing.read()
    result["hello"] = len(hello)
    if options.records:
        hello = cut(hello, options.records)
    hello += bytes.fromhex(options.behind)
    if options.proxy and not tunnel(result, hello if options.pipelined else b""):
        return
    if not options.pipelined:
        outgoing.write(hello)
        flush()
    drive(tls.do_handshake, not options.joined)
    options.pieces = None
    result["version"] = tls.version()
    result["alpn"] = tls.selected_alpn_protocol() or ""
    request = f"GET {options.path} HTTP/1.1\r\nHost: {options.authority}\r\nConnection: close\r\n\r\n"
    drive(lambda: tls.write(request.encode()))
    answer = b""
    while data := drive(lambda: tls.read(65536)):
        answer += data
    result["body"] = answer.split(b"\r\n\r\n", 1)[1].decode().strip()


result = {"event": "result"}
try:
    run(result)
except ssl.SSLError as error:
    result["error"] = error.reason or str(error)
except (EOFError, OSError) as error:
    result["error"] = str(error)
print(json.dumps(result))
