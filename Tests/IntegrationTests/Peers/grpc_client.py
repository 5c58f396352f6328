"""Calls grpc_origin.py through the environment's proxy and roots: grpc_client.py TARGET CASE...

Prints a JSON line for each case: {"event": CASE, "status": "OK", ...}.
"""

import os
import queue
import sys

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from events import say

channel = grpc.secure_channel(sys.argv[1], grpc.ssl_channel_credentials())


def method(name):
    kinds = {
        "Many": channel.unary_stream,
        "Slowly": channel.unary_stream,
        "Gather": channel.stream_unary,
        "Converse": channel.stream_stream,
    }
    return kinds.get(name, channel.unary_unary)(f"/test.Calls/{name}")


def unary():
    return {"equal": method("Unary")(b"hello", timeout=60) == b"hello"}


def empty():
    return {"equal": method("Unary")(b"", timeout=60) == b""}


def large():
    """Messages of grpcio's default maximum size, both ways."""
    message = os.urandom(4 << 20)
    return {"equal": method("Unary")(message, timeout=60) == message}


def many():
    return {"equal": list(method("Many")(b"1000", timeout=60)) == [b"%d" % number for number in range(1000)]}


def gather():
    return {"text": method("Gather")((b"x" * 1000 for _ in range(500)), timeout=60).decode()}


def converse():
    """Each message waits for the response to the one before."""
    messages, answers = queue.SimpleQueue(), []
    messages.put(b"0")
    for answer in method("Converse")(iter(messages.get, None), timeout=60):
        answers.append(answer)
        messages.put(b"%d" % len(answers) if len(answers) < 50 else None)
    return {"equal": answers == [b"%d" % number for number in range(50)]}


def metadata():
    _, call = method("Metadata").with_call(
        b"", timeout=60, metadata=[("x-text", "a, b"), ("x-octets-bin", b"\x00\xff,")]
    )
    shown = [
        [key, value.hex() if isinstance(value, bytes) else value]
        for key, value in [*call.initial_metadata(), *call.trailing_metadata()]
        if key.startswith("x-")
    ]
    return {"metadata": sorted(shown)}


def fail():
    method("Fail")(b"", timeout=60)


def deadline():
    method("Wait")(b"", timeout=1)


def cancel():
    call = method("Slowly")(b"", timeout=60)
    first = next(call)
    call.cancel()
    return {"text": first.decode(), "status": call.code().name}


def health():
    stub = health_pb2_grpc.HealthStub(channel)
    request = health_pb2.HealthCheckRequest(service="test.Calls")
    watched = stub.Watch(request, timeout=60)
    return {"text": f"{stub.Check(request, timeout=60).status} {next(watched).status}"}


for case in sys.argv[2:]:
    try:
        say(case, **{"status": "OK", **globals()[case]()})
    except grpc.RpcError as error:
        say(case, status=error.code().name, details=error.details())
channel.close()
