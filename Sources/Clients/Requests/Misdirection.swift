import PinproxyHTTPWire

/// A mismatch with CONNECT's authority inside it (architecture rule 4).
package struct Misdirection {
    /// As ranges over the head, so that agreement costs no allocation.
    enum Source {
        case host(ByteRange)
        case url(ByteRange)
        /// The URL's scheme differs from the protocol inside.
        case scheme
        case connect
    }

    /// The other authority, as host and port only; nil: something else disagrees.
    let asked: String?
    private let clause: String

    /// - Parameter purpose: the protocol inside.
    init(_ source: Source, _ bytes: borrowing Span<UInt8>, for purpose: Purpose) {
        switch source {
        case .host(let range): self.init("Host", Self.authority(bytes.extracting(range.offsets), purpose))
        case .url(let range): self.init("URL", Self.authority(bytes.extracting(range.offsets), purpose))
        case .scheme: self.init(asked: nil, clause: "its URL is not \(purpose == .plain ? "http" : "https")")
        case .connect: self.init(asked: nil, clause: "it is another CONNECT")
        }
    }

    init(serverName: String) {
        self.init("SNI", ShownText(serverName).description)
    }

    private init(_ place: String, _ asked: String) {
        self.init(asked: asked, clause: "its \(place) names \(asked)")
    }

    private init(asked: String?, clause: String) {
        self.asked = asked
        self.clause = clause
    }

    func cause(connected: Authority) -> String {
        "this connection was made for \(connected) by CONNECT, but \(clause)"
    }

    private static func authority(_ bytes: borrowing Span<UInt8>, _ purpose: Purpose) -> String {
        switch Authority.parse(bytes, defaultPort: purpose.defaultPort) {
        case .success(let authority): authority.description
        case .failure(let error): "what is not a host (\(error))"
        }
    }
}
