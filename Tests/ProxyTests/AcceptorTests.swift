import Configuration
import Dispatch
import EventLoop
import Foundation
import Logging
import Security
import Session
import TLS
import Testing

@testable import Proxy

/// The acceptor with real workers, in the test's own process: so that one of them can be held up.
@Suite(.timeLimit(.minutes(1))) struct AcceptorTests {
    /// Two workers and their acceptor, without the daemon's signals.
    private final class Bench {
        let workers: [WorkerThread]
        let port: UInt16
        private let acceptor: LoopThread<Acceptor>
        private let upkeep: PinUpkeep
        private let output: LogOutput
        private let directory: URL

        init() throws {
            directory = FileManager.default.temporaryDirectory.appending(path: "pinproxy-acceptor-\(UUID())")
            try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
            let file = directory.appending(path: "pinproxy.yaml").path
            try Data("proxy: {listen: 127.0.0.1:0, workers: 2}\npins: null\n".utf8).write(to: URL(fileURLWithPath: file))
            let snapshot = try Snapshot.load(file, stateDirectory: directory.path)
            let time: @Sendable () -> UnixTime = { UnixTime(Date().timeIntervalSince1970) }
            let files = AuthorityFiles(
                certificate: snapshot.authority.certificatePath, key: snapshot.authority.privateKeyPath)
            let authority = try files.loadOrCreate(at: time()).authority
            let output = LogOutput(descriptor: -1, format: .json)
            let logger = Logger(label: "test") { _ in EventLogHandler(output: output) }
            let configuration = try ActiveConfiguration(snapshot, authority: authority, logger: logger)
            let listeners = OwnListeners()
            upkeep = try PinUpkeep(
                loop: EventLoop(), configuration: configuration, listeners: listeners, logger: logger, unixTime: time,
                listsChanged: {})
            let context = try ProxyContext(
                authority: authority, leafLifetime: .seconds(86_400), pins: upkeep.watch, listeners: listeners,
                logger: logger, logOutput: output, freeMemory: FreeMemory(), idleUpstreams: 10, unixTime: time)
            self.output = output
            let vacancy = Vacancy()
            let workers = try (1...2).map {
                try WorkerThread.start(number: $0, context: context, configuration: configuration, vacancy: vacancy)
            }
            let any = SocketAddress(ip: try #require(IPAddress("127.0.0.1")), port: 0)
            let sockets = try ListeningSocket.open(on: [any], namedIn: file)
            port = sockets[0].address.port
            acceptor = try LoopThread.start("acceptor", stackSize: 128 << 10) { loop in
                Acceptor(
                    loop: loop, sockets: sockets, workers: workers, vacancy: vacancy, maximumClients: 100, logger: logger)
            }
            self.workers = workers
            vacancy.notify { [acceptor] in acceptor.perform { $0.roomAgain() } }
            acceptor.perform { $0.start() }
        }

        deinit {
            acceptor.perform { $0.stop() }
            acceptor.stop()
            for worker in workers { worker.stop() }
            output.finish()
            try? FileManager.default.removeItem(at: directory)
        }
    }

    /// A client that asks the proxy itself, and is told how to use it.
    private final class Client {
        private let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)

        init(port: UInt16) throws {
            var bound = timeval(tv_sec: 20, tv_usec: 0)
            setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &bound, socklen_t(MemoryLayout<timeval>.size))
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_port = port.bigEndian
            address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
            let descriptor = descriptor
            let status = withUnsafePointer(to: &address) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
                }
            }
            try #require(status == 0)
            let question = Array("GET / HTTP/1.1\r\nHost: proxy.test\r\n\r\n".utf8)
            try #require(send(descriptor, question, question.count, Int32(MSG_NOSIGNAL)) == question.count)
        }

        deinit { close(descriptor) }

        func isAnswered() -> Bool {
            var bytes = [UInt8](repeating: 0, count: 12)
            return recv(descriptor, &bytes, bytes.count, Int32(MSG_WAITALL)) == bytes.count
                && bytes.elementsEqual("HTTP/1.1 400".utf8)
        }
    }

    @Test(arguments: 0...1) func aWorkerThatStallsKeepsNobodyElseWaiting(number: Int) throws {
        let bench = try Bench()
        let (isHeld, goOn) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        bench.workers[number].perform { _ in
            isHeld.signal()
            goOn.wait()
        }
        isHeld.wait()
        // Each worker gets one before anybody can know.
        let first = try (1...2).map { _ in try Client(port: bench.port) }
        #expect(first[1 - number].isAnswered())
        for _ in 1...10 { #expect(try Client(port: bench.port).isAnswered()) }
        goOn.signal()
        #expect(first[number].isAnswered())
    }
}
