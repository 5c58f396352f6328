"""As much of systemd as a service meets: sockets, notifications, the descriptor store, the watchdog, a restart.

    service_manager.py CONFIGURATION PROGRAM ARGUMENTS...

Opens a socket, writes its port into the configuration in the place of 127.0.0.1:0, and starts the program with it. Its
name is $SOCKET_NAME, else "proxy". Where the configuration says "listen: systemd" it stays the manager's, as of a
socket unit: the program is handed it each time. What the program says is printed as {"event": "notify", ...}; what it
writes to its log is passed on. Once it has ended, a client connects; then it is started again with what it had left in
the store, and what the client is answered is printed.
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
    """With the descriptors as 3, 4, …; LISTEN_PID is the program's own number, which only its shell knows."""

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
# What is kept of any other socket is what the program has stored.
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
