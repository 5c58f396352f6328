internal import Glibc
internal import PinproxyDaemon
internal import PinproxyEventLoop
internal import PinproxyHTTPWire

/// The proxy that runs with a state directory, reached over its control socket.
///
/// A file holds its process ID, which can be wrong: it may belong to a process in another container, or to another
/// process by now. So the kernel must confirm the socket's owner before the proxy is asked anything.
struct RunningProxy {
    /// How long to wait for a proxy that is just starting.
    static let startingTime: Duration = .seconds(1)

    let process: pid_t
    private let files: StateFiles

    /// Nil if no proxy runs with that directory.
    static func find(_ files: StateFiles) -> RunningProxy? {
        ProcessLock.holder(in: files.own).map { RunningProxy(process: $0, files: files) }
    }

    /// Finds the running proxy, or throws.
    static func require(_ files: StateFiles) throws -> RunningProxy {
        guard let proxy = find(files) else {
            throw CommandFailure(
                "no proxy is running with the state directory \(files.directory); "
                    + "start it with pinproxy run, or name its directory with --state-directory")
        }
        return proxy
    }

    /// - Parameter accepting: another status with an answer, besides 200.
    func ask<Answer: Decodable>(
        _ method: PinproxyHTTPWire.Method, _ target: String, accepting: Int = 200, within seconds: Int = 20,
        as type: Answer.Type = Answer.self
    ) throws -> Answer {
        let client = ControlClient(files.controlSocket, process: process, seconds: seconds)
        let deadline = ContinuousClock.now + Self.startingTime
        while true {
            do throws(ControlFailure) {
                return try client.ask(method, target, accepting: accepting, as: type)
            } catch .unreachable(let error)
                where [ENOENT, ECONNREFUSED].contains(error.code) && isRunning && ContinuousClock.now < deadline
            {
                usleep(10_000)
            } catch {
                throw CommandFailure(words(for: error, target, seconds))
            }
        }
    }

    private func words(for failure: ControlFailure, _ target: String, _ seconds: Int) -> String {
        let socket = files.controlSocket.path
        let file = "\(files.directory)/\(StateFiles.processID)"
        switch failure {
        case .unreachable(let error) where error.code == EACCES || error.code == EPERM:
            return
                "process \(process) can't be reached: \(socket): \(error.reason); run this as the user that runs the "
                + "proxy, or as root"
        case .unreachable(let error):
            return "process \(process), which \(file) names, can't be reached (\(socket): \(error.reason)), so no "
                + "request was sent: it is just starting or ending, has another version, or runs in another container; "
                + "its log says if it couldn't make the socket (control.failed)"
        case .stranger(let other):
            return "\(file) names process \(process), and the proxy that listens at \(socket) is process \(other): "
                + "the file was changed, or this runs in another container than the proxy; no request was sent"
        case .untrusted(let cause): return "the socket of process \(process) can't be trusted: \(cause)"
        case .refused(403, let cause): return "\(cause); run this as the user that runs the proxy, or as root"
        case .refused(_, let cause): return cause
        case .silent:
            return
                "process \(process) did not answer \(target) within \(seconds) seconds: it may still "
                + "carry out the request; its log says more"
        case .ended where hasEnded:
            return "process \(process) ended before it answered; its log says more"
        case .ended: return "process \(process) closed the connection before it answered; its log says more"
        case .broken(let cause):
            return
                """
                the response of process \(process) can't be read: \(cause); it may have another version than this \
                command
                """
        }
    }

    private var isRunning: Bool { ProcessLock.holder(in: files.own) == process }

    /// Waits a little: its socket and its lock disappear one after the other.
    private var hasEnded: Bool {
        let deadline = ContinuousClock.now + Self.startingTime
        while isRunning {
            guard ContinuousClock.now < deadline else { return false }
            usleep(10_000)
        }
        return true
    }
}
