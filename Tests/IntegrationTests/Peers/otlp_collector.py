"""An OTLP/HTTP collector that parses requests with opentelemetry-proto's own definitions.

    otlp_collector.py --behaviour FILE [--certificate chain.pem --key key.pem]

Prints JSON lines: {"event": "ready", "port": N}; a "metrics" event for each export, with a line for each data point; a
"log" event for each record, with its attributes as fields; "invalid" for data that violates the definitions. The first
word of the file selects the response to each request: a status (with the rest of the line as the body), `retry STATUS
SECONDS`, `reject COUNT MESSAGE`, `long`, `reset`, or `silent`.
"""

import argparse
import http.server
import socket
import ssl
import struct
import sys
import threading

from events import say
from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)


def value(any_value):
    kind = any_value.WhichOneof("value")
    return str(getattr(any_value, kind)) if kind else ""


def attributes(pairs):
    return {pair.key: value(pair.value) for pair in pairs}


def tell_metrics(body, headers):
    request = ExportMetricsServiceRequest.FromString(body)
    for resource in request.resource_metrics:
        lines = []
        for metric in [metric for scope in resource.scope_metrics for metric in scope.metrics]:
            data = metric.sum if metric.HasField("sum") else metric.gauge
            if metric.HasField("sum") and not (metric.sum.is_monotonic and metric.sum.aggregation_temporality == 2):
                say("invalid", cause=f"{metric.name} is not a cumulative counter")
            for point in data.data_points:
                labels = ",".join(f"{key}={text}" for key, text in attributes(point.attributes).items())
                number = point.as_int if point.WhichOneof("value") == "as_int" else point.as_double
                lines.append(f"{metric.name}{{{labels}}} {number}")
                if not point.time_unix_nano or (metric.HasField("sum") and not point.start_time_unix_nano):
                    say("invalid", cause=f"{metric.name} has no time")
        say("metrics", points="\n".join(lines), **headers, **attributes(resource.resource.attributes))


def tell_logs(body, headers):
    request = ExportLogsServiceRequest.FromString(body)
    for resource in request.resource_logs:
        for record in [record for scope in resource.scope_logs for record in scope.log_records]:
            fields = {f"a.{key}": text for key, text in attributes(record.attributes).items()}
            fields |= headers | attributes(resource.resource.attributes)
            say(
                "log",
                name=record.event_name,
                severity=record.severity_number,
                body=record.body.string_value,
                time=record.time_unix_nano,
                **fields,
            )


class Collector(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        with open(options.behaviour) as file:
            words = file.readline().strip().split(" ", 1)
        say("request", path=self.path, behaviour=words[0])
        if words[0] == "silent":
            threading.Event().wait()
        if words[0] == "reset":
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.close_connection = True
            return
        if words[0] == "200":
            headers = {"type": self.headers["Content-Type"], "authorization": self.headers["Authorization"] or ""}
            tell = {"/v1/metrics": tell_metrics, "/v1/logs": tell_logs}.get(self.path)
            try:
                tell(body, headers)
            except (DecodeError, TypeError) as error:
                say("invalid", cause=f"{self.path}: {error}")
        status, answer = 200, (words[1:] or [""])[0].encode()
        if words[0] == "long":
            answer = b"x" * (16 << 20)
        elif words[0] == "reject":
            response = ExportMetricsServiceResponse()
            count, response.partial_success.error_message = words[1].split(" ", 1)
            response.partial_success.rejected_data_points = int(count)
            answer = response.SerializeToString()
        else:
            status = int(words[1].split()[0] if words[0] == "retry" else words[0])
        self.send_response(status)
        if words[0] == "retry":
            self.send_header("Retry-After", words[1].split()[1])
        self.send_header("Content-Type", "application/x-protobuf")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        try:
            self.wfile.write(answer)
        except OSError:
            self.close_connection = True

    def log_message(self, *arguments):
        pass


parser = argparse.ArgumentParser()
parser.add_argument("--behaviour", required=True)
parser.add_argument("--certificate")
parser.add_argument("--key")
options = parser.parse_args()
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Collector)
server.daemon_threads = True
if options.certificate:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(options.certificate, options.key)
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
say("ready", port=server.server_address[1])
sys.exit(server.serve_forever())
