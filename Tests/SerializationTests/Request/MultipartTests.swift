import Foundation
import PinproxyTestBodies
import Testing

@testable import PinproxySerialization

/// Multipart forms: their bytes, how others parse them, and files that change meanwhile.
@Suite struct MultipartTests {
    private let boundary = "Boundary+0123456789ABCDEF"

    private func form(_ parameters: ParameterValue, _ parts: [MultipartPart] = []) -> MultipartForm {
        guard case .dictionary(let pairs) = parameters else { fatalError() }
        return MultipartForm(parameters: pairs, parts: parts, boundary: boundary)
    }

    /// Reads the whole body, in pieces of `size`.
    private func read(_ body: MultipartBody, by size: Int = 7) throws -> [UInt8] {
        var bytes: [UInt8] = []
        while true {
            var piece = [UInt8](repeating: 0, count: size)
            let count = try piece.withUnsafeMutableBytes { try body.read(into: $0) }
            if count == 0 { return bytes }
            bytes += piece[..<count]
        }
    }

    private func file(_ path: String, name: String = "f.txt", type: String? = nil) throws -> MultipartPart {
        try MultipartPart(name: "file", content: .file(path: path, name: name, type: try type.map(MediaType.init)))
    }

    @Test func isWrittenAsTheOriginalWritesIt() throws {
        let bed = try FileBed()
        let path = try bed.write("report.csv", "a;b\r\n")
        let form = form(["user": ["name": "x", "tags": ["ä"]], "n": nil], [try file(path, name: "report.csv")])
        let body = try form.open()
        let written = try read(body)
        let expected = [
            "--Boundary+0123456789ABCDEF", #"Content-Disposition: form-data; name="user[name]""#, "", "x",
            "--Boundary+0123456789ABCDEF", #"Content-Disposition: form-data; name="user[tags][]""#, "", "ä",
            "--Boundary+0123456789ABCDEF", #"Content-Disposition: form-data; name="n""#, "", "",
            "--Boundary+0123456789ABCDEF", #"Content-Disposition: form-data; name="file"; filename="report.csv""#,
            "Content-Type: text/csv", "", "a;b", "", "--Boundary+0123456789ABCDEF--", "",
        ].joined(separator: "\r\n")
        #expect(String(decoding: written, as: UTF8.self) == expected)
        #expect(body.contentLength == expected.utf8.count)
        #expect(form.contentType == "multipart/form-data; boundary=Boundary+0123456789ABCDEF")
        // Again, for a resent request, and in pieces of every size.
        for size in [1, 2, 3, 64, 100_000] {
            body.rewind()
            #expect(try read(body, by: size) == written)
        }
    }

    @Test func theBoundaryIsChosen() throws {
        let (one, other) = (MultipartForm(), MultipartForm())
        #expect(one.isEmpty && one.boundary != other.boundary && one.boundary.hasPrefix("Boundary+"))
        #expect(one.contentType == "multipart/form-data; boundary=\(one.boundary)")
    }

    @Test(arguments: ["a.cer", "a.CRT"]) func certificatesHaveTheirType(_ name: String) throws {
        let part = try MultipartPart(name: "c", content: .data([1], fileName: name, type: nil))
        let body = try read(MultipartForm(parts: [part]).open())
        #expect(String(decoding: body, as: UTF8.self).contains("Content-Type: application/x-x509-ca-cert\r\n"))
    }

    /// Parts that are sent from elsewhere.
    @Test func aFormIsContinued() throws {
        let form = form(["a": "x"])
        var bytes = try read(form.open(isWhole: false))
        bytes += form.opening(of: "s\"", fileName: "f.txt", nil, isFirst: false)
        bytes += Array("text".utf8)
        bytes += form.closing
        let expected = [
            "--Boundary+0123456789ABCDEF", #"Content-Disposition: form-data; name="a""#, "", "x",
            "--Boundary+0123456789ABCDEF", #"Content-Disposition: form-data; name="s%22"; filename="f.txt""#,
            "Content-Type: text/plain", "", "text", "--Boundary+0123456789ABCDEF--", "",
        ].joined(separator: "\r\n")
        #expect(String(decoding: bytes, as: UTF8.self) == expected)
    }

    /// appendPartWithFileData:name:fileName:mimeType:, and with fewer properties of the data.
    @Test func dataIsAPartWithAFileNameAndAType() throws {
        func part(_ bytes: [UInt8], _ fileName: String?, _ type: String?) throws -> MultipartPart {
            try MultipartPart(name: "d", content: .data(bytes, fileName: fileName, type: try type.map(MediaType.init)))
        }
        let form = try form(
            [:],
            [
                part([0, 13, 10, 255], "a\".png", nil), part([], "b", "text/csv"),
                part([0x7B, 0x7D], nil, "application/json"), part([65], nil, nil),
            ])
        let expected =
            [
                "--Boundary+0123456789ABCDEF", #"Content-Disposition: form-data; name="d"; filename="a%22.png""#,
                "Content-Type: image/png", "", "",
            ].joined(separator: "\r\n").utf8 + [0, 13, 10, 255]
            + [
                "", "--Boundary+0123456789ABCDEF", #"Content-Disposition: form-data; name="d"; filename="b""#,
                "Content-Type: text/csv", "", "",
                "--Boundary+0123456789ABCDEF", #"Content-Disposition: form-data; name="d""#,
                "Content-Type: application/json", "", "{}",
                "--Boundary+0123456789ABCDEF", #"Content-Disposition: form-data; name="d""#, "", "A",
                "--Boundary+0123456789ABCDEF--", "",
            ].joined(separator: "\r\n").utf8
        let body = try form.open()
        #expect(try read(body) == Array(expected))
        #expect(body.contentLength == expected.count)
        for wrong in ["", "a\r\nX-Evil: 1"] { #expect(throws: InvalidValue.self) { try part([], wrong, nil) } }
    }

    @Test func boundariesAreRandomAndHave16Digits() throws {
        var random = SeededGenerator(seed: 3)
        for _ in 0..<200 {
            #expect(MultipartForm.boundary(using: &random).wholeMatch(of: /Boundary\+[0-9A-F]{16}/) != nil)
        }
        let request = RequestOutline(method: "POST", target: Array("/".utf8))
        let serializer = MultipartRequestSerializer(parts: [try MultipartPart(name: "a", content: .value("b"))])
        guard case .form(let one) = try serializer.serialize([], into: request),
            case .form(let other) = try serializer.serialize([], into: request)
        else {
            Issue.record("no form")
            return
        }
        #expect(one.boundary != other.boundary)
    }

    @Test(arguments: [
        ("a.txt", "text/plain"), ("A.TXT", "text/plain"), ("a.tar.gz", "application/gzip"), ("a.JPeG", "image/jpeg"),
        ("a", "application/octet-stream"), ("txt", "application/octet-stream"), ("a.", "application/octet-stream"),
        ("a.unknown", "application/octet-stream"), (".json", "application/json"), ("", "application/octet-stream"),
    ])
    func theEndingSaysTheType(_ name: String, _ type: String) { #expect(FileExtension.mediaType(of: name) == type) }

    /// The table agrees with Debian's media-types, for endings that both know.
    @Test func typesAreThoseOfTheSystem() throws {
        let lines = try String(contentsOfFile: "/etc/mime.types", encoding: .utf8).split(separator: "\n")
        var compared = 0
        for line in lines where !line.hasPrefix("#") {
            let words = line.split(whereSeparator: \.isWhitespace).map(String.init)
            for ending in words.dropFirst() where !ending.contains(".") {
                let type = FileExtension.mediaType(of: "f.\(ending)")
                // The original's; the system has the newer application/pkix-cert.
                guard type != "application/octet-stream", ending != "cer" else { continue }
                compared += 1
                #expect(type == words[0], "\(ending)")
            }
        }
        #expect(compared > 50)
    }

    @Test func aTypeThatIsGivenCounts() throws {
        let bed = try FileBed()
        let part = try file(try bed.write("f", ""), name: "f.txt", type: "text/csv; charset=utf-8")
        let written = String(decoding: try read(try form([:], [part]).open()), as: UTF8.self)
        #expect(written.contains("\r\nContent-Type: text/csv; charset=utf-8\r\n\r\n"))
    }

    /// Python's and Node's parsers read back names, file names and contents, whatever is in them.
    @Test(arguments: [
        (
            PeerProgram.python,
            """
            import email.parser, email.policy, json, sys
            head = ("Content-Type: " + sys.argv[1] + "\\r\\n\\r\\n").encode()
            message = email.parser.BytesParser(policy=email.policy.HTTP).parsebytes(head + sys.stdin.buffer.read())
            assert message.is_multipart() and not message.defects, message.defects
            out = []
            for part in message.iter_parts():
                disposition = part["Content-Disposition"]
                assert part.get_content_disposition() == "form-data" and not part.defects
                out.append([disposition.params["name"], disposition.params.get("filename"),
                    part["Content-Type"], part.get_payload(decode=True).hex()])
            print(json.dumps(out))
            """
        ),
        (
            .node,
            """
            const body = require("fs").readFileSync(0);
            new Response(body, {headers: {"Content-Type": process.argv[1]}}).formData().then(async form => {
                const out = [];
                for (const [name, value] of form)
                    out.push(typeof value == "string" ? [name, null, null, Buffer.from(value).toString("hex")]
                        : [name, value.name, value.type, Buffer.from(await value.arrayBuffer()).toString("hex")]);
                const escaped = c => "\\\\u" + c.charCodeAt(0).toString(16).padStart(4, "0");
                process.stdout.write(JSON.stringify(out).replace(/[^ -~]/g, escaped));
            });
            """
        ),
    ])
    func othersReadTheParts(_ peer: PeerProgram, _ script: String) throws {
        let bed = try FileBed()
        var random = SeededGenerator(seed: 4)
        let bytes = (0..<5000).map { _ in UInt8.random(in: .min ... .max, using: &random) }
        let paths = [try bed.write("binary", bytes), try bed.write("empty", "")]
        let parameters: ParameterValue = [
            "a b": "x\r\n--Boundary+", "q\"\r\nX-A: y": "1", "k": ["ü\\;=": ["x", nil]], "e": "",
        ]
        let form = form(
            parameters,
            [
                try file(paths[0], name: "a\"b; x=y\\z.png"), try file(paths[1], name: "größe 日.bin"),
                try MultipartPart(name: "last\"", content: .value("")),
            ])
        let body = try read(try form.open(), by: 4096)
        let parts = try #require(try peer.run(script, [form.contentType], input: body) as? [[Any]])
        func hex(_ bytes: some Sequence<UInt8>) -> String { bytes.map { String(format: "%02x", $0) }.joined() }
        // Browsers' escapes of a quote and a line break. Node reverts that of the quote.
        let isNode = peer == .node
        let quote = isNode ? "\"" : "%22"
        let escaped = isNode ? "q\"\r\nX-A: y" : "q%22%0D%0AX-A: y"
        // Python's parser takes a backslash in a quoted text for an escape.
        let slash = isNode ? "\\" : ""
        let expected: [[String?]] = [
            ["a b", nil, nil, hex("x\r\n--Boundary+".utf8)], [escaped, nil, nil, hex("1".utf8)],
            ["k[ü\(slash);=][]", nil, nil, hex("x".utf8)], ["k[ü\(slash);=][]", nil, nil, ""], ["e", nil, nil, ""],
            ["file", "a\(quote)b; x=y\(slash)z.png", "image/png", hex(bytes)],
            ["file", "größe 日.bin", "application/octet-stream", ""], ["last\(quote)", nil, nil, ""],
        ]
        #expect(parts.map { $0.map { $0 as? String } } == expected)
    }

    // MARK: Irregular files

    @Test func onlyRegularFilesAreSent() throws {
        let bed = try FileBed()
        let pipe = bed.path("pipe")
        #expect(mkfifo(pipe, 0o600) == 0)
        for (path, words) in [
            (bed.path("missing"), "No such file or directory"), (bed.path(""), "it is not a regular file"),
            (pipe, "it is not a regular file"), ("/dev/null", "it is not a regular file"),
        ] {
            let error = #expect(throws: RequestSerializationError.self) { try form([:], [try file(path)]).open() }
            #expect(error?.description == "The file \(path) can't be sent: \(words)")
            #expect(error?.code.rawValue == -1000)
        }
    }

    /// What happens to a file after it is opened, and before its last byte is read.
    @Test(arguments: ["shrink", "grow", "rewrite", "empty"]) func aFileThatChangesBreaksTheBody(_ change: String) throws
    {
        let bed = try FileBed()
        let path = try bed.write("f", [UInt8](repeating: 1, count: 1000))
        let body = try form(["a": "b"], [try file(path)]).open()
        // Some of it has been sent already.
        var piece = [UInt8](repeating: 0, count: 400)
        #expect(try piece.withUnsafeMutableBytes { try body.read(into: $0) } == 400)
        let handle = try #require(FileHandle(forUpdatingAtPath: path))
        switch change {
        case "shrink": try handle.truncate(atOffset: 999)
        case "grow":
            try handle.seekToEnd()
            try handle.write(contentsOf: Data([2]))
        case "rewrite": try handle.write(contentsOf: Data(repeating: 2, count: 1000))
        default: try handle.truncate(atOffset: 0)
        }
        // The clock of the file system may stand still between two writes.
        try FileManager.default.setAttributes([.modificationDate: Date(timeIntervalSinceNow: 10)], ofItemAtPath: path)
        var sent = 400
        let error = #expect(throws: RequestSerializationError.self) {
            while true {
                let count = try piece.withUnsafeMutableBytes { try body.read(into: $0) }
                sent += count
                if count == 0 { return }
            }
        }
        #expect(error?.code.rawValue == -1021)
        #expect(error?.description.hasPrefix("The file \(path) changed while it was sent: it ") == true)
        #expect(sent < body.contentLength)
        // It stays broken.
        #expect(throws: RequestSerializationError.self) { try read(body) }
        body.rewind()
        #expect(throws: RequestSerializationError.self) { try read(body) }
    }

    /// Files in /proc report a length of 0.
    @Test func aFileWithoutALengthIsNotTakenForEmpty() throws {
        let body = try form([:], [try file("/proc/self/status")]).open()
        let error = #expect(throws: RequestSerializationError.self) { try read(body) }
        #expect(error?.description.hasSuffix("it is longer than the 0 bytes that it had") == true)
    }

    @Test func aFileThatIsReplacedIsSentAsItWas() throws {
        let bed = try FileBed()
        let path = try bed.write("f", "old")
        let body = try form([:], [try file(path)]).open()
        try FileManager.default.moveItem(atPath: try bed.write("g", "newer"), toPath: path + "2")
        try FileManager.default.removeItem(atPath: path)
        let written = String(decoding: try read(body), as: UTF8.self)
        #expect(written.contains("\r\n\r\nold\r\n--"))
        #expect(written.utf8.count == body.contentLength)
    }

    /// Files that no disk could hold: the length is exact, and a sum that isn't a number is an error.
    @Test func lengthsOfHugeFiles() throws {
        let bed = try FileBed()
        let path = try bed.write("f", "")
        let huge = 1 << 43
        try #require(FileHandle(forUpdatingAtPath: path)).truncate(atOffset: UInt64(huge))
        let part = try file(path)
        let body = try form([:], [part, part]).open()
        #expect(body.contentLength > 2 * huge && body.contentLength < 2 * huge + 1000)
    }
}

/// A folder that is deleted after the test.
final class FileBed {
    private let folder = FileManager.default.temporaryDirectory.appending(path: "serialization-\(UUID())").path

    init() throws { try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true) }

    deinit { try? FileManager.default.removeItem(atPath: folder) }

    func path(_ name: String) -> String { folder + "/" + name }

    func write(_ name: String, _ text: String) throws -> String { try write(name, Array(text.utf8)) }

    func write(_ name: String, _ bytes: [UInt8]) throws -> String {
        try Data(bytes).write(to: URL(filePath: path(name)))
        return path(name)
    }
}
