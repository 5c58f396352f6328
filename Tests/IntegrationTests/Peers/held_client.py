"""A client that keeps its connection to the proxy open between commands of the test.

    held_client.py --proxy PORT --authority HOST:PORT --ca FILE [--user NAME:PASSWORD]

Takes commands as lines on one connection to the port that it announces, and answers each with a line:

    connect      a new CONNECT; its status
    secure       TLS within it, resuming the last session if there is one: "new" or "resumed"
    get PATH     a request on the connection; its status
    upgrade      a request to upgrade to the origin's echo protocol; its status
    echo WORD    the origin's echo

A command on a closed or reset connection answers "closed".
"""

import argparse
import base64
import socket
import ssl

from events import say


class Client:
    def __init__(self, options):
        self.options = options
        self.host = options.authority.split(":")[0]
        self.context = ssl.create_default_context(cafile=options.ca)
        self.connection = None
        self.session = None

    def status(self):
        """The status of the next response, after reading its body by Content-Length."""
        received = b""
        while b"\r\n\r\n" not in received:
            data = self.connection.recv(65536)
            if not data:
                return "closed"
            received += data
        head, _, body = received.partition(b"\r\n\r\n")
        fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:])
        missing = int(fields.get(b"content-length", b"0")) - len(body)
        while missing > 0:
            missing -= len(self.connection.recv(missing))
        return head.split(b" ")[1].decode()

    def connect(self):
        self.connection = socket.create_connection(("127.0.0.1", self.options.proxy), timeout=30)
        authority = self.options.authority
        credentials = ""
        if self.options.user:
            encoded = base64.b64encode(self.options.user.encode()).decode()
            credentials = f"Proxy-Authorization: Basic {encoded}\r\n"
        self.connection.sendall(f"CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n{credentials}\r\n".encode())
        return self.status()

    def secure(self):
        self.connection = self.context.wrap_socket(self.connection, server_hostname=self.host, session=self.session)
        return "resumed" if self.connection.session_reused else "new"

    def get(self, path):
        self.connection.sendall(f"GET {path} HTTP/1.1\r\nHost: {self.options.authority}\r\n\r\n".encode())
        status = self.status()
        # TLS 1.3 sends tickets after the handshake.
        self.session = self.connection.session or self.session
        return status

    def upgrade(self):
        self.connection.sendall(
            f"GET /upgrade HTTP/1.1\r\nHost: {self.options.authority}\r\n"
            "Connection: Upgrade\r\nUpgrade: echo\r\n\r\n".encode()
        )
        return self.status()

    def echo(self, word):
        self.connection.sendall(word.encode())
        received = b""
        while len(received) < len(word):
            data = self.connection.recv(65536)
            if not data:
                return "closed"
            received += data
        return received.decode()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--proxy", type=int, required=True)
    parser.add_argument("--authority", required=True)
    parser.add_argument("--ca", required=True)
    parser.add_argument("--user")
    client = Client(parser.parse_args())
    listener = socket.create_server(("127.0.0.1", 0))
    say("ready", port=listener.getsockname()[1])
    control, _ = listener.accept()
    with control.makefile("rw") as lines:
        for line in lines:
            command, *arguments = line.split()
            try:
                answer = getattr(client, command)(*arguments)
            except (ConnectionError, ssl.SSLEOFError):
                answer = "closed"
            except OSError as error:
                answer = f"{type(error).__name__}: {error}"
            lines.write(answer + "\n")
            lines.flush()


if __name__ == "__main__":
    main()
