/// The refusals of one run, each once with its count.
struct RunRefusals {
    /// Distinct refusals; others are counted together.
    static let limit = 64

    private(set) var distinct: [RunRefusal] = []
    private(set) var counts: [Int] = []
    private(set) var unlisted = 0
    private var places: [RunRefusal: Int] = [:]

    /// - Returns: whether it is the first of its kind.
    mutating func add(_ refusal: RunRefusal) -> Bool {
        if let place = places[refusal] {
            counts[place] += 1
            return false
        }
        guard distinct.count < Self.limit else {
            unlisted += 1
            return false
        }
        places[refusal] = distinct.count
        distinct.append(refusal)
        counts.append(1)
        return true
    }
}
