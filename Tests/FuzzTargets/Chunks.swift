import PinproxyHTTPWire

/// Chunked bodies: the filter that passes them on and the decoder agree, however a body is split.
enum Chunks {
    /// The result of a filter or decoder.
    private struct Result: Equatable {
        var kept: [UInt8] = []
        var consumed = 0
        var hasEnded = false
        var defect: WireError.Code?
    }

    static func body(_ bytes: [UInt8]) {
        var choices = Choices(bytes, count: 1)
        let seed = choices.byte()
        let input = choices.input

        var scanner = BodyScanner(.chunked)
        let passed = take(input) { scanner.scan(inPlace: &$0) }
        var cutScanner = BodyScanner(.chunked)
        let passedInPieces = take(input, seed) { cutScanner.scan(inPlace: &$0) }
        require(passed == passedInPieces, "a body is passed on alike, however it is cut: \(passed), \(passedInPieces)")
        require(passed.hasEnded == scanner.isEnded, "a scanner knows whether the body has ended")
        require(passed.kept.count <= passed.consumed, "no byte comes from nowhere")

        var decoder = ChunkedDecoder()
        let decoded = take(input) { decoder.decode(inPlace: &$0) }
        var cutDecoder = ChunkedDecoder()
        let decodedInPieces = take(input, seed) { cutDecoder.decode(inPlace: &$0) }
        require(
            decoded.kept == decodedInPieces.kept && decoded.hasEnded == decodedInPieces.hasEnded,
            "a body is decoded alike, however it is cut")
        require(decoded.defect == decodedInPieces.defect, "a defect doesn't depend on how a body is cut")
        require(decoder.trailers.lines == cutDecoder.trailers.lines, "trailers don't depend on how a body is cut")
        require(
            decoded.hasEnded == passed.hasEnded && decoded.defect == passed.defect,
            "filter and decoder agree about a body")
        guard decoded.hasEnded else { return }
        require(decoded.consumed == passed.consumed, "filter and decoder agree about a body's end")

        // The next recipient reads the same.
        var next = ChunkedDecoder()
        let read = take(passed.kept) { next.decode(inPlace: &$0) }
        require(read.hasEnded && read.consumed == passed.kept.count, "a body that is passed on is whole")
        require(read.kept == decoded.kept, "a body that is passed on says the same")
        require(next.trailers.lines == decoder.trailers.lines, "trailers that are passed on are those that are kept")
        var filter = BodyScanner(.chunked)
        let again = take(passed.kept) { filter.scan(inPlace: &$0) }
        require(again.kept == passed.kept, "a body that was filtered stays as it is")
    }

    /// - Parameter seed: for splitting into pieces; nil: all at once.
    private static func take(
        _ input: [UInt8], _ seed: UInt8? = nil, by step: (inout MutableSpan<UInt8>) -> BodyProgress
    ) -> Result {
        var result = Result()
        var cuts = seed.map(Cuts.init(seed:))
        var arrived = 0
        var buffer: [UInt8] = []
        while arrived < input.count {
            let count = min(cuts?.next() ?? input.count, input.count - arrived)
            buffer += input[arrived..<arrived + count]
            arrived += count
            var span = buffer.mutableSpan
            switch step(&span) {
            case .passed(let kept, let consumed, let ended):
                require(kept <= consumed && consumed <= buffer.count, "a step keeps no more than it takes")
                result.kept += buffer[..<kept]
                result.consumed += consumed
                buffer.removeFirst(consumed)
                if ended {
                    result.hasEnded = true
                    return result
                }
            case .malformed(let error, let kept, let consumed):
                require(kept <= consumed && consumed <= buffer.count, "a step keeps no more than it takes")
                result.kept += buffer[..<kept]
                result.consumed += consumed
                result.defect = error.code
                return result
            }
        }
        return result
    }
}
