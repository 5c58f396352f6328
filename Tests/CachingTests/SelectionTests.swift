import PinproxyHTTPWire
import Testing

@testable import PinproxyCaching

@Suite struct SelectionTests {
    private func selected(_ fields: String...) throws -> SelectedFields {
        let head = "GET / HTTP/1.1\r\nHost: a\r\n" + fields.map { $0 + "\r\n" }.joined() + "\r\n"
        return SelectedFields(["accept", "x"], of: try OwnedRequest(Array(head.utf8)).view)
    }

    @Test func likeRequestsSelectAlike() throws {
        #expect(try selected("Accept: a, b") == selected("ACCEPT:  a ,b"))
        #expect(try selected("Accept: a, b") == selected("Accept: a", "Accept: b"))
        #expect(try selected("X: a, b") == selected("x: a", "X: b"))
        #expect(try selected("Other: 1") == selected("Other: 2"))
    }

    @Test func othersDoNot() throws {
        #expect(try selected("Accept: a, b") != selected("Accept: b, a"))
        #expect(try selected("Accept: a") != selected("Accept: A"))
        #expect(try selected("Accept:") != selected())
        #expect(try selected("X: ab") != selected("X: a b"))
        // Blanks may be significant in an unknown field, and in quotes.
        #expect(try selected("X: a  b") != selected("x: a b"))
        #expect(try selected("X: a,b") != selected("X: a, b"))
        #expect(try selected("Accept: a;b=\"x, y\"") != selected("Accept: a;b=\"x,y\""))
        #expect(try selected("Accept: a;b=\"\\\", y\"") != selected("Accept: a;b=\"\\\",y\""))
        #expect(try selected("X: a") != selected("Accept: a"))
    }
}
