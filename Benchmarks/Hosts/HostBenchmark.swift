// How long it takes to read a pin file of 100,000 entries, and to find a host in it. See ../README.md.

import Foundation
import Glibc
import PinproxyConfiguration
import PinproxySecurity

@main struct HostBenchmark {
    static let entryCount = 100_000
    static let rounds = 15

    static func main() throws {
        var random = SplitMix(state: 3)
        let hosts = BenchmarkHosts(count: entryCount, using: &random)
        let directory = try FileManager.default.url(
            for: .itemReplacementDirectory, in: .userDomainMask,
            appropriateFor: FileManager.default.temporaryDirectory, create: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        let daemon = directory.appending(path: "pinproxy.yaml")
        try "pins: pins.yaml\n".write(to: daemon, atomically: false, encoding: .utf8)
        try hosts.pinFile.write(to: directory.appending(path: "pins.yaml"), atomically: false, encoding: .utf8)

        var snapshot = try Snapshot.load(daemon.path, stateDirectory: directory.path)
        var loads: [Double] = []
        for _ in 0..<3 {
            loads.append(try seconds { snapshot = try Snapshot.load(daemon.path, stateDirectory: directory.path) })
        }
        print("reading \(entryCount) entries: \(text(loads.sorted()[1])) s")

        let ballast = Ballast()
        let entries = snapshot.hosts
        let numbers = HostTable(entries.entries.enumerated().map { ($0.element.pattern, $0.offset) })
        for (kind, names, isFound) in [("found", hosts.found, true), ("not found", hosts.notFound, false)] {
            let one = Array(repeating: names[0], count: names.count)
            report("\(kind), always the same", each(one, in: numbers, isFound))
            report("\(kind), all in random order", each(names, in: numbers, isFound))
            report("\(kind), nothing in a cache", each(names, in: numbers, isFound, evicting: ballast))
        }
        report("found, all in random order, with the entry", each(hosts.found, in: entries, true))
        report("found, nothing in a cache, with the entry", each(hosts.found, in: entries, true, evicting: ballast))
    }

    /// Nanoseconds per lookup, in each round. The names are in memory in the order of the lookups, since a request's
    /// name is fresh too.
    static func each<Value>(
        _ names: [String], in table: HostTable<Value>, _ isFound: Bool, evicting ballast: Ballast? = nil
    ) -> [Double] {
        (0..<rounds).map { round in
            let step = ballast == nil ? names.count : 500
            let starts = ballast == nil ? [0] : (0..<4).map { (round * 4 + $0) * step % (names.count - step) }
            var found = 0
            var time = 0.0
            for start in starts {
                ballast?.walk()
                time += seconds {
                    for name in names[start..<start + step] where table.value(forHost: name, port: 443) != nil {
                        found += 1
                    }
                }
            }
            let asked = step * starts.count
            precondition(found == (isFound ? asked : 0))
            return time * 1e9 / Double(asked)
        }
    }

    /// Processor time of this thread, since others use the machine as well.
    static func seconds(_ work: () throws -> Void) rethrows -> Double {
        func now() -> Double {
            var time = timespec()
            clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
            return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
        }
        let start = now()
        try work()
        return now() - start
    }

    static func report(_ what: String, _ nanoseconds: [Double]) {
        let sorted = nanoseconds.sorted()
        print("\(what): \(text(sorted[sorted.count / 2] / 1000)) µs (best \(text(sorted[0] / 1000)))")
    }

    static func text(_ number: Double) -> String { String(format: "%.2f", number) }
}

/// Unrelated memory, more than the caches hold.
struct Ballast {
    private let words = [UInt64](repeating: 1, count: 16 << 20)

    func walk() {
        var sum: UInt64 = 0
        for index in stride(from: 0, to: words.count, by: 8) { sum &+= words[index] }
        precondition(sum == UInt64(words.count / 8))
    }
}
