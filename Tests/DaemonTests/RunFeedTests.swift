import PinproxyClients
import Testing

@testable import PinproxyDaemon

@Suite struct RunFeedTests {
    @Test func anAnswerIsReadWhole() {
        let line = Array("{\"is_held\":true,\"number\":18446744073709551615}".utf8)
        #expect(RunAnswer(line) == RunAnswer(number: .max, isHeld: true))
        for length in 0..<line.count { #expect(RunAnswer(line.prefix(length)) == nil, "\(length)") }
    }
}
