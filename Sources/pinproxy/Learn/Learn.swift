internal import ArgumentParser
internal import FoundationEssentials
internal import PinproxyConfiguration
internal import PinproxyHTTPWire
internal import PinproxyRecords
internal import PinproxySecurity
internal import PinproxyTLS

struct Learn: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "learn", _superCommandName: Pinproxy.name,
        abstract: "Record the chains of hosts, and print pins for them as a diff.",
        discussion: """
            With --for, the running proxy records the verified chain of every host that it connects to for that long, \
            even if it is restarted in between; this command waits, and prints at the end what would have to change in \
            the pin file, as a diff on standard output. Ctrl-C ends the waiting, not the learning. Without --for it \
            prints the diff of what has been recorded so far: while learning, and for entries with record: true at any \
            time.

            A host without an entry gets one that only reports, with its leaf's key and its issuer's as \
            the backup; an entry gets the pins of chains that met none of its own. Nothing becomes \
            trusted, and no file is changed. Look at each line, compare the keys with a second source, then \
            apply the diff with patch.

            Examples:
              pinproxy learn --for 1d > pins.diff
              patch -p0 < pins.diff && pinproxy check && pinproxy reload
              pinproxy learn
              pinproxy learn --forget
            """)

    private static let longest: Duration = .seconds(90 * 86_400)

    @OptionGroup var options: ConfigurationOptions

    @Option(name: .customLong("for"), help: ArgumentHelp("Learn for this long, e.g. 1d or 2h30m.", valueName: "time"))
    var time: String?
    @Flag(help: "Stop learning.") var stop = false
    @Flag(help: "Forget all that was recorded.") var forget = false

    func validate() throws {
        guard let time else { return }
        if stop || forget { throw ValidationError("--for can't be combined with --stop or --forget") }
        guard let duration = Duration(written: time), duration >= .seconds(1), duration <= Self.longest else {
            throw ValidationError(
                "\"\(time)\" is not a valid time; write a number and a unit, e.g. 30m, 12h or 1d; 90d at most")
        }
    }

    func run() throws {
        let snapshot = try options.load()
        let proxy = LearningProxy(directory: snapshot.stateDirectory)
        do {
            if let time, let duration = Duration(written: time) {
                try learn(for: duration, proxy)
            } else if stop || forget {
                let order = LearnOrder(stop ? .stop : .unchanged, forgets: forget)
                let wasLearning = try proxy.obey(order, now: Clock.now) != nil
                if stop, !wasLearning, !forget {
                    throw CommandFailure(
                        "the proxy using \(proxy.directory) was not learning; pinproxy learn --for TIME begins it")
                }
                return Standard.error(
                    forget
                        ? "forgotten\(stop && wasLearning ? ", and learning has ended" : "")"
                        : "learning has ended; pinproxy learn prints what was learned")
            } else if proxy.isRunning {
                // Makes the proxy write what it has seen so far.
                try proxy.obey(LearnOrder(), now: Clock.now)
            }
            try show(proxy.history(), snapshot)
        } catch let problem as StateFileProblem {
            throw CommandFailure("\(problem)")
        }
    }

    private func learn(for duration: Duration, _ proxy: LearningProxy) throws {
        guard proxy.isRunning else {
            throw CommandFailure(
                "no proxy is running with the state directory \(proxy.directory); "
                    + "start it with pinproxy run, or name its directory with --state-directory")
        }
        let end = Clock.now + duration.components.seconds
        let interrupts = Interrupts()
        try proxy.obey(LearnOrder(.until(end)), now: Clock.now)
        Standard.error("learning until \(instant(end)); Ctrl-C ends the waiting, pinproxy learn --stop the learning")
        while Clock.now < end {
            // The wall clock may be set meanwhile: look at it now and then.
            if interrupts.come(within: min(60, Int(end - Clock.now))) {
                Standard.error(
                    "the proxy keeps learning until \(instant(end)); pinproxy learn prints what it has learned")
                throw CommandFailure(code: 0)
            }
        }
        // It may have been restarted meanwhile, or have ended.
        let now = LearningProxy(directory: proxy.directory)
        if now.isRunning { try now.obey(LearnOrder(), now: Clock.now) }
    }

    private func instant(_ time: UnixTime) -> String {
        Date(timeIntervalSince1970: TimeInterval(time)).formatted(.iso8601)
    }

    // MARK: The diff

    private func show(_ history: ChainHistory, _ snapshot: Snapshot) throws {
        guard let main = snapshot.pinFile else {
            throw CommandFailure("there is no pin file to change: name one in \(snapshot.files[0]) (pins: pins.yaml)")
        }
        let learned = LearnedPins(history, snapshot: snapshot)
        for remark in learned.remarks { Standard.error(remark) }
        guard !learned.isEmpty else {
            return Standard.error(
                history.hosts.isEmpty
                    ? "nothing has been recorded; see pinproxy learn --help"
                    : "\(Count(history.hosts.count, "host")) recorded; the pin file is complete")
        }
        // Each entry stays in the file that has it; new ones go into the main one.
        for file in snapshot.files.dropFirst() {
            let additions = learned.additions.filter { $0.entry.file == file }
            let entries = file == main ? learned.entries : []
            guard !additions.isEmpty || !entries.isEmpty else { continue }
            guard let bytes = FileManager.default.contents(atPath: file) else {
                throw CommandFailure("\(file) can't be read")
            }
            var lines = PinFileLines(String(decoding: bytes, as: UTF8.self))
            for addition in additions { lines.add(addition) }
            lines.append(entries)
            let (name, directory) = Self.name(of: file)
            Standard.output(lines.text.diff(of: name))
            Standard.error(
                "compare the keys with a second source before you apply this: "
                    + "patch -p0\(directory.map { " -d \(ShellSyntax.sh.quoted($0))" } ?? "") < DIFF")
        }
    }

    /// The file as patch is to find it: below the working directory, or alone with its directory.
    private static func name(of file: String) -> (name: String, directory: String?) {
        let path = URL(fileURLWithPath: file).standardizedFileURL.path
        let here = FileManager.default.currentDirectoryPath + "/"
        if path.hasPrefix(here) { return (String(path.dropFirst(here.count)), nil) }
        return (PathText.name(of: path), PathText.directory(of: path))
    }
}

/// The proxy that a state directory belongs to, running or not, as the learn command sees it.
struct LearningProxy {
    let directory: String
    var isRunning: Bool { proxy != nil }
    private let proxy: RunningProxy?
    private let chains: StateFile<ChainHistory>

    init(directory: String) {
        self.directory = directory
        proxy = RunningProxy.find(StateFiles(directory: directory))
        chains = ChainRecorder.file(in: directory)
    }

    /// Gives the proxy the order, and waits for it. If no proxy is running, changes its files.
    /// - Returns: the previous end of learning, if it was learning.
    @discardableResult
    func obey(_ order: LearnOrder, now: UnixTime) throws -> UnixTime? {
        if let proxy {
            let before: LearnReport = try proxy.ask(.post, LearnOrder().target)
            if order != LearnOrder() { let _: LearnReport = try proxy.ask(.post, order.target) }
            return before.until
        }
        guard var history = try chains.read() else { return nil }
        let before = history.learnsUntil.flatMap { $0 > now ? $0 : nil }
        switch order.time {
        case .unchanged: break
        case .until(let end): history.learnsUntil = end
        case .stop: history.learnsUntil = nil
        }
        if order.forgets { history.forget() }
        if order != LearnOrder() { try chains.write(history) }
        return before
    }

    /// All that was recorded. What a running proxy has seen until now is in it after an ``obey(_:now:)``.
    func history() throws -> ChainHistory {
        try chains.read() ?? ChainHistory()
    }
}
