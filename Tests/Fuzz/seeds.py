#!/usr/bin/env python3
"""Writes the initial inputs of each fuzz target: small, well-formed, one idea each. They go to Tests/Fuzz/Corpus.

The last bytes of some inputs choose how the target uses them (Tests/FuzzTargets/Choices.swift). Needs openssl and zstd.
"""

import base64
import datetime
import gzip
import hashlib
import json
import pathlib
import plistlib
import re
import struct
import subprocess
import zlib

corpus = pathlib.Path(__file__).parent / "Corpus"


def write(target, name, data, choices=b""):
    folder = corpus / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"seed-{name}").write_bytes((data if isinstance(data, bytes) else data.encode()) + choices)


def head(*lines):
    return "".join(line + "\r\n" for line in lines) + "\r\n"


for number, request in enumerate(
    [
        head("GET / HTTP/1.1", "Host: a.test"),
        head(
            "GET http://a.test:8080/b?c=d HTTP/1.1",
            "Host: a.test:8080",
            "Proxy-Authorization: Basic YTpi",
            "Proxy-Connection: keep-alive",
        ),
        head(
            "POST /u HTTP/1.1",
            "Host: a.test",
            "Transfer-Encoding: chunked",
            "Trailer: ETag",
            "TE: trailers",
            "Connection: TE",
        ),
        head("PUT /u HTTP/1.0", "Content-Length: 007", "Connection: keep-alive"),
        head("CONNECT a.test:443 HTTP/1.1", "Host: a.test:443"),
        head("OPTIONS * HTTP/1.1", "Host: a.test", "Max-Forwards: 05", "Via: 1.0 x, 1.1 y"),
        head(
            "GET /chat HTTP/1.1",
            "Host: a.test",
            "Connection: Upgrade, X-A",
            "Upgrade: websocket",
            "X-A: 1",
            "Keep-Alive: timeout=5",
        ),
        "\r\n"
        + head("GET /r HTTP/1.1", "Host: [::1]", "Range: bytes=5-9", "Expect: 100-continue", "Content-Length: 3, 3"),
        head(
            "OPTIONS http://a.test HTTP/1.1",
            "Host: b.test",
            "HTTP2-Settings: x",
            "Connection: Upgrade, HTTP2-Settings",
            "Upgrade: h2c",
        ),
    ]
):
    write("request-head", number, request, bytes([number]))

for number, response in enumerate(
    [
        head("HTTP/1.1 200 OK", "Content-Length: 5"),
        head("HTTP/1.1 200", "Transfer-Encoding: chunked", "Trailer: ETag"),
        head("HTTP/1.0 404 Not Found", "Server: x"),
        head("HTTP/1.1 206 Partial Content", "Content-Range: bytes 5-9/20", "Content-Length: 5"),
        head("HTTP/1.1 101 Switching Protocols", "Connection: Upgrade", "Upgrade: websocket"),
        head("HTTP/1.1 407 No", 'Proxy-Authenticate: Basic realm="a"', "Connection: close"),
        head("HTTP/1.1 204 No Content", "Content-Length: 0"),
        head("HTTP/1.1 426 Upgrade", "Upgrade: TLS/1.2", "Content-Length: 0"),
        head("HTTP/1.1 205 Reset", "Proxy-Status: pinproxy; error=x, other", "Via: 1.1 a"),
        head("HTTP/1.1 103 Early Hints", "Link: </a>"),
        head("HTTP/1.1 200 OK", "Content-Length: 03, 03", "Content-Length: 03", "Connection: X", "X: y"),
    ]
):
    write("response-head", number, response, bytes([number % 2, number]))

for number, body in enumerate(
    [
        "5\r\nhello\r\n0\r\n\r\n",
        "0\r\n\r\nrest",
        '0005;a=b;c="d\\"e"\r\nhello\r\n1 ;x\r\n!\r\n000\r\nETag: "x"\r\nHost: no\r\n\r\n',
        "a\r\n0123456789\r\n0\r\nProxy-Status: pinproxy; error=x, other\r\nX: y\r\n\r\n",
        "fffffffffffffff\r\nx",
        "3\r\nabcX",
    ]
):
    write("chunked-body", number, body, bytes([number * 41]))

for number, text in enumerate(
    [
        "a.test",
        "A.Test.:443",
        "[::1]:8080",
        "[2001:DB8::0:1]",
        "127.0.0.1:80",
        "_x.a-b.test:1",
        "2001:db8::1:443",
        "a@b",
        "0x7f.1",
        "xn--bcher-kva.test:",
        "[::ffff:1.2.3.4]:9",
        "256.1.1.1",
        "a.test:0443",
    ]
):
    write("authority", number, text, bytes([number]))

for number, text in enumerate(
    [
        "https://a.test/x/../y?z#f",
        "/a/./b/",
        "?q",
        "//b.test:8443/x",
        "http://[::1]/%2e%2e/",
        " https://a.test ",
        "x\\y <z>",
        "../../c",
        "HTTP://A.TEST:80",
        "https://u:p@a.test/",
        "javascript:alert(1)",
        "ü?ö",
        "http://a.test?x",
    ]
):
    write("url", number, text)

for number, (pattern, path) in enumerate(
    [
        ("/v1/**", "/v1/users/7?x"),
        ("/**/upload", "//a/%2e%2e/upload"),
        ("/files/**.gz", "/files\\a;b=c/../x.gz"),
        ("/a b", "/a%20b"),
        ("/v*/u", "/v1/u"),
        ("/**", "*"),
        ("/%", "/%25%2f%5c/.."),
    ]
):
    write("path", number, pattern + "\n" + path)


def vector(width, data):
    return len(data).to_bytes(width, "big") + data


def record(data, kind=22, version=b"\x03\x01"):
    return bytes([kind]) + version + vector(2, data)


def handshake(kind, body):
    return bytes([kind]) + vector(3, body)


def extension(kind, body):
    return struct.pack(">H", kind) + vector(2, body)


def hello(*extensions, session=b""):
    body = b"\x03\x03" + bytes(range(32)) + vector(1, session) + vector(2, b"\x13\x01\xc0\x2f") + vector(1, b"\0")
    return handshake(1, body + (vector(2, b"".join(extensions)) if extensions else b""))


name = extension(0, vector(2, b"\0" + vector(2, b"a.test")))
alpn = extension(16, vector(2, vector(1, b"h2") + vector(1, b"http/1.1")))
full = hello(name, alpn, extension(35, b"ticket"), extension(41, b"x"), extension(0xFE0D, b"y"), session=bytes(32))
write("client-hello", "plain", record(hello()))
write("client-hello", "full", record(full))
write("client-hello", "cut", record(full[:20]) + record(full[20:90]) + record(full[90:]))
write(
    "client-hello", "second", record(b"\x01", 20, b"\x03\x03") + record(b"early data", 23, b"\x03\x03") + record(full)
)
write("client-hello", "http", "GET / HTTP/1.1\r\n")


def server_hello(*extensions, random=bytes(range(32)), suite=b"\xc0\x2f", session=b""):
    return handshake(
        2,
        b"\x03\x03"
        + random
        + vector(1, session)
        + suite
        + b"\0"
        + (vector(2, b"".join(extensions)) if extensions else b""),
    )


retry = bytes.fromhex("CF21AD74E59A6111BE1D8C021E65B891C2A211167ABB8C5E079E09E2C8A8339C")
tls13 = extension(43, b"\x03\x04")
certificates = handshake(11, vector(3, vector(3, b"certificate") + vector(3, b"issuer")))
status = handshake(22, b"\x01" + vector(3, b"response"))
exchange = handshake(12, b"\x03\x00\x1d" + vector(1, bytes(32)) + b"\x04\x03" + vector(2, b"signature"))
done = handshake(14, b"")
scts = extension(18, vector(2, vector(2, b"timestamp")))
write("server-flight", "tls13", record(server_hello(tls13)), b"\1")
write(
    "server-flight",
    "retry",
    record(server_hello(tls13, random=retry))
    + record(b"\x01", 20)
    + record(server_hello(tls13, extension(41, b"\0\0"))),
    b"\2",
)
write(
    "server-flight",
    "tls12",
    record(server_hello(scts)) + record(certificates + status) + record(exchange + done),
    b"\3",
)
write(
    "server-flight",
    "tls12-dhe",
    record(
        server_hello(suite=b"\0\x9e")
        + certificates
        + handshake(12, vector(2, b"p") + vector(2, b"g") + vector(2, b"y") + b"\x08\x04" + vector(2, b"s"))
        + handshake(13, b"x")
        + done
    ),
    b"\4",
)
write(
    "server-flight",
    "resumed",
    record(server_hello(session=bytes(32))) + record(handshake(4, b"ticket")) + record(b"\x01", 20),
    b"\5",
)
write("server-flight", "alert", record(b"\x01\x70", 21) + record(b"\x02\x28", 21), b"\6")

signature = bytes.fromhex("0D0A0D0A000D0A515549540A")
ipv4 = bytes([192, 0, 2, 1, 192, 0, 2, 2]) + struct.pack(">HH", 56324, 443)
ipv6 = bytes(15) + b"\1" + bytes(15) + b"\2" + struct.pack(">HH", 56324, 443)


def binary(command, family, body):
    return signature + bytes([0x20 | command, family]) + vector(2, body)


def crc32c(data):
    value = 0xFFFFFFFF
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
    return value ^ 0xFFFFFFFF


checked = binary(1, 0x11, ipv4 + b"\x03\0\x04" + bytes(4))
for kind, data in {
    "text4": b"PROXY TCP4 192.0.2.1 192.0.2.2 56324 443\r\nGET",
    "text6": b"PROXY TCP6 2001:db8::1 ::1 1 2\r\n",
    "unknown": b"PROXY UNKNOWN x y\r\n",
    "binary4": binary(1, 0x11, ipv4) + b"GET",
    "binary6": binary(1, 0x21, ipv6 + b"\x01\0\x02h2" + b"\x04\0\0"),
    "local": binary(0, 0, b"anything"),
    "unix": binary(1, 0x31, bytes(216)),
    "checked": checked[:-4] + struct.pack(">I", crc32c(checked)),
    "none": b"GET / HTTP/1.1\r\n",
}.items():
    write("proxy-header", kind, data)

for number, text in enumerate(
    [
        'Basic realm="a, b", Digest realm="x\\"y", nonce="n", qop="auth,auth-int", algorithm=SHA-256, opaque="o", '
        "Negotiate YII=",
        'Digest realm="r", nonce=abc, stale=TRUE, algorithm=MD5-sess, qop=auth, userhash=true, charset=UTF-8',
        "Bearer",
        'Digest nonce="n", algorithm=SHA-512-256',
        'Digest realm="r", nonce="n", domain="/a /b", charset=utf-8, qop="auth"',
        "NTLM TlRM=, Basic",
        ",, Basic realm=x",
        'Basic realm="unclosed',
    ]
):
    write("challenge", number, text)

for number, text in enumerate(
    [
        "bytes 0-4/5",
        "bytes 5-9/*",
        "bytes */20",
        "BYTES  1-2/3",
        "items 1-2/3",
        "bytes 9223372036854775806-9223372036854775807/*",
    ]
):
    write("content-range", number, text)

for number, text in enumerate(
    [
        "Sun, 06 Nov 1994 08:49:37 GMT",
        "Sunday, 06-Nov-94 08:49:37 GMT",
        "Sun Nov  6 08:49:37 1994",
        "120",
        'W/"x"',
        '"x y"',
        "bytes=5-9",
        "bytes=-3",
        "bytes=1-2,5-",
        'Application/JSON; charset="a,b"',
        "text/html, x/y",
        "gzip, br",
        " identity ,x-gzip,ZSTD",
        "Thu, 29 Feb 0000 23:59:60 GMT",
    ]
):
    write("field-value", number, text)

plain = ("GET / HTTP/1.1", "Host: a.test")
dated = "Date: Fri, 15 Jan 2027 08:00:00 GMT"
for number, (request, response, choices) in enumerate(
    [
        (
            head(*plain),
            head("HTTP/1.1 200 OK", dated, "Cache-Control: max-age=60", 'ETag: "1"', "Age: 5, 6"),
            b"\x0a\1\0",
        ),
        (
            head(*plain, "Cache-Control: max-age=5, max-stale=3, min-fresh=1", "Pragma: no-cache"),
            head("HTTP/1.1 200 OK", "Expires: 0", 'Cache-Control: private="a, b", s-maxage=1', "Set-Cookie: a=b"),
            b"\x0a\2\1",
        ),
        (
            head(*plain, "Range: bytes=2-5", 'If-Range: "1"'),
            head("HTTP/1.1 206 Part", dated, 'ETag: "1"', "Content-Range: bytes 0-9/20", "Content-Length: 10"),
            b"\x0a\0\0",
        ),
        (
            head(*plain, "Range: bytes=-3", 'If-None-Match: "2", W/"1,2"', f"If-Modified-Since: {dated[6:]}"),
            head("HTTP/1.1 200 OK", dated, 'ETag: W/"1,2"', f"Last-Modified: {dated[6:]}", "Content-Length: 10"),
            b"\x0a\3\0",
        ),
        (
            head(*plain, "Accept: a, b", "Accept: c", "X-A: 1", "Cache-Control: only-if-cached"),
            head("HTTP/1.1 404 No", "Vary: accept, X-A", "Cache-Control: max-age=9, stale-while-revalidate=9"),
            b"\x05\4\1",
        ),
        (
            head("POST /x HTTP/1.1", "Host: a.test", "Content-Length: 0", "Authorization: Basic YTpi"),
            head("HTTP/1.1 303 See", "Location: /y", "Content-Location: https://a.test/z", "Vary: *"),
            b"\x00\0\0",
        ),
        (
            head("HEAD / HTTP/1.1", "Host: a.test"),
            head("HTTP/1.1 200 OK", "Connection: X, close", "X: y", "Content-Length: 10, 10", "Pragma: no-cache"),
            b"\x0a\7\0",
        ),
        ('"a,", W/"b"', "", b"\0\0\0"),
        ('no-store; max-age=1, x="a\\"b", private max-stale=, must-understand', "", b"\0\0\0"),
    ]
):
    write("cache-fields", number, request + response, choices)

for number, text in enumerate(
    [
        '{"a": null, "b": [1, -2.5e+3, null, "\\ud83d\\ude00\\n"], "a": {"c": true}}',
        "[]",
        '"x"',
        "[null,null]",
        "[1,]",
        "1e400",
        '"\\ud800"',
        "nul",
        '{"a":{"b":[{}]}}',
        "\ufeff[0.1]",
        " [ \t\n 01 ] ",
    ]
):
    write("json", number, text)
for encoding in "utf-16", "utf-16-le", "utf-32-be":
    write("json", encoding, '{"ü": [null, 1]}'.encode(encoding))

for number, text in enumerate(
    [
        '<?xml version="1.0" encoding="UTF-8"?><a b="c">&lt;<!-- d --><![CDATA[e]]></a>',
        '<!DOCTYPE a [<!ENTITY x "y"><!ELEMENT a ANY>]><a>&x;&x;</a>',
        "<a><b/></c>",
        '<!DOCTYPE a SYSTEM "file:///etc/passwd"><a/>',
        '<?xml version="1.0" encoding="ISO-8859-1"?><a>x</a>',
        '<a xmlns:b="c"><b:d/></a>',
        '<!DOCTYPE a [<!ENTITY a "1"><!ENTITY b "&a;&a;"><!ENTITY % p "q">%p;]><a>&b;&#x41;</a>',
    ]
):
    write("xml", number, text)
write("xml", "utf-16", "<a>ü</a>".encode("utf-16"))

things = {
    "a": [1, -5, 2**63, 1.5, True],
    "b": {"c": "ü", "d": b"data"},
    "e": datetime.datetime(2024, 2, 29, 1, 2, 3),
    "f": "ascii",
    "g": [],
}
write("property-list", "xml", plistlib.dumps(things))
write("property-list", "binary", plistlib.dumps(things, fmt=plistlib.FMT_BINARY))
write("property-list", "uid", plistlib.dumps([plistlib.UID(7)] * 3, fmt=plistlib.FMT_BINARY))
write("property-list", "fragment", "<plist><dict><key>x</key><real>nan</real></dict></plist>")
write("property-list", "openstep", "{ a = b; }")


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(*more, depth=8, color=2, interlaced=0, rows=b"\0" + bytes(12)):
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", struct.pack(">IIBBBBB", 4, 2, depth, color, 0, 0, interlaced))
        + b"".join(more)
        + chunk(b"IDAT", zlib.compress(rows * 2))
        + chunk(b"IEND", b"")
    )


write("image", "png", png())
write("image", "png-palette", png(chunk(b"PLTE", bytes(6)), chunk(b"tRNS", b"\0"), depth=1, color=3, rows=b"\0\x50"))
write(
    "image",
    "bmp",
    b"BM" + struct.pack("<IHHIIiiHHIIiiII", 70, 0, 0, 54, 40, 2, 2, 1, 24, 0, 16, 0, 0, 0, 0) + bytes(16),
)
write("image", "ico", struct.pack("<HHHBBBBHHII", 0, 1, 1, 4, 2, 0, 0, 1, 32, len(png()), 22) + png())
write("image", "xbm", "#define x_width 8\n#define x_height 2\nstatic char x_bits[] = { 0x01, 0x80 };\n")
write(
    "image",
    "tiff",
    struct.pack("<2sHI", b"II", 42, 8)
    + struct.pack("<H", 8)
    + b"".join(
        struct.pack("<HHII", *entry)
        for entry in [
            (256, 3, 1, 2),
            (257, 3, 1, 2),
            (258, 3, 1, 8),
            (259, 3, 1, 1),
            (262, 3, 1, 1),
            (273, 4, 1, 110),
            (278, 3, 1, 2),
            (279, 4, 1, 4),
        ]
    )
    + bytes(4)
    + b"\1\2\3\4",
)
# The images of the serializers' tests.
images = (pathlib.Path(__file__).parent.parent / "TestBodies" / "ImageSeeds.swift").read_text()
for name, data in re.findall(r'Seed\(\s*"([^"]+)",[^"]*"""([^"]+)"""', images):
    if len(data) < 6000:
        write("image", name.replace(" ", "-") + "-small", base64.b64decode("".join(data.split())))

text = b"pinproxy pinproxy pinproxy. " * 8
deflate = zlib.compressobj(wbits=-15)
raw = deflate.compress(text) + deflate.flush()
for kind, data, coding in [
    ("gzip", gzip.compress(text, mtime=0), 0),
    ("zlib", zlib.compress(text), 1),
    ("raw", raw, 1),
    ("zeros", gzip.compress(bytes(50000), mtime=0), 0),
]:
    write("content-coding", kind, data, bytes([0, coding, 1]))
zstd = subprocess.run(["zstd", "-c", "-q"], input=text, capture_output=True, check=True).stdout
for kind, data, coding in [
    ("brotli", bytes.fromhex("0b028068656c6c6f03"), 2),
    ("zstd", zstd, 3),
    ("zstd-frames", zstd + zstd, 3),
]:
    write("content-coding", kind, data, bytes([0, coding, 1]))
write("content-coding", "twice", gzip.compress(zstd, mtime=0), bytes([0x83, 0, 1]))

pin = "sha256/" + base64.b64encode(bytes(32)).decode()
other = "sha256/" + base64.b64encode(bytes(range(32))).decode()
for kind, main, pins in [
    ("empty", "", ""),
    (
        "plain",
        "pins: pins.yaml\nproxy:\n  listen: 127.0.0.1:8443\n",
        f"hosts:\n  api.test:\n    pins: [{pin}, {other}]\n",
    ),
    (
        "rules",
        "pins: pins.yaml\nlimits:\n  head: 64KiB\ntimeouts:\n  connect: 10s\nlog:\n  level: info\n",
        f"defaults:\n  action: tunnel\nhosts:\n  '*.test':\n    pins:\n      - {pin}\n    include_subdomains: true\n   "
        " enforcement: report\n"
        "    requests:\n      set_headers: {A: b}\n    responses:\n      serializer: json\n    rules:\n      - path: "
        "/v1/**\n        max_body: 1MiB\n",
    ),
    (
        "anchors",
        "pins: pins.yaml\nupstream: &u\n  proxy: http://proxy.test:3128\nadmin: *u\n",
        "hosts:\n  a.test: {action: deny}\n  a.test:8443: {action: inspect, min_tls: 1.3}\n",
    ),
    ("wrong", "proxy: [1, {a: b}]\nunknown: !!binary x\n? x\n: |\n  y\n", "hosts: 7\n"),
]:
    write("configuration", kind, main + "\n--- pins\n" + pins)


def number(value):
    return struct.pack("<q", value)


def text_of(value):
    return number(len(value)) + value.encode()


def frame(message, body):
    return number(len(message)) + number(len(body)) + message + body


for kind, data in {
    "pass": frame(b"\0", b""),
    "rewrite": frame(b"\1", b"{}"),
    "refuse": frame(b"\2" + text_of("reason") + number(1) + text_of("expected") + number(0), b""),
    "success": frame(b"\1", b"body"),
    "conversion": b"\2"
    + text_of("form")
    + text_of("json")
    + text_of("application/x-www-form-urlencoded")
    + number(1024),
    "ready": frame(b"ready", b""),
    "judgement": b"\1" + number(1) + text_of("json") + number(1) + text_of("gzip") + number(100) + bytes(16),
}.items():
    write("decoder-frame", kind, data, b"\3")

for number_, host in enumerate(
    [
        "a.test",
        "b.test",
        "192.0.2.1",
        "::ffff:192.0.2.1",
        "2001:db8::1",
        "2001:DB8:0::1",
        "pinproxy.test",
        "A.Test.",
        "*.a.test",
        "xn--bcher-kva.test",
        "127.1",
    ]
):
    write("leaf-request", number_, host, b"\xbb\1\0")
for kind, data in {
    "refused": b"\1no",
    "leaf": b"\0\x30\x03\x02\x01\x05",
    "raw": b"\1" + bytes(34) + b"\6a.test" + bytes(91),
}.items():
    write("leaf-request", kind, data, b"\0\0\1")

for number_, (source, target, body) in enumerate(
    [
        (0, 1, b"a=1&b%5B%5D=2&b[]=3&c[d][e]=%C3%BC&f+g="),
        (1, 0, b'{"a": [1, {"b": null}], "c": true}'),
        (1, 2, b'{"a": 1.5e3, "b": "\\u00fc", "c": [false]}'),
        (2, 1, plistlib.dumps({"a": [1, 2.5, True, "x"]})),
        (2, 0, plistlib.dumps({"a": {"b": "c"}}, fmt=plistlib.FMT_BINARY)),
        (0, 2, b"a=b"),
    ]
):
    write("body-conversion", number_, body, bytes([target, source]))

for number_, request in enumerate(
    [
        head("GET /status HTTP/1.1", "Host: localhost"),
        head(
            "POST /tasks/7/cancel?force=1&x HTTP/1.1",
            "Host: 127.0.0.1:9",
            "Authorization: Bearer x",
            "Content-Length: 0",
        ),
        head(
            "GET //metrics/?=&a=b=c HTTP/1.1",
            "Host: a",
            "Sec-Fetch-Site: cross-site",
            "Sec-Fetch-Site: none",
            "Accept: text/html",
        ),
        head("OPTIONS * HTTP/1.1", "Host: a"),
    ]
):
    write("control-request", number_, request)


def question(name, kind, more=b"", flags=b"\1\0", count=1):
    labels = b"".join(vector(1, label.encode()) for label in name.split(".") if label)
    return (
        b"\x12\x34"
        + flags
        + struct.pack(">HHHH", count, 0, 0, 1 if more else 0)
        + labels
        + b"\0"
        + struct.pack(">HH", kind, 1)
        + more
    )


for number_, data in enumerate(
    [
        question("a.test", 1),
        question("a.test", 28, b"\0\0\x29\x10\0\0\0\0\0\0\0"),
        question("a.test", 65),
        question("a.test", 16),
        question("", 1),
        question("a b.test", 1),
        question("a.test", 1, flags=b"\x81\x80"),
        question("a.test", 1, flags=b"\x28\0"),
        question("a.test", 1, count=2),
        question("a" * 63 + ".test", 1),
    ]
):
    write("name-message", number_, data)


# A response without its ID and question: flags and counts, then records for the name at 12.
def answer(*records, flags=b"\x81\x80", more=0):
    return flags + struct.pack(">HHHH", 1, len(records) - more, 0, more) + b"".join(records)


def record(kind, data, name=b"\xc0\x0c", ttl=60):
    return name + struct.pack(">HHIH", kind, 1, ttl, len(data)) + data


four, six, alias = (
    record(1, bytes([192, 0, 2, 1])),
    record(28, bytes([0x20, 1, 13, 184] + [0] * 11 + [1])),
    b"\5alias\4test\0",
)
for kind, data in {
    "four": answer(four),
    "both": answer(four, six),
    "none": answer(),
    "refused": answer(flags=b"\x81\x85"),
    "missing": answer(flags=b"\x81\x83"),
    "alias": answer(record(5, alias), record(1, bytes([192, 0, 2, 7]), name=alias)),
    "loop": answer(record(5, b"\xc0\x0c")),
    "truncated": answer(four, flags=b"\x83\x80"),
    "short": answer(record(1, b"\1\2")),
    "soa": answer(record(6, b"\0\0" + bytes(20)), more=1),
}.items():
    write("name-answer", kind, data)

for kind, events in {
    "plain": [0, 1, 6, 9, 11, 20, 21],
    "again": [0, 0x81, 24 | 0x80, 1, 14, 1, 14 | 0x80, 1, 11, 21],
    "held": [0, 1, 6, 12, 20, 21, 23 | 0x80, 21],
    "rest": [0, 1, 6, 11, 22 | 0xE0, 1, 15, 21],
    "suspended": [0, 28, 1, 29, 6, 27],
}.items():
    write("exchange-state", kind, bytes(events), b"\2\2\2")
for kind, events in {
    "inspected": [0, 1, 4, 5 | 0xA0, 6 | 0x80, 13 | 0x80],
    "tunnel": [0, 0x41, 4, 8],
    "verified": [0, 0x61, 4, 7],
    "plain": [0, 3, 1, 4, 5 | 0x20, 1],
    "suspended": [0, 11, 10, 0, 12],
}.items():
    write("connection-state", kind, bytes(events))

NEXT = "\n--- next\n"
ok = head("HTTP/1.1 200 OK", "Content-Length: 2") + "ok"
for kind, parts in {
    "get": [head("GET http://a.test/ HTTP/1.1", "Host: a.test"), ok],
    "two": [
        head("GET http://a.test/1 HTTP/1.1", "Host: a.test") + head("GET http://a.test/2 HTTP/1.1", "Host: a.test"),
        ok + ok,
    ],
    "post": [
        head("POST http://a.test/ HTTP/1.1", "Host: a.test", "Transfer-Encoding: chunked", "Expect: 100-continue")
        + "3\r\nabc\r\n0\r\nT: v\r\n\r\n",
        head("HTTP/1.1 100 Continue") + head("HTTP/1.1 200 OK", "Transfer-Encoding: chunked") + "2\r\nok\r\n0\r\n\r\n",
    ],
    "tunnel": [
        head("CONNECT tunnel.test:443 HTTP/1.1", "Host: tunnel.test:443") + "bytes",
        head("HTTP/1.1 200 OK") + "more bytes",
    ],
    "plain": [
        head("CONNECT a.test:80 HTTP/1.1", "Host: a.test:80") + head("GET / HTTP/1.1", "Host: a.test:80"),
        head("HTTP/1.1 200 OK"),
        ok,
    ],
    "rules": [
        head("GET http://rules.test/ HTTP/1.1", "Host: rules.test"),
        head("HTTP/1.1 200 OK", "Content-Type: application/json", "Content-Length: 8") + '{"a": 1}',
    ],
    "redirect": [
        head("GET http://follow.test/ HTTP/1.1", "Host: follow.test"),
        head("HTTP/1.1 302 Found", "Location: http://follow.test/there", "Content-Length: 0") + ok,
    ],
    "broken": [
        head("GET http://a.test/ HTTP/1.1", "Host: a.test"),
        head("HTTP/1.1 200 OK", "Content-Length: 4", 'ETag: "e"', "Accept-Ranges: bytes") + "ab",
        head("HTTP/1.1 206 Partial Content", "Content-Range: bytes 2-3/4", "Content-Length: 2", 'ETag: "e"') + "cd",
    ],
    "upgrade": [
        head("GET http://a.test/ws HTTP/1.1", "Host: a.test", "Connection: Upgrade", "Upgrade: websocket") + "frame",
        head("HTTP/1.1 101 Switching Protocols", "Connection: Upgrade", "Upgrade: websocket") + "frame",
    ],
    "denied": [head("GET http://deny.test/ HTTP/1.1", "Host: deny.test")],
    "challenge": [
        head("GET http://a.test/ HTTP/1.1", "Host: a.test"),
        head("HTTP/1.1 401 Unauthorized", "WWW-Authenticate: Basic realm=x", "Content-Length: 0"),
    ],
}.items():
    write("connection", kind, NEXT.join(parts), bytes([0, 1, 1, 3]))


# HTTP/2: frames, then commands, room, cuts and style. The style is read first.
def h2(kind, flags=0, stream=0, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def field(name, value, form=b"\0"):
    return form + vector(1, name.encode()) + vector(1, value.encode())


def fields(*pairs):
    return b"".join(field(*pair) for pair in pairs)


def choices(style=1, commands=b""):
    return bytes(reversed(commands.ljust(8, b"\x0f"))) + bytes([0, 7, style])


# :method GET, :scheme https, :path / are entries 2, 7 and 4 of the static table; :status 200 is entry 8.
get = b"\x82\x87\x84" + field(":authority", "a.test")
post = b"\x83\x87\x84" + field(":authority", "a.test")
for kind, data, commands in [
    (
        "get",
        h2(1, 5, 1, get + fields(("cookie", "a=1"), ("cookie", "b=2"), ("te", "trailers"), ("priority", "u=1, i"))),
        b"",
    ),
    ("post", h2(1, 4, 1, post + field("content-length", "5")) + h2(0, 0, 1, b"he") + h2(0, 9, 1, b"\2llo\0\0"), b""),
    (
        "trailers",
        h2(1, 4, 1, post) + h2(0, 0, 1, b"x") + h2(1, 5, 1, fields(("x-sum", "1"), ("etag", '"e"'))),
        b"\x22\x21",
    ),
    (
        "continuation",
        h2(1, 1, 1, get) + h2(9, 0, 1, field("a", "b")) + h2(9, 4, 1, b"") + h2(6, 0, 0, b"12345678"),
        b"",
    ),
    (
        "settings",
        h2(4, 0, 0, struct.pack(">HIHIHI", 4, 70000, 1, 0, 5, 16384))
        + h2(1, 5, 1, get)
        + h2(8, 0, 0, struct.pack(">I", 1000))
        + h2(8, 0, 1, struct.pack(">I", 9)),
        b"\x52\x52\x52",
    ),
    (
        "priority",
        h2(16, 0, 0, struct.pack(">I", 3) + b"u=0, i")
        + h2(1, 0x25, 1, b"\0\0\0\0\x10" + get)
        + h2(2, 0, 3, b"\0\0\0\1\x0f")
        + h2(1, 5, 3, get),
        b"\x22\x22\x18",
    ),
    (
        "reset",
        h2(1, 5, 1, get) + h2(3, 0, 1, struct.pack(">I", 8)) + h2(1, 4, 3, post) + h2(0, 0, 3, b"data"),
        b"\x25\x36\x85",
    ),
    ("abandoned", h2(1, 4, 1, post) + h2(0, 0, 1, b"data") + h2(0, 1, 1, b"more"), b"\x06\x23"),
    (
        "tunnel",
        h2(1, 4, 1, fields((":method", "CONNECT"), (":authority", "a.test:443"))) + h2(0, 0, 1, b"bytes"),
        b"\x12\x17",
    ),
    (
        "websocket",
        h2(
            1,
            4,
            1,
            fields(
                (":method", "CONNECT"),
                (":protocol", "websocket"),
                (":scheme", "https"),
                (":path", "/c"),
                (":authority", "a.test"),
            ),
        )
        + h2(0, 0, 1, b"frame"),
        b"\x02",
    ),
    (
        "malformed",
        h2(1, 5, 1, get + field("connection", "close"))
        + h2(1, 5, 3, get + field("Upper", "x"))
        + h2(1, 5, 5, get + field("host", "b.test"))
        + h2(1, 5, 7, get),
        b"",
    ),
    (
        "table",
        h2(1, 5, 1, get + field("x-one", "1", b"\x40") + field("x-key", "s", b"\x10"))
        + h2(1, 5, 3, get + b"\xbe\xbe\xbe"),
        b"\x94\x2a",
    ),
    ("goaway", h2(1, 5, 1, get) + h2(7, 0, 0, bytes(8) + b"bye") + h2(4, 0, 1), b"\x1c\x0d\x21"),
    ("unknown", h2(0xFA, 3, 5, b"123") + h2(6, 1, 0, b"12345678") + h2(0, 1, 1, b"idle"), b""),
]:
    write("http2-session", kind, data, choices(3 if commands else 1, commands))
write("http2-session", "preface", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + h2(4) + h2(1, 5, 1, get), choices(0))

for kind, data, commands in [
    (
        "responses",
        h2(1, 4, 1, b"\x88" + field("content-length", "2"))
        + h2(0, 1, 1, b"ok")
        + h2(1, 5, 5, b"\x88" + field("content-length", "9")),
        b"",
    ),
    (
        "interim",
        h2(1, 4, 1, field(":status", "103"))
        + h2(1, 4, 1, b"\x88")
        + h2(0, 0, 1, b"x")
        + h2(1, 5, 1, field("grpc-status", "0")),
        b"",
    ),
    ("early", h2(1, 5, 3, b"\x8d") + h2(3, 0, 3, bytes(4)), b""),
    ("tunnel", h2(1, 4, 7, b"\x88") + h2(0, 0, 7, b"bytes") + h2(8, 0, 7, struct.pack(">I", 5000)), b"\x07\x18\x0b"),
    (
        "malformed",
        h2(1, 5, 1, field(":status", "101"))
        + h2(1, 5, 3, b"\x88" + field("transfer-encoding", "chunked"))
        + h2(1, 4, 5, b"\x88")
        + h2(0, 0, 5, b"x"),
        b"",
    ),
    (
        "settings",
        h2(4, 0, 0, struct.pack(">HIHIHI", 3, 1, 8, 1, 4, 10))
        + h2(8, 0, 0, struct.pack(">I", 9))
        + h2(8, 0, 3, struct.pack(">I", 5)),
        b"\x0e\x0e",
    ),
    (
        "goaway",
        h2(7, 0, 0, struct.pack(">II", 3, 0)) + h2(1, 5, 1, b"\x88") + h2(1, 5, 3, b"\x88") + h2(6, 1, 0, bytes(8)),
        b"\x0e",
    ),
    ("push", h2(5, 4, 1, struct.pack(">I", 2) + get), b""),
]:
    write("http2-client", kind, data, choices(3 if commands else 1, commands))


# Whole connections: the client's bytes, then each origin's, then choices. The last byte chooses who uses HTTP/2.
def message(name, *parts, speaks=0, ending=3):
    write("http2-connection", name, NEXT.encode().join(parts), bytes([0, ending, 1, 3, speaks]))


def ask(path, stream=1, flags=5, method=b"\x82", host="h2.test", more=b""):
    return h2(1, flags, stream, method + b"\x87" + field(":path", path) + field(":authority", host) + more)


reply = h2(1, 4, 1, b"\x88" + field("content-length", "2")) + h2(0, 1, 1, b"ok")
old = dict(host="h1.test")
message("both", ask("/"), reply)
message(
    "streams",
    ask("/1") + ask("/2", 3) + ask("/3", 5),
    reply + h2(1, 5, 5, b"\x8d") + h2(3, 0, 3, struct.pack(">I", 7)),
    reply,
)
message(
    "post",
    ask("/", flags=4, method=b"\x83", more=field("content-length", "5")) + h2(0, 0, 1, b"he") + h2(0, 1, 1, b"llo"),
    reply,
)
message(
    "trailers",
    ask("/", flags=4, method=b"\x83") + h2(0, 0, 1, b"x") + h2(1, 5, 1, field("x-sum", "1")),
    h2(1, 4, 1, field(":status", "103"))
    + h2(1, 4, 1, b"\x88")
    + h2(0, 0, 1, b"y")
    + h2(1, 5, 1, field("grpc-status", "0")),
)
message(
    "goaway", ask("/1") + ask("/2", 3) + h2(7, 0, 0, bytes(8)), h2(7, 0, 0, struct.pack(">II", 1, 0)) + reply, reply
)
message("refused", ask("/"), h2(3, 0, 1, struct.pack(">I", 7)), reply)
message("reset", ask("/") + h2(3, 0, 1, struct.pack(">I", 8)) + ask("/2", 3), reply)
message("downgrade", ask("/"), h2(3, 0, 1, struct.pack(">I", 13)), ok.encode())
message("to-old", ask("/", **old), ok.encode(), speaks=1)
message(
    "to-old-post",
    ask("/", flags=4, method=b"\x83", **old)
    + h2(0, 0, 1, b"GET /smuggled HTTP/1.1\r\n\r\n")
    + h2(1, 5, 1, field("x-sum", "1")),
    (head("HTTP/1.1 200 OK", "Transfer-Encoding: chunked") + "2\r\nok\r\n0\r\nX-T: v\r\n\r\n").encode(),
    speaks=1,
)
message(
    "to-old-bad",
    ask("/", more=field("a", "b\r\nc: d"), **old)
    + ask("/a b", 3, **old)
    + ask("/", 5, more=field("transfer-encoding", "chunked"), **old),
    ok.encode(),
    speaks=1,
)
message(
    "to-old-websocket",
    h2(
        1,
        4,
        1,
        fields(
            (":method", "CONNECT"),
            (":protocol", "websocket"),
            (":scheme", "https"),
            (":path", "/c"),
            (":authority", "h1.test"),
        ),
    )
    + h2(0, 0, 1, b"frame"),
    head("HTTP/1.1 101 Switching Protocols", "Connection: Upgrade", "Upgrade: websocket").encode() + b"frame",
    speaks=1,
)
message("from-old", (head("GET / HTTP/1.1", "Host: h2.test") * 2).encode(), reply + h2(1, 5, 3, b"\x8d"), speaks=2)
message(
    "from-old-post",
    (
        head("POST / HTTP/1.1", "Host: h2.test", "Transfer-Encoding: chunked", "Expect: 100-continue")
        + "3\r\nabc\r\n0\r\nT: v\r\n\r\n"
    ).encode(),
    h2(1, 4, 1, field(":status", "100")) + h2(1, 4, 1, b"\x88") + h2(0, 1, 1, b"\r\n\r\n"),
    speaks=2,
)
message(
    "from-old-websocket",
    head(
        "GET /ws HTTP/1.1",
        "Host: h2.test",
        "Connection: Upgrade",
        "Upgrade: websocket",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    ).encode()
    + b"frame",
    h2(4, 0, 0, struct.pack(">HI", 8, 1)) + h2(1, 4, 1, b"\x88") + h2(0, 0, 1, b"frame"),
    speaks=2,
)

# Policy bundles (docs/bundles.md). The target signs them, with a private key whose bytes are all 1.
KEY = "ed25519:iojj3XQJ8ZX9UtstPLpdcspnCb8dlBIb83SIAbQPb1w="
ROLE = {"keys": [KEY], "threshold": 1}
EXPIRES = "2027-06-30T12:00:00Z"


def envelope(role, payload):
    return {
        "payloadType": f"application/vnd.pinproxy.{role}+json",
        "payload": base64.b64encode(payload).decode(),
        "signatures": [{"keyid": "k", "sig": base64.b64encode(bytes(64)).decode()}],
    }


def root(version):
    roles = {"root": ROLE, "bundle": ROLE, "timestamp": ROLE}
    return json.dumps({"version": version, "expires": EXPIRES, "roles": roles}).encode()


policy = json.dumps(
    {
        "version": 3,
        "expires": EXPIRES,
        "groups": ["web"],
        "files": {
            "pins.yaml": base64.b64encode(b"hosts: []\n").decode(),
            "certs/a.pem": base64.b64encode(b"-----BEGIN").decode(),
        },
        "local": "any",
        "stage": 10,
        "note": "n",
    }
).encode()
stamp = json.dumps(
    {"version": 2, "expires": EXPIRES, "bundle": {"version": 3, "sha256": hashlib.sha256(policy).hexdigest()}}
).encode()
whole = {
    "pinproxy_bundle": 1,
    "roots": [envelope("root", root(1)), envelope("root", root(2))],
    "bundle": envelope("bundle", policy),
    "timestamp": envelope("timestamp", stamp),
}
write("bundle", "file", json.dumps(whole), b"\0")
write("bundle", "draft", json.dumps({"pinproxy_bundle": 1, "roots": []}), b"\0")
write("bundle", "root", root(1), b"\1")
write("bundle", "policy", policy, b"\2")
write("bundle", "timestamp", stamp, b"\3")

# Responses of a collector (OTLP): a partial success with a count and a message, empty ones, and Retry-After.
write("collector-answer", "rejected", b"\x0a\x0b\x08\x07\x12\x07too old", b"\0")
write("collector-answer", "empty", b"\x0a\x00", b"\1")
write("collector-answer", "unknown", b"\x10\x07\x19" + bytes(8) + b"\x25" + bytes(4), b"\0")
write("collector-answer", "seconds", b"30", b"\2")
write("collector-answer", "date", b"Tue, 01 Jan 2030 00:01:00 GMT", b"\3")
