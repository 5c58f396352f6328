import Testing

@testable import PinproxySerialization

@Suite struct RuleTakingTests {
    /// Rules with a value other than the default for every key.
    private func request() throws -> RequestRules {
        var rules = RequestRules()
        let field = HeaderField(name: try HeaderName("X-A"), value: try HeaderValue("b"))
        rules.headers = [field]
        rules.setHeaders = [field]
        rules.removeHeaders = [try HeaderName("Referer")]
        rules.acceptLanguage = [try LanguageRange("de")]
        rules.authorization = try Credentials(user: "u", password: Secret("p"))
        rules.cookies = .strip
        rules.serializer = .multipart
        rules.parameters = [.init(key: "a", value: .null)]
        rules.queryMethods = []
        rules.convertBody = BodyConversion(from: .form, to: .json)
        rules.parts = [try MultipartPart(name: "n", content: .value("v"))]
        rules.throttle = Throttle(packet: 1, delay: .seconds(1))
        rules.upgradeInsecure = true
        return rules
    }

    private func response() throws -> ResponseRules {
        var rules = ResponseRules()
        rules.status = [try StatusRange("200")]
        rules.contentTypes = [try MediaRange("a/b")]
        rules.serializers = [.json]
        rules.removeNullValues = true
        rules.maxBody = 1
        rules.oversize = .pass
        rules.enforcement = .report
        return rules
    }

    @Test func saysWhatDoesNotGoTogether() throws {
        #expect(try request().contradiction() == nil)
        #expect(try response().contradiction == nil)
        var rules = try request()
        rules.serializer = .json
        #expect(rules.contradiction()?.key == .parts)
        var judged = try response()
        judged.serializers = [.xml, .image]
        #expect(judged.contradiction?.key == .removeNullValues)
        judged.serializers = [.xml, .json]
        #expect(judged.contradiction == nil)
    }
}
