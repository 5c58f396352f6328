"""Asks through the proxy, over and over, a new connection each time, until standard input ends; then says how it went.

load.py PROXY-PORT URL
"""

import socket
import sys
import threading

port, url = int(sys.argv[1]), sys.argv[2]
host = url.split("/")[2]
request = f"GET {url} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode()
ended = threading.Event()
lock = threading.Lock()
served, failures = 0, []
begun = 0


def ask():
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.sendall(request)
        answer = b""
        while piece := connection.recv(65536):
            answer += piece
    if not answer.startswith(b"HTTP/1.1 200") or not answer.endswith(b"origin\n"):
        raise OSError(f"answered {answer[:120]!r}")


def work():
    global served, begun
    while not ended.is_set():
        with lock:
            begun += 1
            if begun == 20:
                print("under way", flush=True)
        try:
            ask()
            with lock:
                served += 1
        except OSError as error:
            with lock:
                failures.append(repr(error))


threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads:
    thread.start()
sys.stdin.read()
ended.set()
for thread in threads:
    thread.join()
print(f"{served} served, {len(failures)} failed {failures[:3]}")
sys.exit(1 if failures or not served else 0)
