import HTTPWire

/// What a refusal is written as, so that the client shows its reason.
enum RefusalForm: CaseIterable {
    /// For programs (RFC 9457).
    case problem
    /// HTML, for people.
    case page
    /// A status of gRPC.
    case grpc

    init(for request: borrowing RequestView) {
        if request.head.version == .http2, let type = request.head.first(.contentType), Self.isGRPC(request.bytes.extracting(type.offsets)) {
            self = .grpc
        } else if let accept = request.head.first(.accept), Accept.prefersHTML(request.bytes.extracting(accept.offsets)) {
            self = .page
        } else {
            self = .problem
        }
    }

    /// `application/grpc`, perhaps with a message format and parameters; not gRPC-Web's, whose clients read no trailers.
    private static func isGRPC(_ type: Span<UInt8>) -> Bool {
        let name: StaticString = "application/grpc"
        let count = name.utf8CodeUnitCount
        guard type.count >= count else { return false }
        for index in 0..<count where type[index] | 0x20 != name.utf8Start[index] | 0x20 { return false }
        return type.count == count || type[count] == UInt8(ascii: "+") || type[count] == UInt8(ascii: ";")
    }
}
