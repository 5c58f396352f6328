import PinproxyHTTPWire

/// The format of a refusal, chosen so that the client shows its reason.
enum RefusalForm: CaseIterable {
    /// For programs (RFC 9457).
    case problem
    /// HTML, for browsers.
    case page
    /// A status of gRPC.
    case grpc

    init(for request: borrowing RequestView) {
        if request.head.version == .http2, let type = request.head.first(.contentType),
            Self.isGRPC(request.bytes.extracting(type.offsets))
        {
            self = .grpc
        } else if let accept = request.head.first(.accept), Accept.prefersHTML(request.bytes.extracting(accept.offsets))
        {
            self = .page
        } else {
            self = .problem
        }
    }

    /// Whether a gRPC library requests a tunnel: its programs see only the status of a failed CONNECT.
    static func isAskedForByGRPC(_ request: borrowing RequestView) -> Bool {
        request.head.first(.userAgent).map { begins(request.bytes.extracting($0.offsets), with: "grpc-") } ?? false
    }

    /// `application/grpc`, perhaps with a message format and parameters. Clients of gRPC-Web read no trailers.
    private static func isGRPC(_ type: Span<UInt8>) -> Bool {
        let name: StaticString = "application/grpc"
        let count = name.utf8CodeUnitCount
        guard begins(type, with: name) else { return false }
        return type.count == count || type[count] == UInt8(ascii: "+") || type[count] == UInt8(ascii: ";")
    }

    private static func begins(_ value: Span<UInt8>, with word: StaticString) -> Bool {
        guard value.count >= word.utf8CodeUnitCount else { return false }
        for index in 0..<word.utf8CodeUnitCount where value[index] | 0x20 != word.utf8Start[index] | 0x20 {
            return false
        }
        return true
    }
}
