import FoundationEssentials
import Glibc
import PinproxyConfiguration
import PinproxyRecords
import PinproxyTLS

extension OTLPDocument.Resource {
    /// This proxy, by OpenTelemetry's names. The machine's ID itself isn't sent.
    init(_ settings: TelemetrySettings, stateDirectory: String, version: String) {
        let own = [
            ("service.name", "pinproxy"), ("service.version", version),
            ("service.instance.id", Self.instance(machine: MachineIdentity.text, stateDirectory: stateDirectory)),
            ("host.name", MachineIdentity.hostName),
        ]
        let further = settings.attributes.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
        self.init(attributes: (own + further).map { OTLPAttribute($0.0, .string($0.1)) }, version: version)
    }

    /// An ID that survives restarts and differs between state directories: a UUID of version 8 (RFC 9562).
    static func instance(machine: String, stateDirectory: String) -> String {
        var bytes = SHA256Digest.of(Array("pinproxy instance \(machine)\n\(stateDirectory)".utf8)).bytes
        bytes[6] = bytes[6] & 0x0F | 0x80
        bytes[8] = bytes[8] & 0x3F | 0x80
        let digits = bytes.prefix(16).map { byte in
            String(byte >> 4, radix: 16) + String(byte & 0xF, radix: 16)
        }
        let parts = [0..<4, 4..<6, 6..<8, 8..<10, 10..<16]
        return parts.map { digits[$0].joined() }.joined(separator: "-")
    }
}
