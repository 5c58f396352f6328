import PinproxyHTTPWire
import Testing

@testable import PinproxyCaching

@Suite struct ClientConditionTests {
    @Test(arguments: [
        ("If-None-Match: \"1\"", true), ("If-None-Match: W/\"1\"", true), ("If-None-Match: \"2\"", false),
        ("If-None-Match: \"2\", \"1\"", true), ("If-None-Match: \"a,\", W/\"1\"", true), ("If-None-Match: *", true),
        ("If-None-Match: 1", false), ("If-None-Match: \"1", false), ("If-None-Match: WW\"1\"", false),
        ("If-Modified-Since: \(Trial.date)", true), ("If-Modified-Since: Mon, 12 Jan 1970 13:46:39 GMT", false),
        ("If-Modified-Since: soon", false),
    ])
    func aClientsConditionIsAnswered(_ condition: String, _ isMet: Bool) throws {
        let traits = try Trial.traits("ETag: \"1\"", "Last-Modified: \(Trial.date)")
        #expect(ClientCondition.isMet(try Trial.request(condition), by: traits) == isMet)
    }

    @Test func onlySuccessesAreConditional() throws {
        let request = try Trial.request("If-None-Match: *")
        for status in [200, 203, 206, 299] {
            #expect(ClientCondition.isMet(request, by: try Trial.traits(status: status)))
        }
        for status in [301, 404, 410, 500] {
            #expect(!ClientCondition.isMet(request, by: try Trial.traits(status: status)))
        }
        let post = try Trial.request("If-None-Match: *", method: "POST")
        #expect(!ClientCondition.isMet(post, by: try Trial.traits()))
    }

    @Test func dateStandsInForAMissingLastModified() throws {
        let request = try Trial.request("If-Modified-Since: \(Trial.date)")
        #expect(ClientCondition.isMet(request, by: try Trial.traits("Date: \(Trial.date)")))
        #expect(!ClientCondition.isMet(request, by: try Trial.traits("Date: Mon, 12 Jan 1970 13:46:41 GMT")))
        #expect(!ClientCondition.isMet(request, by: try Trial.traits()))
    }

    @Test func tagsComeBeforeDates() throws {
        let traits = try Trial.traits("ETag: \"1\"", "Last-Modified: \(Trial.date)")
        let request = try Trial.request("If-None-Match: \"2\"", "If-Modified-Since: \(Trial.date)")
        #expect(!ClientCondition.isMet(request, by: traits))
    }

    @Test(arguments: [
        ("If-Range: \"1\"", true), ("If-Range: W/\"1\"", false), ("If-Range: \"2\"", false),
        ("If-Range: Mon, 12 Jan 1970 13:40:00 GMT", true), ("If-Range: \(Trial.date)", false), ("If-Range: x", false),
        ("X: y", true),
    ])
    func aPartIsGivenOfTheSameBytes(_ condition: String, _ isAllowed: Bool) throws {
        let traits = try Trial.traits(
            "Date: \(Trial.date)", "ETag: \"1\"", "Last-Modified: Mon, 12 Jan 1970 13:40:00 GMT")
        #expect(ClientCondition.allowsPart(try Trial.request(condition), of: traits) == isAllowed)
    }
}
