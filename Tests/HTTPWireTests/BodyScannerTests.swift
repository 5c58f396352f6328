import HTTPWire
import Testing

@Suite struct BodyScannerTests {
    /// A body in the chunked coding with everything that it may hold.
    static let body = "5;name=value;q=\"a;\\\"b\" ; flag\r\nhello\r\n00C \t;x\r\n, wide world\r\n0;last\r\nX-Sum: 1;2\r\nY:\r\n\r\n"
    static let payload = "hello, wide world"
    static let next = "GET / HTTP/1.1\r\n"

    // What a scanner does changes it, which #expect doesn't allow within.

    private func scan(_ scanner: inout BodyScanner, _ text: String) -> BodyProgress {
        scanner.scan(Array(text.utf8).span)
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
            expect(scan(&scanner, Self.next), .ended(0))
            expectWhole(&scanner, true)
        }
    }

    @Test func lengthsAreCounted() {
        var scanner = BodyScanner(.length(10))
        expect(scan(&scanner, "12345"), .passed(5))
        #expect(!scanner.isEnded)
        expect(scan(&scanner, ""), .passed(0))
        expect(scan(&scanner, "67890GET"), .ended(5))
        #expect(scanner.isEnded)
    }

    @Test func bodiesUntilCloseEndThere() {
        var scanner = BodyScanner(.untilClose)
        expect(scan(&scanner, "12345"), .passed(5))
        #expect(!scanner.isEnded)
        expectWhole(&scanner, true)
        #expect(scanner.isEnded)
    }

    @Test func aCloseBeforeTheEndIsNoEnd() {
        var counting = BodyScanner(.length(10))
        expect(scan(&counting, "123456789"), .passed(9))
        expectWhole(&counting, false)
        let bytes = Array(Self.body.utf8)
        for count in 0..<bytes.count {
            var scanner = BodyScanner(.chunked)
            expect(scanner.scan(bytes.span.extracting(0..<count)), .passed(count))
            expectWhole(&scanner, false)
        }
    }

    @Test func chunksEndWithTheirTrailers() {
        var scanner = BodyScanner(.chunked)
        expect(scan(&scanner, Self.body + Self.next), .ended(Self.body.utf8.count))
        #expect(scanner.isEnded)
    }

    @Test(arguments: 0..<200)
    func chunksMayArriveInAnyPieces(_ seed: Int) {
        var random = Seeded(UInt64(seed))
        let bytes = Array((Self.body + Self.next).utf8)
        let pieces = random.pieces(of: bytes.count, longest: 1 + seed % 40)

        var scanner = BodyScanner(.chunked)
        var decoder = ChunkedDecoder()
        var taken = 0
        var payload: [UInt8] = []
        for piece in pieces {
            let part = Array(bytes[piece])
            switch scanner.scan(part.span) {
            case .passed(let count):
                #expect(count == part.count)
                taken += count
            case .ended(let count): taken += count
            case .malformed(let error): Issue.record("\(error)")
            }
            var buffer = part
            var span = buffer.mutableSpan
            guard case .decoded(let length, let consumed, let ended) = decoder.decode(inPlace: &span) else {
                Issue.record("malformed")
                return
            }
            payload += buffer[..<length]
            #expect(Array(buffer[consumed...]) == Array(part[consumed...]), "what follows is left alone")
            #expect(ended == decoder.isEnded && ended == scanner.isEnded)
            if ended { break }
        }
        #expect(taken == Self.body.utf8.count)
        #expect(String(decoding: payload, as: UTF8.self) == Self.payload)
    }

    @Test(arguments: [
        ("5\nhello", WireError.Code.chunkSize), ("5\r\nhello\n0\r\n\r\n", .chunkEnd), ("5\r\nhelloX\r\n", .chunkEnd),
        ("5\r\nhello0\r\n\r\n", .chunkEnd), ("5\r\nhello\rX", .chunkEnd), ("\r\n", .chunkSize), ("x\r\n", .chunkSize),
        ("0x5\r\n", .chunkSize), ("+5\r\n", .chunkSize), ("-5\r\n", .chunkSize), (" 5\r\n", .chunkSize), ("5 \r\n", .chunkSize),
        ("5 5\r\n", .chunkSize), ("5_0\r\n", .chunkSize), (";a\r\n", .chunkSize), ("5\rX", .chunkSize), ("5\u{0}\r\n", .chunkSize),
        ("FFFFFFFFFFFFFFFF\r\n", .chunkSizeOverflow), ("10000000000000005\r\n", .chunkSizeOverflow),
        ("0000000000000000\r\n", .chunkSizeOverflow), ("8000000000000000\r\n", .chunkSizeOverflow),
        ("5;\r\n", .chunkExtension), ("5;;a\r\n", .chunkExtension), ("5;a\n", .chunkExtension), ("5;a=\"b\r\n", .chunkExtension),
        ("5;a=\"b\\\r\n", .chunkExtension), ("5;a=\"\u{0}\"\r\n", .chunkExtension), ("5;a\u{7F}\r\n", .chunkExtension), ("5;a=b\rX", .chunkSize),
        ("0\r\nX\r\n", .trailerField), ("0\r\n: x\r\n", .trailerField), ("0\r\nX : y\r\n", .trailerField), ("0\r\n X: y\r\n", .trailerField),
        ("0\r\nX: y\n\r\n", .trailerField), ("0\r\nX: y\r\n\n", .trailerField), ("0\r\n\rX", .trailerField), ("0\r\nX: \u{0}\r\n", .trailerField),
    ])
    func chunksThatSmuggleAreRefused(_ text: String, _ defect: WireError.Code) {
        let bytes = Array(text.utf8)
        var whole = BodyScanner(.chunked)
        guard case .malformed(let error) = whole.scan(bytes.span) else {
            Issue.record("not refused")
            return
        }
        #expect(error.code == defect)
        expect(whole.scan(bytes.span), .malformed(error))
        expectWhole(&whole, false)

        var byByte = BodyScanner(.chunked)
        var last = BodyProgress.passed(0)
        for byte in bytes {
            last = byByte.scan([byte].span)
            if case .malformed = last { break }
        }
        guard case .malformed(let late) = last else {
            Issue.record("not refused byte by byte")
            return
        }
        #expect(late.code == defect)

        var decoder = ChunkedDecoder()
        var buffer = bytes
        var span = buffer.mutableSpan
        guard case .malformed(let decoding) = decoder.decode(inPlace: &span) else {
            Issue.record("decoded")
            return
        }
        #expect(decoding.code == defect)
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
        // The bound is for one line: a body of many long lines is fine.
        var many = BodyScanner(.chunked)
        let chunk = Array("1;\(long.dropLast(10))\r\nx\r\n".utf8)
        for _ in 0..<10 { expect(many.scan(chunk.span), .passed(chunk.count)) }
    }

    @Test func chunksMayBeLarge() {
        var scanner = BodyScanner(.chunked)
        let size = Array("FFFFFFFFFFFFFFF\r\n".utf8)
        expect(scanner.scan(size.span), .passed(size.count))
        expect(scanner.scan(Array(repeating: 13, count: 100_000).span), .passed(100_000))
    }
}

extension BodyProgress {
    fileprivate var defect: WireError.Code? {
        if case .malformed(let error) = self { error.code } else { nil }
    }
}
