"""The origin and the measured proxies, with their configurations."""

import os
import pathlib
import resource
import socket
import subprocess
import time
import urllib.request

HOST = "origin.test"
#: The same origin through a tunnel without interception.
TUNNELLED = "tunnel.test"
TICKS = os.sysconf("SC_CLK_TCK")


def run(*command, **options):
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **options)


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]


class Bench:
    """The directory of a run, with authority, certificates and documents."""

    def __init__(self, directory):
        self.directory = pathlib.Path(directory)
        self.directory.chmod(0o755)
        #: A name server. Without one, the hosts file has the two names that most works use.
        self.names = None
        self.write("hosts", f"127.0.0.1 {HOST} {TUNNELLED}\n")
        for name, size in (("1k", 1 << 10), ("16k", 16 << 10), ("10m", 10_000_000), ("100m", 100 << 20)):
            (self.path("documents")).mkdir(exist_ok=True)
            self.path(f"documents/{name}").write_bytes(os.urandom(size))
        self.authority("ca")
        self.leaf()

    def path(self, name):
        return self.directory / name

    def write(self, name, text):
        self.path(name).parent.mkdir(exist_ok=True)
        self.path(name).write_text(text)
        return self.path(name)

    def authority(self, name):
        run(
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-nodes",
            "-subj",
            f"/CN=Bench {name}",
            "-days",
            "30",
            "-keyout",
            f"{name}.key",
            "-out",
            f"{name}.pem",
            "-addext",
            "basicConstraints=critical,CA:TRUE",
            "-addext",
            "keyUsage=critical,keyCertSign",
            "-addext",
            "subjectKeyIdentifier=hash",
            cwd=self.directory,
        )
        both = self.path(f"{name}.key").read_text() + self.path(f"{name}.pem").read_text()
        self.write(f"{name}-with-key.pem", both)

    def leaf(self):
        run(
            "openssl",
            "req",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-nodes",
            "-subj",
            f"/CN={HOST}",
            "-keyout",
            "origin.key",
            "-out",
            "origin.csr",
            cwd=self.directory,
        )
        self.write(
            "origin.ext",
            f"subjectAltName=DNS:{HOST},DNS:*.{HOST},DNS:{TUNNELLED},DNS:localhost\nextendedKeyUsage=serverAuth\n"
            "authorityKeyIdentifier=keyid\nsubjectKeyIdentifier=hash\n",
        )
        run(
            "openssl",
            "x509",
            "-req",
            "-in",
            "origin.csr",
            "-CA",
            "ca.pem",
            "-CAkey",
            "ca.key",
            "-days",
            "30",
            "-extfile",
            "origin.ext",
            "-out",
            "origin.pem",
            cwd=self.directory,
        )
        both = self.path("origin.key").read_text() + self.path("origin.pem").read_text()
        self.write("origin-with-key.pem", both)

    def pin(self):
        script = (
            "openssl x509 -in origin.pem -noout -pubkey | openssl pkey -pubin -outform der | "
            "openssl dgst -sha256 -binary | base64"
        )
        return subprocess.check_output(["sh", "-c", script], cwd=self.directory, text=True).strip()


def processor_clock(process):
    """The clock of a process's processor time (clock_getcpuclockid(3))."""
    return ~process << 3 | 2


class Server:
    """A program with its descendants, and their processor time."""

    #: How a client reaches the origin through this proxy: "connect" or "direct".
    way = "direct"
    #: Works that it doesn't support.
    lacks = ()

    def __init__(self, bench, command, port, environment=None, patience=20):
        self.port = port
        self.log = open(bench.path(f"{type(self).__name__}.log"), "wb")
        self.process = subprocess.Popen(
            command, cwd=bench.directory, stdout=self.log, stderr=self.log, env={**os.environ, **(environment or {})}
        )
        deadline = time.monotonic() + patience
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                return
            except OSError:
                if self.process.poll() is not None or time.monotonic() > deadline:
                    raise SystemExit(
                        f"{command[0]} did not start:\n" + pathlib.Path(self.log.name).read_text()[-2000:]
                    ) from None
                time.sleep(0.02)

    def tunnel_port(self):
        """The port where it tunnels TLS: a separate one, or the same."""
        return self.port

    def processes(self):
        """The process and its descendants."""
        parents = {}
        for entry in os.listdir("/proc"):
            if entry.isdigit():
                try:
                    fields = pathlib.Path(f"/proc/{entry}/stat").read_text().rsplit(")", 1)[1].split()
                    parents[int(entry)] = int(fields[1])
                except OSError:
                    pass
        found = {self.process.pid}
        while True:
            more = {child for child, parent in parents.items() if parent in found} - found
            if not more:
                return found
            found |= more

    def processor_seconds(self):
        """User and system time so far, including processes that have exited."""
        total = 0
        for process in self.processes():
            try:
                # Processes that have exited are counted in clock ticks of 10 ms; a running process has a clock in
                # nanoseconds.
                fields = pathlib.Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
                total += sum(int(field) for field in fields[13:15]) / TICKS + time.clock_gettime(
                    processor_clock(process)
                )
            except OSError:
                pass
        return total

    def resident_kib(self):
        total = 0
        for process in self.processes():
            for line in pathlib.Path(f"/proc/{process}/status").read_text().splitlines():
                if line.startswith("VmRSS:"):
                    total += int(line.split()[1])
        return total

    def memory(self):
        """Resident memory in KiB, and the private part not backed by files (smaps_rollup of proc(5))."""
        resident = own = 0
        for process in self.processes():
            for line in pathlib.Path(f"/proc/{process}/smaps_rollup").read_text().splitlines():
                if line.startswith("Rss:"):
                    resident += int(line.split()[1])
                elif line.startswith("Anonymous:"):
                    own += int(line.split()[1])
        return resident, own

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


NGINX = """
daemon off; worker_processes {workers}; pid {directory}/{name}.pid; error_log stderr error;
events {{ worker_connections 16384; }}
http {{
    access_log off; client_max_body_size 0; sendfile on; tcp_nodelay on;
    keepalive_requests 100000000; keepalive_timeout 900s;
    client_body_temp_path {directory}/{name}-body; proxy_temp_path {directory}/{name}-proxy;
    fastcgi_temp_path {directory}/{name}-f; uwsgi_temp_path {directory}/{name}-u; scgi_temp_path {directory}/{name}-s;
    ssl_certificate {directory}/origin.pem; ssl_certificate_key {directory}/origin.key;
    ssl_protocols TLSv1.2 TLSv1.3; proxy_ssl_protocols TLSv1.2 TLSv1.3; ssl_session_cache shared:S:10m;
    {body}
}}
"""


class Origin(Server):
    def __init__(self, bench):
        port = free_port()
        self.status = free_port()
        #: The same, with a new connection and a full handshake for every request.
        self.forgetful = free_port()
        body = f"""
    server {{
        listen 127.0.0.1:{port} ssl backlog=4096; root {bench.path("documents")};
        location /fresh/ {{ alias {bench.path("documents")}/; expires 1h; }}
        location /once/ {{ alias {bench.path("documents")}/; keepalive_timeout 0; }}
        location /up {{ client_body_buffer_size 101m; proxy_pass http://unix:{bench.path("up.sock")}:; }}
    }}
    server {{ listen unix:{bench.path("up.sock")}; return 204; }}
    server {{
        listen 127.0.0.1:{self.forgetful} ssl backlog=4096; root {bench.path("documents")}; keepalive_timeout 0;
        ssl_session_tickets off; ssl_session_cache off;
    }}
    server {{ listen 127.0.0.1:{self.status}; stub_status; }}"""
        configuration = bench.write(
            "origin.conf", NGINX.format(directory=bench.directory, name="origin", workers=1, body=body)
        )
        super().__init__(bench, ["nginx", "-p", bench.directory, "-c", configuration], port)

    def answered(self):
        """Requests so far, including this one."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.status}/") as answer:
            return int(answer.read().split(b"\n")[2].split()[2])


class Nginx(Server):
    """A reverse proxy with TLS on both sides. It verifies the origin like pinproxy."""

    lacks = ("tunnel", "new name")

    def __init__(self, bench, origin):
        port = free_port()
        body = f"""
    upstream origin {{ server 127.0.0.1:{origin.port}; keepalive 8192; keepalive_requests 100000000; }}
    upstream forgetful {{ server 127.0.0.1:{origin.forgetful}; }}
    server {{
        listen 127.0.0.1:{port} ssl backlog=4096;
        location /forgetful/ {{
            proxy_pass https://forgetful/; proxy_http_version 1.1; proxy_set_header Connection "";
            proxy_set_header Host {HOST}; proxy_ssl_name {HOST}; proxy_ssl_server_name on;
            proxy_ssl_verify on; proxy_ssl_trusted_certificate {bench.path("ca.pem")};
        }}
        location / {{
            proxy_pass https://origin; proxy_http_version 1.1; proxy_set_header Connection "";
            proxy_set_header Host {HOST}; proxy_ssl_name {HOST}; proxy_ssl_server_name on;
            proxy_ssl_verify on; proxy_ssl_trusted_certificate {bench.path("ca.pem")};
            proxy_ssl_session_reuse on; proxy_max_temp_file_size 0; proxy_request_buffering off;
        }}
    }}"""
        configuration = bench.write(
            "nginx.conf", NGINX.format(directory=bench.directory, name="nginx", workers=1, body=body)
        )
        super().__init__(bench, ["nginx", "-p", bench.directory, "-c", configuration], port)


class HAProxy(Server):
    """A bridge with TLS on both sides; it mints the leaf for the client's SNI."""

    #: It supports a single origin.
    lacks = ("whole handshake",)
    #: Further options of `bind` and `server`.
    bind = server = ""

    def __init__(self, bench, origin):
        port = free_port()
        self.tunnel = free_port()
        minting = f"generate-certificates ca-sign-file {bench.path('ca-with-key.pem')}{self.bind}"
        verified = f"ca-file {bench.path('ca.pem')} sni str({HOST}) verifyhost {HOST}{self.server}"
        configuration = bench.write(
            "haproxy.cfg",
            f"""
global
    nbthread 1
    maxconn {min(20000, (resource.getrlimit(resource.RLIMIT_NOFILE)[1] - 100) // 2)}
    ssl-default-bind-options ssl-min-ver TLSv1.2
defaults
    mode http
    timeout connect 10s
    timeout client 900s
    timeout server 900s
    http-reuse always
frontend front
    bind 127.0.0.1:{port} ssl crt {bench.path("origin-with-key.pem")} {minting}
    default_backend back
listen tunnel
    mode tcp
    bind 127.0.0.1:{self.tunnel}
    server origin 127.0.0.1:{origin.port}
backend back
    server origin 127.0.0.1:{origin.port} ssl verify required {verified}
""",
        )
        super().__init__(bench, ["haproxy", "-db", "-f", configuration], port)

    def tunnel_port(self):
        return self.tunnel


class Squid(Server):
    """ssl-bump in its cheapest form for new connections: client side first."""

    way = "connect"
    #: It sometimes closes an upload of this length without a response.
    lacks = ("MB up", "5,000", "new upstream")

    def __init__(self, bench, origin):
        port = free_port()
        self.tunnel = free_port()
        home = bench.path("squid")
        home.mkdir()
        run("/usr/lib/squid/security_file_certgen", "-c", "-s", home / "certificates", "-M", "16MB")
        run("chown", "-R", "proxy:proxy", home)
        certificate = f"tls-cert={bench.path('ca-with-key.pem')}"
        minting = f"{certificate} generate-host-certificates=on dynamic_cert_mem_cache_size=16MB"
        configuration = bench.write(
            "squid.conf",
            f"""
http_port 127.0.0.1:{port} ssl-bump {minting}
http_port 127.0.0.1:{self.tunnel}
acl SSL_ports port 1-65535
sslcrtd_program /usr/lib/squid/security_file_certgen -s {home}/certificates -M 16MB
sslcrtd_children 2 startup=1 idle=1
ssl_bump bump all
tls_outgoing_options cafile={bench.path("ca.pem")}
{f"dns_nameservers {bench.names.address}" if bench.names else f"hosts_file {bench.path('hosts')}"}
http_access allow all
cache deny all
cache_mem 8 MB
access_log none
cache_log {home}/cache.log
cache_store_log none
pid_filename {home}/squid.pid
coredump_dir {home}
netdb_filename none
max_filedescriptors 32768
client_idle_pconn_timeout 15 minutes
workers 1
server_persistent_connections on
client_persistent_connections on
shutdown_lifetime 1 seconds
""",
        )
        os.chmod(bench.path("ca-with-key.pem"), 0o644)
        super().__init__(bench, ["squid", "-N", "-f", configuration], port)

    def tunnel_port(self):
        return self.tunnel


class Mitmproxy(Server):
    """PyPI's mitmproxy, with the options to stream bodies and to verify the origin. It is a tool for inspecting
    traffic, not built for speed."""

    way = "connect"
    lacks = ("256", "1,000", "5,000", "resumed", "tunnel", "MB up", "new upstream")
    executable = ".build/mitmproxy/bin/mitmdump"

    def __init__(self, bench, origin):
        port = free_port()
        home = bench.path("mitmproxy")
        home.mkdir()
        bench.write("mitmproxy/mitmproxy-ca.pem", bench.path("ca-with-key.pem").read_text())
        super().__init__(
            bench,
            [
                *(bench.names.wrapper if bench.names else ()),
                os.path.abspath(self.executable),
                "--quiet",
                "--listen-host",
                "127.0.0.1",
                "--listen-port",
                str(port),
                "--set",
                f"confdir={home}",
                "--set",
                f"ssl_verify_upstream_trusted_ca={bench.path('ca.pem')}",
                "--set",
                "stream_large_bodies=1m",
                "--set",
                "connection_strategy=lazy",
                "--set",
                "http2=false",
            ],
            port,
            patience=60,
        )


class Pinproxy(Server):
    """One worker, one host with a public-key pin, and no access log, like the peers."""

    way = "connect"
    executable = None
    access = "false"

    def __init__(self, bench, origin, name="pinproxy", wrapper=(), patience=20, rules="", workers=1, more=""):
        """`rules`: more lines for the host's entry, or more entries. `more`: lines for pinproxy.yaml."""
        port = free_port()
        home = bench.path(name)
        home.mkdir()
        bench.write(
            f"{name}/pins.yaml",
            f"""
hosts:
  - match: "*.{HOST}"
    pinning: public-key
    pins: [sha256/{bench.pin()}]
  - match: {TUNNELLED}
    action: tunnel
  - match: {HOST}
    pinning: public-key
    pins: [sha256/{bench.pin()}]
{rules.lstrip(chr(10))}""",
        )
        configuration = bench.write(
            f"{name}/pinproxy.yaml",
            f"""
proxy: {{listen: "127.0.0.1:{port}", workers: {workers}}}
upstream: {{trust: [{bench.path("ca.pem")}]}}
log: {{access: {self.access}}}
pins: pins.yaml
{more}""",
        )
        environment = {"XDG_STATE_HOME": str(home / "state")}
        if bench.names:
            wrapper = (*bench.names.wrapper, *wrapper)
        else:
            environment["CARES_HOSTS"] = str(bench.path("hosts"))
        super().__init__(
            bench, [*wrapper, self.executable, "run", "--config", configuration], port, environment, patience
        )


class Shipped(Pinproxy):
    """The same as shipped. Each request writes a line of the access log to a file."""

    access = "true"

    def __init__(self, bench, origin, name="shipped", **options):
        super().__init__(bench, origin, name, **options)
