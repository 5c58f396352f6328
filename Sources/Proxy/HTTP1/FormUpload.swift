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
    private let message: OwnedRequest
    private let server: HTTP1Server
    private let loop: EventLoop
    private let reader: UploadReader
    private var outgoing: ByteBuffer
    private var left: Int
    private var isReading = false
    private(set) var requestCarried: UInt64 = 0
    let request: RequestTraits

    init(_ message: OwnedRequest, _ reader: UploadReader, of server: HTTP1Server, loop: EventLoop) {
        self.message = message
        self.reader = reader
        self.server = server
        self.loop = loop
        left = reader.length
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
        outgoing.append(head)
    }

    /// Files may have changed meanwhile: never with the body.
    func beginAgain(head: inout [UInt8], keepsBody: Bool) {
        outgoing.append(head)
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
        reader.read { result in
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
            outgoing.append(bytes)
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
