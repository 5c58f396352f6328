"""The traffic of one HTTP/2 connection and the model's expectations: a `Stream` of many streams."""

import collections
import random

from endpoints import HTTP2Client, HTTP2Origin
from frames import FrameMaker
from known import KNOWN
from model import Refused
from mutate import MARK
from streams import StreamReader
from wire import Recorder, digest, seen_as


class Row:
    """Requests, each on its stream. A refused message ends only its stream."""

    def __init__(self, maker, requests, authority, context, flips):
        """
        - Parameter flips: bytes of frames are changed at random. Their meaning is then unknown, but no body becomes a
          message.
        """
        self.authority, self.context, self.is_flipped = authority, context, flips
        self.requests = requests
        self.used = collections.Counter()
        self.verdicts = [verdict(self.used, StreamReader.request, sent, authority) for sent in requests]
        numbers = [1 + 2 * n for n in range(len(requests))]
        self.frames = interleaved(maker.random, [maker.frames(number, sent) for number, sent in zip(numbers, requests)])
        if flips:
            self.frames = [maker.flipped(b"".join(self.frames))]
        self.numbers = numbers
        self.messages = [] if flips else [what for what in self.verdicts if not isinstance(what, str)]
        refused = [what for what in self.verdicts if isinstance(what, str)]
        self.ending = "flipped frames" if flips else refused[0] if refused else "end"
        self.count = len(requests)

    @property
    def data(self):
        return b"".join(self.frames)

    def expected(self, reading):
        return [seen_as(m.method, reading(m.target), m.body) for m in self.messages]

    def allowed(self, reading):
        """What may be seen as well. If only the end of a message is refused, its beginning may have been complete."""
        allowed = []
        for sent, what in zip(self.requests, self.verdicts):
            begun = isinstance(what, str) and self.begun(sent)
            if begun:
                allowed.append(seen_as(begun.method, reading(begun.target), begun.body))
        return allowed

    def begun(self, sent):
        """The complete beginning of a message that is refused for its trailers or its length. None without one. An
        extended CONNECT is an upgrade at an HTTP/1.1 origin (RFC 8441), which no origin here accepts."""
        said = dict(sent.fields)
        if said.get(b":method") == b"CONNECT" and b":protocol" in said:
            fields = [
                (name, b"GET" if name == b":method" else value)
                for name, value in sent.fields
                if name not in (b":protocol", b"content-length")
            ]
            sent, said = sent._replace(fields=fields, pieces=[]), {b"content-length": b"0"}
        length = said.get(b"content-length", b"")
        if not length.isdigit() or int(length) > len(sent.body):
            return None
        try:
            return StreamReader(KNOWN).request(
                sent._replace(pieces=[sent.body[: int(length)]], trailers=None), self.authority
            )
        except Refused:
            return None

    def client(self, loop, port):
        return HTTP2Client(
            loop, port, self.frames, [] if self.is_flipped else self.numbers, self.authority, self.context
        )

    def fault_of(self, client, is_strict=True, reading=lambda target: target):
        if self.is_flipped:
            return None
        for number, sent, what in zip(self.numbers, self.requests, self.verdicts):
            answer = client.answers[number]
            fault = self.fault_of_stream(answer, what, self.begun(sent), is_strict, reading)
            if fault:
                return f"stream {number}: {fault}; {sent.fields}; GOAWAY {client.goaway}"
        return None

    @staticmethod
    def fault_of_stream(answer, what, begun, is_strict, reading):
        name = answer.field(b"x-id") if answer.heads else None
        if isinstance(what, str):
            if name is not None and not begun:
                return f"answered by the origin, though {what}: {answer}"
            if answer.status is not None and answer.status < 400 and name is None:
                return f"{answer.status}, though {what}"
            return None
        if (
            name is None
            and not is_strict
            and answer.status is not None
            and (answer.status >= 400 or what.target == b"*")
        ):
            return None
        if not answer.has_ended:
            return f"no answer: {answer}"
        if answer.status != 200 or name != digest(what.method, reading(what.target)).encode():
            return f"another's answer: {answer}"
        if what.method != b"HEAD" and answer.body != digest(what.body).encode():
            return f"the origin read another body: {answer}"
        return None


def verdict(used, read, *arguments):
    """What a function of the model reads, or why it refuses. Counts the known.py reasons that applied."""
    reader = StreamReader(KNOWN)
    try:
        return read(reader, *arguments)
    except Refused as refused:
        return f"stream refused: {refused}"
    finally:
        used.update(reader.used)


def interleaved(random, rows):
    """The interleaved frames of several streams, which are opened in order."""
    frames, opened = [], []
    rows = [list(row) for row in rows]
    while rows or opened:
        if rows and (not opened or random.random() < 0.4):
            row = rows.pop(0)
        else:
            row = opened.pop(int(random.random() * len(opened)))
        frames.append(row.pop(0))
        if row:
            opened.append(row)
    return frames


class PreparedOrigin(Recorder):
    """An HTTP/2 origin with prepared frames as responses, by path."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.connections = set()

    def prepare(self, responses, seed):
        self.responses, self.seed = responses, seed

    def accepted(self, connection):
        self.connections.add(HTTP2Origin(self, connection))

    def hang_up(self):
        """Closes all connections."""
        for connection in list(self.connections):
            connection.close()

    def answer(self, stream, path):
        sent, flips = self.responses[path]
        # Not from the trial's own random numbers, since requests arrive in an unpredictable order.
        maker = FrameMaker(random.Random(f"{self.seed} {path}"))
        data = b"".join(maker.frames(stream, sent))
        return maker.flipped(data) if flips else data


def is_smuggled(key):
    return MARK in bytes.fromhex(key[1])
