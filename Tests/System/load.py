"""Sends requests through the proxy until standard input ends, then prints a summary.

Each request uses a new connection, over HTTP and HTTPS, and a slow download is always in flight.

load.py PROXY-PORT URL SECURE-URL AUTHORITY
"""

import socket
import ssl
import sys
import threading
import time
import urllib.parse

port, plain, secure = int(sys.argv[1]), sys.argv[2], sys.argv[3]
context = ssl.create_default_context(cafile=sys.argv[4])
ended = threading.Event()
lock = threading.Lock()
begun, served, longest, failures = 0, 0, 0.0, []


def answer(connection, target, host):
    connection.sendall(f"GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
    answer = b""
    while piece := connection.recv(65536):
        answer += piece
    return answer


def over_http(path):
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        return answer(connection, plain + path, urllib.parse.urlsplit(plain).netloc)


def over_https(path):
    place = urllib.parse.urlsplit(secure)
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.sendall(f"CONNECT {place.netloc} HTTP/1.1\r\nHost: {place.netloc}\r\n\r\n".encode())
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            piece = connection.recv(1)
            if not piece:
                raise OSError(f"CONNECT was answered {head!r}")
            head += piece
        if not head.startswith(b"HTTP/1.1 200"):
            raise OSError(f"CONNECT was answered {head!r}")
        with context.wrap_socket(connection, server_hostname=place.hostname) as tls:
            return answer(tls, place.path + path, place.netloc)


def work(ask, path, body):
    global begun, served, longest
    while not ended.is_set():
        with lock:
            begun += 1
            if begun == 20:
                print("in flight", flush=True)
        began = time.monotonic()
        try:
            got = ask(path)
            if not got.startswith(b"HTTP/1.1 200") or not got.endswith(b"\r\n\r\n" + body):
                raise OSError(f"answered {got[:120]!r}")
            with lock:
                served += 1
                if not path:
                    longest = max(longest, time.monotonic() - began)
        except OSError as error:
            with lock:
                failures.append(f"{ask.__name__} {error!r}")


kinds = [(over_http, "", b"origin\n"), (over_https, "", b"origin\n")] * 2
kinds += [(over_http, "slow", b"." * 100), (over_https, "slow", b"." * 100)]
threads = [threading.Thread(target=work, args=kind) for kind in kinds]
for thread in threads:
    thread.start()
sys.stdin.read()
ended.set()
for thread in threads:
    thread.join()
print(f"{served} served, {len(failures)} failed {failures[:3]}, the longest took {longest:.2f} s")
sys.exit(1 if failures or not served else 0)
