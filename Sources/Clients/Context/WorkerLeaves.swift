import Logging
import PinproxyHTTPWire
import PinproxyRecords
import PinproxySecurity
import PinproxyTLS
import Synchronization

/// The certificates that clients see, where a signer may have the authority's key.
extension WorkerContext {
    /// - Parameter asked: the CONNECT's authority, as the client wrote it.
    func leaf(for asked: Authority) throws(PinproxySecurity.AuthorityError) -> Identity {
        try configuration.leaves.identity(for: ServerName(host: asked.host), now: unixTime())
    }

    /// The request that the signer must answer before ``leaf(for:)``; nil: none.
    func leafRequest(for asked: Authority) -> LeafRequest? {
        configuration.leaves.request(for: ServerName(host: asked.host), port: asked.port, now: unixTime())
    }

    /// Stores the leaves that the signer issued, and logs when it fails and when it answers again.
    func signerAnswered(
        _ answer: Result<[UInt8], SignerFailure>, to question: LeafRequest
    ) -> Result<Void, SignerFailure> {
        let result = answer.flatMap { der -> Result<Void, SignerFailure> in
            do {
                return .success(try configuration.leaves.keep(der, for: question, now: unixTime()))
            } catch {
                return .failure(.unusable("\(error)"))
            }
        }
        let outage = if case .failure(let failure) = result, failure.isOutage { failure } else { SignerFailure?.none }
        guard shared.isSignerOut.exchange(outage != nil, ordering: .relaxed) != (outage != nil) else { return result }
        if let outage {
            log(
                .warning, "signer.failed",
                ["cause": "\(outage)", "effect": "only hosts with a cached certificate can be intercepted"])
        } else {
            log(.notice, "signer.failed", ["effect": "over"])
        }
        return result
    }
}
