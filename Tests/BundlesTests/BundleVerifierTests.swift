import Foundation
import PinproxySerialization
import PinproxyTLS
import Testing

@testable import PinproxyBundles

@Suite struct BundleVerifierTests {
    private let now = BundleBed.now
    private let later = BundleBed.later

    @Test func aSignedBundleIsVerified() throws {
        let document = try BundleBed.document()
        let verified = try BundleBed.verify(document)
        let envelope = try #require(document.bundle)
        #expect(verified.bundle.files == [BundleFile(path: "pins.yaml", bytes: Array("hosts: []\n".utf8))])
        #expect(verified.bundle.version == 1)
        #expect(verified.bundle.digest == SHA256Digest.of(envelope.payload).hex)
        #expect(verified.timestampExpires == later)
        #expect(verified.state.rootVersion == 1)
        #expect(verified.state.bundleDigest == verified.bundle.digest)
        // The same file again, on a machine that knows it.
        #expect(try BundleBed.refusal(of: document, after: verified.state) == nil)
    }

    @Test func theStateSurvivesItsFile() throws {
        let state = try BundleBed.verify(BundleBed.document()).state
        let read = try JSONDecoder().decode(BundleState.self, from: JSONEncoder().encode(state))
        #expect(read == state)
        #expect(try BundleBed.refusal(of: BundleBed.document(), after: read) == nil)
    }

    // MARK: Thresholds

    @Test(
        arguments: [
            ([11, 12], nil), ([12, 11], nil), ([11, 12, 1, 21], nil), ([11], 1), ([12], 1), ([], 0), ([1, 2, 21], 0),
            ([11, 11], 1), ([13], 0),
        ] as [([UInt8], Int?)]) func distinctKeysOfTheRoleCount(signers: [UInt8], valid: Int?) throws
    {
        let refusal = try BundleBed.refusal(of: BundleBed.document(bundle: BundleBed.bundle(by: signers)))
        #expect(
            refusal
                == valid.map { .signatures(.bundle, version: 1, by: "root version 1", valid: $0, threshold: 2) })
    }

    /// A signature that is copied, truncated, extended, or under another key's name.
    @Test func copiedAndDamagedSignaturesDoNotCount() throws {
        let one = try BundleBed.bundle(by: [11])
        let signature = try #require(one.signatures.first)
        let other = try BundleBed.key(12).publicKey.id
        let tries: [[(String, [UInt8])]] = [
            [(signature.keyID, signature.bytes), (signature.keyID, signature.bytes)],
            [(signature.keyID, signature.bytes), (other, signature.bytes)],
            [(signature.keyID, signature.bytes), (other, Array(signature.bytes.dropLast()))],
            [(signature.keyID, signature.bytes), (other, signature.bytes + [0])],
            [(signature.keyID, signature.bytes), (other, [])],
            [(signature.keyID, signature.bytes), ("", signature.bytes)],
            [(signature.keyID.uppercased(), signature.bytes), (signature.keyID, signature.bytes)],
        ]
        for signatures in tries {
            var document = try BundleBed.document(bundle: one)
            document.bundle = try envelope(one, with: signatures)
            #expect(
                try BundleBed.refusal(of: document)
                    == .signatures(.bundle, version: 1, by: "root version 1", valid: 1, threshold: 2))
        }
    }

    @Test func theFirstRootIsSignedByTheKeysToBeginWithAndByItself() throws {
        func refusal(_ keys: [UInt8], _ threshold: Int, root: BundleRoot, by signers: [UInt8]) throws -> BundleError? {
            let document = try BundleBed.document(roots: [BundleBed.signed(root.envelope, by: signers)])
            do {
                _ = try BundleBed.verifier(keys, threshold: threshold).verify(document.bytes(), after: nil, at: now)
                return nil
            } catch let error as BundleError {
                return error
            }
        }
        let root = try BundleBed.root()
        #expect(try refusal([1], 1, root: root, by: [1, 2]) == nil)
        #expect(
            try refusal([4, 5], 1, root: root, by: [1, 2])
                == .signatures(.root, version: 1, by: "the keys to begin with", valid: 0, threshold: 1))
        #expect(
            try refusal([1, 2], 2, root: root, by: [1, 3])
                == .signatures(.root, version: 1, by: "the keys to begin with", valid: 1, threshold: 2))
        #expect(
            try refusal([1], 1, root: root, by: [1])
                == .signatures(.root, version: 1, by: "root version 1", valid: 1, threshold: 2))
        #expect(try refusal([1], 0, root: root, by: [1, 2]) == .keys("a threshold of 0 asks for no signature"))
        #expect(try refusal([1], 2, root: root, by: [1, 2]) == .keys("a threshold of 2 can't be met by 1 key"))
        #expect(try refusal([], 1, root: root, by: [1, 2]) == .keys("a threshold of 1 can't be met by 0 keys"))
    }

    // MARK: Rotation

    /// Root 2 has keys 4, 5, 6 (two must sign); those of root 1 are 1, 2, 3 (two).
    private func second(_ version: Int = 2, by signers: [UInt8]) throws -> Envelope {
        try BundleBed.signed(BundleBed.root(version, root: ([4, 5, 6], 2)).envelope, by: signers)
    }

    private func first() throws -> Envelope { try BundleBed.signed(BundleBed.root().envelope, by: [1, 2]) }

    @Test func aRootIsReplacedByOneThatBothSign() throws {
        let known = try BundleBed.verify(BundleBed.document()).state
        for state in [nil, known] {
            let document = try BundleBed.document(roots: [first(), second(by: [1, 3, 4, 6])])
            let verified = try BundleBed.verify(document, after: state)
            #expect(verified.state.rootVersion == 2)
            // A root signed by the old root's keys is no longer valid.
            let third = try BundleBed.signed(BundleBed.root(3).envelope, by: [1, 2, 3])
            let next = try BundleBed.document(roots: [first(), second(by: [1, 3, 4, 6]), third])
            #expect(
                try BundleBed.refusal(of: next, after: verified.state)
                    == .signatures(.root, version: 3, by: "root version 2", valid: 0, threshold: 2))
        }
    }

    @Test func aRootThatOnlyOneSideHasSignedIsRefused() throws {
        let known = try BundleBed.verify(BundleBed.document()).state
        let cases: [([UInt8], String, Int)] = [
            ([1, 2, 3], "root version 2", 0), ([4, 5, 6], "root version 1", 0), ([1, 2, 4], "root version 2", 1),
            ([1, 4, 5], "root version 1", 1), ([], "root version 1", 0),
        ]
        for (signers, by, valid) in cases {
            let document = try BundleBed.document(roots: [first(), second(by: signers)])
            for state in [nil, known] {
                #expect(
                    try BundleBed.refusal(of: document, after: state)
                        == .signatures(.root, version: 2, by: by, valid: valid, threshold: 2))
            }
        }
    }

    @Test func noRootIsSkipped() throws {
        let known = try BundleBed.verify(BundleBed.document()).state
        let third = try second(3, by: [1, 2, 4, 5])
        #expect(try BundleBed.refusal(of: BundleBed.document(roots: [first(), third])) == .gap(known: 1, next: 3))
        #expect(
            try BundleBed.refusal(of: BundleBed.document(roots: [third]), after: known) == .gap(known: 1, next: 3))
        // In order.
        #expect(
            try BundleBed.refusal(of: BundleBed.document(roots: [second(by: [1, 2, 4, 5]), first()]))
                == .gap(known: 2, next: 1))
        #expect(
            try BundleBed.refusal(of: BundleBed.document(roots: [first(), first()])) == .gap(known: 1, next: 1))
    }

    /// The oldest roots may be omitted, for machines that know later ones or begin with later keys.
    @Test func theChainMayBeginLater() throws {
        let known = try BundleBed.verify(BundleBed.document()).state
        let roots = try [first(), second(by: [1, 2, 4, 5])]
        let late = try BundleBed.document(roots: [roots[1]])
        #expect(try BundleBed.refusal(of: late, after: known) == nil)
        #expect(try BundleBed.refusal(of: late) == nil)
        let whole = try BundleBed.document(roots: roots)
        for document in [late, whole] {
            let young = try BundleBed.verifier([4, 5, 6], threshold: 2)
            #expect(try young.verify(document.bytes(), after: nil, at: now).state.rootVersion == 2)
        }
        #expect(try BundleBed.refusal(of: BundleBed.document(roots: []), after: known) == .missing(.root))
    }

    @Test func onlyTheLastRootMustNotHaveExpired() throws {
        let expired = try BundleBed.signed(BundleBed.root(expires: now).envelope, by: [1, 2])
        #expect(try BundleBed.refusal(of: BundleBed.document(roots: [expired])) == .expired(.root, version: 1, now))
        #expect(try BundleBed.refusal(of: BundleBed.document(roots: [expired]), at: now - 1) == nil)
        #expect(try BundleBed.refusal(of: BundleBed.document(roots: [expired, second(by: [1, 2, 4, 5])])) == nil)
    }

    @Test func keysTakenOutOfARoleSignNothing() throws {
        let roots = try [
            first(), BundleBed.signed(BundleBed.root(2, bundle: ([11, 13], 2)).envelope, by: [1, 2]),
        ]
        #expect(
            try BundleBed.refusal(of: BundleBed.document(roots: roots))
                == .signatures(.bundle, version: 1, by: "root version 2", valid: 1, threshold: 2))
        #expect(
            try BundleBed.refusal(of: BundleBed.document(roots: roots, bundle: BundleBed.bundle(by: [11, 13]))) == nil)
    }

    // MARK: Rollback and freeze

    @Test func nothingGoesBack() throws {
        let roots = try [first(), second(by: [1, 2, 4, 5])]
        let bundle = try BundleBed.bundle(7)
        let known = try BundleBed.verify(
            BundleBed.document(roots: roots, bundle: bundle, timestamp: BundleBed.timestamp(5, for: bundle))
        ).state
        func refusal(roots: [Envelope], bundle: Envelope, timestamp: Int) throws -> BundleError? {
            try BundleBed.refusal(
                of: BundleBed.document(
                    roots: roots, bundle: bundle, timestamp: BundleBed.timestamp(timestamp, for: bundle)),
                after: known)
        }
        #expect(try refusal(roots: roots, bundle: bundle, timestamp: 5) == nil)
        #expect(try refusal(roots: roots, bundle: BundleBed.bundle(8), timestamp: 6) == nil)
        #expect(
            try refusal(roots: [roots[0]], bundle: bundle, timestamp: 5) == .older(.root, version: 1, known: 2))
        #expect(
            try refusal(roots: roots, bundle: bundle, timestamp: 4) == .older(.timestamp, version: 4, known: 5))
        #expect(
            try refusal(roots: roots, bundle: BundleBed.bundle(6), timestamp: 6)
                == .older(.bundle, version: 6, known: 7))
        #expect(
            try refusal(roots: roots, bundle: BundleBed.bundle(7, text: "hosts: [] #\n"), timestamp: 6)
                == .changed(.bundle, version: 7))
        let fork = try BundleBed.signed(BundleBed.root(2, root: ([1, 4, 5], 2)).envelope, by: [1, 2, 4])
        #expect(
            try refusal(roots: [roots[0], fork], bundle: bundle, timestamp: 5) == .changed(.root, version: 2))
    }

    /// Stolen keys signed the highest version: a root without them resets it (TUF section 5.3.11).
    @Test func aRootWithOtherKeysForgetsTheirVersions() throws {
        let huge = try BundleBed.bundle(Fields.largest)
        let stolen = try BundleBed.verify(
            BundleBed.document(bundle: huge, timestamp: BundleBed.timestamp(Fields.largest, for: huge)))
        func refusal(bundle: ([UInt8], Int), timestamp: ([UInt8], Int)) throws -> BundleError? {
            let root = try BundleBed.signed(
                BundleBed.root(2, bundle: bundle, timestamp: timestamp).envelope, by: [1, 2])
            let next = try BundleBed.bundle(2, by: bundle.0)
            return try BundleBed.refusal(
                of: BundleBed.document(
                    roots: [first(), root], bundle: next,
                    timestamp: BundleBed.timestamp(2, for: next, by: timestamp.0)),
                after: stolen.state)
        }
        #expect(try refusal(bundle: ([12, 13], 2), timestamp: ([22], 1)) == nil)
        // One of the two old keys remains, and two of three must sign: the old signatures no longer count.
        #expect(try refusal(bundle: ([12, 13, 14], 2), timestamp: ([22], 1)) == nil)
        #expect(
            try refusal(bundle: ([12, 13], 2), timestamp: ([21, 22], 1))
                == .older(.timestamp, version: 2, known: Fields.largest))
        #expect(
            try refusal(bundle: ([11, 12, 13], 2), timestamp: ([22], 1))
                == .older(.bundle, version: 2, known: Fields.largest))
        #expect(
            try refusal(bundle: ([12], 1), timestamp: ([22], 1)) == .older(.bundle, version: 2, known: Fields.largest))
    }

    @Test func whatHasExpiredIsRefused() throws {
        let old = try BundleBed.bundle(3, expires: now)
        #expect(try BundleBed.refusal(of: BundleBed.document(bundle: old)) == .expired(.bundle, version: 3, now))
        #expect(try BundleBed.refusal(of: BundleBed.document(bundle: old), at: now - 1) == nil)
        let bundle = try BundleBed.bundle(3)
        let frozen = try BundleBed.document(
            bundle: bundle, timestamp: BundleBed.timestamp(9, expires: now, for: bundle))
        #expect(try BundleBed.refusal(of: frozen) == .expired(.timestamp, version: 9, now))
        #expect(try BundleBed.refusal(of: frozen, at: now - 1) == nil)
        #expect(
            "\(BundleError.expired(.timestamp, version: 9, now))"
                == "timestamp version 9 expired at 2027-01-15T08:00:00Z")
    }

    @Test func theTimestampNamesTheBundle() throws {
        let (one, two) = try (BundleBed.bundle(1), BundleBed.bundle(2))
        let other = try BundleBed.bundle(1, text: "hosts: [] #\n")
        #expect(
            try BundleBed.refusal(of: BundleBed.document(bundle: one, timestamp: BundleBed.timestamp(for: two)))
                == .otherBundle(version: 1, named: 2))
        #expect(
            try BundleBed.refusal(of: BundleBed.document(bundle: one, timestamp: BundleBed.timestamp(for: other)))
                == .otherBundle(version: 1, named: 1))
    }

    // MARK: Roles

    /// One key has every role here, and its signature is still valid for one only.
    @Test func noPayloadPassesForAnothers() throws {
        let root = try BundleBed.signed(
            BundleBed.root(root: ([1], 1), bundle: ([1], 1), timestamp: ([1], 1)).envelope, by: [1])
        let bundle = try BundleBed.bundle(by: [1])
        let timestamp = try BundleBed.timestamp(for: bundle, by: [1])
        let verifier = try BundleBed.verifier([1], threshold: 1)
        func refusal(_ roots: [Envelope], _ bundle: Envelope?, _ timestamp: Envelope?) throws -> BundleError? {
            var document = BundleDocument()
            (document.roots, document.bundle, document.timestamp) = (roots, bundle, timestamp)
            do throws(BundleError) {
                _ = try verifier.verify(document.bytes(), after: nil, at: now)
                return nil
            } catch {
                return error
            }
        }
        #expect(try refusal([root], bundle, timestamp) == nil)
        let type = "application/vnd.pinproxy.timestamp+json"
        #expect(try refusal([root], timestamp, timestamp) == .payloadType(.bundle, found: type))
        #expect(try refusal([timestamp], bundle, timestamp) == .payloadType(.root, found: type))
        #expect(
            try refusal([root], bundle, root)
                == .payloadType(.timestamp, found: "application/vnd.pinproxy.root+json"))
        // One payload under another's type: the signed bytes include the type.
        let signature = try #require(timestamp.signatures.first)
        let disguised = try envelope(
            Envelope(.bundle, payload: bundle.payload), with: [(signature.keyID, signature.bytes)])
        #expect(
            try refusal([root], disguised, timestamp)
                == .signatures(.bundle, version: 1, by: "root version 1", valid: 0, threshold: 1))
        #expect(try refusal([root], nil, timestamp) == .missing(.bundle))
        #expect(try refusal([root], bundle, nil) == .missing(.timestamp))
        #expect(try refusal([], bundle, timestamp) == .missing(.root))
    }

    // MARK: The state

    @Test func aDamagedStateIsRefused() throws {
        let state = try BundleBed.verify(BundleBed.document()).state
        func damaged(root: Envelope, version: Int = 1) -> BundleState {
            BundleState(
                root: root, rootVersion: version, bundleVersion: 1, bundleDigest: state.bundleDigest,
                timestampVersion: 1, timestampExpires: later)
        }
        let unsigned = try BundleBed.root().envelope
        let states = [
            (damaged(root: unsigned), "root version 1 has 0 of the 2 signatures needed by root version 1"),
            (damaged(root: state.root, version: 2), "the root is of version 1"),
            (damaged(root: Envelope(.root, payload: [])), "root: line 1, column 1: expected a value, found the end"),
        ]
        for (state, reason) in states {
            #expect(try BundleBed.refusal(of: BundleBed.document(), after: state) == .state(reason))
        }
    }

    private func envelope(_ envelope: Envelope, with signatures: [(String, [UInt8])]) throws -> Envelope {
        try Envelope(
            [
                "payloadType": .string(envelope.payloadType), "payload": .string(Base64.encode(envelope.payload)),
                "signatures": .array(
                    signatures.map { ["keyid": .string($0.0), "sig": .string(Base64.encode($0.1))] }),
            ], in: "test")
    }

    // MARK: Roots of a file that is refused

    /// Keys that a later root removes are removed, even if its bundle wasn't accepted.
    @Test func aRootIsRememberedWithoutItsBundle() throws {
        let first = try BundleBed.root()
        let known = try BundleBed.verify(BundleBed.document()).state
        let second = try BundleBed.root(2, bundle: ([13, 14], 2), timestamp: ([22], 1))
        let roots = [
            try BundleBed.signed(first.envelope, by: [1, 2]), try BundleBed.signed(second.envelope, by: [1, 2]),
        ]
        // Its timestamp is missing, and its bundle has no valid signature.
        var document = try BundleBed.document(roots: roots)
        document.timestamp = nil
        let following = try BundleBed.verifier().following(known, rootsOf: document.bytes())
        #expect(following.rootVersion == 2)
        // None of their keys is left, so nothing remains of what they signed.
        #expect((following.bundleVersion, following.timestampVersion) == (0, 0))
        let thief = try BundleBed.document(bundle: BundleBed.bundle(9), timestamp: nil)
        #expect(try BundleBed.refusal(of: thief, after: known) == nil)
        #expect(
            try BundleBed.refusal(of: thief, after: following) == .older(.root, version: 1, known: 2))
    }

    /// - Parameter signers: those of root 2; those of root 1 are 1, 2 and 3, two of them.
    @Test(arguments: [([1], 1), ([4, 5], 1), ([1, 2], 2)] as [([UInt8], Int)])
    func onlyASignedRootIsRemembered(_ signers: [UInt8], _ version: Int) throws {
        let known = try BundleBed.verify(BundleBed.document()).state
        let roots = [
            try BundleBed.signed(BundleBed.root().envelope, by: [1, 2]),
            try BundleBed.signed(BundleBed.root(2).envelope, by: signers),
        ]
        let following = try BundleBed.verifier().following(
            known, rootsOf: BundleBed.document(roots: roots).bytes())
        #expect(following.rootVersion == version)
        #expect((following == known) == (version == 1))
    }

    @Test(arguments: [[], Array("{".utf8), Array("{\"roots\":[]}".utf8)] as [[UInt8]])
    func nothingIsLearnedFromGarbage(_ bytes: [UInt8]) throws {
        let known = try BundleBed.verify(BundleBed.document()).state
        #expect(try BundleBed.verifier().following(known, rootsOf: bytes) == known)
    }

    /// The text isn't verified yet when it is read.
    @Test(arguments: [(65_535, false), (65_536, true)]) func valuesAreCounted(_ count: Int, isRefused: Bool) throws {
        // With the braces and the bracket, and one comma fewer than elements.
        let text = "{\"x\":[0" + String(repeating: ",0", count: count - 1) + "]}"
        #expect {
            try BundleDocument(Array(text.utf8))
        } throws: {
            "\($0)".contains("more than 65536 values") == isRefused
        }
    }
}
