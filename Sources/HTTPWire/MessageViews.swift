/// A request's head that is only passed on: the ranges, and the bytes that they are ranges of.
///
/// It borrows the bytes from the buffer in which they arrived, so that it can't outlive the call it was lent
/// to; who needs the head later makes an ``OwnedRequest`` of it.
package struct RequestView: ~Escapable {
    package let head: RequestHead
    package let bytes: Span<UInt8>

    @_lifetime(copy bytes)
    package init(_ head: RequestHead, _ bytes: Span<UInt8>) {
        self.head = head
        self.bytes = bytes
    }
}

/// A request's head with its bytes: for a request that begins here, and for one that must be sent again.
package struct OwnedRequest: Sendable {
    private let head: RequestHead
    private let bytes: [UInt8]

    package init(_ view: borrowing RequestView) {
        head = view.head
        bytes = view.bytes.extracting(0..<Int(view.head.length)).withUnsafeBufferPointer { Array($0) }
    }

    /// - Parameter bytes: a whole head, its empty line included.
    package init(_ bytes: [UInt8]) throws(WireError) {
        var parser = HeadParser(limit: bytes.count)
        var head = RequestHead()
        switch parser.parseRequest(bytes.span, into: &head) {
        case .complete: break
        case .malformed(let error): throw error
        case .incomplete, .tooLarge, .tooManyFields: throw WireError(.requestLine, at: bytes.count)
        }
        self.head = head
        self.bytes = bytes
    }

    package var view: RequestView {
        @_lifetime(borrow self)
        get { RequestView(head, bytes.span) }
    }
}

/// A response's head that is only passed on, like a ``RequestView``.
package struct ResponseView: ~Escapable {
    package let head: ResponseHead
    package let bytes: Span<UInt8>

    @_lifetime(copy bytes)
    package init(_ head: ResponseHead, _ bytes: Span<UInt8>) {
        self.head = head
        self.bytes = bytes
    }
}
