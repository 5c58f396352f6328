/// Detects the end of a worker's peak, when its memory can be returned to the system. The C library keeps freed memory,
/// which mostly lies between used blocks: 10,000 clients took 207 MB and left 207 MB, with 2 MB in use.
struct PeakWatch {
    /// Connections; smaller peaks aren't worth the walk over the heap.
    static let smallest = 64

    private var peak = 0

    /// Called at each change. True: less than half of a peak is left.
    mutating func changed(to connections: Int) -> Bool {
        peak = max(peak, connections)
        return peak >= Self.smallest && connections <= peak / 2
    }

    /// Called when memory was returned: a new peak begins.
    mutating func gaveBack(at connections: Int) {
        peak = connections
    }
}
