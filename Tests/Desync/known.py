"""Where model.py and pinproxy differ, or the RFC leaves a choice, with the reasons."""

from typing import NamedTuple


class Known(NamedTuple):
    #: Whether pinproxy refuses such a message or passes it on.
    refuses: bool
    rfc: str
    reason: str


KNOWN = {
    "target not a URI": Known(
        False,
        "RFC 9112 section 3.2, RFC 3986",
        "Bytes above 127 and delimiters such as {} are common in paths. They end no line and no field, and pass "
        "unchanged.",
    ),
    "syntax of Host": Known(
        False,
        "RFC 9112 section 3.2.2",
        "A proxy has to ignore Host beside an absolute target, and replaces it: what it said reaches nobody.",
    ),
    "comma in Host": Known(
        True,
        "RFC 9110 section 5.3",
        "A comma is allowed in a registered name, but in practice comes from two joined Host fields.",
    ),
    "length repeated": Known(
        False,
        "RFC 9112 section 6.3, rule 5",
        "The same number several times may be refused or counted once. It is written once.",
    ),
    "length repeated in other digits": Known(
        True, "RFC 9112 section 6.3, rule 5", "5 and 05 are the same number, but only an attacker writes both."
    ),
    "empty coding": Known(
        True,
        "RFC 9110 section 5.6.1",
        "An empty element of Transfer-Encoding may be ignored, but readers disagree about it.",
    ),
    "chunk size of many digits": Known(
        True,
        "RFC 9112 section 7.1",
        "More than fifteen digits are refused, leading zeros included, before anybody overflows.",
    ),
    "chunk extension": Known(
        False,
        "RFC 9112 section 7.1.1",
        "A sequence of tokens, equals signs and whole quoted strings: recipients ignore it, and no line ends in it.",
    ),
    "206 unasked": Known(
        True,
        "RFC 9110 section 15.3.7",
        "206 answers a request with Range alone. A client could keep a part for the whole.",
    ),
    "first byte of a tunnel": Known(
        True,
        "RFC 9112 section 2.2",
        "What begins a tunnel with no letter is no request, not even an empty line before one: it is closed without an "
        "answer.",
    ),
    "length repeated in HTTP/2": Known(
        True,
        "RFC 9113 section 8.1.1, RFC 9110 section 8.6",
        "The same number several times may be refused or counted once. nghttp2 refuses two fields, and a list, in "
        "HTTP/2.",
    ),
    "length in trailers of HTTP/2": Known(
        True, "RFC 9110 section 6.5.1", "It may not be sent there. Recipients may ignore it, and nghttp2 refuses it."
    ),
    "host repeated in trailers of HTTP/2": Known(
        True,
        "RFC 9110 section 6.5.1",
        "It may not be sent there. Recipients may ignore it, and nghttp2 refuses it beside another one.",
    ),
    "205": Known(
        False,
        "RFC 9110 section 15.3.6",
        "205 has no content. RFC 9112 section 6.3 doesn't list it: pinproxy passes the head on, and reads no body.",
    ),
}

#: Cases that aren't differences in HTTP/2, since the defect comes after bytes already passed on. A length that
#: contradicts DATA (RFC 9113 section 8.1.1) is detected at the body's end. By then an origin has a complete message of
#: the announced length; the client's stream is reset anyway. The same holds for bad trailers after such a body, for
#: data after the head of a response without a body (HEAD, 204, 205, 304), and for DATA beyond a response's length: an
#: HTTP/1.1 client got that many bytes, and none beyond them.

#: Deliberate behaviour of real readers, whoever the sender is.
READERS = {
    "python, interim": "http.client takes every interim response but 100 for the final one: it gets none of the others "
    "here.",
    "python, trailers": "http.client takes a chunked body for whole that ends where its trailers should: it is "
    "whole, but its "
    "trailers are malformed, and pinproxy cuts it there.",
    "go, server": "net/http answers OPTIONS * itself: the program behind it isn't asked.",
    "python, slashes": "http.server joins the slashes at a path's beginning: a reading of PathReadings.",
    "python, blanks": "http.server splits the request line at the blanks of Latin-1: a target loses 0x85 and 0xA0 "
    "at its end. "
    "Paths that rules judge are read in that way too (PathReadings).",
}
