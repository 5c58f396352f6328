/// What a session knows of the streams that are open. nghttp2 keeps the place of each as the stream's user data.
struct StreamTable {
    struct Flags: OptionSet {
        let rawValue: UInt8
        /// No event follows: it was reset, from whichever side.
        static let isReset = Flags(rawValue: 1)
        /// It is in the schedule.
        static let isScheduled = Flags(rawValue: 2)
        /// The final response was received.
        static let hasResponse = Flags(rawValue: 4)
        /// It is in use.
        static let isOpen = Flags(rawValue: 8)
        /// What the peer sends is thrown away; when this side has ended, the stream is reset.
        static let isAbandoned = Flags(rawValue: 16)
        /// Its owner knows of it: it has opened it, or its request was an event.
        static let isKnown = Flags(rawValue: 32)
    }

    struct Stream {
        var id = HTTP2StreamID(0)
        var flags: Flags = []
        var priority = HTTP2Priority.unspecified

        /// Its end is an event.
        var isToBeHeardOf: Bool { flags.contains(.isKnown) && !flags.contains(.isReset) }

        /// What the peer sends becomes an event.
        var hearsPeer: Bool { flags.isDisjoint(with: [.isReset, .isAbandoned]) }
    }

    /// A place in the table, which is never nil as a pointer.
    struct Place: Equatable {
        fileprivate let index: Int

        var userData: UnsafeMutableRawPointer? { UnsafeMutableRawPointer(bitPattern: index + 1) }
    }

    private var streams: [Stream] = []
    private var vacant: [Int] = []

    var openCount: Int { streams.count - vacant.count }

    mutating func open(_ id: HTTP2StreamID, _ priority: HTTP2Priority) -> Place {
        let stream = Stream(id: id, flags: .isOpen, priority: priority)
        if let index = vacant.popLast() {
            streams[index] = stream
            return Place(index: index)
        }
        streams.append(stream)
        return Place(index: streams.count - 1)
    }

    mutating func close(_ place: Place) {
        streams[place.index].flags = []
        vacant.append(place.index)
    }

    /// The place of a stream, from its user data; nil if it isn't open.
    func place(_ userData: UnsafeMutableRawPointer) -> Place? {
        let index = Int(bitPattern: userData) - 1
        return streams.indices.contains(index) && streams[index].flags.contains(.isOpen) ? Place(index: index) : nil
    }

    /// The place of a stream, by a search.
    func place(of id: HTTP2StreamID) -> Place? {
        streams.firstIndex { $0.id == id && $0.flags.contains(.isOpen) }.map(Place.init)
    }

    subscript(place: Place) -> Stream {
        get { streams[place.index] }
        _modify { yield &streams[place.index] }
    }
}
