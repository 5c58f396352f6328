"""A substitute for systemd: sockets, notifications, the descriptor store, the watchdog, a restart.

    service_manager.py CONFIGURATION PROGRAM ARGUMENTS...

Opens a socket, replaces 127.0.0.1:0 in the configuration with its port, and starts the program with it. The socket's
name is $SOCKET_NAME, else "proxy". If the configuration says "listen: systemd", the manager keeps it, like that of a
socket unit, and passes it at every start. Notifications are printed as {"event": "notify", ...}; log output is passed
on. When the program has exited, a client connects. Then the program is started again with its stored descriptors, and
the client's response is printed.
"""

import os
import socket
import subprocess
import sys
import threading

from events import say

configuration, program = sys.argv[1], sys.argv[2:]
name = os.environ.get("SOCKET_NAME", "proxy")
stored = {}


def listen_to_notices(notices):
    while True:
        data, descriptors, _, _ = socket.recv_fds(notices, 4096, 16)
        fields = dict(line.split("=", 1) for line in data.decode().splitlines())
        if "FDSTORE" in fields:
            stored[fields["FDNAME"]] = descriptors[0]
        if "FDSTOREREMOVE" in fields:
            os.close(stored.pop(fields["FDNAME"]))
        say("notify", **fields)


def start(descriptors):
    """Starts the program with the descriptors as 3, 4, …. A shell sets LISTEN_PID, since only it knows the program's
    PID."""

    def place():
        parked = [os.dup2(descriptor, 900 + index) for index, descriptor in enumerate(descriptors)]
        for index, descriptor in enumerate(parked):
            os.dup2(descriptor, 3 + index)

    environment = dict(
        os.environ,
        NOTIFY_SOCKET=notice_path,
        WATCHDOG_USEC="300000",
        LISTEN_FDS=str(len(descriptors)),
        LISTEN_FDNAMES=":".join(name for _ in descriptors),
    )
    child = subprocess.Popen(
        ["/bin/sh", "-c", 'LISTEN_PID=$$; export LISTEN_PID; exec "$@"', "sh"] + program,
        env=environment,
        preexec_fn=place,
        pass_fds=range(3, 3 + len(descriptors)),
        stdout=sys.stdout,
        stderr=sys.stdout,
    )
    say("started", pid=child.pid)
    return child


notice_path = configuration + ".notify"
notices = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
notices.bind(notice_path)
threading.Thread(target=listen_to_notices, args=(notices,), daemon=True).start()

listener = socket.create_server(("127.0.0.1", 0), backlog=64)
port = listener.getsockname()[1]
with open(configuration) as file:
    text = file.read()
with open(configuration, "w") as file:
    file.write(text.replace("127.0.0.1:0", f"127.0.0.1:{port}"))
first = start([listener.fileno()])
# Unless it belongs to a unit, only the descriptor store keeps the socket open.
is_unit = "listen: systemd" in text
if not is_unit:
    listener.close()
say("ready", port=port)
code = first.wait()
say("ended", code=code, stored=len(stored))
if code != 0:
    sys.exit(0)

client = socket.create_connection(("127.0.0.1", port), timeout=30)
client.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
second = start([listener.fileno()] if is_unit else list(stored.values()))
say("answered", line=client.makefile("rb").readline().decode().strip())
say("ended", code=second.wait(), stored=len(stored))
