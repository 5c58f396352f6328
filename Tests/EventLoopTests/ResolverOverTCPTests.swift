import Foundation
import Glibc
import Testing

@testable import PinproxyEventLoop

/// Against a real name server, dnsmasq, for what a scripted one over UDP can't show. No hosts file has these names.
@Suite struct ResolverOverTCPTests {
    private func resolve(_ name: String, with options: [String]) throws -> Result<[IPAddress], ResolutionError> {
        let server = try Dnsmasq(options)
        let loop = try EventLoop()
        let resolver = try Resolver(
            loop: loop, cache: ResolverCache(),
            settings: .init(servers: server.address, attemptMilliseconds: 20_000, attempts: 1))
        var answer: Result<[IPAddress], ResolutionError>?
        resolver.resolve(name) {
            answer = $0
            loop.stop()
        }
        withExtendedLifetime((server, resolver)) { run(loop) }
        return try #require(answer)
    }

    @Test func anAnswerTooLongForUDPComesOverTCPWhole() throws {
        // 16 bytes each: more than an answer of 512 bytes over UDP can hold.
        let records = (1...100).map { "--host-record=many.name-server.test,198.51.100.\($0)" }
        let addresses = try resolve("many.name-server.test", with: records).get()
        #expect(Set(addresses.map(\.description)) == Set((1...100).map { "198.51.100.\($0)" }))
    }

    @Test func anAliasLeadsToItsAddressesOfBothFamilies() throws {
        let addresses = try resolve(
            "alias.test",
            with: ["--cname=alias.test,target.test", "--host-record=target.test,198.51.100.7,2001:db8::7"]
        ).get()
        #expect(Set(addresses.map(\.description)) == ["198.51.100.7", "2001:db8::7"])
    }

    @Test func aNameThatIsntThereAndOneOfAnotherTypeAreToldApart() throws {
        let records = ["--txt-record=text.test,hello"]
        #expect(try resolve("none.name-server.test", with: records) == .failure(.notFound("none.name-server.test")))
        #expect(try resolve("text.test", with: records) == .failure(.noAddresses("text.test")))
    }

    @Test func aServerThatIsntRunningIsAFailureWithAReason() throws {
        let address: String
        do { address = try Dnsmasq([]).address }
        let loop = try EventLoop()
        let resolver = try Resolver(
            loop: loop, cache: ResolverCache(), settings: .init(servers: address, attemptMilliseconds: 50, attempts: 1))
        var answer: Result<[IPAddress], ResolutionError>?
        resolver.resolve("any.name-server.test") {
            answer = $0
            loop.stop()
        }
        run(loop)
        guard case .failure(let error) = try #require(answer) else {
            Issue.record("a dead server answered")
            return
        }
        #expect(error.description.hasPrefix("any.name-server.test: "))
    }
}

/// dnsmasq on its own loopback address, at a port that was free there.
private final class Dnsmasq {
    let address: String
    private let process = Process()

    init(_ options: [String]) throws {
        // No other process uses this address, so a port found free on it stays free.
        let host = "127.\(UInt8.random(in: 1...254)).\(UInt8.random(in: 0...255)).\(UInt8.random(in: 1...254))"
        let port: UInt16
        do {
            let ip = try #require(IPAddress(host))
            let probe = try Socket.listen(on: .init(ip: ip, port: 0), backlog: 1, reusePort: false)
            port = try #require(Socket.localAddress(probe.raw)).port
        }
        address = "\(host):\(port)"
        process.executableURL = URL(fileURLWithPath: "/usr/sbin/dnsmasq")
        process.arguments =
            [
                "--no-daemon", "--conf-file=/dev/null", "--no-resolv", "--no-hosts", "--local=/test/", "--pid-file=",
                "--bind-interfaces", "--except-interface=nonexistent", "--listen-address=\(host)", "--port=\(port)",
            ] + options
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = FileHandle.nullDevice
        let errors = Pipe()
        process.standardError = errors
        try process.run()
        // It logs that it listens, and nothing after that, so its log goes unread.
        var log = ""
        while !log.contains("started") {
            let more = errors.fileHandleForReading.availableData
            try #require(!more.isEmpty, "dnsmasq ended: \(log)")
            log += String(decoding: more, as: UTF8.self)
        }
    }

    deinit {
        // `deinit` also runs after an `init` that throws, and 0 would be this process's own group.
        guard process.processIdentifier > 0 else { return }
        // Not SIGTERM: the child inherits this thread's signal mask, which blocks it.
        kill(process.processIdentifier, SIGKILL)
        process.waitUntilExit()
    }
}
