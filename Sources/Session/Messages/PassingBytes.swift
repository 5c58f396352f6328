package import PinproxyTransport

/// Bytes being written to a sink.
package struct PassingBytes {
    private(set) var all: [UInt8]
    private(set) var position = 0

    package init(_ bytes: [UInt8] = []) { all = bytes }

    package var isPassed: Bool { position == all.count }
    var left: Int { all.count - position }

    /// Writes to the sink, and returns the count for ``advance(by:)``: no access lasts while a sink works.
    package func write(to sink: any BodySink) throws(StreamError) -> Int {
        isPassed ? 0 : try sink.write(all.span.bytes.extracting(droppingFirst: position))
    }

    package mutating func advance(by count: Int) { position += count }

    mutating func rewind() { position = 0 }

    /// Adds bytes that the sink has taken already.
    mutating func append(passed piece: RawSpan) {
        all.append(copying: piece)
        position = all.count
    }
}
