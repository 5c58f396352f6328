import PinproxyClients
import Testing

@testable import pinproxy

@Suite struct RunAccountTests {
    private static let bad = RunRefusal(host: "bad.test", cause: "Certificate pinning failure for bad.test")
    private static let other = RunRefusal(host: nil, cause: "Bad request: no")

    private func account(_ parts: [[RunUpdate]], isLost: Bool = false) -> RunAccount {
        var account = RunAccount()
        for updates in parts {
            account.began()
            for update in updates { _ = account.received(update) }
            if isLost || updates.last?.summary != nil { account.lost() }
        }
        return account
    }

    private func lines(_ account: RunAccount, toldAlready: Bool = false, _ arguments: [String] = []) -> [String] {
        RefusalWords(command: "it\u{1B}", options: arguments).lines(of: account, toldAlready: toldAlready)
    }

    @Test func whatIsRefusedIsToldOnceWithItsNumber() throws {
        let account = account([
            [
                .init(refusal: Self.bad), .init(refusal: Self.other),
                .init(summary: RunSummary(requests: 9, counts: [7, 1], unlisted: 3)),
            ]
        ])
        #expect(
            lines(account) == [
                "pinproxy: bad.test: Certificate pinning failure for bad.test (7 times). "
                    + "Details: run pinproxy explain bad.test",
                "pinproxy: Bad request: no", "pinproxy: and 3 more refusals; the proxy's log has them",
            ])
        #expect(
            lines(account, toldAlready: true) == [
                "pinproxy: bad.test: refused 7 times in all", "pinproxy: and 3 more refusals; the proxy's log has them",
            ])
    }

    @Test func aProxyThatCameBackIsCountedWithTheFirst() throws {
        let first = RunUpdate(summary: RunSummary(requests: 1, counts: [2], unlisted: 0))
        let second = RunUpdate(summary: RunSummary(requests: 1, counts: [1, 3], unlisted: 0))
        let account = account([
            [.init(refusal: Self.bad), first], [.init(refusal: Self.other), .init(refusal: Self.bad), second],
        ])
        #expect(account.refused.map(\.count) == [5, 1])
        #expect(account.requests == 2 && !account.isIncomplete)
    }

    @Test func aProxyThatWasLostIsSaid() throws {
        let account = account([[.init(refusal: Self.bad)]], isLost: true)
        #expect(lines(account).last?.contains("may have been more refusals") == true)
    }

    @Test func aCommandThatUsedNoProxyIsSaid() throws {
        let nothing = RunUpdate(summary: RunSummary(requests: 0, counts: [], unlisted: 0))
        let said = lines(account([[nothing]]))
        #expect(
            said.count == 1
                && said[0].hasPrefix(
                    """
                    pinproxy: it\\u{1b} sent nothing through the proxy as this run: it made no request, or bypassed
                    """),
            "\(said)")
        #expect(lines(RunAccount()) == [])
        let used = RunUpdate(summary: RunSummary(requests: 1, counts: [], unlisted: 0))
        #expect(lines(account([[used]])) == [])
    }

    /// Refusals by the command's own network are counted beside the proxies', in any order.
    @Test func refusalsWithoutAProxyAreCountedToo() throws {
        var account = RunAccount()
        account.began()
        for _ in 0..<3 { _ = account.refusedHere(Self.other) }
        _ = account.received(.init(refusal: Self.bad))
        account.refusedHere(unlisted: 2)
        _ = account.received(.init(summary: RunSummary(requests: 9, counts: [7], unlisted: 0)))
        account.lost()
        #expect(
            lines(account) == [
                "pinproxy: Bad request: no (3 times)",
                "pinproxy: bad.test: Certificate pinning failure for bad.test (7 times). "
                    + "Details: run pinproxy explain bad.test",
                "pinproxy: and 2 more connections that couldn't be redirected to the proxy",
            ])
        for number in 0..<100 { _ = account.refusedHere(RunRefusal(host: "\(number).test", cause: "no")) }
        #expect(account.refused.count == 65 && account.unlistedHere == 39)
    }

    @Test func whatACommandWithoutANetworkMayHaveDone() throws {
        let nothing = account([[RunUpdate(summary: RunSummary(requests: 0, counts: [], unlisted: 0))]])
        func said(_ reach: RefusalWords.Reach) -> String {
            RefusalWords(command: "it", options: [], reach: reach).lines(of: nothing, toldAlready: false).joined()
        }
        #expect(
            said(.nothing).contains("or has no proxy support, so it reached nothing (--transparent redirects it)"))
        #expect(said(.nothingUnchecked).contains("or none that can be redirected to it (TCP to ports 443 and 80)"))
    }

    @Test func theAdviceNamesTheRequestThatRulesRefused() throws {
        func refusal(_ path: String) -> RunUpdate {
            .init(refusal: RunRefusal(host: "a.test:8443", cause: "no", options: ["--path", path, "--method", "PUT"]))
        }
        let summary = RunUpdate(summary: RunSummary(requests: 2, counts: [2], unlisted: 0))
        // A restarted proxy counts the same by another request.
        let account = account([[refusal("/it's"), summary], [refusal("/other"), summary]])
        #expect(
            lines(account) == [
                "pinproxy: a.test:8443: no (4 times). "
                    + "Details: run pinproxy explain a.test:8443 --path '/it'\\''s' --method PUT"
            ])
    }

    @Test func theAdviceCanBePasted() throws {
        let account = account([[.init(refusal: Self.bad)]])
        let said = lines(account, ["--config", "it's mine.yaml"])
        #expect(said[0].hasSuffix(". Details: run pinproxy explain --config 'it'\\''s mine.yaml' bad.test"), "\(said)")
    }
}
