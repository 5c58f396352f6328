import PinproxyEventLoop
import PinproxySession

/// Sources one after the other, for a form with generated parts at its end.
final class JoinedSource: UploadSource {
    private let sources: [any UploadSource]
    private var position = 0
    let length: Int?
    var moved: (() -> Void)? { didSet { for source in sources { source.moved = moved } } }

    init(_ sources: [any UploadSource]) {
        self.sources = sources
        var sum: Int? = 0
        for source in sources {
            guard let known = sum, let length = source.length else {
                sum = nil
                break
            }
            let (total, overflows) = known.addingReportingOverflow(length)
            sum = overflows ? nil : total
        }
        length = sum
    }

    var isEmpty: Bool { false }
    var canRewind: Bool { sources.allSatisfy(\.canRewind) }

    func next() -> BodyPiece {
        while position < sources.count {
            let piece = sources[position].next()
            guard case .ended = piece else { return piece }
            position += 1
        }
        return .ended
    }

    func rewind() {
        for source in sources.prefix(position + 1) { source.rewind() }
        position = 0
    }

    func close() { for source in sources { source.close() } }
}
