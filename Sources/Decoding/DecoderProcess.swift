import Glibc
import PinproxyEventLoop
import PinproxySession

protocol DecoderProcessOwner: AnyObject {
    /// Its body is done: it can take another.
    func isIdle(_ process: DecoderProcess)
    /// It ends. Its body, if any, has been answered. If it never became ready, the cause says why.
    func fails(_ process: DecoderProcess, _ failure: BodyWorkFailure, host: String?, wasReady: Bool, output: [UInt8])
    func isGone(_ process: DecoderProcess)
}

/// A decoder process, as the proxy sees it. It has one body at a time, and nothing that it says is trusted.
final class DecoderProcess: SocketHandler {
    /// The limit of its standard error for one body, and how much of that is kept.
    private static let output = (most: 1 << 20, kept: 1 << 10)
    /// Reads of the socket in one turn: no process may keep the loop from others.
    private static let piecesInTurn = 16

    let identifier: pid_t
    let longestBody: Int
    private(set) var idleSince = MonotonicTime(nanoseconds: 0)
    private let loop: EventLoop
    private let limits: DecoderLimits
    /// The owner of the process and of this object.
    private weak var owner: (any DecoderProcessOwner)?
    private var state = DecoderState()
    private var job: DecoderJob?
    private lazy var deadline = Deadline(loop: loop, owner: self) { $0.happened(.late) }
    private var bodies = 0
    private var began = MonotonicTime(nanoseconds: 0)
    private var worked: UInt64 = 0

    private var socket: DecoderSocket
    private var source: SocketSource?
    private var errors: DescriptorWatch?
    private var end: DescriptorWatch?
    private var written = 0
    private var words: [UInt8] = []
    /// Its message, if it didn't say "ready".
    private var excuse: String?

    init(
        _ executable: String, for job: DecoderJob, loop: EventLoop, limits: DecoderLimits,
        owner: any DecoderProcessOwner
    ) throws(SystemError) {
        let start = try DecoderStart(executable, longestBody: job.longestBody)
        (self.job, self.loop, self.limits, self.owner) = (job, loop, limits, owner)
        longestBody = job.longestBody
        identifier = start.process
        socket = DecoderSocket(start.socket)
        end = DescriptorWatch(start.end, loop: loop) { [weak self] _ in self?.reap() }
        errors = DescriptorWatch(start.output, loop: loop) { [weak self] in self?.readErrors(of: $0) }
        let source = SocketSource(loop: loop, descriptor: socket.raw, handler: self)
        source.wantsRead = true
        self.source = source
        socket.expect(longestBody: 0)
        deadline.set(afterNanoseconds: limits.deadline.nanoseconds)
    }

    deinit {
        source?.invalidate()
        socket.close()
    }

    var isIdle: Bool { state.phase == .idle }

    /// Call it only while the process is idle.
    func begin(_ job: DecoderJob) {
        self.job = job
        happened(.given)
    }

    /// Dismisses it. A body in work is answered as not done.
    func dismiss() { happened(.dismissed) }

    // MARK: What happens

    private func happened(_ event: DecoderState.Event) {
        let wasReady = !state.isNew
        switch state.received(event) {
        case .none: break
        case .send: send()
        case .finish: finish()
        case .kill(let reason):
            kill()
            fail(reason, wasReady: wasReady)
        case .await: kill()
        case .bury(let saysHow):
            kill()
            if saysHow { fail(.ended(excuse ?? "it ended"), wasReady: wasReady) }
            owner?.isGone(self)
        }
    }

    private func send() {
        guard let job else { return }
        began = loop.now
        (written, words) = (0, [])
        socket.expect(longestBody: job.longestBody)
        socket.send(job.message, job.body)
        deadline.set(afterNanoseconds: limits.deadline.nanoseconds)
        write()
    }

    private func finish() {
        job = nil
        bodies += 1
        worked += loop.now - began
        idleSince = loop.now
        deadline.set(afterNanoseconds: limits.idle.nanoseconds)
        // A process that has done its share is replaced.
        if bodies >= limits.bodies || worked >= limits.work.nanoseconds { happened(.dismissed) }
        owner?.isIdle(self)
    }

    private func kill() {
        deadline.clear()
        source?.invalidate()
        source = nil
        socket.close()
        // It isn't reaped yet, so that the number is its own.
        if state.phase != .gone { _ = Glibc.kill(identifier, SIGKILL) }
    }

    private func fail(_ reason: DecoderState.Reason, wasReady: Bool) {
        switch reason {
        case .late where job != nil: fail(.timedOut(after: limits.deadline), wasReady: wasReady)
        case .nonsense: fail(excuse.map { .unavailable($0) } ?? .malformedAnswer, wasReady: wasReady)
        // It was idle for long enough.
        case .late: break
        case .dismissed: job.take()?.fail(.unavailable("the proxy stops"))
        }
    }

    private func fail(_ failure: BodyWorkFailure, wasReady: Bool) {
        let job = job.take()
        // One that never got ready says nothing about the body.
        let failure = wasReady ? failure : .unavailable(excuse ?? "it was not ready within \(limits.deadline)")
        job?.fail(failure)
        owner?.fails(self, failure, host: job?.host, wasReady: wasReady, output: words)
    }

    // MARK: The socket

    func socketReady(_ readiness: Readiness) {
        if readiness.contains(.write) { write() }
        if readiness.contains(.read) { read() }
    }

    private func write() {
        switch socket.write() {
        case .done: source?.wantsWrite = false
        case .blocked: source?.wantsWrite = true
        // Why it doesn't read shows when it has ended.
        case .failed: happened(.closed)
        }
    }

    private func read() {
        for _ in 0..<Self.piecesInTurn {
            switch socket.read() {
            case .blocked: return
            case .closed: return happened(.closed)
            case .malformed: return happened(.nonsense)
            case .piece: continue
            case .frame(let message, let body):
                if state.phase == .starting {
                    guard message != Frame.ready else { return happened(.ready) }
                    excuse = String(decoding: message.prefix(200), as: UTF8.self)
                    return happened(.nonsense)
                }
                // It can't have read all of the body.
                guard state.phase == .working, !socket.isSending, let job, job.accept(message, body) else {
                    return happened(.nonsense)
                }
                return happened(.answered)
            }
        }
    }

    // MARK: Its words and its end

    private func readErrors(of watch: DescriptorWatch) {
        var room = [UInt8](repeating: 0, count: 4096)
        let count = Glibc.read(watch.descriptor.raw, &room, room.count)
        guard count > 0 else {
            if count == 0 || errno != EAGAIN && errno != EINTR { watch.stop() }
            return
        }
        written += count
        words = (words + room[..<count]).suffix(Self.output.kept)
        if written > Self.output.most { happened(.nonsense) }
    }

    private func reap() {
        // It may have said why it can't start. It isn't reaped yet, so that it can still be killed by its number.
        if state.phase == .starting { read() }
        var status: CInt = 0
        guard waitpid(identifier, &status, WNOHANG) == identifier else { return }
        end?.stop()
        // Its last output may have the reason.
        if let errors { readErrors(of: errors) }
        errors?.stop()
        if excuse == nil { excuse = Self.words(for: status) }
        happened(.ended)
    }

    /// `SIGSEGV`, `exit status 1`
    private static func words(for status: CInt) -> String {
        let signal = status & 0x7F
        guard signal != 0 else { return "exit status \((status >> 8) & 0xFF)" }
        return signal == SIGKILL ? "SIGKILL" : Crash.name(of: signal)
    }
}
