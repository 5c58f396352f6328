import PinproxySerialization
import PinproxyTLS
import Testing

@testable import PinproxyBundles

/// What the format refuses, with each error, and its limits from both sides.
@Suite struct BundleFormatTests {
    // MARK: The file

    @Test(arguments: [
        ("", "file: line 1, column 1: expected a value, found the end"),
        ("[]", "file: it is not a JSON object"),
        ("{}", "file.pinproxy_bundle: it is missing"),
        (#"{"pinproxy_bundle": 1}"#, "file.roots: it is missing"),
        (
            #"{"pinproxy_bundle": 2, "roots": []}"#,
            "file.pinproxy_bundle: format 2 is unknown; this program reads 1"
        ),
        (#"{"pinproxy_bundle": "1", "roots": []}"#, "file.pinproxy_bundle: it is not an integer"),
        (#"{"pinproxy_bundle": 1.0, "roots": []}"#, "file.pinproxy_bundle: it is not an integer"),
        (#"{"pinproxy_bundle": 1e0, "roots": []}"#, "file.pinproxy_bundle: it is not an integer"),
        (#"{"pinproxy_bundle": true, "roots": []}"#, "file.pinproxy_bundle: it is not an integer"),
        (
            #"{"pinproxy_bundle": 0, "roots": []}"#,
            "file.pinproxy_bundle: 0 is not from 1 to 9007199254740991"
        ),
        (#"{"pinproxy_bundle": 1, "roots": [], "Roots": []}"#, #"file: "Roots" is not a known key"#),
        (#"{"pinproxy_bundle": 1, "roots": [], "\u001b[2J": 1}"#, #"file: "\u{1B}[2J" is not a known key"#),
        (
            #"{"pinproxy_bundle": 1, "roots": [], "roots": []}"#,
            #"file: line 1, column 37: the key "roots" is written twice"#
        ),
        (
            #"{"pinproxy_bundle": 1, "roots": [], "bundle": null, "bundle": null}"#,
            #"file: line 1, column 53: the key "bundle" is written twice"#
        ),
        (
            "{\"pinproxy_bundle\": 1,\n\"roots\": []} x",
            #"file: line 2, column 14: expected the end of the text, found "x""#
        ),
        (
            "\u{FEFF}{\"pinproxy_bundle\": 1, \"roots\": []}",
            #"file: line 1, column 1: expected a value, found "\u{FEFF}""#
        ),
        (#"{"pinproxy_bundle": 1, "roots": {}}"#, "file.roots: it is not a list"),
        (#"{"pinproxy_bundle": 1, "roots": [1]}"#, "roots[0]: it is not a JSON object"),
        (#"{"pinproxy_bundle": 1, "roots": [], "bundle": null}"#, "bundle: it is not a JSON object"),
        (#"{"pinproxy_bundle": 1, "roots": [], "bundle": {}}"#, "bundle.payloadType: it is missing"),
        (
            #"{"pinproxy_bundle": 1, "roots": [], "bundle": {"payloadType": "x", "payload": "e30", "signatures": []}}"#,
            "bundle.payload: it is not base64 with padding (RFC 4648 section 4)"
        ),
        (
            #"{"pinproxy_bundle": 1, "roots": [], "bundle": {"payloadType": "x", "payload": "e30=", "signatures": 1}}"#,
            "bundle.signatures: it is not a list"
        ),
        (
            #"{"pinproxy_bundle":1,"roots":[{"payloadType":"x","payload":"","signatures":[{"keyid":"","sig":"?"}]}]}"#,
            "roots[0].signatures[0].sig: it is not base64 with padding (RFC 4648 section 4)"
        ),
    ]) func aWrongFileIsRefused(text: String, reason: String) {
        #expect(Self.reason { () throws(BundleError) in try BundleDocument(Array(text.utf8)) } == reason)
    }

    @Test func theFileIsBounded() throws {
        let text = Array(#"{"pinproxy_bundle": 1, "roots": []}"#.utf8)
        let limit = BundleDocument.bytesLimit
        for (count, isRead) in [(limit - 1, true), (limit, true), (limit + 1, false)] {
            let bytes = text + [UInt8](repeating: 0x20, count: count - text.count)
            let reason = Self.reason { () throws(BundleError) in try BundleDocument(bytes) }
            #expect(reason == (isRead ? nil : "the file is larger than 16 MiB"))
        }
    }

    @Test func rootsAndSignaturesAreBounded() throws {
        let envelope = try BundleBed.root().envelope
        for (count, isRead) in [(63, true), (64, true), (65, false)] {
            var document = BundleDocument()
            document.roots = Array(repeating: envelope, count: count)
            let bytes = try document.bytes()
            let reason = Self.reason { () throws(BundleError) in try BundleDocument(bytes) }
            #expect(reason == (isRead ? nil : "file.roots: it has 65 elements, more than 64"))
            let signatures = (0..<count).map {
                ParameterValue.dictionary([.init(key: "keyid", value: .string("\($0)")), .init(key: "sig", value: "")])
            }
            let signed: ParameterValue = ["payloadType": "x", "payload": "", "signatures": .array(signatures)]
            let other = Self.reason { () throws(BundleError) in try Envelope(signed, in: "bundle") }
            #expect(other == (isRead ? nil : "bundle.signatures: it has 65 elements, more than 64"))
        }
    }

    @Test func aFileReadsAsItWasWritten() throws {
        let document = try BundleBed.document()
        #expect(try BundleDocument(document.bytes()) == document)
        #expect(try BundleDocument(BundleDocument().bytes()) == BundleDocument())
    }

    // MARK: Payloads

    @Test(arguments: [
        ("", "root: line 1, column 1: expected a value, found the end"),
        (#"{"version": 1}"#, "root.expires: it is missing"),
        (#"{"version": 0}"#, "root.version: 0 is not from 1 to 9007199254740991"),
        (#"{"version": -1}"#, "root.version: -1 is not from 1 to 9007199254740991"),
        (#"{"version": 9007199254740992}"#, "root.version: 9007199254740992 is not from 1 to 9007199254740991"),
        (#"{"version": 99999999999999999999}"#, "root.version: it is not an integer"),
        (
            #"{"version": 1, "expires": "2027-06-30"}"#,
            #"root.expires: "2027-06-30" is not a time; write it as 2027-06-30T12:00:00Z"#
        ),
        (
            #"{"version": 1, "expires": "1969-12-31T23:59:59Z"}"#,
            #"root.expires: "1969-12-31T23:59:59Z" is not a time; write it as 2027-06-30T12:00:00Z"#
        ),
        (#"{"version": 1, "expires": 5}"#, "root.expires: it is not a string"),
        (#"{"version": 1, "expires": "2027-06-30T12:00:00Z"}"#, "root.roles: it is missing"),
        (
            #"{"version": 1, "expires": "2027-06-30T12:00:00Z", "roles": {"root": {}}}"#,
            "root.roles.root.keys: it is missing"
        ),
        (
            #"{"version": 1, "expires": "2027-06-30T12:00:00Z", "roles": {"snapshot": {}}}"#,
            #"root.roles: "snapshot" is not a known key"#
        ),
        (
            #"{"version":1,"expires":"2027-06-30T12:00:00Z","roles":{"root":{"keys":["ed25519:AA=="],"threshold":1}}}"#,
            "root.roles.root.keys: the key has 1 bytes; an Ed25519 key has 32"
        ),
        (
            #"{"version":1,"expires":"2027-06-30T12:00:00Z","roles":{"root":{"keys":[],"threshold":1}}}"#,
            "root.roles.root: a threshold of 1 can't be met by 0 keys"
        ),
        (
            #"{"version":1,"expires":"2027-06-30T12:00:00Z","roles":{"root":{"keys":[],"threshold":0}}}"#,
            "root.roles.root: a threshold of 0 asks for no signature"
        ),
    ]) func aWrongRootIsRefused(text: String, reason: String) {
        let envelope = Envelope(.root, payload: Array(text.utf8))
        #expect(Self.reason { () throws(BundleError) in try BundleRoot(envelope) } == reason)
    }

    @Test(arguments: [
        (#""version": 1"#, "bundle.expires: it is missing"),
        (#""version": 1, "expires": "2027-06-30T12:00:00+02:00""#, "bundle.groups: it is missing"),
        (Self.head + #""groups": "web""#, "bundle.groups: it is not a list"),
        (Self.head + #""groups": [1]"#, "bundle.groups: an element is not a string"),
        (Self.head + #""groups": ["web", "web"]"#, "bundle.groups: a group is there twice"),
        (
            Self.head + #""groups": ["-a"]"#,
            #"bundle.groups: "-a" is not the name of a group: letters, digits, ".", "_" and "-", at most 64"#
        ),
        (Self.head + #""groups": []"#, "bundle.files: it is missing"),
        (Self.head + #""groups": [], "files": []"#, "bundle.files: it is not a JSON object"),
        (Self.head + #""groups": [], "files": {}"#, "bundle.files: pins.yaml is missing"),
        (
            Self.head + #""groups": [], "files": {"pins.yaml": 1}"#,
            #"bundle.files: "pins.yaml" is not base64 with padding (RFC 4648 section 4)"#
        ),
        (
            Self.head + #""groups": [], "files": {"pins.yaml": "", "a": "", "a/b": ""}"#,
            #"bundle.files: "a/b" is below another file"#
        ),
        (Self.whole + #", "local": "loosen""#, #"bundle.local: "loosen" is neither tighten nor any"#),
        (Self.whole + #", "local": null"#, "bundle.local: it is not a string"),
        (Self.whole + #", "stage": 0"#, "bundle.stage: 0 is not from 1 to 100"),
        (Self.whole + #", "stage": 101"#, "bundle.stage: 101 is not from 1 to 100"),
        (Self.whole + #", "stage": "10%""#, "bundle.stage: it is not an integer"),
        (Self.whole + #", "note": []"#, "bundle.note: it is not a string"),
        (Self.whole + #", "rollout": 1"#, #"bundle: "rollout" is not a known key"#),
        (Self.whole + #", "version": 2"#, #"bundle: line 1, column 93: the key "version" is written twice"#),
    ]) func aWrongBundleIsRefused(members: String, reason: String) {
        let envelope = Envelope(.bundle, payload: Array("{\(members)}".utf8))
        #expect(Self.reason { () throws(BundleError) in try PolicyBundle(envelope) } == reason)
    }

    private static let head = #""version": 1, "expires": "2027-06-30T12:00:00Z", "#
    private static let whole = head + #""groups": [], "files": {"pins.yaml": ""}"#

    @Test(arguments: [
        (#""bundle": {}"#, "timestamp.bundle.version: it is missing"),
        (
            #""bundle": {"version": 1, "sha256": "00"}"#,
            "timestamp.bundle.sha256: it is not 64 hexadecimal digits in lower case"
        ),
        (
            #""bundle": {"version": 1, "sha256": "\#(String(repeating: "A", count: 64))"}"#,
            "timestamp.bundle.sha256: it is not 64 hexadecimal digits in lower case"
        ),
        (
            #""bundle": {"version": 1, "sha256": "\#(String(repeating: "a", count: 65))"}"#,
            "timestamp.bundle.sha256: it is longer than 64 bytes"
        ),
        (#""bundle": {"version": 1, "sha256": "", "length": 1}"#, #"timestamp.bundle: "length" is not a known key"#),
    ]) func aWrongTimestampIsRefused(members: String, reason: String) {
        let envelope = Envelope(.timestamp, payload: Array("{\(Self.head)\(members)}".utf8))
        #expect(Self.reason { () throws(BundleError) in try BundleTimestamp(envelope) } == reason)
    }

    @Test func optionalMembersHaveDefaults() throws {
        let bundle = try PolicyBundle(Envelope(.bundle, payload: Array("{\(Self.whole)}".utf8)))
        #expect(bundle.local == .tighten)
        #expect(bundle.stage == nil)
        #expect(bundle.note == nil)
        #expect(bundle.groups == [])
        let all = try PolicyBundle(
            Envelope(.bundle, payload: Array(#"{\#(Self.whole), "local": "any", "stage": 10, "note": "é"}"#.utf8)))
        #expect(all.local == .any)
        #expect(all.stage == 10)
        #expect(all.note == "é")
    }

    // MARK: Paths and bounds

    @Test(arguments: ["pins.yaml", "certs/x.pem", "a/b/c/d", "..a", "a..", "...", "größe.pem", "a b", "a:b", "\\"])
    func aPathBelowThePinFileIsTaken(path: String) {
        #expect(BundleFile.objection(to: path) == nil)
    }

    @Test(arguments: [
        "", "/", "/a", "//a", "a//b", "a/", "./a", "a/.", "a/./b", "..", "../a", "a/..", "a/../b", "a\0b", "a\nb",
        "a\u{202E}b", "a\u{200B}", ".",
    ]) func anyOtherPathIsRefused(path: String) throws {
        #expect(BundleFile.objection(to: path) != nil)
        #expect(throws: BundleError.self) {
            try Self.envelope([BundleFile(path: "pins.yaml", bytes: []), BundleFile(path: path, bytes: [])])
        }
    }

    /// é in its two forms is one name for users, and for some file systems.
    @Test func pathsAreDistinctToEverybody() {
        let files = ["pins.yaml", "caf\u{E9}", "cafe\u{301}"].map { BundleFile(path: $0, bytes: []) }
        #expect(
            Self.reason { () throws(BundleError) in try Self.envelope(files) }
                == "bundle.files: \"cafe\u{301}\" is there twice")
    }

    @Test func pathsAreBounded() {
        for (count, isTaken) in [(1, true), (254, true), (255, true), (256, false)] {
            #expect((BundleFile.objection(to: String(repeating: "a", count: count)) == nil) == isTaken)
        }
    }

    @Test func theNumberOfFilesIsBounded() {
        for (count, isTaken) in [(255, true), (256, true), (257, false)] {
            let files =
                [BundleFile(path: "pins.yaml", bytes: [])] + (1..<count).map { BundleFile(path: "\($0)", bytes: []) }
            #expect(
                Self.reason { () throws(BundleError) in try Self.envelope(files) }
                    == (isTaken ? nil : "bundle.files: it has 257 files, more than 256"))
        }
    }

    @Test func theBytesOfFilesAreBounded() {
        let limit = BundleFile.bytesLimit
        for (count, isTaken) in [(limit - 1, true), (limit, true), (limit + 1, false)] {
            let half = [UInt8](repeating: 7, count: limit / 2)
            let files = [
                BundleFile(path: "pins.yaml", bytes: half),
                BundleFile(path: "a", bytes: [UInt8](repeating: 7, count: count - half.count)),
            ]
            #expect(
                Self.reason { () throws(BundleError) in try Self.envelope(files) }
                    == (isTaken ? nil : "bundle.files: they have more than 8 MiB together"))
        }
    }

    /// The largest content that the format allows fits into the file.
    @Test func theLargestBundleFits() throws {
        let files = [BundleFile(path: "pins.yaml", bytes: [UInt8](repeating: 0xFF, count: BundleFile.bytesLimit))]
        let bundle = try Self.envelope(files)
        let bytes = try BundleBed.document(bundle: bundle).bytes()
        #expect(bytes.count < BundleDocument.bytesLimit)
    }

    @Test func groupsStageAndNoteAreBounded() {
        func taken(groups: [String] = [], stage: Int? = nil, note: String? = nil) -> Bool {
            (try? PolicyBundle.envelope(
                version: 1, expires: 1, groups: groups, files: [BundleFile(path: "pins.yaml", bytes: [])],
                stage: stage, note: note)) != nil
        }
        for (count, isTaken) in [(0, true), (63, true), (64, true), (65, false)] {
            #expect(taken(groups: (0..<count).map { "g\($0)" }) == isTaken)
            #expect(PolicyBundle.isGroup(String(repeating: "a", count: count)) == (isTaken && count > 0))
        }
        for (stage, isTaken) in [(-1, false), (0, false), (1, true), (100, true), (101, false)] {
            #expect(taken(stage: stage) == isTaken)
        }
        for (count, isTaken) in [(999, true), (1000, true), (1001, false)] {
            #expect(taken(note: String(repeating: "n", count: count)) == isTaken)
        }
        for group in ["a", "A.b_c-9", "0"] { #expect(PolicyBundle.isGroup(group)) }
        for group in ["", ".a", "_a", "a b", "é", "a/b"] { #expect(!PolicyBundle.isGroup(group)) }
    }

    @Test func versionsAreBounded() throws {
        for (version, isTaken) in [(0, false), (1, true), (Fields.largest, true), (Fields.largest + 1, false)] {
            let files = [BundleFile(path: "pins.yaml", bytes: [])]
            #expect(((try? PolicyBundle.envelope(version: version, expires: 1, files: files)) != nil) == isTaken)
        }
    }

    @Test func timesAreWrittenAndRead() {
        for time: Int64 in [0, 1, 59, 3599, 86_399, 951_782_400, BundleBed.now, BundleTime.end - 1] {
            #expect(BundleTime.parse(BundleTime.text(time)) == time)
        }
        #expect(BundleTime.text(BundleBed.now) == "2027-01-15T08:00:00Z")
        #expect(BundleTime.text(BundleTime.end) == "9999-12-31T23:59:59Z")
        #expect(BundleTime.parse("2027-01-15T09:00:00+01:00") == BundleBed.now)
        for text in ["2027-01-15", "2027-01-15 08:00:00Z", "2027-01-15T08:00:00", "2027-02-30T08:00:00Z", "", "T"] {
            #expect(BundleTime.parse(text) == nil)
        }
    }

    private static func envelope(_ files: [BundleFile]) throws(BundleError) -> Envelope {
        try PolicyBundle.envelope(version: 1, expires: BundleBed.later, files: files)
    }

    private static func reason<Value>(_ make: () throws(BundleError) -> Value) -> String? {
        do throws(BundleError) {
            _ = try make()
            return nil
        } catch {
            return "\(error)"
        }
    }
}
