"""A server that speaks first, like mail servers, then listens. Prints {"event": "ready", "port": N}."""

import socketserver

from events import say


class Greeting(socketserver.BaseRequestHandler):
    def handle(self):
        self.request.sendall(b"220 mail.test ESMTP\r\n")
        while self.request.recv(65536):
            pass


class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True


server = Server(("127.0.0.1", 0), Greeting)
say("ready", port=server.server_address[1])
server.serve_forever()
