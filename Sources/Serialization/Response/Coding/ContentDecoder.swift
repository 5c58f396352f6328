/// Decodes the content codings of a body as it arrives, within limits.
///
///     var decoder = try ContentDecoder(contentEncoding: "gzip", limits: .init(length: 8 << 20))
///     try decoder.push(bytes)        // as often as bytes arrive
///     let body = try decoder.finish()
///
/// It accepts less than some clients do: a body must be what its codings say from the first byte to the last. What
/// one recipient reads on from and another ignores (bytes after the end, a second gzip member) is an error.
///
/// `deflate` is the zlib format (RFC 9110 section 8.4.1.2) or, as some servers send it, DEFLATE without a header.
public struct ContentDecoder: ~Copyable {
    /// Limits of a decoded body.
    public struct Limits: Sendable, Hashable {
        /// Most bytes that each coding may produce.
        public var length: Int
        /// The largest expansion by a coding beyond ``allowance``, as in Apache's inflate filter; text stays below 50.
        public var ratio: Int
        /// Bytes that any input may produce: a short run of zeros is not a bomb.
        public var allowance: Int

        /// See the properties.
        public init(length: Int, ratio: Int = 200, allowance: Int = 1 << 20) {
            self.length = length
            self.ratio = ratio
            self.allowance = allowance
        }
    }

    private var stages: [DecodingStage]
    private let limits: Limits
    private var output: [UInt8] = []
    /// Bytes of the output that were taken.
    private var taken = 0

    /// - Parameters:
    ///   - contentEncoding: the value of the field; nil: no field.
    ///   - limits: of what it makes of the body.
    public init(contentEncoding: String?, limits: Limits) throws(ContentDecodingError) {
        self.init(codings: try ContentCoding.list(contentEncoding), limits: limits)
    }

    /// - Parameters:
    ///   - codings: in the order of application.
    ///   - limits: of what it makes of the body.
    public init(codings: [ContentCoding], limits: Limits) {
        stages = codings.reversed().map { DecodingStage($0, limits: limits) }
        self.limits = limits
    }

    /// Takes the next bytes of the body.
    public mutating func push(_ bytes: [UInt8]) throws(ContentDecodingError) {
        var bytes = bytes
        for stage in stages.indices {
            guard !bytes.isEmpty else { return }
            bytes = try stages[stage].decode(bytes)
        }
        guard taken + output.count + bytes.count <= limits.length else { throw .tooLong(limit: limits.length) }
        output += bytes
    }

    /// Takes the decoded bytes so far; ``finish()`` returns those after them.
    package mutating func take() -> [UInt8] {
        defer { output = [] }
        taken += output.count
        return output
    }

    /// Ends the body and returns the remaining bytes; no bytes are an empty body in every coding.
    public consuming func finish() throws(ContentDecodingError) -> [UInt8] {
        for stage in stages.indices { try stages[stage].finish() }
        return output
    }

    /// Decodes a whole body.
    public static func decode(
        _ body: [UInt8], codings: [ContentCoding], limits: Limits
    ) throws(ContentDecodingError) -> [UInt8] {
        guard !codings.isEmpty, !body.isEmpty else { return body }
        var decoder = ContentDecoder(codings: codings, limits: limits)
        // In pieces, so that what comes out is measured against what has gone in.
        var start = 0
        while start < body.count {
            let end = min(start + 16 << 10, body.count)
            try decoder.push(Array(body[start..<end]))
            start = end
        }
        return try decoder.finish()
    }
}
