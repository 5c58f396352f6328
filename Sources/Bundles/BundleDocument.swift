// Bundles: policy for many machines in one signed file (docs/bundles.md). Bytes in, verified values out; no I/O.

internal import PinproxySerialization

/// The file `policy.bundle`, read but not verified: ``BundleVerifier`` makes a ``PolicyBundle`` of it that may be used.
///
/// While it is being made, parts may be missing.
package struct BundleDocument: Sendable, Equatable {
    package static let bytesLimit = 16 << 20
    package static let rootsLimit = 64
    private static let format = 1
    private static let keys = ["pinproxy_bundle", "roots", "bundle", "timestamp"]

    /// In the order of their versions.
    package var roots: [Envelope] = []
    package var bundle: Envelope?
    package var timestamp: Envelope?

    package init() {}

    package init(_ bytes: [UInt8]) throws(BundleError) {
        guard bytes.count <= Self.bytesLimit else { throw .tooLarge(limit: Self.bytesLimit) }
        let file = try Fields(bytes, in: "file", keys: Self.keys)
        let format = try file.integer("pinproxy_bundle")
        guard format == Self.format else {
            throw file.wrong("pinproxy_bundle", "format \(format) is unknown; this program reads \(Self.format)")
        }
        for (number, value) in try file.list("roots", most: Self.rootsLimit).enumerated() {
            roots.append(try Envelope(value, in: "roots[\(number)]"))
        }
        bundle = try file.optional("bundle").map { value throws(BundleError) in try Envelope(value, in: "bundle") }
        timestamp = try file.optional("timestamp").map { value throws(BundleError) in
            try Envelope(value, in: "timestamp")
        }
    }

    /// The file, with a line end after it.
    package func bytes() throws(BundleError) -> [UInt8] {
        var pairs: [ParameterValue.Pair] = [
            .init(key: "pinproxy_bundle", value: .number("\(Self.format)")),
            .init(key: "roots", value: .array(roots.map(\.json))),
        ]
        if let bundle { pairs.append(.init(key: "bundle", value: bundle.json)) }
        if let timestamp { pairs.append(.init(key: "timestamp", value: timestamp.json)) }
        let bytes = Self.text(.dictionary(pairs)) + [UInt8(ascii: "\n")]
        guard bytes.count <= Self.bytesLimit else { throw .tooLarge(limit: Self.bytesLimit) }
        return bytes
    }

    /// Without a name that repeats, which a writer here never makes, and without a set.
    static func text(_ value: ParameterValue) -> [UInt8] { StrictJSON.write(value) ?? [] }
}
