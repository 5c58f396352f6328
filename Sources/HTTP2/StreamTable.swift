/// The open streams of a session. nghttp2 holds each stream's place as its user data.
struct StreamTable {
    struct Flags: OptionSet {
        let rawValue: UInt8
        /// Reset by either side; no event follows.
        static let isReset = Flags(rawValue: 1)
        /// Is in the schedule.
        static let isScheduled = Flags(rawValue: 2)
        /// The final response arrived.
        static let hasResponse = Flags(rawValue: 4)
        /// In use.
        static let isOpen = Flags(rawValue: 8)
        /// The rest of the request is discarded; the stream is reset after the response.
        static let isAbandoned = Flags(rawValue: 16)
        /// Opened by the owner, or announced to it by an event.
        static let isKnown = Flags(rawValue: 32)
    }

    struct Stream {
        var id = HTTP2StreamID(0)
        var flags: Flags = []
        var priority = HTTP2Priority.unspecified
        /// Growth of its receive window, in bytes.
        var widened = 0

        /// A reset becomes an event.
        var isToBeHeardOf: Bool { flags.contains(.isKnown) && !flags.contains(.isReset) }

        /// Body, trailers and end become events.
        var hearsPeer: Bool { flags.isDisjoint(with: [.isReset, .isAbandoned]) }
    }

    /// An index into the table.
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

    /// The place in a stream's user data; nil if the stream isn't open.
    func place(_ userData: UnsafeMutableRawPointer) -> Place? {
        let index = Int(bitPattern: userData) - 1
        return streams.indices.contains(index) && streams[index].flags.contains(.isOpen) ? Place(index: index) : nil
    }

    /// The place of a stream, by linear search.
    func place(of id: HTTP2StreamID) -> Place? {
        streams.firstIndex { $0.id == id && $0.flags.contains(.isOpen) }.map(Place.init)
    }

    subscript(place: Place) -> Stream {
        get { streams[place.index] }
        _modify { yield &streams[place.index] }
    }
}
