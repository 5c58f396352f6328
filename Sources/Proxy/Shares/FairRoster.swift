/// Connections that a listener keeps, in the order in which they came. One more than there is room for displaces an older one: of the same
/// holder, if that has its share, else of the holder with most.
struct FairRoster<Holder: Hashable, Member: AnyObject> {
    private var share: FairShare<Holder>
    private var entries: [(holder: Holder, member: Member)] = []

    /// - Parameter share: of one holder; a quarter if nil.
    init(places: Int, share: Int? = nil) { self.share = FairShare(places: places, share: share) }

    var members: [Member] { entries.map(\.member) }
    var isEmpty: Bool { entries.isEmpty }

    func contains(_ member: Member) -> Bool { entries.contains { $0.member === member } }

    /// - Parameter isBusy: of two that could be displaced, the other one is.
    /// - Returns: the one that was displaced, which is no longer in it.
    mutating func add(_ member: Member, of holder: Holder, sparing isBusy: (Member) -> Bool = { _ in false }) -> Member? {
        let displaced = share.displaced(by: holder).flatMap { loser in
            let own = entries.filter { $0.holder == loser }.map(\.member)
            return own.first { !isBusy($0) } ?? own.first
        }
        if let displaced { remove(displaced) }
        _ = share.enter(holder)
        entries.append((holder, member))
        return displaced
    }

    mutating func remove(_ member: Member) {
        guard let place = entries.firstIndex(where: { $0.member === member }) else { return }
        share.leave(entries.remove(at: place).holder)
    }
}
