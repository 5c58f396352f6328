// Request lines and status lines (RFC 9112 sections 3 and 4).

extension RequestHead {
    /// Reads `method SP target SP version`, with exactly one space in each place.
    mutating func parseRequestLine(_ line: ByteRange, in bytes: Span<UInt8>) -> WireError? {
        let token = ASCIISet.token
        var position = line.start
        while position < line.end, token.contains(bytes[position]) { position += 1 }
        guard position > line.start, position < line.end, bytes[position] == .space else {
            return WireError(.method, at: position)
        }
        methodRange = ByteRange(line.start, position)
        method = Method(methodRange, in: bytes)

        let targetStart = position + 1
        position = targetStart
        // Bytes above 127 are no URI's, yet common in paths, and mean nothing to the framing.
        while position < line.end, bytes[position] > .space {
            if bytes[position] == UInt8(ascii: "#") { return WireError(.fragmentInTarget, at: position) }
            position += 1
        }
        guard position > targetStart, position < line.end, bytes[position] == .space else {
            return WireError(.requestLine, at: position)
        }
        target = ByteRange(targetStart, position)

        switch HTTPVersion.parse(ByteRange(position + 1, line.end), in: bytes) {
        case .success(let parsed): version = parsed
        case .failure(let error): return error
        }
        guard let form = Self.form(of: target, for: method, in: bytes) else {
            return WireError(.target, at: targetStart)
        }
        targetForm = form
        return nil
    }

    private static func form(of target: ByteRange, for method: Method, in bytes: Span<UInt8>) -> TargetForm? {
        if method == .connect { return .authority }
        if bytes[target.start] == UInt8(ascii: "/") { return .origin }
        if target.count == 1, bytes[target.start] == UInt8(ascii: "*") {
            return method == .options ? .asterisk : nil
        }
        return AbsoluteTarget.split(target, in: bytes).map(TargetForm.absolute)
    }
}

extension ResponseHead {
    /// Reads `version SP status [SP reason]`; the second space is often missing.
    mutating func parseStatusLine(_ line: ByteRange, in bytes: Span<UInt8>) -> WireError? {
        let versionEnd = min(line.start + HTTPVersion.textLength, line.end)
        switch HTTPVersion.parse(ByteRange(line.start, versionEnd), in: bytes) {
        case .success(let parsed): version = parsed
        case .failure(let error): return error
        }
        let first = versionEnd + 1
        guard line.end >= first + 3, bytes[versionEnd] == .space,
            bytes[first].isDigit, bytes[first] != UInt8(ascii: "0"),
            bytes[first + 1].isDigit, bytes[first + 2].isDigit,
            line.end == first + 3 || bytes[first + 3] == .space
        else { return WireError(.statusLine, at: versionEnd) }
        status = 0
        for offset in first..<first + 3 { status = status * 10 + Int(bytes[offset] & 0x0F) }
        reason = ByteRange(min(first + 4, line.end), line.end)
        return nil
    }
}

extension HTTPVersion {
    /// The length of `HTTP/1.1`.
    static let textLength = 8

    /// Reads `HTTP/x.y`, in upper case.
    static func parse(_ range: ByteRange, in bytes: Span<UInt8>) -> Result<HTTPVersion, WireError> {
        let start = range.start
        guard range.count == textLength,
            bytes[start] == UInt8(ascii: "H"), bytes[start + 1] == UInt8(ascii: "T"),
            bytes[start + 2] == UInt8(ascii: "T"), bytes[start + 3] == UInt8(ascii: "P"),
            bytes[start + 4] == UInt8(ascii: "/"), bytes[start + 5].isDigit,
            bytes[start + 6] == UInt8(ascii: "."), bytes[start + 7].isDigit
        else { return .failure(WireError(.version, at: start)) }
        guard bytes[start + 5] == UInt8(ascii: "1") else {
            return .failure(WireError(.unsupportedVersion, at: start))
        }
        return .success(bytes[start + 7] == UInt8(ascii: "0") ? .http10 : .http11)
    }
}
