package import PinproxyHTTP2
import PinproxyHTTPWire

extension HTTP2Connection {
    /// Opens a stream with the head in ``block`` (``HTTP2Session/submitRequest(_:hasBody:priority:)``).
    func submitRequest(hasBody: Bool) -> HTTP2StreamID? {
        withBlock { session.submitRequest($0, hasBody: hasBody) }
    }

    /// Sends the head in ``block`` as a final response.
    package func submitResponse(_ id: HTTP2StreamID, hasBody: Bool) {
        withBlock { session.submitResponse(id, $0, hasBody: hasBody) }
    }

    /// The block is moved out for the call: passed from its place, its arrays would be retained.
    private func withBlock<Result>(_ body: (borrowing FieldBlock) -> Result) -> Result {
        var block = FieldBlock()
        swap(&block, &self.block)
        defer { swap(&block, &self.block) }
        return body(block)
    }
}
