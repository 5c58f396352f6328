import Testing

@testable import PinproxyBundles

/// A small bundle, truncated and changed: it is refused, or means the same.
@Suite struct BundleMutationTests {
    private let verifier: BundleVerifier
    private let bytes: [UInt8]
    private let bundle: PolicyBundle

    init() throws {
        verifier = try BundleBed.verifier([1], threshold: 1)
        let root = try BundleBed.root(root: ([1], 1), bundle: ([1], 1), timestamp: ([1], 1))
        let bundle = try BundleBed.bundle(by: [1])
        bytes = try BundleBed.document(
            roots: [BundleBed.signed(root.envelope, by: [1])], bundle: bundle,
            timestamp: BundleBed.timestamp(for: bundle, by: [1])
        ).bytes()
        self.bundle = try verifier.verify(bytes, after: nil, at: BundleBed.now).bundle
    }

    @Test func noPrefixIsABundle() {
        // The last byte is the line end.
        for count in 0..<bytes.count - 1 {
            #expect(throws: BundleError.self) {
                try verifier.verify(Array(bytes[..<count]), after: nil, at: BundleBed.now)
            }
        }
    }

    /// Each bit of each byte.
    @Test(arguments: 0..<8) func noChangedBitChangesTheBundle(bit: Int) {
        var accepted = 0
        for index in bytes.indices {
            var changed = bytes
            changed[index] ^= 1 << bit
            guard let verified = try? verifier.verify(changed, after: nil, at: BundleBed.now) else { continue }
            accepted += 1
            #expect(verified.bundle == bundle, "bit \(bit) of byte \(index)")
        }
        // The line end may become other white space; everything else matters.
        #expect(accepted <= 1, "bit \(bit)")
    }

    /// Each byte removed, and each doubled.
    @Test func noByteIsSpare() {
        for index in bytes.indices.dropLast() {
            var (shorter, longer) = (bytes, bytes)
            shorter.remove(at: index)
            longer.insert(bytes[index], at: index)
            for changed in [shorter, longer] {
                let verified = try? verifier.verify(changed, after: nil, at: BundleBed.now)
                #expect(verified == nil, "byte \(index)")
            }
        }
    }
}
