"""Generates load on a proxy. Each function does bounded work and returns how many requests were answered."""

import itertools
import multiprocessing
import re
import signal
import socket
import ssl
import subprocess
import time

from peers import HOST, TUNNELLED


def forward(bench, server, origin, document):
    """Arguments that send a program's requests through CONNECT if the server is a forward proxy. Returns a command
    prefix, a URL and a Host."""
    if server.way == "direct":
        return [], f"https://127.0.0.1:{server.port}/{document}", HOST
    configuration = bench.write(
        "proxychains.conf", f"strict_chain\nproxy_dns\nquiet_mode\n[ProxyList]\nhttp 127.0.0.1 {server.port}\n"
    )
    if document.startswith("forgetful/"):
        host, document = f"{HOST}:{origin.forgetful}", document.partition("/")[2]
    else:
        host = f"{HOST}:{origin.port}"
    return ["proxychains4", "-q", "-f", str(configuration)], f"https://{host}/{document}", host


def keep_alive(bench, server, origin, connections, document, seconds):
    """Runs wrk, through CONNECT under proxychains4 if the server is a forward proxy. Returns the server's processor
    time and the requests answered in it. Counting begins once every connection has served a request, so the cost of
    connecting is excluded."""
    prefix, url, host = forward(bench, server, origin, document)
    command = [
        *prefix,
        "wrk",
        "-t",
        "1",
        "-c",
        str(connections),
        "-d",
        "600s",
        "--timeout",
        "60s",
        "-H",
        f"Host: {host}",
        url,
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as wrk:
        try:
            await_connections(server, connections, wrk)
            served = origin.answered() + 2 * connections
            while origin.answered() < served and wrk.poll() is None:
                time.sleep(0.05)
            before, begun = server.processor_seconds(), origin.answered()
            time.sleep(seconds)
            spent, answered = server.processor_seconds() - before, origin.answered() - begun - 1
        finally:
            wrk.send_signal(signal.SIGINT)
        output = wrk.communicate(timeout=60)[0]
    # wrk reports connections open at its end as errors; more than those mean a broken setup. Its timeouts are
    # late responses, which are normal with hundreds of connections on a busy machine.
    errors = re.search(r"Socket errors: connect (\d+), read (\d+), write (\d+)", output)
    broken = sum(map(int, errors.groups())) if errors else 0
    if "Non-2xx" in output or broken * 1000 > answered or answered <= 0:
        raise SystemExit(f"{type(server).__name__}, {document}:\n{output}")
    return spent, answered


def await_connections(server, count, client):
    """Waits until this many clients are connected to the server."""
    # Remote address and state in proc(5) format: 127.0.0.1, ESTABLISHED.
    wanted = f" 0100007F:{server.port:04X} 01 "
    while client.poll() is None:
        with open("/proc/net/tcp") as sockets:
            if sockets.read().count(wanted) >= count:
                return
        time.sleep(0.1)


def latency(bench, server, origin, rate, seconds, connections=32):
    """Runs h2load over persistent connections with requests at fixed times, regardless of earlier ones. Returns each
    latency in microseconds, ascending. A request waits for its predecessor on the connection, which at these rates has
    finished."""
    prefix, url, _ = forward(bench, server, origin, "1k")
    log = bench.path("latency.log")
    log.unlink(missing_ok=True)
    output = subprocess.run(
        [
            *prefix,
            "h2load",
            "--h1",
            "-t",
            "1",
            "-c",
            str(connections),
            "-D",
            str(seconds),
            "--warm-up-time",
            "1",
            "--rps",
            f"{rate / connections:.3f}",
            "--log-file",
            str(log),
            url,
        ],
        capture_output=True,
        text=True,
        check=True,
        timeout=60 + 2 * seconds,
    ).stdout
    rows = [line.split("\t") for line in log.read_text().splitlines()]
    times = sorted(int(row[2]) for row in rows if row[1] == "200")
    if len(times) < 0.9 * len(rows) or len(times) < 0.8 * rate * seconds:
        raise SystemExit(
            f"{type(server).__name__}: {len(times)} of {rate * seconds:.0f} requests were answered:\n{output}"
        )
    return times


def new_connections(bench, server, origin, count, resumes=False, new_names=False):
    """Opens connections: TCP, CONNECT to a forward proxy, a full handshake, one GET, close.

    With `resumes` each client resumes the session of its last connection. With `new_names` each connection is for a
    name that is new to the server."""
    share = count // 4
    if new_names:
        first = next(server.__dict__.setdefault("unseen", itertools.count(0, count)))
        names = [[f"n{first + part * share + number}.{HOST}" for number in range(share)] for part in range(4)]
    else:
        names = [[HOST] * share] * 4
    with multiprocessing.get_context("fork").Pool(4) as pool:
        parts = pool.starmap(_connect_many, [(server.way, server.port, origin.port, part, resumes) for part in names])
    return sum(parts)


def context_without_trust():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def connect(way, port, origin_port, name):
    """A connection that is ready for TLS."""
    connection = socket.create_connection(("127.0.0.1", port), timeout=30)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if way == "connect":
        host = f"{name}:{origin_port}"
        connection.sendall(f"CONNECT {host} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        answer = b""
        while b"\r\n\r\n" not in answer:
            some = connection.recv(4096)
            if not some:
                raise SystemExit(f"closed at CONNECT: {answer!r}")
            answer += some
        if b" 200 " not in answer.split(b"\r\n", 1)[0]:
            raise SystemExit(answer.decode("latin-1"))
    return connection


def _connect_many(way, port, origin_port, names, resumes):
    context = context_without_trust()
    session = None
    for name in names:
        host = f"{name}:{origin_port}" if way == "connect" else name
        request = f"GET /1k HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode()
        connection = connect(way, port, origin_port, name)
        with context.wrap_socket(connection, server_hostname=name, session=session) as secure:
            if session and not secure.session_reused:
                raise SystemExit(f"{way} {port}: the session was not resumed")
            secure.sendall(request)
            response = b""
            while some := secure.recv(65536):
                response += some
            if not response.startswith(b"HTTP/1.1 200") or len(response) < 1024:
                raise SystemExit(f"{way} {port}: unexpected response: {response[:300]!r}")
            if resumes:
                session = secure.session
    return len(names)


def bulk(bench, server, origin, times, kind="down"):
    """Transfers 100 MB at a time with curl, `down`, `up`, or down through a `tunnel`. Returns gigabytes."""
    name, port = (TUNNELLED, server.tunnel_port()) if kind == "tunnel" else (HOST, server.port)
    way = (
        ["--proxy", f"http://127.0.0.1:{port}"]
        if server.way == "connect"
        else ["--noproxy", "*", "--connect-to", f"{name}:{origin.port}:127.0.0.1:{port}"]
    )
    command = ["curl", "--silent", "--show-error", "--fail", "--insecure", "--http1.1", *way]
    for _ in range(times):
        if kind == "up":
            command += [
                "--expect100-timeout",
                "5",
                "--upload-file",
                bench.path("documents/100m"),
                f"https://{name}:{origin.port}/up",
            ]
        else:
            command += ["--output", "/dev/null", f"https://{name}:{origin.port}/100m"]
    subprocess.run(command, check=True)
    return times * (100 << 20) / 1e9
