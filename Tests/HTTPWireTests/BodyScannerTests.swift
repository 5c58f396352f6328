import PinproxyHTTPWire
import Testing

@Suite struct BodyScannerTests {
    /// A chunked body with every feature of the coding.
    static let body =
        "5;name=value;q=\"a;\\\"b\" ; flag\r\nhello\r\n00C \t;x\r\n, wide world\r\n0;last\r\nX-Sum: 1;2\r\nY:\r\n\r\n"
    /// The same body as it is passed on.
    static let canonicalBody = body.replacing("00C", with: "C")
    static let payload = "hello, wide world"
    static let next = "GET / HTTP/1.1\r\n"

    // Scanning changes it, which #expect doesn't allow inside.

    private func scan(_ scanner: inout BodyScanner, _ text: String) -> BodyProgress {
        scan(&scanner, Array(text.utf8)).progress
    }

    private func scan(_ scanner: inout BodyScanner, _ bytes: [UInt8]) -> (progress: BodyProgress, buffer: [UInt8]) {
        var buffer = bytes
        var span = buffer.mutableSpan
        let progress = scanner.scan(inPlace: &span)
        return (progress, buffer)
    }

    private func expect(
        _ progress: BodyProgress, _ expected: BodyProgress, sourceLocation: SourceLocation = #_sourceLocation
    ) {
        #expect(progress == expected, sourceLocation: sourceLocation)
    }

    private func expectWhole(
        _ scanner: inout BodyScanner, _ expected: Bool, sourceLocation: SourceLocation = #_sourceLocation
    ) {
        let isWhole = scanner.peerClosed()
        #expect(isWhole == expected, sourceLocation: sourceLocation)
    }

    @Test func nothingFollowsAHeadWithoutBody() {
        for framing in [BodyFraming.none, .length(0)] {
            var scanner = BodyScanner(framing)
            #expect(scanner.isEnded)
            expect(scan(&scanner, Self.next), .passed(kept: 0, consumed: 0, ended: true))
            expectWhole(&scanner, true)
        }
    }

    @Test func lengthsAreCounted() {
        var scanner = BodyScanner(.length(10))
        expect(scan(&scanner, "12345"), .passed(kept: 5, consumed: 5, ended: false))
        #expect(!scanner.isEnded)
        expect(scan(&scanner, ""), .passed(kept: 0, consumed: 0, ended: false))
        expect(scan(&scanner, "67890GET"), .passed(kept: 5, consumed: 5, ended: true))
        #expect(scanner.isEnded)
    }

    @Test func bodiesUntilCloseEndThere() {
        var scanner = BodyScanner(.untilClose)
        expect(scan(&scanner, "12345"), .passed(kept: 5, consumed: 5, ended: false))
        #expect(!scanner.isEnded)
        expectWhole(&scanner, true)
        #expect(scanner.isEnded)
    }

    @Test func aCloseBeforeTheEndIsNoEnd() {
        var counting = BodyScanner(.length(10))
        expect(scan(&counting, "123456789"), .passed(kept: 9, consumed: 9, ended: false))
        expectWhole(&counting, false)
        let bytes = Array(Self.body.utf8)
        for count in 0..<bytes.count {
            var scanner = BodyScanner(.chunked)
            guard case .passed(_, _, ended: false) = scan(&scanner, Array(bytes[..<count])).progress else {
                Issue.record("ended after \(count) bytes")
                return
            }
            expectWhole(&scanner, false)
        }
    }

    @Test func chunksEndWithTheirTrailers() {
        var scanner = BodyScanner(.chunked)
        expect(
            scan(&scanner, Self.body + Self.next),
            .passed(kept: Self.canonicalBody.utf8.count, consumed: Self.body.utf8.count, ended: true))
        #expect(scanner.isEnded)
    }

    @Test(arguments: 0..<200)
    func chunksMayArriveInAnyPieces(_ seed: Int) {
        var random = Seeded(UInt64(seed))
        let bytes = Array((Self.body + Self.next).utf8)
        let pieces = random.pieces(of: bytes.count, longest: 1 + seed % 40)

        var scanner = BodyScanner(.chunked)
        var decoder = ChunkedDecoder()
        var held: [UInt8] = []
        var passed: [UInt8] = []
        var payload: [UInt8] = []
        for piece in pieces {
            let part = Array(bytes[piece])
            let given = held + part
            let (progress, buffer) = scan(&scanner, given)
            guard case .passed(let kept, let consumed, let ended) = progress else {
                Issue.record("\(progress)")
                return
            }
            passed += buffer[..<kept]
            held = Array(buffer[consumed...])
            #expect(held == Array(given[consumed...]), "what follows is left alone")

            var coded = part
            var span = coded.mutableSpan
            guard case .passed(let length, let taken, ended) = decoder.decode(inPlace: &span) else {
                Issue.record("malformed, or not ended together")
                return
            }
            payload += coded[..<length]
            #expect(Array(coded[taken...]) == Array(part[taken...]), "what follows is left alone")
            #expect(ended == scanner.isEnded)
            if ended { break }
        }
        #expect(String(decoding: passed, as: UTF8.self) == Self.canonicalBody)
        #expect(String(decoding: payload, as: UTF8.self) == Self.payload)
    }

    @Test(arguments: [
        ("5\nhello", WireError.Code.chunkSize), ("5\r\nhello\n0\r\n\r\n", .chunkEnd), ("5\r\nhelloX\r\n", .chunkEnd),
        ("5\r\nhello0\r\n\r\n", .chunkEnd), ("5\r\nhello\rX", .chunkEnd), ("5\r\nhelloX\n0\r\n\r\n", .chunkEnd),
        ("\r\n", .chunkSize), ("x\r\n", .chunkSize),
        ("0x5\r\n", .chunkSize), ("+5\r\n", .chunkSize), ("-5\r\n", .chunkSize), (" 5\r\n", .chunkSize),
        ("5 \r\n", .chunkSize),
        ("5 5\r\n", .chunkSize), ("5_0\r\n", .chunkSize), (";a\r\n", .chunkSize), ("5\rX", .chunkSize),
        ("5\u{0}\r\n", .chunkSize),
        ("FFFFFFFFFFFFFFFF\r\n", .chunkSizeOverflow), ("10000000000000005\r\n", .chunkSizeOverflow),
        ("0000000000000000\r\n", .chunkSizeOverflow), ("8000000000000000\r\n", .chunkSizeOverflow),
        ("5;\r\n", .chunkExtension), ("5;;a\r\n", .chunkExtension), ("5;a\n", .chunkExtension),
        ("5;a=\"b\r\n", .chunkExtension),
        ("5;a=\"b\\\r\n", .chunkExtension), ("5;a=\"\u{0}\"\r\n", .chunkExtension), ("5;a\u{7F}\r\n", .chunkExtension),
        ("5;a=b\rX", .chunkSize),
        ("0\r\nX\r\n", .trailerField), ("0\r\n: x\r\n", .trailerField), ("0\r\nX : y\r\n", .trailerField),
        ("0\r\n X: y\r\n", .trailerField),
        ("0\r\nX: y\n\r\n", .trailerField), ("0\r\nX: y\r\n\n", .trailerField), ("0\r\n\rX", .trailerField),
        ("0\r\nX: \u{0}\r\n", .trailerField),
    ])
    func chunksThatSmuggleAreRefused(_ text: String, _ defect: WireError.Code) {
        let bytes = Array(text.utf8)
        var whole = BodyScanner(.chunked)
        guard case .malformed(let error, _, _) = scan(&whole, text) else {
            Issue.record("not refused")
            return
        }
        #expect(error.code == defect)
        expect(scan(&whole, text), .malformed(error, kept: 0, consumed: 0))
        expectWhole(&whole, false)

        var byByte = BodyScanner(.chunked)
        var last = BodyProgress.passed(kept: 0, consumed: 0, ended: false)
        var held: [UInt8] = []
        for byte in bytes {
            held.append(byte)
            last = scan(&byByte, held).progress
            guard case .passed(_, let consumed, _) = last else { break }
            held.removeFirst(consumed)
        }
        #expect(last.defect == defect, "byte by byte")

        var decoder = ChunkedDecoder()
        var buffer = bytes
        var span = buffer.mutableSpan
        let decoded = decoder.decode(inPlace: &span)
        #expect(decoded.defect == defect)
    }

    /// A recipient that reads leading zeros as octal, or merges trailers, would see another message.
    @Test(arguments: [
        ("05\r\nhello\r\n000\r\n\r\n", "5\r\nhello\r\n0\r\n\r\n"),
        ("000a;x=0\r\n0123456789\r\n0;0\r\n\r\n", "a;x=0\r\n0123456789\r\n0;0\r\n\r\n"),
        ("00000000000000F\r\n012345678901234\r\n000000000000000\r\n\r\n", "F\r\n012345678901234\r\n0\r\n\r\n"),
        ("0\r\nA: b\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\nC: d\r\n\r\n", "0\r\nA: b\r\nC: d\r\n\r\n"),
        ("0\r\nhOST: a\r\nTrailer: b\r\nConnection: c\r\nSet-Cookie: d\r\nETag: e\r\n\r\n", "0\r\nETag: e\r\n\r\n"),
        ("0\r\nAuthorization:\r\n\r\n", "0\r\n\r\n"),
        ("0\r\nProxy-Status: a, pinproxy; error=x, b;c=\",\"\r\n\r\n", "0\r\nProxy-Status:a,b;c=\",\"\r\n\r\n"),
        ("0\r\nproxy-status:pinproxy\r\nX: y\r\n\r\n", "0\r\nX: y\r\n\r\n"),
        ("0\r\nproxy-status: a , b\r\n\r\n", "0\r\nproxy-status: a , b\r\n\r\n"),
    ])
    func whatOthersCouldMistakeIsNotPassedOn(_ sent: String, _ passed: String) {
        let bytes = Array((sent + Self.next).utf8)
        for size in 1...bytes.count {
            var scanner = BodyScanner(.chunked)
            var held: [UInt8] = []
            var out: [UInt8] = []
            for start in stride(from: 0, to: bytes.count, by: size) {
                held += bytes[start..<min(start + size, bytes.count)]
                let (progress, buffer) = scan(&scanner, held)
                guard case .passed(let kept, let consumed, _) = progress else {
                    Issue.record("\(progress)")
                    return
                }
                out += buffer[..<kept]
                held = Array(buffer[consumed...])
            }
            #expect(String(decoding: out, as: UTF8.self) == passed, "in pieces of \(size)")
            #expect(String(decoding: held, as: UTF8.self) == Self.next, "in pieces of \(size)")
        }
    }

    /// The part before a defect can still be passed on.
    @Test func theGoodPartOfABadBodyIsTold() {
        var scanner = BodyScanner(.chunked)
        let (progress, buffer) = scan(&scanner, Array("05\r\nhello\r\n5\r\nworld!\r\n".utf8))
        guard case .malformed(let error, let kept, let consumed) = progress else {
            Issue.record("\(progress)")
            return
        }
        #expect(error.code == .chunkEnd)
        #expect(String(decoding: buffer[..<kept], as: UTF8.self) == "5\r\nhello\r\n5\r\nworld")
        #expect(consumed == kept + 1)
        var first = BodyScanner(.chunked)
        #expect(scan(&first, "ZZ\r\n") == .malformed(WireError(.chunkSize, at: 0), kept: 0, consumed: 0))
    }

    @Test func linesAndTrailersAreBounded() {
        let long = String(repeating: "a", count: 4096)
        var line = BodyScanner(.chunked)
        let lineDefect = scan(&line, "1;\(long)").defect
        #expect(lineDefect == .chunkLineTooLong)
        var trailers = BodyScanner(.chunked)
        let field = "X: \(long)\r\n"
        let trailerDefect = scan(&trailers, "0\r\n\(field)\(field)\(field)\(field)").defect
        #expect(trailerDefect == .trailersTooLong)
        // The limit is per line: a body of many long lines is fine.
        var many = BodyScanner(.chunked)
        let chunk = Array("1;\(long.dropLast(10))\r\nx\r\n".utf8)
        for _ in 0..<10 {
            expect(scan(&many, chunk).progress, .passed(kept: chunk.count, consumed: chunk.count, ended: false))
        }
    }

    /// Bytes of a chunk's line, and of a trailer section, with all their line ends.
    @Test(arguments: [-1, 0, 1]) func theBoundsAreExact(_ beside: Int) {
        func expect(_ text: String, _ defect: WireError.Code) {
            var scanner = BodyScanner(.chunked)
            let found = scan(&scanner, text).defect
            #expect(found == (beside > 0 ? defect : nil))
        }
        let line = String(repeating: "a", count: 4096 + beside - "1;\r\n".utf8.count)
        expect("1;\(line)\r\nx\r\n0\r\n\r\n", .chunkLineTooLong)
        let value = String(repeating: "a", count: 16384 + beside - "X:\r\n\r\n".utf8.count)
        expect("0\r\nX:\(value)\r\n\r\n", .trailersTooLong)
    }

    @Test func chunksMayBeLarge() {
        var scanner = BodyScanner(.chunked)
        let size = Array("FFFFFFFFFFFFFFF\r\n".utf8)
        expect(scan(&scanner, size).progress, .passed(kept: size.count, consumed: size.count, ended: false))
        let data = [UInt8](repeating: 13, count: 100_000)
        expect(scan(&scanner, data).progress, .passed(kept: 100_000, consumed: 100_000, ended: false))
    }
}

extension BodyProgress {
    fileprivate var defect: WireError.Code? {
        if case .malformed(let error, _, _) = self { error.code } else { nil }
    }
}
