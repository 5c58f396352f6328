import PinproxyHTTPWire
import PinproxyTransport

/// The CONNECT that asks a parent proxy for a tunnel, and its answer (RFC 9110 section 9.3.6).
final class ParentReply {
    enum Progress {
        case incomplete
        /// The tunnel is established; ``takeRest()`` has the origin's first bytes.
        case established
        case refused(status: Int)
        case failed(String)
    }

    /// Bytes of an answer's head.
    private static let limit = 16 << 10

    private var request: ByteBuffer
    private var answer: ByteBuffer
    private var parser = HeadParser(limit: ParentReply.limit)
    private var head = ResponseHead()

    init(parent: ParentProxy, target: UpstreamTarget, slabs: SlabPool) {
        let host = target.host.contains(":") ? "[\(target.host)]" : target.host
        let authority = "\(host):\(target.port)"
        var text = "CONNECT \(authority) HTTP/1.1\r\nHost: \(authority)\r\n"
        if let via = target.via { text += "Via: \(via)\r\n" }
        if let authorization = parent.authorization { text += "Proxy-Authorization: \(authorization)\r\n" }
        text += "\r\n"
        request = ByteBuffer(slabs: slabs)
        answer = ByteBuffer(slabs: slabs)
        request.append(Array(text.utf8))
    }

    /// Writes the rest of the request; returns the problem, if it failed.
    func ask(over stream: ByteStream) -> String? {
        guard !request.isEmpty else { return nil }
        switch stream.write(request.count, from: &request) {
        case .done, .blocked: return nil
        case .failed(let error): return error.description
        }
    }

    func read(from stream: ByteStream) -> Progress {
        guard answer.makeRoom(limit: Self.limit) else { return .failed("its answer is too long") }
        switch stream.read(into: &answer) {
        case .blocked: return .incomplete
        case .ended: return .failed("it closed the connection")
        case .failed(let error): return .failed(error.description)
        case .received: break
        }
        while true {
            switch parser.parseResponse(answer.span, to: .connect, into: &head) {
            case .incomplete: return .incomplete
            case .tooLarge, .tooManyFields: return .failed("its answer is too long")
            case .malformed(let error): return .failed("its answer is malformed: \(error.message)")
            case .complete: break
            }
            if (100..<200).contains(head.status) {
                answer.consume(Int(head.length))
                parser.reset()
                continue
            }
            guard (200..<300).contains(head.status) else { return .refused(status: head.status) }
            answer.consume(Int(head.length))
            return .established
        }
    }

    /// Bytes after the answer's head, from an origin that speaks first.
    func takeRest() -> ByteBuffer { answer.take() }
}
