internal import Synchronization

/// Recently resolved names, shared by all loops' resolvers; bounded, by least recent use.
package final class ResolverCache: Sendable {
    typealias Answer = Result<AddressAnswer, ResolutionError>

    private struct Entry {
        let answer: Answer
        let expires: MonotonicTime
    }

    /// Approximates least recent use with two generations: a hit moves an entry to the young one, which becomes the old
    /// one at half of the limit.
    private struct Contents {
        var young: [String: Entry] = [:]
        var old: [String: Entry] = [:]
        var epoch: UInt64 = 0
    }

    private static let second: UInt64 = 1_000_000_000
    private static let shortest = second
    private static let longest = 3600 * second
    private static let negative = 5 * second

    private let capacity: Int
    private let contents = Mutex(Contents())

    /// - Parameter capacity: names, at least two.
    package init(capacity: Int = 4096) {
        self.capacity = max(capacity, 2)
    }

    package var count: Int {
        contents.withLock { contents in contents.young.count + contents.old.count }
    }

    /// Drops all answers, including those of look-ups in flight.
    package func removeAll() {
        contents.withLock { contents in
            contents = Contents(epoch: contents.epoch + 1)
        }
    }

    /// Changes with ``removeAll()``: an answer is stored only in the epoch of its query.
    var epoch: UInt64 {
        contents.withLock { $0.epoch }
    }

    /// Nil without an answer still valid at `now`.
    func answer(for name: String, at now: MonotonicTime) -> Answer? {
        contents.withLock { contents in
            if let entry = contents.young[name] {
                if now < entry.expires { return entry.answer }
                contents.young[name] = nil
            } else if let entry = contents.old.removeValue(forKey: name), now < entry.expires {
                insert(entry, for: name, into: &contents)
                return entry.answer
            }
            return nil
        }
    }

    /// Keeps an answer for its time to live, within a second and an hour, and a missing name for five seconds.
    /// Temporary failures aren't kept.
    func store(_ answer: Answer, for name: String, timeToLive: Int, epoch: UInt64, at now: MonotonicTime) {
        let lifetime: UInt64
        switch answer {
        case .success:
            let nanoseconds = UInt64(max(timeToLive, 0)).multipliedReportingOverflow(by: Self.second)
            lifetime = min(max(nanoseconds.overflow ? .max : nanoseconds.partialValue, Self.shortest), Self.longest)
        case .failure(let error):
            guard error.isAboutName else { return }
            lifetime = Self.negative
        }
        contents.withLock { contents in
            guard contents.epoch == epoch else { return }
            contents.old[name] = nil
            insert(
                Entry(answer: answer, expires: now.advanced(byNanoseconds: lifetime)), for: name, into: &contents)
        }
    }

    private func insert(_ entry: Entry, for name: String, into contents: inout Contents) {
        if contents.young.count >= capacity / 2, contents.young[name] == nil {
            contents.old = contents.young
            contents.young = [:]
        }
        contents.young[name] = entry
    }
}
