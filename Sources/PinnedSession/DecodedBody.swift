import Glibc
import PinproxyEventLoop
import PinproxySerialization
import PinproxySession
import PinproxyTransport

/// Undoes a body's content codings as it arrives, within the bounds of ``ContentDecoder``.
final class DecodedBody: BodyReceiver {
    /// Bytes decoded at one time. Only their output is buffered.
    private static let step = 8 << 10

    var isReady: (() -> Void)? { didSet { receiver.isReady = isReady } }
    private let receiver: any BodyReceiver
    private let limit: Int
    private var decoder: ContentDecoder?
    private var ownFailure: SessionError?
    /// Decoded bytes that the receiver hasn't taken.
    private var waiting = PassingBytes()
    /// Received bytes, before decoding.
    private(set) var carried: UInt64 = 0

    /// - Parameter limit: of the decoded bytes.
    init(_ codings: [ContentCoding], limit: Int, to receiver: any BodyReceiver) {
        self.receiver = receiver
        self.limit = limit
        decoder = ContentDecoder(codings: codings, limits: ContentDecoder.Limits(length: limit))
    }

    var failure: SessionError? { ownFailure ?? receiver.failure }

    func write(_ piece: RawSpan) throws(StreamError) -> Int {
        var taken = 0
        while try passOn(), taken < piece.byteCount {
            let end = min(taken + Self.step, piece.byteCount)
            let bytes = [UInt8](copying: piece.extracting(taken..<end))
            do throws(ContentDecodingError) {
                try decoder?.push(bytes)
            } catch {
                throw fail(error)
            }
            waiting = PassingBytes(decoder?.take() ?? [])
            taken = end
        }
        carried += UInt64(taken)
        return taken
    }

    /// False: the receiver is full.
    private func passOn() throws(StreamError) -> Bool {
        while !waiting.isPassed {
            let count = try waiting.write(to: receiver)
            waiting.advance(by: count)
            if count == 0 { return false }
        }
        return true
    }

    private func fail(_ error: ContentDecodingError) -> StreamError {
        ownFailure = SessionError(error, limit: limit)
        return .socket(ECANCELED)
    }

    func finish(_ completion: @escaping (Result<StoredBody, SessionError>) -> Void) {
        if let decoder = decoder.take() {
            do throws(ContentDecodingError) {
                // All that came out of it was taken.
                _ = try decoder.finish()
            } catch {
                return completion(.failure(SessionError(error, limit: limit)))
            }
        }
        do throws(StreamError) {
            guard try passOn() else {
                receiver.isReady = { [weak self] in self?.finish(completion) }
                return
            }
        } catch {
            return completion(.failure(failure ?? .badResponse("the decoded body could not be taken")))
        }
        receiver.isReady = isReady
        receiver.finish(completion)
    }

    func abandon() {
        waiting = PassingBytes()
        decoder = nil
        receiver.isReady = nil
        receiver.abandon()
    }
}

extension SessionError {
    init(_ error: ContentDecodingError, limit: Int) {
        if case .tooLong = error {
            self = .bodyTooLong(limit: limit)
        } else {
            self = .badResponse("the body can't be decoded: \(error)")
        }
    }
}
