import Dispatch
import Foundation
import Logging
import PinproxyClients
import PinproxyConfiguration
import PinproxyEventLoop
import PinproxyRecords
import PinproxySecurity
import PinproxySession
import PinproxyTLS
import Testing

@testable import PinproxyDaemon

/// Two workers and their acceptor in the test's own process, without the daemon's signals, so that a worker can be
/// blocked.
final class WorkerBench {
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
        let output = try LogOutput(descriptor: -1, format: .json)
        let logger = Logger(label: "test") { _ in EventLogHandler(output: output) }
        let configuration = try ActiveConfiguration(
            snapshot, leaves: LeafCache(authority: authority, lifetime: 86_400), logger: logger)
        let listeners = OwnListeners()
        upkeep = try PinUpkeep(
            loop: EventLoop(), configuration: configuration, listeners: listeners, logger: logger, unixTime: time,
            listsChanged: {}, sawEnough: {})
        let context = try ProxyContext(
            pins: upkeep.watch, rules: upkeep.rules, listeners: listeners, logger: logger, logOutput: output,
            freeMemory: try FreeMemory(), idleUpstreams: 10, sessionCount: 3,
            unixTime: time)
        self.output = output
        let vacancy = Vacancy()
        let workers = try (0...1).map {
            try WorkerThread.start(number: $0, context: context, configuration: configuration, vacancy: vacancy)
        }
        let any = SocketAddress(ip: try #require(IPAddress("127.0.0.1")), port: 0)
        let sockets = try ListeningSocket.open(.proxy, on: [any], namedIn: file)
        port = try #require(sockets[0].address).port
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

    /// Blocks a worker's loop.
    /// - Returns: the semaphore that unblocks it.
    func hold(worker number: Int) -> DispatchSemaphore {
        let (isHeld, proceed) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        workers[number].perform { _ in
            isHeld.signal()
            proceed.wait()
        }
        isHeld.wait()
        return proceed
    }
}
