import HTTPWire
import Transport

/// The body of a request that is made here, in pieces, as fast as the origin takes them.
package final class UploadBody: BodySource {
    private let source: any UploadSource
    /// What is passed on, and how much of it was.
    private var piece: [UInt8] = []
    private var position = 0
    package private(set) var moved: UInt64 = 0
    /// Tells of bytes that were passed on.
    var progressed: ((UInt64) -> Void)?

    /// - Parameter whenReady: called when there is something to move after a wait.
    package init(_ source: any UploadSource, whenReady: @escaping () -> Void) {
        self.source = source
        source.moved = whenReady
    }

    var length: Int? { source.length }
    package var canRewind: Bool { source.canRewind }

    package func rewind() {
        source.rewind()
        piece = []
        position = 0
        moved = 0
        progressed?(0)
    }

    /// Nothing more is asked for.
    func close() { source.close() }

    package func move(to sink: any BodySink, readable: Bool) -> BodyMove {
        guard !source.isEmpty else { return end(sink) }
        while true {
            if position < piece.count {
                do throws(StreamError) {
                    let count = try sink.write(piece, from: position)
                    position += count
                    moved += UInt64(count)
                } catch {
                    return .sinkFailed(error)
                }
                progressed?(moved)
                if position < piece.count { return .blocked }
            }
            switch source.next() {
            case .bytes(let next):
                piece = next
                position = 0
            case .waiting: return .waiting
            case .ended: return end(sink)
            case .failed(let failure): return .failed(failure)
            }
        }
    }

    private func end(_ sink: any BodySink) -> BodyMove {
        do throws(StreamError) {
            return try sink.end(TrailerSection()) ? .ended : .blocked
        } catch {
            return .sinkFailed(error)
        }
    }
}
