internal import PinproxySerialization

/// Says which bundle is the current one. It expires soon: who holds back a newer bundle is seen then.
package struct BundleTimestamp: Sendable, Equatable {
    package let version: Int
    package let expires: Int64
    package let bundleVersion: Int
    /// SHA-256 of the bundle's payload, in hexadecimal.
    package let bundleDigest: String

    package init(version: Int, expires: Int64, for bundle: PolicyBundle) {
        self.version = version
        self.expires = expires
        bundleVersion = bundle.version
        bundleDigest = bundle.digest
    }

    package init(_ envelope: Envelope) throws(BundleError) {
        try envelope.require(.timestamp)
        let fields = try Fields(envelope.payload, in: "timestamp", keys: ["version", "expires", "bundle"])
        version = try fields.integer("version")
        expires = try fields.time("expires")
        let bundle = try fields.fields("bundle", keys: ["version", "sha256"])
        bundleVersion = try bundle.integer("version")
        bundleDigest = try bundle.text("sha256", longest: 64)
        let isDigest = bundleDigest.utf8.allSatisfy { "0123456789abcdef".utf8.contains($0) }
        guard bundleDigest.utf8.count == 64, isDigest else {
            throw bundle.wrong("sha256", "it is not 64 hexadecimal digits in lower case")
        }
    }

    /// The unsigned envelope.
    package var envelope: Envelope {
        Envelope(
            .timestamp,
            payload: BundleDocument.text([
                "version": .number("\(version)"), "expires": .string(BundleTime.text(expires)),
                "bundle": ["version": .number("\(bundleVersion)"), "sha256": .string(bundleDigest)],
            ]))
    }

    func requireNames(_ bundle: PolicyBundle) throws(BundleError) {
        guard bundle.version == bundleVersion, bundle.digest == bundleDigest else {
            throw .otherBundle(version: bundle.version, named: bundleVersion)
        }
    }
}
