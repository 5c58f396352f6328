import PinproxyEventLoop
import PinproxySession
import PinproxyTransport

/// Takes nothing of a body until it is decided where that goes.
final class PendingBody: BodyReceiver {
    var isReady: (() -> Void)? { didSet { chosen?.isReady = isReady } }
    private var chosen: (any BodyReceiver)?
    private var completion: ((Result<StoredBody, SessionError>) -> Void)?

    var failure: SessionError? { chosen?.failure }
    var carried: UInt64 { chosen?.carried ?? 0 }

    func write(_ piece: RawSpan) throws(StreamError) -> Int { try chosen?.write(piece) ?? 0 }

    /// Called once.
    func choose(_ receiver: any BodyReceiver) {
        chosen = receiver
        receiver.isReady = isReady
        if let completion {
            self.completion = nil
            receiver.finish(completion)
        } else {
            isReady?()
        }
    }

    func finish(_ completion: @escaping (Result<StoredBody, SessionError>) -> Void) {
        if let chosen { return chosen.finish(completion) }
        self.completion = completion
    }

    func abandon() {
        completion = nil
        chosen?.abandon()
    }
}
