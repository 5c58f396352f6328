import CPinproxyLibevent
import Foundation
import PinproxySecurity
import PinproxyTLS
import PinproxyTestAuthority
import PinproxyTransport
import Testing

@testable import PinproxyEventLoop
@testable import PinproxySession

/// A worker's upstream side, on a loop that the test runs until there is an answer.
final class Workbench {
    typealias Outcome = Result<UpstreamConnection, UpstreamFailure>

    let loop: EventLoop
    /// Ends ``run()``.
    let stop = Stop()
    let slabs = SlabPool()
    let pool = UpstreamPool()
    let sessions = UpstreamSessionCache()
    let probes = ProbeCache()
    let listeners = OwnListeners()
    let connector: UpstreamConnector

    /// - Parameter nameServer: `address:port` of the only name server.
    init(nameServer: String = "127.0.0.1:1", at unixTime: Int64 = CertificateTemplate.now) throws {
        loop = try EventLoop()
        var settings = ResolverChannel.Settings()
        settings.servers = nameServer
        settings.attempts = 1
        settings.attemptMilliseconds = 20_000
        connector = UpstreamConnector(
            loop: loop, resolver: try Resolver(loop: loop, cache: ResolverCache(), settings: settings), slabs: slabs,
            pool: pool, sessions: sessions, probes: probes, listeners: listeners, tls: try TLSClientContext(),
            unixTime: { unixTime })
    }

    /// A target that takes `port` on loopback for `name`.
    func target(
        port: UInt16, host: String = "127.0.0.1", name: String = "api.test", policy: SecurityPolicy = SecurityPolicy(),
        parent: ParentProxy? = nil, addresses: AddressRules = AddressRules(blocked: []),
        client: ClientPlace = .thisMachine,
        via: String? = nil
    ) throws -> UpstreamTarget {
        let anchors = try OriginAuthority.shared.get().anchors
        return UpstreamTarget(
            host: host, port: port, layer: .tls(policy, anchors, .dns(name)),
            upstream: UpstreamSettings(anchors: anchors, parent: parent, addresses: addresses), client: client, via: via
        )
    }

    func connect(to target: UpstreamTarget, timeouts: Timeouts = Timeouts()) throws -> Outcome {
        var outcome: Outcome?
        let attempt = connector.connect(to: target, timeouts: timeouts) { [stop] result in
            #expect(outcome == nil, "completed twice")
            outcome = result
            stop.isWanted = true
        }
        run()
        return try withExtendedLifetime(attempt) { try #require(outcome) }
    }

    func failure(to target: UpstreamTarget, timeouts: Timeouts = Timeouts()) throws -> UpstreamFailure {
        switch try connect(to: target, timeouts: timeouts) {
        case .success: throw Unexpected(text: "connected")
        case .failure(let failure): return failure
        }
    }

    /// Set on the loop, to end ``Workbench/run()``.
    final class Stop: @unchecked Sendable {
        var isWanted = false
    }

    /// Runs the loop until ``stop`` is wanted, or a time limit is reached. It may be called repeatedly.
    func run() {
        let watchdog = Timer(loop: loop, owner: stop, afterNanoseconds: 60_000_000_000) {
            Issue.record("the loop was still waiting")
            $0.isWanted = true
        }
        withExtendedLifetime(watchdog) {
            while !stop.isWanted, loop.runOnce() {}
        }
        stop.isWanted = false
    }

    /// Runs the loop once, when something has happened.
    func runOnce() { loop.runOnce() }

    /// Runs the loop until `connection` has something to read, and reads it.
    func receive(on connection: UpstreamConnection) -> String {
        guard let connection = connection as? HTTP1Upstream else { return "HTTP/2" }
        let reader = Reader(connection, stop)
        return withExtendedLifetime(reader) {
            run()
            connection.stream.wantsRead = false
            return reader.text
        }
    }

    private final class Reader: ByteStreamOwner {
        private(set) var text = ""
        private let connection: HTTP1Upstream
        private let stop: Stop

        init(_ connection: HTTP1Upstream, _ stop: Stop) {
            self.connection = connection
            self.stop = stop
            connection.stream.owner = self
            connection.stream.wantsRead = true
        }

        func streamIsReadable(_ stream: ByteStream) {
            if case .blocked? = connection.responses.receive(limit: 65536) { return }
            text = String(decoding: connection.responses.takeReceived(), as: UTF8.self)
            stop.isWanted = true
        }

        func streamIsWritable(_ stream: ByteStream) {}
        func streamDidSecure(_ stream: ByteStream, _ result: Result<Void, StreamError>) {}
    }
}

extension Timeouts {
    /// Short enough for a test to wait for.
    static var short: Timeouts {
        var timeouts = Timeouts()
        timeouts.connect = .milliseconds(30)
        timeouts.tlsHandshake = .milliseconds(30)
        return timeouts
    }
}
