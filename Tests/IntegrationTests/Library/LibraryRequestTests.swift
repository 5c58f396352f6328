import Foundation
import PinnedSession
import PinproxySerialization
import Testing

/// How a Swift program writes requests: parameters, forms, Codable, URLs and defaults.
@Suite(.timeLimit(.minutes(5)))
struct LibraryRequestTests {
    /// What the origin's `/received` says.
    private struct Received: Decodable {
        struct Part: Decodable, Equatable {
            let name: String
            let file: String?
            let type: String
            let text: String
        }
        let method: String
        let target: String
        let lines: [String]
        let body: String
        let parts: [Part]

        func field(_ name: String) -> String? {
            lines.first { $0.lowercased().hasPrefix(name + ":") }.map {
                $0.dropFirst(name.count + 1).trimmingCharacters(in: .whitespaces)
            }
        }
    }

    /// Making a request, sending it and decoding its response throw one type.
    @Test func oneCatchHasOneType() async throws {
        try await withLibraryBed { bed in
            let session = try bed.session()
            func code(_ method: String, _ field: String, _ url: String) async -> Int {
                do {
                    var request = try HTTPRequest(url, method: method)
                    try request.set("X-Field", field)
                    try request.set(["a": .number("1")], by: JSONRequestSerializer())
                    request.body = try .json(["a": 1])
                    return try await session.value(for: request, as: Received.self).response.status
                } catch {
                    let failure: SessionError = error
                    #expect(failure.localizedDescription == failure.description && !failure.description.isEmpty)
                    return failure.code
                }
            }
            #expect(await code("POST", "x", bed.url + "/received") == 200)
            #expect(await code("post", "x", bed.url + "/received") == -1000)
            #expect(await code("POST", "x\r\ny", bed.url + "/received") == -1000)
            #expect(await code("POST", "x", bed.url + "/echo") == -1016)
            #expect(await code("POST", "x", "relative") == -1000)
            var request = try HTTPRequest(bed.url)
            request.method = try MethodName("POST")
            let error = #expect(throws: SessionError.self) {
                try request.set(["a": .set(["x"])], by: JSONRequestSerializer())
            }
            #expect(error?.code == -1016 && request.body.isEmpty)
        }
    }

    @Test func aFormHasItsContentTypeAndParts() async throws {
        try await withLibraryBed { bed in
            let session = try bed.session()
            let path = try bed.bed.file("report.csv", "a;b")
            let form = MultipartForm(
                parameters: [.init(key: "user", value: "x")],
                parts: [
                    try MultipartPart(
                        name: "memory", content: .data(Array("abc".utf8), fileName: "root.cer", type: nil)),
                    try MultipartPart(name: "file", content: .file(path: path, name: "report.csv", type: nil)),
                ])
            let streamed = try StreamedPart(name: "made", fileName: "made.txt", length: 6) {
                RequestBody.Stream {
                    $0.yield(Array("str".utf8))
                    $0.yield(Array("eam".utf8))
                    $0.finish()
                }
            }
            var request = try HTTPRequest(bed.url + "/received", method: "POST")
            let (body, _) = try await session.upload(for: request, from: .form(form, streams: [streamed]))
            let received = try JSONDecoder().decode(Received.self, from: Data(body))
            #expect(
                received.parts == [
                    .init(name: "user", file: nil, type: "text/plain", text: "x"),
                    .init(name: "memory", file: "root.cer", type: "application/x-x509-ca-cert", text: "abc"),
                    .init(name: "file", file: "report.csv", type: "text/csv", text: "a;b"),
                    .init(name: "made", file: "made.txt", type: "text/plain", text: "stream"),
                ])
            #expect(received.field("content-type") == form.contentType)
            #expect(received.field("content-length") == "\(received.body.utf8.count)")
            // Not with a boundary that the parts don't have; sent again after a redirect.
            try request.set("Content-Type", "multipart/form-data; boundary=other")
            request.url = bed.redirect(to: "/received", status: 307)
            request.body = .form(form, streams: [streamed])
            let again = try await session.value(for: request, as: Received.self).value
            #expect(again.field("content-type") == form.contentType && again.parts.count == 4)
            let only = try await session.upload(
                for: HTTPRequest(bed.url + "/received", method: "POST"),
                from: .form(MultipartForm(), streams: [streamed]))
            #expect(try JSONDecoder().decode(Received.self, from: Data(only.body)).parts.count == 1)
        }
    }

    @Test func aStreamedPartHasItsLength() async throws {
        try await withLibraryBed { bed in
            let session = try bed.session()
            for (length, pieces) in [(4, 1), (2, 1), (0, 1)] {
                let part = try StreamedPart(name: "a", fileName: "a", length: length) {
                    RequestBody.Stream {
                        for _ in 0..<pieces { $0.yield([1, 2, 3]) }
                        $0.finish()
                    }
                }
                let error = await failure {
                    let request = try HTTPRequest(bed.url + "/received", method: "POST")
                    _ = try await session.upload(for: request, from: .form(MultipartForm(), streams: [part]))
                }
                #expect(error?.code == -1021, "\(length): \(String(describing: error))")
            }
            #expect(throws: SessionError.self) { try StreamedPart(name: "", fileName: "a", length: 1) { nil } }
            #expect(throws: SessionError.self) { try StreamedPart(name: "a", fileName: "a\n", length: 1) { nil } }
            #expect(throws: SessionError.self) { try StreamedPart(name: "a", fileName: "a", length: -1) { nil } }
        }
    }

    private struct User: Codable, Equatable {
        var name: String
        var tags: [String]
    }

    @Test func valuesGoInAndComeOut() async throws {
        try await withLibraryBed { bed in
            let session = try bed.session()
            let user = User(name: "ä", tags: ["x", "y"])
            var request = try HTTPRequest(bed.url + "/received", method: "PUT", body: .json(user))
            let received = try await session.value(for: request, as: Received.self).value
            #expect(received.field("content-type") == "application/json")
            #expect(
                try JSONDecoder().decode(User.self, from: Data(received.body.unicodeScalars.map { UInt8($0.value) }))
                    == user)
            try request.set("Content-Type", "application/vnd.x+json")
            let (own, response) = try await session.value(for: request, as: Received.self)
            #expect(own.field("content-type") == "application/vnd.x+json" && response.status == 200)
            // What doesn't fit is named by its place, without its value.
            struct Wrong: Decodable {
                struct Line: Decodable { let s3cret: Int }
                let lines: [Line]
            }
            let error = await failure { _ = try await session.value(for: request, as: Wrong.self) }
            #expect(error?.description.contains("at lines[0]") == true, "\(String(describing: error))")
            for text in [
                "HTTP/1.1 500 No\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}",
                "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 2\r\n\r\n{}",
            ] {
                let error = await failure {
                    _ = try await session.value(
                        for: HTTPRequest(bed.url + "/answer/x/" + encoded(text)), as: [String: Int].self)
                }
                guard case .unacceptable? = error else { return note("\(String(describing: error))") }
            }
            #expect(throws: SessionError.self) { try RequestBody.json(["a": Double.nan]) }
        }
    }

    @Test func parametersAreLiterals() async throws {
        try await withLibraryBed { bed in
            let session = try bed.session()
            func received(_ parameters: ParameterValue, _ serializer: some RequestSerializer) async throws -> Received {
                var request = try HTTPRequest(bed.url + "/received", method: "POST")
                try request.set(parameters, by: serializer)
                return try await session.value(for: request, as: Received.self).value
            }
            let array = try await received([1, 0.5, ["a": nil]], JSONRequestSerializer())
            #expect(array.body == #"[1,0.5,{"a":null}]"# && array.field("content-type") == "application/json")
            let empty = try await received([:], HTTPRequestSerializer())
            #expect(empty.field("content-type") == "application/x-www-form-urlencoded" && empty.body.isEmpty)
            #expect(empty.field("content-length") == "0")
        }
    }

    @Test func foundationIsTakenAtTheEdge() async throws {
        try await withLibraryBed { bed in
            let session = try bed.session()
            let url = try #require(URL(string: bed.url + "/received?x=1#part"))
            let request = try HTTPRequest(url, method: "POST", body: .data(Data([97, 98])))
            #expect(try await session.value(for: request, as: Received.self).value.target == "/received?x=1")
            let file = URL(fileURLWithPath: try bed.bed.file("up", "from a file"))
            let sent = try await session.upload(for: request, from: .file(file))
            #expect(try JSONDecoder().decode(Received.self, from: Data(sent.body)).body == "from a file")
            let target = URL(fileURLWithPath: bed.bed.path("down"))
            try await session.download(for: HTTPRequest(bed.url + "/large/1000"), to: target)
            #expect(try Data(contentsOf: target).count == 1000)
            #expect(throws: SessionError.self) { try RequestBody.file(url) }
            let wrong = await failure { try await session.download(for: HTTPRequest(bed.url + "/never"), to: url) }
            #expect(wrong?.code == -1000 && wrong?.description.contains("x=1") == false)
        }
    }

    @Test func theEmptyURLIsTheBase() async throws {
        try await withLibraryBed { bed in
            let session = try bed.session { $0.baseURL = bed.url + "/echo" }
            #expect(try await Echo(session.data(for: HTTPRequest("")).body).target == "/echo/")
            #expect(await failure { _ = try await bed.session().data(for: HTTPRequest("")) }?.code == -1000)
        }
    }

    @Test func defaultFieldsAreTheConfigurations() async throws {
        try await withLibraryBed { bed in
            let languages = [try LanguageRange("de-AT"), try LanguageRange("en")]
            let session = try bed.session { $0.languages = languages }
            var request = try HTTPRequest(bed.url + "/echo")
            let echo = try Echo(try await session.data(for: request).body)
            #expect(echo.field("accept-language") == "de-AT;q=1, en;q=0.9")
            #expect(echo.field("accept-encoding") == "gzip, deflate")
            try request.set("Accept-Language", "fr")
            #expect(try await Echo(session.data(for: request).body).field("accept-language") == "fr")
            let silent = try bed.session {
                $0.languages = []
                $0.decodesBodies = false
                $0.userAgent = nil
            }
            let bare = try Echo(try await silent.data(for: HTTPRequest(bed.url + "/echo")).body)
            #expect(bare.field("accept-language") == nil && bare.field("accept-encoding") == nil)
            #expect(bare.field("user-agent") == nil)
        }
    }
}
