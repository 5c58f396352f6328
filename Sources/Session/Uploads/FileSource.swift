package import PinproxyEventLoop
import PinproxySerialization

package final class FileSource: UploadSource {
    package let length: Int?
    package var isEmpty: Bool { false }
    package let canRewind: Bool
    package var moved: (() -> Void)?
    private let reader: UploadReader
    private let loop: EventLoop
    private var left: Int
    private var isReading = false
    private var arrived: Result<[UInt8], RequestSerializationError>?
    /// Reads begun for an earlier round are dropped.
    private var round = 0

    package init(_ reader: UploadReader, on loop: EventLoop, canRewind: Bool = true) {
        self.reader = reader
        length = reader.length
        self.loop = loop
        left = reader.length
        self.canRewind = canRewind
    }

    package func next() -> BodyPiece {
        if let arrived {
            self.arrived = nil
            switch arrived {
            case .success(let bytes):
                left -= bytes.count
                return .bytes(bytes)
            case .failure(let error): return .failed(.requestBroke(error))
            }
        }
        guard left > 0 else { return .ended }
        read()
        return .waiting
    }

    private func read() {
        guard !isReading else { return }
        isReading = true
        let source = LoopBound(self, on: loop)
        let handle = loop.handle
        reader.read { [round] result in
            handle.post { source.value(on: $0).read(result, in: round) }
        }
    }

    private func read(_ result: Result<[UInt8], RequestSerializationError>, in round: Int) {
        guard round == self.round else { return }
        isReading = false
        arrived = result
        moved?()
    }

    package func rewind() {
        round += 1
        isReading = false
        arrived = nil
        left = length ?? 0
        reader.rewind()
    }

    package func close() { moved = nil }
}
