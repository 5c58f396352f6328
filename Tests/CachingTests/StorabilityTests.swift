import PinproxyHTTPWire
import Testing

@testable import PinproxyCaching

@Suite struct StorabilityTests {
    private func refusal(
        _ fields: [String], _ wish: [String] = [], status: Int = 200, method: String = "GET", isShared: Bool = false,
        length: UInt64? = 10
    ) throws -> StorageRefusal? {
        let request = try OwnedRequest(
            Array(("\(method) / HTTP/1.1\r\nHost: a\r\n" + wish.map { $0 + "\r\n" }.joined() + "\r\n").utf8))
        let traits = CachedTraits(try Trial.response(["Date: \(Trial.date)"] + fields, status: status).view)
        return Storability.refusal(
            of: traits, to: CacheRequest(request.view), isShared: isShared, length: length, mostLength: 1000)
    }

    @Test(
        arguments: [
            (["Cache-Control: max-age=5"], nil), (["Cache-Control: max-age=5, no-store"], .noStore),
            (["Cache-Control: max-age=5, private"], nil), (["ETag: \"a\""], nil), ([], .unspecified),
            (["Cache-Control: max-age=0"], .unspecified), (["Cache-Control: no-cache"], .unspecified),
            (["Cache-Control: no-cache", "ETag: W/\"a\""], nil), (["Cache-Control: max-age=5", "Vary: *"], .vary),
            (["Cache-Control: max-age=5", "Vary: a", "Vary: b, *"], .vary),
            (["Cache-Control: max-age=5", "Vary: \((0..<100).map { "x\($0)" }.joined(separator: ","))"], .vary),
            (["Cache-Control: max-age=5", "Set-Cookie: a=b"], nil), (["Pragma: no-cache"], .unspecified),
            (["Cache-Control: max-age=5, no-store, must-understand"], nil),
            (["CDN-Cache-Control: max-age=5"], .unspecified), (["Cache-Control: max-age=5", "Age: 5"], .unspecified),
            (["Cache-Control: max-age=5", "Age: 4"], nil), (["Expires: 0"], .unspecified),
        ] as [([String], StorageRefusal?)])
    func aPrivateCacheStores(_ fields: [String], _ expected: StorageRefusal?) throws {
        #expect(try refusal(fields) == expected)
    }

    @Test func aSharedCacheStoresLess() throws {
        #expect(try refusal(["Cache-Control: max-age=5, private"], isShared: true) == .isPrivate)
        #expect(try refusal(["Cache-Control: max-age=5, private=\"a\""], isShared: true) == .isPrivate)
        #expect(try refusal(["Cache-Control: max-age=5", "Set-Cookie: a=b"], isShared: true) == .cookie)
        #expect(try refusal(["Cache-Control: s-maxage=5"], isShared: true) == nil)
    }

    @Test(arguments: [false, true])
    func credentialsAreStoredWhereThatIsAllowed(_ isShared: Bool) throws {
        let wish = ["Authorization: Basic x"]
        #expect(try refusal(["Cache-Control: max-age=5"], wish, isShared: isShared) == .credentials)
        for allowed in ["public", "must-revalidate", "s-maxage=5"] {
            #expect(try refusal(["Cache-Control: max-age=5, \(allowed)"], wish, isShared: isShared) == nil)
        }
    }

    @Test func statusesMethodsAndSizes() throws {
        let says = ["Cache-Control: max-age=5"]
        for status in [200, 203, 299, 302, 404, 500, 503] { #expect(try refusal(says, status: status) == nil) }
        for status in [304, 416] { #expect(try refusal(says, status: status) == .status) }
        #expect(try refusal(["Cache-Control: max-age=5, must-understand"], status: 299) == .status)
        #expect(try refusal(["Last-Modified: \(Trial.date)"], status: 302) == .unspecified)
        for method in ["HEAD", "POST", "PUT"] { #expect(try refusal(says, method: method) == .method) }
        #expect(try refusal(says, ["Cache-Control: no-store"]) == .requestNoStore)
        #expect(try refusal(says, ["Content-Length: 5"]) == .method)
        #expect(try refusal(says, length: 1000) == nil)
        #expect(try refusal(says, length: 1001) == .tooLarge)
        #expect(try refusal(says, length: nil) == nil)
    }

    @Test func aPartNeedsAStrongTagAndTheWholesLength() throws {
        let says = ["Cache-Control: max-age=5", "Content-Range: bytes 0-4/10"]
        #expect(try refusal(says + ["ETag: \"a\""], status: 206) == nil)
        #expect(try refusal(says + ["ETag: W/\"a\""], status: 206) == .part)
        #expect(try refusal(says, status: 206) == .part)
        let open = ["Cache-Control: max-age=5", "Content-Range: bytes 0-4/*", "ETag: \"a\""]
        #expect(try refusal(open, status: 206) == .part)
        #expect(try refusal(["Cache-Control: max-age=5", "ETag: \"a\""], status: 206) == .part)
    }
}
