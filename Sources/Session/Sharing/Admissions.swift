import PinproxyEventLoop
import Synchronization

/// Limits each host's exchanges over all workers (`session.max_active`), and queues the others.
package final class Admissions: Sendable {
    struct Place: Hashable {
        let host: String
        let port: UInt16
    }

    fileprivate struct Waiting {
        let number: UInt64
        let limit: Int
        let order: SessionRules.Order
        let admitted: @Sendable () -> Void
    }

    fileprivate struct Gate {
        var active = 0
        var waiting: [Waiting] = []
    }

    private struct State {
        var gates: [Place: Gate] = [:]
        var lastNumber: UInt64 = 0
    }

    private let state = Mutex(State())

    package init() {}

    /// - Parameter admitted: called once on any thread when its turn comes; not if there is room now.
    /// - Returns: a number for ``leave(_:_:)``, and whether there is room.
    func enter(
        _ place: Place, limit: Int, order: SessionRules.Order, admitted: @escaping @Sendable () -> Void
    ) -> (number: UInt64, isAdmitted: Bool) {
        state.withLock { state in
            state.lastNumber += 1
            let number = state.lastNumber
            var gate = state.gates[place] ?? Gate()
            let isAdmitted = gate.active < limit && gate.waiting.isEmpty
            if isAdmitted {
                gate.active += 1
            } else {
                gate.waiting.append(Waiting(number: number, limit: limit, order: order, admitted: admitted))
            }
            state.gates[place] = gate
            return (number, isAdmitted)
        }
    }

    /// The exchange ended, or stopped waiting. Call it once for each that entered.
    func leave(_ place: Place, _ number: UInt64) {
        let next = state.withLock { state -> [Waiting] in
            guard var gate = state.gates[place] else { return [] }
            if let index = gate.waiting.firstIndex(where: { $0.number == number }) {
                gate.waiting.remove(at: index)
            } else {
                gate.active -= 1
            }
            let next = gate.admit()
            state.gates[place] = gate.active == 0 && gate.waiting.isEmpty ? nil : gate
            return next
        }
        for waiting in next { waiting.admitted() }
    }
}

extension Admissions.Gate {
    /// Waiting exchanges that now have room: one configuration may allow more than another did.
    fileprivate mutating func admit() -> [Admissions.Waiting] {
        var admitted: [Admissions.Waiting] = []
        while let next = waiting.last?.order == .lifo ? waiting.last : waiting.first, active < next.limit {
            if next.order == .lifo { waiting.removeLast() } else { waiting.removeFirst() }
            active += 1
            admitted.append(next)
        }
        return admitted
    }
}

/// One exchange's turn, awaited or granted. Lives on the exchange's loop.
final class Admission {
    private let place: Admissions.Place
    private let admissions: Admissions
    let limit: Int
    private(set) var isWaiting = false
    private var number: UInt64 = 0
    private var admitted: (() -> Void)?

    /// - Parameter admitted: called when its turn comes, unless granted at once.
    init(
        to target: UpstreamTarget, by rules: SessionRules, limit: Int, among admissions: Admissions, on loop: EventLoop,
        admitted: @escaping () -> Void
    ) {
        place = Admissions.Place(host: target.host, port: target.port)
        self.admissions = admissions
        self.limit = limit
        self.admitted = admitted
        let admission = LoopBound(self, on: loop)
        let handle = loop.handle
        let entry = admissions.enter(place, limit: limit, order: rules.order) {
            handle.post { admission.value(on: $0).turnHasCome() }
        }
        number = entry.number
        isWaiting = !entry.isAdmitted
    }

    func isFor(_ target: UpstreamTarget) -> Bool { place == Admissions.Place(host: target.host, port: target.port) }

    private func turnHasCome() {
        guard isWaiting, let admitted else { return }
        isWaiting = false
        admitted()
    }

    func leave() {
        isWaiting = false
        admitted = nil
        admissions.leave(place, number)
    }
}
