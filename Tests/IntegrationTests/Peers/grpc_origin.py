"""A gRPC server (grpcio) with each kind of call, and the standard health check. Messages are plain bytes.

grpc_origin.py --certificate chain.pem --key key.pem
"""

import argparse
import concurrent.futures
import threading

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from events import say

parser = argparse.ArgumentParser()
parser.add_argument("--certificate", required=True)
parser.add_argument("--key", required=True)
options = parser.parse_args()


def unary(message, context):
    return message


def many(message, context):
    """COUNT: sends that many messages, each with its number."""
    for number in range(int(message)):
        yield b"%d" % number


def gather(messages, context):
    """Returns the number of messages, and their total length."""
    lengths = [len(message) for message in messages]
    return b"%d %d" % (len(lengths), sum(lengths))


def converse(messages, context):
    yield from messages


def metadata(message, context):
    """Returns the received metadata, as initial and trailing metadata."""
    given = [(key, value) for key, value in context.invocation_metadata() if key.startswith("x-")]
    context.send_initial_metadata(
        [(f"{key.removesuffix('-bin')}-first{'-bin' * key.endswith('-bin')}", value) for key, value in given]
    )
    context.set_trailing_metadata(
        [(f"{key.removesuffix('-bin')}-last{'-bin' * key.endswith('-bin')}", value) for key, value in given]
    )
    return b"metadata"


def fail(message, context):
    context.abort(grpc.StatusCode.FAILED_PRECONDITION, "nö, 100% not")


def wait(message, context):
    """Never responds. Reports when the client has gone."""
    over = threading.Event()
    context.add_callback(over.set)
    say("waiting", seconds=context.time_remaining() or 0)
    over.wait(60)
    say("left")
    return b""


def slowly(message, context):
    """Sends one message, then nothing."""
    yield b"first"
    wait(message, context)


handlers = {
    "Unary": grpc.unary_unary_rpc_method_handler(unary),
    "Many": grpc.unary_stream_rpc_method_handler(many),
    "Gather": grpc.stream_unary_rpc_method_handler(gather),
    "Converse": grpc.stream_stream_rpc_method_handler(converse),
    "Metadata": grpc.unary_unary_rpc_method_handler(metadata),
    "Fail": grpc.unary_unary_rpc_method_handler(fail),
    "Wait": grpc.unary_unary_rpc_method_handler(wait),
    "Slowly": grpc.unary_stream_rpc_method_handler(slowly),
}
server = grpc.server(
    concurrent.futures.ThreadPoolExecutor(32), handlers=[grpc.method_handlers_generic_handler("test.Calls", handlers)]
)
checks = health.HealthServicer()
health_pb2_grpc.add_HealthServicer_to_server(checks, server)
checks.set("test.Calls", health_pb2.HealthCheckResponse.SERVING)
with open(options.key, "rb") as key, open(options.certificate, "rb") as chain:
    port = server.add_secure_port("127.0.0.1:0", grpc.ssl_server_credentials([(key.read(), chain.read())]))
server.start()
say("ready", port=port)
server.wait_for_termination()
