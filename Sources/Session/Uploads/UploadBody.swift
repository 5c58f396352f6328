import PinproxyTransport

/// The body of a request made here, in pieces, as fast as the origin takes them.
package final class UploadBody: BodySource {
    private let source: any UploadSource
    private var piece = PassingBytes()
    package private(set) var moved: UInt64 = 0
    /// Reports bytes passed on.
    package var progressed: ((UInt64) -> Void)?

    /// - Parameter whenReady: called when bytes are ready after a wait.
    package init(_ source: any UploadSource, whenReady: @escaping () -> Void) {
        self.source = source
        source.moved = whenReady
    }

    // Late reads are ignored.
    deinit { source.close() }

    package var length: Int? { source.length }
    package var canRewind: Bool { source.canRewind }

    package func rewind() {
        source.rewind()
        piece = PassingBytes()
        moved = 0
        progressed?(0)
    }

    package func close() { source.close() }

    package func move(to sink: any BodySink, readable: Bool) -> BodyMove {
        guard !source.isEmpty else { return sink.endBody() }
        while true {
            if !piece.isPassed {
                do throws(StreamError) {
                    let count = try piece.write(to: sink)
                    piece.advance(by: count)
                    moved += UInt64(count)
                } catch {
                    return .sinkFailed(error)
                }
                progressed?(moved)
                guard piece.isPassed else { return .blocked }
            }
            switch source.next() {
            case .bytes(let next):
                piece = PassingBytes(next)
            case .waiting: return .waiting
            case .ended: return sink.endBody()
            case .failed(let failure): return .failed(failure)
            }
        }
    }
}
