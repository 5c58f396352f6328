"""The programs of a trial: the proxy, servers that read requests, clients that read responses."""

import hashlib
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import time

HERE = pathlib.Path(__file__).parent / "readers"
ENVIRONMENT = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8"} | {
    name: os.environ[name] for name in ("PYENV_VERSION", "PYENV_ROOT", "HOME") if name in os.environ
}


class Programs:
    """The started programs; `stop()` stops them all."""

    def __init__(self, folder):
        self.folder = folder
        self.all = []

    def start(self, name, command, **options):
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stderr=open(self.folder / f"{name}.log", "wb"),
            preexec_fn=die_with_parent,
            **({"env": ENVIRONMENT, "stdout": subprocess.PIPE} | options),
        )
        self.all.append(process)
        return process

    def check(self):
        """Fails if one of them has exited, since the trial shows nothing without it."""
        for process in self.all:
            if process.poll() is not None:
                raise SystemExit(f"{process.args[0]} has exited: {process.returncode}")

    def stop(self):
        for process in self.all:
            process.kill()
        for process in self.all:
            process.wait()


def die_with_parent():
    """Makes a process exit with a killed trial (prctl PR_SET_PDEATHSIG)."""
    import ctypes

    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as held:
        return held.getsockname()[1]


def certificates(folder, names):
    """Creates ca.pem, an authority, and its leaf origin.pem with origin.key. Names are in OpenSSL's notation."""
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "30"]
    for command in (
        [
            "openssl",
            "req",
            "-x509",
            *key,
            "-subj",
            "/CN=Trial",
            "-keyout",
            "ca.key",
            "-out",
            "ca.pem",
            "-addext",
            "basicConstraints=critical,CA:TRUE",
            "-addext",
            "keyUsage=critical,keyCertSign",
        ],
        [
            "openssl",
            "req",
            "-x509",
            *key,
            "-CA",
            "ca.pem",
            "-CAkey",
            "ca.key",
            "-subj",
            "/CN=origin",
            "-keyout",
            "origin.key",
            "-out",
            "origin.pem",
            "-addext",
            f"subjectAltName={names}",
            "-addext",
            "basicConstraints=CA:FALSE",
            "-addext",
            "extendedKeyUsage=serverAuth",
        ],
    ):
        subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return folder / "origin.pem", folder / "origin.key"


def start_proxy(programs, executable):
    """Starts the proxy without TLS, with access to the loopback only. Returns its process and port."""
    folder = programs.folder
    (folder / "pinproxy.yaml").write_text("""
proxy: {listen: "127.0.0.1:0", workers: 1}
upstream: {trust: [ca.pem], block_addresses: [0.0.0.0/0, "::/0"], allow_addresses: [loopback, 127.0.0.0/8]}
log: {level: notice, format: json, access: false}
pins: null
""")
    log = folder / "proxy.out"
    process = programs.start(
        "proxy",
        [executable, "run", "--config", folder / "pinproxy.yaml"],
        stdout=open(log, "wb"),
        env=ENVIRONMENT | {"XDG_STATE_HOME": str(folder)},
    )
    end = time.monotonic() + 20
    while time.monotonic() < end and process.poll() is None:
        for line in (log.read_text() + (folder / "proxy.log").read_text()).splitlines():
            if "proxy.ready" in line and "127.0.0.1:" in line:
                return process, int(line.split("127.0.0.1:")[1].split('"')[0].split(",")[0])
        time.sleep(0.02)
    raise SystemExit(f"the proxy isn't ready: {(folder / 'proxy.log').read_text()} {log.read_text()}")


class ReaderProcess:
    """A server that records what it reads, one line per request."""

    def __init__(self, loop, name, process):
        self.name = name
        self.process = process
        self.seen = []
        self.rest = b""
        line = process.stdout.readline().split()
        if line[:1] != [b"ready"]:
            raise SystemExit(f"{name} isn't ready: {line}")
        self.authority = b"127.0.0.1:" + line[1]
        os.set_blocking(process.stdout.fileno(), False)
        loop.add(process.stdout, self)
        self.loop = loop

    def ready(self):
        data = os.read(self.process.stdout.fileno(), 1 << 18)
        if not data:
            raise SystemExit(f"{self.name} has exited: {self.process.wait()}")
        *lines, self.rest = (self.rest + data).split(b"\n")
        for line in lines:
            method, target, length, digest = line.decode().split(" ")
            self.seen.append((method, target, int(length), digest))


class Nginx:
    """nginx, which forwards what it reads to its own recorder."""

    name = "nginx"

    def __init__(self, programs, recorder, certificate=None):
        self.recorder = recorder
        port = free_port()
        name = "nginx-secure" if certificate else "nginx"
        secure = f"ssl_certificate {certificate[0]}; ssl_certificate_key {certificate[1]};" if certificate else ""
        self.authority = b"127.0.0.1:%d" % port
        folder = programs.folder
        (folder / f"{name}.conf").write_text(f"""
daemon off; master_process off; pid {folder}/{name}.pid; error_log stderr error; user root;
events {{ worker_connections 1024; }}
http {{
    access_log off; client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxied; fastcgi_temp_path {folder}/a;
    uwsgi_temp_path {folder}/b; scgi_temp_path {folder}/c; client_max_body_size 0; keepalive_requests 1000000;
    large_client_header_buffers 8 128k;
    upstream recorder {{ server 127.0.0.1:{recorder.port} max_fails=0; keepalive 64; }}
    server {{
        listen 127.0.0.1:{port} backlog=512{" ssl" if certificate else ""}; {secure}
        location / {{
            proxy_pass http://recorder; proxy_http_version 1.1; proxy_set_header Connection "";
            proxy_next_upstream off;
        }}
    }}
}}
""")
        programs.start(
            name, ["/usr/sbin/nginx", "-p", folder, "-c", folder / f"{name}.conf"], stdout=subprocess.DEVNULL
        )
        end = time.monotonic() + 10
        while True:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                return
            except OSError:
                if time.monotonic() > end:
                    raise SystemExit("nginx isn't ready: " + (folder / f"{name}.log").read_text()) from None
                time.sleep(0.02)

    @property
    def seen(self):
        return self.recorder.seen

    @seen.setter
    def seen(self, value):
        self.recorder.seen = value


def build_go(folder):
    """Builds Go's reader. None if Go isn't installed."""
    if not shutil.which("go"):
        return None
    subprocess.run(
        ["go", "build", "-o", folder / "reader-go", HERE / "reader.go"],
        check=True,
        env=ENVIRONMENT | {"GOCACHE": str(folder / "go-cache"), "GO111MODULE": "off", "GOFLAGS": ""},
    )
    return folder / "reader-go"


def start_readers(programs, loop, recorder, go, certificate=()):
    """- Parameter certificate: the files of a chain and its key, for TLS; empty: plaintext."""
    commands = {"node": ["node", HERE / "reader.js"], "python": ["/usr/bin/python3", "-B", HERE / "reader.py"]} | (
        {"go": [go]} if go else {}
    )
    readers = [
        ReaderProcess(loop, name, programs.start(name, [*command, *certificate])) for name, command in commands.items()
    ]
    return [*readers, Nginx(programs, recorder, certificate)]


# Clients


class ClientRun:
    """A program that requests a list of URLs. It reports each as URL, status, length and digest, or URL and error."""

    NAMES = ["curl", "node", "python"]

    def __init__(self, loop, name, port, urls):
        self.loop = loop
        self.urls = urls
        self.output = []
        self.is_done = False
        self.name = name
        if name == "curl":
            command = [
                "curl",
                "--silent",
                "--http1.1",
                "--proxy",
                f"http://127.0.0.1:{port}",
                "--max-time",
                "10",
                "--write-out",
                r"\n@@ %{urlnum} %{http_code} %{size_download} %{exitcode}\n",
                "--config",
                "-",
            ]
            lines = "".join(f'url = "{url}"\n' for url in urls)
        else:
            program = ["node", HERE / "client.js"] if name == "node" else ["/usr/bin/python3", "-B", HERE / "client.py"]
            command, lines = [*program, "127.0.0.1", str(port)], "".join(url + "\n" for url in urls)
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=ENVIRONMENT,
            preexec_fn=die_with_parent,
        )
        self.process.stdin.write(lines.encode())
        self.process.stdin.close()
        os.set_blocking(self.process.stdout.fileno(), False)
        loop.add(self.process.stdout, self)

    def ready(self):
        data = os.read(self.process.stdout.fileno(), 1 << 18)
        self.output.append(data)
        if not data:
            self.end()

    def end(self):
        self.is_done = True
        self.loop.remove(self.process.stdout)
        self.process.stdout.close()
        self.process.kill()
        self.process.wait()

    def results(self):
        """By URL: status, length and digest; None for an error."""
        output = b"".join(self.output)
        results = {}
        if self.name != "curl":
            for line in output.decode().splitlines():
                url, *what = line.split(" ")
                results[url] = (int(what[0]), int(what[1]), what[2]) if len(what) == 3 else None
            return results
        at = 0
        for number, url in enumerate(self.urls):
            end = output.index(b"\n@@ %d " % number, at)
            line_end = output.index(b"\n", end + 1)
            status, length, code = map(int, output[end + 1 : line_end].split()[2:])
            body = output[at:end]
            results[url] = (
                (status, length, hashlib.md5(body).hexdigest()[:8]) if code == 0 and length == len(body) else None
            )
            at = line_end + 1
        return results
