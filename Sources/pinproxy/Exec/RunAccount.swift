internal import PinproxyClients

/// The state of a run, from the reports of one or several proxies in sequence.
struct RunAccount: Equatable {
    struct Refused: Equatable {
        let refusal: RunRefusal
        var count: Int
    }

    /// In order of first appearance.
    private(set) var refused: [Refused] = []
    private(set) var requests = 0
    /// Within TLS with the proxy.
    private(set) var inside = 0
    /// Refusals that were counted, but not listed.
    private(set) var unlisted = 0
    /// Unlisted refusals that no proxy knows of.
    private(set) var unlistedHere = 0
    /// A proxy ended, or was lost, before its summary: there may be more refusals.
    private(set) var isIncomplete = false
    /// Whether a proxy has reported on the run.
    private(set) var isKnown = false
    /// Indices in ``refused`` of the refusals that the current proxy has reported.
    private var places: [Int] = []
    private var isHeard = false
    /// Different refusals that no proxy has reported; as many are kept as of a proxy.
    private var refusedHereCount = 0
    private static let refusedHereLimit = 64

    mutating func began() {
        isKnown = true
        isHeard = true
        places = []
    }

    /// - Returns: the refusal, if it is new.
    mutating func received(_ update: RunUpdate) -> RunRefusal? {
        if let refusal = update.refusal { return add(refusal) }
        if let summary = update.summary {
            for (place, count) in zip(places, summary.counts) { refused[place].count += count - 1 }
            requests += summary.requests
            inside += summary.inside
            unlisted += summary.unlisted
            isHeard = false
        }
        return nil
    }

    /// Adds a refusal made without a proxy.
    /// - Returns: the refusal, if it is new.
    mutating func refusedHere(_ refusal: RunRefusal) -> RunRefusal? {
        if let place = refused.firstIndex(where: { $0.refusal.kind == refusal.kind }) {
            refused[place].count += 1
            return nil
        }
        guard refusedHereCount < Self.refusedHereLimit else {
            unlistedHere += 1
            return nil
        }
        refusedHereCount += 1
        refused.append(Refused(refusal: refusal, count: 1))
        return refusal
    }

    /// Counts further refusals that were not listed.
    mutating func refusedHere(unlisted count: Int) { unlistedHere += count }

    private mutating func add(_ refusal: RunRefusal) -> RunRefusal? {
        if let place = refused.firstIndex(where: { $0.refusal.kind == refusal.kind }) {
            refused[place].count += 1
            places.append(place)
            return nil
        }
        places.append(refused.count)
        refused.append(Refused(refusal: refusal, count: 1))
        return refusal
    }

    mutating func lost() {
        if isHeard { isIncomplete = true }
        isHeard = false
    }
}
