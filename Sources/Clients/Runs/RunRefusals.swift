/// The refusals of one run, each once with its count.
struct RunRefusals {
    /// Distinct refusals; others are counted together.
    static let limit = 64

    private(set) var distinct: [RunRefusal] = []
    private(set) var counts: [Int] = []
    private(set) var unlisted = 0
    /// Indices in ``distinct``.
    private var places: [RunRefusal: Int] = [:]

    /// - Returns: whether it is the first of its kind.
    mutating func add(_ refusal: RunRefusal) -> Bool {
        let kind = refusal.kind
        if let place = places[kind] {
            counts[place] += 1
            return false
        }
        guard distinct.count < Self.limit else {
            unlisted += 1
            return false
        }
        places[kind] = distinct.count
        distinct.append(refusal)
        counts.append(1)
        return true
    }
}
