import PinproxyEventLoop
import PinproxyHTTPWire
import PinproxySerialization
import PinproxySession
import PinproxyTransport

/// Delivers the response: to memory, a file, or the program's own reading.
extension ProgramDownstream {
    func respond(
        _ response: borrowing ResponseView, _ kind: ResponseKind, requestSent: Bool, to destination: Destination,
        edits: HeadEdits, from body: any BodySource
    ) -> any BodySink {
        if replacement != nil {
            receiver = DroppedBody(mostBytes: 64 << 10)
            return self
        }
        var fields: [HTTPResponse.Field] = []
        for field in response.head.fields {
            let (name, value) = (field.name.text(in: response.bytes), field.value.text(in: response.bytes))
            fields.append(HTTPResponse.Field(name: name, value: value))
        }
        let handling = exchange.record.cache
        let isStored = handling == .hit || handling == .stale
        var arrived = HTTPResponse(
            status: response.head.status, url: url.map { "\($0)" } ?? "", fields: fields,
            pinning: isStored
                ? .stored : PinningResult(exchange.record.upstream?.verdict, at: destination.authority.host))
        arrived.isFromCache = isStored || handling == .revalidated
        let codings = codings(of: arrived)
        arrived.isDecoded = !codings.isEmpty
        self.response = arrived
        let length = response.head.bodyLength.bytes
        progress.received = 0
        progress.receivedTotal = length
        receiver = receiver(of: arrived, codings, length: codings.isEmpty ? length : nil)
        receiver.isReady = { [weak self] in
            guard let self else { return }
            if let error = receiver.failure { return fail(error) }
            if exchange.isInFlight { exchange.downstreamIsWritable() }
        }
        report()
        return self
    }

    /// The codings to undo: all of the response's, if the session asked for each.
    private func codings(of arrived: HTTPResponse) -> [ContentCoding] {
        guard offersCodings, arrived.status != 206, let listed = try? ContentCoding.list(arrived["Content-Encoding"])
        else { return [] }
        return listed.allSatisfy { $0 == .gzip || $0 == .deflate } ? listed : []
    }

    /// As the task and the hook want it.
    private func receiver(
        of arrived: HTTPResponse, _ codings: [ContentCoding], length: UInt64?
    ) -> any BodyReceiver {
        guard let hook = core.hooks.response else { return receiver(for: task.purpose, arrived, codings, length) }
        let pending = PendingBody()
        let task = task
        disposing = decide {
            await hook(arrived, task)
        } then: { [weak pending] downstream in
            guard let pending, let choice = downstream.disposing?.choice else { return }
            downstream.disposing = nil
            var purpose = downstream.task.purpose
            switch choice {
            case .allow: break
            case .cancel: return downstream.fail(.cancelled)
            case .becomeDownload(let path): purpose = .download(to: path)
            }
            let chosen = downstream.receiver(for: purpose, arrived, codings, length)
            if let failure = downstream.failure { return downstream.fail(failure) }
            pending.choose(chosen)
        }
        return pending
    }

    private func receiver(
        for purpose: SessionTask.Purpose, _ arrived: HTTPResponse, _ codings: [ContentCoding], _ length: UInt64?
    ) -> any BodyReceiver {
        let longest = core.routing.longestBody
        let receiver: any BodyReceiver
        switch purpose {
        case .data:
            let isTooLong = request.method != .head && length.map { $0 > UInt64(longest) } == true
            if isTooLong { return refuse(.bodyTooLong(limit: longest)) }
            receiver = CollectedBody(limit: longest, from: core.session.slabs.budget)
        case .stream(let channel): receiver = StreamedBody(channel, arrived, on: core.loop)
        case .download(let path):
            guard (200..<300).contains(arrived.status) else { return refuse(.unacceptableStatus(arrived)) }
            // A stream that becomes a download has nothing to read.
            if case .stream(let channel) = task.purpose { channel.began(arrived) {} }
            receiver = DownloadedFile(path, on: core.loop)
        }
        guard !codings.isEmpty else { return receiver }
        let limit = if case .data = purpose { longest } else { Int.max }
        return DecodedBody(codings, limit: limit, to: receiver)
    }

    private func refuse(_ error: SessionError) -> any BodyReceiver {
        if failure == nil { failure = error }
        return DroppedBody(mostBytes: 0)
    }
}

extension ProgramDownstream: BodySink {
    var carried: UInt64 { receiver.carried }

    func write(_ piece: RawSpan) throws(StreamError) -> Int {
        let count = try receiver.write(piece)
        if replacement == nil, count > 0 {
            progress.received += UInt64(count)
            report()
        }
        return count
    }
}

/// Hands a body to a program, as fast as that reads.
private final class StreamedBody: BodyReceiver {
    var isReady: (() -> Void)?
    var failure: SessionError? { nil }
    private(set) var carried: UInt64 = 0
    private let channel: BodyChannel

    init(_ channel: BodyChannel, _ response: HTTPResponse, on loop: EventLoop) {
        self.channel = channel
        let body = LoopWeak(self, on: loop)
        channel.began(response) { body.post { $0.isReady?() } }
    }

    func write(_ piece: RawSpan) throws(StreamError) -> Int {
        guard channel.put(piece) else { return 0 }
        carried += UInt64(piece.byteCount)
        return piece.byteCount
    }

    /// The channel ends with the task.
    func finish(_ completion: @escaping (Result<StoredBody, SessionError>) -> Void) {
        completion(.success(StoredBody()))
    }

    func abandon() {}
}
