// One idea with ContentDecoder.swift: a decoder is a row of stages, which share its limits.

struct DecodingStage {
    private let coding: ContentCoding
    private let limits: ContentDecoder.Limits
    private let decompressor: any Decompressor
    private var consumed = 0
    private var produced = 0
    private var isEnded = false

    init(_ coding: ContentCoding, limits: ContentDecoder.Limits) {
        self.coding = coding
        self.limits = limits
        decompressor =
            switch coding {
            case .gzip: ZlibDecompressor(.gzip)
            case .deflate: ZlibDecompressor(.deflate)
            case .brotli: BrotliDecompressor()
            case .zstd: ZstdDecompressor()
            }
    }

    mutating func decode(_ input: [UInt8]) throws(ContentDecodingError) -> [UInt8] {
        var output: [UInt8] = []
        var start = 0
        while true {
            // Bytes after the end: only zstd continues, with its next frame.
            if isEnded, start < input.count {
                guard decompressor.beginsAgain(with: input[start]) else { throw trailing(input[start]) }
                isEnded = false
            }
            let step: DecompressionStep
            do throws(DecompressionFault) {
                step = try decompressor.step(input, from: start, into: &output)
            } catch {
                throw .malformed(
                    coding: coding.rawValue, offset: consumed + error.consumed, explanation: error.explanation)
            }
            start += step.consumed
            consumed += step.consumed
            produced += step.produced
            isEnded = step.isEnd
            guard produced <= limits.length else { throw .tooLong(limit: limits.length) }
            if produced > limits.allowance, produced / limits.ratio > consumed {
                throw .tooDense(coding: coding.rawValue, limit: limits.ratio)
            }
            if start == input.count, isEnded || !step.mayHaveMore { return output }
            guard isEnded || step.consumed > 0 || step.produced > 0 else {
                throw .malformed(coding: coding.rawValue, offset: consumed, explanation: "the decoder doesn't go on")
            }
        }
    }

    func finish() throws(ContentDecodingError) {
        guard isEnded || consumed == 0 else { throw .truncated(coding: coding.rawValue) }
    }

    private func trailing(_ byte: UInt8) -> ContentDecodingError {
        if coding == .gzip, byte == 0x1F { return .secondMember(offset: consumed) }
        return .trailingBytes(coding: coding.rawValue, offset: consumed)
    }
}
