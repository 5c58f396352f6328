"""The HTTP/2 part of the trial. Clients send HTTP/2 requests to HTTP/1.1 origins, and origins send HTTP/2 responses."""

from endpoints import context
from frames import FrameMaker
from known import KNOWN
from model import RELAYED_TRAILER_LIMIT, Incomplete, Reader, Refused
from rows import PreparedOrigin, Row, verdict
from streams import AFTER, LENGTH, StreamReader
from wire import Client, Recorder

BATCH = 24
#: How many connections with garbage from an origin a client tries before it gives up.
TRIES = 8


class HTTP2Trial:
    def __init__(self, trial, certificate, readers):
        """
        - Parameter certificate: the files of a chain that the proxy trusts, and of its key.
        - Parameter readers: readers with TLS.
        """
        self.trial, self.readers = trial, readers
        self.random, self.loop = trial.random, trial.loop
        self.maker = FrameMaker(trial.random)
        self.recorder = Recorder(self.loop, KNOWN, context=context(True, ["http/1.1"], certificate))
        self.origin = PreparedOrigin(self.loop, KNOWN, context=context(True, ["h2"], certificate))
        self.offers = {version: context(False, [version]) for version in ["h2", "http/1.1"]}

    def batch(self):
        kind = self.random.random()
        if kind < 0.5:
            self.requests(self.recorder, True, "recorder")
        elif kind < 0.65:
            reader = self.random.choice(self.readers)
            self.requests(reader, False, reader.name)
        else:
            self.responses()

    def requests(self, origin, is_strict, name):
        flips = is_strict and self.random.random() < 0.15
        rows = []
        for _ in range(BATCH):
            share = self.random.choice([0, 0.02, 0.05, 0.1])
            requests = [
                self.maker.request_stream(
                    self.trial.name(), origin.authority, 0 if self.random.random() < 0.4 else share
                )
                for _ in range(self.random.choice([1, 2, 4, 8]))
            ]
            rows.append(Row(self.maker, requests, origin.authority, self.offers["h2"], flips))
        for row in rows:
            for what in row.verdicts:
                if not flips and isinstance(what, str):
                    self.trial.verdicts[what] += 1
        self.trial.try_requests(origin, rows, is_strict, f"{name} by HTTP/2")

    # Responses

    def responses(self):
        """Sends series of HTTP/1.1 requests over one connection each, answered in HTTP/2. After a refusal the
        connection may close or continue."""
        rows, prepared = [], {}
        share, flips = self.random.choice([0, 0.02, 0.05, 0.1]), self.random.random() < 0.15
        for _ in range(BATCH):
            row = []
            for _ in range(self.random.randrange(1, 6)):
                name = self.trial.name()
                sent = self.maker.response_stream(name, share)
                method = b"HEAD" if self.random.random() < 0.15 else b"GET"
                prepared[b"/" + name] = sent, flips
                row.append((method, b"/" + name, sent, "flipped" if flips else self.outcome(sent, method)))
                if isinstance(row[-1][3], str):
                    break
            rows.append(row)
        self.origin.prepare(prepared, self.trial.seed)
        self.trial.counts["responses by HTTP/2"] += len(prepared)
        for row, fault in self.run(rows):
            alone = self.run([row])
            self.trial.report(
                f"response by HTTP/2 ({'alone' if alone else 'only in a batch'}): "
                f"{[(m, s) for m, _, s, _ in row]!r}\n    model: {[w for *_, w in row]!r}\n    {fault}"
            )

    def outcome(self, sent, method):
        what = verdict(self.trial.known, StreamReader.response, sent, method)
        self.trial.verdicts[what if isinstance(what, str) else "response accepted"] += 1
        return what

    def run(self, rows):
        host, clients = self.origin.authority, []
        for row in rows:
            data = b"".join(
                b"%s %s HTTP/1.1\r\nHost: %s\r\n\r\n" % (method, target, host) for method, target, *_ in row
            )
            # The last one is marked as final.
            data = data[:-2] + b"Connection: close\r\n\r\n"
            clients.append(
                Client(self.loop, self.trial.proxy, [data], False, tunnel=host, context=self.offers["http/1.1"])
            )

        def is_done():
            return all(client.is_done for client in clients)

        if any(row[-1][3] == "flipped" for row in rows):
            # A frame's length may now exceed what is sent: the proxy waits until its origin closes, and may retry.
            for _ in range(TRIES):
                if self.loop.run(is_done, patience=1):
                    break
                self.origin.hang_up()
        self.loop.run(is_done)
        found = []
        for row, client in zip(rows, clients):
            fault = None if client.is_done else "it is open after all the time"
            if not client.is_done:
                client.finish(True)
            fault = fault or self.fault_of(row, client.data)
            if fault:
                found.append((row, f"{fault}; it came: {client.data[:3000]!r}"))
        return found

    @staticmethod
    def fault_of(row, data):
        reader, at = Reader(KNOWN, RELAYED_TRAILER_LIMIT), 0
        for number, (method, _, sent, wanted) in enumerate(row):
            try:
                answer = reader.response(data, method, at, has_ended=False, is_client=True)
            except (Incomplete, Refused) as error:
                # An interrupted response is truncated at the break.
                return (
                    None
                    if isinstance(wanted, str) and isinstance(error, Incomplete)
                    else f"answer {number + 1}: {error!r}"
                )
            at = answer.end
            if wanted == "flipped":
                return None
            if isinstance(wanted, str):
                if wanted.endswith((AFTER, LENGTH)) and answer.body == StreamReader.said(sent, method):
                    break
                if answer.status != 502 or b"proxy-status" not in dict(answer.fields):
                    return f"answer {number + 1} passed, though it is {wanted}: {answer[:2]}"
                break
            if (answer.status, answer.body) != wanted:
                return f"answer {number + 1} is {answer[:2]}"
        return None if at == len(data) else "more answers than requests"
