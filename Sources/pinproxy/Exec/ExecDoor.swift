internal import Dispatch
internal import FoundationEssentials
internal import Glibc
internal import PinproxyClients
internal import PinproxyDaemon
internal import PinproxyEventLoop
internal import PinproxyIsolation

/// The ``Door`` of a command's private network, on a separate thread: its traffic doesn't wait for a reader of standard
/// error.
final class ExecDoor {
    /// For data that the command sent before it ended.
    private static let patience: DispatchTimeInterval = .seconds(2)

    private let reports: DoorReports
    private let thread: LoopThread<Door>

    /// - Parameter token: identifies the run to the proxy; nil: there is no run.
    init(_ network: IsolatedNetwork, _ sockets: [CInt], token: RunToken?, proxy: StateFiles) throws {
        let (doorSocket, runSocket) = (proxy.doorSocket, proxy.runSocket)
        let reports = DoorReports()
        self.reports = reports
        // After the command was started, so that the command keeps its own limit.
        Descriptor.raiseLimit()
        let credentials = token.map { "Basic " + Data("\(RunToken.user):\($0.text)".utf8).base64EncodedString() }
        thread = try LoopThread.start("door", stackSize: 256 << 10) { loop in
            let names = token.map { RunNames(loop: loop, runSocket, token: $0) }
            return Door(
                loop: loop, network: network, sockets: sockets,
                connect: { () throws(ProxyUnreachable) in try Self.connect(to: doorSocket) },
                credentials: credentials, reports: reports
            ) { name, answered in
                guard let names else { return answered(.failed("there is no proxy to ask")) }
                names.ask(name) { answered(NameAnswer($0)) }
            }
        }
    }

    private static func connect(to socket: StateSocket) throws(ProxyUnreachable) -> Descriptor {
        do throws(ControlFailure) {
            return try socket.connectAtOnce()
        } catch .unreachable(let error) {
            let hint =
                error.code == ENOENT
                ? "; no proxy, or only an older version, is running with this state directory" : ""
            throw ProxyUnreachable("\(socket.path): \(error.reason)\(hint)")
        } catch .untrusted(let cause) {
            throw ProxyUnreachable(cause)
        } catch {
            throw ProxyUnreachable("\(socket.path): \(error)")
        }
    }

    /// Readable while there are ``refusals()``.
    var descriptor: CInt { reports.descriptor }

    /// Connections refused without asking the proxy, and the number of further ones that aren't kept.
    func refusals() -> ([RunRefusal], unlisted: Int) {
        let (refusals, unlisted) = reports.take()
        return (refusals.map { RunRefusal(host: $0.host, cause: $0.cause) }, unlisted)
    }

    /// The command has ended: delivers data that it sent, and closes the door.
    func drain() {
        let done = DispatchSemaphore(value: 0)
        thread.perform { door in door.drain { done.signal() } }
        _ = done.wait(timeout: .now() + Self.patience)
        thread.stop()
    }
}

extension NameAnswer {
    init(_ result: Result<ResolvedName, ControlFailure>) {
        switch result {
        case .success(let name) where name.refused == true: self = .refused
        case .success(let name) where !name.exists: self = .unknown
        case .success(let name): self = .addresses(name.addresses.compactMap { IPAddress($0) })
        case .failure(.refused(_, let cause)): self = .failed(cause)
        case .failure(.unreachable(let error)): self = .failed("the proxy can't be reached: \(error.reason)")
        case .failure(.untrusted(let cause)): self = .failed("the proxy can't be reached: \(cause)")
        case .failure: self = .failed("the proxy did not answer")
        }
    }
}
