import PinproxyCaching
import PinproxyEventLoop
import PinproxyHTTPWire

/// The part of a stored response that a request gets: all of it, its head, a range, or a 304.
struct ServedResponse {
    let head: OwnedResponse
    private let body: StoredBody
    /// The served part of the body.
    private let part: Range<UInt64>

    /// Nil: only the origin can answer.
    /// - Parameter head: nil: the stored one.
    init?(_ stored: StoredResponse, head: OwnedResponse? = nil, to request: CacheRequest) {
        let head = head ?? stored.head
        let body = stored.body
        if ClientCondition.isMet(request, by: stored.traits) {
            self.init(head.notModified(), body, 0..<0)
            return
        }
        switch RangeAnswer(request, of: stored.traits, bodyLength: body.count) {
        case .whole where request.method == .head: self.init(head.withoutBody, body, 0..<0)
        case .whole: self.init(head, body, 0..<body.count)
        case .part(let part):
            self.init(
                head.part(part.bytes, of: part.complete), body,
                part.offset..<part.offset + UInt64(part.bytes.count))
        case .unsatisfied(let complete): self.init(head.unsatisfied(of: complete), body, 0..<0)
        case .ask: return nil
        }
    }

    private init?(_ head: OwnedResponse?, _ body: StoredBody, _ part: Range<UInt64>) {
        guard let head else { return nil }
        self.head = head
        self.body = body
        self.part = part
    }

    var traits: ResponseTraits {
        ResponseTraits(head.head, received: body.bytes == nil && !part.isEmpty ? 0 : part.count)
    }

    /// Bytes.
    var length: Int { part.count }

    /// - Parameter whenReady: makes what is called when more can be read after a wait.
    func source(on loop: EventLoop, whenReady: () -> () -> Void) -> any BodySource {
        switch body {
        case .bytes(let stored): MemoryBody(stored, Int(part.lowerBound)..<Int(part.upperBound))
        case .file(let body) where !part.isEmpty: DiskBody(body, part, on: loop, whenReady: whenReady())
        case .file, .closed: HeldBody()
        }
    }
}
