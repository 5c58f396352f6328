/// The head of a response, as ranges over the bytes that it was parsed from; reusable like a `RequestHead`.
package struct ResponseHead: Sendable {
    package internal(set) var version: HTTPVersion = .http11
    /// 100 to 999.
    package internal(set) var status: Int = 0
    package internal(set) var reason: ByteRange = .empty
    package internal(set) var fields: [HeadField] = []
    /// Bytes from the buffer's first byte to the first of the body.
    package internal(set) var length: UInt32 = 0
    package internal(set) var bodyLength: BodyLength = .none

    var connection: ConnectionOptions = []
    var lastVia: Int? = nil

    package init() {}

    /// 1xx, with the final response still to come; 101 is final for HTTP.
    package var isInterim: Bool { status < 200 && status != 101 }
    /// 101: the connection speaks another protocol from here.
    package var isUpgrade: Bool { status == 101 }

    package func first(_ id: FieldName) -> ByteRange? {
        for index in fields.indices where fields[index].id == id { return fields[index].value }
        return nil
    }

    mutating func clear() {
        fields.removeAll(keepingCapacity: true)
        lastVia = nil
        connection = []
        bodyLength = .none
        length = 0
    }
}
