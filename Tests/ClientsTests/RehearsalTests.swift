import Glibc
import PinproxySecurity
import PinproxySession
import PinproxyTLS
import Testing

@testable import PinproxyClients

@Suite struct RehearsalTests {
    private func rehearsal() -> Rehearsal {
        Rehearsal(
            upstream: UpstreamSettings(anchors: TrustAnchors([])), timeouts: Timeouts(), ownAuthority: nil,
            unixTime: { 0 })
    }

    /// A socket that accepts connections and never sends anything.
    private final class SilentServer {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        private(set) var port: UInt16 = 0

        init() throws {
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
            var length = socklen_t(MemoryLayout<sockaddr_in>.size)
            let descriptor = descriptor
            let done = withUnsafeMutablePointer(to: &address) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    bind(descriptor, $0, length) == 0 && listen(descriptor, 64) == 0
                        && getsockname(descriptor, $0, &length) == 0
                }
            }
            try #require(done)
            port = UInt16(bigEndian: address.sin_port)
        }

        deinit { close(descriptor) }
    }

    @Test func whatThereIsNoTimeForIsLeftOut() throws {
        let server = try SilentServer()
        let silent = try Rehearsal.Host(name: "127.0.0.1", port: server.port)
        let closed = try Rehearsal.Host(name: "127.0.0.1", port: 1)
        // More than are tried at a time, so that some are never begun.
        let hosts = [closed] + Array(repeating: silent, count: 40)
        let endings = try rehearsal().run(
            hosts.map { ($0, .secure(SecurityPolicy(), nil, HTTPProtocol.usual)) }, within: .milliseconds(300))
        #expect(endings.count == 41)
        guard case .failure(.unreachable)?? = endings.first else {
            Issue.record("\(String(describing: endings.first))")
            return
        }
        #expect(endings.dropFirst().allSatisfy { $0 == nil })
    }

    @Test func severalEndInTheirOrder() throws {
        let server = try SilentServer()
        let open = try Rehearsal.Host(name: "127.0.0.1", port: server.port)
        let closed = try Rehearsal.Host(name: "127.0.0.1", port: 1)
        let hosts = (0..<50).map { $0 % 2 == 0 ? open : closed }
        let endings = try rehearsal().run(hosts.map { ($0, .tunnel) }, within: .seconds(30))
        for (index, ending) in endings.enumerated() {
            switch ending {
            case .success(let connection)?:
                #expect(index % 2 == 0 && connection.address == open.description && connection.verdict == nil)
            case .failure(.unreachable)?: #expect(index % 2 == 1)
            default: Issue.record("\(index): \(String(describing: ending))")
            }
        }
    }

    @Test(arguments: [
        ("API.Example.com", "api.example.com:443"), ("api.example.com.:8443", "api.example.com:8443"),
        ("::1", "[::1]:443"), ("[::1]:8443", "[::1]:8443"), ("2001:DB8:0::1", "[2001:db8::1]:443"),
        ("192.0.2.1", "192.0.2.1:443"), ("Bücher.example:8443", "xn--bcher-kva.example:8443"),
    ]) func readsHosts(_ text: String, _ host: String) throws {
        #expect(try Rehearsal.Host(text).description == host)
    }

    @Test(arguments: [
        ("", "empty"), ("https://a.test/", "not a URL"), ("a.test:0", "port"), ("a.test:65536", "port"),
        ("a.test:x", "port"),
        ("a..test", "empty label"), ("1.2.3", "IPv4"), ("::1:x", "IPv6"), ("a b", "white space"), ("[::1", "IPv6"),
        ("\u{2028}.test", "name"),
    ]) func saysWhyATextIsNoHost(_ text: String, _ words: String) {
        do {
            let host = try Rehearsal.Host(text)
            Issue.record("\(host)")
        } catch {
            #expect(error.description.contains(words), "\(error)")
        }
    }
}
