import Foundation
import PinproxyHTTPWire
import PinproxySecurity
import PinproxySerialization
import PinproxySession
import Testing

@testable import PinproxyConfiguration

/// Each key of `session`, `request`, `response` and `rules`, valid and invalid.
@Suite struct RuleReadingTests {
    private static let pin = "sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="

    private func rules(_ entry: String) throws -> ExchangeRules {
        let snapshot = try RuleBed("hosts: [{match: a.test, \(entry)}]\n").load()
        return try #require(snapshot.entry(for: "a.test", port: 443)?.rules).rules(.none)
    }

    @Test func readsTheSession() throws {
        let session = try rules(
            """
            session: {timeout: 1m30s, minimum_rate: 2KiB/1m, redirects: follow, max_redirects: 5, credentials: {user: \
            ann, password_file: secret},
              resume: false, coalesce: true, coalesce_with: [range, cookie], max_active: 4, order: lifo, service_type: \
            video, allow_wwan: false,
              base_url: "HTTPS://API.example.com:8443/v2", http: [http/1.1, h2], ping: 30s}
            """
        ).session
        #expect(session.http == [.http1, .http2] && session.ping == .seconds(30))
        #expect(session.timeout == .seconds(90))
        #expect(session.minimumRate == MinimumRate(bytes: 2048, within: .seconds(60)))
        #expect(session.redirects == .follow)
        #expect(session.maxRedirects == 5)
        #expect(session.credentials?.user == "ann")
        let secure = RequestURL.Origin(
            isSecure: true, authority: try Authority.parse("a.test:443", defaultPort: nil).get())
        let plain = RequestURL.Origin(isSecure: false, authority: secure.authority)
        #expect(session.credentials?.usable(at: secure)?.credentials.password.text == "hunter2")
        #expect(session.credentials?.usable(at: plain) == nil)
        #expect(!session.resume)
        #expect(session.coalesce)
        #expect(session.coalesceWith == [.range, .cookie])
        #expect(session.maxActive == 4)
        #expect(session.order == .lifo)
        #expect(session.serviceType == .video)
        #expect(session.serviceType.dscp == 34)
        #expect(!session.allowWWAN)
        let url = try #require(session.baseURL)
        #expect(url.isSecure && url.authority.description == "api.example.com:8443" && url.path == "/v2/")
        #expect(url.description == "https://api.example.com:8443/v2/")
    }

    /// Accepted, since some servers want a bare key; but with a warning, and without showing the token.
    @Test(arguments: ["Authorization", "authorization"])
    func aBareTokenAsAuthorizationIsWarnedOf(_ name: String) throws {
        let problems = try RuleBed("hosts: [{match: a.test, request: {set_headers: {\(name): {file: secret}}}}]\n")
            .problems()
        #expect(
            problems.count == 1
                && problems[0].contains("warning: \(name): the file holds one word, and no scheme before it"),
            "\(problems)")
        #expect(!problems[0].contains("hunter2"))
        #expect(
            try RuleBed("hosts: [{match: a.test, request: {set_headers: {X-Api-Key: {file: secret}}}}]\n").problems()
                == [])
    }

    @Test func anEmptyFileForAuthorizationIsWarnedOf() throws {
        let problems = try RuleBed(
            "hosts: [{match: a.test, request: {set_headers: {Authorization: {file: empty}}}}]\n"
        ).problems()
        let warning = "warning: Authorization: the file is empty; most servers expect"
        #expect(problems.count == 1 && problems[0].contains(warning), "\(problems)")
    }

    @Test func readsTheRequest() throws {
        let request = try rules(
            """
            request: {headers: {X-Client: fleet, X-Key: {file: secret}}, set_headers: {User-Agent: "tool/1 (a: b)"},
              remove_headers: [Referer, dnt], accept_language: [de-AT, de, en], authorization: {user: ann, \
            password_file: secret},
              cookies: strip, serializer: multipart, parameters: {user: {name: x, tags: [a, "1", 1, null, "null", \
            true, "true"]}, b: !!str 5},
              query_methods: [GET, PROPFIND], convert_body: {from: form, to: property-list},
              parts: [{name: n, value: 5}, {name: f, file: report.csv, file_name: r.csv, type: text/csv}, {name: g, \
            file: report.csv}],
              throttle: {packet: 16KiB, delay: 200ms}, upgrade_insecure: true}
            """
        ).request
        #expect(request.headers.map(\.name.description) == ["X-Client", "X-Key"])
        #expect(request.headers.map(\.value.text) == ["fleet", "hunter2"])
        #expect(request.headers.map(\.value.isSecret) == [false, true])
        #expect(request.setHeaders.map(\.value.text) == ["tool/1 (a: b)"])
        #expect(request.removeHeaders.map(\.description) == ["Referer", "dnt"])
        #expect(request.acceptLanguage.map(\.description) == ["de-AT", "de", "en"])
        #expect(request.authorization?.password.text == "hunter2")
        #expect(request.cookies == .strip)
        #expect(request.serializer == .multipart)
        #expect(
            request.parameters == [
                .init(
                    key: "user",
                    value: .dictionary([
                        .init(key: "name", value: .string("x")),
                        .init(
                            key: "tags",
                            value: .array([
                                .string("a"), .string("1"), .number("1"), .null, .string("null"), .bool(true),
                                .string("true"),
                            ])),
                    ])),
                .init(key: "b", value: .string("5")),
            ])
        #expect(request.queryMethods.map(\.description) == ["GET", "PROPFIND"])
        #expect(request.convertBody == BodyConversion(from: .form, to: .propertyList))
        #expect(request.parts.map(\.name) == ["n", "f", "g"])
        #expect(request.parts[0].content == .value("5"))
        guard case .file(let path, "r.csv", let type?) = request.parts[1].content else {
            Issue.record("\(request.parts[1])")
            return
        }
        #expect(path.hasSuffix("/pins/report.csv"))
        #expect(type.description == "text/csv")
        if case .file(_, let name, let type) = request.parts[2].content {
            #expect((name, type == nil) == ("report.csv", true))
        }
        #expect(request.throttle == Throttle(packet: 16 << 10, delay: .milliseconds(200)))
        #expect(request.upgradeInsecure)
    }

    @Test func readsTheResponse() throws {
        let response = try rules(
            """
            response: {status: [200-299, 304], content_types: [application/json, "image/*"], serializer: [json, \
            property-list, http],
              remove_null_values: true, max_body: 1GiB, oversize: pass, enforcement: report}
            """
        ).response
        #expect(response.status?.map(\.codes) == [200...299, 304...304])
        #expect(response.contentTypes?.map(\.description) == ["application/json", "image/*"])
        #expect(response.serializers == [.json, .propertyList, .http])
        #expect(response.removeNullValues)
        #expect(response.maxBody == 1 << 30)
        #expect(response.oversize == .pass)
        #expect(response.enforcement == .report)
        let short = try rules("response: {status: 204, content_types: text/xml, serializer: xml}").response
        #expect(short.status?.map(\.codes) == [204...204])
        #expect(short.serializers == [.xml])
    }

    /// null, an empty list or an empty mapping mean the same as leaving the key out.
    @Test(arguments: [
        "session: {}", "session: null", "request: null", "response: {}", "rules: []", "rules: null",
        "session: {credentials: null, max_active: null, base_url: null}",
        """
        request: {headers: {}, set_headers: null, remove_headers: [], accept_language: null, authorization: null, \
        parameters: {}, convert_body: null, parts: [], throttle: null}
        """,
        "response: {status: null, content_types: null, max_body: null}",
        """
        session: {timeout: 60s, redirects: pass, max_redirects: 20, resume: true, coalesce: false, order: fifo, \
        service_type: default, allow_wwan: true}
        """,
        "request: {cookies: pass, serializer: http, query_methods: [GET, HEAD, DELETE], upgrade_insecure: false}",
        "response: {serializer: http, remove_null_values: false, oversize: refuse, enforcement: enforce}",
    ])
    func theDefaultsMayBeWritten(_ entry: String) throws {
        let snapshot = try ConfigurationBed(pins: "hosts: [{match: a.test, \(entry)}]\n").load()
        #expect(snapshot.warnings == [])
        let entry = try #require(snapshot.entry(for: "a.test", port: 443))
        guard let rules = entry.rules?.rules(.none) else { return }
        #expect(rules.session == SessionRules())
        #expect(rules.request == RequestRules())
        #expect(rules.response == ResponseRules())
    }

    @Test func hostsWithoutRulesHaveNone() throws {
        let snapshot = try ConfigurationBed(pins: "hosts: [{match: a.test}, {match: b.test, session: {}, rules: []}]\n")
            .load()
        #expect(snapshot.defaultRules == nil)
        #expect(snapshot.entry(for: "a.test", port: 443)?.rules == nil)
        #expect(snapshot.entry(for: "b.test", port: 443)?.rules == nil)
    }

    @Test func entriesWithoutRulesShareThoseOfTheDefaults() throws {
        let snapshot = try RuleBed(
            """
            defaults: {session: {timeout: 5s}}\nhosts: [{match: a.test}, {match: b.test, action: tunnel}, {match: \
            c.test, session: {resume: false}}]\n
            """
        ).load()
        let shared = try #require(snapshot.defaultRules)
        #expect(snapshot.entry(for: "a.test", port: 443)?.rules === shared)
        #expect(snapshot.entry(for: "b.test", port: 443)?.rules === shared)
        #expect(snapshot.entry(for: "c.test", port: 443)?.rules !== shared)
    }

    // MARK: Wrong

    /// The text from column 25 of an entry that begins in column 9.
    @Test(arguments: [
        ("session: 5", "1:34: error: \"session\" must be a mapping (key: value), not \"5\""),
        ("session: {timout: 5s}", "1:35: error: unknown key \"timout\" in \"session\"; did you mean \"timeout\"?"),
        (
            "session: {headers: {}}",
            """
            1:35: error: unknown key \"headers\" in \"session\"; known here: timeout, minimum_rate, redirects, \
            max_redirects, follow_to, location_field, credentials, resume, coalesce, coalesce_with, max_active, order, \
            service_type, allow_wwan, base_url, http, ping
            """
        ),
        ("session: {timeout: 60}", "1:44: error: timeout: \"60\" has no unit; write 60s if seconds are meant"),
        ("session: {timeout: 0s}", "1:44: error: timeout: 0s is out of range; write a time from 1ms to 1d"),
        (
            "session: {minimum_rate: fast}",
            "1:49: error: minimum_rate: \"fast\" is not a rate; write a size and a time, e.g. 1KiB/5m, or off"
        ),
        ("session: {timeout: null}", "1:44: error: \"timeout\" has no value; write one, or leave the line out"),
        ("session: {timeout: [5s]}", "1:44: error: \"timeout\" takes a single value, not a list"),
        ("session: {redirects: folow}", "1:46: error: redirects: unknown value \"folow\"; did you mean \"follow\"?"),
        ("session: {max_redirects: 0}", "1:50: error: max_redirects: 0 is out of range; write a number from 1 to 100"),
        ("session: {follow_to: [a.test, '**.b.test:8443', '[::1]', 192.0.2.1]}", ""),
        ("session: {follow_to: ['https://a.test/']}", "1:47: error: follow_to: "),
        ("session: {follow_to: ['*']}", "1:47: error: follow_to: "),
        ("session: {follow_to: ['*.co.uk']}", "1:47: warning: follow_to: "),
        ("session: {follow_to: [a.test, a.test]}", "1:55: error: follow_to: a.test is written twice"),
        (
            "session: {follow_to: {a.test: 1}}",
            "1:46: error: \"follow_to\" takes a value or a list of them, not a mapping"
        ),
        ("session: {credentials: ann}", "1:48: error: \"credentials\" must be a mapping (key: value), not \"ann\""),
        ("session: {credentials: {user: ann}}", "1:48: error: credentials: \"password_file\" is missing"),
        ("session: {credentials: {password_file: secret}}", "1:48: error: credentials: \"user\" is missing"),
        (
            "session: {credentials: {user: ann, password: hunter2}}",
            """
            1:48: error: credentials: \"password_file\" is missing\n1:60: error: unknown key \"password\" in \
            \"credentials\"; did you mean \"password_file\"?
            """
        ),
        (
            "session: {credentials: {user: 'a:b', password_file: secret}}",
            "1:48: error: credentials: the user contains a colon, which would end the name (RFC 7617)"
        ),
        (
            "session: {credentials: {user: ann, password_file: none}}",
            """
            1:75: error: password_file: there is no such file; write the name of a file that contains the password, \
            not the password
            """
        ),
        (
            "session: {credentials: {user: ann, password_file: open}}",
            "1:75: error: password_file: pins/open: it is open to other users (mode 644): chmod 600"
        ),
        (
            "session: {credentials: {user: ann, password_file: empty}}",
            "1:48: error: credentials: the password is empty"
        ),
        (
            "session: {credentials: {user: ann, password_file: lines}}",
            "1:48: error: credentials: the password contains a control character"
        ),
        ("session: {resume: yes}", "1:43: error: resume: \"yes\" is neither true nor false"),
        ("session: {coalesce: 1}", "1:45: error: coalesce: \"1\" is neither true nor false"),
        (
            "session: {coalesce_with: cookies}",
            "1:50: error: coalesce_with: unknown value \"cookies\"; did you mean \"cookie\"?"
        ),
        ("session: {coalesce_with: [range, range]}", "1:58: error: coalesce_with: range is written twice"),
        ("session: {max_active: 0}", "1:47: error: max_active: 0 is out of range; write a number from 1 to 100000"),
        ("session: {order: random}", "1:42: error: order: unknown value \"random\"; write fifo or lifo"),
        (
            "session: {service_type: fast}",
            "1:49: error: service_type: unknown value \"fast\"; write default, background, voice, video or responsive"
        ),
        ("session: {http: [h2, h2]}", "1:46: error: http: h2 is written twice"),
        (
            "session: {http: []}",
            "1:41: error: http: the list is empty, so the origin would be offered nothing; write h2, http/1.1, or both"
        ),
        ("session: {http: [h2c]}", "1:42: error: http: h2c, HTTP/2 in the clear, is not spoken; write h2 or http/1.1"),
        ("session: {http: h3}", "1:41: error: http: \"h3\" can't be offered; write h2 or http/1.1"),
        ("session: {http: [http/1.0]}", "1:42: error: http: \"http/1.0\" can't be offered; write h2 or http/1.1"),
        ("session: {http: [http/1]}", "1:42: error: http: unknown value \"http/1\"; did you mean \"http/1.1\"?"),
        ("session: {http: {h2: true}}", "1:41: error: \"http\" takes a value or a list of them, not a mapping"),
        ("session: {http: null}", ""),
        ("session: {htp: [h2]}", "1:35: error: unknown key \"htp\" in \"session\"; did you mean \"http\"?"),
        (
            "session: {http: http/1.1, ping: 30s}",
            "1:57: error: ping: only connections of HTTP/2 are asked whether they live, and http is [http/1.1]"
        ),
        ("session: {http: http/1.1, ping: null}", ""),
        ("session: {ping: 30}", "1:41: error: ping: \"30\" has no unit; write 30s if seconds are meant"),
        ("session: {ping: 500ms}", "1:41: error: ping: 500ms is out of range; write a time from 1s to 1h"),
        ("session: {ping: [30s]}", "1:41: error: \"ping\" takes a single value, not a list"),
        (
            "rules: [{path: /a, session: {http: [h2]}}]",
            """
            1:60: error: http: [h2] alone belongs to all requests, since they share connections; write it beside \
            \"rules\", or add http/1.1
            """
        ),
        ("rules: [{path: /a, session: {http: [http/1.1]}}]", ""),
        (
            "rules: [{path: /a, session: {ping: 30s}}]",
            "1:60: error: ping applies to all requests, since they share connections; write it next to \"rules\""
        ),
        ("session: {allow_wwan: maybe}", "1:47: error: allow_wwan: \"maybe\" is neither true nor false"),
        (
            "session: {base_url: api.example.com}",
            """
            1:45: error: base_url: \"api.example.com\" is not an https:// or http:// URL; write a URL such as \
            https://api.example.com/v2/
            """
        ),
        (
            "session: {base_url: 'https://a:b@api.test/'}",
            "1:45: error: base_url: credentials don't belong in the URL; see session.credentials"
        ),
        (
            "session: {base_url: 'https://api.test/?a=b'}",
            "1:45: error: base_url: a base has no query; remove the ? and the text after it"
        ),
        (
            "session: {base_url: 'https://api.test/#a'}",
            "1:45: error: base_url: a fragment (#…) is never sent; leave it out"
        ),
        (
            "session: {base_url: 'https://api.test/a b'}",
            "1:45: error: base_url: the path contains what must be percent-encoded"
        ),
        (
            "session: {base_url: 'https://api.test/a/%2E./b'}",
            "1:45: error: base_url: the path contains . or ..; write the path without them"
        ),
        ("session: {base_url: 'https:///v2'}", "1:45: error: base_url: "),
        ("session: {base_url: 'https://api.test:99999/'}", "1:45: error: base_url: "),
        (
            "pinning: public-key, pins: [\(pin)], session: {base_url: 'http://api.test/'}",
            "1:127: error: base_url: the entry has pins, and http:// would bypass them; write an https:// URL"
        ),
        (
            "pinning: public-key, pins: [\(pin)], rules: [{path: /a, session: {base_url: 'http://api.test/'}}]",
            "1:146: error: base_url: the entry has pins, and http:// would bypass them; write an https:// URL"
        ),

        ("request: {headers: [a]}", "1:44: error: \"headers\" takes a mapping (name: value), not a list"),
        (
            "request: {headers: {X A: b}}",
            "1:45: error: headers: \"X A\" is not a field name; it may contain letters, digits and !#$%&'*+-.^_`|~"
        ),
        ("request: {headers: {X-A: [b]}}", "1:50: error: \"X-A\" takes a single value, not a list"),
        ("request: {headers: {X-A: }}", "1:50: error: \"X-A\" has no value; write one, or leave the line out"),
        (
            "request: {headers: {X-A: \"b\\r\\nHost: c\"}}",
            "1:50: error: X-A: \"b\\r\\nHost: c\" contains a line break or another control character"
        ),
        ("request: {headers: {X-A: b, x-a: c}}", "1:53: error: headers: x-a is written twice"),
        (
            "request: {headers: {Host: b}}",
            "1:45: error: headers: Host can't be changed: it follows the URL"
        ),
        (
            "request: {set_headers: {Content-Length: 5}}",
            "1:49: error: set_headers: Content-Length can't be changed: it is part of the framing"
        ),
        (
            "request: {set_headers: {Authorization: Bearer x}}",
            """
            1:64: error: Authorization: a secret doesn't belong in this file; write {file: NAME} with a file that \
            contains the value and is readable by its owner only, or use request.authorization
            """
        ),
        (
            "request: {set_headers: {X-Key: {file: open}}}",
            "1:63: error: file: pins/open: it is open to other users (mode 644): chmod 600"
        ),
        (
            "request: {set_headers: {X-Key: {path: secret}}}",
            "1:56: error: X-Key: \"file\" is missing\n1:57: error: unknown key \"path\" in \"X-Key\"; known here: file"
        ),
        (
            "request: {set_headers: {X-Key: {file: lines}}}",
            "1:63: error: file: the value contains a line break or another control character"
        ),
        (
            "request: {remove_headers: [Referer, Connection]}",
            "1:61: error: remove_headers: Connection can't be changed: it is hop-by-hop, and is not forwarded"
        ),
        ("request: {remove_headers: [Referer, referer]}", "1:61: error: remove_headers: referer is written twice"),
        (
            "request: {remove_headers: {a: b}}",
            "1:51: error: \"remove_headers\" takes a value or a list of them, not a mapping"
        ),
        (
            "request: {headers: {X-A: b}, remove_headers: [x-a]}",
            "1:70: error: remove_headers: x-a is in headers as well; write it in one of them"
        ),
        (
            "request: {set_headers: {Accept-Language: de}, accept_language: [en]}",
            "1:88: error: accept_language: Accept-Language is in set_headers as well; write it in one of them"
        ),
        (
            "request: {accept_language: [de_AT]}",
            "1:53: error: accept_language: \"de_AT\" is not a language; write a tag as de-AT or en"
        ),
        (
            "request: {accept_language: ['de;q=1']}",
            """
            1:53: error: accept_language: \"de;q=1\" is not a language; leave the quality out: it follows from the \
            order
            """
        ),
        (
            "request: {accept_language: [a, b, c, d, e, f, g]}",
            "1:52: error: accept_language: there are more than 6 languages; leave out the last"
        ),
        (
            "request: {authorization: secret}",
            "1:50: error: \"authorization\" must be a mapping (key: value), not \"secret\""
        ),
        ("request: {cookies: drop}", "1:44: error: cookies: unknown value \"drop\"; write pass or strip"),
        ("request: {serializer: [json]}", "1:47: error: \"serializer\" takes a single value, not a list"),
        (
            "request: {serializer: xml}",
            "1:47: error: serializer: unknown value \"xml\"; write http, json, property-list or multipart"
        ),
        ("request: {parameters: [a]}", "1:47: error: \"parameters\" takes a mapping (name: value), not a list"),
        ("request: {query_methods: [get]}", "1:51: error: query_methods: methods are written in capitals: GET"),
        ("request: {query_methods: [GET, GET]}", "1:56: error: query_methods: GET is written twice"),
        ("request: {convert_body: json}", "1:49: error: \"convert_body\" must be a mapping (key: value), not \"json\""),
        ("request: {convert_body: {from: form}}", "1:49: error: convert_body: \"to\" is missing"),
        (
            "request: {convert_body: {from: form, to: xml}}",
            "1:66: error: to: unknown value \"xml\"; write form, json or property-list"
        ),
        ("request: {convert_body: {from: json, to: json}}", "1:49: error: convert_body: from and to are the same"),
        (
            "request: {serializer: multipart, parts: [{name: a}]}",
            "1:66: error: parts: a part has either a value or a file"
        ),
        ("request: {serializer: multipart, parts: [{value: a}]}", "1:66: error: parts: \"name\" is missing"),
        (
            "request: {serializer: multipart, parts: [{name: a, value: b, file: report.csv}]}",
            "1:66: error: parts: a part has either a value or a file"
        ),
        (
            "request: {serializer: multipart, parts: [{name: a, value: b, type: csv}]}",
            "1:92: error: type: \"csv\" is not a media type; write e.g. text/plain; charset=utf-8"
        ),
        (
            "request: {serializer: multipart, parts: [{name: a, value: b, file_name: ''}]}",
            "1:66: error: parts: the name of a file is empty"
        ),
        (
            "request: {serializer: multipart, parts: [{name: a, value: b, file_name: [c]}]}",
            "1:97: error: \"file_name\" takes a single value, not a list"
        ),
        (
            """
            request: {serializer: multipart, parts: [{name: a, value: b, file_name: 'c.json', type: application/json}]}
            """,
            ""
        ),
        (
            """
            request: {serializer: multipart, parts: [{name: a, value: b, type: application/json}, {name: c, value: d, \
            file_name: e.csv}]}
            """,
            ""
        ),
        (
            "request: {serializer: property-list, parameters: {a: {b: [1, null]}}}",
            "1:74: error: parameters: a[b][] is null, which a property list can't express (serializer: property-list)"
        ),
        ("request: {serializer: property-list, parameters: {a: 99999999999999999999}}", "1:74: error: parameters: "),
        (
            "request: {serializer: json, parameters: {a: !!set {b, c}}}",
            "1:65: error: parameters: a is a set, which JSON can't express (serializer: json)"
        ),
        (
            "request: {serializer: property-list, parameters: {a: !!set {b}}}",
            "1:74: error: parameters: a is a set, which a property list can't express (serializer: property-list)"
        ),
        ("request: {parameters: {a: !!set {c, b, 2}, n: null}}", ""),
        ("request: {serializer: multipart, parameters: {a: !!set {c, b}, n: null}}", ""),
        (
            "request: {parameters: {a: !!set {b: 1}}}",
            "1:61: error: the members of a set have no values; leave out \"1\", or write a mapping without !!set"
        ),
        ("request: {parameters: {a: !!set {b, b}}}", "1:61: error: \"b\" is already in the set, in line 1"),
        ("request: {parameters: {a: !!set [b]}}", "1:51: error: a set is written as !!set {a, b}"),
        ("request: {parameters: {a: !!set b}}", "1:51: error: a set is written as !!set {a, b}"),
        ("request: {parameters: !!set {a}}", "1:47: error: \"parameters\" takes a mapping (name: value), not a set"),
        ("request: !!set {parameters}", "1:34: error: "),
        ("rules: [{methods: [GET], request: {serializer: property-list, parameters: {a: null}}}]", ""),
        (
            "rules: [{methods: [GET, PUT], request: {serializer: property-list, parameters: {a: null}}}]",
            "1:104: error: parameters: a is null, which a property list can't express (serializer: property-list)"
        ),
        (
            "request: {parameters: {a: null}}, rules: [{methods: PUT, request: {serializer: property-list}}]",
            "1:47: error: parameters: a is null, which a property list can't express (serializer: property-list)"
        ),
        (
            "request: {serializer: multipart, parts: [{name: a, file: none.csv}]}",
            "1:82: error: file: pins/none.csv: No such file or directory"
        ),
        (
            "request: {serializer: multipart, parts: [{name: a, file: certs}]}",
            "1:82: error: file: pins/certs: not a regular file"
        ),
        (
            "request: {serializer: multipart, parts: [{name: a, file: report.csv, type: csv}]}",
            "1:100: error: type: \"csv\" is not a media type; write e.g. text/plain; charset=utf-8"
        ),
        (
            "request: {serializer: multipart, parts: [a]}",
            "1:66: error: \"parts\" must be a mapping (key: value), not \"a\""
        ),
        (
            "request: {parts: [{name: a, value: b}]}",
            "1:42: error: parts: only serializer: multipart sends parts, and here it is http"
        ),
        ("request: {throttle: 16KiB}", "1:45: error: \"throttle\" must be a mapping (key: value), not \"16KiB\""),
        ("request: {throttle: {packet: 16KiB}}", "1:45: error: throttle: \"delay\" is missing"),
        (
            "request: {throttle: {packet: 0, delay: 1s}}",
            "1:54: error: packet: 0 is out of range; write a size from 1B to 16MiB"
        ),
        ("request: {upgrade_insecure: on}", "1:53: error: upgrade_insecure: \"on\" is neither true nor false"),

        (
            "response: {status: ok}",
            "1:44: error: status: \"ok\" is not a status; write one, as 304, or a range, as 200-299"
        ),
        ("response: {status: [200, 299-200]}", "1:50: error: status: 299-200 is empty; write the smaller status first"),
        ("response: {status: 600}", "1:44: error: status: 600 is out of range; status codes are from 100 to 599"),
        (
            "response: {status: []}",
            "1:44: error: status: the list is empty, so nothing would be accepted; write null for the serializer's own"
        ),
        (
            "response: {content_types: [json]}",
            """
            1:52: error: content_types: \"json\" is not a media type; write e.g. application/json, or image/* for all \
            of a kind
            """
        ),
        (
            "response: {content_types: ['text/html; charset=utf-8']}",
            """
            1:52: error: content_types: \"text/html; charset=utf-8\": parameters are not compared; write the type \
            without them
            """
        ),
        (
            "response: {serializer: yaml}",
            "1:48: error: serializer: unknown value \"yaml\"; write http, json, xml, property-list or image"
        ),
        (
            "response: {serializer: [http, json]}",
            "1:48: error: serializer: http accepts every body, so later ones are never tried"
        ),
        ("response: {serializer: [json, json]}", "1:55: error: serializer: json is written twice"),
        (
            "response: {remove_null_values: true}",
            "1:56: error: remove_null_values: null values are removed from JSON, and here serializer is http"
        ),
        ("response: {max_body: 1Mb}", "1:46: error: max_body: \"Mb\" is not a unit of size; write 1MiB"),
        ("response: {oversize: drop}", "1:46: error: oversize: unknown value \"drop\"; write refuse or pass"),
        ("response: {enforcement: warn}", "1:49: error: enforcement: unknown value \"warn\"; write enforce or report"),

        ("rules: {path: /a}", "1:32: error: \"rules\" takes a list of rules (\"- path: …\"), not a mapping"),
        ("rules: [/a]", "1:33: error: \"rules\" must be a mapping (key: value), not \"/a\""),
        ("rules: [null]", "1:33: error: rules: the rule is empty; write path: and its settings"),
        (
            "rules: [{session: {}}]",
            "1:33: error: rules: a rule has a path or methods; settings for every request go next to \"rules\""
        ),
        (
            "rules: [{path: /a, pins: []}]",
            "1:44: error: unknown key \"pins\" in \"rules\"; known here: path, methods, session, request, response, "
                + "cache, shared"
        ),
        (
            "rules: [{path: /a, rules: []}]",
            "1:44: error: unknown key \"rules\" in \"rules\"; known here: path, methods, session, request, response, "
                + "cache, shared"
        ),
        (
            "rules: [{path: a/**}]",
            "1:40: error: path: \"a/**\": a path begins with a slash; write e.g. /v1/** or /**/upload"
        ),
        (
            "rules: [{path: /a%20b}]",
            "1:40: error: path: \"/a%20b\": paths are compared decoded; write the character itself, not its escape"
        ),
        (
            "rules: [{path: /%7Eann}]",
            "1:40: error: path: \"/%7Eann\": paths are compared decoded; write ~ for its escape"
        ),
        ("rules: [{path: [/a, /b]}]", "1:40: error: \"path\" takes a single value, not a list"),
        ("rules: [{methods: get}]", "1:43: error: methods: methods are written in capitals: GET"),
        (
            "rules: [{methods: []}]",
            "1:43: error: methods: the list is empty; write the methods, or leave the line out for all of them"
        ),
        (
            "rules: [{path: /a, session: {redirects: no}}]",
            "1:65: error: redirects: unknown value \"no\"; write pass, follow or refuse"
        ),
        (
            "rules: [{path: /a, request: {parts: [{name: a, value: b}]}}]",
            "1:61: error: parts: only serializer: multipart sends parts, and here it is http"
        ),

        (
            "action: deny, session: {timeout: 5s}, rules: []",
            """
            1:48: warning: session has no effect: the host is denied\n1:70: warning: rules has no effect: the host is \
            denied
            """
        ),
        (
            "action: tunnel, session: {redirects: follow}",
            """
            1:62: error: session.redirects can't apply with action: tunnel, where the proxy sees no requests; write \
            action: intercept, or remove it
            """
        ),
        (
            "action: verify-tunnel, request: {cookies: strip}",
            """
            1:67: error: request.cookies can't apply with action: verify-tunnel, where the proxy sees no requests; \
            write action: intercept, or remove it
            """
        ),
        (
            "action: tunnel, rules: [{path: /a}]",
            """
            1:48: error: rules can't apply with action: tunnel, where the proxy sees no requests; write action: \
            intercept, or remove it
            """
        ),

        (
            "rules: [{path: /a/**}, {path: /a/b, methods: [GET]}]",
            """
            1:48: warning: rules: this rule never applies: rule 1 in line 1, for /a/**, comes first and takes all of \
            its requests
            """
        ),
        (
            "rules: [{methods: [GET, HEAD]}, {path: /b}, {path: /a, methods: HEAD}]",
            """
            1:69: warning: rules: this rule never applies: rule 1 in line 1, for every path (GET, HEAD), comes first \
            and takes all of its requests
            """
        ),
        (
            """
            rules: [{path: /b}, {path: /a, methods: GET}, {path: /a, methods: [GET, HEAD]}, {path: /**}, {methods: \
            GET}]
            """,
            ""
        ),
    ])
    func explainsProblems(_ entry: String, _ expected: String) throws {
        let problems = try RuleBed("hosts: [{match: a.test, \(entry)}]\n").problems().joined(separator: "\n")
        if expected.hasSuffix(": ") {
            #expect(problems.hasPrefix(expected))
        } else {
            #expect(problems == expected)
        }
    }

    @Test func aBaseURLIsOfOneHost() throws {
        #expect(
            try RuleBed("defaults: {session: {base_url: 'https://a.test/'}}\nhosts: []\n").problems() == [
                """
                1:32: error: base_url belongs to one host, and here it would send every host there; write it in an \
                entry
                """
            ])
    }

    @Test func tunnelsHaveASessionToo() throws {
        let snapshot = try RuleBed(
            "hosts: [{match: a.test, action: tunnel, session: {timeout: 5s, service_type: voice}}]\n"
        ).load()
        #expect(snapshot.entry(for: "a.test", port: 443)?.rules?.rules(.none).session.timeout == .seconds(5))
        #expect(snapshot.warnings == [])
    }

    @Test func rulesAreBounded() throws {
        let list = (0...RuleBlockReader.mostRules).map { "{path: /\($0)}" }.joined(separator: ", ")
        #expect(
            try RuleBed("hosts: [{match: a.test, rules: [\(list)]}]\n").problems() == [
                "1:32: error: rules: there are more than 100"
            ])
    }

    // MARK: Every key

    /// Every key, with a valid value that isn't the default.
    private static let written: [String: String] = [
        "session.timeout": "5s", "session.minimum_rate": "100B/1m", "session.redirects": "refuse",
        "session.max_redirects": "3", "session.follow_to": "[b.test]",
        "session.credentials": "{user: a, password_file: secret}", "session.resume": "false",
        "session.coalesce": "true", "session.coalesce_with": "[cookie]",
        "session.max_active": "4", "session.order": "lifo", "session.service_type": "voice",
        "session.allow_wwan": "false",
        "session.base_url": "https://b.test/", "session.location_field": "false", "session.http": "[http/1.1]",
        "session.ping": "30s", "request.headers": "{X-A: b}", "request.set_headers": "{X-A: b}",
        "request.remove_headers": "[Referer]", "request.accept_language": "[de]",
        "request.authorization": "{user: a, password_file: secret}", "request.cookies": "strip",
        "request.serializer": "json",
        "request.parameters": "{a: b}", "request.query_methods": "[]", "request.convert_body": "{from: json, to: form}",
        "request.parts": "[{name: a, value: b}]", "request.throttle": "{packet: 1KiB, delay: 1s}",
        "request.upgrade_insecure": "true", "response.status": "200", "response.content_types": "text/plain",
        "response.serializer": "json", "response.remove_null_values": "true", "response.max_body": "1MiB",
        "response.oversize": "pass", "response.enforcement": "report",
    ]

    private static let allKeys: [String] =
        SessionRules.Key.allCases.map { "session.\($0.rawValue)" }
        + RequestRules.Key.allCases.map { "request.\($0.rawValue)" }
        + ResponseRules.Key.allCases.map { "response.\($0.rawValue)" }

    /// Wherever a table is allowed.
    @Test(arguments: allKeys) func everyKeyIsTaken(_ key: String) throws {
        let parts = key.split(separator: ".")
        let value = try #require(Self.written[key])
        // What the key requires to make sense.
        let more =
            ["request.parts": ", serializer: multipart", "response.remove_null_values": ", serializer: json"][key] ?? ""
        for place in [
            "hosts: [{match: a.test, X}]", "hosts: [{match: a.test, rules: [{path: /a, X}]}]",
            "defaults: {X}\nhosts: []",
        ] {
            if key == "session.base_url", place.hasPrefix("defaults") { continue }
            // A connection is shared by requests of all rules.
            if key == "session.ping", place.contains("rules") { continue }
            let text = place.replacing("X", with: "\(parts[0]): {\(parts[1]): \(value)\(more)}") + "\n"
            let bed = try RuleBed(text)
            let warnings =
                key == "session.credentials" && place.hasPrefix("defaults")
                ? ["1:35: warning: \(UnsafeCredentials.everywhere)"] : []
            #expect(bed.problems() == warnings, "\(text)")
        }
    }

    /// A truncated file with rules is read or refused, and never crashes.
    @Test func survivesEveryPrefix() throws {
        let text = """
            defaults: {session: {timeout: 5s}}
            hosts:
              - match: a.test
                session: {credentials: {user: a, password_file: secret}}
                request: {headers: {X-A: "b", X-B: {file: secret}}, parts: [{name: a, file: report.csv}], serializer: \
            multipart}
                rules:
                  - {path: /a/**, methods: [GET], response: {status: [200-299, 304], serializer: [json, xml]}}
                  - path: /**/b*
                    request: {parameters: {a: [1, {b: null}]}, throttle: {packet: 1KiB, delay: 1s}}

            """
        let bed = try ConfigurationBed(pins: text, ["pins/secret": "x\n", "pins/report.csv": "a"])
        chmod(bed.path("pins/secret"), 0o600)
        let bytes = Array(text.utf8)
        for length in stride(from: 0, through: bytes.count, by: 1) {
            try bed.write("pins/hosts.yaml", Array(bytes[..<length]))
            let findings = Findings()
            let snapshot = try? Snapshot.load(
                bed.path("pinproxy.yaml"), stateDirectory: bed.path("state"), findings: findings)
            #expect((snapshot == nil) == findings.hasErrors)
        }
        #expect(
            try Snapshot.load(bed.path("pinproxy.yaml"), stateDirectory: "/nowhere", findings: Findings()).warnings
                == [])
    }
}
