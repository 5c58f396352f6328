/// Idle connections in the order in which they became idle.
///
/// Each lies in a place of a table, and the places are linked by their numbers: the one in the middle is taken out as easily
/// as the first. The table alone holds what lies in it, so that few references are counted when one comes or goes, which is
/// once for each exchange.
struct RestingOrder<Connection: AnyObject> {
    private struct Place {
        var connection: Connection?
        var before = 0
        var after = 0
    }

    /// The first is nobody's, and closes the ring: after it comes the connection that has rested longest. The table stays as
    /// long as it ever was: a place is nothing beside a connection.
    private var places = [Place()]
    private var free: [Int] = []

    var count: Int { places.count - 1 - free.count }
    /// The one that has rested longest.
    var longest: Connection? { places[places[0].after].connection }

    /// - Returns: its place, for ``remove(at:)``.
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

    /// What lies in a place that ``append(_:)`` has given.
    func connection(at place: Int) -> Connection? { places[place].connection }

    mutating func remove(at place: Int) -> Connection {
        let (before, after) = (places[place].before, places[place].after)
        places[before].after = after
        places[after].before = before
        free.append(place)
        guard let connection = places[place].connection.take() else { preconditionFailure("nothing rests there") }
        return connection
    }

    private mutating func newPlace() -> Int {
        places.append(Place())
        return places.count - 1
    }
}
