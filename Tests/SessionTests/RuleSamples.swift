import PinproxySerialization

/// Rules that tests share.
enum RuleSamples {
    /// Some of each kind: public, from a secret file, and secret by name.
    static func request() throws -> RequestRules {
        func field(_ name: String, _ value: String, isSecret: Bool = false) throws -> HeaderField {
            HeaderField(name: try HeaderName(name), value: try HeaderValue(value, isSecret: isSecret))
        }
        var rules = RequestRules()
        rules.authorization = try Credentials(user: "ada", password: Secret("geheim"))
        rules.setHeaders = [
            try field("X-Open", "1"), try field("X-Key", "geheim", isSecret: true), try field("COOKIE", "a=b"),
        ]
        rules.headers = [
            try field("X-Open-Too", "1"), try field("X-Token", "geheim", isSecret: true),
            try field("Authorization", "open"),
        ]
        return rules
    }
}
