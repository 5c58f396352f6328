/// The body of a form in parts, read from its beginning to its end. It holds the files open, not in memory.
///
/// The length is that of the opened files. If one has grown, shrunk or been written to by its last byte, that read
/// throws, so that the upload fails visibly. A file that is renamed, replaced or removed is still sent whole.
public final class MultipartBody {
    enum Segment {
        case bytes([UInt8])
        case file(OpenedFile)

        var length: Int {
            switch self {
            case .bytes(let bytes): bytes.count
            case .file(let file): file.length
            }
        }
    }

    /// The value of Content-Length, in bytes.
    public let contentLength: Int
    private let segments: [Segment]
    /// The next byte: its segment, and the offset in it.
    private var position = (segment: 0, offset: 0)
    private var failure: RequestSerializationError?

    init(_ segments: [Segment]) throws(RequestSerializationError) {
        var length = 0
        for segment in segments {
            let (sum, overflows) = length.addingReportingOverflow(segment.length)
            if overflows, case .file(let file) = segment { throw file.unusable("the body would be longer than 8 EiB") }
            length = sum
        }
        contentLength = length
        self.segments = segments
    }

    /// A body that is one file, under the same rules. Blocks on the disk.
    package convenience init(file path: String) throws(RequestSerializationError) {
        try self.init([.file(try OpenedFile(path: path))])
    }

    /// Fills the buffer as far as the body goes. Blocks on the disk.
    ///
    /// - Returns: how many bytes were read; 0 at the end, or if the buffer has no room.
    /// - Throws: if a file has changed or can't be read. The buffer must not be sent; further calls throw as well.
    public func read(into buffer: UnsafeMutableRawBufferPointer) throws(RequestSerializationError) -> Int {
        if let failure { throw failure }
        do throws(RequestSerializationError) {
            return try fill(buffer)
        } catch {
            failure = error
            throw error
        }
    }

    /// Reads the next bytes, `count` at most; none at the end. As ``read(into:)`` does.
    package func read(_ count: Int) throws(RequestSerializationError) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: min(count, contentLength))
        let filled = try bytes.withUnsafeMutableBufferPointer { buffer throws(RequestSerializationError) in
            try read(into: UnsafeMutableRawBufferPointer(buffer))
        }
        bytes.removeLast(bytes.count - filled)
        return bytes
    }

    /// Goes back to the first byte, for a request that must be sent again. A failure stays.
    public func rewind() { position = (0, 0) }

    private func fill(_ buffer: UnsafeMutableRawBufferPointer) throws(RequestSerializationError) -> Int {
        var filled = 0
        while filled < buffer.count, position.segment < segments.count {
            let segment = segments[position.segment]
            let count = min(segment.length - position.offset, buffer.count - filled)
            let room = UnsafeMutableRawBufferPointer(rebasing: buffer[filled..<filled + count])
            switch segment {
            case .bytes(let bytes): room.copyBytes(from: bytes[position.offset..<position.offset + count])
            case .file(let file):
                try file.read(into: room, from: position.offset)
                if position.offset + count == file.length { try file.checkIsUnchanged() }
            }
            filled += count
            position.offset += count
            if position.offset == segment.length { position = (position.segment + 1, 0) }
        }
        return filled
    }
}
