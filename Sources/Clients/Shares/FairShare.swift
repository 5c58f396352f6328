/// A number of places with a limit per holder: one user can't keep out all others.
package struct FairShare<Holder: Hashable> {
    package enum Lack: Error, Equatable {
        case places(Int)
        /// The holder has its share of them.
        case share(Int)

        /// `64 passwords`, or `16 passwords of user 1000`
        package func text(_ what: String, of holder: Holder) -> String {
            switch self {
            case .places(let count): "\(count) \(what)"
            case .share(let count): "\(count) \(what) of \(holder)"
            }
        }
    }

    let places: Int
    let share: Int
    private var taken: [Holder: Int] = [:]
    private(set) var count = 0

    /// - Parameter share: of one holder; a quarter if nil.
    package init(places: Int, share: Int? = nil) {
        self.places = places
        self.share = share ?? max(1, places / 4)
    }

    func taken(by holder: Holder) -> Int { taken[holder] ?? 0 }

    /// Why the holder gets no place; nil: it would get one.
    package func lack(for holder: Holder) -> Lack? {
        if taken(by: holder) >= share { return .share(share) }
        return count >= places ? .places(places) : nil
    }

    /// Takes a place. Call ``leave(_:)`` once for each.
    /// - Returns: why no place was taken; nil: one was.
    package mutating func enter(_ holder: Holder) -> Lack? {
        if let lack = lack(for: holder) { return lack }
        taken[holder, default: 0] += 1
        count += 1
        return nil
    }

    package mutating func leave(_ holder: Holder) {
        guard let number = taken[holder] else { return }
        taken[holder] = number > 1 ? number - 1 : nil
        count -= 1
    }

    /// The holder that loses a place to a new one: the same holder if it has its share, else the largest.
    func displaced(by holder: Holder) -> Holder? {
        switch lack(for: holder) {
        case nil: nil
        case .share: holder
        case .places: taken.max { $0.value < $1.value }?.key
        }
    }
}
