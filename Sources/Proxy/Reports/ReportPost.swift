import EventLoop
import HTTPWire
import Session
import Transport

/// One report on its way: connect, write, and read whether it was taken. Each has ten seconds.
final class ReportPost: ByteStreamOwner {
    private static let limit: Duration = .seconds(10)
    /// What an answer's head may take.
    private static let answerLimit = 16 << 10

    private let loop: EventLoop
    private let target: UpstreamTarget
    private var request: ByteBuffer
    private var answer: ByteBuffer
    private var parser = HeadParser(limit: ReportPost.answerLimit)
    private var head = ResponseHead()
    private var attempt: UpstreamAttempt?
    private var connection: UpstreamConnection?
    private var completion: ((String?) -> Void)?
    private lazy var deadline = Deadline(loop: loop) { [unowned self] in finish("no answer within \(Self.limit)") }

    init(loop: EventLoop, slabs: SlabPool, request: ReportRequest) {
        self.loop = loop
        target = request.target
        self.request = ByteBuffer(slabs: slabs)
        answer = ByteBuffer(slabs: slabs)
        request.bytes.withUnsafeBytes { self.request.append(copying: $0) }
    }

    /// - Parameter completion: called once on the loop, after this has returned, with what went wrong; never
    ///   after ``cancel()``.
    func start(with connector: UpstreamConnector, completion: @escaping (String?) -> Void) {
        self.completion = completion
        var timeouts = Timeouts()
        timeouts.connect = Self.limit
        timeouts.tlsHandshake = Self.limit
        attempt = connector.connect(to: target, timeouts: timeouts) { [unowned self] result in
            attempt = nil
            switch result {
            case .success(let connection): send(over: connection)
            case .failure(let failure): finish(failure.report(for: target).details)
            }
        }
    }

    func cancel() {
        completion = nil
        release()
    }

    private func send(over connection: UpstreamConnection) {
        self.connection = connection
        connection.stream.owner = self
        connection.stream.wantsRead = true
        deadline.set(afterNanoseconds: Self.limit.nanoseconds)
        streamIsWritable(connection.stream)
    }

    func streamIsWritable(_ stream: ByteStream) {
        guard !request.isEmpty else { return }
        if case .failed(let error) = stream.write(request.count, from: &request) { finish(error.description) }
    }

    func streamIsReadable(_ stream: ByteStream) {
        repeat {
            guard answer.makeRoom(limit: Self.answerLimit) else { return finish("the answer is too long") }
            switch stream.read(into: &answer) {
            case .received: parse()
            case .blocked: return
            case .ended: return finish("the collector closed the connection without an answer")
            case .failed(let error): return finish(error.description)
            }
        } while completion != nil && stream.holdsBytes
    }

    private func parse() {
        while completion != nil {
            switch unsafe parser.parseResponse(Span(_unsafeBytes: answer.unread), to: .post, into: &head) {
            case .incomplete: return
            case .tooLarge, .tooManyFields: finish("the answer is too long")
            case .malformed(let error): finish("the answer is malformed: \(error.message)")
            case .complete where (100..<200).contains(head.status):
                answer.consume(Int(head.length))
                parser.reset()
            case .complete:
                finish((200..<300).contains(head.status) ? nil : "the collector answered \(head.status)")
            }
        }
    }

    func streamDidSecure(_ stream: ByteStream, _ result: Result<Void, StreamError>) {}

    private func finish(_ failure: String?) {
        guard let completion else { return }
        self.completion = nil
        release()
        completion(failure)
    }

    private func release() {
        deadline.clear()
        attempt?.cancel()
        attempt = nil
        connection?.close()
        connection = nil
    }
}

extension UpstreamFailure {
    fileprivate func report(for target: UpstreamTarget) -> RefusalReport {
        let host = target.host.contains(":") ? "[\(target.host)]" : target.host
        guard case .success(let authority) = Authority.parse(host, defaultPort: target.port) else {
            return RefusalReport.origin(502, "", "", "\(target.host) is no host", target.host)
        }
        return report(for: authority)
    }
}
