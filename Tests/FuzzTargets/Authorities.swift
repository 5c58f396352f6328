import PinproxyHTTPWire

/// Authorities, URLs and paths: the printed form reads as itself, and nothing is ambiguous.
enum Authorities {
    static func authority(_ bytes: [UInt8]) {
        var choices = Choices(bytes, count: 1)
        let defaultPort: UInt16? = choices.one(of: [nil, 80, 443, 8080])
        let input = choices.input
        guard case .success(let authority) = Authority.parse(input.span, defaultPort: defaultPort) else { return }
        let text = authority.description
        require(Authority.parse(text, defaultPort: nil) == .success(authority), "an authority reads as itself: \(text)")
        require(authority.host == authority.host.lowercased(), "a host is in lower case: \(text)")
        require(
            authority.host.utf8.allSatisfy { 0x21...0x7E ~= $0 && !"@%/?#\\[]".utf8.contains($0) },
            "a host is plain: \(text)")
        require(
            !authority.host.hasSuffix(".") && authority.host.utf8.count <= 253, "a host has no dot at its end: \(text)")
        let isMatched = authority.matches(input.span, defaultPort: defaultPort ?? 1)
        require(isMatched, "an authority is what it was read from: \(text)")
        require(authority.matches(Array(text.utf8).span, defaultPort: 1), "an authority is what it prints: \(text)")
        require(
            authority.isNamed(authority.host) && authority.isNamedWithPort(text),
            "an authority is named by its host: \(text)")
        require(
            !authority.onPort(authority.port ^ 1).matches(Array(text.utf8).span, defaultPort: 1),
            "a port counts: \(text)")
    }

    private static let base = try? RequestURL("https://base.test/a/b?c")

    static func url(_ bytes: [UInt8]) {
        guard let base else { return require(false, "the base is a URL") }
        guard let url = try? base.resolving(bytes.span) else { return }
        let text = url.description
        // The scheme and the authority matter where a URL is read, not where a path is resolved.
        require(
            text.utf8.count > RequestURL.longest || (try? RequestURL(text)) == url, "a URL reads as itself: \(text)")
        require(
            url.target.first == UInt8(ascii: "/") && url.target.count <= RequestURL.longest,
            "a target is a path: \(text)")
        require(
            url.target.allSatisfy { 0x21...0x7E ~= $0 && !"\"<>\\^`{|}#".utf8.contains($0) },
            "a target is plain: \(text)")
        let path = url.target.prefix { $0 != UInt8(ascii: "?") }.split(separator: UInt8(ascii: "/"))
        require(
            !path.contains { $0.elementsEqual(".".utf8) || $0.elementsEqual("..".utf8) },
            "no dot segment is left: \(text)")
        // The form that is sent is a request's target.
        let head = Array(
            "GET \(String(decoding: url.target, as: UTF8.self)) HTTP/1.1\r\nHost: \(url.origin.host)\r\n\r\n".utf8)
        require((try? OwnedRequest(head)) != nil, "a URL can be asked for: \(text)")
    }

    private static let patterns = ["/**", "/v1/*", "/files/**.gz", "/**/upload", "/a b"].compactMap {
        try? PathPattern($0)
    }

    /// A pattern, and a path after a line feed.
    static func path(_ bytes: [UInt8]) {
        let parts = bytes.split(separator: 0x0A, maxSplits: 1, omittingEmptySubsequences: false)
        let target = Array(parts.last ?? [])
        var readings = PathReadings()
        readings.take(target.span)
        require(1...64 ~= readings.count, "a path has 1 to 64 readings")
        // Longer ones only take longer.
        let pattern =
            parts.count > 1 && parts[0].count < 200 ? try? PathPattern(String(decoding: parts[0], as: UTF8.self)) : nil
        let leaves = readings.mayLeaveRoot()
        for number in 0..<readings.count {
            readings.read(number)
            for known in patterns { _ = known.matches(readings.bytes) }
            if let pattern, pattern.matches(readings.bytes) {
                for known in patterns where known.covers(pattern) {
                    require(
                        known.matches(readings.bytes),
                        "what covers a pattern matches what it matches: \(known), \(pattern)")
                }
            }
        }
        readings.read(0)
        if !leaves, readings.bytes.first == UInt8(ascii: "/") {
            let segments = readings.bytes.split(separator: UInt8(ascii: "/"))
            require(
                readings.count > 1 || !segments.contains { $0.elementsEqual("..".utf8) },
                "no dot segment is left in a plain path")
        }
        // `covers` answers no if it would take long: a state per byte of one pattern meets sets of states of the other.
        if let pattern, pattern.description.utf8.count < 64,
            pattern.description.utf8.count(where: { $0 == UInt8(ascii: "*") }) < 8
        {
            require(pattern.covers(pattern), "a pattern covers itself: \(pattern)")
        }
    }
}
