/// A listener's connections, oldest first. When full, a new one displaces one of a holder with its share, or with most.
package struct FairRoster<Holder: Hashable, Member: AnyObject> {
    private var share: FairShare<Holder>
    private var entries: [(holder: Holder, member: Member)] = []

    /// - Parameter share: of one holder; a quarter if nil.
    package init(places: Int, share: Int? = nil) { self.share = FairShare(places: places, share: share) }

    package var members: [Member] { entries.map(\.member) }
    package var isEmpty: Bool { entries.isEmpty }

    package func contains(_ member: Member) -> Bool { entries.contains { $0.member === member } }

    /// - Parameter isBusy: busy members are displaced last.
    /// - Returns: the displaced member, already removed.
    package mutating func add(
        _ member: Member, of holder: Holder, sparing isBusy: (Member) -> Bool = { _ in false }
    ) -> Member? {
        let displaced = share.displaced(by: holder).flatMap { loser in
            let own = entries.filter { $0.holder == loser }.map(\.member)
            return own.first { !isBusy($0) } ?? own.first
        }
        if let displaced { remove(displaced) }
        _ = share.enter(holder)
        entries.append((holder, member))
        return displaced
    }

    package mutating func remove(_ member: Member) {
        guard let place = entries.firstIndex(where: { $0.member === member }) else { return }
        share.leave(entries.remove(at: place).holder)
    }
}
