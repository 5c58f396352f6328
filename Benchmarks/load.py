"""Load on a proxy: each function does bounded work and returns how many requests were answered."""

import multiprocessing
import re
import socket
import ssl
import subprocess

from peers import HOST


def keep_alive(bench, server, origin, connections, document, seconds):
    """wrk; through CONNECT under proxychains4, where the server is a forward proxy."""
    if server.way == "connect":
        configuration = bench.write(
            "proxychains.conf",
            f"strict_chain\nproxy_dns\nquiet_mode\n[ProxyList]\nhttp 127.0.0.1 {server.port}\n")
        prefix = ["proxychains4", "-q", "-f", str(configuration)]
        url = f"https://{HOST}:{origin.port}/{document}"
    else:
        prefix, url = [], f"https://127.0.0.1:{server.port}/{document}"
    output = subprocess.run(
        [*prefix, "wrk", "-t", "1", "-c", str(connections), "-d", f"{seconds}s", "-H",
         f"Host: {HOST}:{origin.port}" if server.way == "connect" else f"Host: {HOST}", url],
        check=True, capture_output=True, text=True).stdout
    answered = int(re.search(r"(\d+) requests in", output)[1])
    # A connection that ends as wrk stops is an error to it; more than that is a fault of the set-up.
    errors = re.search(r"Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)", output)
    broken = sum(map(int, errors.groups())) if errors else 0
    if "Non-2xx" in output or broken * 1000 > answered:
        raise SystemExit(f"{type(server).__name__}, {document}:\n{output}")
    return answered


def new_connections(bench, server, origin, count, document="1k"):
    """TCP, CONNECT where it is a forward proxy, a full handshake, one GET, the end."""
    with multiprocessing.get_context("fork").Pool(4) as pool:
        share = count // 4
        parts = pool.starmap(_connect_many, [
            (server.way, server.port, origin.port, share, document) for _ in range(4)])
    return sum(parts)


def _connect_many(way, port, origin_port, count, document):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    host = f"{HOST}:{origin_port}" if way == "connect" else HOST
    request = f"GET /{document} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode()
    for _ in range(count):
        connection = socket.create_connection(("127.0.0.1", port), timeout=30)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if way == "connect":
            connection.sendall(f"CONNECT {host} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
            answer = b""
            while b"\r\n\r\n" not in answer:
                some = connection.recv(4096)
                if not some:
                    raise SystemExit(f"closed at CONNECT: {answer!r}")
                answer += some
            if b" 200 " not in answer.split(b"\r\n", 1)[0]:
                raise SystemExit(answer.decode("latin-1"))
        with context.wrap_socket(connection, server_hostname=HOST) as secure:
            secure.sendall(request)
            response = b""
            while some := secure.recv(65536):
                response += some
            if not response.startswith(b"HTTP/1.1 200") or len(response) < 1024:
                raise SystemExit(f"{way} {port}: odd response: {response[:300]!r}")
    return count


def bulk(bench, server, origin, times):
    """100 MB by curl, one after the other; returns gigabytes."""
    way = ["--proxy", f"http://127.0.0.1:{server.port}"] if server.way == "connect" else [
        "--noproxy", "*", "--connect-to", f"{HOST}:{origin.port}:127.0.0.1:{server.port}"]
    url = f"https://{HOST}:{origin.port}/100m"
    command = ["curl", "--silent", "--show-error", "--fail", "--insecure", "--http1.1", *way]
    for _ in range(times):
        command += ["--output", "/dev/null", url]
    subprocess.run(command, check=True)
    return times * (100 << 20) / 1e9
