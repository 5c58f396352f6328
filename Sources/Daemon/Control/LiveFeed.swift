import PinproxyClients
import PinproxyEventLoop
import PinproxyRecords
import PinproxySession

protocol LiveFeedReader: AnyObject {
    /// - Returns: false: the previous event is still being sent, and this one is dropped.
    func send(_ event: [UInt8]) -> Bool
}

/// `GET /events`: activity once a second (server-sent events). A slow watcher misses ticks and gets their number.
final class LiveFeed {
    /// Watchers; a quarter of them may be one user's or address's.
    static let limit = 32
    private static let intervalNanoseconds: UInt64 = 1_000_000_000
    private static let taskLimit = 100
    private static let eventLimit = 100

    struct Tick: Encodable {
        struct WorkerState: Encodable {
            let worker: Int
            let up: Bool
            let lag: Double
        }

        struct EntryCount: Encodable {
            let entry: String
            let requests: UInt64
            let matched: UInt64
            let missed: UInt64
            let reported: UInt64
        }

        /// Milliseconds since 1970.
        var time: Int64 = 0
        var clients = 0
        var taskCount = 0
        var tasks: [TaskSummary] = []
        var workers: [WorkerState] = []
        var requests: UInt64 = 0
        var refused: UInt64 = 0
        var lastHour = LastHour()
        /// Open ones, the latest first.
        var incidents: [OpenIncident] = []
        /// `HOST:PORT` of those that were acknowledged.
        var acknowledged: [String] = []
        var broken: UInt64 = 0
        var cache = CacheCounts()
        var bytesUp: UInt64 = 0
        var bytesDown: UInt64 = 0
        var reachability: [TargetStatus] = []
        var generation = 0
        var lastReload: String?
        var counts: [EntryCount] = []
        /// The latest first.
        var events: [RecentEvent] = []
        var dropped = 0
    }

    private let loop: EventLoop
    private let collector: MetricsCollector
    private let board: TaskBoard
    private let fill: (inout Tick, WorkerCounters) -> Void
    private let names: () -> [String]
    private var watchers: [Watcher] = []
    private var share = FairShare<Claimant>(places: limit)
    private var timer: RepeatingTimer?
    private var isAsking = false
    /// The last event sent of each worker, and the counts of each entry.
    private var told: [Int: UInt64] = [:]
    private var counted: [[UInt64]] = []

    private final class Watcher {
        let reader: any LiveFeedReader
        let claimant: Claimant
        let showsPaths: Bool
        var isNew = true
        var dropped = 0

        init(_ reader: any LiveFeedReader, of claimant: Claimant, showsPaths: Bool) {
            self.reader = reader
            self.claimant = claimant
            self.showsPaths = showsPaths
        }
    }

    init(
        loop: EventLoop, collector: MetricsCollector, board: TaskBoard, names: @escaping () -> [String],
        fill: @escaping (inout Tick, WorkerCounters) -> Void
    ) {
        self.loop = loop
        self.collector = collector
        self.board = board
        self.names = names
        self.fill = fill
    }

    /// Nil: the claimant may have one more watcher.
    func lack(for claimant: Claimant) -> FairShare<Claimant>.Lack? { share.lack(for: claimant) }

    /// - Returns: false: no place is free any more.
    func add(_ reader: any LiveFeedReader, of claimant: Claimant, showsPaths: Bool) -> Bool {
        guard share.enter(claimant) == nil else { return false }
        watchers.append(Watcher(reader, of: claimant, showsPaths: showsPaths))
        if timer == nil {
            timer = RepeatingTimer(loop: loop, owner: self, everyNanoseconds: Self.intervalNanoseconds) { $0.ask() }
        }
        ask()
        return true
    }

    func remove(_ reader: any LiveFeedReader) {
        guard let place = watchers.firstIndex(where: { $0.reader === reader }) else { return }
        share.leave(watchers.remove(at: place).claimant)
        if watchers.isEmpty { timer = nil }
    }

    private func ask() {
        guard !isAsking, !watchers.isEmpty else { return }
        isAsking = true
        collector.collect { [weak self] measurement in
            self?.board.list { tasks in self?.tell(measurement, tasks) }
        }
    }

    private func tell(_ measurement: ProxyMeasurement, _ list: TaskList) {
        isAsking = false
        let counters = measurement.counters
        var tick = Tick()
        tick.time = WallClock.milliseconds()
        tick.taskCount = list.tasks.count
        tick.tasks = Array(list.tasks.prefix(Self.taskLimit))
        tick.workers = measurement.workers.indices.map { number in
            let isUp = !measurement.silent.contains(number)
            return Tick.WorkerState(
                worker: number + 1, up: isUp, lag: Double(measurement.workers[number]?.lag ?? 0) / 1e9)
        }
        (tick.requests, tick.refused, tick.broken) = (counters.requests, counters.refused, counters.broken)
        (tick.bytesUp, tick.bytesDown) = (counters.bytesUp, counters.bytesDown)
        fill(&tick, counters)
        let all = counts(counters.entries)
        let recent = measurement.events
        let news = recent.filter { $0.number > told[$0.worker] ?? 0 }
        for event in recent { told[event.worker] = max(told[event.worker] ?? 0, event.number) }
        send(tick, all, recent, news)
        counted = all.map(\.values)
    }

    private func counts(_ entries: [WorkerCounters.Entry]) -> [(count: Tick.EntryCount, values: [UInt64])] {
        let names = names()
        return entries.enumerated().map { slot, entry in
            let values = [entry.requests, entry.pinsMatched, entry.pinsMissed, entry.pinsReported]
            return (
                Tick.EntryCount(
                    entry: slot < names.count ? names[slot] : "(others)", requests: values[0], matched: values[1],
                    missed: values[2],
                    reported: values[3]), values
            )
        }
    }

    private func send(
        _ tick: Tick, _ all: [(count: Tick.EntryCount, values: [UInt64])], _ recent: [RecentEvent],
        _ news: [RecentEvent]
    ) {
        let changed = all.enumerated().filter { $0.offset >= counted.count || counted[$0.offset] != $0.element.values }
        for watcher in watchers {
            var tick = tick
            tick.dropped = watcher.dropped
            tick.events = (watcher.isNew || watcher.dropped > 0 ? recent : news).latest(Self.eventLimit)
            tick.counts = watcher.isNew || watcher.dropped > 0 ? all.map(\.count) : changed.map(\.element.count)
            if !watcher.showsPaths { for index in tick.tasks.indices { tick.tasks[index].path = "" } }
            let data = ControlResponse(tick).body
            if watcher.reader.send(Array("event: tick\ndata: ".utf8) + data + Array("\n\n".utf8)) {
                watcher.isNew = false
                watcher.dropped = 0
            } else {
                watcher.dropped += 1
            }
        }
    }
}
