/// Stored responses by URL, in the order of their last use. A linked list in an array: each step takes constant time.
struct ResponseShelf {
    /// A URL's responses, the latest first, and its neighbours in the order of use.
    struct Place {
        let key: CacheKey
        var responses: [StoredResponse] = []
        var size = 0
        var before = none
        var after = none
    }

    static let none = -1
    /// For one URL, by Vary.
    static let mostVariants = 16

    private(set) var index: [CacheKey: Int] = [:]
    private(set) var places: [Place?] = []
    private var free: [Int] = []
    private var latest = none
    private var oldest = none
    /// Bytes, about.
    private(set) var size = 0
    /// Responses.
    private(set) var count = 0
    /// Responses with a body in arrival, by URL.
    private var arrivals: [CacheKey: [Arrival]] = [:]

    mutating func use(_ place: Int) {
        guard latest != place else { return }
        unlink(place)
        link(place)
    }

    mutating func insert(_ response: StoredResponse, for key: CacheKey) {
        let place = index[key] ?? add(key)
        guard var known = places[place] else { return }
        known.responses.removeAll { $0.isVariant(of: response) }
        known.responses.insert(response, at: 0)
        if known.responses.count > Self.mostVariants { known.responses.removeLast() }
        set(known, at: place)
        use(place)
    }

    mutating func remove(_ response: StoredResponse, for key: CacheKey) {
        guard let place = index[key], var known = places[place] else { return }
        known.responses.removeAll { $0 === response }
        if known.responses.isEmpty { remove(place) } else { set(known, at: place) }
    }

    /// Replaces a response by another, if it is still there.
    mutating func replace(_ old: StoredResponse, with response: StoredResponse, for key: CacheKey) {
        guard let place = index[key], places[place]?.responses.contains(where: { $0 === old }) == true else { return }
        insert(response, for: key)
        // Vary may name other fields now.
        if response.isVariant(of: old) { return }
        remove(old, for: key)
    }

    // MARK: Arrivals

    mutating func begin(_ arrival: Arrival, of key: CacheKey) { arrivals[key, default: []].append(arrival) }

    mutating func end(_ arrival: Arrival, of key: CacheKey) {
        arrivals[key]?.removeAll { $0 === arrival }
        if arrivals[key]?.isEmpty == true { arrivals[key] = nil }
    }

    /// Abandons arrivals: the URL was removed meanwhile.
    mutating func abandonArrivals(where isMeant: (CacheKey) -> Bool) {
        for (key, list) in arrivals where isMeant(key) { for arrival in list { arrival.abandon() } }
    }

    mutating func abandonArrivals(of key: CacheKey) { for arrival in arrivals[key] ?? [] { arrival.abandon() } }

    // MARK: Places

    private mutating func set(_ place: Place, at number: Int) {
        var place = place
        count += place.responses.count - (places[number]?.responses.count ?? 0)
        size -= place.size
        place.size = place.responses.reduce(place.key.target.count) { $0 + $1.size }
        size += place.size
        places[number] = place
    }

    private mutating func add(_ key: CacheKey) -> Int {
        let place = free.popLast() ?? places.count
        if place == places.count { places.append(nil) }
        places[place] = Place(key: key)
        index[key] = place
        link(place)
        return place
    }

    mutating func remove(_ place: Int) {
        guard let known = places[place] else { return }
        unlink(place)
        size -= known.size
        count -= known.responses.count
        index[known.key] = nil
        places[place] = nil
        free.append(place)
    }

    mutating func purge(to goal: Int) {
        while size > goal, oldest != Self.none { remove(oldest) }
    }

    private mutating func link(_ place: Int) {
        places[place]?.before = Self.none
        places[place]?.after = latest
        if latest != Self.none { places[latest]?.before = place }
        latest = place
        if oldest == Self.none { oldest = place }
    }

    private mutating func unlink(_ place: Int) {
        guard let (before, after) = places[place].map({ ($0.before, $0.after) }) else { return }
        if before == Self.none { latest = after } else { places[before]?.after = after }
        if after == Self.none { oldest = before } else { places[after]?.before = before }
    }
}
