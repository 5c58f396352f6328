import EventLoop
import Session
import TLS
import Transport

extension Rehearsal {
    /// What an origin that asked for a client certificate says of the one that it got.
    ///
    /// In TLS 1.2 that is settled with the handshake. In TLS 1.3 the handshake is over for us before the origin has
    /// looked: what it sends next, an alert or a session ticket, tells. One that sends nothing has not refused.
    final class CertificateAnswer: ByteStreamOwner {
        /// An origin that is content may send nothing before it is asked.
        private static let patience: UInt64 = 2_000_000_000

        private let connection: UpstreamConnection
        private let loop: EventLoop
        private let unixTime: @Sendable () -> UnixTime
        private var completion: ((ClientCertificateRefusal?) -> Void)?
        private lazy var deadline = Deadline(loop: loop, owner: self) { $0.end(nil) }

        /// - Parameter completion: called once on the loop, perhaps within ``start()``; nil: not refused.
        init(
            _ connection: UpstreamConnection, loop: EventLoop, unixTime: @escaping @Sendable () -> UnixTime,
            completion: @escaping (ClientCertificateRefusal?) -> Void
        ) {
            self.connection = connection
            self.loop = loop
            self.unixTime = unixTime
            self.completion = completion
        }

        func start() {
            let awaits = connection.stream.withTLS { $0.certificateRequest != nil && $0.version == .tls13 }
            guard awaits == true else { return end(nil) }
            connection.stream.owner = self
            connection.stream.wantsRead = true
            deadline.set(afterNanoseconds: Self.patience)
        }

        func streamIsReadable(_ stream: ByteStream) {
            // A ticket reads as nothing.
            _ = connection.responses.receive(limit: 1 << 10)
            end(stream.certificateRefusal(at: unixTime()))
        }

        func streamIsWritable(_ stream: ByteStream) {}
        func streamDidSecure(_ stream: ByteStream, _ result: Result<Void, StreamError>) {}

        private func end(_ refusal: ClientCertificateRefusal?) {
            guard let completion else { return }
            self.completion = nil
            deadline.clear()
            connection.stream.wantsRead = false
            completion(refusal)
        }
    }
}
