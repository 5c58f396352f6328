internal import CPinproxyZlib

/// gzip (RFC 1952), and deflate with the zlib header (RFC 1950) or without (RFC 1951).
final class ZlibDecompressor: Decompressor {
    enum Format { case gzip, deflate }

    private let stream = UnsafeMutablePointer<z_stream>.allocate(capacity: 1)
    private let format: Format
    /// The first byte of a deflate body, held until the second shows whether the two are a zlib header.
    private var first: UInt8?
    private var isOpen = false

    init(_ format: Format) {
        stream.initialize(to: z_stream())
        self.format = format
    }

    deinit {
        if isOpen { inflateEnd(stream) }
        stream.deallocate()
    }

    func beginsAgain(with byte: UInt8) -> Bool { false }

    func step(
        _ input: [UInt8], from start: Int, into output: inout [UInt8]
    ) throws(DecompressionFault) -> DecompressionStep {
        guard start < input.count || isOpen else { return DecompressionStep(consumed: 0, produced: 0, isEnd: false) }
        guard !isOpen else { return try inflate(input, from: start, into: &output) }
        switch (format, first) {
        case (.gzip, _): open(windowBits: 15 + 16)
        case (.deflate, nil):
            first = input[start]
            return DecompressionStep(consumed: 1, produced: 0, isEnd: false)
        case (.deflate, let first?):
            let isZlib = first & 0x0F == 8 && (Int(first) << 8 | Int(input[start])) % 31 == 0
            open(windowBits: isZlib ? 15 : -15)
            // Nothing comes out of one byte, and no stream ends with it.
            _ = try inflate([first], from: 0, into: &output)
        }
        return try inflate(input, from: start, into: &output)
    }

    private func open(windowBits: Int32) {
        // Only memory can lack, and then Swift ends too.
        let result = inflateInit2_(stream, windowBits, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size))
        precondition(result == Z_OK, "zlib can't be initialised: \(result)")
        isOpen = true
    }

    private func inflate(
        _ input: [UInt8], from start: Int, into output: inout [UInt8]
    ) throws(DecompressionFault) -> DecompressionStep {
        var result = Z_OK
        let before = output.count
        let consumed = input.withUnsafeBufferPointer { input in
            stream.pointee.next_in = UnsafeMutablePointer(mutating: input.baseAddress! + start)
            stream.pointee.avail_in = uInt(input.count - start)
            output.append(addingCapacity: DecompressionStep.room) { room in
                stream.pointee.next_out = room.baseAddress
                stream.pointee.avail_out = uInt(room.count)
                result = CPinproxyZlib.inflate(stream, Z_NO_FLUSH)
                return room.count - Int(stream.pointee.avail_out)
            }
            return input.count - start - Int(stream.pointee.avail_in)
        }
        switch result {
        case Z_OK, Z_STREAM_END, Z_BUF_ERROR:
            return DecompressionStep(consumed: consumed, produced: output.count - before, isEnd: result == Z_STREAM_END)
        case Z_NEED_DICT:
            throw DecompressionFault(consumed: consumed, explanation: "it needs a preset dictionary")
        default:
            let message = stream.pointee.msg.map { String(cString: $0) } ?? "error \(result)"
            throw DecompressionFault(consumed: consumed, explanation: message)
        }
    }
}

extension [UInt8] {
    /// Appends what a C function writes; `fill` returns the number of bytes.
    mutating func append(addingCapacity room: Int, _ fill: (UnsafeMutableBufferPointer<UInt8>) -> Int) {
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: room) { buffer in
            let written = fill(buffer)
            append(contentsOf: buffer[..<written])
        }
    }
}
