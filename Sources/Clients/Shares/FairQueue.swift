/// A queue that serves its holders in turn. Each has a share of the places: many elements delay their holder alone.
struct FairQueue<Holder: Hashable, Element> {
    private var share: FairShare<Holder>
    private var lines: [Holder: [Element]] = [:]
    /// Holders with waiting elements, in the order of their turns.
    private var turns: [Holder] = []

    /// - Parameter share: of one holder; a quarter if nil.
    init(places: Int, share: Int? = nil) { self.share = FairShare(places: places, share: share) }

    /// Waiting, or being served.
    var count: Int { share.count }

    /// - Returns: why there is no place for it; nil: it waits.
    mutating func add(_ element: Element, of holder: Holder) -> FairShare<Holder>.Lack? {
        if let lack = share.enter(holder) { return lack }
        if lines[holder] == nil { turns.append(holder) }
        lines[holder, default: []].append(element)
        return nil
    }

    /// Takes the next one out. It keeps its place until ``served(_:)``.
    mutating func next() -> (holder: Holder, element: Element)? {
        guard let holder = turns.first, var line = lines[holder], let element = line.first else { return nil }
        turns.removeFirst()
        line.removeFirst()
        lines[holder] = line.isEmpty ? nil : line
        if !line.isEmpty { turns.append(holder) }
        return (holder, element)
    }

    mutating func served(_ holder: Holder) { share.leave(holder) }
}
