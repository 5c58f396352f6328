import Testing

@testable import PinproxyHTTPWire

@Suite struct ShownTextTests {
    @Test(arguments: [
        ("http://a.test/x", "http://a.test/x"), ("ftp://ada:secret@a.test/x?token=1", "ftp://***:***@a.test/x?***"),
        ("ftp://ada@a.test", "ftp://***@a.test"), ("ftp://a.test#part", "ftp://a.test#***"),
        ("ftp://ada:x@secret@a.test", "ftp://***:***@a.test"), ("ftp://ada:sec/ret@a.test", "ftp://***:***@a.test"),
        ("ftp://ada:sec?ret@a.test", "ftp://***?***"), ("ftp://ada:s@x?ret@a.test", "ftp://***?***"),
        ("ftp://a.test?m=a@b.test", "ftp://***?***"), ("ada:secret@a.test:1", "***:***@a.test:1"),
        ("http://ada:secret", "http://ada:***"), ("http://ada:secret/x", "http://ada:***/x"),
        ("http://a.test:80/b:c", "http://a.test:80/b:c"), ("http://[::1]:80/", "http://[::1]:80/"),
        ("http://[2001:db8::1]/", "http://[2001:db8::1]/"), ("/path?secret", "/path?***"), ("", ""),
        ("a.test", "a.test"), ("# a comment", "# a comment"), ("@", "***@"),
        ("a\u{1b}[2J\nb\u{202e}", "a\\u{1b}[2J\\u{a}b\\u{202e}"), ("1http://ada:secret", "1http://ada:secret"),
        ("svn+ssh://ada:secret", "svn+ssh://ada:***"), ("://ada:secret", "://ada:secret"), (":", ":"),
        // A combining mark makes one character of itself and what precedes it.
        ("http://\u{301}ada:secret", "http://\u{301}ada:***"), ("http://ada:\u{301}secret", "http://ada:***"),
        ("http://a.test/?\u{301}secret", "http://a.test/?***"), ("http://a.test/#\u{301}secret", "http://a.test/#***"),
        ("http://ada:secret@\u{301}a.test", "http://***:***@\u{301}a.test"), ("a.test?\u{301}b@c", "***?***"),
    ])
    func whatMayBeSecretIsHidden(_ text: String, _ shown: String) {
        #expect(ShownText(text).description == shown)
    }

    @Test func isNeverLongerThanALine() {
        let shown = ShownText(String(repeating: "x", count: 100_000)).description
        #expect(shown == String(repeating: "x", count: ShownText.longest) + "…")
    }
}
