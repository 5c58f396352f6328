import Clients
import EventLoop
import FoundationEssentials
import Session
import Transport

/// The connection over which a run was begun: the proxy tells what it refuses as it does so, and asks whose connections are, one
/// ``RunUpdate`` a line; the other side answers with a ``RunAnswer`` a line. The run is over when the other side ends it, and its last line
/// follows.
final class RunFeed: ByteStreamOwner {
    private let stream: ByteStream
    private let run: Run
    private var ended: (() -> Void)?
    private var lines: ByteBuffer
    private var received: ByteBuffer
    /// How many refusals were told.
    private var told = 0
    private var isFinishing = false
    private var awaitingSteps: Timer?
    private var patience = 25
    /// What the clients of a run that is over have sent before they ended is still with the workers, for a moment.
    private static let stepNanoseconds: UInt64 = 20_000_000

    private let loop: EventLoop

    /// - Parameters:
    ///   - begun: the first line.
    ///   - ended: called once, when the other side has ended it or is gone.
    init(loop: EventLoop, stream: ByteStream, slabs: SlabPool, run: Run, begun: RunBegun, ended: @escaping () -> Void) {
        self.loop = loop
        self.stream = stream
        self.run = run
        self.ended = ended
        lines = ByteBuffer(slabs: slabs)
        received = ByteBuffer(slabs: slabs)
        append(RunUpdate(begun: begun))
    }

    func start() {
        stream.owner = self
        stream.wantsRead = true
        tell()
    }

    /// Tells what is new. What the peer doesn't read waits in the run, not here.
    func tell() {
        guard !isFinishing else { return write() }
        if lines.isEmpty {
            let fresh = run.refusals(from: told)
            told += fresh.count
            for refusal in fresh { append(RunUpdate(refusal: refusal)) }
            for question in run.questions.takeUnsent() { append(RunUpdate(question: question)) }
        }
        write()
    }

    /// The last line, and the end. Nobody waits for a peer that doesn't read.
    func finish() {
        guard !isFinishing else { return }
        isFinishing = true
        run.settleChallenges()
        for refusal in run.refusals(from: told) { append(RunUpdate(refusal: refusal)) }
        append(RunUpdate(summary: run.summary))
        write()
        stream.endWriting()
    }

    private func append(_ update: RunUpdate) {
        lines.append(ControlResponse(update).body)
        lines.append([UInt8(ascii: "\n")])
    }

    private func write() {
        guard lines.count > 0 else { return }
        switch stream.write(lines.count, from: &lines) {
        case .done:
            lines.releaseIfEmpty()
            if !isFinishing, run.hasNews(after: told) { tell() }
        case .blocked: break
        case .failed: end()
        }
    }

    func streamIsReadable(_ stream: ByteStream) {
        // No answer needs more room than there is from the beginning.
        guard received.makeRoom(limit: 0) else { return leave() }
        switch stream.read(into: &received) {
        case .received: takeAnswers()
        case .blocked: received.releaseIfEmpty()
        case .ended, .failed: leave()
        }
    }

    /// Whoever says anything but what it was asked isn't listened to any more.
    private func takeAnswers() {
        while let line = received.unread.firstIndex(of: UInt8(ascii: "\n")) {
            let answer = line > Self.longestAnswer ? nil : RunAnswer(received.unread[..<line])
            guard let answer, run.questions.received(answer) else { return leave() }
            received.consume(line + 1)
        }
        if received.count > Self.longestAnswer { leave() }
        received.releaseIfEmpty()
    }

    private static let longestAnswer = 128

    /// The other side has ended, or is to.
    private func leave() {
        stream.wantsRead = false
        run.questions.end()
        awaitSteps()
    }

    private func awaitSteps() {
        guard run.hasSteps, patience > 0 else {
            awaitingSteps = nil
            finish()
            return end()
        }
        patience -= 1
        awaitingSteps = Timer(loop: loop, owner: self, afterNanoseconds: Self.stepNanoseconds) { $0.awaitSteps() }
    }

    private func end() {
        let ended = ended
        self.ended = nil
        ended?()
    }

    func streamIsWritable(_ stream: ByteStream) { tell() }
    func streamDidSecure(_ stream: ByteStream, _ result: Result<Void, StreamError>) {}
}

extension RunAnswer {
    /// - Parameter line: anything.
    init?(_ line: some Collection<UInt8>) {
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        guard let answer = try? decoder.decode(RunAnswer.self, from: Data(line)) else { return nil }
        self = answer
    }
}
