internal import CPinproxyBrotli

/// br (RFC 7932). Its window, and with it the memory that it takes, is at most 16 MiB.
final class BrotliDecompressor: Decompressor {
    private let state: OpaquePointer

    init() {
        guard let state = BrotliDecoderCreateInstance(nil, nil, nil) else {
            preconditionFailure("no memory for Brotli")
        }
        self.state = state
    }

    deinit { BrotliDecoderDestroyInstance(state) }

    func beginsAgain(with byte: UInt8) -> Bool { false }

    func step(
        _ input: [UInt8], from start: Int, into output: inout [UInt8]
    ) throws(DecompressionFault) -> DecompressionStep {
        var result = BROTLI_DECODER_RESULT_ERROR
        let before = output.count
        let consumed = input.withUnsafeBufferPointer { input in
            var next = input.baseAddress.map { $0 + start }
            var available = input.count - start
            output.append(addingCapacity: DecompressionStep.room) { room in
                var target = room.baseAddress
                var left = room.count
                result = BrotliDecoderDecompressStream(state, &available, &next, &left, &target, nil)
                return room.count - left
            }
            return input.count - start - available
        }
        guard result != BROTLI_DECODER_RESULT_ERROR else {
            let name = String(cString: BrotliDecoderErrorString(BrotliDecoderGetErrorCode(state)))
            throw DecompressionFault(consumed: consumed, explanation: name.lowercased().replacing("_", with: " "))
        }
        return DecompressionStep(
            consumed: consumed, produced: output.count - before, isEnd: result == BROTLI_DECODER_RESULT_SUCCESS)
    }
}
