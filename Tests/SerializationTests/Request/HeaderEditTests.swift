import Foundation
import Testing

@testable import PinproxySerialization

/// The header fields that a request is sent with.
@Suite struct HeaderEditTests {
    private func field(_ name: String, _ value: String, isSecret: Bool = false) throws -> HeaderField {
        HeaderField(name: try HeaderName(name), value: try HeaderValue(value, isSecret: isSecret))
    }

    @Test func rulesWithoutHeadersEditNothing() { #expect(RequestRules().headerEdits == []) }

    @Test func eachKeyEditsItsFields() throws {
        var rules = RequestRules()
        rules.removeHeaders = [try HeaderName("Referer")]
        rules.headers = [try field("X-Client", "fleet")]
        rules.setHeaders = [try field("User-Agent", "tool/1")]
        rules.acceptLanguage = try ["de-AT", "de", "en"].map(LanguageRange.init)
        rules.authorization = try Credentials(user: "Aladdin", password: Secret("open sesame"))
        rules.cookies = .strip
        let edits = rules.headerEdits
        let basic = try field("Authorization", "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==", isSecret: true)
        #expect(
            edits == [
                .remove(try HeaderName("Referer")), .setIfAbsent(try field("X-Client", "fleet")),
                .setIfAbsent(try field("Accept-Language", "de-AT;q=1, de;q=0.9, en;q=0.8")), .setIfAbsent(basic),
                .set(try field("User-Agent", "tool/1")), .remove(try HeaderName("Cookie")),
            ])
        #expect(edits.map(\.isSecret) == [false, false, false, true, false, false])
    }

    /// Fields of one name from several layers of rules become one edit.
    @Test func aNameIsEditedOnce() throws {
        var rules = RequestRules()
        rules.removeHeaders = try ["a", "b", "c", "accept-language"].map(HeaderName.init)
        rules.headers = [try field("A", "1"), try field("D", "1"), try field("authorization", "Bearer 1")]
        rules.acceptLanguage = [try LanguageRange("de")]
        rules.authorization = try Credentials(user: "u", password: Secret("p"))
        rules.setHeaders = [try field("B", "2"), try field("D", "2"), try field("COOKIE", "2")]
        rules.cookies = .strip
        let edits = rules.headerEdits
        #expect(Set(edits.map(\.name)).count == edits.count)
        #expect(
            Set(edits) == [
                // Removed first, so the value from `headers` always applies.
                .set(try field("a", "1")), .set(try field("b", "2")), .remove(try HeaderName("c")),
                .set(try field("accept-language", "de;q=1")), .set(try field("d", "2")),
                .setIfAbsent(try field("authorization", "Basic dTpw", isSecret: true)),
                .remove(try HeaderName("cookie")),
            ])
    }

    @Test func qualitiesFallFromOneByATenth() throws {
        #expect(LanguageRange.preferred(in: ["LANG": "C.UTF-8", "LANGUAGE": "de"]).isEmpty)
        #expect(LanguageRange.preferred(in: [:]).isEmpty && LanguageRange.preferred(in: ["LANG": "*"]).isEmpty)
        func preferred(_ environment: [String: String]) -> [String] {
            LanguageRange.preferred(in: environment).map(\.description)
        }
        #expect(preferred(["LANG": "de_AT.UTF-8@euro"]) == ["de-AT"])
        #expect(preferred(["LC_ALL": "", "LC_MESSAGES": "fr", "LANG": "de"]) == ["fr"])
        #expect(preferred(["LANG": "de", "LANGUAGE": "de_AT:de:en:en:x y"]) == ["de-AT", "de", "en"])
        let languages = try ["a", "b", "c", "d", "e", "f", "g"].map(LanguageRange.init)
        #expect(LanguageRange.acceptLanguage([]) == nil)
        #expect(LanguageRange.acceptLanguage(languages)?.text == "a;q=1, b;q=0.9, c;q=0.8, d;q=0.7, e;q=0.6, f;q=0.5")
    }

    @Test func credentialsAreWrittenInUTF8() throws {
        // RFC 7617 section 2.1.
        let credentials = try Credentials(user: "test", password: Secret("123£"))
        #expect(credentials.basicAuthorization.text == "Basic dGVzdDoxMjPCow==")
        #expect(credentials.basicAuthorization.isSecret)
    }

    @Test func secretsAreNeverPrinted() throws {
        var rules = RequestRules()
        rules.headers = [try field("X-Key", "hunter2", isSecret: true)]
        rules.authorization = try Credentials(user: "ann", password: Secret("hunter2"))
        let base64 = "YW5uOmh1bnRlcjI="
        #expect(rules.authorization?.basicAuthorization.text == "Basic \(base64)")
        let edits = rules.headerEdits
        var dumped = ""
        dump(edits, to: &dumped)
        for text in [dumped, "\(edits)", String(reflecting: edits), edits.map(\.description).joined()] {
            #expect(!text.contains("hunter2") && !text.contains(base64), "\(text)")
        }
        #expect(edits.first?.description == "X-Key: ••• (if the request lacks it)")
    }
}
