"""Defines requests and expected responses. An exchange is a URL, and its response is a function of that URL alone."""

import base64
import gzip
import hashlib
import json
import random

#: Random bytes for bodies, without repetition.
BLOCK = random.Random("soak").randbytes(1 << 21)

#: Kinds with a correct response unless the network, the resolver or the client breaks it, with their shares.
HONEST = {
    "plain": 30,
    "chunked": 12,
    "ended": 4,
    "gzip": 5,
    "json": 6,
    "head": 4,
    "missing": 3,
    "failed": 3,
    "unchanged": 3,
    "part": 4,
    "redirect": 4,
    "loop": 1,
    "challenge": 4,
    "post": 10,
    "post-chunked": 4,
    "shared": 6,
    "large": 2,
    "rewritten": 4,
    "head-under": 1,
    "unprocessed": 4,
    "trailers": 3,
    "cached": 12,
}
#: Kinds that the origin breaks.
BROKEN = {
    "reset": 3,
    "reset-head": 3,
    "reset-body": 3,
    "cut-length": 4,
    "cut-chunks": 4,
    "cut-ended": 3,
    "silent": 1,
    "stall": 1,
    "garbage": 3,
    "trickle": 2,
    "head-over": 2,
    "bad-json": 4,
    "bad-length": 2,
    "bad-chunk": 2,
    "once-reset": 4,
    "download": 6,
}
#: Kinds that the proxy has to refuse whatever the origin sends, and kinds that never arrive complete.
REFUSED = {"garbage", "head-over", "bad-json", "bad-length", "loop", "reset", "reset-head", "silent"}
NEVER_WHOLE = REFUSED | {"reset-body", "cut-length", "cut-chunks", "cut-ended", "stall", "bad-chunk"}

#: Seconds of silence from an origin: longer than the proxy's timeouts.
SILENCE = 15
AUTHORIZATION = "Basic " + base64.b64encode(b"soak:soak-password").decode()

#: The names of entries in the pin file; each has ten hosts below it.
ZONES = ["pinned", "report", "turning", "follow", "share", "auth", "json", "rewrite", "few", "cache", "signed", "free"]
ZONE_OF = {
    "redirect": "follow",
    "loop": "follow",
    "challenge": "auth",
    "json": "json",
    "bad-json": "json",
    "shared": "share",
    "rewritten": "rewrite",
    "cached": "cache",
}
#: Zones where hosts sometimes have a wrong pin.
TURNING = (".turning.", ".signed.")
#: URLs of `cached` exchanges, which many clients request.
CACHED = 60


class Exchange:
    def __init__(self, kind, identifier, size):
        self.kind, self.identifier, self.size = kind, identifier, size

    @classmethod
    def of(cls, path):
        """The exchange of a path; None if it isn't one."""
        parts = path.split("/")
        if len(parts) != 4 or parts[0] or not parts[3].isdigit() or parts[1] not in HONEST and parts[1] not in BROKEN:
            return None
        return cls(parts[1], parts[2], int(parts[3]))

    @property
    def path(self):
        return f"/{self.kind}/{self.identifier}/{self.size}"

    @property
    def method(self):
        return {"head": "HEAD", "post": "POST", "post-chunked": "POST"}.get(self.kind, "GET")

    @property
    def tag(self):
        """The value that identifies it in entity tags and response fields."""
        return hashlib.md5(self.path.encode()).hexdigest()[:16]

    def bytes(self, salt=""):
        """`size` bytes, with the exchange's name before and after them."""
        start = int.from_bytes(hashlib.md5((salt + self.path).encode()).digest()[:4], "big") % ((1 << 21) - self.size)
        name = (salt + self.path + "\n").encode()
        return name + BLOCK[start : start + self.size] + name

    @property
    def upload(self):
        return self.bytes("up ")

    @property
    def whole(self):
        """The origin's body, after content coding if there is any."""
        if self.kind == "gzip":
            return gzip.compress(self.bytes()[:4096] * 4, 1, mtime=0)
        if self.kind == "json":
            return json.dumps({"name": self.path, "values": list(self.bytes()[: self.size % 4096])}).encode()
        if self.kind == "bad-json":
            return json.dumps({"name": self.path, "values": list(self.bytes()[: self.size % 4096])}).encode()[:-1]
        if self.method == "POST":
            return hashlib.sha256(self.upload).hexdigest().encode() + self.path.encode()
        return self.bytes()

    @property
    def part(self):
        """The first and last byte that a `part` requests."""
        length = len(self.whole)
        return length // 3, length // 2

    @property
    def request_fields(self):
        """Request fields in addition to the usual ones."""
        if self.kind == "unchanged":
            return [("If-None-Match", f'"{self.tag}"')]
        if self.kind == "part":
            return [("Range", "bytes={}-{}".format(*self.part))]
        if self.kind == "trailers":
            return [("TE", "trailers"), ("Connection", "TE")]
        return [("Referer", "http://elsewhere.test/")] if self.kind == "rewritten" else []

    @property
    def trailers(self):
        return [("x-sum", self.tag)] if self.kind == "trailers" else []

    @property
    def status(self):
        return {"missing": 404, "failed": 500, "unchanged": 304, "part": 206}.get(self.kind, 200)

    @property
    def body(self):
        """The body that the client has to receive."""
        if self.kind in ("head", "unchanged"):
            return b""
        if self.kind == "part":
            first, last = self.part
            return self.whole[first : last + 1]
        return self.whole

    @property
    def content_fields(self):
        """The content fields of a complete response."""
        fields = [
            ("Content-Type", "application/json" if self.kind in ("json", "bad-json") else "application/octet-stream")
        ]
        if self.kind == "cached":
            fields += [("ETag", f'"{self.tag}"'), ("Cache-Control", f"max-age={self.size % 4}")]
        return fields + ([("Content-Encoding", "gzip")] if self.kind == "gzip" else [])

    def is_known(self, fields):
        """Whether the cache already has it, and revalidates it."""
        return self.kind == "cached" and fields.get("if-none-match") == f'"{self.tag}"'

    def first_byte(self, fields):
        """The first byte of the requested rest of a download."""
        tag = f'"{self.tag}"'
        is_rest = fields.get("range", "").startswith("bytes=") and fields.get("if-range", tag) == tag
        return int(fields["range"][6:].split("-")[0]) if is_rest else 0

    def download_fields(self, first):
        fields = [("ETag", f'"{self.tag}"'), ("Accept-Ranges", "bytes")]
        length = len(self.whole)
        return fields + ([("Content-Range", f"bytes {first}-{length - 1}/{length}")] if first else [])


def choose(chance, table):
    return chance.choices(list(table), list(table.values()))[0]


def make(chance, identifier, is_calm):
    """A random exchange. In a calm round nothing breaks it."""
    kind = choose(chance, HONEST if is_calm else HONEST | BROKEN)
    if kind == "cached":
        number = chance.randrange(CACHED)
        return Exchange(kind, f"{identifier.split('-')[0]}-c{number}", int(10 ** (number / CACHED * 5)))
    if kind in ("large", "download"):
        size = chance.randrange(100_000, 1_000_000)
    elif kind == "trickle":
        size = 200
    else:
        size = int(10 ** chance.uniform(0, 4.5))
    return Exchange(kind, identifier, size)
