import Logging
import PinproxyTLS
import Synchronization

/// The runs in progress, by their tokens: each as long as its connection, so that a killed command leaves nothing.
package final class RunRegister: Sendable {
    package enum Failure: Error {
        /// The limit of all users, or of this one.
        case tooMany(Int)
        case taken
    }

    static let limit = 256
    /// Most runs of one user other than the proxy's own and root.
    static let limitOfOne = 64

    private let digests = KeyedDigest()
    private let runs = Mutex<[SHA256Digest: Run]>([:])
    private let begun = Atomic<UInt64>(0)
    private let count = Atomic(0)

    /// Then no request is examined for a token.
    var isEmpty: Bool { count.load(ordering: .relaxed) == 0 }

    /// - Parameter owner: the starter's user.
    package func begin(
        _ token: RunToken, owner: UInt32, isOwn: Bool, grant: Run.Grant, changed: @escaping @Sendable () -> Void
    ) throws(Failure) -> Run {
        let digest = digest(of: token)
        let result: Result<Run, Failure> = runs.withLock { runs in
            if runs[digest] != nil { return .failure(.taken) }
            if runs.count >= Self.limit { return .failure(.tooMany(Self.limit)) }
            if !isOwn, runs.values.count(where: { $0.owner == owner }) >= Self.limitOfOne {
                return .failure(.tooMany(Self.limitOfOne))
            }
            let number = begun.add(1, ordering: .relaxed).newValue
            let run = Run(grant: grant, owner: owner, number: number, changed: changed)
            runs[digest] = run
            count.store(runs.count, ordering: .relaxed)
            return .success(run)
        }
        return try result.get()
    }

    package func end(_ token: RunToken) {
        let digest = digest(of: token)
        let run = runs.withLock { runs in
            defer { count.store(runs.count, ordering: .relaxed) }
            return runs.removeValue(forKey: digest)
        }
        run?.end()
    }

    /// Found by a keyed digest: the time reveals nothing about tokens.
    package func run(with token: RunToken) -> Run? {
        let digest = digest(of: token)
        return runs.withLock { $0[digest] }
    }

    /// The oldest first.
    func runs(of user: UInt32) -> [Run] {
        runs.withLock { runs in runs.values.filter { $0.owner == user } }.sorted { $0.number < $1.number }
    }

    private func digest(of token: RunToken) -> SHA256Digest { digests.of(Array(token.text.utf8)) }
}
