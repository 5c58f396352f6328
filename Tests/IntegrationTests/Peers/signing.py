"""A compromised proxy, or a silent signer, for the tests of `authority.signer`.

signing.py ask SOCKET CERTIFICATE: reads lines `NAME PORT`, or `raw HEX`, and answers each with a line of JSON:
`issued`, a leaf in PEM; `refused`, the reason; `closed`. signing.py silent SOCKET [WORD]: accepts, and never responds;
or misbehaves as WORD says after a request. signing.py flood SOCKET COUNT: sends nonsense over COUNT connections for as
long as possible, and reads no response.
"""

import hashlib
import json
import select
import socket
import ssl
import struct
import subprocess
import sys


def say(**fields):
    print(json.dumps(fields), flush=True)


def key():
    pem = subprocess.run(
        ["openssl", "ecparam", "-genkey", "-name", "prime256v1", "-noout"], check=True, capture_output=True
    ).stdout
    return subprocess.run(
        ["openssl", "ec", "-pubout", "-outform", "DER"], input=pem, check=True, capture_output=True
    ).stdout


def ask(path, certificate):
    authority = hashlib.sha256(ssl.PEM_cert_to_DER_cert(open(certificate).read())).digest()
    public = key()

    def connected():
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        connection.connect(path)
        return connection

    connection = connected()
    say(event="ready", port=0)
    for line in sys.stdin:
        word, value = line.split()
        if word == "raw":
            packet = bytes.fromhex(value)
        else:
            name = word.encode()
            packet = b"\1" + authority + struct.pack(">HB", int(value), len(name)) + name + public
        try:
            connection.send(packet)
            answer = connection.recv(65536)
        except OSError:
            answer = b""
        if not answer:
            say(event="closed")
            connection = connected()
        elif answer[0] == 0:
            say(event="issued", pem=ssl.DER_cert_to_PEM_cert(answer[1:]))
        else:
            say(event="refused", cause=answer[1:].decode())


def silent(path, word=""):
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(path)
    listener.listen(64)
    say(event="ready", port=0)
    kept = []
    while True:
        connection, _ = listener.accept()
        kept.append(connection)
        say(event="accepted")
        if not word:
            continue
        connection.recv(65536)
        if word == "closing":
            connection.close()
        elif word == "vanishing":
            return
        for answer in ANSWERS.get(word, []):
            connection.send(answer)


# Something that isn't a response, a piece of a leaf, more than a response may have, and one response too many.
ANSWERS = {
    "nonsense": [b"\7nonsense"],
    "half": [b"\0\x30\x82\x01"],
    "oversized": [b"\0" + b"x" * 65536],
    "empty": [b"\0"],
    "twice": [b"\1never", b"\1never"],
}


def flood(path, count):
    poll, connections = select.epoll(), {}
    for _ in range(int(count)):
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        connection.connect(path)
        connection.setblocking(False)
        connections[connection.fileno()] = connection
        poll.register(connection, select.EPOLLOUT)
    say(event="ready", port=0)
    while True:
        for number, _ in poll.poll():
            try:
                connections[number].send(b"\1" * 300)
            except BlockingIOError:
                pass


{"ask": ask, "silent": silent, "flood": flood}[sys.argv[1]](*sys.argv[2:])
