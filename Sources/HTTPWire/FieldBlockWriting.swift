// Heads and trailers to be sent in HTTP/2. `writeFields` decides which fields pass, as for HTTP/1.1.

extension HeadWriter {
    /// Writes the request for the next hop into `block`, as HTTP/2 (RFC 9113 section 8.3.1).
    ///
    /// - Parameters:
    ///   - head: complete, with at least one hop left by Max-Forwards, parsed from `bytes`.
    ///   - authority: becomes `:authority`, without `defaultPort`. Host is dropped.
    ///   - via: the name that records this hop; nil: it isn't recorded.
    ///   - connectProtocol: of an upgrade, such as `websocket`; writes an extended CONNECT (RFC 8441).
    ///   - neverIndexed: marks all fields as never indexed (`HTTP2HeadPlace.neverIndexed`).
    ///   - edits: other changes; those of connection-specific fields and of Host are dropped.
    package static func write(
        request head: RequestHead, from bytes: Span<UInt8>, authority: Authority, defaultPort: UInt16,
        via: ViaPseudonym?, connectProtocol: String? = nil, neverIndexed: Bool = false,
        edits: HeadEdits = HeadEdits(), into block: inout FieldBlock
    ) {
        block.clear()
        let isTunnel = head.method == .connect
        block.append(":method") {
            if connectProtocol == nil {
                $0.append(contentsOf: bytes, in: head.methodRange)
            } else {
                $0.append(contentsOf: "CONNECT")
            }
        }
        if let connectProtocol { block.append(":protocol", connectProtocol) }
        if !isTunnel { block.append(":scheme") { $0.append(contentsOf: "https") } }
        block.append(":authority") { write(authority, defaultPort: isTunnel ? 0 : defaultPort, into: &$0) }
        if !isTunnel {
            block.append(":path") { out in
                if case .absolute(let parts) = head.targetForm {
                    writeOriginForm(of: parts, method: head.method, from: bytes, into: &out)
                } else {
                    out.append(contentsOf: bytes, in: head.target)
                }
            }
        }

        let maxForwards = head.maxForwards(in: bytes)
        let passage = FieldPassage(
            version: head.version, lastVia: head.lastVia, via: via, isFramed: connectProtocol == nil && !isTunnel,
            hasNominations: head.connection.contains(.nominations))
        let start = block.bytes.count
        var lines = block.lendLines(head.version)
        writeFields(head.fields, passage, from: bytes, edits: edits, into: &block.bytes) { field in
            switch field.id {
            case .upgrade, .host: false
            case .maxForwards: maxForwards == .unlimited
            case .expect: head.version != .http10
            default: true
            }
        } replacing: { field, out in
            if field.id == .maxForwards { writeMaxForwards(maxForwards, into: &out) }
        } noting: {
            lines.append($0, at: $1)
        }
        block.takeLines(from: start, lineRules(edits, neverIndexed, isWebSocket: connectProtocol != nil), lines)
        if head.acceptsTrailers { block.append("te") { $0.append(contentsOf: "trailers") } }
    }

    /// Writes the response for the client into `block`, as HTTP/2. A 101 becomes 200, the answer to an extended
    /// CONNECT.
    ///
    /// - Parameters:
    ///   - head: complete, parsed from `bytes`.
    ///   - via: the name that records this hop; nil: it isn't recorded.
    ///   - neverIndexed: marks all fields as never indexed (`HTTP2HeadPlace.neverIndexed`).
    ///   - edits: other changes; those of connection-specific fields are dropped.
    package static func write(
        response head: ResponseHead, from bytes: Span<UInt8>, via: ViaPseudonym?, neverIndexed: Bool = false,
        edits: HeadEdits = HeadEdits(), into block: inout FieldBlock
    ) {
        block.clear()
        let status = head.isUpgrade ? 200 : head.status
        block.append(":status") {
            $0.append(UInt8(0x30 + status / 100 % 10))
            $0.append(UInt8(0x30 + status / 10 % 10))
            $0.append(UInt8(0x30 + status % 10))
        }
        let passage = FieldPassage(
            version: head.version, lastVia: head.lastVia, via: via,
            isFramed: ResponseHead.mayBeFramed(status: head.status),
            hasNominations: head.connection.contains(.nominations))
        let start = block.bytes.count
        var lines = block.lendLines(head.version)
        writeFields(head.fields, passage, from: bytes, edits: edits, into: &block.bytes) { field in
            switch field.id {
            case .upgrade: false
            case .proxyStatus: ProxyStatusList.content(of: field.value, in: bytes) == .others
            default: true
            }
        } replacing: { field, out in
            if field.id == .proxyStatus { writeProxyStatus(field.value, from: bytes, into: &out) }
        } noting: {
            lines.append($0, at: $1)
        }
        block.takeLines(from: start, lineRules(edits, neverIndexed, isWebSocket: head.isUpgrade), lines)
    }

    /// Writes the proxy's own response into `block`: unchanged except for fields that HTTP/2 forbids.
    package static func write(own head: ResponseHead, from bytes: Span<UInt8>, into block: inout FieldBlock) {
        block.clear()
        block.append(":status", "\(head.status)")
        let start = block.bytes.count
        for field in head.fields { block.bytes.append(contentsOf: bytes, in: field.line) }
        block.takeLines(from: start, [.mayBeConnectionSpecific])
    }

    /// Writes a trailer section into `block`.
    package static func write(trailers: TrailerSection, into block: inout FieldBlock) {
        block.clear()
        block.bytes.append(contentsOf: trailers.lines)
        block.takeLines(from: 0, [.mayBeConnectionSpecific])
    }

    private static func lineRules(_ edits: HeadEdits, _ neverIndexed: Bool, isWebSocket: Bool) -> FieldBlock.LineRules {
        var rules: FieldBlock.LineRules = []
        if !edits.isEmpty { rules.insert(.mayBeConnectionSpecific) }
        if neverIndexed { rules.insert(.areNeverIndexed) }
        if isWebSocket { rules.insert(.haveNoWebSocketKey) }
        return rules
    }
}
