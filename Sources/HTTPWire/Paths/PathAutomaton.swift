// One idea with PathPattern.swift: a pattern compiles to an automaton, and reads its elements.

/// A pattern as a nondeterministic automaton, with a state before each element and one at the end. All states run at
/// once: backtracking would be slow for `/**a*b` and a path of 64 KiB.
struct PathAutomaton: Sendable, Hashable {
    enum Element: Sendable, Hashable {
        case literal(UInt8)
        /// `*`.
        case anythingButSlash
        /// `**`.
        case anything
        /// The slash before a segment `**`, present or missing with the `anything` that follows.
        case optionalSlash
    }

    /// A set of states, one bit each: patterns have at most 255 elements.
    typealias States = SIMD4<UInt64>

    let elements: [Element]
    /// For each state, itself and the states reached from it without a byte.
    private let closures: [States]
    /// The literals before the first wildcard, compared first, since most rules match few requests.
    private let prefix: [UInt8]

    var start: States { closures[0] }

    init(_ elements: [Element]) {
        precondition(elements.count < 256)
        self.elements = elements
        closures = Self.closures(of: elements)
        var prefix: [UInt8] = []
        for element in elements {
            guard case .literal(let byte) = element else { break }
            prefix.append(byte)
        }
        self.prefix = prefix
    }

    func accepts(_ path: [UInt8]) -> Bool {
        guard path.count >= prefix.count else { return false }
        for index in prefix.indices where path[index] != prefix[index] { return false }
        var states = closures[prefix.count]
        for index in prefix.count..<path.count {
            if acceptsAnyRest(states) { return true }
            states = step(states, path[index])
            if states == .zero { return false }
        }
        return isAccepting(states)
    }

    /// The pattern ends with `**`, and nothing else is left of it.
    private func acceptsAnyRest(_ states: States) -> Bool {
        guard elements.last == .anything else { return false }
        let last = elements.count - 1
        return states[last >> 6] & 1 << UInt64(last & 63) != 0
    }

    func isAccepting(_ states: States) -> Bool {
        states[elements.count >> 6] & 1 << UInt64(elements.count & 63) != 0
    }

    func step(_ states: States, _ byte: UInt8) -> States {
        var next = States.zero
        for word in 0...elements.count >> 6 {
            var bits = states[word]
            while bits != 0 {
                let state = word << 6 + bits.trailingZeroBitCount
                bits &= bits - 1
                guard state < elements.count else { break }
                switch elements[state] {
                case .literal(let literal):
                    if literal == byte { next |= closures[state + 1] }
                case .anythingButSlash:
                    if byte != UInt8(ascii: "/") { next |= closures[state] }
                case .anything:
                    next |= closures[state]
                case .optionalSlash:
                    if byte == UInt8(ascii: "/") { next |= closures[state + 1] }
                }
            }
        }
        return next
    }

    private static func closures(of elements: [Element]) -> [States] {
        var closures = [States](repeating: .zero, count: elements.count + 1)
        // From the end, since no state reaches an earlier one.
        for state in closures.indices.reversed() {
            closures[state][state >> 6] = 1 << UInt64(state & 63)
            guard state < elements.count else { continue }
            switch elements[state] {
            case .literal: break
            case .anythingButSlash, .anything: closures[state] |= closures[state + 1]
            case .optionalSlash: closures[state] |= closures[state + 2]
            }
        }
        return closures
    }
}

extension PathPattern {
    /// True if this pattern covers every path of the other one. False if intricate patterns would take long.
    package func covers(_ other: PathPattern) -> Bool {
        let (ours, theirs) = (automaton, other.automaton)
        // One byte represents all that neither pattern names.
        var alphabet: Set<UInt8> = [UInt8(ascii: "/"), 1]
        for case .literal(let byte) in ours.elements + theirs.elements { alphabet.insert(byte) }

        struct Pair: Hashable {
            let theirs: Int
            let ours: PathAutomaton.States
        }
        var seen: Set<Pair> = []
        var open: [Pair] = []
        func note(_ states: PathAutomaton.States, _ ours: PathAutomaton.States) {
            for state in 0...theirs.elements.count where states[state >> 6] & 1 << UInt64(state & 63) != 0 {
                let pair = Pair(theirs: state, ours: ours)
                if seen.insert(pair).inserted { open.append(pair) }
            }
        }
        note(theirs.start, ours.start)
        while let pair = open.popLast() {
            guard seen.count < 20_000 else { return false }
            if pair.theirs == theirs.elements.count {
                guard ours.isAccepting(pair.ours) else { return false }
                continue
            }
            var state = PathAutomaton.States.zero
            state[pair.theirs >> 6] = 1 << UInt64(pair.theirs & 63)
            for byte in alphabet {
                let next = theirs.step(state, byte)
                guard next != .zero else { continue }
                let reached = ours.step(pair.ours, byte)
                // Some path reaches the end from each of their states.
                guard reached != .zero else { return false }
                note(next, reached)
            }
        }
        return true
    }
}
