/// Jobs queued host by host, within a bound. A full queue drops the last jobs of the host with the most waiting work.
package struct FairQueue<Job> {
    package typealias Number = UInt64

    package enum Arrival {
        /// - displaced: jobs that were dropped for it.
        case waits(Number, displaced: [Job])
        case refused
    }

    private struct Entry {
        let number: Number
        let job: Job
        let weight: Int
    }

    private struct Line {
        /// Oldest first.
        var waiting: [Entry] = []
        var weight = 0
        var running = 0
    }

    private let capacity: Int
    private let leastWeight: Int
    private var weight = 0
    private var lines: [String: Line] = [:]
    private var turns: [String] = []
    private var running: [Number: (host: String, weight: Int)] = [:]
    private var next: Number = 1
    package private(set) var count = 0

    /// - Parameter capacity: bytes of waiting and running jobs.
    package init(capacity: Int = 256 << 20, jobs: Int = 1024) {
        self.capacity = capacity
        leastWeight = max(capacity / max(jobs, 1), 1)
    }

    package var isEmpty: Bool { count == 0 && running.isEmpty }

    /// - Parameter size: bytes that it holds while queued or running.
    package mutating func add(_ job: Job, of host: String, size: Int) -> Arrival {
        let weight = max(size, leastWeight)
        guard let victims = victims(of: host, weight) else { return .refused }
        let displaced = victims.compactMap { remove($0) }
        let number = next
        next += 1
        if lines[host, default: Line()].waiting.isEmpty { turns.append(host) }
        lines[host, default: Line()].waiting.append(Entry(number: number, job: job, weight: weight))
        lines[host]?.weight += weight
        self.weight += weight
        count += 1
        return .waits(number, displaced: displaced)
    }

    /// The jobs to drop for it; nil: no room. One larger than the bound runs when nothing else is here.
    private func victims(of host: String, _ weight: Int) -> [Number]? {
        var total = self.weight
        guard total > 0, total + weight > capacity else { return [] }
        let own = (lines[host]?.weight ?? 0) + weight
        var rest = lines.mapValues { (weight: $0.weight, waiting: $0.waiting[...]) }
        var victims: [Number] = []
        while total > 0, total + weight > capacity {
            guard let most = rest.max(by: { $0.value.weight < $1.value.weight }), most.value.weight > own,
                let last = rest[most.key]?.waiting.popLast()
            else { return nil }
            rest[most.key]?.weight -= last.weight
            total -= last.weight
            victims.append(last.number)
        }
        return victims
    }

    /// Takes the next waiting job, of a host with fewer than `share` running.
    package mutating func take(share: Int) -> (number: Number, job: Job)? {
        guard let turn = turns.firstIndex(where: { lines[$0]?.running ?? 0 < share }) else { return nil }
        let host = turns.remove(at: turn)
        guard var line = lines.removeValue(forKey: host), !line.waiting.isEmpty else { return nil }
        let entry = line.waiting.removeFirst()
        line.weight -= entry.weight
        line.running += 1
        if !line.waiting.isEmpty { turns.append(host) }
        lines[host] = line
        running[entry.number] = (host, entry.weight)
        count -= 1
        return (entry.number, entry.job)
    }

    package mutating func finish(_ number: Number) {
        guard let (host, weight) = running.removeValue(forKey: number) else { return }
        self.weight -= weight
        lines[host]?.running -= 1
        forget(host)
    }

    package mutating func remove(_ number: Number) -> Job? {
        for (host, line) in lines {
            guard let index = line.waiting.firstIndex(where: { $0.number == number }) else { continue }
            let entry = line.waiting[index]
            lines[host]?.waiting.remove(at: index)
            lines[host]?.weight -= entry.weight
            weight -= entry.weight
            count -= 1
            forget(host)
            return entry.job
        }
        return nil
    }

    private mutating func forget(_ host: String) {
        guard let line = lines[host], line.waiting.isEmpty else { return }
        turns.removeAll { $0 == host }
        if line.running == 0 { lines[host] = nil }
    }

    /// The chosen waiting jobs, the oldest of each host first.
    package func numbers(where isChosen: (Job) -> Bool) -> [Number] {
        lines.values.flatMap { $0.waiting.filter { isChosen($0.job) }.map(\.number) }
    }
}
