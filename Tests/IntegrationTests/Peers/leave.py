"""A client that closes TLS with the proxy right after the handshake. Programs do that when they
check the certificate afterwards.

leave.py HOST:PORT STEP... with the steps
    notify, close, reset    completes the handshake, then closes: with close_notify, without, or with a reset
    ask                     connects and sends a request
    malformed               sends an HTTP/2 request with a control character in a field, and closes
    vanish                  closes during the handshake, after the certificate
and options before them, for all steps that follow
    tls1.2, h2
    agent:NAME              the User-Agent of CONNECT
"""

import base64
import os
import socket
import ssl
import struct
import sys
import urllib.parse

proxy = urllib.parse.urlsplit(os.environ["HTTPS_PROXY"])
target = sys.argv[1]
agent = None
context = ssl.create_default_context()
context.check_hostname = False
context.verify_mode = ssl.CERT_NONE


def tunnel():
    raw = socket.create_connection((proxy.hostname, proxy.port))
    token = base64.b64encode(f"{proxy.username}:{proxy.password}".encode()).decode()
    named = f"User-Agent: {agent}\r\n" if agent else ""
    raw.sendall(
        f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\nProxy-Authorization: Basic {token}\r\n{named}\r\n".encode()
    )
    answer = b""
    while b"\r\n\r\n" not in answer:
        answer += raw.recv(4096)
    assert b" 200 " in answer.split(b"\r\n")[0], answer
    return raw


def secured():
    return context.wrap_socket(tunnel(), server_hostname=target.split(":")[0])


for step in sys.argv[2:]:
    if step == "tls1.2":
        context.maximum_version = ssl.TLSVersion.TLSv1_2
    elif step.startswith("agent:"):
        agent = step.removeprefix("agent:")
    elif step == "h2":
        context.set_alpn_protocols(["h2"])
    elif step == "notify":
        try:
            secured().unwrap()
        except OSError:
            pass
    elif step == "close":
        secured().close()
    elif step == "reset":
        connection = secured()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()
    elif step == "ask":
        connection = secured()
        connection.sendall(f"GET /large/3 HTTP/1.1\r\nHost: {target}\r\nConnection: close\r\n\r\n".encode())
        assert connection.recv(4096).startswith(b"HTTP/1.1 200")
        while connection.recv(4096):
            pass
    elif step == "malformed":
        context.set_alpn_protocols(["h2"])
        with secured() as connection:
            fields = {":method": "GET", ":scheme": "https", ":authority": target, ":path": "/", "user-agent": "one/1\1"}
            # Literals without indexing (RFC 7541 section 6.2.2); HEADERS with END_STREAM and END_HEADERS.
            texts = [text.encode() for field in fields.items() for text in field]
            block = b"".join((b"" if n % 2 else b"\0") + bytes([len(text)]) + text for n, text in enumerate(texts))
            headers = len(block).to_bytes(3) + b"\1\5" + (1).to_bytes(4) + block
            connection.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(3) + b"\4\0" + bytes(4) + headers)
            answer, reset = b"", (4).to_bytes(3) + b"\3\0" + (1).to_bytes(4)
            while reset not in answer:
                received = connection.recv(4096)
                assert received, answer
                answer += received
    elif step == "vanish":
        raw = tunnel()
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        inside = context.wrap_bio(incoming, outgoing, server_hostname=target.split(":")[0])
        try:
            inside.do_handshake()
        except ssl.SSLWantReadError:
            raw.sendall(outgoing.read())
        assert raw.recv(65536)
        raw.close()
    else:
        sys.exit(f"unknown step: {step}")
