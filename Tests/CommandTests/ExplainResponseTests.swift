import Foundation
import Testing

/// `pinproxy explain --path`: the request as sent, the requirements on the response, and the verdict on a stored
/// response (`--response`).
@Suite(.serialized) struct ExplainResponseTests {
    private let bed: CommandBed

    init() throws {
        bed = try CommandBed(configuration: "pins: pins.yaml\n")
        try bed.write("key", "hunter2\n")
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: bed.path("key"))
        try bed.write("letter.txt", "0123456789")
        try bed.write(
            "pins.yaml",
            """
            hosts:
              - match: api.test
                request:
                  set_headers: {X-Api-Key: {file: key}}
                  headers: {Accept: application/json}
                  remove_headers: [X-Old]
                  upgrade_insecure: true
                response: {serializer: json, max_body: 100B}
                rules:
                  - path: /query
                    request: {parameters: {page: 1, name: "a b"}}
                  - path: /body
                    request: {serializer: json, parameters: {user: ann}}
                  - path: /form
                    request:
                      serializer: multipart
                      parts: [{name: letter, file: letter.txt}]
                      throttle: {packet: 4KiB, delay: 10ms}
                  - path: /convert
                    request: {convert_body: {from: form, to: json}}
                  - path: /report
                    response: {enforcement: report}
                  - path: /nulls
                    response: {remove_null_values: true}
                  - path: /any
                    response: {serializer: http, max_body: null}
              - {match: free.test}
              - {match: tunnel.test, action: tunnel}

            """)
    }

    private func judge(
        _ response: String, host: String = "api.test", path: String = "/v1", _ more: String...
    ) throws -> CommandBed.Outcome {
        try bed.write("answer", response)
        return try bed.configured("explain", rest: [host, "--path", path, "--response", bed.path("answer")] + more)
    }

    private static let json = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"

    // MARK: The request

    private func sent(_ path: String, method: String) throws -> CommandBed.Outcome {
        // With an acceptable response given, no connection is made.
        try judge(Self.json + "\r\n{}", path: path, "--method", method)
    }

    @Test func showsTheRequestAsItIsSent() throws {
        let outcome = try sent("/query?x=y", method: "GET")
        #expect(outcome.code == 0, "\(outcome)")
        #expect(
            outcome.output.contains(
                """

                The request as it would be sent:
                  GET /query?x=y&page=1&name=a%20b
                  removed           X-Old
                  set where absent  Accept: application/json
                  set               X-Api-Key: •••
                  http:// is sent as https://

                """), "\(outcome.output)")
        #expect(!outcome.output.contains("hunter2"))
    }

    @Test func showsTheBodyThatParametersBecome() throws {
        let output = try sent("/body", method: "POST").output
        #expect(output.contains("\n  POST /body\n"))
        #expect(
            output.contains(
                """
                  body              {"user":"ann"}
                  body              Content-Type: application/json, if the request lacks it
                  body              a request that brings a body keeps that, and gets no parameters

                """), "\(output)")
        let form = try sent("/form", method: "POST").output
        #expect(form.contains("bytes of multipart/form-data: parts [{name: letter, file: "), "\(form)")
        #expect(form.contains("\n  body              sent in packets: {packet: 4KiB, delay: 10ms}\n"), "\(form)")
        let converted = try sent("/convert", method: "POST").output
        #expect(
            converted.contains(
                "  body              of application/x-www-form-urlencoded is converted to application/json\n"))
    }

    @Test func saysThatARequestIsRefused() throws {
        let ambiguous = try sent("/v1/..%2fquery", method: "GET")
        #expect(ambiguous.code == 1)
        #expect(ambiguous.output.contains("by one of which rule 1 of the entry matches"), "\(ambiguous.output)")
        #expect(ambiguous.output.contains("Refused: a client gets 400 Ambiguous path for api.test\n"))
        #expect(ambiguous.output.contains("\n  Not judged: the request would be refused"))
    }

    // MARK: The response

    @Test func showsWhatTheResponseMustBe() throws {
        #expect(
            try sent("/v1", method: "GET").output.contains(
                """

                What the response must be:
                  status        200-299, 304
                  content type  application/json, text/json, text/javascript, if there is a body
                  body          JSON, held back until it is judged; beyond 8388608 bytes it is refused, at most 100B
                  if it is not  a client gets 502

                """))
        #expect(!(try sent("/any", method: "GET").output.contains("must be:")))
    }

    @Test(arguments: [
        ("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}", nil as String?),
        ("HTTP/2 200 \r\ncontent-type: application/json\r\n\r\n{}", nil),
        ("HTTP/1.1 200 OK\ncontent-type: text/json\n\n{}", nil),
        // curl has undone the chunks.
        ("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n[1]", nil),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", nil),
        ("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{}", nil),
        (
            """
            HTTP/1.1 302 Found\r\nContent-Length: 5\r\n\r\nHTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{}
            """,
            nil
        ),
        ("HTTP/1.1 200 Connection established\r\n\r\nHTTP/2 500 \r\n\r\n", "Unacceptable status 500 from api.test"),
        ("HTTP/1.1 302 Found\r\n\r\nHTTP/1.1 404 Gone\r\n\r\n", "Unacceptable status 404 from api.test"),
        ("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>", "Unacceptable content type text/html from api.test"),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx", "Missing content type from api.test"),
        (
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{\n\"a\": x}",
            "Body of api.test is not JSON: line 2, column 6: "
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n\"" + String(repeating: "x", count: 100) + "\"",
            "Body of api.test is longer than max_body, 100 bytes"
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\n\r\n{}",
            "Body of api.test can't be decoded: "
        ),
    ]) func judgesAStoredResponse(_ response: String, refusal: String?) throws {
        let outcome = try judge(response)
        #expect(outcome.errors == "")
        #expect(outcome.code == (refusal == nil ? 0 : 1), "\(outcome.output)")
        if let refusal {
            #expect(outcome.output.contains("\n  Refused: a client gets 502 \(refusal)"), "\(outcome.output)")
            #expect(outcome.output.contains("\nRule: response."), "\(outcome.output)")
        } else {
            #expect(outcome.output.contains("\n  Passed as it is\n"), "\(outcome.output)")
        }
        #expect(outcome.output.contains("\nchain     not judged: no connection is made with --response\n"))
        #expect(!outcome.output.contains("\nLet through"))
    }

    @Test func judgesByTheRuleOfTheRequest() throws {
        let bad = "HTTP/1.1 500 Oh\r\n\r\n"
        let report = try judge(bad, path: "/report")
        #expect(report.code == 0)
        #expect(
            report.output.contains(
                """
                \n  Passed, and reported (enforcement: report); enforced, a client would get 502 Unacceptable \
                status 500
                """
            ))
        #expect(!report.output.contains("Nothing of the response was passed on"), "\(report)")
        #expect(
            report.output.contains("The response is passed on, since the rule's enforcement is report."), "\(report)")
        #expect(
            report.output.contains("`pinproxy explain api.test --path /report` shows the rules in force."), "\(report)")
        let nulls = try judge(Self.json + "\r\n{\"a\": null, \"b\": 1}", path: "/nulls")
        #expect(nulls.code == 0)
        #expect(nulls.output.contains("\n  Rewritten: null values are removed, which leaves "), "\(nulls.output)")
        for (host, path, reason) in [
            ("api.test", "/any", "no rule says what it must be"), ("free.test", "/", "no rule says what it must be"),
            ("tunnel.test", "/", "the proxy sees no responses with action: tunnel"),
        ] {
            let outcome = try judge(bad, host: host, path: path)
            #expect(outcome.code == 0)
            #expect(outcome.output.contains("\n  Not judged: \(reason)\n"), "\(outcome.output)")
        }
        // An answer to HEAD has no body that could be wrong.
        #expect(
            try judge("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 9\r\n\r\n", "--method", "HEAD")
                .code == 0)
        let trailers = try judge(Self.json + "Transfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n{}X-Sum: 1\r\n")
        #expect(trailers.code == 1)
        #expect(trailers.output.contains("  Note: the response has trailers, which curl -i writes after the body"))
        let short = try judge(Self.json + "Content-Length: 9\r\n\r\n{}")
        #expect(short.code == 0)
        #expect(
            short.output.contains("  Note: Content-Length is 9, and the file has 2 bytes of body"), "\(short.output)")
    }

    @Test(arguments: [
        ("", "the file is empty; store one with curl -i"),
        ("{\"a\": 1}", "line 1: \"{\"a\": 1}\" is not a status line, as HTTP/1.1 200 OK is"),
        ("\u{0}\u{1}\u{2}\n", "line 1: \"\\u{0}\\u{1}\\u{2}\" is not a status line"),
        ("HTTP/1.1 999 No\r\n\r\n", "line 1: \"HTTP/1.1 999 No\" is not a status line"),
        ("HTTP/1.1 200 OK\r\nDate: x\r\n", "line 3: the file ends within the head, before its empty line"),
        ("HTTP/1.1 100 Continue\r\n\r\n", "line 1: status 100 is interim, and no final response follows it"),
        ("HTTP/1.1 200 OK\r\n{}\r\n\r\n", "line 2: \"{}\" is not a header field"),
    ]) func namesWhatIsWrongWithTheFile(_ text: String, message: String) throws {
        let outcome = try judge(text)
        #expect(outcome.code == 1)
        #expect(outcome.output == "")
        #expect(outcome.errors.contains("\(bed.path("answer")): \(message)"), "\(outcome.errors)")
    }

    @Test func namesAFileThatCannotBeRead() throws {
        let missing = try bed.configured(
            "explain", rest: ["api.test", "--path", "/", "--response", bed.path("nothing")])
        #expect(missing.code == 1)
        #expect(
            missing.errors.contains("\(bed.path("nothing")): the response can't be read: No such file or directory"))
        let usage = try bed.configured("explain", rest: ["api.test", "--response", bed.path("key")])
        #expect(usage.code == 2)
        #expect(usage.errors.contains("--response needs --path"))
    }

    @Test func programsGetItToo() throws {
        let outcome = try judge(
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n[\n1,]", path: "/body", "--method", "POST",
            "--json")
        #expect(outcome.code == 1)
        #expect(!outcome.output.contains("hunter2"))
        let object = try #require(try JSONSerialization.jsonObject(with: Data(outcome.output.utf8)) as? [String: Any])
        #expect(object["let_through"] == nil)
        let request = try #require(object["request"] as? [String: Any])
        let sent = try #require(request["sent"] as? [String: Any])
        #expect(sent["target"] as? String == "/body")
        let headers = try #require(sent["headers"] as? [[String: String]])
        #expect(
            headers == [
                ["edit": "remove", "name": "X-Old"],
                ["edit": "set-where-absent", "name": "Accept", "value": "application/json"],
                ["edit": "set", "name": "X-Api-Key", "value": "•••"],
            ])
        #expect((sent["body"] as? [String: Any])?["text"] as? String == #"{"user":"ann"}"#)
        let expected = try #require(object["expected"] as? [String: Any])
        #expect(expected["status"] as? [String] == ["200-299", "304"])
        #expect(expected["serializers"] as? [String] == ["json"])
        #expect(expected["max_body"] as? Int == 100)
        let response = try #require(object["response"] as? [String: Any])
        #expect(response["outcome"] as? String == "refused")
        #expect(response["status"] as? Int == 200)
        let finding = try #require(response["finding"] as? [String: Any])
        #expect(finding["code"] as? Int == -1016)
        #expect(finding["line"] as? Int == 2)
        #expect(finding["column"] as? Int == 3)
        #expect((response["refusal"] as? [String: Any])?["status"] as? Int == 502)
    }
}
