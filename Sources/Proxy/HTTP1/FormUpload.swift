import EventLoop
import HTTPWire
import Serialization
import Session
import Transport

/// The near door of an exchange whose request is a form in parts, made here for a client that speaks HTTP/1.1: the
/// request comes from files, and the answer goes to the client.
///
/// Files are read on a thread of their own, a piece at a time, as fast as the origin takes them.
final class FormUpload: Downstream {
    private static let piece = 64 << 10

    private let message: OwnedRequest
    private let server: HTTP1Server
    private let loop: EventLoop
    private let source: FormSource
    private var outgoing: ByteBuffer
    private var left: Int
    private var isReading = false
    private(set) var requestCarried: UInt64 = 0
    let request: RequestTraits

    /// - Parameter queue: where the body is read.
    init(_ message: OwnedRequest, _ body: MultipartBody, on queue: WorkQueue, of server: HTTP1Server, loop: EventLoop) {
        self.message = message
        self.server = server
        self.loop = loop
        left = body.contentLength
        source = FormSource(body, on: queue)
        outgoing = ByteBuffer(slabs: server.session.slabs)
        var request = RequestTraits(madeHere: message.head)
        request.takesInterim = server.request.takesInterim
        self.request = request
    }

    func withRequest(_ body: (borrowing RequestView) -> Void) {
        // A copy in hand, since the view borrows from it.
        let message = message
        body(message.view)
    }

    // MARK: The request's way up

    func beginRequest(head: inout [UInt8], replayLimit: Int) {
        head.withUnsafeBytes { outgoing.append(copying: $0) }
    }

    /// Files may have changed meanwhile: never with the body.
    func beginAgain(head: inout [UInt8], keepsBody: Bool) {
        head.withUnsafeBytes { outgoing.append(copying: $0) }
        requestCarried = 0
    }

    func withSentHead(_ body: (Span<UInt8>) -> Void) {}

    func passRequest(to sink: any ByteSink, readable: Bool) -> MessagePipe.Outcome {
        // What the client sends meanwhile waits; that it has gone is noticed.
        if readable, let error = server.receiveAhead() { return .sourceFailed(error) }
        let before = outgoing.count
        let outcome = outgoing.isEmpty ? .done : sink.write(outgoing.count, from: &outgoing)
        requestCarried += UInt64(before - outgoing.count)
        switch outcome {
        case .blocked: return .blocked
        case .failed(let error): return .sinkFailed(error)
        case .done:
            if left == 0 { return .ended }
            readMore()
            return .waiting
        }
    }

    private func readMore() {
        guard !isReading else { return }
        isReading = true
        let upload = LoopBound(self, on: loop)
        let handle = loop.handle
        source.read(Self.piece) { result in
            handle.post { upload.value(on: $0).received(result) }
        }
    }

    private func received(_ result: Result<[UInt8], RequestSerializationError>) {
        isReading = false
        guard server.exchange.downstream === self else { return }
        switch result {
        case .success(let bytes):
            left -= bytes.count
            // Else it would grow by what has been sent.
            outgoing.compact()
            bytes.withUnsafeBytes { outgoing.append(copying: $0) }
            server.exchange.downstreamIsReadable()
        case .failure(let error): server.exchange.requestFailed(.requestBroke(error))
        }
    }

    /// Files may have changed meanwhile.
    var canResendRequest: Bool { false }
    func rewindRequest() {}
    func forgetReplay() {}
    func wantsRead(_ wanted: Bool) { server.wantsRead(wanted) }
    func receiveAhead() -> StreamError? { server.receiveAhead() }

    // MARK: The response's way down

    func write(_ count: Int, from buffer: inout ByteBuffer) -> WriteOutcome { server.write(count, from: &buffer) }

    func writeHead(
        of response: borrowing ResponseView, _ kind: ResponseKind, requestSent: Bool, to destination: Destination,
        edits: HeadEdits, into head: inout [UInt8]
    ) -> ResponseCoding {
        server.writeHead(of: response, kind, requestSent: requestSent, to: destination, edits: edits, into: &head)
    }

    // MARK: News

    func attemptReport() -> AttemptReport { server.attemptReport() }

    func attempted(_ result: Result<UpstreamConnection, UpstreamFailure>, to destination: Destination) {
        server.attempted(result, to: destination)
    }

    func route(to url: RequestURL, isAbroad: Bool, for request: borrowing RequestView) -> RedirectRuling {
        server.route(to: url, isAbroad: isAbroad, for: request)
    }

    func refusal(for failure: ExchangeFailure, to destination: Destination) -> TaskRecord.Refusal {
        server.refusal(for: failure, to: destination)
    }

    func exchangeEnded(_ ending: ExchangeEnding) { server.uploadEnded(ending) }
}

/// The body of a form, read on a thread that may wait for a disk.
private final class FormSource: @unchecked Sendable {
    // Touched on the queue alone.
    private let body: MultipartBody
    private let queue: WorkQueue

    init(_ body: MultipartBody, on queue: WorkQueue) {
        self.body = body
        self.queue = queue
    }

    private func piece(_ count: Int) throws(RequestSerializationError) -> [UInt8] {
        let room = UnsafeMutableRawBufferPointer.allocate(byteCount: count, alignment: 1)
        defer { room.deallocate() }
        return Array(room[..<(try body.read(into: room))])
    }

    func read(_ count: Int, _ done: @escaping @Sendable (Result<[UInt8], RequestSerializationError>) -> Void) {
        queue.async { [self] in
            done(Result { () throws(RequestSerializationError) in try piece(count) })
        }
    }
}
