/// Idle connections, longest idle first: a linked table, so that any is removed in one step and few references are
/// counted.
struct IdleOrder<Connection: AnyObject> {
    private struct Place {
        var connection: Connection?
        var before = 0
        var after = 0
    }

    /// The first place closes the ring, before the longest idle connection. The table never shrinks.
    private var places = [Place()]
    private var free: [Int] = []

    var count: Int { places.count - 1 - free.count }
    var longest: Connection? { places[places[0].after].connection }

    /// - Returns: the place, for ``remove(at:)``.
    mutating func append(_ connection: Connection) -> Int {
        let last = places[0].before
        let place = free.popLast() ?? newPlace()
        places[place].connection = connection
        places[place].before = last
        places[place].after = 0
        places[last].after = place
        places[0].before = place
        return place
    }

    func connection(at place: Int) -> Connection? { places[place].connection }

    mutating func remove(at place: Int) -> Connection {
        let (before, after) = (places[place].before, places[place].after)
        places[before].after = after
        places[after].before = before
        free.append(place)
        guard let connection = places[place].connection.take() else { preconditionFailure("no connection here") }
        return connection
    }

    private mutating func newPlace() -> Int {
        places.append(Place())
        return places.count - 1
    }
}
