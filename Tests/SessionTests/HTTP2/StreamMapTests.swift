import PinproxyHTTP2
import Testing

@testable import PinproxySession

@Suite struct StreamMapTests {
    /// Compared with a dictionary, with sequential numbers as on a connection, and with some that stay long.
    @Test func itHoldsWhatWasPutIn() throws {
        let bed = try HTTP2Bench()
        let (upstream, _) = try bed.connect()
        var random = SystemRandomNumberGenerator()
        var map = StreamMap()
        var expected: [HTTP2StreamID: HTTP2Stream] = [:]
        var next: Int32 = 1
        for _ in 0..<20_000 {
            if expected.count < 3 || expected.count < 300 && Bool.random(using: &random) {
                let stream = HTTP2Stream(HTTP2StreamID(next), of: upstream.connection, door: nil)
                next += Int.random(in: 0..<20, using: &random) == 0 ? 400 : 2
                map.insert(stream)
                expected[stream.id] = stream
            } else {
                let id = try #require(expected.keys.randomElement(using: &random))
                expected[id] = nil
                #expect(map.remove(id) && !map.remove(id))
            }
            #expect(map.count == expected.count && map.isEmpty == expected.isEmpty)
            let some = HTTP2StreamID(Int32.random(in: 0..<next, using: &random))
            #expect(map[some] === expected[some])
        }
        #expect(Set(map.all.map(\.id)) == Set(expected.keys))
        for (id, stream) in expected { #expect(map[id] === stream) }
    }
}
