internal import Clients
internal import Configuration

/// What `pinproxy explain` says of a name for which the proxy answers itself. Only the running proxy could connect to it.
struct TestHostAccount: Encodable {
    let host: String
    let port: UInt16
    let letThrough: Bool
    let testHost = true

    /// Nil for any other host.
    init?(_ host: Rehearsal.Host) {
        guard let own = TestHost(host.name) else { return nil }
        self.host = host.name
        port = host.port
        letThrough = own == .right
    }

    func tell(json: Bool) throws {
        Standard.output(json ? JSONText.of(self) : text)
        if !letThrough { throw CommandFailure(code: 1) }
    }

    private var text: String {
        """
        host      \(host):\(port)
        entry     the proxy's own, with \(letThrough ? "a right" : "a wrong") pin: it answers for this name itself, so that programs \
        can be tried (pinproxy doctor)

        \(letThrough ? "Let through" : "Refused: a client is told 502 Certificate pinning failure for \(host)")
        """
    }

    private enum CodingKeys: CodingKey { case host, port, letThrough, testHost }
}
