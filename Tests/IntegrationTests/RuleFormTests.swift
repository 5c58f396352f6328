import Foundation
import Testing

/// Multipart forms with files.
@Suite(.timeLimit(.minutes(5)))
struct RuleFormTests {
    private static let bytes = (0..<100_000).map { UInt8(truncatingIfNeeded: $0 &* 7 >> 2) }

    /// - Parameter more: further keys of the request rules.
    private func prepare(
        _ bed: TestBed, path: String, more: String = "", files: [String: [UInt8]] = [:]
    ) async throws -> SharedBed {
        try bed.file("proxy/small.csv", "a;b\r\n1;2\r\n")
        try bed.file("proxy/file.bin", Self.bytes)
        for (name, bytes) in files { try bed.file("proxy/" + name, bytes) }
        let request = """
            serializer: multipart, parameters: {user: {name: "Ä \\"x\\""}}, parts: [{name: note, value: "line 1\\nline \
            2"}, \
            {name: table, file: small.csv, type: text/csv}, {name: "d a\\"ta", file: file.bin, file_name: "ü.bin"}, \
            {name: data, value: "{}", file_name: "a\\"b.json"}, \
            {name: typed, value: x, type: text/csv}]\(more)
            """
        return try await RuleBed.prepare(bed, rules: ["{path: \(path), request: {\(request)}}"])
    }

    private func sha256(_ file: String, in bed: TestBed) async throws -> String {
        String(try await bed.run(["sha256sum", bed.path(file)]).output.prefix(64))
    }

    /// Python's email package and Node's formData() read the same.
    @Test func aFormIsReadBackByPythonAndNode() async throws {
        try await withTestBed { bed in
            let shared = try await prepare(bed, path: "\"/received/**\"")
            let digest = try await sha256("proxy/file.bin", in: bed)
            let node = try await PythonPeer(in: bed, script: "form.mjs", interpreter: "node")
            for url in [shared.url, shared.plainURL, "http://\(OriginBed.name):\(node.port)"] {
                let run = try await shared.curl("-X", "POST", url + "/received/form")
                let parts = try #require(try? JSONDecoder().decode(Parts.self, from: Data(run.output.utf8)), "\(run)")
                    .parts
                #expect(parts.count == 6, "\(run)")
                guard parts.count == 6 else { return }
                #expect(parts[0].name == "user[name]" && parts[1].name == "note", "\(run)")
                #expect(parts[1].text == "line 1\nline 2" && parts[0].length == 6, "\(run)")
                #expect(
                    parts[2].name == "table" && parts[2].file == "small.csv" && parts[2].type == "text/csv", "\(run)")
                #expect(parts[3].sha256 == digest && parts[3].length == Self.bytes.count, "\(run)")
                #expect(
                    parts[4].name == "data" && parts[4].type == "application/json" && parts[4].length == 2, "\(run)")
                #expect(parts[4].file == "a\"b.json" || parts[4].file == "a%22b.json", "\(run)")
                #expect(parts[5].name == "typed" && parts[5].file == nil && parts[5].length == 1, "\(run)")
                // Node shows the type of files only.
                #expect(parts[5].type == (url.hasSuffix(":\(node.port)") ? nil : "text/csv"), "\(run)")
            }
            // Later requests on the same connection are right.
            let several = try await shared.curl(
                "-X", "POST", shared.url + "/received/a", shared.url + "/received/b", "--next", "-sS",
                shared.url + "/large/5")
            #expect(several.output.components(separatedBy: digest).count == 3, "\(several)")
        }
    }

    private struct Parts: Decodable {
        struct Part: Decodable {
            let name: String
            let file: String?
            let type: String?
            let length: Int
            let sha256: String
            let text: String
        }

        let parts: [Part]
    }

    @Test func aThrottledFormArrivesInOrder() async throws {
        try await withTestBed { bed in
            let shared = try await prepare(
                bed, path: "\"/received/**\"", more: ", throttle: {packet: 16KiB, delay: 1ms}")
            let digest = try await sha256("proxy/file.bin", in: bed)
            for url in [shared.url, shared.plainURL] {
                let run = try await shared.curl("-X", "POST", url + "/received/form")
                #expect(run.output.contains(digest), "\(run)")
            }
            // A client's own body passes too, whatever limits it exceeds.
            let run = try await shared.curl(
                "--data-binary", "@\(bed.path("proxy/file.bin"))", shared.url + "/received/own")
            #expect(run.output.contains(digest), "\(run)")
        }
    }

    /// A pause required by the rule doesn't count as the origin's silence.
    @Test func aPauseMayBeLongerThanTheTimeOuts() async throws {
        try await withTestBed { bed in
            let shared = try await RuleBed.prepare(
                bed, rules: ["{path: /received/**, request: {throttle: {packet: 4KiB, delay: 3s}}}"],
                sections: ["timeouts": ["first_byte: 2s", "idle_client: 2s"]])
            let run = try await shared.curl(
                "-H", "Expect:", "--data-binary", String(repeating: "x", count: 6000), shared.url + "/received/slowly")
            #expect(try ReceivedRequest(run).length == 6000)
        }
    }

    @Test func formsAreNotForGET() async throws {
        try await withTestBed { bed in
            let shared = try await prepare(bed, path: "\"/received/**\"")
            let run = try ReceivedRequest(try await shared.curl(shared.url + "/received/x"))
            #expect(run.body.isEmpty && run.values("Content-Type") == [], "\(run)")
        }
    }

    @Test func aFileThatIsMissingIsToldAndNothingSent() async throws {
        try await withTestBed { bed in
            let shared = try await prepare(bed, path: "\"/received/**\"")
            try FileManager.default.removeItem(atPath: bed.path("proxy/file.bin"))
            let run = try await shared.curl("-i", "-X", "POST", shared.url + "/received/form")
            #expect(run.output.hasPrefix("HTTP/1.1 500 ") && run.output.contains("file.bin can't be sent"), "\(run)")
            #expect(shared.origin?.events.all("request").isEmpty == true)
        }
    }

    private func sparse(_ bed: TestBed, _ size: Int) throws {
        #expect(FileManager.default.createFile(atPath: bed.path("proxy/file.bin"), contents: nil))
        #expect(truncate(bed.path("proxy/file.bin"), size) == 0)
    }

    /// 50 MB pass through, and nothing keeps them.
    @Test func aLargeFileIsStreamed() async throws {
        try await withTestBed { bed in
            let shared = try await prepare(bed, path: "\"/echo/**\"")
            #expect(try await shared.curl("-X", "POST", shared.url + "/echo/small").succeeded)
            let before = try shared.proxy.peakMemory()
            try sparse(bed, 50_000_000)
            let run = try await shared.curl("-X", "POST", shared.url + "/echo/large")
            let length =
                run.output.components(separatedBy: "\"length\": ").last.flatMap { Int($0.prefix { $0.isNumber }) } ?? 0
            #expect(length > 50_000_000, "\(run)")
            if !Sanitizer.isOn { #expect(try shared.proxy.peakMemory() < before + 16 << 20) }
        }
    }

    /// The origin never gets as much as the length promises.
    @Test func aFileThatShrinksWhileItIsSentBreaksTheRequestOff() async throws {
        try await withTestBed { bed in
            let shared = try await prepare(bed, path: "\"/slow-echo/**\"")
            try sparse(bed, 200_000_000)
            async let sent = shared.curl("-i", "-X", "POST", shared.url + "/slow-echo/x")
            let request = try await shared.origin?.events.first("request")
            truncate(bed.path("proxy/file.bin"), 1_000_000)
            let run = try await sent
            #expect(run.output.hasPrefix("HTTP/1.1 500 ") && run.output.contains("changed while it was sent"), "\(run)")
            let number = try #require(request?["connection"])
            _ = try await shared.origin?.events.first("ended") { $0["connection"] == number }
        }
    }

    /// Its reset is noticed at once. Its close changes nothing until the response is there.
    @Test func aClientThatGoesAwayTakesTheUploadWithIt() async throws {
        try await withTestBed { bed in
            let shared = try await prepare(bed, path: "\"/slow-echo/**\"")
            // More than is sent while the test waits.
            try sparse(bed, 100_000_000_000)
            let number = try await abandonedUpload(in: shared)
            _ = try await shared.plainOrigin?.events.first("closed") { $0["connection"] == number }
        }
    }

    /// - Returns: the origin's connection.
    private func abandonedUpload(in shared: SharedBed) async throws -> String {
        let connection = try RawConnection(to: shared.proxy)
        try await connection.send(
            """
            POST \(shared.plainURL)/slow-echo/x HTTP/1.1\r\nHost: \
            \(OriginBed.name):\(shared.secondOriginPort)\r\nContent-Length: 0\r\n\r\n
            """
        )
        let request = try await shared.plainOrigin?.events.first("request")
        try await connection.send("GET / HTTP/1.1\r\n")
        try await connection.resetOnClose()
        return try #require(request?["connection"])
    }
}
