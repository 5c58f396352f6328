internal import CPinproxyZstd

/// zstd (RFC 8878): frames, one or more. Their window is at most 8 MiB, as RFC 9659 has it for HTTP.
final class ZstdDecompressor: Decompressor {
    private let context: OpaquePointer

    init() {
        guard let context = ZSTD_createDCtx() else { preconditionFailure("no memory for Zstandard") }
        self.context = context
        ZSTD_DCtx_setParameter(context, ZSTD_d_windowLogMax, 23)
    }

    deinit { ZSTD_freeDCtx(context) }

    /// A body is any number of frames.
    func beginsAgain(with byte: UInt8) -> Bool { true }

    func step(
        _ input: [UInt8], from start: Int, into output: inout [UInt8]
    ) throws(DecompressionFault) -> DecompressionStep {
        var result = 0
        let before = output.count
        let consumed = input.withUnsafeBufferPointer { input in
            var source = ZSTD_inBuffer(src: input.baseAddress, size: input.count, pos: start)
            output.append(addingCapacity: DecompressionStep.room) { room in
                var target = ZSTD_outBuffer(dst: room.baseAddress, size: room.count, pos: 0)
                result = ZSTD_decompressStream(context, &target, &source)
                return target.pos
            }
            return source.pos - start
        }
        guard ZSTD_isError(result) == 0 else {
            throw DecompressionFault(
                consumed: consumed, explanation: String(cString: ZSTD_getErrorName(result)).lowercased())
        }
        return DecompressionStep(consumed: consumed, produced: output.count - before, isEnd: result == 0)
    }
}
