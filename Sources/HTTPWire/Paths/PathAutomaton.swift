/// A pattern as the nondeterministic automaton that it describes: one state in front of each element, and
/// one at the end. It is run with all its states at once, so that no path makes it slow, as backtracking
/// would be for `/**a*b` and a path of 64 KiB.
struct PathAutomaton: Sendable, Hashable {
    enum Element: Sendable, Hashable {
        case literal(UInt8)
        /// `*`.
        case anythingButSlash
        /// `**`.
        case anything
        /// The slash in front of a segment `**`: it is there, or it is missing together with the
        /// `anything` that follows.
        case optionalSlash
    }

    /// A set of states, one bit each: patterns have at most 255 elements.
    typealias States = SIMD4<UInt64>

    let elements: [Element]
    /// The states in which a path begins.
    let start: States

    init(_ elements: [Element]) {
        precondition(elements.count < 256)
        self.elements = elements
        start = Self.states(from: 0, of: elements)
    }

    func accepts(_ path: [UInt8]) -> Bool {
        var states = start
        for byte in path {
            states = step(states, byte)
            if states == .zero { return false }
        }
        return isAccepting(states)
    }

    func isAccepting(_ states: States) -> Bool {
        states[elements.count >> 6] & 1 << UInt64(elements.count & 63) != 0
    }

    /// The states after one more byte.
    func step(_ states: States, _ byte: UInt8) -> States {
        var next = States.zero
        Self.forEach(states) { state in
            guard state < elements.count else { return }
            switch elements[state] {
            case .literal(let literal):
                if literal == byte { enter(state + 1, &next) }
            case .anythingButSlash:
                if byte != UInt8(ascii: "/") { enter(state, &next) }
            case .anything:
                enter(state, &next)
            case .optionalSlash:
                if byte == UInt8(ascii: "/") { enter(state + 1, &next) }
            }
        }
        return next
    }

    static func forEach(_ states: States, _ body: (Int) -> Void) {
        for word in 0..<4 {
            var bits = states[word]
            while bits != 0 {
                body(word << 6 + bits.trailingZeroBitCount)
                bits &= bits - 1
            }
        }
    }

    private func enter(_ state: Int, _ states: inout States) { Self.enter(state, &states, elements) }

    private static func states(from state: Int, of elements: [Element]) -> States {
        var states = States.zero
        enter(state, &states, elements)
        return states
    }

    /// Adds a state, and those that are reached from it without a byte.
    private static func enter(_ state: Int, _ states: inout States, _ elements: [Element]) {
        let (word, bit) = (state >> 6, 1 << UInt64(state & 63) as UInt64)
        guard states[word] & bit == 0 else { return }
        states[word] |= bit
        guard state < elements.count else { return }
        switch elements[state] {
        case .literal: break
        case .anythingButSlash, .anything: enter(state + 1, &states, elements)
        case .optionalSlash: enter(state + 2, &states, elements)
        }
    }
}

extension PathPattern {
    /// True if every path that matches the other pattern matches this one too. Exact, but for patterns so
    /// intricate that it would take long to say; of those it says false.
    package func covers(_ other: PathPattern) -> Bool {
        let (ours, theirs) = (automaton, other.automaton)
        // Of bytes that neither pattern names, one speaks for all.
        var alphabet: Set<UInt8> = [UInt8(ascii: "/"), 1]
        for case .literal(let byte) in ours.elements + theirs.elements { alphabet.insert(byte) }

        struct Pair: Hashable {
            let theirs: Int
            let ours: PathAutomaton.States
        }
        var seen: Set<Pair> = []
        var open: [Pair] = []
        func note(_ states: PathAutomaton.States, _ ours: PathAutomaton.States) {
            PathAutomaton.forEach(states) { state in
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
                // From each of their states some path leads to the end.
                guard reached != .zero else { return false }
                note(next, reached)
            }
        }
        return true
    }
}
