import Foundation
import PinproxySerialization
import PinproxyTLS
import Testing

@testable import PinproxyBundles

/// Other tools can verify our signatures, and make some that we accept.
@Suite struct EnvelopeTests {
    /// The example of DSSE's protocol.md.
    @Test func whatIsSignedIsTheEncodingOfTheStandard() throws {
        let envelope = try Envelope(
            [
                "payloadType": "http://example.com/HelloWorld",
                "payload": .string(Base64.encode(Array("hello world".utf8))),
                "signatures": [],
            ], in: "test")
        #expect(
            String(decoding: envelope.signed, as: UTF8.self)
                == "DSSEv1 29 http://example.com/HelloWorld 11 hello world")
    }

    @Test func theLengthOfATypeIsInBytes() throws {
        let envelope = try Envelope(["payloadType": "é", "payload": "", "signatures": []], in: "test")
        #expect(String(decoding: envelope.signed, as: UTF8.self) == "DSSEv1 2 é 0 ")
    }

    @Test func opensslAcceptsOurSignature() throws {
        let place = try Place()
        let key = try place.makeKey()
        var envelope = try BundleBed.bundle(by: [])
        try envelope.sign(with: key)
        let signature = try #require(envelope.signatures.first)
        #expect(signature.keyID == key.publicKey.id)
        try place.write("signed", envelope.signed)
        try place.write("signature", signature.bytes)
        let command = ["pkeyutl", "-verify", "-rawin", "-inkey", "key.pem", "-in", "signed", "-sigfile", "signature"]
        #expect(try place.openssl(command) == 0)
        try place.write("signed", envelope.signed + [0])
        #expect(try place.openssl(command) != 0)
    }

    @Test func weAcceptASignatureOfOpenssl() throws {
        let place = try Place()
        let key = try place.makeKey().publicKey
        let unsigned = try BundleBed.bundle(by: [])
        try place.write("signed", unsigned.signed)
        #expect(
            try place.openssl(["pkeyutl", "-sign", "-rawin", "-inkey", "key.pem", "-in", "signed", "-out", "signature"])
                == 0)
        let envelope = try Envelope(
            [
                "payloadType": .string(unsigned.payloadType), "payload": .string(Base64.encode(unsigned.payload)),
                "signatures": [["keyid": .string(key.id), "sig": .string(Base64.encode(try place.read("signature")))]],
            ], in: "test")
        #expect(envelope.signers(among: [key]) == [key])
        #expect(envelope.signers(among: [try BundleBed.key(1).publicKey]) == [])
    }

    @Test func signingAgainAddsNothing() throws {
        var envelope = try BundleBed.bundle(by: [11, 12])
        let once = envelope
        try envelope.sign(with: BundleBed.key(12))
        #expect(envelope == once)
        try envelope.sign(with: BundleBed.key(11))
        #expect(envelope.signatures.count == 2)
        #expect(envelope.signers(among: try BundleBed.role([11, 12], 2).keys).count == 2)
    }

    /// The file in docs/bundles.md: made with the keys given there, and verified.
    @Test func theExampleOfTheManualIsAsItSays() throws {
        let root = URL(filePath: #filePath).appending(path: "../../..").standardized
        let page = try String(contentsOf: root.appending(path: "docs/bundles.md"), encoding: .utf8)
        let file = try #require(page.firstRange(of: "```json\n{\n  \"pinproxy_bundle\"")).lowerBound
        let text = page[file...].dropFirst("```json\n".count)
        let end = try #require(text.firstRange(of: "```")).lowerBound
        let bytes = Array(text[..<end].utf8)
        let keys = try [1, 2].map { try BundleBed.key($0).publicKey }
        for key in keys {
            #expect(page.contains(key.text))
            #expect(page.contains(key.id))
        }
        let verifier = BundleVerifier(keys: keys, threshold: 2)
        let verified = try verifier.verify(bytes, after: nil, at: BundleBed.now)
        #expect(page.contains(verified.bundle.digest))
        let document = try BundleDocument(bytes)
        #expect(document == (try Self.example()))
        let signed = try #require(document.timestamp).signed
        #expect(page.contains(String(decoding: signed, as: UTF8.self)))
    }

    /// The manual's example.
    static func example() throws -> BundleDocument {
        let (expires, soon) = (BundleBed.now + 365 * 86_400, BundleBed.now + 7 * 86_400)
        let pins = """
            hosts:
              - match: api.example.com
                pinning: public-key
                pins:
                  - sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=

            """
        let root = try BundleBed.root(expires: expires, root: ([1, 2], 2), bundle: ([3], 1), timestamp: ([4], 1))
        let bundle = try BundleBed.bundle(1, expires: BundleBed.now + 90 * 86_400, text: pins, by: [3])
        return try BundleBed.document(
            roots: [BundleBed.signed(root.envelope, by: [1, 2])], bundle: bundle,
            timestamp: BundleBed.timestamp(1, expires: soon, for: bundle, by: [4]))
    }

    /// A directory for openssl's input and output.
    private final class Place {
        private let directory: String

        init() throws {
            directory = FileManager.default.temporaryDirectory.appending(path: "pinproxy-\(UUID().uuidString)")
                .path(percentEncoded: false)
            try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: false)
        }

        deinit { try? FileManager.default.removeItem(atPath: directory) }

        func write(_ name: String, _ bytes: [UInt8]) throws {
            try Data(bytes).write(to: URL(filePath: "\(directory)/\(name)"))
        }

        func read(_ name: String) throws -> [UInt8] {
            [UInt8](try Data(contentsOf: URL(filePath: "\(directory)/\(name)")))
        }

        func makeKey() throws -> SigningKey {
            #expect(try openssl(["genpkey", "-algorithm", "ed25519", "-out", "key.pem"]) == 0)
            return try SigningKey(pem: read("key.pem"))
        }

        /// Returns its exit code.
        func openssl(_ arguments: [String]) throws -> Int32 {
            let process = Process()
            process.executableURL = URL(filePath: "/usr/bin/openssl")
            process.arguments = arguments
            process.environment = ["PATH": "/usr/bin:/bin"]
            process.currentDirectoryURL = URL(filePath: directory)
            process.standardInput = FileHandle.nullDevice
            process.standardOutput = FileHandle.nullDevice
            process.standardError = FileHandle.nullDevice
            try process.run()
            process.waitUntilExit()
            return process.terminationStatus
        }
    }
}
