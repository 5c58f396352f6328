/// A ClientHello written by the test itself, as no current TLS library would send it.
struct OfferedHello: Sendable {
    /// The version field, the newest that a client without `supported_versions` speaks.
    var version: UInt16 = 0x0303
    /// nil: no `supported_versions`.
    var versions: [UInt16]?
    var suites: [UInt16]
    var compressions: [UInt8] = [0]
    var groups: [UInt16] = [29, 23]
    /// nil: no `signature_algorithms`, which means SHA-1 (RFC 5246 section 7.4.1.4.1).
    var signatures: [UInt16]? = [0x0403, 0x0804, 0x0401]
    /// A key share for X25519 or another group, of as many bytes as that has.
    var keyShare: (group: UInt16, bytes: Int)?
    /// Numbers and contents of further extensions.
    var more: [(UInt16, [UInt8])] = []

    /// ECDHE with AES-GCM, as every browser offers it.
    static let soundSuites: [UInt16] = [0xC02B, 0xC02F]
    static let sound12 = OfferedHello(suites: soundSuites)
    static let sound13 = OfferedHello(
        versions: [0x0304, 0x0303], suites: [0x1301] + soundSuites, keyShare: (29, 32))

    init(
        version: UInt16 = 0x0303, versions: [UInt16]? = nil, suites: [UInt16], compressions: [UInt8] = [0],
        groups: [UInt16] = [29, 23], signatures: [UInt16]? = [0x0403, 0x0804, 0x0401],
        keyShare: (group: UInt16, bytes: Int)? = nil, more: [(UInt16, [UInt8])] = []
    ) {
        self.version = version
        self.versions = versions
        self.suites = suites
        self.compressions = compressions
        self.groups = groups
        self.signatures = signatures
        self.keyShare = keyShare
        self.more = more
    }

    /// The record that carries it.
    var record: [UInt8] {
        var extensions: [(UInt16, [UInt8])] = [(10, sized(2, wide(groups))), (11, [1, 0]), (23, [])] + more
        if let versions { extensions.append((43, sized(1, wide(versions)))) }
        if let signatures { extensions.append((13, sized(2, wide(signatures)))) }
        if let keyShare {
            // 2 is a coordinate like any other to X25519.
            let share = wide([keyShare.group]) + sized(2, [UInt8](repeating: 2, count: keyShare.bytes))
            extensions.append((51, sized(2, share)))
        }
        let body =
            wide([version]) + (1...32).map { _ in UInt8.random(in: 0...255) } + sized(1, [])
            + sized(2, wide(suites)) + sized(1, compressions)
            + sized(2, extensions.flatMap { wide([$0]) + sized(2, $1) })
        return [22, 3, 1] + sized(2, [1] + sized(3, body))
    }

    private func wide(_ numbers: [UInt16]) -> [UInt8] { numbers.flatMap { [UInt8($0 >> 8), UInt8($0 & 0xFF)] } }

    /// The bytes after their length in `count` bytes.
    private func sized(_ count: Int, _ bytes: [UInt8]) -> [UInt8] {
        (0..<count).reversed().map { UInt8(truncatingIfNeeded: bytes.count >> ($0 * 8)) } + bytes
    }
}

/// What a server says first to a ClientHello.
enum HelloAnswer: Sendable, CustomStringConvertible {
    case serverHello(ServerHello)
    case alert(UInt8)
    /// Something else than a record of TLS, or nothing at all.
    case other([UInt8])

    struct ServerHello: Sendable {
        let version: UInt16
        let random: [UInt8]
        let suite: UInt16
        let compression: UInt8
        /// Contents by number.
        let extensions: [UInt16: [UInt8]]
    }

    /// Reads the first record; nil while it is incomplete.
    init?(_ bytes: [UInt8]) {
        guard let first = bytes.first else { return nil }
        guard first == 21 || first == 22 else {
            self = .other(bytes)
            return
        }
        guard bytes.count >= 5, bytes.count >= 5 + Self.number(bytes, 3) else { return nil }
        let body = Array(bytes[5...])
        if first == 21 {
            self = .alert(body[1])
            return
        }
        guard body[0] == 2 else {
            self = .other(bytes)
            return
        }
        let suite = 39 + Int(body[38])
        var extensions: [UInt16: [UInt8]] = [:]
        var position = suite + 5
        // A ServerHello may end without extensions.
        let end = 4 + Self.number(body, 2)
        while position + 4 <= end {
            let length = Self.number(body, position + 2)
            extensions[UInt16(Self.number(body, position))] = Array(body[(position + 4)..<(position + 4 + length)])
            position += 4 + length
        }
        self = .serverHello(
            ServerHello(
                version: UInt16(Self.number(body, 4)), random: Array(body[6..<38]),
                suite: UInt16(Self.number(body, suite)), compression: body[suite + 2], extensions: extensions))
    }

    private static func number(_ bytes: [UInt8], _ offset: Int) -> Int {
        Int(bytes[offset]) << 8 | Int(bytes[offset + 1])
    }

    var description: String {
        switch self {
        case .serverHello(let hello):
            "ServerHello \(String(hello.version, radix: 16)) with suite \(String(hello.suite, radix: 16))"
        case .alert(let number): "alert \(number)"
        case .other(let bytes): "\(bytes.count) bytes: \(String(decoding: bytes.prefix(200), as: UTF8.self))"
        }
    }
}
