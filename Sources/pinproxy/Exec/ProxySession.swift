internal import FoundationEssentials
internal import Glibc
internal import PinproxyClients
internal import PinproxyDaemon
internal import PinproxyEventLoop
internal import PinproxyLocalPeers

/// The run of `pinproxy exec` with the running proxy, if it takes one. If the proxy restarts, the run begins again.
final class ProxySession {
    /// The proxy's time for an answer.
    private static let patience = 5
    /// How long to wait for the last lines after the command has ended.
    private static let lastPatience: Duration = .seconds(2)

    /// The requirements of the run.
    struct Needs: OptionSet {
        let rawValue: Int
        /// Reports of refusals, for requests with the run's token.
        static let refusals = Needs(rawValue: 1)
        /// It is asked for the addresses of names.
        static let names = Needs(rawValue: 2)
        /// It runs as long as there are runs.
        static let life = Needs(rawValue: 4)
    }

    /// For the command's own requests; nil: silent.
    var token: RunToken? { needs.contains(.refusals) ? runToken : nil }
    let runToken: RunToken?
    private let needs: Needs
    private(set) var account = RunAccount()
    private let files: StateFiles
    private let credentials: String?
    private var client: RunClient?
    private var failure: ControlFailure?
    private let isRunning: Bool

    /// Begins the run.
    /// - Parameter given: `NAME:PASSWORD`, percent-encoded, as the proxy's URL had them before.
    init(_ files: StateFiles, given credentials: String?, needs: Needs) {
        self.files = files
        self.needs = needs
        let url = credentials.flatMap { URLComponents(string: "http://\($0)@localhost") }
        self.credentials = url.flatMap { url in url.user.flatMap { user in url.password.map { "\(user):\($0)" } } }
        isRunning = RunningProxy.find(files) != nil
        let token = RunToken()
        guard !needs.isEmpty else {
            runToken = nil
            return
        }
        let client: RunClient?
        do throws(ControlFailure) {
            client = try Self.begin(token, files, self.credentials, waits: true)
        } catch {
            client = nil
            failure = error
        }
        self.client = client
        runToken = client == nil ? nil : token
        if client != nil { account.began() }
    }

    /// - Parameter waits: for a proxy that has no socket at the moment.
    private static func begin(
        _ token: RunToken, _ files: StateFiles, _ credentials: String?, waits: Bool
    ) throws(ControlFailure) -> RunClient? {
        let deadline = ContinuousClock.now + RunningProxy.startingTime
        while let proxy = RunningProxy.find(files) {
            do throws(ControlFailure) {
                return try RunClient(
                    files.runSocket, process: proxy.process, token: token, credentials: credentials, seconds: patience)
            } catch .unreachable(let error)
                where waits && [ENOENT, ECONNREFUSED].contains(error.code) && ContinuousClock.now < deadline
            {
                // It is just starting, or ending.
                usleep(10_000)
            }
        }
        return nil
    }

    var hasBegun: Bool { client != nil }
    var whyNotBegun: String { failure.map { Self.words(for: $0, files.runSocket.path) } ?? "it has ended" }

    /// The running proxy's listen addresses, if it was asked.
    var listen: [String] { client?.begun.listen ?? [] }

    /// Warns, before the command runs, of what will fail.
    /// - Parameter isIsolated: the command reaches the proxy by its state directory alone.
    func warn(of command: String, using proxy: ProxyURL, asksForUsers: Bool, isIsolated: Bool = false) {
        if !isRunning, isIsolated || !proxy.isReachable {
            let nobody = isIsolated ? "" : ", and nothing listens on \(proxy.address)"
            Standard.error(
                "pinproxy: no proxy is running with the state directory \(files.directory)\(nobody): "
                    + "requests of \(command.printable) will fail; start it with pinproxy run")
        }
        if let failure {
            Standard.error(
                "pinproxy: the proxy's refusals can't be reported here: "
                    + "\(Self.words(for: failure, files.runSocket.path))"
            )
        }
        if let client {
            guard !client.begun.isLetIn else { return }
            let what =
                credentials == nil
                ? "requires a user name and a password" : "rejects the user name and the password in HTTPS_PROXY"
            Standard.error("pinproxy: the proxy \(what) (proxy.users): \(Self.advice(proxy))")
        } else if asksForUsers, proxy.credentials == nil {
            Standard.error(
                "pinproxy: the proxy requires a user name and a password (proxy.users): \(Self.advice(proxy))")
        }
    }

    /// - Throws: if the proxy can't resolve names, which the command's network needs.
    func requireNames() throws {
        let cause: String
        if let client {
            guard client.begun.resolvesNames != true else { return }
            cause = "it is older than this command: restart it"
        } else if let failure {
            cause = Self.words(for: failure, files.runSocket.path)
        } else {
            cause =
                "no proxy is running with the state directory \(files.directory): start it with pinproxy run, or for "
                + "this run with --start"
        }
        throw CommandFailure(
            code: 126, message: "--transparent needs a running proxy to resolve names: \(cause)")
    }

    private static func advice(_ proxy: ProxyURL) -> String {
        "add them to HTTPS_PROXY before pinproxy exec, as in HTTPS_PROXY=\(proxy.withCredentials)"
    }

    private static func words(for failure: ControlFailure, _ socket: String) -> String {
        switch failure {
        case .unreachable(let error):
            "\(socket): \(error.reason); the proxy has another version, or runs in another container"
        case .untrusted(let cause): cause
        case .stranger(let process):
            "process \(process) listens at \(socket) instead of the proxy; no request was sent"
        case .refused(_, let cause): cause.printable
        case .silent: "the proxy did not answer within \(patience) seconds"
        case .ended: "the proxy closed the connection"
        case .broken(let cause): "its response can't be read: \(cause.printable)"
        }
    }

    // MARK: While the command runs

    /// Readable when the proxy has sent a report.
    var descriptor: CInt? { client?.descriptor }
    /// The proxy has ended: it may come back.
    var isAwaitingProxy: Bool { runToken != nil && client == nil }

    func receive(_ told: (RunRefusal) -> Void) {
        guard let client else { return }
        guard let updates = client.receive() else {
            account.lost()
            self.client = nil
            return
        }
        answer(updates.compactMap(\.question), client)
        for update in updates { if let refusal = account.received(update) { told(refusal) } }
    }

    /// Says which of the connections without a token are this run's: those of this process and of all that descend from
    /// it.
    private func answer(_ questions: [RunQuestion], _ client: RunClient) {
        guard !questions.isEmpty else { return }
        let own = needs.contains(.refusals) ? Lineage.sockets(among: Set(questions.map(\.socket))) : []
        client.answer(questions.map { RunAnswer(number: $0.number, isHeld: own.contains($0.socket)) })
    }

    func receive(from door: ExecDoor, _ told: (RunRefusal) -> Void) {
        let (refusals, unlisted) = door.refusals()
        for refusal in refusals { if let refusal = account.refusedHere(refusal) { told(refusal) } }
        account.refusedHere(unlisted: unlisted)
    }

    /// Announces the run to a restarted proxy.
    func beginAgain() {
        guard isAwaitingProxy, let runToken else { return }
        client = (try? Self.begin(runToken, files, credentials, waits: false)) ?? nil
        if client != nil { account.began() }
    }

    /// After the command's end: receives what is left.
    func finish(_ told: (RunRefusal) -> Void) {
        guard let client else { return }
        client.end()
        let deadline = ContinuousClock.now + Self.lastPatience
        while self.client != nil, ContinuousClock.now < deadline {
            var wanted = pollfd(fd: client.descriptor, events: Int16(POLLIN), revents: 0)
            _ = poll(&wanted, 1, 100)
            if wanted.revents != 0 { receive(told) }
        }
        if self.client != nil { account.lost() }
        self.client = nil
    }
}
