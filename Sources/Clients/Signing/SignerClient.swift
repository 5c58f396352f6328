import PinproxyEventLoop
import PinproxySecurity
import PinproxySession
import PinproxyTLS

/// Why a signer gave no leaf.
enum SignerFailure: Error, CustomStringConvertible, Equatable {
    case unreachable(path: String, SystemError)
    /// It accepts the question and doesn't answer.
    case silent
    /// It closed the connection, twice.
    case closed
    case malformed
    /// Its certificate isn't one that clients would accept from the authority.
    case unusable(String)
    /// More questions wait than may wait.
    case busy
    /// The signer refused, with this message.
    case refused(String)

    var description: String {
        switch self {
        case .unreachable(let path, let error): "the signer's socket \(path) can't be connected to: \(error)"
        case .silent: "the signer gave no answer within \(SignerClient.patience)"
        case .closed: "the signer closed the connection"
        case .malformed: "the signer gave an answer that makes no sense"
        case .unusable(let reason): "the signer's certificate is not kept: \(reason)"
        case .busy: "\(SignerClient.limit) questions to the signer are waiting for an answer"
        case .refused(let reason): "the signer issues no certificate: \(reason)"
        }
    }

    /// Whether the signer is at fault, rather than what it was asked.
    var isOutage: Bool { if case .refused = self { false } else { true } }
}

/// Asks the signer for leaves, for one worker, over one connection, which is opened at the first question.
final class SignerClient: SocketHandler {
    typealias Completion = (Result<Void, SignerFailure>) -> Void

    /// From a question to its answer.
    static let patience: Duration = .seconds(5)
    /// Questions that may wait.
    static let limit = 256

    private struct Question {
        let request: LeafRequest
        let packet: [UInt8]
        let end: MonotonicTime
        var completions: [Completion]
        /// Sent again, since the signer closed the first connection.
        var isRepeated = false
    }

    private let path: String
    private let loop: EventLoop
    private let answered: (Result<[UInt8], SignerFailure>, LeafRequest) -> Result<Void, SignerFailure>
    /// The deadline of the first question, which is the oldest.
    private lazy var deadline = Deadline(loop: loop, owner: self) { $0.fail(.silent) }
    private var connection: Connection?
    /// Questions in the order of their answers; the first ``sent`` are sent.
    private var questions: [Question] = []
    private var sent = 0

    private final class Connection {
        let socket: PacketSocket
        let source: SocketSource

        init(_ descriptor: consuming Descriptor, loop: EventLoop, handler: any SocketHandler) {
            socket = PacketSocket(descriptor)
            source = SocketSource(loop: loop, descriptor: socket.raw, handler: handler)
            source.wantsRead = true
        }

        // The source first: it doesn't outlive its descriptor.
        deinit { source.invalidate() }
    }

    /// - Parameter answered: called once for each question; keeps the leaf, which is in DER.
    init(
        path: String, loop: EventLoop,
        answered: @escaping (Result<[UInt8], SignerFailure>, LeafRequest) -> Result<Void, SignerFailure>
    ) {
        self.path = path
        self.loop = loop
        self.answered = answered
    }

    deinit { connection?.source.invalidate() }

    /// - Parameter completion: called once, on the loop, perhaps before this returns.
    func ask(_ request: LeafRequest, completion: @escaping Completion) {
        if let place = questions.firstIndex(where: { $0.request == request }) {
            questions[place].completions.append(completion)
            return
        }
        guard let packet = request.packet else { return completion(.failure(.refused("the host's name is too long"))) }
        guard questions.count < Self.limit else { return completion(.failure(.busy)) }
        let end = loop.now.advanced(byNanoseconds: Self.patience.nanoseconds)
        questions.append(Question(request: request, packet: packet, end: end, completions: [completion]))
        setDeadline()
        send()
    }

    func socketReady(_ readiness: Readiness) {
        if readiness.contains(.read) { receive() }
        if readiness.contains(.write) { send() }
    }

    private func send() {
        guard let connection = connect() else { return }
        while sent < questions.count {
            switch connection.socket.send(questions[sent].packet) {
            case .sent: sent += 1
            case .wouldBlock:
                connection.source.wantsWrite = true
                return
            case .failed: return closed()
            }
        }
        connection.source.wantsWrite = false
    }

    /// The connection, or a new one; nil: every question has failed.
    private func connect() -> Connection? {
        if let connection { return connection }
        do throws(SystemError) {
            let connection = Connection(
                try UnixSocket.connectAtOnce(to: path, kind: .packets), loop: loop, handler: self)
            self.connection = connection
            return connection
        } catch {
            fail(.unreachable(path: path, error))
            return nil
        }
    }

    private func receive() {
        // One turn takes at most as many answers as there are questions.
        for _ in 0...Self.limit {
            guard let connection else { return }
            switch connection.socket.receive(longest: LeafAnswer.longest) {
            case .wouldBlock: return
            case .closed: return closed()
            case .packet(let packet):
                // An answer without a question leaves the order of the others in doubt.
                guard sent > 0, let answer = LeafAnswer(packet) else { return fail(.malformed) }
                let question = questions.removeFirst()
                sent -= 1
                setDeadline()
                switch answer {
                case .leaf(let der): end([question], .success(der))
                case .refused(let reason): end([question], .failure(.refused(reason)))
                }
            }
        }
    }

    /// The signer restarts, or has ended: each question is sent again, once.
    private func closed() {
        disconnect()
        guard questions.contains(where: { !$0.isRepeated }) else { return fail(.closed) }
        let repeated = questions.filter(\.isRepeated)
        questions.removeAll(where: \.isRepeated)
        for place in questions.indices { questions[place].isRepeated = true }
        setDeadline()
        end(repeated, .failure(.closed))
        if !questions.isEmpty { send() }
    }

    private func fail(_ failure: SignerFailure) {
        disconnect()
        let failed = questions
        questions = []
        setDeadline()
        end(failed, .failure(failure))
    }

    private func end(_ ended: [Question], _ answer: Result<[UInt8], SignerFailure>) {
        for question in ended {
            let result = answered(answer, question.request)
            for completion in question.completions { completion(result) }
        }
    }

    private func disconnect() {
        connection?.source.invalidate()
        connection = nil
        sent = 0
    }

    private func setDeadline() {
        if let first = questions.first { deadline.set(first.end) } else { deadline.clear() }
    }
}
