/// Collects all problems of one load. A load continues after an error, but then its result is discarded.
final class Findings {
    /// Users that the proxy may run as, in root's commands: private files may be theirs too.
    let services: Set<UInt32>
    /// False: files that only the proxy's own user may read are skipped.
    let readsSecrets: Bool
    /// False: revocation lists are named but not read, since a policy's lists are on other machines.
    let readsRevocationLists: Bool
    /// Most problems kept. Further ones are counted.
    static let limit = 200

    let sources: FileSources
    /// The place of this machine.
    private(set) lazy var stage = RolloutStage.ofThisMachine
    private var problems: [Problem] = []
    private var known: Set<Problem> = []
    private var dropped = 0
    private(set) var errorCount = 0
    /// In the order of reading; a file may be named more than once.
    private(set) var namedFiles: [NamedFile] = []
    /// Further problems are only counted, so their messages don't matter.
    var isFull: Bool { known.count >= Self.limit }
    var hasErrors: Bool { errorCount > 0 }

    init(
        services: Set<UInt32> = [], readsSecrets: Bool = true, readsRevocationLists: Bool = true,
        sources: FileSources = FileSources()
    ) {
        self.readsSecrets = readsSecrets
        self.readsRevocationLists = readsRevocationLists
        self.services = services
        self.sources = sources
    }

    func error(_ place: Place, _ message: String) {
        errorCount += 1
        add(Problem(.error, at: place, message))
    }

    func warning(_ place: Place, _ message: String) {
        add(Problem(.warning, at: place, message))
    }

    func note(_ file: NamedFile) { namedFiles.append(file) }

    /// A value shared through an anchor is read more than once, but is reported once.
    private func add(_ problem: Problem) {
        guard !isFull else {
            dropped += 1
            return
        }
        guard known.insert(problem).inserted else { return }
        problems.append(problem)
    }

    /// The problems, by file in reading order, line and column.
    var sorted: [Problem] {
        var files: [String: Int] = [:]
        for problem in problems where files[problem.place.file] == nil { files[problem.place.file] = files.count }
        func rank(_ index: Int, _ place: Place) -> (Int, Int, Int, Int) {
            (files[place.file] ?? 0, place.line ?? 0, place.column ?? 0, index)
        }
        var all = problems.enumerated()
            .sorted { rank($0.offset, $0.element.place) < rank($1.offset, $1.element.place) }
            .map(\.element)
        if dropped > 0, let last = all.last {
            all.append(
                Problem(
                    hasErrors ? .error : .warning, at: Place(file: last.place.file),
                    "\(dropped) more problems are not shown"))
        }
        return all
    }
}
