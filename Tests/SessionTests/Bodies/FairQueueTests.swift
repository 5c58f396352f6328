import Testing

@testable import PinproxySession

@Suite struct FairQueueTests {
    private func add(_ job: String, of host: String, _ size: Int = 0, to queue: inout FairQueue<String>) -> [String]? {
        switch queue.add(job, of: host, size: size) {
        case .waits(_, let displaced): displaced
        case .refused: nil
        }
    }

    private func all(of queue: inout FairQueue<String>, share: Int = .max) -> [String] {
        var jobs: [String] = []
        while let (_, job) = queue.take(share: share) { jobs.append(job) }
        return jobs
    }

    @Test func hostsTakeTurnsAndTheirJobsKeepTheirOrder() {
        var queue = FairQueue<String>()
        for number in 1...4 { _ = add("a\(number)", of: "a", to: &queue) }
        _ = add("b1", of: "b", to: &queue)
        for number in 1...2 { _ = add("c\(number)", of: "c", to: &queue) }
        #expect(all(of: &queue) == ["a1", "b1", "c1", "a2", "c2", "a3", "a4"])
    }

    /// A host that comes back waits behind those already waiting.
    @Test func aHostThatComesAgainHasItsTurnLast() {
        var queue = FairQueue<String>()
        _ = add("a1", of: "a", to: &queue)
        _ = add("b1", of: "b", to: &queue)
        #expect(queue.take(share: 1)?.job == "a1")
        _ = add("a2", of: "a", to: &queue)
        #expect(all(of: &queue, share: 2) == ["b1", "a2"])
    }

    @Test func aHostHasNoMoreThanItsShareInProgress() {
        var queue = FairQueue<String>()
        for number in 1...3 { _ = add("a\(number)", of: "a", to: &queue) }
        let first = queue.take(share: 2)
        #expect(queue.take(share: 2)?.job == "a2")
        #expect(queue.take(share: 2) == nil)
        _ = add("b1", of: "b", to: &queue)
        #expect(queue.take(share: 2)?.job == "b1")
        if let first { queue.finish(first.number) }
        #expect(queue.take(share: 2)?.job == "a3")
    }

    @Test func whoBringsMuchMakesRoomForOthers() {
        var queue = FairQueue<String>(capacity: 100, jobs: 10)
        for number in 1...10 { #expect(add("a\(number)", of: "a", to: &queue) == []) }
        // A host can't evict its own jobs.
        #expect(add("a11", of: "a", to: &queue) == nil)
        #expect(add("b1", of: "b", to: &queue) == ["a10"])
        #expect(add("b2", of: "b", 20, to: &queue) == ["a9", "a8"])
        // By then it would hold more than the other host.
        #expect(add("b3", of: "b", 50, to: &queue) == nil)
        #expect(queue.count == 9)
        #expect(all(of: &queue) == ["a1", "b1", "a2", "b2", "a3", "a4", "a5", "a6", "a7"])
    }

    @Test func whatIsInProgressCountsAndKeepsItsPlace() {
        var queue = FairQueue<String>(capacity: 100, jobs: 10)
        _ = add("a1", of: "a", 100, to: &queue)
        let taken = queue.take(share: 1)
        #expect(taken?.job == "a1")
        #expect(add("b1", of: "b", to: &queue) == nil)
        if let taken { queue.finish(taken.number) }
        #expect(queue.isEmpty && add("b1", of: "b", 1000, to: &queue) == [])
    }

    @Test func aJobThatIsRemovedTakesNoPlace() throws {
        var queue = FairQueue<String>(capacity: 100, jobs: 2)
        guard case .waits(let number, _) = queue.add("a1", of: "a", size: 0) else { return #expect(Bool(false)) }
        _ = add("b1", of: "b", to: &queue)
        #expect(add("c1", of: "c", to: &queue) == nil)
        #expect(queue.remove(number) == "a1" && queue.remove(number) == nil)
        #expect(add("c1", of: "c", to: &queue) == [])
        #expect(all(of: &queue) == ["b1", "c1"])
        #expect(queue.remove(number) == nil)
    }

    /// In any order of events each job comes out once, the bounds hold, and nothing is left at the end.
    @Test func nothingIsLostInAnyOrder() {
        var random = SystemRandomNumberGenerator()
        for _ in 0..<200 {
            var queue = FairQueue<Int>(capacity: 1000, jobs: 20)
            var waiting: [FairQueue<Int>.Number: Int] = [:]
            var running: [FairQueue<Int>.Number: String] = [:]
            var hosts: [Int: String] = [:]
            for job in 0..<300 {
                switch Int.random(in: 0..<5, using: &random) {
                case 0, 1:
                    let host = ["a", "b", "c"].randomElement(using: &random) ?? "a"
                    hosts[job] = host
                    if case .waits(let number, let displaced) = queue.add(
                        job, of: host, size: Int.random(in: 0...300, using: &random))
                    {
                        waiting[number] = job
                        for gone in displaced {
                            #expect(hosts[gone] != host)
                            waiting = waiting.filter { $0.value != gone }
                        }
                    }
                case 2:
                    if let (number, job) = queue.take(share: 2) {
                        #expect(waiting.removeValue(forKey: number) == job)
                        running[number] = hosts[job]
                    }
                case 3:
                    if let number = running.keys.randomElement(using: &random) {
                        queue.finish(number)
                        running[number] = nil
                    }
                default:
                    if let number = waiting.keys.randomElement(using: &random) {
                        #expect(queue.remove(number) == waiting.removeValue(forKey: number))
                    }
                }
                #expect(queue.count == waiting.count && waiting.count + running.count <= 20)
                #expect(["a", "b", "c"].allSatisfy { host in running.values.count { $0 == host } <= 2 })
            }
            for number in running.keys { queue.finish(number) }
            while let (number, job) = queue.take(share: .max) {
                #expect(waiting.removeValue(forKey: number) == job)
                queue.finish(number)
            }
            #expect(waiting.isEmpty && queue.isEmpty)
        }
    }
}
