"""Sends batches, computes the model's expectations, and compares them with what arrived."""

import collections
import itertools
import random
import re

from known import KNOWN
from model import Incomplete, Reader, Refused
from mutate import Maker
from peers import ClientRun
from rows import is_smuggled
from wire import Client, digest, seen_as

BATCH = 64
#: See "python, interim" in known.py.
INTERIM = re.compile(rb"HTTP/1\.. 1(?!00)[0-9][0-9]")

CONTINUE = re.compile(rb"HTTP/1\.1 100 [^\n]*\n(?:[^\r\n]+\r\n)*\r\n")
#: See "first byte of a tunnel" in known.py.
SILENT = "refused: first byte of a tunnel"


class Stream:
    """The requests that one connection sends; the last of them may end it."""

    is_flipped = False

    def __init__(self, data, authority, cuts, ends, is_inside):
        self.data = data
        self.cuts = cuts
        self.tunnel = authority if is_inside else None
        reader = Reader(KNOWN)
        self.messages, self.ending = reader.requests(data, authority, is_inside)
        if is_inside and data and not data[:1].isalpha():
            self.messages, self.ending = [], SILENT
            reader.used["first byte of a tunnel"] = 1
        self.used = reader.used
        #: This side may keep the connection open only if the proxy or the last response closes it.
        self.ends = ends or self.ending == "incomplete" or any(m.is_own for m in self.messages)

    @property
    def count(self):
        """The number of messages with a verdict."""
        return len(self.messages) + (self.ending.startswith("refused") or self.ending == "incomplete")

    def expected(self, reading):
        return [seen_as(m.method, reading(m.target), m.body) for m in self.messages if not m.is_own]

    def client(self, loop, port):
        pieces = [self.data[a:b] for a, b in zip([0, *self.cuts], [*self.cuts, len(self.data)])]
        satisfied = None
        if not self.ends and self.ending == "end":

            def satisfied(data):
                return data.count(b"\r\nX-Id: ") >= len(self.messages) and self.fault(data) is None

        return Client(loop, port, pieces, self.ends, satisfied, self.tunnel)

    def allowed(self, reading):
        """What may be seen as well."""
        return []

    def fault_of(self, client, is_strict=True, reading=lambda target: target):
        return self.fault(client.data, is_strict, reading)

    def fault(self, data, is_strict=True, reading=lambda target: target):
        """What is wrong with the responses; None: nothing. A reader (not strict) may refuse its input itself.

        - Parameter reading: its interpretation of a target.
        """
        reader, at, was_refused = Reader(KNOWN), 0, False
        for number, message in enumerate(self.messages):
            # The reader may have refused a message before all of it arrived: that closes the connection.
            if was_refused and at == len(data):
                return None
            try:
                answer = reader.response(data, message.method, at, is_client=True)
            except (Incomplete, Refused) as error:
                return f"answer {number + 1} of {len(self.messages)}: {type(error).__name__} {error}"
            at = answer.end
            name = dict(answer.fields).get(b"x-id")
            was_refused = not is_strict and answer.status >= 400 and name is None
            if message.is_own:
                if name is not None or answer.status != 200:
                    return f"answer {number + 1}: {answer.status} to Max-Forwards: 0"
            elif was_refused or not is_strict and message.target == b"*" and name is None:
                # See "go, server" in known.py.
                continue
            elif answer.status != 200 or name != digest(message.method, reading(message.target)).encode():
                return f"answer {number + 1} is another's: {answer.status} {name}"
            elif message.method != b"HEAD" and answer.body != digest(message.body).encode():
                return f"answer {number + 1}: the origin read another body"
        return None if was_refused and at == len(data) else self.fault_of_end(data, at)

    def fault_of_end(self, data, at):
        if self.ending in ("end", "closed"):
            return None if at == len(data) else f"more than {len(self.messages)} answers"
        if self.ending == SILENT:
            return "an answer to what isn't HTTP" if data else None
        if at == len(data):
            return None if self.ending == "incomplete" else f"no answer to what is {self.ending}"
        if self.ending == "incomplete" and CONTINUE.fullmatch(data, at):
            # 100 invites the rest of the body, which never comes.
            return None
        for method in (b"GET", b"HEAD"):
            try:
                answer = Reader(KNOWN).response(data, method, at, is_client=True)
            except (Incomplete, Refused):
                continue
            if 400 <= answer.status < 500 and answer.end == len(data) and b"x-id" not in dict(answer.fields):
                return None
        return f"not one refusal of what is {self.ending}"


class Trial:
    """The trials of one lane: a proxy with its origins, and a random source."""

    def __init__(self, seed, loop, proxy, recorder, tunnelled, readers):
        """
        - Parameter tunnelled: a recorder on port 80, where CONNECT is for plain HTTP; None without one.
        """
        self.seed = seed
        self.random = random.Random(seed)
        self.maker = Maker(self.random)
        self.loop = loop
        self.proxy = proxy
        self.recorder = recorder
        self.tunnelled = tunnelled
        self.readers = readers
        self.number = 0
        #: The HTTP/2 trial (http2_trial.py).
        self.others = None
        self.counts = collections.Counter()
        self.known = collections.Counter()
        self.verdicts = collections.Counter()
        self.faults = []

    def batch(self):
        """Runs one batch of some kind."""
        if self.others and self.random.random() < 0.4:
            return self.others.batch()
        kind = self.random.random()
        if kind < 0.1 and self.tunnelled:
            self.requests(self.tunnelled, BATCH // 2, "tunnels")
        elif kind < 0.72:
            self.requests(self.recorder, BATCH, "recorder")
        elif kind < 0.84:
            reader = self.random.choice(self.readers)
            self.requests(reader, BATCH // 2, reader.name)
        elif kind < 0.98:
            self.responses(BATCH // 2)
        else:
            self.clients(self.random.choice(ClientRun.NAMES))

    def report(self, fault):
        self.faults.append(fault)
        print(f"DIFFERENCE  {self.seed}: {fault}", flush=True)

    def name(self):
        self.number += 1
        return b"m%d" % self.number

    # Requests

    def stream(self, authority, is_strict, is_inside):
        url = b"http://" + authority
        pieces = []
        share = self.random.choice([0, 0.02, 0.05, 0.1])
        for _ in range(self.random.choice([1, 2, 3, 4, 6])):
            pieces.append(self.maker.request(self.name(), url, 0 if self.random.random() < 0.5 else share, is_inside))
            if self.random.random() < 0.12:
                pieces[-1] = self.maker.flipped(pieces[-1], url)
        data = b"".join(pieces)
        if not is_inside:
            # A tunnel to the origin would be valid; tunnels have their own trials.
            data = data.replace(b"CONNECT " + authority, b"CONNECT nowhere")
        if is_inside and data.startswith(b"\x16"):
            # That would be a TLS handshake (RFC 8446 section 5.1).
            data = data[1:]
        cuts = sorted({self.random.randrange(len(data) + 1) for _ in range(self.random.choice([0, 0, 1, 3]))})
        return Stream(data, authority, cuts, not is_strict or self.random.random() < 0.8, is_inside)

    def requests(self, origin, count, name):
        is_strict = name in ("recorder", "tunnels")
        self.try_requests(
            origin, [self.stream(origin.authority, is_strict, name == "tunnels") for _ in range(count)], is_strict, name
        )

    def try_requests(self, origin, streams, is_strict, name):
        faults = self.run_requests(origin, streams, is_strict)
        for stream in streams:
            self.counts[f"requests to {name}"] += stream.count
            if stream.ending != "end":
                self.verdicts[stream.ending] += 1
            self.verdicts["accepted"] += len(stream.messages)
            self.known.update(stream.used)
        if faults:
            self.narrow(faults, streams, lambda stream: self.run_requests(origin, [stream], is_strict), name)

    def run_requests(self, origin, streams, is_strict):
        """Returns what is wrong, as lines."""
        origin.seen = []
        recorder = origin if is_strict else self.recorder
        # nginx has a separate recorder.
        recorder = getattr(origin, "recorder", recorder)
        recorder.refused, recorder.responses = [], {}
        clients = [stream.client(self.loop, self.proxy) for stream in streams]

        def is_done():
            for client in clients:
                if not client.is_done and client.pieces:
                    client.send()
            return all(client.is_done for client in clients)

        reading = as_python if getattr(origin, "name", "") == "python" else lambda target: target
        faults = []
        if not self.loop.run(is_done):
            faults.append(f"{sum(not c.is_done for c in clients)} connections are open after all the time")
            for client in clients:
                if not client.is_done:
                    client.finish(True)
        for stream, client in zip(streams, clients):
            fault = stream.fault_of(client, is_strict, reading)
            if fault:
                faults.append(f"{fault}; it came: {client.data[-1500:]!r}")
        faults += [f"the origin got what is refused ({reason}): {data[:2000]!r}" for reason, data in recorder.refused]
        seen, expected = collections.Counter(origin.seen), collections.Counter()
        for stream in streams:
            expected.update(stream.expected(reading))
        extra, missing = seen - expected, expected - seen
        for stream in streams:
            extra -= collections.Counter(stream.allowed(reading))
        if any(stream.is_flipped for stream in streams):
            extra, missing = {key: n for key, n in extra.items() if is_smuggled(key)}, {}
        faults += [f"seen by the origin, and not expected: {shown(key)} ({n})" for key, n in extra.items()]
        if is_strict:
            faults += [f"expected, and not seen by the origin: {shown(key)} ({n})" for key, n in missing.items()]
        return faults

    def narrow(self, faults, inputs, run, name):
        """Finds the inputs that cause a fault, by sending each alone."""
        alone = list(itertools.islice(((input, found) for input in inputs if (found := run(input))), 3))
        for input, found in alone:
            self.report(
                f"{name}: {input.data!r}\n    model: {[m[:2] + (len(m.body),) for m in input.messages]} "
                f"{input.ending}\n    " + "\n    ".join(found)
            )
        if not alone:
            self.report(f"{name}: only in a batch\n    " + "\n    ".join(faults[:5]))

    # Responses

    def prepare(self, count):
        """Prepares responses at the recorder. Returns their targets and data."""
        self.recorder.responses = {}
        #: By target: the complete body before the defect.
        self.whole = {}
        targets = []
        share = self.random.choice([0, 0.02, 0.05, 0.1])
        for _ in range(count):
            name = self.name()
            data = self.maker.response(name, share)
            if self.random.random() < 0.1:
                data = self.maker.flipped(data)
            targets.append((b"/" + name, data))
        return targets

    def outcome(self, target, data, method):
        """Status and body by the model, or the reason of a refusal. Prepares the recorder's response."""
        reader = Reader(KNOWN)
        answer = None
        try:
            answer = reader.response(data, method)
            what = (answer.status, answer.body)
        except (Incomplete, Refused) as error:
            what = f"refused: {error}" if str(error) else "incomplete"
        self.recorder.responses[target] = (data, answer is None or answer.until_close)
        self.whole[target] = reader.whole if answer is None else None
        self.known.update(reader.used)
        self.verdicts[what if isinstance(what, str) else "response accepted"] += 1
        return what

    def responses(self, count):
        """Sends series of requests over one connection each, answered with generated responses."""
        url = b"http://127.0.0.1:%d" % self.recorder.port
        rows, targets = [], self.prepare(count * 4)
        while targets:
            row = []
            for _ in range(min(len(targets), self.random.randrange(1, 6))):
                target, data = targets.pop()
                method = b"HEAD" if self.random.random() < 0.15 else b"GET"
                row.append((method, target, data, self.outcome(target, data, method)))
                if isinstance(row[-1][3], str):
                    break
            self.counts["responses"] += len(row)
            rows.append(row)
        found = self.run_rows(rows, url)
        for row, fault in found:
            alone = self.run_rows([row], url)
            self.report(
                f"response ({'alone' if alone else 'only in a batch'}): {[(m, d) for m, _, d, _ in row]!r}\n    "
                f"model: {[w for *_, w in row]!r}\n    {fault}"
            )

    def run_rows(self, rows, url):
        clients = []
        for row in rows:
            data = b"".join(
                b"%s %s%s HTTP/1.1\r\nHost: a\r\n\r\n" % (method, url, target) for method, target, *_ in row
            )
            clients.append(Client(self.loop, self.proxy, [data], True))
        in_time = self.loop.run(lambda: all(client.is_done for client in clients))
        found = []
        for row, client in zip(rows, clients):
            fault = "it is open after all the time" if not client.is_done else self.fault_of_row(row, client)
            if not in_time and not client.is_done:
                client.finish(True)
            if fault:
                found.append((row, f"{fault}; it came: {client.data[:3000]!r}"))
        return found

    @staticmethod
    def fault_of_row(row, client):
        reader, at, data = Reader(KNOWN), 0, client.data
        for number, (method, _, _, wanted) in enumerate(row):
            try:
                answer = reader.response(data, method, at, is_client=True)
            except (Incomplete, Refused) as error:
                # An interrupted response is truncated at the break.
                return (
                    None
                    if isinstance(wanted, str) and isinstance(error, Incomplete)
                    else f"answer {number + 1}: {error!r}"
                )
            at = answer.end
            if isinstance(wanted, str):
                if answer.until_close and client.was_reset:
                    return None
                if answer.status != 502 or b"proxy-status" not in dict(answer.fields):
                    return f"answer {number + 1} passed, though it is {wanted}: {answer[:2]}"
                break
            if (answer.status, answer.body) != wanted:
                return f"answer {number + 1} is {answer[:2]}"
        return None if at == len(data) else "more answers than requests"

    def clients(self, name):
        """Lets a real client read responses."""
        targets = self.prepare(BATCH)
        wanted = {}
        for target, data in targets:
            if name == "python" and INTERIM.search(data):
                continue
            url = f"http://127.0.0.1:{self.recorder.port}{target.decode()}"
            wanted[url] = data, self.outcome(target, data, b"GET")
        run = ClientRun(self.loop, name, self.proxy, list(wanted))
        if not self.loop.run(lambda: run.is_done):
            self.report(f"{name} hasn't ended: {list(wanted.values())!r}")
            return run.end()
        results = run.results()
        self.counts[f"responses to {name}"] += len(wanted)
        for url, (data, what) in wanted.items():
            came = results.get(url)
            if isinstance(what, str):
                whole = self.whole[b"/" + url.rsplit("/")[-1].encode()]
                if name == "python" and came and whole is not None and came[1:] == (len(whole), digest(whole)):
                    self.verdicts["body without its trailers to python"] += 1
                elif came is not None and came[0] != 502:
                    self.report(f"{name} took what is {what}: {came} {data!r}")
            elif came is None:
                self.verdicts[f"refused by {name}"] += 1
            elif came != (what[0], len(what[1]), digest(what[1])):
                self.report(f"{name} read {came}, not {what!r}: {data!r}")


def as_python(target):
    """See "python, slashes" and "python, blanks" in known.py."""
    return re.sub(b"^//+", b"/", target).rstrip(b"\x85\xa0")


def shown(key):
    method, target, length, body = key
    return f"{bytes.fromhex(method)!r} {bytes.fromhex(target)[:200]!r}, {length} bytes {body}"
