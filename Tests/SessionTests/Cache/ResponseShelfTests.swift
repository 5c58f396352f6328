import PinproxyCaching
import PinproxyHTTPWire
import PinproxyTLS
import Testing

@testable import PinproxySession

/// Stored responses by URL, and their eviction.
@Suite struct ResponseShelfTests {
    private static func key(_ target: String, _ owner: CacheKey.Owner = .user(1)) -> CacheKey {
        CacheKey(target: Array(target.utf8), host: "a.test", port: 443, isSecure: true, owner: owner)
    }

    private static let policy = CachePolicy(
        origin: OriginKey(
            host: "a.test", port: 443, layer: .plain, parent: nil,
            addresses: AddressGuard(AddressRules(), client: .thisMachine)),
        rules: SHA256Digest.of([]))

    /// - Parameter language: in the request; the response varies by it.
    private static func response(_ length: Int, language: String? = nil) throws -> StoredResponse {
        let vary = language == nil ? "" : "Vary: Accept-Language\r\n"
        let head = try OwnedResponse(
            Array("HTTP/1.1 200 OK\r\n\(vary)Cache-Control: max-age=60\r\nContent-Length: \(length)\r\n\r\n".utf8))
        let accept = language.map { "Accept-Language: \($0)\r\n" } ?? ""
        let request = try OwnedRequest(Array("GET / HTTP/1.1\r\nHost: a.test\r\n\(accept)\r\n".utf8))
        return StoredResponse(
            head, body: .bytes(StoredBytes([UInt8](repeating: 0, count: length))),
            times: ResponseTimes(requested: 0, received: 0),
            for: request.view, by: policy, isShared: false, validUntil: .max, from: nil)
    }

    private func targets(_ shelf: ResponseShelf) -> Set<String> {
        Set(shelf.index.keys.map { String(decoding: $0.target, as: UTF8.self) })
    }

    @Test func theLeastRecentlyUsedGo() throws {
        var shelf = ResponseShelf()
        for number in 0..<10 { shelf.insert(try Self.response(1000), for: Self.key("/\(number)")) }
        shelf.use(try #require(shelf.index[Self.key("/0")]))
        let one = shelf.size / 10
        shelf.purge(to: 4 * one)
        #expect(targets(shelf) == ["/0", "/7", "/8", "/9"])
        #expect(shelf.size == 4 * one)
        shelf.purge(to: 0)
        #expect(shelf.size == 0 && shelf.index.isEmpty)
    }

    @Test func aURLHasAFewVariants() throws {
        var shelf = ResponseShelf()
        let key = Self.key("/")
        for number in 0..<ResponseShelf.mostVariants + 4 {
            shelf.insert(try Self.response(10, language: "l\(number)"), for: key)
        }
        let place = try #require(shelf.index[key])
        let known = try #require(shelf.places[place]).responses
        #expect(known.count == ResponseShelf.mostVariants)
        // The latest comes first; a response to the same requests replaces its predecessor.
        let again = try Self.response(20, language: "l10")
        shelf.insert(again, for: key)
        let now = try #require(shelf.places[place]).responses
        #expect(now.count == known.count && now[0] === again)
    }

    /// Compared with a slow list.
    @Test(arguments: 0..<20 as Range<UInt64>) func randomStepsKeepTheBooks(seed: UInt64) throws {
        var random = SplitMix(seed)
        var shelf = ResponseShelf()
        // The most recently used first.
        var model: [(target: String, sizes: [String?: Int])] = []
        let samples = try [10, 100, 1000].map { length in
            try [nil, "a", "b"].map { (length, $0, try Self.response(length, language: $0)) }
        }.flatMap(\.self)
        for _ in 0..<300 {
            let target = "/\(random.next() % 12)"
            let key = Self.key(target)
            let known = model.firstIndex { $0.target == target }
            switch random.next() % 6 {
            case 0, 1, 2:
                let (_, language, response) = samples[Int(random.next() % UInt64(samples.count))]
                shelf.insert(response, for: key)
                var entry: (target: String, sizes: [String?: Int]) = (target, [:])
                if let known { entry = model.remove(at: known) }
                entry.sizes[language] = response.size
                model.insert(entry, at: 0)
            case 3:
                guard let known, let place = shelf.index[key] else { continue }
                shelf.use(place)
                model.insert(model.remove(at: known), at: 0)
            case 4:
                if let place = shelf.index[key] { shelf.remove(place) }
                if let known { model.remove(at: known) }
            default:
                let goal = Int(random.next() % 20_000)
                shelf.purge(to: goal)
                while Self.size(model) > goal, !model.isEmpty { model.removeLast() }
            }
            #expect(targets(shelf) == Set(model.map(\.target)))
            #expect(shelf.size == Self.size(model))
            #expect(shelf.count == model.reduce(0) { $0 + $1.sizes.count })
        }
    }

    private static func size(_ model: [(target: String, sizes: [String?: Int])]) -> Int {
        model.reduce(0) { $0 + $1.target.utf8.count + $1.sizes.values.reduce(0, +) }
    }

    @Test func aFullStoreKeepsSixtyOfAHundred() throws {
        let store = MemoryStore(limit: 8_000_000)
        for number in 0..<20_000 {
            #expect(store.insert(try Self.response(1000), for: Self.key("/\(number)"), from: Arrival()))
        }
        #expect(store.figures.bytes <= 8_000_000 && store.figures.bytes > 4_000_000)
        #expect(!store.responses(for: Self.key("/19999")).isEmpty)
        #expect(store.responses(for: Self.key("/0")).isEmpty)
        let count = store.figures.responses
        #expect(count > 2000 && store.removeAll { $0.owner == .user(2) } == 0)
        #expect(store.removeAll { $0.owner == .user(1) } == count && store.figures.responses == 0)
        #expect(store.figures.bytes == 0)
    }

    /// Eight threads at once.
    @Test func workersShareIt() async throws {
        let store = MemoryStore(limit: 1_000_000)
        let sample = try Self.response(500)
        await withTaskGroup(of: Void.self) { group in
            for thread in 0..<8 {
                group.addTask {
                    var random = SplitMix(UInt64(thread))
                    for _ in 0..<5000 {
                        let key = Self.key("/\(random.next() % 3000)", .user(UInt32(random.next() % 3)))
                        switch random.next() % 4 {
                        case 0: _ = store.insert(sample, for: key, from: Arrival())
                        case 1: store.remove(key)
                        default: for response in store.responses(for: key) { #expect(response === sample) }
                        }
                    }
                }
            }
        }
        #expect(store.figures.bytes <= 1_000_000)
    }
}

/// Numbers that depend on the seed alone.
private struct SplitMix {
    private var state: UInt64

    init(_ seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var value = state
        value = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
        value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
        return value ^ (value >> 31)
    }
}
