/// A defect of a message. The caller knows who sent it: 400 for a client, 502 for an origin.
package struct WireError: Error, Sendable, Hashable, CustomStringConvertible {
    package enum Code: Sendable, Hashable {
        case controlCharacter, bareCarriageReturn, bareLineFeed
        case requestLine, method, target, fragmentInTarget, version, unsupportedVersion, statusLine
        case leadingEmptyLine
        case missingColon, emptyFieldName, spaceBeforeColon, fieldName, foldedLine
        case missingHost, repeatedHost, invalidHost
        case invalidContentLength, repeatedContentLength, contentLengthWithTransferEncoding
        case repeatedTransferEncoding, unsupportedTransferEncoding, transferEncodingBeforeHTTP11
        case tooManyConnectionOptions, connectWithBody
        case connectionSpecificField, targetOfOtherForm, hiddenLine, connectProtocol, switchingProtocols
        case unaskedPart, wrongPart
        case chunkSize, chunkSizeOverflow, chunkExtension, chunkLineTooLong, chunkEnd
        case trailerField, trailersTooLong
        case clientHello
        case serverHandshakeNotTLS, serverHandshake, serverHandshakeTooLong, noServerCertificate
    }

    package let code: Code
    /// The byte at which it was noticed, from the start of the given buffer.
    package let offset: Int

    package init(_ code: Code, at offset: Int) {
        self.code = code
        self.offset = offset
    }

    /// Names the defect in one line, without bytes of the message.
    package var message: String {
        switch code {
        case .controlCharacter: "a control character in the head"
        case .bareCarriageReturn: "a carriage return without a line feed"
        case .bareLineFeed: "a line feed without a carriage return"
        case .requestLine: "the request line is not \"method target version\" with single spaces"
        case .method: "the method is not a token"
        case .target: "the request target is neither a path, an absolute URI, an authority nor \"*\""
        case .fragmentInTarget: "the request target contains a fragment"
        case .version: "the protocol version is malformed"
        case .unsupportedVersion: "the protocol version is neither 1.0 nor 1.1"
        case .statusLine: "the status line is not \"HTTP/1.1 status reason\""
        case .leadingEmptyLine: "an empty line before the status line"
        case .missingColon: "a field line without a colon"
        case .emptyFieldName: "a field without a name"
        case .spaceBeforeColon: "white space between a field's name and its colon"
        case .fieldName: "a field name that is not a token"
        case .foldedLine: "a folded field line"
        case .missingHost: "no Host field"
        case .repeatedHost: "more than one Host field"
        case .invalidHost: "a Host field that is not a host with an optional port"
        case .invalidContentLength: "a Content-Length that is not a decimal number"
        case .repeatedContentLength: "Content-Length fields with different values"
        case .contentLengthWithTransferEncoding: "Content-Length together with Transfer-Encoding"
        case .repeatedTransferEncoding: "more than one Transfer-Encoding"
        case .unsupportedTransferEncoding: "a Transfer-Encoding other than chunked"
        case .transferEncodingBeforeHTTP11: "Transfer-Encoding in an HTTP/1.0 message"
        case .tooManyConnectionOptions: "too many options in Connection"
        case .connectWithBody: "CONNECT with a body"
        case .connectionSpecificField: "a field that HTTP/2 forbids"
        case .targetOfOtherForm: "a :path that is neither a path nor \"*\""
        case .hiddenLine: "a line break in a field"
        case .connectProtocol: "a :protocol that is not a token"
        case .switchingProtocols: "101 Switching Protocols in HTTP/2"
        case .unaskedPart: "206 Partial Content to a request without Range"
        case .wrongPart: "206 Partial Content with a different part than requested"
        case .chunkSize: "a chunk size that is not a hexadecimal number"
        case .chunkSizeOverflow: "a chunk size that is too large"
        case .chunkExtension: "a malformed chunk extension"
        case .chunkLineTooLong: "a chunk line that is too long"
        case .chunkEnd: "chunk data that does not end with CR LF"
        case .trailerField: "a malformed trailer field"
        case .trailersTooLong: "a trailer section that is too long"
        case .clientHello: "a malformed ClientHello"
        case .serverHandshakeNotTLS: "data other than TLS instead of a ServerHello"
        case .serverHandshake: "a malformed TLS handshake from the server"
        case .serverHandshakeTooLong: "a TLS handshake from the server that is too long"
        case .noServerCertificate: "a TLS handshake in which the server presents no certificate"
        }
    }

    package var description: String { "\(message) (at byte \(offset))" }
}
