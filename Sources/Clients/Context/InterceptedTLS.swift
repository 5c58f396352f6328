import PinproxySession
import PinproxyTLS
import Synchronization

/// The TLS settings inside CONNECT, by the protocols that clients are offered (`proxy.http`). Their ticket keys outlive
/// reloads.
final class InterceptedTLS: Sendable {
    private let contexts = Mutex<[[HTTPProtocol]: TLSServerContext]>([:])

    func context(for protocols: [HTTPProtocol]) throws(TLSError) -> TLSServerContext {
        try contexts.withLock { contexts throws(TLSError) in
            if let context = contexts[protocols] { return context }
            var options = TLSServerContext.Options()
            options.applicationProtocols = TLSServerContext.Options.names(of: protocols)
            let context = try TLSServerContext(options: options)
            contexts[protocols] = context
            return context
        }
    }
}

extension TLSServerContext.Options {
    /// HTTP/1.0 counts as HTTP/1.1.
    static func names(of protocols: [HTTPProtocol]) -> [String] {
        protocols.flatMap { $0 == .http1 ? http1 : [$0.rawValue] }
    }
}
