import PinproxyHTTPWire

/// TLS handshakes that are observed, without taking part.
enum Hellos {
    static func client(_ bytes: [UInt8]) {
        let whole = ClientHello.peek(bytes.span)
        if case .complete(let hello) = whole {
            require(hello.length <= bytes.count && hello.random.count == 32, "a ClientHello is within its bytes")
            require(hello.sessions.sessionID.count <= 32, "a session's identifier has 32 bytes at most")
            if let name = hello.serverName {
                require(name.utf8.allSatisfy { 0x21...0x7E ~= $0 }, "a server's name is text")
            }
            let exact = ClientHello.peek(bytes.span.extracting(0..<hello.length))
            require(exact == whole, "what follows a ClientHello doesn't change it")
        }
        // More bytes never change the result for fewer.
        for cut in Set([1, 2, 5, 6, 9, bytes.count / 4, bytes.count / 2, bytes.count - 1]) where 0..<bytes.count ~= cut
        {
            let early = ClientHello.peek(bytes.span.extracting(0..<cut))
            guard early != .incomplete else { continue }
            require(early == whole, "more bytes change a ClientHello from \(early) to \(whole)")
        }
        switch ClientHello.peekSecond(bytes.span) {
        case .complete(let second): require(second.length <= bytes.count, "a second ClientHello is within its bytes")
        case .incomplete, .notTLS, .malformed: break
        }
    }

    /// The final result for a server's flight, since offsets depend on how it is split.
    private enum End: Equatable {
        case incomplete
        case alert(UInt8)
        case malformed(WireError.Code)
        case other(ServerFlight.Progress)
    }

    static func server(_ bytes: [UInt8]) {
        var choices = Choices(bytes, count: 1)
        let seed = choices.byte()
        var whole = (flight: ServerFlight(), end: End.incomplete)
        whole.end = receive(choices.input, by: &whole.flight)
        var flight = ServerFlight()
        var cuts = Cuts(seed: seed)
        var end = End.incomplete
        var arrived = 0
        while arrived < choices.input.count, end == .incomplete {
            let count = min(cuts.next(), choices.input.count - arrived)
            end = receive(Array(choices.input[arrived..<arrived + count]), by: &flight)
            arrived += count
        }
        require(whole.end == end, "a server's flight reads alike, however it is cut: \(whole.end), \(end)")
        guard case .other(.shown(let shown)) = end else { return }
        require(!shown.certificates.isEmpty && shown.random.count == 32, "a server shows certificates")
        if let exchange = try? ServerKeyExchange(shown, clientRandom: [UInt8](repeating: 7, count: 32)) {
            require(
                exchange.signed.count > 64 && !exchange.signature.isEmpty, "a key exchange signs the randoms and more")
        }
    }

    private static func receive(_ bytes: [UInt8], by flight: inout ServerFlight) -> End {
        var rest = bytes[...]
        while true {
            switch flight.receive(Array(rest).span) {
            case .incomplete: return .incomplete
            case .retry(let count):
                require(count > 0 && count <= rest.count, "a HelloRetryRequest ends within the bytes given")
                rest = rest.dropFirst(count)
                if rest.isEmpty { return .incomplete }
            case .alert(let description, let count):
                require(count <= rest.count, "an alert ends within the bytes given")
                return .alert(description)
            case .malformed(let error): return .malformed(error.code)
            case let progress: return .other(progress)
            }
        }
    }
}
