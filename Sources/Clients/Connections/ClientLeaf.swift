import HTTPWire
import Security
import Session
import TLS

/// Asks the signer for the client's certificate before a CONNECT is decided, where it has the authority's key.
extension ClientRequest {
    /// A reload may replace the authority while the signer answers; the second time the client is told to ask again.
    private static let mostQuestions = 2

    /// - Parameter asked: as the client wrote it.
    /// - Returns: whether the CONNECT waits, or is refused.
    func awaitsLeaf(for asked: Authority, _ route: Route) -> Bool {
        guard let signer = worker.signer, route.target.key.layer.isShared, connection.refusalWithoutAuthority(route) == nil,
            let question = worker.leafRequest(for: asked)
        else {
            leafQuestions = 0
            return false
        }
        leafQuestions += 1
        guard leafQuestions <= Self.mostQuestions else {
            leafQuestions = 0
            server.refuseRequest(.overtaken(host: route.authority.host))
            return true
        }
        awaitLeaf()
        signer.ask(question) { [weak self, worker] result in
            let kept = result.flatMap { worker.keepLeaf($0, for: question) }
            worker.signerAnswered(kept)
            self?.signed(kept, for: asked)
        }
        return true
    }

    private func signed(_ result: Result<Void, SignerFailure>, for asked: Authority) {
        guard isSigning, !holdsBack({ $0.signed(result, for: asked) }) else { return }
        settle()
        switch result {
        case .failure(let failure):
            leafQuestions = 0
            server.refuseRequest(.unsigned("\(failure)", host: asked.host))
        case .success:
            // There may have been a reload meanwhile.
            if connection.withdrawal(of: identity) != nil { received(by: server) } else { requestTunnel(asked) }
        }
    }
}

extension WorkerContext {
    /// What to ask the signer for before a client is answered; nil: nothing.
    func leafRequest(for asked: Authority) -> LeafRequest? {
        configuration.leaves.request(for: ServerName(host: asked.host), port: asked.port, now: unixTime())
    }

    fileprivate func keepLeaf(_ der: [UInt8], for question: LeafRequest) -> Result<Void, SignerFailure> {
        do {
            return .success(try configuration.leaves.keep(der, for: question.host, now: unixTime()))
        } catch {
            return .failure(.unusable("\(error)"))
        }
    }
}
